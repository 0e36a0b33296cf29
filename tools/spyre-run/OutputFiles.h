// SPDX-License-Identifier: Apache-2.0
//===- OutputFiles.h - All files or none ------------------------*- C++ -*-===//

#ifndef SPYRE_TOOLS_SPYRERUN_OUTPUTFILES_H
#define SPYRE_TOOLS_SPYRERUN_OUTPUTFILES_H

#include <functional>
#include <string>
#include <vector>

namespace spyre {

/// Files that appear together: each is written beside its place and moved
/// there by commit(); without it, nothing is left behind.
class OutputFiles {
public:
  OutputFiles() = default;
  OutputFiles(const OutputFiles &) = delete;
  OutputFiles &operator=(const OutputFiles &) = delete;
  ~OutputFiles();

  /// Makes a folder and those above it. Throws Error.
  void makeFolder(const std::string &path);
  /// Calls `write` with the path of the file for now. Throws Error for a path
  /// that is a folder or was added before, and whatever `write` throws.
  void add(const std::string &path,
           const std::function<void(const std::string &)> &write);
  /// - is standard output.
  void addText(const std::string &path, const std::string &text);
  /// Throws Error if a file cannot be moved to its place.
  void commit();

private:
  struct File {
    std::string temporary, path;
  };
  std::vector<File> files;
  std::vector<std::string> folders; ///< made here, outermost first
  std::string printed;              ///< on standard output, at the end
  bool isCommitted = false;
};

} // namespace spyre

#endif // SPYRE_TOOLS_SPYRERUN_OUTPUTFILES_H
