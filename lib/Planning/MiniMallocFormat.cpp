// SPDX-License-Identifier: Apache-2.0
//===- MiniMallocFormat.cpp - Allocation problems as CSV --------*- C++ -*-===//

#include "Spyre/Planning/MiniMallocFormat.h"
#include "Spyre/Support/Error.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

using namespace spyre;
using namespace spyre::planning;

namespace {

enum Column { Id, Lower, Upper, Size, Offset, NumColumns };
constexpr const char *kColumnNames[] = {"id", "lower", "upper", "size",
                                        "offset"};

std::string trim(const std::string &text) {
  const char *spaces = " \t\r";
  size_t begin = text.find_first_not_of(spaces);
  if (begin == std::string::npos)
    return "";
  return text.substr(begin, text.find_last_not_of(spaces) - begin + 1);
}

std::vector<std::string> splitFields(const std::string &line) {
  std::vector<std::string> fields;
  size_t begin = 0;
  for (;;) {
    size_t comma = line.find(',', begin);
    fields.push_back(trim(line.substr(begin, comma - begin)));
    if (comma == std::string::npos)
      return fields;
    begin = comma + 1;
  }
}

class Parser {
public:
  Parser(const std::string &text, const std::string &name)
      : text(text), name(name) {}

  MiniMallocFile run() {
    std::string line;
    bool hasHeader = false;
    while (nextLine(line)) {
      if (trim(line).empty())
        continue;
      if (hasHeader)
        parseBuffer(splitFields(line));
      else
        parseHeader(splitFields(line));
      hasHeader = true;
    }
    if (!hasHeader) {
      number = 1;
      fail("expected a header id,lower,upper,size, found nothing");
    }
    return std::move(file);
  }

private:
  [[noreturn]] void fail(const std::string &what) const {
    throw Error(name + ":" + std::to_string(number) + ": " + what);
  }

  bool nextLine(std::string &line) {
    if (position >= text.size())
      return false;
    size_t end = std::min(text.find('\n', position), text.size());
    line = text.substr(position, end - position);
    position = end + 1;
    ++number;
    return true;
  }

  void parseHeader(const std::vector<std::string> &fields) {
    std::fill(std::begin(fieldOf), std::end(fieldOf), -1);
    for (size_t i = 0; i < fields.size(); ++i) {
      const auto *column = std::find(std::begin(kColumnNames),
                                     std::end(kColumnNames), fields[i]);
      if (column == std::end(kColumnNames))
        fail("expected columns id, lower, upper and size, found '" + fields[i] +
             "'");
      int &field = fieldOf[column - std::begin(kColumnNames)];
      if (field >= 0)
        fail("column '" + fields[i] + "' occurs twice");
      field = static_cast<int>(i);
    }
    for (int column = Id; column < Offset; ++column)
      if (fieldOf[column] < 0)
        fail(std::string("missing column '") + kColumnNames[column] + "'");
    numFields = fields.size();
  }

  int64_t parseNumber(const std::vector<std::string> &fields,
                      Column column) const {
    const std::string &field = fields[fieldOf[column]];
    int64_t value = 0;
    auto [end, error] =
        std::from_chars(field.data(), field.data() + field.size(), value);
    if (error == std::errc::result_out_of_range)
      fail(std::string(kColumnNames[column]) + " " + field +
           " does not fit in 64 bits");
    if (error != std::errc() || end != field.data() + field.size())
      fail(std::string("expected an integer for ") + kColumnNames[column] +
           ", found '" + field + "'");
    return value;
  }

  void parseBuffer(const std::vector<std::string> &fields) {
    if (fields.size() != numFields)
      fail("expected " + std::to_string(numFields) + " fields, found " +
           std::to_string(fields.size()));
    const std::string &id = fields[fieldOf[Id]];
    if (id.empty())
      fail("the id is empty");
    auto [known, isNew] = lineOf.try_emplace(id, number);
    if (!isNew)
      fail("id '" + id + "' occurs twice, first in line " +
           std::to_string(known->second));
    Buffer buffer;
    buffer.lower = parseNumber(fields, Lower);
    buffer.upper = parseNumber(fields, Upper);
    buffer.size = parseNumber(fields, Size);
    if (buffer.lower < 0)
      fail("lower must not be negative, but is " +
           std::to_string(buffer.lower));
    if (buffer.upper <= buffer.lower)
      fail("upper must be above lower, but is " + std::to_string(buffer.upper) +
           " with lower " + std::to_string(buffer.lower));
    if (buffer.size < 0)
      fail("size must not be negative, but is " + std::to_string(buffer.size));
    // One byte more each, for a caller's alignment of 1.
    if (__builtin_add_overflow(totalSize, buffer.size, &totalSize) ||
        __builtin_add_overflow(totalSize, 1, &totalSize))
      fail("the sizes up to here add up to more than 64 bits");
    file.ids.push_back(id);
    file.problem.buffers.push_back(buffer);
  }

  const std::string &text;
  const std::string &name;
  size_t position = 0;
  int64_t number = 0;
  int fieldOf[NumColumns];
  size_t numFields = 0;
  int64_t totalSize = 0;
  std::unordered_map<std::string, int64_t> lineOf;
  MiniMallocFile file;
};

} // namespace

MiniMallocFile planning::parseMiniMalloc(const std::string &text,
                                         const std::string &name) {
  return Parser(text, name).run();
}

std::string planning::printMiniMalloc(const MiniMallocFile &file,
                                      const std::vector<int64_t> &offsets) {
  std::string text = "id,lower,upper,size,offset\n";
  for (size_t i = 0; i < file.ids.size(); ++i) {
    const Buffer &buffer = file.problem.buffers[i];
    text += file.ids[i] + "," + std::to_string(buffer.lower) + "," +
            std::to_string(buffer.upper) + "," + std::to_string(buffer.size) +
            "," + std::to_string(offsets[i]) + "\n";
  }
  return text;
}
