// SPDX-License-Identifier: Apache-2.0
//
// Every operation: what the documentation is made from.
//
include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphOps.td"
include "Spyre/Dialect/SpyreGraph/IR/SpyreGraphBundleOps.td"
