// SPDX-License-Identifier: Apache-2.0
// The compiler in torch_spyre._C: graph import, compilation, runs.
#include "../Launch/SizedProgram.h"
#include "../Storage/ViewShift.h"
#include "Bindings.h"

#include "Spyre/Compiler/Compiler.h"
#include "Spyre/Compiler/GraphBuilder.h"

#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>

namespace py = pybind11;
using namespace spyre;
using namespace spyre::pytorch;

void initCompilerBindings(py::module &m);

using PyLocation = std::vector<std::tuple<std::string, int64_t, std::string>>;

static SourceLocation toLocation(const PyLocation &frames) {
  SourceLocation location;
  for (const auto &[file, line, text] : frames)
    location.push_back({file, line, text});
  return location;
}

/// A size from Python: an int or a SizeExpr.
static SizeExpr toSize(py::handle object) {
  if (py::isinstance<SizeExpr>(object))
    return object.cast<SizeExpr>();
  return object.cast<int64_t>();
}

using PyRoom = std::optional<std::pair<size_t, py::object>>;

static std::optional<GraphBuilder::Room> toRoom(const PyRoom &room) {
  if (!room)
    return std::nullopt;
  return GraphBuilder::Room(room->first, toSize(room->second));
}

using PyEntries = std::vector<std::pair<size_t, size_t>>;

static std::vector<Growth::Entry> toEntries(const PyEntries &given) {
  std::vector<Growth::Entry> entries;
  for (auto [number, dim] : given)
    entries.push_back({number, dim});
  return entries;
}

static SizeList toSizes(const py::sequence &sequence) {
  SizeList sizes;
  for (py::handle size : sequence)
    sizes.push_back(toSize(size));
  return sizes;
}

static py::object fromSize(const SizeExpr &size) {
  if (size.isConstant())
    return py::int_(size.constant());
  return py::cast(size);
}

static py::list fromSizes(const SizeList &sizes) {
  py::list list;
  for (const SizeExpr &size : sizes)
    list.append(fromSize(size));
  return list;
}

/// An argument of an ATen call from Python: None, bool, int, float, str,
/// ValueId, SizeExpr, or a list of these.
static Argument toArgument(py::handle object) {
  if (object.is_none())
    return {};
  if (py::isinstance<ValueId>(object))
    return object.cast<ValueId>();
  if (py::isinstance<SizeExpr>(object))
    return object.cast<SizeExpr>();
  // bool is a subclass of int.
  if (py::isinstance<py::bool_>(object))
    return object.cast<bool>();
  if (py::isinstance<py::int_>(object))
    return object.cast<int64_t>();
  if (py::isinstance<py::float_>(object))
    return object.cast<double>();
  if (py::isinstance<py::str>(object))
    return object.cast<std::string>();
  if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) {
    Argument::List list;
    for (py::handle item : object)
      list.push_back(toArgument(item));
    return list;
  }
  throw UnsupportedOp("argument of type " +
                      std::string(py::str(py::type::of(object))));
}

static c10::ScalarType toScalarType(const py::object &dtype) {
  TORCH_CHECK_TYPE(THPDtype_Check(dtype.ptr()), "expected a torch.dtype");
  return reinterpret_cast<THPDtype *>(dtype.ptr())->scalar_type;
}

static py::object fromDtype(HostDtype dtype) {
  return py::reinterpret_borrow<py::object>(
      reinterpret_cast<PyObject *>(torch::getTHPDtype(scalarType(dtype))));
}

/// A hint from Python: {"dim", "scope", "tiles"}, {"dim", "work_div"} or
/// {"named_dims"}.
static Hint toHint(const py::dict &dict) {
  Hint hint;
  for (auto [key, value] : dict) {
    std::string name = py::str(key);
    if (name == "dim")
      hint.dim = value.cast<std::string>();
    else if (name == "scope")
      hint.scope = value.cast<int64_t>();
    else if (name == "tiles")
      hint.tiles = value.cast<int64_t>();
    else if (name == "work_div")
      hint.workDivision = value.cast<int64_t>();
    else if (name == "named_dims")
      hint.namedDims = value.cast<std::vector<std::string>>();
    else
      throw py::value_error("unknown hint '" + name + "'");
  }
  return hint;
}

/// The folder of a dump, which is no option of the compiler's: it does not
/// belong in the cache key.
static constexpr const char *kDumpDirKey = "dump_dir";

/// pybind11 converts whatever has a truth value or an index.
static bool hasKind(const CompileOption &option, const py::handle &value) {
  bool isFlag = py::isinstance<py::bool_>(value);
  switch (option.kind) {
  case CompileOption::Text:
    return py::isinstance<py::str>(value);
  case CompileOption::Flag:
    return isFlag;
  case CompileOption::Number:
    // bool is a subclass of int.
    return py::isinstance<py::int_>(value) && !isFlag;
  }
  return false;
}

static void setOption(CompileOptions &options, const CompileOption &option,
                      const py::handle &value) {
  try {
    if (!hasKind(option, value))
      throw py::cast_error();
    if (option.kind == CompileOption::Text)
      setCompileOption(options, option.name, value.cast<std::string>());
    else
      setCompileOption(options, option.name, value.cast<int64_t>());
  } catch (const py::cast_error &) {
    // Of another kind, or a number beyond 64 bits.
    throw Error(std::string("option ") + option.name + ": expected " +
                option.expected() + ", found " +
                py::repr(value).cast<std::string>());
  }
}

static CompileOptions toOptions(const py::dict &dict) {
  CompileOptions options;
  try {
    for (auto [key, value] : dict)
      if (std::string name = py::str(key); name != kDumpDirKey)
        setOption(options, findCompileOption(name), value);
  } catch (const Error &error) {
    throw py::value_error(error.what());
  }
  return options;
}

static py::list listOptions() {
  py::list rows;
  for (const CompileOption &option : compileOptions()) {
    py::dict row;
    row["name"] = option.name;
    row["default"] = option.kind == CompileOption::Flag
                         ? py::object(py::bool_(option.byDefault))
                     : option.kind == CompileOption::Text
                         ? py::object(py::str(""))
                         : py::object(py::int_(option.byDefault));
    row["lowest"] = option.lowest;
    row["highest"] = option.highest;
    row["help"] = option.help;
    rows.append(row);
  }
  return rows;
}

/// Compiling, and the options of it.
static void initOptionBindings(py::module &m) {
  m.def(
      "get_cache_key",
      [](const GraphBuilder &builder, const py::dict &options) {
        return getCacheKey(builder, toOptions(options));
      },
      py::arg("builder"), py::arg("options"));
  m.def(
      "compile_graph",
      [](const GraphBuilder &builder, const py::dict &dict, std::string key) {
        CompileOptions options = toOptions(dict);
        std::string dumpDir;
        if (dict.contains(kDumpDirKey))
          dumpDir = dict[kDumpDirKey].cast<std::string>();
        py::gil_scoped_release release;
        return std::make_shared<BoundGraph>(
            compile(builder, options, dumpDir, std::move(key)));
      },
      py::arg("builder"), py::arg("options"), py::arg("key") = "",
      "Compiles an imported graph. `key` is what get_cache_key() says of both, "
      "if the caller has it.");
  m.def("compile_options", &listOptions, "The table of options, a dict each.");
  m.def(
      "check_compile_options", [](const py::dict &dict) { toOptions(dict); },
      py::arg("options"), "Raises ValueError for one that is wrong.");
}

static py::dict toDict(const runtime::KernelReport &kernel) {
  py::dict dict;
  dict["name"] = kernel.name;
  dict["location"] = kernel.location;
  dict["num_cores"] = kernel.numCores;
  dict["predicted_seconds"] = kernel.predictedSeconds;
  dict["interval_seconds"] =
      std::make_pair(kernel.lowSeconds, kernel.highSeconds);
  dict["device_bytes_read"] = kernel.deviceBytesRead;
  dict["device_bytes_written"] = kernel.deviceBytesWritten;
  dict["device_bytes_demanded"] = kernel.deviceBytesDemanded;
  dict["lx_bytes_read"] = kernel.lxBytesRead;
  dict["lx_bytes_written"] = kernel.lxBytesWritten;
  dict["flops"] = kernel.flops();
  dict["sfu_element_ops"] = kernel.sfuElementOps;
  dict["pt_macs"] = kernel.ptMacs;
  dict["bottleneck"] = kernel.bottleneck;
  return dict;
}

/// Building a graph call by call.
static void initSizeBindings(py::module &m) {
  py::class_<SizeExpr>(m, "SizeExpr",
                       "A size that depends on symbols of the graph.")
      .def(py::init<int64_t>(), py::arg("number"))
      .def_static("symbol", &SizeExpr::symbol, py::arg("number"))
      .def("__add__",
           [](const SizeExpr &a, const py::object &b) { return a + toSize(b); })
      .def("__radd__",
           [](const SizeExpr &a, const py::object &b) { return toSize(b) + a; })
      .def("__mul__",
           [](const SizeExpr &a, const py::object &b) { return a * toSize(b); })
      .def("__rmul__",
           [](const SizeExpr &a, const py::object &b) { return toSize(b) * a; })
      .def("__sub__",
           [](const SizeExpr &a, const py::object &b) { return a - toSize(b); })
      .def("__rsub__",
           [](const SizeExpr &a, const py::object &b) { return toSize(b) - a; })
      .def("__neg__", [](const SizeExpr &a) { return SizeExpr(0) - a; })
      .def("at", &SizeExpr::at, py::arg("sizes"),
           "The value where the symbols have these sizes.")
      .def("__eq__",
           [](const SizeExpr &a, const py::object &b) {
             return py::isinstance<SizeExpr>(b) && a == b.cast<SizeExpr>();
           })
      .def("__hash__",
           [](const SizeExpr &a) { return py::hash(py::str(a.str())); })
      .def("__repr__", &SizeExpr::str);
}

static void initBuilderBindings(py::module &m) {
  py::class_<ValueId>(m, "ValueId", "A tensor of a graph under construction.")
      .def(py::init([](int id) { return ValueId{id}; }), py::arg("id"))
      .def_readonly("id", &ValueId::id);
  py::class_<OutputInfo>(
      m, "OutputInfo",
      "How a result is made: sizes, strides and offset on output root `root`, "
      "or on argument -1 - root.")
      .def_readonly("root", &OutputInfo::root)
      .def_property_readonly(
          "sizes", [](const OutputInfo &info) { return fromSizes(info.sizes); })
      .def_property_readonly(
          "strides",
          [](const OutputInfo &info) { return fromSizes(info.strides); })
      .def_property_readonly("offset", [](const OutputInfo &info) {
        return fromSize(info.offset);
      });

  py::class_<GraphBuilder>(m, "GraphBuilder",
                           "Imports an ATen graph call by call.")
      .def(py::init<>())
      .def(
          "add_symbol",
          [](GraphBuilder &self, const std::string &name, int64_t least,
             int64_t most, int64_t hint, int64_t step) {
            return self.addSymbol(name, {least, most, step}, hint);
          },
          py::arg("name"), py::arg("least"), py::arg("most"), py::arg("hint"),
          py::arg("step") = 1,
          "Adds a size that is known when the program runs, a multiple of "
          "`step`, before arguments; `hint` is what it is in their layouts. "
          "Returns its number.")
      .def(
          "add_argument",
          [](GraphBuilder &self, const std::string &name,
             const py::object &dtype, const py::sequence &sizes,
             const py::sequence &strides, const TensorLayout &layout,
             const PyRoom &room) {
            return self.addArgument(name, hostDtype(toScalarType(dtype)),
                                    toSizes(sizes), toSizes(strides), layout,
                                    toRoom(room));
          },
          py::arg("name"), py::arg("dtype"), py::arg("sizes"),
          py::arg("strides"), py::arg("layout"), py::arg("room") = py::none())
      .def(
          "view",
          [](GraphBuilder &self, int value, const py::sequence &sizes,
             const py::sequence &strides, const py::object &offset,
             const PyLocation &location) {
            return self.view(value, toSizes(sizes), toSizes(strides),
                             toSize(offset), toLocation(location));
          },
          py::arg("value"), py::arg("sizes"), py::arg("strides"),
          py::arg("offset"), py::arg("location"))
      .def(
          "op",
          [](GraphBuilder &self, const std::string &name, const py::list &args,
             const py::dict &kwargs, const py::list &results,
             const PyLocation &location, const std::vector<py::dict> &hints) {
            Arguments arguments;
            for (py::handle argument : args)
              arguments.push_back(toArgument(argument));
            KeywordArguments keywords;
            for (auto [key, value] : kwargs)
              keywords[py::str(key)] = toArgument(value);
            std::vector<std::optional<ValueMeta>> metas;
            for (py::handle result : results) {
              if (result.is_none()) {
                metas.emplace_back();
                continue;
              }
              auto [dtype, sizes, strides] = result.cast<
                  std::tuple<py::object, py::sequence, py::sequence>>();
              metas.push_back(ValueMeta{hostDtype(toScalarType(dtype)),
                                        toSizes(sizes), toSizes(strides)});
            }
            std::vector<Hint> given;
            for (const py::dict &hint : hints)
              given.push_back(toHint(hint));
            return self.op(name, arguments, keywords, metas,
                           toLocation(location), given);
          },
          py::arg("name"), py::arg("args"), py::arg("kwargs"),
          py::arg("results"), py::arg("location"),
          py::arg("hints") = std::vector<py::dict>())
      .def("set_dim_names", &GraphBuilder::setDimNames, py::arg("argument"),
           py::arg("names"),
           "Names and sizes of the parts of each dimension of an argument.")
      .def(
          "mutate",
          [](GraphBuilder &self, int target, int value,
             const PyLocation &location) {
            self.mutate(target, value, toLocation(location));
          },
          py::arg("target"), py::arg("value"), py::arg("location"))
      .def("drop_arguments", &GraphBuilder::dropArguments, py::arg("first"),
           "Forgets later arguments and all values computed from them.")
      .def("set_outputs", &GraphBuilder::setOutputs, py::arg("values"))
      .def("print", &GraphBuilder::print, py::arg("locations") = false);
}

/// (dtype, sizes, strides, layout) of the home of each input.
static py::list listInputs(const BoundGraph &graph) {
  py::list inputs;
  for (size_t i = 0; i < graph.graph.argumentNames.size(); ++i) {
    const runtime::ArgumentInfo &argument = graph.graph.program->arguments()[i];
    inputs.append(py::make_tuple(fromDtype(argument.dtype), argument.shape,
                                 argument.strides, *argument.layout));
  }
  return inputs;
}

static bool inputsStayInStorages(const BoundGraph &self,
                                 const std::vector<int64_t> &shifts) {
  const std::vector<runtime::ArgumentInfo> &arguments =
      self.graph.program->arguments();
  TORCH_CHECK_VALUE(shifts.size() == self.graph.argumentNames.size(),
                    "expected one shift per input, found ", shifts.size(),
                    " for ", self.graph.argumentNames.size());
  for (size_t i = 0; i < shifts.size(); ++i)
    if (shifts[i] != 0 &&
        !staysInStorage(arguments[i], shifts[i], /*sizes=*/{}))
      return false;
  return true;
}

static void initProgramBindings(py::module &m) {
  py::class_<BoundGraph, std::shared_ptr<BoundGraph>>(
      m, "CompiledGraph", "A program and how to call it.")
      .def_property_readonly(
          "argument_names",
          [](const BoundGraph &self) { return self.graph.argumentNames; })
      .def_property_readonly(
          "inputs", &listInputs,
          "(dtype, sizes, strides, layout) of the home of each input.")
      .def_property_readonly(
          "outputs",
          [](const BoundGraph &self) {
            py::list outputs;
            for (const OutputRoot &root : self.graph.outputs)
              outputs.append(py::make_tuple(fromDtype(root.dtype), root.sizes,
                                            root.strides, root.layout));
            return outputs;
          },
          "(dtype, sizes, strides, layout) of each output to allocate.")
      .def_property_readonly(
          "pool_bytes",
          [](const BoundGraph &self) { return self.graph.poolBytes; })
      .def_property_readonly(
          "cache_key",
          [](const BoundGraph &self) { return self.graph.cacheKey; })
      .def_property_readonly(
          "pass_seconds",
          [](const BoundGraph &self) { return self.graph.passSeconds; })
      .def_property_readonly(
          "warnings",
          [](const BoundGraph &self) { return self.graph.warnings; })
      .def("serialize",
           [](const BoundGraph &self) {
             return py::bytes(self.graph.serialize());
           })
      .def_static(
          "deserialize",
          [](const std::string &bytes) {
            py::gil_scoped_release release;
            return std::make_shared<BoundGraph>(
                CompiledGraph::deserialize(bytes));
          },
          py::arg("data"))
      .def("print_ktir",
           [](const BoundGraph &self) { return self.graph.printKTIR(); })
      .def_property_readonly(
          "num_sizes",
          [](const BoundGraph &self) { return self.graph.numSizes; },
          "How many sizes run() takes: the graph's symbols.")
      .def_property_readonly(
          "sizes_apart",
          [](const BoundGraph &self) { return self.graph.sizesApart; },
          "The number of a symbol, and a size of it, if what is up to that is "
          "better off in another program than what is beyond; or None.")
      .def(
          "run",
          [](BoundGraph &self, const std::vector<at::Tensor> &inputs,
             const std::vector<at::Tensor> &outputs,
             const std::vector<int64_t> &shifts,
             const std::vector<int64_t> &sizes,
             const std::vector<std::pair<size_t, at::Tensor>> &grown) {
            py::gil_scoped_release release;
            self.run(inputs, outputs, shifts, sizes, grown);
          },
          py::arg("inputs"), py::arg("outputs"),
          py::arg("shifts") = std::vector<int64_t>(),
          py::arg("sizes") = std::vector<int64_t>(),
          py::arg("grown") = std::vector<std::pair<size_t, at::Tensor>>(),
          "Runs on the storages under the tensors, one per argument. Shifts, "
          "as shift_views() has them, move the inputs' addresses. Sizes are "
          "those of the graph's symbols. Inputs that have grown, by their "
          "numbers with what they have grown from, are stored in place though "
          "they share its memory.")
      .def("stays_in_storages", &inputsStayInStorages, py::arg("shifts"),
           "Whether all that the program accesses of its inputs lies in their "
           "storages when each is that many host elements further on than "
           "compiled, as shift_views() has them.")
      .def(
          "report",
          [](const BoundGraph &self) {
            py::list kernels;
            for (const runtime::KernelReport &kernel : self.report().kernels)
              kernels.append(toDict(kernel));
            return kernels;
          },
          "One dict per kernel of the first run; empty before it.")
      .def_property_readonly("predicted_seconds", [](const BoundGraph &self) {
        return self.report().predictedSeconds;
      });
}

static void initSizedBindings(py::module &m) {
  using Input = std::tuple<int, py::sequence, py::sequence, py::object, bool>;
  py::class_<SizedProgram>(
      m, "SizedProgram",
      "A compiled graph with symbols and how it is called: per input its "
      "argument, sizes, strides and offset, and whether it may lie further on "
      "by what shift_views() says; per result its OutputInfo.\n"
      "growing: arguments that are grown inputs, and the dimensions along "
      "which they are.\n"
      "grown: output roots that a next call may grow, and the dimensions.\n"
      "fresh: arguments that must not have grown, and the dimensions.\n"
      "roomy: arguments that must have the program's room.")
      .def(py::init([](std::shared_ptr<BoundGraph> graph,
                       const std::vector<Input> &inputs,
                       std::vector<OutputInfo> results,
                       const PyEntries &growing, const PyEntries &grown,
                       const PyEntries &fresh, std::vector<size_t> roomy) {
             Growth growth{toEntries(growing), toEntries(grown),
                           toEntries(fresh), std::move(roomy)};
             std::vector<SizedInput> given;
             for (const auto &[argument, sizes, strides, offset, mayMove] :
                  inputs)
               given.push_back({argument, toSizes(sizes), toSizes(strides),
                                toSize(offset), mayMove});
             return std::make_unique<SizedProgram>(
                 std::move(graph), std::move(given), std::move(results),
                 std::move(growth));
           }),
           py::arg("graph"), py::arg("inputs"), py::arg("results"),
           py::arg("growing"), py::arg("grown"), py::arg("fresh"),
           py::arg("roomy"))
      .def_property_readonly(
          "graph", [](const SizedProgram &self) { return self.graph; })
      .def(
          "run",
          [](const SizedProgram &self, const std::vector<at::Tensor> &inputs,
             const std::vector<int64_t> &sizes) {
            py::gil_scoped_release release;
            return self.run(inputs, sizes);
          },
          py::arg("inputs"), py::arg("sizes"),
          "The results where the symbols have these sizes, or None if the "
          "program is not for these inputs.");
}

static void initTraceBindings(py::module &m) {
  py::class_<Trace>(m, "Trace",
                    "Records what runs on the devices until stop().")
      .def(py::init<>())
      .def(
          "stop",
          [](Trace &self) {
            py::list kernels;
            for (const RunRecord &run : self.stop())
              for (const runtime::KernelReport &kernel : run.report->kernels) {
                py::dict dict = toDict(kernel);
                dict["device"] = static_cast<int>(run.launch.device);
                dict["stream"] = run.launch.stream;
                dict["start_seconds"] = run.start + kernel.startSeconds;
                kernels.append(dict);
              }
            return kernels;
          },
          "Waits for all work; one dict per run of a kernel, by device, stream "
          "and start in the device's clock.")
      .def(
          "take_transfers",
          [](Trace &self) {
            py::list transfers;
            for (const TransferRecord &record : self.takeTransfers()) {
              py::dict dict;
              dict["kind"] = toString(record.kind);
              dict["device"] = static_cast<int>(record.launch.device);
              dict["stream"] = record.launch.stream;
              dict["bytes"] = record.bytes;
              dict["start_seconds"] = record.start;
              dict["predicted_seconds"] = record.seconds;
              dict["host_seconds"] = record.hostTime;
              transfers.append(dict);
            }
            return transfers;
          },
          "After stop(): one dict per transfer outside of programs, by device "
          "and start in the device's clock.");
}

void initCompilerBindings(py::module &m) {
  py::register_exception<UnsupportedOp>(m, "UnsupportedOp",
                                        m.attr("SpyreError").ptr());
  py::register_exception<RefusedPlan>(m, "RefusedPlan",
                                      m.attr("SpyreError").ptr());
  initSizeBindings(m);
  initBuilderBindings(m);
  initProgramBindings(m);
  initSizedBindings(m);
  initTraceBindings(m);
  initOptionBindings(m);
  m.def("list_supported_ops", &listSupportedOps,
        "ATen overloads that the compiler's table has a row for.");
}
