// SPDX-License-Identifier: Apache-2.0
//===- Describer.h - One planned operation on its way -----------*- C++ -*-===//

#ifndef SPYRE_LIB_TARGET_SUPERDSC_WRITER_DESCRIBER_H
#define SPYRE_LIB_TARGET_SUPERDSC_WRITER_DESCRIBER_H

#include "../Mapping/StatisticsLanes.h"
#include "OpDescription.h"

#include "Spyre/Dialect/SpyreGraph/Analysis/StickAccess.h"
#include "Spyre/Dialect/SpyreGraph/IR/BundleOps.h"
#include "Spyre/Dialect/SpyreGraph/IR/Convolution.h"

#include "mlir/IR/TypeUtilities.h"

namespace spyre::superdsc {

/// A dimension along which a tensor varies: a step from one iteration to the
/// next.
struct TensorStep {
  /// In sticks.
  int64_t stride;
  /// Iterations, along the stick in sticks.
  int64_t count;
  unsigned dim;
  /// Elements of a step in memory.
  int64_t elements;
  bool isGathered = false;
  /// Orders equal strides: the device dimension, counted from the innermost.
  unsigned position = 0;
};

/// One operand on the way to a tensor.
struct Operand {
  mlir::Value buffer;
  /// The part of a buffer that it is.
  TileStart tile;
  mlir::spyre_graph::LayoutAttrInterface layout;
  /// Shape of the whole buffer, also for a tile; in LX, of the core's part.
  mlir::SmallVector<int64_t> shape;
  bool inLX = false;
  mlir::AffineMap map;
  /// The map over all iterations; `map` is over a core's in LX.
  mlir::AffineMap wholeMap;
  mlir::spyre_graph::StickAccess access;
  /// Loop through which the operand is accessed indirectly: one of the
  /// index's, or kUnitDim.
  std::optional<int64_t> gathered;
  int64_t gatheredStride = 0, gatheredExtent = 0;
};

/// Dimensions that no loop is: one iteration, and one stick of lane 0.
constexpr int64_t kUnitDim = -2, kStickDim = -3;

class Describer {
public:
  explicit Describer(mlir::spyre_graph::SpyreOpInterface op)
      : op(op), operation(op), extents(op.getLoopExtents()),
        kinds(op.getLoopKinds()), maps(op.getIndexingMaps()),
        indirect(op.getIndirectAccess()),
        isMatmul(mlir::isa<mlir::spyre_graph::MatmulOp>(operation)),
        windows(mlir::spyre_graph::getConvolutionWindows(op)) {}

  mlir::FailureOr<OpDescription> run();

private:
  mlir::InFlightDiagnostic refuse() {
    return op->emitOpError() << "SuperDSC cannot express ";
  }

  mlir::LogicalResult readOperands();
  mlir::LogicalResult chooseDims();
  mlir::LogicalResult settleSticks();
  mlir::LogicalResult chooseGatheredDim();
  bool needsUnitDim();
  mlir::SmallVector<int64_t> getGranularity() const;
  /// The sticks of operands that have no lane.
  void chooseSticks();
  /// Sizes with padding, names, and the order over cores.
  mlir::LogicalResult padDims();
  /// The names of the dimensions, or nothing if there are not enough.
  std::optional<std::vector<std::string>> getNames() const;
  mlir::LogicalResult chooseSizes();
  mlir::LogicalResult addTensor(Operand &operand, Indirection indirection);
  mlir::LogicalResult orderTensor(Operand &operand, Tensor &tensor);
  /// The steps of a tensor, one per dimension along which it varies.
  mlir::FailureOr<llvm::SmallVector<TensorStep>>
  collectSteps(const Operand &operand);
  /// Brings them into an order in which each walks over those before it.
  mlir::LogicalResult sortSteps(const Operand &operand,
                                llvm::SmallVectorImpl<TensorStep> &steps);
  mlir::LogicalResult checkGathered(const Operand &operand,
                                    llvm::ArrayRef<TensorStep> steps);
  /// Adds order, scale and gap of one of them.
  mlir::LogicalResult addStep(const Operand &operand,
                              llvm::ArrayRef<TensorStep> steps, size_t number,
                              Tensor &tensor);
  mlir::LogicalResult checkWrites(const Operand &operand);
  void addLabel(const Operand &operand, Tensor &tensor);
  mlir::LogicalResult addOperands();

  Operand &init() { return operands.back(); }
  /// A conversion to booleans is a comparison with 0.
  bool isCopy() const {
    auto elementOf = [&](unsigned number) {
      return mlir::getElementTypeOrSelf(
          operation->getOperand(number).getType());
    };
    return mlir::isa<mlir::spyre_graph::IdentityOp,
                     mlir::spyre_graph::RestickifyOp>(operation) &&
           (!elementOf(1).isInteger(1) || elementOf(0).isInteger(1));
  }
  /// The dimension of a loop, or of kUnitDim or kStickDim; -1 if there is none.
  int dimOf(int64_t loop) const {
    if (loop == kUnitDim)
      return unitDim;
    if (loop == kStickDim)
      return stickDim;
    return loop < 0 ? -1 : dimOfLoop[loop];
  }
  /// The stick dimension of an operand's label.
  unsigned labelStick(const Operand &operand) const {
    if (operand.access.laneDim != -1)
      return dimOf(operand.access.laneDim);
    return commonStick;
  }

  mlir::spyre_graph::SpyreOpInterface op;
  mlir::Operation *operation;
  mlir::SmallVector<int64_t> extents;
  mlir::SmallVector<mlir::utils::IteratorType> kinds;
  mlir::SmallVector<mlir::AffineMap> maps;
  std::optional<mlir::spyre_graph::IndirectAccess> indirect;
  bool isMatmul;
  /// Of a matmul that is a conv2d.
  llvm::SmallVector<mlir::spyre_graph::Window, 2> windows;
  bool changesStick = false;
  std::vector<Operand> operands;
  /// For each label, whether it is of indices.
  mlir::SmallVector<bool> isIndexLabel;
  mlir::SmallVector<int> dimOfLoop;
  int unitDim = -1, stickDim = -1;
  unsigned commonStick = 0;
  OpDescription result;
};

} // namespace spyre::superdsc

#endif // SPYRE_LIB_TARGET_SUPERDSC_WRITER_DESCRIBER_H
