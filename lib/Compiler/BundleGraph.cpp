// SPDX-License-Identifier: Apache-2.0
//===- BundleGraph.cpp - SuperDSC bundles as compiled graphs ----*- C++ -*-===//

#include "Spyre/Compiler/BundleGraph.h"
#include "CompilerImpl.h"

#include "Spyre/Runtime/Loader/LoaderFile.h"

#include <algorithm>

using namespace spyre;

CompiledGraph spyre::loadBundles(const std::string &folder,
                                 const BundleOptions &options) {
  CompiledGraph graph;
  graph.cacheKey = folder;
  graph.ktirBytecode = lowerBundles(folder, options);
  graph.program = runtime::loadProgramBytes(graph.ktirBytecode, {}, folder);
  const std::vector<runtime::ArgumentInfo> &arguments =
      graph.program->arguments();
  size_t numInputs =
      std::count_if(arguments.begin(), arguments.end(),
                    [](const runtime::ArgumentInfo &argument) {
                      return argument.kind == runtime::ArgumentInfo::Array;
                    });
  describeArguments(graph, numInputs);
  return graph;
}
