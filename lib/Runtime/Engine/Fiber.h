// SPDX-License-Identifier: Apache-2.0
//===- Fiber.h - A function with a stack of its own -------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_FIBER_H
#define SPYRE_LIB_RUNTIME_ENGINE_FIBER_H

#include <cstddef>
#include <functional>
#include <ucontext.h>

namespace spyre::runtime {

/// Runs until it suspends itself or ends; resumed by one thread at a time, not
/// always the same one.
class Fiber {
public:
  /// Of each stack, beside the page below it that may not be touched.
  static constexpr size_t kStackBytes = size_t(1) << 20;

  /// `body` must not throw. Throws Error if there is no room for the stack.
  explicit Fiber(std::function<void()> body);
  /// Only before the first resume() or after the end.
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  /// Runs it on the calling thread until it suspends itself or ends.
  void resume();
  /// From within: back to the thread that resumed it.
  void suspend();
  bool isEnded() const { return ended; }

private:
  static void enter(unsigned high, unsigned low);
  void switchBack();

  std::function<void()> body;
  void *stack;
  ucontext_t own, resumer;
  bool ended = false;
  // What a sanitizer knows of the two stacks.
  [[maybe_unused]] void *ownShadow = nullptr;
  [[maybe_unused]] void *resumerShadow = nullptr;
  [[maybe_unused]] const void *resumerStack = nullptr;
  [[maybe_unused]] size_t resumerStackBytes = 0;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_FIBER_H
