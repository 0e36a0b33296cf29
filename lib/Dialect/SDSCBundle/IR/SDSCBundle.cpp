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
#include "Spyre/Dialect/SDSCBundle/IR/SDSCBundleEnums.cpp.inc"
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

LogicalResult InputArgType::verify(function_ref<InFlightDiagnostic()> emitError,
                                   Type, std::optional<int64_t> granularity,
                                   std::optional<int64_t> maxValue) {
  // SDSCBUNDLE-ARG-C1
  if (granularity.has_value() != maxValue.has_value() ||
      (granularity && (*granularity < 1 || *maxValue < *granularity ||
                       *maxValue % *granularity != 0)))
    return emitError()
           << "a size is a multiple of granularity up to max_value, "
              "which is one, too, found granularity "
           << granularity.value_or(0) << " and max_value "
           << maxValue.value_or(0);
  return success();
}

LogicalResult InputArgExtractOp::verify() {
  // SDSCBUNDLE-EXTRACT-C1
  Type inner = getArgument().getType().getValueType();
  if (inner != getValue().getType())
    return emitOpError() << "result type " << getValue().getType()
                         << " must be the type inside the argument's, "
                         << inner;
  // SDSCBUNDLE-EXTRACT-C2
  if (getKind() != InputArgExtractKind::value &&
      !getArgument().getType().getGranularity())
    return emitOpError() << "only a size has a "
                         << stringifyInputArgExtractKind(getKind())
                         << ", but the argument is " << getArgument().getType();
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
