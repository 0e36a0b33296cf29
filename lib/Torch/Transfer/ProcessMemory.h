// SPDX-License-Identifier: Apache-2.0
//===- ProcessMemory.h - Memory of other processes --------------*- C++ -*-===//
//
// The ranks of one machine reach each other's tensors where these are, so that
// a collective moves each byte once (process_vm_readv(2)).
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_TORCH_TRANSFER_PROCESSMEMORY_H
#define SPYRE_LIB_TORCH_TRANSFER_PROCESSMEMORY_H

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace spyre::pytorch {

/// Lets all processes of the same user read and write the memory of this one.
/// Kernels with the Yama module allow that to its ancestors only, others to all
/// of them anyway.
void shareProcessMemory();

/// Copies from `address` in the memory of a process into `values`, a dense CPU
/// tensor, or the other way round. Traces a transfer between `device`, the
/// index of a card of this process, and the other's card. Throws if the process
/// has ended, does not have such memory, or may not be reached.
void readProcess(int64_t process, uint64_t address, const at::Tensor &values,
                 int64_t device);
void writeProcess(int64_t process, uint64_t address, const at::Tensor &values,
                  int64_t device);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_TRANSFER_PROCESSMEMORY_H
