// SPDX-License-Identifier: Apache-2.0
//===- Executions.h - What a program executes, and where --------*- C++ -*-===//

#ifndef SPYRE_LIB_TARGET_SUPERDSC_RAISE_EXECUTIONS_H
#define SPYRE_LIB_TARGET_SUPERDSC_RAISE_EXECUTIONS_H

#include "Spyre/Target/SuperDSC/Model/BundleProgram.h"
#include "Spyre/Target/SuperDSC/Raise/RaiseOptions.h"

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"

#include <map>
#include <optional>

namespace spyre::superdsc {

/// The start of an operand of one execution.
struct Place {
  enum Kind { Argument, Pool, LX } kind = Argument;
  int64_t argument = 0;
  /// Bytes before the first stick that core 0 accesses in the first iterations
  /// of the loops that are kept.
  int64_t offset = 0;
  /// How many of them are due to iterations of loops that are unrolled.
  int64_t unrolled = 0;
  /// Bytes per iteration of each loop that is kept, outermost first.
  std::vector<int64_t> strides;
};

/// One execution of a file.
struct Execution {
  const Sdsc *sdsc = nullptr;
  const ManifestFile *said = nullptr;
  std::vector<Place> places;
  /// Iterations of each dimension that are not padding.
  mlir::SmallVector<int64_t> extents;
  mlir::Location loc;
};

/// An execution, or a loop around some.
struct ExecutionNode {
  std::optional<Execution> execution;
  int64_t count = 0;
  /// Only for a loop: elements by which it moves tiles, and their start.
  int64_t tile = 1, low = 0;
  std::vector<ExecutionNode> body;
  /// Only for a loop: its bundle, the manifest's entry, and its step.
  const LoadedBundle *bundle = nullptr;
  const ManifestBundle *said = nullptr;
  const Step *step = nullptr;

  /// The size that a loop runs up to, or null.
  const SizeParameter *getSize() const {
    return step && step->size ? &bundle->bundle.sizes[*step->size] : nullptr;
  }
  /// The line of bundle.mlir that a loop stands in.
  mlir::Location getLoopLocation(mlir::MLIRContext *context) const;
};

/// "'s0', a multiple of 64 up to 512".
std::string describe(const SizeParameter &size);

/// A loop of bundle.mlir around an execution.
struct Iteration {
  /// Only for a loop that is unrolled: the iteration.
  int64_t number = 0;
  bool isKept = false;
};

/// Finds the executions of a program. Errors are at locations that name files.
class ExecutionCollector {
public:
  ExecutionCollector(const BundleProgram &program, const RaiseOptions &options,
                     mlir::MLIRContext *context)
      : program(program), options(options), context(context) {}

  /// All bundles, with every loop kept.
  mlir::FailureOr<std::vector<ExecutionNode>> collect();

  /// The executions of a loop that stands in no other, one iteration after the
  /// other. How often loops up to sizes run is not known: they are an error.
  mlir::FailureOr<std::vector<ExecutionNode>> unroll(const ExecutionNode &loop);

private:
  mlir::LogicalResult collectSteps(const LoadedBundle &bundle,
                                   const ManifestBundle *said,
                                   mlir::ArrayRef<Step> steps,
                                   mlir::SmallVectorImpl<Iteration> &loops,
                                   std::vector<ExecutionNode> &nodes);
  mlir::FailureOr<Execution> getExecution(const LoadedBundle &bundle,
                                          const ManifestBundle *said,
                                          const Step &step,
                                          mlir::ArrayRef<Iteration> loops);
  mlir::FailureOr<Place>
  findPlace(mlir::ArrayRef<int64_t> segments,
            const std::map<std::string, size_t> &sizeNumbers, const Step &step,
            const Sdsc &sdsc, unsigned tensor, mlir::ArrayRef<Iteration> loops,
            mlir::Location loc);
  /// The argument of each segment of a bundle, or kPoolSegment: arguments in
  /// order behind a pool, if there is one, unless manifest or bundle say it.
  std::vector<int64_t> getSegments(const LoadedBundle &bundle,
                                   const ManifestBundle *said) const;
  mlir::SmallVector<int64_t> getExtents(const Sdsc &sdsc,
                                        const ManifestFile *said);
  const std::map<std::string, const ManifestFile *> &
  getFiles(const ManifestBundle &said);

  const BundleProgram &program;
  RaiseOptions options;
  mlir::MLIRContext *context;
  std::map<const ManifestBundle *, std::map<std::string, const ManifestFile *>>
      files;
};

} // namespace spyre::superdsc

#endif // SPYRE_LIB_TARGET_SUPERDSC_RAISE_EXECUTIONS_H
