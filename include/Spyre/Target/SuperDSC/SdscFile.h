// SPDX-License-Identifier: Apache-2.0
//===- SdscFile.h - sdsc_<i>.json and the model -----------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_SDSCFILE_H
#define SPYRE_TARGET_SUPERDSC_SDSCFILE_H

#include "Spyre/Target/SuperDSC/Model.h"
#include "Spyre/Target/SuperDSC/Report.h"

#include <optional>
#include <string>

namespace spyre::superdsc {

/// Labels of an operation's dimensions in order: for n dimensions the first
/// n - 1 of mb, x, y, i, j, ki, kj and out; of a matmul the last n of ki, kj,
/// y, x, mb, out, in. Nothing if there are too many.
std::optional<std::vector<std::string>> getDimNames(size_t n, bool isMatmul);

/// The file's content. `sdsc` must be consistent: it came from readSdsc or
/// passes validateSdsc.
Json writeSdsc(const Sdsc &sdsc);

/// Takes the facts out of a file and holds every repetition of them against
/// what writeSdsc writes (rules SDSC-FORM-*). Nothing if the facts cannot be
/// taken; `report` says why.
std::optional<Sdsc> readSdsc(const Json &json, const std::string &file,
                             Report &report);

/// The rules about one operation that do not follow from its form.
void validateSdsc(const Sdsc &sdsc, const std::string &file, Report &report);

/// JSON pointer of things that validation talks about.
struct SdscPaths {
  explicit SdscPaths(const Sdsc &sdsc);
  std::string top, dsc;
  std::string tensor(size_t number) const;
  std::string allocation(size_t number) const;
};

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_SDSCFILE_H
