// SPDX-License-Identifier: Apache-2.0
//===- Report.cpp - What is wrong with a bundle -----------------*- C++ -*-===//

#include "Spyre/Target/SuperDSC/Model/Report.h"

using namespace spyre::superdsc;

void Report::add(std::string file, std::string path, std::string rule,
                 std::string message, size_t line, size_t column) {
  if (!isFull())
    violations.push_back({std::move(file), std::move(path), line, column,
                          std::move(rule), std::move(message)});
}

std::string Report::toText() const {
  std::string text;
  for (const Violation &violation : violations) {
    text += violation.file;
    if (violation.line != 0)
      text += ":" + std::to_string(violation.line);
    if (violation.column != 0)
      text += ":" + std::to_string(violation.column);
    text += ": ";
    if (!violation.path.empty())
      text += violation.path + ": ";
    text += violation.message + " [" + violation.rule + "]\n";
  }
  if (isFull())
    text += "more than " + std::to_string(kMaxViolations) +
            " violations; the rest is not listed\n";
  return text;
}

Json Report::toJson() const {
  Json list = Json::array();
  for (const Violation &violation : violations) {
    Json entry = {{"file", violation.file},
                  {"path", violation.path},
                  {"rule", violation.rule},
                  {"message", violation.message}};
    if (violation.line != 0)
      entry["line"] = violation.line;
    if (violation.column != 0)
      entry["column"] = violation.column;
    list.push_back(std::move(entry));
  }
  return {{"valid", ok()}, {"violations", std::move(list)}};
}
