// SPDX-License-Identifier: Apache-2.0
//===- KernelBuilder.h - One device operation as a KTIR kernel --*- C++ -*-===//
#ifndef SPYRE_LIB_CONVERSION_SPYREGRAPHTOKTIR_KERNELBUILDER_H
#define SPYRE_LIB_CONVERSION_SPYREGRAPHTOKTIR_KERNELBUILDER_H

#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/StickAccess.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"

namespace mlir {

/// Sizes of the device dimensions of an operand, and elements from one of their
/// coordinates to the next: numbers, or values in a run.
struct DeviceView {
  SmallVector<OpFoldResult> sizes, strides;
};

/// The storage of an operand of a device operation.
struct OperandStorage {
  spyre_graph::LayoutAttrInterface layout;
  /// Shape the layout applies to: the buffer's or its tile's, or in LX the part
  /// of a core.
  SmallVector<int64_t> shape;
  /// In device memory, the shape of the whole buffer.
  SmallVector<int64_t> wholeShape;
  /// Elements from one coordinate of each device dimension to the next.
  SmallVector<int64_t> strides;
  /// Of an array that is larger or smaller from run to run: its sizes as
  /// functions of the function's symbols, from which the strides follow. Null
  /// for others.
  AffineMap sizeMap;
  /// Of another one from which indices select rows: how many there are, if that
  /// varies. Null for others.
  AffineMap numRowsMap;
  bool isInLX = false;
  /// Parameter of the kernel that holds the element index of its start.
  unsigned parameter = 0;

  /// `getSize` gives what an expression of the function's symbols is in a run.
  DeviceView
  getDeviceView(OpBuilder &builder, Location loc,
                function_ref<OpFoldResult(AffineExpr)> getSize) const;
};

/// Emits the body of a kernel: a function with one index parameter per
/// distinct operand, and one per symbol that it needs, run by every core of its
/// grid.
class KernelBuilder {
public:
  /// `symbols`: numbers of the function's symbols whose values are the kernel's
  /// last parameters. `lxBytes`: LX per core for data tiles. `spec` outlives
  /// the builder.
  KernelBuilder(spyre_graph::SpyreOpInterface op,
                ArrayRef<OperandStorage> storage, ArrayRef<unsigned> symbols,
                int64_t lxBytes, const ::spyre::DeviceSpec &spec);

  /// Fills the (empty) function. Fails with a diagnostic on the operation.
  LogicalResult build(func::FuncOp kernel);

private:
  /// A loop dimension inside the kernel. Numbers are the largest where they
  /// vary.
  struct Loop {
    int64_t extent; ///< of the whole operation
    int64_t chunk;  ///< of a core's slice, the last of which may be less
    int64_t tile;   ///< of a sub-tile
    bool isReduction;
    OpFoldResult extentNow, chunkNow; ///< what they are in this run
    OpFoldResult start;               ///< of the core's slice
    OpFoldResult local;          ///< of the sub-tile, from the slice's start
    OpFoldResult size;           ///< of the sub-tile
    OpFoldResult sliceSize = {}; ///< size outside the loop over sub-tiles
    /// Of sub-tiles made so that a core loads one while it computes another:
    /// their number, which stays where there are fewer iterations.
    int64_t numOverlapping = 1;
    int64_t granularity = 1; ///< of such sub-tiles
  };

  /// Time of a core: `inSteps` is the longer of device memory and compute unit,
  /// `inAll` adds what does not overlap and the setup of transfers.
  struct Seconds {
    double inSteps = 0, inAll = 0;
    double numPieces = 1; ///< sub-tiles in all
  };
  /// Extents of sub-tiles and what they cost.
  struct Tiling {
    Seconds seconds;
    int64_t numReductionCuts = 0, bytes = 0;
    std::vector<int64_t> tiles;

    bool operator<(const Tiling &other) const;
  };
  LogicalResult chooseTiles();
  std::vector<int64_t> getLargestTiles() const;
  void limitAccumulators(std::vector<int64_t> &tiles) const;
  Tiling makeTiling(std::vector<int64_t> tiles) const;
  std::vector<int64_t> halve(std::vector<int64_t> tiles, unsigned dim) const;
  LogicalResult cut(Tiling &tiling);
  void grow(Tiling &tiling, ArrayRef<int64_t> largest) const;
  void overlap(Tiling &tiling) const;
  SmallVector<unsigned> chooseOrder(ArrayRef<int64_t> tiles) const;
  Seconds getSeconds(ArrayRef<int64_t> tiles, ArrayRef<unsigned> order) const;
  double getNumTiles(unsigned dim, ArrayRef<int64_t> tiles) const;
  double getNumLoads(unsigned operand, ArrayRef<int64_t> tiles,
                     ArrayRef<unsigned> order) const;
  double getRunFactor(unsigned operand, ArrayRef<int64_t> tiles) const;
  bool isStepped(unsigned dim) const;
  bool isWhole(unsigned dim) const;
  bool isContraction() const;
  bool keepsSumOrder(ArrayRef<int64_t> tiles, unsigned dim) const;
  bool keepsSumOrder(ArrayRef<int64_t> tiles) const;
  int64_t getTileBytes(ArrayRef<int64_t> tiles) const;
  int64_t getGranularity(unsigned dim) const;
  /// The value of an expression of the function's symbols.
  OpFoldResult getSize(AffineExpr expr);
  /// Computes extents, chunks, and the sizes and strides of views.
  void emitSizes();
  void emitSlices();
  /// Opens the code for cores that have any iterations.
  void skipEmptySlices();
  /// Enters a loop over the sub-tiles of `dim` (none if there is one) with
  /// `carried` as loop-carried values, replaced by the inner ones.
  scf::ForOp enterTiles(unsigned dim, SmallVectorImpl<Value> &carried);
  /// The extent of sub-tiles in this run.
  OpFoldResult getTileNow(const Loop &loop);
  /// Leaves the loops of a nest, innermost first.
  void leaveTiles(ArrayRef<std::pair<unsigned, scf::ForOp>> nest,
                  SmallVectorImpl<Value> &carried);

  /// The loop dimensions that an operand's tile has, ascending.
  SmallVector<unsigned> getTileDims(unsigned operand) const;
  bool isRepeatedReduction(unsigned dim) const;
  Value buildView(unsigned operand);
  /// The device dimension along which an operand is accessed from an index or
  /// an offset on.
  FailureOr<unsigned> getRowDim(unsigned operand, int64_t hostDim);
  FailureOr<Value> buildAccessTile(unsigned operand);
  /// The operand's tile, which may have been loaded before.
  FailureOr<Value> load(unsigned operand);
  /// Loads what none of the loops over sub-tiles still to be entered changes.
  LogicalResult loadUnchanged(ArrayRef<unsigned> stillToEnter);
  LogicalResult store(Value tile, unsigned operand);
  /// An undefined tile over loop dimensions `dims`.
  Value buildEmpty(ArrayRef<unsigned> dims, Type elementType);
  Value buildFilled(ArrayRef<unsigned> dims, TypedAttr value);
  /// The first iteration of the sub-tile along a loop dimension.
  OpFoldResult getTileStart(OpBuilder &b, unsigned dim) const;
  Value getLoopIndex(OpBuilder &b, unsigned dim);
  /// The loop dimensions that a generic over tiles with these dimensions
  /// iterates, in order: linalg.index takes positions in it.
  SmallVector<unsigned>
  getIteratedDims(ArrayRef<SmallVector<unsigned>> tileDims) const;

  /// A linalg.generic over the loop dimensions of its operands' tiles.
  SmallVector<Value>
  buildGeneric(ArrayRef<std::pair<Value, SmallVector<unsigned>>> ins,
               ArrayRef<std::pair<Value, SmallVector<unsigned>>> outs,
               function_ref<SmallVector<Value>(OpBuilder &, ValueRange)> body);

  /// How many elements are reduced in this run, as f32.
  Value buildCount(OpBuilder &b) const;

  LogicalResult buildPointwise();
  LogicalResult buildReduction();
  LogicalResult buildScan();
  LogicalResult buildRankedReduction();
  LogicalResult buildSort();
  /// The key of an element that is sorted, from its order and index, in 64
  /// bits.
  Value packKey(spyre_graph::ScalarBuilder &s, Value element, Value order,
                Value index) const;
  /// The element or the index of a key, in a compute type.
  Value unpackKey(spyre_graph::ScalarBuilder &s, Value key);
  /// Copies the part that a core is to hold from the LX of the cores that hold
  /// it now.
  LogicalResult buildReshard();
  Value buildSourceView();
  void moveSticks(Value source, Value target, int64_t stickDim, bool isTail);
  /// The row-major index, as i64, over the dimensions that are reduced.
  Value buildReducedIndex(OpBuilder &b,
                          function_ref<Value(unsigned)> getLoopIndex);
  /// `previous`: of an arg-reduction, the values and indices that what is
  /// looked for comes after.
  FailureOr<SmallVector<Value>> accumulate(SmallVector<Value> accumulators,
                                           ArrayRef<Value> previous = {});
  /// The combination of the partners' parts, which the first partner has, or
  /// all if the result lies in LX.
  Value combineParts(Value part);
  /// Opens the code that only the first of the partners runs.
  scf::IfOp enterFirstPartner();
  TypedAttr getIdentity(Type type) const;
  Value combine(OpBuilder &b, Value accumulated, Value value) const;
  /// The next (value), or (value, index), of a scan that is at `step`.
  SmallVector<Value> combineScan(OpBuilder &b, ValueRange accumulators,
                                 Value value, Value step) const;
  SmallVector<Value> combineArg(OpBuilder &b, Value bestValue, Value bestIndex,
                                Value value, Value index) const;

  Type getElementType(unsigned operand) const;
  unsigned getInit() const { return operation->getNumOperands() - 1; }
  bool isIndex(unsigned operand) const {
    return indirect && indirect->index == operand;
  }

  spyre_graph::SpyreOpInterface op;
  Operation *operation;
  Location loc;
  ArrayRef<OperandStorage> storage;
  ArrayRef<unsigned> symbols;
  /// Device sizes and strides of each operand's view.
  SmallVector<DeviceView> views;
  int64_t lxBytes;
  const ::spyre::DeviceSpec &spec;
  SmallVector<Loop> loops;
  /// The loops over sub-tiles, outermost first; reductions come last.
  SmallVector<unsigned> order;
  /// Per operand, the tile that was loaded outside the innermost loops.
  DenseMap<unsigned, Value> loaded;
  SmallVector<AffineMap> maps;
  /// Per operand, the sticks of device memory that the loops walk, if they can
  /// be told.
  SmallVector<std::optional<spyre_graph::StickAccess>> stickAccesses;
  std::optional<spyre_graph::IndirectAccess> indirect;
  spyre_graph::Combiner combiner;
  /// SFU element operations per iteration.
  double elementCost;
  ::spyre::MacFormat macFormat;
  /// Whether sub-tiles may be parts of sticks, because nothing larger fits.
  bool cutsSticks = false;
  /// Whether sub-tiles may change the order of a product's sum, because none
  /// that keep it fit.
  bool reordersSums = false;
  /// Cores in a row that share the iterations of a split reduction.
  int64_t numPartners = 1;
  /// Number of the core, if there are several.
  Value core;
  func::FuncOp kernel;
  OpBuilder builder;
};

} // namespace mlir

#endif // SPYRE_LIB_CONVERSION_SPYREGRAPHTOKTIR_KERNELBUILDER_H
