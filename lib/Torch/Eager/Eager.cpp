// SPDX-License-Identifier: Apache-2.0
// Eager operators as programs of the compiler. A call is taken apart into a key
// in C++; only the first call of a kind goes to Python
// (torch_spyre.frontend.eager), which imports the operator through the ATen
// table and compiles it.
#include "Eager.h"
#include "EagerCall.h"
#include "EagerProgram.h"
#include "WrittenMemory.h"

#include "Spyre/Conversion/ATenToSpyreGraph/Arguments.h"

#include <ATen/ops/scalar_tensor.h>
#include <c10/util/irange.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <atomic>
#include <shared_mutex>
#include <unordered_map>

namespace py = pybind11;

namespace spyre::pytorch {

namespace {

/// Facts about an operator that do not depend on arguments.
struct OperatorInfo {
  explicit OperatorInfo(const c10::FunctionSchema &schema)
      : written(schema), name(c10::toString(schema.operator_name())) {}

  /// Whether Python may compile it: 0 or 1, -1 if that is to be asked.
  std::atomic<int> isCandidate = -1;
  WrittenMemory written;
  std::string name; ///< "aten::add.Tensor"
  std::atomic<int64_t> numRuns = 0, numBytes = 0;
};

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

struct State {
  std::shared_mutex mutex;
  std::unordered_map<const c10::FunctionSchema *, std::unique_ptr<OperatorInfo>>
      operators;
  std::unordered_map<std::string, std::shared_ptr<const Entry>> entries;
  /// By Call::kind(): programs that take the numbers as arguments. Null after
  /// one call of the kind; then a second value of a number asks for one.
  std::unordered_map<std::string, std::shared_ptr<const Entry>> generic;
  /// By the key of a Call that leaves out sizes.
  std::unordered_map<std::string, EagerForm> forms;
  /// torch_spyre.frontend.eager: (is_candidate, compile_call, compile_sized);
  /// null before it is loaded.
  py::object *isCandidate = nullptr;
  py::object *compileCall = nullptr;
  py::object *compileSized = nullptr;
};

State &state() {
  static auto *instance = new State;
  return *instance;
}

/// Programs kept before all are forgotten; the disk cache stays.
constexpr size_t kMaxEntries = 16384;
/// Calls of one form that are remembered, and programs for many sizes that it
/// may have; failures after which no more are tried.
constexpr size_t kMaxSeen = 32, kMaxSized = 16;
constexpr int kMaxFailures = 4;

/// Runs Python code; its exceptions reach the caller's Python.
template <typename Function>
auto inPython(Function function) {
  py::gil_scoped_acquire gil;
  try {
    return function();
  } catch (py::error_already_set &error) {
    error.restore();
    python_error persistent;
    persistent.persist();
    throw persistent;
  }
}

/// The caller holds no lock: Python may call operators.
bool askCandidate(const c10::OperatorHandle &op) {
  return inPython([&] {
    return (*state().isCandidate)(op.operator_name().name,
                                  op.operator_name().overload_name)
        .template cast<bool>();
  });
}

OperatorInfo *infoOf(const c10::OperatorHandle &op) {
  const c10::FunctionSchema *schema = &op.schema();
  State &s = state();
  OperatorInfo *known = nullptr;
  {
    std::shared_lock<std::shared_mutex> lock(s.mutex);
    if (!s.compileCall)
      return nullptr;
    auto it = s.operators.find(schema);
    if (it != s.operators.end())
      known = it->second.get();
  }
  if (known) {
    if (known->isCandidate < 0)
      known->isCandidate = askCandidate(op);
    return known;
  }
  auto owned = std::make_unique<OperatorInfo>(*schema);
  owned->isCandidate = askCandidate(op);
  std::unique_lock<std::shared_mutex> lock(s.mutex);
  return s.operators.try_emplace(schema, std::move(owned)).first->second.get();
}

py::object toPython(const c10::IValue &value, const c10::TypePtr &type) {
  if (value.isNone())
    return py::none();
  if (value.isTensor())
    return py::reinterpret_steal<py::object>(
        THPVariable_Wrap(value.toTensor()));
  c10::TypePtr inner = type;
  if (auto optional = inner->cast<c10::OptionalType>())
    inner = optional->getElementType();
  if (value.isBool())
    return py::bool_(value.toBool());
  if (value.isInt()) {
    int64_t number = value.toInt();
    switch (inner->kind()) {
    case c10::TypeKind::ScalarTypeType:
      return py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject *>(
          torch::getTHPDtype(static_cast<c10::ScalarType>(number))));
    case c10::TypeKind::LayoutType:
      return py::cast(static_cast<c10::Layout>(number));
    case c10::TypeKind::MemoryFormatType:
      return py::cast(static_cast<c10::MemoryFormat>(number));
    default:
      return py::int_(number);
    }
  }
  if (value.isDouble())
    return py::float_(value.toDouble());
  if (value.isString())
    return py::str(value.toStringRef());
  if (value.isDevice())
    return py::cast(value.toDevice());
  py::list list;
  c10::TypePtr element = inner;
  if (auto listType = inner->cast<c10::ListType>())
    element = listType->getElementType();
  for (const c10::IValue &entry : value.toListRef())
    list.append(toPython(entry, element));
  return list;
}

/// A whole number for Python, which is to know it among other integers.
py::object toPython(const WholeNumber &number, const c10::IValue &value) {
  if (!number.meetsIntegers && !value.isTensor())
    return py::float_(number.value);
  if (!value.isTensor())
    return py::module_::import("torch_spyre.frontend.eager_calls")
        .attr("WholeNumber")(static_cast<int64_t>(number.value));
  at::Tensor wrapped = at::scalar_tensor(
      number.value, number.meetsIntegers ? c10::kLong : c10::kDouble);
  wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
  auto object =
      py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(wrapped)));
  if (number.meetsIntegers)
    object.attr("is_whole_number") = true;
  return object;
}

/// An integer, or a list of them, that forms leave out, for Python, which is to
/// know them among others.
py::object sizesToPython(const c10::IValue &value) {
  py::object type = py::module_::import("torch_spyre.frontend.eager_calls")
                        .attr("SizeNumber");
  if (value.isInt())
    return type(value.toInt());
  py::list list;
  for (int64_t entry : value.toIntVector())
    list.append(type(entry));
  return list;
}

/// With `marksSizes`, integers that forms leave out are SizeNumbers.
py::list toPython(const c10::OperatorHandle &op,
                  c10::ArrayRef<c10::IValue> arguments,
                  bool marksSizes = false) {
  py::list list;
  for (size_t i : c10::irange(arguments.size())) {
    const c10::IValue &value = arguments[i];
    if (std::optional<WholeNumber> number = wholeNumber(op, arguments, i))
      list.append(toPython(*number, value));
    else if (marksSizes && isSize(op.schema().arguments()[i], value))
      list.append(sizesToPython(value));
    else
      list.append(toPython(value, op.schema().arguments()[i].real_type()));
  }
  return list;
}

/// Asks Python for the program of a call. Null: the call has changed (an out=
/// tensor was resized) and is to be looked up again.
/// The program takes the numbers as arguments if `isGeneric` is set.
std::shared_ptr<const Entry> compileCall(const c10::OperatorHandle &op,
                                         c10::ArrayRef<c10::IValue> arguments,
                                         const Call &call, bool isGeneric) {
  // The importer calls PyTorch, and the user's autocast must not change that.
  c10::impl::ExcludeDispatchKeyGuard noAutocast(c10::autocast_dispatch_keyset);
  return inPython([&]() -> std::shared_ptr<const Entry> {
    std::vector<int64_t> shifts;
    for (const ViewShift &shift : call.shifts)
      shifts.push_back(shift.hostElements);
    py::object answer = (*state().compileCall)(
        op.operator_name().name, op.operator_name().overload_name,
        toPython(op, arguments), shifts, isGeneric);
    if (answer.is_none())
      return std::make_shared<Entry>();
    if (py::isinstance<py::bool_>(answer))
      return nullptr;
    return EagerProgram::fromPython(answer).at({});
  });
}

/// Asks Python for a program for many sizes that serves a call and those seen
/// of its form. Null if they have nothing in common, or (`failed`) if it cannot
/// be made.
std::shared_ptr<const SizedEagerProgram>
compileSized(const c10::OperatorHandle &op,
             c10::ArrayRef<c10::IValue> arguments, const Call &call,
             const Call &form, const EagerForm &known, bool &failed) {
  c10::impl::ExcludeDispatchKeyGuard noAutocast(c10::autocast_dispatch_keyset);
  return inPython([&]() -> std::shared_ptr<const SizedEagerProgram> {
    auto sized = std::make_shared<SizedEagerProgram>();
    sized->numbers = call.numbers;
    std::vector<std::vector<int64_t>> earlier;
    for (const EagerForm::Seen &seen : known.seen) {
      earlier.push_back(seen.sizes);
      sized->takesNumbers |= !areSameNumbers(seen.numbers, call.numbers);
    }
    py::object answer = (*state().compileSized)(
        op.operator_name().name, op.operator_name().overload_name,
        toPython(op, arguments, /*marksSizes=*/true), form.sizes, earlier,
        sized->takesNumbers);
    failed = py::isinstance<py::bool_>(answer);
    if (failed || answer.is_none())
      return nullptr;
    py::tuple parts = answer;
    sized->program = EagerProgram::fromPython(parts);
    sized->form = parts[4].cast<std::vector<SizeExpr>>();
    sized->places = parts[5].cast<decltype(sized->places)>();
    sized->conditions = parts[6].cast<std::vector<SizeExpr>>();
    return sized;
  });
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

c10::IValue makeResult(const ResultSpec &spec,
                       const std::vector<at::Tensor> &values) {
  switch (spec.kind) {
  case ResultSpec::Undefined:
    return at::Tensor();
  case ResultSpec::Value:
    return values[spec.number];
  case ResultSpec::Integer:
    return spec.number;
  case ResultSpec::List:
    break;
  }
  c10::List<at::Tensor> list;
  for (const ResultSpec &entry : spec.entries)
    list.push_back(makeResult(entry, values).toTensor());
  return list;
}

/// Whether a program of the moved views finds what it accesses where these lie.
bool staysInStorages(const Entry &entry, const Call &call) {
  for (size_t i : c10::irange(entry.arguments.size())) {
    int index = entry.arguments[i];
    if (index >= 0 && call.shifts[index].hostElements != 0 &&
        !staysInStorage(entry.graph->graph.program->arguments()[i],
                        call.shifts[index].hostElements, entry.sizes))
      return false;
  }
  return true;
}

/// An argument of a program: a tensor of the call, or one of its numbers.
at::Tensor argumentOf(const BoundGraph &graph, size_t position, int index,
                      const Call &call) {
  if (index >= 0)
    return call.tensors[index];
  return makeNumber(call.numbers[-1 - index], call.device,
                    graph.graph.program->arguments()[position].dtype);
}

/// Runs the program of a call; the tensors that it makes.
std::vector<at::Tensor> runEntry(const Entry &entry, const Call &call,
                                 OperatorInfo &info) {
  std::vector<c10::Storage> storages;
  std::vector<int64_t> shifts;
  storages.reserve(entry.arguments.size() + entry.outputs.size());
  std::vector<std::pair<size_t, c10::Storage>> grown;
  for (int index : entry.arguments) {
    shifts.push_back(index >= 0 ? call.shifts[index].deviceElements : 0);
    if (index == 0 && call.part) {
      grown.emplace_back(storages.size(), call.part->source);
      storages.push_back(call.part->storage);
      shifts.back() += call.part->start;
      continue;
    }
    storages.push_back(
        argumentOf(*entry.graph, storages.size(), index, call).storage());
  }
  std::vector<at::Tensor> roots;
  for (const StorageFormat &format : entry.outputs) {
    roots.push_back(makeTensor(format, call.device));
    storages.push_back(roots.back().storage());
  }
  entry.graph->launch(call.device, std::move(storages), shifts, &info.numBytes,
                      entry.sizes, grown);
  std::vector<at::Tensor> values;
  for (const ResultView &value : entry.values)
    values.push_back(value.of(roots[value.root]));
  return values;
}

/// A call of an operator as a key.
std::optional<Call> takeApart(const c10::OperatorHandle &op,
                              c10::ArrayRef<c10::IValue> arguments,
                              bool leavesOutSizes = false) {
  Call call(leavesOutSizes);
  const c10::FunctionSchema *schema = &op.schema();
  call.key.append(reinterpret_cast<const char *>(&schema), sizeof(schema));
  for (size_t i : c10::irange(arguments.size())) {
    std::optional<WholeNumber> number = wholeNumber(op, arguments, i);
    if (number && number->meetsIntegers)
      call.addWhole(number->value);
    else if (leavesOutSizes && isSize(schema->arguments()[i], arguments[i]))
      call.leaveOut(arguments[i]);
    else if (isDtype(schema->arguments()[i], arguments[i]))
      call.addDtype(static_cast<c10::ScalarType>(arguments[i].toInt()));
    else if (!call.add(number ? c10::IValue(number->value) : arguments[i]))
      return std::nullopt;
  }
  call.endArguments();
  return call;
}

/// The entry of a call, whose form has these numbers, by a program for many
/// sizes; null if it is not for the call.
std::shared_ptr<const Entry> match(const SizedEagerProgram &sized,
                                   const Call &call,
                                   const std::vector<int64_t> &numbersOfForm) {
  std::vector<int64_t> sizes;
  for (auto [position, part] : sized.places)
    sizes.push_back(numbersOfForm[position] -
                    (part ? numbersOfForm[*part] : 0));
  for (size_t i : c10::irange(sized.form.size()))
    if (sized.form[i].at(sizes) != numbersOfForm[i])
      return nullptr;
  for (const SizeExpr &condition : sized.conditions)
    if (condition.at(sizes) < 0)
      return nullptr;
  if (!sized.takesNumbers && !areSameNumbers(call.numbers, sized.numbers))
    return nullptr;
  std::vector<at::Tensor> inputs;
  for (int index : sized.program.arguments)
    inputs.push_back(
        argumentOf(*sized.program.graph, inputs.size(), index, call));
  if (!sized.program.graph->takes(inputs, sizes))
    return nullptr;
  return sized.program.at(std::move(sizes));
}

/// The entry of a call by a program for many sizes, compiled if enough calls of
/// the form have been seen; null if there is none.
std::shared_ptr<const Entry> findSized(const c10::OperatorHandle &op,
                                       c10::ArrayRef<c10::IValue> arguments,
                                       const Call &call, const Call &form) {
  State &s = state();
  EagerForm known;
  {
    std::shared_lock<std::shared_mutex> lock(s.mutex);
    auto it = s.forms.find(form.key);
    if (it == s.forms.end())
      return nullptr;
    known = it->second;
  }
  for (const auto &program : known.programs)
    if (auto entry = match(*program, call, form.sizes))
      return entry;
  // A symbol is what at least two calls differ in.
  if (known.seen.size() < 2 || known.programs.size() >= kMaxSized ||
      known.numFailures >= kMaxFailures)
    return nullptr;
  bool failed = false;
  auto program = compileSized(op, arguments, call, form, known, failed);
  std::shared_ptr<const Entry> entry;
  if (program)
    entry = match(*program, call, form.sizes);
  std::unique_lock<std::shared_mutex> lock(s.mutex);
  if (entry)
    s.forms[form.key].programs.push_back(program);
  else if (program || failed)
    ++s.forms[form.key].numFailures;
  return entry;
}

/// The program of a call, compiled if there is none. Null: the call has changed
/// and is to be looked up again. If it is one for many sizes, the tensors of
/// the call stay where they are.
std::shared_ptr<const Entry> findEntry(const c10::OperatorHandle &op,
                                       c10::ArrayRef<c10::IValue> arguments,
                                       Call &call) {
  State &s = state();
  bool hasSeenKind = false;
  std::shared_ptr<const Entry> entry, generic;
  Call unmoved;
  {
    std::shared_lock<std::shared_mutex> lock(s.mutex);
    auto it = s.entries.find(call.key);
    if (it != s.entries.end())
      return it->second;
    if (!call.numbers.empty()) {
      auto known = s.generic.find(call.kind());
      hasSeenKind = known != s.generic.end();
      if (hasSeenKind)
        generic = known->second;
    }
    if (generic && generic->graph)
      return generic;
    unmoved = call;
    unmoved.stay();
    it = s.entries.find(unmoved.key);
    if (it != s.entries.end() && !it->second->sizes.empty()) {
      call = std::move(unmoved);
      return it->second;
    }
  }
  std::optional<Call> form = takeApart(op, arguments, /*leavesOutSizes=*/true);
  if (form)
    entry = findSized(op, arguments, unmoved, *form);
  bool isSized = entry != nullptr;
  if (isSized) {
    call = std::move(unmoved);
  } else if (hasSeenKind && !generic) {
    generic = compileCall(op, arguments, call, /*isGeneric=*/true);
    if (!generic)
      return nullptr;
  }
  if (!entry && (!generic || !generic->graph)) {
    entry = compileCall(op, arguments, call, /*isGeneric=*/false);
    if (!entry)
      return nullptr;
  }
  std::unique_lock<std::shared_mutex> lock(s.mutex);
  if (s.entries.size() >= kMaxEntries) {
    s.entries.clear();
    s.generic.clear();
    s.forms.clear();
  }
  if (entry)
    s.entries[call.key] = entry;
  if (isSized)
    return entry;
  if (!call.numbers.empty())
    s.generic[call.kind()] = generic;
  if (form && (!entry || entry->graph)) {
    std::vector<EagerForm::Seen> &seen = s.forms[form->key].seen;
    if (seen.size() == kMaxSeen)
      seen.erase(seen.begin());
    seen.push_back({form->sizes, call.numbers});
  }
  return entry ? entry : generic;
}

bool callNativeOn(const c10::OperatorHandle &op,
                  c10::ArrayRef<c10::IValue> arguments,
                  torch::jit::Stack &results, const GrownPart *part = nullptr) {
  OperatorInfo *info = infoOf(op);
  if (!info || info->isCandidate == 0)
    return false;
  std::shared_ptr<const Entry> entry;
  Call call;
  do {
    // Before an out= tensor is resized, as on the CPU, and after that.
    info->written.check(arguments);
    std::optional<Call> taken = takeApart(op, arguments);
    if (!taken || taken->device < 0)
      return false;
    call = std::move(*taken);
    call.close();
    entry = findEntry(op, arguments, call);
    if (entry && entry->graph && !staysInStorages(*entry, call)) {
      call.stay();
      entry = findEntry(op, arguments, call);
    }
  } while (!entry);
  if (!entry->graph)
    return false;
  if (part)
    call.part = *part;
  std::vector<at::Tensor> values = runEntry(*entry, call, *info);
  ++info->numRuns;
  if (info->written.any()) {
    size_t numReturns = op.schema().returns().size();
    for (size_t i : c10::irange(arguments.size()))
      if (info->written.isWritten(i) && results.size() < numReturns)
        results.push_back(arguments[i]);
  } else {
    for (const ResultSpec &spec : entry->results)
      results.push_back(makeResult(spec, values));
  }
  return true;
}

} // namespace

bool runNative(const c10::OperatorHandle &op, torch::jit::Stack &stack) {
  size_t numArguments = op.schema().arguments().size();
  torch::jit::Stack results;
  if (!callNativeOn(op, torch::jit::last(stack, numArguments), results))
    return false;
  torch::jit::drop(stack, numArguments);
  for (c10::IValue &result : results)
    stack.push_back(std::move(result));
  return true;
}

std::optional<torch::jit::Stack> callNative(const c10::OperatorHandle &op,
                                            torch::jit::Stack arguments) {
  torch::jit::Stack results;
  if (!callNativeOn(op, arguments, results))
    return std::nullopt;
  return results;
}

bool copyInto(const at::Tensor &source, const StorageFormat &format,
              const GrownPart &part) {
  static const c10::OperatorHandle op =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
  // Only says how the part is stored.
  at::Tensor like =
      makeTensor(format, c10::DataPtr(nullptr, part.storage.device()));
  c10::IValue arguments[] = {like, source, false};
  torch::jit::Stack results;
  return callNativeOn(op, arguments, results, &part);
}

void setEagerCompiler(PyObject *isCandidate, PyObject *compileCall,
                      PyObject *compileSized) {
  auto keep = [](PyObject *function) {
    return new py::object(py::reinterpret_borrow<py::object>(function));
  };
  State &s = state();
  std::unique_lock<std::shared_mutex> lock(s.mutex);
  s.isCandidate = keep(isCandidate);
  s.compileCall = keep(compileCall);
  s.compileSized = keep(compileSized);
}

std::map<std::string, std::pair<int64_t, int64_t>> nativeReport() {
  std::shared_lock<std::shared_mutex> lock(state().mutex);
  std::map<std::string, std::pair<int64_t, int64_t>> report;
  for (const auto &[schema, info] : state().operators)
    if (info->numRuns)
      report[info->name] = {info->numRuns, info->numBytes};
  return report;
}

void resetNativeReport() {
  std::shared_lock<std::shared_mutex> lock(state().mutex);
  for (const auto &[schema, info] : state().operators)
    info->numRuns = info->numBytes = 0;
}

void forgetEagerPrograms() {
  std::unique_lock<std::shared_mutex> lock(state().mutex);
  state().entries.clear();
  state().generic.clear();
  state().forms.clear();
  for (auto &[schema, info] : state().operators)
    info->isCandidate = -1;
}

} // namespace spyre::pytorch
