// SPDX-License-Identifier: Apache-2.0
//===- NodeReader.h - Typed values out of JSON ------------------*- C++ -*-===//

#ifndef SPYRE_LIB_TARGET_SUPERDSC_READER_NODEREADER_H
#define SPYRE_LIB_TARGET_SUPERDSC_READER_NODEREADER_H

#include "Spyre/Device/DataFormat.h"
#include "Spyre/Target/SuperDSC/Model/Report.h"

#include <optional>
#include <string>

namespace spyre::superdsc {

/// "an object", "a number", ...
const char *typeName(const Json &value);

/// A value's text, shortened.
std::string brief(const Json &value);

/// A value and where it is.
struct Node {
  const Json *value = nullptr;
  std::string path;

  explicit operator bool() const { return value != nullptr; }
};

/// Takes values of the expected types out of a file. What is not there or has
/// another type is a violation of SDSC-FORM-C2.
class NodeReader {
public:
  NodeReader(const std::string &file, Report &report)
      : file(file), report(report) {}

protected:
  void violate(const std::string &path, const char *rule, std::string message);

  /// The member, or an empty node after a violation.
  Node member(const Node &object, const char *key, bool required = true);
  Node element(const Node &array, size_t index);
  bool isArray(const Node &node, size_t limit);
  bool isObject(const Node &node, size_t limit);
  std::optional<int64_t> integer(const Node &node, int64_t low, int64_t high);
  std::optional<std::string> string(const Node &node);
  /// A decimal integer inside a string.
  std::optional<int64_t> decimal(const Node &node);
  std::optional<DataFormat> format(const Node &node);
  /// Violations where `actual` is not `expected`.
  void compare(const Json &expected, const Json &actual,
               const std::string &path);

  const std::string &file;
  Report &report;
  bool failed = false;
};

} // namespace spyre::superdsc

#endif // SPYRE_LIB_TARGET_SUPERDSC_READER_NODEREADER_H
