// SPDX-License-Identifier: Apache-2.0
//===- OpenDirectory.cpp - Files of a folder that may be hostile
//-------------===//

#include "Spyre/Support/OpenDirectory.h"
#include "Spyre/Support/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace spyre;

bool spyre::isPlainName(const std::string &name) {
  return !name.empty() && name != "." && name != ".." && name.size() < 256 &&
         name.find('/') == std::string::npos &&
         name.find('\\') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

std::optional<OpenDirectory> OpenDirectory::open(const std::string &path,
                                                 std::string &message) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    message = "cannot open the folder '" + path + "': " + std::strerror(errno);
    return std::nullopt;
  }
  return OpenDirectory(descriptor);
}

std::optional<OpenDirectory>
OpenDirectory::openInner(const std::string &name, std::string &message) const {
  int inner = isPlainName(name)
                  ? ::openat(descriptor, name.c_str(),
                             O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                  : -1;
  if (inner < 0) {
    message = "'" + name + "' is not a folder inside the bundle";
    return std::nullopt;
  }
  return OpenDirectory(inner);
}

OpenDirectory::OpenDirectory(OpenDirectory &&other)
    : descriptor(other.descriptor) {
  other.descriptor = -1;
}

OpenDirectory &OpenDirectory::operator=(OpenDirectory &&other) {
  std::swap(descriptor, other.descriptor);
  return *this;
}

OpenDirectory::~OpenDirectory() {
  if (descriptor >= 0)
    ::close(descriptor);
}

std::vector<std::string> OpenDirectory::list() const {
  std::vector<std::string> names;
  int copy = ::openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *stream = copy < 0 ? nullptr : ::fdopendir(copy);
  if (!stream) {
    if (copy >= 0)
      ::close(copy);
    return names;
  }
  while (dirent *entry = ::readdir(stream)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..")
      names.push_back(std::move(name));
  }
  ::closedir(stream);
  std::sort(names.begin(), names.end());
  return names;
}

bool OpenDirectory::exists(const std::string &name) const {
  struct stat status;
  return isPlainName(name) &&
         ::fstatat(descriptor, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

std::optional<std::string> OpenDirectory::read(const std::string &name,
                                               size_t limit,
                                               std::string &message) const {
  if (!isPlainName(name)) {
    message = "'" + name.substr(0, 80) + "' is not the plain name of a file";
    return std::nullopt;
  }
  // Open without blocking: a pipe must not hang the reader before it is
  // refused.
  int file = ::openat(descriptor, name.c_str(),
                      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) {
    message = errno == ELOOP
                  ? "is a link, and links are not followed"
                  : std::string("cannot be opened: ") + std::strerror(errno);
    return std::nullopt;
  }
  struct stat status;
  std::optional<std::string> content;
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    message = "is not a regular file";
  } else if (static_cast<size_t>(status.st_size) > limit) {
    message = "has " + std::to_string(status.st_size) + " bytes, at most " +
              std::to_string(limit) + " are read";
  } else {
    content.emplace();
    char buffer[1 << 16];
    ssize_t count;
    while ((count = ::read(file, buffer, sizeof(buffer))) > 0 &&
           content->size() <= limit)
      content->append(buffer, count);
    if (count < 0 || content->size() > limit) {
      message = count < 0
                    ? std::string("cannot be read: ") + std::strerror(errno)
                    : "grew while it was read";
      content.reset();
    }
  }
  ::close(file);
  return content;
}

void spyre::writeFile(const std::string &folder, const std::string &name,
                      const std::string &content) {
  std::filesystem::path path = std::filesystem::path(folder) / name;
  std::error_code code;
  std::filesystem::create_directories(path.parent_path(), code);
  if (code)
    throw Error("cannot make the folder '" + path.parent_path().string() +
                "': " + code.message());
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream << content;
  stream.close();
  if (!stream)
    throw Error("cannot write '" + path.string() + "'");
}
