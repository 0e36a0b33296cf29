// SPDX-License-Identifier: Apache-2.0
//===- Mutator.h - Mutants of files for fuzzing -----------------*- C++ -*-===//
//
// How many mutants a fuzz test makes, and from which seed: SPYRE_FUZZ_MUTANTS
// and SPYRE_FUZZ_SEED.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_UNITTESTS_TARGET_MUTATOR_H
#define SPYRE_UNITTESTS_TARGET_MUTATOR_H

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace spyre::testing {

inline size_t getSetting(const char *name, size_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

class Mutator {
public:
  explicit Mutator(uint64_t seed) : random(seed) {}

  std::string mutate(std::string text) {
    size_t rounds = 1 + below(3);
    for (size_t i = 0; i < rounds && !text.empty(); ++i)
      mutateOnce(text);
    return text;
  }

private:
  size_t below(size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit - 1)(random);
  }

  void mutateOnce(std::string &text) {
    static const char *const kTokens[] = {
        "-1",
        "0",
        "1",
        "9223372036854775807",
        "-9223372036854775808",
        "1e9",
        "{}",
        "[]",
        "null",
        "\"\"",
        "true",
        "\"-1\"",
        "128",
        "\"9223372036854775807\"",
        "\"out\"",
        "\"mb\"",
        "\"../x\"",
        "4294967296",
        "[[[[[[[[",
        "{\"a\":",
        "-2",
        "64",
        "\"340282366920938463463374607431768211456\""};
    size_t at = below(text.size());
    switch (below(8)) {
    case 0: // A byte.
      text[at] = static_cast<char>(below(256));
      break;
    case 1: // The end.
      text.resize(at);
      break;
    case 2: // A stretch less.
      text.erase(at, 1 + below(64));
      break;
    case 3: { // A stretch twice.
      std::string part = text.substr(at, 1 + below(200));
      text.insert(below(text.size()), part);
      break;
    }
    default: { // A value or number replaced.
      size_t start = text.find_first_of("0123456789-\"", at);
      if (start == std::string::npos)
        return;
      size_t end = text[start] == '"'
                       ? text.find('"', start + 1)
                       : text.find_first_not_of("0123456789-", start);
      if (end == std::string::npos)
        return;
      end += text[start] == '"';
      text.replace(start, end - start, kTokens[below(std::size(kTokens))]);
      break;
    }
    }
  }

  std::mt19937_64 random;
};

} // namespace spyre::testing

#endif // SPYRE_UNITTESTS_TARGET_MUTATOR_H
