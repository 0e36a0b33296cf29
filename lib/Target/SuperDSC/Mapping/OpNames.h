// SPDX-License-Identifier: Apache-2.0
//===- OpNames.h - Operations of spyre_graph by device name -----*- C++ -*-===//

#ifndef SPYRE_LIB_TARGET_SUPERDSC_MAPPING_OPNAMES_H
#define SPYRE_LIB_TARGET_SUPERDSC_MAPPING_OPNAMES_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Target/SuperDSC/Model/Model.h"

namespace spyre::superdsc {

/// Sets name, unit, data format and constants of `sdsc` from an operation,
/// whose dimensions are already there: `dimOfLoop` gives for each loop its
/// dimension, or -1. Fails with a diagnostic on the operation.
mlir::LogicalResult describeOperation(mlir::spyre_graph::SpyreOpInterface op,
                                      mlir::ArrayRef<int> dimOfLoop,
                                      Sdsc &sdsc);

/// The operation that executes `sdsc`: its name and attributes other than maps,
/// extents and division, and how its operands are ordered.
struct GraphOperation {
  std::string name;
  mlir::NamedAttrList attributes;
  /// The two inputs change places.
  bool swapsInputs = false;
};
/// `extents`: of the loops, one per dimension; `reduced` are those that are
/// reduced. For operations that are executed; fails with a diagnostic at `loc`.
mlir::FailureOr<GraphOperation>
getGraphOperation(const Sdsc &sdsc, mlir::ArrayRef<int64_t> extents,
                  mlir::ArrayRef<int64_t> reduced, mlir::Location loc);

/// Whether anything here executes the device operation.
bool isExecuted(llvm::StringRef op);

/// Whether the output accumulates, so that it is listed among the inputs.
bool listsOutputAsInput(const Sdsc &sdsc);

} // namespace spyre::superdsc

#endif // SPYRE_LIB_TARGET_SUPERDSC_MAPPING_OPNAMES_H
