// SPDX-License-Identifier: Apache-2.0
//===- Compiler.h - From an imported graph to a program ---------*- C++ -*-===//
//
// The compiler as PyTorch sees it. No MLIR types.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_COMPILER_COMPILER_H
#define SPYRE_COMPILER_COMPILER_H

#include "Spyre/Compiler/CompileOptions.h"
#include "Spyre/Compiler/GraphBuilder.h"
#include "Spyre/Runtime/Program/Program.h"
#include "Spyre/Support/Error.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spyre {

/// The check of plans, --spyre-verify-plan, refuses what the other passes have
/// decided, and one of them has a defect. Any other Error says what cannot be
/// compiled: that holds too where the user's decisions replace planned ones
/// (SPYRE_DECISIONS_IN), and where all that is wrong are spans that no core can
/// address (SG-PLAN-C10), for which some graphs have no better plan.
class RefusedPlan : public Error {
public:
  using Error::Error;
};

/// A tensor that the program writes and the caller allocates before each run.
/// Sizes and strides are the largest where they vary
/// (runtime::ArgumentInfo::storageAt()).
struct OutputRoot {
  HostDtype dtype = HostDtype::Float16;
  std::vector<int64_t> sizes, strides;
  TensorLayout layout;
};

/// A compiled graph. Immutable; may be shared between threads.
struct CompiledGraph {
  std::shared_ptr<runtime::Program> program;
  /// Program arguments are: the graph's arguments in order, the output roots
  /// in order, the sizes of its symbols, and the pool if poolBytes is not 0.
  std::vector<std::string> argumentNames;
  std::vector<OutputRoot> outputs;
  size_t numSizes = 0;
  uint64_t poolBytes = 0;
  std::string cacheKey;
  /// The KTIR module as MLIR bytecode.
  std::string ktirBytecode;
  /// Seconds per pass, in order; empty for a graph that was deserialized.
  std::vector<std::pair<std::string, double>> passSeconds;
  /// What passes warned of, with source lines.
  std::vector<std::string> warnings;
  /// The number of a symbol, and a size of it, if what is up to that is better
  /// off in another program than what is beyond (SG-SYMBOL-C5).
  std::optional<std::pair<int64_t, int64_t>> sizesApart;

  /// Bytes that deserialize() takes back: KTIR bytecode and metadata, with a
  /// checksum.
  std::string serialize() const;
  /// Throws Error if the bytes are damaged or of another compiler version.
  static CompiledGraph deserialize(const std::string &bytes);
  /// The KTIR module as text.
  std::string printKTIR() const;
};

/// Key of the compile cache: a hash of the import (without locations), the
/// options, and the compiler's version.
std::string getCacheKey(const GraphBuilder &builder,
                        const CompileOptions &options);

/// Compiles the builder's graph. The builder's module is left as imported.
/// `dumpDir`, if not empty, is a folder (made if absent) that gets
/// `<NN>-<pass>.mlir` after each pass, the plan's decisions, and the bundles if
/// the options ask for some; decisions that lie there replace the planned ones,
/// so what was compiled with a dump is not to be cached. `cacheKey`, if not
/// empty, is what getCacheKey() says of both. Throws Error, or RefusedPlan,
/// whose text holds every diagnostic with its PyTorch source line.
CompiledGraph compile(const GraphBuilder &builder,
                      const CompileOptions &options = {},
                      const std::string &dumpDir = "",
                      std::string cacheKey = "");

} // namespace spyre

#endif // SPYRE_COMPILER_COMPILER_H
