// SPDX-License-Identifier: Apache-2.0
//===- Check.cpp - The check dialect --------------------------------------===//

#include "Spyre/Dialect/Check/IR/Check.h"
#include "Spyre/Dialect/KTIR/IR/KTIR.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::check;

#include "Spyre/Dialect/Check/IR/CheckDialect.cpp.inc"
#include "Spyre/Dialect/Check/IR/CheckEnums.cpp.inc"

//===----------------------------------------------------------------------===//
// What is expected: `%value : type`, or `dense<...> : type`
//===----------------------------------------------------------------------===//

static ParseResult
parseExpected(OpAsmParser &parser,
              std::optional<OpAsmParser::UnresolvedOperand> &computed,
              ElementsAttr &constant, Type &actualType, Type &computedType) {
  OpAsmParser::UnresolvedOperand operand;
  OptionalParseResult found = parser.parseOptionalOperand(operand);
  if (found.has_value()) {
    if (failed(*found) || parser.parseColonType(actualType))
      return failure();
    computed = operand;
    computedType = actualType;
    return success();
  }
  SMLoc where = parser.getCurrentLocation();
  Attribute attribute;
  if (parser.parseAttribute(attribute))
    return failure();
  constant = dyn_cast<ElementsAttr>(attribute);
  if (!constant)
    return parser.emitError(where, "expected a value or a dense constant");
  actualType = constant.getShapedType();
  return success();
}

static void printExpected(OpAsmPrinter &printer, Operation *, Value computed,
                          ElementsAttr constant, Type actualType, Type) {
  if (constant)
    printer << constant;
  else
    printer << computed << " : " << actualType;
}

#define GET_OP_CLASSES
#include "Spyre/Dialect/Check/IR/CheckOps.cpp.inc"

void CheckDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "Spyre/Dialect/Check/IR/CheckOps.cpp.inc"
      >();
}

/// Whether exactly one expected tensor is given, and of the result's type.
template <typename ExpectOp>
static LogicalResult verifyExpected(ExpectOp op) {
  Value computed = op.getComputed();
  std::optional<ElementsAttr> constant = op.getConstant();
  if (!computed == !constant)
    return op.emitOpError("expects a value or a constant");
  Type type = computed ? computed.getType() : Type(constant->getShapedType());
  if (type != op.getActual().getType())
    return op.emitOpError("compares ")
           << op.getActual().getType() << " with " << type;
  return success();
}

LogicalResult ExpectEqOp::verify() {
  // CHECK-EXPECT_EQ-C1
  return verifyExpected(*this);
}

LogicalResult ExpectCloseOp::verify() {
  // CHECK-EXPECT_CLOSE-C1
  if (failed(verifyExpected(*this)))
    return failure();
  // CHECK-EXPECT_CLOSE-C2
  IntegerAttr maxUlp = getMaxUlpAttr();
  FloatAttr atol = getAtolAttr();
  if (!maxUlp && !atol)
    return emitOpError("needs max_ulp or atol");
  // A bound that is no number is not at least 0 either.
  if ((maxUlp && maxUlp.getInt() < 0) ||
      (atol && !(atol.getValueAsDouble() >= 0)))
    return emitOpError("max_ulp and atol must not be negative");
  return success();
}

LogicalResult ExpectErrorOp::verifyRegions() {
  // CHECK-EXPECT_ERROR-C1
  if (getText().empty())
    return emitOpError("the text must not be empty");
  // CHECK-EXPECT_ERROR-C2
  Block &block = getBody().front();
  if (!llvm::hasSingleElement(block) || !isa<RunOp>(block.front()))
    return emitOpError("expects one check.run and nothing else in its body");
  return success();
}

RunOp ExpectErrorOp::getRun() { return cast<RunOp>(getBody().front().front()); }

LogicalResult CaseOp::verifyRegions() {
  bool expects = false;
  for (Operation &op : getBody().front()) {
    // CHECK-CASE-C2
    if (op.getDialect() != (*this)->getDialect() && !isa<arith::ConstantOp>(op))
      return op.emitOpError(
          "must not stand in a check.case: make a function of "
          "it, and run that");
    expects |= isa<ExpectEqOp, ExpectCloseOp, ExpectErrorOp>(op);
  }
  // CHECK-CASE-C1
  if (!expects)
    return emitOpError("expects nothing: it could not fail");
  return success();
}

LogicalResult GenerateOp::verify() {
  // CHECK-GENERATE-C1
  AffineMap map = getMap();
  int64_t rank = cast<ShapedType>(getResult().getType()).getRank();
  if (map.getNumDims() != rank || map.getNumSymbols() != 0 ||
      map.getNumResults() != 1)
    return emitOpError("expects a map of ")
           << rank << " indices to one value, found " << getMapAttr();
  return success();
}

//===----------------------------------------------------------------------===//
// check.run
//===----------------------------------------------------------------------===//

bool check::isComputation(func::FuncOp function) {
  return function.getNumResults() != 0 ||
         llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<TensorType>);
}

/// Whether a program's parameter takes a value of a type.
static bool takes(Type parameter, Type operand) {
  if (auto argument = dyn_cast<ktdp::RuntimeArgType>(parameter))
    return operand == argument.getValueType();
  return operand == parameter ||
         (parameter.isIndex() && isa<TensorType>(operand));
}

LogicalResult RunOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // CHECK-RUN-C1
  auto function =
      symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getCalleeAttr());
  if (!function || function.isExternal())
    return emitOpError("the module has no function @")
           << getCallee() << " with a body";
  SmallVector<Type> parameters, arrays;
  for (BlockArgument argument : function.getArguments())
    if (!function.getArgAttr(argument.getArgNumber(), "ktdp.pool_size"))
      parameters.push_back(argument.getType());
  for (Type type : getInputs().getTypes())
    if (isa<TensorType>(type))
      arrays.push_back(type);
  bool computes = isComputation(function);
  // CHECK-RUN-C2
  if (getInputs().size() != parameters.size())
    return emitOpError("@") << getCallee() << " takes " << parameters.size()
                            << " operands, found " << getInputs().size();
  for (auto [i, parameter] : llvm::enumerate(parameters)) {
    Type operand = getInputs()[i].getType();
    if (computes ? parameter != operand : !takes(parameter, operand))
      return emitOpError("parameter ") << i << " of @" << getCallee() << " is "
                                       << parameter << ", found " << operand;
  }
  // CHECK-RUN-C3
  if (computes) {
    if (getOutputs().getTypes() != function.getResultTypes())
      return emitOpError("results must be those of @")
             << getCallee() << ", (" << function.getResultTypes() << ")";
  } else if (getOutputs().getTypes() != TypeRange(arrays)) {
    return emitOpError(
               "results must be the arrays that the program is given, (")
           << arrays << ")";
  }
  return success();
}
