// SPDX-License-Identifier: Apache-2.0
//===- NodeReader.cpp - Typed values out of JSON ----------------*- C++ -*-===//

#include "NodeReader.h"

#include <charconv>

using namespace spyre::superdsc;
using spyre::DataFormat;

const char *spyre::superdsc::typeName(const Json &value) {
  switch (value.type()) {
  case Json::value_t::object:
    return "an object";
  case Json::value_t::array:
    return "an array";
  case Json::value_t::string:
    return "a string";
  case Json::value_t::boolean:
    return "a boolean";
  case Json::value_t::null:
    return "null";
  default:
    return "a number";
  }
}

std::string spyre::superdsc::brief(const Json &value) {
  if (value.is_structured())
    return typeName(value);
  std::string text = ::spyre::dumpJsonLine(value);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

void NodeReader::violate(const std::string &path, const char *rule,
                         std::string message) {
  failed = true;
  report.add(file, path, rule, std::move(message));
}

Node NodeReader::member(const Node &object, const char *key, bool required) {
  if (!object)
    return {};
  if (!object.value->is_object()) {
    // SDSC-FORM-C2
    violate(object.path, "SDSC-FORM-C2",
            std::string("expected an object, found ") +
                typeName(*object.value));
    return {};
  }
  auto found = object.value->find(key);
  if (found == object.value->end()) {
    if (required)
      violate(object.path, "SDSC-FORM-C2",
              std::string("the key '") + key + "' is missing");
    return {};
  }
  return {&*found, appendPath(object.path, key)};
}

Node NodeReader::element(const Node &array, size_t index) {
  return {&(*array.value)[index], appendPath(array.path, index)};
}

bool NodeReader::isArray(const Node &node, size_t limit) {
  if (!node)
    return false;
  if (!node.value->is_array() || node.value->size() > limit) {
    violate(node.path, "SDSC-FORM-C2",
            "expected an array of at most " + std::to_string(limit) +
                " elements, found " +
                (node.value->is_array()
                     ? std::to_string(node.value->size()) + " elements"
                     : typeName(*node.value)));
    return false;
  }
  return true;
}

bool NodeReader::isObject(const Node &node, size_t limit) {
  if (!node)
    return false;
  if (!node.value->is_object() || node.value->size() > limit) {
    violate(node.path, "SDSC-FORM-C2",
            "expected an object of at most " + std::to_string(limit) +
                " keys, found " +
                (node.value->is_object()
                     ? std::to_string(node.value->size()) + " keys"
                     : typeName(*node.value)));
    return false;
  }
  return true;
}

std::optional<int64_t> NodeReader::integer(const Node &node, int64_t low,
                                           int64_t high) {
  if (!node)
    return std::nullopt;
  if (!node.value->is_number_integer()) {
    violate(node.path, "SDSC-FORM-C2",
            "expected an integer, found " + brief(*node.value));
    return std::nullopt;
  }
  int64_t value = node.value->get<int64_t>();
  if (value < low || value > high) {
    violate(node.path, "SDSC-FORM-C2",
            "expected an integer from " + std::to_string(low) + " to " +
                std::to_string(high) + ", found " + std::to_string(value));
    return std::nullopt;
  }
  return value;
}

std::optional<std::string> NodeReader::string(const Node &node) {
  if (!node)
    return std::nullopt;
  if (!node.value->is_string()) {
    violate(node.path, "SDSC-FORM-C2",
            "expected a string, found " + brief(*node.value));
    return std::nullopt;
  }
  return node.value->get<std::string>();
}

std::optional<int64_t> NodeReader::decimal(const Node &node) {
  std::optional<std::string> text = string(node);
  if (!text)
    return std::nullopt;
  int64_t value = 0;
  const char *end = text->data() + text->size();
  auto [stop, error] = std::from_chars(text->data(), end, value);
  // Only the spelling that the writer uses: no sign, zero or space too many.
  if (error != std::errc() || stop != end || std::to_string(value) != *text) {
    violate(node.path, "SDSC-FORM-C2",
            "expected a decimal 64-bit integer in a string, found " +
                brief(*node.value));
    return std::nullopt;
  }
  return value;
}

std::optional<DataFormat> NodeReader::format(const Node &node) {
  std::optional<std::string> name = string(node);
  if (!name)
    return std::nullopt;
  std::optional<DataFormat> parsed = spyre::parseDataFormat(*name);
  if (!parsed) {
    violate(node.path, "SDSC-FORM-C2",
            "unknown data format " + brief(*node.value));
    return std::nullopt;
  }
  return parsed;
}

void NodeReader::compare(const Json &expected, const Json &actual,
                         const std::string &path) {
  if (report.isFull())
    return;
  if (expected.type() != actual.type() &&
      !(expected.is_number() && actual.is_number())) {
    violate(path, "SDSC-FORM-C4",
            "expected " + brief(expected) + ", found " + brief(actual));
    return;
  }
  if (expected.is_object()) {
    for (auto &[key, value] : expected.items()) {
      auto found = actual.find(key);
      if (found == actual.end())
        violate(path, "SDSC-FORM-C2", "the key '" + key + "' is missing");
      else
        compare(value, *found, appendPath(path, key));
    }
    for (auto &[key, value] : actual.items())
      // SDSC-FORM-C3
      if (!expected.contains(key))
        violate(appendPath(path, key), "SDSC-FORM-C3",
                "the key '" + key.substr(0, 80) + "' does not belong here");
    return;
  }
  if (expected.is_array()) {
    if (expected.size() != actual.size()) {
      violate(path, "SDSC-FORM-C4",
              "expected " + std::to_string(expected.size()) +
                  " elements, found " + std::to_string(actual.size()));
      return;
    }
    for (size_t i = 0; i < expected.size(); ++i)
      compare(expected[i], actual[i], appendPath(path, i));
    return;
  }
  if (expected == actual)
    return;
  // SDSC-DIM-C3
  bool isSlice = path.find("/coreIdToWkSlice_/") != std::string::npos &&
                 path.find("/dscs_/") == std::string::npos;
  // SDSC-FORM-C4
  violate(path, isSlice ? "SDSC-DIM-C3" : "SDSC-FORM-C4",
          "expected " + brief(expected) + ", found " + brief(actual));
}
