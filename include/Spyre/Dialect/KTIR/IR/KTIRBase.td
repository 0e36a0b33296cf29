// SPDX-License-Identifier: Apache-2.0
//
// What the dialect's operation files share.

#ifndef SPYRE_DIALECT_KTIR_IR_KTIRBASE_TD
#define SPYRE_DIALECT_KTIR_IR_KTIRBASE_TD

include "Spyre/Dialect/KTIR/IR/KTIRAttrs.td"
include "Spyre/Dialect/KTIR/IR/KTIRDialect.td"
include "Spyre/Dialect/KTIR/IR/KTIRTypes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class KTDP_Op<string mnemonic, list<Trait> traits = []>
    : Op<KTDP_Dialect, mnemonic, traits>;

def KTDP_IntegerSetAttr : Attr<CPred<"::llvm::isa<::mlir::IntegerSetAttr>($_self)">,
    "integer set attribute"> {
  let storageType = "::mlir::IntegerSetAttr";
  let returnType = "::mlir::IntegerSet";
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall = "::mlir::IntegerSetAttr::get($0)";
}

#endif // SPYRE_DIALECT_KTIR_IR_KTIRBASE_TD
