// SPDX-License-Identifier: Apache-2.0
//===- LaunchGrid.cpp - What a program is launched on ---------------------===//

#include "Spyre/Runtime/LaunchGrid.h"
#include "Spyre/Device/Shape.h"
#include "Spyre/Runtime/BrokenRule.h"

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

bool spyre::runtime::isStoredAs(const ArgumentInfo &argument, HostDtype dtype,
                                const std::vector<int64_t> &sizes,
                                const std::vector<int64_t> &strides,
                                const TensorLayout &layout) {
  if (!argument.layout || argument.dtype != dtype || argument.shape != sizes ||
      !stridesAgree(argument.shape, argument.strides, strides))
    return false;
  const TensorLayout &expected = *argument.layout;
  return expected.format == layout.format &&
         expected.arrangement == layout.arrangement &&
         expected.deviceSize == layout.deviceSize &&
         stridesAgree(expected.deviceSize, expected.strideMap,
                      layout.strideMap);
}

void spyre::runtime::checkArgumentCount(size_t expected, size_t found) {
  // SPYRECODE-LAUNCH-C1
  if (found != expected)
    throw BrokenRule("SPYRECODE-LAUNCH-C1",
                     "the program takes " + std::to_string(expected) +
                         " arguments, found " + std::to_string(found));
}

namespace {
class LaunchPlanner {
public:
  LaunchPlanner(const ProgramImage &image,
                const std::vector<LaunchArgument> &given)
      : image(image), arguments(image.program->arguments()), given(given) {}

  LaunchGrid plan(bool allowTiledLaunch) {
    // The pool is last.
    checkArgumentCount(arguments.size() - (image.poolBytes != 0), given.size());
    for (size_t i = 0; i < given.size(); ++i)
      checkKind(i);
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i].tensor)
        findTiles(i);
    // SPYRECODE-LAUNCH-C5
    if (grid.numTiles > 1 && !allowTiledLaunch)
      throw BrokenRule("SPYRECODE-LAUNCH-C5",
                       "the tensors are " + std::to_string(grid.numTiles) +
                           " times as large as the program's, and tiled "
                           "launches are not allowed");
    if (grid.numTiles > 1)
      checkGroup();
    grid.tileBytes.assign(given.size(), 0);
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

  // SPYRECODE-LAUNCH-C3, SPYRECODE-LAUNCH-C4
  void findTiles(size_t i) {
    const std::vector<int64_t> &tile = arguments[i].shape;
    const std::vector<int64_t> &sizes = given[i].tensor->sizes;
    int tiled = -1;
    for (size_t d = 0; d < tile.size(); ++d) {
      if (sizes[d] == tile[d])
        continue;
      if (tile[d] <= 0 || sizes[d] < tile[d] || sizes[d] % tile[d] != 0)
        throw BrokenRule("SPYRECODE-LAUNCH-C3",
                         nameOf(i) + " of sizes " + formatSizes(sizes) +
                             " is not made of tiles of " + formatSizes(tile));
      int64_t count = sizes[d] / tile[d];
      if (tiled >= 0 || (grid.numTiles > 1 && count != grid.numTiles))
        throw BrokenRule("SPYRECODE-LAUNCH-C4",
                         nameOf(i) + " of sizes " + formatSizes(sizes) +
                             " is tiled along more than one dimension, or into "
                             "more or fewer tiles than others");
      tiled = static_cast<int>(d);
      grid.numTiles = count;
    }
    tiledDims.resize(given.size(), -1);
    tiledDims[i] = tiled;
  }

  // SPYRECODE-LAUNCH-C6
  void checkGroup() const {
    auto fail = [](const std::string &what) {
      throw BrokenRule("SPYRECODE-LAUNCH-C6", what);
    };
    int32_t group = -1;
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i].tensor || tiledDims[i] < 0)
        continue;
      int32_t own = image.tileGroups[i][tiledDims[i]];
      if (own < 0)
        fail("the program does not work tile by tile along dimension " +
             std::to_string(tiledDims[i]) + " of " + nameOf(i));
      if (group >= 0 && own != group)
        fail("dimension " + std::to_string(tiledDims[i]) + " of " + nameOf(i) +
             " is not the one along which other arguments are tiled");
      group = own;
    }
    for (size_t i = 0; i < given.size(); ++i)
      for (size_t d = 0; d < image.tileGroups[i].size(); ++d)
        if (image.tileGroups[i][d] == group &&
            tiledDims[i] != static_cast<int>(d))
          fail(nameOf(i) + " must be tiled along dimension " +
               std::to_string(d) + " as others are");
  }

  // SPYRECODE-LAUNCH-C7
  void place(size_t i) {
    const StoredTensor &tensor = *given[i].tensor;
    auto fail = [&] {
      throw BrokenRule("SPYRECODE-LAUNCH-C7",
                       nameOf(i) + " is stored as " + tensor.layout.str() +
                           ", in which no tile lies as " +
                           arguments[i].layout->str());
    };
    if (tensor.address % DeviceMemory::kBlockInBytes != 0)
      throw BrokenRule("SPYRECODE-LAUNCH-C7",
                       nameOf(i) + " does not start on a stick");
    if (tiledDims[i] < 0) {
      if (!isStoredAs(arguments[i], tensor.dtype, tensor.sizes, tensor.strides,
                      tensor.layout))
        fail();
      return;
    }
    if (!isTiledAs(i))
      fail();
    grid.tileBytes[i] =
        static_cast<uint64_t>(arguments[i].layout->sizeInBytes());
  }

  /// Whether the tiles of a tensor follow each other in device memory, each
  /// stored as the program expects: the tiled dimension's largest steps are
  /// the outermost device dimension that has more than one position.
  bool isTiledAs(size_t i) const {
    const StoredTensor &tensor = *given[i].tensor;
    const ArgumentInfo &argument = arguments[i];
    const TensorLayout &tile = *argument.layout;
    size_t rank = tile.deviceSize.size();
    if (tile.format != tensor.layout.format ||
        tile.arrangement != tensor.layout.arrangement ||
        tensor.layout.deviceSize.size() != rank)
      return false;
    std::vector<DeviceDim> small =
        resolveDeviceDims(tile, argument.shape, argument.strides);
    std::vector<DeviceDim> large =
        resolveDeviceDims(tensor.layout, tensor.sizes, tensor.strides);
    bool isFound = false;
    for (size_t k = 0; k < rank; ++k) {
      bool isSame =
          small[k].extent == 1 || (small[k].hostDim == large[k].hostDim &&
                                   small[k].step == large[k].step);
      if (!isSame)
        return false;
      if (small[k].extent == large[k].extent) {
        if (!isFound && small[k].extent != 1)
          return false;
        continue;
      }
      // Whole positions only: a padded tile does not join the next one.
      if (isFound || large[k].hostDim != tiledDims[i] ||
          large[k].extent != small[k].extent * grid.numTiles ||
          argument.shape[tiledDims[i]] != small[k].extent * large[k].step)
        return false;
      isFound = true;
    }
    return isFound;
  }

  const ProgramImage &image;
  const std::vector<ArgumentInfo> &arguments;
  const std::vector<LaunchArgument> &given;
  LaunchGrid grid;
  std::vector<int> tiledDims;
};
} // namespace

LaunchGrid spyre::runtime::planLaunch(const ProgramImage &image,
                                      const std::vector<LaunchArgument> &given,
                                      bool allowTiledLaunch) {
  return LaunchPlanner(image, given).plan(allowTiledLaunch);
}
