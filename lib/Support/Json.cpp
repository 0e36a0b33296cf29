// SPDX-License-Identifier: Apache-2.0
//===- Json.cpp - JSON that comes from outside ------------------*- C++ -*-===//

#include "Spyre/Support/Json.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

using namespace spyre;

std::string spyre::appendPath(const std::string &path, std::string_view key) {
  std::string result = path + "/";
  for (char c : key) {
    if (c == '~')
      result += "~0";
    else if (c == '/')
      result += "~1";
    else
      result += c;
  }
  return result;
}

std::string spyre::appendPath(const std::string &path, size_t index) {
  return path + "/" + std::to_string(index);
}

std::string JsonError::toString() const {
  std::string result;
  if (line > 0)
    result = "line " + std::to_string(line) + ", column " +
             std::to_string(column) + ": ";
  else if (!path.empty())
    result = path + ": ";
  return result + message;
}

std::string spyre::dumpJson(const Json &json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string spyre::dumpJsonLine(const Json &json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json &spyre::addMember(Json &object, std::string key, Json value) {
  using Container = Json::object_t::Container;
  auto &members = static_cast<Container &>(object.get_ref<Json::object_t &>());
  if (members.size() == members.capacity()) {
    Container larger;
    larger.reserve(std::max<size_t>(2 * members.size(), 2));
    for (auto &member : members)
      larger.emplace_back(member.first, std::move(member.second));
    members.swap(larger);
  }
  return members.emplace_back(std::move(key), std::move(value)).second;
}

namespace {

/// Builds the value, or stops at the first thing that is refused.
class Handler : public nlohmann::json_sax<Json> {
public:
  Handler(JsonError &error, const JsonLimits &limits)
      : error(error), limits(limits) {}

  bool null() override { return add(Json()) != nullptr; }
  bool boolean(bool value) override { return add(Json(value)) != nullptr; }
  bool number_integer(number_integer_t value) override {
    return add(Json(value)) != nullptr;
  }
  bool number_unsigned(number_unsigned_t value) override {
    bool fits = value <= static_cast<number_unsigned_t>(
                             std::numeric_limits<int64_t>::max());
    if (!fits && limits.fractions)
      return add(Json(value)) != nullptr;
    if (!fits)
      return fail("the integer " + std::to_string(value) +
                  " does not fit in 64 bits with a sign");
    return add(Json(static_cast<int64_t>(value))) != nullptr;
  }
  bool number_float(number_float_t value, const string_t &text) override {
    if (limits.fractions)
      return add(Json(value)) != nullptr;
    return fail("numbers are 64-bit integers, but found " + text.substr(0, 40));
  }
  bool string(string_t &value) override {
    return add(Json(std::move(value))) != nullptr;
  }
  bool binary(binary_t &) override { return fail("binary value"); }

  bool start_object(size_t) override { return open(Json::object()); }
  bool key(string_t &name) override {
    Level &level = levels.back();
    if (level.value->size() >= limits.keysPerObject)
      return fail("an object has more than " +
                  std::to_string(limits.keysPerObject) + " keys");
    level.key = name;
    if (isKnown(level, name))
      return fail("the key '" + name.substr(0, 80) +
                  "' occurs twice in an object");
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool parse_error(size_t position, const std::string &token,
                   const nlohmann::detail::exception &) override {
    offset = position > 0 ? position - 1 : 0;
    return fail("malformed JSON near '" + token.substr(0, 40) + "'");
  }

  Json result;
  /// The byte at which parsing failed, if the parser has reported it.
  std::optional<size_t> offset;

private:
  struct Level {
    Json *value;
    /// The keys, once they are too many to be compared one by one.
    std::unordered_set<std::string> keys;
    std::string key;
  };

  /// Whether an object has a key already.
  static bool isKnown(Level &level, const std::string &name) {
    constexpr size_t kFew = 16;
    const Json::object_t &members = level.value->get_ref<Json::object_t &>();
    if (members.size() < kFew)
      return std::any_of(
          members.begin(), members.end(),
          [&](const auto &member) { return member.first == name; });
    if (level.keys.empty())
      for (const auto &member : members)
        level.keys.insert(member.first);
    return !level.keys.insert(name).second;
  }

  bool fail(std::string message) {
    if (!error.message.empty())
      return false;
    error.message = std::move(message);
    for (const Level &level : levels) {
      // The innermost array waits for its next element, the others are inside
      // their last.
      if (level.value->is_array())
        error.path = appendPath(error.path, level.value->size() -
                                                (&level != &levels.back()));
      else if (!level.key.empty())
        error.path = appendPath(error.path, level.key);
    }
    return false;
  }

  Json *add(Json value) {
    if (++numValues > limits.values) {
      fail("more than " + std::to_string(limits.values) + " values");
      return nullptr;
    }
    if (levels.empty()) {
      result = std::move(value);
      return &result;
    }
    Json &parent = *levels.back().value;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    // The handler knows that the key is new.
    return &addMember(parent, levels.back().key, std::move(value));
  }

  bool open(Json value) {
    if (levels.size() >= limits.depth)
      return fail("nested deeper than " + std::to_string(limits.depth) +
                  " levels");
    Json *added = add(std::move(value));
    if (!added)
      return false;
    levels.push_back({added, {}, {}});
    return true;
  }

  bool close() {
    levels.pop_back();
    return true;
  }

  JsonError &error;
  const JsonLimits &limits;
  std::vector<Level> levels;
  size_t numValues = 0;
};

} // namespace

std::optional<Json> spyre::parseJson(std::string_view text, JsonError &error,
                                     const JsonLimits &limits) {
  error = {};
  if (text.size() > limits.bytes) {
    error.message = std::to_string(text.size()) + " bytes, at most " +
                    std::to_string(limits.bytes) + " are read";
    return std::nullopt;
  }
  Handler handler(error, limits);
  // To the parser a zero is the end, whatever follows.
  bool ok = false;
  if (size_t zero = text.find('\0'); zero != std::string_view::npos)
    handler.offset = zero;
  else
    ok = Json::sax_parse(text.begin(), text.end(), &handler);
  if (ok && error.message.empty())
    return std::move(handler.result);
  if (error.message.empty())
    error.message = "malformed JSON";
  if (handler.offset) {
    size_t end = std::min(*handler.offset, text.size());
    std::string_view before = text.substr(0, end);
    error.line = std::count(before.begin(), before.end(), '\n') + 1;
    size_t newline = before.rfind('\n');
    error.column = newline == std::string_view::npos ? end + 1 : end - newline;
  }
  return std::nullopt;
}
