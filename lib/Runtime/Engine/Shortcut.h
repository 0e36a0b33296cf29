// SPDX-License-Identifier: Apache-2.0
//===- Shortcut.h - Kernels that have run once before -----------*- C++ -*-===//

#ifndef SPYRE_LIB_RUNTIME_ENGINE_SHORTCUT_H
#define SPYRE_LIB_RUNTIME_ENGINE_SHORTCUT_H

#include "Core.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace spyre::runtime {

/// What is known of a kernel that has run core by core, without an error: how
/// to do the same in fewer steps. It is looked for in the second run on the
/// same kinds of arguments, and used from then on. Each kind has its own.
class Shortcut {
public:
  virtual ~Shortcut();

  /// The kind of arguments, for all shortcuts of a kernel.
  using Kind = std::vector<int64_t>;
  void kindOf(const Core &probe, const Scalar *args, Kind &result) const;
  bool isFor(const Kind &other) const { return kind == other; }
  /// Makes this one for another kind, of which nothing is known.
  void restart(const Kind &other) {
    kind = other;
    state = State::New;
  }
  /// True if there is one for these arguments, which are of its kind: size()
  /// tasks are the kernel. False if the cores are to run one by one. `probe`, a
  /// core of the kernel, has no values afterwards.
  bool prepare(Core &probe, const Scalar *args);
  /// Says that all cores have run one by one, without an error, with the
  /// arguments of the last prepare().
  void noteRun() {
    if (state == State::New)
      state = State::HasRun;
  }

  virtual int64_t size() const = 0;
  /// Runs a task, on any core of the kernel.
  virtual void run(Core &core, int64_t number) const = 0;

protected:
  /// `isFree`: per argument, whether what is found stays true for others.
  explicit Shortcut(std::vector<bool> isFree) : isFree(std::move(isFree)) {}

private:
  /// Looks for it. False if there is none; may throw Error.
  virtual bool find(Core &probe, const Scalar *args) = 0;
  /// Moves it to these arguments. False if it does not hold there.
  virtual bool place(Core &probe, const Scalar *args) = 0;
  std::vector<bool> isFree;
  Kind kind;
  enum class State { New, HasRun, Found, Without };
  State state = State::New;
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_ENGINE_SHORTCUT_H
