// SPDX-License-Identifier: Apache-2.0
//===- Translations.h - What spyre-translate does ---------------*- C++ -*-===//
#ifndef SPYRE_TOOLS_SPYRE_TRANSLATE_TRANSLATIONS_H
#define SPYRE_TOOLS_SPYRE_TRANSLATE_TRANSLATIONS_H

#include "Spyre/Device/TensorLayout.h"
#include "Spyre/Device/TransferDescriptors.h"

#include <optional>
#include <string>
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

} // namespace spyre

#endif // SPYRE_TOOLS_SPYRE_TRANSLATE_TRANSLATIONS_H
