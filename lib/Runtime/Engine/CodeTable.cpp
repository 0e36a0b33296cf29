// SPDX-License-Identifier: Apache-2.0
#include "CodeTable.h"
#include "DenseRun.h"

#include <algorithm>
#include <numeric>

using namespace spyre;
using namespace spyre::runtime;

// So many points make it worth running a loop on all codes.
static constexpr int64_t kWorthTable = 4 * CodeTable::kCodes;

bool CodeTable::isFor(const StructuredLoop &loop) {
  const ScalarProgram &body = loop.body;
  auto isNarrow = [](const LoopOperand &operand) {
    return deviceSize(operand.elem) == sizeof(uint16_t);
  };
  bool isExp = body.ops.size() == 1 && body.ops[0].kind == ScalarOp::Unary &&
               UnaryOp(body.ops[0].op) == UnaryOp::Exp;
  return loop.strategy == StructuredLoop::Parallel && !loop.hasIndex &&
         !loop.inputs.empty() && loop.outputs.size() == 1 &&
         std::all_of(loop.inputs.begin(), loop.inputs.end(), isNarrow) &&
         isNarrow(loop.outputs[0]) && body.captured.empty() &&
         body.transcendentalsPerPoint > 0 && !isExp;
}

const uint16_t *CodeTable::find(Core &core, const StructuredLoop &loop,
                                int64_t points) {
  if (numPoints.fetch_add(points, std::memory_order_relaxed) + points <
      kWorthTable)
    return nullptr;
  std::call_once(made, [&] {
    std::vector<uint16_t> codes(kCodes), found(kCodes);
    std::iota(codes.begin(), codes.end(), uint16_t(0));
    std::vector<uint8_t *> places(loop.inputs.size(),
                                  reinterpret_cast<uint8_t *>(codes.data()));
    places.push_back(reinterpret_cast<uint8_t *>(found.data()));
    std::vector<bool> isOne(places.size(), false);
    runOnDense(core, loop, isOne, places.data(), kCodes);
    results = std::move(found);
    ++core.work.tables;
  });
  return results.data();
}
