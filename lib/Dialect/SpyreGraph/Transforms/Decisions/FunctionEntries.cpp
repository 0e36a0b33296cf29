//===- FunctionEntries.cpp - What a decisions file says ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "FunctionEntries.h"

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::decisions;

std::string Entry::getPlace() const {
  StringRef line = findString(*object, "location").value_or("");
  return line.empty() ? "" : (" at " + line).str();
}

bool Entry::hasList(const char *key, const Json &list) const {
  const Json *own = findArray(*object, key);
  return own && *own == list;
}

bool Entry::isTiled() const {
  const Json *tiling = findArray(*object, "tiling");
  return tiling && !tiling->empty();
}

FunctionEntries::FunctionEntries(const Json &function)
    : function(function), pool{&function} {
  for (const Json *entry : getEntries(function, Kind::Layout))
    ops.push_back({entry});
  for (const Json *entry : getEntries(function, Kind::Placement))
    buffers.push_back({entry});
  for (Kind kind : {Kind::Layout, Kind::Tiling, Kind::Division})
    markEdited(ops, kind);
  markEdited(buffers, Kind::Placement);
  markEdited(pool, Kind::Pool);
  for (auto [position, entry] : llvm::enumerate(ops))
    if (entry.object)
      if (std::optional<int64_t> number = findInteger(*entry.object, "number"))
        numbered[*number].push_back(position);
}

bool FunctionEntries::isWellFormed() const {
  auto isObject = [](const Entry &entry) { return entry.object; };
  return findArray(function, "ops") && findArray(function, "buffers") &&
         llvm::all_of(ops, isObject) && llvm::all_of(buffers, isObject);
}

bool FunctionEntries::isOutdated(Kind kind) const {
  // The pool is as large as placements need, those that were edited too.
  auto numBefore = static_cast<unsigned>(std::min(kind, Kind::Placement));
  return llvm::any_of(ArrayRef(anyEdited).take_front(numBefore),
                      [](bool edited) { return edited; });
}

SmallVector<Entry *> FunctionEntries::getEntriesOf(Operation *op) {
  SmallVector<Entry *> entries;
  if (std::optional<int64_t> number = getNumber(op))
    if (auto found = numbered.find(*number); found != numbered.end())
      for (unsigned position : found->second)
        entries.push_back(&ops[position]);
  return entries;
}

Entry *FunctionEntries::choose(ArrayRef<Entry *> entries, Kind kind,
                               bool &disagree) const {
  Entry *chosen = nullptr;
  for (Entry *entry : entries) {
    if (chosen && chosen->isEdited(kind) && entry->isEdited(kind))
      disagree |= hashDecision(*chosen->object, kind) !=
                  hashDecision(*entry->object, kind);
    if (!chosen || (entry->isEdited(kind) && !chosen->isEdited(kind)))
      chosen = entry;
  }
  return chosen;
}

void FunctionEntries::markEdited(MutableArrayRef<Entry> entries, Kind kind) {
  unsigned number = static_cast<unsigned>(kind);
  SmallVector<StringRef> hashes;
  if (const Json *written = findObject(function, "written"))
    if (auto text = findString(*written, getWrittenKey(kind)))
      text->split(hashes, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (auto [position, entry] : llvm::enumerate(entries)) {
    entry.edited[number] =
        entry.object && (hashes.size() != entries.size() ||
                         hashes[position] != hashDecision(*entry.object, kind));
    anyEdited[number] |= entry.edited[number];
  }
}
