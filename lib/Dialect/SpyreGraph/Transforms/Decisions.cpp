//===- Decisions.cpp - Decisions of a plan as a file ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"
#include "Spyre/Dialect/SpyreGraph/IR/SpyreGraph.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYREDECISIONSOUT
#define GEN_PASS_DEF_SPYREDECISIONSIN
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;
namespace json = llvm::json;

namespace {

/// Of the file's format.
constexpr int64_t kVersion = 1;

std::string print(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

json::Array toJson(ArrayRef<int64_t> values) {
  json::Array array;
  for (int64_t value : values)
    array.push_back(value);
  return array;
}

/// The steps of the loops around an operation, outermost first, as text.
json::Array describeTiling(Operation *op) {
  SmallVector<std::string> loops;
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>()) {
    std::optional<APInt> count = loop.getStaticTripCount();
    loops.push_back(count ? std::to_string(count->getSExtValue())
                          : std::string("unknown"));
  }
  json::Array array;
  for (const std::string &loop : llvm::reverse(loops))
    array.push_back(loop);
  return array;
}

/// The device operations and allocations of a function in textual order.
struct Planned {
  SmallVector<SpyreOpInterface> ops;
  SmallVector<memref::AllocOp> buffers;

  explicit Planned(func::FuncOp func) {
    func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto spyreOp = dyn_cast<SpyreOpInterface>(op))
        ops.push_back(spyreOp);
      else if (auto alloc = dyn_cast<memref::AllocOp>(op))
        buffers.push_back(alloc);
    });
  }
};

PlacementAttr getPlacement(memref::AllocOp alloc) {
  return alloc->getAttrOfType<PlacementAttr>(
      SpyreGraphDialect::getPlacementAttrName());
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

json::Object describeDivision(WorkDivisionAttr division) {
  json::Object object{{"splits", toJson(division.getSplits())},
                      {"chunks", toJson(division.getChunks())}};
  if (!division.getOrder().empty())
    object["order"] = toJson(division.getOrder());
  return object;
}

json::Object describeOp(SpyreOpInterface op) {
  json::Object object{{"op", op->getName().getStringRef()},
                      {"location", getSourceLine(op->getLoc())},
                      {"extents", toJson(op.getLoopExtents())},
                      {"tiling", describeTiling(op)}};
  if (WorkDivisionAttr division = op.getWorkDivision())
    object["division"] = describeDivision(division);
  if (auto reshard = dyn_cast<ReshardOp>(*op))
    object["source_division"] = describeDivision(reshard.getSourceDivision());
  return object;
}

json::Object describeBuffer(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  json::Object object{
      {"location", getSourceLine(alloc.getLoc())},
      {"shape", toJson(type.getShape())},
      {"layout", type.getMemorySpace() ? print(type.getMemorySpace()) : ""}};
  if (PlacementAttr placement = getPlacement(alloc)) {
    json::Object place{{"space", stringifyMemorySpace(placement.getSpace())},
                       {"offset", placement.getOffset()}};
    if (placement.getSpace() == MemorySpace::lx)
      place["local"] = toJson(placement.getLocal());
    object["placement"] = std::move(place);
  }
  return object;
}

class DecisionsOutPass
    : public spyre_graph::impl::SpyreDecisionsOutBase<DecisionsOutPass> {
public:
  using SpyreDecisionsOutBase::SpyreDecisionsOutBase;

  LogicalResult initializeOptions(
      StringRef options,
      function_ref<LogicalResult(const Twine &)> errorHandler) override {
    // The file alone will do: --spyre-decisions-out=f.json.
    if (options.empty() || options.contains("file="))
      return Pass::initializeOptions(options, errorHandler);
    file = options.str();
    return success();
  }

  void runOnOperation() override {
    markAllAnalysesPreserved();
    json::Array functions;
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      Planned planned(func);
      json::Array ops, buffers;
      for (SpyreOpInterface op : planned.ops)
        ops.push_back(describeOp(op));
      for (memref::AllocOp alloc : planned.buffers)
        buffers.push_back(describeBuffer(alloc));
      json::Object object{{"name", func.getName()},
                          {"ops", std::move(ops)},
                          {"buffers", std::move(buffers)}};
      if (auto size = func->getAttrOfType<IntegerAttr>(
              SpyreGraphDialect::getPoolSizeAttrName()))
        object["pool_size"] = size.getInt();
      functions.push_back(std::move(object));
    }
    json::Value document = json::Object{{"version", kVersion},
                                        {"functions", std::move(functions)}};
    std::error_code error;
    llvm::ToolOutputFile out(file, error, llvm::sys::fs::OF_None);
    if (!error) {
      out.os() << llvm::formatv("{0:2}", document) << "\n";
      out.os().flush();
      error = out.os().error();
      out.os().clear_error();
    }
    if (error) {
      getOperation().emitError() << "cannot write decisions to '"
                                 << file.getValue() << "': " << error.message();
      return signalPassFailure();
    }
    out.keep();
  }
};

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

class DecisionsInPass
    : public spyre_graph::impl::SpyreDecisionsInBase<DecisionsInPass> {
public:
  using SpyreDecisionsInBase::SpyreDecisionsInBase;

  LogicalResult initializeOptions(
      StringRef options,
      function_ref<LogicalResult(const Twine &)> errorHandler) override {
    if (options.empty() || options.contains("file="))
      return Pass::initializeOptions(options, errorHandler);
    file = options.str();
    return success();
  }

  void runOnOperation() override {
    if (failed(readFile()) || failed(apply()))
      return signalPassFailure();
  }

private:
  LogicalResult fail(const Twine &what) {
    return getOperation().emitError()
           << "decisions file '" << file.getValue() << "': " << what;
  }

  LogicalResult readFile() {
    auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/true);
    if (!buffer)
      return getOperation().emitError()
             << "cannot read decisions file '" << file.getValue()
             << "': " << buffer.getError().message();
    llvm::Expected<json::Value> parsed = json::parse((*buffer)->getBuffer());
    // SG-DECISIONS-C1
    if (!parsed)
      return fail(llvm::toString(parsed.takeError()));
    document = std::move(*parsed);
    json::Object *object = document.getAsObject();
    if (!object || object->getInteger("version") != kVersion ||
        !object->getArray("functions"))
      return fail("expected an object with version " + Twine(kVersion) +
                  " and a list of functions");
    return success();
  }

  LogicalResult apply() {
    json::Array &functions = *document.getAsObject()->getArray("functions");
    size_t number = 0;
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      json::Object *object =
          number < functions.size() ? functions[number].getAsObject() : nullptr;
      ++number;
      // SG-DECISIONS-C2
      if (!object || object->getString("name") != func.getName())
        return fail("has no decisions for function '" + func.getName() +
                    "'; they are those of another graph");
      if (failed(applyTo(func, *object)))
        return failure();
    }
    if (number != functions.size())
      return fail("has decisions for " + Twine(functions.size()) +
                  " functions, but there are " + Twine(number) +
                  "; they are those of another graph");
    return success();
  }

  LogicalResult applyTo(func::FuncOp func, json::Object &object) {
    Planned planned(func);
    json::Array *ops = object.getArray("ops");
    json::Array *buffers = object.getArray("buffers");
    // SG-DECISIONS-C2
    if (!ops || ops->size() != planned.ops.size())
      return fail("has decisions for " + Twine(ops ? ops->size() : 0) +
                  " operations of function '" + func.getName() +
                  "', which has " + Twine(planned.ops.size()) +
                  "; they are those of another graph");
    if (!buffers || buffers->size() != planned.buffers.size())
      return fail("has decisions for " + Twine(buffers ? buffers->size() : 0) +
                  " buffers of function '" + func.getName() + "', which has " +
                  Twine(planned.buffers.size()) +
                  "; they are those of another graph");
    for (auto [op, entry] : llvm::zip_equal(planned.ops, *ops))
      if (failed(applyTo(op, entry.getAsObject())))
        return failure();
    for (auto [alloc, entry] : llvm::zip_equal(planned.buffers, *buffers))
      if (failed(applyTo(alloc, entry.getAsObject())))
        return failure();
    if (std::optional<int64_t> size = object.getInteger("pool_size")) {
      // SG-DECISIONS-C3
      if (*size < 0)
        return fail("pool_size is negative");
      func->setAttr(
          SpyreGraphDialect::getPoolSizeAttrName(),
          IntegerAttr::get(IntegerType::get(&getContext(), 64), *size));
    }
    return success();
  }

  LogicalResult applyTo(SpyreOpInterface op, json::Object *entry) {
    // SG-DECISIONS-C2
    if (!entry || entry->getString("op") != op->getName().getStringRef() ||
        !entry->getArray("extents") ||
        *entry->getArray("extents") != toJson(op.getLoopExtents()))
      return op->emitOpError() << "the decisions in '" << file.getValue()
                               << "' are for another operation here"
                               << (entry && entry->getString("op")
                                       ? ", " + entry->getString("op")->str()
                                       : std::string());
    // SG-DECISIONS-C4
    if (entry->getArray("tiling") &&
        *entry->getArray("tiling") != describeTiling(op))
      return op->emitOpError()
             << "the decisions in '" << file.getValue()
             << "' tile it otherwise; loops are made before plans are, so "
                "their number must be given to --spyre-coarse-tiling";
    FailureOr<WorkDivisionAttr> division = readDivision(op, *entry, "division");
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
        readDivision(op, *entry, "source_division");
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
  readDivision(SpyreOpInterface op, json::Object &entry, StringRef name) {
    json::Object *division = entry.getObject(name);
    if (!division)
      return WorkDivisionAttr();
    SmallVector<int64_t> splits, chunks, order;
    size_t numLoops = op.getLoopExtents().size();
    // SG-DECISIONS-C3
    if (!readNumbers(division->getArray("splits"), numLoops, splits) ||
        !readNumbers(division->getArray("chunks"), numLoops, chunks) ||
        (division->get("order") &&
         !readNumbers(division->getArray("order"), numLoops, order)))
      return op->emitOpError()
             << "its " << name << " in '" << file.getValue()
             << "' needs splits and chunks, " << numLoops
             << " numbers each, and as many if it has an order";
    return WorkDivisionAttr::get(&getContext(), splits, chunks, order);
  }

  LogicalResult applyTo(memref::AllocOp alloc, json::Object *entry) {
    MemRefType type = alloc.getType();
    // SG-DECISIONS-C2
    if (!entry || !entry->getArray("shape") ||
        *entry->getArray("shape") != toJson(type.getShape()))
      return alloc->emitOpError() << "the decisions in '" << file.getValue()
                                  << "' are for another buffer here";
    // SG-DECISIONS-C4
    if (std::optional<StringRef> layout = entry->getString("layout");
        layout && *layout != print(type.getMemorySpace()))
      return alloc->emitOpError()
             << "the decisions in '" << file.getValue()
             << "' give it the layout " << *layout
             << "; index maps and copies depend on layouts, so it must be "
                "given to --spyre-propagate-layouts";
    json::Object *place = entry->getObject("placement");
    if (!place)
      return success();
    // SG-DECISIONS-C3
    std::optional<StringRef> spaceName = place->getString("space");
    std::optional<MemorySpace> space =
        spaceName ? symbolizeMemorySpace(*spaceName) : std::nullopt;
    std::optional<int64_t> offset = place->getInteger("offset");
    SmallVector<int64_t> local;
    bool hasLocal =
        readNumbers(place->getArray("local"), type.getRank(), local);
    if (!space || !offset || (*space == MemorySpace::lx && !hasLocal))
      return alloc->emitOpError()
             << "its placement in '" << file.getValue()
             << "' needs a space, pool or lx, an offset, and in lx "
             << type.getRank() << " local extents";
    if (*space == MemorySpace::pool)
      local.clear();
    auto attribute = PlacementAttr::get(&getContext(), *space, *offset, local);
    numChanged += attribute != getPlacement(alloc);
    alloc->setAttr(SpyreGraphDialect::getPlacementAttrName(), attribute);
    return success();
  }

  static bool readNumbers(const json::Array *array, size_t count,
                          SmallVectorImpl<int64_t> &numbers) {
    if (!array || array->size() != count)
      return false;
    for (const json::Value &value : *array) {
      std::optional<int64_t> number = value.getAsInteger();
      if (!number || *number < 0)
        return false;
      numbers.push_back(*number);
    }
    return true;
  }

  json::Value document = nullptr;
};

} // namespace
