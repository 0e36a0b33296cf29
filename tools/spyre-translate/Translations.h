// SPDX-License-Identifier: Apache-2.0
//===- Translations.h - What spyre-translate does ---------------*- C++ -*-===//
#ifndef SPYRE_TOOLS_SPYRE_TRANSLATE_TRANSLATIONS_H
#define SPYRE_TOOLS_SPYRE_TRANSLATE_TRANSLATIONS_H

#include "Spyre/Device/TensorLayout.h"
#include "Spyre/Device/TransferDescriptors.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spyre {

/// The command line of --print-dci. Sizes and strides count elements.
struct DciRequest {
  std::vector<int64_t> size;
  /// Row-major if absent.
  std::optional<std::vector<int64_t>> strides;
  HostDtype dtype = HostDtype::Float16;
  /// At most one of `dimOrder` and the pair `deviceSize`, `strideMap`; the
  /// identity order if none.
  std::optional<std::vector<int64_t>> dimOrder, deviceSize, strideMap;
  TransferDirection direction = TransferDirection::HostToDevice;
  bool json = false;
};

/// Text or JSON, ending with a newline. Throws Error.
std::string printDci(const DciRequest &request);

/// Adds --ktir-to-bytecode and --ktir-to-text to upstream's registry.
void registerKTIRTranslations();

/// The command line of the translations to and from SuperDSC.
struct SuperDSCRequest {
  enum Action { Validate, Rewrite, Write, Raise, Schema };
  Action action = Validate;
  /// The folder, or the planned file, that is read.
  std::string folder;
  /// Write the form of the specification instead of the reference's.
  bool asSpecified = false;
  bool symbolicArguments = false;
  /// Write each iteration of a loop instead of the loop.
  bool unrollLoops = false;
  /// Segment 0 is a pool, where no manifest says so.
  bool hasPool = false;
  /// Repair parameters that bundle.mlir declares twice.
  bool lenient = false;
  bool json = false;
  /// The folder, or the planned file, that is written.
  std::string output;
};

/// Returns the text for standard output. Sets `ok` to false if the folder
/// breaks a rule, which the text names. Throws Error.
std::string runSuperDSC(const SuperDSCRequest &request, bool &ok);

/// The command line of the translations to SpyreCode.
struct SpyreCodeRequest {
  enum Action { Validate, Write };
  Action action = Validate;
  /// The folder, or the planned file, that is read.
  std::string input;
  bool asSpecified = false;
  bool symbolicArguments = false;
  bool json = false;
  /// The folder that is written.
  std::string output;
};

/// As runSuperDSC().
std::string runSpyreCode(const SpyreCodeRequest &request, bool &ok);

} // namespace spyre

#endif // SPYRE_TOOLS_SPYRE_TRANSLATE_TRANSLATIONS_H
