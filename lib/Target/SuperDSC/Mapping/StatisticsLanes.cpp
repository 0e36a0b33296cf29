// SPDX-License-Identifier: Apache-2.0
//===- StatisticsLanes.cpp - Statistics in two lanes of a stick -*- C++ -*-===//

#include "StatisticsLanes.h"

#include "Spyre/Dialect/SpyreGraph/IR/BundleOps.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace spyre::superdsc;

bool spyre::superdsc::holdsLanes(const Sdsc &sdsc, unsigned tensor) {
  if (sdsc.op == "exx2" || sdsc.op == "exx2_zeromean")
    return sdsc.outputs[0] == tensor;
  if (sdsc.op == "layernormscale")
    return true;
  if (takesMean(sdsc) && sdsc.inputs[2] == tensor)
    return true;
  return sdsc.op == "layernormnorm" && sdsc.inputs.size() > 1 &&
         sdsc.inputs[1] == tensor;
}

bool spyre::superdsc::takesMean(const Sdsc &sdsc) {
  return sdsc.op == "layernormnorm" && sdsc.inputs.size() == 5;
}

bool spyre::superdsc::holdsLanes(Operation *op, unsigned operand) {
  if (isa<Exx2Op>(op))
    return operand + 1 == op->getNumOperands();
  if (isa<ScaleShiftOp>(op))
    return operand == 1 || operand == 2;
  return isa<LayerNormScaleOp>(op);
}

bool spyre::superdsc::isSecondLane(Operation *op, unsigned operand) {
  return (isa<LayerNormScaleOp>(op) && operand == 1) ||
         (isa<ScaleShiftOp>(op) && operand == 2);
}

bool spyre::superdsc::countsLanes(StringRef graphOp) {
  return graphOp == Exx2Op::getOperationName() ||
         graphOp == LayerNormScaleOp::getOperationName();
}
