// SPDX-License-Identifier: Apache-2.0
//===- LinkageTest.cpp - What the runtime links ---------------------------===//

#include "gtest/gtest.h"

#include <link.h>

#include <string>

/// Counts loaded libraries whose names hold a text.
static int countLibraries(const char *part) {
  std::pair<std::string, int> state{part, 0};
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *data) {
        auto &[text, count] = *static_cast<std::pair<std::string, int> *>(data);
        count += std::string(info->dlpi_name).find(text) != std::string::npos;
        return 0;
      },
      &state);
  return state.second;
}

// The loader brings MLIR; these tests have none.
TEST(Linkage, RuntimeLinksNoMLIR) {
  EXPECT_EQ(countLibraries("libMLIR"), 0);
  EXPECT_EQ(countLibraries("libc.so"), 1);
}
