// SPDX-License-Identifier: Apache-2.0
//===- GraphBuilder.cpp - Import of an ATen graph ---------------*- C++ -*-===//

#include "GraphBuilderImpl.h"
#include "ViewMap.h"

#include "Spyre/Compiler/Pipeline.h"
#include "Spyre/Conversion/ATenToSpyreGraph/ATenToSpyreGraph.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Target/Targets.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace mlir::spyre_graph;
using spyre::Error;
using spyre::GraphBuilder;
using spyre::HostDtype;
using spyre::OutputInfo;
using spyre::TensorLayout;
using spyre::UnsupportedOp;
using spyre::ValueMeta;

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  ::spyre::registerCompilerDialects(registry);
  ::spyre::registerTargets(registry);
  return registry;
}

GraphBuilder::Impl::Impl()
    : context(makeRegistry(), MLIRContext::Threading::DISABLED),
      builder(&context) {
  context.loadAllAvailableDialects();
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
  if (!entries[value].value)
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
                                ArrayRef<int64_t> sizes,
                                ArrayRef<int64_t> strides, int argument) {
  int root = roots.size();
  roots.push_back({value, dtype, SmallVector<int64_t>(sizes),
                   SmallVector<int64_t>(strides), argument});
  entries.push_back({root, SmallVector<int64_t>(sizes),
                     SmallVector<int64_t>(strides), 0, value});
  return entries.size() - 1;
}

/// Whether two strided views of the same sizes address the same elements.
static bool sameElements(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides,
                         ArrayRef<int64_t> otherSizes,
                         ArrayRef<int64_t> otherStrides) {
  if (sizes != otherSizes)
    return false;
  for (auto [size, x, y] : llvm::zip_equal(sizes, strides, otherStrides))
    if (size > 1 && x != y)
      return false;
  return true;
}

Value GraphBuilder::Impl::buildView(Location loc, int root,
                                    ArrayRef<int64_t> sizes,
                                    ArrayRef<int64_t> strides, int64_t offset) {
  const Root &home = roots[root];
  if (offset == 0 && sameElements(sizes, strides, home.sizes, home.strides))
    return home.value;
  AffineMap map = ::spyre::getViewMap(&context, sizes, strides, offset,
                                      home.sizes, home.strides);
  Type type = RankedTensorType::get(
      sizes, cast<RankedTensorType>(home.value.getType()).getElementType());
  return ViewOp::create(builder, loc, type, home.value,
                        AffineMapAttr::get(map));
}

Value GraphBuilder::Impl::buildCopy(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Value init = tensor::EmptyOp::create(builder, value.getLoc(), type.getShape(),
                                       type.getElementType());
  return IdentityOp::create(builder, value.getLoc(), value, init).getResult();
}

int GraphBuilder::Impl::compact(int value) {
  const Entry &from = entry(value);
  const Root &root = roots[from.root];
  if (::spyre::isDense(root.sizes, root.strides))
    return value;
  // Keep the order of the dimensions, drop the gaps.
  SmallVector<int64_t> sizes(from.sizes), strides(from.strides);
  SmallVector<unsigned> dims =
      llvm::to_vector(llvm::seq<unsigned>(0, sizes.size()));
  llvm::sort(dims, [&](unsigned x, unsigned y) {
    return std::make_pair(strides[x], y) < std::make_pair(strides[y], x);
  });
  SmallVector<int64_t> dense(sizes.size());
  int64_t step = 1;
  for (unsigned dim : dims) {
    dense[dim] = step;
    step *= std::max<int64_t>(sizes[dim], 1);
  }
  HostDtype dtype = root.dtype;
  return addRoot(buildCopy(from.value), dtype, sizes, dense, -1);
}

//===----------------------------------------------------------------------===//
// Checks of what callers give
//===----------------------------------------------------------------------===//

static std::string str(ArrayRef<int64_t> values) {
  std::string text = "[";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(values, os);
  return text + "]";
}

static int64_t countElements(ArrayRef<int64_t> sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) {
    if (size < 0)
      throw Error("sizes " + str(sizes) + " contain a negative number");
    if (__builtin_mul_overflow(count, size, &count))
      throw Error("sizes " + str(sizes) + " overflow");
  }
  return count;
}

static void checkMeta(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  if (sizes.size() != strides.size())
    throw Error("sizes " + str(sizes) + " and strides " + str(strides) +
                " differ in length");
  countElements(sizes);
}

static std::vector<int64_t> toVector(ArrayRef<int64_t> values) {
  return values.vec();
}

/// The encoding for an argument's layout: an order of dimensions where one
/// gives this layout, else the explicit form.
static Attribute getLayoutEncoding(MLIRContext *context, Type elementType,
                                   ArrayRef<int64_t> sizes,
                                   ArrayRef<int64_t> strides,
                                   const TensorLayout &layout) {
  int64_t rank = sizes.size();
  auto matches = [&](LayoutAttrInterface candidate) {
    return ArrayRef<int64_t>(layout.deviceSize) ==
               ArrayRef<int64_t>(candidate.getDeviceSize(sizes)) &&
           ArrayRef<int64_t>(layout.strideMap) ==
               ArrayRef<int64_t>(candidate.getStrideMap(sizes, strides));
  };
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  // Identity first; six dimensions have 720 orders.
  do {
    for (bool sparse : {false, true}) {
      if (sparse && rank == 0)
        continue;
      auto candidate = LayoutAttr::get(context, order, elementType, sparse);
      if (matches(candidate))
        return candidate;
    }
  } while (rank <= 6 && std::next_permutation(order.begin(), order.end()));
  // Throws if the layout cannot be read.
  ::spyre::resolveDeviceDims(layout, sizes.vec(), strides.vec());
  return ExplicitLayoutAttr::get(context, layout.deviceSize, layout.strideMap,
                                 strides, layout.format);
}

//===----------------------------------------------------------------------===//
// GraphBuilder
//===----------------------------------------------------------------------===//

GraphBuilder::GraphBuilder() : impl(std::make_unique<Impl>()) {}
GraphBuilder::~GraphBuilder() = default;
GraphBuilder::GraphBuilder(GraphBuilder &&) = default;
GraphBuilder &GraphBuilder::operator=(GraphBuilder &&) = default;

static NamedAttribute nameAttr(Builder &b, const std::string &name) {
  return b.getNamedAttr(SpyreGraphDialect::getNameAttrName(),
                        b.getStringAttr(name));
}

static NamedAttribute hostStridesAttr(Builder &b, ArrayRef<int64_t> strides) {
  return b.getNamedAttr(SpyreGraphDialect::getHostStridesAttrName(),
                        b.getDenseI64ArrayAttr(strides));
}

int GraphBuilder::addArgument(const std::string &name, HostDtype dtype,
                              const std::vector<int64_t> &homeSizes,
                              const std::vector<int64_t> &homeStrides,
                              const TensorLayout &layout) {
  impl->checkOpen();
  checkMeta(homeSizes, homeStrides);
  if (!::spyre::isDense(homeSizes, homeStrides))
    throw Error("argument '" + name + "': the home with sizes " +
                str(homeSizes) + " and strides " + str(homeStrides) +
                " is not dense");
  try {
    layout.checkHolds(dtype);
  } catch (const Error &error) {
    throw Error("argument '" + name + "': " + error.what());
  }
  Type elementType = getElementType(&impl->context, dtype);
  Attribute encoding = getLayoutEncoding(&impl->context, elementType, homeSizes,
                                         homeStrides, layout);
  Location loc = NameLoc::get(impl->builder.getStringAttr(name));
  auto type =
      RankedTensorType::getChecked(loc, homeSizes, elementType, encoding);
  if (!type)
    throw Error("argument '" + name + "': layout " + layout.str() +
                " does not fit sizes " + str(homeSizes));
  int index = static_cast<int>(impl->argumentAttrs.size());
  impl->argumentAttrs.emplace_back(
      ArrayRef<NamedAttribute>{nameAttr(impl->builder, name),
                               hostStridesAttr(impl->builder, homeStrides)});
  BlockArgument argument = impl->function.front().addArgument(type, loc);
  return impl->addRoot(argument, dtype, homeSizes, homeStrides, index);
}

int GraphBuilder::view(int value, const std::vector<int64_t> &sizes,
                       const std::vector<int64_t> &strides, int64_t offset,
                       const SourceLocation &loc) {
  impl->checkOpen();
  int root = impl->entry(value).root;
  checkMeta(sizes, strides);
  int64_t last = offset;
  for (auto [size, stride] : llvm::zip_equal(sizes, strides)) {
    int64_t reach;
    if (stride < 0 ||
        __builtin_mul_overflow(std::max<int64_t>(size - 1, 0), stride,
                               &reach) ||
        __builtin_add_overflow(last, reach, &last))
      throw Error("view with sizes " + str(sizes) + " and strides " +
                  str(strides) + " is not valid");
  }
  const Impl::Root &home = impl->roots[root];
  int64_t numElements = countElements(home.sizes) == 0 ? 0 : 1;
  for (auto [size, stride] : llvm::zip_equal(home.sizes, home.strides))
    numElements += std::max<int64_t>(size - 1, 0) * stride;
  if (offset < 0 || (!llvm::is_contained(sizes, 0) && last >= numElements))
    throw Error("view with sizes " + str(sizes) + ", strides " + str(strides) +
                " and offset " + std::to_string(offset) +
                " leaves its storage of " + std::to_string(numElements) +
                " elements");
  if (!::spyre::isDense(home.sizes, home.strides) &&
      !llvm::is_contained(sizes, 0)) {
    AffineMap map = ::spyre::getViewMap(&impl->context, sizes, strides, offset,
                                        home.sizes, home.strides);
    for (auto [expr, size] : llvm::zip_equal(map.getResults(), home.sizes))
      if (getRange(expr, sizes).second >= size)
        throw Error("view with sizes " + str(sizes) + ", strides " +
                    str(strides) + " and offset " + std::to_string(offset) +
                    " addresses elements between those of its storage");
  }
  Value tensor =
      impl->buildView(impl->location(loc), root, sizes, strides, offset);
  impl->entries.push_back(
      {root, llvm::to_vector(sizes), llvm::to_vector(strides), offset, tensor});
  return impl->entries.size() - 1;
}

static ArrayAttr getHints(OpBuilder &builder,
                          const std::vector<::spyre::Hint> &hints) {
  SmallVector<Attribute> attributes;
  for (const ::spyre::Hint &hint : hints) {
    NamedAttrList entries;
    if (!hint.namedDims.empty()) {
      SmallVector<StringRef> names(hint.namedDims.begin(),
                                   hint.namedDims.end());
      entries.set("named_dims", builder.getStrArrayAttr(names));
    } else {
      entries.set("dim", builder.getStringAttr(hint.dim));
      if (hint.tiles) {
        entries.set("scope", builder.getI64IntegerAttr(hint.scope));
        entries.set("tiles", builder.getI64IntegerAttr(hint.tiles));
      } else {
        entries.set("work_div", builder.getI64IntegerAttr(hint.workDivision));
      }
    }
    attributes.push_back(entries.getDictionary(builder.getContext()));
  }
  return builder.getArrayAttr(attributes);
}

void GraphBuilder::setDimNames(int argument,
                               const std::vector<DimNames> &names) {
  impl->checkOpen();
  const Impl::Root &root = impl->roots[impl->entry(argument).root];
  if (root.argument < 0 || names.size() != impl->entry(argument).sizes.size())
    throw Error("dimension names must be given for each dimension of an "
                "argument");
  Builder &builder = impl->builder;
  SmallVector<Attribute> dims;
  for (const DimNames &dim : names) {
    SmallVector<Attribute> parts;
    for (const auto &[name, size] : dim)
      parts.push_back(builder.getDictionaryAttr(
          {builder.getNamedAttr("name", builder.getStringAttr(name)),
           builder.getNamedAttr("size", builder.getI64IntegerAttr(size))}));
    dims.push_back(builder.getArrayAttr(parts));
  }
  impl->argumentAttrs[root.argument].set(kDimNamesAttrName,
                                         builder.getArrayAttr(dims));
}

std::vector<int>
GraphBuilder::op(const std::string &atenName, const Arguments &args,
                 const KeywordArguments &kwargs,
                 const std::vector<std::optional<ValueMeta>> &results,
                 const SourceLocation &loc, const std::vector<Hint> &hints) {
  impl->checkOpen();
  SmallVector<RankedTensorType> types;
  for (const std::optional<ValueMeta> &meta : results) {
    if (!meta) {
      types.push_back(nullptr);
      continue;
    }
    checkMeta(meta->sizes, meta->strides);
    // Elements must be distinct; gaps are only a matter of addressing.
    if (!::spyre::isNested(meta->sizes, meta->strides))
      throw UnsupportedOp(atenName + ": a result with sizes " +
                          str(meta->sizes) + " and strides " +
                          str(meta->strides) + " overlaps itself");
    types.push_back(RankedTensorType::get(
        meta->sizes, getElementType(&impl->context, meta->dtype)));
  }
  Block *block = impl->builder.getInsertionBlock();
  bool isFirst = impl->builder.getInsertionPoint() == block->begin();
  Operation *before =
      isFirst ? nullptr : &*std::prev(impl->builder.getInsertionPoint());
  SmallVector<Value> values = importATenOp(
      impl->builder, impl->location(loc), atenName, args, kwargs, types,
      [&](::spyre::ValueId id) { return impl->entry(id.id).value; });
  if (!hints.empty()) {
    ArrayAttr attribute = getHints(impl->builder, hints);
    auto end = impl->builder.getInsertionPoint();
    for (auto op = before ? std::next(Block::iterator(before)) : block->begin();
         op != end; ++op)
      if (isa<SpyreGraphDialect>(op->getDialect()) && !isa<ViewOp>(*op))
        op->setAttr(kHintsAttrName, attribute);
  }
  std::vector<int> ids;
  for (auto [value, meta] : llvm::zip_equal(values, results))
    ids.push_back(value ? impl->addRoot(value, meta->dtype, meta->sizes,
                                        meta->strides, -1)
                        : -1);
  return ids;
}

/// Whether `value` is made by updating `destination`.
static bool updates(Value value, Value destination) {
  while (value != destination) {
    auto op = value.getDefiningOp<DestinationStyleOpInterface>();
    if (!op)
      return false;
    value = op.getTiedOpOperand(cast<OpResult>(value))->get();
  }
  return true;
}

void GraphBuilder::mutate(int target, int value, const SourceLocation &loc) {
  impl->checkOpen();
  const Impl::Entry &to = impl->entry(target);
  const Impl::Entry &from = impl->entry(value);
  Impl::Root &home = impl->roots[to.root];
  if (home.argument < 0)
    throw Error("only arguments and views of them can be mutated");
  if (to.sizes != from.sizes)
    throw Error("value of sizes " + str(from.sizes) +
                " cannot be stored in a tensor of sizes " + str(to.sizes));
  Location location = impl->location(loc);
  const Impl::Root &source = impl->roots[from.root];
  Value updated;
  // A value that was made by updating all of the argument is in place already.
  if (from.root != to.root && from.offset == 0 && to.offset == 0 &&
      countElements(to.sizes) == countElements(home.sizes) &&
      ::spyre::isDense(to.sizes, to.strides) &&
      sameElements(from.sizes, from.strides, to.sizes, to.strides) &&
      source.value.getType() == home.value.getType() &&
      sameElements(source.sizes, source.strides, home.sizes, home.strides) &&
      updates(source.value, home.value)) {
    updated = source.value;
  } else {
    Builder &b = impl->builder;
    AffineMap map = ::spyre::getViewMap(&impl->context, to.sizes, to.strides,
                                        to.offset, home.sizes, home.strides);
    SmallVector<AffineMap> maps{b.getMultiDimIdentityMap(to.sizes.size()), map};
    updated = IdentityOp::create(impl->builder, location, from.value,
                                 home.value, maps, to.sizes)
                  .getResult();
  }
  home.value =
      bufferization::MaterializeInDestinationOp::create(
          impl->builder, location, home.value.getType(), updated, home.value)
          .getResult();
}

void GraphBuilder::dropArguments(int first) {
  impl->checkOpen();
  Block &block = impl->function.front();
  int count = block.getNumArguments();
  if (first < 0 || first > count)
    throw Error("argument " + std::to_string(first) +
                " does not exist; there "
                "are " +
                std::to_string(count));
  llvm::SetVector<Operation *> dropped;
  for (BlockArgument argument : block.getArguments().drop_front(first))
    dropped.insert(argument.user_begin(), argument.user_end());
  for (size_t i = 0; i < dropped.size(); ++i) {
    if (isa<bufferization::MaterializeInDestinationOp>(dropped[i]))
      throw Error("a value of a dropped argument is stored");
    dropped.insert(dropped[i]->user_begin(), dropped[i]->user_end());
  }
  auto isDropped = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument ? static_cast<int>(argument.getArgNumber()) >= first
                    : dropped.contains(value.getDefiningOp());
  };
  // Their numbers stay taken.
  for (Impl::Root &root : impl->roots)
    if (root.value && isDropped(root.value))
      root.value = nullptr;
  for (Impl::Entry &entry : impl->entries)
    if (entry.value && isDropped(entry.value))
      entry.value = nullptr;
  for (Operation *op : dropped)
    op->dropAllReferences();
  for (Operation *op : dropped)
    op->erase();
  block.eraseArguments(first, count - first);
  impl->argumentAttrs.resize(first);
}

std::vector<OutputInfo>
GraphBuilder::setOutputs(const std::vector<int> &values) {
  impl->checkOpen();
  std::vector<OutputInfo> infos;
  SmallVector<int> outputRoots;
  for (int value : values) {
    const Impl::Entry &entry = impl->entry(impl->compact(value));
    const Impl::Root &root = impl->roots[entry.root];
    OutputInfo info;
    if (root.argument >= 0) {
      info.root = -1 - root.argument;
    } else {
      auto *known = llvm::find(outputRoots, entry.root);
      info.root = known - outputRoots.begin();
      if (known == outputRoots.end())
        outputRoots.push_back(entry.root);
    }
    info.sizes = toVector(entry.sizes);
    info.strides = toVector(entry.strides);
    info.offset = entry.offset;
    info.rootMeta = {root.dtype, toVector(root.sizes), toVector(root.strides)};
    infos.push_back(std::move(info));
  }
  SmallVector<Value> results;
  SmallVector<Type> types;
  SmallVector<Attribute> attrs;
  for (auto [index, root] : llvm::enumerate(outputRoots)) {
    const Impl::Root &home = impl->roots[root];
    Value result = home.value;
    // Every output root is a tensor of its own.
    if (!result.getDefiningOp() || result.getDefiningOp<ViewOp>() ||
        llvm::is_contained(results, result))
      result = impl->buildCopy(result);
    results.push_back(result);
    types.push_back(result.getType());
    attrs.push_back(impl->builder.getDictionaryAttr(
        {nameAttr(impl->builder, "out" + std::to_string(index)),
         hostStridesAttr(impl->builder, home.strides)}));
  }
  func::ReturnOp::create(impl->builder, impl->builder.getUnknownLoc(), results);
  impl->declareFunction(types);
  impl->function.setAllResultAttrs(attrs);
  impl->finished = true;
  return infos;
}

ValueMeta GraphBuilder::meta(int value) const {
  const Impl::Entry &entry = impl->entry(value);
  return {impl->roots[entry.root].dtype, toVector(entry.sizes),
          toVector(entry.strides)};
}

std::string GraphBuilder::print(bool locations) const {
  if (!impl->finished)
    impl->declareFunction({});
  std::string text;
  llvm::raw_string_ostream os(text);
  OpPrintingFlags flags;
  flags.assumeVerified();
  if (locations)
    flags.enableDebugInfo();
  impl->module->print(os, flags);
  return text;
}
