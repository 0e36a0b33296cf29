// SPDX-License-Identifier: Apache-2.0
//===- DeviceOps.h - The operations that SuperDSC names ---------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_MODEL_DEVICEOPS_H
#define SPYRE_TARGET_SUPERDSC_MODEL_DEVICEOPS_H

#include "Spyre/Target/SuperDSC/Model/Model.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spyre::superdsc {

/// Families with rules of their own (spec/superdsc.md, "OpFunc strings").
enum class OpKind {
  Pointwise,
  Identity,
  Reduction,
  Matmul,
  Convolution,
  Pooling,
  TopK,
  Conversion,
  Quantization,
  Restickify,
  /// Of this project: scans, scatters and operations without inputs.
  Other
};

/// One device operation.
struct DeviceOp {
  std::string_view name;
  OpKind kind;
  /// Number of operands that are not the result; immediates count.
  unsigned minInputs, maxInputs;
  /// Constants by name, in order; a trailing `?` marks one that may be absent.
  std::vector<std::string_view> constants;
  /// Not one of the 78 published names.
  bool isExtension;
  /// The operation of spyre_graph that executes it, without the dialect's
  /// name; empty if none does.
  std::string_view graphOp;
  /// Reductions have a nonstick variant.
  bool hasNonstick = false;
};

/// Every operation, published ones first.
const std::vector<DeviceOp> &getDeviceOps();

/// By name with or without the suffix "nonstick"; null if unknown. `nonstick`
/// is set if the suffix was one.
const DeviceOp *findDeviceOp(std::string_view opFunc, bool &nonstick);

/// Name of the constant that stands for logical operand `position`
/// (an extension: the reference makes a tensor of a scalar).
std::string getImmediateName(unsigned position);
/// The position in such a name, or -1.
int getImmediatePosition(std::string_view name);

/// Suffix of the constant after an IEEE_INT32 one that holds the upper word of
/// an integer of 64 bits (an extension).
inline constexpr const char *kHighWord = "High";

/// Name of the constant that masked padding counts as.
inline constexpr std::string_view kMaskConstant = "samv-maskvalue";

/// What masked padding counts as in a reduction, by its name without
/// "nonstick".
double getMaskValue(std::string_view op);

/// The value of a constant, or nothing if its format holds no such number.
std::optional<double> getNumber(const Constant &constant);

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_MODEL_DEVICEOPS_H
