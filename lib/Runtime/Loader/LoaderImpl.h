// SPDX-License-Identifier: Apache-2.0
//===- LoaderImpl.h - Decoding one function ---------------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_LOADER_LOADERIMPL_H
#define SPYRE_LIB_RUNTIME_LOADER_LOADERIMPL_H

#include "../Engine/Instrs.h"
#include "../Engine/InterTile.h"
#include "../Engine/StructuredLoop.h"
#include "../Program/Plan.h"
#include "Spyre/Runtime/Loader/LoadOptions.h"
#include "Spyre/Runtime/Program/Program.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"

#include <functional>

namespace spyre::runtime {

/// Arithmetic modulo 2^64: so the engine computes addresses, which are checked
/// when memory is accessed.
inline int64_t wrappingAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b));
}
inline int64_t wrappingSub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) -
                              static_cast<uint64_t>(b));
}
inline int64_t wrappingMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) *
                              static_cast<uint64_t>(b));
}

/// The element type of `type` (or `type` itself); nothing if unknown.
std::optional<Elem> elemOf(mlir::Type type);

class LocationTable {
public:
  explicit LocationTable(Plan &plan) : plan(plan) {}
  int get(mlir::Location location);

private:
  Plan &plan;
  llvm::DenseMap<mlir::Attribute, int> known;
};

/// Decodes one function. Every method that returns failure has emitted a
/// located error.
class FunctionLoader {
public:
  FunctionLoader(Plan &plan, LocationTable &locations, Function &function,
                 llvm::StringMap<Function *> &functions)
      : plan(plan), locations(locations), function(function),
        functions(functions) {}

  mlir::LogicalResult load(mlir::func::FuncOp op);

private:
  using Emit = std::vector<std::unique_ptr<Instr>>;
  using OpSet = llvm::SmallPtrSet<mlir::Operation *, 8>;

  // Slots.
  int scalarSlot(mlir::Value value);
  int tensorSlot(mlir::Value value);
  int viewSlot(mlir::Value value);
  int tileSlot(mlir::Value value);
  bool isScalar(mlir::Type type) const;
  /// Checks that the type is one that plans can hold.
  mlir::LogicalResult checkType(mlir::Operation *op, mlir::Type type);

  // Liveness of tensors.
  bool isLastUser(mlir::Value value, mlir::Operation *op);
  TensorUse use(mlir::Value value, mlir::Operation *op);

  template <typename T>
  T &add(mlir::Operation *op) {
    auto instr = std::make_unique<T>();
    instr->location = locations.get(op->getLoc());
    T &result = *instr;
    current->push_back(std::move(instr));
    return result;
  }

  mlir::LogicalResult loadBlock(mlir::Block &block, Block &into);
  mlir::LogicalResult loadOp(mlir::Operation *op);
  /// Remembers where the operands of a float operation are computed
  /// (Plan::producers).
  void noteProducers(mlir::Operation *op);
  /// Its number in Plan::operationNames.
  int nameNumber(mlir::Operation *op);
  mlir::LogicalResult loadConstant(mlir::Operation *op);
  mlir::LogicalResult loadScalarOp(mlir::Operation *op);
  mlir::LogicalResult loadAffine(mlir::Operation *op);
  mlir::LogicalResult loadControlFlow(mlir::Operation *op);
  mlir::LogicalResult loadCall(mlir::Operation *op);
  mlir::LogicalResult loadMemory(mlir::Operation *op);
  mlir::LogicalResult loadMemoryView(mlir::Operation *op);
  mlir::LogicalResult loadDistributedView(mlir::Operation *op);
  mlir::LogicalResult loadSubView(mlir::Operation *op);
  class AccessTileLoader;
  mlir::LogicalResult loadAccessTile(mlir::Operation *op);
  mlir::LogicalResult loadLoad(mlir::Operation *op);
  mlir::LogicalResult loadStore(mlir::Operation *op);
  /// Lets the host tiles of a load be kept where a loop around it reads them
  /// again.
  void keepTiles(mlir::Operation *load, AccessTilePlan &tilePlan);
  /// A set of which points are tested; null after an error.
  std::unique_ptr<PointSet> makePointSet(mlir::Operation *op,
                                         mlir::IntegerSet set);
  mlir::LogicalResult loadInterTile(mlir::Operation *op);
  mlir::LogicalResult loadProduce(mlir::Operation *op);
  /// How a reduction between cores combines two tiles.
  mlir::LogicalResult loadCombiner(mlir::Operation *op, mlir::Region &combiner,
                                   mlir::Value identity, ReceiveInstr &instr);
  class TensorOpLoader;
  mlir::LogicalResult loadTensorOp(mlir::Operation *op);
  /// Fills the tensor in slot `shape` (or of `sizes`, if that is -1) from an
  /// op's body over its indices; the result goes to slot `result`.
  mlir::LogicalResult loadGenerate(mlir::Operation *op,
                                   std::vector<SizeSource> sizes, int shape,
                                   int result);
  mlir::LogicalResult loadPad(mlir::Operation *op);
  /// The elements of a one-dimensional tensor, as sizes.
  std::vector<SizeSource> loadShape(mlir::Value shape, mlir::Operation *op);
  mlir::LogicalResult loadParallel(mlir::Operation *op);
  mlir::LogicalResult loadForall(mlir::Operation *op);
  mlir::LogicalResult loadElementwise(mlir::Operation *op);
  class LinalgOpLoader;
  mlir::LogicalResult loadLinalg(mlir::linalg::LinalgOp op);
  mlir::LogicalResult makeTransfer(mlir::Operation *op, mlir::ValueRange from,
                                   mlir::ValueRange to, bool mayMove,
                                   Transfer &transfer);

  /// Adds a linear form of `expr`; dims and symbols are numbered by the
  /// callbacks as (kind, index). Returns -1 and emits if it is not affine.
  int addForm(mlir::Operation *op, AccessTilePlan &tilePlan,
              mlir::AffineExpr expr, llvm::ArrayRef<std::pair<char, int>> dims,
              llvm::ArrayRef<std::pair<char, int>> symbols);
  mlir::LogicalResult addTerms(mlir::Operation *op, AccessTilePlan &tilePlan,
                               mlir::AffineExpr expr, int64_t factor,
                               llvm::ArrayRef<std::pair<char, int>> dims,
                               llvm::ArrayRef<std::pair<char, int>> symbols,
                               LinearForm &form);

  // Bodies.
  /// Appends `op`'s operations; `reg` finds operands. Returns the register of
  /// the (only) result or -1 after emitting an error.
  int emitExtract(mlir::tensor::ExtractOp extract, ScalarProgram &body,
                  llvm::function_ref<int(mlir::Value)> reg);
  int emitScalarOp(mlir::Operation *op, ScalarProgram &body,
                   llvm::function_ref<int(mlir::Value)> reg);
  /// Appends all of `block`; `regs` knows its arguments.
  mlir::LogicalResult emitBody(mlir::Operation *op, mlir::Block &block,
                               ScalarProgram &body,
                               llvm::SmallDenseMap<mlir::Value, int> &regs,
                               const OpSet &skipped, bool &hasIndex);
  /// The register of a value inside or outside `block`; -1 after an error.
  int bodyRegister(mlir::Operation *op, mlir::Block &block, mlir::Value value,
                   ScalarProgram &body,
                   llvm::SmallDenseMap<mlir::Value, int> &regs);
  int constantRegister(mlir::Attribute value, mlir::Type type,
                       ScalarProgram &body);
  /// The register of a scalar of the function: a constant, or what it captures.
  int scalarRegister(mlir::Value value, ScalarProgram &body);

  SizeSource sizeOf(mlir::OpFoldResult size);

  Plan &plan;
  LocationTable &locations;
  Function &function;
  llvm::StringMap<Function *> &functions;
  Emit *current = nullptr;
  int depth = 0; ///< of the block that is being decoded
  llvm::DenseMap<mlir::Value, int> scalarSlots, tensorSlots, viewSlots,
      tileSlots;
  llvm::DenseMap<mlir::Value, ProduceInstr *> futures;
  llvm::DenseMap<mlir::Value, AccessTileInstr *> accessTiles;
  /// What each loop's body reads again (ForInstr::keptTiles).
  llvm::DenseMap<mlir::Operation *, std::vector<int>> keptTiles;
};

/// The SSA name in source text of an argument at a location, or "".
using NameOfArgument = std::function<std::string(mlir::Location)>;

std::shared_ptr<Program> loadProgramWithNames(mlir::ModuleOp module,
                                              const LoadOptions &options,
                                              const NameOfArgument &nameOf);

/// Appends the nodes of `expr`, dimensions before symbols; returns the last.
int addAffineNodes(mlir::AffineExpr expr, unsigned numDims,
                   std::vector<AffineNode> &nodes);

/// Whether all divisions of `expr` are by positive constants.
bool hasPositiveDivisors(mlir::AffineExpr expr);
/// Whether the runtime knows the view as one piece of memory.
bool isPlainView(mlir::Value memref);
/// Whether only some coordinates of the view's box are legal.
bool isIrregularView(mlir::Value memref);

/// Whether a body keeps the value and index of a maximum or minimum, in the
/// order of isBetter() in LoopOrdered.cpp.
bool isArgReduction(mlir::Block &block, unsigned numOutputs, bool &isMax);

/// Whether emitScalarOp knows `op`.
bool isScalarOp(mlir::Operation *op);

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_LOADER_LOADERIMPL_H
