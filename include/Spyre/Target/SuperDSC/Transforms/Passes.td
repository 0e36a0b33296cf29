// SPDX-License-Identifier: Apache-2.0
#ifndef SPYRE_TARGET_SUPERDSC_TRANSFORMS_PASSES_TD
#define SPYRE_TARGET_SUPERDSC_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def SpyreLegalizeSuperDSC
    : Pass<"spyre-legalize-superdsc", "::mlir::func::FuncOp"> {
  let summary = "replace accesses that SuperDSC cannot say";
  let description = [{
    In SuperDSC an operation walks whole sticks at fixed distances, and at most
    one loop walks the lanes of a stick (spec/superdsc.md). KTIR has no such
    limit, so layout propagation leaves copies that shift lanes, pack several
    rows into one stick, or change the stick of a part of a tensor. This pass
    makes each of them from operations that SuperDSC has:

    1. A copy whose loops are used by quotient and remainder gets one loop for
       each.
    2. Another access that is not of this form goes through a copy in which the
       stick lies along a dimension that does not matter to it, or along none
       (one element per stick): change of stick, copy, change of stick back.
       One that is still not linear reads a copy in which the elements stand in
       one line, in an order in which it is.
    3. A change of stick of a part of a tensor becomes a copy of the part and a
       change of stick of a whole; one that also converts becomes two copies.

    4. An operand of a matmul goes through a copy if sticks are skipped inside of
       all loops: that takes a dimension which matmuls do not have.
    5. A reduction of nothing becomes a fill.
    6. A copy that reads elements several times or between each other (windows)
       becomes one copy per iteration of a loop, if that has at most 64.
    7. A matmul has two dimensions that are in all tensors and two that the
       second factor lacks. Of more batches one is made, through copies; a factor
       is copied along dimensions that only the other one has.

    What remains, accesses that are not linear in any loops, is reported by the
    writer.
  }];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numRefined", "refined", "Operations whose loops were cut">,
    Statistic<"numCopies", "copies", "Copies and changes of stick inserted">,
  ];
}

#endif // SPYRE_TARGET_SUPERDSC_TRANSFORMS_PASSES_TD
