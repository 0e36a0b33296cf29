// SPDX-License-Identifier: Apache-2.0
//===- LaunchGrid.cpp - What a program is launched on ---------------------===//

#include "Spyre/Runtime/Launch/LaunchGrid.h"
#include "Spyre/Support/BrokenRule.h"
#include "Spyre/Support/Shape.h"

#include <algorithm>
#include <iterator>
#include <map>

using namespace spyre;
using namespace spyre::runtime;

static bool stridesAgree(const std::vector<int64_t> &extents,
                         const std::vector<int64_t> &a,
                         const std::vector<int64_t> &b) {
  for (size_t dim = 0; dim < extents.size(); ++dim)
    if (extents[dim] > 1 && a[dim] != b[dim])
      return false;
  return true;
}

static bool isStored(const std::vector<int64_t> &expectedSizes,
                     const std::vector<int64_t> &expectedStrides,
                     const TensorLayout &expected,
                     const std::vector<int64_t> &sizes,
                     const std::vector<int64_t> &strides,
                     const TensorLayout &layout) {
  return expectedSizes == sizes &&
         stridesAgree(expectedSizes, expectedStrides, strides) &&
         expected.format == layout.format &&
         (expected.arrangement == layout.arrangement ||
          (keepsElementOrder(expected.arrangement) &&
           keepsElementOrder(layout.arrangement))) &&
         expected.deviceSize == layout.deviceSize &&
         stridesAgree(expected.deviceSize, expected.strideMap,
                      layout.strideMap);
}

bool spyre::runtime::isStoredAs(const ArrayStorage &expected,
                                const std::vector<int64_t> &sizes,
                                const std::vector<int64_t> &strides,
                                const TensorLayout &layout) {
  return isStored(expected.shape, expected.strides, expected.layout, sizes,
                  strides, layout);
}

bool spyre::runtime::isStoredAs(const ArgumentInfo &argument, HostDtype dtype,
                                const std::vector<int64_t> &sizes,
                                const std::vector<int64_t> &strides,
                                const TensorLayout &layout) {
  return argument.layout && argument.dtype == dtype &&
         isStored(argument.shape, argument.strides, *argument.layout, sizes,
                  strides, layout);
}

int64_t LaunchGrid::numTiles() const {
  int64_t product = 1;
  for (const Axis &axis : axes)
    product *= axis.numTiles;
  return product;
}

uint64_t LaunchGrid::offsetOf(int64_t tile, size_t argument) const {
  uint64_t offset = 0;
  for (size_t k = axes.size(); k-- > 0;) {
    offset += tile % axes[k].numTiles * axes[k].tileBytes[argument];
    tile /= axes[k].numTiles;
  }
  return offset;
}

void spyre::runtime::checkArgumentCount(
    const std::vector<ArgumentInfo> &arguments, size_t found) {
  auto expected = std::count_if(arguments.begin(), arguments.end(),
                                [](const ArgumentInfo &argument) {
                                  return argument.kind != ArgumentInfo::Pool;
                                });
  // SPYRECODE-LAUNCH-C1
  if (found != static_cast<size_t>(expected))
    throw BrokenRule("SPYRECODE-LAUNCH-C1",
                     "the program takes " + std::to_string(expected) +
                         " arguments (" + listArguments(arguments) +
                         "), found " + std::to_string(found));
}

namespace {
class LaunchPlanner {
public:
  LaunchPlanner(const ProgramImage &image,
                const std::vector<LaunchArgument> &given)
      : image(image), arguments(image.program->arguments()), given(given) {}

  LaunchGrid plan(bool allowTiledLaunch) {
    checkArgumentCount(arguments, given.size());
    for (size_t i = 0; i < given.size(); ++i)
      checkKind(i);
    findStorages();
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i].tensor)
        findTiles(i);
    // SPYRECODE-LAUNCH-C5
    if (!counts.empty() && !allowTiledLaunch)
      throw BrokenRule("SPYRECODE-LAUNCH-C5",
                       "the tensors are larger than the program's, and tiled "
                       "launches are not allowed");
    checkGroups();
    for (auto [group, count] : counts)
      grid.axes.push_back({count, std::vector<uint64_t>(given.size(), 0)});
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i].tensor)
        place(i);
    return std::move(grid);
  }

private:
  std::string nameOf(size_t i) const {
    return "argument '" + arguments[i].name + "'";
  }

  // SPYRECODE-LAUNCH-C2
  void checkKind(size_t i) const {
    const ArgumentInfo &argument = arguments[i];
    auto fail = [&](const std::string &what) {
      throw BrokenRule("SPYRECODE-LAUNCH-C2", nameOf(i) + " " + what);
    };
    bool isArray = argument.kind == ArgumentInfo::Array;
    if (isArray != given[i].tensor.has_value())
      fail(isArray ? "is a tensor, found a number"
                   : "is a number, found a tensor");
    if (!isArray) {
      int64_t value = given[i].value;
      if (std::string wrong = checkSize(arguments, i, value); !wrong.empty())
        throw BrokenRule("SPYRECODE-LAUNCH-C2", wrong);
      if (value % argument.granularity != 0)
        fail("is a multiple of " + std::to_string(argument.granularity) +
             ", found " + std::to_string(value));
      if (argument.upperBound >= 0 &&
          (value < 0 || value > argument.upperBound))
        fail("is from 0 to " + std::to_string(argument.upperBound) +
             ", found " + std::to_string(value));
      return;
    }
    const StoredTensor &tensor = *given[i].tensor;
    if (tensor.dtype != argument.dtype)
      fail(std::string("is ") + toString(argument.dtype) + ", found " +
           toString(tensor.dtype));
    if (tensor.sizes.size() != argument.shape.size())
      fail("has " + std::to_string(argument.shape.size()) +
           " dimensions, found " + std::to_string(tensor.sizes.size()));
  }

  /// How the program stores its arrays where its sizes are those given.
  void findStorages() {
    for (size_t i = 0; i < given.size(); ++i)
      if (arguments[i].isRuntimeArgument)
        values.push_back(given[i].value);
    for (size_t i = 0; i < given.size(); ++i) {
      const ArgumentInfo &argument = arguments[i];
      ArrayStorage &storage = storages.emplace_back();
      if (!given[i].tensor)
        continue;
      storage =
          argument.hasRoom
              ? ArrayStorage{argument.shape, argument.strides, *argument.layout}
              : argument.storageAt(values);
    }
  }

  /// How many times as large as the program's a dimension is.
  int64_t getCount(size_t i, size_t dim) const {
    int64_t size = given[i].tensor->sizes[dim];
    int64_t tile = storages[i].shape[dim];
    return size == tile ? 1 : size / tile;
  }

  // SPYRECODE-LAUNCH-C3, SPYRECODE-LAUNCH-C4, SPYRECODE-LAUNCH-C6
  void findTiles(size_t i) {
    const std::vector<int64_t> &tile = storages[i].shape;
    const std::vector<int64_t> &sizes = given[i].tensor->sizes;
    for (size_t d = 0; d < tile.size(); ++d) {
      if (sizes[d] == tile[d])
        continue;
      if (varies(i, d))
        throw BrokenRule("SPYRECODE-LAUNCH-C3",
                         "dimension " + std::to_string(d) + " of " + nameOf(i) +
                             " is " + std::to_string(sizes[d]) + ", but " +
                             std::to_string(tile[d]) + " where " +
                             listSizes(arguments, values));
      if (tile[d] <= 0 || sizes[d] < tile[d] || sizes[d] % tile[d] != 0)
        throw BrokenRule("SPYRECODE-LAUNCH-C3",
                         nameOf(i) + " of sizes " + formatSizes(sizes) +
                             " is not made of tiles of " + formatSizes(tile));
      int32_t group = image.tileGroups[i][d];
      if (group < 0)
        throw BrokenRule(
            "SPYRECODE-LAUNCH-C6",
            "the program does not work tile by tile along dimension " +
                std::to_string(d) + " of " + nameOf(i));
      int64_t count = getCount(i, d);
      int64_t known = counts.emplace(group, count).first->second;
      if (known != count)
        throw BrokenRule(
            "SPYRECODE-LAUNCH-C4",
            nameOf(i) + " of sizes " + formatSizes(sizes) + " is " +
                std::to_string(count) +
                " times as large as the program's along dimension " +
                std::to_string(d) + ", others " + std::to_string(known) +
                " times");
    }
  }

  /// Whether the sizes of a launch say how long a dimension is.
  bool varies(size_t i, size_t dim) const {
    const ArgumentInfo &argument = arguments[i];
    return !argument.sizes.empty() && !argument.hasRoom &&
           !argument.sizes[dim].terms.empty();
  }

  // SPYRECODE-LAUNCH-C6
  void checkGroups() const {
    for (size_t i = 0; i < given.size(); ++i)
      for (size_t d = 0; d < image.tileGroups[i].size(); ++d)
        if (given[i].tensor && counts.count(image.tileGroups[i][d]) &&
            getCount(i, d) == 1)
          throw BrokenRule("SPYRECODE-LAUNCH-C6",
                           nameOf(i) + " must be tiled along dimension " +
                               std::to_string(d) + " as others are");
  }

  // SPYRECODE-LAUNCH-C7
  void place(size_t i) {
    const StoredTensor &tensor = *given[i].tensor;
    if (tensor.address % DeviceMemory::kBlockInBytes != 0)
      throw BrokenRule("SPYRECODE-LAUNCH-C7",
                       nameOf(i) + " does not start on a stick");
    bool isTiled = tensor.sizes != storages[i].shape;
    if (isTiled ? !placeTiles(i)
                : !isStoredAs(storages[i], tensor.sizes, tensor.strides,
                              tensor.layout))
      throw BrokenRule("SPYRECODE-LAUNCH-C7",
                       nameOf(i) + " is stored as " + tensor.layout.str() +
                           ", in which no tile lies as " +
                           storages[i].layout.str());
  }

  /// Finds where the tiles of a tensor lie. False if they are not stored as
  /// the program expects: each in one piece, so that only dimensions of which a
  /// tile has one position may be outside of one that is tiled.
  bool placeTiles(size_t i) {
    const StoredTensor &tensor = *given[i].tensor;
    const ArrayStorage &argument = storages[i];
    const TensorLayout &tile = argument.layout;
    size_t rank = tile.deviceSize.size();
    if (tile.format != tensor.layout.format ||
        tile.arrangement != tensor.layout.arrangement ||
        tensor.layout.deviceSize.size() != rank)
      return false;
    std::vector<DeviceDim> small =
        resolveDeviceDims(tile, argument.shape, argument.strides);
    std::vector<DeviceDim> large =
        resolveDeviceDims(tensor.layout, tensor.sizes, tensor.strides);
    uint64_t stepBytes = kStickBytes;
    // From the inside; the last device dimension is the stick.
    bool isTiled = false;
    for (size_t k = rank; k-- > 0;) {
      const DeviceDim &own = small[k], &whole = large[k];
      if (own.extent != 1 &&
          (own.hostDim != whole.hostDim || own.step != whole.step))
        return false;
      if (own.extent != 1 && isTiled)
        return false;
      if (own.extent != whole.extent) {
        if (k + 1 == rank || !placeAxis(i, own.extent, whole, stepBytes))
          return false;
        isTiled = true;
      }
      if (k + 1 != rank)
        stepBytes *= whole.extent;
    }
    for (size_t d = 0; d < argument.shape.size(); ++d)
      if (getCount(i, d) > 1 && axisOf(i, d).tileBytes[i] == 0)
        return false;
    return true;
  }

  /// A device dimension that is longer than the tile's.
  bool placeAxis(size_t i, int64_t tileExtent, const DeviceDim &whole,
                 uint64_t stepBytes) {
    if (whole.hostDim < 0)
      return false;
    int64_t count = getCount(i, whole.hostDim);
    // Whole positions only: a padded tile does not join the next one.
    if (count == 1 || whole.extent != tileExtent * count ||
        storages[i].shape[whole.hostDim] != tileExtent * whole.step)
      return false;
    uint64_t &bytes = axisOf(i, whole.hostDim).tileBytes[i];
    if (bytes != 0)
      return false;
    bytes = stepBytes * tileExtent;
    return true;
  }

  LaunchGrid::Axis &axisOf(size_t i, size_t dim) {
    auto entry = counts.find(image.tileGroups[i][dim]);
    return grid.axes[std::distance(counts.begin(), entry)];
  }

  const ProgramImage &image;
  const std::vector<ArgumentInfo> &arguments;
  const std::vector<LaunchArgument> &given;
  LaunchGrid grid;
  /// Of the run-time arguments, in order.
  std::vector<int64_t> values;
  /// Of tensors.
  std::vector<ArrayStorage> storages;
  /// Tiles along each tile group that has more than one; the axes in order.
  std::map<int32_t, int64_t> counts;
};
} // namespace

LaunchGrid spyre::runtime::planLaunch(const ProgramImage &image,
                                      const std::vector<LaunchArgument> &given,
                                      bool allowTiledLaunch) {
  return LaunchPlanner(image, given).plan(allowTiledLaunch);
}
