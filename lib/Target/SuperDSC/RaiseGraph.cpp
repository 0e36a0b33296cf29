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

#include "Spyre/Target/SuperDSC/BundleFile.h"
#include "Spyre/Target/SuperDSC/DeviceOps.h"
#include "Spyre/Target/SuperDSC/Translate.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
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
  /// Bytes before the first stick that core 0 accesses.
  int64_t offset = 0;
};

/// One execution of a file: loops are unrolled.
struct Execution {
  const Sdsc *sdsc = nullptr;
  const ManifestFile *said = nullptr;
  std::vector<Place> places;
  /// Iterations of each dimension that are not padding.
  SmallVector<int64_t> extents;
  Location loc;
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
                             SmallVectorImpl<int64_t> &counters);
  LogicalResult addExecution(const LoadedBundle &bundle,
                             const ManifestBundle *said, const Step &step,
                             ArrayRef<int64_t> counters);
  FailureOr<Place> findPlace(const ManifestBundle *said, const Step &step,
                             const Sdsc &sdsc, unsigned tensor,
                             ArrayRef<int64_t> counters, Location loc);
  SmallVector<int64_t> getExtents(const Sdsc &sdsc, const ManifestFile *said);
  LogicalResult makeArguments();
  FailureOr<Value> getBuffer(const Execution &execution, unsigned tensor);
  LogicalResult raise(const Execution &execution);

  const BundleProgram &program;
  RaiseOptions options;
  MLIRContext *context;
  OpBuilder builder;
  bool hasPool = false;
  int64_t poolBytes = 0;
  std::vector<Execution> executions;
  func::FuncOp function;
  /// Number of each argument's parameter.
  std::map<int64_t, unsigned> parameters;
  /// Allocations by kind, offset and type, and by the manifest's number.
  std::map<std::tuple<int, int64_t, const void *>, Value> allocations;
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
                                   ArrayRef<int64_t> counters, Location loc) {
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
  auto addressOf = [&](int64_t core) -> std::optional<Address> {
    Address address;
    address.offset = tensor.addresses[core];
    if (!tensor.symbolic)
      return address;
    auto symbol = llvm::find(step.symbols, address.offset);
    if (symbol == step.symbols.end())
      return std::nullopt;
    address = step.operands[symbol - step.symbols.begin()];
    for (auto [stride, counter] : llvm::zip(address.strides, counters)) {
      int64_t product;
      if (llvm::MulOverflow(stride, counter, product) ||
          llvm::AddOverflow(address.offset, product, address.offset))
        return std::nullopt;
    }
    address.strides.clear();
    return address;
  };
  std::optional<Address> first = addressOf(0);
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

LogicalResult Raiser::addExecution(const LoadedBundle &bundle,
                                   const ManifestBundle *said, const Step &step,
                                   ArrayRef<int64_t> counters) {
  if (executions.size() >= kMaxExecutions)
    return emitError(UnknownLoc::get(context))
           << "the loops of bundle.mlir make more than " << kMaxExecutions
           << " executions";
  std::string name =
      (bundle.folder == "." ? "" : bundle.folder + "/") + step.file;
  Execution execution{&bundle.files.at(step.file),
                      nullptr,
                      {},
                      {},
                      FileLineColLoc::get(context, name, 1, 1)};
  if (said)
    for (const ManifestFile &file : said->files)
      if (file.file == step.file)
        execution.said = &file;
  const Sdsc &sdsc = *execution.sdsc;
  for (unsigned number = 0; number < sdsc.tensors.size(); ++number) {
    auto place = findPlace(said, step, sdsc, number, counters, execution.loc);
    if (failed(place))
      return failure();
    execution.places.push_back(*place);
  }
  execution.extents = getExtents(sdsc, execution.said);
  executions.push_back(std::move(execution));
  return success();
}

LogicalResult Raiser::collectSteps(const LoadedBundle &bundle,
                                   const ManifestBundle *said,
                                   ArrayRef<Step> steps,
                                   SmallVectorImpl<int64_t> &counters) {
  for (const Step &step : steps) {
    if (!step.isLoop()) {
      if (failed(addExecution(bundle, said, step, counters)))
        return failure();
      continue;
    }
    if (step.body.empty())
      continue;
    counters.push_back(0);
    for (int64_t &counter = counters.back(); counter < step.count; ++counter) {
      int64_t before = executions.size();
      if (failed(collectSteps(bundle, said, step.body, counters)))
        return failure();
      if (static_cast<int64_t>(executions.size()) == before)
        break;
    }
    counters.pop_back();
  }
  return success();
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
    SmallVector<int64_t> counters;
    if (failed(collectSteps(bundle, said, bundle.bundle.steps, counters)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Arguments and buffers
//===----------------------------------------------------------------------===//

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
    for (const Execution &execution : executions)
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
    offset -= execution.said->offsets[number];
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

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult Raiser::raise(const Execution &execution) {
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
    int64_t start = 0;
    if (auto alloc = buffer->getDefiningOp())
      start = alloc
                  ->getAttrOfType<PlacementAttr>(
                      SpyreGraphDialect::getPlacementAttrName())
                  .getOffset();
    FailureOr<AccessMap> access =
        getAccessMap(sdsc, number, execution.places[number].offset - start,
                     *buffer, execution.extents, loopOf, loc);
    if (failed(access))
      return failure();
    if (access->axis)
      axis = access->axis;
    values.push_back(*buffer);
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
  for (const Execution &execution : executions)
    if (failed(raise(execution)))
      return nullptr;
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
  context->loadDialect<func::FuncDialect, memref::MemRefDialect,
                       SpyreGraphDialect>();
  return Raiser(program, options, context).run();
}
