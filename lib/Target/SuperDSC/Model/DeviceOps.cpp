// SPDX-License-Identifier: Apache-2.0
//===- DeviceOps.cpp - The operations that SuperDSC names -------*- C++ -*-===//

#include "Spyre/Target/SuperDSC/Model/DeviceOps.h"

#include "Spyre/Device/DL16.h"

#include <cstring>
#include <limits>
#include <unordered_map>

using namespace spyre::superdsc;

static std::vector<DeviceOp> makeDeviceOps() {
  using K = OpKind;
  std::vector<DeviceOp> ops;
  auto add = [&](std::string_view name, OpKind kind, unsigned minInputs,
                 unsigned maxInputs, std::string_view graphOp,
                 std::vector<std::string_view> constants = {}) {
    bool isReduction = kind == K::Reduction;
    ops.push_back({name, kind, minInputs, maxInputs, std::move(constants),
                   /*isExtension=*/false, graphOp,
                   /*hasNonstick=*/isReduction});
  };
  // Matrix multiplications: alpha, beta and a third input are extensions.
  add("batchmatmul", K::Matmul, 2, 3, "matmul", {"alpha?", "beta?"});
  add("batchmatmulfp8", K::Matmul, 2, 2, "");
  add("batchmatmulint4", K::Matmul, 2, 2, "");
  add("batchmatmulint8", K::Matmul, 2, 2, "");
  for (std::string_view name :
       {"conv2d", "conv2dfp8", "conv2dint4", "conv2dint8"})
    add(name, K::Convolution, 2, 3, "");
  // Elementwise over several operands.
  add("add", K::Pointwise, 2, 2, "add");
  add("batchnormfwd", K::Pointwise, 3, 5, "fma");
  add("biasadd", K::Pointwise, 2, 2, "add");
  add("equal", K::Pointwise, 2, 2, "eq");
  add("fnms", K::Pointwise, 3, 3, "fnms");
  add("greaterequal", K::Pointwise, 2, 2, "ge");
  add("layernormnorm", K::Pointwise, 2, 5, "scale_shift");
  add("lesserequal", K::Pointwise, 2, 2, "le");
  add("maximum", K::Pointwise, 2, 2, "maximum");
  add("minimum", K::Pointwise, 2, 2, "minimum");
  add("mul", K::Pointwise, 2, 2, "mul");
  add("notequal", K::Pointwise, 2, 2, "ne");
  add("realdiv", K::Pointwise, 2, 2, "div");
  add("revsub", K::Pointwise, 2, 2, "sub");
  add("sub", K::Pointwise, 2, 2, "sub");
  add("where3", K::Pointwise, 3, 3, "where");
  // Elementwise over one.
  add("abs", K::Pointwise, 1, 1, "abs");
  add("clip", K::Pointwise, 1, 1, "clamp", {"clipMin", "clipMax"});
  add("exp", K::Pointwise, 1, 1, "exp");
  add("fastexp", K::Pointwise, 1, 1, "exp");
  add("fastsigmoid", K::Pointwise, 1, 1, "sigmoid");
  add("gelufwd", K::Pointwise, 1, 1, "gelu");
  add("identity", K::Identity, 1, 1, "identity");
  add("layernormscale", K::Pointwise, 1, 1, "layernormscale", {"eps"});
  add("leakyrelufwd", K::Pointwise, 1, 1, "leaky_relu", {"slope"});
  add("log", K::Pointwise, 1, 1, "log");
  add("mish", K::Pointwise, 1, 1, "mish");
  add("neg", K::Pointwise, 1, 1, "neg");
  add("reciprocal", K::Pointwise, 1, 1, "reciprocal");
  add("relufwd", K::Pointwise, 1, 1, "relu");
  add("relu6fwd", K::Pointwise, 1, 1, "clamp");
  add("rsqrt", K::Pointwise, 1, 1, "rsqrt");
  add("sigmoid", K::Pointwise, 1, 1, "sigmoid");
  add("softplus", K::Pointwise, 1, 1, "softplus",
      {"softplusBeta", "softplusThresh"});
  add("silu", K::Pointwise, 1, 1, "silu");
  add("sqrt", K::Pointwise, 1, 1, "sqrt");
  add("tanh", K::Pointwise, 1, 1, "tanh");
  // Reductions. The nonstick variants count as names of their own.
  add("sum", K::Reduction, 1, 1, "sum");
  add("max", K::Reduction, 1, 1, "max");
  add("min", K::Reduction, 1, 1, "min");
  add("mean", K::Reduction, 1, 1, "mean", {"scaling_factor"});
  add("absmax", K::Reduction, 1, 1, "absmax");
  auto addStickOnly = [&](std::string_view name, std::string_view graphOp,
                          std::vector<std::string_view> constants) {
    add(name, K::Reduction, 1, 1, graphOp, std::move(constants));
    ops.back().hasNonstick = false;
  };
  addStickOnly("exx2", "exx2", {"exx2scale", "useZeroMean?"});
  addStickOnly("exx2_zeromean", "exx2", {"exx2scale", "useZeroMean?"});
  addStickOnly("quantscalepertoken", "absmax",
               {"clipMin?", "clipMax?", "mulConst?"});
  addStickOnly("quantscalepertokenfp8", "absmax",
               {"clipMin", "clipMax", "mulConst"});
  // Pooling.
  add("avgpoolfwd", K::Pooling, 1, 2, "", {"nmap"});
  add("avgpoolnmapfwd", K::Pooling, 1, 2, "");
  add("depthwiseconv2dnative", K::Pooling, 2, 3, "");
  add("maxpoolfwd", K::Pooling, 1, 2, "");
  // Scans.
  add("maskbyindex", K::TopK, 1, 2, "");
  add("topkindex", K::TopK, 1, 1, "topk");
  add("topkvalue", K::TopK, 1, 1, "topk");
  // Conversions and quantisation.
  for (std::string_view name :
       {"csqint4", "csqint4wt", "csqint8ch", "csqint8mb", "csqint8wt"})
    add(name, K::Quantization, 1, 3, "", {"scaleact?", "shiftact?"});
  add("dl16tofp32", K::Conversion, 1, 1, "identity");
  add("fp32todl16", K::Conversion, 1, 1, "identity");
  add("fp8todl16", K::Conversion, 1, 1, "");
  for (std::string_view name : {"qfp8ch", "qfp8mb", "qfp8wt"})
    add(name, K::Quantization, 1, 1, "");
  add("ReStickifyOpHBM", K::Restickify, 1, 1, "restickify");

  // What the project adds.
  auto extend = [&](std::string_view name, OpKind kind, unsigned minInputs,
                    unsigned maxInputs, std::string_view graphOp,
                    std::vector<std::string_view> constants = {}) {
    add(name, kind, minInputs, maxInputs, graphOp, std::move(constants));
    ops.back().isExtension = true;
  };
  extend("greaterthan", K::Pointwise, 2, 2, "gt");
  extend("lesserthan", K::Pointwise, 2, 2, "lt");
  for (std::string_view name :
       {"expm1", "log2", "log1p", "sin", "cos", "tan", "erf", "floor", "ceil",
        "round", "trunc", "sign", "logical_not", "isnan"})
    extend(name, K::Pointwise, 1, 1, name);
  for (std::string_view name :
       {"floordiv", "truncdiv", "remainder", "pow", "logical_or", "logical_xor",
        "bitwise_and", "bitwise_or", "bitwise_xor"})
    extend(name, K::Pointwise, 2, 2, name);
  extend("logical_and", K::Pointwise, 2, 2, "logical_and");
  extend("gelutanhfwd", K::Pointwise, 1, 1, "gelu_tanh");
  extend("clip3", K::Pointwise, 3, 3, "clamp");
  extend("fma", K::Pointwise, 3, 3, "fma");
  extend("addcdiv", K::Pointwise, 4, 4, "addcdiv");
  extend("expsub", K::Pointwise, 2, 2, "exp_sub");
  extend("wrapindex", K::Pointwise, 1, 1, "wrap_index", {"size"});
  extend("normalize", K::Pointwise, 5, 5, "layernormnorm");
  extend("threshold_backward", K::Pointwise, 2, 2, "threshold_backward",
         {"threshold"});
  extend("sigmoid_backward", K::Pointwise, 2, 2, "sigmoid_backward");
  extend("tanh_backward", K::Pointwise, 2, 2, "tanh_backward");
  extend("silu_backward", K::Pointwise, 2, 2, "silu_backward");
  extend("gelubwd", K::Pointwise, 2, 2, "gelu_backward");
  extend("gelutanhbwd", K::Pointwise, 2, 2, "gelu_tanh_backward");
  extend("softplus_backward", K::Pointwise, 2, 2, "softplus_backward",
         {"softplusBeta", "softplusThresh"});
  extend("leaky_relu_backward", K::Pointwise, 2, 2, "leaky_relu_backward",
         {"slope"});
  // Conversions by value that the published names leave out.
  extend("convert", K::Conversion, 1, 1, "identity");
  extend("constant", K::Other, 1, 1, "fill");
  extend("iota", K::Other, 0, 0, "iota", {"dim", "start", "step"});
  extend("tri", K::Pointwise, 1, 1, "tri", {"diagonal", "upper"});
  extend("sumsquares", K::Reduction, 1, 2, "sum_squares", {"scale"});
  extend("sumproducts", K::Reduction, 2, 2, "sum_products", {"scale"});
  for (std::string_view name : {"prod", "any", "all", "argmax", "argmin"})
    extend(name, K::Reduction, 1, 1, name);
  extend("cumsum", K::Other, 1, 1, "cumsum", {"dim"});
  extend("scatter", K::Other, 1, 1, "scatter");
  return ops;
}

const std::vector<DeviceOp> &spyre::superdsc::getDeviceOps() {
  static const std::vector<DeviceOp> ops = makeDeviceOps();
  return ops;
}

const DeviceOp *spyre::superdsc::findDeviceOp(std::string_view opFunc,
                                              bool &nonstick) {
  static const std::unordered_map<std::string_view, const DeviceOp *> byName =
      [] {
        std::unordered_map<std::string_view, const DeviceOp *> map;
        for (const DeviceOp &op : getDeviceOps())
          map.emplace(op.name, &op);
        return map;
      }();
  nonstick = false;
  auto found = byName.find(opFunc);
  if (found != byName.end())
    return found->second;
  constexpr std::string_view kSuffix = "nonstick";
  if (opFunc.size() <= kSuffix.size() ||
      opFunc.substr(opFunc.size() - kSuffix.size()) != kSuffix)
    return nullptr;
  found = byName.find(opFunc.substr(0, opFunc.size() - kSuffix.size()));
  if (found == byName.end() || !found->second->hasNonstick)
    return nullptr;
  nonstick = true;
  return found->second;
}

std::optional<double> spyre::superdsc::getNumber(const Constant &constant) {
  switch (constant.format) {
  case DataFormat::SEN169_FP16:
    if (constant.bits > 0xFFFF)
      return std::nullopt;
    return spyre::decodeDL16(static_cast<uint16_t>(constant.bits));
  case DataFormat::IEEE_FP32: {
    float value;
    std::memcpy(&value, &constant.bits, sizeof(value));
    return value;
  }
  case DataFormat::IEEE_INT32:
    return static_cast<int32_t>(constant.bits);
  default:
    return std::nullopt;
  }
}

double spyre::superdsc::getMaskValue(std::string_view op) {
  if (op == "max" || op == "argmax")
    return -std::numeric_limits<double>::infinity();
  if (op == "min" || op == "argmin")
    return std::numeric_limits<double>::infinity();
  return op == "prod" || op == "all" ? 1 : 0;
}

static constexpr std::string_view kImmediate = "immediate";

std::string spyre::superdsc::getImmediateName(unsigned position) {
  return std::string(kImmediate) + std::to_string(position);
}

int spyre::superdsc::getImmediatePosition(std::string_view name) {
  if (name.size() != kImmediate.size() + 1 ||
      name.substr(0, kImmediate.size()) != kImmediate || name.back() < '0' ||
      name.back() > '9')
    return -1;
  return name.back() - '0';
}
