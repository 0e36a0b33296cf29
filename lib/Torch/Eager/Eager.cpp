// SPDX-License-Identifier: Apache-2.0
// Eager operators as programs of the compiler. A call is taken apart into a key
// in C++; only the first call of a kind goes to Python
// (torch_spyre.frontend.eager), which imports the operator through the ATen
// table and compiles it.
#include "Eager.h"
#include "../Launch/BoundGraph.h"
#include "EagerCall.h"

#include "Spyre/Conversion/ATenToSpyreGraph/Arguments.h"

#include <ATen/MemoryOverlap.h>
#include <c10/util/irange.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include <atomic>
#include <shared_mutex>
#include <unordered_map>

namespace py = pybind11;

namespace spyre::pytorch {

namespace {

/// Facts about an operator that do not depend on arguments.
struct OperatorInfo {
  /// Whether Python may compile it: 0 or 1, -1 if that is to be asked.
  std::atomic<int> isCandidate = -1;
  bool writes = false;
  std::vector<bool> isWritten; ///< per argument
  std::string name;            ///< "aten::add.Tensor"
  std::atomic<int64_t> numRuns = 0, numBytes = 0;
};

/// How one result of a call is made.
struct ResultSpec {
  enum Kind { Undefined, Value, Integer, List };
  Kind kind = Undefined;
  int64_t number = 0; ///< index of the value, or the integer
  std::vector<ResultSpec> entries;
};

/// The program of one kind of call.
struct Entry {
  std::shared_ptr<BoundGraph> graph; ///< null: there is none
  /// Per argument: the index of a tensor of the call, or -1 minus that of a
  /// number.
  std::vector<int> arguments;
  std::vector<StorageFormat> outputs;
  std::vector<ResultView> values;
  std::vector<ResultSpec> results; ///< unused where arguments are written
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
  /// torch_spyre.frontend.eager: (is_candidate, compile_call); null before it
  /// is loaded.
  py::object *isCandidate = nullptr;
  py::object *compileCall = nullptr;
};

State &state() {
  static auto *instance = new State;
  return *instance;
}

/// Programs kept before all are forgotten; the disk cache stays.
constexpr size_t kMaxEntries = 16384;

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
  auto owned = std::make_unique<OperatorInfo>();
  OperatorInfo &info = *owned;
  info.name = c10::toString(op.operator_name());
  for (const c10::Argument &argument : schema->arguments()) {
    bool written = argument.alias_info() && argument.alias_info()->isWrite();
    info.isWritten.push_back(written);
    info.writes |= written;
  }
  info.isCandidate = askCandidate(op);
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

ResultSpec toResultSpec(py::handle object) {
  ResultSpec spec;
  if (object.is_none())
    return spec;
  if (py::isinstance<py::int_>(object)) {
    spec.kind = ResultSpec::Value;
    spec.number = object.cast<int64_t>();
  } else if (py::isinstance<py::list>(object)) {
    spec.kind = ResultSpec::List;
    for (py::handle entry : object)
      spec.entries.push_back(toResultSpec(entry));
  } else {
    spec.kind = ResultSpec::Integer;
    spec.number = object.cast<std::pair<std::string, int64_t>>().second;
  }
  return spec;
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
    py::list list;
    for (size_t i : c10::irange(arguments.size()))
      list.append(
          toPython(arguments[i], op.schema().arguments()[i].real_type()));
    std::vector<int64_t> shifts;
    for (const ViewShift &shift : call.shifts)
      shifts.push_back(shift.hostElements);
    py::object answer = (*state().compileCall)(op.operator_name().name,
                                               op.operator_name().overload_name,
                                               list, shifts, isGeneric);
    auto entry = std::make_shared<Entry>();
    if (answer.is_none())
      return entry;
    if (py::isinstance<py::bool_>(answer))
      return nullptr;
    auto [graph, used, values, results] =
        answer.cast<std::tuple<std::shared_ptr<BoundGraph>, std::vector<int>,
                               std::vector<OutputInfo>, py::list>>();
    entry->graph = std::move(graph);
    entry->arguments = std::move(used);
    for (const OutputInfo &value : values)
      entry->values.emplace_back(value, std::vector<int64_t>());
    for (const OutputRoot &root : entry->graph->graph.outputs)
      entry->outputs.push_back(makeFormat(
          root.sizes, root.strides, scalarType(root.dtype), &root.layout));
    for (py::handle result : results)
      entry->results.push_back(toResultSpec(result));
    return entry;
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
                        call.shifts[index].hostElements))
      return false;
  }
  return true;
}

/// Runs the program of a call; the tensors that it makes.
std::vector<at::Tensor> runEntry(const Entry &entry, const Call &call,
                                 OperatorInfo &info) {
  std::vector<c10::Storage> storages;
  std::vector<int64_t> shifts;
  storages.reserve(entry.arguments.size() + entry.outputs.size());
  for (int index : entry.arguments) {
    storages.push_back(
        index >= 0
            ? call.tensors[index].storage()
            : makeNumber(call.numbers[-1 - index], call.device).storage());
    shifts.push_back(index >= 0 ? call.shifts[index].deviceElements : 0);
  }
  std::vector<at::Tensor> roots;
  for (const StorageFormat &format : entry.outputs) {
    roots.push_back(makeTensor(format, call.device));
    storages.push_back(roots.back().storage());
  }
  entry.graph->launch(call.device, std::move(storages), shifts, &info.numBytes);
  std::vector<at::Tensor> values;
  for (const ResultView &value : entry.values)
    values.push_back(value.of(roots[value.root]));
  return values;
}

/// The program of a call, compiled if there is none. Null: the call has changed
/// and is to be looked up again.
std::shared_ptr<const Entry> findEntry(const c10::OperatorHandle &op,
                                       c10::ArrayRef<c10::IValue> arguments,
                                       const Call &call) {
  State &s = state();
  bool hasSeenKind = false;
  std::shared_ptr<const Entry> entry, generic;
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
  }
  if (generic && generic->graph)
    return generic;
  if (hasSeenKind && !generic) {
    generic = compileCall(op, arguments, call, /*isGeneric=*/true);
    if (!generic)
      return nullptr;
  }
  if (!generic || !generic->graph) {
    entry = compileCall(op, arguments, call, /*isGeneric=*/false);
    if (!entry)
      return nullptr;
  }
  std::unique_lock<std::shared_mutex> lock(s.mutex);
  if (s.entries.size() >= kMaxEntries) {
    s.entries.clear();
    s.generic.clear();
  }
  if (!call.numbers.empty())
    s.generic[call.kind()] = generic;
  if (!entry)
    return generic;
  s.entries[call.key] = entry;
  return entry;
}

bool callNativeOn(const c10::OperatorHandle &op,
                  c10::ArrayRef<c10::IValue> arguments,
                  torch::jit::Stack &results) {
  OperatorInfo *info = infoOf(op);
  if (!info || info->isCandidate == 0)
    return false;
  std::shared_ptr<const Entry> entry;
  Call call;
  do {
    call = Call();
    const c10::FunctionSchema *schema = &op.schema();
    call.key.append(reinterpret_cast<const char *>(&schema), sizeof(schema));
    for (const c10::IValue &argument : arguments)
      if (!call.add(argument))
        return false;
    if (call.device < 0)
      return false;
    call.close();
    entry = findEntry(op, arguments, call);
    if (entry && entry->graph && !staysInStorages(*entry, call)) {
      call.stay();
      entry = findEntry(op, arguments, call);
    }
  } while (!entry);
  if (!entry->graph)
    return false;
  if (info->writes)
    for (size_t i : c10::irange(arguments.size())) {
      if (!info->isWritten[i] || !arguments[i].isTensor())
        continue;
      const at::Tensor &written = arguments[i].toTensor();
      at::assert_no_internal_overlap(written);
      for (const at::Tensor &tensor : call.tensors)
        at::assert_no_partial_overlap(written, tensor);
    }
  std::vector<at::Tensor> values = runEntry(*entry, call, *info);
  ++info->numRuns;
  if (info->writes) {
    size_t numReturns = op.schema().returns().size();
    for (size_t i : c10::irange(arguments.size()))
      if (info->isWritten[i] && results.size() < numReturns)
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

void setEagerCompiler(py::object isCandidate, py::object compileCall) {
  State &s = state();
  std::unique_lock<std::shared_mutex> lock(s.mutex);
  s.isCandidate = new py::object(std::move(isCandidate));
  s.compileCall = new py::object(std::move(compileCall));
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
  for (auto &[schema, info] : state().operators)
    info->isCandidate = -1;
}

} // namespace spyre::pytorch
