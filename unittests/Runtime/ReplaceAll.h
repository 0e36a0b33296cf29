// SPDX-License-Identifier: Apache-2.0
#ifndef SPYRE_UNITTESTS_RUNTIME_REPLACEALL_H
#define SPYRE_UNITTESTS_RUNTIME_REPLACEALL_H

#include <string>

/// Puts `by` in place of each `word` of a program's text.
inline void replaceAll(std::string &text, const std::string &word,
                       const std::string &by) {
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;
       at += by.size())
    text.replace(at, word.size(), by);
}

#endif // SPYRE_UNITTESTS_RUNTIME_REPLACEALL_H
