// SPDX-License-Identifier: Apache-2.0
//===- SdscRules.h - Rules about one operation ------------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_MODEL_SDSCRULES_H
#define SPYRE_TARGET_SUPERDSC_MODEL_SDSCRULES_H

#include "Spyre/Target/SuperDSC/Model/Model.h"
#include "Spyre/Target/SuperDSC/Model/Report.h"

#include <string>

namespace spyre::superdsc {

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

#endif // SPYRE_TARGET_SUPERDSC_MODEL_SDSCRULES_H
