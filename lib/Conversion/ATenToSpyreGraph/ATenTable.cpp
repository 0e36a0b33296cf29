// SPDX-License-Identifier: Apache-2.0
//===- ATenTable.cpp - Looking up and running rows --------------*- C++ -*-===//

#include "ATenCall.h"
#include "Spyre/Dialect/SpyreGraph/IR/Builders.h"

#include "Spyre/Support/Error.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InterleavedRange.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::aten;
using ::spyre::Argument;
using ::spyre::HostDtype;
using ::spyre::UnsupportedOp;

AffineExpr spyre_graph::getSizeExpr(const ::spyre::SizeExpr &size,
                                    MLIRContext *context) {
  AffineExpr expr = getAffineConstantExpr(size.constant(), context);
  for (const ::spyre::SizeExpr::Term &term : size.terms()) {
    if (term.symbols.size() != 1)
      throw UnsupportedOp("a size of " + size.str() +
                          ": the product of sizes that vary");
    expr = expr + getAffineSymbolExpr(term.symbols[0], context) * term.factor;
  }
  return expr;
}

//===----------------------------------------------------------------------===//
// ATenCall: arguments
//===----------------------------------------------------------------------===//

ATenCall::ATenCall(OpBuilder &builder, Location loc, StringRef name,
                   ArrayRef<StringRef> parameters,
                   const ::spyre::Arguments &args,
                   const ::spyre::KeywordArguments &kwargs,
                   ArrayRef<RankedTensorType> results,
                   ArrayRef<SmallVector<AffineExpr>> sizes,
                   function_ref<Value(::spyre::ValueId)> lookup)
    : b(builder), loc(loc), name(name), parameters(parameters), args(args),
      kwargs(kwargs), results(results), sizes(sizes), lookup(lookup) {
  require(args.size() <= parameters.size(),
          "has " + Twine(args.size()) +
              " positional arguments, expected at "
              "most " +
              Twine(parameters.size()));
  for (const auto &entry : kwargs)
    require(llvm::is_contained(parameters, StringRef(entry.first)),
            "argument '" + entry.first + "' is not known");
}

/// Entries of a list that messages show.
static constexpr size_t kMaxPrinted = 8;

/// "float16[3, 5]", "[0, 1]", "2.5".
static void print(raw_ostream &os, const Argument &argument,
                  function_ref<Value(::spyre::ValueId)> lookup) {
  if (const auto *id = std::get_if<::spyre::ValueId>(&argument.value)) {
    RankedTensorType type = typeOf(lookup(*id));
    if (auto dtype = getHostDtype(type.getElementType()))
      os << toString(*dtype);
    else
      os << type.getElementType();
    os << "[" << llvm::interleaved(type.getShape()) << "]";
  } else if (const auto *list = std::get_if<Argument::List>(&argument.value)) {
    os << "[";
    llvm::interleaveComma(
        ArrayRef(*list).take_front(kMaxPrinted), os,
        [&](const Argument &entry) { print(os, entry, lookup); });
    os << (list->size() > kMaxPrinted ? ", ...]" : "]");
  } else if (const auto *text = std::get_if<std::string>(&argument.value)) {
    os << "'" << *text << "'";
  } else if (const auto *number = std::get_if<double>(&argument.value)) {
    os << llvm::format("%g", *number);
  } else if (const auto *number = std::get_if<int64_t>(&argument.value)) {
    os << *number;
  } else if (const auto *flag = std::get_if<bool>(&argument.value)) {
    os << (*flag ? "True" : "False");
  } else if (const auto *size =
                 std::get_if<::spyre::SizeExpr>(&argument.value)) {
    os << size->str();
  } else {
    os << "None";
  }
}

std::string ATenCall::describe() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << name << "(";
  llvm::ListSeparator comma;
  for (auto [position, argument] : llvm::enumerate(args)) {
    os << comma;
    if (position < parameters.size())
      os << parameters[position] << "=";
    print(os, argument, lookup);
  }
  for (const auto &[parameter, argument] : kwargs) {
    os << comma << parameter << "=";
    print(os, argument, lookup);
  }
  os << ")";
  return text;
}

void ATenCall::unsupported(const Twine &reason) const {
  throw UnsupportedOp((name + ": " + reason + ", in " + describe()).str());
}

void ATenCall::wrong(const Twine &reason) const {
  throw ::spyre::Error((name + ": " + reason).str());
}

void ATenCall::requireOneType(ArrayRef<StringRef> names) const {
  Type first = elementOf(tensor(names.front()));
  for (StringRef other : names)
    if (isTensor(other) && elementOf(tensor(other)) != first)
      wrong(names.front() + " and " + other + " must have the same dtype, " +
            "but have " + toString(*getHostDtype(first)) + " and " +
            toString(*getHostDtype(elementOf(tensor(other)))));
}

const Argument *ATenCall::find(StringRef parameter) const {
  const auto *position = llvm::find(parameters, parameter);
  assert(position != parameters.end() &&
         "the table's row reads a parameter that it does not declare");
  size_t index = position - parameters.begin();
  const Argument *argument = nullptr;
  if (index < args.size()) {
    argument = &args[index];
  } else if (auto it = kwargs.find(parameter.str()); it != kwargs.end()) {
    argument = &it->second;
  }
  return argument && !argument->isNone() ? argument : nullptr;
}

bool ATenCall::isTensor(StringRef parameter) const {
  const Argument *argument = find(parameter);
  return argument && std::holds_alternative<::spyre::ValueId>(argument->value);
}

Value ATenCall::tensorOrNull(StringRef parameter) const {
  const Argument *argument = find(parameter);
  if (!argument)
    return nullptr;
  const auto *id = std::get_if<::spyre::ValueId>(&argument->value);
  require(id, "argument '" + parameter + "' is not a tensor");
  return lookup(*id);
}

Value ATenCall::tensor(StringRef parameter) const {
  Value value = tensorOrNull(parameter);
  require(value != nullptr, "argument '" + parameter + "' is missing");
  return value;
}

Values ATenCall::tensors(StringRef parameter) const {
  const Argument *argument = find(parameter);
  const auto *list =
      argument ? std::get_if<Argument::List>(&argument->value) : nullptr;
  require(list, "argument '" + parameter + "' is not a list of tensors");
  Values values;
  for (const Argument &entry : *list) {
    const auto *id = std::get_if<::spyre::ValueId>(&entry.value);
    require(id || entry.isNone(),
            "argument '" + parameter + "' is not a list of tensors");
    values.push_back(id ? lookup(*id) : Value());
  }
  return values;
}

Operand ATenCall::operand(StringRef parameter) const {
  if (isTensor(parameter))
    return tensor(parameter);
  if (const Argument *argument = find(parameter))
    if (const auto *size = std::get_if<::spyre::SizeExpr>(&argument->value))
      return sizeNumber(getSizeExpr(*size, b.getContext()));
  return scalar(parameter);
}

Operand ATenCall::element(StringRef parameter, Type type) const {
  Operand result = operand(parameter);
  if (result.number)
    return elementNumber(parameter, type);
  return result;
}

TypedAttr ATenCall::scalar(StringRef parameter) const {
  const Argument *argument = find(parameter);
  require(argument, "argument '" + parameter + "' is missing");
  if (const auto *number = std::get_if<double>(&argument->value))
    return imm(*number);
  if (const auto *number = std::get_if<int64_t>(&argument->value))
    return immInt(*number);
  if (const auto *number = std::get_if<bool>(&argument->value))
    return b.getBoolAttr(*number);
  unsupported("argument '" + parameter + "' is not a number");
}

int64_t ATenCall::integer(StringRef parameter,
                          std::optional<int64_t> byDefault) const {
  const Argument *argument = find(parameter);
  if (!argument && byDefault)
    return *byDefault;
  require(argument, "argument '" + parameter + "' is missing");
  if (const auto *number = std::get_if<int64_t>(&argument->value))
    return *number;
  if (const auto *number = std::get_if<bool>(&argument->value))
    return *number;
  unsupported("argument '" + parameter + "' is not an integer");
}

double ATenCall::number(StringRef parameter,
                        std::optional<double> byDefault) const {
  const Argument *argument = find(parameter);
  if (!argument && byDefault)
    return *byDefault;
  TypedAttr attribute = scalar(parameter);
  if (const auto *value = std::get_if<double>(&argument->value))
    return *value;
  if (isBool(attribute.getType()))
    return llvm::cast<BoolAttr>(attribute).getValue();
  return llvm::cast<IntegerAttr>(attribute).getInt();
}

bool ATenCall::flag(StringRef parameter, bool byDefault) const {
  return integer(parameter, byDefault) != 0;
}

std::string ATenCall::text(StringRef parameter, StringRef byDefault) const {
  const Argument *argument = find(parameter);
  if (!argument)
    return byDefault.str();
  const auto *value = std::get_if<std::string>(&argument->value);
  require(value, "argument '" + parameter + "' is not a string");
  return *value;
}

SmallVector<int64_t> ATenCall::integers(StringRef parameter) const {
  const Argument *argument = find(parameter);
  if (!argument)
    return {};
  const auto *list = std::get_if<Argument::List>(&argument->value);
  if (!list)
    return {integer(parameter)};
  SmallVector<int64_t> values;
  for (const Argument &entry : *list) {
    const auto *number = std::get_if<int64_t>(&entry.value);
    require(number, "argument '" + parameter + "' is not a list of integers");
    values.push_back(*number);
  }
  return values;
}

SmallVector<AffineExpr> ATenCall::sizeList(StringRef parameter) const {
  const Argument *argument = find(parameter);
  const auto *list =
      argument ? std::get_if<Argument::List>(&argument->value) : nullptr;
  if (!argument)
    return {};
  require(list, "argument '" + parameter + "' is not a list");
  SmallVector<AffineExpr> values;
  for (const Argument &entry : *list) {
    if (const auto *size = std::get_if<::spyre::SizeExpr>(&entry.value)) {
      values.push_back(getSizeExpr(*size, b.getContext()));
      continue;
    }
    const auto *number = std::get_if<int64_t>(&entry.value);
    require(number, "argument '" + parameter + "' is not a list of integers");
    values.push_back(b.getAffineConstantExpr(*number));
  }
  return values;
}

std::optional<AffineExpr> ATenCall::varyingSize(StringRef parameter) const {
  const Argument *argument = find(parameter);
  const auto *size =
      argument ? std::get_if<::spyre::SizeExpr>(&argument->value) : nullptr;
  if (!size || size->isConstant())
    return std::nullopt;
  return getSizeExpr(*size, b.getContext());
}

static int64_t wrapDim(const ATenCall &c, int64_t dim, int64_t rank) {
  int64_t count = std::max<int64_t>(rank, 1);
  c.require(dim >= -count && dim < count, "dimension " + Twine(dim) +
                                              " is out of range for rank " +
                                              Twine(rank));
  return dim < 0 ? dim + count : dim;
}

int64_t ATenCall::dim(StringRef parameter, int64_t rank,
                      std::optional<int64_t> byDefault) const {
  return wrapDim(*this, integer(parameter, byDefault), rank);
}

SmallVector<int64_t> ATenCall::dims(StringRef parameter, int64_t rank) const {
  SmallVector<int64_t> result;
  for (int64_t dim : integers(parameter))
    if (int64_t wrapped = wrapDim(*this, dim, rank); wrapped < rank)
      result.push_back(wrapped);
  if (result.empty())
    result = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  llvm::sort(result);
  return result;
}

RankedTensorType ATenCall::type(unsigned i) const {
  require(wants(i), "result " + Twine(i) + " is not a tensor");
  return results[i];
}

SmallVector<AffineExpr> ATenCall::resultSizes(unsigned i) const {
  return sizes.empty()
             ? getSizeExprs(AffineMap(), type(i).getShape(), b.getContext())
             : sizes[i];
}

//===----------------------------------------------------------------------===//
// ATenCall: building
//===----------------------------------------------------------------------===//

Value ATenCall::withSizes(Value value, ArrayRef<AffineExpr> sizes) const {
  auto op = value.getDefiningOp<SpyreOpInterface>();
  op.setLoopExtentMap(
      makeSizeMap(sizes, getSizeSymbols(op).size(), b.getContext()));
  return value;
}

Value ATenCall::iota(AffineExpr length, int64_t start) const {
  auto type = RankedTensorType::get(range(length).second, b.getI64Type());
  return withSizes(
      pointwise<IotaOp>(type, {},
                        {attr("dim", immInt(0)), attr("start", immInt(start)),
                         attr("step", immInt(1))}),
      length);
}

/// A loop tells how long it is: the last of that many numbers.
Value ATenCall::sizeNumber(AffineExpr size) const {
  auto [least, most] = range(size);
  constexpr int64_t kMost = 1 << 16;
  require(most - least < kMost && -kMost < least && most < kMost,
          "a number computed from sizes may be " + Twine(least) + " to " +
              Twine(most) + ", which is too far");
  return device<MaxOp>(iota(size - least + 1, least),
                       RankedTensorType::get({}, b.getI64Type()),
                       attr("dims", b.getDenseI64ArrayAttr({0})));
}

Value ATenCall::empty(RankedTensorType type) const {
  return tensor::EmptyOp::create(b, loc, type.getShape(),
                                 type.getElementType());
}

Value ATenCall::full(RankedTensorType type, TypedAttr value) const {
  return pointwise<FillOp>(type, {value});
}

Value ATenCall::create(StringRef opName, ValueRange ins, Value init,
                       ArrayRef<NamedAttribute> attrs) const {
  return createDeviceOp(b, loc, opName, ins, init, attrs)->getResult(0);
}

Value ATenCall::createPointwise(StringRef opName, ArrayRef<Operand> operands,
                                RankedTensorType type,
                                ArrayRef<NamedAttribute> attrs) const {
  Values ins;
  SmallVector<Attribute> immediates;
  Type common = getComputedType(operands, type.getElementType());
  for (const Operand &given : operands) {
    Operand operand = common ? inType(given, common) : given;
    if (operand.tensor)
      ins.push_back(operand.tensor);
    immediates.push_back(operand.tensor ? Attribute(b.getUnitAttr())
                                        : Attribute(operand.number));
  }
  SmallVector<NamedAttribute> all(attrs);
  if (ins.size() != operands.size())
    all.push_back(attr("immediates", b.getArrayAttr(immediates)));
  // A uint8 lives in 32 bits on the device (spec/layouts.md, "Host dtype"):
  // results wrap explicitly.
  if (!type.getElementType().isUnsignedInteger(8))
    return create(opName, ins, empty(type), all);
  Value wide = create(
      opName, ins,
      empty(RankedTensorType::get(type.getShape(), b.getIntegerType(32))), all);
  SmallVector<NamedAttribute> mask{
      attr("immediates", b.getArrayAttr({b.getUnitAttr(), immInt(255)}))};
  return create(BitwiseAndOp::getOperationName(), wide, empty(type), mask);
}

Value ATenCall::cast(Value value, Type elementType) const {
  if (elementOf(value) == elementType)
    return value;
  return copy(value, typeLike(value, elementType));
}

Value ATenCall::copy(Value value, RankedTensorType type) const {
  // Values of these types fit a uint8 as they are.
  if (elementOf(value) == type.getElementType() || isBool(elementOf(value)))
    return device<IdentityOp>(value, type);
  require(!isa<Float8E5M2FNUZType>(elementOf(value)) &&
              !isa<Float8E5M2FNUZType>(type.getElementType()),
          "float8_e5m2fnuz is copied only, not converted");
  return pointwise<IdentityOp>(type, {value});
}

Value ATenCall::view(Value source, AffineMap map,
                     ArrayRef<int64_t> shape) const {
  return ViewOp::create(b, loc, RankedTensorType::get(shape, elementOf(source)),
                        source, AffineMapAttr::get(map));
}

Value ATenCall::transpose(Value matrix) const {
  SmallVector<int64_t> shape(shapeOf(matrix));
  unsigned rank = shape.size();
  std::swap(shape[rank - 2], shape[rank - 1]);
  SmallVector<AffineExpr> exprs;
  for (unsigned dim = 0; dim < rank; ++dim)
    exprs.push_back(b.getAffineDimExpr(dim));
  std::swap(exprs[rank - 2], exprs[rank - 1]);
  return view(matrix, AffineMap::get(rank, 0, exprs, b.getContext()), shape);
}

Value ATenCall::insert(Value source, Value init, AffineMap initMap) const {
  return mapped<IdentityOp>(
      source, init, {identityMap(rankOf(source)), initMap}, shapeOf(source));
}

//===----------------------------------------------------------------------===//
// ATenTable
//===----------------------------------------------------------------------===//

void ATenTable::addMany(ArrayRef<StringRef> names, StringRef parameters,
                        Lowering lowering) {
  Row row;
  parameters.split(row.parameters, ' ', -1, /*KeepEmpty=*/false);
  row.lowering = std::move(lowering);
  row.isForAnySize = addsForAnySize;
  for (StringRef name : names) {
    [[maybe_unused]] bool isNew = rows.try_emplace(name, row).second;
    assert(isNew && "two rows for one overload");
  }
}

const ATenTable::Row *ATenTable::find(StringRef name) const {
  if (name.starts_with("spyre_graph."))
    return &deviceOperations;
  auto it = rows.find(name);
  return it == rows.end() ? nullptr : &it->second;
}

std::vector<std::string> ATenTable::names() const {
  std::vector<std::string> result;
  for (StringRef name : rows.keys())
    result.push_back(name.str());
  std::sort(result.begin(), result.end());
  return result;
}

const ATenTable &ATenTable::get() {
  static const ATenTable table = [] {
    ATenTable made;
    addPointwiseRows(made);
    addCreationRows(made);
    addMovementRows(made);
    addWindowRows(made);
    addIndexingRows(made);
    addScatterRows(made);
    addReductionRows(made);
    addOrderingRows(made);
    addContractionRows(made);
    addNormalizationRows(made);
    addAttentionRows(made);
    addBackwardRows(made);
    addDeviceOperations(made);
    return made;
  }();
  return table;
}

std::vector<std::string> spyre::listSupportedOps() {
  return ATenTable::get().names();
}

/// How large the results of the ops that a row has built are: what PyTorch
/// says, and in between what follows from it and the operands.
static LogicalResult inferNewSizes(Operation *op, ArrayRef<Value> values,
                                   ArrayRef<SmallVector<AffineExpr>> sizes) {
  ArrayRef<AffineExpr> known;
  if (op->getNumResults() == 1)
    for (auto [value, own] : llvm::zip_equal(values, sizes))
      if (value == op->getResult(0))
        known = own;
  if (auto view = dyn_cast<ViewOp>(op))
    return inferSizeMap(view, known);
  if (auto device = dyn_cast<SpyreOpInterface>(op))
    return inferExtentMap(device, known);
  return success();
}

/// Refuses a call whose ops break the dialect's rules: the arguments do not fit
/// each other or the results.
static void verifyNewOps(const ATenCall &call, Block *block, Operation *last,
                         ArrayRef<Value> values,
                         ArrayRef<SmallVector<AffineExpr>> sizes) {
  std::string text;
  ScopedDiagnosticHandler handler(
      call.b.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          text += (text.empty() ? "" : "; ") + diagnostic.str();
        return success();
      });
  for (auto it = last ? std::next(last->getIterator()) : block->begin();
       it != block->end(); ++it)
    // Sizes are inferred from loops, and these from attributes that may lack.
    if (failed(verify(&*it, /*verifyRecursively=*/false)) ||
        (!sizes.empty() && (failed(inferNewSizes(&*it, values, sizes)) ||
                            failed(verify(&*it, /*verifyRecursively=*/false)))))
      call.unsupported(text);
  for (auto [value, own] : llvm::zip(values, sizes))
    if (value && getSizes(value) != own)
      call.unsupported(
          "the sizes of its result do not follow from those of its "
          "operands");
}

/// Whether a value, or a result that is to be, has a size that varies.
static bool isVarying(ArrayRef<AffineExpr> sizes) {
  return !llvm::all_of(sizes, llvm::IsaPred<AffineConstantExpr>);
}

SmallVector<Value>
spyre_graph::importATenOp(OpBuilder &builder, Location loc, StringRef name,
                          const ::spyre::Arguments &args,
                          const ::spyre::KeywordArguments &kwargs,
                          ArrayRef<RankedTensorType> results,
                          function_ref<Value(::spyre::ValueId)> lookup,
                          ArrayRef<SmallVector<AffineExpr>> sizes) {
  const ATenTable::Row *row = ATenTable::get().find(name);
  if (!row)
    throw UnsupportedOp(
        (name + ": the compiler's table has no such operator").str());
  Block *block = builder.getInsertionBlock();
  Operation *last = block->empty() ? nullptr : &block->back();
  // Without symbols nothing varies.
  if (!hasSizeSymbols(block->getParentOp()))
    sizes = {};
  bool hasVarying = llvm::any_of(sizes, isVarying);
  auto find = [&](::spyre::ValueId id) {
    Value value = lookup(id);
    hasVarying |= !sizes.empty() && isVarying(getSizes(value));
    return value;
  };
  try {
    ATenCall call(builder, loc, name, row->parameters, args, kwargs, results,
                  sizes, find);
    Values values = row->lowering(call);
    if (hasVarying && !row->isForAnySize)
      call.unsupported("its row is not for sizes that vary");
    values.resize(results.size());
    verifyNewOps(call, block, last, values, sizes);
    for (auto [index, value] : llvm::enumerate(values)) {
      if (!results[index]) {
        value = nullptr;
        continue;
      }
      if (!value)
        call.unsupported("result " + Twine(index) +
                         " is not computed by the table's row");
      // Updated arguments keep their layout.
      if (shapeOf(value) != results[index].getShape() ||
          elementOf(value) != results[index].getElementType()) {
        std::string text;
        llvm::raw_string_ostream(text)
            << "result " << index << " would be " << value.getType()
            << " where PyTorch says " << results[index];
        call.unsupported(text);
      }
    }
    return values;
  } catch (...) {
    while (!block->empty() && &block->back() != last)
      block->back().erase();
    builder.setInsertionPointToEnd(block);
    throw;
  }
}
