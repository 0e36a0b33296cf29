// SPDX-License-Identifier: Apache-2.0
//===- ATenCall.h - What a row of the ATen table works with -----*- C++ -*-===//
//
// Rows read arguments by their schema names and build ops. Any accessor may
// throw UnsupportedOp, or Error for what the CPU refuses, too; importATenOp
// then takes back what was built. Exceptions pass through this library's
// frames only.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_CONVERSION_ATENTOSPYREGRAPH_ATENCALL_H
#define SPYRE_LIB_CONVERSION_ATENTOSPYREGRAPH_ATENCALL_H

#include "Spyre/Conversion/ATenToSpyreGraph/ATenToSpyreGraph.h"
#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"

#include "llvm/ADT/StringMap.h"

#include <functional>
#include <optional>

namespace mlir::spyre_graph::aten {

using Values = SmallVector<Value>;

inline RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}
inline ArrayRef<int64_t> shapeOf(Value value) {
  return typeOf(value).getShape();
}
inline int64_t rankOf(Value value) { return typeOf(value).getRank(); }
inline Type elementOf(Value value) { return typeOf(value).getElementType(); }
inline bool isBool(Type elementType) { return elementType.isInteger(1); }
/// Whether the size of a dimension is known only when the program runs. Its
/// extent is then the largest, and no number to compute with.
inline bool varies(Value value, int64_t dim) {
  return !isa<AffineConstantExpr>(getSizes(value)[dim]);
}

/// A tensor or an immediate of an elementwise op.
struct Operand {
  Operand(Value tensor) : tensor(tensor) {}
  Operand(TypedAttr number) : number(number) {}

  Value tensor;
  TypedAttr number;
};

/// The type in which PyTorch computes an elementwise operator whose tensors are
/// integers: that of the result or, for comparisons, the one to which it
/// promotes operands. Null for other operands.
Type getComputedType(ArrayRef<Operand> operands, Type result);

class ATenCall {
public:
  ATenCall(OpBuilder &builder, Location loc, StringRef name,
           ArrayRef<StringRef> parameters, const ::spyre::Arguments &args,
           const ::spyre::KeywordArguments &kwargs,
           ArrayRef<RankedTensorType> results,
           ArrayRef<SmallVector<AffineExpr>> sizes,
           function_ref<Value(::spyre::ValueId)> lookup);

  OpBuilder &b;
  Location loc;

  StringRef getName() const { return name; }
  /// The call, for messages: "aten.sum.dim_IntList(self=float16[3, 5],
  /// dim=[0])".
  std::string describe() const;
  [[noreturn]] void unsupported(const Twine &reason) const;
  /// What is an error on the CPU, too: it runs the call, and says so.
  [[noreturn]] void wrong(const Twine &reason) const;
  /// Refuses unless `condition` holds.
  void require(bool condition, const Twine &reason) const {
    if (!condition)
      unsupported(reason);
  }

  /// An error unless the tensors among these arguments have the dtype of the
  /// first one, which is a tensor.
  void requireOneType(ArrayRef<StringRef> names) const;

  // Arguments, by schema name. Absent and None are the same.
  bool has(StringRef name) const { return find(name) != nullptr; }
  bool isTensor(StringRef name) const;
  Value tensor(StringRef name) const;
  Value tensorOrNull(StringRef name) const;
  /// A list of tensors, null where an entry is None.
  Values tensors(StringRef name) const;
  /// A tensor, a number as immediate, or one computed from sizes as a tensor.
  Operand operand(StringRef name) const;
  /// A number as immediate: f32, i64 or i1.
  TypedAttr scalar(StringRef name) const;
  /// As operand(), of what elements of `type` may become: a number is
  /// elementNumber().
  Operand element(StringRef name, Type type) const;
  /// A number as elements of `type` get it: see immElement(). One that an
  /// integer type does not have is an error of the user's, as on the CPU.
  TypedAttr elementNumber(StringRef name, Type type) const;
  int64_t integer(StringRef name, std::optional<int64_t> byDefault = {}) const;
  double number(StringRef name, std::optional<double> byDefault = {}) const;
  bool flag(StringRef name, bool byDefault = false) const;
  std::string text(StringRef name, StringRef byDefault = "") const;
  /// A list of integers; a single integer is a list of one.
  SmallVector<int64_t> integers(StringRef name) const;
  /// A list of integers, some of which may depend on symbols.
  SmallVector<AffineExpr> sizeList(StringRef name) const;
  /// A number that depends on symbols; nothing for others.
  std::optional<AffineExpr> varyingSize(StringRef name) const;
  /// A dimension of a tensor of `rank`, counted from 0 (rank 0 has one).
  int64_t dim(StringRef name, int64_t rank,
              std::optional<int64_t> byDefault = {}) const;
  /// Ascending dimensions; all of them where there are none.
  SmallVector<int64_t> dims(StringRef name, int64_t rank) const;

  /// An operand as PyTorch converts it to what getComputedType() says: integers
  /// and tensors without dimensions wrap.
  Operand inType(const Operand &operand, Type type) const;

  // Results.
  unsigned numResults() const { return results.size(); }
  bool wants(unsigned i) const { return i < results.size() && results[i]; }
  RankedTensorType type(unsigned i = 0) const;
  /// How large a result is, of the function's symbols.
  SmallVector<AffineExpr> resultSizes(unsigned i = 0) const;
  /// The least and the largest that a number computed from sizes can be.
  std::pair<int64_t, int64_t> range(AffineExpr size) const {
    return getSizeRange(size,
                        getSizeSymbols(b.getInsertionBlock()->getParentOp()));
  }

  // Building.
  TypedAttr imm(double value) const { return b.getF32FloatAttr(value); }
  /// A value that elements of a type get. A finite one other than 0 is the
  /// nearest on the device that is so, too, where bfloat16 reaches from 5e-10
  /// to 8.6e9 instead of 3e38: its most negative number hides keys in masks of
  /// attention, and small ones keep divisors from 0.
  /// Integer types cut fractions off, and take numbers that they have;
  /// unsigned ones wrap negative numbers.
  TypedAttr immElement(double value, Type type) const;
  TypedAttr immElement(int64_t value, Type type) const;
  TypedAttr immInt(int64_t value) const { return b.getI64IntegerAttr(value); }
  /// A number as an integer: towards zero, to the nearest that fits, NaN as 0.
  TypedAttr immWhole(double value) const;
  NamedAttribute attr(StringRef name, Attribute value) const {
    return b.getNamedAttr(name, value);
  }
  RankedTensorType typeLike(Value value, Type elementType) const {
    return RankedTensorType::get(shapeOf(value), elementType);
  }
  Value empty(RankedTensorType type) const;
  /// The result of a device op whose loops are as long as `sizes` say, where
  /// that does not follow from its operands.
  Value withSizes(Value value, ArrayRef<AffineExpr> sizes) const;
  /// start, start + 1 and so on.
  Value iota(AffineExpr length, int64_t start) const;
  /// A number that depends on symbols, as a tensor without dimensions.
  Value sizeNumber(AffineExpr size) const;
  /// A constant tensor.
  Value full(RankedTensorType type, TypedAttr value) const;
  /// A device op in default form.
  template <typename OpTy>
  Value device(ValueRange ins, Value init,
               ArrayRef<NamedAttribute> attrs = {}) const {
    return create(OpTy::getOperationName(), ins, init, attrs);
  }
  template <typename OpTy>
  Value device(ValueRange ins, RankedTensorType type,
               ArrayRef<NamedAttribute> attrs = {}) const {
    return device<OpTy>(ins, empty(type), attrs);
  }
  /// A device op with explicit loops.
  template <typename OpTy>
  Value mapped(ValueRange ins, Value init, ArrayRef<AffineMap> maps,
               ArrayRef<int64_t> extents,
               ArrayRef<NamedAttribute> attrs = {}) const {
    SmallVector<NamedAttribute> all(attrs);
    all.push_back(attr("maps", b.getAffineMapArrayAttr(maps)));
    all.push_back(attr("extents", b.getDenseI64ArrayAttr(extents)));
    return create(OpTy::getOperationName(), ins, init, all);
  }
  /// An elementwise op over the broadcast of its operands.
  template <typename OpTy>
  Value pointwise(RankedTensorType type, ArrayRef<Operand> operands,
                  ArrayRef<NamedAttribute> attrs = {}) const {
    return createPointwise(OpTy::getOperationName(), operands, type, attrs);
  }
  Value createPointwise(StringRef opName, ArrayRef<Operand> operands,
                        RankedTensorType type,
                        ArrayRef<NamedAttribute> attrs = {}) const;
  /// Converts elements; the value itself where nothing changes.
  Value cast(Value value, Type elementType) const;
  /// Copies the elements to a tensor of this shape and type, with broadcasting.
  Value copy(Value value, RankedTensorType type) const;
  Value view(Value source, AffineMap map, ArrayRef<int64_t> shape) const;
  /// The last two dimensions swapped, as a view.
  Value transpose(Value matrix) const;
  /// Copies `source` into `init` at the coordinates `initMap` of source's.
  Value insert(Value source, Value init, AffineMap initMap) const;
  AffineMap identityMap(unsigned rank) const {
    return b.getMultiDimIdentityMap(rank);
  }

private:
  const ::spyre::Argument *find(StringRef name) const;
  Value create(StringRef opName, ValueRange ins, Value init,
               ArrayRef<NamedAttribute> attrs) const;

  StringRef name;
  ArrayRef<StringRef> parameters;
  const ::spyre::Arguments &args;
  const ::spyre::KeywordArguments &kwargs;
  ArrayRef<RankedTensorType> results;
  ArrayRef<SmallVector<AffineExpr>> sizes;
  function_ref<Value(::spyre::ValueId)> lookup;
};

/// The rows, by overload name.
class ATenTable {
public:
  using Lowering = std::function<Values(ATenCall &)>;
  struct Row {
    SmallVector<StringRef> parameters;
    Lowering lowering;
    /// Computes the same whatever the sizes are: extents are not numbers that
    /// it computes with, or it refuses those that vary itself.
    bool isForAnySize = false;
  };

  /// Rows that are added while it lives are for any size.
  class ForAnySize {
  public:
    explicit ForAnySize(ATenTable &table) : table(table) {
      table.addsForAnySize = true;
    }
    ~ForAnySize() { table.addsForAnySize = false; }
    ForAnySize(const ForAnySize &) = delete;
    ForAnySize &operator=(const ForAnySize &) = delete;

  private:
    ATenTable &table;
  };

  /// `parameters`: the schema's parameter names in order, separated by
  /// spaces, keyword-only ones included.
  void addMany(ArrayRef<StringRef> names, StringRef parameters,
               Lowering lowering);
  /// A row with one result.
  void add(ArrayRef<StringRef> names, StringRef parameters,
           std::function<Value(ATenCall &)> lowering) {
    addMany(names, parameters, [lowering = std::move(lowering)](ATenCall &c) {
      return Values{lowering(c)};
    });
  }

  /// The row of all device operations of spyre_graph, which are called by name.
  void setDeviceOperations(Row row) { deviceOperations = std::move(row); }

  /// The row of an overload, or of a device operation of spyre_graph.
  const Row *find(StringRef name) const;
  std::vector<std::string> names() const;

  static const ATenTable &get();

private:
  llvm::StringMap<Row> rows;
  Row deviceOperations;
  bool addsForAnySize = false;
};

void addPointwiseRows(ATenTable &table);
void addCreationRows(ATenTable &table);
void addMovementRows(ATenTable &table);
void addWindowRows(ATenTable &table);
void addIndexingRows(ATenTable &table);
void addScatterRows(ATenTable &table);
void addReductionRows(ATenTable &table);
void addOrderingRows(ATenTable &table);
void addContractionRows(ATenTable &table);
void addNormalizationRows(ATenTable &table);
void addAttentionRows(ATenTable &table);
void addBackwardRows(ATenTable &table);
void addDeviceOperations(ATenTable &table);

} // namespace mlir::spyre_graph::aten

#endif // SPYRE_LIB_CONVERSION_ATENTOSPYREGRAPH_ATENCALL_H
