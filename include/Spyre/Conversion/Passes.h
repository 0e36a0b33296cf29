// SPDX-License-Identifier: Apache-2.0
//===- Passes.h - Conversion passes -----------------------------*- C++ -*-===//
#ifndef SPYRE_CONVERSION_PASSES_H
#define SPYRE_CONVERSION_PASSES_H

#include "Spyre/Device/DeviceSpec.h"
#include "mlir/Pass/Pass.h"

namespace mlir {

class ModuleOp;

#define GEN_PASS_DECL
#include "Spyre/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "Spyre/Conversion/Passes.h.inc"

} // namespace mlir

#endif // SPYRE_CONVERSION_PASSES_H
