// SPDX-License-Identifier: Apache-2.0
//===- GraphBuilder.cpp - Import of an ATen graph ---------------*- C++ -*-===//

#include "GraphBuilderImpl.h"
#include "ViewMap.h"

#include "Spyre/Compiler/Pipeline.h"
#include "Spyre/Conversion/ATenToSpyreGraph/ATenToSpyreGraph.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "Spyre/Dialect/SpyreGraph/IR/UsedSizes.h"
#include "Spyre/Target/Targets.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <limits>
#ifdef __GLIBC__
#include <malloc.h>
#endif

using namespace mlir;
using namespace mlir::spyre_graph;
using spyre::Argument;
using spyre::Error;
using spyre::GraphBuilder;
using spyre::HostDtype;
using spyre::OutputInfo;
using spyre::SizeExpr;
using spyre::SizeList;
using spyre::SizeRange;
using spyre::TensorLayout;
using spyre::UnsupportedOp;
using spyre::ValueId;
using spyre::ValueMeta;

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

static SizeExpr countElements(const SizeList &sizes) {
  SizeExpr count = 1;
  for (const SizeExpr &size : sizes)
    count = count * size;
  return count;
}

/// Returns the largest that the sizes can be.
static SmallVector<int64_t> checkMeta(const GraphBuilder::Impl &impl,
                                      const SizeList &sizes,
                                      const SizeList &strides) {
  if (sizes.size() != strides.size())
    throw Error("sizes " + sizes.str() + " and strides " + strides.str() +
                " differ in length");
  SmallVector<int64_t> most = impl.atMost(sizes);
  countElements(most);
  for (const SizeExpr &size : sizes)
    if (!size.isConstant() && size.lowerBound(impl.ranges) < 1)
      throw UnsupportedOp("a dimension of " + size.str() +
                          " elements may be empty");
  return most;
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

/// A graph of as many tensors takes a hundred times longer to compile than to
/// tidy up the heap.
static constexpr size_t kManyTensors = 500;

GraphBuilder::GraphBuilder() : impl(std::make_unique<Impl>()) {}

GraphBuilder::~GraphBuilder() {
  [[maybe_unused]] bool isLarge = impl && impl->roots.size() >= kManyTensors;
  impl.reset();
#ifdef __GLIBC__
  // What MLIR has freed lies in pieces all over the heap: the system gets it
  // back.
  if (isLarge)
    malloc_trim(0);
#endif
}

GraphBuilder::GraphBuilder(GraphBuilder &&) = default;
GraphBuilder &GraphBuilder::operator=(GraphBuilder &&) = default;

static NamedAttribute nameAttr(Builder &b, const std::string &name) {
  return b.getNamedAttr(SpyreGraphDialect::getNameAttrName(),
                        b.getStringAttr(name));
}

static NamedAttribute sizeMapAttr(Builder &b, AffineMap map) {
  return b.getNamedAttr(SpyreGraphDialect::getSizeMapAttrName(),
                        AffineMapAttr::get(map));
}

static NamedAttribute hostStridesAttr(Builder &b, ArrayRef<int64_t> strides) {
  return b.getNamedAttr(SpyreGraphDialect::getHostStridesAttrName(),
                        b.getDenseI64ArrayAttr(strides));
}

int GraphBuilder::addSymbol(const std::string &name, const SizeRange &range,
                            int64_t hint) {
  impl->checkOpen();
  MLIRContext *context = &impl->context;
  auto symbol = SizeSymbolAttr::getChecked(
      [&] { return emitError(UnknownLoc::get(context)); }, context,
      StringRef(name), range.least, range.most, range.step);
  if (!symbol || hint < range.least || hint > range.most ||
      hint % range.step != 0 || !impl->argumentAttrs.empty())
    throw Error("symbol '" + name + "' from " + std::to_string(range.least) +
                " to " + std::to_string(range.most) + " by " +
                std::to_string(range.step) + " with " + std::to_string(hint) +
                " as an example is not valid");
  StringRef attribute = SpyreGraphDialect::getSymbolsAttrName();
  SmallVector<Attribute> symbols;
  if (auto known = impl->function->getAttrOfType<ArrayAttr>(attribute))
    llvm::append_range(symbols, known);
  symbols.push_back(symbol);
  impl->function->setAttr(attribute, impl->builder.getArrayAttr(symbols));
  impl->ranges.push_back(range);
  impl->hints.push_back(hint);
  return impl->ranges.size() - 1;
}

/// The home with as many rows as there is room for, then dense and row-major.
static std::pair<SizeList, SizeList>
withRows(const SizeList &sizes, const SizeList &strides,
         const std::optional<GraphBuilder::Room> &room) {
  std::pair<SizeList, SizeList> home(sizes, strides);
  if (!room)
    return home;
  auto [dim, rows] = *room;
  if (dim >= sizes.size() || rows.isConstant())
    throw Error("no room for " + rows.str() + " rows along dimension " +
                std::to_string(dim) + " of " + sizes.str());
  if (sizes[dim] == rows)
    return home;
  home.first[dim] = rows;
  SizeExpr stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    home.second[d] = stride;
    stride = stride * home.first[d];
  }
  return home;
}

int GraphBuilder::addArgument(const std::string &name, HostDtype dtype,
                              const SizeList &homeSizes,
                              const SizeList &homeStrides,
                              const TensorLayout &layout,
                              const std::optional<Room> &room) {
  impl->checkOpen();
  checkMeta(*impl, homeSizes, homeStrides);
  if (!::spyre::isDense(homeSizes, homeStrides, impl->ranges))
    throw Error("argument '" + name + "': the home with sizes " +
                homeSizes.str() + " and strides " + homeStrides.str() +
                " is not dense");
  auto [sizes, strides] = withRows(homeSizes, homeStrides, room);
  SmallVector<int64_t> most = checkMeta(*impl, sizes, strides);
  try {
    layout.checkHolds(dtype);
  } catch (const Error &error) {
    throw Error("argument '" + name + "': " + error.what());
  }
  Type elementType = getElementType(&impl->context, dtype);
  AffineMap sizeMap = impl->getSizeMap(sizes);
  Attribute encoding =
      getLayoutEncoding(&impl->context, elementType, homeSizes.at(impl->hints),
                        homeStrides.at(impl->hints), layout);
  if (sizeMap && !isa<LayoutAttr>(encoding))
    throw UnsupportedOp("argument '" + name + "': layout " + layout.str() +
                        " is for sizes that do not vary");
  Location loc = NameLoc::get(impl->builder.getStringAttr(name));
  auto type = RankedTensorType::getChecked(loc, most, elementType, encoding);
  if (!type)
    throw Error("argument '" + name + "': layout " + layout.str() +
                " does not fit sizes " + homeSizes.str());
  int index = static_cast<int>(impl->argumentAttrs.size());
  impl->argumentAttrs.emplace_back(ArrayRef<NamedAttribute>{
      nameAttr(impl->builder, name),
      hostStridesAttr(impl->builder, impl->atMost(strides))});
  BlockArgument argument = impl->function.front().addArgument(type, loc);
  if (sizeMap) {
    NamedAttribute map = sizeMapAttr(impl->builder, sizeMap);
    if (room)
      map.setName(impl->builder.getStringAttr(kUsedMapAttrName));
    impl->argumentAttrs.back().set(map.getName(), map.getValue());
  }
  // Operations look for the sizes of their operands.
  if (!impl->ranges.empty())
    impl->declareFunction({});
  return impl->addRoot(argument, dtype, sizes, strides, index);
}

/// Throws Error if a view leaves its storage at one of the sizes.
static void checkView(const GraphBuilder::Impl &impl,
                      const GraphBuilder::Impl::Root &home,
                      const SizeList &sizes, const SizeList &strides,
                      const SizeExpr &offset) {
  SizeExpr last = offset, numElements = 1;
  for (auto [size, stride] : llvm::zip_equal(sizes, strides)) {
    if (stride.lowerBound(impl.ranges) < 0)
      throw Error("view with sizes " + sizes.str() + " and strides " +
                  strides.str() + " is not valid");
    if (size != SizeExpr(0))
      last = last + (size - 1) * stride;
  }
  for (auto [size, stride] : llvm::zip_equal(home.sizes, home.strides))
    if (size == SizeExpr(0))
      numElements = 0;
  if (numElements != SizeExpr(0))
    for (auto [size, stride] : llvm::zip_equal(home.sizes, home.strides))
      numElements = numElements + (size - 1) * stride;
  bool isEmpty = llvm::is_contained(sizes, SizeExpr(0));
  if (offset.lowerBound(impl.ranges) < 0 ||
      (!isEmpty && (numElements - last).lowerBound(impl.ranges) < 1))
    throw Error("view with sizes " + sizes.str() + ", strides " +
                strides.str() + " and offset " + offset.str() +
                " leaves its storage of " + numElements.str() + " elements");
}

int GraphBuilder::view(int value, const SizeList &sizes,
                       const SizeList &strides, const SizeExpr &offset,
                       const SourceLocation &loc) {
  impl->checkOpen();
  int root = impl->entry(value).root;
  SmallVector<int64_t> most = checkMeta(*impl, sizes, strides);
  const Impl::Root &home = impl->roots[root];
  checkView(*impl, home, sizes, strides, offset);
  if (!::spyre::isDense(home.sizes, home.strides, impl->ranges) &&
      !llvm::is_contained(sizes, SizeExpr(0))) {
    AffineMap map = ::spyre::getViewMap(&impl->context, sizes, strides, offset,
                                        home.sizes, home.strides, impl->ranges);
    for (auto [expr, size] :
         llvm::zip_equal(map.getResults(), impl->atMost(home.sizes)))
      if (getRange(expr, most).second >= size)
        throw Error("view with sizes " + sizes.str() + ", strides " +
                    strides.str() + " and offset " + offset.str() +
                    " addresses elements between those of its storage");
  }
  Value tensor;
  try {
    tensor = impl->buildView(impl->location(loc), home, sizes, strides, offset);
  } catch (const UnsupportedOp &) {
    // It takes a copy, which operators on rows and other views do not need.
    if (!impl->findRegrouping(home, sizes, strides, offset))
      throw;
  }
  impl->entries.push_back({root, sizes, strides, offset, tensor, home.value});
  if (!tensor)
    if (std::optional<Flattening> flattening =
            impl->findFlattening(impl->entries.back()))
      impl->flattenings.push_back(*flattening);
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
  for (const std::optional<ValueMeta> &meta : results) {
    if (!meta)
      continue;
    checkMeta(*impl, meta->sizes, meta->strides);
    // Elements must be distinct; gaps are only a matter of addressing.
    if (!::spyre::isNested(meta->sizes, meta->strides, impl->ranges))
      throw UnsupportedOp(atenName + ": a result with sizes " +
                          meta->sizes.str() + " and strides " +
                          meta->strides.str() + " overlaps itself");
  }
  std::string reason;
  if (hints.empty())
    if (std::optional<std::vector<int>> ids =
            opOnRows(atenName, args, kwargs, results, loc, reason))
      return *ids;
  SmallVector<RankedTensorType> types;
  SmallVector<SmallVector<AffineExpr>> sizes;
  Location location = impl->location(loc);
  try {
    for (const std::optional<ValueMeta> &meta : results) {
      types.push_back(impl->getType(meta));
      sizes.push_back(meta ? impl->getExprs(meta->sizes)
                           : SmallVector<AffineExpr>());
    }
    // The row takes back what it has made if it refuses: not its operands.
    visitValues(args, kwargs, [&](int id) { impl->tensorOf(id, location); });
  } catch (const UnsupportedOp &error) {
    if (reason.empty())
      throw;
    throw UnsupportedOp(atenName + ": " + error.what() + ", and " + reason);
  }
  Block *block = impl->builder.getInsertionBlock();
  bool isFirst = impl->builder.getInsertionPoint() == block->begin();
  Operation *before =
      isFirst ? nullptr : &*std::prev(impl->builder.getInsertionPoint());
  SmallVector<Value> values = importATenOp(
      impl->builder, location, atenName, args, kwargs, types,
      [&](ValueId id) { return impl->entry(id.id).value; }, sizes);
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
  if (HostDtype dtype = impl->roots[impl->entry(target).root].dtype;
      dtype != impl->roots[impl->entry(value).root].dtype) {
    // The value has its own type before it gets that of the target.
    ValueMeta meta{dtype, impl->entry(target).sizes,
                   impl->entry(target).strides};
    value = op("prims.convert_element_type.default", {Argument{ValueId{value}}},
               {}, {meta}, loc)[0];
  }
  const Impl::Entry &to = impl->entry(target);
  const Impl::Entry &from = impl->entry(value);
  Impl::Root &home = impl->roots[to.root];
  if (home.argument < 0)
    throw Error("only arguments and views of them can be mutated");
  if (to.sizes != from.sizes)
    throw Error("value of sizes " + from.sizes.str() +
                " cannot be stored in a tensor of sizes " + to.sizes.str());
  Location location = impl->location(loc);
  impl->tensorOf(value, location);
  const Impl::Root &source = impl->roots[from.root];
  Value updated;
  bool isWhole = to.offset == SizeExpr(0) &&
                 countElements(to.sizes) == countElements(home.sizes) &&
                 ::spyre::isDense(to.sizes, to.strides, impl->ranges);
  // A value that was made by updating all of the argument is in place already.
  if (isWhole && from.root != to.root && from.offset == SizeExpr(0) &&
      sameElements(from.sizes, from.strides, to.sizes, to.strides) &&
      source.value.getType() == home.value.getType() &&
      sameElements(source.sizes, source.strides, home.sizes, home.strides) &&
      updates(source.value, home.value)) {
    updated = source.value;
  } else {
    Builder &b = impl->builder;
    // All of the argument is walked as it lies, whatever the view's shape: the
    // cores can then divide it at whole sticks.
    bool goesByHome = isWhole && impl->ranges.empty();
    const SizeList &sizes = goesByHome ? home.sizes : to.sizes;
    SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(sizes.size()));
    if (goesByHome)
      maps[0] = ::spyre::getViewMap(&impl->context, home.sizes, home.strides, 0,
                                    to.sizes, to.strides);
    else
      maps[1] =
          ::spyre::getViewMap(&impl->context, to.sizes, to.strides, to.offset,
                              home.sizes, home.strides, impl->ranges);
    AffineMap sizeMap = impl->getSizeMap(sizes);
    auto copy = IdentityOp::create(impl->builder, location, from.value,
                                   home.value, maps, impl->atMost(sizes));
    if (sizeMap)
      copy.setExtentMapAttr(AffineMapAttr::get(sizeMap));
    updated = copy.getResult();
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
    if ((entry.value && isDropped(entry.value)) ||
        (entry.home && isDropped(entry.home)))
      entry.value = entry.home = nullptr;
  llvm::erase_if(impl->regrouped, [&](const Impl::Regrouped &known) {
    return isDropped(known.copy);
  });
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
    info.sizes = entry.sizes;
    info.strides = entry.strides;
    info.offset = entry.offset;
    info.rootMeta = {root.dtype, root.sizes, root.strides};
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
    SmallVector<NamedAttribute> named{
        nameAttr(impl->builder, "out" + std::to_string(index)),
        hostStridesAttr(impl->builder, impl->atMost(home.strides))};
    if (AffineMap map = impl->getSizeMap(home.sizes))
      named.push_back(sizeMapAttr(impl->builder, map));
    attrs.push_back(impl->builder.getDictionaryAttr(named));
  }
  func::ReturnOp::create(impl->builder, impl->builder.getUnknownLoc(), results);
  impl->declareFunction(types);
  impl->function.setAllResultAttrs(attrs);
  impl->finished = true;
  return infos;
}

ValueMeta GraphBuilder::meta(int value) const {
  const Impl::Entry &entry = impl->entry(value);
  return {impl->roots[entry.root].dtype, entry.sizes, entry.strides};
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
