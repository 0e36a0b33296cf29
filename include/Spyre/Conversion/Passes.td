// SPDX-License-Identifier: Apache-2.0
#ifndef SPYRE_CONVERSION_PASSES_TD
#define SPYRE_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertSpyreGraphToKTIR
    : Pass<"convert-spyre-graph-to-ktir", "::mlir::ModuleOp"> {
  let summary = "lower planned spyre_graph to KTIR kernels and their sequence";
  let description = [{
    KTIR is what runs: one kernel per device operation and a sequence function
    that calls them. Everything is decided in the planned graph; this pass only
    spells it out. Each core takes its slice of the work division and walks it
    in sub-tiles that fit the LX which planning left over. Operand accesses are
    `ktdp.construct_indirect_access_tile`s whose variables are the loop
    dimensions and whose subscripts are device coordinates, so that views,
    reshapes and gathers cost no copy. Accumulators are fp32 values carried by
    the loops over sub-tiles of reduction dimensions; each operation rounds
    once.

    Kernels that differ only in addresses are emitted once.

    Constraints:
    - SG-TO-KTIR-C1: the function is planned: operands are function arguments
      or placed allocations with a layout, every op has a work division,
      arguments have element types that stand for host types.
    - SG-TO-KTIR-C2: an indirectly accessed dimension is one whole device
      dimension outside the stick.
    - SG-TO-KTIR-C3: in LX, an operand's coordinates are loop dimensions, zeros,
      or constants of dimensions that every core holds whole.
    - SG-TO-KTIR-C4: loops have constant bounds and carry nothing; a tile is a
      dense part of a whole buffer in device memory whose layout is relative to
      its shape, and starts at whole sticks, at constants or at induction
      variables.
    - SG-TO-KTIR-C5: what moves between the LX of cores lies there, before and
      after.
  }];
  let options = [
    Option<"lxBytes", "lx-bytes", "int64_t",
           "::spyre::DeviceSpec().reservedLXBytes()",
           "LX bytes per core for data tiles: what planning leaves over">
  ];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Kernels emitted">,
    Statistic<"numCalls", "num-calls", "Kernel calls emitted">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::ktdp::KTDPDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

#endif // SPYRE_CONVERSION_PASSES_TD
