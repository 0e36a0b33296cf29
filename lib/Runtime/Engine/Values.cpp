// SPDX-License-Identifier: Apache-2.0
//===- Values.cpp - What plan slots hold at run time ----------------------===//

#include "Values.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <sys/mman.h>

using namespace spyre::runtime;

// Smallest class first: 4 KiB, then doubling.
static constexpr size_t kSmallestBuffer = 4096;

// Classes of buffers from 256 KiB on, which are mapped: what is freed of the
// heap can rarely be given back.
static constexpr uint32_t kFirstLargeClass = 6;

static constexpr double kSecondsBetweenTrims = 1;

static size_t bytesOf(uint32_t sizeClass) {
  return kSmallestBuffer << sizeClass;
}

static void *allocate(uint32_t sizeClass) {
  size_t bytes = bytesOf(sizeClass);
  if (sizeClass < kFirstLargeClass)
    return std::aligned_alloc(64, bytes);
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

static void deallocate(Buffer *buffer) {
  if (buffer->sizeClass < kFirstLargeClass)
    std::free(buffer);
  else
    munmap(buffer, bytesOf(buffer->sizeClass));
}

uint64_t spyre::runtime::makeVersion() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

Buffer *BufferPool::get(size_t sizeInBytes) {
  if (kExactSizes) {
    void *p = nullptr;
    if (posix_memalign(&p, 64, 64 + sizeInBytes) != 0)
      throw std::bad_alloc();
    Buffer *buffer = new (p) Buffer;
    buffer->references = 1;
    buffer->version = 0;
    return buffer;
  }
  size_t needed = sizeInBytes + 64;
  uint32_t sizeClass = 0;
  while (bytesOf(sizeClass) < needed)
    ++sizeClass;
  if (sizeClass >= kNumClasses - 16)
    throw std::bad_alloc();
  std::vector<Buffer *> &list = freeLists[sizeClass];
  Buffer *buffer;
  if (!list.empty()) {
    buffer = list.back();
    list.pop_back();
    numUnused[sizeClass] = std::min(numUnused[sizeClass], list.size());
  } else {
    void *p = allocate(sizeClass);
    if (!p)
      throw std::bad_alloc();
    buffer = new (p) Buffer;
    buffer->sizeClass = sizeClass;
  }
  buffer->references = 1;
  buffer->version = 0;
  return buffer;
}

void BufferPool::endRun(double now) {
  if (now - lastTrim < kSecondsBetweenTrims)
    return;
  lastTrim = now;
  for (uint32_t c = kFirstLargeClass; c < kNumClasses; ++c) {
    std::vector<Buffer *> &list = freeLists[c];
    auto end = list.begin() + ptrdiff_t(numUnused[c]);
    std::for_each(list.begin(), end, deallocate);
    list.erase(list.begin(), end);
    numUnused[c] = list.size();
  }
}

size_t BufferPool::getLargeFreeBytes() const {
  size_t bytes = 0;
  for (uint32_t c = kFirstLargeClass; c < kNumClasses; ++c)
    bytes += freeLists[c].size() * bytesOf(c);
  return bytes;
}

BufferPool::~BufferPool() {
  for (std::vector<Buffer *> &list : freeLists)
    std::for_each(list.begin(), list.end(), deallocate);
}

void spyre::runtime::copyBox(Elem elem, void *dst, const ptrdiff_t *dstStrides,
                             const void *src, const ptrdiff_t *srcStrides,
                             const size_t *shape, unsigned rank) {
  const KernelTable &k = kernels();
  if (isFloat(elem))
    k.copyFloat(static_cast<float *>(dst), dstStrides,
                static_cast<const float *>(src), srcStrides, shape, rank);
  else if (isWide(elem))
    k.copyInt64(static_cast<int64_t *>(dst), dstStrides,
                static_cast<const int64_t *>(src), srcStrides, shape, rank);
  else
    k.copyInt32(static_cast<int32_t *>(dst), dstStrides,
                static_cast<const int32_t *>(src), srcStrides, shape, rank);
}
