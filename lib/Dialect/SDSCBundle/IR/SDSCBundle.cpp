// SPDX-License-Identifier: Apache-2.0
//===- SDSCBundle.cpp - The sdscbundle dialect ------------------*- C++ -*-===//

#include "Spyre/Dialect/SDSCBundle/IR/SDSCBundle.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::sdscbundle;

#include "Spyre/Dialect/SDSCBundle/IR/SDSCBundleDialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "Spyre/Dialect/SDSCBundle/IR/SDSCBundleTypes.cpp.inc"
#define GET_OP_CLASSES
#include "Spyre/Dialect/SDSCBundle/IR/SDSCBundleOps.cpp.inc"

void SDSCBundleDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "Spyre/Dialect/SDSCBundle/IR/SDSCBundleTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Spyre/Dialect/SDSCBundle/IR/SDSCBundleOps.cpp.inc"
      >();
}

LogicalResult InputArgExtractOp::verify() {
  // SDSCBUNDLE-EXTRACT-C1
  Type inner = getArgument().getType().getValueType();
  if (inner != getValue().getType())
    return emitOpError() << "result type " << getValue().getType()
                         << " must be the type inside the argument's, "
                         << inner;
  return success();
}

LogicalResult SdscExecuteOp::verify() {
  // SDSCBUNDLE-EXECUTE-C3
  if (getSdscFilename().empty())
    return emitOpError("sdsc_filename must not be empty");
  // SDSCBUNDLE-EXECUTE-C1
  size_t numIds = getSymbolIds() ? getSymbolIds()->size() : 0;
  if (numIds != getAddresses().size())
    return emitOpError() << "has " << numIds << " symbol ids for "
                         << getAddresses().size() << " operands";
  // SDSCBUNDLE-EXECUTE-C2
  llvm::DenseSet<int64_t> seen;
  if (getSymbolIds())
    for (Attribute attribute : getSymbolIdsAttr()) {
      int64_t id = cast<IntegerAttr>(attribute).getInt();
      if (id >= 0 || !seen.insert(id).second)
        return emitOpError() << "symbol ids must be negative and distinct, "
                                "but found "
                             << id << (id < 0 ? " twice" : "");
    }
  return success();
}
