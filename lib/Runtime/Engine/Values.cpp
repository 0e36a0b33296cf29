// SPDX-License-Identifier: Apache-2.0
//===- Values.cpp - What plan slots hold at run time ----------------------===//

#include "Values.h"

#include <new>

using namespace spyre::runtime;

// Smallest class first: 4 KiB, then doubling.
static constexpr size_t kSmallestBuffer = 4096;

Buffer *BufferPool::get(size_t sizeInBytes) {
  if (kExactSizes) {
    void *p = nullptr;
    if (posix_memalign(&p, 64, 64 + sizeInBytes) != 0)
      throw std::bad_alloc();
    Buffer *buffer = new (p) Buffer;
    buffer->references = 1;
    return buffer;
  }
  size_t needed = sizeInBytes + 64;
  uint32_t sizeClass = 0;
  while ((kSmallestBuffer << sizeClass) < needed)
    ++sizeClass;
  if (sizeClass >= kNumClasses - 16)
    throw std::bad_alloc();
  std::vector<Buffer *> &list = freeLists[sizeClass];
  Buffer *buffer;
  if (!list.empty()) {
    buffer = list.back();
    list.pop_back();
  } else {
    void *p = std::aligned_alloc(64, kSmallestBuffer << sizeClass);
    if (!p)
      throw std::bad_alloc();
    buffer = new (p) Buffer;
    buffer->sizeClass = sizeClass;
  }
  buffer->references = 1;
  return buffer;
}

BufferPool::~BufferPool() {
  for (std::vector<Buffer *> &list : freeLists)
    for (Buffer *buffer : list)
      std::free(buffer);
}
