// SPDX-License-Identifier: Apache-2.0
#ifndef SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHOPBASE_TD
#define SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHOPBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "Spyre/Dialect/SpyreGraph/IR/DeviceNames.td"
include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphDialect.td"
include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphAttrs.td"
include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphInterfaces.td"

def AnyTensorOrMemRef : AnyTypeOf<[AnyRankedTensor, AnyMemRef]>;

/// A device operation: inputs, one init, and the decisions of the passes.
///
/// Constraints of all of them:
/// - SG-OP-C1: it has as many logical operands (inputs, and immediates where
///   the op takes them) as its scalar computation reads.
/// - SG-OP-C2: an attribute that names a dimension names one that exists, once.
/// - SG-OP-C3: without `maps`, the operands' shapes agree: inputs are broadcast
///   by trailing dimensions, and the init has the shape the operation gives.
/// - SG-OP-C4: an operation without a default form has `maps` and `extents`.
/// - SG-SYMBOL-C2: `extent_map` says the extents of the loops.
/// - SG-OP-C5: elements of 8-bit floats are moved, converted and factors of a
///   matmul; nothing else is computed with them, and no result is
///   (spec/drop-in.md, "Small dtypes", the dtype gate).
/// - SG-OP-C6: operands, and the result of a view, have static shapes. On tensors
///   there is a result of the init's type, on buffers none.
/// - SG-OP-C7: each of the `immediates` is a number or unit, with a unit for each
///   input.
/// - SG-OP-C8: `maps` and `extents` are given together, with a map for each
///   operand, which takes the loops to its coordinates and has no symbols; no
///   extent is negative.
/// - SG-OP-C9: maps, also of a view, divide by positive constants only, and no
///   coordinate lies outside of the operand, but for those that indices replace.
/// - SG-SYMBOL-C5: the operands of an operation, or source and result of a view,
///   agree on how long a loop is at each size.
/// - SG-SYMBOL-C6: what is accessed of a dimension that varies, if that is not all
///   of it, is there at each size.
class SpyreGraph_DeviceOp<string mnemonic, list<Trait> traits = []>
    : Op<SpyreGraph_Dialect, mnemonic, !listconcat([
        DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<SpyreGraph_SpyreOpInterface>], traits)> {
  dag opArguments = (ins);
  let arguments = !con((ins Variadic<AnyTensorOrMemRef>:$inputs,
                            AnyTensorOrMemRef:$init,
                            OptionalAttr<AffineMapArrayAttr>:$maps,
                            OptionalAttr<DenseI64ArrayAttr>:$extents,
                            OptionalAttr<AffineMapAttr>:$extent_map,
                            OptionalAttr<SpyreGraph_WorkDivisionAttr>:$division),
                       opArguments);
  let results = (outs Optional<AnyRankedTensor>:$result);
  // In default form, and with loops. The result has a tensor init's type.
  // TableGen's own would be 12 functions for each operation.
  let skipDefaultBuilders = 1;
  let builders = [
    OpBuilder<(ins "::mlir::ValueRange":$inputs, "::mlir::Value":$init,
                   CArg<"::llvm::ArrayRef<::mlir::NamedAttribute>",
                        "{}">:$attributes), [{
      $_state.addOperands(inputs);
      $_state.addOperands(init);
      if (::llvm::isa<::mlir::TensorType>(init.getType()))
        $_state.addTypes(init.getType());
      $_state.addAttributes(attributes);
    }]>,
    OpBuilder<(ins "::mlir::ValueRange":$inputs, "::mlir::Value":$init,
                   "::llvm::ArrayRef<::mlir::AffineMap>":$maps,
                   "::llvm::ArrayRef<int64_t>":$extents,
                   CArg<"::llvm::ArrayRef<::mlir::NamedAttribute>",
                        "{}">:$attributes), [{
      build($_builder, $_state, inputs, init, attributes);
      $_state.addAttribute("maps", $_builder.getAffineMapArrayAttr(maps));
      $_state.addAttribute("extents", $_builder.getDenseI64ArrayAttr(extents));
    }]>,
  ];
  let assemblyFormat = [{
    (`ins` `(` $inputs^ `:` type($inputs) `)`)?
    `outs` `(` $init `:` type($init) `)` attr-dict (`->` type($result)^)?
  }];

  // The device operations that it executes. The first is written, unless
  // `deviceOpName`, an expression, is another.
  list<DeviceName> deviceNames = [];
  code deviceOpName =
      "\"" # !if(!empty(deviceNames), mnemonic, !head(deviceNames).name) # "\"";
  string deviceKind = "Pointwise";
  // What masked padding counts as; an expression.
  string maskValue = "0.0";
  string unit = "Unit::SFU";
  string combiner = "Combiner::None";
  string rankedResult = "RankedResult::None";
  string layoutRule = "LayoutRule::Pointwise";
  // The reference's lists (spec/passes.md, "LX scratchpad planning"). What it
  // calls pointwise works in place.
  bit isLXEligibleInReference = false;
  bit isInPlaceInReference = false;
  string numEpilogueInputs = "0";
  // Expressions of getEmptyResult(), getShiftInput() and getSortedRun().
  string emptyResult = "std::nullopt";
  string shiftInput = "std::nullopt";
  string sortedRun = "1";
  bit isRescalable = false;
  // Least and greatest number of logical operands.
  int minOperands = 1;
  int maxOperands = minOperands;
  // Statement list checking what `defaultLoops` and `kinds` rely on; runs
  // before either.
  code check = "return ::mlir::success();";
  // Statement list computing the scalar body; sees `ScalarBuilder b`,
  // `ValueRange ins`, `loopIndex`.
  code body = "return ins[0];";
  code epilogue = "(void)ins; return accumulated;";
  // Expression of type detail::LoopStructure when `maps` is absent.
  code defaultLoops = "detail::getPointwiseLoops(*this)";
  code indirect = "return std::nullopt;";
  code initOffset = "return std::nullopt;";
  bit readsInit = false;
  // Statement list of getAccessDivision(operand).
  code accessDivision = "(void)operand; return getDivisionAttr();";
  // Statement list of usesLoopIndex(dim).
  code loopIndexUse = "(void)dim; return false;";
  code kinds = "return detail::getDefaultLoopKinds(*this);";
  code extraDecls = "";

  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
  }] # extraDecls;
  let extraClassDefinition = [{
    ::llvm::SmallVector<int64_t> $cppClass::getLoopExtents() {
      if (auto extents = getExtents())
        return ::llvm::SmallVector<int64_t>(*extents);
      return (}] # defaultLoops # [{).extents;
    }
    ::mlir::AffineMap $cppClass::getLoopExtentMap() {
      return getExtentMap().value_or(::mlir::AffineMap());
    }
    void $cppClass::setLoopExtentMap(::mlir::AffineMap map) {
      setExtentMapAttr(map ? ::mlir::AffineMapAttr::get(map)
                           : ::mlir::AffineMapAttr());
    }
    ::llvm::SmallVector<::mlir::AffineMap> $cppClass::getIndexingMaps() {
      if (auto maps = getMaps())
        return ::llvm::to_vector(maps->getAsValueRange<::mlir::AffineMapAttr>());
      return (}] # defaultLoops # [{).maps;
    }
    ::llvm::SmallVector<::mlir::utils::IteratorType> $cppClass::getLoopKinds() {
      }] # kinds # [{
    }
    void $cppClass::setLoopStructure(::llvm::ArrayRef<::mlir::AffineMap> maps,
                                     ::llvm::ArrayRef<int64_t> extents) {
      ::mlir::Builder builder(getContext());
      setMapsAttr(builder.getAffineMapArrayAttr(maps));
      setExtentsAttr(builder.getDenseI64ArrayAttr(extents));
    }
    ::mlir::LogicalResult $cppClass::verifyOperands() {
      if (::mlir::failed(detail::verifyOperandCount(*this, }]
        # minOperands # ", " # maxOperands # [{)))
        return ::mlir::failure();
      }] # check # [{
    }
    ::mlir::spyre_graph::WorkDivisionAttr $cppClass::getWorkDivision() {
      return getDivisionAttr();
    }
    void $cppClass::setWorkDivision(::mlir::spyre_graph::WorkDivisionAttr d) {
      setDivisionAttr(d);
    }
    ::llvm::StringRef $cppClass::getDeviceOpName() { return }] # deviceOpName # [{; }
    ::mlir::spyre_graph::Unit $cppClass::getUnit() { return }] # unit # [{; }
    ::mlir::spyre_graph::Combiner $cppClass::getCombiner() { return }] # combiner # [{; }
    ::mlir::spyre_graph::RankedResult $cppClass::getRankedResult() {
      return }] # rankedResult # [{;
    }
    bool $cppClass::isLXEligibleInReference() {
      return }] # !if(isLXEligibleInReference, "true", "false") # [{;
    }
    bool $cppClass::isInPlaceInReference() {
      return }] # !if(isInPlaceInReference, "true", "false") # [{;
    }
    ::mlir::spyre_graph::LayoutRule $cppClass::getLayoutRule() { return }] # layoutRule # [{; }
    ::std::optional<double> $cppClass::getEmptyResult() {
      return }] # emptyResult # [{;
    }
    bool $cppClass::isRescalable() {
      return }] # !if(isRescalable, "true", "false") # [{;
    }
    ::std::optional<unsigned> $cppClass::getShiftInput() {
      return }] # shiftInput # [{;
    }
    int64_t $cppClass::getSortedRun() { return }] # sortedRun # [{; }
    unsigned $cppClass::getNumEpilogueInputs() { return }] # numEpilogueInputs # [{; }
    ::std::optional<::mlir::spyre_graph::IndirectAccess> $cppClass::getIndirectAccess() {
      }] # indirect # [{
    }
    ::std::optional<::mlir::spyre_graph::InitOffset> $cppClass::getInitOffset() {
      }] # initOffset # [{
    }
    bool $cppClass::readsInit() {
      return }] # !if(readsInit, "true", "false") # [{;
    }
    ::mlir::spyre_graph::WorkDivisionAttr
    $cppClass::getAccessDivision(unsigned operand) {
      }] # accessDivision # [{
    }
    bool $cppClass::usesLoopIndex(unsigned dim) {
      }] # loopIndexUse # [{
    }
    ::mlir::Value $cppClass::buildElement(
        ::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::ValueRange ins,
        ::llvm::function_ref<::mlir::Value(unsigned)> loopIndex) {
      (void)loopIndex;
      ::mlir::spyre_graph::ScalarBuilder b(builder, loc);
      }] # body # [{
    }
    ::mlir::Value $cppClass::buildEpilogue(
        ::mlir::OpBuilder &builder, ::mlir::Location loc, ::mlir::Value accumulated,
        ::mlir::ValueRange ins, ::llvm::function_ref<::mlir::Value()> count) {
      ::mlir::spyre_graph::ScalarBuilder b(builder, loc);
      (void)b;
      (void)count;
      }] # epilogue # [{
    }
    void $cppClass::getEffects(
        ::llvm::SmallVectorImpl<::mlir::MemoryEffects::EffectInstance> &effects) {
      detail::getDeviceOpEffects(*this, effects);
    }
  }];
}

/// Elementwise over the broadcast of its operands. `immediates`, where present,
/// has one entry per logical operand: `unit` takes the next tensor input, a
/// number is an fp32 (or integer) immediate, never a rounded tensor.
class SpyreGraph_Pointwise<string mnemonic, list<DeviceName> device, code expr,
                           dag extra = (ins)>
    : SpyreGraph_DeviceOp<mnemonic> {
  let opArguments = !con((ins OptionalAttr<ArrayAttr>:$immediates), extra);
  let check = "return detail::verifyPointwise(*this);";
  let deviceNames = device;
  let body = [{
      ::llvm::SmallVector<::mlir::Value> x =
          detail::getLogicalOperands(b, getImmediates(), ins, getInit());
    }] # expr;
  let summary = "elementwise " # mnemonic;
}

class SpyreGraph_Unary<string mnemonic, list<DeviceName> device, code expr>
    : SpyreGraph_Pointwise<mnemonic, device, "return " # expr # ";">;
class SpyreGraph_Binary<string mnemonic, list<DeviceName> device, code expr>
    : SpyreGraph_Pointwise<mnemonic, device,
        "b.promote(x[0], x[1]); return " # expr # ";"> {
  let minOperands = 2;
}

/// Reduces the input over `dims`. The init has the other dimensions in order,
/// or all of them with extent 1 at the reduced ones (keepdim).
class SpyreGraph_Reduction<string mnemonic, list<DeviceName> device,
                           string comb, code expr = "return ins[0];", dag extra = (ins)>
    : SpyreGraph_DeviceOp<mnemonic> {
  let opArguments = !con((ins DenseI64ArrayAttr:$dims), extra);
  let deviceNames = device;
  let deviceKind = "Reduction";
  let combiner = comb;
  // What changes no result.
  let maskValue = !cond(
      !or(!eq(comb, "Combiner::Max"), !eq(comb, "Combiner::ArgMax")) : "-HUGE_VAL",
      !or(!eq(comb, "Combiner::Min"), !eq(comb, "Combiner::ArgMin")) : "HUGE_VAL",
      !or(!eq(comb, "Combiner::Mul"), !eq(comb, "Combiner::And")) : "1.0",
      true : "0.0");
  let layoutRule = "LayoutRule::Reduction";
  let body = expr;
  let defaultLoops = "detail::getReductionLoops(*this, getDims())";
  let check = "return detail::verifyReduction(*this, getDims());";
  let summary = mnemonic # " over dimensions";
}

/// Has no default form: says its loops from the beginning.
class SpyreGraph_MappedOp<string mnemonic> : SpyreGraph_DeviceOp<mnemonic> {
  let check = "return detail::verifyHasLoops(*this);";
  let defaultLoops = "detail::LoopStructure()";
}

#endif // SPYRE_DIALECT_SPYREGRAPH_IR_SPYREGRAPHOPBASE_TD
