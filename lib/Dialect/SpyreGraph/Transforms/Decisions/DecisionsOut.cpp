//===- DecisionsOut.cpp - Write the decisions of a plan ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//===----------------------------------------------------------------------===//

#include "Decisions.h"
#include "Spyre/Dialect/SpyreGraph/IR/Hints.h"
#include "Spyre/Dialect/SpyreGraph/IR/HostTypes.h"
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/xxhash.h"

#include <cmath>
#include <limits>

namespace mlir::spyre_graph {
#define GEN_PASS_DEF_SPYREDECISIONSOUT
#define GEN_PASS_DEF_SPYRENUMBEROPERATIONS
#include "Spyre/Dialect/SpyreGraph/Transforms/Passes.h.inc"
} // namespace mlir::spyre_graph

using namespace mlir;
using namespace mlir::spyre_graph;
using decisions::Json;

//===----------------------------------------------------------------------===//
// The format
//===----------------------------------------------------------------------===//

decisions::Planned::Planned(func::FuncOp func) {
  func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto spyreOp = dyn_cast<SpyreOpInterface>(op))
      ops.push_back(spyreOp);
    else if (auto alloc = dyn_cast<memref::AllocOp>(op))
      buffers.push_back(alloc);
  });
}

std::optional<int64_t> decisions::getNumber(Operation *op) {
  if (auto number = op->getAttrOfType<IntegerAttr>(kNumberAttrName))
    return number.getInt();
  return std::nullopt;
}

Json decisions::toJson(ArrayRef<int64_t> values) {
  Json array = Json::array();
  for (int64_t value : values)
    array.push_back(value);
  return array;
}

Json decisions::toJson(WorkDivisionAttr division) {
  Json object{{"splits", toJson(division.getSplits())},
              {"chunks", toJson(division.getChunks())}};
  if (!division.getOrder().empty())
    object["order"] = toJson(division.getOrder());
  return object;
}

Json decisions::toJson(LayoutAttr layout) {
  return Json{{"order", toJson(layout.getOrder())},
              {"sparse", layout.getSparse()}};
}

Json decisions::toJson(ArrayAttr tiling) {
  Json array = Json::array();
  for (auto level : tiling.getAsRange<DenseI64ArrayAttr>()) {
    Json object{{"scope", level[0]}, {"dim", level[1]}, {"tiles", level[2]}};
    if (level.size() > 3)
      object["multiple"] = level[3];
    array.push_back(std::move(object));
  }
  return array;
}

const Json *decisions::find(const Json &object, const char *key) {
  auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? nullptr : &*found;
}

const Json *decisions::findArray(const Json &object, const char *key) {
  const Json *value = find(object, key);
  return value && value->is_array() ? value : nullptr;
}

const Json *decisions::findObject(const Json &object, const char *key) {
  const Json *value = find(object, key);
  return value && value->is_object() ? value : nullptr;
}

std::optional<StringRef> decisions::findString(const Json &object,
                                               const char *key) {
  const Json *value = find(object, key);
  if (!value || !value->is_string())
    return std::nullopt;
  return StringRef(value->get_ref<const std::string &>());
}

std::optional<int64_t> decisions::findInteger(const Json &object,
                                              const char *key) {
  const Json *value = find(object, key);
  return value ? getInteger(*value) : std::nullopt;
}

std::optional<bool> decisions::findBoolean(const Json &object,
                                           const char *key) {
  const Json *value = find(object, key);
  if (!value || !value->is_boolean())
    return std::nullopt;
  return value->get<bool>();
}

std::optional<int64_t> decisions::getInteger(const Json &value) {
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max()))
    return std::nullopt;
  if (value.is_number_integer())
    return value.get<int64_t>();
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (!value.is_number_float())
    return std::nullopt;
  double number = value.get<double>();
  if (number != std::trunc(number) || number < -kTwoTo63 || number >= kTwoTo63)
    return std::nullopt;
  return static_cast<int64_t>(number);
}

/// Locations may hold any bytes.
static std::string toText(const Json &json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string decisions::print(Attribute attribute) {
  std::string text;
  if (attribute)
    llvm::raw_string_ostream(text) << attribute;
  return text;
}

Json decisions::describeLoops(Operation *op) {
  SmallVector<int64_t> loops;
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>()) {
    std::optional<APInt> count = loop.getStaticTripCount();
    loops.push_back(count ? count->getSExtValue() : -1);
  }
  std::reverse(loops.begin(), loops.end());
  return toJson(loops);
}

const char *decisions::getWrittenKey(Kind kind) {
  constexpr const char *keys[kNumKinds] = {"layouts", "tilings", "divisions",
                                           "placements", "pool"};
  return keys[static_cast<unsigned>(kind)];
}

std::string decisions::hashDecision(const Json &entry, Kind kind) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto add = [&](const char *key) {
    if (const Json *value = find(entry, key))
      os << key << toText(*value, /*indent=*/-1);
  };
  switch (kind) {
  case Kind::Layout:
    add("layout");
    break;
  case Kind::Tiling:
    add("tiling");
    break;
  case Kind::Division:
    add("division");
    add("source_division");
    break;
  case Kind::Placement:
    add("placement");
    break;
  case Kind::Pool:
    add("pool_size");
    break;
  }
  constexpr size_t kDigits = 8;
  return llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true,
                         /*Width=*/16)
      .substr(0, kDigits);
}

SmallVector<const Json *> decisions::getEntries(const Json &function,
                                                Kind kind) {
  if (kind == Kind::Pool)
    return {&function};
  SmallVector<const Json *> entries;
  if (const Json *list =
          findArray(function, kind == Kind::Placement ? "buffers" : "ops"))
    for (const Json &entry : *list)
      entries.push_back(entry.is_object() ? &entry : nullptr);
  return entries;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

namespace {

class NumberOperationsPass
    : public spyre_graph::impl::SpyreNumberOperationsBase<
          NumberOperationsPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return;
    Builder builder(&getContext());
    if (!func->hasAttr(kGraphAttrName)) {
      std::string text;
      llvm::raw_string_ostream(text) << func;
      func->setAttr(kGraphAttrName, builder.getStringAttr(
                                        llvm::utohexstr(llvm::xxh3_64bits(text),
                                                        /*LowerCase=*/true,
                                                        /*Width=*/16)));
    }
    int64_t next = 0;
    SmallVector<SpyreOpInterface> unnumbered;
    func.walk<WalkOrder::PreOrder>([&](SpyreOpInterface op) {
      if (std::optional<int64_t> number = decisions::getNumber(op))
        next = std::max(next, *number + 1);
      else
        unnumbered.push_back(op);
    });
    for (SpyreOpInterface op : unnumbered)
      op->setAttr(kNumberAttrName, builder.getI64IntegerAttr(next++));
  }
};

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

Json describeOp(SpyreOpInterface op) {
  Json object{{"op", op->getName().getStringRef().str()},
              {"location", getSourceLine(op->getLoc())},
              {"extents", decisions::toJson(op.getLoopExtents())},
              {"loops", decisions::describeLoops(op)}};
  if (std::optional<int64_t> number = decisions::getNumber(op)) {
    object["number"] = *number;
    if (auto layout = dyn_cast_or_null<LayoutAttr>(
            getLayout(op.getSpyreInit().getType())))
      object["layout"] = decisions::toJson(layout);
    auto tiling = op->getAttrOfType<ArrayAttr>(kTilingAttrName);
    object["tiling"] = tiling ? decisions::toJson(tiling) : Json::array();
  }
  if (WorkDivisionAttr division = op.getWorkDivision())
    object["division"] = decisions::toJson(division);
  if (auto reshard = dyn_cast<ReshardOp>(*op))
    object["source_division"] = decisions::toJson(reshard.getSourceDivision());
  return object;
}

Json describeBuffer(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  Json object{{"location", getSourceLine(alloc.getLoc())},
              {"shape", decisions::toJson(type.getShape())},
              {"layout", decisions::print(type.getMemorySpace())}};
  if (auto placement = alloc->getAttrOfType<PlacementAttr>(
          SpyreGraphDialect::getPlacementAttrName())) {
    Json place{{"space", stringifyMemorySpace(placement.getSpace()).str()},
               {"offset", placement.getOffset()}};
    if (placement.getSpace() == MemorySpace::lx)
      place["local"] = decisions::toJson(placement.getLocal());
    object["placement"] = std::move(place);
  }
  return object;
}

Json describeFunction(func::FuncOp func) {
  decisions::Planned planned(func);
  Json ops = Json::array(), buffers = Json::array();
  for (SpyreOpInterface op : planned.ops)
    ops.push_back(describeOp(op));
  for (memref::AllocOp alloc : planned.buffers)
    buffers.push_back(describeBuffer(alloc));
  Json object{{"name", func.getName().str()},
              {"ops", std::move(ops)},
              {"buffers", std::move(buffers)}};
  if (auto graph = func->getAttrOfType<StringAttr>(kGraphAttrName))
    object["graph"] = graph.getValue().str();
  if (auto size = func->getAttrOfType<IntegerAttr>(
          SpyreGraphDialect::getPoolSizeAttrName()))
    object["pool_size"] = size.getInt();
  Json written = Json::object();
  for (unsigned number = 0; number < decisions::kNumKinds; ++number) {
    auto kind = static_cast<decisions::Kind>(number);
    SmallVector<std::string> hashes;
    for (const Json *entry : decisions::getEntries(object, kind))
      hashes.push_back(decisions::hashDecision(*entry, kind));
    written[decisions::getWrittenKey(kind)] = llvm::join(hashes, " ");
  }
  object["written"] = std::move(written);
  return object;
}

class DecisionsOutPass
    : public decisions::WithFileOption<
          spyre_graph::impl::SpyreDecisionsOutBase<DecisionsOutPass>> {
public:
  using WithFileOption::WithFileOption;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    Json functions = Json::array();
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal())
        functions.push_back(describeFunction(func));
    Json document{{"version", decisions::kVersion},
                  {"functions", std::move(functions)}};
    std::error_code error;
    llvm::ToolOutputFile out(file, error, llvm::sys::fs::OF_None);
    if (!error) {
      out.os() << toText(document, /*indent=*/2) << "\n";
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

} // namespace
