// SPDX-License-Identifier: Apache-2.0
//===- InstrsTensor.cpp - Operations of the tensor dialect ----------------===//

#include "Instrs.h"

#include <algorithm>

using namespace spyre;
using namespace spyre::runtime;

void spyre::runtime::setTensorShape(Core &core, int location, TensorVal &t,
                                    const std::vector<SizeSource> &sizes) {
  t.rank = static_cast<int>(sizes.size());
  t.numElements = 1;
  for (int d = 0; d < t.rank; ++d) {
    int64_t size = sizes[d].get(core);
    if (size < 0)
      core.fail(location, "negative tensor size " + std::to_string(size));
    t.sizes[d] = size;
    if (size > 0 && t.numElements > (int64_t(1) << 40) / size)
      core.fail(location, "tensor with more than 2^40 elements");
    t.numElements *= size;
  }
}

void EmptyInstr::run(Core &core) const {
  core.releaseTensor(dst);
  setTensorShape(core, location, core.tensors[dst], sizes);
}

void SplatInstr::run(Core &core) const {
  TensorVal &t = core.tensors[dst];
  if (shapeOf >= 0)
    t.setShape(core.tensors[shapeOf]);
  else
    setTensorShape(core, location, t, sizes);
  core.allocateTensor(dst, elem, t.numElements);
  uint8_t *data = static_cast<uint8_t *>(t.data);
  size_t size = hostSize(elem);
  if (values.size() == 1) {
    Scalar value = core.scalars[values[0]];
    int64_t count = t.numElements * core.numStacked;
    if (isFloat(elem))
      std::fill(t.f(), t.f() + count, value.f);
    else if (isWide(elem))
      std::fill(t.i64(), t.i64() + count, value.i);
    else
      std::fill(t.i32(), t.i32() + count, static_cast<int32_t>(value.i));
    return;
  }
  for (size_t i = 0; i < values.size(); ++i)
    writeElement(data + i * size, core.scalars[values[i]], elem);
}

void ReshapeInstr::run(Core &core) const {
  if (keepShape) {
    const TensorVal &t = core.tensors[source.slot];
    for (size_t d = 0; d < staticSizes.size(); ++d)
      if (staticSizes[d] >= 0 && staticSizes[d] != t.sizes[d])
        core.fail(location, "dimension " + std::to_string(d) + " has size " +
                                std::to_string(t.sizes[d]) +
                                ", the result type says " +
                                std::to_string(staticSizes[d]));
    core.moveTensor(dst, source);
    return;
  }
  if (core.tensors[source.slot].isPermuted)
    core.makeRowMajor(source.slot, elem);
  TensorVal before = core.tensors[source.slot];
  core.moveTensor(dst, source);
  TensorVal &t = core.tensors[dst];
  t.setShape(before);
  if (isCollapse) {
    t.rank = static_cast<int>(groups.size());
    for (int d = 0; d < t.rank; ++d) {
      t.sizes[d] = 1;
      for (int s : groups[d])
        t.sizes[d] *= before.sizes[s];
    }
    return;
  }
  t.rank = static_cast<int>(sizes.size());
  int64_t product = 1;
  for (int d = 0; d < t.rank; ++d) {
    t.sizes[d] = sizes[d].get(core);
    if (t.sizes[d] < 0)
      core.fail(location, "dimension " + std::to_string(d) + " of size " +
                              std::to_string(t.sizes[d]));
    if (!staticSizes.empty() && staticSizes[d] >= 0 &&
        staticSizes[d] != t.sizes[d])
      core.fail(location, "dimension " + std::to_string(d) + " has size " +
                              std::to_string(t.sizes[d]) +
                              ", the result type says " +
                              std::to_string(staticSizes[d]));
    if (__builtin_mul_overflow(product, t.sizes[d], &product))
      product = -1;
  }
  if (product != before.numElements)
    core.fail(location, "reshape of " + std::to_string(before.numElements) +
                            " elements to a shape of " +
                            std::to_string(product));
}

int64_t spyre::runtime::getElementOffset(Core &core, int location,
                                         const TensorVal &t,
                                         const std::vector<int> &indices) {
  int64_t offset = 0;
  for (int d = 0; d < t.rank; ++d) {
    int64_t i = core.scalars[indices[d]].i;
    if (i < 0 || i >= t.sizes[d])
      core.fail(location, "index " + std::to_string(i) + " of dimension " +
                              std::to_string(d) + " is outside 0 to " +
                              std::to_string(t.sizes[d] - 1));
    offset = offset * t.sizes[d] + i;
  }
  return offset;
}

void ExtractInstr::run(Core &core) const {
  core.materialize(source, elem);
  const TensorVal &t = core.tensors[source];
  int64_t offset = getElementOffset(core, location, t, indices);
  core.scalars[dst] = readElement(
      static_cast<const uint8_t *>(t.data) + offset * hostSize(elem), elem);
}

/// Makes `dst` a private copy of `use`, in place if it dies.
static void ownTensor(Core &core, int dst, TensorUse use, Elem elem) {
  core.materialize(use.slot, elem);
  TensorVal &source = core.tensors[use.slot];
  if (use.dies && mayOverwrite(*source.buffer)) {
    if (dst != use.slot)
      core.moveTensor(dst, use);
    return;
  }
  TensorVal copy = source;
  core.tensors[dst].setShape(copy);
  core.allocateTensor(dst, elem, copy.numElements);
  std::memcpy(core.tensors[dst].data, copy.data,
              size_t(copy.numElements) * hostSize(elem));
}

void InsertInstr::run(Core &core) const {
  ownTensor(core, dst, dest, elem);
  TensorVal &t = core.tensors[dst];
  int64_t offset = getElementOffset(core, location, t, indices);
  writeElement(static_cast<uint8_t *>(t.data) + offset * hostSize(elem),
               core.scalars[value], elem);
}

void SliceInstr::checkSlice(Core &core, int d, int64_t size) const {
  int64_t o = offsets[d].get(core), n = sizes[d].get(core);
  int64_t s = strides[d].get(core);
  if (n < 0 || (n > 0 && (o < 0 || o >= size || o + (n - 1) * s < 0 ||
                          o + (n - 1) * s >= size)))
    core.fail(location, "slice of dimension " + std::to_string(d) +
                            " at offset " + std::to_string(o) + " with " +
                            std::to_string(n) + " elements and stride " +
                            std::to_string(s) + " leaves its size " +
                            std::to_string(size));
}

void SliceInstr::checkInserted(Core &core, int64_t found,
                               int64_t expected) const {
  if (found != expected)
    core.fail(location, "inserted tensor has " + std::to_string(found) +
                            " elements, the slice " + std::to_string(expected));
}

void SliceInstr::run(Core &core) const {
  core.materialize(source.slot, elem);
  if (isInsert)
    ownTensor(core, dst, dest, elem);
  const TensorVal large = core.tensors[isInsert ? dst : source.slot];
  size_t shape[kMaxRank];
  ptrdiff_t largeStrides[kMaxRank], smallStrides[kMaxRank];
  int64_t step = 1, offset = 0, numElements = 1;
  for (int d = large.rank - 1; d >= 0; --d) {
    int64_t o = offsets[d].get(core), n = sizes[d].get(core);
    int64_t s = strides[d].get(core);
    checkSlice(core, d, large.sizes[d]);
    shape[d] = n;
    largeStrides[d] = s * step;
    smallStrides[d] = numElements;
    offset += o * step;
    step *= large.sizes[d];
    numElements *= n;
  }
  size_t size = hostSize(elem);
  if (!isInsert) {
    TensorVal &t = core.tensors[dst];
    t.rank = 0;
    for (int d = 0; d < large.rank; ++d)
      if (!dropped[d])
        t.sizes[t.rank++] = shape[d];
    t.numElements = numElements;
    core.allocateTensor(dst, elem, numElements);
  } else {
    checkInserted(core, core.tensors[source.slot].numElements, numElements);
  }
  if (numElements == 0)
    return;
  uint8_t *big = static_cast<uint8_t *>(large.data) + offset * int64_t(size);
  uint8_t *small =
      static_cast<uint8_t *>(core.tensors[isInsert ? source.slot : dst].data);
  unsigned rank = static_cast<unsigned>(large.rank);
  if (isInsert)
    copyBox(elem, big, largeStrides, small, smallStrides, shape, rank);
  else
    copyBox(elem, small, smallStrides, big, largeStrides, shape, rank);
}

void DimInstr::run(Core &core) const {
  const TensorVal &t = core.tensors[source];
  int64_t d = core.scalars[index].i;
  if (d < 0 || d >= t.rank)
    core.fail(location, "tensor.dim of dimension " + std::to_string(d) +
                            " of a rank-" + std::to_string(t.rank) + " tensor");
  core.scalars[dst].i = t.sizes[d];
}

void PadInstr::run(Core &core) const {
  const TensorVal before = core.tensors[source.slot];
  int64_t offsets[kMaxRank], step = 1, offset = 0;
  int rank = before.rank;
  for (int d = 0; d < rank; ++d) {
    offsets[d] = low[d].get(core);
    int64_t behind = high[d].get(core);
    if (offsets[d] < 0 || behind < 0)
      core.fail(location, "negative padding of dimension " + std::to_string(d));
  }
  if (!isCopy) {
    core.releaseTensor(dst);
    std::vector<SizeSource> sizes(rank);
    for (int d = 0; d < rank; ++d) {
      if (__builtin_add_overflow(before.sizes[d], offsets[d],
                                 &sizes[d].constant) ||
          __builtin_add_overflow(sizes[d].constant, high[d].get(core),
                                 &sizes[d].constant))
        core.fail(location, "padded size overflows");
      if (staticSizes[d] >= 0 && sizes[d].constant != staticSizes[d])
        core.fail(location, "dimension " + std::to_string(d) + " has size " +
                                std::to_string(sizes[d].constant) +
                                ", the result type says " +
                                std::to_string(staticSizes[d]));
    }
    setTensorShape(core, location, core.tensors[dst], sizes);
    return;
  }
  core.materialize(source.slot, elem);
  ownTensor(core, dst, padded, elem);
  const TensorVal &from = core.tensors[source.slot];
  const TensorVal &to = core.tensors[dst];
  if (from.numElements == 0)
    return;
  size_t shape[kMaxRank];
  ptrdiff_t toStrides[kMaxRank], fromStrides[kMaxRank], inner = 1;
  for (int d = rank - 1; d >= 0; --d) {
    shape[d] = from.sizes[d];
    toStrides[d] = step;
    fromStrides[d] = inner;
    offset += offsets[d] * step;
    step *= to.sizes[d];
    inner *= from.sizes[d];
  }
  copyBox(elem, static_cast<uint8_t *>(to.data) + offset * hostSize(elem),
          toStrides, from.data, fromStrides, shape,
          static_cast<unsigned>(rank));
}
