// SPDX-License-Identifier: Apache-2.0
//===- RaiseGraph.cpp - Bundles as planned spyre_graph ----------*- C++ -*-===//
//
// A tensor of SuperDSC walks sticks at fixed distances from an address. The
// buffer at that address has a shape and a layout (from the manifest, or made
// up from the distances), and the access becomes an index map by reading the
// address in the layout's device dimensions.
//
//===----------------------------------------------------------------------===//

#include "BufferTypes.h"
#include "OpNames.h"
#include "Tiles.h"

#include "Spyre/Target/SuperDSC/BundleFile.h"
#include "Spyre/Target/SuperDSC/DeviceOps.h"
#include "Spyre/Target/SuperDSC/Translate.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace spyre::superdsc;

namespace {

/// Executions that loops may unroll to.
constexpr int64_t kMaxExecutions = 1 << 18;

/// Where an operand of one execution starts.
struct Place {
  enum Kind { Argument, Pool, LX } kind = Argument;
  int64_t argument = 0;
  /// Bytes before the first stick that core 0 accesses in the first iterations
  /// of the loops that are kept.
  int64_t offset = 0;
  /// How many of them are due to iterations of loops that are unrolled.
  int64_t unrolled = 0;
  /// Bytes per iteration of each loop that is kept, outermost first.
  std::vector<int64_t> strides;
};

/// One execution of a file.
struct Execution {
  const Sdsc *sdsc = nullptr;
  const ManifestFile *said = nullptr;
  std::vector<Place> places;
  /// Iterations of each dimension that are not padding.
  SmallVector<int64_t> extents;
  Location loc;
};

/// An execution, or a loop around some.
struct Node {
  std::optional<Execution> execution;
  int64_t count = 0;
  /// Of a loop: elements by which it moves tiles, and where they start.
  int64_t tile = 1, low = 0;
  std::vector<Node> body;
  /// Of a loop: where it stands.
  const LoadedBundle *bundle = nullptr;
  const ManifestBundle *said = nullptr;
  const Step *step = nullptr;
};

/// A loop of bundle.mlir around an execution.
struct Iteration {
  /// Of a loop that is unrolled.
  int64_t number = 0;
  bool isKept = false;
};

/// A loop of the raised function.
struct TileLoop {
  int64_t count = 1;
  /// Elements by which it moves tiles, and where they start; 0 while nothing
  /// says.
  int64_t tile = 0, low = 0;
  Value variable = {};
};

class Raiser {
public:
  Raiser(const BundleProgram &program, const RaiseOptions &options,
         MLIRContext *context)
      : program(program), options(options), context(context), builder(context) {
  }

  OwningOpRef<ModuleOp> run();

private:
  LogicalResult collect();
  LogicalResult collectSteps(const LoadedBundle &bundle,
                             const ManifestBundle *said, ArrayRef<Step> steps,
                             SmallVectorImpl<Iteration> &loops,
                             std::vector<Node> &nodes);
  FailureOr<Execution> getExecution(const LoadedBundle &bundle,
                                    const ManifestBundle *said,
                                    const Step &step,
                                    ArrayRef<Iteration> loops);
  FailureOr<Place> findPlace(const ManifestBundle *said, const Step &step,
                             const Sdsc &sdsc, unsigned tensor,
                             ArrayRef<Iteration> loops, Location loc);
  SmallVector<int64_t> getExtents(const Sdsc &sdsc, const ManifestFile *said);
  LogicalResult makeArguments();
  template <typename Function>
  static LogicalResult forEachExecution(ArrayRef<Node> nodes,
                                        Function function);
  FailureOr<Value> getBuffer(const Execution &execution, unsigned tensor);
  FailureOr<AccessMap> getAccess(const Execution &execution, unsigned tensor,
                                 Value buffer, ArrayRef<unsigned> loopOf);
  FailureOr<bool> moveTiles(const Execution &execution,
                            MutableArrayRef<TileLoop> loops);
  FailureOr<bool> moveTiles(Node &node, SmallVectorImpl<TileLoop> &loops);
  Value getTile(Value buffer, const Place &place, ArrayRef<TileLoop> loops,
                AffineMap &map, Location loc);
  LogicalResult raise(Node &node);
  LogicalResult raise(const Node &node, SmallVectorImpl<TileLoop> &loops);
  LogicalResult raise(const Execution &execution, ArrayRef<TileLoop> loops);
  const std::map<std::string, const ManifestFile *> &
  getFiles(const ManifestBundle &said);

  const BundleProgram &program;
  RaiseOptions options;
  MLIRContext *context;
  OpBuilder builder;
  bool hasPool = false;
  int64_t poolBytes = 0;
  std::vector<Node> nodes;
  int64_t numExecutions = 0;
  func::FuncOp function;
  /// Of what is being raised: buffers outlive it.
  Operation *outermostLoop = nullptr;
  /// Number of each argument's parameter.
  std::map<int64_t, unsigned> parameters;
  /// Allocations by kind, offset and type, and by the manifest's number.
  std::map<std::tuple<int, int64_t, const void *>, Value> allocations;
  std::map<const ManifestBundle *, std::map<std::string, const ManifestFile *>>
      files;
};

} // namespace

//===----------------------------------------------------------------------===//
// Executions
//===----------------------------------------------------------------------===//

SmallVector<int64_t> Raiser::getExtents(const Sdsc &sdsc,
                                        const ManifestFile *said) {
  SmallVector<int64_t> extents;
  for (unsigned dim = 0; dim < sdsc.dims.size(); ++dim) {
    const Dim &own = sdsc.dims[dim];
    int64_t extent = own.size - own.masked;
    // A tensor shorter than the padded iterations says what is not padding.
    for (const Tensor &tensor : sdsc.tensors) {
      Geometry geometry = *getGeometry(sdsc, tensor);
      for (const TensorDim &position : geometry.dims)
        if (position.dim == dim && position.scale == Scale::Present &&
            !position.isGathered && !tensor.inLX)
          extent = std::min(extent, position.extent);
    }
    if (said)
      if (auto found = said->extents.find(own.name);
          found != said->extents.end())
        extent = found->second;
    extents.push_back(extent);
  }
  return extents;
}

FailureOr<Place> Raiser::findPlace(const ManifestBundle *said, const Step &step,
                                   const Sdsc &sdsc, unsigned number,
                                   ArrayRef<Iteration> loops, Location loc) {
  const Tensor &tensor = sdsc.tensors[number];
  Place place;
  if (tensor.inLX) {
    place.kind = Place::LX;
    place.offset = tensor.addresses[0];
    return place;
  }
  auto fail = [&](const Twine &message) -> FailureOr<Place> {
    emitError(loc) << "Tensor" << number << " " << message;
    return failure();
  };
  int64_t unrolled = 0;
  auto addressOf = [&](int64_t core) -> std::optional<Address> {
    unrolled = 0;
    Address address;
    address.offset = tensor.addresses[core];
    if (!tensor.symbolic)
      return address;
    auto symbol = llvm::find(step.symbols, address.offset);
    if (symbol == step.symbols.end())
      return std::nullopt;
    address = step.operands[symbol - step.symbols.begin()];
    std::vector<int64_t> kept;
    for (auto [stride, loop] : llvm::zip(address.strides, loops)) {
      int64_t product;
      if (loop.isKept)
        kept.push_back(stride);
      else if (llvm::MulOverflow(stride, loop.number, product) ||
               llvm::AddOverflow(address.offset, product, address.offset))
        return std::nullopt;
      else
        unrolled += product;
    }
    address.strides = std::move(kept);
    return address;
  };
  std::optional<Address> first = addressOf(0);
  place.unrolled = unrolled;
  Geometry geometry = *getGeometry(sdsc, tensor);
  for (int64_t core = 0; core < sdsc.numCores(); ++core) {
    std::optional<Address> own = addressOf(core);
    if (!first || !own)
      return fail("has a symbol without a value");
    Address expected = *first;
    expected.offset += geometry.offsetOf(sdsc, core) * ::spyre::kStickBytes;
    if (!(*own == expected))
      return fail("does not start on core " + Twine(core) +
                  " where its slice does");
  }
  int64_t offset = first->offset;
  if (offset < 0 || offset % ::spyre::kStickBytes != 0)
    return fail("starts at " + Twine(offset) +
                ", which is not a multiple of 128");
  place.offset = offset;
  place.strides = first->strides;
  if (first->base == Address::Pool) {
    place.kind = Place::Pool;
    return place;
  }
  if (first->base == Address::Argument) {
    place.argument = first->argument;
    return place;
  }
  int64_t segment = offset / kSegmentBytes;
  place.offset = offset % kSegmentBytes;
  if (said ? said->hasPool : hasPool) {
    if (segment == 0) {
      place.kind = Place::Pool;
      return place;
    }
    --segment;
  }
  place.argument = segment;
  if (said) {
    if (segment >= static_cast<int64_t>(said->arguments.size()))
      return fail("lies in a segment that the manifest gives no argument");
    place.argument = said->arguments[segment];
  }
  return place;
}

const std::map<std::string, const ManifestFile *> &
Raiser::getFiles(const ManifestBundle &said) {
  auto [entry, isNew] = files.try_emplace(&said);
  if (isNew)
    for (const ManifestFile &file : said.files)
      entry->second[file.file] = &file;
  return entry->second;
}

FailureOr<Execution> Raiser::getExecution(const LoadedBundle &bundle,
                                          const ManifestBundle *said,
                                          const Step &step,
                                          ArrayRef<Iteration> loops) {
  std::string name =
      (bundle.folder == "." ? "" : bundle.folder + "/") + step.file;
  Execution execution{&bundle.files.at(step.file),
                      nullptr,
                      {},
                      {},
                      FileLineColLoc::get(context, name, 1, 1)};
  if (said) {
    auto file = getFiles(*said).find(step.file);
    if (file != getFiles(*said).end())
      execution.said = file->second;
  }
  const Sdsc &sdsc = *execution.sdsc;
  for (unsigned number = 0; number < sdsc.tensors.size(); ++number) {
    auto place = findPlace(said, step, sdsc, number, loops, execution.loc);
    if (failed(place))
      return failure();
    execution.places.push_back(*place);
  }
  execution.extents = getExtents(sdsc, execution.said);
  return execution;
}

/// `loops`: those around the steps. Loops in the steps are kept if those around
/// are.
LogicalResult Raiser::collectSteps(const LoadedBundle &bundle,
                                   const ManifestBundle *said,
                                   ArrayRef<Step> steps,
                                   SmallVectorImpl<Iteration> &loops,
                                   std::vector<Node> &nodes) {
  for (const Step &step : steps) {
    if (!step.isLoop()) {
      FailureOr<Execution> execution = getExecution(bundle, said, step, loops);
      if (failed(execution))
        return failure();
      nodes.emplace_back();
      nodes.back().execution = std::move(*execution);
      continue;
    }
    if (step.body.empty() || step.count < 1)
      continue;
    bool isKept = llvm::all_of(loops, [](Iteration own) { return own.isKept; });
    Node node;
    node.count = step.count;
    node.bundle = &bundle;
    node.said = said;
    node.step = &step;
    std::vector<Node> &body = isKept ? node.body : nodes;
    loops.push_back({0, isKept});
    do {
      if (failed(collectSteps(bundle, said, step.body, loops, body)))
        return failure();
    } while (!isKept && ++loops.back().number < step.count);
    loops.pop_back();
    if (isKept && !node.body.empty())
      nodes.push_back(std::move(node));
  }
  return success();
}

/// Executions of steps, those in loops as often as they run; more than the
/// limit if there are too many.
static int64_t countExecutions(ArrayRef<Step> steps) {
  int64_t sum = 0;
  for (const Step &step : steps) {
    int64_t own = 1;
    if (step.isLoop())
      own = std::min(countExecutions(step.body), kMaxExecutions + 1) *
            std::min(step.count, kMaxExecutions + 1);
    sum = std::min(sum + own, kMaxExecutions + 1);
  }
  return sum;
}

LogicalResult Raiser::collect() {
  const Manifest *manifest = program.manifest ? &*program.manifest : nullptr;
  if (!manifest && program.bundles.size() > 1)
    return emitError(UnknownLoc::get(context))
           << "several bundles share arguments in a way that only a "
              "manifest.json says, and there is none";
  hasPool = manifest ? manifest->poolBytes > 0 : options.hasPool;
  for (auto [number, bundle] : llvm::enumerate(program.bundles)) {
    const ManifestBundle *said =
        manifest ? &manifest->bundles[number] : nullptr;
    numExecutions += countExecutions(bundle.bundle.steps);
    if (numExecutions > kMaxExecutions)
      return emitError(UnknownLoc::get(context))
             << "the loops of bundle.mlir make more than " << kMaxExecutions
             << " executions";
    SmallVector<Iteration> loops;
    if (failed(collectSteps(bundle, said, bundle.bundle.steps, loops, nodes)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Arguments and buffers
//===----------------------------------------------------------------------===//

template <typename Function>
LogicalResult Raiser::forEachExecution(ArrayRef<Node> nodes,
                                       Function function) {
  for (const Node &node : nodes)
    if (node.execution ? failed(function(*node.execution))
                       : failed(forEachExecution(node.body, function)))
      return failure();
  return success();
}

LogicalResult Raiser::makeArguments() {
  struct Argument {
    std::string name;
    MemRefType type;
    std::vector<int64_t> strides;
  };
  SmallVector<Argument> arguments;
  Location loc = UnknownLoc::get(context);
  if (program.manifest) {
    for (const ManifestTensor &tensor : program.manifest->arguments) {
      FailureOr<MemRefType> type = getBufferType(tensor, loc);
      if (failed(type))
        return failure();
      parameters[arguments.size()] = arguments.size();
      arguments.push_back({tensor.name, *type, tensor.strides});
    }
  } else {
    // The largest of the tensors at the start of a segment is the argument.
    std::map<int64_t, std::pair<int64_t, BufferShape>> largest;
    auto consider = [&](const Execution &execution) -> LogicalResult {
      for (unsigned number = 0; number < execution.places.size(); ++number) {
        const Place &place = execution.places[number];
        if (place.kind != Place::Argument)
          continue;
        FailureOr<BufferShape> shape = getBufferShape(
            *execution.sdsc, number, execution.extents, execution.loc);
        if (failed(shape))
          return failure();
        int64_t sticks =
            getGeometry(*execution.sdsc, execution.sdsc->tensors[number])
                ->sticks;
        auto &known = largest[place.argument];
        if (sticks > known.first)
          known = {sticks, *shape};
      }
      return success();
    };
    if (failed(forEachExecution(nodes, consider)))
      return failure();
    for (auto &[number, entry] : largest) {
      FailureOr<MemRefType> type = getBufferType(entry.second, context, loc);
      if (failed(type))
        return failure();
      parameters[number] = arguments.size();
      arguments.push_back({"arg" + std::to_string(number), *type, {}});
    }
  }
  SmallVector<Type> types;
  for (const Argument &argument : arguments)
    types.push_back(argument.type);
  function = func::FuncOp::create(builder, loc, "main",
                                  builder.getFunctionType(types, {}));
  function.addEntryBlock();
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    function.setArgAttr(number, SpyreGraphDialect::getNameAttrName(),
                        builder.getStringAttr(argument.name));
    if (!argument.strides.empty())
      function.setArgAttr(number, SpyreGraphDialect::getHostStridesAttrName(),
                          builder.getDenseI64ArrayAttr(argument.strides));
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
                               << place.argument << ", which there is not";
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
          : getBufferType(*shape, context, execution.loc);
  if (failed(type))
    return failure();
  if (!isa<LayoutAttr>(type->getMemorySpace())) {
    emitError(execution.loc)
        << "Tensor" << number
        << " is an intermediate in an order of dimensions that no layout has";
    return failure();
  }
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
  alloc->setAttr(SpyreGraphDialect::getPlacementAttrName(),
                 PlacementAttr::get(context,
                                    inLX ? MemorySpace::lx : MemorySpace::pool,
                                    offset, local));
  return allocations[key] = alloc.getResult();
}

/// The access in the first iterations of loops that are kept.
FailureOr<AccessMap> Raiser::getAccess(const Execution &execution,
                                       unsigned number, Value buffer,
                                       ArrayRef<unsigned> loopOf) {
  int64_t start = 0;
  if (auto alloc = buffer.getDefiningOp())
    start = alloc
                ->getAttrOfType<PlacementAttr>(
                    SpyreGraphDialect::getPlacementAttrName())
                .getOffset();
  return getAccessMap(*execution.sdsc, number,
                      execution.places[number].offset - start, buffer,
                      execution.extents, loopOf, execution.loc);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Whether the loops around an execution move tiles: each moves every tensor
/// that it moves by the same number of elements of one dimension, and what the
/// first iteration accesses does not reach into the next one's tile.
FailureOr<bool> Raiser::moveTiles(const Execution &execution,
                                  MutableArrayRef<TileLoop> loops) {
  SmallVector<unsigned> loopOf =
      llvm::to_vector(llvm::seq<unsigned>(0, execution.sdsc->dims.size()));
  for (auto [number, place] : llvm::enumerate(execution.places)) {
    if (llvm::all_of(place.strides, [](int64_t s) { return s == 0; }))
      continue;
    FailureOr<Value> buffer = getBuffer(execution, number);
    if (failed(buffer))
      return failure();
    FailureOr<AccessMap> access = getAccess(execution, number, *buffer, loopOf);
    if (failed(access))
      return failure();
    auto type = cast<MemRefType>(buffer->getType());
    llvm::SmallDenseSet<int64_t> dims;
    for (auto [stride, loop] : llvm::zip_equal(place.strides, loops)) {
      if (stride == 0)
        continue;
      std::optional<TileStep> step =
          stride % ::spyre::kStickBytes == 0
              ? getTileStep(type, stride / ::spyre::kStickBytes)
              : std::nullopt;
      if (!step || !dims.insert(step->dim).second || access->axis == step->dim)
        return false;
      auto [low, high] =
          getRange(access->map.getResult(step->dim), execution.extents);
      int64_t start = low - low % step->elements;
      if (loop.tile == 0) {
        loop.tile = step->elements;
        loop.low = start;
      }
      if (loop.tile != step->elements || loop.low != start ||
          high >= start + loop.tile ||
          start + loop.count * loop.tile > type.getDimSize(step->dim))
        return false;
    }
  }
  return true;
}

FailureOr<bool> Raiser::moveTiles(Node &node,
                                  SmallVectorImpl<TileLoop> &loops) {
  if (node.execution)
    return moveTiles(*node.execution, loops);
  loops.push_back({node.count});
  for (Node &inner : node.body) {
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
    offsets[step.dim] = loop.variable;
    sizes[step.dim] = builder.getIndexAttr(loop.tile);
    SmallVector<AffineExpr> results(map.getResults());
    results[step.dim] = results[step.dim] - loop.low;
    map = AffineMap::get(map.getNumDims(), 0, results, context);
  }
  if (isWhole)
    return buffer;
  return memref::SubViewOp::create(builder, loc, buffer, offsets, sizes,
                                   strides);
}

LogicalResult Raiser::raise(const Node &node,
                            SmallVectorImpl<TileLoop> &loops) {
  if (node.execution)
    return raise(*node.execution, loops);
  Location loc = UnknownLoc::get(context);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  OpBuilder::InsertionGuard guard(builder);
  Value low = constant(node.low),
        high = constant(node.low + node.count * node.tile),
        step = constant(node.tile);
  auto loop = scf::ForOp::create(builder, loc, low, high, step);
  bool isOutermost = !outermostLoop;
  if (isOutermost)
    outermostLoop = loop;
  loops.push_back({node.count, node.tile, node.low, loop.getInductionVar()});
  builder.setInsertionPointToStart(loop.getBody());
  for (const Node &inner : node.body)
    if (failed(raise(inner, loops)))
      return failure();
  loops.pop_back();
  if (isOutermost)
    outermostLoop = nullptr;
  return success();
}

/// Loops that do more than move tiles are unrolled.
LogicalResult Raiser::raise(Node &node) {
  SmallVector<TileLoop> loops;
  FailureOr<bool> moves = moveTiles(node, loops);
  if (failed(moves))
    return failure();
  loops.clear();
  if (*moves)
    return raise(node, loops);
  std::vector<Node> iterations;
  SmallVector<Iteration> own(1);
  for (; own[0].number < node.count; ++own[0].number)
    if (failed(collectSteps(*node.bundle, node.said, node.step->body, own,
                            iterations)))
      return failure();
  for (const Node &iteration : iterations)
    if (failed(raise(*iteration.execution, {})))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult Raiser::raise(const Execution &execution,
                            ArrayRef<TileLoop> loops) {
  const Sdsc &sdsc = *execution.sdsc;
  Location loc = execution.loc;
  // Loops stand in the order in which cores walk slices.
  SmallVector<unsigned> order;
  unsigned last = 0;
  bool ascends = true;
  for (unsigned dim : sdsc.coreOrder) {
    if (sdsc.dims[dim].slices > 1) {
      ascends &= dim >= last;
      last = dim;
    }
  }
  for (unsigned dim = 0; dim < sdsc.dims.size(); ++dim)
    order.push_back(ascends ? dim : sdsc.coreOrder[dim]);
  SmallVector<unsigned> loopOf(order.size());
  for (auto [loop, dim] : llvm::enumerate(order))
    loopOf[dim] = loop;

  SmallVector<unsigned> operands(sdsc.inputs.begin(), sdsc.inputs.end());
  if (listsOutputAsInput(sdsc))
    operands.pop_back();
  operands.append(sdsc.indices.begin(), sdsc.indices.end());
  operands.push_back(sdsc.outputs[0]);

  SmallVector<int64_t> extents, splits, chunks, reduced;
  for (auto [loop, dim] : llvm::enumerate(order)) {
    const Dim &own = sdsc.dims[dim];
    extents.push_back(execution.extents[dim]);
    splits.push_back(own.slices);
    chunks.push_back(own.slices == 1 ? extents.back() : own.perCore());
    if (!variesAlong(sdsc.tensors[sdsc.outputs[0]], dim)) {
      reduced.push_back(loop);
      if (own.slices > 1)
        return emitError(loc)
               << "a split of the reduced dimension '" << own.name
               << "' over cores is valid, but nothing here executes it yet";
    }
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
    FailureOr<Value> buffer = getBuffer(execution, number);
    if (failed(buffer))
      return failure();
    FailureOr<AccessMap> access = getAccess(execution, number, *buffer, loopOf);
    if (failed(access))
      return failure();
    if (access->axis)
      axis = access->axis;
    values.push_back(
        getTile(*buffer, execution.places[number], loops, access->map, loc));
    maps.push_back(access->map);
  }
  OperationState state(loc, operation->name);
  state.addOperands(values);
  state.addAttributes(operation->attributes);
  if (!sdsc.indices.empty()) {
    if (!axis)
      return emitError(loc) << "no tensor is accessed through the index";
    state.addAttribute("axis", builder.getI64IntegerAttr(*axis));
  }
  state.addAttribute("maps", builder.getAffineMapArrayAttr(maps));
  state.addAttribute("extents", builder.getDenseI64ArrayAttr(extents));
  state.addAttribute("division",
                     WorkDivisionAttr::get(context, splits, chunks));
  return verify(builder.create(state));
}

OwningOpRef<ModuleOp> Raiser::run() {
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(builder, UnknownLoc::get(context));
  builder.setInsertionPointToStart(module->getBody());
  if (failed(collect()) || failed(makeArguments()))
    return nullptr;
  for (Node &node : nodes)
    if (failed(raise(node)))
      return nullptr;
  // What a loop would have used, had it been kept.
  for (auto &[key, buffer] : allocations)
    if (buffer.use_empty())
      buffer.getDefiningOp()->erase();
  func::ReturnOp::create(builder, UnknownLoc::get(context));
  if (program.manifest)
    poolBytes = program.manifest->poolBytes;
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
