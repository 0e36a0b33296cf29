// SPDX-License-Identifier: Apache-2.0
//===- Manifest.h - What SuperDSC leaves out --------------------*- C++ -*-===//
//
// manifest.json says what the JSON files cannot: host types, shapes and
// layouts of arguments and intermediates, extents without padding, which
// segment is which argument, and the order of bundles. It repeats no address,
// split or operation. Its form is described in docs/internals/superdsc.md.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_TARGET_SUPERDSC_MODEL_MANIFEST_H
#define SPYRE_TARGET_SUPERDSC_MODEL_MANIFEST_H

#include "Spyre/Device/DataFormat.h"
#include "Spyre/Target/SuperDSC/Model/Model.h"
#include "Spyre/Target/SuperDSC/Model/Report.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace spyre::superdsc {

inline constexpr const char *kManifestFile = "manifest.json";

/// An argument or an intermediate buffer.
struct ManifestTensor {
  /// Empty for a buffer.
  std::string name;
  HostDtype dtype = HostDtype::Float16;
  std::vector<int64_t> shape;
  /// Only for arguments: strides in elements; row-major if empty.
  std::vector<int64_t> strides;
  /// Either an order (spec/layouts.md, generic-stick constructor) ...
  std::optional<std::vector<int64_t>> order;
  bool sparse = false;
  /// Of a buffer: steps of the first dimension in `order` that share a stick.
  int64_t packed = 1;
  /// ... or, of an argument, an explicit layout.
  std::vector<int64_t> deviceSize, strideMap;
  /// Of an argument: the name of the size that a dimension is, where it is one
  /// of many; `shape` has the largest.
  std::map<int64_t, std::string> sizes;
};

/// The tensors of a file.
struct ManifestFile {
  std::string file;
  /// Extents of dimensions whose size was padded.
  std::map<std::string, int64_t> extents;
  /// One per tensor: an argument's number, or -1 - b for buffer b.
  std::vector<int64_t> tensors;
  /// For each tensor, the bytes from the start of its argument or buffer.
  std::vector<int64_t> offsets;
};

struct ManifestBundle {
  /// Relative to the manifest; "." for the manifest's own.
  std::string folder;
  /// Argument that each segment (or parameter) is, behind the pool's.
  std::vector<int64_t> arguments;
  bool hasPool = false;
  std::vector<ManifestFile> files;
};

/// The argument of each segment, or kPoolSegment, if addresses are baked.
std::vector<int64_t> getSegments(const ManifestBundle &bundle);

struct Manifest {
  int64_t poolBytes = 0;
  /// What a launch binds beside the arguments, in order.
  std::vector<SizeParameter> sizes;
  std::vector<ManifestTensor> arguments, buffers;
  std::vector<ManifestBundle> bundles;
};

Json writeManifest(const Manifest &manifest);

/// Checks the form (SDSC-MANIFEST-C1) and what the manifest says about itself
/// (SDSC-MANIFEST-C2).
std::optional<Manifest> readManifest(const Json &json, Report &report);

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_MODEL_MANIFEST_H
