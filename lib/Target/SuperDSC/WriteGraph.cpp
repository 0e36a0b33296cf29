// SPDX-License-Identifier: Apache-2.0
//===- WriteGraph.cpp - Planned spyre_graph as bundles ----------*- C++ -*-===//
//
// Gives operations addresses: arguments own segments, as many bundles as that
// takes, or are symbols.
//
//===----------------------------------------------------------------------===//

#include "OpDescription.h"

#include "Spyre/Target/SuperDSC/Geometry.h"
#include "Spyre/Target/SuperDSC/SdscFile.h"
#include "Spyre/Target/SuperDSC/Translate.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/DenseMap.h"

#include <algorithm>
#include <set>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace spyre::superdsc;

/// The host type of an element, which the device's format does not tell.
static ::spyre::HostDtype getHostDtype(Type type) {
  using ::spyre::HostDtype;
  if (type.isF16())
    return HostDtype::Float16;
  if (type.isBF16())
    return HostDtype::BFloat16;
  if (type.isF32())
    return HostDtype::Float32;
  if (type.isInteger(1))
    return HostDtype::Bool;
  if (type.isUnsignedInteger(8))
    return HostDtype::UInt8;
  switch (type.getIntOrFloatBitWidth()) {
  case 8:
    return HostDtype::Int8;
  case 16:
    return HostDtype::Int16;
  case 32:
    return HostDtype::Int32;
  default:
    return HostDtype::Int64;
  }
}

namespace {

class GraphWriter {
public:
  GraphWriter(func::FuncOp function, const WriteOptions &options)
      : function(function), options(options) {}

  FailureOr<BundleProgram> run();

private:
  /// An operation with the arguments that it accesses.
  struct Item {
    SpyreOpInterface op;
    OpDescription description;
    std::set<int64_t> arguments;
  };

  LogicalResult collect();
  LogicalResult describeArguments();
  int64_t bufferNumber(Value buffer);
  FailureOr<std::vector<std::vector<Item *>>> cutBundles();
  void writeBundle(ArrayRef<Item *> items, const std::string &folder,
                   BundleProgram &program);
  void setAddresses(Item &item, ArrayRef<int64_t> segments, Step &step);
  int64_t argumentNumber(Value buffer) const {
    auto argument = dyn_cast<BlockArgument>(buffer);
    return argument ? static_cast<int64_t>(argument.getArgNumber()) : -1;
  }

  func::FuncOp function;
  WriteOptions options;
  std::vector<Item> items;
  Manifest manifest;
  bool hasPool = false;
  int64_t nextSymbol = -1;
  llvm::DenseMap<Value, int64_t> buffers;
};

} // namespace

/// An operation that has nothing to write is left out.
static bool writesNothing(SpyreOpInterface op) {
  if (llvm::is_contained(
          cast<ShapedType>(op.getSpyreInit().getType()).getShape(), 0))
    return true;
  for (auto [extent, kind] : llvm::zip(op.getLoopExtents(), op.getLoopKinds()))
    if (extent == 0 && (kind == utils::IteratorType::parallel ||
                        op.getCombiner() == Combiner::None))
      return true;
  return false;
}

LogicalResult GraphWriter::collect() {
  if (!function.getBody().hasOneBlock() || function.getNumResults() != 0)
    return function.emitError("must be planned: one block and no results");
  for (Operation &operation : function.front()) {
    auto op = dyn_cast<SpyreOpInterface>(operation);
    if (!op) {
      if (isa<memref::AllocOp, memref::DeallocOp, func::ReturnOp>(operation))
        continue;
      return operation.emitOpError("SuperDSC cannot say this operation");
    }
    if (writesNothing(op))
      continue;
    FailureOr<OpDescription> description = describeOp(op);
    if (failed(description))
      return failure();
    Item item{op, std::move(*description), {}};
    for (Value buffer : item.description.buffers)
      if (int64_t number = argumentNumber(buffer); number >= 0)
        item.arguments.insert(number);
    items.push_back(std::move(item));
  }
  return success();
}

LogicalResult GraphWriter::describeArguments() {
  for (BlockArgument argument : function.getArguments()) {
    unsigned number = argument.getArgNumber();
    auto type = dyn_cast<MemRefType>(argument.getType());
    LayoutAttrInterface layout = getLayout(argument.getType());
    if (!type || !layout)
      return function.emitError()
             << "argument " << number
             << " must be a memref whose memory space is a layout, but is "
             << argument.getType();
    ManifestTensor tensor;
    auto name = function.getArgAttrOfType<StringAttr>(
        number, SpyreGraphDialect::getNameAttrName());
    tensor.name = name ? name.str() : "arg" + std::to_string(number);
    tensor.dtype = getHostDtype(type.getElementType());
    tensor.shape = type.getShape().vec();
    if (auto strides = function.getArgAttrOfType<DenseI64ArrayAttr>(
            number, SpyreGraphDialect::getHostStridesAttrName())) {
      tensor.strides = strides.asArrayRef().vec();
    } else {
      tensor.strides.assign(type.getRank(), 1);
      for (int64_t dim = type.getRank() - 1; dim > 0; --dim)
        tensor.strides[dim - 1] =
            tensor.strides[dim] * std::max<int64_t>(type.getDimSize(dim), 1);
    }
    if (auto relative = dyn_cast<LayoutAttr>(layout)) {
      tensor.order = relative.getOrder().vec();
      tensor.sparse = relative.getSparse();
    } else {
      SmallVector<int64_t> deviceSize = layout.getDeviceSize(tensor.shape);
      SmallVector<int64_t> strideMap =
          layout.getStrideMap(tensor.shape, tensor.strides);
      tensor.deviceSize.assign(deviceSize.begin(), deviceSize.end());
      tensor.strideMap.assign(strideMap.begin(), strideMap.end());
    }
    manifest.arguments.push_back(std::move(tensor));
  }
  return success();
}

int64_t GraphWriter::bufferNumber(Value buffer) {
  auto [entry, isNew] = buffers.try_emplace(buffer, buffers.size());
  if (isNew) {
    auto type = cast<MemRefType>(buffer.getType());
    ManifestTensor tensor;
    tensor.dtype = getHostDtype(type.getElementType());
    tensor.shape = type.getShape().vec();
    auto layout = cast<LayoutAttr>(type.getMemorySpace());
    tensor.order = layout.getOrder().vec();
    tensor.sparse = layout.getSparse();
    manifest.buffers.push_back(std::move(tensor));
  }
  return entry->second;
}

FailureOr<std::vector<std::vector<GraphWriter::Item *>>>
GraphWriter::cutBundles() {
  std::vector<std::vector<Item *>> bundles;
  size_t limit = kNumSegments - 1 - (hasPool ? 1 : 0);
  std::set<int64_t> arguments;
  // Few arguments are one bundle, in which segment i is argument i.
  bool isOne = options.symbolicArguments || function.getNumArguments() <= limit;
  for (Item &item : items) {
    if (!isOne && item.arguments.size() > limit) {
      item.op->emitOpError()
          << "SuperDSC cannot say " << item.arguments.size()
          << " arguments in one bundle without symbolic arguments, at most "
          << limit;
      return failure();
    }
    std::set<int64_t> both = arguments;
    both.insert(item.arguments.begin(), item.arguments.end());
    if (bundles.empty() || (!isOne && both.size() > limit)) {
      bundles.emplace_back();
      both = item.arguments;
    }
    arguments = std::move(both);
    bundles.back().push_back(&item);
  }
  return bundles;
}

void GraphWriter::setAddresses(Item &item, ArrayRef<int64_t> segments,
                               Step &step) {
  Sdsc &sdsc = item.description.sdsc;
  // Equal addresses of one operation are one symbol.
  std::map<std::pair<int64_t, int64_t>, int64_t> symbols;
  for (auto [number, tensor] : llvm::enumerate(sdsc.tensors)) {
    Value buffer = item.description.buffers[number];
    int64_t base = item.description.offsets[number];
    int64_t argument = argumentNumber(buffer);
    PlacementAttr placement = getPlacement(buffer);
    if (placement)
      base += placement.getOffset();
    bool isSymbolic = options.symbolicArguments && !tensor.inLX;
    tensor.symbolic = isSymbolic;
    if (argument >= 0 && !isSymbolic)
      base += (llvm::find(segments, argument) - segments.begin() +
               (hasPool ? 1 : 0)) *
              kSegmentBytes;
    Geometry geometry = *getGeometry(sdsc, tensor);
    for (int64_t core = 0; core < sdsc.numCores(); ++core) {
      int64_t address = base;
      if (!tensor.inLX)
        address += geometry.offsetOf(sdsc, core) * ::spyre::kStickBytes;
      if (isSymbolic) {
        auto [entry, isNew] =
            symbols.try_emplace({argument, address}, nextSymbol);
        if (isNew) {
          --nextSymbol;
          step.symbols.push_back(entry->second);
          Address operand;
          operand.base = argument >= 0 ? Address::Argument : Address::Pool;
          operand.argument = std::max<int64_t>(argument, 0);
          operand.offset = address;
          step.operands.push_back(operand);
        }
        address = entry->second;
      }
      tensor.addresses.push_back(address);
    }
  }
}

void GraphWriter::writeBundle(ArrayRef<Item *> own, const std::string &folder,
                              BundleProgram &program) {
  LoadedBundle loaded;
  loaded.folder = folder;
  ManifestBundle entry;
  entry.folder = folder;
  entry.hasPool = hasPool;
  std::set<int64_t> arguments;
  for (Item *item : own)
    arguments.insert(item->arguments.begin(), item->arguments.end());
  bool isWhole = folder == ".";
  if (isWhole)
    for (unsigned number = 0; number < function.getNumArguments(); ++number)
      arguments.insert(number);
  entry.arguments.assign(arguments.begin(), arguments.end());
  nextSymbol = -1;
  for (auto [index, item] : llvm::enumerate(own)) {
    Sdsc &sdsc = item->description.sdsc;
    sdsc.index = index;
    sdsc.flavor = options.flavor;
    Step step;
    step.file = "sdsc_" + std::to_string(index) + ".json";
    setAddresses(*item, entry.arguments, step);
    ManifestFile file;
    file.file = step.file;
    file.extents = item->description.extents;
    file.offsets = item->description.offsets;
    for (Value buffer : item->description.buffers) {
      int64_t argument = argumentNumber(buffer);
      file.tensors.push_back(argument >= 0 ? argument
                                           : -1 - bufferNumber(buffer));
    }
    entry.files.push_back(std::move(file));
    // Parameters stand in the order in which they are used.
    for (const Address &operand : step.operands) {
      if (operand.base == Address::Pool)
        loaded.bundle.hasPoolParameter = true;
      else if (!llvm::is_contained(loaded.bundle.arguments, operand.argument))
        loaded.bundle.arguments.push_back(operand.argument);
    }
    loaded.bundle.steps.push_back(std::move(step));
    loaded.files.emplace(entry.files.back().file, std::move(sdsc));
  }
  manifest.bundles.push_back(std::move(entry));
  program.bundles.push_back(std::move(loaded));
}

FailureOr<BundleProgram> GraphWriter::run() {
  auto poolSize = function->getAttrOfType<IntegerAttr>(
      SpyreGraphDialect::getPoolSizeAttrName());
  manifest.poolBytes = poolSize ? poolSize.getInt() : 0;
  hasPool = manifest.poolBytes > 0;
  if (manifest.poolBytes > kSegmentBytes)
    return FailureOr<BundleProgram>(
        function.emitError("SuperDSC cannot say a pool of more than 16 GiB"));
  if (failed(describeArguments()) || failed(collect()))
    return failure();
  auto bundles = cutBundles();
  if (failed(bundles))
    return failure();
  BundleProgram program;
  if (bundles->size() <= 1) {
    writeBundle(bundles->empty() ? std::vector<Item *>() : bundles->front(),
                ".", program);
  } else {
    for (auto [number, own] : llvm::enumerate(*bundles))
      writeBundle(own, "bundle_" + std::to_string(number), program);
  }
  program.manifest = std::move(manifest);
  return program;
}

FailureOr<BundleProgram>
spyre::superdsc::writeGraph(ModuleOp module, const WriteOptions &options) {
  SmallVector<func::FuncOp> functions;
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (!function.isExternal())
      functions.push_back(function);
  if (functions.size() != 1)
    return FailureOr<BundleProgram>(module.emitError()
                                    << "expected one function, found "
                                    << functions.size());
  FailureOr<BundleProgram> program =
      GraphWriter(functions.front(), options).run();
  if (failed(program))
    return failure();
  // What is written is held to the rules for what is read.
  Report report;
  for (const LoadedBundle &bundle : program->bundles)
    for (const auto &[name, sdsc] : bundle.files)
      validateSdsc(sdsc, name, report);
  if (!report.ok())
    return FailureOr<BundleProgram>(
        functions.front().emitError()
        << "SuperDSC cannot say this plan; the bundle would break rules:\n"
        << report.toText());
  return program;
}
