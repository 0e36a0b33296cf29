// SPDX-License-Identifier: Apache-2.0
//===- Fiber.cpp - A function with a stack of its own ---------------------===//

#include "Fiber.h"
#include "Spyre/Support/Error.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SPYRE_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define SPYRE_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SPYRE_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define SPYRE_TSAN 1
#endif
#if defined(SPYRE_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(SPYRE_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

using namespace spyre::runtime;

//===----------------------------------------------------------------------===//
// Stacks
//===----------------------------------------------------------------------===//

namespace {
/// Stacks that are not in use, kept because each kernel call needs many.
struct IdleStacks {
  std::mutex mutex;
  std::vector<void *> stacks;
};
} // namespace

static constexpr size_t kMaxIdleStacks = 64;

static IdleStacks &idleStacks() {
  // Never destroyed: programs may outlive static destructors.
  static IdleStacks *idle = new IdleStacks;
  return *idle;
}

static size_t pageBytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// Returns the lowest usable byte of a stack; the page below it faults.
static void *takeStack() {
  {
    IdleStacks &idle = idleStacks();
    std::lock_guard<std::mutex> lock(idle.mutex);
    if (!idle.stacks.empty()) {
      void *stack = idle.stacks.back();
      idle.stacks.pop_back();
      return stack;
    }
  }
  size_t page = pageBytes();
  void *memory =
      mmap(nullptr, page + Fiber::kStackBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) != 0) {
    int error = errno;
    if (memory != MAP_FAILED)
      munmap(memory, page + Fiber::kStackBytes);
    throw spyre::Error(std::string("cannot allocate the stack of a core: ") +
                       std::strerror(error));
  }
  return static_cast<char *>(memory) + page;
}

static void giveStack(void *stack) {
  {
    IdleStacks &idle = idleStacks();
    std::lock_guard<std::mutex> lock(idle.mutex);
    if (idle.stacks.size() < kMaxIdleStacks) {
      idle.stacks.push_back(stack);
      return;
    }
  }
  munmap(static_cast<char *>(stack) - pageBytes(),
         pageBytes() + Fiber::kStackBytes);
}

//===----------------------------------------------------------------------===//
// Fiber
//===----------------------------------------------------------------------===//

Fiber::Fiber(std::function<void()> body)
    : body(std::move(body)), stack(takeStack()) {
  getcontext(&own);
  own.uc_stack.ss_sp = stack;
  own.uc_stack.ss_size = kStackBytes;
  own.uc_link = nullptr;
  auto self = reinterpret_cast<uintptr_t>(this);
  // makecontext() passes on arguments of type int only.
  makecontext(&own, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              static_cast<unsigned>(uint64_t(self) >> 32),
              static_cast<unsigned>(self));
#if defined(SPYRE_TSAN)
  ownShadow = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(SPYRE_TSAN)
  __tsan_destroy_fiber(ownShadow);
#endif
  giveStack(stack);
}

void Fiber::resume() {
#if defined(SPYRE_ASAN)
  __sanitizer_start_switch_fiber(&resumerShadow, stack, kStackBytes);
#elif defined(SPYRE_TSAN)
  resumerShadow = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(ownShadow, 0);
#endif
  swapcontext(&resumer, &own);
#if defined(SPYRE_ASAN)
  __sanitizer_finish_switch_fiber(resumerShadow, nullptr, nullptr);
#endif
}

void Fiber::switchBack() {
#if defined(SPYRE_ASAN)
  __sanitizer_start_switch_fiber(ended ? nullptr : &ownShadow, resumerStack,
                                 resumerStackBytes);
#elif defined(SPYRE_TSAN)
  __tsan_switch_to_fiber(resumerShadow, 0);
#endif
  swapcontext(&own, &resumer);
}

void Fiber::suspend() {
  switchBack();
#if defined(SPYRE_ASAN)
  __sanitizer_finish_switch_fiber(ownShadow, &resumerStack, &resumerStackBytes);
#endif
}

void Fiber::enter(unsigned high, unsigned low) {
  auto *self = reinterpret_cast<Fiber *>(
      static_cast<uintptr_t>(uint64_t(high) << 32 | low));
#if defined(SPYRE_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &self->resumerStack,
                                  &self->resumerStackBytes);
#endif
  self->body();
  self->ended = true;
  self->switchBack();
}
