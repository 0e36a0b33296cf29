// SPDX-License-Identifier: Apache-2.0
//===- OpNames.cpp - Operations of spyre_graph by device name ---*- C++ -*-===//

#include "OpNames.h"

#include "Spyre/Device/DL16.h"
#include "Spyre/Dialect/SpyreGraph/IR/BundleOps.h"
#include "Spyre/Target/SuperDSC/Model/DeviceOps.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace spyre::superdsc;
using spyre::DataFormat;

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static uint32_t getBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// A number as one raw word: in fp16 operations in the device's fp16 where that
/// holds it exactly, else as fp32.
static Constant makeConstant(std::string name, double value,
                             DataFormat format) {
  float number = static_cast<float>(value);
  if (format != DataFormat::IEEE_FP32) {
    uint16_t half = ::spyre::encodeDL16(number);
    if (getBits(::spyre::decodeDL16(half)) == getBits(number))
      return {std::move(name), DataFormat::SEN169_FP16, half};
  }
  return {std::move(name), DataFormat::IEEE_FP32, getBits(number)};
}

//===----------------------------------------------------------------------===//
// To SuperDSC
//===----------------------------------------------------------------------===//

static DataFormat getFormat(Value operand) {
  return getLayout(operand.getType()).getDataFormat();
}

/// The name of a copy: a change of stick, a change of format, or neither.
static std::string getCopyName(SpyreOpInterface op) {
  Type from = getElementTypeOrSelf(op.getSpyreInputs()[0].getType());
  Type to = getElementTypeOrSelf(op.getSpyreInit().getType());
  DataFormat in = getFormat(op.getSpyreInputs()[0]),
             out = getFormat(op.getSpyreInit());
  if (in == DataFormat::SEN169_FP16 && out == DataFormat::IEEE_FP32)
    return "dl16tofp32";
  if (in == DataFormat::IEEE_FP32 && out == DataFormat::SEN169_FP16 &&
      !to.isInteger(1))
    return "fp32todl16";
  if (to.isInteger(1) && !from.isInteger(1))
    return "notequal";
  return in == out ? "identity" : "convert";
}

/// The device operation's name, where it is not the interface's.
static std::string getName(SpyreOpInterface op) {
  auto allBool = [&] {
    return llvm::all_of(op->getOperands(), [](Value operand) {
      return getElementTypeOrSelf(operand.getType()).isInteger(1);
    });
  };
  Operation *operation = op;
  return llvm::TypeSwitch<Operation *, std::string>(operation)
      .Case<IdentityOp, RestickifyOp>([&](auto) { return getCopyName(op); })
      .Case<GatherOp>([](auto) { return "identity"; })
      .Case<TopKOp>([](TopKOp own) {
        return own.getIndices() ? "topkindex" : "topkvalue";
      })
      .Case<AbsMaxOp>([](AbsMaxOp own) {
        if (own.getLow() && own.getHigh() && own.getFactor())
          return "quantscalepertokenfp8";
        return own.getLow() || own.getHigh() || own.getFactor()
                   ? "quantscalepertoken"
                   : "absmax";
      })
      // On booleans these combine bits, which fp16 arithmetic does not.
      .Case<AddOp>([&](auto) { return allBool() ? "logical_or" : "add"; })
      .Case<SubOp>([&](auto) { return allBool() ? "logical_xor" : "sub"; })
      .Case<AndOp>([&](auto) { return allBool() ? "mul" : "logical_and"; })
      .Default([&](Operation *) { return op.getDeviceOpName().str(); });
}

static double toDouble(const APFloat &value) { return value.convertToDouble(); }

namespace {
/// Appends the constants of an operation.
class ConstantWriter {
public:
  ConstantWriter(SpyreOpInterface op, Sdsc &sdsc) : op(op), sdsc(sdsc) {}

  void add(std::string name, double value) {
    sdsc.constants.push_back(makeConstant(std::move(name), value, sdsc.format));
  }
  /// One word, or two for what needs more than 32 bits.
  void addInteger(const std::string &name, int64_t value) {
    sdsc.constants.push_back(
        {name, DataFormat::IEEE_INT32, static_cast<uint32_t>(value)});
    if (value != static_cast<int32_t>(value))
      sdsc.constants.push_back({name + kHighWord, DataFormat::IEEE_INT32,
                                static_cast<uint32_t>(value >> 32)});
  }
  void addNumber(std::string name, Attribute attribute) {
    if (auto number = dyn_cast<FloatAttr>(attribute))
      return add(std::move(name), number.getValueAsDouble());
    APInt value = cast<IntegerAttr>(attribute).getValue();
    addInteger(std::move(name), value.getBitWidth() == 1
                                    ? value.getZExtValue()
                                    : value.getSExtValue());
  }

  /// The operation's `immediates`, by position, or as clip's bounds.
  void addImmediates() {
    auto immediates = op->getAttrOfType<ArrayAttr>("immediates");
    if (!immediates)
      return;
    for (auto [position, attribute] : llvm::enumerate(immediates)) {
      if (isa<UnitAttr>(attribute))
        continue;
      std::string name = getImmediateName(position);
      if (sdsc.op == "clip")
        name = position == 1 ? "clipMin" : "clipMax";
      addNumber(name, attribute);
    }
  }

  SpyreOpInterface op;
  Sdsc &sdsc;
};
} // namespace

LogicalResult spyre::superdsc::describeOperation(SpyreOpInterface op,
                                                 ArrayRef<int> dimOfLoop,
                                                 Sdsc &sdsc) {
  sdsc.op = getName(op);
  Operation *operation = op;
  auto immediates = op->getAttrOfType<ArrayAttr>("immediates");
  // Bounds that are not both numbers are operands.
  if (sdsc.op == "clip" && (!immediates || op.getSpyreInputs().size() != 1 ||
                            !isa<UnitAttr>(immediates[0])))
    sdsc.op = "clip3";
  bool nonstick;
  const DeviceOp *device = findDeviceOp(sdsc.op, nonstick);
  if (!device)
    return op->emitOpError() << "SuperDSC has no operation '" << sdsc.op << "'";
  sdsc.unit = device->kind == OpKind::Matmul ? "pt" : "sfp";
  if (isa<GatherOp>(operation))
    sdsc.format = getFormat(op.getSpyreInputs()[0]);
  else
    sdsc.format = getFormat(op->getOperand(0));

  ConstantWriter constants(op, sdsc);
  if (llvm::any_of(sdsc.dims, [](const Dim &dim) { return dim.masked != 0; })) {
    sdsc.maskConstant = 0;
    constants.add(std::string(kMaskConstant), getMaskValue(sdsc.op));
  }
  if (!isa<IdentityOp, RestickifyOp>(operation) || sdsc.op != "notequal")
    constants.addImmediates();
  else if (isa<FloatType>(
               getElementTypeOrSelf(op.getSpyreInputs()[0].getType())))
    constants.add(getImmediateName(1), 0);
  else
    constants.addInteger(getImmediateName(1), 0);
  llvm::TypeSwitch<Operation *>(operation)
      .Case<SoftplusOp, SoftplusBackwardOp>([&](auto own) {
        constants.add("softplusBeta", toDouble(own.getBeta()));
        constants.add("softplusThresh", toDouble(own.getThreshold()));
      })
      .Case<LeakyReluOp, LeakyReluBackwardOp>(
          [&](auto own) { constants.add("slope", toDouble(own.getSlope())); })
      .Case<ThresholdBackwardOp>([&](auto own) {
        constants.add("threshold", toDouble(own.getThreshold()));
      })
      .Case<SumSquaresOp, SumProductsOp>(
          [&](auto own) { constants.add("scale", toDouble(own.getScale())); })
      .Case<MeanOp>([&](MeanOp own) {
        constants.add("scaling_factor", spyre_graph::detail::getMeanScale(own));
      })
      .Case<ScaledSumOp>([&](ScaledSumOp own) {
        constants.add("scaling_factor", toDouble(own.getFactor()));
      })
      .Case<AbsMaxOp>([&](AbsMaxOp own) {
        if (own.getLow())
          constants.add("clipMin", toDouble(*own.getLow()));
        if (own.getHigh())
          constants.add("clipMax", toDouble(*own.getHigh()));
        if (own.getFactor())
          constants.add("mulConst", toDouble(*own.getFactor()));
      })
      .Case<Exx2Op>([&](Exx2Op own) {
        constants.add("exx2scale", toDouble(own.getScale()));
        constants.add("useZeroMean", own.getZeroMean());
      })
      .Case<LayerNormScaleOp>([&](LayerNormScaleOp own) {
        constants.add("eps", toDouble(own.getEps()));
      })
      .Case<WrapIndexOp>(
          [&](auto own) { constants.addInteger("size", own.getSize()); })
      .Case<IotaOp>([&](IotaOp own) {
        constants.addInteger("dim", dimOfLoop[own.getDim()]);
        constants.addNumber("start", own.getStart());
        constants.addNumber("step", own.getStep());
      })
      .Case<TriOp>([&](auto own) {
        constants.addInteger("diagonal", own.getDiagonal());
        constants.addInteger("upper", own.getUpper());
      })
      .Case<CumSumOp>([&](auto own) {
        constants.addInteger("dim", dimOfLoop[own.getDim()]);
      })
      .Case<MatmulOp>([&](MatmulOp own) {
        double alpha = toDouble(own.getAlpha()), beta = toDouble(own.getBeta());
        if (alpha != 1)
          constants.add("alpha", alpha);
        if (own.getHasBias() && beta != 1)
          constants.add("beta", beta);
      })
      .Default([](Operation *) {});
  return success();
}

bool spyre::superdsc::listsOutputAsInput(const Sdsc &sdsc) {
  bool nonstick;
  const DeviceOp *device = findDeviceOp(sdsc.op, nonstick);
  return device && device->kind == OpKind::Reduction;
}

//===----------------------------------------------------------------------===//
// From SuperDSC
//===----------------------------------------------------------------------===//

namespace {
class OperationReader {
public:
  OperationReader(const Sdsc &sdsc, ArrayRef<int64_t> extents,
                  ArrayRef<int64_t> reduced, Location loc)
      : sdsc(sdsc), extents(extents), reduced(reduced), loc(loc),
        builder(loc.getContext()) {}

  FailureOr<GraphOperation> run();

private:
  std::optional<double> find(StringRef name) {
    for (const Constant &constant : sdsc.constants)
      if (constant.name == name) {
        std::optional<double> value = getNumber(constant);
        if (!value)
          fail("the constant '" + name + "' has no number's format");
        return value;
      }
    return std::nullopt;
  }
  void fail(const Twine &message) {
    if (!isFailed)
      emitError(loc) << message;
    isFailed = true;
  }
  void setFloat(StringRef attribute, StringRef constant) {
    if (std::optional<double> value = find(constant))
      result.attributes.set(attribute, builder.getF64FloatAttr(*value));
  }
  /// An integer between `low` and `high`.
  std::optional<int64_t> getInteger(StringRef constant, int64_t low,
                                    int64_t high) {
    std::optional<double> value = find(constant);
    if (!value)
      return std::nullopt;
    if (*value != std::floor(*value) || *value < low || *value > high) {
      fail("the constant '" + constant + "' must be an integer from " +
           Twine(low) + " to " + Twine(high));
      return std::nullopt;
    }
    return static_cast<int64_t>(*value);
  }
  void setInteger(StringRef attribute, StringRef constant, int64_t low,
                  int64_t high) {
    if (std::optional<int64_t> value = getInteger(constant, low, high))
      result.attributes.set(attribute, builder.getI64IntegerAttr(*value));
  }
  TypedAttr getImmediate(const Constant &constant) {
    if (constant.format == DataFormat::IEEE_INT32) {
      int64_t value = static_cast<int32_t>(constant.bits);
      if (const Constant *high = findConstant(constant.name + kHighWord))
        value =
            static_cast<int64_t>(uint64_t(high->bits) << 32 | constant.bits);
      return builder.getI64IntegerAttr(value);
    }
    std::optional<double> value = getNumber(constant);
    if (!value)
      fail("the constant '" + Twine(constant.name) +
           "' has no number's format");
    return builder.getF32FloatAttr(value.value_or(0));
  }
  const Constant *findConstant(StringRef name) {
    for (const Constant &constant : sdsc.constants)
      if (constant.name == name)
        return &constant;
    return nullptr;
  }
  void setImmediates(const DeviceOp &device);
  void setAttributes(const DeviceOp &device);

  const Sdsc &sdsc;
  ArrayRef<int64_t> extents, reduced;
  Location loc;
  Builder builder;
  GraphOperation result;
  bool isFailed = false;
};
} // namespace

void OperationReader::setImmediates(const DeviceOp &device) {
  auto number = [&](double value) -> Attribute {
    return builder.getF32FloatAttr(value);
  };
  SmallVector<Attribute> immediates;
  if (sdsc.op == "relu6fwd") {
    immediates = {builder.getUnitAttr(), number(0), number(6)};
  } else if (sdsc.op == "clip") {
    const Constant *low = findConstant("clipMin"),
                   *high = findConstant("clipMax");
    if (!low || !high)
      return fail("clip needs the constants clipMin and clipMax");
    immediates = {builder.getUnitAttr(), getImmediate(*low),
                  getImmediate(*high)};
  } else {
    size_t numInputs = sdsc.inputs.size();
    for (const Constant &constant : sdsc.constants)
      numInputs += getImmediatePosition(constant.name) >= 0;
    immediates.assign(numInputs, builder.getUnitAttr());
    bool any = false;
    for (const Constant &constant : sdsc.constants) {
      int position = getImmediatePosition(constant.name);
      if (position < 0)
        continue;
      if (position >= static_cast<int>(immediates.size()))
        return fail("the constant '" + Twine(constant.name) +
                    "' is no operand's");
      immediates[position] = getImmediate(constant);
      any = true;
    }
    if (!any)
      return;
  }
  (void)device;
  result.attributes.set("immediates", builder.getArrayAttr(immediates));
}

void OperationReader::setAttributes(const DeviceOp &device) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  StringRef name = device.graphOp;
  if (name == "softplus" || name == "softplus_backward") {
    setFloat("beta", "softplusBeta");
    setFloat("threshold", "softplusThresh");
  } else if (name == "leaky_relu" || name == "leaky_relu_backward") {
    setFloat("slope", "slope");
  } else if (name == "threshold_backward") {
    setFloat("threshold", "threshold");
  } else if (name == "sum_squares" || name == "sum_products") {
    setFloat("scale", "scale");
  } else if (name == "mean") {
    double count = 1;
    for (int64_t dim : reduced)
      count *= extents[dim];
    // Usually the reciprocal of the number of elements, as its format has it.
    const Constant *factor = findConstant("scaling_factor");
    Constant usual = makeConstant(
        "", 1 / count, factor ? factor->format : DataFormat::IEEE_FP32);
    bool isUsual = !factor || (factor->format == usual.format &&
                               factor->bits == usual.bits);
    if (factor && factor->format == DataFormat::SEN169_FP16)
      isUsual =
          factor->bits == ::spyre::encodeDL16(static_cast<float>(1 / count));
    if (!isUsual) {
      result.name = "spyre_graph.scaled_sum";
      setFloat("factor", "scaling_factor");
    }
  } else if (name == "absmax") {
    setFloat("low", "clipMin");
    setFloat("high", "clipMax");
    setFloat("factor", "mulConst");
  } else if (name == "exx2") {
    setFloat("scale", "exx2scale");
    if (sdsc.op == "exx2_zeromean" || find("useZeroMean").value_or(0) != 0)
      result.attributes.set("zero_mean", builder.getUnitAttr());
  } else if (name == "layernormscale") {
    setFloat("eps", "eps");
  } else if (name == "topk") {
    if (sdsc.op == "topkindex")
      result.attributes.set("indices", builder.getUnitAttr());
  } else if (name == "wrap_index") {
    setInteger("size", "size", 0, kMax);
  } else if (name == "iota") {
    setInteger("dim", "dim", 0, static_cast<int64_t>(extents.size()) - 1);
    for (StringRef own : {"start", "step"})
      if (const Constant *constant = findConstant(own))
        result.attributes.set(own, getImmediate(*constant));
  } else if (name == "tri") {
    if (extents.size() < 2)
      fail("tri needs two dimensions");
    setInteger("diagonal", "diagonal", -kMax, kMax);
    if (getInteger("upper", 0, 1).value_or(0) == 1)
      result.attributes.set("upper", builder.getUnitAttr());
  } else if (name == "cumsum") {
    setInteger("dim", "dim", 0, static_cast<int64_t>(extents.size()) - 1);
  } else if (name == "matmul") {
    setFloat("alpha", "alpha");
    setFloat("beta", "beta");
    if (sdsc.inputs.size() == 3)
      result.attributes.set("has_bias", builder.getUnitAttr());
  }
  if (device.kind == OpKind::Reduction && name != "exx2")
    result.attributes.set("dims", builder.getDenseI64ArrayAttr(reduced));
}

bool spyre::superdsc::isExecuted(StringRef op) {
  bool nonstick;
  const DeviceOp *device = findDeviceOp(op, nonstick);
  return device && !device->graphOp.empty();
}

FailureOr<GraphOperation> OperationReader::run() {
  bool nonstick;
  const DeviceOp *device = findDeviceOp(sdsc.op, nonstick);
  result.name = ("spyre_graph." + StringRef(device->graphOp)).str();
  if (!sdsc.indices.empty())
    result.name =
        sdsc.op == "scatter" ? "spyre_graph.scatter" : "spyre_graph.gather";
  else if (sdsc.op == "scatter")
    fail("scatter needs an index tensor");
  // A product of one tensor with itself was a square.
  if (sdsc.op == "mul" && sdsc.inputs.size() == 2 &&
      sdsc.inputs[0] == sdsc.inputs[1])
    result.name = "spyre_graph.square";
  result.swapsInputs = sdsc.op == "revsub";
  if (sdsc.op == "batchnormfwd" && sdsc.inputs.size() != 3)
    fail("'batchnormfwd' of " + Twine(sdsc.inputs.size()) +
         " inputs is known but nothing here executes it, only x, scale and "
         "shift");
  if (device->kind == OpKind::Pointwise || device->kind == OpKind::Other)
    setImmediates(*device);
  if (sdsc.op == "constant" && !result.attributes.get("immediates"))
    fail("'constant' needs the constant '" + Twine(getImmediateName(0)) + "'");
  setAttributes(*device);
  if (isFailed)
    return failure();
  return std::move(result);
}

FailureOr<GraphOperation>
spyre::superdsc::getGraphOperation(const Sdsc &sdsc, ArrayRef<int64_t> extents,
                                   ArrayRef<int64_t> reduced, Location loc) {
  return OperationReader(sdsc, extents, reduced, loc).run();
}
