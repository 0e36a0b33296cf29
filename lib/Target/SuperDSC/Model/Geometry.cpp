// SPDX-License-Identifier: Apache-2.0
//===- Geometry.cpp - Where a tensor's sticks are ---------------*- C++ -*-===//

#include "Spyre/Target/SuperDSC/Model/Geometry.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace spyre::superdsc;

std::optional<Scale> spyre::superdsc::getScale(const Tensor &tensor,
                                               unsigned dim) {
  auto found = std::find(tensor.order.begin(), tensor.order.end(), dim);
  if (found == tensor.order.end())
    return std::nullopt;
  return tensor.scale[found - tensor.order.begin()];
}

std::optional<unsigned> spyre::superdsc::findDim(const Sdsc &sdsc,
                                                 const std::string &name) {
  for (unsigned dim = 0; dim < sdsc.dims.size(); ++dim)
    if (sdsc.dims[dim].name == name)
      return dim;
  return std::nullopt;
}

/// The dimension of the places of windows along `dim`, if the tensor is what
/// conv2d reads them of.
static std::optional<unsigned> findPlace(const Sdsc &sdsc, const Tensor &tensor,
                                         unsigned dim) {
  const std::string &name = sdsc.dims[dim].name;
  if (sdsc.op != "conv2d" || (name != "i" && name != "j"))
    return std::nullopt;
  // The output has no channels of the input.
  std::optional<unsigned> channels = findDim(sdsc, "in");
  if (!channels || !variesAlong(tensor, *channels))
    return std::nullopt;
  return findDim(sdsc, "k" + name);
}

bool spyre::superdsc::variesAlong(const Tensor &tensor, unsigned dim) {
  return getScale(tensor, dim) == Scale::Present;
}

/// A table with as many rows as there are indices has no page size: what is
/// gathered is the one dimension outside of the stick that the indices have.
static void findGathered(const Sdsc &sdsc, const Tensor &table,
                         Geometry &geometry) {
  if (table.indirection != Indirection::Value || !table.indexTensor ||
      *table.indexTensor >= sdsc.tensors.size())
    return;
  const Tensor &index = sdsc.tensors[*table.indexTensor];
  TensorDim *found = nullptr;
  for (TensorDim &dim : geometry.dims) {
    if (dim.isGathered)
      return;
    if (dim.scale != Scale::Present || dim.stick != 1 ||
        sdsc.dims[dim.dim].slices != 1 || !variesAlong(index, dim.dim))
      continue;
    if (found)
      return;
    found = &dim;
  }
  if (found)
    found->isGathered = true;
}

std::optional<Geometry> spyre::superdsc::getGeometry(const Sdsc &sdsc,
                                                     const Tensor &tensor) {
  // The two meanings of a gap: spec/superdsc.md, "What reading back needs".
  bool isOpposite = sdsc.op == "ReStickifyOpHBM";
  Geometry geometry;
  const Label &label = sdsc.labels[tensor.label];
  for (size_t position = 0; position < tensor.order.size(); ++position) {
    const Dim &dim = sdsc.dims[tensor.order[position]];
    TensorDim own;
    own.dim = tensor.order[position];
    own.scale = tensor.scale[position];
    for (const StickDim &stick : label.sticks)
      if (stick.dim == own.dim)
        own.stick = stick.size;
    own.isGathered = tensor.maxSize[position] == 1;
    own.place = findPlace(sdsc, tensor, own.dim);
    if (own.place)
      own.numPlaces = sdsc.dims[*own.place].size;
    own.stride = geometry.sticks;
    if (own.scale == Scale::Present) {
      own.perCore = dim.perCore();
      int64_t gap = isOpposite ? -tensor.gap[position] : tensor.gap[position];
      own.extent = (tensor.inLX ? own.perCore : dim.size) + gap;
      if (own.extent < 1)
        return std::nullopt;
    } else {
      // One stick, of which lane 0 counts.
      own.extent = own.perCore = own.stick;
    }
    int64_t steps = llvm::divideCeil(own.extent, own.stick);
    if (llvm::MulOverflow(geometry.sticks, steps, geometry.sticks) ||
        geometry.sticks > kNumSegments * kSegmentBytes / kStickBytes)
      return std::nullopt;
    geometry.dims.push_back(own);
  }
  findGathered(sdsc, tensor, geometry);
  return geometry;
}

int64_t Geometry::span() const {
  int64_t last = 0;
  for (const TensorDim &dim : dims) {
    int64_t own =
        dim.isGathered ? dim.extent : std::min(dim.perCore, dim.extent);
    last += (llvm::divideCeil(own, dim.stick) + dim.numPlaces - 2) * dim.stride;
  }
  return last + 1;
}

int64_t Geometry::offsetOf(const Sdsc &sdsc, int64_t core) const {
  int64_t offset = 0;
  for (const TensorDim &dim : dims)
    if (dim.scale == Scale::Present && !dim.isGathered)
      offset +=
          sdsc.sliceOf(core, dim.dim) * (dim.perCore / dim.stick) * dim.stride;
  return offset;
}

std::optional<Address>
Geometry::addressOf(const Sdsc &sdsc, int64_t core,
                    const std::map<std::string, size_t> &numberOf) const {
  Address address;
  for (const TensorDim &own : dims) {
    if (own.scale != Scale::Present || own.isGathered)
      continue;
    const Dim &dim = sdsc.dims[own.dim];
    int64_t steps = sdsc.sliceOf(core, own.dim) * own.stride * kStickBytes;
    if (!dim.symbol) {
      address.offset += steps * (own.perCore / own.stick);
      continue;
    }
    // A slice is as long as the size divided by the number of slices.
    if (steps != 0 &&
        !address.add({numberOf.at(dim.symbol->name), steps, dim.slices}))
      return std::nullopt;
  }
  return address;
}
