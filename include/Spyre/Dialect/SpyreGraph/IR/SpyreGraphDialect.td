// SPDX-License-Identifier: Apache-2.0
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHDIALECT_TD
#define SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHDIALECT_TD

include "mlir/IR/DialectBase.td"

/// Constraints of the attributes of arguments and results:
/// - SG-ARG-C1: `spyre_graph.host_strides` is an array of i64, with one for each
///   dimension.
/// - SG-ARG-C2: `spyre_graph.name` is a string.
/// - SG-ARG-C3: there are no attributes of the dialect but those that it names.
/// - SG-ARG-C4: arrays with these strides can be moved to and from the
///   argument's layout; they are the `host_strides` of an explicit one.
def SpyreGraph_Dialect : Dialect {
  let name = "spyre_graph";
  let cppNamespace = "::mlir::spyre_graph";
  let summary = "Tensor programs for the Spyre accelerator and their plan";
  let description = [{
    A `spyre_graph` program is a function whose arguments are the *homes* of
    PyTorch storages (the shape a storage was created for), whose ops are
    destination-style device operations, and whose results are fresh tensors.
    Passes write every decision into the IR: layouts as tensor encodings (later
    memref memory spaces), index maps of operands, work division, placement.

    Element types are the host's (`f16`, `bf16`, `f32`, `i1`, `i8`, `ui8`,
    `i16`, `i32`, `i64`); the layout says in which format the device stores
    them (spec/layouts.md, "Host dtype").
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::tensor::TensorDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerSpyreAttributes();

    /// Name of the argument and result attribute that holds the host strides
    /// (elements) of the home; absent means row-major over the shape.
    static constexpr llvm::StringLiteral getHostStridesAttrName() {
      return "spyre_graph.host_strides";
    }
    /// Name of the argument and result attribute that holds the name under
    /// which tools read and write the array.
    static constexpr llvm::StringLiteral getNameAttrName() {
      return "spyre_graph.name";
    }
    /// Name of the attribute of an allocating op that holds its PlacementAttr.
    static constexpr llvm::StringLiteral getPlacementAttrName() {
      return "spyre_graph.placement";
    }
    /// Name of the module attribute that holds its TargetAttr.
    static constexpr llvm::StringLiteral getTargetAttrName() {
      return "spyre_graph.target";
    }
    /// Name of the function attribute that holds the size in bytes of the
    /// device-memory pool for intermediates.
    static constexpr llvm::StringLiteral getPoolSizeAttrName() {
      return "spyre_graph.pool_size";
    }
    /// Name of the function attribute that holds its SizeSymbolAttrs.
    static constexpr llvm::StringLiteral getSymbolsAttrName() {
      return "spyre_graph.symbols";
    }
    /// Name of the argument and result attribute that says how large each
    /// dimension is, in the function's symbols; absent means as the type says.
    static constexpr llvm::StringLiteral getSizeMapAttrName() {
      return "spyre_graph.size_map";
    }
  }];
}

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHDIALECT_TD
