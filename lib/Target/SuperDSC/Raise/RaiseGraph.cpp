// SPDX-License-Identifier: Apache-2.0
//===- RaiseGraph.cpp - Bundles as planned spyre_graph ----------*- C++ -*-===//
//
// A tensor of SuperDSC walks sticks at fixed distances from an address. The
// buffer at that address has a shape and a layout (from the manifest, or made
// up from the distances), and the access becomes an index map by reading the
// address in the layout's device dimensions.
//
// Longer than 600 lines: arguments, loops and operations share the buffers.
//
//===----------------------------------------------------------------------===//

#include "../Mapping/OpNames.h"
#include "../Mapping/StatisticsLanes.h"
#include "../Mapping/Tiles.h"
#include "BufferTypes.h"
#include "Executions.h"
#include "ScratchUse.h"

#include "Spyre/Dialect/SpyreGraph/IR/Builders.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/IR/UsedSizes.h"
#include "Spyre/Target/SuperDSC/Model/BundleProgram.h"
#include "Spyre/Target/SuperDSC/Model/DeviceOps.h"
#include "Spyre/Target/SuperDSC/Raise/RaiseGraph.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/MathExtras.h"

#include <map>
#include <set>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace spyre::superdsc;

namespace {

/// A loop of the raised function.
struct TileLoop {
  int64_t count = 1;
  /// Elements by which it moves tiles, and where they start; 0 while nothing
  /// says.
  int64_t tile = 0, low = 0;
  Value variable = {};
  /// Of a loop up to a size, how many elements of it an iteration is; else 0.
  /// A tensor's dimension is that size, or a quotient of it.
  int64_t sizeStep = 0;
};

class Raiser {
public:
  Raiser(const BundleProgram &program, const RaiseOptions &options,
         MLIRContext *context)
      : program(program), context(context), builder(context),
        collector(program, options, context) {}

  OwningOpRef<ModuleOp> run();

private:
  struct Argument {
    std::string name;
    MemRefType type;
    std::vector<int64_t> strides;
    std::map<unsigned, DimSize> sizes;
  };

  void collectSizes();
  /// The size, divided, in the symbols.
  AffineExpr getSizeExpr(const DimSize &size) const;
  /// The map of the symbols to `numbers`, of which those in `sizes` are the
  /// largest of that name; null if there are none of them.
  AffineMap getSizeMap(ArrayRef<int64_t> numbers,
                       const std::map<unsigned, DimSize> &sizes) const;
  void setSizes(const Sdsc &sdsc, NamedAttrList &attributes) const;
  FailureOr<SmallVector<Argument>> getArgumentsOfManifest();
  FailureOr<SmallVector<Argument>> inferArguments();
  LogicalResult makeArguments();
  template <typename Function>
  static LogicalResult
  forEachExecution(ArrayRef<ExecutionNode> nodes,
                   SmallVectorImpl<const ExecutionNode *> &loops,
                   Function function);
  FailureOr<Value> getBuffer(const Execution &execution, unsigned tensor);
  FailureOr<std::pair<Value, AccessMap>> getAccess(const Execution &execution,
                                                   unsigned tensor);
  FailureOr<bool> moveTiles(const Execution &execution,
                            MutableArrayRef<TileLoop> loops);
  FailureOr<bool> moveTiles(ExecutionNode &node,
                            SmallVectorImpl<TileLoop> &loops);
  Value getTile(Value buffer, const Place &place, ArrayRef<TileLoop> loops,
                AffineMap &map, Location loc);
  LogicalResult raise(ExecutionNode &node);
  LogicalResult raise(const ExecutionNode &node,
                      SmallVectorImpl<TileLoop> &loops);
  LogicalResult raise(const Execution &execution, ArrayRef<TileLoop> loops);

  const BundleProgram &program;
  MLIRContext *context;
  OpBuilder builder;
  ExecutionCollector collector;
  int64_t poolBytes = 0;
  std::vector<ExecutionNode> nodes;
  func::FuncOp function;
  /// What a launch binds beside the arguments, and the numbers by names.
  std::vector<SizeParameter> sizes;
  std::map<std::string, unsigned> sizeNumbers;
  /// Those that some argument has, from which a launch can take them.
  std::set<std::string> argumentSizes;
  /// The outermost loop being raised. Buffers are allocated before it, until it
  /// is known who uses them.
  Operation *outermostLoop = nullptr;
  /// Number of each argument's parameter.
  std::map<int64_t, unsigned> parameters;
  /// Allocations by kind, offset and type, and by the manifest's number.
  std::map<std::tuple<int, int64_t, const void *>, Value> allocations;
};

} // namespace

//===----------------------------------------------------------------------===//
// Arguments and buffers
//===----------------------------------------------------------------------===//

/// `loops`: those around the nodes.
template <typename Function>
LogicalResult
Raiser::forEachExecution(ArrayRef<ExecutionNode> nodes,
                         SmallVectorImpl<const ExecutionNode *> &loops,
                         Function function) {
  for (const ExecutionNode &node : nodes) {
    if (node.execution) {
      if (failed(function(*node.execution)))
        return failure();
      continue;
    }
    loops.push_back(&node);
    if (failed(forEachExecution(node.body, loops, function)))
      return failure();
    loops.pop_back();
  }
  return success();
}

/// In the manifest's order; without one, in that in which bundles have them.
void Raiser::collectSizes() {
  if (program.manifest)
    sizes = program.manifest->sizes;
  for (const LoadedBundle &bundle : program.bundles)
    for (const SizeParameter &size : bundle.bundle.sizes)
      if (!llvm::is_contained(sizes, size))
        sizes.push_back(size);
  for (auto [number, size] : llvm::enumerate(sizes))
    sizeNumbers[size.name] = number;
}

AffineExpr Raiser::getSizeExpr(const DimSize &size) const {
  AffineExpr symbol = getAffineSymbolExpr(sizeNumbers.at(size.name), context);
  return size.divisor == 1 ? symbol : symbol.floorDiv(size.divisor);
}

AffineMap Raiser::getSizeMap(ArrayRef<int64_t> numbers,
                             const std::map<unsigned, DimSize> &own) const {
  SmallVector<AffineExpr> exprs;
  for (auto [position, number] : llvm::enumerate(numbers)) {
    auto size = own.find(position);
    exprs.push_back(size == own.end() ? getAffineConstantExpr(number, context)
                                      : getSizeExpr(size->second));
  }
  return makeSizeMap(exprs, sizes.size(), context);
}

/// Says of an operation how many iterations it and each slice have at each
/// size.
void Raiser::setSizes(const Sdsc &sdsc, NamedAttrList &attributes) const {
  std::map<unsigned, DimSize> varying;
  for (unsigned dim = 0; dim < sdsc.dims.size(); ++dim)
    if (sdsc.dims[dim].symbol)
      varying[dim] = {sdsc.dims[dim].symbol->name};
  if (varying.empty())
    return;
  auto division = cast<WorkDivisionAttr>(attributes.get("division"));
  auto extents = cast<DenseI64ArrayAttr>(attributes.get("extents"));
  SmallVector<AffineExpr> shares =
      llvm::to_vector(getSizeMap(division.getChunks(), varying).getResults());
  for (const auto &[dim, size] : varying)
    shares[dim] = shares[dim].ceilDiv(division.getSplits()[dim]);
  attributes.set("extent_map",
                 AffineMapAttr::get(getSizeMap(extents, varying)));
  attributes.set("division", division.withChunkMap(AffineMap::get(
                                 0, sizes.size(), shares, context)));
}

FailureOr<SmallVector<Raiser::Argument>> Raiser::getArgumentsOfManifest() {
  SmallVector<Argument> arguments;
  for (const ManifestTensor &tensor : program.manifest->arguments) {
    FailureOr<MemRefType> type =
        getBufferType(tensor, UnknownLoc::get(context));
    if (failed(type))
      return failure();
    parameters[arguments.size()] = arguments.size();
    arguments.push_back({tensor.name, *type, tensor.strides, {}});
    for (const auto &[dim, name] : tensor.sizes)
      arguments.back().sizes[dim] = {name};
  }
  return arguments;
}

/// The largest of the tensors at the start of a segment is the argument. A
/// result has the order of its iterations, which is that of its shape. What is
/// read has a default layout where that is possible: a product reads its second
/// factor by rows, whatever the order of its iterations.
FailureOr<SmallVector<Raiser::Argument>> Raiser::inferArguments() {
  std::map<int64_t, std::pair<int64_t, BufferShape>> largest;
  SmallVector<const ExecutionNode *> loops;
  auto consider = [&](const Execution &execution) -> LogicalResult {
    for (unsigned number = 0; number < execution.places.size(); ++number) {
      const Place &place = execution.places[number];
      if (place.kind != Place::Argument)
        continue;
      bool isResult = llvm::is_contained(execution.sdsc->outputs, number);
      FailureOr<BufferShape> shape = getBufferShape(
          *execution.sdsc, number, execution.extents, execution.loc, !isResult);
      if (failed(shape))
        return failure();
      int64_t sticks =
          getGeometry(*execution.sdsc, execution.sdsc->tensors[number])->sticks;
      for (auto [stride, loop] : llvm::zip_equal(place.strides, loops))
        if (const SizeParameter *size = loop->getSize(); size && stride != 0)
          addRoom(*shape, *size, loop->step->tile,
                  stride / ::spyre::kStickBytes);
      auto &known = largest[place.argument];
      if (sticks > known.first)
        known = {sticks, *shape};
    }
    return success();
  };
  if (failed(forEachExecution(nodes, loops, consider)))
    return failure();
  SmallVector<Argument> arguments;
  for (auto &[number, entry] : largest) {
    FailureOr<MemRefType> type =
        getBufferType(entry.second, context, UnknownLoc::get(context));
    if (failed(type))
      return failure();
    parameters[number] = arguments.size();
    arguments.push_back(
        {"arg" + std::to_string(number), *type, {}, entry.second.sizes});
  }
  return arguments;
}

LogicalResult Raiser::makeArguments() {
  FailureOr<SmallVector<Argument>> arguments =
      program.manifest ? getArgumentsOfManifest() : inferArguments();
  if (failed(arguments))
    return failure();
  SmallVector<Type> types;
  for (const Argument &argument : *arguments)
    types.push_back(argument.type);
  function = func::FuncOp::create(builder, UnknownLoc::get(context), "main",
                                  builder.getFunctionType(types, {}));
  function.addEntryBlock();
  SmallVector<Attribute> symbols;
  for (const SizeParameter &size : sizes)
    symbols.push_back(SizeSymbolAttr::get(context, size.name, size.granularity,
                                          size.maximum, size.granularity));
  if (!symbols.empty())
    function->setAttr(SpyreGraphDialect::getSymbolsAttrName(),
                      builder.getArrayAttr(symbols));
  for (auto [number, argument] : llvm::enumerate(*arguments)) {
    function.setArgAttr(number, SpyreGraphDialect::getNameAttrName(),
                        builder.getStringAttr(argument.name));
    if (!argument.strides.empty())
      function.setArgAttr(number, SpyreGraphDialect::getHostStridesAttrName(),
                          builder.getDenseI64ArrayAttr(argument.strides));
    // Files have the strides of the largest sizes.
    for (const auto &[dim, size] : argument.sizes)
      argumentSizes.insert(size.name);
    if (AffineMap map = getSizeMap(argument.type.getShape(), argument.sizes))
      function.setArgAttr(number, kUsedMapAttrName, AffineMapAttr::get(map));
  }
  builder.setInsertionPointToEnd(&function.front());
  return success();
}

FailureOr<Value> Raiser::getBuffer(const Execution &execution,
                                   unsigned number) {
  const Place &place = execution.places[number];
  const Sdsc &sdsc = *execution.sdsc;
  if (place.kind == Place::Argument) {
    auto parameter = parameters.find(place.argument);
    if (parameter == parameters.end()) {
      emitError(execution.loc) << "Tensor" << number << " is argument "
                               << place.argument << ", which does not exist";
      return failure();
    }
    return Value(function.getArgument(parameter->second));
  }
  Geometry geometry = *getGeometry(sdsc, sdsc.tensors[number]);
  int64_t said = execution.said ? execution.said->tensors[number] : 0;
  FailureOr<BufferShape> shape =
      getBufferShape(sdsc, number, execution.extents, execution.loc);
  if (failed(shape))
    return failure();
  FailureOr<MemRefType> type =
      said < 0
          ? getBufferType(program.manifest->buffers[-1 - said], execution.loc)
          : getBufferType(makeGeneric(*shape), context, execution.loc);
  if (failed(type))
    return failure();
  // The manifest says which part of a buffer the tensor is.
  int64_t offset = place.offset;
  if (said < 0)
    offset -= execution.said->offsets[number] + place.unrolled;
  if (offset < 0) {
    emitError(execution.loc)
        << "Tensor" << number << " starts before its buffer";
    return failure();
  }
  auto key = std::tuple(said < 0 ? static_cast<int>(said) : place.kind, offset,
                        type->getAsOpaquePointer());
  auto known = allocations.find(key);
  if (known != allocations.end())
    return known->second;
  OpBuilder::InsertionGuard guard(builder);
  if (outermostLoop)
    builder.setInsertionPoint(outermostLoop);
  auto alloc = memref::AllocOp::create(builder, execution.loc, *type);
  bool inLX = place.kind == Place::LX;
  SmallVector<int64_t> local;
  if (inLX) {
    FailureOr<SmallVector<int64_t>> own =
        getLocalShape(sdsc, number, execution.extents, *type, execution.loc);
    if (failed(own))
      return failure();
    local = *own;
  } else {
    auto layout = cast<LayoutAttrInterface>(type->getMemorySpace());
    poolBytes =
        std::max(poolBytes, offset + layout.getSizeInBytes(type->getShape()));
    poolBytes =
        std::max(poolBytes, offset + geometry.sticks * ::spyre::kStickBytes);
  }
  auto placement = PlacementAttr::getChecked(
      [&] { return emitError(execution.loc) << "Tensor" << number << ": "; },
      context, inLX ? MemorySpace::lx : MemorySpace::pool, offset,
      ArrayRef<int64_t>(local));
  if (!placement)
    return failure();
  alloc->setAttr(SpyreGraphDialect::getPlacementAttrName(), placement);
  return allocations[key] = alloc.getResult();
}

/// The buffer of a tensor, and its access in the first iterations of loops that
/// are kept.
FailureOr<std::pair<Value, AccessMap>>
Raiser::getAccess(const Execution &execution, unsigned number) {
  FailureOr<Value> buffer = getBuffer(execution, number);
  if (failed(buffer))
    return failure();
  int64_t start = 0;
  if (auto alloc = buffer->getDefiningOp())
    start = alloc
                ->getAttrOfType<PlacementAttr>(
                    SpyreGraphDialect::getPlacementAttrName())
                .getOffset();
  FailureOr<AccessMap> access = getAccessMap(
      *execution.sdsc, number, execution.places[number].offset - start, *buffer,
      execution.extents, execution.loc);
  if (failed(access))
    return failure();
  return std::pair(*buffer, *access);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Whether the loops around an execution move tiles: each moves every tensor
/// that it moves by the same number of elements of one dimension, or by
/// multiples of the least such number, and what the first iteration accesses
/// does not reach into the next one's tile.
FailureOr<bool> Raiser::moveTiles(const Execution &execution,
                                  MutableArrayRef<TileLoop> loops) {
  for (auto [number, place] : llvm::enumerate(execution.places)) {
    if (llvm::all_of(place.strides, [](int64_t s) { return s == 0; }))
      continue;
    FailureOr<std::pair<Value, AccessMap>> found = getAccess(execution, number);
    if (failed(found))
      return failure();
    const auto &[buffer, access] = *found;
    auto type = cast<MemRefType>(buffer.getType());
    llvm::SmallDenseSet<int64_t> dims;
    for (auto [stride, loop] : llvm::zip_equal(place.strides, loops)) {
      if (stride == 0)
        continue;
      std::optional<TileStep> step =
          stride % ::spyre::kStickBytes == 0
              ? getTileStep(type, stride / ::spyre::kStickBytes)
              : std::nullopt;
      if (!step || !dims.insert(step->dim).second || access.axis == step->dim)
        return false;
      auto [low, high] =
          getRange(access.map.getResult(step->dim), execution.extents);
      int64_t start = low - low % step->elements;
      if (loop.sizeStep % step->elements != 0)
        return false;
      int64_t known = loop.tile == 0 ? step->elements : loop.tile;
      int64_t knownLow = loop.tile == 0 ? start : loop.low;
      // Every tile starts after as many of its own extent.
      if ((step->elements % known != 0 && known % step->elements != 0) ||
          knownLow / known != start / step->elements ||
          high >= start + step->elements ||
          start + loop.count * step->elements > type.getDimSize(step->dim))
        return false;
      loop.tile = std::min(known, step->elements);
      loop.low = std::min(knownLow, start);
    }
  }
  return true;
}

FailureOr<bool> Raiser::moveTiles(ExecutionNode &node,
                                  SmallVectorImpl<TileLoop> &loops) {
  if (node.execution)
    return moveTiles(*node.execution, loops);
  loops.push_back({node.count});
  if (node.getSize()) {
    loops.back().sizeStep = loops.back().tile = node.step->tile;
  }
  for (ExecutionNode &inner : node.body) {
    FailureOr<bool> moves = moveTiles(inner, loops);
    if (failed(moves) || !*moves)
      return moves;
  }
  node.tile = std::max<int64_t>(loops.back().tile, 1);
  node.low = loops.back().low;
  loops.pop_back();
  return true;
}

/// The part of a buffer on which an execution works; makes coordinates of the
/// first iteration those of the part.
Value Raiser::getTile(Value buffer, const Place &place,
                      ArrayRef<TileLoop> loops, AffineMap &map, Location loc) {
  auto type = cast<MemRefType>(buffer.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)),
      sizes(getAsIndexOpFoldResult(context, type.getShape())),
      strides(type.getRank(), builder.getIndexAttr(1));
  bool isWhole = true;
  for (auto [stride, loop] : llvm::zip_equal(place.strides, loops)) {
    if (stride == 0)
      continue;
    isWhole = false;
    TileStep step = *getTileStep(type, stride / ::spyre::kStickBytes);
    int64_t factor = step.elements / loop.tile;
    offsets[step.dim] = loop.variable;
    if (factor > 1)
      offsets[step.dim] = arith::MulIOp::create(builder, loc, loop.variable,
                                                arith::ConstantIndexOp::create(
                                                    builder, loc, factor))
                              .getResult();
    sizes[step.dim] = builder.getIndexAttr(step.elements);
    SmallVector<AffineExpr> results(map.getResults());
    results[step.dim] = results[step.dim] - loop.low * factor;
    map = AffineMap::get(map.getNumDims(), 0, results, context);
  }
  if (isWhole)
    return buffer;
  return memref::SubViewOp::create(builder, loc, buffer, offsets, sizes,
                                   strides);
}

LogicalResult Raiser::raise(const ExecutionNode &node,
                            SmallVectorImpl<TileLoop> &loops) {
  if (node.execution)
    return raise(*node.execution, loops);
  Location loc = node.getLoopLocation(context);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  OpBuilder::InsertionGuard guard(builder);
  Value low = constant(node.low),
        high = constant(node.low + node.count * node.tile),
        step = constant(node.tile);
  auto loop = scf::ForOp::create(builder, loc, low, high, step);
  if (const SizeParameter *size = node.getSize()) {
    if (!argumentSizes.count(size->name))
      return emitError(loc) << "the loop runs up to " << describe(*size)
                            << ", which is the size of no argument";
    loop->setAttr(kBoundMapAttrName,
                  AffineMapAttr::get(AffineMap::get(
                      0, sizes.size(),
                      getSizeExpr({size->name, node.step->tile / node.tile}))));
  }
  bool isOutermost = !outermostLoop;
  if (isOutermost)
    outermostLoop = loop;
  loops.push_back({node.count, node.tile, node.low, loop.getInductionVar()});
  builder.setInsertionPointToStart(loop.getBody());
  for (const ExecutionNode &inner : node.body)
    if (failed(raise(inner, loops)))
      return failure();
  loops.pop_back();
  if (isOutermost)
    outermostLoop = nullptr;
  return success();
}

/// Loops that do more than move tiles are unrolled.
LogicalResult Raiser::raise(ExecutionNode &node) {
  SmallVector<TileLoop> loops;
  FailureOr<bool> moves = moveTiles(node, loops);
  if (failed(moves))
    return failure();
  loops.clear();
  if (*moves)
    return raise(node, loops);
  if (const SizeParameter *size = node.getSize())
    return emitError(node.getLoopLocation(context))
           << "the loop up to " << describe(*size)
           << ", must move each tensor that it moves by " << node.step->tile
           << " elements of one dimension, or by one tile of so many, from the "
              "start of an argument or buffer with room for all of them";
  FailureOr<std::vector<ExecutionNode>> iterations = collector.unroll(node);
  if (failed(iterations))
    return failure();
  for (const ExecutionNode &iteration : *iterations)
    if (failed(raise(*iteration.execution, {})))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Gives the last operand its lanes: all of the result, which loop `laneLoop`
/// counts, or each of an input as an operand.
static LogicalResult addLanes(unsigned tensor, bool isResult, unsigned laneLoop,
                              SmallVectorImpl<Value> &values,
                              SmallVectorImpl<AffineMap> &maps, Location loc) {
  auto type = cast<MemRefType>(values.back().getType());
  unsigned lanes = type.getRank() - 1;
  if (type.getRank() == 0 || type.getDimSize(lanes) != kNumLanes ||
      getLayout(type).getStickDim(type.getShape()) != lanes)
    return emitError(loc)
           << "Tensor" << tensor
           << " holds two lanes of each stick, but its buffer is " << type;
  AffineMap map = maps.back();
  auto withLane = [&](AffineExpr lane) {
    SmallVector<AffineExpr> results(map.getResults());
    results[lanes] = lane;
    return AffineMap::get(std::max(map.getNumDims(), laneLoop + isResult), 0,
                          results, loc.getContext());
  };
  if (isResult) {
    maps.back() = withLane(getAffineDimExpr(laneLoop, loc.getContext()));
    return success();
  }
  values.push_back(values.back());
  maps.back() = withLane(getAffineConstantExpr(0, loc.getContext()));
  maps.push_back(withLane(getAffineConstantExpr(1, loc.getContext())));
  return success();
}

/// The device writes whole sticks. Extents of a manifest must not leave out
/// elements of the last one that the buffer has.
static LogicalResult checkWritesAll(const Execution &execution, unsigned number,
                                    Value buffer, AffineMap map) {
  const Sdsc &sdsc = *execution.sdsc;
  auto type = cast<MemRefType>(buffer.getType());
  int64_t dim = getLayout(type).getStickDim(type.getShape());
  StickDim stick = sdsc.labels[sdsc.tensors[number].label].sticks.back();
  int64_t extent = execution.extents[stick.dim];
  if (!execution.said || holdsLanes(sdsc, number) || dim < 0 || extent == 1 ||
      extent % stick.size == 0 || !variesAlong(sdsc.tensors[number], stick.dim))
    return success();
  int64_t written = getRange(map.getResult(dim), execution.extents).second + 1;
  if (written >= type.getDimSize(dim))
    return success();
  return emitError(execution.loc)
         << "Tensor" << number << " is written in whole sticks, but by "
         << extent << ", the extent of '" << sdsc.dims[stick.dim].name
         << "', ends at " << written << " of the " << type.getDimSize(dim)
         << " elements of dimension " << dim << " of its buffer";
}

LogicalResult Raiser::raise(const Execution &execution,
                            ArrayRef<TileLoop> loops) {
  const Sdsc &sdsc = *execution.sdsc;
  Location loc = execution.loc;
  SmallVector<unsigned> operands(sdsc.inputs.begin(), sdsc.inputs.end());
  if (listsOutputAsInput(sdsc))
    operands.pop_back();
  // The raised operation takes scale and shift, not the mean behind them.
  if (takesMean(sdsc))
    operands.erase(operands.begin() + 1);
  operands.append(sdsc.indices.begin(), sdsc.indices.end());
  operands.push_back(sdsc.outputs[0]);

  SmallVector<int64_t> extents, splits, chunks, reduced;
  for (unsigned dim = 0; dim < sdsc.dims.size(); ++dim) {
    const Dim &own = sdsc.dims[dim];
    extents.push_back(execution.extents[dim]);
    splits.push_back(own.slices);
    chunks.push_back(own.slices == 1 ? extents.back() : own.perCore());
    if (!variesAlong(sdsc.tensors[sdsc.outputs[0]], dim))
      reduced.push_back(dim);
    bool countsResults = (sdsc.op == "topkvalue" || sdsc.op == "topkindex") &&
                         !variesAlong(sdsc.tensors[sdsc.inputs[0]], dim);
    if (countsResults && own.slices > 1)
      return emitError(loc) << "a split of the dimension '" << own.name
                            << "' of top-k results over cores is known, but "
                               "the toolchain cannot execute it";
    if ((own.slices - 1) * own.perCore() >= extents.back())
      return emitError(loc)
             << "some cores have nothing to do: " << own.slices << " slices of "
             << own.perCore() << " for " << extents.back() << " iterations of '"
             << own.name << "'";
  }
  FailureOr<GraphOperation> operation =
      getGraphOperation(sdsc, extents, reduced, loc);
  if (failed(operation))
    return failure();
  if (operation->swapsInputs)
    std::swap(operands[0], operands[1]);
  bool isSquare = operation->name == "spyre_graph.square";
  if (isSquare)
    operands.erase(operands.begin());

  SmallVector<Value> values;
  SmallVector<AffineMap> maps;
  std::optional<int64_t> axis;
  for (unsigned number : operands) {
    FailureOr<std::pair<Value, AccessMap>> found = getAccess(execution, number);
    if (failed(found))
      return failure();
    auto &[buffer, access] = *found;
    if (access.axis)
      axis = access.axis;
    if (number == operands.back() &&
        failed(checkWritesAll(execution, number, buffer, access.map)))
      return failure();
    values.push_back(
        getTile(buffer, execution.places[number], loops, access.map, loc));
    maps.push_back(access.map);
    if (holdsLanes(sdsc, number) &&
        failed(addLanes(number, number == operands.back(), extents.size(),
                        values, maps, loc)))
      return failure();
  }
  // The order in which cores walk slices, if it is not that of the dimensions.
  SmallVector<int64_t> coreOrder;
  if (!llvm::is_sorted(sdsc.coreOrder))
    coreOrder.assign(sdsc.coreOrder.begin(), sdsc.coreOrder.end());
  if (countsLanes(operation->name)) {
    if (!coreOrder.empty())
      coreOrder.push_back(extents.size());
    extents.push_back(kNumLanes);
    splits.push_back(1);
    chunks.push_back(kNumLanes);
    for (AffineMap &map : maps)
      map = AffineMap::get(extents.size(), 0, map.getResults(), context);
  }
  NamedAttrList &attributes = operation->attributes;
  if (!sdsc.indices.empty()) {
    if (!axis)
      return emitError(loc) << "no tensor is accessed through the index";
    attributes.set("axis", builder.getI64IntegerAttr(*axis));
  }
  attributes.set("maps", builder.getAffineMapArrayAttr(maps));
  attributes.set("extents", builder.getDenseI64ArrayAttr(extents));
  auto division = WorkDivisionAttr::getChecked(
      [&] { return emitError(loc); }, context, ArrayRef<int64_t>(splits),
      ArrayRef<int64_t>(chunks), ArrayRef<int64_t>(coreOrder));
  if (!division)
    return failure();
  attributes.set("division", division);
  setSizes(sdsc, attributes);
  return verify(createDeviceOp(builder, loc, operation->name,
                               ArrayRef(values).drop_back(), values.back(),
                               attributes));
}

/// Lets a buffer that each iteration of a loop writes whole before it reads it
/// live in this loop only, so that others may be at its place before and after.
static void moveIntoLoop(memref::AllocOp alloc) {
  Block *block = (*alloc->user_begin())->getBlock();
  while (llvm::any_of(alloc->getUsers(), [&](Operation *user) {
    return !block->findAncestorOpInBlock(*user);
  }))
    block = block->getParentOp()->getBlock();
  if (block == alloc->getBlock())
    return;
  Operation *first = nullptr, *after = alloc->getNextNode();
  for (Operation *user : alloc->getUsers()) {
    Operation *own = block->findAncestorOpInBlock(*user);
    if (!first || own->isBeforeInBlock(first))
      first = own;
  }
  alloc->moveBefore(first);
  auto writer = dyn_cast<SpyreOpInterface>(first);
  bool isWritten = writer && writer.getSpyreInit() == alloc.getResult() &&
                   llvm::count(first->getOperands(), alloc.getResult()) == 1 &&
                   isFilledFirst(alloc);
  if (!isWritten)
    alloc->moveBefore(after);
}

OwningOpRef<ModuleOp> Raiser::run() {
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(builder, UnknownLoc::get(context));
  builder.setInsertionPointToStart(module->getBody());
  FailureOr<std::vector<ExecutionNode>> collected = collector.collect();
  if (failed(collected))
    return nullptr;
  nodes = std::move(*collected);
  collectSizes();
  // A bundle of ours may read what PyTorch leaves undefined.
  if (!program.manifest &&
      failed(checkScratchUse(nodes, program.bundles[0].folder != ".")))
    return nullptr;
  if (failed(makeArguments()))
    return nullptr;
  for (ExecutionNode &node : nodes)
    if (failed(raise(node)))
      return nullptr;
  // Some buffers were made for loops that have been unrolled.
  for (auto &[key, buffer] : allocations)
    if (buffer.use_empty())
      buffer.getDefiningOp()->erase();
    else
      moveIntoLoop(buffer.getDefiningOp<memref::AllocOp>());
  func::ReturnOp::create(builder, UnknownLoc::get(context));
  if (program.manifest) {
    if (poolBytes > program.manifest->poolBytes) {
      emitError(UnknownLoc::get(context))
          << "manifest.json: pool_bytes is " << program.manifest->poolBytes
          << ", but the bundles use " << poolBytes << " bytes of the pool";
      return nullptr;
    }
    poolBytes = program.manifest->poolBytes;
  }
  function->setAttr(SpyreGraphDialect::getPoolSizeAttrName(),
                    builder.getI64IntegerAttr(poolBytes));
  if (failed(verify(*module)))
    return nullptr;
  return module;
}

OwningOpRef<ModuleOp>
spyre::superdsc::raiseProgram(const BundleProgram &program,
                              const RaiseOptions &options,
                              MLIRContext *context) {
  context->loadDialect<arith::ArithDialect, func::FuncDialect,
                       memref::MemRefDialect, scf::SCFDialect,
                       SpyreGraphDialect>();
  return Raiser(program, options, context).run();
}
