// SPDX-License-Identifier: Apache-2.0
//===- BrokenRule.h - Errors with the number of a rule ----------*- C++ -*-===//

#ifndef SPYRE_SUPPORT_BROKENRULE_H
#define SPYRE_SUPPORT_BROKENRULE_H

#include "Spyre/Support/Error.h"

#include <string>

namespace spyre::runtime {

/// An input breaks a numbered rule (SpyreCodeRules.td). what() ends with the
/// number in brackets.
class BrokenRule : public Error {
public:
  BrokenRule(std::string rule, std::string message)
      : Error(message + " [" + rule + "]"), rule(std::move(rule)),
        message(std::move(message)) {}

  const std::string rule, message;
};

} // namespace spyre::runtime

#endif // SPYRE_SUPPORT_BROKENRULE_H
