// SPDX-License-Identifier: Apache-2.0
//===- ATenToSpyreGraphPass.cpp - The ATen table as a pass ------*- C++ -*-===//
//
// Calls of ATen operators as unregistered operations, so that a row and what it
// builds stand in one file.
//
//===----------------------------------------------------------------------===//

#include "Spyre/Conversion/ATenToSpyreGraph/ATenToSpyreGraph.h"
#include "Spyre/Conversion/Passes.h"
#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"

namespace mlir {
#define GEN_PASS_DEF_CONVERTATENTOSPYREGRAPH
#include "Spyre/Conversion/Passes.h.inc"
} // namespace mlir

using namespace mlir;
using ::spyre::Argument;

namespace {

constexpr StringLiteral kOperandsAttrName = "operands";

bool isATen(Operation *op) {
  return !op->isRegistered() &&
         llvm::any_of(ArrayRef<StringRef>{"aten.", "prims.", "spyre."},
                      [&](StringRef prefix) {
                        return op->getName().getStringRef().starts_with(prefix);
                      });
}

/// An attribute as an argument; nothing for other attributes than calls have.
std::optional<Argument> toArgument(Attribute attribute) {
  if (isa<UnitAttr>(attribute))
    return Argument();
  if (auto number = dyn_cast<IntegerAttr>(attribute)) {
    if (number.getType().isInteger(1))
      return Argument(number.getValue().getBoolValue());
    if (number.getValue().getBitWidth() <= 64)
      return Argument(number.getValue().getSExtValue());
    return std::nullopt;
  }
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return Argument(number.getValueAsDouble());
  if (auto text = dyn_cast<StringAttr>(attribute))
    return Argument(text.str());
  if (auto type = dyn_cast<TypeAttr>(attribute)) {
    auto dtype = spyre_graph::getHostDtype(type.getValue());
    return dtype ? std::optional<Argument>(::spyre::toString(*dtype))
                 : std::nullopt;
  }
  auto array = dyn_cast<ArrayAttr>(attribute);
  if (!array)
    return std::nullopt;
  Argument::List list;
  for (Attribute element : array) {
    std::optional<Argument> argument = toArgument(element);
    if (!argument)
      return std::nullopt;
    list.push_back(*argument);
  }
  return Argument(std::move(list));
}

/// One call: arguments by position and by name.
struct Call {
  ::spyre::Arguments args;
  ::spyre::KeywordArguments kwargs;

  LogicalResult read(Operation *op);

private:
  LogicalResult setOperand(Operation *op, unsigned number, StringRef place);
};

/// `place` is the name of a parameter, or `name[i]` for an entry of a list.
LogicalResult Call::setOperand(Operation *op, unsigned number,
                               StringRef place) {
  Argument operand = ::spyre::ValueId{static_cast<int>(number)};
  auto [name, rest] = place.split('[');
  unsigned entry = 0;
  bool isEntry = place.contains('[');
  // ATEN-TO-SG-C2
  if (name.empty() ||
      (isEntry && (!rest.consume_back("]") || rest.getAsInteger(10, entry) ||
                   entry >= op->getNumOperands() + 64)))
    return op->emitError() << "the place of operand " << number
                           << " must be a parameter, or an entry of one, "
                              "parameter[i], but is '"
                           << place << "'";
  Argument &argument = kwargs[name.str()];
  auto *list = std::get_if<Argument::List>(&argument.value);
  if (!isEntry) {
    // ATEN-TO-SG-C2
    if (!argument.isNone())
      return op->emitError() << "parameter '" << name << "' is given twice";
    argument = operand;
    return success();
  }
  if (argument.isNone()) {
    argument = Argument::List();
    list = &std::get<Argument::List>(argument.value);
  }
  if (!list || (entry < list->size() && !(*list)[entry].isNone()))
    // ATEN-TO-SG-C2
    return op->emitError() << "parameter '" << place << "' is given twice";
  if (entry >= list->size())
    list->resize(entry + 1);
  (*list)[entry] = operand;
  return success();
}

LogicalResult Call::read(Operation *op) {
  for (NamedAttribute named : op->getAttrs()) {
    if (named.getName() == kOperandsAttrName)
      continue;
    std::optional<Argument> argument = toArgument(named.getValue());
    // ATEN-TO-SG-C3
    if (!argument)
      return op->emitError()
             << "argument '" << named.getName().getValue()
             << "' must be a number, a string, an element type, unit for None, "
                "or a list of those, but is "
             << named.getValue();
    kwargs[named.getName().str()] = std::move(*argument);
  }
  Attribute given = op->getAttr(kOperandsAttrName);
  if (!given) {
    for (unsigned number = 0; number < op->getNumOperands(); ++number)
      args.push_back(::spyre::ValueId{static_cast<int>(number)});
    return success();
  }
  // ATEN-TO-SG-C2
  auto places = dyn_cast<ArrayAttr>(given);
  if (!places || places.size() != op->getNumOperands() ||
      !llvm::all_of(places, llvm::IsaPred<StringAttr>))
    return op->emitError() << "operands must name the parameters of the "
                           << op->getNumOperands() << " operands, but is "
                           << given;
  for (auto [number, place] : llvm::enumerate(places.getAsRange<StringAttr>()))
    if (failed(setOperand(op, number, place.getValue())))
      return failure();
  return success();
}

struct ConvertATenToSpyreGraphPass
    : impl::ConvertATenToSpyreGraphBase<ConvertATenToSpyreGraphPass> {
  void runOnOperation() override {
    llvm::SmallSetVector<Block *, 4> blocks;
    getOperation().walk([&](Operation *op) {
      if (isATen(op))
        blocks.insert(op->getBlock());
    });
    for (Block *block : blocks)
      if (failed(convert(*block)))
        signalPassFailure();
  }

  /// Rows build at the end of a block: operations move there one by one.
  /// Reports every call that cannot be converted.
  LogicalResult convert(Block &block) {
    SmallVector<Operation *> operations;
    for (Operation &op : block)
      operations.push_back(&op);
    bool isConverted = true;
    for (Operation *op : operations) {
      if (isATen(op) && succeeded(convert(op, block))) {
        op->erase();
        continue;
      }
      isConverted &= !isATen(op);
      op->moveBefore(&block, block.end());
    }
    return success(isConverted);
  }

  LogicalResult convert(Operation *op, Block &block) {
    SmallVector<RankedTensorType> types;
    for (Type type : op->getResultTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      // ATEN-TO-SG-C3
      if ((!tensor || !tensor.hasStaticShape()) && !isa<NoneType>(type))
        return op->emitError() << "results must be tensors of static shape, or "
                                  "none for what is no tensor, but found "
                               << type;
      types.push_back(tensor);
    }
    Call call;
    if (failed(call.read(op)))
      return failure();
    OpBuilder builder = OpBuilder::atBlockEnd(&block);
    try {
      SmallVector<Value> values = spyre_graph::importATenOp(
          builder, op->getLoc(), op->getName().getStringRef(), call.args,
          call.kwargs, types, [&](::spyre::ValueId id) {
            return op->getOperand(static_cast<unsigned>(id.id));
          });
      for (auto [result, value] : llvm::zip_equal(op->getResults(), values))
        if (value)
          result.replaceAllUsesWith(value);
    } catch (const ::spyre::Error &error) {
      // ATEN-TO-SG-C1
      return op->emitError(error.what());
    }
    return success();
  }
};

} // namespace
