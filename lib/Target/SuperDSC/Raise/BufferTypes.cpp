// SPDX-License-Identifier: Apache-2.0
//===- BufferTypes.cpp - Types and maps of SuperDSC's tensors ---*- C++ -*-===//

#include "BufferTypes.h"
#include "../Mapping/StatisticsLanes.h"

#include "Spyre/Dialect/SpyreGraph/Analysis/LinearForm.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/StickAccess.h"
#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace spyre::superdsc;
using spyre::DataFormat;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Gives a shape the order of dimensions of a tensor of default layout: its
/// first is the innermost, the stick's tiles come next and the others follow
/// outwards. Where the tiles are innermost, the first has extent 1 and is not
/// there.
static void orderByLayout(BufferShape &shape) {
  std::vector<unsigned> dims(shape.order.rbegin(), shape.order.rend());
  unsigned stick = shape.stick;
  if (shape.stick < 0 || dims.size() < 2)
    return;
  if (dims.back() != stick) {
    if (dims[dims.size() - 2] != stick)
      return;
    std::rotate(dims.begin(), dims.end() - 1, dims.end());
  }
  BufferShape old = shape;
  std::vector<unsigned> position(dims.size());
  for (auto [to, from] : llvm::enumerate(dims)) {
    shape.shape[to] = old.shape[from];
    position[from] = to;
  }
  for (unsigned &dim : shape.order)
    dim = position[dim];
  shape.sizes.clear();
  for (const auto &[dim, size] : old.sizes)
    shape.sizes[position[dim]] = size;
  shape.stick = position[stick];
}

FailureOr<BufferShape>
spyre::superdsc::getBufferShape(const Sdsc &sdsc, unsigned number,
                                ArrayRef<int64_t> extents, Location loc,
                                bool isDefault) {
  const Tensor &tensor = sdsc.tensors[number];
  BufferShape result;
  result.format = tensor.format;
  const std::vector<StickDim> &sticks = sdsc.labels[tensor.label].sticks;
  if (sticks.size() > 2) {
    emitError(loc) << "Tensor" << number
                   << " has sticks over several dimensions, which the "
                      "toolchain cannot execute";
    return failure();
  }
  Geometry geometry = *getGeometry(sdsc, tensor);
  std::vector<unsigned> positions(sdsc.dims.size(), ~0u);
  for (unsigned dim = 0; dim < sdsc.dims.size(); ++dim)
    for (const TensorDim &own : geometry.dims) {
      if (own.dim != dim || own.scale != Scale::Present)
        continue;
      positions[dim] = result.shape.size();
      int64_t extent = own.extent;
      if (tensor.inLX)
        extent = extents[dim];
      else if (own.stick > 1 && llvm::alignTo(extents[dim], own.stick) ==
                                    static_cast<uint64_t>(extent))
        extent = extents[dim];
      if (const std::optional<DimSymbol> &symbol = sdsc.dims[dim].symbol)
        result.sizes[positions[dim]] = {symbol->name};
      result.shape.push_back(extent);
      if (dim == sticks.back().dim && own.stick > 1)
        result.stick = positions[dim];
      else if (own.stick > 1)
        result.packed = own.stick;
    }
  for (const TensorDim &own : geometry.dims)
    if (own.scale == Scale::Present)
      result.order.push_back(positions[own.dim]);
  if (result.packed > 1 &&
      (result.stick < 0 || positions[sticks.front().dim] != result.order[0])) {
    emitError(loc) << "Tensor" << number
                   << " has sticks over several dimensions, of which the first "
                      "is not its innermost; the toolchain cannot execute that";
    return failure();
  }
  if (isDefault)
    orderByLayout(result);
  if (holdsLanes(sdsc, number)) {
    if (result.stick < 0) {
      result.stick = result.shape.size();
      result.shape.push_back(kNumLanes);
      bool isOnly = result.order.empty();
      result.order.insert(result.order.begin() + (isOnly ? 0 : 1),
                          result.stick);
    }
    result.shape[result.stick] = kNumLanes;
  }
  // A single stick tile may come anywhere in the order. Put it where
  // generic-stick layouts have it.
  if (result.stick >= 0 && result.order.size() > 1 &&
      result.shape[result.stick] <=
          ::spyre::elemsPerStick(result.format) / result.packed) {
    llvm::erase(result.order, static_cast<unsigned>(result.stick));
    result.order.insert(result.order.begin() + 1, result.stick);
  }
  return result;
}

/// The position of the stick's tiles in the order of dimensions, from inner to
/// outer.
static size_t getStickPosition(const BufferShape &shape) {
  return llvm::find(shape.order, static_cast<unsigned>(shape.stick)) -
         shape.order.begin();
}

/// Inserts a dimension in front of another one, outside of so many others in
/// memory.
static void insertDim(BufferShape &shape, unsigned before, size_t outside,
                      int64_t extent) {
  shape.shape.insert(shape.shape.begin() + before, extent);
  auto moved = [&](unsigned dim) { return dim + (dim >= before); };
  for (unsigned &dim : shape.order)
    dim = moved(dim);
  shape.order.insert(shape.order.begin() + outside, before);
  if (shape.stick >= 0)
    shape.stick = moved(shape.stick);
  std::map<unsigned, DimSize> sizes;
  for (const auto &[dim, size] : shape.sizes)
    sizes[moved(dim)] = size;
  shape.sizes = std::move(sizes);
}

void spyre::superdsc::addRoom(BufferShape &shape, const SizeParameter &size,
                              int64_t tile, int64_t sticks) {
  int64_t elements = ::spyre::elemsPerStick(shape.format) / shape.packed;
  int64_t stride = 1;
  std::optional<unsigned> found;
  for (auto [position, dim] : llvm::enumerate(shape.order)) {
    int64_t step = static_cast<int>(dim) == shape.stick ? elements
                   : position == 0                      ? shape.packed
                                                        : 1;
    int64_t extent = shape.shape[dim];
    bool isOutermost = llvm::all_of(
        ArrayRef(shape.order).drop_front(position + 1), [&](unsigned other) {
          return shape.shape[other] <=
                 (static_cast<int>(other) == shape.stick ? elements : 1);
        });
    if (tile % step == 0 && stride * (tile / step) == sticks &&
        (extent == size.maximum || (isOutermost && extent == tile)))
      found = dim;
    stride *= llvm::divideCeilSigned(extent, step);
  }
  // More room than there are addresses is none.
  int64_t before = found ? shape.shape[*found] : tile, bytes;
  if (llvm::MulOverflow(stride * ::spyre::kStickBytes, size.maximum / before,
                        bytes) ||
      bytes > kSegmentBytes)
    return;
  if (found) {
    shape.shape[*found] = size.maximum;
    shape.sizes[*found] = {size.name};
  } else if (stride == sticks) {
    insertDim(shape, 0, shape.order.size(), size.maximum / tile);
    shape.sizes[0] = {size.name, tile};
  } else {
    return;
  }
  // Tiles are parts of generic-stick layouts, which have a dimension inside of
  // the stick's.
  if (shape.stick >= 0 && shape.packed == 1 && getStickPosition(shape) == 0)
    insertDim(shape, shape.stick, 0, 1);
}

BufferShape spyre::superdsc::makeGeneric(const BufferShape &shape) {
  size_t rank = shape.order.size();
  if (shape.stick < 0 || rank == 1)
    return shape;
  size_t position = getStickPosition(shape);
  if (position == 1)
    return shape;
  if (shape.packed > 1)
    return shape;
  // The dimensions inside of the stick's tiles follow each other in memory, so
  // that they are one, perhaps of extent 1.
  BufferShape result;
  result.format = shape.format;
  result.shape.push_back(1);
  result.order.push_back(0);
  for (size_t i = 0; i < position; ++i)
    result.shape[0] *= shape.shape[shape.order[i]];
  result.stick = 1;
  for (size_t i = position; i < rank; ++i) {
    result.order.push_back(result.shape.size());
    result.shape.push_back(shape.shape[shape.order[i]]);
  }
  return result;
}

FailureOr<MemRefType> spyre::superdsc::getBufferType(const BufferShape &shape,
                                                     MLIRContext *context,
                                                     Location loc) {
  Type element = getElementType(context, shape.format);
  if (!element) {
    emitError(loc) << "the toolchain cannot execute tensors of "
                   << ::spyre::toString(shape.format);
    return failure();
  }
  std::optional<DataFormat> format = getDeviceFormat(element);
  // The generic-stick order: the innermost device dimension is the first, the
  // tiles of the stick come next, the others follow outwards.
  size_t rank = shape.order.size();
  SmallVector<int64_t> order;
  bool isGeneric = shape.stick < 0 || rank == 1 || getStickPosition(shape) == 1;
  if (!isGeneric && shape.packed > 1) {
    emitError(loc) << "the toolchain cannot execute packed sticks that do not "
                      "follow each other along their first dimension";
    return failure();
  }
  if (isGeneric) {
    if (rank > 0)
      order.push_back(shape.order[0]);
    bool hasStick = shape.stick >= 0 && rank > 1;
    for (size_t i = rank; i-- > (hasStick ? 2u : 1u);)
      order.push_back(shape.order[i]);
    if (hasStick)
      order.push_back(shape.stick);
    return MemRefType::get(shape.shape, element, MemRefLayoutAttrInterface(),
                           LayoutAttr::get(context, order, shape.stick < 0,
                                           *format, shape.packed));
  }
  // Device dimensions outer to inner, then the lane.
  SmallVector<int64_t> strides(rank, 1), deviceSize, strideMap;
  for (size_t dim = rank; dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape.shape[dim];
  int64_t stick = ::spyre::elemsPerStick(*format);
  for (unsigned dim : llvm::reverse(shape.order)) {
    bool isStick = static_cast<int>(dim) == shape.stick;
    deviceSize.push_back(isStick
                             ? llvm::divideCeilSigned(shape.shape[dim], stick)
                             : shape.shape[dim]);
    strideMap.push_back(
        shape.shape[dim] == 1 ? -1 : strides[dim] * (isStick ? stick : 1));
  }
  deviceSize.push_back(stick);
  strideMap.push_back(shape.shape[shape.stick] == 1 ? -1
                                                    : strides[shape.stick]);
  auto layout =
      ExplicitLayoutAttr::get(context, deviceSize, strideMap, strides, *format);
  auto fail = [&] { return emitError(loc); };
  if (failed(layout.verifyEncoding(shape.shape, element, fail)))
    return failure();
  return MemRefType::get(shape.shape, element, MemRefLayoutAttrInterface(),
                         layout);
}

FailureOr<MemRefType>
spyre::superdsc::getBufferType(const ManifestTensor &tensor, Location loc) {
  MLIRContext *context = loc.getContext();
  Type element = getElementType(context, tensor.dtype);
  auto fail = [&] { return emitError(loc) << "manifest.json: "; };
  Attribute space;
  if (tensor.order) {
    auto layout =
        LayoutAttr::get(context, *tensor.order, tensor.sparse,
                        ::spyre::deviceFormat(tensor.dtype), tensor.packed);
    if (failed(layout.verifyEncoding(tensor.shape, element, fail)))
      return failure();
    space = layout;
  } else {
    auto layout = ExplicitLayoutAttr::get(context, tensor.deviceSize,
                                          tensor.strideMap, tensor.strides,
                                          ::spyre::deviceFormat(tensor.dtype));
    if (failed(layout.verifyEncoding(tensor.shape, element, fail)))
      return failure();
    space = layout;
  }
  return MemRefType::get(tensor.shape, element, MemRefLayoutAttrInterface(),
                         space);
}

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

namespace {
/// An address in sticks as coordinates of a buffer.
struct Coordinates {
  /// A dimension of the iteration space that walks within sticks: by the place
  /// in one, its own variable, and by the number of the stick, variable
  /// `number`.
  struct InStick {
    unsigned dim, number;
    int64_t elements;
  };
  /// In dimensions: those of the iteration space, then the numbers of sticks.
  SmallVector<AffineExpr> results;
  SmallVector<int64_t> ranges;
  /// The one along the stick first, if there is one, then the one that shares
  /// it.
  SmallVector<InStick, 2> inStick;
  std::optional<int64_t> axis;
};

/// Reads a tensor's address in the device dimensions of a buffer.
class CoordinateReader {
public:
  CoordinateReader(const Sdsc &sdsc, unsigned number,
                   LayoutAttrInterface layout, ArrayRef<int64_t> shape,
                   ArrayRef<int64_t> sizes, Location loc)
      : sdsc(sdsc), number(number), layout(layout), shape(shape), sizes(sizes),
        loc(loc), context(loc.getContext()),
        geometry(*getGeometry(sdsc, sdsc.tensors[number])),
        device(layout.getDeviceDims(shape)) {
    result.ranges.assign(sizes.begin(), sizes.end());
    result.results.assign(shape.size(), getAffineConstantExpr(0, context));
  }

  FailureOr<Coordinates> read(int64_t offset) {
    index = getAffineConstantExpr(offset / ::spyre::kStickBytes, context);
    if (failed(readAddress()) || failed(readCoordinates()) ||
        failed(addLanes()) || failed(checkRanges()))
      return failure();
    return std::move(result);
  }

private:
  InFlightDiagnostic fail() { return emitError(loc) << "Tensor" << number; }

  /// The number of the stick as an expression of the dimensions.
  LogicalResult readAddress() {
    unsigned main = sdsc.labels[sdsc.tensors[number].label].sticks.back().dim;
    int64_t packed = getNumPacked(layout);
    int64_t elements = ::spyre::elemsPerStick(layout.getDataFormat()) / packed;
    for (const TensorDim &own : geometry.dims) {
      if (own.scale != Scale::Present)
        continue;
      if (own.isGathered) {
        gathered = &own;
        continue;
      }
      if (own.stick == 1) {
        index = index + getAffineDimExpr(own.dim, context) * own.stride;
        if (own.place)
          index = index + getAffineDimExpr(*own.place, context) * own.stride;
        continue;
      }
      if (own.stick != (own.dim == main ? elements : packed))
        return fail() << " has sticks of " << own.stick
                      << " elements, its buffer of "
                      << (own.dim == main ? elements : packed);
      unsigned variable = result.ranges.size();
      Coordinates::InStick inStick{own.dim, variable, own.stick};
      result.inStick.insert(own.dim == main ? result.inStick.begin()
                                            : result.inStick.end(),
                            inStick);
      result.ranges[own.dim] = std::min(sizes[own.dim], own.stick);
      result.ranges.push_back(
          llvm::divideCeilSigned(sizes[own.dim], own.stick));
      index = index + getAffineDimExpr(variable, context) * own.stride;
    }
    hasMain = !result.inStick.empty() && result.inStick.front().dim == main;
    return success();
  }

  /// Takes the number of the stick apart into the buffer's dimensions.
  LogicalResult readCoordinates() {
    int64_t stride = 1;
    for (unsigned dim = device.size() - 1; dim-- > 0;) {
      const ::spyre::DeviceDim &own = device[dim];
      AffineExpr coordinate = index.floorDiv(stride);
      if (dim > 0)
        coordinate = coordinate % std::max<int64_t>(own.extent, 1);
      if (gathered && own.hostDim >= 0 && own.step == 1 &&
          stride == gathered->stride &&
          (!result.axis || own.extent == gathered->extent))
        result.axis = own.hostDim;
      if (own.hostDim >= 0)
        result.results[own.hostDim] =
            result.results[own.hostDim] + coordinate * own.step;
      else if (auto [low, high] =
                   getRange(simplifyWithRanges(coordinate, result.ranges),
                            result.ranges);
               high != 0)
        return fail() << " leaves the sticks of its buffer";
      stride *= std::max<int64_t>(own.extent, 1);
    }
    return success();
  }

  /// Adds the places within sticks.
  LogicalResult addLanes() {
    for (const Coordinates::InStick &own : result.inStick) {
      bool isMain = hasMain && &own == &result.inStick.front();
      int64_t hostDim = isMain ? device.back().hostDim : getPackedDim(layout);
      if (hostDim >= 0)
        result.results[hostDim] =
            result.results[hostDim] + getAffineDimExpr(own.dim, context);
      else if (result.ranges[own.dim] > 1)
        return fail() << " walks lanes of a buffer with one element per stick";
    }
    return success();
  }

  LogicalResult checkRanges() {
    for (auto [dim, expr] : llvm::enumerate(result.results)) {
      expr = simplifyWithRanges(expr, result.ranges);
      auto [low, high] = getRange(expr, result.ranges);
      // The last stick may be padded.
      bool isInStick = !result.inStick.empty() &&
                       (device.back().hostDim == static_cast<int>(dim) ||
                        getPackedDim(layout) == static_cast<int64_t>(dim));
      int64_t limit =
          isInStick
              ? llvm::alignTo(shape[dim], getStepsPerStick(layout, shape, dim))
              : shape[dim];
      if (low < 0 || high >= limit)
        return fail() << " accesses coordinates " << low << " to " << high
                      << " of dimension " << dim
                      << " of its buffer, whose extent is " << shape[dim];
    }
    return success();
  }

  const Sdsc &sdsc;
  unsigned number;
  LayoutAttrInterface layout;
  ArrayRef<int64_t> shape, sizes;
  Location loc;
  MLIRContext *context;
  Geometry geometry;
  SmallVector<::spyre::DeviceDim> device;
  AffineExpr index;
  const TensorDim *gathered = nullptr;
  bool hasMain = false;
  Coordinates result;
};
} // namespace

/// For each dimension of a buffer in LX, the dimension of the iteration space
/// that runs along it, or -1: there each core holds its own slice.
static FailureOr<SmallVector<int>> matchLXDims(const Sdsc &sdsc,
                                               unsigned number,
                                               ArrayRef<int64_t> extents,
                                               MemRefType type, Location loc) {
  auto layout = cast<LayoutAttrInterface>(type.getMemorySpace());
  Geometry geometry = *getGeometry(sdsc, sdsc.tensors[number]);
  if (llvm::any_of(geometry.dims,
                   [](const TensorDim &own) { return own.place; })) {
    emitError(loc) << "Tensor" << number
                   << " is read by windows and in LX, which the toolchain "
                      "cannot execute";
    return failure();
  }
  SmallVector<const TensorDim *> dims;
  // The stick's, if it is one tile: its place among the others does not matter.
  const TensorDim *tile = nullptr;
  unsigned main = sdsc.labels[sdsc.tensors[number].label].sticks.back().dim;
  for (const TensorDim &own : geometry.dims)
    if (own.scale == Scale::Present && extents[own.dim] > 1)
      (own.dim == main && own.stick > 1 && extents[own.dim] <= own.stick
           ? tile
           : dims.emplace_back()) = &own;
  SmallVector<int> match(type.getRank(), -1);
  auto *next = dims.begin();
  int64_t stride = 1;
  SmallVector<::spyre::DeviceDim> device =
      layout.getDeviceDims(type.getShape());
  for (unsigned position = device.size() - 1; position-- > 0;) {
    int hostDim = device[position].hostDim;
    bool isLanes = holdsLanes(sdsc, number) && hostDim + 1 == type.getRank();
    if (hostDim < 0 || type.getDimSize(hostDim) == 1 || isLanes)
      continue;
    if (tile && device[position].step > 1 && hostDim != getPackedDim(layout) &&
        extents[tile->dim] == type.getDimSize(hostDim)) {
      match[hostDim] = tile->dim;
      tile = nullptr;
      continue;
    }
    bool fits = next != dims.end() &&
                extents[(*next)->dim] == type.getDimSize(hostDim) &&
                ((*next)->stick > 1) == (device[position].step > 1);
    int64_t steps = 1;
    if (fits) {
      const TensorDim &own = **next;
      steps = llvm::divideCeilSigned(
          std::min(extents[own.dim], sdsc.dims[own.dim].perCore()), own.stick);
      fits = own.stride == stride || steps == 1;
    }
    if (!fits) {
      emitError(loc) << "Tensor" << number
                     << " does not have the dimensions of its buffer in LX";
      return failure();
    }
    match[hostDim] = (*next)->dim;
    stride *= steps;
    ++next;
  }
  if (next != dims.end() || tile) {
    emitError(loc) << "Tensor" << number
                   << " has more dimensions than its buffer in LX";
    return failure();
  }
  return match;
}

FailureOr<AccessMap> spyre::superdsc::getAccessMap(const Sdsc &sdsc,
                                                   unsigned number,
                                                   int64_t offset, Value buffer,
                                                   ArrayRef<int64_t> extents,
                                                   Location loc) {
  MLIRContext *context = loc.getContext();
  auto type = cast<MemRefType>(buffer.getType());
  auto layout = cast<LayoutAttrInterface>(type.getMemorySpace());
  SmallVector<int64_t> shape(type.getShape());
  if (llvm::is_contained(shape, 0)) {
    emitError(loc) << "Tensor" << number << " accesses an empty buffer";
    return failure();
  }
  if (sdsc.tensors[number].inLX) {
    FailureOr<SmallVector<int>> match =
        matchLXDims(sdsc, number, extents, type, loc);
    if (failed(match))
      return failure();
    SmallVector<AffineExpr> results;
    for (int dim : *match)
      results.push_back(dim < 0 ? getAffineConstantExpr(0, context)
                                : getAffineDimExpr(dim, context));
    return AccessMap{AffineMap::get(extents.size(), 0, results, context), {}};
  }
  FailureOr<Coordinates> coordinates =
      CoordinateReader(sdsc, number, layout, shape, extents, loc).read(offset);
  if (failed(coordinates))
    return failure();
  unsigned numDims = extents.size(), numVariables = coordinates->ranges.size();
  SmallVector<AffineExpr> loops, split;
  for (unsigned dim = 0; dim < numDims; ++dim)
    loops.push_back(getAffineDimExpr(dim, context));
  // Number of the stick and place in it are quotient and remainder of one loop;
  // together they are the loop.
  split = loops;
  split.resize(numVariables);
  for (const Coordinates::InStick &own : coordinates->inStick) {
    split[own.dim] = loops[own.dim] % own.elements;
    split[own.number] = loops[own.dim].floorDiv(own.elements);
  }
  SmallVector<AffineExpr> results;
  for (AffineExpr expr : coordinates->results) {
    auto form = getLinearForm(expr, numVariables);
    bool isWhole =
        form &&
        llvm::all_of(coordinates->inStick, [&](Coordinates::InStick own) {
          return (*form)[own.number] == (*form)[own.dim] * own.elements ||
                 coordinates->ranges[own.number] == 1;
        });
    if (!isWhole) {
      results.push_back(simplifyWithRanges(expr.replaceDims(split), extents));
      continue;
    }
    AffineExpr sum = getAffineConstantExpr(form->back(), context);
    for (unsigned dim = 0; dim < numDims; ++dim)
      sum = sum + loops[dim] * (*form)[dim];
    results.push_back(simplifyWithRanges(sum, extents));
  }
  AccessMap access;
  access.axis = coordinates->axis;
  if (access.axis)
    results[*access.axis] = getAffineConstantExpr(0, context);
  access.map = AffineMap::get(numDims, 0, results, context);
  return access;
}

FailureOr<SmallVector<int64_t>>
spyre::superdsc::getLocalShape(const Sdsc &sdsc, unsigned number,
                               ArrayRef<int64_t> extents, MemRefType type,
                               Location loc) {
  FailureOr<SmallVector<int>> match =
      matchLXDims(sdsc, number, extents, type, loc);
  if (failed(match))
    return failure();
  SmallVector<int64_t> local(type.getShape());
  for (auto [size, dim] : llvm::zip(local, *match))
    if (dim >= 0)
      size = std::min(extents[dim], sdsc.dims[dim].perCore());
  return local;
}
