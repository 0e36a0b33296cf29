// SPDX-License-Identifier: Apache-2.0
//===- DeviceOperations.cpp - spyre_graph operations by name ----*- C++ -*-===//
//
// What users' own lowerings call (docs/guide/extending.md): any operation of
// the dialect that runs on the device, by its name and the text of its
// attributes.
//
//===----------------------------------------------------------------------===//

#include "ATenCall.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;

/// Parameters of a call of a device operation by its name; and `attributes`.
constexpr StringLiteral kOperandNames[] = {
    "operand 0", "operand 1", "operand 2", "operand 3",
    "operand 4", "operand 5", "operand 6", "operand 7"};

/// The attributes that `text` is, as in the textual form of an operation.
static SmallVector<NamedAttribute> parseAttributes(const ATenCall &c,
                                                   const std::string &text) {
  if (text.empty())
    return {};
  std::string reason;
  ScopedDiagnosticHandler handler(
      c.b.getContext(), [&](Diagnostic &diagnostic) {
        reason += (reason.empty() ? "" : "; ") + diagnostic.str();
        return success();
      });
  auto attributes =
      dyn_cast_or_null<DictionaryAttr>(parseAttribute(text, c.b.getContext()));
  c.require(
      attributes != nullptr,
      "its attributes are no dictionary such as '{dims = array<i64: 1>}': '" +
          text + "'" + (reason.empty() ? "" : ": " + reason));
  c.require(!attributes.contains("immediates"),
            "numbers are operands: not the attribute 'immediates'");
  return llvm::to_vector(attributes.getValue());
}

/// Operands are tensors and numbers, `attributes` is the text of the others.
static Values lowerDeviceOperation(ATenCall &c) {
  auto known = RegisteredOperationName::lookup(c.getName(), c.b.getContext());
  c.require(known && known->hasInterface<SpyreOpInterface>(),
            "the dialect spyre_graph has no device operation of this name");
  c.require(c.numResults() == 1, "it has one result");
  SmallVector<Operand> operands;
  for (StringRef parameter : kOperandNames)
    if (c.has(parameter))
      operands.push_back(c.operand(parameter));
  return {c.createPointwise(c.getName(), operands, c.type(),
                            parseAttributes(c, c.text("attributes")))};
}

void aten::addDeviceOperations(ATenTable &table) {
  ATenTable::Row row;
  llvm::append_range(row.parameters, kOperandNames);
  row.parameters.push_back("attributes");
  row.lowering = lowerDeviceOperation;
  table.setDeviceOperations(std::move(row));
}
