// SPDX-License-Identifier: Apache-2.0
//===- Error.h - The project's exception ------------------------*- C++ -*-===//
#ifndef SPYRE_SUPPORT_ERROR_H
#define SPYRE_SUPPORT_ERROR_H

#include <stdexcept>

namespace spyre {

/// Thrown by code without MLIR; the text says what was expected and found.
class Error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

} // namespace spyre

#endif // SPYRE_SUPPORT_ERROR_H
