// SPDX-License-Identifier: Apache-2.0
//===- OpenDirectory.h - Files of a folder that may be hostile --*- C++ -*-===//
//
// A bundle's folder comes from outside: no name in it may lead out of it, and
// no link is followed.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_SUPPORT_OPENDIRECTORY_H
#define SPYRE_SUPPORT_OPENDIRECTORY_H

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spyre {

/// An open folder. Files are read relative to it, whatever happens to paths
/// in the meantime.
class OpenDirectory {
public:
  /// Nothing, and a message, if `path` is not a readable folder.
  static std::optional<OpenDirectory> open(const std::string &path,
                                           std::string &message);
  /// A folder inside this one, not through a link.
  std::optional<OpenDirectory> openInner(const std::string &name,
                                         std::string &message) const;
  OpenDirectory(OpenDirectory &&other);
  OpenDirectory &operator=(OpenDirectory &&other);
  OpenDirectory(const OpenDirectory &) = delete;
  ~OpenDirectory();

  /// Names in the folder, sorted.
  std::vector<std::string> list() const;
  /// Whether there is anything of this name.
  bool exists(const std::string &name) const;
  /// The content of a regular file of at most `limit` bytes.
  std::optional<std::string> read(const std::string &name, size_t limit,
                                  std::string &message) const;

private:
  explicit OpenDirectory(int descriptor) : descriptor(descriptor) {}
  int descriptor;
};

/// Whether `name` is the plain name of a file: not empty, no separator, not
/// `.` or `..`.
bool isPlainName(const std::string &name);

/// Writes a file below `folder`, replacing it; makes folders that are not
/// there. Throws Error.
void writeFile(const std::string &folder, const std::string &name,
               const std::string &content);

} // namespace spyre

#endif // SPYRE_SUPPORT_OPENDIRECTORY_H
