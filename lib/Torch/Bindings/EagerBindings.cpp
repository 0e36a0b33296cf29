// SPDX-License-Identifier: Apache-2.0
// Eager operators in Python, and which operators run that way.
#include "../Card/Card.h"
#include "../Eager/Eager.h"
#include "../Operators/Fallback.h"
#include "../Python/Interpreter.h"
#include "Bindings.h"

#include "Spyre/Conversion/ATenToSpyreGraph/Arguments.h"
#include "Spyre/Device/DL16.h"

#include <torch/library.h>

#include <map>
#include <mutex>

namespace py = pybind11;

namespace spyre::pytorch {

/// Whether an operator may get the boxed kernel as its own: it is no view, has
/// no decomposition that autograd needs, and its results belong where its
/// tensors are. Autograd has a formula of its own for those that the CPU has a
/// kernel for beside their decomposition, as of silu's gradient.
static bool takesBoxedKernel(const c10::OperatorHandle &op) {
  if (op.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1))
    return false;
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
      !op.hasKernelForDispatchKey(c10::DispatchKey::CPU))
    return false;
  bool takesTensor = false;
  for (const c10::Argument &argument : op.schema().arguments()) {
    takesTensor |=
        argument.type()->annotation_str().find("Tensor") != std::string::npos;
    if (argument.name() == "device" ||
        (argument.alias_info() && !argument.alias_info()->isWrite()))
      return false;
  }
  return takesTensor;
}

/// Gives the operators of the ATen table, and their in-place variants, the
/// boxed kernel. Without it those with a composite kernel would run as what
/// that one calls: other programs, other roundings than in a compiled graph.
static void registerTableOperators() {
  static auto *library =
      new torch::Library(torch::Library::IMPL, "aten",
                         c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  auto add = [](const std::string &name, const std::string &overload) {
    auto op =
        c10::Dispatcher::singleton().findSchema({"aten::" + name, overload});
    if (op && takesBoxedKernel(*op))
      library->impl((overload.empty() ? name : name + "." + overload).c_str(),
                    torch::CppFunction::makeFromBoxedFunction<&runBoxed>());
  };
  // No row, but a decomposition that rounds less than the composite kernel.
  add("native_group_norm", "");
  add("mish_backward", "");
  for (const std::string &row : listSupportedOps()) {
    if (row.rfind("aten.", 0) != 0)
      continue;
    size_t dot = row.rfind('.');
    std::string name = row.substr(5, dot - 5), overload = row.substr(dot + 1);
    if (overload == "default")
      overload.clear();
    add(name, overload);
    if (name != "copy") // crosses devices; PyTorch's asks _copy_from
      add(name + "_", overload);
  }
}

/// Lets an operator of any library run as a program, like those of the ATen
/// table. Returns whether it does now; false where it has a kernel of its own.
static bool giveBoxedKernel(const std::string &name,
                            const std::string &overload) {
  auto op = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!op || !takesBoxedKernel(*op))
    return false;
  static auto *libraries = new std::map<std::string, torch::Library>;
  std::string space = name.substr(0, name.find("::"));
  auto &library =
      libraries
          ->try_emplace(space, torch::Library::IMPL, space,
                        c10::DispatchKey::PrivateUse1, __FILE__, __LINE__)
          .first->second;
  library.impl((overload.empty() ? name : name + "." + overload).c_str(),
               torch::CppFunction::makeFromBoxedFunction<&runBoxed>());
  return true;
}

void initEagerBindings(py::module &m) {
  m.def(
      "_set_eager_compiler",
      [](py::handle isCandidate, py::handle compile, py::handle compileSized) {
        setEagerCompiler(isCandidate.ptr(), compile.ptr(), compileSized.ptr());
        static std::once_flag registered;
        std::call_once(registered, &registerTableOperators);
      },
      py::arg("is_candidate"), py::arg("compile_call"),
      py::arg("compile_sized"));
  m.def(
      "native_report",
      [] {
        withoutGIL([] { drainAll(); });
        return nativeReport();
      },
      "ATen operator -> (times it ran eagerly as a compiled program, bytes of "
      "device memory that these runs read and wrote).");
  m.def("reset_native_report", [] {
    withoutGIL([] { drainAll(); });
    resetNativeReport();
  });
  m.def("_forget_eager_programs", &forgetEagerPrograms);
  m.def("_is_beyond_device", &isBeyondDL16, py::arg("number"),
        "Whether a number is finite and not 0, but not so in the device's 16 "
        "bits.");
  m.def("_give_boxed_kernel", &giveBoxedKernel, py::arg("name"),
        py::arg("overload"));
}

} // namespace spyre::pytorch
