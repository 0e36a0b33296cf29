// SPDX-License-Identifier: Apache-2.0
//===- Shape.h - Sizes and strides of host tensors --------------*- C++ -*-===//
#ifndef SPYRE_SUPPORT_SHAPE_H
#define SPYRE_SUPPORT_SHAPE_H

#include <cstdint>
#include <string>
#include <vector>

namespace spyre {

/// "[2, 3]".
std::string formatSizes(const std::vector<int64_t> &sizes);

/// Strides in elements of a dense row-major tensor; dimensions of size 0 count
/// as 1. Throws Error if a stride overflows 64 bits.
std::vector<int64_t> rowMajorStrides(const std::vector<int64_t> &sizes);

} // namespace spyre

#endif // SPYRE_SUPPORT_SHAPE_H
