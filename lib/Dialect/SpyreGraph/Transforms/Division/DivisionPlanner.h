//===- DivisionPlanner.h - Divisions of neighbours --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// Chooses divisions of the operations of a function. What one of them costs
// depends on its neighbours: what they leave in LX in the slices that it works
// on needs no moving.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_DIVISIONPLANNER_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_DIVISIONPLANNER_H

#include "DivisionSearch.h"

namespace mlir::spyre_graph {

/// Prices that differ by less than this fraction are equal: sums in another
/// order round differently.
inline constexpr double kRounding = 1e-9;

/// The division in which the slices of a split reduction are on neighbouring
/// cores.
WorkDivisionAttr getDivision(SpyreOpInterface op, ArrayRef<int64_t> splits,
                             ArrayRef<int64_t> chunks);

/// Divides all ops of a function.
class DivisionPlanner {
public:
  /// Prices that differ by less than the fraction `tolerance` are equal. With
  /// `reshard`, values may move over the ring.
  DivisionPlanner(int64_t cores, double tolerance, const Target &target,
                  bool reshard, const ::spyre::DeviceSpec &spec);

  void addOp(SpyreOpInterface op);
  /// Gives each op its division. Goes over them `sweeps` times, forward and
  /// backward in turn, and as often again beginning with the last one.
  void run(unsigned sweeps);

  /// A symbol, by its number, sizes of which are better off with two plans, and
  /// the largest size of the first. Nothing where one plan is about as good.
  std::optional<std::pair<unsigned, int64_t>> findSizesApart();

  int64_t numAgreeing = 0;

private:
  /// One op of the graph, and its edges: the values that could stay in LX
  /// between it and another op.
  struct Node {
    SpyreOpInterface op;
    const Divisions *divisions;
    /// Where cores can make for themselves what the only user reads: the
    /// candidates, by the cut that they write.
    DenseMap<int, unsigned> repeatable;
    int chosen = -1;
    struct Edge {
      unsigned node;
      /// The operand at the end of the edge.
      unsigned operand;
    };
    SmallVector<Edge, 4> producers;
    SmallVector<Edge, 4> users;
  };

  struct Price {
    double seconds = 0, residentBytes = 0;
    /// The sum of all parts, as if nothing overlapped.
    double busySeconds = 0;
    /// From and to device memory.
    double movedBytes = 0;
  };

  /// A price while it is added up.
  struct Traffic {
    Price price;
    double loadSeconds = 0;
    /// Moves, and what users take.
    double otherSeconds = 0;
  };

  const Divisions *getDivisions(SpyreOpInterface op);
  void connect(Node &node);
  void findRepeatable(Node &node);
  bool isAllWritten(Node &node);
  bool agrees(const Node &node, unsigned candidate,
              const Node::Edge &edge) const;
  int getSlicing(const Node &node, unsigned operand) const;
  int getWrittenSlicing(const Node &node) const;
  bool fitsInSlices(int slicing, double bytes);
  double getMoveSeconds(unsigned size, int written, int read,
                        const Divisions &reader, unsigned operand);
  double getShuffleSeconds(int read, double bytes);
  double getRepeatSeconds(unsigned size, const Node &producer, unsigned chosen,
                          int read) const;
  double getMoveSeconds(unsigned size, const Node &producer, unsigned chosen,
                        int read, const Divisions &reader, unsigned operand);
  void plan(ArrayRef<Node *> some, unsigned sweeps);
  void chooseAll(ArrayRef<Node *> some, unsigned sweeps);
  double getSecondsOfAll(ArrayRef<Node *> some);
  void chooseForSizes(unsigned numSizes, unsigned sweeps);
  Price getPrice(const Node &node, unsigned candidate);
  void addProducer(unsigned size, const Node &node, unsigned candidate,
                   const Node::Edge &edge, const llvm::SmallBitVector *held,
                   Traffic &traffic);
  unsigned addUsers(unsigned size, const Node &node, unsigned candidate,
                    const llvm::SmallBitVector *held, Traffic &traffic);
  Price getPriceAt(unsigned size, const Node &node, unsigned candidate,
                   const llvm::SmallBitVector *held = nullptr);
  Price getPriceOfAll(ArrayRef<Node *> some, unsigned size);
  std::vector<int64_t> getContext(const Node &node) const;
  void choose(Node &node);
  bool isPreferred(const Node &node, unsigned a, unsigned b) const;

  int64_t cores;
  double tolerance;
  const Target &target;
  bool reshard;
  ::spyre::DeviceSpec spec;
  SlicingNumbers numbers;
  std::map<std::vector<const void *>, std::unique_ptr<Divisions>> alike;
  /// Of moves that have been priced, by the number of the sizes, slicings and
  /// bytes.
  DenseMap<std::tuple<unsigned, int, int, uint64_t>, double> moveSeconds;
  /// What the symbols are at the smaller sizes.
  SmallVector<SmallVector<int64_t>> smallerSizes;
  /// Of the sizes at which plans are priced, beginning with the largest, how
  /// many want another plan than the rest; 0 if one serves all.
  size_t numLargeSizes = 0;
  std::vector<Node> nodes;
  DenseMap<Operation *, unsigned> nodeOf;
  /// Whether sweeps begin with the last op.
  bool isFromLast = false;
  /// What a second counts at the largest sizes, and at the smaller ones. Empty
  /// if the function has one size.
  SmallVector<double> weights;
  /// What a byte from or to device memory counts besides its time, where sizes
  /// vary.
  double extraSecondsPerByte = 0;
  /// What has been chosen with these weights, by what the choice depends on:
  /// models repeat layers.
  std::map<std::vector<int64_t>, int> choices;
  /// Per candidate of the node that choose() looks at.
  std::vector<Price> prices;
};

} // namespace mlir::spyre_graph

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DIVISION_DIVISIONPLANNER_H
