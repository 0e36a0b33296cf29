// SPDX-License-Identifier: Apache-2.0
//
// The `ktdp` dialect (KTIR): tiles, memory views and inter-tile
// communication. Rules and spellings: spec/ktir.md, "Dialect `ktdp`, exact".

#ifndef SPYRE_DIALECT_KTIR_IR_KTIRDIALECT_TD
#define SPYRE_DIALECT_KTIR_IR_KTIRDIALECT_TD

include "mlir/IR/OpBase.td"

def KTDP_Dialect : Dialect {
  let name = "ktdp";
  let cppNamespace = "::mlir::ktdp";
  let summary = "Kernel tile IR: memory views, access tiles, data tiles";
  let description = [{
    A kernel is one `func.func` that every core of a grid executes. It names
    memory in three steps: a *memory view* gives a pointer sizes, strides and a
    memory space (a memref); an *access tile* is a set of coordinates in a view;
    a *data tile* is the tensor value that `ktdp.load` makes and `ktdp.store`
    consumes. The view's pointer operand counts elements, not bytes.

    Function arguments may carry seven attributes of this dialect:

    - `ktdp.name` (string): the argument's name for callers.
    - `ktdp.layout` (`#ktdp.layout`): the device layout of the array whose
      element index the argument is. Without it, arrays are dense row-major.
    - `ktdp.pool_size` (i64): the argument is the byte address of a scratch
      pool of that many bytes.
    - `ktdp.reach` (array of i64): the function accesses only coordinates below
      these of the array that `ktdp.layout` describes. Without it, it may
      access all of the array.
    - `ktdp.size_map` (affine map): the function takes arrays of several sizes.
      The map takes the values of its run-time arguments, in order, to the
      shape; `ktdp.layout` describes the largest one, and the strides and device
      sizes of others follow from it: the order of the dimensions stays.
    - `ktdp.used_map` (affine map): the array is the one that `ktdp.layout`
      describes in every run. The function accesses what an array of the sizes
      of the map would have, as `ktdp.size_map` has them.
    - `ktdp.least` (i64): the least value of a run-time argument, whose type has
      only an upper bound.

    Constraints:

    - `KTDP-ARG-C1`: `ktdp.name` is a string that is not empty.
    - `KTDP-ARG-C2`: `ktdp.layout` is a `#ktdp.layout`.
    - `KTDP-ARG-C3`: `ktdp.pool_size` is an i64 that is not negative.
    - `KTDP-ARG-C4`: an argument with `ktdp.layout` or `ktdp.pool_size` has type
      `index`, and carries only one of the two.
    - `KTDP-ARG-C5`: no other argument attribute of the dialect exists.
    - `KTDP-ARG-C6`: `ktdp.reach` is an array of i64 beside a `ktdp.layout`, with
      one number from 0 to the extent for each dimension of its shape.
    - `KTDP-ARG-C7`: `ktdp.size_map` or `ktdp.used_map`, of which an argument has
      one, is a map beside a `ktdp.layout`, without dimensions, from as many
      symbols as the function has run-time arguments to one size per dimension
      of the shape.
    - `KTDP-ARG-C8`: `ktdp.least` is an i64 on a run-time argument of an integer
      type, and not above its upper bound.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
  let useDefaultTypePrinterParser = 1;
  // Two spellings of one attribute: see parseAttribute().
  let useDefaultAttributePrinterParser = 0;
  let hasRegionArgAttrVerify = 1;
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = [{
    /// Names of the argument attributes.
    static constexpr ::llvm::StringLiteral kNameAttr = "ktdp.name";
    static constexpr ::llvm::StringLiteral kLayoutAttr = "ktdp.layout";
    static constexpr ::llvm::StringLiteral kPoolSizeAttr = "ktdp.pool_size";
    static constexpr ::llvm::StringLiteral kReachAttr = "ktdp.reach";
    static constexpr ::llvm::StringLiteral kSizeMapAttr = "ktdp.size_map";
    static constexpr ::llvm::StringLiteral kUsedMapAttr = "ktdp.used_map";
    static constexpr ::llvm::StringLiteral kLeastAttr = "ktdp.least";

    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser,
                                     ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attr,
                        ::mlir::DialectAsmPrinter &printer) const override;

    /// Register what TableGen generates.
    void registerAttributes();
    void registerTypes();
    void registerOps();
  }];
}

#endif // SPYRE_DIALECT_KTIR_IR_KTIRDIALECT_TD
