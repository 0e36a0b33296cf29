// SPDX-License-Identifier: Apache-2.0
//===- AccessTile.h - Addresses of the points of an access tile -*- C++ -*-===//
//
// An access tile maps every point of a box of variables to one element of a
// view. Each base coordinate is a sum of terms; variables that meet inside
// one floordiv or mod (or in one gather index) form a group, and the element
// offset is a sum of one contribution per group. Within a group the offset is
// piecewise linear along the group's last variable, so a tile becomes runs of
// constant stride: loads and stores convert whole runs.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_ACCESSTILE_H
#define SPYRE_LIB_RUNTIME_ENGINE_ACCESSTILE_H

#include "../Program/AccessTilePlan.h"
#include "Values.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spyre::runtime {

/// `length` elements from tile position `start` on. Element i is in memory at
/// `offset + i * stride`, in elements.
struct Run {
  int64_t start, length, offset, stride;
};

/// Whether the address of this coordinate might overflow. Such an access is an
/// error even with OutOfBounds::Zero.
inline bool isFar(int64_t coordinate, int64_t stride) {
  constexpr int64_t kLimit = int64_t(1) << 56;
  int64_t offset;
  return __builtin_mul_overflow(coordinate, stride, &offset) ||
         coordinate <= -kLimit || coordinate >= kLimit || offset <= -kLimit ||
         offset >= kLimit;
}

/// Messages about coordinates that a view does not have.
std::string outsideView(const ViewVal &view, int dim, int64_t coordinate,
                        const char *what);
std::string outsideIndices(const ViewVal &view, int dim, int64_t value);
/// A substitute for the `number`-th index of a gather if there is no data:
/// these are distinct and far apart, as indices usually are.
int64_t spreadIndex(int64_t number, int64_t low, int64_t high);
/// A signed index of 1, 2, 4 or 8 bytes.
int64_t readIndex(const uint8_t *p, int64_t sizeInBytes);

/// One access tile at run time. It is kept in its slot, so that its tables can
/// be reused if the values that they depend on are the same the next time.
class TileVal {
public:
  const AccessTilePlan *plan = nullptr;
  ViewVal view;
  std::vector<const ViewVal *> indexViews;
  std::vector<int64_t> captured;
  int64_t sizes[kMaxRank];
  int64_t numElements = 0;
  /// Without data, indices read from memory are replaced by numbers spread
  /// over their range.
  bool hasData = true;

  /// Computes the sizes from the captured values. Returns a message if a size
  /// contradicts the result type or is negative.
  std::string setExtents();

  /// Whether `other`, a tile of the same op, reads the same elements of device
  /// memory. May return false if they are the same.
  bool readsSame(const TileVal &other) const {
    return hasSameCoordinates(other) && !view.isLX && !other.view.isLX &&
           view.byteAddress == other.view.byteAddress &&
           view.rank == other.view.rank &&
           std::equal(view.strides, view.strides + view.rank,
                      other.view.strides) &&
           std::equal(view.lo, view.lo + view.rank, other.view.lo) &&
           std::equal(view.hi, view.hi + view.rank, other.view.hi) &&
           !view.set && !other.view.set;
  }

  /// Whether both read the same coordinates of their views, or of the
  /// partitions of a distributed one.
  bool hasSameCoordinates(const TileVal &other) const {
    return indexViews.empty() && plan == other.plan &&
           captured == other.captured;
  }

  /// Computes the runs and checks all bounds. Returns an error message, or "".
  /// With `zeroOutside` only indices below 0 are errors: reads outside of the
  /// allocation give zeros, and writes there are ignored.
  std::string prepare(bool zeroOutside = false);

  /// For a distributed view: moves the part of the box that each partition
  /// holds. Loads give zeros where no partition does. If partitions overlap,
  /// loads read the first and stores write all. Returns an error message, or
  /// "".
  std::string moveDistributed(const std::vector<const ViewVal *> &partitions,
                              void *tile, bool isStore, bool ieee);
  /// The elements of the box that one partition of a distributed view holds.
  struct DistributedPart {
    uint8_t *first;   ///< in the host's memory of the device
    int64_t position; ///< of that element in the host tile
    int rank;
    size_t shape[kMaxRank];
    ptrdiff_t memoryStrides[kMaxRank], tileStrides[kMaxRank]; ///< in elements
  };
  /// Calls visit(part) for what each partition holds, the last partition first.
  /// Not for tiles with a list of points. Returns an error message, or "".
  std::string
  visitParts(const std::vector<const ViewVal *> &partitions,
             const std::function<void(const DistributedPart &)> &visit);
  /// Where the first element is in the host's memory of the device. Only after
  /// prepare().
  uint8_t *firstByte() const;
  /// Whether the host tile is row-major. Only after prepare().
  bool isRowMajor() const;
  /// Whether the elements lie in memory as they do in the host tile, which is
  /// row-major. Only after prepare(); false for gather indices.
  bool isDense() const;
  /// Whether the elements, in any order, are all of a range of memory, each
  /// once. Only after prepare(); false for gather indices and lists of points.
  bool isGapless() const;
  /// Bytes from this tile to `other` in the host's memory of the device, if
  /// that has the same sizes and places but for this distance. Both prepared,
  /// without gather indices or lists of points.
  std::optional<int64_t> bytesTo(const TileVal &other) const;
  /// Makes this prepared tile a stack of `count` tiles for load() and store():
  /// each lies `distance` elements behind the one before it, and behind it in
  /// host memory.
  void stack(int64_t count, int64_t distance);
  /// Element strides of the tile in host memory.
  const int64_t *hostStrides() const { return tileStrides; }
  /// Copies from device memory to the host tile, in host representation.
  void load(void *tile, bool ieee) const { load(tile, ieee, -1, 0, 0); }
  /// Loads only positions [start, start + length) of tile dimension `dim`, to
  /// the start of `tile`. isStrip(dim) must be true.
  void load(void *tile, bool ieee, int dim, int64_t start,
            int64_t length) const;
  /// Copies codes of two bytes from device memory to `to`, where neighbours
  /// along tile dimension d are `strides[d]` elements apart. Returns false, and
  /// does nothing, if the tile is no list of runs of the view's elements.
  bool loadCodes(uint8_t *to, const int64_t *strides) const;
  /// Copies codes of two bytes in row-major order from `from` to device memory.
  /// Returns false, and does nothing, for the same tiles as loadCodes().
  bool storeCodes(const uint8_t *from) const;
  /// Whether `dim` can be read in pieces: it is the outermost in host memory
  /// and moves linearly in device memory.
  bool isStrip(int dim) const;
  /// Elements that lie at constant distances in device memory: `length`
  /// positions from `start` on of tile dimension `dim`, all of the others.
  struct StridedPart {
    int dim; ///< -1: the part is the whole tile
    int64_t start, length;
    const uint8_t *first;
    int64_t strides[kMaxRank]; ///< in elements, per tile dimension
  };
  /// The parts of the tile, each along the same dimension. Empty if the tile is
  /// more than that: reads past an allocation, lists of points, several groups
  /// of variables. Only after prepare().
  std::vector<StridedPart> stridedParts() const;
  /// The only part, if there is one.
  std::optional<StridedPart> onlyPart() const;
  /// Parts along a dimension, all but the last as long as the first one, and
  /// `distance` elements from one to the next: 0 if there is only one.
  struct EvenParts {
    StridedPart first;
    int64_t distance;
  };
  /// The parts of the tile, if they are that.
  std::optional<EvenParts> evenParts() const;
  /// The tile as a factor of a product, with codes where they are, whose rows
  /// lie along `dim`: if that dimension is dense, and alone in even parts, and
  /// at most one other dimension has more than one position.
  std::optional<HalfFactor> halfFactor(int dim) const;
  /// Whether no two points of that part share an element. May return false if
  /// none do.
  bool isApart(const StridedPart &part) const;
  bool isApart(const EvenParts &parts) const;
  /// Copies from the host tile to device memory.
  void store(const void *tile, bool ieee) const;
  /// Appends [first, last] stick intervals of all accesses to the view,
  /// relative to the start of memory. Those to indices: indexRanges().
  void appendSticks(std::vector<std::pair<int64_t, int64_t>> &data) const;

  /// Calls visit(byte address) for every element. Only after prepare().
  void visitElements(const std::function<void(int64_t)> &visit) const;
  /// For a distributed view: calls visit(partition, byte address) for every
  /// element that a load or a store accesses.
  void
  visitDistributed(const std::vector<const ViewVal *> &partitions, bool isStore,
                   const std::function<void(size_t, int64_t)> &visit) const;
  /// Bytes that were read of the view of an index.
  struct IndexBytes {
    int view; ///< in indexViews
    int64_t first, last;
  };
  std::vector<IndexBytes> indexRanges() const;

  /// A hash that is equal for tiles with the same relative addresses, and the
  /// same start modulo a stick. Only after prepare().
  uint64_t shapeKey() const;
  /// A hash that is equal for tiles at the same addresses. Only after
  /// prepare().
  uint64_t identityKey() const;
  /// [first, end) bytes of memory around the tile; none if it is empty. Only
  /// after prepare().
  std::pair<int64_t, int64_t> byteRange() const;
  /// [first, end) bytes of host memory around the tile. Only after prepare().
  std::pair<uint8_t *, uint8_t *> hostBytes() const {
    auto [first, end] = byteRange();
    return {view.base + (first - view.byteAddress),
            view.base + (end - view.byteAddress)};
  }
  /// For a distributed view: the number of points in each partition that holds
  /// any, as (partition, points).
  std::vector<std::pair<int, int64_t>>
  countDistributed(const std::vector<const ViewVal *> &partitions) const;

private:
  struct GroupState {
    bool valid = false;
    std::vector<int64_t> key;
    std::vector<Run> runs;      ///< `start` counts along the last variable
    std::vector<int> rowStart;  ///< per row of the group, into runs
    std::vector<int64_t> table; ///< element offset per point of the group
    std::vector<std::pair<int64_t, int64_t>> range; ///< per `direct` entry
    std::vector<IndexBytes> indexBytes;
  };
  struct Piece {
    int64_t value, slope, length;
  };
  struct Loop {
    int64_t extent, memoryStride, tileStride;
    int dim; ///< of the tile; kMaxRank: over a stack of tiles
  };
  /// The points of a group: `count` rows along its last variable.
  struct GroupRows {
    int inner = -1; ///< that variable; -1: the group has none
    int64_t count = 1, length = 1;
  };

  int64_t baseOf(const LinearForm &form) const;
  Piece evalForm(int form, int inner) const;
  Piece evalAtom(const Atom &atom, int inner) const;
  std::string prepareGroup(int group, bool wantTable, bool zeroOutside);
  /// Records the values that the group's runs depend on: captured values, box
  /// and strides. Returns whether the existing runs were computed from the same
  /// values: never with index memory, which may have changed.
  bool updateKey(const AccessTilePlan::Group &group, GroupState &state,
                 bool wantTable) const;
  GroupRows rowsOf(const AccessTilePlan::Group &group) const;
  /// Sets all variables except the last to their values in a row.
  void enterRow(const AccessTilePlan::Group &group, int64_t row) const;
  /// Adds the contributions of base dimensions without gather indices for one
  /// row, piece by piece: to the runs, or to the table if the group has
  /// indices.
  void addDirectDims(const AccessTilePlan::Group &group, GroupState &state,
                     const GroupRows &rows, int64_t row) const;
  /// The pieces of points [from, to) of a row. Ranges become those of as many
  /// repetitions of these points.
  void addPieces(const AccessTilePlan::Group &group, GroupState &state,
                 const GroupRows &rows, int64_t row, int64_t from, int64_t to,
                 int64_t repeats) const;
  /// Adds the runs from `first` on, those of one period, for the periods after
  /// it.
  void repeatRuns(const AccessTilePlan::Group &group, GroupState &state,
                  int64_t first, int64_t repeats) const;
  /// Adds the indices of base dimension `dim` for one row, one per point, to
  /// the table. Returns an error message, or "".
  std::string addIndirectDim(int dim, GroupState &state, const GroupRows &rows,
                             int64_t row, bool zeroOutside) const;
  /// Element offset of the first point.
  int64_t firstOffset() const;
  /// [lowest, highest] element offset of any point; {0, -1} if there is none.
  std::pair<int64_t, int64_t> offsetRange() const;
  /// Checks that the tile is inside the view's allocation. Returns an error
  /// message, or "".
  std::string checkAllocation(bool zeroOutside);
  // Tiles with a list of points.
  std::string enumeratePoints();
  std::string prepareEnumerated(bool zeroOutside);
  /// Base coordinate of the `number`-th point, whose variables `varValue`
  /// holds; reads indices, which without data lie in [low, high].
  std::string coordinateOf(int64_t number, int64_t *coordinate,
                           bool zeroOutside, const int64_t *low,
                           const int64_t *high, GroupState &state) const;
  std::vector<std::pair<int, int64_t>>
  countEnumerated(const std::vector<const ViewVal *> &partitions) const;
  std::string moveEnumerated(const std::vector<const ViewVal *> &partitions,
                             void *tile, bool isStore, bool ieee);
  /// Moves element by element, and only those inside the allocation.
  void loadInside(void *tile, bool ieee) const;
  void storeInside(const void *tile, bool ieee) const;
  /// Makes the host tile row-major.
  void setRowMajor();
  void makeRunsOfTable(GroupState &state, int64_t rows, int64_t length);
  static void makeTableOfRuns(GroupState &state, const GroupRows &rows);
  static void addToRuns(GroupState &state, const Run &piece);
  /// Host tile's distance between neighbours of a run, in elements.
  int64_t runTileStride(const int64_t *steps) const;
  /// Calls visit(memoryOffset, tileOffset, first, end) for the runs of every
  /// row of the primary group, which count from there; without that group once,
  /// with null for both. The linear loops are inside the runs. `steps` has the
  /// strides of the tile.
  template <typename Visit>
  void forEachRow(const int64_t *steps, Visit &&visit) const;
  /// Calls visit(memoryOffset, tileOffset, run or null) for every run.
  template <typename Visit>
  void forEachBlock(Visit &&visit) const;
  /// Elements at constant distances in device memory and in the host tile.
  struct Box {
    unsigned rank = 0;
    // The linear loops, rows and runs that are alike, and the elements of one.
    size_t shape[kMaxRank + 2];
    ptrdiff_t memoryStrides[kMaxRank + 2], tileStrides[kMaxRank + 2];
    bool isRun() const {
      return rank == 1 && memoryStrides[0] == 1 && tileStrides[0] == 1;
    }
  };
  /// That of the linear loops.
  Box linearBox() const;
  /// Calls visit(memoryOffset, tileOffset) for few boxes that make up the tile,
  /// whose strides are `steps`; `box`, first that of the linear loops, becomes
  /// each of them.
  template <typename Visit>
  void forEachBox(Box &box, const int64_t *steps, Visit &&visit) const;
  /// Calls visit(box, first code in memory, tileOffset) for such boxes. Returns
  /// false, without a call, if the tile is no list of runs.
  template <typename Visit>
  bool forEachBoxOfCodes(const int64_t *strides, Visit &&visit) const;
  /// Calls visit(part) for what stridedParts() returns.
  template <typename Visit>
  void forEachStridedPart(Visit &&visit) const;
  template <typename Visit>
  std::string forEachPart(const std::vector<const ViewVal *> &partitions,
                          Visit &&visit);
  /// Calls visit(memoryOffset, tileOffset) for every point.
  template <typename Visit>
  void forEachElement(Visit &&visit) const;

  std::vector<int64_t> formBase; ///< value of each form without variables
  /// The plan that sizes and the constant ones of `formBase` were made for.
  const AccessTilePlan *extentsOf = nullptr;
  int64_t lo[kMaxRank];
  mutable int64_t varValue[kMaxRank];
  std::vector<GroupState> states;
  int64_t baseOffset = 0;
  int64_t tileStrides[kMaxRank];
  std::vector<Loop> linearLoops;
  int primary = -1;            ///< group whose runs are walked innermost
  std::vector<int64_t> points; ///< enumerated: their variables, in tile order
  std::vector<int64_t> pointsKey; ///< the values that `points` depends on
  bool isPartlyOutside = false;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_ACCESSTILE_H
