//===- Reshard.cpp - Other slices over the ring -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Reshard.h"
#include "Spyre/Device/CostModel.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"

using namespace mlir;
using namespace mlir::spyre_graph;

WorkDivisionAttr SlicedLoops::getDivision(MLIRContext *context) const {
  bool isAscending = llvm::is_sorted(order);
  return WorkDivisionAttr::get(context, splits, chunks,
                               isAscending ? ArrayRef<int64_t>() : order);
}

int64_t spyre_graph::getNumCopies(const Slicing &slicing) {
  int64_t numSlices = 1;
  for (const SliceDim &dim : slicing.dims)
    numSlices *= dim.split;
  return slicing.numCores / numSlices;
}

std::optional<SlicedLoops> spyre_graph::getSlicedLoops(const Slicing &slicing,
                                                       int64_t maxCopies,
                                                       MLIRContext *context) {
  if (getNumCopies(slicing) > maxCopies)
    return std::nullopt;
  SlicedLoops loops;
  SmallVector<unsigned> split;
  for (auto [dim, slice] : llvm::enumerate(slicing.dims)) {
    loops.extents.push_back(slice.extent);
    loops.splits.push_back(slice.split);
    loops.chunks.push_back(slice.split == 1 ? slice.extent : slice.chunk);
    auto number = [&](int64_t value) {
      return getAffineConstantExpr(value, context);
    };
    loops.extentsAt.push_back(slice.extentAt ? slice.extentAt
                                             : number(slice.extent));
    loops.chunksAt.push_back(slice.extentAt && slice.split > 1 ? slice.chunkAt
                             : slice.split > 1 ? number(slice.chunk)
                                               : loops.extentsAt.back());
    if (slice.split > 1)
      split.push_back(dim);
  }
  llvm::sort(split, [&](unsigned a, unsigned b) {
    return slicing.dims[a].stride < slicing.dims[b].stride;
  });
  int64_t coresUsed = 1;
  auto addCopies = [&](int64_t count) {
    loops.order.push_back(loops.extents.size());
    loops.extents.push_back(count);
    loops.splits.push_back(count);
    loops.chunks.push_back(1);
    loops.extentsAt.push_back(getAffineConstantExpr(count, context));
    loops.chunksAt.push_back(getAffineConstantExpr(1, context));
    coresUsed *= count;
  };
  for (unsigned dim : split) {
    const SliceDim &slice = slicing.dims[dim];
    if (slice.stride % coresUsed != 0)
      return std::nullopt;
    if (slice.stride != coresUsed)
      addCopies(slice.stride / coresUsed);
    loops.order.push_back(dim);
    coresUsed *= slice.split;
  }
  if (slicing.numCores % coresUsed != 0)
    return std::nullopt;
  if (slicing.numCores != coresUsed)
    addCopies(slicing.numCores / coresUsed);
  for (unsigned dim = 0; dim < slicing.dims.size(); ++dim)
    if (slicing.dims[dim].split == 1)
      loops.order.push_back(dim);
  SmallVector<AffineExpr> results;
  for (unsigned dim = 0; dim < slicing.dims.size(); ++dim)
    results.push_back(getAffineDimExpr(dim, context));
  loops.map = AffineMap::get(loops.extents.size(), 0, results, context);
  return loops;
}

double spyre_graph::getRingSeconds(const Slicing &from, const Slicing &to,
                                   double elementBytes,
                                   const ::spyre::DeviceSpec &spec) {
  auto getPart = [](const Slicing &slicing, unsigned dim, int64_t core) {
    const SliceDim &slice = slicing.dims[dim];
    int64_t low = core / slice.stride % slice.split * slice.chunk;
    return std::make_pair(low, std::min(low + slice.chunk, slice.extent));
  };
  int64_t numCores = std::max(from.numCores, to.numCores);
  int64_t ringSize = std::max(numCores, spec.numCores);
  SmallVector<double> links[2];
  for (SmallVector<double> &direction : links)
    direction.assign(ringSize, 0);
  ::spyre::OpWork work;
  work.numCores = ringSize;
  int64_t mostHops = 0;
  for (int64_t target = 0; target < to.numCores; ++target) {
    int64_t hopsOfTarget = 0;
    for (int64_t source = 0; source < from.numCores; ++source) {
      double bytes = source == target ? 0 : elementBytes;
      for (unsigned dim = 0; dim < from.dims.size() && bytes > 0; ++dim) {
        auto [low, high] = getPart(from, dim, source);
        auto [first, last] = getPart(to, dim, target);
        bytes *=
            std::max<int64_t>(std::min(high, last) - std::max(low, first), 0);
      }
      if (bytes == 0)
        continue;
      int64_t up = (target - source + ringSize) % ringSize;
      bool isUp = up * 2 <= ringSize;
      int64_t hops = isUp ? up : ringSize - up;
      for (int64_t hop = 0; hop < hops; ++hop)
        links[!isUp][isUp ? (source + hop) % ringSize
                          : (source - hop + ringSize) % ringSize] += bytes;
      work.ringByteHops += bytes * hops;
      hopsOfTarget += hops;
    }
    mostHops = std::max(mostHops, hopsOfTarget);
  }
  for (const SmallVector<double> &direction : links)
    for (double bytes : direction)
      work.ringBytesBusiestLink = std::max(work.ringBytesBusiestLink, bytes);
  return ::spyre::estimateOp(work, spec).seconds +
         mostHops * spec.ringHopSeconds();
}

SpyreOpInterface spyre_graph::createReshard(OpBuilder &builder, Location loc,
                                            Value source, const Slicing &from,
                                            Value target, const Slicing &to) {
  MLIRContext *context = builder.getContext();
  std::optional<SlicedLoops> held = getSlicedLoops(from, 1, context);
  std::optional<SlicedLoops> wanted = getSlicedLoops(to, to.numCores, context);
  if (!held || !wanted)
    return nullptr;
  // On the side on which each part exists once, the loops over copies are not
  // split.
  for (unsigned dim = held->extents.size(); dim < wanted->extents.size();
       ++dim) {
    held->splits.push_back(1);
    held->chunks.push_back(wanted->extents[dim]);
    held->chunksAt.push_back(wanted->extentsAt[dim]);
    held->order.push_back(dim);
  }
  unsigned numSymbols =
      getSizeSymbols(builder.getInsertionBlock()->getParentOp()).size();
  auto getDivision = [&](const SlicedLoops &loops) {
    return loops.getDivision(context).withChunkMap(
        makeSizeMap(loops.chunksAt, numSymbols, context));
  };
  auto reshard = ReshardOp::create(
      builder, loc, source, target, {wanted->map, wanted->map}, wanted->extents,
      builder.getNamedAttr("source_division", getDivision(*held)));
  reshard.setLoopExtentMap(makeSizeMap(wanted->extentsAt, numSymbols, context));
  reshard.setWorkDivision(getDivision(*wanted));
  return reshard;
}
