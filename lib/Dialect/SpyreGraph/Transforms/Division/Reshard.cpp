//===- Reshard.cpp - Other slices over the ring -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Reshard.h"
#include "Spyre/Device/CostModel.h"
#include "Spyre/Dialect/SpyreGraph/IR/SizeSymbols.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::spyre_graph;

WorkDivisionAttr SlicedLoops::getDivision(MLIRContext *context) const {
  bool isAscending = llvm::is_sorted(order);
  return WorkDivisionAttr::get(context, splits, chunks,
                               isAscending ? ArrayRef<int64_t>() : order);
}

void SlicedLoops::insertWhole(size_t position, ArrayRef<int64_t> wholeExtents,
                              MLIRContext *context) {
  auto count = static_cast<int64_t>(wholeExtents.size());
  for (int64_t &dim : order)
    if (dim >= static_cast<int64_t>(position))
      dim += count;
  for (auto [number, extent] : llvm::enumerate(wholeExtents)) {
    size_t dim = position + number;
    AffineExpr extentAtAll = getAffineConstantExpr(extent, context);
    extents.insert(extents.begin() + dim, extent);
    splits.insert(splits.begin() + dim, 1);
    chunks.insert(chunks.begin() + dim, extent);
    extentsAt.insert(extentsAt.begin() + dim, extentAtAll);
    chunksAt.insert(chunksAt.begin() + dim, extentAtAll);
    order.push_back(dim);
  }
  map = AffineMap::get(extents.size(), 0, map.getResults(), context);
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

namespace {
/// The part of given dimensions that each core has of a slicing, core by core.
class CoreParts {
public:
  CoreParts(const Slicing &slicing, ArrayRef<unsigned> dims)
      : numDims(dims.size()) {
    for (unsigned dim : dims)
      slices.push_back(slicing.dims[dim]);
    for (int64_t core = 0; core < slicing.numCores; ++core)
      for (unsigned dim : dims) {
        const SliceDim &slice = slicing.dims[dim];
        int64_t low = core / slice.stride % slice.split * slice.chunk;
        parts.push_back({low, std::min(low + slice.chunk, slice.extent)});
      }
  }

  /// The number of elements that core `core` has here and `otherCore` there.
  double countCommon(int64_t core, const CoreParts &other,
                     int64_t otherCore) const {
    double count = 1;
    for (unsigned dim = 0; dim < numDims && count > 0; ++dim) {
      auto [low, high] = parts[core * numDims + dim];
      auto [first, last] = other.parts[otherCore * numDims + dim];
      count *=
          std::max<int64_t>(std::min(high, last) - std::max(low, first), 0);
    }
    return count;
  }

  /// The cores, ascending, whose parts have elements of the part that
  /// `otherCore` has there: of those with the same part here, the first one.
  SmallVector<int64_t> getHolders(const CoreParts &other,
                                  int64_t otherCore) const {
    SmallVector<int64_t> holders{0};
    for (unsigned dim = 0; dim < numDims; ++dim) {
      auto [low, high] = other.parts[otherCore * numDims + dim];
      const SliceDim &slice = slices[dim];
      if (high <= low || slice.chunk <= 0)
        return {};
      int64_t last = std::min((high - 1) / slice.chunk, slice.split - 1);
      SmallVector<int64_t> next;
      for (int64_t index = low / slice.chunk; index <= last; ++index)
        for (int64_t core : holders)
          next.push_back(core + index * slice.stride);
      holders = std::move(next);
    }
    llvm::sort(holders);
    return holders;
  }

private:
  unsigned numDims;
  SmallVector<SliceDim> slices;
  SmallVector<std::pair<int64_t, int64_t>> parts;
};
} // namespace

double spyre_graph::getRingSeconds(const Slicing &from, const Slicing &to,
                                   double elementBytes,
                                   const ::spyre::DeviceSpec &spec) {
  int64_t numCores = std::max(from.numCores, to.numCores);
  int64_t ringSize = std::max(numCores, spec.numCores);
  SmallVector<unsigned> divided;
  for (auto [dim, a, b] : llvm::enumerate(from.dims, to.dims)) {
    if (a.split > 1 || b.split > 1)
      divided.push_back(dim);
    else
      elementBytes *=
          static_cast<double>(std::min({a.chunk, a.extent, b.chunk, b.extent}));
  }
  CoreParts held(from, divided), wanted(to, divided);
  // Per direction, how much more the link behind a core carries than the one
  // before it; what has gone past the end of the ring is counted on the way.
  SmallVector<double> changes[2];
  for (SmallVector<double> &direction : changes)
    direction.assign(ringSize + 1, 0);
  ::spyre::OpWork work;
  work.numCores = ringSize;
  int64_t mostHops = 0;
  for (int64_t target = 0; target < to.numCores; ++target) {
    int64_t hopsOfTarget = 0;
    for (int64_t source : held.getHolders(wanted, target)) {
      if (source == target)
        continue;
      double bytes = elementBytes * held.countCommon(source, wanted, target);
      if (bytes == 0)
        continue;
      int64_t up = (target - source + ringSize) % ringSize;
      bool isUp = up * 2 <= ringSize;
      int64_t hops = isUp ? up : ringSize - up;
      // Links are numbered by the core below them.
      int64_t first = isUp ? source : target, last = first + hops;
      SmallVector<double> &direction = changes[!isUp];
      direction[first] += bytes;
      direction[std::min(last, ringSize)] -= bytes;
      if (last > ringSize) {
        direction[0] += bytes;
        direction[last - ringSize] -= bytes;
      }
      work.ringByteHops += bytes * hops;
      hopsOfTarget += hops;
    }
    mostHops = std::max(mostHops, hopsOfTarget);
  }
  for (const SmallVector<double> &direction : changes) {
    double bytes = 0;
    for (double change : direction) {
      bytes += change;
      work.ringBytesBusiestLink = std::max(work.ringBytesBusiestLink, bytes);
    }
  }
  return ::spyre::estimateOp(work, spec).seconds +
         mostHops * spec.ringHopSeconds();
}

bool spyre_graph::isRepeatable(SpyreOpInterface op, const Target &target) {
  if (!isa<IdentityOp, RestickifyOp>(*op) || !target.allowsReplicatedCopies())
    return false;
  auto argument = dyn_cast<BlockArgument>(op->getOperand(0));
  if (!argument ||
      !isa<FunctionOpInterface>(argument.getOwner()->getParentOp()))
    return false;
  SmallVector<AffineMap> maps = op.getIndexingMaps();
  auto type = cast<ShapedType>(argument.getType());
  // Where slices cut through sticks, cores do not load the same.
  return maps.back().isPermutation() && getLayout(type) &&
         getLaneAccess(maps.front(), getLayout(type), type.getShape(),
                       op.getLoopExtents())
                 .kind != LaneAccess::Irregular;
}

bool spyre_graph::fitsLX(const Slicing &written, const Slicing &read,
                         double elementBytes, const ::spyre::DeviceSpec &spec) {
  double bytes = 0;
  auto add = [&](const Slicing &slicing) {
    double held = elementBytes;
    for (int64_t extent : slicing.getLocalShape())
      held *= static_cast<double>(extent);
    bytes += held;
  };
  add(written);
  if (written.dims != read.dims)
    add(read);
  return bytes <= static_cast<double>(spec.usableLXBytes());
}

SpyreOpInterface spyre_graph::createReshard(OpBuilder &builder, Location loc,
                                            Value source, const Slicing &from,
                                            Value target, const Slicing &to) {
  MLIRContext *context = builder.getContext();
  std::optional<SlicedLoops> held =
      getSlicedLoops(from, from.numCores, context);
  std::optional<SlicedLoops> wanted = getSlicedLoops(to, to.numCores, context);
  if (!held || !wanted)
    return nullptr;
  // Each side has loops over its own copies, which the other does not split.
  size_t numDims = from.dims.size();
  SmallVector<int64_t> copiesHeld(llvm::drop_begin(held->extents, numDims));
  SmallVector<int64_t> copiesWanted(llvm::drop_begin(wanted->extents, numDims));
  held->insertWhole(held->extents.size(), copiesWanted, context);
  wanted->insertWhole(numDims, copiesHeld, context);
  unsigned numSymbols =
      getSizeSymbols(builder.getInsertionBlock()->getParentOp()).size();
  auto getDivision = [&](const SlicedLoops &loops) {
    return loops.getDivision(context).withChunkMap(
        makeSizeMap(loops.chunksAt, numSymbols, context));
  };
  auto reshard = ReshardOp::create(builder, loc, source, target,
                                   {wanted->map, wanted->map}, wanted->extents);
  reshard.setSourceDivisionAttr(getDivision(*held));
  reshard.setLoopExtentMap(makeSizeMap(wanted->extentsAt, numSymbols, context));
  reshard.setWorkDivision(getDivision(*wanted));
  return reshard;
}
