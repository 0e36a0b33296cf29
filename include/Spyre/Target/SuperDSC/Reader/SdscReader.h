// SPDX-License-Identifier: Apache-2.0
//===- SdscReader.h - Reading sdsc_<i>.json ---------------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_READER_SDSCREADER_H
#define SPYRE_TARGET_SUPERDSC_READER_SDSCREADER_H

#include "Spyre/Support/Json.h"
#include "Spyre/Target/SuperDSC/Model/Model.h"
#include "Spyre/Target/SuperDSC/Model/Report.h"

#include <optional>
#include <string>

namespace spyre::superdsc {

/// Takes the facts out of a file and holds every repetition of them against
/// what writeSdsc writes (rules SDSC-FORM-*). Nothing if the facts cannot be
/// taken; `report` says why.
std::optional<Sdsc> readSdsc(const Json &json, const std::string &file,
                             Report &report);

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_READER_SDSCREADER_H
