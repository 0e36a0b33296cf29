// SPDX-License-Identifier: Apache-2.0
//===- StrictInterTile.cpp - Legality of communication --------------------===//
//
// The sets of an inter-tile operation are small: they are written out per
// group of cores, and the rules checked on the lists.
//
//===----------------------------------------------------------------------===//

#include "Strict.h"

#include "Spyre/Dialect/KTIR/IR/KTIR.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ktdp;

// Groups times cores that are written out.
static constexpr int64_t kMaxPoints = int64_t(1) << 22;

namespace {
using Cores = SmallVector<int64_t>;

/// One receiving operation, whatever it is.
struct Receive {
  TypedValue<TileFutureType> future;
  IntegerSet consumers;
  std::optional<IntegerSet> dependency;
  Region *combiner = nullptr;
  int64_t splitDim = -1, concatDim = -1;
  bool isSingle = false;     ///< one producer per consumer
  bool isReduction = false;  ///< consumers are producers
  bool mayBeOneCore = false; ///< consumers are producers or one core
  bool isSymmetric = false;  ///< consumers are producers
};

class InterTileVerifier {
public:
  explicit InterTileVerifier(int64_t numCores) : numCores(numCores) {}
  LogicalResult checkProduce(InterTileProduceOp produce);
  LogicalResult checkReceive(Operation *op, const Receive &receive);

private:
  /// Cores of each group. Failure after an error if they cannot be listed.
  FailureOr<SmallVector<Cores>> list(Operation *op, StringRef name,
                                     IntegerSet set, ArrayRef<int64_t> groups);
  FailureOr<SmallVector<int64_t>> getGroups(Operation *op, TileFutureType type);
  LogicalResult checkGroup(Operation *op, const Receive &receive, int64_t group,
                           ArrayRef<int64_t> producers, ArrayRef<int64_t> own);

  const int64_t numCores;
};
} // namespace

FailureOr<SmallVector<int64_t>>
InterTileVerifier::getGroups(Operation *op, TileFutureType type) {
  IntegerSet groups = type.getGroups().getValue();
  std::optional<std::pair<int64_t, int64_t>> range = getConstantRange(groups);
  if (!range)
    return op->emitOpError("groups must be a range of constants, but got ")
           << IntegerSetAttr::get(groups);
  auto [first, last] = *range;
  if (last - first >= kMaxPoints / numCores)
    return op->emitOpError("too many groups to check: ")
           << IntegerSetAttr::get(groups);
  SmallVector<int64_t> ids;
  for (int64_t i = 0; i <= last - first; ++i)
    ids.push_back(first + i);
  return ids;
}

FailureOr<SmallVector<Cores>>
InterTileVerifier::list(Operation *op, StringRef name, IntegerSet set,
                        ArrayRef<int64_t> groups) {
  SmallVector<Cores> cores(groups.size());
  SmallVector<int64_t> groupOf(numCores, -1);
  for (auto [index, group] : llvm::enumerate(groups))
    for (int64_t core = 0; core < numCores; ++core) {
      if (!containsPoint(set, core, group))
        continue;
      // KTDP-INTER_TILE-C1
      if (groupOf[core] >= 0)
        return op->emitOpError()
               << name << " for groups " << groups[groupOf[core]] << " and "
               << group << " are not disjoint: both hold core " << core;
      groupOf[core] = index;
      cores[index].push_back(core);
    }
  return cores;
}

/// All groups have as many cores.
static LogicalResult checkUniform(Operation *op, StringRef name,
                                  ArrayRef<Cores> cores,
                                  ArrayRef<int64_t> groups) {
  for (auto [index, list] : llvm::enumerate(cores))
    if (list.size() != cores.front().size())
      return op->emitOpError()
             << name << " has " << cores.front().size() << " cores for group "
             << groups.front() << ", but " << list.size() << " for group "
             << groups[index];
  return success();
}

LogicalResult InterTileVerifier::checkProduce(InterTileProduceOp produce) {
  auto type = cast<TileFutureType>(produce.getFuture().getType());
  LogicalResult result = success();
  // KTDP-INTER_TILE-C2
  if (!produce.getFuture().hasOneUse())
    result = produce.emitOpError("future result must have exactly one use, "
                                 "but has ")
             << llvm::range_size(produce.getFuture().getUses());
  FailureOr<SmallVector<int64_t>> groups = getGroups(produce, type);
  if (failed(groups))
    return failure();
  FailureOr<SmallVector<Cores>> producers =
      list(produce, "producer_tiles_per_group",
           produce.getProducerTilesPerGroup(), *groups);
  if (failed(producers))
    return failure();
  // KTDP-INTER_TILE-C6
  if (failed(checkUniform(produce, "producer_tiles_per_group", *producers,
                          *groups)))
    return failure();
  return result;
}

/// Checks the shape of the result against the numbers of producers and
/// consumers. Tile and result have been found to have one rank.
static LogicalResult checkShape(Operation *op, const Receive &receive,
                                size_t numProducers, size_t numConsumers) {
  auto tile = cast<RankedTensorType>(receive.future.getType().getTileType());
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  auto isKnown = [&](int64_t dim) {
    return dim >= 0 && !tile.isDynamicDim(dim) && !result.isDynamicDim(dim);
  };
  // The dimension that is split and concatenated gets its size back.
  bool isBoth = receive.splitDim == receive.concatDim;
  if (int64_t dim = receive.splitDim; isKnown(dim) && !isBoth) {
    // KTDP-INTER_TILE-C9
    int64_t whole = tile.getDimSize(dim), count = numConsumers;
    if (count == 0 || whole % count != 0 ||
        result.getDimSize(dim) != whole / count)
      return op->emitOpError("dimension ")
             << dim << " of size " << whole << " split among " << count
             << " consumers cannot give " << result;
  }
  if (int64_t dim = receive.concatDim; isKnown(dim) && !isBoth) {
    // KTDP-INTER_TILE-C12
    int64_t expected = tile.getDimSize(dim) * int64_t(numProducers);
    if (result.getDimSize(dim) != expected)
      return op->emitOpError("tiles of ")
             << numProducers << " producers concatenated along dimension "
             << dim << " have size " << expected << " there, but got "
             << result;
  }
  return success();
}

/// `own`: the consumers of the group.
LogicalResult InterTileVerifier::checkGroup(Operation *op,
                                            const Receive &receive,
                                            int64_t group,
                                            ArrayRef<int64_t> producers,
                                            ArrayRef<int64_t> own) {
  // KTDP-INTER_TILE-C13
  for (int64_t core : own)
    if (receive.isReduction && !llvm::is_contained(producers, core))
      return op->emitOpError("consumer ")
             << core << " of group " << group << " is not a producer of it";
  // KTDP-INTER_TILE-C14
  bool isEqual = producers == own;
  if (receive.isSymmetric && !isEqual)
    return op->emitOpError("consumers of group ")
           << group << " must be its producers";
  if (receive.mayBeOneCore && !isEqual && own.size() != 1)
    return op->emitOpError("consumers of group ")
           << group << " must be its producers or exactly one core, but got "
           << own.size();

  SmallVector<int64_t> dependents(numCores, -1);
  for (int64_t consumer : own) {
    size_t numSources = 0;
    for (int64_t core = 0; core < numCores; ++core) {
      bool isProducer = llvm::is_contained(producers, core);
      if (!receive.dependency) {
        numSources += isProducer;
        if (isProducer)
          dependents[core] = consumer;
        continue;
      }
      SmallVector<int64_t, 2> symbols;
      if (receive.dependency->getNumSymbols() == 2)
        symbols.push_back(group);
      symbols.push_back(consumer);
      if (!containsPoint(*receive.dependency, core, symbols))
        continue;
      // KTDP-INTER_TILE-C3
      if (!isProducer)
        return op->emitOpError("consumer ")
               << consumer << " depends on core " << core
               << ", which does not produce for group " << group;
      // KTDP-INTER_TILE-C5
      if (receive.isReduction && dependents[core] >= 0)
        return op->emitOpError("consumers ")
               << dependents[core] << " and " << consumer << " of group "
               << group << " both depend on core " << core;
      dependents[core] = consumer;
      ++numSources;
    }
    // KTDP-INTER_TILE-C8
    if (receive.isSingle && numSources != 1)
      return op->emitOpError("consumer ")
             << consumer << " of group " << group
             << " must depend on exactly one producer, but depends on "
             << numSources;
  }
  // KTDP-INTER_TILE-C4
  for (int64_t core : producers)
    if (dependents[core] < 0)
      return op->emitOpError("no consumer of group ")
             << group << " depends on its producer " << core;
  return checkShape(op, receive, producers.size(), own.size());
}

LogicalResult InterTileVerifier::checkReceive(Operation *op,
                                              const Receive &receive) {
  // KTDP-INTER_TILE-C10
  if (receive.combiner) {
    for (Operation &nested : receive.combiner->front().without_terminator())
      if (!isMemoryEffectFree(&nested))
        return op->emitOpError("combiner must be free of side effects, but "
                               "holds '")
               << nested.getName() << "'";
  }
  auto produce = receive.future.getDefiningOp<InterTileProduceOp>();
  if (!produce)
    return op->emitOpError("the future must be the result of "
                           "'ktdp.inter_tile_produce'");
  FailureOr<SmallVector<int64_t>> groups =
      getGroups(op, receive.future.getType());
  if (failed(groups))
    return failure();
  FailureOr<SmallVector<Cores>> consumers =
      list(op, "consumer_tiles_per_group", receive.consumers, *groups);
  if (failed(consumers))
    return failure();
  // KTDP-INTER_TILE-C7
  if (failed(checkUniform(op, "consumer_tiles_per_group", *consumers, *groups)))
    return failure();

  for (auto [index, group] : llvm::enumerate(*groups)) {
    Cores producers;
    for (int64_t core = 0; core < numCores; ++core)
      if (containsPoint(produce.getProducerTilesPerGroup(), core, group))
        producers.push_back(core);
    if (failed(checkGroup(op, receive, group, producers, (*consumers)[index])))
      return failure();
  }
  return success();
}

static std::optional<Receive> getReceive(Operation *op) {
  using Result = std::optional<Receive>;
  auto make = [](auto op) {
    Receive receive;
    receive.future = cast<TypedValue<TileFutureType>>(Value(op.getFuture()));
    receive.consumers = op.getConsumerTilesPerGroup();
    return receive;
  };
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](InterTileReduceOp reduce) {
        Receive receive = make(reduce);
        receive.dependency = reduce.getProducerDependencyPerConsumer();
        receive.combiner = &reduce.getCombiner();
        receive.isReduction = receive.mayBeOneCore = true;
        return receive;
      })
      .Case([&](InterTileReduceScatterOp reduce) {
        Receive receive = make(reduce);
        receive.combiner = &reduce.getCombiner();
        receive.splitDim = reduce.getScatterDimension();
        receive.isReduction = receive.isSymmetric = true;
        return receive;
      })
      .Case([&](InterTileConsumeOp consume) {
        Receive receive = make(consume);
        receive.dependency = consume.getProducerDependencyPerConsumer();
        receive.isSingle = true;
        return receive;
      })
      .Case([&](InterTileGatherOp gather) {
        Receive receive = make(gather);
        receive.concatDim = gather.getGatherDimension();
        receive.mayBeOneCore = true;
        return receive;
      })
      .Case([&](InterTileScatterOp scatter) {
        Receive receive = make(scatter);
        receive.splitDim = scatter.getScatterDimension();
        receive.isSingle = true;
        return receive;
      })
      .Case([&](InterTileAllToAllOp all) {
        Receive receive = make(all);
        receive.splitDim = all.getSplitDimension();
        receive.concatDim = all.getConcatDimension();
        receive.isSymmetric = true;
        return receive;
      })
      .Default([](Operation *) { return Result(); });
}

LogicalResult mlir::ktdp::checkInterTile(func::FuncOp function,
                                         int64_t numCores) {
  LogicalResult result = success();
  function.walk([&](Operation *op) {
    auto produce = dyn_cast<InterTileProduceOp>(op);
    std::optional<Receive> receive = getReceive(op);
    if (!produce && !receive)
      return WalkResult::advance();
    if (numCores > kMaxPoints) {
      result = op->emitOpError("grid of ")
               << numCores << " cores is too large to check";
      return WalkResult::interrupt();
    }
    InterTileVerifier verifier(numCores);
    if (failed(produce ? verifier.checkProduce(produce)
                       : verifier.checkReceive(op, *receive)))
      result = failure();
    return WalkResult::advance();
  });
  return result;
}
