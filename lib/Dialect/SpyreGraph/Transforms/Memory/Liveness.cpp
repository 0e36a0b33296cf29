//===- Liveness.cpp - Lifetimes of allocated buffers ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Liveness.h"

using namespace mlir;
using namespace mlir::spyre_graph;

std::vector<BufferLifetime> spyre_graph::getBufferLifetimes(func::FuncOp func) {
  // First and last program point of each operation, nested ones included.
  DenseMap<Operation *, std::pair<int64_t, int64_t>> points;
  int64_t next = 0;
  func.walk<WalkOrder::PreOrder>(
      [&](Operation *op) { points[op].first = next++; });
  func.walk<WalkOrder::PostOrder>([&](Operation *op) {
    int64_t last = points[op].first;
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (!block.empty())
          last = std::max(last, points[&block.back()].second);
    points[op].second = last;
  });

  std::vector<BufferLifetime> lifetimes;
  func.walk<WalkOrder::PreOrder>([&](memref::AllocOp alloc) {
    if (alloc->use_empty())
      return;
    BufferLifetime lifetime{alloc, next, 0, {}};
    SmallVector<Operation *> users(alloc->getUsers());
    for (Operation *user : alloc->getUsers())
      if (isa<memref::SubViewOp>(user))
        llvm::append_range(users, user->getUsers());
    for (Operation *user : users) {
      lifetime.users.push_back(user);
      Operation *ancestor = alloc->getBlock()->findAncestorOpInBlock(*user);
      lifetime.first = std::min(lifetime.first, points[ancestor].first);
      lifetime.last = std::max(lifetime.last, points[ancestor].second);
    }
    llvm::sort(lifetime.users, [&](Operation *a, Operation *b) {
      return points[a].first < points[b].first;
    });
    lifetime.users.erase(llvm::unique(lifetime.users), lifetime.users.end());
    lifetimes.push_back(std::move(lifetime));
  });
  llvm::sort(lifetimes, [&](const BufferLifetime &a, const BufferLifetime &b) {
    return std::make_pair(a.first, points[a.alloc].first) <
           std::make_pair(b.first, points[b.alloc].first);
  });
  return lifetimes;
}
