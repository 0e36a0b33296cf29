// SPDX-License-Identifier: Apache-2.0
//===- SdscWriter.cpp - The model as sdsc_<i>.json --------------*- C++ -*-===//
//
// Key order and value forms are those of the reference's files.
//
//===----------------------------------------------------------------------===//

#include "Spyre/Target/SuperDSC/Writer/SdscWriter.h"

#include <algorithm>

using namespace spyre::superdsc;
using ::spyre::Json;

int64_t Sdsc::numCores() const {
  int64_t cores = 1;
  for (const Dim &dim : dims)
    cores *= dim.slices;
  return cores;
}

int64_t Sdsc::sliceOf(int64_t core, unsigned dim) const {
  for (unsigned walked : coreOrder) {
    if (walked == dim)
      return core % dims[dim].slices;
    core /= dims[walked].slices;
  }
  return 0;
}

std::optional<std::vector<std::string>>
spyre::superdsc::getDimNames(size_t n, bool isMatmul) {
  static const std::vector<std::string> kMatmul = {"ki", "kj",  "y", "x",
                                                   "mb", "out", "in"};
  static const std::vector<std::string> kOther = {"mb", "x",  "y", "i",
                                                  "j",  "ki", "kj"};
  if (isMatmul) {
    if (n > kMatmul.size())
      return std::nullopt;
    return std::vector<std::string>(kMatmul.end() - n, kMatmul.end());
  }
  if (n == 0 || n > kOther.size() + 1)
    return std::nullopt;
  std::vector<std::string> names(kOther.begin(), kOther.begin() + (n - 1));
  names.push_back("out");
  return names;
}

namespace {

class Writer {
public:
  explicit Writer(const Sdsc &sdsc)
      : sdsc(sdsc), cores(sdsc.numCores()),
        asBuilt(sdsc.flavor == Flavor::AsBuilt) {}

  Json write() const {
    Json body;
    if (asBuilt) {
      body["sdscFoldProps_"] = Json::array({property(1, "time")});
      body["sdscFolds_"] = {
          {"dim_prop_func", Json::array({affine(1)})},
          {"dim_prop_attr", Json::array({property(1, "time")})},
          {"data_", {{"[0]", "0"}}}};
    }
    body["coreFoldProp_"] = property(cores, "core");
    body["coreletFoldProp_"] = property(numCorelets(), "corelet");
    body["numCoresUsed_"] = cores;
    if (asBuilt)
      body["coreIdToDsc_"] = perCore([](int64_t) { return Json(0); });
    Json slices = Json::object();
    for (const Dim &dim : sdsc.dims)
      slices[dim.name] = dim.slices;
    body["numWkSlicesPerDim_"] = std::move(slices);
    body["coreIdToWkSlice_"] = perCore([&](int64_t core) {
      Json own = Json::object();
      int64_t rest = core;
      for (unsigned dim : sdsc.coreOrder) {
        own[sdsc.dims[dim].name] = rest % sdsc.dims[dim].slices;
        rest /= sdsc.dims[dim].slices;
      }
      return own;
    });
    if (asBuilt)
      body["coreIdToDscSchedule"] = perCore(
          [](int64_t) { return Json::array({Json::array({-1, 0, 0, 0})}); });
    if (sdsc.isSized()) {
      Json &names = body["inputSymbolsAndTags_"];
      for (const Dim &dim : sdsc.dims)
        if (dim.symbol)
          names[std::to_string(dim.symbol->id)] = dim.symbol->name;
    }
    Json dsc = Json::object();
    dsc[sdsc.opFunc()] = writeDsc();
    body["dscs_"].push_back(std::move(dsc));
    if (sdsc.isSized())
      body["datadscs_"] = Json::array();
    Json top = Json::object();
    top[(asBuilt ? std::to_string(sdsc.index) + "_" : "") + sdsc.opFunc()] =
        std::move(body);
    return top;
  }

private:
  int64_t numCorelets() const { return asBuilt ? 1 : 2; }

  static Json property(int64_t factor, const std::string &label) {
    return {{"factor_", factor}, {"label_", label}};
  }
  static Json affine(int64_t alpha) {
    return {{"Affine", {{"alpha_", alpha}, {"beta_", 0}}}};
  }
  static Json named(const char *name) { return {{name, Json::object()}}; }

  template <typename Function>
  Json perCore(Function function) const {
    Json result = Json::object();
    for (int64_t core = 0; core < cores; ++core)
      ::spyre::addMember(result, std::to_string(core), function(core));
    return result;
  }

  /// The key of a core's value among folds core, corelet and (as built) time.
  std::string foldKey(int64_t core) const {
    return "[" + std::to_string(core) + (asBuilt ? ", 0, 0]" : ", 0]");
  }
  Json foldProperties() const {
    Json list = Json::array(
        {property(cores, "core"), property(numCorelets(), "corelet")});
    if (asBuilt)
      list.push_back(property(1, "time"));
    return list;
  }

  Json names(const std::vector<unsigned> &dims) const {
    Json list = Json::array();
    for (unsigned dim : dims)
      list.push_back(sdsc.dims[dim].name);
    return list;
  }

  Json writeDsc() const {
    Json dsc;
    dsc["numCoresUsed_"] = cores;
    dsc["numCoreletsUsed_"] = numCorelets();
    Json ids = Json::array();
    for (int64_t core = 0; core < cores; ++core)
      ids.push_back(core);
    dsc["coreIdsUsed_"] = std::move(ids);
    Json sizes = {{"name_", "n"}}, stage = {{"name_", "core"}};
    Json masks = Json::object();
    for (const Dim &dim : sdsc.dims) {
      sizes[dim.name + "_"] = dim.size;
      stage[dim.name + "_"] = dim.perCore();
      if (dim.masked == 0)
        continue;
      if (asBuilt)
        masks[dim.name] =
            Json::array({Json::array({dim.size - dim.masked, dim.masked})});
      else
        masks[dim.name] = dim.slices == 1 ? dim.masked : -1;
    }
    dsc["N_"] = std::move(sizes);
    if (sdsc.isSized()) {
      // What a core's part is: its share of the largest size and of the step
      // from one size to the next.
      Json &info = stage["symbolicDimInfo_"];
      for (const Dim &dim : sdsc.dims) {
        if (!dim.symbol)
          continue;
        dsc["dimToSymbolMapping_"][dim.name] = Json::array({dim.symbol->id});
        info[dim.name] = {
            {"maxSize_", dim.perCore()},
            {"granularity_", dim.symbol->granularity / dim.slices}};
      }
    } else if (sdsc.hasEmptyMapping) {
      dsc["dimToSymbolMapping_"] = Json::object();
    }
    if (asBuilt) {
      dsc["coordinateMasking_"] = std::move(masks);
      dsc["maskingConstId_"] = sdsc.maskConstant;
    } else {
      dsc["paddingInfo_"] = std::move(masks);
    }
    dsc["dataStageParam_"] = {{"0", {{"ss_", stage}, {"el_", stage}}}};
    Json labels = Json::object();
    for (const Label &label : sdsc.labels) {
      Json stickDims = Json::array(), stickSizes = Json::array();
      for (const StickDim &stick : label.sticks) {
        stickDims.push_back(sdsc.dims[stick.dim].name);
        stickSizes.push_back(stick.size);
      }
      labels[label.name] = {{"layoutDimOrder_", names(label.order)},
                            {"stickDimOrder_", stickDims},
                            {"stickSize_", stickSizes}};
    }
    dsc["primaryDsInfo_"] = std::move(labels);
    Json allocations = Json::array(), structures = Json::array();
    for (size_t number = 0; number < sdsc.tensors.size(); ++number) {
      allocations.push_back(writeAllocation(number));
      structures.push_back(writeStructure(number));
    }
    dsc["scheduleTree_"] = std::move(allocations);
    dsc["labeledDs_"] = std::move(structures);
    dsc["constantInfo_"] = writeConstants();
    dsc["computeOp_"] = Json::array({writeCompute()});
    return dsc;
  }

  static const char *componentName(const Tensor &tensor) {
    return tensor.inLX ? "lx" : "hbm";
  }
  std::string allocationName(size_t number) const {
    return "allocate-Tensor" + std::to_string(number) + "_" +
           componentName(sdsc.tensors[number]);
  }

  Json writeAllocation(size_t number) const {
    const Tensor &tensor = sdsc.tensors[number];
    Json node;
    node["nodeType_"] = "allocate";
    node["name_"] = allocationName(number);
    node["prev_"] = "";
    node["ldsIdx_"] = number;
    node["component_"] = componentName(tensor);
    if (tensor.symbolic)
      node["isStartAddrSymbolic_"] = 1;
    node["layoutDimOrder_"] = names(tensor.order);
    node["maxDimSizes_"] = tensor.maxSize;
    switch (tensor.indirection) {
    case Indirection::None:
      node["indirectAllocType_"] = "no_indirection";
      break;
    case Indirection::Index:
      node["indirectAllocType_"] = "index_tensor";
      node["indexTensorType_"] = "index";
      break;
    case Indirection::Value:
      node["indirectAllocType_"] = "value_tensor";
      if (tensor.indexTensor)
        node["relatedIndirectAccessAlloc_"] =
            allocationName(*tensor.indexTensor);
      break;
    }
    Json functions = Json::array({named("Map"), named("Const")});
    if (asBuilt)
      functions.push_back(named("Const"));
    Json data = Json::object();
    for (int64_t core = 0; core < cores; ++core)
      ::spyre::addMember(data, foldKey(core),
                         std::to_string(tensor.addresses[core]));
    node["startAddressCoreCorelet_"] = {{"dim_prop_func", std::move(functions)},
                                        {"dim_prop_attr", foldProperties()},
                                        {"data_", std::move(data)}};
    Json gaps = Json::object();
    forEachDimInOrder(number, [&](unsigned dim, size_t position) {
      int64_t gap = tensor.gap[position];
      if (gap == 0)
        return;
      Json &entry = gaps[sdsc.dims[dim].name];
      if (!tensor.inLX)
        entry["-1"] = std::to_string(gap);
      else
        for (int64_t core = 0; core < cores; ++core)
          entry[std::to_string(core)] = std::to_string(gap);
    });
    if (!gaps.empty())
      node["backGapCore_"] = std::move(gaps);
    Json coordinates = Json::object();
    const Label &label = sdsc.labels[tensor.label];
    for (unsigned dim : label.order)
      coordinates[sdsc.dims[dim].name] = writeCoordinate(tensor, label, dim);
    node["coordinates_"] = {{"coordInfo", std::move(coordinates)},
                            {"coreIdToWkSlice_", Json::object()}};
    return node;
  }

  /// Dimensions of a tensor in the order of the iteration space.
  template <typename Function>
  void forEachDimInOrder(size_t number, Function function) const {
    const std::vector<unsigned> &order = sdsc.tensors[number].order;
    for (unsigned dim = 0; dim < sdsc.dims.size(); ++dim) {
      auto found = std::find(order.begin(), order.end(), dim);
      if (found != order.end())
        function(dim, static_cast<size_t>(found - order.begin()));
    }
  }

  Scale scaleOf(const Tensor &tensor, unsigned dim) const {
    size_t position = std::find(tensor.order.begin(), tensor.order.end(), dim) -
                      tensor.order.begin();
    return tensor.scale[position];
  }

  Json writeCoordinate(const Tensor &tensor, const Label &label,
                       unsigned dim) const {
    Scale scale = scaleOf(tensor, dim);
    int64_t slices = scale == Scale::Present ? sdsc.dims[dim].slices : 1;
    int64_t own = scale == Scale::Present ? sdsc.dims[dim].perCore() : 1;
    auto stick = std::find_if(
        label.sticks.begin(), label.sticks.end(),
        [&](const StickDim &candidate) { return candidate.dim == dim; });
    bool isStick = stick != label.sticks.end() &&
                   (scale != Scale::Absent || tensor.foldsAbsentStick);
    std::vector<int64_t> alphas, factors;
    std::vector<std::string> labels = {"core_fold", "corelet_fold", "row_fold"};
    if (!isStick) {
      alphas = {own, 0, 0, 1};
      factors = {slices, 1, 1, own};
    } else if (scale == Scale::AbsentStick) {
      alphas = {stick->size, 0, 0, stick->size, 0};
      factors = {1, 1, 1, 1, stick->size};
    } else {
      alphas = {own, 0, 0, stick->size, 1};
      factors = {slices, 1, 1, own / stick->size, stick->size};
    }
    if (isStick)
      labels.push_back("elem_arr_1");
    labels.push_back("elem_arr_0");
    Json functions = Json::array(), properties = Json::array();
    for (size_t i = 0; i < alphas.size(); ++i) {
      functions.push_back(affine(alphas[i]));
      properties.push_back(property(factors[i], labels[i]));
    }
    return {{"spatial", 3},
            {"temporal", 0},
            {"elemArr", isStick ? 2 : 1},
            {"padding", "nopad"},
            {"folds",
             {{"dim_prop_func", std::move(functions)},
              {"dim_prop_attr", std::move(properties)}}}};
  }

  Json writeStructure(size_t number) const {
    const Tensor &tensor = sdsc.tensors[number];
    const Label &label = sdsc.labels[tensor.label];
    Json scales = Json::array();
    for (unsigned dim : label.order)
      scales.push_back(static_cast<int>(scaleOf(tensor, dim)));
    Json organisation;
    if (!tensor.inLX)
      organisation["hbm"] = {{"isPresent", 1}};
    if (tensor.indirection != Indirection::Index)
      organisation["lx"] = {{"isPresent", 1}};
    return {{"ldsIdx_", number},
            {"dsName_", "Tensor" + std::to_string(number)},
            {"dsType_", label.name},
            {"scale_", std::move(scales)},
            {"wordLength", tensor.wordLength},
            {"dataFormat_", toString(tensor.format)},
            {"memOrg_", std::move(organisation)}};
  }

  Json writeConstants() const {
    if (sdsc.constants.empty())
      return "{}";
    Json result = Json::object();
    for (size_t number = 0; number < sdsc.constants.size(); ++number) {
      const Constant &constant = sdsc.constants[number];
      Json functions = Json::array({named("Const"), named("Const")});
      if (asBuilt)
        functions.push_back(named("Map"));
      Json data = {{"dim_prop_func", functions},
                   {"dim_prop_attr", foldProperties()},
                   {"data_", {{foldKey(0), Json::array({constant.bits})}}}};
      result[std::to_string(number)] = {
          {"dataFormat_", toString(constant.format)},
          {"name_", constant.name},
          {"data_", data}};
    }
    return result;
  }

  Json writeCompute() const {
    auto references = [](const std::vector<unsigned> &numbers) {
      Json list = Json::array();
      for (unsigned number : numbers)
        list.push_back("Tensor" + std::to_string(number) + "-idx" +
                       std::to_string(number));
      return list;
    };
    Json op;
    op["exUnit"] = sdsc.unit;
    op["opFuncName"] = sdsc.opFunc();
    op["attributes_"] = {{"dataFormat_", toString(sdsc.format)},
                         {"fidelity_", "regular"}};
    op["location"] = "Inner";
    op["inputLabeledDs"] = references(sdsc.inputs);
    op["outputLabeledDs"] = references(sdsc.outputs);
    if (!sdsc.indices.empty())
      op["indirectAccessIndexLabeledDs"] = references(sdsc.indices);
    return op;
  }

  const Sdsc &sdsc;
  int64_t cores;
  bool asBuilt;
};

} // namespace

Json spyre::superdsc::writeSdsc(const Sdsc &sdsc) {
  return Writer(sdsc).write();
}
