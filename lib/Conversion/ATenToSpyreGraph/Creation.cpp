// SPDX-License-Identifier: Apache-2.0
//===- Creation.cpp - Constants, ranges, triangles --------------*- C++ -*-===//

#include "ATenCall.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;

/// A row whose result is filled with the argument `value`, or with a fixed
/// number where `value` is empty.
static void addFull(ATenTable &table, ArrayRef<StringRef> names,
                    StringRef parameters, StringRef value, double fixed = 0) {
  table.add(names, parameters, [value, fixed](ATenCall &c) {
    if (!value.empty() && c.isTensor(value)) {
      Value number = c.tensor(value);
      Type element = c.type().getElementType();
      c.require(isa<FloatType>(element) || elementOf(number) == element,
                "a number of booleans must be known");
      return c.copy(number, c.type());
    }
    // The number takes the result's type, whatever its own.
    Type element = c.type().getElementType();
    if (std::optional<AffineExpr> size = c.varyingSize(value)) {
      c.require(!isBool(element), "a number of booleans must be known");
      return c.copy(c.sizeNumber(*size), c.type());
    }
    return c.full(c.type(), value.empty() ? c.immElement(fixed, element)
                                          : c.elementNumber(value, element));
  });
}

/// start + step x i along the only dimension; absent bounds are 0 and 1.
static Value lowerRange(ATenCall &c, StringRef start, StringRef step) {
  Type element = c.type().getElementType();
  bool toFloat = isa<FloatType>(element);
  std::optional<AffineExpr> size = c.varyingSize(start);
  auto bound = [&](StringRef name, double byDefault) -> TypedAttr {
    double value = name.empty() ? byDefault : c.number(name, byDefault);
    if (toFloat)
      return c.imm(value);
    return c.immWhole(value);
  };
  // A float would be rounded twice.
  c.require(!size || !toFloat, "the start of a range of floats varies");
  Value range =
      c.pointwise<IotaOp>(c.type(), {},
                          {c.attr("dim", c.immInt(0)),
                           c.attr("start", bound(size ? "" : start, 0.0)),
                           c.attr("step", bound(step, 1.0))});
  if (!size)
    return range;
  return c.pointwise<AddOp>(c.type(), {c.withSizes(range, c.resultSizes()),
                                       c.cast(c.sizeNumber(*size), element)});
}

/// As lowerRange(); the start may be a number that is not known.
static Value lowerFillRange(ATenCall &c) {
  if (!c.isTensor("value"))
    return lowerRange(c, "value", "step");
  Value start = c.tensor("value");
  Type element = c.type().getElementType();
  Type wide = isa<FloatType>(element) ? c.b.getF32Type() : element;
  c.require(elementOf(start) == wide, "the start of a range must be a number "
                                      "of its type");
  double step = c.number("step");
  auto type = RankedTensorType::get(c.type().getShape(), wide);
  Value range = c.withSizes(
      c.pointwise<IotaOp>(
          type, {},
          {c.attr("dim", c.immInt(0)),
           c.attr("start", isa<FloatType>(wide) ? c.imm(0) : c.immWhole(0)),
           c.attr("step",
                  isa<FloatType>(wide) ? c.imm(step) : c.immWhole(step))}),
      c.resultSizes());
  return c.cast(c.pointwise<AddOp>(type, {range, start}), element);
}

/// A triangle whose diagonal is a size that varies: columns are compared with
/// rows.
static Value lowerVaryingTriangle(ATenCall &c, bool upper,
                                  AffineExpr diagonal) {
  Value self = c.tensor("self");
  RankedTensorType type = c.type();
  unsigned rank = type.getRank();
  SmallVector<AffineExpr> sizes = c.resultSizes();
  ArrayRef<int64_t> shape = type.getShape().take_back(2);
  Value rows = c.iota(sizes[rank - 2], 0), columns = c.iota(sizes[rank - 1], 0);
  Value borders =
      c.pointwise<AddOp>(typeOf(rows), {rows, c.sizeNumber(diagonal)});
  Value column = c.view(borders, AffineMap::get(2, 0, c.b.getAffineDimExpr(0)),
                        {shape[0], 1});
  auto flags = RankedTensorType::get(shape, c.b.getI1Type());
  Value isKept = upper ? c.pointwise<GeOp>(flags, {columns, column})
                       : c.pointwise<LeOp>(flags, {columns, column});
  Type element = type.getElementType();
  TypedAttr zero = isa<FloatType>(element) ? c.imm(0.0)
                   : isBool(element)       ? TypedAttr(c.b.getBoolAttr(false))
                                           : c.immInt(0);
  return c.pointwise<WhereOp>(type, {isKept, self, zero});
}

static Value lowerTriangle(ATenCall &c, bool upper) {
  if (std::optional<AffineExpr> diagonal = c.varyingSize("diagonal"))
    return lowerVaryingTriangle(c, upper, *diagonal);
  SmallVector<NamedAttribute> attrs{
      c.attr("diagonal", c.immInt(c.integer("diagonal", 0)))};
  if (upper)
    attrs.push_back(c.attr("upper", c.b.getUnitAttr()));
  return c.device<TriOp>(c.tensor("self"), c.type(), attrs);
}

void aten::addCreationRows(ATenTable &table) {
  ATenTable::ForAnySize rows(table);
  constexpr StringLiteral sized = "size dtype layout device pin_memory";
  constexpr StringLiteral like =
      "self dtype layout device pin_memory memory_format";

  addFull(table, {"aten.full.default"},
          "size fill_value dtype layout device pin_memory", "fill_value");
  addFull(table, {"aten.full_like.default"},
          "self fill_value dtype layout device pin_memory memory_format",
          "fill_value");
  addFull(table, {"aten.new_full.default"},
          "self size fill_value dtype layout device pin_memory", "fill_value");
  addFull(table, {"aten.scalar_tensor.default"},
          "s dtype layout device pin_memory", "s");
  addFull(table, {"aten.fill.Scalar"}, "self value", "value");
  table.add({"aten.fill.Tensor"}, "self value",
            [](ATenCall &c) { return c.copy(c.tensor("value"), c.type()); });

  // Programs may not rely on the contents of `empty`; zeros make runs equal.
  addFull(table, {"aten.zeros_like.default", "aten.empty_like.default"}, like,
          "");
  addFull(table, {"aten.ones_like.default"}, like, "", 1);
  addFull(table, {"aten.zeros.default"}, sized, "");
  addFull(table, {"aten.ones.default"}, sized, "", 1);
  addFull(table, {"aten.empty.memory_format"},
          "size dtype layout device pin_memory memory_format", "");
  addFull(table, {"aten.empty_strided.default"},
          "size stride dtype layout device pin_memory", "");
  addFull(table, {"aten.empty_permuted.default"},
          "size physical_layout dtype layout device pin_memory", "");
  addFull(table, {"aten.new_zeros.default", "aten.new_empty.default"},
          "self size dtype layout device pin_memory", "");
  addFull(table, {"aten.new_ones.default"},
          "self size dtype layout device pin_memory", "", 1);
  addFull(table, {"aten.new_empty_strided.default"},
          "self size stride dtype layout device pin_memory", "");
  addFull(table, {"aten.zero.default"}, "self", "");

  table.add({"aten.arange.default"}, "end dtype layout device pin_memory",
            [](ATenCall &c) { return lowerRange(c, "", ""); });
  table.add({"aten.arange.start"}, "start end dtype layout device pin_memory",
            [](ATenCall &c) { return lowerRange(c, "start", ""); });
  table.add({"aten.arange.start_step"},
            "start end step dtype layout device pin_memory",
            [](ATenCall &c) { return lowerRange(c, "start", "step"); });
  table.add({"prims.iota.default"},
            "length start step dtype device requires_grad",
            [](ATenCall &c) { return lowerRange(c, "start", "step"); });

  table.add({"spyre.fill_range.default"}, "self value step", lowerFillRange);

  table.add({"aten.tril.default"}, "self diagonal",
            [](ATenCall &c) { return lowerTriangle(c, false); });
  table.add({"aten.triu.default"}, "self diagonal",
            [](ATenCall &c) { return lowerTriangle(c, true); });
}
