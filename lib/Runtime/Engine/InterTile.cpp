// SPDX-License-Identifier: Apache-2.0
//===- InterTile.cpp - Communication between cores ------------------------===//

#include "InterTile.h"
#include "MemoryCheck.h"

#include <algorithm>

using namespace spyre::runtime;

//===----------------------------------------------------------------------===//
// Exchange
//===----------------------------------------------------------------------===//

void Exchange::send(int op, int64_t instance, int64_t core, SentTile tile) {
  constexpr int64_t kMostUnreleased = 4;
  auto owned = std::make_unique<SentTile>(std::move(tile));
  bool isAhead = false;
  std::vector<int64_t> waiting;
  {
    Outbox &outbox = outboxes[size_t(core)];
    std::lock_guard<std::mutex> lock(outbox.mutex);
    if (owned->numReceivers > 0)
      isAhead = ++outbox.numUnreleased > kMostUnreleased;
    outbox.tiles[{op, instance}] = std::move(owned);
    waiting.swap(outbox.waiting);
  }
  for (int64_t receiver : waiting)
    tasks.wake(receiver);
  if (isAhead)
    tasks.yield(core);
}

const SentTile *Exchange::find(int64_t core, Key key, int64_t waiting) {
  Outbox &outbox = outboxes[size_t(core)];
  std::lock_guard<std::mutex> lock(outbox.mutex);
  auto it = outbox.tiles.find(key);
  if (it != outbox.tiles.end())
    return it->second.get();
  outbox.waiting.push_back(waiting);
  return nullptr;
}

bool Exchange::isSent(const Awaited &tile) {
  Outbox &outbox = outboxes[size_t(tile.core)];
  std::lock_guard<std::mutex> lock(outbox.mutex);
  return outbox.tiles.count(tile.key) != 0;
}

/// If every core waits or has ended, and no awaited tile has been sent, none
/// will ever be: wakes the waiting cores.
void Exchange::checkProgress() {
  if (awaited.empty() || awaited.size() + size_t(numEnded) < outboxes.size())
    return;
  for (auto &[core, tile] : awaited)
    if (isSent(tile))
      return;
  // If a core failed, its error is reported, and the cores that wait for it
  // just end. All others continue as far as they can, so that the same cores
  // fail in every run.
  if (!stuck && !failed)
    for (auto &[core, tile] : awaited)
      waits += (waits.empty() ? "core " : ", core ") + std::to_string(core) +
               " waits for core " + std::to_string(tile.core);
  stuck = true;
  for (auto &[core, tile] : awaited)
    tasks.wake(core);
}

void Exchange::release(int op, int64_t instance, int64_t core) {
  std::unique_ptr<SentTile> last;
  Outbox &outbox = outboxes[size_t(core)];
  std::lock_guard<std::mutex> lock(outbox.mutex);
  auto it = outbox.tiles.find({op, instance});
  if (it->second->numReceivers > 0 && --it->second->numReceivers == 0) {
    --outbox.numUnreleased;
    last = std::move(it->second);
    outbox.tiles.erase(it);
  }
}

std::string Exchange::waitText() {
  std::lock_guard<std::mutex> lock(mutex);
  return waits;
}

const SentTile *Exchange::receive(int op, int64_t instance, int64_t core,
                                  int64_t waiting) {
  Key key{op, instance};
  const SentTile *tile = find(core, key, waiting);
  if (tile)
    return tile;
  std::unique_lock<std::mutex> lock(mutex);
  while (!tile && !stuck) {
    awaited[waiting] = {core, key};
    checkProgress();
    lock.unlock();
    tasks.suspend(waiting);
    tile = find(core, key, waiting);
    lock.lock();
  }
  awaited.erase(waiting);
  return tile;
}

void Exchange::leave(bool withError) {
  std::lock_guard<std::mutex> lock(mutex);
  ++numEnded;
  failed |= withError;
  checkProgress();
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

void ProduceInstr::run(Core &core) const {
  int64_t instance = core.produced[op]++;
  int group = producers.groupOf[core.coreId];
  if (group < 0)
    return;
  core.scalars[groupSlot].i = producers.ids[group];
  body.run(core);
  core.materialize(value, elem);
  const TensorVal &t = core.tensors[value];
  SentTile tile;
  tile.numReceivers = isKept ? -1 : numReceivers[core.coreId];
  if (tile.numReceivers == 0)
    return;
  tile.shape.assign(t.sizes, t.sizes + t.rank);
  const uint8_t *data = static_cast<const uint8_t *>(t.data);
  tile.data.assign(data, data + size_t(t.numElements) * hostSize(elem));
  if (core.shadow)
    tile.knowledge = core.shadow->send(core.coreId);
  core.exchange->send(op, instance, core.coreId, std::move(tile));
}

/// Copies the tile to slot `dst`, or part `index` of `numParts` along `dim`.
static void fillFrom(Core &core, int dst, Elem elem, const SentTile &tile,
                     int dim, int64_t index, int64_t numParts) {
  TensorVal &t = core.tensors[dst];
  t.rank = static_cast<int>(tile.shape.size());
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < t.rank; ++d) {
    t.sizes[d] = tile.shape[d];
    if (d == dim)
      t.sizes[d] /= numParts;
    (d < dim ? outer : inner) *= t.sizes[d];
  }
  t.numElements = outer * inner;
  core.allocateTensor(dst, elem, t.numElements);
  size_t bytes = size_t(inner) * hostSize(elem);
  uint8_t *to = static_cast<uint8_t *>(t.data);
  if (dim < 0)
    numParts = 1;
  for (int64_t o = 0; o < outer; ++o)
    if (bytes > 0)
      std::memcpy(to + o * bytes,
                  tile.data.data() + (o * numParts + index) * bytes, bytes);
}

bool ReceiveInstr::hasStaticShape() const {
  return std::find(resultShape.begin(), resultShape.end(), -1) ==
         resultShape.end();
}

std::vector<int64_t> ReceiveInstr::shapeWithoutValue(Core &core) const {
  if (hasStaticShape())
    return resultShape;
  if (kind != Reduce || splitDim >= 0)
    core.fail(location, name + ": a core that consumes nothing needs a "
                               "static result shape");
  const TensorVal &tile = core.tensors[identity.slot];
  return {tile.sizes, tile.sizes + tile.rank};
}

/// The tiles that an operation has received; it releases them at its end.
struct spyre::runtime::ReceivedTiles {
  ReceivedTiles(Exchange &exchange, int op, int64_t instance)
      : exchange(exchange), op(op), instance(instance) {}
  ~ReceivedTiles() {
    for (int producer : producers)
      exchange.release(op, instance, producer);
  }

  Exchange &exchange;
  const int op;
  const int64_t instance;
  std::vector<int> producers;
  std::vector<const SentTile *> tiles;
};

void ReceiveInstr::run(Core &core) const {
  int group = consumers.groupOf[core.coreId];
  if (group < 0) {
    // This core consumes nothing, so its result is undefined.
    core.releaseTensor(dst);
    core.tensors[dst].setSizes(shapeWithoutValue(core));
    return;
  }
  ReceivedTiles received(*core.exchange, op, core.produced[op] - 1);
  receive(core, received);
  Part part{0, 1};
  if (splitDim >= 0) {
    const std::vector<int> &cores = consumers.cores[group];
    part.index =
        std::find(cores.begin(), cores.end(), core.coreId) - cores.begin();
    part.count = static_cast<int64_t>(cores.size());
    for (const SentTile *tile : received.tiles)
      if (tile->shape[splitDim] % part.count != 0)
        core.fail(location, name + ": dimension " + std::to_string(splitDim) +
                                " of size " +
                                std::to_string(tile->shape[splitDim]) +
                                " cannot be cut into " +
                                std::to_string(part.count) + " equal parts");
  }
  switch (kind) {
  case Reduce:
    return reduce(core, received, part);
  case Concatenate:
    return concatenate(core, received, part);
  case Single:
    return fillFrom(core, dst, elem, *received.tiles.front(), splitDim,
                    part.index, part.count);
  }
}

void ReceiveInstr::receive(Core &core, ReceivedTiles &received) const {
  for (int producer : heard[core.coreId]) {
    const SentTile *tile =
        core.exchange->receive(op, received.instance, producer, core.coreId);
    if (!tile) {
      std::string waits = core.exchange->waitText();
      if (waits.empty())
        throw CoreStopped();
      core.fail(location, name + ": deadlock: " + waits);
    }
    received.tiles.push_back(tile);
    received.producers.push_back(producer);
    if (core.shadow)
      core.shadow->receive(core.coreId, tile->knowledge);
  }
}

void ReceiveInstr::reduce(Core &core, const ReceivedTiles &received,
                          Part part) const {
  core.materialize(identity.slot, elem);
  core.moveTensor(lhs, identity);
  for (const SentTile *tile : received.tiles) {
    fillFrom(core, rhs, elem, *tile, -1, 0, 1);
    combiner.run(core);
    core.materialize(combined.slot, elem);
    core.moveTensor(lhs, combined);
  }
  if (splitDim >= 0) {
    SentTile whole;
    const TensorVal &t = core.tensors[lhs];
    whole.shape.assign(t.sizes, t.sizes + t.rank);
    const uint8_t *data = static_cast<const uint8_t *>(t.data);
    whole.data.assign(data, data + size_t(t.numElements) * hostSize(elem));
    fillFrom(core, dst, elem, whole, splitDim, part.index, part.count);
    return;
  }
  core.moveTensor(dst, {lhs, true});
  // A reshape of the tile is allowed.
  if (hasStaticShape())
    core.tensors[dst].setSizes(resultShape);
}

void ReceiveInstr::concatenate(Core &core, const ReceivedTiles &received,
                               Part part) const {
  const std::vector<const SentTile *> &tiles = received.tiles;
  std::vector<int64_t> shape = tiles.front()->shape;
  if (splitDim >= 0)
    shape[splitDim] /= part.count;
  int64_t outer = 1, inner = hostSize(elem);
  for (int d = 0; d < static_cast<int>(shape.size()); ++d)
    (d < concatDim ? outer : inner) *= shape[d];
  std::vector<uint8_t> data(size_t(outer) * inner * tiles.size());
  for (size_t i = 0; i < tiles.size(); ++i) {
    if (tiles[i]->shape != tiles.front()->shape)
      core.fail(location, name + ": the producers' tiles differ in shape");
    fillFrom(core, rhs, elem, *tiles[i], splitDim, part.index, part.count);
    const uint8_t *from = static_cast<const uint8_t *>(core.tensors[rhs].data);
    for (int64_t o = 0; o < outer; ++o)
      std::memcpy(data.data() + (o * tiles.size() + i) * inner,
                  from + o * inner, inner);
  }
  core.releaseTensor(rhs);
  SentTile whole;
  whole.shape = shape;
  whole.shape[concatDim] *= static_cast<int64_t>(tiles.size());
  whole.data = std::move(data);
  fillFrom(core, dst, elem, whole, -1, 0, 1);
}
