// SPDX-License-Identifier: Apache-2.0
//===- StatisticsLanes.h - Statistics in two lanes of a stick ---*- C++ -*-===//
//
// exx2, layernormscale and layernormnorm hand on two values per stick
// (arrangement EXX2, spec/layouts.md). SuperDSC shows such a tensor as one that
// has no lanes. In spyre_graph the lanes are its last dimension, of extent 2,
// and an operation that reads both has an operand for each.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_TARGET_SUPERDSC_MAPPING_STATISTICSLANES_H
#define SPYRE_LIB_TARGET_SUPERDSC_MAPPING_STATISTICSLANES_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Target/SuperDSC/Model/Model.h"

namespace spyre::superdsc {

inline constexpr int64_t kNumLanes = 2;

/// Whether a tensor holds statistics.
bool holdsLanes(const Sdsc &sdsc, unsigned tensor);

/// Whether it is a layernormnorm that is given the statistics themselves, too:
/// x, statistics, scale and shift, weight, bias.
bool takesMean(const Sdsc &sdsc);

/// Whether an operand is a lane, or all lanes, of statistics; and whether it is
/// the second of two operands that are one tensor.
bool holdsLanes(mlir::Operation *op, unsigned operand);
bool isSecondLane(mlir::Operation *op, unsigned operand);

/// Whether the last loop counts lanes of the result.
bool countsLanes(llvm::StringRef graphOp);

} // namespace spyre::superdsc

#endif // SPYRE_LIB_TARGET_SUPERDSC_MAPPING_STATISTICSLANES_H
