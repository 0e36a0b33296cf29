// SPDX-License-Identifier: Apache-2.0
//===- Layouts.h - Accesses to tensors on the device ------------*- C++ -*-===//
//
// Random accesses of loops to tensors in random layouts, and where an element
// lies by the definition of a device dimension.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_UNITTESTS_DIALECT_SPYREGRAPH_LAYOUTS_H
#define SPYRE_UNITTESTS_DIALECT_SPYREGRAPH_LAYOUTS_H

#include "Points.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "mlir/IR/Builders.h"

#include <algorithm>

namespace spyre_test {

using mlir::spyre_graph::LayoutAttrInterface;

/// Device coordinates of an element; the last is its lane.
inline SmallVector<int64_t> place(LayoutAttrInterface layout,
                                  ArrayRef<int64_t> shape,
                                  ArrayRef<int64_t> element) {
  SmallVector<int64_t> coordinates;
  auto dims = layout.getDeviceDims(shape);
  for (const spyre::DeviceDim &dim : dims) {
    if (dim.hostDim < 0) {
      coordinates.push_back(0);
      continue;
    }
    int64_t coordinate = element[dim.hostDim] / dim.step, larger = 0;
    for (const spyre::DeviceDim &other : dims)
      if (other.hostDim == dim.hostDim && other.step > dim.step)
        larger = larger == 0 ? other.step : std::min(larger, other.step);
    if (larger != 0)
      coordinate %= larger / dim.step;
    coordinates.push_back(coordinate);
  }
  return coordinates;
}

/// The number of the stick in which an element lies.
inline int64_t stickOf(LayoutAttrInterface layout, ArrayRef<int64_t> shape,
                       ArrayRef<int64_t> element) {
  SmallVector<int64_t> coordinates = place(layout, shape, element),
                       size = layout.getDeviceSize(shape);
  int64_t stick = 0;
  for (size_t dim = 0; dim + 1 < size.size(); ++dim)
    stick = stick * size[dim] + coordinates[dim];
  return stick;
}

/// An operand of a nest of loops.
struct Access {
  SmallVector<int64_t> extents, shape;
  AffineMap map;
  mlir::Type elementType;
  LayoutAttrInterface layout;

  std::string str() const {
    return text(map) + ", extents " + text(extents) + ", shape " + text(shape) +
           ", " + text(mlir::Attribute(layout));
  }
};

/// A layout of a tensor; now and then the same one in its explicit form.
inline LayoutAttrInterface randomLayout(Random &random, mlir::Type element,
                                        ArrayRef<int64_t> shape) {
  mlir::MLIRContext *context = element.getContext();
  SmallVector<int64_t> order =
      llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
  for (size_t dim = 1; dim < order.size(); ++dim)
    std::swap(order[dim], order[random.number(0, dim)]);
  bool sparse = !order.empty() && random.chance(1, 5);
  auto layout =
      mlir::spyre_graph::LayoutAttr::get(context, order, element, sparse);
  if (!random.chance(1, 4) || llvm::is_contained(shape, 0))
    return layout;
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  return mlir::spyre_graph::ExplicitLayoutAttr::get(
      context, LayoutAttrInterface(layout).getDeviceSize(shape),
      layout.getStrideMap(shape, strides), strides, layout.getFormat());
}

/// A coordinate that one or two loops walk, mostly simply.
inline AffineExpr randomCoordinate(Random &random, mlir::MLIRContext *context,
                                   ArrayRef<int64_t> extents) {
  auto loop = [&] {
    return getAffineDimExpr(random.number(0, extents.size() - 1), context);
  };
  AffineExpr result = loop();
  switch (random.number(0, 9)) {
  case 0:
    result = getAffineConstantExpr(random.pick({0, 1, 64, 65}), context);
    break;
  case 1:
    result = result * random.pick({2, 64, 65}) + loop();
    break;
  case 2:
    result = result.floorDiv(random.pick({2, 64}));
    break;
  case 3:
    result = result % random.pick({2, 63, 64});
    break;
  case 4:
    result = result + random.pick({1, 32, 64});
    break;
  case 5: // Backwards; the caller moves it above zero.
    result = -result;
    break;
  default:
    break;
  }
  return result;
}

/// An access of random loops that stays inside its tensor.
inline Access randomAccess(Random &random, mlir::MLIRContext *context,
                           ArrayRef<int64_t> extentChoice = {1, 2, 3, 5, 64, 65,
                                                             130}) {
  Access access;
  mlir::Builder builder(context);
  access.elementType = random.chance(1, 2)   ? mlir::Type(builder.getF16Type())
                       : random.chance(1, 2) ? mlir::Type(builder.getF32Type())
                                             : mlir::Type(builder.getI64Type());
  int64_t volume = 1;
  for (int64_t loops = random.number(1, 3); loops > 0; --loops) {
    int64_t extent = random.pick(extentChoice);
    if (volume * extent > 2000)
      extent = random.number(1, 3);
    access.extents.push_back(extent);
    volume *= std::max<int64_t>(extent, 1);
  }
  SmallVector<AffineExpr> results;
  for (int64_t rank = random.number(0, 3); rank > 0; --rank) {
    AffineExpr result = randomCoordinate(random, context, access.extents);
    int64_t low = 0, high = 0;
    forEachPoint(access.extents, [&](ArrayRef<int64_t> point) {
      low = std::min(low, valueAt(result, point));
      high = std::max(high, valueAt(result, point));
    });
    results.push_back(result - low);
    // Now and then more than is accessed.
    access.shape.push_back(
        high - low + 1 + (random.chance(1, 4) ? random.pick({1, 63, 65}) : 0));
  }
  access.map = AffineMap::get(access.extents.size(), 0, results, context);
  access.layout = randomLayout(random, access.elementType, access.shape);
  return access;
}

} // namespace spyre_test

#endif // SPYRE_UNITTESTS_DIALECT_SPYREGRAPH_LAYOUTS_H
