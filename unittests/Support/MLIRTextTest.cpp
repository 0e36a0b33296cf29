// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Support/MLIRText.h"

#include "gtest/gtest.h"

#include <vector>

using namespace spyre;

namespace {

using Words = std::vector<std::string>;

Words tokensOf(std::string_view text) {
  MLIRTokens tokens(text);
  Words words;
  for (std::string_view token = tokens.next(); !token.empty();
       token = tokens.next())
    words.emplace_back(token);
  return words;
}

/// What is wrong first with a text.
std::string faultIn(std::string_view text, MLIRTextLimits limits) {
  MLIRTokens tokens(text);
  MLIRTextGuard guard(text, limits);
  for (std::string_view token = tokens.next(); !token.empty();
       token = tokens.next())
    if (std::string fault = guard.follow(token); !fault.empty())
      return fault;
  return "";
}

std::string repeat(const std::string &part, int count) {
  std::string text;
  while (count-- > 0)
    text += part;
  return text;
}

constexpr MLIRTextLimits kFew = {/*depth=*/10, /*operators=*/20};
constexpr const char *kDeep =
    "more than 10 brackets or signs nested in each other";
constexpr const char *kLong = "more than 20 operators in one expression";

TEST(MLIRTextTest, Tokens) {
  EXPECT_EQ(
      tokensOf("a.b(%x) // c\n -> \"d // \\\" e\" f"),
      (Words{"a.b", "(", "%", "x", ")", "-", ">", "\"d // \\\" e\"", "f"}));
  EXPECT_EQ(tokensOf("// a\rb//"), Words{"b"});
  EXPECT_EQ(tokensOf(std::string_view("a\0b", 3)), (Words{"a", "b"}));
  // Names hold signs, but those that are numbers do not.
  EXPECT_EQ(tokensOf("%a-b !-c %0-1 d-e # f-g"),
            (Words{"%", "a-b", "!", "-c", "%", "0", "-", "1", "d", "-", "e",
                   "#", "f", "-", "g"}));
  EXPECT_EQ(tokensOf("{-# a #-}"), (Words{"{", "-", "#", "a", "#", "-", "}"}));
  EXPECT_EQ(tokensOf("\"open"), Words{"\"open"});
  EXPECT_EQ(tokensOf("\"open\\"), Words{"\"open\\"});
}

TEST(MLIRTextTest, SignsInEachOther) {
  for (const char *sign : {"-", "- ", "-\n", "-// c\n", "-\r"}) {
    EXPECT_EQ(faultIn(repeat(sign, 11) + "1", kFew), kDeep) << sign;
    EXPECT_EQ(faultIn(repeat(sign, 10) + "1", kFew), "") << sign;
    EXPECT_EQ(findFaultInBinary(repeat(sign, 11), kFew), kDeep) << sign;
  }
}

TEST(MLIRTextTest, Brackets) {
  for (const char *bracket : {"(", "[ ", "{\n", "<"}) {
    EXPECT_EQ(faultIn(repeat(bracket, 11), kFew), kDeep) << bracket;
    EXPECT_EQ(findFaultInBinary(repeat(bracket, 11), kFew), kDeep) << bracket;
  }
  EXPECT_EQ(faultIn(repeat("(a)", 100), kFew), "");
  EXPECT_EQ(faultIn("\"" + repeat("(", 100) + "\"", kFew), "");
  // What takes brackets back may be in a comment.
  EXPECT_EQ(faultIn(repeat("( // )\n", 11), kFew), kDeep);
  EXPECT_EQ(findFaultInBinary(repeat("( // )\x80\n", 11), kFew), kDeep);
  std::string apart = repeat("(((((", 1) + '\0' + repeat("((((((", 1);
  EXPECT_EQ(findFaultInBinary(apart, kFew), "");
}

TEST(MLIRTextTest, Operators) {
  for (const char *part : {"a + ", "a +\n", "a * ", "a mod ", "a floordiv "}) {
    EXPECT_EQ(faultIn(repeat(part, 21), kFew), kLong) << part;
    EXPECT_EQ(faultIn(repeat(part, 20), kFew), "") << part;
    EXPECT_EQ(findFaultInBinary(repeat(part, 21), kFew), kLong) << part;
  }
  EXPECT_EQ(faultIn(repeat("a + b, ", 100), kFew), "");
}

TEST(MLIRTextTest, ArraysOfNoNumbers) {
  for (const char *text :
       {"array<index>", "array < index : 1>", "array // c\n< // d\nindex",
        "array<!t: 1>", "array<array<index"}) {
    const char *said = "expected an integer or float type of whole bytes";
    EXPECT_EQ(faultIn(text, kFew).rfind(said, 0), 0u) << text;
    EXPECT_EQ(findFaultInBinary(text, kFew).rfind(said, 0), 0u) << text;
  }
  for (const char *text :
       {"array<i64: 1>", "array<i64>", "array, index", "\"array<index>\"",
        "array.b<index>", "vector<index>"})
    EXPECT_EQ(faultIn(text, kFew), "") << text;
}

} // namespace
