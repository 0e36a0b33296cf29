// SPDX-License-Identifier: Apache-2.0
//===- EnvironmentTest.cpp - The environment variables that are read ------===//

#include "Spyre/Support/Environment.h"

#include "Spyre/Support/Error.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

using namespace spyre;
using environment::Variable;

namespace {

/// Sets a variable, and takes back what it was.
class Setting {
public:
  Setting(const char *name, const std::string &value) : name(name) {
    if (const char *text = std::getenv(name))
      before = text;
    ::setenv(name, value.c_str(), 1);
  }
  ~Setting() {
    if (before)
      ::setenv(name, before->c_str(), 1);
    else
      ::unsetenv(name);
  }

private:
  const char *name;
  std::optional<std::string> before;
};

std::string errorOf(const char *name, const std::string &value) {
  Setting setting(name, value);
  try {
    environment::read(name);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(EnvironmentTest, NamesAreDistinct) {
  std::set<std::string> names;
  for (const Variable &variable : environment::variables()) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    EXPECT_STRNE(variable.help, "") << variable.name;
    EXPECT_STRNE(variable.group, "") << variable.name;
  }
  EXPECT_GT(names.size(), 10u);
}

TEST(EnvironmentTest, WrongValuesNameTheVariable) {
  for (const Variable &variable : environment::variables()) {
    // Text means what whoever reads it makes of it.
    bool isText =
        variable.kind == Variable::Text || variable.kind == Variable::Foreign;
    for (const char *wrong : {"maybe", "-1", "99999999999999999999"})
      EXPECT_EQ(errorOf(variable.name, wrong),
                isText ? ""
                       : std::string("environment variable ") + variable.name +
                             ": expected " + variable.expected() + ", found '" +
                             wrong + "'");
    EXPECT_EQ(errorOf(variable.name, ""), "") << variable.name;
  }
  EXPECT_THROW(environment::read("SPYRE_NO_SUCH_VARIABLE"), Error);
}

TEST(EnvironmentTest, ReadsSwitches) {
  for (const char *on : {"1", "true", "on", "True", "ON", "2"}) {
    Setting setting("SPYRE_LAUNCH_BLOCKING", on);
    EXPECT_TRUE(environment::launchBlocking()) << on;
  }
  for (const char *off : {"0", "false", "off", "False"}) {
    Setting setting("SPYRE_ALLOW_TILED_LAUNCH", off);
    EXPECT_FALSE(environment::allowTiledLaunch()) << off;
  }
  Setting blocking("SPYRE_LAUNCH_BLOCKING", ""),
      tiled("SPYRE_ALLOW_TILED_LAUNCH", "");
  EXPECT_FALSE(environment::launchBlocking());
  EXPECT_TRUE(environment::allowTiledLaunch());
}

TEST(EnvironmentTest, ReadsNumbers) {
  {
    Setting setting("SPYRE_NUM_THREADS", "");
    EXPECT_EQ(environment::numThreads(), std::nullopt);
  }
  for (int64_t number : {1, 63, 256}) {
    Setting setting("SPYRE_NUM_THREADS", std::to_string(number));
    EXPECT_EQ(environment::numThreads(), number);
  }
  for (const char *wrong : {"0", "257", "1.5", "7 7", "0x7", "4k"})
    EXPECT_NE(errorOf("SPYRE_NUM_THREADS", wrong), "") << wrong;
  Setting setting("SPYRE_DEVICES", "0, 3,3");
  EXPECT_EQ(environment::devices(), (std::vector<int64_t>{0, 3, 3}));
  for (const char *wrong : {"8", "0,,1", ",", "0;1"})
    EXPECT_NE(errorOf("SPYRE_DEVICES", wrong), "") << wrong;
}

TEST(EnvironmentTest, ReadsChoicesAndText) {
  {
    Setting setting("SPYRE_EXECUTE", "");
    EXPECT_EQ(environment::execute(), "ktir");
  }
  {
    Setting setting("SPYRE_INDUCTOR_LOG_LEVEL", "debug");
    EXPECT_EQ(environment::inductorLogLevel(), "DEBUG");
  }
  EXPECT_EQ(errorOf("FLEX_DEVICE", "QF"),
            "environment variable FLEX_DEVICE: expected PF, VF or MOCK, found "
            "'QF'");
  Setting setting("SPYRE_DUMP_DIR", "a folder, of 1");
  EXPECT_EQ(environment::dumpDir(), "a folder, of 1");
}

} // namespace
