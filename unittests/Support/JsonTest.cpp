// SPDX-License-Identifier: Apache-2.0
//===- JsonTest.cpp - What the reader of JSON refuses ---------------------===//

#include "Spyre/Support/Json.h"

#include <gtest/gtest.h>

using namespace spyre;

static JsonError errorOf(const std::string &text, JsonLimits limits = {}) {
  JsonError error;
  EXPECT_FALSE(parseJson(text, error, limits)) << text.substr(0, 80);
  EXPECT_FALSE(error.message.empty());
  return error;
}

TEST(Json, KeepsOrderAndValues) {
  JsonError error;
  std::string text = "{\n  \"b\": [\n    1,\n    -2\n  ],\n  \"a\": \"x\"\n}";
  std::optional<Json> json = parseJson(text, error);
  ASSERT_TRUE(json) << error.message;
  EXPECT_EQ(dumpJson(*json), text);
}

TEST(Json, TruncatedTextHasAPlace) {
  JsonError error = errorOf("{\"a\":\n [1, 2");
  EXPECT_EQ(error.line, 2u);
  EXPECT_EQ(error.path, "/a/2");
}

TEST(Json, EveryPrefixIsAnError) {
  std::string text = "{\"a\": [1, {\"b\": \"c\"}], \"d\": {}}";
  for (size_t length = 0; length < text.size(); ++length)
    errorOf(text.substr(0, length));
}

TEST(Json, DuplicateKeys) {
  JsonError error = errorOf("{\"a\": {\"k\": 1, \"k\": 2}}");
  EXPECT_NE(error.message.find("'k' occurs twice"), std::string::npos);
}

TEST(Json, DeepNesting) {
  EXPECT_NE(errorOf(std::string(1 << 20, '[')).message.find("deeper"),
            std::string::npos);
  std::string objects;
  for (int i = 0; i < 100000; ++i)
    objects += "{\"a\":";
  errorOf(objects);
}

TEST(Json, Numbers) {
  errorOf("1.5");
  errorOf("1e300");
  errorOf("18446744073709551615");
  errorOf("9223372036854775808");
  errorOf("-9223372036854775809");
  errorOf("99999999999999999999999999");
  JsonError error;
  std::optional<Json> smallest = parseJson("-9223372036854775808", error);
  ASSERT_TRUE(smallest);
  EXPECT_EQ(smallest->get<int64_t>(), std::numeric_limits<int64_t>::min());
}

TEST(Json, Limits) {
  JsonLimits limits;
  limits.bytes = 10;
  errorOf("[1, 2, 3, 4]", limits);
  limits = {};
  limits.values = 4;
  errorOf("[1, 2, 3, 4]", limits);
  limits = {};
  limits.keysPerObject = 2;
  errorOf("{\"a\": 1, \"b\": 2, \"c\": 3}", limits);
}

TEST(Json, NotUtf8) {
  errorOf("\"\xff\"");
  errorOf("\"\xc0\x80\"");
}

TEST(Json, PathsAreEscaped) {
  EXPECT_EQ(appendPath("/a", "b/c~d"), "/a/b~1c~0d");
}

TEST(Json, Fractions) {
  JsonLimits limits;
  limits.fractions = true;
  JsonError error;
  std::optional<Json> json =
      parseJson("[0.5, 18446744073709551615, -3]", error, limits);
  ASSERT_TRUE(json) << error.message;
  EXPECT_EQ((*json)[0].get<double>(), 0.5);
  EXPECT_EQ((*json)[1].get<uint64_t>(), ~uint64_t(0));
  EXPECT_EQ((*json)[2].get<int64_t>(), -3);
  EXPECT_EQ(errorOf("[1, 1e4096]", limits).toString(),
            "line 1, column 10: malformed JSON near '1e4096'");
  EXPECT_EQ(errorOf("{\"a\": [{\"k\": 1, \"k\": 2}]}", limits).toString(),
            "/a/0/k: the key 'k' occurs twice in an object");
}
