// SPDX-License-Identifier: Apache-2.0
// What most files that use the project's dialects include. A file includes what
// it uses all the same: it has to compile with
// CMAKE_DISABLE_PRECOMPILE_HEADERS.
#include "PrecompiledMLIR.h"
#include "Spyre/Dialect/KTIR/IR/KTIR.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Remarks.h"

#include <nlohmann/json.hpp>

#include <map>
#include <set>
