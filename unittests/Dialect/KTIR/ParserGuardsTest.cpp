// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Dialect/KTIR/IR/ParserGuards.h"

#include "llvm/ADT/SmallVector.h"

#include "gtest/gtest.h"

TEST(ParserGuardsDeathTest, FatalErrorsEndTheToolWithStatus1) {
  auto grow = [] {
    mlir::ktdp::exitOnFatalErrors();
    // What the bytecode reader does with a count that nobody checks.
    llvm::SmallVector<int, 0> values;
    values.reserve(size_t(1) << 40);
  };
  EXPECT_EXIT(grow(), testing::ExitedWithCode(1),
              "^error: SmallVector unable to grow");
}
