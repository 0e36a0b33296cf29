// SPDX-License-Identifier: Apache-2.0
//===- SdscWriter.h - Writing sdsc_<i>.json ---------------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_WRITER_SDSCWRITER_H
#define SPYRE_TARGET_SUPERDSC_WRITER_SDSCWRITER_H

#include "Spyre/Support/Json.h"
#include "Spyre/Target/SuperDSC/Model/Model.h"

#include <optional>
#include <string>
#include <vector>

namespace spyre::superdsc {

/// Labels of an operation's dimensions in order: for n dimensions the first
/// n - 1 of mb, x, y, i, j, ki, kj and out; of a matmul the last n of ki, kj,
/// y, x, mb, out, in. Nothing if there are too many.
std::optional<std::vector<std::string>> getDimNames(size_t n, bool isMatmul);

/// The file's content. `sdsc` must be consistent: it came from readSdsc or
/// passes validateSdsc.
Json writeSdsc(const Sdsc &sdsc);

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_WRITER_SDSCWRITER_H
