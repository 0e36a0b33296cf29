// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Support/Philox.h"

#include "gtest/gtest.h"

using namespace spyre;

// The known answers that the generator's authors publish (Random123,
// kat_vectors).
TEST(PhiloxTest, knownAnswers) {
  EXPECT_EQ(philox4x32(PhiloxBlock{0, 0, 0, 0}, 0),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32(PhiloxBlock{~0u, ~0u, ~0u, ~0u}, ~uint64_t(0)),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32(PhiloxBlock{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                 0x299f31d0a4093822),
      (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, wideCounter) {
  EXPECT_EQ(philox4x32(uint64_t(0x500000007), 9),
            philox4x32(PhiloxBlock{7, 5, 0, 0}, 9));
}
