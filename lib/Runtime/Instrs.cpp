// SPDX-License-Identifier: Apache-2.0
//===- Instrs.cpp - Instructions of decoded programs ----------------------===//

#include "Instrs.h"

#include <algorithm>

using namespace spyre;
using namespace spyre::runtime;

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

static int64_t wrap(int64_t value, Elem elem) {
  switch (elem) {
  case Elem::I1:
    return value & 1;
  case Elem::I8:
    return static_cast<int8_t>(value);
  case Elem::I16:
    return static_cast<int16_t>(value);
  case Elem::I32:
    return static_cast<int32_t>(value);
  default:
    return value;
  }
}

static uint64_t asUnsigned(int64_t value, Elem elem) {
  int width = bitWidth(elem);
  return width == 64
             ? static_cast<uint64_t>(value)
             : static_cast<uint64_t>(value) & ((uint64_t(1) << width) - 1);
}

static int64_t asSigned(int64_t value, Elem elem) {
  return elem == Elem::I1 ? -(value & 1) : value;
}

static bool compareInt(IntPredicate predicate, int64_t a, int64_t b,
                       Elem elem) {
  uint64_t ua = asUnsigned(a, elem), ub = asUnsigned(b, elem);
  a = asSigned(a, elem);
  b = asSigned(b, elem);
  switch (predicate) {
  case IntPredicate::EQ:
    return a == b;
  case IntPredicate::NE:
    return a != b;
  case IntPredicate::SLT:
    return a < b;
  case IntPredicate::SLE:
    return a <= b;
  case IntPredicate::SGT:
    return a > b;
  case IntPredicate::SGE:
    return a >= b;
  case IntPredicate::ULT:
    return ua < ub;
  case IntPredicate::ULE:
    return ua <= ub;
  case IntPredicate::UGT:
    return ua > ub;
  case IntPredicate::UGE:
    return ua >= ub;
  }
  return false;
}

static int64_t floorDivide(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

void ScalarInt::run(Core &core) const {
  Scalar *s = core.scalars.data();
  switch (op) {
  case Copy:
    s[dst].i = s[a].i;
    return;
  case TileId:
    s[dst].i = core.coordinate[code];
    return;
  case Compare:
    s[dst].i = compareInt(IntPredicate(code), s[a].i, s[b].i, source);
    return;
  case Select:
    s[dst] = s[a].i ? s[b] : s[c];
    return;
  case Cast:
    s[dst].i = wrap(isSigned ? asSigned(s[a].i, source)
                             : static_cast<int64_t>(asUnsigned(s[a].i, source)),
                    elem);
    return;
  case Binary:
    break;
  }
  // Arithmetic wraps: compute in unsigned.
  int64_t x = asSigned(s[a].i, elem), y = asSigned(s[b].i, elem);
  uint64_t ux = asUnsigned(x, elem), uy = asUnsigned(y, elem);
  int width = bitWidth(elem);
  auto checkDivisor = [&] {
    if (y == 0)
      core.fail(location, "integer division by zero");
  };
  bool minusOne = y == -1;
  int64_t r = 0;
  switch (IntBinaryOp(code)) {
  case IntBinaryOp::Add:
    r = static_cast<int64_t>(static_cast<uint64_t>(x) +
                             static_cast<uint64_t>(y));
    break;
  case IntBinaryOp::Sub:
    r = static_cast<int64_t>(static_cast<uint64_t>(x) -
                             static_cast<uint64_t>(y));
    break;
  case IntBinaryOp::Mul:
    r = static_cast<int64_t>(static_cast<uint64_t>(x) *
                             static_cast<uint64_t>(y));
    break;
  case IntBinaryOp::DivS:
    checkDivisor();
    r = minusOne ? static_cast<int64_t>(-static_cast<uint64_t>(x)) : x / y;
    break;
  case IntBinaryOp::DivU:
    checkDivisor();
    r = static_cast<int64_t>(ux / uy);
    break;
  case IntBinaryOp::FloorDivS:
    checkDivisor();
    r = minusOne ? static_cast<int64_t>(-static_cast<uint64_t>(x))
                 : floorDivide(x, y);
    break;
  case IntBinaryOp::CeilDivS:
    checkDivisor();
    r = minusOne ? static_cast<int64_t>(-static_cast<uint64_t>(x))
                 : floorDivide(x, y) + (x % y != 0);
    break;
  case IntBinaryOp::CeilDivU:
    checkDivisor();
    r = static_cast<int64_t>(ux / uy + (ux % uy != 0));
    break;
  case IntBinaryOp::RemS:
    checkDivisor();
    r = minusOne ? 0 : x % y;
    break;
  case IntBinaryOp::RemU:
    checkDivisor();
    r = static_cast<int64_t>(ux % uy);
    break;
  case IntBinaryOp::And:
    r = x & y;
    break;
  case IntBinaryOp::Or:
    r = x | y;
    break;
  case IntBinaryOp::Xor:
    r = x ^ y;
    break;
  case IntBinaryOp::Shl:
    r = uy < uint64_t(width) ? static_cast<int64_t>(ux << uy) : 0;
    break;
  case IntBinaryOp::ShrS:
    r = x >> std::min<uint64_t>(uy, 63);
    break;
  case IntBinaryOp::ShrU:
    r = uy < uint64_t(width) ? static_cast<int64_t>(ux >> uy) : 0;
    break;
  case IntBinaryOp::MinS:
    r = std::min(x, y);
    break;
  case IntBinaryOp::MaxS:
    r = std::max(x, y);
    break;
  case IntBinaryOp::MinU:
    r = ux < uy ? x : y;
    break;
  case IntBinaryOp::MaxU:
    r = ux > uy ? x : y;
    break;
  }
  s[dst].i = wrap(r, elem);
}

/// A scalar slot's value from host tile memory.
static Scalar readElement(const void *p, Elem elem) {
  Scalar s;
  s.i = 0;
  if (isFloat(elem)) {
    std::memcpy(&s.f, p, 4);
  } else if (isWide(elem)) {
    std::memcpy(&s.i, p, 8);
  } else {
    int32_t v;
    std::memcpy(&v, p, 4);
    s.i = v;
  }
  return s;
}

static void writeElement(void *p, Scalar value, Elem elem) {
  if (isFloat(elem)) {
    std::memcpy(p, &value.f, 4);
  } else if (isWide(elem)) {
    std::memcpy(p, &value.i, 8);
  } else {
    int32_t v = static_cast<int32_t>(value.i);
    std::memcpy(p, &v, 4);
  }
}

void ScalarBody::run(Core &core) const {
  BodyFrame frame;
  enterBody(core, body, frame);
  runBody(core, body, frame, 1);
  for (size_t r = 0; r < results.size(); ++r) {
    int reg = body.yields[r];
    core.scalars[results[r]] = readElement(frame.ptr[reg], body.regElem[reg]);
  }
}

int64_t AffineInstr::evaluate(Core &core, int index) const {
  const AffineNode &node = nodes[index];
  switch (node.kind) {
  case AffineNode::Constant:
    return node.value;
  case AffineNode::Operand:
    return core.scalars[operands[node.value]].i;
  default:
    break;
  }
  int64_t x = evaluate(core, node.lhs), y = evaluate(core, node.rhs);
  switch (node.kind) {
  case AffineNode::Add:
    return x + y;
  case AffineNode::Mul:
    return x * y;
  default:
    break;
  }
  if (y <= 0)
    core.fail(location, "affine division by " + std::to_string(y) +
                            ", expected a positive divisor");
  int64_t q = floorDivide(x, y);
  if (node.kind == AffineNode::FloorDiv)
    return q;
  if (node.kind == AffineNode::CeilDiv)
    return q + (x - q * y != 0);
  return x - q * y;
}

void AffineInstr::run(Core &core) const {
  int64_t result = evaluate(core, roots[0]);
  for (size_t i = 1; i < roots.size(); ++i) {
    int64_t value = evaluate(core, roots[i]);
    result = mode == Min ? std::min(result, value) : std::max(result, value);
  }
  core.scalars[dst].i = result;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void MemoryViewInstr::run(Core &core) const {
  ViewVal &v = core.views[dst];
  v.elem = elem;
  v.isLX = isLX;
  v.lxCore = static_cast<int>(lxCore);
  v.rank = static_cast<int>(strides.size());
  int64_t elemSize = deviceSize(elem);
  std::vector<int64_t> symbols;
  symbols.reserve(symbolSlots.size());
  for (int slot : symbolSlots)
    symbols.push_back(core.scalars[slot].i);
  bool overflow = false;
  auto multiply = [&](int64_t a, int64_t b) {
    int64_t r;
    overflow |= __builtin_mul_overflow(a, b, &r);
    return r;
  };
  auto add = [&](int64_t a, int64_t b) {
    int64_t r;
    overflow |= __builtin_add_overflow(a, b, &r);
    return r;
  };
  int64_t low = 0, high = 0, origin = 0;
  bool isEmpty = false;
  for (int d = 0; d < v.rank; ++d) {
    auto evaluate = [&](int form) {
      const LinearForm &f = bounds.forms[form];
      int64_t value = f.constant;
      for (auto [symbol, coefficient] : f.captured)
        value = add(value, multiply(coefficient, symbols[symbol]));
      return value;
    };
    v.strides[d] = strides[d].get(core);
    v.lo[d] = evaluate(lowerForms[d]);
    v.hi[d] = evaluate(upperForms[d]);
    if (v.hi[d] < v.lo[d]) {
      isEmpty = true;
      continue;
    }
    int64_t first = multiply(v.lo[d], v.strides[d]);
    int64_t last = multiply(v.hi[d], v.strides[d]);
    origin = add(origin, first);
    low = add(low, std::min(first, last));
    high = add(high, std::max(first, last));
  }
  int64_t offset = core.scalars[offsetSlot].i;
  v.byteAddress = multiply(offset, elemSize);
  int64_t firstByte = add(v.byteAddress, multiply(low, elemSize));
  int64_t endByte = add(v.byteAddress, multiply(add(high, 1), elemSize));
  int64_t originByte = add(v.byteAddress, multiply(origin, elemSize));
  if (isPartition) {
    int64_t shift = multiply(origin, elemSize);
    originByte = v.byteAddress;
    v.byteAddress -= shift;
    firstByte -= shift;
    endByte -= shift;
  }
  if (overflow)
    core.fail(location, "memory view at element " + std::to_string(offset) +
                            " overflows 63-bit addresses");
  int64_t blockStart, blockEnd;
  if (isLX) {
    int64_t owner = lxCore < 0 ? core.coreId : lxCore;
    blockStart = 0;
    blockEnd = DeviceMemory::kLXSizeInBytes;
    v.base = core.memory->lx(owner);
  } else {
    auto block = originByte < 0 ? std::pair<uint64_t, uint64_t>{0, 0}
                                : core.blockOf(originByte);
    blockStart = static_cast<int64_t>(block.first);
    blockEnd = static_cast<int64_t>(block.second);
    v.base = core.memory->at(0);
    if (blockEnd == 0 && !isEmpty)
      core.fail(location, "memory view at byte address " +
                              std::to_string(originByte) +
                              " is not in allocated device memory");
  }
  v.checked = isEmpty || (firstByte >= blockStart && endByte <= blockEnd);
  v.limitLo = blockStart - v.byteAddress;
  v.limitHi = blockEnd - v.byteAddress;
  // Out-of-block bases are legal while accesses stay inside: no pointer
  // outside the mapping is ever dereferenced.
  v.base = reinterpret_cast<uint8_t *>(reinterpret_cast<uintptr_t>(v.base) +
                                       static_cast<uintptr_t>(v.byteAddress));
}

void AccessTileInstr::run(Core &core) const {
  TileVal &tile = core.tiles[dst];
  tile.plan = &plan;
  if (plan.partitionSlots.empty())
    tile.view = core.views[plan.viewSlot];
  tile.indexViews.clear();
  for (int slot : plan.indexViewSlots)
    tile.indexViews.push_back(&core.views[slot]);
  tile.captured.clear();
  for (int slot : plan.capturedSlots)
    tile.captured.push_back(core.scalars[slot].i);
  std::string error = tile.setExtents();
  if (!error.empty())
    core.fail(location, error);
}

uint64_t spyre::runtime::mergeSticks(Sticks &sticks) {
  std::sort(sticks.begin(), sticks.end());
  uint64_t count = 0;
  size_t kept = 0;
  for (auto [first, last] : sticks) {
    if (kept > 0 && first <= sticks[kept - 1].second + 1) {
      int64_t &end = sticks[kept - 1].second;
      if (last > end) {
        count += last - end;
        end = last;
      }
      continue;
    }
    count += last - first + 1;
    sticks[kept++] = {first, last};
  }
  sticks.resize(kept);
  return count;
}

// Smaller tiles fit the first-level cache as they are.
static constexpr int64_t kDeferredElements = 8192;

/// A tile of a distributed view.
static void moveDistributed(Core &core, int location, TileVal &tile, void *data,
                            bool isStore) {
  std::vector<const ViewVal *> partitions;
  for (int slot : tile.plan->partitionSlots)
    partitions.push_back(&core.views[slot]);
  std::string error =
      tile.moveDistributed(partitions, data, isStore, core.ieee);
  if (!error.empty())
    core.fail(location, error);
}

void LoadInstr::run(Core &core) const {
  TileVal &t = core.tiles[tile];
  if (!t.plan->partitionSlots.empty()) {
    TensorVal &result = core.tensors[dst];
    result.rank = t.plan->rank;
    std::copy(t.sizes, t.sizes + result.rank, result.sizes);
    result.numElements = t.numElements;
    core.allocateTensor(dst, elem, t.numElements);
    moveDistributed(core, location, t, result.data, false);
    return;
  }
  std::string error = t.prepare(core.zeroOutside);
  if (!error.empty())
    core.fail(location, error);
  TensorVal &result = core.tensors[dst];
  result.rank = t.plan->rank;
  std::copy(t.sizes, t.sizes + result.rank, result.sizes);
  result.numElements = t.numElements;
  if (isDeferred && t.numElements >= kDeferredElements) {
    core.releaseTensor(dst);
    result.deferredTile = tile;
    return;
  }
  core.allocateTensor(dst, elem, t.numElements);
  t.load(result.data, core.ieee);
  if (t.plan->denseInnermost && t.numElements > 0) {
    result.isPermuted = true;
    std::copy(t.hostStrides(), t.hostStrides() + result.rank, result.strides);
  }
}

void LoadInstr::runGang(Core *const *cores, int numCores) const {
  for (int i = 0; i < numCores; ++i) {
    Core &core = *cores[i];
    const TileVal &t = core.tiles[tile];
    if (!t.plan->partitionSlots.empty()) {
      run(core);
      continue;
    }
    int same = -1;
    for (int j = i - 1; j >= 0 && same < 0; --j)
      if (cores[j]->tensors[dst].buffer && t.readsSame(cores[j]->tiles[tile]))
        same = j;
    if (same < 0) {
      run(core);
      continue;
    }
    core.moveTensor(dst, {dst, false}, *cores[same]);
  }
}

void StoreInstr::run(Core &core) const {
  TileVal &t = core.tiles[tile];
  core.materialize(data.slot, elem);
  const TensorVal &value = core.tensors[data.slot];
  for (int d = 0; d < value.rank; ++d)
    if (value.sizes[d] != t.sizes[d])
      core.fail(location, "dimension " + std::to_string(d) +
                              " of the data tile has size " +
                              std::to_string(value.sizes[d]) +
                              ", that of the access tile " +
                              std::to_string(t.sizes[d]));
  if (!t.plan->partitionSlots.empty())
    return moveDistributed(core, location, t, value.data, true);
  std::string error = t.prepare(core.zeroOutside);
  if (!error.empty())
    core.fail(location, error);
  t.store(value.data, core.ieee);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void Transfer::run(Core &core) const {
  if (scalars.size() == 1) {
    core.scalars[scalars[0].second] = core.scalars[scalars[0].first];
  } else if (!scalars.empty()) {
    std::vector<Scalar> values;
    values.reserve(scalars.size());
    for (auto [from, to] : scalars)
      values.push_back(core.scalars[from]);
    for (size_t i = 0; i < scalars.size(); ++i)
      core.scalars[scalars[i].second] = values[i];
  }
  if (tensors.empty())
    return;
  if (tensors.size() == 1) {
    auto [use, to] = tensors[0];
    if (use.slot != to)
      core.moveTensor(to, use);
    return;
  }
  // Take all references first: targets may be sources of others.
  std::vector<TensorVal> values;
  values.reserve(tensors.size());
  for (auto &[use, to] : tensors) {
    TensorVal &source = core.tensors[use.slot];
    values.push_back(source);
    if (!source.buffer)
      continue;
    if (use.dies) {
      source.buffer = nullptr;
      source.data = nullptr;
    } else {
      core.pool->retain(source.buffer);
    }
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    int to = tensors[i].second;
    core.releaseTensor(to);
    core.tensors[to] = values[i];
  }
}

int64_t ForInstr::count(Core &core) const {
  int64_t low = core.scalars[lower].i, high = core.scalars[upper].i;
  int64_t by = core.scalars[step].i;
  if (by <= 0)
    core.fail(location, "loop step is " + std::to_string(by) +
                            ", expected a positive one");
  bool isEmpty = isUnsigned
                     ? static_cast<uint64_t>(low) >= static_cast<uint64_t>(high)
                     : low >= high;
  if (isEmpty)
    return 0;
  return static_cast<int64_t>(
      (uint64_t(high) - uint64_t(low) - 1) / uint64_t(by) + 1);
}

void ForInstr::run(Core &core) const {
  int64_t trips = count(core);
  int64_t low = core.scalars[lower].i, by = core.scalars[step].i;
  enter.run(core);
  for (int64_t i = 0; i < trips; ++i) {
    core.scalars[induction].i = low + i * by;
    body.run(core);
    next.run(core);
  }
  leave.run(core);
}

void ForInstr::runGang(Core *const *cores, int numCores) const {
  // In step as long as all cores go round equally often.
  int64_t trips = count(*cores[0]);
  for (int i = 1; i < numCores; ++i)
    if (count(*cores[i]) != trips)
      return Instr::runGang(cores, numCores);
  std::vector<std::pair<int64_t, int64_t>> ranges; // low, step
  for (int i = 0; i < numCores; ++i) {
    Core &core = *cores[i];
    ranges.push_back({core.scalars[lower].i, core.scalars[step].i});
    enter.run(core);
  }
  for (int64_t trip = 0; trip < trips; ++trip) {
    for (int i = 0; i < numCores; ++i)
      cores[i]->scalars[induction].i =
          ranges[i].first + trip * ranges[i].second;
    body.runGang(cores, numCores);
    for (int i = 0; i < numCores; ++i)
      next.run(*cores[i]);
  }
  for (int i = 0; i < numCores; ++i)
    leave.run(*cores[i]);
}

void IfInstr::run(Core &core) const {
  if (core.scalars[condition].i) {
    thenBlock.run(core);
    thenResults.run(core);
  } else {
    elseBlock.run(core);
    elseResults.run(core);
  }
}

void WhileInstr::run(Core &core) const {
  enter.run(core);
  while (true) {
    before.run(core);
    if (!core.scalars[condition].i) {
      results.run(core);
      return;
    }
    forward.run(core);
    after.run(core);
    next.run(core);
  }
}

void CallInstr::run(Core &core) const {
  Scalar values[64];
  std::vector<Scalar> many;
  Scalar *p = values;
  if (args.size() > 64) {
    many.resize(args.size());
    p = many.data();
  }
  for (size_t i = 0; i < args.size(); ++i)
    p[i] = core.scalars[args[i]];
  callFunction(core, *callee, p);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

void spyre::runtime::setTensorShape(Core &core, int location, TensorVal &t,
                                    const std::vector<SizeSource> &sizes) {
  t.rank = static_cast<int>(sizes.size());
  t.numElements = 1;
  for (int d = 0; d < t.rank; ++d) {
    int64_t size = sizes[d].get(core);
    if (size < 0)
      core.fail(location, "negative tensor size " + std::to_string(size));
    t.sizes[d] = size;
    if (size > 0 && t.numElements > (int64_t(1) << 40) / size)
      core.fail(location, "tensor with more than 2^40 elements");
    t.numElements *= size;
  }
}

void EmptyInstr::run(Core &core) const {
  core.releaseTensor(dst);
  setTensorShape(core, location, core.tensors[dst], sizes);
}

void SplatInstr::run(Core &core) const {
  TensorVal &t = core.tensors[dst];
  if (shapeOf >= 0)
    t.setShape(core.tensors[shapeOf]);
  else
    setTensorShape(core, location, t, sizes);
  core.allocateTensor(dst, elem, t.numElements);
  uint8_t *data = static_cast<uint8_t *>(t.data);
  size_t size = hostSize(elem);
  if (values.size() == 1 && t.numElements != 1) {
    Scalar value = core.scalars[values[0]];
    if (isFloat(elem))
      std::fill(t.f(), t.f() + t.numElements, value.f);
    else if (isWide(elem))
      std::fill(t.i64(), t.i64() + t.numElements, value.i);
    else
      std::fill(t.i32(), t.i32() + t.numElements,
                static_cast<int32_t>(value.i));
    return;
  }
  for (size_t i = 0; i < values.size(); ++i)
    writeElement(data + i * size, core.scalars[values[i]], elem);
}

void ReshapeInstr::run(Core &core) const {
  if (keepShape) {
    const TensorVal &t = core.tensors[source.slot];
    for (size_t d = 0; d < staticSizes.size(); ++d)
      if (staticSizes[d] >= 0 && staticSizes[d] != t.sizes[d])
        core.fail(location, "dimension " + std::to_string(d) + " has size " +
                                std::to_string(t.sizes[d]) +
                                ", the result type says " +
                                std::to_string(staticSizes[d]));
    core.moveTensor(dst, source);
    return;
  }
  if (core.tensors[source.slot].isPermuted)
    core.makeRowMajor(source.slot, elem);
  TensorVal before = core.tensors[source.slot];
  core.moveTensor(dst, source);
  TensorVal &t = core.tensors[dst];
  t.setShape(before);
  if (isCollapse) {
    t.rank = static_cast<int>(groups.size());
    for (int d = 0; d < t.rank; ++d) {
      t.sizes[d] = 1;
      for (int s : groups[d])
        t.sizes[d] *= before.sizes[s];
    }
    return;
  }
  t.rank = static_cast<int>(sizes.size());
  int64_t product = 1;
  for (int d = 0; d < t.rank; ++d) {
    t.sizes[d] = sizes[d].get(core);
    product *= t.sizes[d];
  }
  if (product != before.numElements)
    core.fail(location, "reshape of " + std::to_string(before.numElements) +
                            " elements to a shape of " +
                            std::to_string(product));
}

int64_t spyre::runtime::getElementOffset(Core &core, int location,
                                         const TensorVal &t,
                                         const std::vector<int> &indices) {
  int64_t offset = 0;
  for (int d = 0; d < t.rank; ++d) {
    int64_t i = core.scalars[indices[d]].i;
    if (i < 0 || i >= t.sizes[d])
      core.fail(location, "index " + std::to_string(i) + " of dimension " +
                              std::to_string(d) + " is outside 0 to " +
                              std::to_string(t.sizes[d] - 1));
    offset = offset * t.sizes[d] + i;
  }
  return offset;
}

void ExtractInstr::run(Core &core) const {
  core.materialize(source, elem);
  const TensorVal &t = core.tensors[source];
  int64_t offset = getElementOffset(core, location, t, indices);
  core.scalars[dst] = readElement(
      static_cast<const uint8_t *>(t.data) + offset * hostSize(elem), elem);
}

/// Makes `dst` a private copy of `use`, in place if it dies.
static void ownTensor(Core &core, int dst, TensorUse use, Elem elem) {
  core.materialize(use.slot, elem);
  TensorVal &source = core.tensors[use.slot];
  if (use.dies && source.buffer->references == 1) {
    core.moveTensor(dst, use);
    return;
  }
  TensorVal copy = source;
  core.tensors[dst].setShape(copy);
  core.allocateTensor(dst, elem, copy.numElements);
  std::memcpy(core.tensors[dst].data, copy.data,
              size_t(copy.numElements) * hostSize(elem));
}

void InsertInstr::run(Core &core) const {
  ownTensor(core, dst, dest, elem);
  TensorVal &t = core.tensors[dst];
  int64_t offset = getElementOffset(core, location, t, indices);
  writeElement(static_cast<uint8_t *>(t.data) + offset * hostSize(elem),
               core.scalars[value], elem);
}

void SliceInstr::checkSlice(Core &core, int d, int64_t size) const {
  int64_t o = offsets[d].get(core), n = sizes[d].get(core);
  int64_t s = strides[d].get(core);
  if (n < 0 || (n > 0 && (o < 0 || o >= size || o + (n - 1) * s < 0 ||
                          o + (n - 1) * s >= size)))
    core.fail(location, "slice of dimension " + std::to_string(d) +
                            " at offset " + std::to_string(o) + " with " +
                            std::to_string(n) + " elements and stride " +
                            std::to_string(s) + " leaves its size " +
                            std::to_string(size));
}

void SliceInstr::checkInserted(Core &core, int64_t found,
                               int64_t expected) const {
  if (found != expected)
    core.fail(location, "inserted tensor has " + std::to_string(found) +
                            " elements, the slice " + std::to_string(expected));
}

void SliceInstr::run(Core &core) const {
  core.materialize(source.slot, elem);
  if (isInsert)
    ownTensor(core, dst, dest, elem);
  const TensorVal large = core.tensors[isInsert ? dst : source.slot];
  size_t shape[kMaxRank];
  ptrdiff_t largeStrides[kMaxRank], smallStrides[kMaxRank];
  int64_t step = 1, offset = 0, numElements = 1;
  for (int d = large.rank - 1; d >= 0; --d) {
    int64_t o = offsets[d].get(core), n = sizes[d].get(core);
    int64_t s = strides[d].get(core);
    checkSlice(core, d, large.sizes[d]);
    shape[d] = n;
    largeStrides[d] = s * step;
    smallStrides[d] = numElements;
    offset += o * step;
    step *= large.sizes[d];
    numElements *= n;
  }
  size_t size = hostSize(elem);
  if (!isInsert) {
    TensorVal &t = core.tensors[dst];
    t.rank = 0;
    for (int d = 0; d < large.rank; ++d)
      if (!dropped[d])
        t.sizes[t.rank++] = shape[d];
    t.numElements = numElements;
    core.allocateTensor(dst, elem, numElements);
  } else {
    checkInserted(core, core.tensors[source.slot].numElements, numElements);
  }
  if (numElements == 0)
    return;
  uint8_t *big = static_cast<uint8_t *>(large.data) + offset * int64_t(size);
  uint8_t *small =
      static_cast<uint8_t *>(core.tensors[isInsert ? source.slot : dst].data);
  const KernelTable &k = kernels();
  unsigned rank = static_cast<unsigned>(large.rank);
  void *to = isInsert ? big : small;
  const void *from = isInsert ? small : big;
  const ptrdiff_t *toStrides = isInsert ? largeStrides : smallStrides;
  const ptrdiff_t *fromStrides = isInsert ? smallStrides : largeStrides;
  if (isWide(elem))
    k.copyInt64(static_cast<int64_t *>(to), toStrides,
                static_cast<const int64_t *>(from), fromStrides, shape, rank);
  else
    k.copyInt32(static_cast<int32_t *>(to), toStrides,
                static_cast<const int32_t *>(from), fromStrides, shape, rank);
}

void DimInstr::run(Core &core) const {
  const TensorVal &t = core.tensors[source];
  int64_t d = core.scalars[index].i;
  if (d < 0 || d >= t.rank)
    core.fail(location, "tensor.dim of dimension " + std::to_string(d) +
                            " of a rank-" + std::to_string(t.rank) + " tensor");
  core.scalars[dst].i = t.sizes[d];
}
