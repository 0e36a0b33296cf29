// SPDX-License-Identifier: Apache-2.0
//===- Moves.cpp - Kernels that move tiles between scratchpads ------------===//

#include "Moves.h"

#include <algorithm>
#include <cstring>

using namespace spyre;
using namespace spyre::runtime;

// The most cores of a task: several tasks are work for several threads.
static constexpr int64_t kTaskCores = 8;

// The most copies of a kernel: a list of more takes long to read.
static constexpr size_t kMaxCopies = 8192;

// The fewest bytes of a copy, on average. Smaller pieces take the kernels of
// loads and stores less time than copies.
static constexpr int64_t kLeastBytes = 32;

//===----------------------------------------------------------------------===//
// Finding copies
//===----------------------------------------------------------------------===//

/// Goes through all cores, without data, and notes what they copy. May throw
/// Error.
class KernelMoves::Finder {
public:
  Finder(KernelMoves &result, Core &core, const Scalar *args)
      : result(result), core(core), args(args), lx(core.memory->lx(0)) {}

  /// False if the kernel is to run core by core.
  bool find();

private:
  /// Elements of a tile: from `position` on, `count` of them lie behind each
  /// other at `source`.
  struct Piece {
    int64_t position, count;
    const uint8_t *source;
  };
  /// What a tile is loaded from.
  struct Loaded {
    int slot;
    Elem elem;
    std::vector<Piece> pieces;
  };

  bool load(const LoadInstr &instr);
  bool store(const StoreInstr &instr);
  void addPieces(const TileVal::DistributedPart &part, int64_t elementSize,
                 std::vector<Piece> &pieces);
  void addCopy(const Copy &copy);
  void endCore();
  bool isSameAsLast() const;
  /// Notes that the kernel reads or writes these bytes of some core's LX.
  void note(bool isWritten, const uint8_t *first, int64_t size);

  KernelMoves &result;
  Core &core;
  const Scalar *args;
  uint8_t *const lx;
  std::vector<Loaded> loaded;
  std::vector<Copy> copies; ///< of the core at hand
  size_t numCopies = 0;
  int64_t numBytes = 0;
  int64_t lastCore = -1; ///< of the last task
  /// [first, end) bytes of an LX that are read and written, of whichever core.
  struct Range {
    int64_t first = INT64_MAX, end = 0;
  } read, written;
};

bool KernelMoves::Finder::find() {
  result.tasks.clear();
  result.pitch = core.memory->lx(1) - lx;
  for (int64_t index = 0; index < core.function.numCores(); ++index) {
    core.enter(index, args);
    loaded.clear();
    copies.clear();
    for (const std::unique_ptr<Instr> &instr : core.function.body.instrs) {
      if (auto *op = dynamic_cast<const LoadInstr *>(instr.get())) {
        if (!load(*op))
          return false;
      } else if (auto *op = dynamic_cast<const StoreInstr *>(instr.get())) {
        if (!store(*op))
          return false;
      } else {
        instr->run(core);
      }
    }
    endCore();
    if (numCopies > kMaxCopies)
      return false;
  }
  // A core that has stored must not have changed what another one loads.
  bool isApart = read.end <= written.first || written.end <= read.first;
  return isApart && numBytes >= kLeastBytes * static_cast<int64_t>(numCopies);
}

/// Whether a load and a store give an element the bits that it had.
static bool keepsBits(Elem elem) {
  return elem == Elem::I16 || elem == Elem::I32 || elem == Elem::F32;
}

bool KernelMoves::Finder::load(const LoadInstr &instr) {
  TileVal &tile = core.tiles[instr.tile];
  std::vector<const ViewVal *> partitions;
  for (int slot : tile.plan->partitionSlots)
    partitions.push_back(&core.views[slot]);
  if (partitions.empty() || tile.plan->isEnumerated || tile.numElements == 0)
    return false;
  Elem elem = tile.plan->movedElem(partitions.front()->elem);
  if (!keepsBits(elem))
    return false;
  std::vector<Piece> pieces;
  std::string error =
      tile.visitParts(partitions, [&](const TileVal::DistributedPart &part) {
        addPieces(part, deviceSize(elem), pieces);
      });
  if (!error.empty() || pieces.size() > kMaxCopies)
    return false;
  // Partitions that overlap, and elements that none holds, are for loads.
  std::sort(pieces.begin(), pieces.end(), [](const Piece &a, const Piece &b) {
    return a.position < b.position;
  });
  int64_t next = 0;
  for (const Piece &piece : pieces) {
    if (piece.position != next)
      return false;
    next += piece.count;
  }
  if (next != tile.numElements)
    return false;
  loaded.push_back({instr.dst, elem, std::move(pieces)});
  return true;
}

void KernelMoves::Finder::addPieces(const TileVal::DistributedPart &part,
                                    int64_t elementSize,
                                    std::vector<Piece> &pieces) {
  // The innermost loops that lie behind each other on both sides are a run.
  int64_t run = 1;
  int rank = part.rank;
  for (; rank > 0; --rank) {
    int d = rank - 1;
    if (part.shape[d] == 1)
      continue;
    if (part.memoryStrides[d] != run || part.tileStrides[d] != run)
      break;
    run *= static_cast<int64_t>(part.shape[d]);
  }
  int64_t index[kMaxRank] = {};
  while (pieces.size() <= kMaxCopies) {
    int64_t memory = 0, position = part.position;
    for (int d = 0; d < rank; ++d) {
      memory += index[d] * part.memoryStrides[d];
      position += index[d] * part.tileStrides[d];
    }
    pieces.push_back({position, run, part.first + memory * elementSize});
    int d = rank - 1;
    for (; d >= 0; --d) {
      if (++index[d] < static_cast<int64_t>(part.shape[d]))
        break;
      index[d] = 0;
    }
    if (d < 0)
      return;
  }
}

bool KernelMoves::Finder::store(const StoreInstr &instr) {
  auto source =
      std::find_if(loaded.begin(), loaded.end(), [&](const Loaded &candidate) {
        return candidate.slot == instr.data.slot;
      });
  TileVal &tile = core.tiles[instr.tile];
  if (source == loaded.end() || !tile.plan->partitionSlots.empty() ||
      !tile.prepare().empty() || !tile.isDense() ||
      tile.view.elem != source->elem)
    return false;
  int64_t size = deviceSize(source->elem);
  for (const Piece &piece : source->pieces)
    addCopy({piece.source, tile.firstByte() + piece.position * size,
             piece.count * size});
  return true;
}

void KernelMoves::Finder::note(bool isWritten, const uint8_t *first,
                               int64_t size) {
  int64_t offset = (first - lx) % result.pitch;
  Range &range = isWritten ? written : read;
  range.first = std::min(range.first, offset);
  range.end = std::max(range.end, offset + size);
}

void KernelMoves::Finder::addCopy(const Copy &copy) {
  note(false, copy.source, copy.size);
  note(true, copy.target, copy.size);
  if (!copies.empty()) {
    Copy &last = copies.back();
    if (last.source + last.size == copy.source &&
        last.target + last.size == copy.target) {
      last.size += copy.size;
      return;
    }
  }
  copies.push_back(copy);
}

/// Whether the core at hand gets what the last task makes, at the same place of
/// its LX.
bool KernelMoves::Finder::isSameAsLast() const {
  if (result.tasks.empty() || core.coreId != lastCore + 1)
    return false;
  const Task &task = result.tasks.back();
  return task.numCores < kTaskCores &&
         std::equal(
             copies.begin(), copies.end(), task.copies.begin(),
             task.copies.end(),
             [&](const Copy &a, const Copy &b) {
               return a.source == b.source && a.size == b.size &&
                      a.target == b.target + task.numCores * result.pitch;
             });
}

void KernelMoves::Finder::endCore() {
  if (copies.empty())
    return;
  for (const Copy &copy : copies)
    numBytes += copy.size;
  numCopies += copies.size();
  if (isSameAsLast()) {
    ++result.tasks.back().numCores;
  } else {
    Task &task = result.tasks.emplace_back();
    task.copies = copies;
    std::sort(copies.begin(), copies.end(),
              [](const Copy &a, const Copy &b) { return a.target < b.target; });
    for (const Copy &copy : copies) {
      if (!task.results.empty() &&
          task.results.back().target + task.results.back().size == copy.target)
        task.results.back().size += copy.size;
      else
        task.results.push_back({copy.target, copy.target, copy.size});
    }
  }
  lastCore = core.coreId;
}

bool KernelMoves::find(Core &probe, const Scalar *args) {
  return Finder(*this, probe, args).find();
}

/// Whether the kernel is one block of views of LX, tiles of them, loads from
/// several and stores to one. May return false for other kernels that only
/// move.
static bool onlyMoves(const Function &function) {
  if (function.hasCalls || function.numProduceOps > 0 || !function.hasGrid)
    return false;
  bool stores = false;
  for (const std::unique_ptr<Instr> &instr : function.body.instrs) {
    if (auto *op = dynamic_cast<const MemoryViewInstr *>(instr.get())) {
      if (!op->isLX)
        return false;
    } else if (auto *op = dynamic_cast<const AccessTileInstr *>(instr.get())) {
      if (!op->plan.indexViewSlots.empty())
        return false;
    } else if (dynamic_cast<const StoreInstr *>(instr.get())) {
      stores = true;
    } else if (!dynamic_cast<const LoadInstr *>(instr.get()) &&
               !dynamic_cast<const ScalarInt *>(instr.get()) &&
               !dynamic_cast<const AffineInstr *>(instr.get())) {
      return false;
    }
  }
  return stores;
}

std::unique_ptr<KernelMoves> KernelMoves::find(const Function &function) {
  if (!onlyMoves(function))
    return nullptr;
  return std::unique_ptr<KernelMoves>(
      new KernelMoves(function.argSlots.size()));
}

//===----------------------------------------------------------------------===//
// Running copies
//===----------------------------------------------------------------------===//

/// Copies `size` bytes and asks for the places `ahead` bytes further on, which
/// are written next.
static void copyAhead(uint8_t *target, const uint8_t *source, int64_t size,
                      ptrdiff_t ahead) {
  typedef uint8_t Line __attribute__((vector_size(64)));
  int64_t i = 0;
  for (; i + 64 <= size; i += 64) {
    Line line;
    std::memcpy(&line, source + i, sizeof(line));
    __builtin_prefetch(target + i + ahead, 1);
    std::memcpy(target + i, &line, sizeof(line));
  }
  std::memcpy(target + i, source + i, static_cast<size_t>(size - i));
}

void KernelMoves::run(Core &, int64_t number) const {
  const Task &task = tasks[number];
  for (const Copy &copy : task.copies)
    std::memcpy(copy.target, copy.source, static_cast<size_t>(copy.size));
  for (int64_t core = 1; core < task.numCores; ++core)
    for (const Copy &result : task.results)
      copyAhead(result.target + core * pitch, result.source, result.size,
                pitch);
}
