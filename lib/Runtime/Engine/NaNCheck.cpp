// SPDX-License-Identifier: Apache-2.0
//===- NaNCheck.cpp - What --check=full watches of values -----------------===//

#include "NaNCheck.h"

#include <cstdio>
#include <string>

using namespace spyre::runtime;

bool spyre::runtime::hasNaN(const float *values, int64_t n) {
  bool found = false;
  for (int64_t i = 0; i < n; ++i)
    found |= values[i] != values[i];
  return found;
}

void spyre::runtime::checkForNaN(Core &core, const ScalarOp &op,
                                 const float *values, size_t n,
                                 const float *const *operands,
                                 const size_t *steps, int numOperands) {
  if (!hasNaN(values, static_cast<int64_t>(n)))
    return;
  for (size_t i = 0; i < n; ++i) {
    if (values[i] == values[i])
      continue;
    bool isPassedOn = false;
    std::string from;
    for (int k = 0; k < numOperands; ++k) {
      float x = operands[k][i * steps[k]];
      isPassedOn |= x != x;
      char text[32];
      std::snprintf(text, sizeof(text), "%s%g", k ? " and " : "", double(x));
      from += text;
    }
    if (!isPassedOn)
      core.failWithNaN(op.location, core.plan.operationNames[op.name], from);
  }
}
