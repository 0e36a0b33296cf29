// SPDX-License-Identifier: Apache-2.0
#include "DenseRun.h"
#include "ScalarRun.h"

#include <algorithm>

using namespace spyre;
using namespace spyre::runtime;

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

void spyre::runtime::runChain(Core &core, const StructuredLoop &loop,
                              const std::vector<ChainInput> &inputs,
                              uint8_t *results, int64_t count) {
  const ScalarProgram &body = loop.body;
  const ScalarOp &op = body.ops.front();
  ScalarFrame frame;
  enterProgram(core, body, frame);
  constexpr auto bytes = static_cast<int64_t>(sizeof(uint16_t));
  for (int64_t start = 0, next; start < count; start = next) {
    next = count;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const ChainInput &input = inputs[k];
      int reg = body.inputs[k];
      frame.step[reg] = input.codes ? 1 : 0;
      if (!input.codes) {
        frame.ptr[reg] = const_cast<float *>(&input.value);
        continue;
      }
      int64_t at = start % input.period;
      frame.ptr[reg] = const_cast<uint8_t *>(input.codes + at * bytes);
      if (input.period - at < next - start)
        next = start + input.period - at;
    }
    ChainSteps chain(&op, frame, core.ieee);
    kernels().chainOfCodes(frame.ptr[op.a], frame.step[op.a], chain.steps,
                           op.chain, results + start * bytes,
                           static_cast<size_t>(next - start));
  }
}
