// SPDX-License-Identifier: Apache-2.0
//===- RuntimeLog.h - What the runtime tells Python's logging ---*- C++ -*-===//

#ifndef SPYRE_LIB_TORCH_CARD_RUNTIMELOG_H
#define SPYRE_LIB_TORCH_CARD_RUNTIMELOG_H

#include <torch/csrc/python_headers.h>

#include <string>

namespace spyre::pytorch {

/// Whether the component spyre.runtime shows its messages: build none
/// otherwise.
bool isRuntimeLogged() noexcept;

/// A message of the calling thread, which holds no lock that a thread with
/// Python's may wait for.
void logRuntime(const std::string &message);

/// Calls `callable` with every message from now on; None: tells nobody. The
/// caller holds Python's lock.
void setRuntimeLog(PyObject *callable);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_CARD_RUNTIMELOG_H
