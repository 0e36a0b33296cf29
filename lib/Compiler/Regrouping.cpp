// SPDX-License-Identifier: Apache-2.0
//===- Regrouping.cpp - Batches of rows as rows -----------------*- C++ -*-===//
//
// Where the number of rows varies, no map takes the rows of a batch as rows of
// one matrix, or the other way round: its stride would be a size. Such views
// are made of copies with other dimensions when an operation needs them.
//
//===----------------------------------------------------------------------===//

#include "FlattenedRows.h"
#include "GraphBuilderImpl.h"
#include "ViewMap.h"

#include "Spyre/Conversion/ATenToSpyreGraph/ATenToSpyreGraph.h"
#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

#include "llvm/ADT/MapVector.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::spyre_graph;
using spyre::Argument;
using spyre::Arguments;
using spyre::FlattenedRows;
using spyre::Flattening;
using spyre::GraphBuilder;
using spyre::KeywordArguments;
using spyre::Regrouping;
using spyre::SizeExpr;
using spyre::SizeList;
using spyre::SourceLocation;
using spyre::UnsupportedOp;
using spyre::ValueId;
using spyre::ValueMeta;

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

std::optional<Flattening>
GraphBuilder::Impl::findFlattening(const Entry &view) {
  Root home = roots[view.root];
  home.value = view.home;
  std::optional<Regrouping> dims =
      findRegrouping(home, view.sizes, view.strides, view.offset);
  if (!dims || !dims->merges())
    return std::nullopt;
  SizeExpr whole = dims->outer * dims->inner;
  // Of the square of a size, the largest is no size to plan for.
  for (const SizeExpr::Term &term : whole.terms())
    if (std::adjacent_find(term.symbols.begin(), term.symbols.end()) !=
        term.symbols.end())
      return std::nullopt;
  for (const SizeExpr &size : view.sizes) {
    if (size == whole)
      return Flattening{size, {dims->outer, dims->inner}};
    // It may go on in dimensions that follow.
    std::optional<SizeExpr> more = size.dividedBy(whole);
    if (more && more->isConstant())
      return Flattening{size, {dims->outer, dims->inner, *more}};
  }
  return std::nullopt;
}

SmallVector<Flattening> GraphBuilder::Impl::findFlattenings(
    const Arguments &args, const KeywordArguments &kwargs,
    const std::vector<std::optional<ValueMeta>> &results) {
  SmallVector<Flattening> found;
  auto add = [&](const Flattening &flattening) {
    if (llvm::none_of(found, [&](const Flattening &other) {
          return other.size == flattening.size;
        }))
      found.push_back(flattening);
  };
  visitValues(args, kwargs, [&](int value) {
    if (!entry(value).value)
      if (std::optional<Flattening> flattening = findFlattening(entry(value)))
        add(*flattening);
  });
  // What is made for rows that no operand has.
  for (const std::optional<ValueMeta> &meta : results)
    for (const SizeExpr &size : meta ? meta->sizes : SizeList())
      for (const Flattening &known : flattenings)
        if (known.size == size && !known.parts.front().isConstant())
          add(known);
  return found;
}

std::optional<std::vector<int>>
GraphBuilder::opOnRows(const std::string &atenName, const Arguments &args,
                       const KeywordArguments &kwargs,
                       const std::vector<std::optional<ValueMeta>> &results,
                       const SourceLocation &loc, std::string &reason) {
  SmallVector<Flattening> flattenings =
      impl->findFlattenings(args, kwargs, results);
  if (flattenings.empty())
    return std::nullopt;
  Location location = impl->location(loc);
  FlattenedRows rows(impl->function, flattenings, impl->ranges);
  SmallVector<Value> values;
  try {
    for (const std::optional<ValueMeta> &meta : results) {
      if (!meta)
        continue;
      auto [sizes, strides] = rows.part(meta->sizes, meta->strides);
      // A view of two pairs of dimensions takes more than one copy.
      if (sizes.size() != meta->sizes.size() &&
          !impl->findRegrouping({{}, meta->dtype, sizes, strides}, meta->sizes,
                                meta->strides, 0))
        throw UnsupportedOp("a result of sizes " + meta->sizes.str() +
                            " is no view of one of " + sizes.str());
    }
    // What operands are made of, then what stands for them.
    llvm::MapVector<int, Value> operands;
    visitValues(args, kwargs, [&](int value) {
      const Impl::Entry &own = impl->entry(value);
      auto [sizes, strides] = rows.part(own.sizes, own.strides);
      if (sizes.size() == own.sizes.size()) {
        if (!own.value)
          throw UnsupportedOp("another operand needs a copy");
        operands[value] = own.value;
        return;
      }
      Impl::Root home = impl->roots[own.root];
      home.value = own.home ? own.home : own.value;
      operands[value] =
          impl->buildView(location, home, sizes, strides, own.offset);
    });
    rows.open();
    for (auto &[value, tensor] : operands) {
      const Impl::Entry &own = impl->entry(value);
      if (rows.part(own.sizes, own.strides).first.size() != own.sizes.size())
        tensor = rows.addOperand(
            location, tensor, own.sizes,
            RankedTensorType::get(
                impl->atMost(own.sizes),
                cast<RankedTensorType>(tensor.getType()).getElementType()));
    }
    Arguments ownArgs;
    for (const Argument &argument : args)
      ownArgs.push_back(rows.substitute(argument));
    KeywordArguments ownKwargs;
    for (const auto &[name, argument] : kwargs)
      ownKwargs[name] = rows.substitute(argument);
    SmallVector<RankedTensorType> types;
    SmallVector<SmallVector<AffineExpr>> sizes;
    for (const std::optional<ValueMeta> &meta : results) {
      types.push_back(impl->getType(meta));
      sizes.push_back(meta ? rows.getExprs(meta->sizes)
                           : SmallVector<AffineExpr>());
    }
    values = rows.finish(importATenOp(
        impl->builder, location, atenName, ownArgs, ownKwargs, types,
        [&](ValueId id) { return operands.find(id.id)->second; }, sizes));
  } catch (const UnsupportedOp &error) {
    reason = error.what();
    return std::nullopt;
  }
  std::vector<int> ids;
  for (auto [value, meta] : llvm::zip_equal(values, results)) {
    if (!value) {
      ids.push_back(-1);
      continue;
    }
    auto [sizes, strides] = rows.part(meta->sizes, meta->strides);
    ids.push_back(impl->addRoot(value, meta->dtype, sizes, strides, -1));
    if (sizes.size() != meta->sizes.size())
      ids.back() = view(ids.back(), meta->sizes, meta->strides, 0, loc);
  }
  return ids;
}
