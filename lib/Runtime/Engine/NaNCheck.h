// SPDX-License-Identifier: Apache-2.0
//===- NaNCheck.h - What --check=full watches of values ---------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_NANCHECK_H
#define SPYRE_LIB_RUNTIME_ENGINE_NANCHECK_H

#include "../Program/ScalarProgram.h"
#include "Core.h"

#include <cstddef>
#include <cstdint>

namespace spyre::runtime {

/// Fails if one of `values` is a NaN, and no operand at the same index is.
void checkForNaN(Core &core, const ScalarOp &op, const float *values, size_t n,
                 const float *const *operands, const size_t *steps,
                 int numOperands);

/// Whether any of n values is NaN.
bool hasNaN(const float *values, int64_t n);

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_NANCHECK_H
