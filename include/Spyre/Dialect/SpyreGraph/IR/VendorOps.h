// SPDX-License-Identifier: Apache-2.0
//===- VendorOps.h - Operations from SuperDSC bundles -----------*- C++ -*-===//

#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_VENDOROPS_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_VENDOROPS_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

#define GET_OP_CLASSES
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphVendorOps.h.inc"

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_VENDOROPS_H
