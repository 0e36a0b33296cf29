// SPDX-License-Identifier: Apache-2.0
//===- RepeatedBody.cpp - Loops that move on from tile to tile ------------===//
//
// A scan takes one small tile per iteration of a loop, and carries another one
// to the next iteration: the host would spend its time on setting up what each
// iteration does. But all of them do the same, on tiles that lie a constant
// distance behind those of the iteration before. So the first two iterations
// and the last one run as written, and those between only move on the addresses
// of what was set up once.
//
//===----------------------------------------------------------------------===//

#include "Instrs.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <vector>

using namespace spyre::runtime;

// Fewer iterations than this are not worth setting up.
static constexpr int64_t kFewestIterations = 16;

namespace {
/// The body of a loop that loads tiles, computes their elements one by one, and
/// stores.
class BodyOfTiles : public RepeatedBody {
public:
  /// Null if the body does anything else, or addresses of tiles are no linear
  /// functions of the loop's variable.
  static std::shared_ptr<const BodyOfTiles> find(const ForInstr &loop);
  int64_t run(Core &core, int64_t low, int64_t by,
              int64_t trips) const override;

private:
  class Finder;
  class Iterations;

  /// What happens to tiles; one of the three.
  struct Step {
    const LoadInstr *load = nullptr;
    const StoreInstr *store = nullptr;
    const StructuredLoop *loop = nullptr;
  };
  /// A tile that only has a shape.
  struct Shape {
    int slot;
    const EmptyInstr *empty; ///< null: that of `from`
    int from;
    size_t before; ///< the step that it comes before
  };

  int induction = 0;                  ///< scalar slot
  std::vector<const Instr *> scalars; ///< they, views and access tiles
  std::vector<Step> steps;
  std::vector<Shape> shapes;
  std::vector<int> made; ///< tensor slots that the body sets
  /// From a tile that the body makes to one that it reads in the next
  /// iteration.
  std::vector<std::pair<int, int>> carried;
};
} // namespace

//===----------------------------------------------------------------------===//
// Finding such loops
//===----------------------------------------------------------------------===//

class BodyOfTiles::Finder {
public:
  Finder(BodyOfTiles &result, const ForInstr &loop) : result(result) {
    result.induction = loop.induction;
    varying.insert(loop.induction);
  }
  bool visit(const Instr &instr) {
    if (std::optional<bool> isScalar = visitScalars(instr)) {
      result.scalars.push_back(&instr);
      return *isScalar;
    }
    return visitTiles(instr);
  }
  bool carry(const Transfer &next);

private:
  /// Nothing if the instruction is of another kind.
  std::optional<bool> visitScalars(const Instr &instr);
  bool visitTiles(const Instr &instr);
  bool isLinear(const AffineInstr &affine) const;
  bool isLinear(const AccessTilePlan &plan) const;
  bool canRepeat(const StructuredLoop &loop) const;
  bool varies(int slot) const { return varying.count(slot) != 0; }
  bool anyVaries(const std::vector<int> &slots) const {
    return std::any_of(slots.begin(), slots.end(),
                       [&](int slot) { return varies(slot); });
  }
  bool anyVaries(const std::vector<SizeSource> &sizes) const {
    return std::any_of(sizes.begin(), sizes.end(), [&](const SizeSource &size) {
      return size.slot >= 0 && varies(size.slot);
    });
  }
  bool capturesVarying(const ScalarProgram &body) const {
    return std::any_of(body.captured.begin(), body.captured.end(),
                       [&](const auto &use) { return varies(use.second); });
  }
  void addShape(int slot, const EmptyInstr *empty, int from) {
    result.shapes.push_back({slot, empty, from, result.steps.size()});
    result.made.push_back(slot);
  }

  BodyOfTiles &result;
  std::set<int> varying; ///< scalar slots with a value per iteration
};

/// Whether the result is linear in each operand that varies.
bool BodyOfTiles::Finder::isLinear(const AffineInstr &affine) const {
  if (affine.mode != AffineInstr::Apply)
    return false;
  return std::all_of(affine.nodes.begin(), affine.nodes.end(),
                     [&](const AffineNode &node) {
                       auto isConstant = [&](int n) {
                         return affine.nodes[n].kind == AffineNode::Constant;
                       };
                       return node.kind == AffineNode::Constant ||
                              node.kind == AffineNode::Operand ||
                              node.kind == AffineNode::Add ||
                              (node.kind == AffineNode::Mul &&
                               (isConstant(node.lhs) || isConstant(node.rhs)));
                     });
}

/// Whether each address is linear in the captured values that vary, and sizes
/// do not depend on them.
bool BodyOfTiles::Finder::isLinear(const AccessTilePlan &plan) const {
  auto dependsOn = [&](int form) {
    const auto &captured = plan.forms[form].captured;
    return std::any_of(captured.begin(), captured.end(), [&](const auto &term) {
      return varies(plan.capturedSlots[term.first]);
    });
  };
  return plan.partitionSlots.empty() && plan.indexViewSlots.empty() &&
         !plan.isEnumerated && !plan.pointSet && plan.keptTiles < 0 &&
         std::none_of(
             plan.atoms.begin(), plan.atoms.end(),
             [&](const Atom &atom) { return dependsOn(atom.inner); }) &&
         std::none_of(plan.lowerForms.begin(), plan.lowerForms.end(),
                      dependsOn) &&
         std::none_of(plan.upperForms.begin(), plan.upperForms.end(),
                      dependsOn);
}

std::optional<bool> BodyOfTiles::Finder::visitScalars(const Instr &instr) {
  if (auto *op = dynamic_cast<const ScalarInt *>(&instr))
    return op->op == ScalarInt::TileId ||
           !anyVaries(std::vector<int>{op->a, op->b, op->c});
  if (auto *program = dynamic_cast<const ScalarProgramInstr *>(&instr))
    return !capturesVarying(program->body) && !program->body.extracts() &&
           !program->body.canFail();
  if (auto *affine = dynamic_cast<const AffineInstr *>(&instr)) {
    if (!anyVaries(affine->operands))
      return true;
    varying.insert(affine->dst);
    return isLinear(*affine);
  }
  if (auto *view = dynamic_cast<const MemoryViewInstr *>(&instr))
    return !view->isPartition && !varies(view->offsetSlot) &&
           !anyVaries(view->strides) && !anyVaries(view->symbolSlots);
  if (auto *tile = dynamic_cast<const AccessTileInstr *>(&instr))
    return isLinear(tile->plan);
  return std::nullopt;
}

/// Whether the loop computes each element from those in the same place.
bool BodyOfTiles::Finder::canRepeat(const StructuredLoop &loop) const {
  if (loop.strategy != StructuredLoop::Parallel || loop.hasIndex ||
      loop.body.canFail() || loop.body.extracts() || loop.outputs.empty() ||
      capturesVarying(loop.body))
    return false;
  const std::vector<MapResult> &map = loop.outputs[0].map;
  std::set<int> loops;
  for (const MapResult &dim : map) {
    if (dim.constant != 0 || dim.terms.size() != 1 || dim.terms[0].second != 1)
      return false;
    loops.insert(dim.terms[0].first);
  }
  auto isSame = [&](const LoopOperand &operand) { return operand.map == map; };
  return loops.size() == map.size() && int(map.size()) == loop.numLoops &&
         std::all_of(loop.inputs.begin(), loop.inputs.end(), isSame) &&
         std::all_of(loop.outputs.begin(), loop.outputs.end(), isSame);
}

bool BodyOfTiles::Finder::visitTiles(const Instr &instr) {
  auto addLoop = [&](const StructuredLoop &loop) {
    if (!canRepeat(loop))
      return false;
    result.steps.push_back({nullptr, nullptr, &loop});
    result.made.insert(result.made.end(), loop.results.begin(),
                       loop.results.end());
    return true;
  };
  if (auto *load = dynamic_cast<const LoadInstr *>(&instr)) {
    result.steps.push_back({load});
    result.made.push_back(load->dst);
    return true;
  }
  if (auto *store = dynamic_cast<const StoreInstr *>(&instr)) {
    if (!store->rowLoops.empty() || (store->maker && !addLoop(*store->maker)))
      return false;
    result.steps.push_back({nullptr, store});
    return true;
  }
  if (auto *empty = dynamic_cast<const EmptyInstr *>(&instr)) {
    addShape(empty->dst, empty, -1);
    return !anyVaries(empty->sizes);
  }
  auto *loop = dynamic_cast<const StructuredLoop *>(&instr);
  if (!loop)
    return false;
  if (loop->isFusedAway || loop->isDelayed) {
    addShape(loop->results[0], nullptr, loop->outputs[0].use.slot);
    return true;
  }
  return addLoop(loop->fused ? *loop->fused : *loop);
}

bool BodyOfTiles::Finder::carry(const Transfer &next) {
  for (const auto &[use, to] : next.tensors) {
    int from = use.slot;
    if (from == to)
      continue;
    auto isMade = [&](const Step &step) {
      return (step.load && step.load->dst == from) ||
             (step.loop &&
              std::find(step.loop->results.begin(), step.loop->results.end(),
                        from) != step.loop->results.end());
    };
    if (!std::any_of(result.steps.begin(), result.steps.end(), isMade))
      return false;
    result.carried.push_back({from, to});
  }
  return next.scalars.empty();
}

std::shared_ptr<const BodyOfTiles> BodyOfTiles::find(const ForInstr &loop) {
  auto result = std::make_shared<BodyOfTiles>();
  Finder finder(*result, loop);
  for (const std::unique_ptr<Instr> &instr : loop.body.instrs)
    if (!finder.visit(*instr))
      return nullptr;
  if (!finder.carry(loop.next))
    return nullptr;
  return result;
}

void spyre::runtime::findRepeatedBody(ForInstr &loop) {
  loop.repeated = BodyOfTiles::find(loop);
}

//===----------------------------------------------------------------------===//
// Running them
//===----------------------------------------------------------------------===//

/// The iterations between the first and the last ones of one run of a loop.
class BodyOfTiles::Iterations {
public:
  Iterations(const BodyOfTiles &body, Core &core) : body(body), core(core) {}
  ~Iterations() {
    for (Buffer *buffer : buffers)
      core.pool->release(buffer);
  }
  /// Sets up iterations [first, last). Returns false if their tiles do not lie
  /// at constant distances, are large, or do not fit their views.
  bool prepare(int64_t low, int64_t by, int64_t first, int64_t last);
  void runNext();

private:
  struct Tile {
    int64_t count = 0; ///< elements
    size_t bytes = 0;  ///< of the host tile
    void *data = nullptr;
  };
  /// A load or a store.
  struct Access {
    TileVal tile;
    int64_t distance = 0; ///< bytes from one iteration to the next
    bool isDense = false;
    void *data = nullptr; ///< the host tile
  };
  struct Loop {
    const StructuredLoop *loop;
    size_t count;
    std::vector<void *> results;
    ScalarFrame frame;
  };

  bool findAccesses(int64_t low, int64_t by, int64_t first, int64_t last);
  void enterIteration(int64_t value) {
    core.scalars[body.induction].i = value;
    for (const Instr *instr : body.scalars)
      instr->run(core);
  }
  /// The tile in a slot; null if it is not one of dense elements.
  Tile *find(int slot);
  void make(int slot, Elem elem, int64_t count);
  void addShapes(size_t step);
  bool addLoop(const StructuredLoop &loop);
  void run(Loop &step) const;

  const BodyOfTiles &body;
  Core &core;
  std::vector<std::optional<Tile>> tiles; ///< per slot
  std::vector<Access> accesses;
  std::vector<std::unique_ptr<Loop>> loops;
  std::vector<Buffer *> buffers;
};

bool BodyOfTiles::Iterations::findAccesses(int64_t low, int64_t by,
                                           int64_t first, int64_t last) {
  auto tileSlot = [](const Step &step) {
    return step.load ? step.load->tile : step.store->tile;
  };
  // Addresses are linear: those of two iterations say where the others are, and
  // the last iteration says whether all are inside.
  for (int64_t iteration : {first, first + 1, last}) {
    enterIteration(low + iteration * by);
    size_t number = 0;
    for (const Step &step : body.steps) {
      if (step.loop)
        continue;
      TileVal &now = core.tiles[tileSlot(step)];
      if (!now.prepare().empty() || now.view.isWide || now.numElements == 0 ||
          now.numElements > kBlock)
        return false;
      if (iteration == first) {
        accesses.emplace_back().tile = now;
        continue;
      }
      Access &access = accesses[number++];
      std::optional<int64_t> bytes = access.tile.bytesTo(now);
      if (iteration == first + 1 && bytes)
        access.distance = *bytes;
      if (!bytes || *bytes != access.distance * (iteration - first))
        return false;
    }
  }
  for (Access &access : accesses) {
    if (!access.tile.isRowMajor())
      return false;
    access.isDense = access.tile.isDense();
  }
  return true;
}

BodyOfTiles::Iterations::Tile *BodyOfTiles::Iterations::find(int slot) {
  std::optional<Tile> &tile = tiles[slot];
  if (tile ||
      std::find(body.made.begin(), body.made.end(), slot) != body.made.end())
    return tile ? &*tile : nullptr;
  // It comes from outside of the loop, and stays what it is.
  const TensorVal &t = core.tensors[slot];
  if (t.deferredTile >= 0 || t.isPermuted)
    return nullptr;
  tile = Tile{t.numElements, 0, t.data};
  return &*tile;
}

void BodyOfTiles::Iterations::make(int slot, Elem elem, int64_t count) {
  size_t bytes = size_t(count) * hostSize(elem);
  buffers.push_back(core.pool->get(bytes));
  tiles[slot] = Tile{count, bytes, buffers.back()->data()};
}

void BodyOfTiles::Iterations::addShapes(size_t step) {
  for (const Shape &shape : body.shapes) {
    if (shape.before != step)
      continue;
    Tile tile;
    if (shape.empty) {
      tile.count = 1;
      for (const SizeSource &size : shape.empty->sizes)
        tile.count *= size.get(core);
    } else if (const Tile *from = find(shape.from)) {
      tile.count = from->count;
    }
    tiles[shape.slot] = tile;
  }
}

bool BodyOfTiles::Iterations::addLoop(const StructuredLoop &loop) {
  const ScalarProgram &program = loop.body;
  const Tile *shape = find(loop.outputs[0].use.slot);
  if (!shape || shape->count <= 0 || shape->count > kBlock)
    return false;
  int64_t count = shape->count;
  auto step = std::make_unique<Loop>();
  step->loop = &loop;
  step->count = size_t(count);
  enterProgram(core, program, step->frame);
  auto bind = [&](size_t argument, int slot) {
    const Tile *tile = find(slot);
    if (!tile || tile->count != count || !tile->data)
      return false;
    step->frame.ptr[program.inputs[argument]] = tile->data;
    step->frame.step[program.inputs[argument]] = count > 1;
    return true;
  };
  for (size_t i = 0; i < loop.inputs.size(); ++i)
    if (!bind(i, loop.inputs[i].use.slot))
      return false;
  for (size_t r = 0; r < loop.outputs.size(); ++r)
    if (loop.readsOutput[r] &&
        !bind(loop.inputs.size() + r, loop.outputs[r].use.slot))
      return false;
  for (size_t r = 0; r < loop.outputs.size(); ++r) {
    make(loop.results[r], loop.outputs[r].elem, count);
    step->results.push_back(tiles[loop.results[r]]->data);
  }
  loops.push_back(std::move(step));
  return true;
}

bool BodyOfTiles::Iterations::prepare(int64_t low, int64_t by, int64_t first,
                                      int64_t last) {
  tiles.resize(core.tensors.size());
  if (!findAccesses(low, by, first, last))
    return false;
  for (auto [from, to] : body.carried) {
    const TensorVal &t = core.tensors[to];
    if (!t.data || t.isPermuted || !t.buffer || !mayOverwrite(*t.buffer))
      return false;
    tiles[to] = Tile{t.numElements, 0, t.data};
  }
  auto access = accesses.begin();
  for (size_t s = 0; s < body.steps.size(); ++s) {
    const Step &step = body.steps[s];
    addShapes(s);
    if (step.loop) {
      if (!addLoop(*step.loop))
        return false;
      continue;
    }
    int64_t count = access->tile.numElements;
    int slot = step.load ? step.load->dst : step.store->data.slot;
    if (step.load)
      make(slot, access->tile.view.elem, count);
    const Tile *tile = find(slot);
    if (!tile || !tile->data || tile->count != count)
      return false;
    (access++)->data = tile->data;
  }
  return std::all_of(
      body.carried.begin(), body.carried.end(), [&](const auto &pair) {
        return tiles[pair.first] &&
               tiles[pair.first]->count == tiles[pair.second]->count;
      });
}

void BodyOfTiles::Iterations::run(Loop &step) const {
  const StructuredLoop &loop = *step.loop;
  const std::vector<int> &yields = loop.body.yields;
  ScalarFrame &frame = step.frame;
  // Where an operation makes the only result that is in its register, it makes
  // it in place.
  for (size_t y = 0; y < yields.size(); ++y)
    if (loop.body.scratch[yields[y]] >= 0 &&
        std::count(yields.begin(), yields.end(), yields[y]) == 1)
      frame.ptr[yields[y]] = step.results[y];
  runProgram(core, loop.body, frame, step.count);
  for (size_t y = 0; y < yields.size(); ++y) {
    const void *made = frame.ptr[yields[y]];
    size_t size = hostSize(loop.outputs[y].elem);
    auto *to = static_cast<uint8_t *>(step.results[y]);
    if (frame.step[yields[y]] == 0)
      for (size_t i = 0; i < step.count; ++i)
        std::memcpy(to + i * size, made, size);
    else if (made != to)
      std::memcpy(to, made, step.count * size);
  }
}

void BodyOfTiles::Iterations::runNext() {
  auto access = accesses.begin();
  auto loop = loops.begin();
  for (const Step &step : body.steps) {
    if (step.loop) {
      run(**loop++);
      continue;
    }
    Access &now = *access++;
    TileVal &tile = now.tile;
    if (now.isDense) {
      auto count = size_t(tile.numElements);
      if (step.load)
        loadRun(tile.view.elem, core.ieee, tile.firstByte(), now.data, count);
      else
        storeRun(tile.view.elem, core.ieee, now.data, 1, tile.firstByte(),
                 count);
    } else if (step.load) {
      tile.load(now.data, core.ieee);
    } else {
      tile.store(now.data, core.ieee);
    }
    tile.view.base += now.distance;
  }
  for (auto [from, to] : body.carried)
    std::memcpy(tiles[to]->data, tiles[from]->data, tiles[from]->bytes);
}

int64_t BodyOfTiles::run(Core &core, int64_t low, int64_t by,
                         int64_t trips) const {
  int64_t last = trips - 1;
  if (last - kFirst < kFewestIterations || core.shadow || core.zeroOutside ||
      core.steps || core.numStacked > 1 || !core.keptTiles.empty())
    return 0;
  Iterations iterations(*this, core);
  if (!iterations.prepare(low, by, kFirst, last))
    return 0;
  for (int64_t i = kFirst; i < last; ++i)
    iterations.runNext();
  core.work.repeatedIterations += last - kFirst;
  return last - kFirst;
}
