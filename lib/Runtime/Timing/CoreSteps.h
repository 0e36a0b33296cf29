// SPDX-License-Identifier: Apache-2.0
//===- CoreSteps.h - What the cores of a kernel do, without data *- C++ -*-===//
//
// The timing engine walks the same plan as the functional engine, one core
// after another: scalars, views and the shapes of tiles are computed, data is
// not touched. Every transfer and every pass over tiles becomes a step that
// knows which earlier steps of its core it needs; Simulator.h says when each
// happens.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_TIMING_CORESTEPS_H
#define SPYRE_LIB_RUNTIME_TIMING_CORESTEPS_H

#include "../Engine/Core.h"
#include "../Program/Plan.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace spyre::runtime {

/// The unit of a core that does a step. Units work side by side, each on one
/// step after another in program order.
enum class Unit : uint8_t {
  PT,
  SFU,
  Load,  ///< device memory to LX
  Store, ///< LX to device memory
  Ring,  ///< tiles of other cores
  None   ///< takes no time: hands tiles on
};
constexpr int kNumUnits = int(Unit::None) + 1;
const char *toString(Unit unit);

struct Step {
  Unit unit = Unit::None;
  int location = 0;
  const char *name = "";
  /// PT, SFU: time of the pass. Load, Store: time before bytes flow.
  double seconds = 0;
  /// PT, SFU: whether LX bandwidth decides that time.
  bool isLXBound = false;
  /// Load, Store: bytes in whole sticks. Ring: bytes that arrive.
  uint64_t bytes = 0;
  /// Load, Store: bytes of indices that are read for it, among `bytes`.
  uint64_t indexBytes = 0;
  /// Load, Store: runs of contiguous sticks that do not go on where those of
  /// the instruction's last tile ended.
  uint64_t numRuns = 0;
  /// Loads of cores with equal keys read the same bytes. 0: of none.
  uint64_t key = 0;
  /// Load, Store: argument of the entry, or -1; that of the (first) indices.
  int argument = -1, indexArgument = -1;
  /// Ring: the core it comes from (or goes to), and the message of that core
  /// (-1: what lies in its LX anyway).
  int peer = -1, message = -1;
  bool isPart = false; ///< Ring: of the peer's tile, for this core alone
  /// Load: share of the tile beyond what is loaded ahead: the next load waits
  /// for as long as that share of the pass takes that uses the tile.
  double exposedShare = 0;
  /// Load: nothing is loaded; the unit waits for a pass.
  bool isWait = false;
  /// Whether the tile lies in the accumulators of the matrix unit.
  bool isAccumulated = false;
  /// Produced tile: message number for others, or -1.
  int sends = -1;
  /// Steps of this core that must end first: CoreSteps::needs [begin, end).
  int needsBegin = 0, needsEnd = 0;
  /// Bytes of the resulting tile in LX and the last step that needs it.
  uint64_t tileBytes = 0;
  int lastUse = -1;
};

/// Totals of one core.
struct WorkTotals {
  uint64_t deviceBytesRead = 0, deviceBytesWritten = 0;
  uint64_t lxBytesRead = 0, lxBytesWritten = 0; ///< in buffers of the plan
  uint64_t lxTileBytes = 0; ///< busier direction, of passes over tiles
  uint64_t ringBytes = 0, sfuElementOps = 0, ptMacs = 0;
  double sfuElements = 0; ///< weighted
  double ptFP16Macs = 0;  ///< of fp16, in the time of the ptMacs
  int64_t ptRows = 0;     ///< fewest rows of M of any product, 0: none
  int numStreams = 0;     ///< operands in device memory
  KernelKinds kinds = 0;  ///< of what the core computes
};

/// Steps of one core in one call of a kernel.
class CoreSteps {
public:
  std::vector<Step> list;
  std::vector<int> needs;
  WorkTotals totals;

  /// Sticks of one access tile, and the contiguous runs that they form; of its
  /// indices those in device memory and those in LX.
  struct Sticks {
    uint64_t data = 0, indices = 0, indicesInLX = 0;
    uint64_t dataRuns = 0, indexRuns = 0;
    uint64_t firstRun = 0; ///< sticks of data
  };
  /// Shared by the cores of a call: tiles that lie alike on sticks.
  std::unordered_map<uint64_t, Sticks> *knownSticks = nullptr;
  const DeviceSpec *spec = nullptr;
  const Plan *plan = nullptr;
  /// Entry arguments by address: (first byte, argument), ascending.
  const std::vector<std::pair<int64_t, int>> *arguments = nullptr;
  /// The step that last emptied the accumulators of the matrix unit, or -1.
  int lastDrain = -1;
  bool isAccumulated(int step) const {
    return step >= 0 && list[step].isAccumulated;
  }
  bool hasProduct = false; ///< in the kernel
  /// Location of a value that only data could tell, or -1.
  int dataLocation = -1;

  /// A step that needs the tiles in `tensors` (steps; -1 is ignored). With a
  /// result it also waits until the tile that the same instruction made two
  /// rounds before is no longer needed: every tile has two buffers.
  int add(const Instr *instr, Unit unit, const char *name,
          std::initializer_list<int> required = {});
  void addNeed(int step) {
    if (step >= 0)
      pending.push_back(step);
  }

  /// Whether `instr` has made no step yet.
  bool isFirst(const Instr *instr) const { return !history.count(instr); }

  /// The runs of a tile whose first one begins at stick `first`; none if it
  /// goes on where the first run of the instruction's last tile ended. Of
  /// products the measurements show no such gain: their batches lie between
  /// each other.
  uint64_t countRuns(const Instr *instr, int64_t first, const Sticks &sticks) {
    int64_t &next = nextStick[instr];
    bool goesOn = next == first && !hasProduct;
    next = first + static_cast<int64_t>(sticks.firstRun);
    return goesOn ? 0 : sticks.dataRuns;
  }

  /// The share of a tile that lies beyond the first overlappedRunBytes of its
  /// run of contiguous sticks, which tiles before it may have begun.
  double getExposedShare(const Instr *instr, int64_t first,
                         const Sticks &sticks);
  /// The unit that loads waits for `seconds`.
  void addWait(const Instr *instr, double seconds);

  /// Steps that last wrote into [low, high) of LX or device memory.
  void noteWrite(bool isLX, int64_t low, int64_t high, int step);
  /// Adds them as needs of the next step; returns one of them, or -1.
  int needWrites(bool isLX, int64_t low, int64_t high);

private:
  struct Write {
    int64_t low, high;
    int step;
  };
  struct Writes {
    int64_t low = 0, high = 0;
    std::vector<Write> list;
  };
  Writes writes[2];
  std::vector<int> pending;
  std::unordered_map<const Instr *, std::pair<int, int>> history;
  std::unordered_map<const Instr *, int64_t> nextStick;
  /// How long the runs are that end before a stick.
  std::unordered_map<const Instr *, std::unordered_map<int64_t, uint64_t>>
      runLengths;
};

/// Forgets the data of a slot that takes a new value, which `step` makes (-1:
/// none); the shape stays.
void beginTensor(Core &core, int slot, int step);

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_TIMING_CORESTEPS_H
