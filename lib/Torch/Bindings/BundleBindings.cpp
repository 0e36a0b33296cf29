// SPDX-License-Identifier: Apache-2.0
// SuperDSC bundles in torch_spyre._C: writing, running and rewriting them.
#include "../Launch/BoundGraph.h"
#include "Bindings.h"

#include "Spyre/Compiler/BundleGraph.h"
#include "Spyre/Target/SpyreCode/SpyreCode.h"
#include "Spyre/Target/SuperDSC/Writer/ProgramPrinter.h"

#include <algorithm>

namespace py = pybind11;

namespace spyre::pytorch {

namespace {

/// More than any device has, and few enough to list.
constexpr int64_t kMostCores = 1 << 12;

/// A member of a dict, by the name that it has in superdsc/Model/Model.h.
template <typename T>
T get(const py::dict &dict, const char *name) {
  if (!dict.contains(name))
    throw py::key_error(name);
  return dict[name].cast<T>();
}

superdsc::Dim toDim(const py::dict &dict) {
  superdsc::Dim dim;
  dim.name = get<std::string>(dict, "name");
  dim.size = get<int64_t>(dict, "size");
  dim.slices = get<int64_t>(dict, "slices");
  dim.masked = get<int64_t>(dict, "masked");
  TORCH_CHECK_VALUE(dim.slices > 0 && dim.size % dim.slices == 0, "dimension ",
                    dim.name, " of size ", dim.size,
                    " is not evenly divisible into ", dim.slices, " slices");
  return dim;
}

superdsc::Label toLabel(const py::dict &dict) {
  superdsc::Label label;
  label.name = get<std::string>(dict, "name");
  label.order = get<std::vector<unsigned>>(dict, "order");
  for (auto [dim, size] :
       get<std::vector<std::pair<unsigned, int64_t>>>(dict, "sticks"))
    label.sticks.push_back({dim, size});
  return label;
}

superdsc::Tensor toTensor(const py::dict &dict) {
  superdsc::Tensor tensor;
  tensor.label = get<unsigned>(dict, "label");
  tensor.format = get<DataFormat>(dict, "format");
  tensor.wordLength = storageBytes(tensor.format);
  tensor.inLX = get<bool>(dict, "in_lx");
  tensor.order = get<std::vector<unsigned>>(dict, "order");
  for (int scale : get<std::vector<int>>(dict, "scale")) {
    TORCH_CHECK_VALUE(scale == 1 || scale == -1 || scale == -2,
                      "scale: expected 1, -1 or -2, found ", scale);
    tensor.scale.push_back(static_cast<superdsc::Scale>(scale));
  }
  tensor.gap = get<std::vector<int64_t>>(dict, "gap");
  tensor.maxSize.assign(tensor.order.size(), -1);
  tensor.symbolic = get<bool>(dict, "symbolic");
  tensor.addresses = get<std::vector<int64_t>>(dict, "addresses");
  return tensor;
}

/// Throws a ValueError unless each number is one of `count` things.
void checkNumbers(const std::vector<unsigned> &numbers, size_t count,
                  const char *name) {
  for (unsigned number : numbers)
    TORCH_CHECK_VALUE(number < count, name, ": expected numbers below ", count,
                      ", found ", number);
}

/// Throws a ValueError for lists that do not fit each other, which the writer
/// relies on.
void checkLists(const superdsc::Sdsc &sdsc) {
  size_t numDims = sdsc.dims.size();
  std::vector<unsigned> sorted = sdsc.coreOrder;
  std::sort(sorted.begin(), sorted.end());
  checkNumbers(sorted, numDims, "core_order");
  TORCH_CHECK_VALUE(sorted.size() == numDims &&
                        std::adjacent_find(sorted.begin(), sorted.end()) ==
                            sorted.end(),
                    "core_order: expected each of ", numDims, " dims once");
  for (const superdsc::Label &label : sdsc.labels) {
    checkNumbers(label.order, numDims, "order of a label");
    for (const superdsc::StickDim &stick : label.sticks)
      checkNumbers({stick.dim}, numDims, "sticks");
  }
  size_t cores = 1;
  for (const superdsc::Dim &dim : sdsc.dims) {
    TORCH_CHECK_VALUE(dim.slices <= kMostCores, "slices: expected at most ",
                      kMostCores, ", found ", dim.slices);
    cores = std::min<size_t>(cores * dim.slices, kMostCores + 1);
  }
  for (const superdsc::Tensor &tensor : sdsc.tensors) {
    checkNumbers({tensor.label}, sdsc.labels.size(), "label");
    checkNumbers(tensor.order, numDims, "order of a tensor");
    TORCH_CHECK_VALUE(tensor.scale.size() == tensor.order.size() &&
                          tensor.gap.size() == tensor.order.size(),
                      "order, scale and gap: expected equally many");
    TORCH_CHECK_VALUE(tensor.addresses.size() == cores,
                      "addresses: expected one for each of ", cores,
                      " cores, found ", tensor.addresses.size());
  }
  checkNumbers(sdsc.inputs, sdsc.tensors.size(), "inputs");
  checkNumbers(sdsc.outputs, sdsc.tensors.size(), "outputs");
  TORCH_CHECK_VALUE(sdsc.maskConstant >= -1 &&
                        sdsc.maskConstant <
                            static_cast<int64_t>(sdsc.constants.size()),
                    "mask_constant: expected -1 or a number below ",
                    sdsc.constants.size(), ", found ", sdsc.maskConstant);
}

superdsc::Sdsc toSdsc(const py::dict &dict) {
  superdsc::Sdsc sdsc;
  sdsc.index = get<int64_t>(dict, "index");
  sdsc.op = get<std::string>(dict, "op");
  sdsc.nonstick = get<bool>(dict, "nonstick");
  for (const py::dict &dim : get<std::vector<py::dict>>(dict, "dims"))
    sdsc.dims.push_back(toDim(dim));
  sdsc.coreOrder = get<std::vector<unsigned>>(dict, "core_order");
  for (const py::dict &label : get<std::vector<py::dict>>(dict, "labels"))
    sdsc.labels.push_back(toLabel(label));
  for (const py::dict &tensor : get<std::vector<py::dict>>(dict, "tensors"))
    sdsc.tensors.push_back(toTensor(tensor));
  for (auto [name, format, bits] :
       get<std::vector<std::tuple<std::string, DataFormat, uint32_t>>>(
           dict, "constants"))
    sdsc.constants.push_back({name, format, bits});
  sdsc.maskConstant = get<int64_t>(dict, "mask_constant");
  sdsc.unit = get<std::string>(dict, "unit");
  sdsc.format = get<DataFormat>(dict, "format");
  sdsc.inputs = get<std::vector<unsigned>>(dict, "inputs");
  sdsc.outputs = get<std::vector<unsigned>>(dict, "outputs");
  checkLists(sdsc);
  return sdsc;
}

/// The address of an operand inside of so many loops.
superdsc::Address toAddress(const py::dict &dict, size_t depth) {
  superdsc::Address address;
  int base = get<int>(dict, "base");
  TORCH_CHECK_VALUE(base >= superdsc::Address::None &&
                        base <= superdsc::Address::Argument,
                    "base: expected 0, 1 or 2, found ", base);
  address.base = static_cast<superdsc::Address::Base>(base);
  address.argument = get<int64_t>(dict, "argument");
  address.offset = get<int64_t>(dict, "offset");
  address.strides = get<std::vector<int64_t>>(dict, "strides");
  TORCH_CHECK_VALUE(address.strides.size() == depth, "strides: expected ",
                    depth, ", one per loop, found ", address.strides.size());
  return address;
}

std::vector<superdsc::Step> toSteps(const py::dict &dict, const char *name,
                                    size_t depth) {
  std::vector<superdsc::Step> steps;
  for (const py::dict &own : get<std::vector<py::dict>>(dict, name)) {
    superdsc::Step &step = steps.emplace_back();
    if (own.contains("body")) {
      step.count = get<int64_t>(own, "count");
      step.body = toSteps(own, "body", depth + 1);
      continue;
    }
    step.file = get<std::string>(own, "file");
    step.symbols = get<std::vector<int64_t>>(own, "symbols");
    for (const py::dict &operand : get<std::vector<py::dict>>(own, "operands"))
      step.operands.push_back(toAddress(operand, depth));
    TORCH_CHECK_VALUE(step.symbols.size() == step.operands.size(),
                      "symbols and operands: expected equally many");
  }
  return steps;
}

superdsc::BundleProgram toProgram(const py::dict &bundle,
                                  const py::dict &files) {
  superdsc::LoadedBundle loaded;
  loaded.folder = ".";
  loaded.bundle.hasPoolParameter = get<bool>(bundle, "has_pool_parameter");
  loaded.bundle.arguments = get<std::vector<int64_t>>(bundle, "arguments");
  loaded.bundle.segments =
      get<std::optional<std::vector<int64_t>>>(bundle, "segments");
  loaded.bundle.steps = toSteps(bundle, "steps", 0);
  for (auto [name, file] : files)
    loaded.files.emplace(py::str(name), toSdsc(file.cast<py::dict>()));
  superdsc::BundleProgram program;
  program.bundles.push_back(std::move(loaded));
  return program;
}

} // namespace

using Files = std::vector<std::pair<std::string, std::string>>;

static py::dict toDict(const Files &files) {
  py::dict result;
  for (const auto &[name, content] : files)
    result[py::str(name)] = py::bytes(content);
  return result;
}

static std::shared_ptr<BoundGraph> loadBundle(const std::string &folder) {
  return std::make_shared<BoundGraph>(loadBundles(folder, BundleOptions()),
                                      BoundGraph::Match::DeviceLayout);
}

/// Bundles do not say which dimensions of arguments grow together.
static Files writeCode(const std::string &folder) {
  CompiledGraph graph = loadBundles(folder, BundleOptions());
  runtime::TileGroups groups;
  for (const runtime::ArgumentInfo &argument : graph.program->arguments())
    groups.emplace_back(argument.shape.size(), -1);
  return spyrecode::writeSpyreCode(graph.ktirBytecode, groups, {});
}

void initBundleBindings(py::module &m) {
  m.def(
      "write_bundle",
      [](const py::dict &bundle, const py::dict &files) {
        return toDict(superdsc::printProgram(toProgram(bundle, files)));
      },
      py::arg("bundle"), py::arg("files"),
      "Names and contents of bundle.mlir and of the files that it executes, "
      "which are dicts with the members of the classes in superdsc's Model.h.");
  m.def(
      "rewrite_superdsc",
      [](const std::string &folder) { return toDict(rewriteBundles(folder)); },
      py::arg("folder"),
      "What the bundles in a folder become when they are read and written.");
  m.def("load_bundles", &loadBundle, py::arg("folder"),
        py::call_guard<py::gil_scoped_release>(),
        "The program of the SuperDSC bundles in a folder. All its arguments "
        "are inputs of run(), those that it writes too. Without manifest.json, "
        "and unless a bundle says it, segment i is argument i; device sizes "
        "and formats have to agree, host shapes are not known.");
  m.def(
      "write_spyrecode",
      [](const std::string &folder) { return toDict(writeCode(folder)); },
      py::arg("folder"),
      "Files of SpyreCode that do what the bundles in a folder do.");
}

} // namespace spyre::pytorch
