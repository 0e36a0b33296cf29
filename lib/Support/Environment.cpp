// SPDX-License-Identifier: Apache-2.0
//===- Environment.cpp - The environment variables that are read ----------===//

#include "Spyre/Support/Environment.h"

#include "Spyre/Support/Error.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <sstream>

using namespace spyre;
using environment::Value;
using environment::Variable;

static std::vector<std::string> split(const std::string &text, char mark) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, mark);)
    parts.push_back(part);
  return parts;
}

static std::string strip(const std::string &text) {
  const char *blank = " \t";
  size_t first = text.find_first_not_of(blank);
  return first == std::string::npos
             ? ""
             : text.substr(first, text.find_last_not_of(blank) + 1 - first);
}

static bool isSameWord(const std::string &a, const std::string &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) {
                      return std::tolower(x) == std::tolower(y);
                    });
}

static bool isOneOf(const std::string &text,
                    std::initializer_list<const char *> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char *word) { return isSameWord(text, word); });
}

const std::vector<Variable> &environment::variables() {
  static const std::vector<Variable> table = [] {
    std::vector<Variable> rows;
    const char *group = "";
#define SPYRE_GROUP(title) group = title;
#define SPYRE_SWITCH(accessor, name, byDefault, help)                          \
  rows.push_back(                                                              \
      {Variable::Switch, name, group, help, byDefault ? "1" : "0", 0, 0, {}});
#define SPYRE_NUMBER(accessor, name, lowest, highest, help)                    \
  rows.push_back(                                                              \
      {Variable::Number, name, group, help, "", lowest, highest, {}});
#define SPYRE_NUMBERS(accessor, name, lowest, highest, help)                   \
  rows.push_back(                                                              \
      {Variable::Numbers, name, group, help, "", lowest, highest, {}});
#define SPYRE_CHOICE(accessor, name, choices, byDefault, help)                 \
  rows.push_back({Variable::Choice, name, group, help, byDefault, 0, 0,        \
                  split(choices, '|')});
#define SPYRE_TEXT(accessor, name, help)                                       \
  rows.push_back({Variable::Text, name, group, help, "", 0, 0, {}});
#define SPYRE_FOREIGN(accessor, name, help)                                    \
  rows.push_back({Variable::Foreign, name, group, help, "", 0, 0, {}});
#include "Spyre/Support/Environment.def"
    return rows;
  }();
  return table;
}

std::string Variable::expected() const {
  std::string range =
      " from " + std::to_string(lowest) + " to " + std::to_string(highest);
  switch (kind) {
  case Switch:
    return "1, true, on, 0, false or off";
  case Number:
    return "a number" + range;
  case Numbers:
    return "numbers" + range + " with commas between";
  case Choice: {
    std::string text;
    for (size_t i = 0; i < choices.size(); ++i)
      text += (i == 0                   ? ""
               : i + 1 < choices.size() ? ", "
                                        : " or ") +
              choices[i];
    return text;
  }
  case Text:
  case Foreign:
    break;
  }
  return "text";
}

void environment::fail(const std::string &name, const std::string &expected,
                       const std::string &found) {
  throw Error("environment variable " + name + ": expected " + expected +
              ", found '" + found + "'");
}

static std::optional<int64_t> parseNumber(const std::string &text) {
  std::string digits = strip(text);
  const char *end = digits.data() + digits.size();
  int64_t number = 0;
  auto [rest, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc() || rest != end)
    return std::nullopt;
  return number;
}

static std::optional<int64_t> readNumber(const Variable &variable,
                                         const std::string &text) {
  std::optional<int64_t> number = parseNumber(text);
  if (!number || *number < variable.lowest || *number > variable.highest)
    return std::nullopt;
  return number;
}

/// Nothing if the text means nothing.
static std::optional<Value> parse(const Variable &variable,
                                  const std::string &text) {
  switch (variable.kind) {
  case Variable::Switch:
    if (isOneOf(text, {"1", "true", "on"}))
      return true;
    if (isOneOf(text, {"0", "false", "off"}))
      return false;
    // Users of torch-spyre also set levels.
    if (std::optional<int64_t> level = parseNumber(text); level && *level >= 0)
      return *level != 0;
    return std::nullopt;
  case Variable::Number: {
    if (text.empty())
      return Value();
    std::optional<int64_t> number = readNumber(variable, text);
    return number ? std::optional<Value>(*number) : std::nullopt;
  }
  case Variable::Numbers: {
    std::vector<int64_t> numbers;
    for (const std::string &part : split(text, ',')) {
      std::optional<int64_t> number = readNumber(variable, part);
      if (!number)
        return std::nullopt;
      numbers.push_back(*number);
    }
    return numbers;
  }
  case Variable::Choice:
    if (text.empty())
      return text;
    for (const std::string &choice : variable.choices)
      if (isSameWord(text, choice))
        return choice;
    return std::nullopt;
  case Variable::Text:
  case Variable::Foreign:
    break;
  }
  return text;
}

Value environment::read(const std::string &name) {
  for (const Variable &variable : variables()) {
    if (variable.name != name)
      continue;
    const char *set = std::getenv(variable.name);
    std::string text = set && *set ? set : variable.byDefault;
    if (std::optional<Value> value = parse(variable, text))
      return *value;
    fail(name, variable.expected(), text);
  }
  throw Error("'" + name + "' is no environment variable of the table");
}

#define SPYRE_SWITCH(accessor, name, byDefault, help)                          \
  bool environment::accessor() { return std::get<bool>(read(name)); }
#define SPYRE_NUMBER(accessor, name, lowest, highest, help)                    \
  std::optional<int64_t> environment::accessor() {                             \
    Value value = read(name);                                                  \
    const int64_t *number = std::get_if<int64_t>(&value);                      \
    return number ? std::optional<int64_t>(*number) : std::nullopt;            \
  }
#define SPYRE_NUMBERS(accessor, name, lowest, highest, help)                   \
  std::vector<int64_t> environment::accessor() {                               \
    return std::get<std::vector<int64_t>>(read(name));                         \
  }
#define SPYRE_CHOICE(accessor, name, choices, byDefault, help)                 \
  std::string environment::accessor() {                                        \
    return std::get<std::string>(read(name));                                  \
  }
#define SPYRE_TEXT(accessor, name, help)                                       \
  std::string environment::accessor() {                                        \
    return std::get<std::string>(read(name));                                  \
  }
#include "Spyre/Support/Environment.def"
