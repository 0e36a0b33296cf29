// SPDX-License-Identifier: Apache-2.0
//===- BundleOps.cpp - Operations from SuperDSC bundles ---------*- C++ -*-===//

#include "DeviceNames.h"

#include "Spyre/Dialect/SpyreGraph/IR/BundleOps.h"

#include "Spyre/Dialect/SpyreGraph/IR/ScalarBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::spyre_graph;

/// Whether an index is 0.
static Value isFirst(OpBuilder &b, Location loc, Value index) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, index,
                               arith::ConstantIndexOp::create(b, loc, 0));
}

#define GET_OP_CLASSES
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphBundleOps.cpp.inc"
