// SPDX-License-Identifier: Apache-2.0
//===- ProgramPrinter.cpp - The files of a program --------------*- C++ -*-===//

#include "Spyre/Target/SuperDSC/Writer/ProgramPrinter.h"
#include "Spyre/Support/Error.h"
#include "Spyre/Support/OpenDirectory.h"
#include "Spyre/Target/SuperDSC/Writer/BundlePrinter.h"
#include "Spyre/Target/SuperDSC/Writer/SdscWriter.h"

#include "llvm/ADT/StringExtras.h"

#include <filesystem>
#include <set>

using namespace spyre::superdsc;
namespace fs = std::filesystem;

void spyre::superdsc::printProgram(
    const BundleProgram &program,
    const std::function<void(const std::string &, std::string)> &take) {
  for (const LoadedBundle &bundle : program.bundles) {
    std::string prefix = getPrefix(bundle.folder);
    take(prefix + kBundleFile, printBundle(bundle.bundle));
    for (const auto &[name, sdsc] : bundle.files)
      take(prefix + name, ::spyre::dumpJson(writeSdsc(sdsc)));
  }
  if (program.manifest)
    take(kManifestFile,
         ::spyre::dumpJson(writeManifest(*program.manifest)) + "\n");
}

namespace {

/// What lies in a folder that a program is to be written to.
struct Leftovers {
  std::vector<fs::path> files, folders;
  /// A file that a reader would take for one of the program, though none that
  /// a writer makes has such a name.
  std::optional<fs::path> foreign;
};

} // namespace

/// Finds in `folder` what writers make. `written` are the names below the
/// program's folder that are going to be written, in this one with `prefix`.
static void findLeftovers(const fs::path &folder, const std::string &prefix,
                          const std::set<std::string> &written,
                          Leftovers &found) {
  std::error_code code;
  fs::directory_iterator entry(folder, code), end;
  for (; !code && entry != end; entry.increment(code)) {
    fs::path path = entry->path();
    std::string name = path.filename().string();
    bool isFolder = fs::is_directory(fs::symlink_status(path));
    llvm::StringRef rest = name;
    if (isFolder) {
      // Links are not followed.
      if (prefix.empty() && rest.consume_front("bundle_") && !rest.empty() &&
          llvm::all_of(rest, llvm::isDigit)) {
        found.folders.push_back(path);
        findLeftovers(path, name + "/", written, found);
      }
      continue;
    }
    bool isSdsc = rest.starts_with("sdsc") && rest.ends_with(".json");
    if (name == kManifestFile || name == kBundleFile ||
        (isSdsc && rest.starts_with("sdsc_")))
      found.files.push_back(path);
    else if (isSdsc && !written.count(prefix + name))
      found.foreign = path;
  }
}

void spyre::superdsc::writeProgram(const BundleProgram &program,
                                   const std::string &folder) {
  // What another program left here would be read as a part of this one.
  std::set<std::string> written;
  for (const LoadedBundle &bundle : program.bundles)
    for (const auto &[name, sdsc] : bundle.files)
      written.insert(getPrefix(bundle.folder) + name);
  Leftovers found;
  findLeftovers(folder, "", written, found);
  if (found.foreign)
    throw Error("'" + found.foreign->string() +
                "' would be read as a file of the program; remove it, or write "
                "to another folder");
  for (const fs::path &path : found.files) {
    std::error_code code;
    fs::remove(path, code);
    if (code)
      throw Error("cannot remove '" + path.string() + "': " + code.message());
  }
  for (const fs::path &path : found.folders) {
    // One that holds anything else stays.
    std::error_code code;
    fs::remove(path, code);
  }
  printProgram(program, [&](const std::string &name, std::string content) {
    writeFile(folder, name, content);
  });
}

std::vector<std::pair<std::string, std::string>>
spyre::superdsc::printProgram(const BundleProgram &program) {
  std::vector<std::pair<std::string, std::string>> files;
  printProgram(program, [&](const std::string &name, std::string content) {
    files.emplace_back(name, std::move(content));
  });
  return files;
}
