// SPDX-License-Identifier: Apache-2.0
//===- Cases.h - The cases of a file of checks ------------------*- C++ -*-===//

#ifndef SPYRE_TOOLS_SPYRE_RUN_CASES_H
#define SPYRE_TOOLS_SPYRE_RUN_CASES_H

#include "Options.h"

namespace spyre {

/// Runs the `check.case` operations of options.program, all of them whatever
/// fails. Whether they hold; if not, errors were printed. Throws Error for a
/// file that cannot be read.
bool runCases(const Options &options);

} // namespace spyre

#endif // SPYRE_TOOLS_SPYRE_RUN_CASES_H
