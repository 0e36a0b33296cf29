// SPDX-License-Identifier: Apache-2.0
//===- StructuredLoop.h - Structured loops over tiles -----------*- C++ -*-===//
//
// linalg ops and elementwise arith / math ops on tiles: a loop nest, one
// affine map per operand, a body. Five ways to run one:
//   Parallel     no reduction: blocks of points, body on registers;
//   Reduction    one combiner add/mul/max/min in fp32 over body(inputs);
//   Contraction  multiply-add over two inputs: matrix products;
//   General      anything else: vector over one parallel loop, reduction
//                points one after another.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_STRUCTUREDLOOP_H
#define SPYRE_LIB_RUNTIME_ENGINE_STRUCTUREDLOOP_H

#include "ScalarRun.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace spyre::runtime {

class CodeTable;

/// One result of an indexing map: a linear form over the loops.
struct MapResult {
  int64_t constant = 0;
  std::vector<std::pair<int, int64_t>> terms; ///< (loop, coefficient)
  bool operator==(const MapResult &other) const {
    return constant == other.constant && terms == other.terms;
  }
};

struct LoopOperand {
  TensorUse use;
  Elem elem = Elem::F32;
  std::vector<MapResult> map;
  /// Whether the first point of the loops is the operand's first element.
  bool startsAtZero() const {
    return std::all_of(map.begin(), map.end(), [](const MapResult &result) {
      return result.constant == 0;
    });
  }
};

class StructuredLoop;

/// One of the loops of a store that run row by row.
struct RowLoop {
  std::shared_ptr<const StructuredLoop> loop;
  int rows; ///< the loop over rows
};
/// The most of them.
constexpr size_t kMaxRowLoops = 8;

class StructuredLoop : public Instr {
public:
  enum Strategy { Parallel, Reduction, Contraction, ArgReduction, General };
  static constexpr int kMaxLoops = 2 * kMaxRank;
  static constexpr int kMaxOperands = 16;

  Strategy strategy = Parallel;
  int numLoops = 0;
  std::vector<bool> isReduction;
  /// Where a loop's extent comes from: (operand, dim); inputs first.
  std::vector<std::pair<int, int>> extentSource;
  std::vector<LoopOperand> inputs; ///< tensors only
  std::vector<LoopOperand> outputs;
  std::vector<int> results;       ///< tensor slot per output
  std::vector<bool> readsOutput;  ///< the body uses the output argument
  std::vector<bool> coversOutput; ///< every output element is written
  ScalarProgram body;
  bool hasIndex = false;
  ReduceOp combiner = ReduceOp::Sum;          ///< Reduction of floats
  IntBinaryOp intCombiner = IntBinaryOp::Add; ///< Reduction of integers
  bool isBatched = false;     ///< Contraction: all operands share a loop
  bool isArgMax = false;      ///< ArgReduction: of the maximum, not the minimum
  bool isInPlaceSafe = false; ///< output may overwrite a dying input
  /// The loop over the two sides of pairs of keys (LoopPairs.cpp), or -1.
  int sideLoop = -1;
  std::string name; ///< for messages
  /// Whether only one instruction reads the result, and is in the same block.
  bool isReadOnce = false;
  /// Whether another loop computes the result where it needs it
  /// (LoopFusion.cpp).
  bool isFusedAway = false;
  /// Whether the store of its result runs it, but where tiles are stacked.
  bool isDelayed = false;
  /// The loop that runs instead of this one, and includes the loops that were
  /// fused into it (LoopFusion.cpp).
  std::shared_ptr<const StructuredLoop> fused;

  void run(Core &core) const override;
  void runGang(Core *const *cores, int numCores) const override;
  void walk(Core &core) const override;
  /// Whether the body is one chain of DL16 (KernelTable::chain), from operands
  /// to the only result.
  bool isChainOfHalves() const;
  /// Sets `sideLoop`; to be called when all else is known.
  void findPairs();
  /// Writes the result to a prepared tile of device memory as it is computed,
  /// if that is possible; the loop must be one that fuseLoops() may move.
  /// `table` is that of the loop, or null.
  bool runInto(Core &core, const TileVal &tile, CodeTable *table) const;
  /// Runs the loops of a store (LoopRows.cpp) row by row, if that is possible.
  /// The last one writes its result to the prepared tile.
  static bool runByRows(Core &core, const std::vector<RowLoop> &loops,
                        const TileVal &tile);
  /// Runs all of them but the last one after another.
  static void runDelayed(Core &core, const std::vector<RowLoop> &loops);

private:
  struct Loop {
    int64_t extent;
    int original; ///< loop number, for linalg.index
    bool isReduction;
    int64_t stride[kMaxOperands]; ///< inputs, then outputs
  };
  struct Nest;
  struct NestOperands;
  struct FactorOfCodes;
  class HalfProducts;
  /// The work of a core's units.
  struct Work {
    int64_t macs = 0, rows = 0; ///< matrix unit; rows of M that stream
    MacFormat format = MacFormat::FP16;
    int64_t elementOps = 0; ///< vector unit
    double sfuElements = 0; ///< weighted
  };
  Work measure(Core &core) const;
  KernelKinds getKinds(const Work &work) const; ///< none, if it is free
  /// The three loops of a matrix product; the other loops enclose it.
  struct MatrixLoops;
  MatrixLoops takeMatrixLoops(Nest &nest) const;
  /// Inputs first.
  const LoopOperand &operandOf(int k) const {
    int numInputs = static_cast<int>(inputs.size());
    return k < numInputs ? inputs[k] : outputs[k - numInputs];
  }
  bool isFill() const;
  void fill(Core &core) const;
  void makeNest(Core &core, Nest &nest) const;
  void makeNestInto(Core &core, const TileVal &tile,
                    const TileVal::StridedPart &part, Nest &nest) const;
  void addStackLoop(Core &core, Nest &nest) const;
  void prepareOutputs(Core &core, Nest &nest) const;
  void setAddresses(Core &core, Nest &nest) const;
  void run(Core &core, Nest &nest, bool hasHalves) const;
  void runNest(Core &core, Nest &nest) const;
  void roundSums(Core &core) const;
  int chooseStrip(Core &core) const;
  void runStrips(Core &core, const Nest &whole, int strip) const;
  std::optional<FactorOfCodes> findFactorOfCodes(const Core &core,
                                                 const Nest &nest) const;
  static bool isReadAgain(const Nest &nest, int factor);
  bool takeHalves(Core &core, Nest &nest) const;
  static bool usesHalves(const Nest &nest, const MatrixLoops &loops);
  void addHalves(const Core &core, const Nest &nest, const MatrixLoops &loops,
                 HalfProducts &products) const;
  void runOnCodes(Core &core, const Nest &whole,
                  const FactorOfCodes &factor) const;
  /// Makes a reduction read the codes of its deferred input where they are, if
  /// that gives the same bits.
  bool takeCodes(Core &core, Nest &nest) const;
  bool runIntoParts(Core &core, const TileVal &tile) const;
  /// runInto() of a chain of DL16, if the tile fills a range of memory.
  bool runInOrder(Core &core, const TileVal &tile) const;
  /// runInto() of a loop that only moves codes, or looks up its results.
  bool moveCodes(Core &core, const TileVal &tile, CodeTable *table) const;
  bool copyDirectly(const TileVal &source, const TileVal &tile) const;
  bool copyRows(const TileVal &source, const TileVal &tile,
                const TileVal::StridedPart &to) const;
  bool followStrides(const TileVal &source, const TileVal &tile,
                     const int64_t *to, int64_t *strides) const;
  void loadDeferred(Core &core, const LoopOperand &operand) const;
  /// The dimension of the operand whose coordinate is the index of loop `loop`.
  /// -1 if the operand does not depend on the loop, -2 if it does in another
  /// way.
  int dimOf(const LoopOperand &operand, int loop) const;
  class BlockwiseRun;
  class ReductionRun;
  class RowwiseRun;
  class ArgReductionOfBlocks;
  void runParallel(Core &core, Nest &nest) const;
  /// Runs a stage of a sorting network, if that is what the loop is.
  bool runPairs(const Core &core, const Nest &nest) const;
  void runReduction(Core &core, Nest &nest) const;
  /// Reduces rows or columns of the only input itself, which are dense.
  void reduceInput(const Core &core, const Nest &nest, int64_t offset,
                   const Loop &rows, const Loop &columns, bool rowWise,
                   float *acc) const;
  void runContraction(Core &core, Nest &nest) const;
  uint64_t versionOf(const Core &core, int input) const;
  void runArgReduction(Core &core, Nest &nest) const;
  void runGeneral(Core &core, Nest &nest) const;
};

/// Fuses each elementwise loop into the loop that alone reads its result.
void fuseLoops(Block &block);
/// Lets a store run the loops that lead from a load to it row by row. To be
/// called after fuseLoops().
void groupRows(Block &block);

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_STRUCTUREDLOOP_H
