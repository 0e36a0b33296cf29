// SPDX-License-Identifier: Apache-2.0
//===- VendorOps.cpp - Operations from SuperDSC bundles ---------*- C++ -*-===//

#include "Spyre/Dialect/SpyreGraph/IR/VendorOps.h"

#include "Spyre/Dialect/SpyreGraph/IR/ScalarBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::spyre_graph;

static LogicalResult verifyHasLoops(SpyreOpInterface op) {
  // SG-OP-C4
  auto extents = op->getAttrOfType<DenseI64ArrayAttr>("extents");
  if (!op->hasAttr("maps") || !extents || extents.empty())
    return op->emitOpError(
        "must have maps and extents: it has no default form");
  return success();
}

/// Whether an index is 0.
static Value isFirst(OpBuilder &b, Location loc, Value index) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, index,
                               arith::ConstantIndexOp::create(b, loc, 0));
}

#define GET_OP_CLASSES
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphVendorOps.cpp.inc"
