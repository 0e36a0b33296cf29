// SPDX-License-Identifier: Apache-2.0
//===- Eager.h - Operators as compiled programs -----------------*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_EAGER_EAGER_H
#define SPYRE_LIB_TORCH_EAGER_EAGER_H

#include "../Storage/Storage.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/csrc/python_headers.h>

#include <map>
#include <string>
#include <utility>

namespace spyre::pytorch {

/// Runs one ATen operator as a program of the compiler, which is made at the
/// first call of a kind (operator, numbers, sizes, strides, offsets, aliasing
/// and layouts of the tensors) and kept. What a few calls differ in becomes a
/// size or a number that later programs take. Replaces the arguments on the
/// stack by the results. False: the operator or these arguments have no
/// program; nothing has changed and the caller runs the operator elsewhere.
bool runNative(const c10::OperatorHandle &op, torch::jit::Stack &stack);

/// Runs a call with these arguments, in the order of the schema, by a compiled
/// program. Returns null if there is none.
std::optional<torch::jit::Stack> callNative(const c10::OperatorHandle &op,
                                            torch::jit::Stack arguments);

struct GrownPart;
/// Stores a tensor in a part of a storage, as in a storage of its own that has
/// this format. False if there is no program for that.
bool copyInto(const at::Tensor &source, const StorageFormat &format,
              const GrownPart &part);

/// A number as the tensor without dimensions that programs for any numbers
/// take: of fp32, or of 32-bit integers, which it must be one of.
at::Tensor makeNumber(double number, c10::DeviceIndex device,
                      HostDtype dtype = HostDtype::Float32);

/// Python's part of the compiler of eager operators: whether a schema is one to
/// compile, the program of a call, and that of calls of many sizes.
void setEagerCompiler(PyObject *isCandidate, PyObject *compileCall,
                      PyObject *compileSized);

/// ATen operator -> (times it ran eagerly as a compiled program, bytes of
/// device memory that these runs read and wrote).
std::map<std::string, std::pair<int64_t, int64_t>> nativeReport();
void resetNativeReport();

/// The next call of each operator asks Python again.
void forgetEagerPrograms();

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_EAGER_EAGER_H
