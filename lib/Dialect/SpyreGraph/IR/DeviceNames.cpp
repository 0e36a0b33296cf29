// SPDX-License-Identifier: Apache-2.0
//===- DeviceNames.cpp - Names that depend on operands ----------*- C++ -*-===//

#include "DeviceNames.h"

#include "Spyre/Dialect/SpyreGraph/IR/Convolution.h"
#include "Spyre/Dialect/SpyreGraph/IR/ElementCost.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using spyre::DataFormat;

bool spyre_graph::detail::areBooleans(SpyreOpInterface op) {
  return llvm::all_of(op->getOperands(), [](Value operand) {
    return getElementTypeOrSelf(operand.getType()).isInteger(1);
  });
}

bool spyre_graph::detail::hasNumbersAfterFirst(SpyreOpInterface op) {
  auto immediates = op->getAttrOfType<ArrayAttr>("immediates");
  return immediates && op.getSpyreInputs().size() == 1 &&
         isa<UnitAttr>(immediates[0]);
}

static DataFormat getFormat(Value operand) {
  Type type = operand.getType();
  if (LayoutAttrInterface layout = getLayout(type))
    return layout.getDataFormat();
  return getDeviceFormat(getElementTypeOrSelf(type))
      .value_or(DataFormat::INVALID);
}

static bool isPacked(Value operand) {
  LayoutAttrInterface layout = getLayout(operand.getType());
  return layout && getNumPacked(layout) > 1;
}

StringRef spyre_graph::detail::getMatmulName(SpyreOpInterface op) {
  switch (getMacFormat(op)) {
  case ::spyre::MacFormat::FP16:
    return getConvolutionWindows(op).empty() ? "batchmatmul" : "conv2d";
  case ::spyre::MacFormat::FP8:
    return "batchmatmulfp8";
  case ::spyre::MacFormat::Int8:
    return "batchmatmulint8";
  case ::spyre::MacFormat::Int4:
    return "batchmatmulint4";
  }
  llvm_unreachable("unknown format");
}

StringRef spyre_graph::detail::getQuantizeName(SpyreOpInterface op) {
  return isPacked(op.getSpyreInit()) ? "csqint8wt" : "csqint8ch";
}

StringRef spyre_graph::detail::getCopyName(SpyreOpInterface op) {
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
  if (in == DataFormat::SEN143_FP8 && out == DataFormat::SEN169_FP16)
    return "fp8todl16";
  if (in == DataFormat::SEN169_FP16 && out == DataFormat::SEN143_FP8)
    return isPacked(op.getSpyreInit()) ? "qfp8wt" : "qfp8ch";
  return in == out ? "identity" : "convert";
}
