// SPDX-License-Identifier: Apache-2.0
//===- Load.cpp - Reading a folder with spyrecode.json --------------------===//

#include "Spyre/Support/OpenDirectory.h"
#include "Spyre/Target/SpyreCode/SpyreCode.h"

using namespace spyre;
using namespace spyre::spyrecode;
using superdsc::Report;

std::optional<runtime::Job>
spyre::spyrecode::loadSpyreCode(const std::string &path, Report &report) {
  std::string message;
  std::optional<OpenDirectory> folder = OpenDirectory::open(path, message);
  // SPYRECODE-FILE-C1
  if (!folder) {
    report.add(path, "", "SPYRECODE-FILE-C1", message);
    return std::nullopt;
  }
  std::optional<std::string> json =
      folder->read(kCodeFile, JsonLimits().bytes, message);
  if (!json) {
    report.add(kCodeFile, "", "SPYRECODE-FILE-C1", message);
    return std::nullopt;
  }
  return readSpyreCode(
      *json,
      [&](const std::string &name, size_t limit, std::string &why) {
        return folder->read(name, limit, why);
      },
      report);
}

bool spyre::spyrecode::isSpyreCode(const std::string &path) {
  std::string message;
  std::optional<OpenDirectory> folder = OpenDirectory::open(path, message);
  return folder && folder->exists(kCodeFile);
}
