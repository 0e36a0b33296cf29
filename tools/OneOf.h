// SPDX-License-Identifier: Apache-2.0
//===- OneOf.h - Options that take one of several words ---------*- C++ -*-===//

#ifndef SPYRE_TOOLS_ONEOF_H
#define SPYRE_TOOLS_ONEOF_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"

#include <string>

namespace spyre {

/// The parser of an option with `values`. LLVM's own does not say which words
/// there are.
template <typename T>
class OneOf : public llvm::cl::parser<T> {
public:
  using llvm::cl::parser<T>::parser;
  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text,
             T &value) {
    std::string names;
    for (const auto &choice : this->Values) {
      if (choice.Name == text) {
        value = choice.V.getValue();
        return false;
      }
      bool isLast = &choice == &this->Values.back();
      names += (names.empty() ? ""
                : isLast      ? " or "
                              : ", ") +
               choice.Name.str();
    }
    return option.error("expects " + names + ", found '" + text + "'");
  }
};

} // namespace spyre

#endif // SPYRE_TOOLS_ONEOF_H
