// SPDX-License-Identifier: Apache-2.0
#ifndef SPYRE_CONVERSION_PASSES_TD
#define SPYRE_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertSpyreGraphToKTIR
    : Pass<"convert-spyre-graph-to-ktir", "::mlir::ModuleOp"> {
  let summary = "lower planned spyre_graph to KTIR kernels and their sequence";
  let description = [{
    KTIR is the form that runs: one kernel per device operation, and a sequence
    function that calls the kernels. The planned graph has made every decision
    except one: each core walks its slice of the work division in sub-tiles,
    which this pass chooses so that they fit the LX that planning left over.

    Operands are accessed by `ktdp.construct_indirect_access_tile`. Its variables
    are the loop dimensions and its subscripts are device coordinates, so views,
    reshapes and gathers cost no copy. Accumulators are fp32 values that the
    loops over sub-tiles of reduction dimensions carry; each operation rounds
    once. Kernels that differ only in addresses are emitted once.

    The symbols of a function become run-time arguments of its sequence. Kernels
    take their values, and compute sizes and strides of views, and each core's
    slice, from them.

    Constraints:
    - SG-TO-KTIR-C1: the function is planned: operands are function arguments
      or placed allocations with a layout, every op has a work division, and
      arguments have element types that host tensors can have.
    - SG-TO-KTIR-C2: a dimension that is accessed indirectly, or from an offset
      on, is one whole device dimension outside the stick.
    - SG-TO-KTIR-C3: in LX, an operand's coordinates are loop dimensions, zeros,
      or constants of dimensions that every core holds whole.
    - SG-TO-KTIR-C4: loops have constant bounds, or run up to a symbol
      (SG-SYMBOL-C4), and carry no values. A tile is a
      dense part of a whole buffer in device memory whose layout is relative to
      its shape. It starts at whole sticks, at constants, at induction
      variables or at a `spyre_graph.tile_start`.
    - SG-TO-KTIR-C5: source and destination of a `spyre_graph.reshard` lie in LX.
    - SG-TO-KTIR-C6: the extent of a `spyre_graph.reshard` along a packed
      dimension does not vary.
  }];
  let options = [
    Option<"lxBytes", "lx-bytes", "int64_t", "-1",
           "Bytes of LX per core that planning left for the kernels' tiles; -1: "
           "what the device keeps for them">
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

def ConvertATenToSpyreGraph
    : Pass<"convert-aten-to-spyre-graph", "::mlir::ModuleOp"> {
  let summary = "import calls of ATen operators by the ATen table";
  let description = [{
    Graphs of PyTorch become spyre_graph call by call, through the ATen table.
    This pass runs the same table on operations named as the overloads are, so
    that what a row builds, or why it refuses, can be seen without PyTorch. An
    operation is unregistered (`-allow-unregistered-dialect`), and its result
    types are those that PyTorch gives the results; `none` stands for a result
    that is no tensor. Attributes are arguments by name: numbers, strings, lists
    of those, element types for dtypes, `unit` for None. Operands are the first
    arguments, or those that `operands` names.

    ```mlir
    func.func @f(%x: tensor<4x65xf16>, %y: tensor<65xf16>)
        -> (tensor<4x65xf16>, tensor<8x65xf16>) {
      %0 = "aten.add.Tensor"(%x, %y) {alpha = 2}
          : (tensor<4x65xf16>, tensor<65xf16>) -> tensor<4x65xf16>
      %1 = "aten.cat.default"(%0, %x) {operands = ["tensors[0]", "tensors[1]"]}
          : (tensor<4x65xf16>, tensor<4x65xf16>) -> tensor<8x65xf16>
      return %0, %1 : tensor<4x65xf16>, tensor<8x65xf16>
    }
    ```

    Constraints:
    - ATEN-TO-SG-C1: the table has a row for the overload that takes these
      arguments, and the results it gives have the types of the operation's.
    - ATEN-TO-SG-C2: `operands` names one parameter, or an entry of one, for
      each operand, and none twice.
    - ATEN-TO-SG-C3: an attribute is of a kind that arguments have; a result is
      a tensor of static shape, or `none`.
  }];
  let dependentDialects = [
    "::mlir::spyre_graph::SpyreGraphDialect", "::mlir::tensor::TensorDialect"
  ];
}

#endif // SPYRE_CONVERSION_PASSES_TD
