// SPDX-License-Identifier: Apache-2.0
//===- LoaderInterTile.cpp - Decoding communication between cores ---------===//

#include "LoaderImpl.h"

#include "Spyre/Dialect/KTIR/IR/KTIR.h"

#include "mlir/IR/IntegerSet.h"

using namespace mlir;
using namespace spyre::runtime;

// Work of enumerating a set over cores and groups.
static constexpr int64_t kMaxPoints = int64_t(1) << 22;

/// The group ids of a future's set: one dimension with constant bounds.
static FailureOr<std::vector<int64_t>> groupIds(Operation *op,
                                                IntegerSet groups) {
  std::optional<std::pair<int64_t, int64_t>> range =
      ktdp::getConstantRange(groups);
  if (!range)
    return op->emitError("groups must be a range of constants, found ")
           << IntegerSetAttr::get(groups);
  auto [first, last] = *range;
  if (last - first >= DeviceMemory::kMaxCores)
    return op->emitError("more groups than cores");
  std::vector<int64_t> ids;
  for (int64_t i = 0; i <= last - first; ++i)
    ids.push_back(first + i);
  return ids;
}

static LogicalResult listCores(Operation *op, const char *what, IntegerSet set,
                               const std::vector<int64_t> &ids,
                               int64_t numCores, InterTileGroups &groups) {
  if (static_cast<int64_t>(ids.size()) * numCores > kMaxPoints)
    return op->emitError("too many groups");
  groups.ids = ids;
  groups.groupOf.assign(numCores, -1);
  groups.cores.resize(ids.size());
  for (size_t g = 0; g < ids.size(); ++g)
    for (int64_t core = 0; core < numCores; ++core) {
      if (!ktdp::containsPoint(set, core, ids[g]))
        continue;
      if (groups.groupOf[core] >= 0)
        return op->emitError("core ")
               << core << " is a " << what << " in groups "
               << ids[groups.groupOf[core]] << " and " << ids[g];
      groups.groupOf[core] = static_cast<int>(g);
      groups.cores[g].push_back(static_cast<int>(core));
    }
  return success();
}

LogicalResult FunctionLoader::loadProduce(Operation *op) {
  auto produce = cast<ktdp::InterTileProduceOp>(op);
  int64_t numCores = function.numCores();
  auto type = cast<ktdp::TileFutureType>(produce.getFuture().getType());
  FailureOr<std::vector<int64_t>> ids =
      groupIds(op, type.getGroups().getValue());
  if (failed(ids))
    return failure();
  auto &instr = add<ProduceInstr>(op);
  instr.op = function.numProduceOps++;
  if (failed(listCores(op, "producer", produce.getProducerTilesPerGroup(), *ids,
                       numCores, instr.producers)))
    return failure();
  instr.numReceivers.assign(numCores, 0);
  mlir::Block &block = produce.getBody().front();
  instr.groupSlot = scalarSlot(block.getArgument(0));
  if (failed(loadBlock(block, instr.body)))
    return failure();
  Value value = block.getTerminator()->getOperand(0);
  instr.value = tensorSlot(value);
  instr.elem = *elemOf(value.getType());
  futures[produce.getFuture()] = &instr;
  return success();
}

namespace {
/// The attributes of operations that receive tiles, in one form for all.
struct Reception {
  Value future;
  IntegerSet consumers;
  std::optional<IntegerSet> dependency; ///< whom a consumer hears
  Region *combiner = nullptr;
  Value identity; ///< of the combiner
  ReceiveInstr::Kind kind = ReceiveInstr::Single;
  int splitDim = -1, concatDim = -1;
};
} // namespace

static std::optional<Reception> describeReception(Operation *op) {
  Reception r;
  if (auto reduce = dyn_cast<ktdp::InterTileReduceOp>(op)) {
    r.kind = ReceiveInstr::Reduce;
    r.future = reduce.getFuture();
    r.consumers = reduce.getConsumerTilesPerGroup();
    r.dependency = reduce.getProducerDependencyPerConsumer();
    r.combiner = &reduce.getCombiner();
    r.identity = reduce.getIdentity();
  } else if (auto scatter = dyn_cast<ktdp::InterTileReduceScatterOp>(op)) {
    r.kind = ReceiveInstr::Reduce;
    r.future = scatter.getFuture();
    r.consumers = scatter.getConsumerTilesPerGroup();
    r.combiner = &scatter.getCombiner();
    r.identity = scatter.getIdentity();
    r.splitDim = static_cast<int>(scatter.getScatterDimension());
  } else if (auto consume = dyn_cast<ktdp::InterTileConsumeOp>(op)) {
    r.future = consume.getFuture();
    r.consumers = consume.getConsumerTilesPerGroup();
    r.dependency = consume.getProducerDependencyPerConsumer();
  } else if (auto gather = dyn_cast<ktdp::InterTileGatherOp>(op)) {
    r.kind = ReceiveInstr::Concatenate;
    r.future = gather.getFuture();
    r.consumers = gather.getConsumerTilesPerGroup();
    r.concatDim = static_cast<int>(gather.getGatherDimension());
  } else if (auto scatter = dyn_cast<ktdp::InterTileScatterOp>(op)) {
    r.future = scatter.getFuture();
    r.consumers = scatter.getConsumerTilesPerGroup();
    r.splitDim = static_cast<int>(scatter.getScatterDimension());
  } else if (auto all = dyn_cast<ktdp::InterTileAllToAllOp>(op)) {
    r.kind = ReceiveInstr::Concatenate;
    r.future = all.getFuture();
    r.consumers = all.getConsumerTilesPerGroup();
    r.splitDim = static_cast<int>(all.getSplitDimension());
    r.concatDim = static_cast<int>(all.getConcatDimension());
  } else {
    return std::nullopt;
  }
  return r;
}

/// Fills ReceiveInstr::heard.
static LogicalResult listHeard(Operation *op,
                               const std::optional<IntegerSet> &dependency,
                               ReceiveInstr &instr) {
  int64_t numCores = static_cast<int64_t>(instr.consumers.groupOf.size());
  instr.heard.resize(numCores);
  for (int64_t core = 0; core < numCores; ++core) {
    int group = instr.consumers.groupOf[core];
    if (group < 0)
      continue;
    for (int producer : instr.producers.cores[group]) {
      if (dependency) {
        SmallVector<int64_t> symbols;
        if (dependency->getNumSymbols() == 2)
          symbols.push_back(instr.producers.ids[group]);
        symbols.push_back(core);
        if (!ktdp::containsPoint(*dependency, int64_t(producer), symbols))
          continue;
      }
      instr.heard[core].push_back(producer);
    }
    size_t count = instr.heard[core].size();
    if (instr.kind == ReceiveInstr::Single && count != 1)
      return op->emitError("consumer ")
             << core << " needs exactly one producer, but its group "
             << instr.producers.ids[group] << " gives " << count;
    if (instr.kind == ReceiveInstr::Concatenate && count == 0)
      return op->emitError("group ")
             << instr.producers.ids[group] << " has no producer";
  }
  if (instr.kind == ReceiveInstr::Concatenate && instr.splitDim >= 0 &&
      instr.producers.cores != instr.consumers.cores)
    return op->emitError("the consumers of every group must be its producers");
  return success();
}

LogicalResult FunctionLoader::loadCombiner(Operation *op, Region &combiner,
                                           Value identity,
                                           ReceiveInstr &instr) {
  mlir::Block &block = combiner.front();
  instr.identity = use(identity, op);
  instr.lhs = tensorSlot(block.getArgument(0));
  instr.rhs = tensorSlot(block.getArgument(1));
  if (failed(loadBlock(block, instr.combiner)))
    return failure();
  Operation *yield = block.getTerminator();
  instr.combined = use(yield->getOperand(0), yield);
  return success();
}

LogicalResult FunctionLoader::loadInterTile(Operation *op) {
  if (isa<ktdp::InterTileProduceOp>(op))
    return loadProduce(op);
  std::optional<Reception> reception = describeReception(op);
  if (!reception)
    return op->emitError("operation '")
           << op->getName() << "' is not supported by the runtime";
  auto produced = futures.find(reception->future);
  if (produced == futures.end())
    return op->emitError("the future must be the result of "
                         "ktdp.inter_tile_produce");
  ProduceInstr &produce = *produced->second;
  auto &instr = add<ReceiveInstr>(op);
  instr.name = op->getName().getStringRef().str();
  instr.kind = reception->kind;
  instr.splitDim = reception->splitDim;
  instr.concatDim = reception->concatDim;
  instr.op = produce.op;
  instr.elem = produce.elem;
  instr.producers = produce.producers;
  if (failed(listCores(op, "consumer", reception->consumers,
                       produce.producers.ids, function.numCores(),
                       instr.consumers)) ||
      failed(listHeard(op, reception->dependency, instr)))
    return failure();

  if (instr.kind == ReceiveInstr::Reduce)
    function.addsPartialResults = true;
  if (op->getBlock() != reception->future.getParentBlock())
    produce.isKept = true;
  for (const std::vector<int> &producers : instr.heard)
    for (int producer : producers)
      ++produce.numReceivers[producer];

  auto resultType = cast<RankedTensorType>(op->getResult(0).getType());
  for (int64_t size : resultType.getShape())
    instr.resultShape.push_back(ShapedType::isDynamic(size) ? -1 : size);
  instr.dst = tensorSlot(op->getResult(0));
  instr.rhs = function.numTensors++;
  if (reception->combiner)
    return loadCombiner(op, *reception->combiner, reception->identity, instr);
  return success();
}
