// SPDX-License-Identifier: Apache-2.0
//===- SuperDSC.cpp - Folders of bundles ----------------------------------===//

#include "Translations.h"

#include "Spyre/Device/Error.h"
#include "Spyre/Target/SuperDSC/Folder.h"
#include "Spyre/Target/SuperDSC/SuperDSC.h"

#include <filesystem>

using namespace spyre;

/// Writes every file below `output`, which is made where it is not there.
static void
writeFiles(const std::string &output,
           const std::vector<std::pair<std::string, std::string>> &files) {
  for (const auto &[name, content] : files) {
    std::filesystem::path path = std::filesystem::path(output) / name;
    std::error_code code;
    std::filesystem::create_directories(path.parent_path(), code);
    if (code)
      throw Error("cannot make the folder '" + path.parent_path().string() +
                  "': " + code.message());
    superdsc::writeFile(path.string(), content);
  }
}

std::string spyre::runSuperDSC(const SuperDSCRequest &request, bool &ok) {
  ok = true;
  superdsc::Report report;
  auto program =
      superdsc::loadProgram(request.folder, report, {request.lenient});
  ok = program && report.ok();
  if (request.action == SuperDSCRequest::Validate) {
    if (request.json)
      return superdsc::dumpJson(report.toJson()) + "\n";
    return report.ok() ? request.folder + ": valid\n" : report.toText();
  }
  if (!ok)
    throw Error("'" + request.folder + "' is not a valid bundle:\n" +
                report.toText());
  writeFiles(request.output, superdsc::printProgram(*program));
  return "";
}
