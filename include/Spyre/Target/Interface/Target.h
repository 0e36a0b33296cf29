//===- Target.h - What a planned program may be -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// A module is planned for a target, the format that it will be written in:
// `spyre_graph.target = #spyre_graph.target<superdsc>`. Formats differ in what
// they can express. Passes ask the module's target and know none by name, so a
// new target is a subclass of Target and its registration, and changes no pass.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_TARGET_INTERFACE_TARGET_H
#define SPYRE_TARGET_INTERFACE_TARGET_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace mlir::spyre_graph {

/// Answers for one target. Everything is allowed unless a target says
/// otherwise; a module without a target is planned with these answers. Objects
/// are immutable and belong to the context.
class Target {
public:
  /// `name`: the keyword in `#spyre_graph.target<name>`; `title`: what messages
  /// call it.
  Target(StringRef name, StringRef title) : name(name), title(title) {}
  virtual ~Target();

  StringRef getName() const { return name; }
  StringRef getTitle() const { return title; }

  //===--------------------------------------------------------------------===//
  // Operations
  //===--------------------------------------------------------------------===//

  /// Whether an elementwise operation may read operands of several element
  /// types and convert them itself.
  virtual bool allowsMixedElementTypes() const { return true; }

  /// Whether a contraction may be computed with its factors exchanged, as
  /// x y = (y^T x^T)^T: the sticks of its result then run along rows.
  virtual bool allowsExchangedFactors() const { return true; }

  /// Whether a gather may write its result along other sticks than those that
  /// it reads.
  virtual bool allowsGatherAcrossSticks() const { return true; }

  /// Whether the part of a table that a view leaves may be copied alone, for a
  /// gather that cannot read the table as it lies.
  virtual bool allowsCopyOfPart() const { return true; }

  /// Whether the sticks of results may run along a dimension whose size is
  /// known only when the program runs.
  virtual bool allowsVaryingSticks() const { return true; }

  //===--------------------------------------------------------------------===//
  // Tile loops
  //===--------------------------------------------------------------------===//

  /// Whether a loop over tiles may carry values: reductions that accumulate
  /// from tile to tile.
  virtual bool allowsCarriedValues() const { return true; }

  /// Whether a loop over tiles may run up to a size that is not a multiple of
  /// the tiles, of which the last one then starts earlier.
  virtual bool allowsOverlappingTiles() const { return true; }

  /// Whether a change of stick may read or write a part of a tensor.
  virtual bool allowsRestickifyOfParts() const { return true; }

  //===--------------------------------------------------------------------===//
  // Division over cores
  //===--------------------------------------------------------------------===//

  /// Whether the last slice of a loop dimension may have fewer units than the
  /// others. A unit is an iteration, or a whole stick of a dimension that runs
  /// along sticks: the last stick may be partly filled in any case.
  virtual bool allowsUnequalSlices() const { return true; }

  /// Whether planners may divide a reduction over cores. (A user's hint may in
  /// any case.)
  virtual bool allowsSplitReductions() const { return true; }

  /// Whether copies and changes of stick may be divided along a dimension that
  /// ends inside a stick.
  virtual bool allowsDividedPadding() const { return true; }

  //===--------------------------------------------------------------------===//
  // LX
  //===--------------------------------------------------------------------===//

  /// Whether cores may exchange parts of a value over the ring
  /// (`spyre_graph.reshard`).
  virtual bool allowsReshard() const { return true; }

  /// Whether indices of a gather or scatter may live in LX.
  virtual bool allowsIndicesInLX() const { return true; }

  /// Whether an operation may access a part of a buffer in LX, or access it
  /// through a map that is not made of plain loop dimensions.
  virtual bool allowsPartsInLX() const { return true; }

  /// Whether a loop over tiles may use a copy in LX that was made before it.
  virtual bool allowsLXAcrossLoops() const { return true; }

  /// Whether the copy of a buffer into LX may give one part to several cores.
  virtual bool allowsReplicatedCopies() const { return true; }

  /// Whether a result of the function may be written to LX first, for those
  /// who read it, and copied out from there.
  virtual bool allowsResultsInLX() const { return true; }

  //===--------------------------------------------------------------------===//
  // Legalization
  //===--------------------------------------------------------------------===//

  /// Adds passes on functions that replace, after layouts are chosen, what the
  /// target cannot express by what it can.
  virtual void addLegalizationPasses(OpPassManager &) const {}

private:
  std::string name, title;
};

/// Makes a target known to the context of a dialect. For an extension of the
/// dialect, which runs when the dialect is loaded. Ends the program if another
/// target has the same name.
void addTarget(SpyreGraphDialect &dialect, std::unique_ptr<Target> target);

/// The target of the module around `op`; everything is allowed where it names
/// none. Null, after an error at the module, if it is not registered
/// (SG-TARGET-C2).
const Target *getTarget(Operation *op);

} // namespace mlir::spyre_graph

#endif // SPYRE_TARGET_INTERFACE_TARGET_H
