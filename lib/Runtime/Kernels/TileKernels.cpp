// SPDX-License-Identifier: Apache-2.0
//===- TileKernels.cpp - Choice of the instruction set --------------------===//
//
// The only file of the kernels that is compiled once, for the oldest processor.
//
//===----------------------------------------------------------------------===//

#include "Spyre/Runtime/Kernels/TileKernels.h"
#include "Spyre/Support/Environment.h"

#include <limits>
#include <string>

namespace spyre::runtime {

namespace baseline {
const KernelTable *table();
} // namespace baseline
#ifdef SPYRE_KERNELS_X86
namespace avx2 {
const KernelTable *table();
} // namespace avx2
namespace avx512 {
const KernelTable *table();
} // namespace avx512
namespace amx {
const KernelTable *table();
} // namespace amx
#endif

float reduceIdentity(ReduceOp op) {
  using Limits = std::numeric_limits<float>;
  switch (op) {
  case ReduceOp::Sum:
    return 0.0f;
  case ReduceOp::Mul:
    return 1.0f;
  case ReduceOp::Max:
  case ReduceOp::MaxWithoutNaN:
    return -Limits::infinity();
  case ReduceOp::Min:
  case ReduceOp::MinWithoutNaN:
    return Limits::infinity();
  case ReduceOp::MaxNum:
  case ReduceOp::MinNum:
    return Limits::quiet_NaN();
  }
  return 0.0f;
}

std::vector<const KernelTable *> kernelVariants() {
  std::vector<const KernelTable *> variants = {baseline::table()};
#ifdef SPYRE_KERNELS_X86
  // Exactly the features that the files are compiled for.
  __builtin_cpu_init();
  bool hasAVX2 = __builtin_cpu_supports("avx2") &&
                 __builtin_cpu_supports("fma") &&
                 __builtin_cpu_supports("bmi2");
  if (hasAVX2)
    variants.push_back(avx2::table());
  bool hasAVX512 = hasAVX2 && __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl");
  if (hasAVX512)
    variants.push_back(avx512::table());
  if (hasAVX512 && __builtin_cpu_supports("amx-tile") &&
      __builtin_cpu_supports("amx-bf16") && amx::table())
    variants.push_back(amx::table());
#endif
  return variants;
}

static const KernelTable *chooseKernels() {
  std::vector<const KernelTable *> variants = kernelVariants();
  std::string wanted = environment::cpuCapability();
  if (wanted.empty())
    return variants.back();
  std::string names;
  for (const KernelTable *table : variants) {
    if (table->name == wanted)
      return table;
    names += std::string(names.empty() ? "" : ", ") + table->name;
  }
  environment::fail("SPYRE_CPU_CAPABILITY", "on this host one of " + names,
                    wanted);
}

const KernelTable &kernels() {
  static const KernelTable &chosen = *chooseKernels();
  return chosen;
}

} // namespace spyre::runtime
