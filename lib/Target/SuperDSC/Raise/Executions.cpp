// SPDX-License-Identifier: Apache-2.0
//===- Executions.cpp - What a program executes, and where ------*- C++ -*-===//

#include "Executions.h"
#include "../Mapping/OpNames.h"

#include "Spyre/Target/SuperDSC/Model/BundleProgram.h"
#include "Spyre/Target/SuperDSC/Model/Geometry.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace spyre::superdsc;

/// Executions that loops may unroll to.
static constexpr int64_t kMaxExecutions = 1 << 18;

Location ExecutionNode::getLoopLocation(MLIRContext *context) const {
  return FileLineColLoc::get(context, getPrefix(bundle->folder) + kBundleFile,
                             step->line, 1);
}

std::string spyre::superdsc::describe(const SizeParameter &size) {
  return "'" + size.name + "', a multiple of " +
         std::to_string(size.granularity) + " up to " +
         std::to_string(size.maximum);
}

/// Whether some tensor's stick lies along a dimension.
static bool isStick(const Sdsc &sdsc, unsigned dim) {
  return llvm::any_of(sdsc.labels, [&](const Label &label) {
    return llvm::any_of(label.sticks,
                        [&](StickDim stick) { return stick.dim == dim; });
  });
}

SmallVector<int64_t> ExecutionCollector::getExtents(const Sdsc &sdsc,
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
            !position.isGathered && (!tensor.inLX || own.slices == 1))
          extent = std::min(extent, position.extent);
    }
    if (said)
      if (auto found = said->extents.find(own.name);
          found != said->extents.end())
        extent = found->second;
    // Its lanes are a loop of their own.
    if (sdsc.op == "layernormscale" && isStick(sdsc, dim))
      extent = 1;
    extents.push_back(extent);
  }
  return extents;
}

FailureOr<Place>
ExecutionCollector::findPlace(ArrayRef<int64_t> segments,
                              const std::map<std::string, size_t> &sizeNumbers,
                              const Step &step, const Sdsc &sdsc,
                              unsigned number, ArrayRef<Iteration> loops,
                              Location loc) {
  const Tensor &tensor = sdsc.tensors[number];
  Place place;
  // An address that is a number stays where it is in every iteration.
  place.strides.assign(
      llvm::count_if(loops, [](Iteration loop) { return loop.isKept; }), 0);
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
    if (!first->sizes.empty())
      return fail("starts at a place that depends on a size");
    Address expected = *first;
    std::optional<Address> slice = geometry.addressOf(sdsc, core, sizeNumbers);
    if (!slice)
      return fail("leaves the address space");
    expected.offset += slice->offset;
    expected.sizes = std::move(slice->sizes);
    if (!(*own == expected))
      return fail("does not start on core " + Twine(core) +
                  " on which its slice starts");
  }
  int64_t offset = first->offset;
  if (offset < 0 || offset % ::spyre::kStickBytes != 0)
    return fail("starts at " + Twine(offset) +
                ", which is not a multiple of 128");
  place.offset = offset;
  llvm::copy(first->strides, place.strides.begin());
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
  if (segment >= static_cast<int64_t>(segments.size()))
    return fail("lies in segment " + Twine(segment) + " of " +
                Twine(segments.size()));
  place.argument = segments[segment];
  if (place.argument == kPoolSegment)
    place.kind = Place::Pool;
  return place;
}

std::vector<int64_t>
ExecutionCollector::getSegments(const LoadedBundle &bundle,
                                const ManifestBundle *said) const {
  if (said)
    return superdsc::getSegments(*said);
  if (bundle.bundle.segments)
    return *bundle.bundle.segments;
  bool hasPool = options.hasPool || bundle.bundle.hasPoolParameter;
  int64_t first = hasPool ? kPoolSegment : 0;
  auto numbers = llvm::seq(first, first + kNumSegments);
  return {numbers.begin(), numbers.end()};
}

const std::map<std::string, const ManifestFile *> &
ExecutionCollector::getFiles(const ManifestBundle &said) {
  auto [entry, isNew] = files.try_emplace(&said);
  if (isNew)
    for (const ManifestFile &file : said.files)
      entry->second[file.file] = &file;
  return entry->second;
}

FailureOr<Execution>
ExecutionCollector::getExecution(const LoadedBundle &bundle,
                                 const ManifestBundle *said, const Step &step,
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
  if (!isExecuted(sdsc.op)) {
    emitError(execution.loc)
        << "the device operation '" << sdsc.opFunc()
        << "' is known, but the toolchain cannot execute it";
    return failure();
  }
  std::vector<int64_t> segments = getSegments(bundle, said);
  std::map<std::string, size_t> sizeNumbers;
  for (auto [number, size] : llvm::enumerate(bundle.bundle.sizes))
    sizeNumbers.emplace(size.name, number);
  for (unsigned number = 0; number < sdsc.tensors.size(); ++number) {
    auto place = findPlace(segments, sizeNumbers, step, sdsc, number, loops,
                           execution.loc);
    if (failed(place))
      return failure();
    execution.places.push_back(*place);
  }
  execution.extents = getExtents(sdsc, execution.said);
  return execution;
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

/// `loops`: those around the steps. Loops in the steps are kept if those around
/// are.
LogicalResult ExecutionCollector::collectSteps(
    const LoadedBundle &bundle, const ManifestBundle *said,
    ArrayRef<Step> steps, SmallVectorImpl<Iteration> &loops,
    std::vector<ExecutionNode> &nodes) {
  for (const Step &step : steps) {
    if (!step.isLoop()) {
      FailureOr<Execution> execution = getExecution(bundle, said, step, loops);
      if (failed(execution))
        return failure();
      nodes.emplace_back();
      nodes.back().execution = std::move(*execution);
      continue;
    }
    // Iterations of nothing are not limited by the number of executions.
    if (step.count < 1 || countExecutions(step.body) == 0)
      continue;
    bool isKept = llvm::all_of(loops, [](Iteration own) { return own.isKept; });
    ExecutionNode node;
    node.count = step.count;
    node.bundle = &bundle;
    node.said = said;
    node.step = &step;
    if (const SizeParameter *size = node.getSize(); size && !isKept)
      return emitError(node.getLoopLocation(context))
             << "the loop up to " << describe(*size)
             << ", stands in one that does not move tiles, which the toolchain "
                "cannot execute";
    std::vector<ExecutionNode> &body = isKept ? node.body : nodes;
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

FailureOr<std::vector<ExecutionNode>> ExecutionCollector::collect() {
  const Manifest *manifest = program.manifest ? &*program.manifest : nullptr;
  if (!manifest && program.bundles.size() > 1)
    for (const LoadedBundle &bundle : program.bundles)
      if (!bundle.bundle.segments) {
        auto file = bundle.folder + "/" + kBundleFile;
        return FailureOr<std::vector<ExecutionNode>>(
            emitError(FileLineColLoc::get(context, file, 1, 1))
            << "several bundles share arguments in a way that a manifest.json "
               "or each function's "
            << kSegmentsAttribute << " says, and the folder has neither");
      }
  std::vector<ExecutionNode> nodes;
  int64_t numExecutions = 0;
  for (auto [number, bundle] : llvm::enumerate(program.bundles)) {
    const ManifestBundle *said =
        manifest ? &manifest->bundles[number] : nullptr;
    numExecutions += countExecutions(bundle.bundle.steps);
    if (numExecutions > kMaxExecutions)
      return FailureOr<std::vector<ExecutionNode>>(
          emitError(UnknownLoc::get(context))
          << "the loops of bundle.mlir make more than " << kMaxExecutions
          << " executions");
    SmallVector<Iteration> loops;
    if (failed(collectSteps(bundle, said, bundle.bundle.steps, loops, nodes)))
      return failure();
  }
  return nodes;
}

FailureOr<std::vector<ExecutionNode>>
ExecutionCollector::unroll(const ExecutionNode &loop) {
  std::vector<ExecutionNode> iterations;
  SmallVector<Iteration> own(1);
  for (; own[0].number < loop.count; ++own[0].number)
    if (failed(collectSteps(*loop.bundle, loop.said, loop.step->body, own,
                            iterations)))
      return failure();
  return iterations;
}
