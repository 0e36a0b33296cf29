// SPDX-License-Identifier: Apache-2.0
//===- BundleGraph.h - SuperDSC bundles as compiled graphs ------*- C++ -*-===//

#ifndef SPYRE_COMPILER_BUNDLEGRAPH_H
#define SPYRE_COMPILER_BUNDLEGRAPH_H

#include "Spyre/Compiler/Bundle.h"
#include "Spyre/Compiler/Compiler.h"

namespace spyre {

/// The program of the bundles in a folder, of which every argument but the pool
/// counts as the graph's; the cache key is the folder. Throws Error as
/// lowerBundles does.
CompiledGraph loadBundles(const std::string &folder,
                          const BundleOptions &options = {});

} // namespace spyre

#endif // SPYRE_COMPILER_BUNDLEGRAPH_H
