// SPDX-License-Identifier: Apache-2.0
//===- Report.h - What is wrong with a bundle -------------------*- C++ -*-===//

#ifndef SPYRE_TARGET_SUPERDSC_MODEL_REPORT_H
#define SPYRE_TARGET_SUPERDSC_MODEL_REPORT_H

#include "Spyre/Support/Json.h"

#include <string>
#include <vector>

namespace spyre::superdsc {

using spyre::appendPath;
using spyre::Json;

/// One broken rule. Rules are numbered in SDSCBundleDialect.td.
struct Violation {
  /// Relative to the bundle's folder.
  std::string file;
  /// JSON pointer, or empty for a whole file.
  std::string path;
  /// From 1; 0 where a path says it all.
  size_t line = 0, column = 0;
  std::string rule;
  std::string message;
};

/// Everything that is wrong, in the order of the check.
class Report {
public:
  /// Stops collecting above this number, so that a hostile file cannot make
  /// the report large.
  static constexpr size_t kMaxViolations = 1000;

  void add(std::string file, std::string path, std::string rule,
           std::string message, size_t line = 0, size_t column = 0);

  bool ok() const { return violations.empty(); }
  bool isFull() const { return violations.size() >= kMaxViolations; }
  const std::vector<Violation> &get() const { return violations; }

  /// One line per violation: file[:line:column]: path: message [rule].
  std::string toText() const;
  /// {"valid": bool, "violations": [{file, path, rule, message, ...}]}.
  Json toJson() const;

private:
  std::vector<Violation> violations;
};

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_MODEL_REPORT_H
