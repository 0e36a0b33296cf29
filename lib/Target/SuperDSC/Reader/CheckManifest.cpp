// SPDX-License-Identifier: Apache-2.0
//===- CheckManifest.cpp - Whether a manifest fits its bundles --*- C++ -*-===//

#include "CheckManifest.h"
#include "Spyre/Target/SuperDSC/Model/Geometry.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>
#include <set>

using namespace spyre::superdsc;

namespace {

/// Where a tensor starts on the first core, in the first iteration of all
/// loops.
struct Start {
  enum Kind { Argument, Pool, LX } kind = Argument;
  int64_t argument = 0;
  /// Bytes.
  int64_t offset = 0;

  /// "byte 128 of argument 0".
  std::string describe() const {
    std::string text = "byte " + std::to_string(offset) + " of ";
    if (kind == Argument)
      return text + "argument " + std::to_string(argument);
    return text + (kind == LX ? "LX" : "the pool");
  }
};

class ManifestChecker {
public:
  explicit ManifestChecker(Report &report) : report(report) {}

  void checkBundle(const LoadedBundle &bundle, const ManifestBundle &said,
                   const std::string &path);

private:
  /// A bundle, what the manifest says of it, and where.
  struct Place {
    const LoadedBundle &bundle;
    const ManifestBundle &said;
    std::string path;
    std::vector<int64_t> segments;
    /// Numbers of the files' entries.
    std::map<std::string, size_t> entries;
  };

  // SDSC-MANIFEST-C2
  void violate(const std::string &path, std::string message) {
    report.add(kManifestFile, path, "SDSC-MANIFEST-C2", std::move(message));
  }

  void checkExtent(const Sdsc &sdsc, const std::string &file,
                   const std::string &name, int64_t extent,
                   const std::string &path);

  void checkSteps(const Place &place, const std::vector<Step> &steps);
  void checkStart(const Place &place, size_t entry, size_t number,
                  const Start &start);

  Report &report;
  /// Of each buffer, the start, and the entry that it is due to.
  std::map<int64_t, std::pair<Start, std::string>> buffers;
  /// Files without an entry that are known.
  std::set<std::string> missing;
};

} // namespace

static std::string quote(const std::string &name) {
  return "'" + name.substr(0, 80) + "'";
}

/// An extent says which of the iterations only fill the last stick. The file
/// says how many iterations there are, and a mask, how many of them count.
void ManifestChecker::checkExtent(const Sdsc &sdsc, const std::string &file,
                                  const std::string &name, int64_t extent,
                                  const std::string &path) {
  std::optional<unsigned> dim = findDim(sdsc, name);
  if (!dim)
    return violate(path, "is not a dimension of " + quote(file));
  const Dim &own = sdsc.dims[*dim];
  std::string found = "is " + std::to_string(extent) + ", but ";
  std::string iterations = "the " + std::to_string(own.size) +
                           " iterations of " + quote(name) + " in " +
                           quote(file);
  if (own.masked != 0) {
    if (extent != own.size - own.masked)
      violate(path, found + std::to_string(own.size - own.masked) + " of " +
                        iterations + " are not masked");
    return;
  }
  int64_t granularity = 1;
  for (size_t number = 0; number < sdsc.tensors.size(); ++number) {
    const Tensor &tensor = sdsc.tensors[number];
    std::optional<Geometry> geometry = getGeometry(sdsc, tensor);
    if (!geometry) // SDSC-TENSOR-C4
      return;
    for (const TensorDim &position : geometry->dims) {
      if (position.dim != *dim || position.scale != Scale::Present ||
          position.isGathered)
        continue;
      granularity = std::lcm(granularity, position.stick);
      if ((!tensor.inLX || own.slices == 1) && extent > position.extent)
        return violate(path, found + "Tensor" + std::to_string(number) +
                                 " of " + quote(file) + " has only " +
                                 std::to_string(position.extent) +
                                 " elements along " + quote(name));
    }
  }
  if (granularity == 1 || extent >= own.size)
    violate(path, found + iterations + " have no padding");
  else if (llvm::alignTo(extent, granularity) != uint64_t(own.size))
    violate(path, found + iterations + " are not what sticks of " +
                      std::to_string(granularity) + " pad it to");
}

/// Nothing if no rule says where, so that another one is broken.
static std::optional<Start> findStart(const Step &step, const Tensor &tensor,
                                      const std::vector<int64_t> &segments) {
  if (tensor.addresses.empty())
    return std::nullopt;
  Address address;
  address.offset = tensor.addresses[0];
  if (tensor.inLX)
    return Start{Start::LX, 0, address.offset};
  if (tensor.symbolic) {
    auto symbol =
        std::find(step.symbols.begin(), step.symbols.end(), address.offset);
    size_t position = symbol - step.symbols.begin();
    if (position >= step.operands.size()) // SDSC-BUNDLE-C3
      return std::nullopt;
    address = step.operands[position];
  }
  if (address.base == Address::Argument)
    return Start{Start::Argument, address.argument, address.offset};
  if (address.base == Address::Pool)
    return Start{Start::Pool, 0, address.offset};
  int64_t segment = address.offset / kSegmentBytes;
  if (address.offset < 0 || segment >= static_cast<int64_t>(segments.size()))
    return std::nullopt;
  bool isPool = segments[segment] == kPoolSegment;
  return Start{isPool ? Start::Pool : Start::Argument,
               isPool ? 0 : segments[segment], address.offset % kSegmentBytes};
}

/// Addresses say where tensors are. What the manifest says beside them must
/// not be something else.
void ManifestChecker::checkStart(const Place &place, size_t entry,
                                 size_t number, const Start &start) {
  const ManifestFile &file = place.said.files[entry];
  std::string path = appendPath(place.path + "/files", entry);
  int64_t said = file.tensors[number], offset = file.offsets[number];
  std::string tensor = "Tensor" + std::to_string(number) + " of " +
                       quote(file.file) + " starts at " + start.describe();
  std::string tensorPath = appendPath(path + "/tensors", number);
  std::string offsetPath = appendPath(path + "/offsets", number);
  bool isArgument = start.kind == Start::Argument;
  if (isArgument != (said >= 0) || (isArgument && said != start.argument))
    return violate(tensorPath,
                   "is " +
                       (said >= 0 ? "argument " + std::to_string(said)
                                  : "buffer " + std::to_string(-1 - said)) +
                       ", but " + tensor);
  if (isArgument ? offset != start.offset : offset > start.offset)
    return violate(offsetPath,
                   "is " + std::to_string(offset) + ", but " + tensor);
  if (isArgument)
    return;
  Start first = start;
  first.offset -= offset;
  auto [known, isNew] = buffers.try_emplace(said, first, offsetPath);
  if (!isNew && known->second.first.describe() != first.describe())
    violate(offsetPath, "lets buffer " + std::to_string(-1 - said) +
                            " start at " + first.describe() + ", but " +
                            known->second.second + " at " +
                            known->second.first.describe());
}

void ManifestChecker::checkSteps(const Place &place,
                                 const std::vector<Step> &steps) {
  for (const Step &step : steps) {
    if (report.isFull())
      return;
    if (step.isLoop()) {
      checkSteps(place, step.body);
      continue;
    }
    auto file = place.bundle.files.find(step.file);
    if (file == place.bundle.files.end()) // SDSC-BUNDLE-C2
      continue;
    auto entry = place.entries.find(step.file);
    if (entry == place.entries.end()) {
      if (missing.insert(getPrefix(place.bundle.folder) + step.file).second)
        violate(place.path + "/files",
                quote(step.file) +
                    ", which bundle.mlir executes, has no entry");
      continue;
    }
    const std::vector<Tensor> &tensors = file->second.tensors;
    const ManifestFile &said = place.said.files[entry->second];
    size_t count = std::min(tensors.size(), said.tensors.size());
    for (size_t number = 0; number < count; ++number)
      if (std::optional<Start> start =
              findStart(step, tensors[number], place.segments))
        checkStart(place, entry->second, number, *start);
  }
}

void ManifestChecker::checkBundle(const LoadedBundle &bundle,
                                  const ManifestBundle &said,
                                  const std::string &path) {
  // SDSC-BUNDLE-C6
  const auto &segments = bundle.bundle.segments;
  if (segments && !segments->empty() && *segments != getSegments(said))
    report.add(getPrefix(bundle.folder) + kBundleFile, "", "SDSC-BUNDLE-C6",
               "the segments are not the arguments at " + path +
                   "/arguments of " + kManifestFile);
  for (int64_t argument : bundle.bundle.arguments)
    if (!llvm::is_contained(said.arguments, argument))
      violate(path + "/arguments", "lacks argument " +
                                       std::to_string(argument) +
                                       ", a parameter of bundle.mlir");
  if (bundle.bundle.hasPoolParameter && !said.hasPool)
    violate(path + "/pool",
            "is false, but the pool is a parameter of bundle.mlir");
  Place place{bundle, said, path, getSegments(said), {}};
  for (size_t i = 0; i < said.files.size(); ++i) {
    const ManifestFile &file = said.files[i];
    std::string own = appendPath(path + "/files", i);
    place.entries[file.file] = i;
    auto found = bundle.files.find(file.file);
    if (found == bundle.files.end()) {
      violate(own + "/file", quote(file.file) + " is not a file of the bundle");
      continue;
    }
    const Sdsc &sdsc = found->second;
    if (file.tensors.size() != sdsc.tensors.size())
      violate(own + "/tensors", "expected " +
                                    std::to_string(sdsc.tensors.size()) +
                                    " entries, one per tensor");
    for (const auto &[name, extent] : file.extents)
      checkExtent(sdsc, file.file, name, extent,
                  appendPath(own + "/extents", name));
  }
  checkSteps(place, bundle.bundle.steps);
}

void spyre::superdsc::checkManifest(const BundleProgram &program,
                                    Report &report) {
  ManifestChecker checker(report);
  for (size_t i = 0; i < program.bundles.size() && !report.isFull(); ++i)
    checker.checkBundle(program.bundles[i], program.manifest->bundles[i],
                        appendPath("/bundles", i));
}
