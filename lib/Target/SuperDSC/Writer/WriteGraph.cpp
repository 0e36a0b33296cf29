// SPDX-License-Identifier: Apache-2.0
//===- WriteGraph.cpp - Planned spyre_graph as bundles ----------*- C++ -*-===//
//
// Gives operations addresses: arguments own segments, as many bundles as that
// takes, or are symbols.
//
// Longer than 600 lines: sizes, arguments, bundles and steps share a manifest.
//
//===----------------------------------------------------------------------===//

#include "OpDescription.h"

#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/IR/UsedSizes.h"
#include "Spyre/Target/SuperDSC/Model/BundleProgram.h"
#include "Spyre/Target/SuperDSC/Model/Geometry.h"
#include "Spyre/Target/SuperDSC/Model/SdscRules.h"
#include "Spyre/Target/SuperDSC/Writer/WriteGraph.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/ScopedPrinter.h"

#include <algorithm>
#include <set>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace spyre::superdsc;

namespace {

/// Executions that unrolled loops may become.
constexpr int64_t kMaxExecutions = 1 << 18;

class GraphWriter {
public:
  GraphWriter(func::FuncOp function, const WriteOptions &options)
      : function(function), options(options) {
    // Where cores begin depends on sizes.
    this->options.symbolicArguments |= hasSizeSymbols(function);
  }

  FailureOr<BundleProgram> run();

private:
  /// An operation, or a loop around some.
  struct Node {
    SpyreOpInterface op;
    OpDescription description;
    scf::ForOp loop;
    int64_t count = 0;
    /// Of a loop up to a size: its symbol, and how many elements of it an
    /// iteration is.
    SizeSymbolAttr size;
    int64_t tile = 1;
    std::vector<Node> body;
    /// The arguments that it, or an operation inside of it, accesses.
    std::set<int64_t> arguments;
  };
  /// A loop around an operation; the iteration, if it is unrolled.
  struct Iteration {
    scf::ForOp loop;
    std::optional<int64_t> number;
  };
  /// A bundle being written.
  struct BundleWriter {
    LoadedBundle loaded;
    ManifestBundle entry;
    bool isSymbolic = false;
    int64_t nextSymbol = -1;
    /// Sizes that are parameters, by their names.
    std::map<std::string, size_t> numberOf;
  };

  LogicalResult collect(Block &block, std::vector<Node> &nodes,
                        int64_t executions);
  LogicalResult describeSizes();
  LogicalResult describeSize(SizeSymbolAttr symbol, const std::string &place);
  LogicalResult describeArguments();
  int64_t bufferNumber(Value buffer);
  std::vector<std::vector<const Node *>> cutBundles();
  void writeBundle(ArrayRef<const Node *> nodes, const std::string &folder,
                   BundleProgram &program);
  void writeSteps(const Node &node, SmallVectorImpl<Iteration> &loops,
                  BundleWriter &writer, std::vector<Step> &steps);
  LogicalResult checkStrides(Node &node);
  static size_t getSizeNumber(BundleWriter &writer, const SizeParameter &size);
  void bindSizes(BundleWriter &writer, Sdsc &sdsc, Step &step);
  void setAddresses(const OpDescription &description, ArrayRef<Iteration> loops,
                    BundleWriter &writer, Sdsc &sdsc, ManifestFile &file,
                    Step &step);
  size_t getMaxArguments() const {
    return kNumSegments - 1 - (hasPool ? 1 : 0);
  }
  int64_t argumentNumber(Value buffer) const {
    auto argument = dyn_cast<BlockArgument>(buffer);
    return argument ? static_cast<int64_t>(argument.getArgNumber()) : -1;
  }

  func::FuncOp function;
  WriteOptions options;
  std::vector<Node> nodes;
  Manifest manifest;
  bool hasPool = false;
  int64_t numExecutions = 0;
  llvm::DenseMap<Value, int64_t> buffers;
  /// What is wrong with the first file that breaks a rule, and of which
  /// operation that is: the last one that was checked.
  Report report;
  SpyreOpInterface described;
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

/// `executions`: how often the block runs.
LogicalResult GraphWriter::collect(Block &block, std::vector<Node> &nodes,
                                   int64_t executions) {
  for (Operation &operation : block) {
    if (isa<memref::AllocOp, memref::DeallocOp, memref::SubViewOp,
            arith::ConstantOp, arith::MulIOp, func::ReturnOp, scf::YieldOp>(
            operation))
      continue;
    Node node;
    if (auto loop = dyn_cast<scf::ForOp>(operation)) {
      std::optional<int64_t> count = getTripCount(loop);
      if (!count || loop.getNumResults() != 0)
        return loop.emitOpError("SuperDSC cannot express a loop without "
                                "constant bounds or one that carries values");
      int64_t inner;
      if (llvm::MulOverflow(executions, *count, inner) ||
          inner > kMaxExecutions)
        return loop.emitOpError() << "SuperDSC cannot express more than "
                                  << kMaxExecutions << " iterations";
      node.loop = loop;
      node.count = *count;
      if (std::optional<LoopBound> bound = getLoopBound(loop)) {
        node.size = getSizeSymbols(loop)[bound->symbol];
        node.tile = *getConstantIntValue(loop.getStep()) * bound->divisor;
      }
      if (failed(collect(*loop.getBody(), node.body, inner)))
        return failure();
      for (const Node &own : node.body)
        node.arguments.insert(own.arguments.begin(), own.arguments.end());
      if (*count > 0 && !node.body.empty())
        nodes.push_back(std::move(node));
      continue;
    }
    node.op = dyn_cast<SpyreOpInterface>(operation);
    if (!node.op)
      return operation.emitOpError("SuperDSC cannot express this operation");
    if (writesNothing(node.op))
      continue;
    FailureOr<OpDescription> description = describeOp(node.op);
    if (failed(description))
      return failure();
    node.description = std::move(*description);
    if (failed(checkStrides(node)))
      return failure();
    for (Value buffer : node.description.buffers) {
      Type element = cast<MemRefType>(buffer.getType()).getElementType();
      if (!getHostDtype(element))
        return node.op->emitOpError() << "accesses a buffer of element type "
                                      << element << ", which no host type is";
      if (int64_t number = argumentNumber(buffer); number >= 0)
        node.arguments.insert(number);
    }
    if (options.unrollLoops)
      numExecutions += executions;
    if (numExecutions > kMaxExecutions)
      return node.op->emitOpError() << "unrolled loops make more than "
                                    << kMaxExecutions << " executions";
    nodes.push_back(std::move(node));
  }
  return success();
}

/// In a loop up to a size, addresses are multiples of its elements. So tiles
/// begin at whole bytes per element.
LogicalResult GraphWriter::checkStrides(Node &node) {
  for (auto loop = node.op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>()) {
    std::optional<LoopBound> bound = getLoopBound(loop);
    if (!bound)
      continue;
    SizeSymbolAttr size = getSizeSymbols(loop)[bound->symbol];
    if (node.op.getLoopExtentMap())
      return node.op->emitOpError()
             << "SuperDSC cannot express an extent that varies in a loop up to "
             << describe(size);
    int64_t elements = *getConstantIntValue(loop.getStep()) * bound->divisor;
    for (const TileStart &tile : node.description.tiles) {
      int64_t bytes = tile.getStep(loop) * ::spyre::kStickBytes;
      if (bytes % elements != 0)
        return node.op->emitOpError()
               << "SuperDSC cannot express a loop up to " << describe(size)
               << " that moves a tensor by " << bytes << " bytes per "
               << elements << " elements, which is no whole number per element";
    }
  }
  return success();
}

/// The sizes of an argument in a run, or what is used of it in a run. A bundle
/// does not tell them from each other: arguments have the room and strides of
/// the largest sizes.
static SmallVector<AffineExpr> getUsedSizes(func::FuncOp function,
                                            BlockArgument argument) {
  auto used = function.getArgAttrOfType<AffineMapAttr>(argument.getArgNumber(),
                                                       kUsedMapAttrName);
  return used ? llvm::to_vector(used.getValue().getResults())
              : getSizes(argument);
}

/// A dimension that a symbol is, and of which argument: "dimension 0 of
/// argument 1 ('x')".
static std::string describePlace(func::FuncOp function, unsigned number,
                                 unsigned dim) {
  std::string text = "dimension " + std::to_string(dim) + " of argument " +
                     std::to_string(number);
  if (auto name = function.getArgAttrOfType<StringAttr>(
          number, SpyreGraphDialect::getNameAttrName()))
    text += " ('" + name.getValue().str() + "')";
  return text;
}

/// Whether SuperDSC has what the function's symbols are: sizes that are all
/// multiples of a step up to the largest, each a dimension of an argument, from
/// which a launch takes it.
LogicalResult GraphWriter::describeSizes() {
  SmallVector<SizeSymbolAttr> symbols = getSizeSymbols(function);
  llvm::SmallBitVector isBound(symbols.size());
  for (BlockArgument argument : function.getArguments()) {
    unsigned number = argument.getArgNumber();
    for (auto [dim, size] : llvm::enumerate(getUsedSizes(function, argument))) {
      if (isa<AffineConstantExpr>(size))
        continue;
      auto symbol = dyn_cast<AffineSymbolExpr>(size);
      if (!symbol) {
        InFlightDiagnostic error =
            function.emitError()
            << "SuperDSC cannot express " << llvm::to_string(size)
            << ", the size of " << describePlace(function, number, dim)
            << ": a dimension is one symbol; symbols are";
        for (auto [position, own] : llvm::enumerate(symbols))
          error << (position ? ", '" : " '") << own.getName() << "' from "
                << own.getLeast() << " to " << own.getMost() << " (s"
                << position << ")";
        return error;
      }
      isBound.set(symbol.getPosition());
      if (failed(describeSize(symbols[symbol.getPosition()],
                              describePlace(function, number, dim))))
        return failure();
    }
  }
  for (auto [position, symbol] : llvm::enumerate(symbols)) {
    if (!isBound[position])
      return function.emitError()
             << "SuperDSC cannot express '" << symbol.getName() << "' from "
             << symbol.getLeast() << " to " << symbol.getMost()
             << ", which is the size of no argument";
    manifest.sizes.push_back(
        {symbol.getName().str(), symbol.getStep(), symbol.getMost()});
  }
  return success();
}

LogicalResult GraphWriter::describeSize(SizeSymbolAttr symbol,
                                        const std::string &place) {
  auto refuse = [&] {
    return function.emitError() << "SuperDSC cannot express "
                                << describe(symbol) << " in " << place << ": ";
  };
  if (symbol.getLeast() != symbol.getStep())
    return refuse() << "its sizes are the multiples of a step up to the "
                       "largest; begin at the step, or plan a program of each "
                       "size";
  if (!isSizeName(symbol.getName().str()))
    return refuse() << "names of sizes are letters, digits and '_', and do "
                       "not end in '_base'";
  return success();
}

LogicalResult GraphWriter::describeArguments() {
  for (BlockArgument argument : function.getArguments()) {
    FailureOr<HostArgument> host =
        getHostArgument(function, argument.getArgNumber());
    if (failed(host))
      return failure();
    int64_t bytes = host->layout.getSizeInBytes(host->type.getShape());
    if (bytes > kSegmentBytes)
      return function.emitError()
             << "argument " << argument.getArgNumber() << " has " << bytes
             << " bytes; SuperDSC has a segment of 16 GiB for each argument";
    ManifestTensor tensor;
    tensor.name = host->name;
    tensor.dtype = host->dtype;
    tensor.shape = host->type.getShape().vec();
    tensor.strides.assign(host->strides.begin(), host->strides.end());
    if (auto relative = dyn_cast<LayoutAttr>(host->layout)) {
      tensor.order = relative.getOrder().vec();
      tensor.sparse = relative.getSparse();
      for (auto [dim, size] : llvm::enumerate(getUsedSizes(function, argument)))
        if (auto symbol = dyn_cast<AffineSymbolExpr>(size))
          tensor.sizes[dim] = manifest.sizes[symbol.getPosition()].name;
    } else if (llvm::any_of(getUsedSizes(function, argument),
                            llvm::IsaPred<AffineSymbolExpr>)) {
      return function.emitError()
             << "SuperDSC cannot express argument " << argument.getArgNumber()
             << " ('" << host->name
             << "'), whose size varies, with an explicit layout";
    } else {
      SmallVector<int64_t> deviceSize =
          host->layout.getDeviceSize(tensor.shape);
      SmallVector<int64_t> strideMap =
          host->layout.getStrideMap(tensor.shape, tensor.strides);
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
    tensor.dtype = *getHostDtype(type.getElementType());
    tensor.shape = type.getShape().vec();
    auto layout = cast<LayoutAttr>(type.getMemorySpace());
    tensor.order = layout.getOrder().vec();
    tensor.sparse = layout.getSparse();
    tensor.packed = layout.getPacked();
    manifest.buffers.push_back(std::move(tensor));
  }
  return entry->second;
}

/// Bundles with as many arguments as there are segments. What accesses more has
/// one of its own, with symbolic arguments.
std::vector<std::vector<const GraphWriter::Node *>> GraphWriter::cutBundles() {
  std::vector<std::vector<const Node *>> bundles;
  size_t limit = getMaxArguments();
  std::set<int64_t> arguments;
  // Few arguments are one bundle, in which segment i is argument i.
  bool isOne = options.symbolicArguments || function.getNumArguments() <= limit;
  for (const Node &node : nodes) {
    std::set<int64_t> both = arguments;
    both.insert(node.arguments.begin(), node.arguments.end());
    if (bundles.empty() || (!isOne && both.size() > limit)) {
      bundles.emplace_back();
      both = node.arguments;
    }
    arguments = std::move(both);
    bundles.back().push_back(&node);
  }
  return bundles;
}

/// Adds a parameter for a size that has none yet.
size_t GraphWriter::getSizeNumber(BundleWriter &writer,
                                  const SizeParameter &size) {
  std::vector<SizeParameter> &sizes = writer.loaded.bundle.sizes;
  auto [number, isUnknown] =
      writer.numberOf.try_emplace(size.name, sizes.size());
  if (isUnknown)
    sizes.push_back(size);
  return number->second;
}

/// Binds the symbols of dimensions, whose ids come before those of addresses.
void GraphWriter::bindSizes(BundleWriter &writer, Sdsc &sdsc, Step &step) {
  std::map<std::string, int64_t> ids;
  for (Dim &dim : sdsc.dims) {
    if (!dim.symbol)
      continue;
    const std::string &name = dim.symbol->name;
    size_t number =
        getSizeNumber(writer, {name, dim.symbol->granularity, dim.size});
    auto [id, isNew] = ids.try_emplace(name, writer.nextSymbol);
    dim.symbol->id = id->second;
    if (!isNew)
      continue;
    --writer.nextSymbol;
    step.symbols.push_back(id->second);
    Address operand;
    operand.sizes.push_back({number, 1, 1});
    step.operands.push_back(std::move(operand));
  }
}

void GraphWriter::setAddresses(const OpDescription &description,
                               ArrayRef<Iteration> loops, BundleWriter &writer,
                               Sdsc &sdsc, ManifestFile &file, Step &step) {
  ArrayRef<int64_t> segments = writer.entry.arguments;
  bindSizes(writer, sdsc, step);
  // Equal addresses of one operation are one symbol.
  using Terms = std::vector<std::tuple<size_t, int64_t, int64_t>>;
  std::map<std::tuple<int64_t, int64_t, std::vector<int64_t>, Terms>, int64_t>
      symbols;
  for (auto [number, tensor] : llvm::enumerate(sdsc.tensors)) {
    Value buffer = description.buffers[number];
    int64_t base = description.offsets[number];
    std::vector<int64_t> strides;
    for (const Iteration &iteration : loops) {
      int64_t bytes = description.tiles[number].getStep(iteration.loop) *
                      ::spyre::kStickBytes;
      if (iteration.number)
        base += *iteration.number * bytes;
      else
        strides.push_back(bytes);
    }
    file.offsets.push_back(base);
    int64_t argument = argumentNumber(buffer);
    file.tensors.push_back(argument >= 0 ? argument
                                         : -1 - bufferNumber(buffer));
    PlacementAttr placement = getPlacement(buffer);
    if (placement)
      base += placement.getOffset();
    bool moves = llvm::any_of(strides, [](int64_t s) { return s != 0; });
    // A tensor that moves needs symbols even where arguments have segments.
    tensor.symbolic = !tensor.inLX && (writer.isSymbolic || moves);
    if (argument >= 0 && !writer.isSymbolic)
      base += (llvm::find(segments, argument) - segments.begin() +
               (hasPool ? 1 : 0)) *
              kSegmentBytes;
    std::optional<Geometry> geometry = getGeometry(sdsc, tensor);
    if (!geometry) // SDSC-TENSOR-C4
      continue;
    for (int64_t core = 0; core < sdsc.numCores(); ++core) {
      int64_t address = base;
      Terms terms;
      Address own;
      if (!tensor.inLX) {
        // Multiples of sizes are not larger than the tensor, which fits.
        own = *geometry->addressOf(sdsc, core, writer.numberOf);
        address += own.offset;
        for (const SizeTerm &term : own.sizes)
          terms.emplace_back(term.size, term.factor, term.divisor);
      }
      if (tensor.symbolic) {
        auto [entry, isNew] = symbols.try_emplace(
            {argument, address, strides, terms}, writer.nextSymbol);
        if (isNew) {
          --writer.nextSymbol;
          step.symbols.push_back(entry->second);
          Address operand;
          operand.sizes = own.sizes;
          if (writer.isSymbolic)
            operand.base = argument >= 0 ? Address::Argument : Address::Pool;
          operand.argument = writer.isSymbolic && argument > 0 ? argument : 0;
          operand.offset = address;
          operand.strides = strides;
          step.operands.push_back(operand);
        }
        address = entry->second;
      }
      tensor.addresses.push_back(address);
    }
  }
}

void GraphWriter::writeSteps(const Node &node,
                             SmallVectorImpl<Iteration> &loops,
                             BundleWriter &writer, std::vector<Step> &steps) {
  Step step;
  if (node.loop) {
    step.count = node.count;
    if (node.size) {
      step.size =
          getSizeNumber(writer, {node.size.getName().str(), node.size.getStep(),
                                 node.size.getMost()});
      step.tile = node.tile;
    }
    // How often a loop up to a size runs is not known.
    bool isUnrolled = options.unrollLoops && !node.size;
    int64_t repeats = isUnrolled ? node.count : 1;
    for (int64_t number = 0; number < repeats; ++number) {
      loops.push_back({node.loop, std::nullopt});
      if (isUnrolled)
        loops.back().number = number;
      for (const Node &inner : node.body)
        writeSteps(inner, loops, writer, isUnrolled ? steps : step.body);
      loops.pop_back();
    }
    if (!isUnrolled)
      steps.push_back(std::move(step));
    return;
  }
  Sdsc sdsc = node.description.sdsc;
  sdsc.index = writer.loaded.files.size();
  sdsc.flavor = options.flavor;
  step.file = "sdsc_" + std::to_string(sdsc.index) + ".json";
  ManifestFile file;
  file.file = step.file;
  file.extents = node.description.extents;
  setAddresses(node.description, loops, writer, sdsc, file, step);
  writer.entry.files.push_back(std::move(file));
  // Parameters stand in the order in which they are used.
  Bundle &bundle = writer.loaded.bundle;
  for (const Address &operand : step.operands) {
    if (operand.base == Address::Pool)
      bundle.hasPoolParameter = true;
    else if (operand.base == Address::Argument &&
             !llvm::is_contained(bundle.arguments, operand.argument))
      bundle.arguments.push_back(operand.argument);
  }
  // The rules for files that are read hold for those that are written.
  if (report.ok()) {
    validateSdsc(sdsc, step.file, report);
    described = node.op;
  }
  writer.loaded.files.emplace(step.file, std::move(sdsc));
  steps.push_back(std::move(step));
}

void GraphWriter::writeBundle(ArrayRef<const Node *> own,
                              const std::string &folder,
                              BundleProgram &program) {
  BundleWriter writer;
  writer.loaded.folder = folder;
  writer.entry.folder = folder;
  writer.entry.hasPool = hasPool;
  std::set<int64_t> arguments;
  for (const Node *node : own)
    arguments.insert(node->arguments.begin(), node->arguments.end());
  writer.isSymbolic =
      options.symbolicArguments || arguments.size() > getMaxArguments();
  // If there are segments for all arguments, segment i is argument i.
  if (folder == "." &&
      (writer.isSymbolic || function.getNumArguments() <= getMaxArguments()))
    for (unsigned number = 0; number < function.getNumArguments(); ++number)
      arguments.insert(number);
  writer.entry.arguments.assign(arguments.begin(), arguments.end());
  // Alone, a bundle's segments are the arguments in order.
  if (folder != ".") {
    writer.loaded.bundle.segments.emplace();
    if (!writer.isSymbolic)
      writer.loaded.bundle.segments = getSegments(writer.entry);
  }
  SmallVector<Iteration> loops;
  for (const Node *node : own)
    writeSteps(*node, loops, writer, writer.loaded.bundle.steps);
  manifest.bundles.push_back(std::move(writer.entry));
  program.bundles.push_back(std::move(writer.loaded));
}

FailureOr<BundleProgram> GraphWriter::run() {
  auto poolSize = function->getAttrOfType<IntegerAttr>(
      SpyreGraphDialect::getPoolSizeAttrName());
  manifest.poolBytes = poolSize ? poolSize.getInt() : 0;
  hasPool = manifest.poolBytes > 0;
  if (manifest.poolBytes > kSegmentBytes)
    return FailureOr<BundleProgram>(function.emitError(
        "SuperDSC cannot express a pool of more than 16 GiB"));
  if (!function.getBody().hasOneBlock() || function.getNumResults() != 0)
    return FailureOr<BundleProgram>(
        function.emitError("is not planned: expected one block and no results; "
                           "run --spyre-pipeline=to-ktir=false first"));
  if (failed(describeSizes()) || failed(describeArguments()) ||
      failed(collect(function.front(), nodes, /*executions=*/1)))
    return failure();
  std::vector<std::vector<const Node *>> bundles = cutBundles();
  BundleProgram program;
  if (bundles.size() <= 1) {
    writeBundle(bundles.empty() ? std::vector<const Node *>() : bundles.front(),
                ".", program);
  } else {
    for (auto [number, own] : llvm::enumerate(bundles))
      writeBundle(own, "bundle_" + std::to_string(number), program);
  }
  if (!report.ok())
    return FailureOr<BundleProgram>(
        described->emitOpError()
        << "cannot be expressed in SuperDSC; its file would break rules:\n"
        << report.toText());
  program.manifest = std::move(manifest);
  return program;
}

FailureOr<BundleProgram>
spyre::superdsc::writeGraph(ModuleOp module, const WriteOptions &options) {
  SmallVector<func::FuncOp> functions;
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (!function.isExternal())
      functions.push_back(function);
  if (functions.size() != 1) {
    Operation *at = functions.empty() ? module : functions[1].getOperation();
    return FailureOr<BundleProgram>(
        at->emitError("expected one function with a body, found ")
        << functions.size());
  }
  return GraphWriter(functions.front(), options).run();
}
