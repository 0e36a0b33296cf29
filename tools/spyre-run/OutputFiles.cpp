// SPDX-License-Identifier: Apache-2.0
//===- OutputFiles.cpp - All files or none --------------------------------===//

#include "OutputFiles.h"

#include "Spyre/Support/Error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace spyre;
namespace fs = std::filesystem;

OutputFiles::~OutputFiles() {
  if (isCommitted)
    return;
  std::error_code ignored;
  for (const File &file : files)
    fs::remove(file.temporary, ignored);
  // Only empty folders go.
  for (size_t i = folders.size(); i-- > 0;)
    fs::remove(folders[i], ignored);
}

void OutputFiles::makeFolder(const std::string &path) {
  std::error_code error;
  std::vector<std::string> missing;
  for (fs::path p = fs::absolute(path, error); !p.empty() && !fs::exists(p);
       p = p.parent_path())
    missing.push_back(p.string());
  for (size_t i = missing.size(); i-- > 0;)
    if (fs::create_directory(missing[i], error))
      folders.push_back(missing[i]);
  if (!fs::is_directory(path, error))
    throw Error(path + ": error: cannot make this folder");
}

void OutputFiles::add(const std::string &path,
                      const std::function<void(const std::string &)> &write) {
  std::error_code error;
  if (fs::is_directory(path, error))
    throw Error(path + ": error: is a folder");
  for (const File &file : files)
    if (fs::absolute(file.path, error).lexically_normal() ==
        fs::absolute(path, error).lexically_normal())
      throw Error(path + ": error: two outputs have this name");
  // A device or a pipe takes no neighbour and no second file, and a link, as
  // /dev/stdout is, must stay one.
  bool isSpecial =
      fs::is_symlink(path, error) ||
      (fs::exists(path, error) && !fs::is_regular_file(path, error));
  std::string temporary =
      isSpecial ? path : path + ".part" + std::to_string(::getpid());
  if (!isSpecial)
    files.push_back({temporary, path});
  write(temporary);
}

void OutputFiles::addText(const std::string &path, const std::string &text) {
  if (path == "-") {
    printed += text;
    return;
  }
  add(path, [&](const std::string &temporary) {
    std::ofstream file(temporary, std::ios::binary);
    file << text;
    file.flush();
    if (!file)
      throw Error(path + ": error: cannot write: " + std::strerror(errno));
  });
}

void OutputFiles::commit() {
  for (const File &file : files) {
    std::error_code error;
    fs::rename(file.temporary, file.path, error);
    if (error)
      throw Error(file.path + ": error: cannot write: " + error.message());
  }
  isCommitted = true;
  std::fwrite(printed.data(), 1, printed.size(), stdout);
  if (std::fflush(stdout) != 0)
    throw Error("standard output: error: cannot write: " +
                std::string(std::strerror(errno)));
}
