// SPDX-License-Identifier: Apache-2.0
//===- Schema.cpp - JSON schema of sdsc_<i>.json ----------------*- C++ -*-===//
//
// Made by generalising what the writer writes for a sample, so that it cannot
// drift from the writer: objects keep their keys, maps their value's schema.
//
//===----------------------------------------------------------------------===//

#include "Spyre/Target/SuperDSC/Writer/Schema.h"
#include "Spyre/Target/SuperDSC/Model/DeviceOps.h"
#include "Spyre/Target/SuperDSC/Writer/SdscWriter.h"

#include "llvm/ADT/StringExtras.h"

using namespace spyre::superdsc;
using spyre::DataFormat;
using ::spyre::Json;

/// An operation that has everything that a file may have.
static Sdsc makeSample(Flavor flavor) {
  Sdsc sdsc;
  sdsc.flavor = flavor;
  sdsc.op = "identity";
  sdsc.unit = "sfp";
  sdsc.dims = {{"mb", 4, 2, 0, DimSymbol{-3, "s0", 2}}, {"out", 128, 1, 28}};
  sdsc.coreOrder = {0, 1};
  sdsc.labels = {{"OUTPUT", {0, 1}, {{1, 64}}}};
  sdsc.constants = {{std::string(kMaskConstant), DataFormat::SEN169_FP16, 0}};
  sdsc.maskConstant = 0;
  for (Indirection kind :
       {Indirection::Index, Indirection::Value, Indirection::None}) {
    Tensor tensor;
    tensor.order = {0, 1};
    tensor.scale = {Scale::Present, Scale::Present};
    tensor.gap = {4, 0};
    tensor.maxSize = {-1, -1};
    tensor.indirection = kind;
    tensor.symbolic = true;
    tensor.addresses = {-1, -2};
    if (kind == Indirection::Value)
      tensor.indexTensor = 0;
    sdsc.tensors.push_back(tensor);
  }
  sdsc.indices = {0};
  sdsc.inputs = {1};
  sdsc.outputs = {2};
  return sdsc;
}

/// Keys that not every object of their kind has.
static bool isOptional(const std::string &key) {
  static const char *const kOptional[] = {"isStartAddrSymbolic_",
                                          "relatedIndirectAccessAlloc_",
                                          "indexTensorType_",
                                          "backGapCore_",
                                          "hbm",
                                          "lx",
                                          "Affine",
                                          "Map",
                                          "Const",
                                          "inputSymbolsAndTags_",
                                          "dimToSymbolMapping_",
                                          "symbolicDimInfo_",
                                          "datadscs_",
                                          "indirectAccessIndexLabeledDs"};
  for (const char *name : kOptional)
    if (key == name)
      return true;
  return false;
}

/// Objects whose keys are names: cores, dimensions, labels, folds.
static bool isMap(const std::string &key) {
  static const char *const kMaps[] = {"coreIdToDsc_",
                                      "numWkSlicesPerDim_",
                                      "coreIdToWkSlice_",
                                      "coreIdToDscSchedule",
                                      "data_",
                                      "coordinateMasking_",
                                      "paddingInfo_",
                                      "dataStageParam_",
                                      "primaryDsInfo_",
                                      "backGapCore_",
                                      "coordInfo",
                                      "inputSymbolsAndTags_",
                                      "dimToSymbolMapping_",
                                      "symbolicDimInfo_",
                                      "dscs_"};
  for (const char *name : kMaps)
    if (key == name)
      return true;
  return false;
}

/// Labels of dimensions, of any operation.
static const std::vector<std::string> &getDimLabels() {
  static const std::vector<std::string> labels = [] {
    std::vector<std::string> all = *getDimNames(8, false);
    all.push_back("in");
    return all;
  }();
  return labels;
}

/// The schema of the names in a map, for maps whose names are restricted.
static Json getNames(const std::string &key) {
  static const char *const kByDim[] = {
      "numWkSlicesPerDim_", "coordinateMasking_", "paddingInfo_",
      "backGapCore_",       "coordInfo",          "dimToSymbolMapping_",
      "symbolicDimInfo_"};
  for (const char *name : kByDim)
    if (key == name)
      return {{"enum", getDimLabels()}};
  if (key == "primaryDsInfo_")
    return {{"enum", {"OUTPUT", "KERNEL", "INPUT", "KERNEL_IDX"}}};
  if (key == "inputSymbolsAndTags_")
    return {{"pattern", "^-[0-9]+$"}};
  if (key == "coreIdToDsc_" || key == "coreIdToWkSlice_" ||
      key == "coreIdToDscSchedule")
    return {{"pattern", "^[0-9]+$"}};
  return {};
}

static Json getDeviceOpNames() {
  Json names = Json::array();
  for (const DeviceOp &op : getDeviceOps()) {
    names.push_back(op.name);
    if (op.hasNonstick)
      names.push_back(std::string(op.name) + "nonstick");
  }
  return names;
}

/// The values that a key may have, or nothing.
static Json getValues(const std::string &key) {
  if (key == "opFuncName")
    return getDeviceOpNames();
  if (key == "exUnit")
    return {"pt", "sfp"};
  if (key == "component_")
    return {"hbm", "lx"};
  if (key == "scale_")
    return {1, -1, -2};
  if (key == "dsType_")
    return getNames("primaryDsInfo_")["enum"];
  if (key == "layoutDimOrder_" || key == "stickDimOrder_")
    return getDimLabels();
  if (key == "indirectAllocType_")
    return {"no_indirection", "index_tensor", "value_tensor"};
  if (key != "dataFormat_")
    return {};
  Json formats = Json::array();
#define SPYRE_DEVICE_FORMAT(name, number, bits, elementType)                   \
  if (DataFormat::name != DataFormat::INVALID)                                 \
    formats.push_back(#name);
#include "Spyre/Device/NumberFormats.def"
  return formats;
}

static Json merge(const Json &a, const Json &b);

static Json generalize(const Json &value, const std::string &key) {
  if (value.is_number() || value.is_string()) {
    Json schema = {{"type", value.is_number() ? "integer" : "string"}};
    if (Json values = getValues(key); !values.is_null())
      schema["enum"] = values;
    return schema;
  }
  if (value.is_array()) {
    Json items;
    for (const Json &element : value)
      items = items.is_null() ? generalize(element, key)
                              : merge(items, generalize(element, key));
    Json schema = {{"type", "array"}};
    if (!items.is_null())
      schema["items"] = items;
    return schema;
  }
  Json schema = {{"type", "object"}};
  // Sizes are named after dimensions, with the name of what they are beside.
  bool hasName = value.contains("name_") && !value.contains("nodeType_") &&
                 !value.contains("data_");
  if (hasName) {
    Json named = {{"name_", {{"type", "string"}}}};
    if (value.contains("symbolicDimInfo_"))
      named["symbolicDimInfo_"] =
          generalize(value["symbolicDimInfo_"], "symbolicDimInfo_");
    return {{"type", "object"},
            {"properties", named},
            {"patternProperties",
             {{"^(" + llvm::join(getDimLabels(), "|") + ")_$",
               {{"type", "integer"}, {"minimum", 1}}}}},
            {"required", Json::array({"name_"})},
            {"additionalProperties", false}};
  }
  bool isFoldData = value.contains("dim_prop_func");
  if (isMap(key) && !isFoldData) {
    // The map holds the slice of each dimension, per core.
    std::string inner = key == "coreIdToWkSlice_" ? "numWkSlicesPerDim_" : "";
    Json values;
    for (auto &[name, member] : value.items())
      values = values.is_null() ? generalize(member, inner)
                                : merge(values, generalize(member, inner));
    if (!values.is_null())
      schema["additionalProperties"] = values;
    if (Json names = getNames(key); !names.is_null())
      schema["propertyNames"] = names;
    return schema;
  }
  Json properties = Json::object(), required = Json::array();
  for (auto &[name, member] : value.items()) {
    properties[name] = name == "constantInfo_"
                           ? Json{{"type", Json::array({"object", "string"})}}
                           : generalize(member, name);
    if (!isOptional(name))
      required.push_back(name);
  }
  schema["properties"] = properties;
  if (!required.empty())
    schema["required"] = required;
  schema["additionalProperties"] = false;
  return schema;
}

/// A schema that allows what either of the two allows.
static Json merge(const Json &a, const Json &b) {
  if (!a.is_object() || !b.is_object())
    return a;
  Json result = a;
  if (b.contains("properties"))
    for (auto &[name, schema] : b["properties"].items()) {
      Json &own = result["properties"][name];
      own = own.is_null() ? schema : merge(own, schema);
    }
  if (!result.contains("items") && b.contains("items"))
    result["items"] = b["items"];
  if (a.contains("required") && b.contains("required")) {
    Json both = Json::array();
    for (const Json &name : a["required"])
      for (const Json &other : b["required"])
        if (name == other)
          both.push_back(name);
    result["required"] = both;
  } else {
    result.erase("required");
  }
  return result;
}

Json spyre::superdsc::makeSchema() {
  Json flavors = Json::array();
  for (Flavor flavor : {Flavor::AsBuilt, Flavor::Spec}) {
    Json file = writeSdsc(makeSample(flavor));
    Json body = generalize(file.begin().value(), "");
    Json pattern = Json::object();
    pattern[flavor == Flavor::AsBuilt ? "^[0-9]+_[A-Za-z0-9_]+$"
                                      : "^[A-Za-z][A-Za-z0-9_]*$"] = body;
    flavors.push_back({{"type", "object"},
                       {"minProperties", 1},
                       {"maxProperties", 1},
                       {"patternProperties", pattern},
                       {"additionalProperties", false}});
  }
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", "SuperDSC: one device operation"},
          {"description",
           "Form only; spyre-translate --validate-superdsc checks the rules."},
          {"oneOf", flavors}};
}
