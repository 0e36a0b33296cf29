// SPDX-License-Identifier: Apache-2.0
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHINTERFACES_TD
#define SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHINTERFACES_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"

def SpyreGraph_LayoutAttrInterface : AttrInterface<"LayoutAttrInterface"> {
  let cppNamespace = "::mlir::spyre_graph";
  let description = [{
    A device layout: how the elements of a tensor of a given shape are arranged
    in 128-byte sticks. Used as a tensor encoding and as a memref memory space.
  }];
  let methods = [
    InterfaceMethod<"Device dimensions, outermost first; the last is the stick.",
      "::llvm::SmallVector<::spyre::DeviceDim>", "getDeviceDims",
      (ins "::llvm::ArrayRef<int64_t>":$shape)>,
    InterfaceMethod<"Stride map for a home of this shape and host strides.",
      "::llvm::SmallVector<int64_t>", "getStrideMap",
      (ins "::llvm::ArrayRef<int64_t>":$shape,
           "::llvm::ArrayRef<int64_t>":$hostStrides)>,
    InterfaceMethod<"Device format of an element.",
      "::spyre::DataFormat", "getDataFormat", (ins)>,
    InterfaceMethod<"The tensor dimension along the stick, or -1 if a stick "
                    "holds one element.",
      "int64_t", "getStickDim", (ins "::llvm::ArrayRef<int64_t>":$shape)>,
  ];
  let extraClassDeclaration = [{
    /// Device extents, outermost first.
    ::llvm::SmallVector<int64_t>
    getDeviceSize(::llvm::ArrayRef<int64_t> shape) const;
    /// The map from tensor coordinates to device coordinates.
    ::mlir::AffineMap getDeviceMap(::llvm::ArrayRef<int64_t> shape,
                                   ::mlir::MLIRContext *context) const;
    /// Bytes of device memory for this shape.
    int64_t getSizeInBytes(::llvm::ArrayRef<int64_t> shape) const;
  }];
}

def SpyreGraph_SpyreOpInterface : OpInterface<"SpyreOpInterface", [
    DestinationStyleOpInterface]> {
  let cppNamespace = "::mlir::spyre_graph";
  let description = [{
    A device operation: a perfect nest of loops over its valid iterations.
    Every pass sees operations through this interface only.

    Operand order is inputs, then the one init (destination). A loop dimension
    is *parallel* if distinct iterations write distinct elements, otherwise it
    is a *reduction* (or a sequential dimension of a scan or scatter), which
    runs on several cores only if isCombinedAcrossCores().

    The scalar computation is given in *compute types*: f32 for floating-point
    element types, i1 for i1, i32 for i8, ui8, i16, i32, and i64 for i64.
  }];
  let methods = [
    InterfaceMethod<[{
        Checks the operands and attributes from which loops are derived. The
        verifier calls it before any other method.}],
      "::mlir::LogicalResult", "verifyOperands", (ins)>,
    InterfaceMethod<"Extent of each loop dimension; the largest, if it varies.",
      "::llvm::SmallVector<int64_t>", "getLoopExtents", (ins)>,
    InterfaceMethod<[{
        The extents as functions of the function's symbols (SG-SYMBOL-C2), or
        null if none varies.}],
      "::mlir::AffineMap", "getLoopExtentMap", (ins)>,
    InterfaceMethod<"Sets the extents as functions of symbols, or removes them.",
      "void", "setLoopExtentMap", (ins "::mlir::AffineMap":$map)>,
    InterfaceMethod<"For each operand the map from loop indices to its "
                    "coordinates.",
      "::llvm::SmallVector<::mlir::AffineMap>", "getIndexingMaps", (ins)>,
    InterfaceMethod<"Kind of each loop dimension.",
      "::llvm::SmallVector<::mlir::utils::IteratorType>", "getLoopKinds",
      (ins)>,
    InterfaceMethod<"Sets the maps and extents explicitly.",
      "void", "setLoopStructure",
      (ins "::llvm::ArrayRef<::mlir::AffineMap>":$maps,
           "::llvm::ArrayRef<int64_t>":$extents)>,
    InterfaceMethod<"The work division, or null before it is planned.",
      "::mlir::spyre_graph::WorkDivisionAttr", "getWorkDivision", (ins)>,
    InterfaceMethod<"Sets the work division.", "void", "setWorkDivision",
      (ins "::mlir::spyre_graph::WorkDivisionAttr":$division)>,
    InterfaceMethod<[{
        The division in whose slices the cores hold operand `operand` if it lies
        in LX: the work division, but for what comes from other cores.}],
      "::mlir::spyre_graph::WorkDivisionAttr", "getAccessDivision",
      (ins "unsigned":$operand)>,
    InterfaceMethod<"Name of the device operation (spec/superdsc.md).",
      "::llvm::StringRef", "getDeviceOpName", (ins)>,
    InterfaceMethod<"Unit that computes it: PT for contractions, else SFU.",
      "::mlir::spyre_graph::Unit", "getUnit", (ins)>,
    InterfaceMethod<"How iterations that write the same element combine.",
      "::mlir::spyre_graph::Combiner", "getCombiner", (ins)>,
    InterfaceMethod<"Which operand is accessed through which other operand.",
      "::std::optional<::mlir::spyre_graph::IndirectAccess>",
      "getIndirectAccess", (ins)>,
    InterfaceMethod<[{
        Where in its init an operation writes, if that varies; nothing
        elsewhere. The init's map says where that is at the largest offset.}],
      "::std::optional<::mlir::spyre_graph::InitOffset>", "getInitOffset",
      (ins)>,
    InterfaceMethod<[{
        Whether the value of an iteration depends on what the init's element
        holds, which an earlier iteration may have written. Such iterations
        run one after the other, in the order of the loops.}],
      "bool", "readsInit", (ins)>,
    InterfaceMethod<[{
        Value of one iteration: the result element of a pointwise op, or what a
        reduction combines. `ins` holds one compute-type value per input that
        is neither an index nor an epilogue input, and then, if readsInit(),
        what the init holds; `loopIndex(d)` gives the global index of loop
        dimension d as an index value.}],
      "::mlir::Value", "buildElement",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "::mlir::ValueRange":$ins,
           "::llvm::function_ref<::mlir::Value(unsigned)>":$loopIndex)>,
    InterfaceMethod<[{
        Whether the value of an iteration depends on the index of parallel loop
        dimension `dim` itself, not only on what the operands hold there. Such
        a dimension cannot be renumbered, as tiling it would.}],
      "bool", "usesLoopIndex", (ins "unsigned":$dim)>,
    InterfaceMethod<[{
        Number of trailing inputs that only the epilogue reads (the bias of a
        matmul).}],
      "unsigned", "getNumEpilogueInputs", (ins)>,
    InterfaceMethod<[{
        Result element from the accumulated value and the epilogue inputs.
        `count` gives the number of elements reduced in this run, as f32; it is
        null where that does not vary.}],
      "::mlir::Value", "buildEpilogue",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "::mlir::Value":$accumulated, "::mlir::ValueRange":$ins,
           "::llvm::function_ref<::mlir::Value()>":$count)>,
    InterfaceMethod<[{
        The number that a reduction over no iterations gives; nothing where
        that is no number, or is an error.}],
      "::std::optional<double>", "getEmptyResult", (ins)>,
    InterfaceMethod<[{
        Whether a reduction over iterations of which one input is multiplied
        with a factor is the former result times that factor. Sums of
        exponentials can then be brought to another maximum.}],
      "bool", "isRescalable", (ins)>,
    InterfaceMethod<[{
        The input y of an elementwise operation that computes exp(x - y), for
        any x; nothing for other operations. What it gives for another y is the
        former result times what it gives for the former y and the other one.}],
      "::std::optional<unsigned>", "getShiftInput", (ins)>,
    InterfaceMethod<[{
        How many elements that follow each other along the loop of a sort are in
        order already, a power of two; 1 for other operations.}],
      "int64_t", "getSortedRun", (ins)>,
    InterfaceMethod<[{
        Whether the reference keeps the result in LX (spec/passes.md, "LX
        scratchpad planning", eligibility).}],
      "bool", "isLXEligibleInReference", (ins)>,
    InterfaceMethod<[{
        Whether the reference writes the result over an operand (the same,
        "In place").}],
      "bool", "isInPlaceInReference", (ins)>,
    InterfaceMethod<[{
        Layout rule family that propagation applies (spec/layouts.md,
        "Propagation rules").}],
      "::mlir::spyre_graph::LayoutRule", "getLayoutRule", (ins)>,
    InterfaceMethod<[{
        What an operation that ranks or compares elements gives of them: their
        values or their indices. The results of a reduction are counted by the
        loop that only the init has.}],
      "::mlir::spyre_graph::RankedResult", "getRankedResult", (ins)>,
  ];
  let verify = [{
    return ::mlir::spyre_graph::detail::verifySpyreOp($_op);
  }];
  let extraSharedClassDeclaration = [{
    ::mlir::OperandRange getSpyreInputs() { return $_op->getOperands().drop_back(); }
    ::mlir::Value getSpyreInit() { return $_op->getOperands().back(); }
  }];
}

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHINTERFACES_TD
