// SPDX-License-Identifier: Apache-2.0
//
// The `sdscbundle` dialect: the program of a SuperDSC bundle.

#ifndef SPYRE_DIALECT_SDSCBUNDLE_IR_SDSCBUNDLEOPS_TD
#define SPYRE_DIALECT_SDSCBUNDLE_IR_SDSCBUNDLEOPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "Spyre/Dialect/SDSCBundle/IR/SDSCBundleRules.td"

class SDSCBundle_Op<string mnemonic, list<Trait> traits = []>
    : Op<SDSCBundle_Dialect, mnemonic, traits>;

def SDSCBundle_InputArgType : TypeDef<SDSCBundle_Dialect, "InputArg"> {
  let mnemonic = "input_arg";
  let summary = "an argument that the runtime binds before a launch";
  let description = [{
    An address, or, with `granularity` and `max_value`, a size: a multiple of
    the one up to the other.

    Constraints:
    - SDSCBUNDLE-ARG-C1: a size has both, and 0 < `granularity` divides
      `max_value`.
  }];
  let parameters = (ins "::mlir::Type":$valueType,
                        OptionalParameter<"std::optional<int64_t>">:$granularity,
                        OptionalParameter<"std::optional<int64_t>">:$maxValue);
  let assemblyFormat = [{
    `<` $valueType
    (`,` `granularity` `=` $granularity^ `,` `max_value` `=` $maxValue)? `>`
  }];
  let genVerifyDecl = 1;
}

def SDSCBundle_InputArgExtractKind
    : I32EnumAttr<"InputArgExtractKind", "what to extract", [
        I32EnumAttrCase<"value", 0>, I32EnumAttrCase<"granularity", 1>,
        I32EnumAttrCase<"max_value", 2>
      ]> {
  let cppNamespace = "::mlir::sdscbundle";
}

def SDSCBundle_InputArgExtractOp
    : SDSCBundle_Op<"input_arg_extract", [Pure]> {
  let summary = "the value of an argument, or a bound of its type";
  let description = [{
    Constraints:
    - SDSCBUNDLE-EXTRACT-C1: the result has the type inside the argument's.
    - SDSCBUNDLE-EXTRACT-C2: only a size has a `granularity` and a `max_value`.
  }];
  let arguments = (ins SDSCBundle_InputArgExtractKind:$kind,
                       SDSCBundle_InputArgType:$argument);
  let results = (outs Index:$value);
  let assemblyFormat = [{
    $kind `from` $argument attr-dict `:` qualified(type($argument)) `->` type($value)
  }];
  let hasVerifier = 1;
}

def SDSCBundle_SdscExecuteOp : SDSCBundle_Op<"sdsc_execute"> {
  let summary = "execute the operation in a JSON file";
  let description = [{
    Executions are sequential. Each operand is the address that stands for the
    symbol at the same position of `symbol_ids` in the file.

    Constraints:
    - SDSCBUNDLE-EXECUTE-C1: `symbol_ids` has one entry per operand.
    - SDSCBUNDLE-EXECUTE-C2: symbol ids are negative and distinct.
    - SDSCBUNDLE-EXECUTE-C3: `sdsc_filename` is not empty.
  }];
  let arguments = (ins Variadic<Index>:$addresses, StrAttr:$sdsc_filename,
                       OptionalAttr<I64ArrayAttr>:$symbol_ids);
  let assemblyFormat = "`(` $addresses `)` attr-dict";
  let hasVerifier = 1;
}

#endif // SPYRE_DIALECT_SDSCBUNDLE_IR_SDSCBUNDLEOPS_TD
