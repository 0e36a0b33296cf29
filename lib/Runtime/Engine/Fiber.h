// SPDX-License-Identifier: Apache-2.0
//===- Fiber.h - A function with a stack of its own -------------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_FIBER_H
#define SPYRE_LIB_RUNTIME_ENGINE_FIBER_H

#include <cstddef>
#include <functional>
#include <ucontext.h>

namespace spyre::runtime {

/// A function that can suspend itself, and is resumed until it ends. Only one
/// thread at a time may resume it, but not always the same one.
class Fiber {
public:
  /// Bytes of each stack, without the guard page below it.
  static constexpr size_t kStackBytes = size_t(1) << 20;

  /// `body` must not throw. Throws Error if there is no room for the stack.
  explicit Fiber(std::function<void()> body);
  /// May be destroyed only before the first resume(), or after it has ended.
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  /// Runs the function on the calling thread until it suspends itself or ends.
  void resume();
  /// Called by the function: returns control to the thread that resumed it.
  void suspend();
  bool isEnded() const { return ended; }

private:
  static void enter(unsigned high, unsigned low);
  void switchBack();

  std::function<void()> body;
  void *stack;
  ucontext_t own, resumer;
  bool ended = false;
  // Information about the two stacks, for sanitizers.
  [[maybe_unused]] void *ownShadow = nullptr;
  [[maybe_unused]] void *resumerShadow = nullptr;
  [[maybe_unused]] const void *resumerStack = nullptr;
  [[maybe_unused]] size_t resumerStackBytes = 0;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_FIBER_H
