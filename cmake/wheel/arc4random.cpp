// SPDX-License-Identifier: Apache-2.0
//
// LLVM's archives call arc4random, which glibc has since 2.36. With this one,
// libSpyre.so runs where glibc is older. Nothing outside of it sees it.

#include <cstdint>
#include <sys/random.h>

extern "C" uint32_t arc4random() noexcept {
  uint32_t value = 0;
  // A signal may interrupt it until the kernel has gathered enough randomness.
  while (getrandom(&value, sizeof(value), 0) != sizeof(value))
    continue;
  return value;
}
