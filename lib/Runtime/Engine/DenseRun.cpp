// SPDX-License-Identifier: Apache-2.0
#include "DenseRun.h"
#include "ScalarRun.h"

#include <algorithm>

using namespace spyre;
using namespace spyre::runtime;

/// Loads `n` dense elements.
static void loadRun(Elem elem, bool ieee, const uint8_t *src, void *dst,
                    size_t n) {
  const KernelTable &table = kernels();
  ElementFormat format = elementFormat(elem, ieee);
  const ptrdiff_t step = 1;
  if (isFloat(elem))
    table.loadFloatRun(format, src, static_cast<float *>(dst), n);
  else if (isWide(elem))
    table.loadInt64(format, static_cast<int64_t *>(dst), &step, src, &step, &n,
                    1);
  else
    table.loadInt32(format, static_cast<int32_t *>(dst), &step, src, &step, &n,
                    1);
}

/// Stores `n` dense elements; `from` is 0 if all have the first one's value.
static void storeRun(Elem elem, bool ieee, const void *src, ptrdiff_t from,
                     uint8_t *dst, size_t n) {
  const KernelTable &table = kernels();
  ElementFormat format = elementFormat(elem, ieee);
  const ptrdiff_t step = 1;
  if (isFloat(elem) && from == 1)
    table.storeFloatRun(format, static_cast<const float *>(src), dst, n);
  else if (isFloat(elem))
    table.storeFloat(format, dst, &step, static_cast<const float *>(src), &from,
                     &n, 1);
  else if (isWide(elem))
    table.storeInt64(format, dst, &step, static_cast<const int64_t *>(src),
                     &from, &n, 1);
  else
    table.storeInt32(format, dst, &step, static_cast<const int32_t *>(src),
                     &from, &n, 1);
}

void spyre::runtime::runOnDense(Core &core, const StructuredLoop &loop,
                                const std::vector<bool> &isOne,
                                uint8_t *const *places, int64_t count) {
  const ScalarProgram &body = loop.body;
  auto numInputs = static_cast<int>(loop.inputs.size());
  auto numOutputs = static_cast<int>(loop.outputs.size());
  ScalarFrame frame;
  enterProgram(core, body, frame);
  // A chain that makes the only result writes codes.
  int result = body.yields[0];
  bool makesCodes = loop.outputs.size() == 1 && body.endsChain(result) &&
                    loop.outputs[0].elem == Elem::F16 && !core.ieee;
  for (int64_t start = 0; start < count; start += kBlock) {
    auto n = static_cast<size_t>(std::min(count - start, kBlock));
    for (int k = 0; k < numInputs; ++k) {
      if (isOne[k] && start > 0)
        continue;
      Elem elem = loop.inputs[k].elem;
      void *values = scratchBuffer(core, body.numScratch + k);
      loadRun(elem, core.ieee, places[k] + start * deviceSize(elem), values,
              isOne[k] ? 1 : n);
      frame.ptr[body.inputs[k]] = values;
      frame.step[body.inputs[k]] = isOne[k] ? 0 : 1;
    }
    if (makesCodes) {
      frame.codes = result;
      frame.ptr[result] = places[numInputs] + start * int64_t(sizeof(uint16_t));
    }
    runProgram(core, body, frame, n, /*keepUniform=*/start > 0);
    for (int k = numInputs; k < numInputs + numOutputs; ++k) {
      Elem elem = loop.outputs[k - numInputs].elem;
      int reg = body.yields[k - numInputs];
      if (makesCodes && frame.step[reg] == 1)
        continue;
      storeRun(elem, core.ieee, frame.ptr[reg], frame.step[reg],
               places[k] + start * deviceSize(elem), n);
    }
  }
}
