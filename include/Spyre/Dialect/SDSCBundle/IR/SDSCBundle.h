// SPDX-License-Identifier: Apache-2.0
//===- SDSCBundle.h - The sdscbundle dialect --------------------*- C++ -*-===//

#ifndef SPYRE_DIALECT_SDSCBUNDLE_IR_SDSCBUNDLE_H
#define SPYRE_DIALECT_SDSCBUNDLE_IR_SDSCBUNDLE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "Spyre/Dialect/SDSCBundle/IR/SDSCBundleDialect.h.inc"
#include "Spyre/Dialect/SDSCBundle/IR/SDSCBundleEnums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "Spyre/Dialect/SDSCBundle/IR/SDSCBundleTypes.h.inc"
#define GET_OP_CLASSES
#include "Spyre/Dialect/SDSCBundle/IR/SDSCBundleOps.h.inc"

#endif // SPYRE_DIALECT_SDSCBUNDLE_IR_SDSCBUNDLE_H
