//===- FunctionEntries.h - What a decisions file says -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//
#ifndef SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DECISIONS_FUNCTIONENTRIES_H
#define SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DECISIONS_FUNCTIONENTRIES_H

#include "Decisions.h"

#include <array>
#include <map>
#include <vector>

namespace mlir::spyre_graph::decisions {

/// One of a function's entries in the file.
struct Entry {
  const Json *object;
  std::array<bool, kNumKinds> edited = {};

  bool isEdited(Kind kind) const { return edited[static_cast<unsigned>(kind)]; }
  StringRef getName() const { return findString(*object, "op").value_or(""); }
  /// The source line, for messages.
  std::string getPlace() const;
  bool hasList(const char *key, const Json &list) const;
  bool isTiled() const;
};

/// The entries of a decisions file for one function.
class FunctionEntries {
public:
  explicit FunctionEntries(const Json &function);

  bool isWellFormed() const;
  /// Whether a decision of an earlier kind was edited, on which those of this
  /// kind depend.
  bool isOutdated(Kind kind) const;
  /// Whether an entry's decision is to be taken.
  bool isTaken(const Entry &entry, Kind kind) const {
    return entry.isEdited(kind) || !isOutdated(kind);
  }

  /// The entries of an operation, in order; passes may have made several of it.
  SmallVector<Entry *> getEntriesOf(Operation *op);

  /// Chooses one of the entries of an operation, an edited one if there is one;
  /// null if there are no entries. Sets `disagree` if two were, in different
  /// ways.
  Entry *choose(ArrayRef<Entry *> entries, Kind kind, bool &disagree) const;

  const Json &function;
  std::vector<Entry> ops, buffers;
  /// The pool of the function.
  Entry pool;

private:
  /// Without hashes, everything counts as edited.
  void markEdited(MutableArrayRef<Entry> entries, Kind kind);

  std::map<int64_t, SmallVector<unsigned, 1>> numbered;
  std::array<bool, kNumKinds> anyEdited = {};
};

} // namespace mlir::spyre_graph::decisions

#endif // SPYRE_LIB_DIALECT_SPYREGRAPH_TRANSFORMS_DECISIONS_FUNCTIONENTRIES_H
