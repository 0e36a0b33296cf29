// SPDX-License-Identifier: Apache-2.0
#include "Interpreter.h"

#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;

namespace spyre::pytorch {

void withoutGIL(const std::function<void()> &function) {
  if (Py_IsInitialized() && PyGILState_Check()) {
    py::gil_scoped_release release;
    function();
  } else {
    function();
  }
}

bool callPredicate(const char *module, const char *function) {
  py::gil_scoped_acquire gil;
  return py::module_::import(module).attr(function)().cast<bool>();
}

PyObject *unsupportedDtypeError() {
  static PyObject *const type = [] {
    py::tuple bases = py::make_tuple(py::handle(PyExc_TypeError),
                                     py::handle(PyExc_RuntimeError));
    return PyErr_NewExceptionWithDoc(
        "torch_spyre._C.UnsupportedDtypeError",
        "The device has no format for tensors of a dtype.", bases.ptr(),
        nullptr);
  }();
  return type;
}

void throwUnsupportedDtype(const std::string &message) {
  py::gil_scoped_acquire gil;
  PyErr_SetString(unsupportedDtypeError(), message.c_str());
  throw py::error_already_set();
}

} // namespace spyre::pytorch
