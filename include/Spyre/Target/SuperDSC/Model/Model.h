// SPDX-License-Identifier: Apache-2.0
//===- Model.h - What a SuperDSC bundle says --------------------*- C++ -*-===//
//
// The facts of a bundle without their repetitions: an sdsc_<i>.json says most
// things several times (a split in the slices, the folds, the stages and the
// addresses). The writer derives all of them from this model; the reader takes
// the facts from one place each and holds every other against what the writer
// would write.
//
// Spelling and meaning of the keys: spec/superdsc.md, "SuperDSC JSON".
//
//===----------------------------------------------------------------------===//

#ifndef SPYRE_TARGET_SUPERDSC_MODEL_MODEL_H
#define SPYRE_TARGET_SUPERDSC_MODEL_MODEL_H

#include "Spyre/Device/DataFormat.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spyre::superdsc {

/// The form of files where the written specification and the reference differ.
enum class Flavor { AsBuilt, Spec };

/// What a dimension is at a launch, if it is of many sizes: the multiples of
/// `granularity` up to Dim::size (spec/symbolic-shapes.md, "Route A").
struct DimSymbol {
  /// Negative; the bundle binds it. Dimensions of one size share it.
  int64_t id = 0;
  /// The size's name in the whole program (inputSymbolsAndTags_).
  std::string name;
  int64_t granularity = 1;

  bool operator==(const DimSymbol &other) const {
    return id == other.id && name == other.name &&
           granularity == other.granularity;
  }
};

/// One dimension of an operation's iteration space.
struct Dim {
  std::string name;
  /// Iterations, padded to whole sticks along a stick; the most of them if
  /// there is a symbol.
  int64_t size = 1;
  /// Slices over cores; divides `size`.
  int64_t slices = 1;
  /// The last `masked` iterations are padding that the operation must not see.
  int64_t masked = 0;
  std::optional<DimSymbol> symbol = std::nullopt;

  int64_t perCore() const { return size / slices; }
};

/// A stick dimension of a label: index into Sdsc::dims, elements per stick.
struct StickDim {
  unsigned dim;
  int64_t size;
};

/// One entry of primaryDsInfo_: a combination of dimensions and stick.
struct Label {
  std::string name;
  /// Inner to outer, the within-stick part left out.
  std::vector<unsigned> order;
  std::vector<StickDim> sticks;
};

/// How a tensor varies along a dimension (scale_).
enum class Scale : int {
  Present = 1,
  /// Broadcast or reduced.
  Absent = -1,
  /// Absent, on the stick dimension: only lane 0 holds a value.
  AbsentStick = -2
};

enum class Indirection { None, Index, Value };

/// A labeled data structure with its allocate node.
struct Tensor {
  /// Index into Sdsc::labels.
  unsigned label = 0;
  DataFormat format = DataFormat::SEN169_FP16;
  /// Bytes of an element.
  int64_t wordLength = 2;
  bool inLX = false;
  /// The tensor's own dimensions, inner to outer (layoutDimOrder_); one entry
  /// of each list below per dimension.
  std::vector<unsigned> order;
  std::vector<Scale> scale;
  /// Whether coordinates along a stick that the tensor is absent along have the
  /// folds of a stick, of one element, instead of those of other dimensions.
  bool foldsAbsentStick = false;
  /// backGapCore_: extent in memory minus iterations, the opposite for
  /// ReStickifyOpHBM. Elements.
  std::vector<int64_t> gap;
  /// maxDimSizes_: -1, or a page size.
  std::vector<int64_t> maxSize;
  Indirection indirection = Indirection::None;
  /// For a value: number of the tensor that holds its indices.
  std::optional<unsigned> indexTensor;
  /// The first byte of each core's slice; negative symbol ids if symbolic.
  bool symbolic = false;
  std::vector<int64_t> addresses;
};

/// An operation parameter in constantInfo_.
struct Constant {
  std::string name;
  DataFormat format = DataFormat::SEN169_FP16;
  /// One raw word.
  uint32_t bits = 0;
};

/// One sdsc_<i>.json.
struct Sdsc {
  Flavor flavor = Flavor::AsBuilt;
  int64_t index = 0;
  /// Device operation without the suffix "nonstick".
  std::string op;
  bool nonstick = false;
  std::vector<Dim> dims;
  /// Whether dimToSymbolMapping_ is there although it is empty, as of a tile in
  /// a loop up to a size (spec/symbolic-shapes.md, "Route B").
  bool hasEmptyMapping = false;
  /// Dimensions in the order in which consecutive cores walk slices, the
  /// fastest first. A permutation of all.
  std::vector<unsigned> coreOrder;
  std::vector<Label> labels;
  std::vector<Tensor> tensors;
  std::vector<Constant> constants;
  /// maskingConstId_: number of the constant that padding counts as, or -1.
  int64_t maskConstant = -1;
  std::string unit;
  DataFormat format = DataFormat::SEN169_FP16;
  /// Tensors in operand order; a tensor may occur twice.
  std::vector<unsigned> inputs, outputs, indices;

  int64_t numCores() const;
  /// Whether some dimension has a symbol.
  bool isSized() const;
  /// Name with the suffix.
  std::string opFunc() const { return nonstick ? op + "nonstick" : op; }
  /// Slice of dimension `dim` that core `core` works on.
  int64_t sliceOf(int64_t core, unsigned dim) const;
};

/// A size that a launch binds: a parameter of bundle.mlir. A multiple of
/// `granularity` from `granularity` to `maximum`, which is one, too.
struct SizeParameter {
  std::string name;
  int64_t granularity = 1, maximum = 1;

  bool operator==(const SizeParameter &other) const {
    return name == other.name && granularity == other.granularity &&
           maximum == other.maximum;
  }
};

/// Whether `name` can be that of a size: letters, digits and '_', at most 64,
/// not with "_base" at the end, which tells parameters of bundle.mlir from
/// their values.
bool isSizeName(const std::string &name);

/// factor x (size / divisor), where the divisor divides the size's granularity
/// and has no factor in common with `factor`.
struct SizeTerm {
  /// Index into Bundle::sizes.
  size_t size = 0;
  int64_t factor = 1, divisor = 1;

  bool operator==(const SizeTerm &other) const {
    return size == other.size && factor == other.factor &&
           divisor == other.divisor;
  }
};

/// The value of one operand of an execution, which is the first byte of a
/// tensor on a core or a size: a base plus a constant plus a multiple of each
/// enclosing loop's counter plus multiples of sizes.
struct Address {
  enum Base { None, Pool, Argument };
  Base base = None;
  /// Number of the argument.
  int64_t argument = 0;
  int64_t offset = 0;
  /// One per enclosing loop, outermost first.
  std::vector<int64_t> strides;
  /// At most one per size, in the order of Bundle::sizes.
  std::vector<SizeTerm> sizes;

  bool operator==(const Address &other) const {
    return base == other.base && argument == other.argument &&
           offset == other.offset && strides == other.strides &&
           sizes == other.sizes;
  }

  /// The number of the size that this is, if it is one and nothing else.
  std::optional<size_t> getSize() const;
  /// Adds a multiple of a size; false if numbers overflow.
  bool add(const SizeTerm &term);
};

/// A step of a bundle: an execution, or a loop around steps.
struct Step {
  /// Empty for a loop.
  std::string file;
  std::vector<int64_t> symbols;
  std::vector<Address> operands;
  /// Only for a loop: the number of iterations, the most of them if it runs up
  /// to a size.
  int64_t count = 0;
  /// Only for a loop up to a size: its index into Bundle::sizes, and by how
  /// many of its elements an iteration is further.
  std::optional<size_t> size = std::nullopt;
  int64_t tile = 1;
  std::vector<Step> body;
  /// Line in bundle.mlir, from 1; 0 if not read from one.
  unsigned line = 0;

  bool isLoop() const { return file.empty(); }
};

/// In Bundle::segments, the pool.
inline constexpr int64_t kPoolSegment = -1;

/// One bundle.mlir and its files.
struct Bundle {
  /// Parameters in order: the pool first where there is one.
  bool hasPoolParameter = false;
  std::vector<int64_t> arguments;
  /// The last parameters.
  std::vector<SizeParameter> sizes;
  /// For one of several bundles: the argument of the whole program that each
  /// segment holds, or kPoolSegment. None if all arguments are parameters,
  /// which then have the numbers of the whole program.
  std::optional<std::vector<int64_t>> segments;
  std::vector<Step> steps;
};

} // namespace spyre::superdsc

#endif // SPYRE_TARGET_SUPERDSC_MODEL_MODEL_H
