// SPDX-License-Identifier: Apache-2.0
// Precompiled headers of what uses pybind11.
#include "../Precompiled.h"

#include <torch/csrc/utils/pybind.h>
