// SPDX-License-Identifier: Apache-2.0
//===- DeviceOps.h - The operations that SuperDSC names ---------*- C++ -*-===//
//
// The table is made from DeviceOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_TARGET_SUPERDSC_MODEL_DEVICEOPS_H
#define SPYRE_TARGET_SUPERDSC_MODEL_DEVICEOPS_H

#include "Spyre/Target/SuperDSC/Model/Model.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>
#include <string>
#include <string_view>

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
  // Extensions of this project.
  Scatter,
  /// Scans, sorts, operations without inputs.
  Other
};

/// The form of a constant in the operation that executes: an attribute of that
/// type, an immediate, or none.
enum class ConstantKind {
  Float,
  FloatFlag,
  Flag,
  Integer,
  Number,
  LoopDim,
  Bound,
  Unread
};

/// A constant of a device operation.
struct DeviceOpConstant {
  std::string_view op;
  /// Among the operation's constants.
  unsigned position;
  std::string_view name;
  ConstantKind kind;
  std::string_view attribute;
  /// A bundle may lack it.
  bool isOptional;
  /// Integer: the least one. Bound: the operand's position.
  int number;
  /// A value that is not written.
  std::optional<double> omitted;
};

/// One device operation.
struct DeviceOp {
  /// The name is not one of the 78 published ones.
  bool isExtension;
  std::string_view name;
  OpKind kind;
  /// Number of operands that are not the result; immediates count.
  unsigned minInputs, maxInputs;
  /// The operation of spyre_graph that executes it, without the dialect's
  /// name; empty if none does.
  std::string_view graphOp;
  /// Reductions have a nonstick variant.
  bool hasNonstick;
  /// Attributes of that operation under this name, in MLIR's syntax.
  std::string_view attributes;
  /// That operation takes the two inputs the other way round.
  bool swapsInputs;
  /// The value of masked padding.
  double maskValue;

  llvm::ArrayRef<DeviceOpConstant> getConstants() const;
};

/// Every operation, published ones first, each part sorted by name.
llvm::ArrayRef<DeviceOp> getDeviceOps();

/// Finds an operation by its name, with or without the suffix "nonstick"; null
/// if it is unknown. Sets `nonstick` to whether there was a suffix.
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

/// The value of a constant, or nothing if its format holds no such number.
std::optional<double> getNumber(const Constant &constant);

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_MODEL_DEVICEOPS_H
