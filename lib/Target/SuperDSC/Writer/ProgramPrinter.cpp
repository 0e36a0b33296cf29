// SPDX-License-Identifier: Apache-2.0
//===- ProgramPrinter.cpp - The files of a program --------------*- C++ -*-===//

#include "Spyre/Target/SuperDSC/Writer/ProgramPrinter.h"
#include "Spyre/Support/OpenDirectory.h"
#include "Spyre/Target/SuperDSC/Writer/BundlePrinter.h"
#include "Spyre/Target/SuperDSC/Writer/SdscWriter.h"

using namespace spyre::superdsc;

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

void spyre::superdsc::writeProgram(const BundleProgram &program,
                                   const std::string &folder) {
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
