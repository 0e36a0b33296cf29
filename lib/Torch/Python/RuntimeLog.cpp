// SPDX-License-Identifier: Apache-2.0
#include "RuntimeLog.h"

#include <torch/csrc/utils/pybind.h>

#include <atomic>

namespace py = pybind11;

namespace spyre::pytorch {

static std::atomic<bool> isLogged = false;

/// Python's; touched with its lock held.
static py::object *&sink() {
  static py::object *instance = nullptr;
  return instance;
}

bool isRuntimeLogged() noexcept { return isLogged; }

void logRuntime(const std::string &message) {
  if (!Py_IsInitialized())
    return;
  py::gil_scoped_acquire gil;
  if (!sink())
    return;
  // Its own reference: another thread may set the sink during the call.
  py::object callable = *sink();
  try {
    callable(message);
  } catch (py::error_already_set &error) {
    error.discard_as_unraisable("spyre's runtime log");
  }
}

void setRuntimeLog(PyObject *callable) {
  delete sink();
  sink() = callable == Py_None
               ? nullptr
               : new py::object(py::reinterpret_borrow<py::object>(callable));
  isLogged = sink() != nullptr;
}

} // namespace spyre::pytorch
