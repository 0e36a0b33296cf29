// SPDX-License-Identifier: Apache-2.0
//===- DeviceOps.cpp - The operations that SuperDSC names -------*- C++ -*-===//

#include "Spyre/Target/SuperDSC/Model/DeviceOps.h"

#include "Spyre/Device/DL16.h"

#include "llvm/ADT/StringRef.h"

#include <cmath>
#include <cstring>

using namespace spyre::superdsc;

using llvm::ArrayRef;
using llvm::StringRef;

#define GET_DeviceOps_DECL
#define GET_DeviceOps_IMPL
#define GET_DeviceOpConstants_IMPL
namespace {
#include "Spyre/Target/SuperDSC/Model/DeviceOps.inc"
} // namespace

ArrayRef<DeviceOp> spyre::superdsc::getDeviceOps() { return DeviceOps; }

ArrayRef<DeviceOpConstant> DeviceOp::getConstants() const {
  auto isOwn = [&](const DeviceOpConstant &constant) {
    return constant.op == name;
  };
  ArrayRef<DeviceOpConstant> all(DeviceOpConstants);
  return all.drop_until(isOwn).take_while(isOwn);
}

const DeviceOp *spyre::superdsc::findDeviceOp(std::string_view opFunc,
                                              bool &nonstick) {
  // The generated search ignores case.
  auto find = [](StringRef name) {
    const DeviceOp *op = lookupDeviceOp(name);
    return op && StringRef(op->name) == name ? op : nullptr;
  };
  nonstick = false;
  StringRef name = opFunc;
  if (const DeviceOp *op = find(name))
    return op;
  if (!name.consume_back("nonstick"))
    return nullptr;
  const DeviceOp *op = find(name);
  nonstick = op && op->hasNonstick;
  return nonstick ? op : nullptr;
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
