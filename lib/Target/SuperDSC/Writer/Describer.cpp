// SPDX-License-Identifier: Apache-2.0
//===- Describer.cpp - One planned operation as SuperDSC --------*- C++ -*-===//
//
// Loops become dimensions (here), accesses become orders, gaps and scales
// (DescribeTensors.cpp). The rules are those of spec/superdsc.md, "SuperDSC
// JSON".
//
//===----------------------------------------------------------------------===//

#include "Describer.h"
#include "../Mapping/OpNames.h"

#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/IR/Slicing.h"
#include "Spyre/Target/SuperDSC/Writer/SdscWriter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/ScopedPrinter.h"

#include <numeric>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace spyre::superdsc;
using spyre::DataFormat;

PlacementAttr spyre::superdsc::getPlacement(Value buffer) {
  Operation *definition = buffer.getDefiningOp();
  return definition ? definition->getAttrOfType<PlacementAttr>(
                          SpyreGraphDialect::getPlacementAttrName())
                    : PlacementAttr();
}

LogicalResult Describer::readOperands() {
  ArrayRef<int64_t> chunks = op.getWorkDivision().getChunks();
  for (auto [number, value] : llvm::enumerate(op->getOperands())) {
    Operand operand;
    operand.buffer = value;
    operand.layout = getLayout(value.getType());
    FailureOr<TileStart> tile = getTileStart(value, op);
    if (failed(tile))
      return failure();
    operand.tile = std::move(*tile);
    Value whole = operand.tile.whole;
    auto type = dyn_cast<MemRefType>(whole.getType());
    PlacementAttr placement = getPlacement(whole);
    if (!type || !operand.layout || (!placement && !isa<BlockArgument>(whole)))
      return op->emitOpError()
             << "operand of type " << value.getType()
             << " must be a function argument or an allocation with a layout "
                "and a placement";
    operand.inLX = placement && placement.getSpace() == MemorySpace::lx;
    operand.shape =
        llvm::to_vector(operand.inLX ? placement.getLocal() : type.getShape());
    operand.map = maps[number];
    if (holdsLanes(operation, number)) {
      // Shown without its lanes.
      unsigned lanes = type.getRank() - 1;
      if (operand.layout.getStickDim(type.getShape()) !=
          static_cast<int64_t>(lanes))
        return refuse() << "statistics whose stick is not their last dimension";
      SmallVector<AffineExpr> results(operand.map.getResults());
      results[lanes] = getAffineConstantExpr(0, op->getContext());
      operand.map = AffineMap::get(operand.map.getNumDims(), 0, results,
                                   op->getContext());
    }
    ArrayRef<int64_t> ranges = operand.inLX ? chunks : ArrayRef(extents);
    operand.wholeMap = simplifyWithRanges(operand.map, extents);
    operand.map = simplifyWithRanges(operand.map, ranges);
    if (operand.inLX && !isInLoopDims(operand.wholeMap))
      return refuse() << "a reshape of a buffer in LX";
    std::optional<StickAccess> access =
        getStickAccess(operand.map, operand.layout, operand.shape, ranges);
    if (!access)
      return refuse() << "the access " << AffineMapAttr::get(maps[number])
                      << " to operand " << number << " of type "
                      << value.getType()
                      << ", which is not by whole sticks and one loop along "
                         "them";
    operand.access = *access;
    operands.push_back(std::move(operand));
  }
  return success();
}

/// Operations whose sticks lie along loops that they know by number, of which
/// one of extent 1 leaves no trace in the accesses.
LogicalResult Describer::settleSticks() {
  int64_t numLoops = extents.size();
  if (isMatmul) {
    // Loops in default order: ..., m, n, places in windows, k.
    int64_t n = numLoops - 2 - windows.size(), k = numLoops - 1;
    std::pair<Operand *, int64_t> sticks[] = {
        {&operands[0], k}, {&operands[1], n}, {&init(), n}};
    for (auto [operand, loop] : sticks) {
      if (operand->access.laneDim == -1 && extents[loop] == 1)
        operand->access.laneDim = loop;
      if (operand->access.laneDim != loop)
        return refuse() << "a matmul whose sticks are not along k, n and n";
    }
    const StickAccess &y = operands[1].access;
    if (y.numPacked > 1 && y.packedDim != k)
      return refuse() << "a matmul whose packed sticks are not along k and n";
  }
  // A triangle is of the last two dimensions: the stick is the last one.
  if (isa<TriOp>(operation)) {
    int64_t last = numLoops - 1;
    for (Operand &operand : operands)
      if (operand.access.laneDim == -1 && extents[last] == 1)
        operand.access.laneDim = last;
    if (llvm::all_of(operands, [](const Operand &operand) {
          return operand.access.laneDim == -1;
        }))
      return refuse() << "a triangle of tensors of one element per stick";
  }
  return success();
}

/// The gathered dimension of a table: one of the index's that does not select
/// anything else in it.
LogicalResult Describer::chooseGatheredDim() {
  Operand &table = operands[indirect->operand];
  Operand &index = operands[indirect->index];
  table.gathered = kUnitDim;
  for (unsigned loop = 0; loop < extents.size(); ++loop)
    if ((index.access.strides[loop] != 0 ||
         index.access.laneDim == static_cast<int64_t>(loop)) &&
        table.access.strides[loop] == 0 &&
        table.access.laneDim != static_cast<int64_t>(loop) && extents[loop] > 1)
      table.gathered = loop;
  SmallVector<::spyre::DeviceDim> dims =
      table.layout.getDeviceDims(table.shape);
  unsigned found = 0;
  int64_t stride = 1;
  for (const ::spyre::DeviceDim &dim :
       llvm::reverse(ArrayRef(dims).drop_back())) {
    if (dim.hostDim == indirect->dim) {
      ++found;
      table.gatheredStride = stride;
      table.gatheredExtent = dim.extent;
    }
    stride *= dim.extent;
  }
  if (found != 1 || dims.back().hostDim == indirect->dim)
    return refuse() << "an indirect access along a stick";
  return success();
}

/// Whether sticks are skipped inside of all loops: that takes a dimension of
/// one element.
bool Describer::needsUnitDim() {
  bool needsUnit =
      indirect && *operands[indirect->operand].gathered == kUnitDim;
  for (Operand &operand : operands) {
    int64_t smallest = operand.access.getInnermostStride();
    if (operand.gathered &&
        (smallest == 0 || operand.gatheredStride < smallest))
      smallest = operand.gatheredStride;
    needsUnit |= smallest > 1 && operand.access.totalSticks > 1;
  }
  return needsUnit;
}

/// Which loops become dimensions, and which dimensions are added.
LogicalResult Describer::chooseDims() {
  // Loops that the operation knows by number.
  bool isWalk = isScan(op.getCombiner()) || isSort(op.getCombiner());
  auto isCounted = [&](unsigned loop) {
    return op.usesLoopIndex(loop) ||
           (isWalk && kinds[loop] == utils::IteratorType::reduction);
  };
  unsigned numLoops = extents.size();
  if (failed(settleSticks()) || (indirect && failed(chooseGatheredDim())))
    return failure();
  bool needsUnit = needsUnitDim();

  dimOfLoop.assign(numLoops, -1);
  std::vector<Dim> &dims = result.sdsc.dims;
  if (needsUnit) {
    unitDim = dims.size();
    dims.emplace_back();
  }
  for (unsigned loop = 0; loop < numLoops; ++loop) {
    bool isStick = llvm::any_of(operands, [&](const Operand &operand) {
      return operand.access.laneDim == static_cast<int64_t>(loop);
    });
    bool isLanes =
        loop + 1 == numLoops && countsLanes(op->getName().getStringRef());
    if (isLanes || (extents[loop] == 1 && !isCounted(loop) && !isStick))
      continue;
    dimOfLoop[loop] = dims.size();
    dims.emplace_back();
    dims.back().size = extents[loop];
    dims.back().slices = op.getWorkDivision().getSplits()[loop];
  }
  // A conversion has a dimension beside the stick.
  if (isCopy() && dims.size() == 1 && !needsUnit &&
      operands[0].access.stickElements != init().access.stickElements) {
    unitDim = 0;
    dims.emplace(dims.begin());
    for (int &dim : dimOfLoop)
      dim += dim >= 0;
  }
  return success();
}

/// Of each dimension, the steps that whole sticks of all operands have.
SmallVector<int64_t> Describer::getGranularity() const {
  SmallVector<int64_t> granularity(result.sdsc.dims.size(), 1);
  for (const Operand &operand : operands)
    for (int64_t loop : {operand.access.laneDim, operand.access.packedDim})
      if (loop >= 0) {
        int64_t &own = granularity[dimOf(loop)];
        own = std::lcm(own, operand.access.getStepsPerStick(loop));
      }
  return granularity;
}

std::optional<std::vector<std::string>> Describer::getNames() const {
  size_t numDims = result.sdsc.dims.size();
  if (windows.empty())
    return getDimNames(numDims, isMatmul);
  if (unitDim >= 0 || stickDim >= 0)
    return std::nullopt;
  std::vector<std::string> names(numDims);
  // A dimension without a window may be the other spatial one.
  static const char *const kSpatial[] = {"i", "j"}, *const kOthers[] = {"mb",
                                                                        "j"};
  for (auto [number, window] : llvm::enumerate(windows)) {
    names[dimOfLoop[window.output]] = kSpatial[number];
    names[dimOfLoop[window.place]] = std::string("k") + kSpatial[number];
  }
  unsigned numLoops = extents.size(), numOthers = 0;
  names[dimOfLoop[numLoops - 2 - windows.size()]] = "out";
  names[dimOfLoop[numLoops - 1]] = "in";
  for (std::string &name : names)
    if (name.empty())
      name = kOthers[numOthers++];
  return names;
}

void Describer::chooseSticks() {
  std::vector<Dim> &dims = result.sdsc.dims;
  Operand &reference =
      op.getCombiner() == Combiner::None ? init() : operands.front();
  // Indices have a label of their own.
  bool hasLane = llvm::any_of(operands, [&](const Operand &operand) {
    return operand.access.laneDim != -1 &&
           !(indirect && &operand == &operands[indirect->index]);
  });
  // One element is broadcast, whatever the stick of the others.
  bool isElement = isCopy() && operands[0].access.laneDim == -1 &&
                   operands[0].access.totalSticks == 1 && !operands[0].inLX &&
                   getElementTypeOrSelf(operation->getOperand(0).getType()) ==
                       getElementTypeOrSelf(init().buffer.getType());
  bool oneSided =
      isCopy() && !isElement &&
      (operands[0].access.laneDim == -1) != (init().access.laneDim == -1);
  if (!hasLane || oneSided) {
    // Sticks of one element: a dimension as long as the stick.
    stickDim = dims.size();
    dims.emplace_back();
    int64_t elements =
        oneSided && operands[0].access.laneDim == -1
            ? operands[0].access.stickElements
            : (oneSided ? init() : reference).access.stickElements;
    // A conversion is between sticks of different lengths.
    bool converts = isCopy() && !hasLane;
    if (converts)
      elements = std::max(operands[0].access.stickElements, elements);
    dims.back().size = elements;
    for (auto [number, operand] : llvm::enumerate(operands)) {
      bool isStatistics = holdsLanes(operation, number) && &operand != &init();
      if (operand.access.laneDim == -1 && !isStatistics &&
          (operand.access.stickElements == elements || converts))
        operand.access.laneDim = kStickDim;
    }
  }
  changesStick = isCopy() && !isElement &&
                 operands[0].access.laneDim != init().access.laneDim;
  // The stick of tensors that have none is that of the others.
  const Operand *first = nullptr;
  for (const Operand *operand : {&init(), &operands.front()})
    if (operand->access.laneDim != -1 && !first)
      first = operand;
  for (const Operand &operand : operands)
    if (operand.access.laneDim != -1 && !first &&
        !(indirect && &operand == &operands[indirect->index]))
      first = &operand;
  commonStick = dimOf(first->access.laneDim);
}

LogicalResult Describer::padDims() {
  std::vector<Dim> &dims = result.sdsc.dims;
  SmallVector<int64_t> granularity = getGranularity();
  std::optional<std::vector<std::string>> names = getNames();
  if (!names)
    return refuse() << "an operation of " << dims.size() << " dimensions";
  ArrayRef<int64_t> chunks = op.getWorkDivision().getChunks();
  if (stickDim >= 0)
    result.extents[(*names)[stickDim]] = 1;
  for (unsigned loop = 0; loop < extents.size(); ++loop) {
    if (dimOfLoop[loop] < 0)
      continue;
    Dim &dim = dims[dimOfLoop[loop]];
    dim.size = llvm::alignTo(extents[loop], granularity[dimOfLoop[loop]]);
    if (dim.slices > 1 && dim.slices * chunks[loop] != dim.size)
      return refuse() << "an uneven split: " << dim.slices << " slices of "
                      << chunks[loop] << " of loop " << loop << " with "
                      << dim.size << " iterations";
    const std::string &name = (*names)[dimOfLoop[loop]];
    if (dim.size != extents[loop]) {
      result.extents[name] = extents[loop];
      if (changesStick && dim.slices > 1)
        return refuse() << "a change of stick with a split of the padded loop "
                        << loop;
    }
    // Reductions along the stick mask the padding; in a scan it comes last.
    if (op.getCombiner() != Combiner::None && !isMatmul &&
        !isScan(op.getCombiner()) &&
        kinds[loop] == utils::IteratorType::reduction)
      dim.masked = dim.size - extents[loop];
    if (dim.masked != 0 && dim.slices > 1)
      return refuse() << "a split of the padded reduction over loop " << loop;
  }
  for (auto [dim, name] : llvm::zip(dims, *names))
    dim.name = name;
  for (int64_t loop : op.getWorkDivision().getOrder())
    if (dimOfLoop[loop] >= 0)
      result.sdsc.coreOrder.push_back(dimOfLoop[loop]);
  for (unsigned dim = 0; dim < dims.size(); ++dim)
    if (!llvm::is_contained(result.sdsc.coreOrder, dim))
      result.sdsc.coreOrder.push_back(dim);
  return success();
}

/// Whether `chunk` is `size` divided by `slices` at all multiples of `step`.
static bool isShare(AffineExpr chunk, AffineExpr size, int64_t slices,
                    int64_t step) {
  if (slices == 1)
    return chunk == size;
  // As divisions are planned: size ceildiv (granule x slices) x granule.
  int64_t granule = 1;
  if (auto product = dyn_cast<AffineBinaryOpExpr>(chunk);
      product && product.getKind() == AffineExprKind::Mul) {
    auto factor = dyn_cast<AffineConstantExpr>(product.getRHS());
    if (!factor || factor.getValue() < 1)
      return false;
    granule = factor.getValue();
    chunk = product.getLHS();
  }
  return step % slices == 0 && (step / slices) % granule == 0 &&
         chunk == size.ceilDiv(granule * slices);
}

/// Dimensions whose extent is a symbol of the function.
LogicalResult Describer::chooseSizes() {
  if (std::optional<InitOffset> offset = op.getInitOffset())
    return refuse() << "a result that begins at an offset that varies, in "
                       "dimension "
                    << offset->dim;
  AffineMap extentMap = op.getLoopExtentMap();
  if (!extentMap)
    return success();
  SmallVector<SizeSymbolAttr> symbols = getSizeSymbols(op);
  WorkDivisionAttr division = op.getWorkDivision();
  for (auto [loop, extent] : llvm::enumerate(extentMap.getResults())) {
    if (isa<AffineConstantExpr>(extent))
      continue;
    auto position = dyn_cast<AffineSymbolExpr>(extent);
    if (!position) {
      return refuse() << "an extent of " << llvm::to_string(extent)
                      << ", in loop " << loop << ": a dimension is one symbol";
    }
    SizeSymbolAttr symbol = symbols[position.getPosition()];
    auto refuseSize = [&, loop = loop] {
      return refuse() << "'" << symbol.getName() << "' from "
                      << symbol.getLeast() << " to " << symbol.getMost()
                      << " in loop " << loop << ": ";
    };
    for (const Operand &operand : operands)
      if (operand.access.laneDim == static_cast<int64_t>(loop) ||
          operand.access.packedDim == static_cast<int64_t>(loop))
        return refuseSize() << "a size along sticks, as in operand of type "
                            << operand.buffer.getType() << ", is a number";
    int64_t slices = division.getSplits()[loop];
    if (!isShare(division.getChunkMap().getResult(loop), extent, slices,
                 symbol.getStep()))
      return refuseSize() << slices << " slices must divide its step, "
                          << symbol.getStep();
    if (dimOfLoop[loop] < 0)
      return refuseSize() << "nothing but this size says how often it runs";
    result.sdsc.dims[dimOfLoop[loop]].symbol =
        DimSymbol{0, symbol.getName().str(), symbol.getStep()};
  }
  return success();
}

FailureOr<OpDescription> Describer::run() {
  if (!op.getWorkDivision())
    return op->emitOpError("has no work division");
  if (llvm::is_contained(extents, 0))
    return FailureOr<OpDescription>(refuse() << "an empty reduction");
  if (failed(readOperands()) || failed(chooseDims()))
    return failure();
  chooseSticks();
  if (failed(padDims()) || failed(chooseSizes()) ||
      failed(checkWrites(init())) ||
      failed(describeOperation(op, dimOfLoop, result.sdsc)))
    return failure();
  if (changesStick) {
    if (result.sdsc.op != "identity")
      return FailureOr<OpDescription>(
          refuse() << "a conversion that changes the stick dimension");
    result.sdsc.op = "ReStickifyOpHBM";
  }
  if (failed(addOperands()))
    return failure();
  result.sdsc.format =
      result.sdsc
          .tensors[result.sdsc.inputs.empty() ? result.sdsc.outputs[0]
                                              : result.sdsc.inputs[0]]
          .format;
  return std::move(result);
}

FailureOr<OpDescription> spyre::superdsc::describeOp(SpyreOpInterface op) {
  return Describer(op).run();
}
