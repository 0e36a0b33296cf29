// SPDX-License-Identifier: Apache-2.0
//===- Upstream.h - What spyre-opt has of MLIR ------------------*- C++ -*-===//

#ifndef SPYRE_TOOLS_SPYRE_OPT_UPSTREAM_H
#define SPYRE_TOOLS_SPYRE_OPT_UPSTREAM_H

#include "mlir/IR/DialectRegistry.h"

namespace spyre {

/// Registers MLIR's dialects that our IR consists of, beside our own, with the
/// interfaces that passes ask them for.
void registerUpstreamDialects(mlir::DialectRegistry &registry);

/// Registers MLIR's passes on these dialects, and those on any IR. MLIR's other
/// passes would bring its other dialects into every tool.
void registerUpstreamPasses();

} // namespace spyre

#endif // SPYRE_TOOLS_SPYRE_OPT_UPSTREAM_H
