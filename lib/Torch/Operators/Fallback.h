// SPDX-License-Identifier: Apache-2.0
//===- Fallback.h - Operators that run on the CPU ---------------*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_OPERATORS_FALLBACK_H
#define SPYRE_LIB_TORCH_OPERATORS_FALLBACK_H

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/csrc/python_headers.h>

#include <cstdint>
#include <map>
#include <string>

namespace spyre::pytorch {

/// The dispatch key of our host kernels for operators without a CPU kernel. No
/// tensor selects it; the boxed fallback calls them.
#define kHostKernels PrivateUse3

/// The boxed kernel of every operator: a compiled program, else the CPU.
void runBoxed(const c10::OperatorHandle &op, torch::jit::Stack *stack);

/// Runs an operator on the CPU: by the kernels of a dispatch key of the CPU's.
/// Throws where arguments are on several devices.
void runOnCPU(const c10::OperatorHandle &op, torch::jit::Stack *stack,
              c10::DispatchKey kernels = c10::DispatchKey::CPU);

/// The Python class torch_spyre.ops.fallbacks.FallbackWarning, a UserWarning;
/// lives as long as the process. Needs the GIL.
PyObject *fallbackWarning();

/// Counts a run of an ATen operator ("aten::sort.stable") on the CPU on behalf
/// of spyre tensors, and warns. Used by the boxed fallback, by eager kernels
/// that compute on the CPU and by compiled graphs with CPU parts.
void recordFallback(const std::string &operatorName,
                    const std::string &reason = "it has no spyre kernel");

/// The line of the user's code that this thread's warnings are about; an empty
/// file: that of the running Python code.
void setSourceLine(const std::string &file, int line);

/// Operator -> runs since the last reset; empty if there were none.
std::map<std::string, int64_t> fallbackReport();

/// Forgets the counts.
void resetFallbackReport();

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_OPERATORS_FALLBACK_H
