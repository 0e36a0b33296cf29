//===- DecisionsIn.cpp - Take the decisions of a plan -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "FunctionEntries.h"
#include "Spyre/Dialect/SpyreGraph/Analysis/Stage.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "Spyre/Support/Json.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYREDECISIONSIN
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;
using namespace mlir::spyre_graph::decisions;

namespace {

/// `count` numbers (any count if negative) of at least `least`.
bool readNumbers(const Json *array, int64_t count,
                 SmallVectorImpl<int64_t> &numbers, int64_t least = 0) {
  if (!array || (count >= 0 && static_cast<int64_t>(array->size()) != count))
    return false;
  for (const Json &value : *array) {
    std::optional<int64_t> number = getInteger(value);
    if (!number || *number < least)
      return false;
    numbers.push_back(*number);
  }
  return true;
}

class DecisionsInPass
    : public WithFileOption<
          spyre_graph::impl::SpyreDecisionsInBase<DecisionsInPass>> {
public:
  using WithFileOption::WithFileOption;

  void runOnOperation() override {
    if (failed(readFile()) || failed(apply()))
      return signalPassFailure();
  }

private:
  LogicalResult fail(const Twine &what) {
    return getOperation().emitError()
           << "decisions file '" << file.getValue() << "': " << what;
  }
  InFlightDiagnostic failAt(Operation *op) {
    return op->emitOpError() << "the decisions in '" << file.getValue() << "' ";
  }

  LogicalResult readFile() {
    if (file.empty())
      return getOperation().emitError(
          "has no decisions to take; give --spyre-decisions-in=FILE, or "
          "--spyre-decisions-in=\"file=FILE stage=...\"");
    auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/true);
    if (!buffer)
      return getOperation().emitError()
             << "cannot read decisions file '" << file.getValue()
             << "': " << buffer.getError().message();
    StringRef text = (*buffer)->getBuffer();
    // SG-DECISIONS-C1
    ::spyre::JsonLimits limits;
    limits.fractions = true;
    ::spyre::JsonError error;
    std::optional<::spyre::Json> parsed =
        ::spyre::parseJson(text, error, limits);
    if (!parsed)
      return fail(error.toString());
    document = *parsed;
    if (findInteger(document, "version") != kVersion ||
        !findArray(document, "functions"))
      return fail("expected an object with version " + Twine(kVersion) +
                  " and a list of functions");
    return success();
  }

  LogicalResult apply() {
    using Stage =
        LogicalResult (DecisionsInPass::*)(func::FuncOp, FunctionEntries &);
    Stage apply = llvm::StringSwitch<Stage>(stage)
                      .Case("layouts", &DecisionsInPass::applyLayouts)
                      .Case("tilings", &DecisionsInPass::applyTilings)
                      .Case("divisions", &DecisionsInPass::applyDivisions)
                      .Case("plan", &DecisionsInPass::applyPlan)
                      .Default(nullptr);
    if (!apply)
      return getOperation().emitError()
             << "expected stage layouts, tilings, divisions or plan, found '"
             << stage.getValue() << "'";
    const Json &functions = *findArray(document, "functions");
    size_t number = 0;
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      const Json *object =
          number < functions.size() ? &functions[number] : nullptr;
      ++number;
      // SG-DECISIONS-C2
      if (!object || findString(*object, "name") != func.getName())
        return fail("has no decisions for function '" + func.getName() +
                    "'; the file was written for another graph");
      FunctionEntries entries(*object);
      if (!entries.isWellFormed())
        return fail("has no lists of operations and buffers for function '" +
                    func.getName() + "'");
      if (failed(checkStage(func)) || failed((this->*apply)(func, entries)))
        return failure();
    }
    if (number != functions.size())
      return fail("has decisions for " + Twine(functions.size()) +
                  " functions, but there are " + Twine(number) +
                  "; the file was written for another graph");
    return success();
  }

  /// SG-DECISIONS-C5: decisions find their operations.
  LogicalResult checkStage(func::FuncOp func) {
    if (stage == "plan")
      return checkBufferized(func);
    if (func->hasAttr(kGraphAttrName))
      return success();
    WalkResult result = func.walk([&](SpyreOpInterface op) {
      op->emitOpError() << "has no number by which decisions of stage "
                        << stage.getValue()
                        << " find it; run --spyre-number-operations first, "
                           "after --spyre-decompose";
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  //===--------------------------------------------------------------------===//
  // Layouts and tilings
  //===--------------------------------------------------------------------===//

  LogicalResult applyLayouts(func::FuncOp func, FunctionEntries &entries) {
    WalkResult result = func.walk([&](SpyreOpInterface op) {
      SmallVector<Entry *> own = entries.getEntriesOf(op);
      // SG-DECISIONS-C2. Parts of a tiled operation are other ones.
      for (Entry *entry : own)
        if (!entry->isTiled() &&
            entry->getName() != op->getName().getStringRef()) {
          failAt(op) << "were written for another operation, not for "
                     << entry->getName();
          return WalkResult::interrupt();
        }
      return failed(applyLayout(op, own, entries)) ? WalkResult::interrupt()
                                                   : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    // SG-DECISIONS-C2
    auto graph = func->getAttrOfType<StringAttr>(kGraphAttrName);
    if (graph && findString(entries.function, "graph") != graph.getValue())
      return fail("the operations of function '" + func.getName() +
                  "' are not those of the decisions, which were written for "
                  "another graph");
    return success();
  }

  LogicalResult applyLayout(SpyreOpInterface op, ArrayRef<Entry *> own,
                            FunctionEntries &entries) {
    FailureOr<Entry *> entry = choose(op, own, Kind::Layout, entries);
    if (failed(entry))
      return failure();
    if (!*entry || !find(*(*entry)->object, "layout"))
      return success();
    // SG-DECISIONS-C4. What is updated keeps its layout.
    if (!op.getSpyreInit().getDefiningOp<tensor::EmptyOp>()) {
      if ((*entry)->isEdited(Kind::Layout))
        return failAt(op) << "give it another layout, but it updates a tensor, "
                             "whose layout it must keep";
      return success();
    }
    auto type = cast<ShapedType>(op.getSpyreInit().getType());
    SmallVector<int64_t> order;
    const Json *layout = findObject(*(*entry)->object, "layout");
    std::optional<bool> sparse =
        layout ? findBoolean(*layout, "sparse") : std::nullopt;
    bool isPermutation = layout && readNumbers(findArray(*layout, "order"),
                                               type.getRank(), order);
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      isPermutation = isPermutation && llvm::is_contained(order, dim);
    // SG-DECISIONS-C3
    if (!isPermutation || !sparse)
      return failAt(op) << "need for its layout an order of its "
                        << type.getRank()
                        << " dimensions and whether it is sparse";
    op->setAttr(
        kLayoutHintAttrName,
        LayoutAttr::get(&getContext(), order, type.getElementType(), *sparse));
    return success();
  }

  FailureOr<Entry *> choose(Operation *op, ArrayRef<Entry *> own, Kind kind,
                            FunctionEntries &entries) {
    bool disagree = false;
    Entry *entry = entries.choose(own, kind, disagree);
    // SG-DECISIONS-C3
    if (disagree)
      return failAt(op) << "have " << own.size()
                        << " entries for it, which were edited in different "
                           "ways ("
                        << getWrittenKey(kind) << ")";
    return entry;
  }

  LogicalResult applyTilings(func::FuncOp func, FunctionEntries &entries) {
    WalkResult result = func.walk([&](SpyreOpInterface op) {
      FailureOr<Entry *> entry =
          choose(op, entries.getEntriesOf(op), Kind::Tiling, entries);
      if (failed(entry))
        return WalkResult::interrupt();
      if (!*entry || !entries.isTaken(**entry, Kind::Tiling))
        return WalkResult::advance();
      FailureOr<ArrayAttr> tiling = readTiling(op, *(*entry)->object);
      if (failed(tiling))
        return WalkResult::interrupt();
      op->setAttr(kTileHintsAttrName, *tiling);
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  FailureOr<ArrayAttr> readTiling(Operation *op, const Json &entry) {
    Builder builder(&getContext());
    SmallVector<Attribute> levels;
    const Json *array = findArray(entry, "tiling");
    // SG-DECISIONS-C3
    if (!array && find(entry, "tiling"))
      return failAt(op) << "need for its tiling a list of levels";
    for (const Json &level : array ? *array : Json::array()) {
      auto get = [&](const char *key) {
        return findInteger(level, key).value_or(-2);
      };
      int64_t scope = get("scope"), dim = get("dim"), tiles = get("tiles");
      // SG-DECISIONS-C3
      if (scope < 0 || dim < -1 || tiles < 1)
        return failAt(op) << "need for each level of its tiling a scope, a "
                             "dim (-1: none of its loops) and at least one of "
                             "tiles";
      SmallVector<int64_t> numbers{scope, dim, tiles};
      if (int64_t multiple = get("multiple"); multiple > 1)
        numbers.push_back(multiple);
      levels.push_back(builder.getDenseI64ArrayAttr(numbers));
    }
    return builder.getArrayAttr(levels);
  }

  //===--------------------------------------------------------------------===//
  // Divisions
  //===--------------------------------------------------------------------===//

  static bool isSameOp(const Entry &entry, SpyreOpInterface op) {
    return entry.getName() == op->getName().getStringRef() &&
           entry.hasList("extents", toJson(op.getLoopExtents()));
  }

  LogicalResult applyDivisions(func::FuncOp func, FunctionEntries &entries) {
    llvm::SmallPtrSet<Entry *, 16> used;
    WalkResult result =
        func.walk<WalkOrder::PreOrder>([&](SpyreOpInterface op) {
          for (Entry *entry : entries.getEntriesOf(op)) {
            if (!isSameOp(*entry, op) || !used.insert(entry).second)
              continue;
            if (entries.isTaken(*entry, Kind::Division) &&
                failed(applyDivision(op, *entry)))
              return WalkResult::interrupt();
            break;
          }
          return WalkResult::advance();
        });
    return failure(result.wasInterrupted());
  }

  LogicalResult applyDivision(SpyreOpInterface op, Entry &entry) {
    FailureOr<WorkDivisionAttr> division =
        readDivision(op, *entry.object, "division");
    if (failed(division))
      return failure();
    if (*division) {
      numChanged += *division != op.getWorkDivision();
      op.setWorkDivision(*division);
    }
    auto reshard = dyn_cast<ReshardOp>(*op);
    if (!reshard)
      return success();
    FailureOr<WorkDivisionAttr> source =
        readDivision(op, *entry.object, "source_division");
    if (failed(source))
      return failure();
    if (*source) {
      numChanged += *source != reshard.getSourceDivision();
      reshard.setSourceDivisionAttr(*source);
    }
    return success();
  }

  /// The division in an operation's entry; null if it has none.
  FailureOr<WorkDivisionAttr>
  readDivision(SpyreOpInterface op, const Json &entry, const char *name) {
    if (!find(entry, name))
      return WorkDivisionAttr();
    const Json *division = findObject(entry, name);
    SmallVector<int64_t> splits, chunks, order;
    size_t numLoops = op.getLoopExtents().size();
    // SG-DECISIONS-C3
    if (!division ||
        !readNumbers(findArray(*division, "splits"), numLoops, splits) ||
        !readNumbers(findArray(*division, "chunks"), numLoops, chunks) ||
        (find(*division, "order") &&
         !readNumbers(findArray(*division, "order"), numLoops, order)))
      return op->emitOpError()
             << "its " << name << " in '" << file.getValue()
             << "' needs splits and chunks, " << numLoops
             << " numbers each, and as many if it has an order";
    auto attribute = WorkDivisionAttr::getChecked(
        [&] {
          return op->emitOpError()
                 << "its " << name << " in '" << file.getValue() << "': ";
        },
        &getContext(), ArrayRef<int64_t>(splits), ArrayRef<int64_t>(chunks),
        ArrayRef<int64_t>(order));
    if (!attribute)
      return failure();
    return attribute;
  }

  //===--------------------------------------------------------------------===//
  // The plan
  //===--------------------------------------------------------------------===//

  LogicalResult applyPlan(func::FuncOp func, FunctionEntries &entries) {
    Planned planned(func);
    if (failed(checkEarlier(func, planned, entries)))
      return failure();
    bool isReplanned = entries.isOutdated(Kind::Placement);
    if (failed(checkCorrespondence(func, planned, entries, isReplanned)))
      return isReplanned ? applyEditedOnly(func, planned, entries) : failure();
    for (auto [op, entry] : llvm::zip_equal(planned.ops, entries.ops))
      if (entries.isTaken(entry, Kind::Division) &&
          failed(applyDivision(op, entry)))
        return failure();
    for (auto [alloc, entry] :
         llvm::zip_equal(planned.buffers, entries.buffers))
      if (entries.isTaken(entry, Kind::Placement) &&
          failed(applyPlacement(alloc, entry)))
        return failure();
    return applyPool(func, entries);
  }

  /// Applies only edited entries, because the plan differs from that of the
  /// file. Planned placements stay; edited placements are errors.
  LogicalResult applyEditedOnly(func::FuncOp func, Planned &planned,
                                FunctionEntries &entries) {
    DenseMap<int64_t, SmallVector<SpyreOpInterface, 1>> numbered;
    for (SpyreOpInterface op : planned.ops)
      if (std::optional<int64_t> number = getNumber(op))
        numbered[*number].push_back(op);
    // SG-DECISIONS-C4
    for (Entry &entry : entries.ops) {
      if (!entry.isEdited(Kind::Division) || !find(*entry.object, "division"))
        continue;
      std::optional<int64_t> number = findInteger(*entry.object, "number");
      bool isTaken = number && llvm::any_of(numbered.lookup(*number),
                                            [&](SpyreOpInterface op) {
                                              return isSameOp(entry, op);
                                            });
      if (!isTaken)
        return func.emitError()
               << "the decisions in '" << file.getValue()
               << "' divide an operation, " << entry.getName()
               << entry.getPlace()
               << ", that is not in the plan which the edited layouts and "
                  "tilings make; write its decisions to a file and edit that";
    }
    for (Entry &entry : entries.buffers)
      if (entry.isEdited(Kind::Placement))
        return func.emitError()
               << "the decisions in '" << file.getValue() << "' place a buffer"
               << entry.getPlace()
               << " of another plan than the edited layouts, tilings and "
                  "divisions make; write its decisions to a file and edit "
                  "that";
    return applyPool(func, entries);
  }

  /// SG-DECISIONS-C4: edited layouts and tilings are in the plan.
  LogicalResult checkEarlier(func::FuncOp func, Planned &planned,
                             FunctionEntries &entries) {
    DenseMap<int64_t, SpyreOpInterface> numbered;
    for (SpyreOpInterface op : planned.ops)
      if (std::optional<int64_t> number = getNumber(op))
        numbered.try_emplace(*number, op);
    for (Entry &entry : entries.ops) {
      bool layout = entry.isEdited(Kind::Layout),
           tiling = entry.isEdited(Kind::Tiling);
      if ((!layout || !find(*entry.object, "layout")) &&
          (!tiling || !find(*entry.object, "tiling")))
        continue;
      std::optional<int64_t> number = findInteger(*entry.object, "number");
      SpyreOpInterface op = number ? numbered.lookup(*number) : nullptr;
      if (!op)
        return func.emitError() << "the decisions in '" << file.getValue()
                                << "' give a layout or tiling to "
                                << entry.getName() << entry.getPlace()
                                << ", which is not an operation of the graph";
      if (layout && !hasLayout(op, entry))
        return failAt(op) << "give it another layout than it has in the plan; "
                             "they must be read before "
                             "--spyre-propagate-layouts (stage=layouts; "
                             "--spyre-pipeline has all stages)";
      if (tiling && !hasTiling(op, entry))
        return failAt(op) << "tile it otherwise than the plan; they must be "
                             "read before --spyre-coarse-tiling "
                             "(stage=tilings; --spyre-pipeline has all "
                             "stages), whose remarks say what it cannot cut";
    }
    return success();
  }

  static bool hasLayout(SpyreOpInterface op, const Entry &entry) {
    auto layout =
        dyn_cast_or_null<LayoutAttr>(getLayout(op.getSpyreInit().getType()));
    const Json *said = find(*entry.object, "layout");
    return !said || (layout && *said == toJson(layout));
  }

  static bool hasTiling(SpyreOpInterface op, const Entry &entry) {
    auto tiling = op->getAttrOfType<ArrayAttr>(kTilingAttrName);
    return entry.hasList("tiling", tiling ? toJson(tiling) : Json::array());
  }

  /// SG-DECISIONS-C2: whether the file's operations and buffers are the plan's.
  LogicalResult checkCorrespondence(func::FuncOp func, Planned &planned,
                                    FunctionEntries &entries, bool isQuiet) {
    auto check = [&](StringRef what, size_t said, size_t found) {
      if (said == found || isQuiet)
        return success(said == found);
      return fail("has decisions for " + Twine(said) + " " + what +
                  " of function '" + func.getName() + "', which has " +
                  Twine(found) + "; the file was written for another graph");
    };
    if (failed(check("operations", entries.ops.size(), planned.ops.size())) ||
        failed(
            check("buffers", entries.buffers.size(), planned.buffers.size())))
      return failure();
    for (auto [op, entry] : llvm::zip_equal(planned.ops, entries.ops)) {
      if (isSameOp(entry, op) && entry.hasList("loops", describeLoops(op)) &&
          findInteger(*entry.object, "number") == getNumber(op))
        continue;
      if (!isQuiet)
        failAt(op) << "were written for another operation, not for "
                   << entry.getName();
      return failure();
    }
    for (auto [alloc, entry] :
         llvm::zip_equal(planned.buffers, entries.buffers)) {
      MemRefType type = alloc.getType();
      if (entry.hasList("shape", toJson(type.getShape())) &&
          findString(*entry.object, "layout") ==
              StringRef(print(type.getMemorySpace())))
        continue;
      if (!isQuiet)
        failAt(alloc) << "were written for another buffer";
      return failure();
    }
    return success();
  }

  LogicalResult applyPlacement(memref::AllocOp alloc, Entry &entry) {
    if (!find(*entry.object, "placement"))
      return success();
    const Json *place = findObject(*entry.object, "placement");
    MemRefType type = alloc.getType();
    // SG-DECISIONS-C3
    std::optional<StringRef> spaceName =
        place ? findString(*place, "space") : std::nullopt;
    std::optional<MemorySpace> space =
        spaceName ? symbolizeMemorySpace(*spaceName) : std::nullopt;
    std::optional<int64_t> offset =
        place ? findInteger(*place, "offset") : std::nullopt;
    SmallVector<int64_t> local;
    bool hasLocal =
        place && readNumbers(findArray(*place, "local"), type.getRank(), local);
    if (!space || !offset || (*space == MemorySpace::lx && !hasLocal))
      return alloc->emitOpError()
             << "its placement in '" << file.getValue()
             << "' needs a space, pool or lx, an offset, and in lx "
             << type.getRank() << " local extents";
    if (*space == MemorySpace::pool)
      local.clear();
    auto attribute = PlacementAttr::getChecked(
        [&] {
          return alloc->emitOpError()
                 << "its placement in '" << file.getValue() << "': ";
        },
        &getContext(), *space, *offset, ArrayRef<int64_t>(local));
    if (!attribute)
      return failure();
    StringRef name = SpyreGraphDialect::getPlacementAttrName();
    numChanged += attribute != alloc->getAttr(name);
    alloc->setAttr(name, attribute);
    return success();
  }

  LogicalResult applyPool(func::FuncOp func, FunctionEntries &entries) {
    if (!find(entries.function, "pool_size") ||
        !entries.isTaken(entries.pool, Kind::Pool))
      return success();
    std::optional<int64_t> size = findInteger(entries.function, "pool_size");
    // SG-DECISIONS-C3
    if (!size || *size < 0)
      return fail("pool_size of function '" + func.getName() +
                  "' is not a number of bytes");
    func->setAttr(SpyreGraphDialect::getPoolSizeAttrName(),
                  IntegerAttr::get(IntegerType::get(&getContext(), 64), *size));
    return success();
  }

  Json document;
};

} // namespace
