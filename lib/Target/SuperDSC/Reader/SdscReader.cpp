// SPDX-License-Identifier: Apache-2.0
//===- SdscReader.cpp - sdsc_<i>.json as the model --------------*- C++ -*-===//
//
// Takes each fact from one place. Everything that the file says besides is
// held against what the writer makes of the facts (compare), so the reader
// knows neither the folds nor the other repetitions.
//
// Longer than 600 lines: a function per part of one kind of file.
//
//===----------------------------------------------------------------------===//

#include "Spyre/Target/SuperDSC/Reader/SdscReader.h"
#include "NodeReader.h"
#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Target/SuperDSC/Model/DeviceOps.h"
#include "Spyre/Target/SuperDSC/Model/Geometry.h"
#include "Spyre/Target/SuperDSC/Writer/SdscWriter.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <charconv>
#include <set>

using namespace spyre::superdsc;

namespace {

/// Sizes above this overflow nothing in products of two.
constexpr int64_t kMaxSize = int64_t(1) << 40;
constexpr size_t kMaxDims = 16, kMaxTensors = 64, kMaxConstants = 64;

class Reader : private NodeReader {
public:
  using NodeReader::NodeReader;

  std::optional<Sdsc> read(const Json &json);

private:
  std::optional<unsigned> dimension(const Node &node) {
    std::optional<std::string> name = string(node);
    if (!name)
      return std::nullopt;
    return dimensionNamed(*name, node.path);
  }
  std::optional<unsigned> dimensionNamed(const std::string &name,
                                         const std::string &path) {
    if (std::optional<unsigned> dim = findDim(sdsc, name))
      return dim;
    // SDSC-DIM-C1
    violate(path, "SDSC-DIM-C1", "'" + name + "' is not a dimension of N_");
    return std::nullopt;
  }

  std::vector<unsigned> dimensions(const Node &list) {
    std::vector<unsigned> result;
    if (!isArray(list, kMaxDims))
      return result;
    for (size_t i = 0; i < list.value->size(); ++i)
      if (auto dim = dimension(element(list, i)))
        result.push_back(*dim);
    return result;
  }

  void readTop(const Json &json);
  void readDims(const Node &body, const Node &dsc);
  void readSymbols(const Node &body, const Node &dsc);
  void readCoreOrder(const Node &body);
  void readMasks(const Node &dsc);
  void readLabels(const Node &node);
  void readTensors(const Node &dsc);
  void readAllocation(const Node &node, size_t number);
  void readAddresses(const Node &node, Tensor &tensor);
  void readGaps(const Node &node, Tensor &tensor);
  void readConstants(const Node &node);
  void readCompute(const Node &dsc);
  std::vector<unsigned> readReferences(const Node &list);

  Sdsc sdsc;
  std::string opFunc;
  Node body, dsc;
};

void Reader::readTop(const Json &json) {
  // SDSC-FORM-C1
  if (!json.is_object() || json.size() != 1) {
    violate("", "SDSC-FORM-C1",
            "expected an object with one key, <index>_<opfunc>, found " +
                (json.is_object() ? std::to_string(json.size()) + " keys"
                                  : std::string(typeName(json))));
    return;
  }
  const std::string &key = json.begin().key();
  body = {&json.begin().value(), appendPath("", key)};
  size_t digits = 0;
  while (digits < key.size() && key[digits] >= '0' && key[digits] <= '9')
    ++digits;
  bool isNumbered = digits > 0 && digits < key.size() && key[digits] == '_';
  sdsc.flavor = isNumbered ? Flavor::AsBuilt : Flavor::Spec;
  opFunc = isNumbered ? key.substr(digits + 1) : key;
  if (isNumbered) {
    auto [stop, error] =
        std::from_chars(key.data(), key.data() + digits, sdsc.index);
    if (error != std::errc() || std::to_string(sdsc.index).size() != digits)
      violate("", "SDSC-FORM-C1",
              "'" + key + "' does not begin with a decimal index");
  }
  // SDSC-OP-C1
  if (const DeviceOp *op = findDeviceOp(opFunc, sdsc.nonstick))
    sdsc.op = op->name;
  else
    violate(body.path, "SDSC-OP-C1",
            "'" + opFunc + "' is not the name of a device operation");
  Node list = member(body, "dscs_");
  if (!isArray(list, 1))
    return;
  if (list.value->size() != 1 || !(*list.value)[0].is_object() ||
      (*list.value)[0].size() != 1 || !(*list.value)[0].contains(opFunc)) {
    violate(list.path, "SDSC-FORM-C1",
            "expected one entry, an object with the one key '" + opFunc + "'");
    return;
  }
  dsc = member(element(list, 0), opFunc.c_str());
}

void Reader::readDims(const Node &body, const Node &dsc) {
  Node sizes = member(dsc, "N_");
  Node slices = member(body, "numWkSlicesPerDim_");
  if (!isObject(sizes, kMaxDims + 1) || !isObject(slices, kMaxDims))
    return;
  static const std::set<std::string> kKnown = {"mb", "x",  "y",  "i",  "j",
                                               "ki", "kj", "in", "out"};
  for (auto &[key, value] : sizes.value->items()) {
    if (key == "name_")
      continue;
    Node node{&value, appendPath(sizes.path, key)};
    // SDSC-DIM-C1
    std::string name = key.substr(0, key.empty() ? 0 : key.size() - 1);
    if (key.empty() || key.back() != '_' || !kKnown.count(name)) {
      violate(node.path, "SDSC-DIM-C1",
              "'" + key + "' is not a dimension's label with '_' appended");
      continue;
    }
    std::optional<int64_t> size = integer(node, 1, kMaxSize);
    std::optional<int64_t> split =
        integer(member(slices, name.c_str()), 1, kMaxSize);
    if (!size || !split)
      continue;
    // SDSC-DIM-C2
    if (*size % *split != 0)
      violate(appendPath(slices.path, name), "SDSC-DIM-C2",
              std::to_string(*split) + " slices do not divide " +
                  std::to_string(*size) + " iterations of '" + name + "'");
    sdsc.dims.push_back({name, *size, *split, 0});
  }
  if (sdsc.dims.empty())
    violate(sizes.path, "SDSC-DIM-C1", "there are no dimensions");
  int64_t cores = 1, most = spyre::DeviceSpec::kMaxCores;
  for (const Dim &dim : sdsc.dims)
    cores = std::min(cores * std::min<int64_t>(dim.slices, 2 * most), 2 * most);
  // SDSC-DIM-C2
  if (cores > most)
    violate(slices.path, "SDSC-DIM-C2",
            "the slices need more than " + std::to_string(most) + " cores");
}

void Reader::readCoreOrder(const Node &body) {
  Node table = member(body, "coreIdToWkSlice_");
  Node first = member(table, "0");
  if (!isObject(first, kMaxDims))
    return;
  for (auto &[key, value] : first.value->items())
    if (auto dim = dimensionNamed(key, first.path))
      sdsc.coreOrder.push_back(*dim);
  for (unsigned dim = 0; dim < sdsc.dims.size(); ++dim)
    if (std::find(sdsc.coreOrder.begin(), sdsc.coreOrder.end(), dim) ==
        sdsc.coreOrder.end()) {
      violate(first.path, "SDSC-DIM-C3",
              "the slice of '" + sdsc.dims[dim].name + "' is missing");
      sdsc.coreOrder.push_back(dim);
    }
  // Keys need not stand in the order in which cores walk: the values decide.
  auto valueOf = [&](int64_t core, unsigned dim) -> int64_t {
    auto entry = table.value->find(std::to_string(core));
    if (entry == table.value->end() || !entry->is_object())
      return -1;
    auto slice = entry->find(sdsc.dims[dim].name);
    return slice == entry->end() || !slice->is_number_integer()
               ? -1
               : slice->get<int64_t>();
  };
  auto fits = [&] {
    for (int64_t core = 0; core < sdsc.numCores(); ++core)
      for (unsigned dim = 0; dim < sdsc.dims.size(); ++dim)
        if (valueOf(core, dim) != sdsc.sliceOf(core, dim))
          return false;
    return true;
  };
  if (failed || fits())
    return;
  std::vector<unsigned> order = sdsc.coreOrder;
  auto firstStep = [&](unsigned dim) {
    for (int64_t core = 1; core < sdsc.numCores(); ++core)
      if (valueOf(core, dim) == 1)
        return core;
    return sdsc.numCores();
  };
  std::sort(sdsc.coreOrder.begin(), sdsc.coreOrder.end(),
            [&](unsigned a, unsigned b) {
              return std::pair(firstStep(a), a) < std::pair(firstStep(b), b);
            });
  if (!fits())
    sdsc.coreOrder = order;
}

/// The symbols of dimensions: which each has, its name, and of its sizes the
/// step from one to the next. The largest is in N_.
void Reader::readSymbols(const Node &body, const Node &dsc) {
  Node mapping = member(dsc, "dimToSymbolMapping_", false);
  if (!mapping || !isObject(mapping, kMaxDims))
    return;
  sdsc.hasEmptyMapping = mapping.value->empty();
  if (sdsc.hasEmptyMapping)
    return;
  Node names = member(body, "inputSymbolsAndTags_");
  Node stage = member(member(dsc, "dataStageParam_"), "0");
  Node info = member(member(stage, "ss_"), "symbolicDimInfo_");
  for (auto &[key, value] : mapping.value->items()) {
    Node entry{&value, appendPath(mapping.path, key)};
    std::optional<unsigned> dim = dimensionNamed(key, entry.path);
    if (!dim || !isArray(entry, 1))
      continue;
    // SDSC-SYMBOL-C1
    if (entry.value->size() != 1) {
      violate(entry.path, "SDSC-SYMBOL-C1",
              "expected one symbol, found " +
                  std::to_string(entry.value->size()));
      continue;
    }
    DimSymbol symbol;
    auto id = integer(element(entry, 0), -kMaxSize, -1);
    if (!id)
      continue;
    symbol.id = *id;
    auto name = string(member(names, std::to_string(*id).c_str()));
    auto granularity =
        integer(member(member(info, key.c_str()), "granularity_"), 1, kMaxSize);
    if (!name || !granularity)
      continue;
    symbol.name = *name;
    // SDSC-SYMBOL-C1
    if (!isSizeName(symbol.name))
      violate(names.path, "SDSC-SYMBOL-C1",
              "'" + symbol.name.substr(0, 80) + "' is not the name of a size");
    Dim &own = sdsc.dims[*dim];
    // SDSC-SYMBOL-C2
    if (llvm::MulOverflow(*granularity, own.slices, symbol.granularity) ||
        own.size % symbol.granularity != 0)
      violate(appendPath(info.path, key), "SDSC-SYMBOL-C2",
              std::to_string(own.slices) + " slices of multiples of " +
                  std::to_string(*granularity) + " do not divide the " +
                  std::to_string(own.size) + " iterations of '" + key + "'");
    own.symbol = std::move(symbol);
  }
}

void Reader::readMasks(const Node &dsc) {
  bool asBuilt = sdsc.flavor == Flavor::AsBuilt;
  Node masks = member(dsc, asBuilt ? "coordinateMasking_" : "paddingInfo_");
  if (!isObject(masks, kMaxDims))
    return;
  for (auto &[key, value] : masks.value->items()) {
    Node node{&value, appendPath(masks.path, key)};
    std::optional<unsigned> dim = dimensionNamed(key, node.path);
    std::optional<int64_t> valid, padding;
    if (asBuilt) {
      if (!isArray(node, 1) || node.value->size() != 1 ||
          !isArray(element(node, 0), 2) || (*node.value)[0].size() != 2) {
        violate(node.path, "SDSC-FORM-C2",
                "expected one pair of valid and padded sizes");
        continue;
      }
      valid = integer(element(element(node, 0), 0), 0, kMaxSize);
      padding = integer(element(element(node, 0), 1), 1, kMaxSize);
    } else {
      padding = integer(node, 1, kMaxSize);
      if (dim && padding)
        valid = sdsc.dims[*dim].size - *padding;
    }
    if (!dim || !valid || !padding)
      continue;
    Dim &masked = sdsc.dims[*dim];
    // SDSC-DIM-C4
    if (*valid < 1 || *valid + *padding != masked.size || masked.slices != 1)
      violate(node.path, "SDSC-DIM-C4",
              "the mask of " + std::to_string(*valid) + " valid and " +
                  std::to_string(*padding) +
                  " padded iterations does not fit "
                  "dimension '" +
                  key + "' of " + std::to_string(masked.size) +
                  " iterations in " + std::to_string(masked.slices) +
                  " slices");
    masked.masked = *padding;
  }
  if (asBuilt) {
    auto constant = integer(member(dsc, "maskingConstId_"), -1, kMaxConstants);
    sdsc.maskConstant = constant.value_or(-1);
  }
}

void Reader::readLabels(const Node &node) {
  if (!isObject(node, kMaxTensors))
    return;
  for (auto &[key, value] : node.value->items()) {
    Node entry{&value, appendPath(node.path, key)};
    Label label;
    label.name = key;
    label.order = dimensions(member(entry, "layoutDimOrder_"));
    std::vector<unsigned> sticks = dimensions(member(entry, "stickDimOrder_"));
    Node sizes = member(entry, "stickSize_");
    if (!isArray(sizes, kMaxDims))
      continue;
    if (sizes.value->size() != sticks.size()) {
      violate(sizes.path, "SDSC-LABEL-C2",
              "expected one size per stick dimension");
      continue;
    }
    for (size_t i = 0; i < sticks.size(); ++i)
      if (auto size = integer(element(sizes, i), 1, 1024))
        label.sticks.push_back({sticks[i], *size});
    // SDSC-LABEL-C1
    static const std::set<std::string> kKnown = {"OUTPUT", "KERNEL", "INPUT",
                                                 "KERNEL_IDX"};
    if (!kKnown.count(key))
      violate(entry.path, "SDSC-LABEL-C1", "'" + key + "' is not a label");
    // SDSC-LABEL-C2
    std::set<unsigned> distinct(label.order.begin(), label.order.end());
    if (distinct.size() != label.order.size() || label.order.empty())
      violate(appendPath(entry.path, "layoutDimOrder_"), "SDSC-LABEL-C2",
              "expected distinct dimensions");
    std::set<unsigned> stickSet(sticks.begin(), sticks.end());
    bool holds = std::includes(distinct.begin(), distinct.end(),
                               stickSet.begin(), stickSet.end());
    if (!holds || stickSet.size() != sticks.size() || sticks.empty())
      violate(appendPath(entry.path, "stickDimOrder_"), "SDSC-LABEL-C2",
              "expected distinct dimensions of layoutDimOrder_");
    sdsc.labels.push_back(std::move(label));
  }
}

void Reader::readAddresses(const Node &node, Tensor &tensor) {
  Node data = member(node, "data_");
  if (!isObject(data, 64))
    return;
  for (int64_t core = 0; core < sdsc.numCores(); ++core) {
    std::string key = "[" + std::to_string(core) +
                      (sdsc.flavor == Flavor::AsBuilt ? ", 0, 0]" : ", 0]");
    auto address = decimal(member(data, key.c_str()));
    if (!address)
      return;
    tensor.addresses.push_back(*address);
  }
}

void Reader::readGaps(const Node &node, Tensor &tensor) {
  tensor.gap.assign(tensor.order.size(), 0);
  if (!node || !isObject(node, kMaxDims))
    return;
  for (auto &[key, value] : node.value->items()) {
    Node entry{&value, appendPath(node.path, key)};
    std::optional<unsigned> dim = dimensionNamed(key, entry.path);
    if (!dim || !isObject(entry, 64))
      continue;
    auto position = std::find(tensor.order.begin(), tensor.order.end(), *dim);
    std::optional<int64_t> gap =
        decimal(member(entry, tensor.inLX ? "0" : "-1"));
    if (!gap)
      continue;
    // SDSC-TENSOR-C4
    if (position == tensor.order.end() || std::abs(*gap) > kMaxSize)
      violate(entry.path, "SDSC-TENSOR-C4",
              "a gap of " + std::to_string(*gap) +
                  " does not fit the tensor's dimensions");
    else
      tensor.gap[position - tensor.order.begin()] = *gap;
  }
}

void Reader::readAllocation(const Node &node, size_t number) {
  Tensor &tensor = sdsc.tensors[number];
  if (auto component = string(member(node, "component_"))) {
    tensor.inLX = *component == "lx";
    if (*component != "lx" && *component != "hbm")
      violate(appendPath(node.path, "component_"), "SDSC-FORM-C2",
              "expected \"hbm\" or \"lx\", found '" + *component + "'");
  }
  if (Node symbolic = member(node, "isStartAddrSymbolic_", false))
    tensor.symbolic = integer(symbolic, 0, 1).value_or(0) == 1;
  tensor.order = dimensions(member(node, "layoutDimOrder_"));
  Node maxSizes = member(node, "maxDimSizes_");
  if (isArray(maxSizes, kMaxDims))
    for (size_t i = 0; i < maxSizes.value->size(); ++i)
      tensor.maxSize.push_back(
          integer(element(maxSizes, i), -1, kMaxSize).value_or(-1));
  if (tensor.maxSize.size() != tensor.order.size()) {
    violate(appendPath(node.path, "maxDimSizes_"), "SDSC-FORM-C4",
            "expected one entry per dimension of layoutDimOrder_");
    tensor.maxSize.assign(tensor.order.size(), -1);
  }
  if (auto kind = string(member(node, "indirectAllocType_"))) {
    if (*kind == "index_tensor")
      tensor.indirection = Indirection::Index;
    else if (*kind == "value_tensor")
      tensor.indirection = Indirection::Value;
    else if (*kind != "no_indirection")
      violate(appendPath(node.path, "indirectAllocType_"), "SDSC-FORM-C2",
              "expected no_indirection, index_tensor or value_tensor, found '" +
                  *kind + "'");
  }
  if (Node related = member(node, "relatedIndirectAccessAlloc_", false))
    if (auto name = string(related)) {
      constexpr std::string_view kPrefix = "allocate-Tensor";
      unsigned index = 0;
      const char *end = name->data() + name->size();
      if (name->compare(0, kPrefix.size(), kPrefix) != 0 ||
          std::from_chars(name->data() + kPrefix.size(), end, index).ec !=
              std::errc() ||
          index >= sdsc.tensors.size())
        violate(related.path, "SDSC-TENSOR-C5",
                "'" + *name + "' is not the name of an allocation");
      else
        tensor.indexTensor = index;
    }
  readAddresses(member(node, "startAddressCoreCorelet_"), tensor);
  readGaps(member(node, "backGapCore_", false), tensor);
}

void Reader::readTensors(const Node &dsc) {
  Node structures = member(dsc, "labeledDs_");
  Node nodes = member(dsc, "scheduleTree_");
  if (!isArray(structures, kMaxTensors) || !isArray(nodes, kMaxTensors))
    return;
  // SDSC-TENSOR-C3
  if (structures.value->size() != nodes.value->size()) {
    violate(nodes.path, "SDSC-TENSOR-C3",
            std::to_string(nodes.value->size()) + " allocations for " +
                std::to_string(structures.value->size()) + " data structures");
    return;
  }
  sdsc.tensors.resize(structures.value->size());
  for (size_t number = 0; number < sdsc.tensors.size(); ++number) {
    Node node = element(structures, number);
    Tensor &tensor = sdsc.tensors[number];
    if (auto name = string(member(node, "dsType_"))) {
      auto label =
          std::find_if(sdsc.labels.begin(), sdsc.labels.end(),
                       [&](const Label &label) { return label.name == *name; });
      // SDSC-TENSOR-C1
      if (label == sdsc.labels.end())
        violate(appendPath(node.path, "dsType_"), "SDSC-TENSOR-C1",
                "'" + *name + "' is not a label of primaryDsInfo_");
      tensor.label = label - sdsc.labels.begin();
    }
    if (auto parsed = format(member(node, "dataFormat_")))
      tensor.format = *parsed;
    tensor.wordLength = integer(member(node, "wordLength"), 1, 8).value_or(1);
    readAllocation(element(nodes, number), number);
    if (failed)
      continue;
    // The scales stand in the label's order.
    const Label &label = sdsc.labels[tensor.label];
    Node scales = member(node, "scale_");
    if (!isArray(scales, kMaxDims))
      continue;
    std::vector<unsigned> own = tensor.order, labels = label.order;
    std::sort(own.begin(), own.end());
    std::sort(labels.begin(), labels.end());
    // SDSC-TENSOR-C1
    if (own != labels || scales.value->size() != label.order.size()) {
      violate(node.path, "SDSC-TENSOR-C1",
              "Tensor" + std::to_string(number) +
                  " does not have the dimensions of label " + label.name);
      continue;
    }
    tensor.scale.resize(tensor.order.size());
    for (size_t i = 0; i < label.order.size(); ++i) {
      Node entry = element(scales, i);
      auto scale = integer(entry, -2, 1);
      bool isStick = std::any_of(
          label.sticks.begin(), label.sticks.end(),
          [&](const StickDim &stick) { return stick.dim == label.order[i]; });
      if (scale && (*scale == 0 || (*scale == -2 && !isStick)))
        violate(entry.path, "SDSC-TENSOR-C1",
                "the scale " + std::to_string(*scale) + " of dimension '" +
                    sdsc.dims[label.order[i]].name +
                    "' must be 1, -1, or -2 on a stick dimension");
      size_t position =
          std::find(tensor.order.begin(), tensor.order.end(), label.order[i]) -
          tensor.order.begin();
      tensor.scale[position] = static_cast<Scale>(scale.value_or(1));
      if (isStick && tensor.scale[position] == Scale::Absent) {
        const std::string &name = sdsc.dims[label.order[i]].name;
        Node coordinates =
            member(element(nodes, number), "coordinates_", false);
        if (Node info = member(coordinates, "coordInfo", false))
          if (Node own = member(info, name.c_str(), false))
            if (Node folds = member(own, "elemArr", false))
              tensor.foldsAbsentStick = integer(folds, 1, 2) == 2;
      }
    }
  }
}

void Reader::readConstants(const Node &node) {
  if (!node)
    return;
  if (node.value->is_string()) {
    if (*node.value != "{}")
      violate(node.path, "SDSC-FORM-C2",
              "expected an object, or the string \"{}\" for none");
    return;
  }
  if (!isObject(node, kMaxConstants))
    return;
  for (size_t number = 0; number < node.value->size(); ++number) {
    Node entry = member(node, std::to_string(number).c_str());
    if (!entry)
      return;
    superdsc::Constant constant;
    constant.name = string(member(entry, "name_")).value_or("");
    if (auto parsed = format(member(entry, "dataFormat_")))
      constant.format = *parsed;
    Node words =
        member(member(member(entry, "data_"), "data_"),
               sdsc.flavor == Flavor::AsBuilt ? "[0, 0, 0]" : "[0, 0]");
    if (!isArray(words, 1))
      continue;
    if (words.value->size() != 1) {
      violate(words.path, "SDSC-FORM-C2", "expected one raw word");
      continue;
    }
    constant.bits = static_cast<uint32_t>(
        integer(element(words, 0), 0, 0xFFFFFFFFll).value_or(0));
    sdsc.constants.push_back(std::move(constant));
  }
}

std::vector<unsigned> Reader::readReferences(const Node &list) {
  std::vector<unsigned> numbers;
  if (!isArray(list, kMaxTensors))
    return numbers;
  for (size_t i = 0; i < list.value->size(); ++i) {
    Node entry = element(list, i);
    auto name = string(entry);
    if (!name)
      continue;
    bool found = false;
    for (unsigned number = 0; number < sdsc.tensors.size() && !found; ++number)
      if (*name ==
          "Tensor" + std::to_string(number) + "-idx" + std::to_string(number)) {
        numbers.push_back(number);
        found = true;
      }
    // SDSC-TENSOR-C3
    if (!found)
      violate(entry.path, "SDSC-TENSOR-C3",
              "'" + name->substr(0, 80) + "' refers to no data structure");
  }
  return numbers;
}

void Reader::readCompute(const Node &dsc) {
  Node list = member(dsc, "computeOp_");
  if (!isArray(list, 1))
    return;
  if (list.value->empty()) {
    violate(list.path, "SDSC-FORM-C2", "expected one operation");
    return;
  }
  Node op = element(list, 0);
  sdsc.unit = string(member(op, "exUnit")).value_or("");
  if (auto parsed = format(member(member(op, "attributes_"), "dataFormat_")))
    sdsc.format = *parsed;
  if (auto name = string(member(op, "opFuncName")); name && *name != opFunc)
    violate(appendPath(op.path, "opFuncName"), "SDSC-FORM-C4",
            "expected '" + opFunc + "' as in the top key, found '" +
                name->substr(0, 80) + "'");
  sdsc.inputs = readReferences(member(op, "inputLabeledDs"));
  sdsc.outputs = readReferences(member(op, "outputLabeledDs"));
  if (Node indices = member(op, "indirectAccessIndexLabeledDs", false))
    sdsc.indices = readReferences(indices);
}

std::optional<Sdsc> Reader::read(const Json &json) {
  readTop(json);
  if (!body || !dsc)
    return std::nullopt;
  readDims(body, dsc);
  if (failed)
    return std::nullopt;
  readCoreOrder(body);
  readSymbols(body, dsc);
  readMasks(dsc);
  readLabels(member(dsc, "primaryDsInfo_"));
  if (failed)
    return std::nullopt;
  readTensors(dsc);
  readConstants(member(dsc, "constantInfo_"));
  readCompute(dsc);
  // The specified flavour does not number the masking constant.
  if (sdsc.flavor == Flavor::Spec)
    for (size_t i = 0; i < sdsc.constants.size(); ++i)
      if (sdsc.constants[i].name == kMaskConstant)
        sdsc.maskConstant = i;
  if (failed)
    return std::nullopt;
  compare(writeSdsc(sdsc), json, "");
  return std::move(sdsc);
}

} // namespace

std::optional<Sdsc> spyre::superdsc::readSdsc(const Json &json,
                                              const std::string &file,
                                              Report &report) {
  return Reader(file, report).read(json);
}
