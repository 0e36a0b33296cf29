// SPDX-License-Identifier: Apache-2.0
//===- Json.h - JSON that comes from outside --------------------*- C++ -*-===//
//
// nlohmann_json's parser accepts duplicate keys, any depth and numbers that it
// rounds. Files from outside are read through a handler that refuses all of
// that and says where.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_SUPPORT_JSON_H
#define SPYRE_SUPPORT_JSON_H

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace spyre {

/// Keeps keys in the order of the file.
using Json = nlohmann::ordered_json;

/// Limits of a file: far above what any file needs, and far below what would
/// hurt the reader.
struct JsonLimits {
  size_t bytes = size_t(64) << 20;
  size_t depth = 64;
  size_t values = size_t(4) << 20;
  size_t keysPerObject = 4096;
  /// Whether numbers may have fractions and exponents, or not fit in 64 bits.
  bool fractions = false;
};

/// Why a text is not JSON that the project reads.
struct JsonError {
  /// JSON pointer of the innermost value that was begun; empty at the top.
  std::string path;
  std::string message;
  /// Both from 1; 0 if the text was not looked at.
  size_t line = 0, column = 0;

  /// All of it in one line.
  std::string toString() const;
};

/// The value in `text`, or nothing, and then `error` says why: malformed or
/// truncated text, a limit, a key twice in an object, a number outside 64 bits
/// or with a fraction, a string that is not UTF-8.
std::optional<Json> parseJson(std::string_view text, JsonError &error,
                              const JsonLimits &limits = {});

/// `path` with `key` appended, escaped as JSON pointers are.
std::string appendPath(const std::string &path, std::string_view key);
std::string appendPath(const std::string &path, size_t index);

/// Adds a member whose key is new to an object. nlohmann's container searches
/// for the key, and copies all values whenever it grows.
Json &addMember(Json &object, std::string key, Json value);

/// The text of a JSON file: two spaces of indentation, no newline at the end.
/// nlohmann's dump() would be compiled in each file that calls it.
std::string dumpJson(const Json &json);
/// The same in one line.
std::string dumpJsonLine(const Json &json);

} // namespace spyre

#endif // SPYRE_SUPPORT_JSON_H
