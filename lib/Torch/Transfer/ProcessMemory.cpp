// SPDX-License-Identifier: Apache-2.0
#include "ProcessMemory.h"
#include "../Profiling/Trace.h"

#include <cerrno>
#include <system_error>

#include <sys/prctl.h>
#include <sys/uio.h>

namespace spyre::pytorch {

void shareProcessMemory() {
  // Fails where there is no Yama, and then is not needed.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

/// Calls `move` (process_vm_readv or process_vm_writev) until all bytes are
/// moved: it takes at most 2 GiB at once.
template <class Move>
static void moveAll(Move move, const char *what, int64_t process,
                    uint64_t address, const at::Tensor &values,
                    int64_t device) {
  TORCH_CHECK(values.is_cpu() && values.is_contiguous(),
              "expected a dense CPU tensor");
  auto *own = static_cast<char *>(values.mutable_data_ptr());
  size_t left = values.nbytes();
  TransferScope scope(TransferKind::CardToCard,
                      static_cast<c10::DeviceIndex>(device),
                      static_cast<int64_t>(left));
  while (left > 0) {
    iovec here = {own, left};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): of another process
    iovec there = {reinterpret_cast<void *>(address), left};
    ssize_t moved = move(static_cast<pid_t>(process), &here, 1, &there, 1, 0);
    TORCH_CHECK(moved > 0, "cannot ", what, " the memory of process ", process,
                ": ", std::generic_category().message(moved < 0 ? errno : 0));
    own += moved;
    address += static_cast<uint64_t>(moved);
    left -= static_cast<size_t>(moved);
  }
}

void readProcess(int64_t process, uint64_t address, const at::Tensor &values,
                 int64_t device) {
  moveAll(process_vm_readv, "read", process, address, values, device);
}

void writeProcess(int64_t process, uint64_t address, const at::Tensor &values,
                  int64_t device) {
  moveAll(process_vm_writev, "write", process, address, values, device);
}

} // namespace spyre::pytorch
