// SPDX-License-Identifier: Apache-2.0
//===- DeviceOptions.h - Options in place of a device's numbers -*- C++ -*-===//

#ifndef SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_DEVICEOPTIONS_H
#define SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_DEVICEOPTIONS_H

#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Dialect/SpyreGraph/IR/Device.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::spyre_graph {

/// Options of passes that replace numbers of the device.
struct DeviceOptions {
  /// Of the card, in bytes of LX per core, and in bytes of a tensor that a core
  /// addresses.
  int64_t cores = kOfDevice, capacity = kOfDevice, maxSpan = kOfDevice;
  /// Of LX, for the kernels' own tiles.
  double lxFraction = kOfDevice;

  /// The numbers of the device around `function` with these instead. Fails with
  /// an error at it where one is out of range.
  FailureOr<::spyre::DeviceSpec> apply(func::FuncOp function) const;
};

} // namespace mlir::spyre_graph

#endif // SPYRE_DIALECT_SPYREGRAPH_ANALYSIS_DEVICEOPTIONS_H
