// SPDX-License-Identifier: Apache-2.0
//===- Check.h - The check dialect ------------------------------*- C++ -*-===//

#ifndef SPYRE_DIALECT_CHECK_IR_CHECK_H
#define SPYRE_DIALECT_CHECK_IR_CHECK_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "Spyre/Dialect/Check/IR/CheckDialect.h.inc"
#include "Spyre/Dialect/Check/IR/CheckEnums.h.inc"
#define GET_OP_CLASSES
#include "Spyre/Dialect/Check/IR/CheckOps.h.inc"

namespace mlir::check {

/// Whether a function computes tensors of tensors, so that check.run makes the
/// kernel around it. Others are programs, which access memory themselves.
bool isComputation(func::FuncOp function);

} // namespace mlir::check

#endif // SPYRE_DIALECT_CHECK_IR_CHECK_H
