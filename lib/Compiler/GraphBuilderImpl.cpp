// SPDX-License-Identifier: Apache-2.0
//===- GraphBuilderImpl.cpp - Storages and views of an import -------------===//

#include "GraphBuilderImpl.h"
#include "ViewMap.h"

#include "Spyre/Compiler/Pipeline.h"
#include "Spyre/Conversion/ATenToSpyreGraph/ATenToSpyreGraph.h"
#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Target/Targets.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"

#include <algorithm>
#include <limits>
#include <mutex>

using namespace mlir;
using namespace mlir::spyre_graph;
using spyre::Argument;
using spyre::Arguments;
using spyre::Error;
using spyre::GraphBuilder;
using spyre::HostDtype;
using spyre::KeywordArguments;
using spyre::SizeExpr;
using spyre::SizeList;
using spyre::UnsupportedOp;
using spyre::ValueId;
using spyre::ValueMeta;

static std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  ::spyre::registerCompilerDialects(registry);
  ::spyre::registerTargets(registry);
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

namespace {

/// Contexts of builders that are gone, for those to come: to make one takes a
/// fifth of the time that an operator takes to compile.
class IdleContexts {
public:
  struct Idle {
    std::unique_ptr<MLIRContext> context;
    size_t numTensors = 0; ///< of all graphs that it had
  };

  /// Has no context if there is none.
  Idle take() {
    std::lock_guard<std::mutex> lock(mutex);
    return idle.empty() ? Idle() : idle.pop_back_val();
  }

  /// Deletes the context if it has had enough, or there are enough.
  void keep(Idle last) {
    std::lock_guard<std::mutex> lock(mutex);
    if (last.numTensors < kMostTensors && idle.size() < kMostIdle)
      idle.push_back(std::move(last));
  }

private:
  /// What a context made for a graph it frees with itself. A graph of so many
  /// tensors is compiled in tens of megabytes.
  static constexpr size_t kMostTensors = 1000;
  /// One for each of a few threads that compile.
  static constexpr size_t kMostIdle = 4;

  std::mutex mutex;
  SmallVector<Idle, 0> idle;
};

} // namespace

static IdleContexts &getIdleContexts() {
  // Builders may be gone later than what is static.
  static auto *contexts = new IdleContexts;
  return *contexts;
}

GraphBuilder::Impl::OwnContext::OwnContext() {
  IdleContexts::Idle last = getIdleContexts().take();
  context = last.context ? std::move(last.context) : makeContext();
  numTensors = last.numTensors;
}

GraphBuilder::Impl::OwnContext::~OwnContext() {
  getIdleContexts().keep({std::move(context), numTensors});
}

GraphBuilder::Impl::~Impl() { own.numTensors += roots.size(); }

GraphBuilder::Impl::Impl() : context(*own.context), builder(&context) {
  Location loc = builder.getUnknownLoc();
  module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  function = func::FuncOp::create(builder, loc, "main",
                                  builder.getFunctionType({}, {}));
  builder.setInsertionPointToEnd(function.addEntryBlock());
}

const GraphBuilder::Impl::Entry &GraphBuilder::Impl::entry(int value) const {
  if (value < 0 || value >= static_cast<int>(entries.size()))
    throw Error("value " + std::to_string(value) +
                " does not exist; there are " + std::to_string(entries.size()));
  if (!entries[value].value && !entries[value].home)
    throw Error("value " + std::to_string(value) +
                " was dropped with its argument");
  return entries[value];
}

void GraphBuilder::Impl::declareFunction(TypeRange results) {
  function.setFunctionType(
      builder.getFunctionType(function.front().getArgumentTypes(), results));
  SmallVector<DictionaryAttr> attrs;
  for (const NamedAttrList &list : argumentAttrs)
    attrs.push_back(list.getDictionary(&context));
  function.setAllArgAttrs(attrs);
}

void GraphBuilder::Impl::checkOpen() const {
  if (finished)
    throw Error("the outputs are set: the graph is complete");
}

Location GraphBuilder::Impl::location(const SourceLocation &frames) {
  Location result = builder.getUnknownLoc();
  for (size_t i = frames.size(); i-- > 0;) {
    const SourceFrame &frame = frames[i];
    unsigned line = static_cast<unsigned>(std::clamp<int64_t>(
        frame.line, 0, std::numeric_limits<int32_t>::max()));
    Location here = FileLineColLoc::get(&context, frame.file, line, 0);
    if (!frame.text.empty())
      here = NameLoc::get(builder.getStringAttr(frame.text), here);
    result = i + 1 == frames.size() ? here
                                    : Location(CallSiteLoc::get(here, result));
  }
  return result;
}

int GraphBuilder::Impl::addRoot(Value value, HostDtype dtype,
                                const SizeList &sizes, const SizeList &strides,
                                int argument) {
  int root = roots.size();
  roots.push_back({value, dtype, sizes, strides, argument});
  entries.push_back({root, sizes, strides, 0, value});
  return entries.size() - 1;
}

SmallVector<int64_t> GraphBuilder::Impl::atMost(const SizeList &list) const {
  return llvm::to_vector(list.upperBounds(ranges));
}

RankedTensorType
GraphBuilder::Impl::getType(const std::optional<ValueMeta> &meta) {
  return meta ? RankedTensorType::get(atMost(meta->sizes),
                                      getElementType(&context, meta->dtype))
              : RankedTensorType();
}

SmallVector<AffineExpr> GraphBuilder::Impl::getExprs(const SizeList &list) {
  return llvm::map_to_vector(
      list, [&](const SizeExpr &size) { return getSizeExpr(size, &context); });
}

AffineMap GraphBuilder::Impl::getSizeMap(const SizeList &list) {
  return makeSizeMap(getExprs(list), ranges.size(), &context);
}

bool spyre::sameElements(const SizeList &sizes, const SizeList &strides,
                         const SizeList &otherSizes,
                         const SizeList &otherStrides) {
  if (sizes != otherSizes)
    return false;
  for (auto [size, x, y] : llvm::zip_equal(sizes, strides, otherStrides))
    if (size != SizeExpr(0) && size != SizeExpr(1) && x != y)
      return false;
  return true;
}

void spyre::visitValues(const Arguments &args, const KeywordArguments &kwargs,
                        function_ref<void(int)> visit) {
  auto visitArgument = [&](auto &self, const Argument &argument) -> void {
    if (const auto *id = std::get_if<ValueId>(&argument.value))
      visit(id->id);
    else if (const auto *list = std::get_if<Argument::List>(&argument.value))
      for (const Argument &entry : *list)
        self(self, entry);
  };
  for (const Argument &argument : args)
    visitArgument(visitArgument, argument);
  for (const auto &entry : kwargs)
    visitArgument(visitArgument, entry.second);
}

/// Runs `infer`, whose diagnostics are why an operator cannot be imported.
static void inferOrRefuse(MLIRContext *context,
                          function_ref<LogicalResult()> infer) {
  std::string text;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    text += (text.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });
  if (failed(infer()))
    throw UnsupportedOp(text);
}

/// A copy of what is accessed: maps do not say an offset that varies.
Value GraphBuilder::Impl::buildSlice(Location loc, Value source,
                                     const ShiftedViewMap::Shift &shift) {
  SmallVector<AffineExpr> sizes = getSizes(source);
  sizes[shift.dim] = getExprs({shift.length}).front();
  auto type = cast<RankedTensorType>(source.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[shift.dim] = atMost({shift.length}).front();
  return importATenOp(
             builder, loc, "aten.slice.Tensor",
             {Argument(ValueId{0}), Argument(int64_t(shift.dim)),
              Argument(shift.start), Argument(shift.start + shift.length)},
             {}, RankedTensorType::get(shape, type.getElementType()),
             [&](ValueId) { return source; }, sizes)
      .front();
}

Value GraphBuilder::Impl::buildView(Location loc, const Root &home,
                                    const SizeList &sizes,
                                    const SizeList &strides,
                                    const SizeExpr &offset) {
  if (offset == SizeExpr(0) &&
      sameElements(sizes, strides, home.sizes, home.strides))
    return home.value;
  ShiftedViewMap shifted = getShiftedViewMap(&context, sizes, strides, offset,
                                             home.sizes, home.strides, ranges);
  Type type = RankedTensorType::get(
      atMost(sizes),
      cast<RankedTensorType>(home.value.getType()).getElementType());
  SmallVector<AffineExpr> exprs = getExprs(sizes);
  Value source = home.value;
  for (const ShiftedViewMap::Shift &shift : shifted.shifts)
    source = buildSlice(loc, source, shift);
  if (!shifted.shifts.empty() && shifted.map.isIdentity() &&
      source.getType() == type)
    return source;
  auto view = ViewOp::create(builder, loc, type, source,
                             AffineMapAttr::get(shifted.map));
  inferOrRefuse(&context, [&] {
    LogicalResult result = inferSizeMap(view, exprs);
    if (failed(result))
      view.erase();
    return result;
  });
  return view;
}

Value GraphBuilder::Impl::buildCopy(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Value init = tensor::EmptyOp::create(builder, value.getLoc(), type.getShape(),
                                       type.getElementType());
  auto copy = IdentityOp::create(builder, value.getLoc(), value, init);
  inferOrRefuse(&context, [&] { return inferExtentMap(copy); });
  return copy.getResult();
}

int GraphBuilder::Impl::compact(int value) {
  const Entry &from = entry(value);
  const Root &root = roots[from.root];
  if (::spyre::isDense(root.sizes, root.strides, ranges)) {
    // A caller is to find the home that PyTorch speaks of.
    if (from.value || root.argument >= 0 ||
        !::spyre::isDense(from.sizes, from.strides, ranges))
      return value;
    // But no home has the product of two sizes.
    std::optional<Flattening> rows = findFlattening(from);
    if (rows && !rows->parts.front().isConstant())
      return value;
    Value tensor = tensorOf(value, builder.getUnknownLoc());
    return addRoot(tensor, root.dtype, from.sizes, from.strides, -1);
  }
  // Keep the order of the dimensions, drop the gaps.
  SizeList sizes(from.sizes), dense(from.sizes);
  SmallVector<int64_t> strides = atMost(from.strides);
  SmallVector<unsigned> dims =
      llvm::to_vector(llvm::seq<unsigned>(0, sizes.size()));
  llvm::sort(dims, [&](unsigned x, unsigned y) {
    return std::make_pair(strides[x], y) < std::make_pair(strides[y], x);
  });
  SizeExpr step = 1;
  for (unsigned dim : dims) {
    dense[dim] = step;
    if (sizes[dim] != SizeExpr(0))
      step = step * sizes[dim];
  }
  HostDtype dtype = root.dtype;
  return addRoot(buildCopy(from.value), dtype, sizes, dense, -1);
}

//===----------------------------------------------------------------------===//
// Checks of what callers give
//===----------------------------------------------------------------------===//
