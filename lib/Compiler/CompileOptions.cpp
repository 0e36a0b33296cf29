// SPDX-License-Identifier: Apache-2.0
//===- CompileOptions.cpp - The options of torch.compile --------*- C++ -*-===//

#include "Spyre/Compiler/CompileOptions.h"

#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Support/Error.h"

#include <algorithm>
#include <initializer_list>

using namespace spyre;

namespace {
struct Defaults {
#define SPYRE_OPTION_NUMBER(member, name, byDefault, lowest, highest, help)    \
  static constexpr int64_t member = byDefault;
#include "Spyre/Compiler/CompileOptions.def"
};
} // namespace

static_assert(Defaults::cores == DeviceSpec::kMaxCores,
              "the table and the device disagree");

const std::vector<CompileOption> &spyre::compileOptions() {
  static const std::vector<CompileOption> table = {
#define SPYRE_OPTION_FLAG(member, name, byDefault, help)                       \
  {name, CompileOption::Flag, byDefault, 0, 1, help, ""},
#define SPYRE_OPTION_NUMBER(member, name, byDefault, lowest, highest, help)    \
  {name, CompileOption::Number, byDefault, lowest, highest, help, ""},
#define SPYRE_OPTION_TEXT(member, name, expected, help)                        \
  {name, CompileOption::Text, 0, 0, 0, help, expected},
#include "Spyre/Compiler/CompileOptions.def"
  };
  return table;
}

std::string CompileOption::expected() const {
  if (kind == Flag)
    return "True or False";
  if (kind == Text)
    return expectedText;
  return "a number from " + std::to_string(lowest) + " to " +
         std::to_string(highest);
}

const CompileOption &spyre::findCompileOption(const std::string &name) {
  std::string known;
  for (const CompileOption &option : compileOptions()) {
    if (option.name == name)
      return option;
    known += std::string(known.empty() ? "" : ", ") + option.name;
  }
  throw Error("unknown compiler option '" + name + "'; known are " + known);
}

static void checkValue(const CompileOption &option, int64_t value) {
  if (value < option.lowest || value > option.highest)
    throw Error(std::string("option ") + option.name + ": expected " +
                option.expected() + ", found " + std::to_string(value));
}

void spyre::setCompileOption(CompileOptions &options, const std::string &name,
                             int64_t value) {
  checkValue(findCompileOption(name), value);
#define SPYRE_OPTION_FLAG(member, text, byDefault, help)                       \
  if (name == text)                                                            \
    options.member = value != 0;
#define SPYRE_OPTION_NUMBER(member, text, byDefault, lowest, highest, help)    \
  if (name == text)                                                            \
    options.member = value;
#include "Spyre/Compiler/CompileOptions.def"
}

void spyre::setCompileOption(CompileOptions &options, const std::string &name,
                             const std::string &value) {
#define SPYRE_OPTION_TEXT(member, text, expected, help)                        \
  if (name == text)                                                            \
    options.member = value;
#include "Spyre/Compiler/CompileOptions.def"
  checkCompileOptions(options);
}

/// An empty text stands for the default.
static void checkChoice(const std::string &name, const std::string &value,
                        std::initializer_list<const char *> choices) {
  if (value.empty() ||
      std::find(choices.begin(), choices.end(), value) != choices.end())
    return;
  throw Error("option " + name + ": expected " +
              findCompileOption(name).expected() + ", found '" + value + "'");
}

void spyre::checkCompileOptions(const CompileOptions &options) {
#define SPYRE_OPTION_NUMBER(member, name, byDefault, lowest, highest, help)    \
  checkValue(findCompileOption(name), options.member);
#include "Spyre/Compiler/CompileOptions.def"
  if (!options.device.empty())
    (void)DeviceSpec::fromJson(options.device, "option device");
  checkChoice("lx_solver", options.lxSolver,
              {"greedy", "firstfit", "bestfit", "optimal"});
  checkChoice("mode", options.mode, {"default", "reference"});
}

std::string spyre::printCompileOptions(const CompileOptions &options) {
  std::string text;
#define SPYRE_OPTION_FLAG(member, name, byDefault, help)                       \
  text += std::string(name "=") + (options.member ? "1" : "0") + "\n";
#define SPYRE_OPTION_NUMBER(member, name, byDefault, lowest, highest, help)    \
  text += std::string(name "=") + std::to_string(options.member) + "\n";
#define SPYRE_OPTION_TEXT(member, name, expected, help)                        \
  text += std::string(name "=") + options.member + "\n";
#include "Spyre/Compiler/CompileOptions.def"
  return text;
}
