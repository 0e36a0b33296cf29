// SPDX-License-Identifier: Apache-2.0
//===- CheckManifest.cpp - Whether a manifest fits its bundles --*- C++ -*-===//

#include "CheckManifest.h"
#include "Spyre/Target/SuperDSC/Model/Geometry.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace spyre::superdsc;

namespace {

class ManifestChecker {
public:
  ManifestChecker(const BundleProgram &program, Report &report)
      : manifest(*program.manifest), report(report) {}

  void checkBundle(const LoadedBundle &bundle, const ManifestBundle &said,
                   const std::string &path);

private:
  // SDSC-MANIFEST-C2
  void violate(const std::string &path, std::string message) {
    report.add(kManifestFile, path, "SDSC-MANIFEST-C2", std::move(message));
  }

  void checkExtent(const Sdsc &sdsc, const std::string &file,
                   const std::string &name, int64_t extent,
                   const std::string &path);

  const Manifest &manifest;
  Report &report;
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

void ManifestChecker::checkBundle(const LoadedBundle &bundle,
                                  const ManifestBundle &said,
                                  const std::string &path) {
  // SDSC-BUNDLE-C6
  const auto &segments = bundle.bundle.segments;
  if (segments && !segments->empty() && *segments != getSegments(said))
    report.add(getPrefix(bundle.folder) + kBundleFile, "", "SDSC-BUNDLE-C6",
               "the segments are not the arguments at " + path +
                   "/arguments of " + kManifestFile);
  for (size_t i = 0; i < said.files.size(); ++i) {
    const ManifestFile &file = said.files[i];
    std::string own = appendPath(path + "/files", i);
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
}

void spyre::superdsc::checkManifest(const BundleProgram &program,
                                    Report &report) {
  ManifestChecker checker(program, report);
  for (size_t i = 0; i < program.bundles.size() && !report.isFull(); ++i)
    checker.checkBundle(program.bundles[i], program.manifest->bundles[i],
                        appendPath("/bundles", i));
}
