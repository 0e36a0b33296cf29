// SPDX-License-Identifier: Apache-2.0
//===- BundleOps.h - Operations from SuperDSC bundles -----------*- C++ -*-===//

#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_BUNDLEOPS_H
#define SPYRE_DIALECT_SPYREGRAPH_IR_BUNDLEOPS_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

#define GET_OP_CLASSES
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphBundleOps.h.inc"

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_BUNDLEOPS_H
