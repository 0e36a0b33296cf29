// SPDX-License-Identifier: Apache-2.0
// What most unit tests include. A file includes what it uses all the same: it
// has to compile with CMAKE_DISABLE_PRECOMPILE_HEADERS.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
