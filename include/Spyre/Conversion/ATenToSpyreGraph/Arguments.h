// SPDX-License-Identifier: Apache-2.0
//===- Arguments.h - Arguments of ATen operators ----------------*- C++ -*-===//
//
// How callers outside MLIR (the FX importer, the boxed eager kernel) hand an
// ATen call to the compiler. No MLIR types.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_CONVERSION_ATENTOSPYREGRAPH_ARGUMENTS_H
#define SPYRE_CONVERSION_ATENTOSPYREGRAPH_ARGUMENTS_H

#include "Spyre/Device/DataFormat.h"
#include "Spyre/Support/Error.h"
#include "Spyre/Support/SizeExpr.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spyre {

/// The ATen table has no row for an operator, or cannot take these arguments.
/// Nothing was changed; the caller runs the operator elsewhere.
class UnsupportedOp : public Error {
public:
  using Error::Error;
};

/// One frame of the Python stack at which an operation was written.
struct SourceFrame {
  std::string file;
  int64_t line = 0;
  std::string text; ///< function name or operator text
};
/// Innermost frame first; may be empty.
using SourceLocation = std::vector<SourceFrame>;

/// Type, sizes and strides (elements) of a tensor.
struct ValueMeta {
  HostDtype dtype = HostDtype::Float16;
  SizeList sizes, strides;
};

/// A tensor of the graph under construction.
struct ValueId {
  int id = -1;
};

/// One argument of an ATen call. Dtypes, memory formats, devices, layouts and
/// modes are strings: "float16", "contiguous_format", "floor". Numbers that
/// depend on symbols are SizeExprs.
struct Argument {
  using List = std::vector<Argument>;
  std::variant<std::monostate, bool, int64_t, double, std::string, ValueId,
               List, SizeExpr>
      value;

  Argument() = default;
  Argument(bool v) : value(v) {}
  Argument(int v) : value(static_cast<int64_t>(v)) {}
  Argument(int64_t v) : value(v) {}
  Argument(double v) : value(v) {}
  Argument(const char *v) : value(std::string(v)) {}
  Argument(std::string v) : value(std::move(v)) {}
  Argument(ValueId v) : value(v) {}
  Argument(List v) : value(std::move(v)) {}
  Argument(SizeExpr v) : value(std::move(v)) {}

  bool isNone() const { return std::holds_alternative<std::monostate>(value); }
};
using Arguments = std::vector<Argument>;
using KeywordArguments = std::map<std::string, Argument>;

/// "aten.add.Tensor" and so on: every overload that the table has a row for,
/// sorted. A row may still refuse particular arguments.
std::vector<std::string> listSupportedOps();

} // namespace spyre

#endif // SPYRE_CONVERSION_ATENTOSPYREGRAPH_ARGUMENTS_H
