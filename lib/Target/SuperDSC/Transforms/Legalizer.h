// SPDX-License-Identifier: Apache-2.0
//===- Legalizer.h - Makes an access SuperDSC's ---------*- C++ -*-===//
//
// What --spyre-legalize-superdsc does to one operation.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_TARGET_SUPERDSC_TRANSFORMS_LEGALIZER_H
#define SPYRE_TARGET_SUPERDSC_TRANSFORMS_LEGALIZER_H

#include "Spyre/Dialect/SpyreGraph/Analysis/LaneAccess.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/StickAccess.h"
#include "Spyre/Dialect/SpyreGraph/IR/Builders.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::spyre_graph {

/// One operation being legalized.
class SuperDSCLegalizer {
public:
  /// Operations that are made go into `made`.
  SuperDSCLegalizer(SpyreOpInterface op,
                    SmallVectorImpl<SpyreOpInterface> &made)
      : op(op), operation(op), builder(op), loc(op->getLoc()), made(made) {
    load();
    numLastReductions = countLastReductions();
  }

  /// Whether loops were cut; what is made is legalized after.
  bool run();

private:
  void load();

  bool isCopy() const { return isa<IdentityOp, RestickifyOp>(operation); }
  bool isIndirect(unsigned number) {
    auto indirect = op.getIndirectAccess();
    return indirect && indirect->operand == number;
  }
  RankedTensorType typeOf(unsigned number) const {
    return cast<RankedTensorType>(operation->getOperand(number).getType());
  }
  std::optional<StickAccess> access(unsigned number) const {
    RankedTensorType type = typeOf(number);
    return getStickAccess(maps[number], getLayout(type), type.getShape(),
                          extents);
  }

  /// Whether a matmul skips sticks of an operand inside of all loops. That
  /// takes a dimension of its own, which matmuls do not have.
  bool hasGapInMatmul(unsigned number) const;

  /// The loop along which a topk has its sticks: one that neither searches nor
  /// counts results. -1 if there is none of several iterations.
  int64_t laneOfTopK() const;

  /// Whether a topk's operand has its sticks elsewhere.
  bool hasOtherSticksOfTopK(unsigned number) const;

  /// Whether indices lie one per stick along the loop that has the others'
  /// sticks: a label has one dimension along the sticks.
  bool hasScatteredIndices();

  /// Whether the loops' strides over sticks do not nest: some overlap or
  /// interleave, or walk backwards.
  bool isInterleaved(unsigned number);

  /// Whether each loop's stride is a multiple of what the loops inside of it
  /// walk over; `without` one of them.
  static bool areNested(const StickAccess &access, ArrayRef<int64_t> extents,
                        int64_t without = -1);

  /// Gives the operation other loops. How long they are where sizes vary is
  /// inferred at the end of the pass.
  void setLoops(ArrayRef<AffineMap> maps, ArrayRef<int64_t> extents);

  /// Cuts loops whose quotient and remainder are used apart.
  bool refine();

  /// A tensor of one element per stick, or with the stick along `stick`.
  static RankedTensorType withStick(ArrayRef<int64_t> shape, Type element,
                                    int64_t stick);

  Value empty(RankedTensorType type);

  /// A copy over loops of `extents`.
  Value copy(Value from, AffineMap fromMap, Value to, AffineMap toMap,
             ArrayRef<int64_t> extents);

  /// A copy of all of a tensor; into a new one if `to` is not given.
  Value copyWhole(Value from, RankedTensorType type, Value to = nullptr);

  /// The loops that a map depends on, and the map in terms of them alone.
  struct Used {
    SmallVector<unsigned> loops;
    SmallVector<int64_t> extents;
    /// From the operation's loops to the used ones, and the map after that.
    AffineMap projection, map;
  };
  Used getUsed(AffineMap map, const llvm::SmallBitVector &others = {});

  /// A stick under which a tensor is accessed by `map` in SuperDSC's form: a
  /// dimension, or -1 for one element per stick.
  int64_t findStick(RankedTensorType type, AffineMap map,
                    ArrayRef<int64_t> extents);

  /// How many loops are reduced; of a matmul, those behind its columns.
  int64_t countReductions();
  int64_t countLastReductions();
  /// Iterations of so many of the last loops.
  int64_t countSteps(int64_t count) const;

  /// The loop along which the operation wants an operand's stick, or -1.
  int64_t wantedLane(unsigned number);

  /// The index of a loop in a list, or -1.
  static int64_t positionOf(ArrayRef<unsigned> loops, int64_t loop);

  /// An order of a tensor's elements in which `map` reads them at fixed
  /// distances: where each element is, and what is read. Row-major if there is
  /// none. Dimensions take `lengths`, at least those of the tensor.
  std::pair<AffineMap, AffineMap> getLine(RankedTensorType type, AffineMap map,
                                          ArrayRef<int64_t> extents,
                                          ArrayRef<int64_t> lengths);

  /// A line of a tensor's elements, each at `toLine`. Where `fromLine` begins
  /// again at the end, the line holds the tensor as often as it is read, and
  /// `fromLine` goes on. `lengths` are those of getLine().
  Value copyToLine(Value from, AffineMap toLine, AffineMap &fromLine,
                   ArrayRef<int64_t> extents, ArrayRef<int64_t> lengths);

  /// A line of zeros: what is written to it leaves gaps.
  Value fillGaps(Value line);

  /// Leads an input through a copy of what the loops read of it; `others` are
  /// loops that the copy varies along, too.
  void replaceInput(unsigned number, const llvm::SmallBitVector &others = {});

  void setMap(unsigned number, AffineMap map);

  // Matmuls.cpp

  /// Whether both factors are of 8 bits and of one format, which a product of
  /// its own multiplies.
  bool hasNarrowFactors();

  /// Converts other factors of 8 bits to fp16, which holds them exactly.
  void widenFactors();

  /// Packs the second factor of a product of 8 bits.
  void packFactor();

  /// Copies what a matmul's factors lack: x varies along all loops but the
  /// columns, y along columns and the reduction.
  void expandFactors();

  /// Whether a matmul is what conv2d can say, and its first factor in the form
  /// of an image.
  bool isConvolution() const;

  /// Several reductions, which come last, become one.
  void mergeReductions();

  /// At most two batches are in both factors, and one beside the rows in x
  /// alone: more of them become one.
  void mergeBatches();

  /// Makes one loop of several, through copies of the operands that vary along
  /// them in which they are one dimension.
  void mergeLoops(const llvm::SmallBitVector &group);

  // Copies.cpp

  /// Converts an input of 8 bits to fp16, which holds its numbers exactly.
  void widen(unsigned number);

  /// Lets a conversion of 8-bit floats to booleans begin at fp16: it is a
  /// comparison with zero, which no operation makes of 8 bits (SG-OP-C5).
  void widenCompared();

  /// A copy that reads elements twice, or reads or writes them between each
  /// other, becomes one copy per iteration of a loop.
  void unrollCopy();

  /// A change of stick reads and writes whole tensors and converts nothing.
  void splitCopy();

  // Parts.cpp

  /// The loop along the sticks of a table that is read through indices, or -1.
  int64_t getLaneOfTable() const;

  /// Whether what is gathered would change its stick, too.
  bool gathersAcrossSticks() const;

  /// Whether the last stick written holds elements that the operation does not
  /// compute: other cores' or other operations'.
  bool writesPartOfStick();

  /// Whether the operation writes a part of a tensor whose other parts are
  /// collected in another form.
  bool addsToParts();

  /// Collects what is written in a form of SuperDSC, and turns it back.
  void replaceInit();

  /// Whether another operation writes into the result.
  bool feedsInit();

  /// Whether an operation writes all of its result.
  static bool writesAll(SpyreOpInterface op);

  /// Whether parts of a tensor are all that is written of it, in whatever form
  /// they are collected.
  static bool isMadeOfParts(Value tensor);

  /// The tensor that an operation writes into in another layout, and where it
  /// goes when it is turned back.
  std::pair<Value, Value> getTurned(unsigned init, RankedTensorType turnedType);

  /// Whether what `used` accesses of a tensor with the stick along `stick` is
  /// whole sticks, or ends where the tensor does.
  static bool writesWholeSticksOnly(RankedTensorType type, const Used &used,
                                    int64_t stick);

  SpyreOpInterface op;
  Operation *operation;
  OpBuilder builder;
  Location loc;
  SmallVectorImpl<SpyreOpInterface> &made;
  SmallVector<int64_t> extents;
  SmallVector<AffineMap> maps;
  /// Reductions behind all other loops.
  int64_t numLastReductions = 0;
};

} // namespace mlir::spyre_graph

#endif // SPYRE_TARGET_SUPERDSC_TRANSFORMS_LEGALIZER_H
