// SPDX-License-Identifier: Apache-2.0
// Precompiled headers of lib/Torch.
#include <ATen/ATen.h>
#include <torch/csrc/python_headers.h>
#include <torch/library.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
