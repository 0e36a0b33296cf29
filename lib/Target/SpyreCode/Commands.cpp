// SPDX-License-Identifier: Apache-2.0
//===- Commands.cpp - The form of spyrecode.json --------------------------===//

#include "Commands.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using namespace spyre;
using namespace spyre::spyrecode;
using runtime::CorrectionRow;
using superdsc::Report;

/// No job needs more.
static constexpr size_t kMaxCommands = 1 << 12, kMaxRows = 1 << 16;

namespace {
class FormReader {
public:
  explicit FormReader(Report &report) : report(report) {}

  std::optional<Commands> read(const Json &json) {
    // SPYRECODE-FORM-C1
    if (!json.is_object()) {
      violate("", "SPYRECODE-FORM-C1", "expected an object");
      return std::nullopt;
    }
    Commands commands;
    readList(json, "JobPreparationPlan", commands.preparation);
    readList(json, "JobExecPlan", commands.execution);
    for (auto &[key, value] : json.items())
      if (key != "JobPreparationPlan" && key != "JobExecPlan")
        violate(appendPath("", key), "SPYRECODE-FORM-C1",
                "the key '" + key.substr(0, 80) + "' does not belong here");
    if (!report.ok())
      return std::nullopt;
    return commands;
  }

private:
  void violate(const std::string &path, const char *rule, std::string message) {
    report.add(kCodeFile, path, rule, std::move(message));
  }

  void readList(const Json &json, const char *key,
                std::vector<Command> &commands) {
    std::string path = appendPath("", key);
    auto list = json.find(key);
    // SPYRECODE-FORM-C1
    if (list == json.end() || !list->is_array() ||
        list->size() > kMaxCommands) {
      violate(path, "SPYRECODE-FORM-C1",
              "expected a list of commands, at most " +
                  std::to_string(kMaxCommands));
      return;
    }
    for (size_t i = 0; i < list->size() && !report.isFull(); ++i)
      readCommand((*list)[i], appendPath(path, i), commands);
  }

  void readCommand(const Json &json, const std::string &path,
                   std::vector<Command> &commands) {
    static const std::pair<const char *, Command::Kind> kNames[] = {
        {"Allocate", Command::Allocate},
        {"InitTransfer", Command::InitTransfer},
        {"ComputeOnHost", Command::ComputeOnHost},
        {"DataTransfer", Command::DataTransfer},
        {"ComputeOnDevice", Command::ComputeOnDevice}};
    // SPYRECODE-FORM-C1
    if (!json.is_object() || json.size() != 2 || !json.contains("command") ||
        !json.contains("properties") || !json["properties"].is_object()) {
      violate(path, "SPYRECODE-FORM-C1",
              "expected an object of 'command' and an object 'properties'");
      return;
    }
    const Json &name = json["command"];
    for (auto [text, kind] : kNames) {
      if (name != text)
        continue;
      command = {};
      command.kind = kind;
      command.path = path;
      properties = &json["properties"];
      used.clear();
      readProperties();
      checkOthers();
      commands.push_back(std::move(command));
      return;
    }
    violate(path + "/command", "SPYRECODE-FORM-C1",
            "expected Allocate, InitTransfer, ComputeOnHost, DataTransfer or "
            "ComputeOnDevice");
  }

  void readProperties() {
    switch (command.kind) {
    case Command::Allocate:
      command.size = getNumber("size");
      return;
    case Command::InitTransfer: {
      std::string key = getKey("file", "init_bin_file", "file_path");
      command.file = getString(key);
      command.size = getNumber("size");
      command.address = getNumber("dev_ptr");
      return;
    }
    case Command::ComputeOnDevice:
      command.address = getNumber("job_bin_ptr");
      return;
    case Command::DataTransfer:
      readDirection();
      command.hostHandle = getString("host_handle");
      command.size = getNumber("size");
      command.address = getNumber("dev_ptr");
      return;
    case Command::ComputeOnHost:
      command.inputHandle = getString("ihandle");
      command.inputShape = getShape("ishape");
      command.outputHandle = getString("ohandle");
      readOutput();
      readHcm();
      return;
    }
  }

  //===--------------------------------------------------------------------===//
  // Properties
  //===--------------------------------------------------------------------===//

  /// The key by which a property goes in this file. All commands have keys of
  /// one flavour.
  std::string getKey(const char *name, const char *asBuilt, const char *spec) {
    bool isSpec = properties->contains(spec);
    std::string key = isSpec ? spec : asBuilt;
    command.paths[name] = appendPath(command.path + "/properties", key);
    // SPYRECODE-FORM-C3
    if (properties->contains(key)) {
      Flavor own = isSpec ? Flavor::Spec : Flavor::AsBuilt;
      if (flavor && *flavor != own)
        violate(command.at(name), "SPYRECODE-FORM-C3",
                "'" + key +
                    "' belongs to the other flavour of SpyreCode than the keys "
                    "before");
      flavor = own;
    }
    return key;
  }

  const Json *get(const std::string &key, const char *what,
                  bool (Json::*isRight)() const noexcept) {
    used.push_back(key);
    std::string path = appendPath(command.path + "/properties", key);
    command.paths.emplace(key, path);
    auto found = properties->find(key);
    // SPYRECODE-FORM-C2
    if (found == properties->end()) {
      violate(command.path + "/properties", "SPYRECODE-FORM-C2",
              "the property '" + key + "' is missing");
      return nullptr;
    }
    if (isRight && !((*found).*isRight)()) {
      violate(path, "SPYRECODE-FORM-C2", std::string("expected ") + what);
      return nullptr;
    }
    return &*found;
  }

  std::string getString(const std::string &key) {
    const Json *value = get(key, "a string", &Json::is_string);
    return value ? value->get<std::string>() : "";
  }

  /// SPYRECODE-FORM-C4
  uint64_t toNumber(const Json &json, const std::string &path) {
    if (json.is_number_integer() && json.get<int64_t>() >= 0)
      return json.get<uint64_t>();
    if (json.is_string()) {
      llvm::StringRef text = json.get_ref<const std::string &>();
      uint64_t value;
      unsigned radix = text.consume_front("0x") ? 16 : 10;
      bool isPlain = !text.empty() && text.find_if_not([&](char c) {
        return radix == 16 ? llvm::isHexDigit(c) : llvm::isDigit(c);
      }) == llvm::StringRef::npos;
      if (isPlain && !text.getAsInteger(radix, value) &&
          value <= static_cast<uint64_t>(INT64_MAX))
        return value;
    }
    violate(path, "SPYRECODE-FORM-C4",
            "expected a number from 0 to 9223372036854775807, or a string of "
            "one");
    return 0;
  }

  uint64_t getNumber(const std::string &key) {
    const Json *value = get(key, "a number", nullptr);
    return value ? toNumber(*value, command.at(key)) : 0;
  }

  std::vector<uint64_t> getShape(const std::string &key) {
    std::vector<uint64_t> shape;
    const Json *value = get(key, "a list of numbers", &Json::is_array);
    for (size_t i = 0; value && i < value->size() && !report.isFull(); ++i)
      shape.push_back(toNumber((*value)[i], appendPath(command.at(key), i)));
    return shape;
  }

  void readDirection() {
    std::string key = getKey("direction", "dirn", "direction");
    const Json *value = get(key, "a direction", nullptr);
    if (!value)
      return;
    Json toDevice[] = {Json("false"), Json(false)};
    Json fromDevice[] = {Json("true"), Json(true)};
    if (key == "direction") {
      toDevice[0] = 0, toDevice[1] = "0";
      fromDevice[0] = 1, fromDevice[1] = "1";
    }
    bool isTo = *value == toDevice[0] || *value == toDevice[1];
    command.toDevice = isTo;
    // SPYRECODE-FORM-C2
    if (!isTo && *value != fromDevice[0] && *value != fromDevice[1])
      violate(command.at(key), "SPYRECODE-FORM-C2",
              key == "dirn" ? "expected \"false\" (to the device) or \"true\""
                            : "expected 0 (to the device) or 1");
  }

  /// The size of a host computation's output.
  void readOutput() {
    std::string key = getKey("output", "size", "oshape");
    if (key == "size") {
      command.size = getNumber(key);
      return;
    }
    std::vector<uint64_t> shape = getShape(key);
    // SPYRECODE-FORM-C2
    if (shape.size() != 2 || shape[1] != runtime::kCorrectionRowBytes ||
        shape[0] > kMaxRows)
      violate(command.at(key), "SPYRECODE-FORM-C2",
              "expected [rows, 128], at most " + std::to_string(kMaxRows) +
                  " rows");
    else
      command.size = shape[0] * shape[1];
  }

  //===--------------------------------------------------------------------===//
  // hcm
  //===--------------------------------------------------------------------===//

  /// A member of a row of `vdci`.
  int64_t getMember(const Json &row, const char *key, const std::string &path,
                    size_t &numRead) {
    ++numRead;
    auto found = row.find(key);
    if (found == row.end()) {
      // SPYRECODE-FORM-C2
      violate(path, "SPYRECODE-FORM-C2",
              std::string("the key '") + key + "' is missing");
      return 0;
    }
    return static_cast<int64_t>(toNumber(*found, appendPath(path, key)));
  }

  void readRow(const Json &json, const std::string &path) {
    // SPYRECODE-FORM-C2
    if (!json.is_object() || !json.contains("from")) {
      violate(path, "SPYRECODE-FORM-C2",
              "expected an object with 'row' and 'from'");
      return;
    }
    CommandRow row;
    row.path = path;
    size_t numRead = 1;
    row.row = static_cast<uint64_t>(getMember(json, "row", path, numRead));
    const Json &from = json["from"];
    if (from == "input") {
      row.rule.source = CorrectionRow::Input;
      row.rule.index = getMember(json, "index", path, numRead);
      row.rule.divisor = getMember(json, "divisor", path, numRead);
    } else if (from == "job") {
      row.rule.source = CorrectionRow::Job;
      row.rule.value = getMember(json, "offset", path, numRead);
    } else {
      violate(path + "/from", "SPYRECODE-FORM-C2",
              "expected \"input\" or \"job\"");
      return;
    }
    // SPYRECODE-FORM-C3
    if (json.size() != numRead)
      violate(path, "SPYRECODE-FORM-C3", "the row has other keys as well");
    command.rows.push_back(row);
  }

  void readHcm() {
    const Json *hcm = get("hcm", "an object", &Json::is_object);
    if (!hcm)
      return;
    std::string path = command.at("hcm");
    // SPYRECODE-HOST-C3
    if (hcm->size() != 2 || !hcm->contains("vdci") ||
        !hcm->contains("senConstants") || !(*hcm)["vdci"].is_array() ||
        !(*hcm)["senConstants"].is_object() ||
        (*hcm)["vdci"].size() > kMaxRows) {
      violate(path, "SPYRECODE-HOST-C3",
              "expected a list 'vdci' of at most " + std::to_string(kMaxRows) +
                  " rows and an object 'senConstants'");
      return;
    }
    const Json &rows = (*hcm)["vdci"];
    for (size_t i = 0; i < rows.size() && !report.isFull(); ++i)
      readRow(rows[i], appendPath(path + "/vdci", i));
    for (auto &[key, value] : (*hcm)["senConstants"].items()) {
      CommandRow row;
      row.path = appendPath(path + "/senConstants", key);
      row.row = toNumber(Json(key), row.path);
      row.rule.value = static_cast<int64_t>(toNumber(value, row.path));
      command.rows.push_back(row);
    }
  }

  // SPYRECODE-FORM-C3
  void checkOthers() {
    for (auto &[key, value] : properties->items())
      if (std::find(used.begin(), used.end(), key) == used.end())
        violate(
            appendPath(command.path + "/properties", key), "SPYRECODE-FORM-C3",
            "the property '" + key.substr(0, 80) + "' does not belong here");
  }

  Report &report;
  std::optional<Flavor> flavor;
  Command command;
  const Json *properties = nullptr;
  std::vector<std::string> used;
};
} // namespace

std::optional<Commands> spyre::spyrecode::readCommands(const Json &json,
                                                       Report &report) {
  return FormReader(report).read(json);
}
