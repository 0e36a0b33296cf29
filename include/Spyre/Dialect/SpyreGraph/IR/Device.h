// SPDX-License-Identifier: Apache-2.0
//===- Device.h - The device that a module is planned for -------*- C++ -*-===//
//
// A module says by `spyre_graph.device` which numbers of its device differ from
// the defaults of DeviceSpec, as in {numCores = 4, clockHertz = 1.0e9}.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_DEVICE_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_DEVICE_H

#include "Spyre/Device/DeviceSpec.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace mlir::spyre_graph {

/// Name of the module attribute, a dictionary.
inline constexpr llvm::StringLiteral kDeviceAttrName = "spyre_graph.device";

/// The value of a pass's option that leaves a number to the module's device.
inline constexpr int64_t kOfDevice = -1;

/// What an option says, or else the device's number.
template <typename T>
T orOfDevice(T option, T ofDevice) {
  return option == static_cast<T>(kOfDevice) ? ofDevice : option;
}

/// The numbers of the module around `op`; the defaults where it says nothing.
/// It reads the attribute each time, so a pass asks once. Throws Error if the
/// attribute is not valid, which the dialect has verified.
::spyre::DeviceSpec getDeviceSpec(Operation *op);

/// The attribute for a device: the numbers that differ from the defaults.
DictionaryAttr getDeviceAttr(MLIRContext *context,
                             const ::spyre::DeviceSpec &device);

/// The attribute for a file of the device's numbers: those that differ from the
/// defaults. Fails with an error at `op` if DeviceSpec does not accept the
/// file.
FailureOr<DictionaryAttr> readDeviceFile(Operation *op, StringRef path);

/// SG-DEVICE-C1 and SG-DEVICE-C2.
LogicalResult verifyDeviceAttr(Operation *op, Attribute attribute);

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_DEVICE_H
