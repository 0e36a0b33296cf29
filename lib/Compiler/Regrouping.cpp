// SPDX-License-Identifier: Apache-2.0
//===- Regrouping.cpp - Batches of rows as rows -----------------*- C++ -*-===//
//
// Where the number of rows varies, no map takes the rows of a batch as rows of
// one matrix, or the other way round: its stride would be a size. Such views
// are made of copies with other dimensions when an operation needs them.
//
//===----------------------------------------------------------------------===//

#include "GraphBuilderImpl.h"
#include "ViewMap.h"

#include "Spyre/Conversion/ATenToSpyreGraph/ATenToSpyreGraph.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using spyre::Argument;
using spyre::Arguments;
using spyre::GraphBuilder;
using spyre::Regrouping;
using spyre::SizeExpr;
using spyre::SizeList;
using spyre::UnsupportedOp;
using spyre::ValueId;

std::optional<Regrouping>
GraphBuilder::Impl::findRegrouping(const Root &home, const SizeList &sizes,
                                   const SizeList &strides,
                                   const SizeExpr &offset) {
  if (!::spyre::isDense(home.sizes, home.strides, ranges))
    return std::nullopt;
  for (Regrouping &regrouping :
       getRegroupings(strides, home.sizes, home.strides, ranges)) {
    try {
      getShiftedViewMap(&context, sizes, strides, offset, regrouping.after,
                        getRowMajorStrides(regrouping.after), ranges);
    } catch (const UnsupportedOp &) {
      continue;
    }
    return std::move(regrouping);
  }
  return std::nullopt;
}

/// Rows of a tensor [outer x inner, ...] as [outer, inner, ...] are selected
/// through an index [outer, inner], and stored through it the other way round.
Value GraphBuilder::Impl::buildRegrouped(Location loc, const Root &home,
                                         const Regrouping &regrouping) {
  for (const Regrouped &known : regrouped)
    if (known.home == home.value && known.sizes == regrouping.after)
      return known.copy;
  const SizeExpr &outer = regrouping.outer, &inner = regrouping.inner;
  if (!outer.isConstant())
    throw UnsupportedOp("a dimension of " + (outer * inner).str() +
                        " elements, the product of sizes that vary");
  Value source = buildView(loc, home, regrouping.before,
                           getRowMajorStrides(regrouping.before), 0);
  SmallVector<Value> operands;
  auto operand = [&](Value value) {
    operands.push_back(value);
    return Argument(ValueId{static_cast<int>(operands.size()) - 1});
  };
  auto call = [&](StringRef name, const Arguments &args, const SizeList &sizes,
                  Type element) {
    return importATenOp(
               builder, loc, name, args, {},
               RankedTensorType::get(atMost(sizes), element),
               [&](ValueId id) { return operands[id.id]; }, getExprs(sizes))
        .front();
  };
  Type integer = builder.getI64Type();
  auto range = [&](const SizeExpr &size) {
    return call("aten.arange.default", {Argument(int64_t(0))}, {size}, integer);
  };
  Value starts =
      call("aten.mul.Tensor", {operand(range(outer)), inner}, {outer}, integer);
  Value column = ViewOp::create(
      builder, loc, RankedTensorType::get(atMost({outer, 1}), integer), starts,
      AffineMapAttr::get(AffineMap::get(2, 0, builder.getAffineDimExpr(0))));
  Value index =
      call("aten.add.Tensor", {operand(column), operand(range(inner))},
           {outer, inner}, integer);
  int64_t axis = regrouping.axis;
  Type element = cast<RankedTensorType>(source.getType()).getElementType();
  Value copy;
  if (regrouping.merges()) {
    Value init =
        call("aten.full.default", {Argument(), 0}, regrouping.after, element);
    copy = call("aten.index_copy.default",
                {operand(init), axis, operand(index), operand(source)},
                regrouping.after, element);
  } else {
    copy = call("aten.index_select.default",
                {operand(source), axis, operand(index)}, regrouping.after,
                element);
  }
  regrouped.push_back({home.value, regrouping.after, copy});
  return copy;
}

Value GraphBuilder::Impl::tensorOf(int value, Location loc) {
  const Entry &known = entry(value);
  if (known.value)
    return known.value;
  Root home = roots[known.root];
  home.value = known.home;
  std::optional<Regrouping> regrouping =
      findRegrouping(home, known.sizes, known.strides, known.offset);
  assert(regrouping && "a view that no copy gives");
  home.value = buildRegrouped(loc, home, *regrouping);
  home.sizes = regrouping->after;
  home.strides = getRowMajorStrides(home.sizes);
  Value tensor = buildView(loc, home, known.sizes, known.strides, known.offset);
  return entries[value].value = tensor;
}

std::optional<int> GraphBuilder::productOfBatches(
    const std::string &atenName, const Arguments &args,
    const KeywordArguments &kwargs,
    const std::vector<std::optional<ValueMeta>> &results,
    const SourceLocation &loc, const std::vector<Hint> &hints) {
  bool isSum = atenName == "aten.addmm.default";
  size_t factor = isSum ? 1 : 0;
  if ((!isSum && atenName != "aten.mm.default") || args.size() <= factor ||
      results.size() != 1 || !results[0])
    return std::nullopt;
  const auto *x = std::get_if<ValueId>(&args[factor].value);
  if (!x || impl->entry(x->id).value || results[0]->sizes.size() != 2)
    return std::nullopt;
  Impl::Entry rows = impl->entry(x->id);
  std::optional<Regrouping> dims = impl->findRegrouping(
      impl->roots[rows.root], rows.sizes, rows.strides, rows.offset);
  if (!dims->merges() || rows.sizes.size() != 2 ||
      rows.sizes[0] != dims->outer * dims->inner)
    return std::nullopt;
  auto part = [&](int value, const Impl::Entry &whole) {
    return view(
        value, {dims->outer, dims->inner, whole.sizes[1]},
        {whole.strides[0] * dims->inner, whole.strides[0], whole.strides[1]},
        whole.offset, loc);
  };
  Arguments parted(args);
  parted[factor] = ValueId{part(x->id, rows)};
  if (isSum) {
    const auto *id = std::get_if<ValueId>(&args[0].value);
    if (!id)
      return std::nullopt;
    Impl::Entry bias = impl->entry(id->id);
    if (bias.sizes.size() == 2 && bias.sizes[0] == rows.sizes[0])
      parted[0] = ValueId{part(id->id, bias)};
    else if (!bias.sizes.empty() && bias.sizes[0] == rows.sizes[0])
      return std::nullopt;
  }
  ValueMeta whole = *results[0], product = whole;
  product.sizes = {dims->outer, dims->inner, whole.sizes[1]};
  product.strides = getRowMajorStrides(product.sizes);
  int id = op(atenName, parted, kwargs, {product}, loc, hints).front();
  return view(id, whole.sizes, whole.strides, 0, loc);
}
