// SPDX-License-Identifier: Apache-2.0
#include "Shortcut.h"

using namespace spyre;
using namespace spyre::runtime;

Shortcut::~Shortcut() = default;

void Shortcut::kindOf(const Core &probe, const Scalar *args,
                      Kind &result) const {
  const DeviceMemory &memory = *probe.memory;
  result.assign({reinterpret_cast<intptr_t>(memory.at(0)),
                 reinterpret_cast<intptr_t>(memory.lx(0)),
                 memory.lxSizeInBytes(), memory.spanInBytes(),
                 int64_t(probe.check)});
  for (size_t i = 0; i < isFree.size(); ++i)
    if (!isFree[i])
      result.push_back(args[i].i);
}

bool Shortcut::prepare(Core &probe, const Scalar *args) {
  if (state == State::HasRun) {
    state = State::Without;
    try {
      if (find(probe, args))
        state = State::Found;
    } catch (const Error &) {
      // The cores will say it.
    }
  }
  return state == State::Found && place(probe, args);
}
