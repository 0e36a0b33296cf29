// SPDX-License-Identifier: Apache-2.0
//===- Interpreter.h - What the device needs of Python ----------*- C++ -*-===//
//
// Without pybind11: a file that includes it takes seconds longer to compile. It
// is for the bindings, and for what makes Python objects or calls them.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_TORCH_PYTHON_INTERPRETER_H
#define SPYRE_LIB_TORCH_PYTHON_INTERPRETER_H

#include <torch/csrc/python_headers.h>

#include <functional>
#include <string>

namespace spyre::pytorch {

/// Runs a function that may wait, without Python's lock.
void withoutGIL(const std::function<void()> &function);

/// What a function of a Python module returns without arguments: true or false.
/// Throws what it raises.
bool callPredicate(const char *module, const char *function);

/// The Python class torch_spyre._C.UnsupportedDtypeError: a TypeError, as
/// PyTorch's other devices have it, and a RuntimeError, as torch-spyre has it.
/// Lives as long as the process. Needs the GIL.
PyObject *unsupportedDtypeError();
[[noreturn]] void throwUnsupportedDtype(const std::string &message);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_PYTHON_INTERPRETER_H
