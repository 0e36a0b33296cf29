//===- Decisions.h - Decisions of a plan as a file --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
//
// The file's format, of which --spyre-decisions-out says what is in it:
//
//   {"version": 2,
//    "functions": [
//      {"name", "graph", "pool_size",
//       "ops": [{"op", "number", "location", "extents", "loops",
//                "layout": {"order", "sparse"},
//                "tiling": [{"scope", "dim", "tiles", "multiple"}],
//                "division": {"splits", "chunks", "order"},
//                "source_division"}],
//       "buffers": [{"location", "shape", "layout",
//                    "placement": {"space", "offset", "local"}}],
//       "written": {"layouts", "tilings", "divisions", "placements", "pool"}}]}
//
// Only operations of the graph have a number, a layout and a tiling. `written`
// has per kind a string of hashes, one per entry, of the decisions as written.
//
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DECISIONS_DECISIONS_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DECISIONS_DECISIONS_H

#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Pass/Pass.h"

#include <nlohmann/json.hpp>

namespace mlir::spyre_graph::decisions {

/// Keys are sorted.
using Json = nlohmann::json;

/// Version of the file format.
constexpr int64_t kVersion = 2;

/// The device operations and allocations of a function in textual order.
struct Planned {
  SmallVector<SpyreOpInterface> ops;
  SmallVector<memref::AllocOp> buffers;

  explicit Planned(func::FuncOp func);
};

/// The number that --spyre-number-operations gave an operation, if any.
std::optional<int64_t> getNumber(Operation *op);

Json toJson(ArrayRef<int64_t> values);
Json toJson(WorkDivisionAttr division);
/// `order` and `sparse`: the format follows from the element type.
Json toJson(LayoutAttr layout);
/// Converts an array in the form of spyre_graph.tile_hints.
Json toJson(ArrayAttr tiling);

// Return the member of an object under a key, or null if there is none of that
// type or `object` is no object.
const Json *find(const Json &object, const char *key);
const Json *findArray(const Json &object, const char *key);
const Json *findObject(const Json &object, const char *key);
std::optional<StringRef> findString(const Json &object, const char *key);
std::optional<int64_t> findInteger(const Json &object, const char *key);
std::optional<bool> findBoolean(const Json &object, const char *key);

/// A whole number, also one that is written with a fraction of 0.
std::optional<int64_t> getInteger(const Json &value);

/// The attribute's text.
std::string print(Attribute attribute);

/// The numbers of tiles of the loops around an operation, outermost first; -1
/// where it is not known.
Json describeLoops(Operation *op);

/// Decisions in the order in which one depends on others.
enum class Kind { Layout, Tiling, Division, Placement, Pool };
constexpr unsigned kNumKinds = 5;

/// The key of a kind in `written`.
const char *getWrittenKey(Kind kind);

/// A hash of what an entry says of one kind; of a function's entry for `Pool`.
std::string hashDecision(const Json &entry, Kind kind);

/// The entries of a function that have decisions of a kind; null for one that
/// is no object.
SmallVector<const Json *> getEntries(const Json &function, Kind kind);

/// A pass that takes the name of its file alone: --pass=f.json for
/// --pass="file=f.json".
template <typename Base>
class WithFileOption : public Base {
public:
  using Base::Base;

  LogicalResult initializeOptions(
      StringRef options,
      function_ref<LogicalResult(const Twine &)> errorHandler) override {
    if (options.empty() || options.contains("file="))
      return Base::initializeOptions(options, errorHandler);
    this->file = options.str();
    return success();
  }
};

} // namespace mlir::spyre_graph::decisions

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DECISIONS_DECISIONS_H
