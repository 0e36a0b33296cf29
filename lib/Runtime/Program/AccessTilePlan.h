// SPDX-License-Identifier: Apache-2.0
//===- AccessTilePlan.h - What is known of an access tile -------*- C++ -*-===//
//
// The properties of an access tile that are the same in all runs. AccessTile.h
// explains them.
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_LIB_RUNTIME_PROGRAM_ACCESSTILEPLAN_H
#define SPYRE_LIB_RUNTIME_PROGRAM_ACCESSTILEPLAN_H

#include "Elements.h"
#include "PointSet.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace spyre::runtime {

/// constant + sum of coefficient x {tile variable, captured value, atom}.
struct LinearForm {
  int64_t constant = 0;
  std::vector<std::pair<int, int64_t>> vars, captured, atoms;
};

/// floordiv, ceildiv or mod of a linear form by a positive constant.
struct Atom {
  enum Kind : uint8_t { FloorDiv, CeilDiv, Mod } kind = FloorDiv;
  int64_t divisor = 1;
  int shift = -1;        ///< log2(divisor) or -1
  int inner = 0;         ///< index into AccessTilePlan::forms
  std::vector<int> vars; ///< all variables below, sorted
};

/// What the loader knows about an access-tile op.
struct AccessTilePlan {
  int rank = 0;
  std::vector<LinearForm> forms; ///< inner forms come before their users
  std::vector<Atom> atoms;
  /// Bounds of each tile dimension's variable: forms over symbols, inclusive.
  std::vector<int> lowerForms, upperForms;
  /// Result type's static sizes, or -1.
  std::vector<int64_t> staticSizes;
  struct BaseDim {
    bool isIndirect = false;
    int form = -1;
    int indexView = -1;          ///< position in indexViewSlots
    std::vector<int> indexForms; ///< one per index view dimension
  };
  std::vector<BaseDim> dims;

  int viewSlot = 0;
  /// Base is a distributed view: the views of its partitions instead.
  std::vector<int> partitionSlots;
  std::vector<int> indexViewSlots;
  /// Which of Core::keptTiles holds its host tiles while a loop reads them
  /// again, or -1.
  int keptTiles = -1;
  std::vector<int> capturedSlots; ///< captured values, then symbols
  int location = 0;

  struct Group {
    std::vector<int> vars; ///< sorted tile dims
    /// (base dim, form restricted to the group's terms, constant 0)
    std::vector<std::pair<int, int>> direct;
    std::vector<int> indirect;    ///< base dims
    std::vector<int> keyCaptured; ///< captured values the group depends on
    /// `period` points further along the last variable, each entry of `direct`
    /// is larger by that of `periodSteps`, wherever that starts. 0: not known.
    int64_t period = 0;
    std::vector<int64_t> periodSteps;
  };
  std::vector<Group> groups;
  std::vector<int> groupOfVar; ///< -1: the variable occurs linearly only
  /// Linear terms of ungrouped variables: per var (base dim, coefficient).
  std::vector<std::vector<std::pair<int, int64_t>>> linearTerms;
  /// The variable along which memory is dense (coefficient 1 in the last base
  /// dim, directly or below a mod), or -1.
  int denseVar = -1;
  /// That variable becomes the innermost of loaded tiles in host memory.
  bool denseInnermost = false;
  /// All that happens to the elements, floats of 16 bits, is that one load
  /// reads them and one store writes them somewhere else: their codes move as
  /// integers.
  bool movesCodes = false;
  /// Base dims whose constant part is a form without variables.
  std::vector<int> constantForms; ///< per base dim, -1 for indirect

  /// Points are written out one by one: the set is no box, the order no
  /// permutation, the view's coordinates are no box, or the view is distributed
  /// and subscripts are more than a base plus one variable each.
  bool isEnumerated = false;
  /// Then, unless tile dimensions are ranges of their own: the variables' set,
  /// and the map whose lexicographic order the points have. Variables are the
  /// set's dimensions; its symbols are captured values.
  std::unique_ptr<PointSet> pointSet;
  AffineExprs pointOrder;
  std::vector<int> pointSymbols; ///< into captured

  /// Forms whose value without variables depends on captured values.
  std::vector<int> changingForms;
  bool hasConstantBox = false; ///< no bound is one of them

  /// What the elements of a view are for loads and stores.
  Elem movedElem(Elem elem) const { return movesCodes ? Elem::I16 : elem; }

  int addForm(LinearForm form);
  /// Fills everything from `groups` on. Call once when dims are complete.
  void finish();

private:
  void findChangingForms();
};

} // namespace spyre::runtime

#endif // SPYRE_LIB_RUNTIME_PROGRAM_ACCESSTILEPLAN_H
