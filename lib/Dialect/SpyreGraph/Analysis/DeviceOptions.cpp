// SPDX-License-Identifier: Apache-2.0
//===- DeviceOptions.cpp - Options in place of a device's numbers ---------===//

#include "Spyre/Dialect/SpyreGraph/Analysis/DeviceOptions.h"

using namespace mlir;
using namespace mlir::spyre_graph;

FailureOr<::spyre::DeviceSpec>
DeviceOptions::apply(func::FuncOp function) const {
  ::spyre::DeviceSpec spec = getDeviceSpec(function);
  spec.numCores = orOfDevice(cores, spec.numCores);
  spec.lxBytesPerCore = orOfDevice(capacity, spec.lxBytesPerCore);
  spec.lxReservedFraction = orOfDevice(lxFraction, spec.lxReservedFraction);
  spec.maxSpanBytes = orOfDevice(maxSpan, spec.maxSpanBytes);
  if (std::string wrong = ::spyre::checkNumCores(spec.numCores); !wrong.empty())
    return FailureOr<::spyre::DeviceSpec>(function.emitError() << wrong);
  if (spec.lxBytesPerCore < 0 ||
      !(spec.lxReservedFraction >= 0 && spec.lxReservedFraction <= 1))
    return FailureOr<::spyre::DeviceSpec>(
        function.emitError()
        << "expected a capacity of at least 0 and a fraction from 0 to 1, "
           "found "
        << spec.lxBytesPerCore << " and " << spec.lxReservedFraction);
  if (spec.maxSpanBytes < 1)
    return FailureOr<::spyre::DeviceSpec>(
        function.emitError() << "expected a max-span of at least 1 byte, found "
                             << spec.maxSpanBytes);
  return spec;
}
