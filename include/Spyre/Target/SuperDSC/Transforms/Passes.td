// SPDX-License-Identifier: Apache-2.0
#ifndef SPYRE_TARGET_SUPERDSC_TRANSFORMS_PASSES_TD
#define SPYRE_TARGET_SUPERDSC_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def SpyreLegalizeSuperDSC
    : Pass<"spyre-legalize-superdsc", "::mlir::func::FuncOp"> {
  let summary = "replace accesses that SuperDSC cannot express";
  let description = [{
    In SuperDSC an operation walks whole sticks at fixed distances, and at most
    one loop walks the lanes of a stick (spec/superdsc.md). KTIR has no such
    limit, so layout propagation leaves copies that shift lanes, pack several
    rows into one stick, or change the stick of a part of a tensor. This pass
    replaces each of them by operations that SuperDSC has:

    1. A copy that uses the quotient and the remainder of a loop gets one loop
       for each.
    2. Another access that is not of this form goes through a copy in which the
       stick lies along a dimension that the access does not use, or along none
       (one element per stick): change of stick, copy, change of stick back. If
       it is still not linear, it reads a copy whose elements stand in one line,
       in an order that makes it linear.
    3. A change of stick of a part of a tensor becomes a copy of the part and a
       change of stick of this copy. If it also converts, it becomes two copies.
    4. An operand of a matmul that skips sticks inside of all loops goes through
       a copy, because that would take a dimension which matmuls do not have.
    5. A reduction of no elements becomes a fill.
    6. A copy that reads elements several times, or interleaved ones (windows),
       becomes one copy per iteration of a loop, if that has at most 64.
    7. A matmul has at most two dimensions that are in all tensors and two that
       the second factor lacks. More batch dimensions are merged into one, by
       copies. A factor is copied along dimensions that only the other one has.
    8. Operands of a topk go through copies whose stick lies along a dimension
       that is neither searched nor counts results (SDSC-TOPK-C1).

    The writer reports what remains: accesses that are not linear in any loops.

    Constraints:
    - SDSC-LEGALIZE-C1: all tensors of the graph have layouts.
  }];
  let dependentDialects = ["::mlir::spyre_graph::SpyreGraphDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numRefined", "refined", "Operations whose loops were cut">,
    Statistic<"numCopies", "copies", "Copies and changes of stick inserted">,
  ];
}

#endif // SPYRE_TARGET_SUPERDSC_TRANSFORMS_PASSES_TD
