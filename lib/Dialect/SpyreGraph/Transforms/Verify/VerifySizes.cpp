//===- VerifySizes.cpp - A plan at each size --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// SG-PLAN-C13: a plan with symbols has passed the checks at its largest sizes.
// What is left to show is that smaller sizes leave nothing out and reach no
// further. Each such claim says that a set of integer points is empty: sizes,
// and loop indices below the extents at these sizes, at which something would
// be wrong. MLIR's Presburger library decides that, and names a point of a set
// that is not.
//
// Longer than 600 lines: one proof, whose claims share the sets of points that
// have been decided.
//
//===----------------------------------------------------------------------===//

#include "VerifySizes.h"
#include "Spyre/Dialect/SpyreGraph/IR/Shapes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/IR/TileOffset.h"
#include "Spyre/Dialect/SpyreGraph/IR/UsedSizes.h"
#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/IntegerSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// With more sizes than this, they are not looked at one by one.
static constexpr int64_t kMaxSizes = 32;

/// "where s0 is 3 and s1 is 64".
static std::string describeSizes(ArrayRef<SizeSymbolAttr> symbols,
                                 ArrayRef<int64_t> sizes) {
  std::string text = "where ";
  llvm::raw_string_ostream os(text);
  llvm::interleave(
      llvm::zip_equal(symbols, sizes), os,
      [&](auto entry) {
        auto [symbol, size] = entry;
        os << symbol.getName() << " is " << size;
      },
      " and ");
  return text;
}

//===----------------------------------------------------------------------===//
// One size
//===----------------------------------------------------------------------===//

/// Calls `visit` with each combination of sizes until it fails.
static LogicalResult
forEachSize(ArrayRef<SizeSymbolAttr> symbols,
            function_ref<LogicalResult(ArrayRef<int64_t>)> visit) {
  SmallVector<int64_t> sizes = llvm::map_to_vector(
      symbols, [](SizeSymbolAttr symbol) { return symbol.getLeast(); });
  while (true) {
    if (failed(visit(sizes)))
      return failure();
    unsigned number = 0;
    for (; number < symbols.size(); ++number) {
      sizes[number] += symbols[number].getStep();
      if (sizes[number] <= symbols[number].getMost())
        break;
      sizes[number] = symbols[number].getLeast();
    }
    if (number == symbols.size())
      return success();
  }
}

//===----------------------------------------------------------------------===//
// All sizes
//===----------------------------------------------------------------------===//

namespace {
class SizeProof {
public:
  explicit SizeProof(func::FuncOp function)
      : function(function), context(function.getContext()),
        symbols(getSizeSymbols(function)) {}

  LogicalResult run() {
    WalkResult result = function.walk([&](SpyreOpInterface op) {
      return failed(proveDivisions(op)) || failed(proveBounds(op)) ||
                     failed(proveSticks(op))
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    result = function.walk([&](memref::AllocOp alloc) {
      return failed(proveSlices(alloc)) || failed(proveJoined(alloc))
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    result = function.walk(
        [&](memref::SubViewOp tile) { return WalkResult(proveTile(tile)); });
    return failure(result.wasInterrupted());
  }

private:
  AffineExpr number(int64_t value) {
    return getAffineConstantExpr(value, context);
  }

  /// Sizes at which all of `claims`, expressions of loop indices and symbols,
  /// are at least 0 with the indices below `extents`; nothing if there are
  /// none. Every extent is at least 1 (SG-SYMBOL-C2), so only the loops and
  /// symbols that the claims depend on matter.
  std::optional<SmallVector<int64_t>> find(ArrayRef<AffineExpr> claims,
                                           ArrayRef<AffineExpr> extents = {}) {
    SmallVector<AffineExpr> indices(extents.size(), number(0)), constraints;
    unsigned numIndices = 0;
    for (auto [dim, extent] : llvm::enumerate(extents)) {
      if (llvm::none_of(claims, [dim = dim](AffineExpr claim) {
            return claim.isFunctionOfDim(dim);
          }))
        continue;
      indices[dim] = getAffineDimExpr(numIndices++, context);
      constraints.push_back(indices[dim]);
      constraints.push_back(extent - 1 - indices[dim]);
    }
    for (AffineExpr claim : claims)
      constraints.push_back(claim.replaceDims(indices));
    // Symbol number used[k] is step x t_k for an integer t_k.
    SmallVector<unsigned> used;
    SmallVector<AffineExpr> multiples(symbols.size(), number(0)), ranges;
    for (auto [position, symbol] : llvm::enumerate(symbols)) {
      if (llvm::none_of(constraints, [position = position](AffineExpr expr) {
            return expr.isFunctionOfSymbol(position);
          }))
        continue;
      AffineExpr size =
          getAffineSymbolExpr(used.size(), context) * symbol.getStep();
      multiples[position] = size;
      used.push_back(position);
      ranges.push_back(size - symbol.getLeast());
      ranges.push_back(number(symbol.getMost()) - size);
    }
    for (AffineExpr &expr : constraints)
      expr = expr.replaceSymbols(multiples);
    llvm::append_range(constraints, ranges);
    IntegerSet set =
        IntegerSet::get(numIndices, used.size(), constraints,
                        SmallVector<bool>(constraints.size(), false));
    auto [known, isNew] = points.try_emplace(set);
    if (isNew)
      if (auto point = FlatLinearValueConstraints(set).findIntegerSample())
        known->second = llvm::map_to_vector(
            llvm::drop_begin(*point, numIndices),
            [](const llvm::DynamicAPInt &value) { return int64_t(value); });
    if (!known->second)
      return std::nullopt;
    SmallVector<int64_t> sizes = llvm::map_to_vector(
        symbols, [](SizeSymbolAttr symbol) { return symbol.getLeast(); });
    for (auto [position, multiple] : llvm::zip(used, *known->second))
      sizes[position] = multiple * symbols[position].getStep();
    return sizes;
  }

  /// Sizes at which two expressions of symbols differ.
  std::optional<SmallVector<int64_t>> findDifference(AffineExpr a,
                                                     AffineExpr b) {
    if (a == b)
      return std::nullopt;
    if (auto sizes = find({a - b - 1}))
      return sizes;
    return find({b - a - 1});
  }

  LogicalResult fail(Operation *op, const Twine &what,
                     ArrayRef<int64_t> sizes) {
    return op->emitOpError()
           << describeSizes(symbols, sizes) << ", " << what.str();
  }

  LogicalResult proveDivisions(SpyreOpInterface op) {
    WorkDivisionAttr division = op.getWorkDivision();
    if (!op.getLoopExtentMap() || !division)
      return success();
    if (failed(proveDivision(op, division)))
      return failure();
    // Data that comes from other cores is divided in a way of its own.
    for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
      if (WorkDivisionAttr held = op.getAccessDivision(operand);
          held != division && failed(proveDivision(op, held)))
        return failure();
    return success();
  }

  /// The slices of each loop cover it and are not larger than the plan says.
  LogicalResult proveDivision(SpyreOpInterface op, WorkDivisionAttr division) {
    AffineMap extentMap = op.getLoopExtentMap();
    AffineMap chunkMap = division.getChunkMap();
    if (!chunkMap)
      return op->emitOpError("has extents that vary, but chunks that do not");
    SmallVector<int64_t> extents = op.getLoopExtents();
    for (unsigned dim = 0; dim < extents.size(); ++dim) {
      AffineExpr extent = extentMap.getResult(dim),
                 chunk = chunkMap.getResult(dim);
      int64_t splits = division.getSplits()[dim];
      if (auto sizes = find({extent - 1 - chunk * splits}))
        return fail(op,
                    Twine(splits) + " slices do not cover loop dimension " +
                        Twine(dim),
                    *sizes);
      if (auto sizes = find({chunk - 1 - division.getChunks()[dim]}))
        return fail(op,
                    "a slice of loop dimension " + Twine(dim) +
                        " is larger than the plan's largest of " +
                        Twine(division.getChunks()[dim]) + " iterations",
                    *sizes);
      if (auto sizes = find({extent - 1 - extents[dim]}))
        return fail(op,
                    "loop dimension " + Twine(dim) +
                        " is longer than the plan's largest of " +
                        Twine(extents[dim]) + " iterations",
                    *sizes);
    }
    return success();
  }

  /// Along the dimension in which it writes from an offset on, where an
  /// operation begins, and where it ends.
  std::pair<AffineExpr, AffineExpr> getWritten(SpyreOpInterface op,
                                               unsigned dim) {
    SmallVector<AffineExpr> first(op.getLoopExtents().size(), number(0));
    SmallVector<AffineExpr> last = llvm::map_to_vector(
        getSizeExprs(op.getLoopExtentMap(), op.getLoopExtents(), context),
        [](AffineExpr extent) { return extent - 1; });
    AffineExpr coordinate = getWrittenCoordinate(op, dim);
    return {coordinate.replaceDims(first), coordinate.replaceDims(last) + 1};
  }

  /// How large what a buffer holds is. Of an allocation: what is written first,
  /// if that is all of it; otherwise, where operations of varying extents write
  /// it whole, as large as they say, or as far as one writes that begins at an
  /// offset and ends at the end. Nothing if they differ, or if only parts that
  /// vary are written.
  std::optional<SmallVector<AffineExpr>> getContents(Value buffer) {
    SmallVector<AffineExpr> sizes;
    if (auto tile = buffer.getDefiningOp<memref::SubViewOp>())
      return getContents(tile);
    if (auto argument = dyn_cast<BlockArgument>(buffer);
        argument && argument.getOwner() == &function.front()) {
      if (AffineMapAttr map = getArgumentSizeMap(argument))
        return llvm::to_vector(map.getValue().getResults());
    }
    ArrayRef<int64_t> shape = cast<MemRefType>(buffer.getType()).getShape();
    for (int64_t extent : shape)
      sizes.push_back(number(extent));
    if (isa<BlockArgument>(buffer))
      return sizes;
    if (std::optional<SmallVector<AffineExpr>> filled = getFilledSizes(buffer))
      return filled;
    llvm::SmallBitVector isInParts(shape.size());
    for (SpyreOpInterface op : getWriters(buffer)) {
      std::optional<InitOffset> offset = op.getInitOffset();
      if (offset && reachesEnd(op, offset->dim)) {
        if (!isa<AffineConstantExpr>(sizes[offset->dim]))
          return std::nullopt;
        sizes[offset->dim] = getWritten(op, offset->dim).second;
      }
      AffineMap extentMap = op.getLoopExtentMap();
      SmallVector<AffineExpr> written = getSizesWrittenInBuffer(op);
      for (auto [dim, expr] :
           llvm::enumerate(op.getIndexingMaps().back().getResults())) {
        if (offset && offset->dim == static_cast<int64_t>(dim))
          continue;
        if (isa<AffineConstantExpr>(written[dim])) {
          for (unsigned loop = 0; extentMap && loop < extentMap.getNumResults();
               ++loop)
            if (varies(extentMap, loop) && expr.isFunctionOfDim(loop))
              isInParts.set(dim);
          continue;
        }
        if (written[dim] == sizes[dim])
          continue;
        if (!isa<AffineConstantExpr>(sizes[dim]))
          return std::nullopt;
        sizes[dim] = written[dim];
      }
    }
    for (unsigned dim : isInParts.set_bits())
      if (isa<AffineConstantExpr>(sizes[dim]))
        return std::nullopt;
    return sizes;
  }

  /// A tile has the dimensions that it does not cut as its buffer has them.
  /// proveTile() looks at where it lies in others.
  std::optional<SmallVector<AffineExpr>> getContents(memref::SubViewOp tile) {
    std::optional<SmallVector<AffineExpr>> sizes =
        getContents(tile.getSource());
    for (unsigned dim = 0; sizes && dim < sizes->size(); ++dim)
      if (isCut(tile, dim))
        (*sizes)[dim] = number(tile.getType().getDimSize(dim));
    return sizes;
  }

  static bool isCut(memref::SubViewOp tile, unsigned dim) {
    return tile.getType().getDimSize(dim) !=
           tile.getSourceType().getDimSize(dim);
  }

  /// No operation reads or writes outside of what is there.
  LogicalResult proveBounds(SpyreOpInterface op) {
    SmallVector<AffineExpr> extents = getSizeExprs(
        op.getLoopExtentMap(), op.getLoopExtents(), op->getContext());
    if (llvm::is_contained(extents, number(0)))
      return success();
    std::optional<IndirectAccess> indirect = op.getIndirectAccess();
    SmallVector<AffineMap> maps = op.getIndexingMaps();
    for (OpOperand &operand : op->getOpOperands()) {
      unsigned position = operand.getOperandNumber();
      std::optional<SmallVector<AffineExpr>> contents =
          getContents(operand.get());
      if (!contents)
        return op->emitOpError()
               << "accesses operand " << position
               << ", which is written in several sizes, or in parts that vary";
      for (auto [dim, size] : llvm::enumerate(*contents)) {
        if (isa<AffineConstantExpr>(size) ||
            (indirect && indirect->operand == position &&
             indirect->dim == static_cast<int64_t>(dim)))
          continue;
        AffineExpr coordinate = op.isDpsInit(&operand)
                                    ? getWrittenCoordinate(op, dim)
                                    : maps[position].getResult(dim);
        if (auto sizes = find({coordinate - size}, extents))
          return fail(op,
                      "accesses coordinates of dimension " + Twine(dim) +
                          " of operand " + Twine(position) + " beyond its " +
                          Twine(evaluateSize(size, *sizes)) + " elements",
                      *sizes);
      }
    }
    return success();
  }

  /// The tiles of all iterations lie in what the buffer holds.
  LogicalResult proveTile(memref::SubViewOp tile) {
    std::optional<SmallVector<AffineExpr>> contents =
        getContents(tile.getSource());
    if (!contents)
      return tile.emitOpError(
          "is of a buffer that is written in several sizes, "
          "or in parts that vary");
    for (auto [dim, size] : llvm::enumerate(*contents)) {
      // Tiles were checked at the largest sizes.
      if (isa<AffineConstantExpr>(size) || !isCut(tile, dim))
        continue;
      std::optional<TileOffset> offset =
          getTileOffset(tile.getMixedOffsets()[dim]);
      std::optional<TileOffset::Range> range =
          offset ? offset->getRange() : std::nullopt;
      if (!range)
        return tile.emitOpError() << "starts neither at a constant nor at an "
                                     "induction variable of dimension "
                                  << dim;
      AffineExpr last = number(range->last);
      if (std::optional<LoopBound> bound =
              offset->loop ? getLoopBound(offset->loop) : std::nullopt) {
        // The last of the loop's indices is smaller than its bound.
        bool isKnown =
            offset->endsWithLoop ||
            symbols[bound->symbol].getStep() %
                    (bound->divisor * range->step / offset->factor) ==
                0;
        last = bound->getSize(context) * offset->factor -
               (isKnown ? range->step : offset->factor);
      }
      AffineExpr end = last + tile.getType().getDimSize(dim);
      if (auto sizes = find({end - size - 1}))
        return fail(tile,
                    "takes coordinates of dimension " + Twine(dim) +
                        " beyond its " + Twine(evaluateSize(size, *sizes)) +
                        " elements",
                    *sizes);
    }
    return success();
  }

  /// Whether an operation writes up to the end of a dimension of its init at
  /// the largest sizes.
  static bool reachesEnd(SpyreOpInterface op, unsigned dim) {
    return getRange(op.getIndexingMaps().back().getResult(dim),
                    op.getLoopExtents())
                   .second +
               1 ==
           cast<MemRefType>(op.getSpyreInit().getType()).getDimSize(dim);
  }

  /// Whether an index says which elements of its init an operation writes.
  static bool isWrittenByIndex(SpyreOpInterface op) {
    std::optional<IndirectAccess> indirect = op.getIndirectAccess();
    return indirect && indirect->operand == op->getNumOperands() - 1;
  }

  /// What operations write into a buffer from offsets on follows what was
  /// written before, at each size, and is read, or changed where an index says,
  /// when all of it is there. That they fill the other dimensions has been
  /// checked at the largest sizes.
  LogicalResult proveJoined(memref::AllocOp alloc) {
    std::optional<unsigned> joined;
    SmallVector<SpyreOpInterface> writers;
    SmallVector<Operation *> readers;
    for (OpOperand &use : alloc->getUses()) {
      auto op = dyn_cast<SpyreOpInterface>(use.getOwner());
      if (!op || !op.isDpsInit(&use) || isWrittenByIndex(op)) {
        readers.push_back(use.getOwner());
        continue;
      }
      writers.push_back(op);
      if (std::optional<InitOffset> offset = op.getInitOffset()) {
        if (joined && *joined != offset->dim)
          return op->emitOpError("joins along another dimension than others");
        joined = offset->dim;
      }
    }
    if (!joined || isFilledFirst(alloc))
      return success();
    for (SpyreOpInterface writer : writers)
      if (writer->getBlock() != alloc->getBlock())
        return writer->emitOpError("writes in a loop what others join");
    llvm::sort(writers, [](SpyreOpInterface a, SpyreOpInterface b) {
      return a->isBeforeInBlock(b);
    });
    AffineExpr end = number(0);
    SpyreOpInterface last = writers.front();
    for (SpyreOpInterface writer : writers) {
      auto [first, next] = getWritten(writer, *joined);
      AffineExpr counted =
          simplifyAffineExpr(getWrittenCoordinate(writer, *joined) - first,
                             writer.getLoopExtents().size(), symbols.size());
      if (!isa<AffineDimExpr>(counted) && counted != number(0))
        return writer->emitOpError() << "joins along dimension " << *joined
                                     << ", but does not count it in one loop";
      if (auto sizes = find({first - end - 1}))
        return fail(writer,
                    "leaves out dimension " + Twine(*joined) + " from " +
                        Twine(evaluateSize(end, *sizes)) + " on",
                    *sizes);
      if (find({next - end - 1})) {
        end = next;
        last = writer;
      }
    }
    std::optional<SmallVector<AffineExpr>> contents = getContents(alloc);
    auto sizes =
        contents ? findDifference(end, (*contents)[*joined]) : std::nullopt;
    if (!contents || sizes)
      return last->emitOpError() << "is the last to join dimension " << *joined
                                 << ", but does not write up to its end";
    // Writers after the last one change what is there.
    for (Operation *reader : readers) {
      auto tile = dyn_cast<memref::SubViewOp>(reader);
      if (tile && llvm::any_of(tile->getUses(), [](OpOperand &use) {
            auto op = dyn_cast<SpyreOpInterface>(use.getOwner());
            return !op || op.isDpsInit(&use);
          }))
        return tile.emitOpError("is a written tile of what others join");
      if (alloc->getBlock()->findAncestorOpInBlock(*reader)->isBeforeInBlock(
              last))
        return reader->emitOpError("accesses a buffer before all of its parts "
                                   "are joined");
    }
    return success();
  }

  /// The coordinate of the first iteration of all loops.
  AffineExpr getFirst(AffineExpr coordinate, unsigned numLoops) {
    SmallVector<AffineExpr> zeros(numLoops, number(0));
    return simplifyAffineExpr(coordinate.replaceDims(zeros), 0, symbols.size());
  }

  /// Cuts between cores fall between the sticks that are written.
  LogicalResult proveSticks(SpyreOpInterface op) {
    AffineMap extentMap = op.getLoopExtentMap();
    WorkDivisionAttr division = op.getWorkDivision();
    LayoutAttrInterface layout = getLayout(op.getSpyreInit().getType());
    if (!extentMap || !division || !layout)
      return success();
    AffineMap map = op.getIndexingMaps().back();
    ArrayRef<int64_t> shape = shapeOf(op.getSpyreInit());
    for (unsigned dim = 0; dim < extentMap.getNumResults(); ++dim) {
      if (!varies(extentMap, dim) || division.getSplits()[dim] == 1)
        continue;
      for (auto [tensorDim, lane] : llvm::enumerate(map.getResults())) {
        int64_t lanes = getStepsPerStick(layout, shape, tensorDim);
        if (lanes == 1 || !lane.isFunctionOfDim(dim))
          continue;
        // Behind whole sticks, cuts lie as they do from the first stick on.
        AffineExpr first = getFirst(lane, extentMap.getNumResults());
        bool isAtStick =
            isa<AffineConstantExpr>(first) &&
            cast<AffineConstantExpr>(first).getValue() % lanes == 0;
        std::optional<int64_t> width =
            isAtStick ? getWidth(op, lane - first, dim, division)
                      : std::nullopt;
        if (!width || (*width != 1 && *width % lanes != 0))
          return op->emitOpError()
                 << "loop dimension " << dim
                 << " varies and is split, but counts along sticks with "
                    "others, or from inside of one";
        if (*width != 1)
          continue; // Each iteration has sticks of its own.
        AffineExpr rest = division.getChunkMap().getResult(dim) % lanes;
        if (auto sizes = find({rest - 1}))
          return fail(op,
                      "slices of loop dimension " + Twine(dim) +
                          " write parts of the same stick of " + Twine(lanes) +
                          " elements",
                      *sizes);
      }
    }
    return success();
  }

  /// The slice of a dimension of a buffer that a core accesses.
  struct Slice {
    int64_t splits, coreStride;
    AffineExpr chunk, extent;
  };

  /// How many coordinates one iteration of `loop` has in `coordinate`: `width`
  /// of width x loop + rest, where the rest counts from 0 to below the width by
  /// loops that are neither divided nor vary. Nothing if it is no such sum.
  std::optional<int64_t> getWidth(SpyreOpInterface op, AffineExpr coordinate,
                                  unsigned loop, WorkDivisionAttr division) {
    SmallVector<int64_t> extents = op.getLoopExtents();
    auto at = [&](int64_t iteration) {
      return coordinate.replace(getAffineDimExpr(loop, context),
                                number(iteration));
    };
    // Not simplified: remainders would become differences of quotients, whose
    // range is not known exactly.
    AffineExpr rest = at(0);
    auto width = dyn_cast<AffineConstantExpr>(
        simplifyAffineExpr(at(1) - rest, extents.size(), 0));
    if (!width ||
        simplifyAffineExpr(coordinate -
                               getAffineDimExpr(loop, context) * width - rest,
                           extents.size(), 0) != number(0))
      return std::nullopt;
    for (unsigned other = 0; other < extents.size(); ++other)
      if (rest.isFunctionOfDim(other) &&
          (varies(op.getLoopExtentMap(), other) ||
           division.getSplits()[other] != 1))
        return std::nullopt;
    if (getRange(rest, extents) !=
        std::make_pair<int64_t, int64_t>(0, width.getValue() - 1))
      return std::nullopt;
    return width.getValue();
  }

  /// Nothing where the coordinate does not vary: the check at the largest sizes
  /// has seen it. Fails where it cannot be told.
  FailureOr<std::optional<Slice>> getSlice(SpyreOpInterface op,
                                           unsigned operand, unsigned dim) {
    AffineMap extentMap = op.getLoopExtentMap();
    AffineExpr coordinate = op.getIndexingMaps()[operand].getResult(dim);
    for (unsigned loop = 0; extentMap && loop < extentMap.getNumResults();
         ++loop) {
      if (!varies(extentMap, loop) || !coordinate.isFunctionOfDim(loop))
        continue;
      WorkDivisionAttr division = op.getAccessDivision(operand);
      AffineMap chunkMap = division.getChunkMap();
      if (!chunkMap)
        return op->emitOpError("has extents that vary, but chunks that do not");
      std::optional<int64_t> width = getWidth(op, coordinate, loop, division);
      if (!width)
        return op->emitOpError()
               << "accesses dimension " << dim << " of operand " << operand
               << ", which is in LX and varies, otherwise than by a loop that "
                  "varies and others that count within its iterations";
      return std::optional<Slice>(Slice{division.getSplits()[loop],
                                        division.getCoreStrides()[loop],
                                        chunkMap.getResult(loop) * *width,
                                        extentMap.getResult(loop) * *width});
    }
    return std::optional<Slice>();
  }

  /// Whether every core accesses all coordinates of a dimension that an
  /// operation does, and these begin where its map says.
  static bool isUndivided(SpyreOpInterface op, unsigned operand, unsigned dim) {
    std::optional<InitOffset> offset = op.getInitOffset();
    if (offset && offset->dim == static_cast<int64_t>(dim) &&
        op.isDpsInit(&op->getOpOperand(operand)))
      return false;
    AffineExpr coordinate = op.getIndexingMaps()[operand].getResult(dim);
    ArrayRef<int64_t> splits = op.getAccessDivision(operand).getSplits();
    return llvm::all_of(llvm::enumerate(splits), [&](auto split) {
      return split.value() == 1 || !coordinate.isFunctionOfDim(split.index());
    });
  }

  /// All users of a buffer in LX access it in the slices of the first one. A
  /// dimension that none of them divides is in each core as far as it has been
  /// written, beyond which proveBounds() has shown that nothing is read.
  LogicalResult proveSlices(memref::AllocOp alloc) {
    auto placement = alloc->getAttrOfType<PlacementAttr>(
        SpyreGraphDialect::getPlacementAttrName());
    if (!placement || placement.getSpace() != MemorySpace::lx)
      return success();
    for (int64_t dim = 0; dim < alloc.getType().getRank(); ++dim) {
      bool isDivided = false;
      for (OpOperand &use : alloc->getUses()) {
        auto op = dyn_cast<SpyreOpInterface>(use.getOwner());
        if (!op)
          return use.getOwner()->emitOpError(
              "accesses a buffer in LX where sizes vary, but is no device "
              "operation");
        isDivided |= !isUndivided(op, use.getOperandNumber(), dim);
      }
      if (!isDivided)
        continue;
      SmallVector<std::optional<Slice>> slices;
      for (OpOperand &use : alloc->getUses()) {
        FailureOr<std::optional<Slice>> slice =
            getSlice(cast<SpyreOpInterface>(use.getOwner()),
                     use.getOperandNumber(), dim);
        if (failed(slice))
          return failure();
        slices.push_back(*slice);
      }
      for (auto [use, slice] : llvm::zip_equal(alloc->getUses(), slices))
        if (failed(proveSame(cast<SpyreOpInterface>(use.getOwner()),
                             use.getOperandNumber(), dim, slices.front(),
                             slice)))
          return failure();
    }
    return success();
  }

  LogicalResult proveSame(SpyreOpInterface op, unsigned operand, int64_t dim,
                          const std::optional<Slice> &held,
                          const std::optional<Slice> &slice) {
    if (!held && !slice)
      return success();
    if (!held || !slice || held->splits != slice->splits ||
        (held->splits > 1 && held->coreStride != slice->coreStride))
      return op->emitOpError()
             << "accesses dimension " << dim << " of operand " << operand
             << ", which is in LX and varies, in other slices than others do";
    auto sizes = findDifference(held->extent, slice->extent);
    if (!sizes && held->splits > 1)
      sizes = findDifference(held->chunk, slice->chunk);
    if (!sizes)
      return success();
    return fail(op,
                "a core accesses a slice of operand " + Twine(operand) +
                    " that it does not hold in LX",
                *sizes);
  }

  func::FuncOp function;
  MLIRContext *context;
  SmallVector<SizeSymbolAttr> symbols;
  /// What find() has found, of the symbols that the set has.
  DenseMap<IntegerSet, std::optional<SmallVector<int64_t>>> points;
};
} // namespace

LogicalResult spyre_graph::verifySizes(
    func::FuncOp function,
    function_ref<LogicalResult(func::FuncOp bound)> verify) {
  SmallVector<SizeSymbolAttr> symbols = getSizeSymbols(function);
  if (symbols.empty() || function.isExternal())
    return success();
  int64_t count = 1;
  for (SizeSymbolAttr symbol : symbols) {
    int64_t own = (symbol.getMost() - symbol.getLeast()) / symbol.getStep() + 1;
    count = own > kMaxSizes ? kMaxSizes + 1 : count * own;
    if (count > kMaxSizes)
      return SizeProof(function).run();
  }
  return forEachSize(symbols, [&](ArrayRef<int64_t> sizes) -> LogicalResult {
    OwningOpRef<func::FuncOp> bound = bindSizes(function, sizes);
    ScopedDiagnosticHandler handler(function.getContext(),
                                    [&](Diagnostic &diagnostic) {
                                      diagnostic.attachNote(function.getLoc())
                                          << describeSizes(symbols, sizes);
                                      return failure(); // Others print it.
                                    });
    return verify(*bound);
  });
}
