// SPDX-License-Identifier: Apache-2.0
//===- OpNames.cpp - Operations of spyre_graph by device name ---*- C++ -*-===//

#include "OpNames.h"

#include "Spyre/Device/DL16.h"
#include "Spyre/Dialect/SpyreGraph/IR/BundleOps.h"
#include "Spyre/Target/SuperDSC/Model/DeviceOps.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/TypeUtilities.h"

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

namespace {
/// Appends the constants of an operation.
class ConstantWriter {
public:
  ConstantWriter(SpyreOpInterface op, const DeviceOp &device,
                 ArrayRef<int> dimOfLoop, Sdsc &sdsc)
      : op(op), device(device), dimOfLoop(dimOfLoop), sdsc(sdsc) {}

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

  /// The operation's `immediates`, by position or by the name that says it.
  void addImmediates() {
    auto immediates = op->getAttrOfType<ArrayAttr>("immediates");
    if (!immediates)
      return;
    for (auto [position, attribute] : llvm::enumerate(immediates)) {
      if (isa<UnitAttr>(attribute))
        continue;
      std::string name = getImmediateName(position);
      for (const DeviceOpConstant &own : device.getConstants())
        if (own.kind == ConstantKind::Bound &&
            own.number == static_cast<int>(position))
          name = own.name;
      addNumber(name, attribute);
    }
  }

  /// Adds the constants that come from attributes of the operation.
  void addAttributes() {
    for (const DeviceOpConstant &own : device.getConstants())
      addAttribute(own);
  }

private:
  void addAttribute(const DeviceOpConstant &own) {
    std::string name(own.name);
    Attribute attribute = op->getAttr(StringRef(own.attribute));
    auto getInteger = [&] { return cast<IntegerAttr>(attribute).getInt(); };
    switch (own.kind) {
    case ConstantKind::Float: {
      std::optional<double> value;
      if (auto number = dyn_cast_if_present<FloatAttr>(attribute))
        value = number.getValueAsDouble();
      else if (isa<MeanOp>(op.getOperation()))
        value = spyre_graph::detail::getMeanScale(op);
      if (value && value != own.omitted)
        add(std::move(name), *value);
      return;
    }
    case ConstantKind::FloatFlag:
      return add(std::move(name), attribute ? 1 : 0);
    case ConstantKind::Flag:
      return addInteger(name, attribute ? 1 : 0);
    case ConstantKind::Integer:
      if (attribute && getInteger() != own.omitted)
        addInteger(name, getInteger());
      return;
    case ConstantKind::Number:
      return addNumber(std::move(name), attribute);
    case ConstantKind::LoopDim:
      return addInteger(name, dimOfLoop[getInteger()]);
    case ConstantKind::Bound:
    case ConstantKind::Unread:
      return;
    }
  }

  SpyreOpInterface op;
  const DeviceOp &device;
  ArrayRef<int> dimOfLoop;
  Sdsc &sdsc;
};
} // namespace

LogicalResult spyre::superdsc::describeOperation(SpyreOpInterface op,
                                                 ArrayRef<int> dimOfLoop,
                                                 Sdsc &sdsc) {
  sdsc.op = op.getDeviceOpName().str();
  bool nonstick;
  const DeviceOp *device = findDeviceOp(sdsc.op, nonstick);
  if (!device)
    return op->emitOpError() << "SuperDSC has no operation '" << sdsc.op << "'";
  sdsc.unit = device->kind == OpKind::Matmul ? "pt" : "sfp";
  Operation *operation = op;
  if (isa<GatherOp>(operation))
    sdsc.format = getFormat(op.getSpyreInputs()[0]);
  else
    sdsc.format = getFormat(op->getOperand(0));

  ConstantWriter constants(op, *device, dimOfLoop, sdsc);
  if (llvm::any_of(sdsc.dims, [](const Dim &dim) { return dim.masked != 0; })) {
    sdsc.maskConstant = 0;
    constants.add(std::string(kMaskConstant), device->maskValue);
  }
  if (!isa<IdentityOp, RestickifyOp>(operation) || sdsc.op != "notequal")
    constants.addImmediates();
  else if (isa<FloatType>(
               getElementTypeOrSelf(op.getSpyreInputs()[0].getType())))
    constants.add(getImmediateName(1), 0);
  else
    constants.addInteger(getImmediateName(1), 0);
  constants.addAttributes();
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
          fail("the constant '" + name + "' has no number format");
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
      fail("the constant '" + Twine(constant.name) + "' has no number format");
    return builder.getF32FloatAttr(value.value_or(0));
  }
  const Constant *findConstant(StringRef name) {
    for (const Constant &constant : sdsc.constants)
      if (constant.name == name)
        return &constant;
    return nullptr;
  }
  bool isCountsReciprocal();
  void setImmediates(const DeviceOp &device);
  void setAttribute(const DeviceOpConstant &own);
  void setAttributes(const DeviceOp &device);

  const Sdsc &sdsc;
  ArrayRef<int64_t> extents, reduced;
  Location loc;
  Builder builder;
  GraphOperation result;
  bool isFailed = false;
};
} // namespace

/// Whether the factor of a mean is one over the number of elements, as the
/// factor's format has it.
bool OperationReader::isCountsReciprocal() {
  const Constant *factor = findConstant("scaling_factor");
  if (!factor)
    return true;
  double count = 1;
  for (int64_t dim : reduced)
    count *= extents[dim];
  if (factor->format == DataFormat::SEN169_FP16)
    return factor->bits == ::spyre::encodeDL16(static_cast<float>(1 / count));
  Constant usual = makeConstant("", 1 / count, factor->format);
  return factor->format == usual.format && factor->bits == usual.bits;
}

void OperationReader::setImmediates(const DeviceOp &device) {
  // Constants that stand for operands, by position.
  SmallVector<std::pair<int, const Constant *>> operands;
  for (const DeviceOpConstant &own : device.getConstants())
    if (own.kind == ConstantKind::Bound) {
      const Constant *constant = findConstant(own.name);
      if (!constant)
        return fail("'" + Twine(sdsc.op) + "' needs the constant '" +
                    StringRef(own.name) + "'");
      operands.emplace_back(own.number, constant);
    }
  for (const Constant &constant : sdsc.constants)
    if (int position = getImmediatePosition(constant.name); position >= 0)
      operands.emplace_back(position, &constant);
  if (operands.empty())
    return;
  SmallVector<Attribute> immediates(sdsc.inputs.size() + operands.size(),
                                    builder.getUnitAttr());
  for (auto [position, constant] : operands) {
    if (position >= static_cast<int>(immediates.size()))
      return fail("the constant '" + Twine(constant->name) +
                  "' does not belong to an operand");
    immediates[position] = getImmediate(*constant);
  }
  result.attributes.set("immediates", builder.getArrayAttr(immediates));
}

void OperationReader::setAttribute(const DeviceOpConstant &own) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  switch (own.kind) {
  case ConstantKind::Float:
    return setFloat(own.attribute, own.name);
  case ConstantKind::FloatFlag:
    if (find(own.name).value_or(0) != 0)
      result.attributes.set(own.attribute, builder.getUnitAttr());
    return;
  case ConstantKind::Flag:
    if (getInteger(own.name, 0, 1).value_or(0) == 1)
      result.attributes.set(own.attribute, builder.getUnitAttr());
    return;
  case ConstantKind::Integer:
    return setInteger(own.attribute, own.name, own.number, kMax);
  case ConstantKind::Number:
    if (const Constant *constant = findConstant(own.name))
      result.attributes.set(own.attribute, getImmediate(*constant));
    return;
  case ConstantKind::LoopDim:
    return setInteger(own.attribute, own.name, 0,
                      static_cast<int64_t>(extents.size()) - 1);
  case ConstantKind::Bound:
  case ConstantKind::Unread:
    return;
  }
}

void OperationReader::setAttributes(const DeviceOp &device) {
  bool isMean = device.graphOp == "mean" && isCountsReciprocal();
  if (device.graphOp == "mean" && !isMean)
    result.name = ScaledSumOp::getOperationName();
  if (!isMean)
    for (const DeviceOpConstant &own : device.getConstants())
      setAttribute(own);
  if (!device.attributes.empty())
    for (NamedAttribute attribute : cast<DictionaryAttr>(
             parseAttribute(StringRef(device.attributes), loc.getContext())))
      result.attributes.set(attribute.getName(), attribute.getValue());
  if (device.graphOp == "tri" && extents.size() < 2)
    fail("tri needs two dimensions");
  if (device.graphOp == "matmul") {
    auto scales =
        dyn_cast_if_present<IntegerAttr>(result.attributes.get("num_scales"));
    int64_t numScales = scales ? scales.getInt() : 0;
    if (static_cast<int64_t>(sdsc.inputs.size()) > 2 + numScales)
      result.attributes.set("has_bias", builder.getUnitAttr());
  }
  if (llvm::is_contained(
          OperationName(result.name, loc.getContext()).getAttributeNames(),
          "dims"))
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
  if (device->kind == OpKind::Scatter) {
    if (sdsc.indices.empty())
      fail("'" + Twine(sdsc.op) + "' needs an index tensor");
  } else if (!sdsc.indices.empty()) {
    result.name = GatherOp::getOperationName();
  }
  // A product of one tensor with itself was a square.
  if (sdsc.op == "mul" && sdsc.inputs.size() == 2 &&
      sdsc.inputs[0] == sdsc.inputs[1])
    result.name = "spyre_graph.square";
  result.swapsInputs = device->swapsInputs;
  if (sdsc.op == "batchnormfwd" && sdsc.inputs.size() != 3)
    fail("'batchnormfwd' of " + Twine(sdsc.inputs.size()) +
         " inputs is known, but the toolchain cannot execute it, only x, scale "
         "and shift");
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
