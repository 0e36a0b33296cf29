// SPDX-License-Identifier: Apache-2.0
#include "Fallback.h"
#include "../Card/Card.h"
#include "../Card/Generator.h"
#include "../Eager/Eager.h"
#include "../Eager/WrittenMemory.h"

#include <ATen/native/CPUFallback.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <mutex>
#include <set>

namespace py = pybind11;

namespace spyre::pytorch {

namespace {

struct Report {
  std::mutex mutex;
  std::map<std::string, int64_t> counts;
};

Report &report() {
  static auto *instance = new Report;
  return *instance;
}

/// File and line of the user's code for the operator of a compiled graph that
/// is running.
thread_local std::pair<std::string, int> sourceLine;

template <typename Function>
void forEachTensor(const c10::IValue &value, Function function) {
  if (value.isTensor()) {
    if (value.toTensor().defined())
      function(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue &element : value.toListRef())
      forEachTensor(element, function);
  }
}

/// File and line of the innermost Python frame that is no part of how operators
/// are called, which torch.ops.namespace.name() and users' fallbacks run
/// through.
std::pair<std::string, int> callerLine() {
  for (py::object frame = py::reinterpret_borrow<py::object>(
           reinterpret_cast<PyObject *>(PyEval_GetFrame()));
       frame && !frame.is_none(); frame = frame.attr("f_back")) {
    std::string file =
        frame.attr("f_code").attr("co_filename").cast<std::string>();
    bool isBetween =
        file.find("/torch/_ops.py") != std::string::npos ||
        file.find("/torch/_library/") != std::string::npos ||
        file.find("/torch/autograd/") != std::string::npos ||
        file.find("/torch/utils/_pytree.py") != std::string::npos ||
        file.find("/torch_spyre/ops/through_cpu.py") != std::string::npos;
    if (!isBetween)
      return {file, frame.attr("f_lineno").cast<int>()};
  }
  return {};
}

/// Operators that take indices, lengths or masks from the host.
bool mayMixDevices(const std::string &name) {
  static const std::set<std::string> names = {"aten::index",
                                              "aten::index_put",
                                              "aten::index_put_",
                                              "aten::_index_put_impl_",
                                              "aten::_unsafe_index",
                                              "aten::_unsafe_index_put",
                                              "aten::_pack_padded_sequence",
                                              "aten::_copy_from",
                                              "aten::copy",
                                              "aten::copy_",
                                              "aten::_copy_from_and_resize"};
  return names.count(name) != 0;
}

void checkArguments(const c10::OperatorHandle &op,
                    const torch::jit::Stack &arguments, size_t first) {
  const c10::FunctionSchema &schema = op.schema();
  std::optional<c10::Device> common;
  bool strict = !mayMixDevices(op.operator_name().name);
  // A spyre tensor decides what "the" device is; 0-dimensional CPU tensors
  // are scalars.
  for (size_t i = first; i < arguments.size(); ++i)
    forEachTensor(arguments[i], [&](const at::Tensor &tensor) {
      if (!common && tensor.device().type() == kSpyre)
        common = tensor.device();
    });
  for (size_t i = first; i < arguments.size(); ++i) {
    const c10::Argument &argument = schema.arguments()[i - first];
    bool written = argument.alias_info() && argument.alias_info()->isWrite();
    forEachTensor(arguments[i], [&](const at::Tensor &tensor) {
      if (common && strict && tensor.device() != *common &&
          !(tensor.device().is_cpu() && tensor.dim() == 0 && !written))
        TORCH_CHECK(false, c10::toString(op.operator_name()),
                    ": expected all tensors to be on the same device, found ",
                    *common, " and ", tensor.device(), " (argument '",
                    argument.name(), "')");
    });
  }
  WrittenMemory(schema).check(
      c10::ArrayRef<c10::IValue>(arguments).slice(first));
}

/// The CPU kernel gets a CPU generator derived from the device's.
void replaceGenerators(const c10::OperatorHandle &op,
                       torch::jit::Stack &arguments, size_t first) {
  const c10::FunctionSchema &schema = op.schema();
  for (size_t i = first; i < arguments.size(); ++i) {
    c10::TypePtr type = schema.arguments()[i - first].type();
    if (auto optional = type->cast<c10::OptionalType>())
      type = optional->getElementType();
    if (type->kind() != c10::TypeKind::GeneratorType)
      continue;
    c10::DeviceIndex index = currentDevice();
    for (size_t j = first; j < arguments.size(); ++j)
      forEachTensor(arguments[j], [&](const at::Tensor &tensor) {
        if (tensor.device().type() == kSpyre)
          index = tensor.device().index();
      });
    at::Generator generator = arguments[i].isNone()
                                  ? defaultGenerator(index)
                                  : arguments[i].toGenerator();
    TORCH_CHECK(generator.device() == c10::Device(kSpyre, index),
                "expected a generator of spyre:", static_cast<int>(index),
                ", found one of ", generator.device());
    arguments[i] = generator.get<SpyreGeneratorImpl>()->nextCPUGenerator();
  }
}

/// The dtype of 8-bit floats among the arguments, if there are any.
std::optional<c10::ScalarType> findFloat8(const torch::jit::Stack &arguments,
                                          size_t first) {
  std::optional<c10::ScalarType> found;
  for (size_t i = first; i < arguments.size(); ++i)
    forEachTensor(arguments[i], [&](const at::Tensor &tensor) {
      if (c10::isFloat8Type(tensor.scalar_type()))
        found = tensor.scalar_type();
    });
  return found;
}

/// Throws torch_spyre.errors.Unsupported for an operator (`of` something) that
/// neither the card nor the CPU computes.
[[noreturn]] void refuse(const c10::OperatorHandle &op, const std::string &of,
                         const char *reason) {
  pybind11::gil_scoped_acquire gil;
  const auto &[file, line] =
      sourceLine.first.empty() ? callerLine() : sourceLine;
  std::string message = c10::toString(op.operator_name()) + of;
  if (!file.empty())
    message += " (" + file + ":" + std::to_string(line) + ")";
  message += std::string(": ") + reason;
  py::object type =
      py::module_::import("torch_spyre.errors").attr("Unsupported");
  py::object error = type(message);
  PyErr_SetObject(type.ptr(), error.ptr());
  python_error raised;
  raised.persist();
  throw raised;
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&runBoxed>());
}

} // namespace

void runOnCPU(const c10::OperatorHandle &op, torch::jit::Stack *stack,
              c10::DispatchKey kernels) {
  size_t first = stack->size() - op.schema().arguments().size();
  checkArguments(op, *stack, first);
  constexpr auto kHostKey = c10::DispatchKey::kHostKernels;
  if (op.hasKernelForDispatchKey(kHostKey)) {
    op.callBoxedForDispatchKey(kHostKey, *stack);
    return;
  }
  replaceGenerators(op, *stack, first);
  std::optional<c10::ScalarType> float8 = findFloat8(*stack, first);
  try {
    at::native::cpu_fallback(op, stack, /*error_on_views=*/true, kernels);
  } catch (const c10::NotImplementedError &) {
    if (float8)
      refuse(op, " of torch." + std::string(c10::getDtypeNames(*float8).first),
             "8-bit floats are moved, converted and multiplied by "
             "torch._scaled_mm only; convert with .to(torch.float16)");
    if (op.operator_name().getNamespace() == "spyre")
      refuse(op, "",
             "there is no program for these arguments, and no kernel of the "
             "CPU; TORCH_LOGS=spyre.execution says why");
    throw;
  }
  // Wrong calls have no result and count as nothing.
  recordFallback(c10::toString(op.operator_name()));
}

void runBoxed(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  if (!runNative(op, *stack))
    runOnCPU(op, stack);
}

PyObject *fallbackWarning() {
  static PyObject *const type = PyErr_NewExceptionWithDoc(
      "torch_spyre.ops.fallbacks.FallbackWarning",
      "An operator without a kernel of the device runs on the CPU.",
      PyExc_UserWarning, nullptr);
  return type;
}

void recordFallback(const std::string &operatorName,
                    const std::string &reason) {
  {
    std::lock_guard<std::mutex> lock(report().mutex);
    ++report().counts[operatorName];
  }
  // How often it is shown, or whether it is an error, is for Python's filters
  // to say. TORCH_WARN becomes a Python warning only under a handler, which
  // operators called through torch.ops, as compiled graphs do, do not have.
  std::string message = operatorName + " is falling back to cpu: " + reason +
                        " and runs on the CPU; "
                        "torch_spyre.fallback_report() counts such calls";
  pybind11::gil_scoped_acquire gil;
  const auto &[file, line] =
      sourceLine.first.empty() ? callerLine() : sourceLine;
  int failed = file.empty()
                   ? PyErr_WarnEx(fallbackWarning(), message.c_str(), 1)
                   : PyErr_WarnExplicit(fallbackWarning(), message.c_str(),
                                        file.c_str(), line, nullptr, nullptr);
  if (failed != 0) {
    python_error error;
    error.persist();
    throw error;
  }
}

void setSourceLine(const std::string &file, int line) {
  sourceLine = {file, line};
}

std::map<std::string, int64_t> fallbackReport() {
  std::lock_guard<std::mutex> lock(report().mutex);
  return report().counts;
}

void resetFallbackReport() {
  std::lock_guard<std::mutex> lock(report().mutex);
  report().counts.clear();
}

} // namespace spyre::pytorch
