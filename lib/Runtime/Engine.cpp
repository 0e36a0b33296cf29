// SPDX-License-Identifier: Apache-2.0
//===- Engine.cpp - Running decoded programs ------------------------------===//

#include "Engine.h"
#include "Check.h"
#include "InterTile.h"
#include "ThreadPool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <limits>
#include <new>

using namespace spyre;
using namespace spyre::runtime;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

const char *spyre::runtime::elemName(Elem e) {
  switch (e) {
  case Elem::F16:
    return "f16";
  case Elem::BF16:
    return "bf16";
  case Elem::F32:
    return "f32";
  case Elem::F8E4M3FN:
    return "f8E4M3FN";
  case Elem::F8E5M2:
    return "f8E5M2";
  case Elem::I1:
    return "i1";
  case Elem::I8:
    return "i8";
  case Elem::I16:
    return "i16";
  case Elem::I32:
    return "i32";
  case Elem::I64:
    return "i64";
  case Elem::Index:
    return "index";
  }
  return "?";
}

// Smallest class first: 4 KiB, then doubling.
static constexpr size_t kSmallestBuffer = 4096;

Buffer *BufferPool::get(size_t sizeInBytes) {
  if (kExactSizes) {
    void *p = nullptr;
    if (posix_memalign(&p, 64, 64 + sizeInBytes) != 0)
      throw std::bad_alloc();
    Buffer *buffer = new (p) Buffer;
    buffer->references = 1;
    return buffer;
  }
  size_t needed = sizeInBytes + 64;
  uint32_t sizeClass = 0;
  while ((kSmallestBuffer << sizeClass) < needed)
    ++sizeClass;
  if (sizeClass >= kNumClasses - 16)
    throw std::bad_alloc();
  std::vector<Buffer *> &list = freeLists[sizeClass];
  Buffer *buffer;
  if (!list.empty()) {
    buffer = list.back();
    list.pop_back();
  } else {
    void *p = std::aligned_alloc(64, kSmallestBuffer << sizeClass);
    if (!p)
      throw std::bad_alloc();
    buffer = new (p) Buffer;
    buffer->sizeClass = sizeClass;
  }
  buffer->references = 1;
  return buffer;
}

BufferPool::~BufferPool() {
  for (std::vector<Buffer *> &list : freeLists)
    for (Buffer *buffer : list)
      std::free(buffer);
}

//===----------------------------------------------------------------------===//
// Core
//===----------------------------------------------------------------------===//

Core::Core(const Plan &plan, const Function &function, BufferPool *pool,
           bool ieee)
    : plan(plan), function(function), pool(pool), ieee(ieee) {
  scalars.resize(function.numScalars);
  tensors.resize(function.numTensors);
  views.resize(function.numViews);
  tiles.resize(function.numTiles);
  tileBytes.resize(function.numTensors);
  spans.resize(function.numViews);
  for (const ConstantScalar &c : function.scalars) {
    scalars[c.slot] = c.value;
    if (isFloat(c.elem)) {
      scalars[c.slot].i = 0;
      scalars[c.slot].f = roundScalar(c.value.f, c.elem);
    }
  }
  const KernelTable &k = kernels();
  for (const ConstantTensor &c : function.tensors) {
    TensorVal &t = tensors[c.slot];
    t.rank = static_cast<int>(c.shape.size());
    t.numElements = 1;
    for (int d = 0; d < t.rank; ++d) {
      t.sizes[d] = c.shape[d];
      t.numElements *= c.shape[d];
    }
    allocateTensor(c.slot, c.elem, t.numElements);
    auto fill = [&](auto *to, const auto &from) {
      if (c.isSplat)
        std::fill(to, to + t.numElements, from.front());
      else
        std::copy(from.begin(), from.end(), to);
    };
    if (t.numElements == 0)
      continue;
    if (isFloat(c.elem)) {
      fill(t.f(), c.floats);
      if (Rounding r = roundingOf(c.elem, ieee); r != Rounding::None)
        k.round(t.f(), t.f(), t.numElements, r);
    } else if (isWide(c.elem)) {
      fill(t.i64(), c.longs);
    } else {
      fill(t.i32(), c.ints);
    }
  }
}

Core::~Core() {
  releaseAll();
  for (const ConstantTensor &c : function.tensors)
    releaseTensor(c.slot);
}

void Core::releaseAll() {
  std::vector<bool> isConstant(tensors.size(), false);
  for (const ConstantTensor &c : function.tensors)
    isConstant[c.slot] = true;
  for (size_t t = 0; t < tensors.size(); ++t)
    if (!isConstant[t])
      releaseTensor(static_cast<int>(t));
  for (Buffer *buffer : registers)
    pool->release(buffer);
  registers.clear();
}

void Core::makeRowMajor(int slot, Elem elem) {
  TensorVal old = tensors[slot];
  tensors[slot].buffer = nullptr;
  allocateTensor(slot, elem, old.numElements);
  size_t shape[kMaxRank];
  ptrdiff_t to[kMaxRank], from[kMaxRank];
  int64_t step = 1;
  for (int d = old.rank - 1; d >= 0; --d) {
    shape[d] = old.sizes[d];
    to[d] = step;
    from[d] = old.strides[d];
    step *= old.sizes[d];
  }
  const KernelTable &k = kernels();
  unsigned rank = static_cast<unsigned>(old.rank);
  if (old.numElements > 0) {
    if (isWide(elem))
      k.copyInt64(tensors[slot].i64(), to, old.i64(), from, shape, rank);
    else
      k.copyInt32(tensors[slot].i32(), to, old.i32(), from, shape, rank);
  }
  pool->release(old.buffer);
}

float Core::roundScalar(float value, Elem elem) const {
  Rounding rounding = roundingOf(elem, ieee);
  if (rounding != Rounding::None)
    kernels().round(&value, &value, 1, rounding);
  return value;
}

void Core::fail(int location, const std::string &message) const {
  std::string text = plan.locations[location] + ": error: ";
  if (function.hasGrid)
    text += "core " + std::to_string(coreId) + ": ";
  throw Error(text + message);
}

void Core::failWithNaN(int location, const std::string &from) const {
  auto it = plan.floatOps.find(location);
  if (it == plan.floatOps.end())
    fail(location, "makes NaN of " + from);
  std::string text = it->second.name + (it->second.name.empty() ? "" : " ") +
                     "makes NaN of " + from;
  for (int producer : it->second.producers)
    text += "\n" + plan.locations[producer] + ": note: an operand is made here";
  fail(location, text);
}

std::pair<uint64_t, uint64_t> Core::blockOf(uint64_t address) {
  for (int i = 0; i < numBlocks; ++i)
    if (address >= blocks[i].first && address < blocks[i].second)
      return blocks[i];
  std::pair<uint64_t, uint64_t> block = memory->blockOf(address);
  if (block.second == 0)
    return block;
  if (numBlocks < kNumBlocks) {
    blocks[numBlocks++] = block;
  } else {
    blocks[nextBlock] = block;
    nextBlock = (nextBlock + 1) % kNumBlocks;
  }
  return block;
}

void Block::run(Core &core) const {
  for (const std::unique_ptr<Instr> &instr : instrs) {
    if (core.tracer)
      instr->trace(core);
    else
      instr->run(core);
    for (int slot : instr->frees)
      core.releaseTensor(slot);
    core.countTiles(*instr);
  }
}

void Instr::runGang(Core *const *cores, int numCores) const {
  for (int i = 0; i < numCores; ++i)
    run(*cores[i]);
}

void Block::runGang(Core *const *cores, int numCores) const {
  for (const std::unique_ptr<Instr> &instr : instrs) {
    instr->runGang(cores, numCores);
    for (int slot : instr->frees)
      for (int i = 0; i < numCores; ++i)
        cores[i]->releaseTensor(slot);
    for (int i = 0; i < numCores; ++i)
      cores[i]->countTiles(*instr);
  }
}

void Core::countTiles(const Instr &instr) {
  if (instr.defines.empty() && instr.releases.empty())
    return;
  int64_t made = 0, replaced = 0;
  for (auto [slot, elem] : instr.defines) {
    int64_t bytes = tensors[slot].numElements * deviceSize(elem);
    made += bytes - tileBytes[slot];
    tileBytes[slot] = bytes;
  }
  for (int slot : instr.replaces)
    replaced += tileBytes[slot];
  liveTileBytes += made;
  int64_t needed =
      liveTileBytes - std::max<int64_t>(0, std::min(made, replaced));
  for (int slot : instr.releases) {
    liveTileBytes -= tileBytes[slot];
    tileBytes[slot] = 0;
  }
  int64_t capacity = memory->lxSizeInBytes();
  if (needed + viewBytes > capacity && check != Check::None && function.hasGrid)
    fail(instr.location, "LX scratchpad overflow: live data tiles need " +
                             std::to_string(needed) + " bytes, available " +
                             std::to_string(capacity - viewBytes) +
                             " bytes (capacity " + std::to_string(capacity) +
                             " bytes, views " + std::to_string(viewBytes) +
                             " bytes)");
}

void Core::moveTileBytes(int to, TensorUse use) {
  // Without a move both slots share one tile, which counts once.
  int64_t bytes = use.dies ? tileBytes[use.slot] : 0;
  if (use.dies)
    tileBytes[use.slot] = 0;
  liveTileBytes -= tileBytes[to];
  tileBytes[to] = bytes;
}

void Core::noteViewInLX(int64_t first, int64_t end) {
  first = std::max<int64_t>(first, 0);
  end = std::min(end, memory->lxSizeInBytes());
  if (first >= end)
    return; // its accesses will say so
  auto at = std::lower_bound(viewRanges.begin(), viewRanges.end(),
                             std::pair(first, end));
  if (at != viewRanges.begin() && std::prev(at)->second >= first)
    --at;
  while (at != viewRanges.end() && at->first <= end) {
    if (at->first <= first && end <= at->second)
      return;
    first = std::min(first, at->first);
    end = std::max(end, at->second);
    viewBytes -= at->second - at->first;
    at = viewRanges.erase(at);
  }
  viewRanges.insert(at, {first, end});
  viewBytes += end - first;
}

void Core::noteSpan(int location, const TileVal &tile) {
  auto [low, high] = tile.byteRange();
  auto &[first, end] = spans[tile.plan->viewSlot];
  first = std::min(first, low);
  end = std::max(end, high);
  if (end - first > memory->spanInBytes())
    fail(location, "one core's accesses through this view span " +
                       std::to_string(end - first) +
                       " bytes of device memory, but a core addresses " +
                       std::to_string(memory->spanInBytes()));
}

void Core::noteRead(const TileVal &tile) {
  // Less comes fast enough; more does not stay in the second-level cache.
  constexpr int64_t least = 16 << 10, most = 256 << 10;
  int64_t bytes = tile.numElements * deviceSize(tile.view.elem);
  if (bytes < least || bytes > most || tile.view.isLX)
    return;
  auto [first, end] = tile.byteRange();
  if (end - first != bytes)
    return;
  readAhead = {};
  if (first == lastReadEnd)
    readAhead = {memory->at(uint64_t(end)), memory->at(uint64_t(end)) + bytes};
  lastReadEnd = end;
}

void Core::enter(int64_t core, const Scalar *args) {
  coreId = core;
  coordinate[0] = core % function.grid[0];
  coordinate[1] = core / function.grid[0] % function.grid[1];
  coordinate[2] = core / (function.grid[0] * function.grid[1]);
  for (size_t i = 0; i < function.argSlots.size(); ++i)
    scalars[function.argSlots[i]] = args[i];
  std::fill(tileBytes.begin(), tileBytes.end(), 0);
  liveTileBytes = viewBytes = 0;
  viewRanges.clear();
  std::fill(spans.begin(), spans.end(),
            std::pair(std::numeric_limits<int64_t>::max(),
                      std::numeric_limits<int64_t>::min()));
}

void Core::execute(int64_t core, const Scalar *args) {
  enter(core, args);
  function.body.run(*this);
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

// Kernels with less work than this run on the calling thread: waking another
// costs several microseconds.
static constexpr double kParallelSeconds = 12e-6;

// As many cores as share one broadcast (DeviceSpec::numBroadcastCores); more
// tiles than theirs leave the second-level cache.
static constexpr int64_t kGangSize = 8;

using Clock = std::chrono::steady_clock;

/// What went wrong on a core, as an Error.
static std::exception_ptr currentFailure(const Plan &plan,
                                         const Function &function) {
  try {
    throw;
  } catch (const std::bad_alloc &) {
    return std::make_exception_ptr(Error(
        plan.locations[function.location] +
        ": error: out of host memory for the data tiles of @" + function.name));
  } catch (...) {
    return std::current_exception();
  }
}

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Core &RunState::core(int worker, const Function &function, int member) {
  Worker &w = *workers[worker];
  std::vector<std::unique_ptr<Core>> &cores = w.cores[function.index];
  while (static_cast<int>(cores.size()) <= member) {
    cores.push_back(std::make_unique<Core>(plan, function, w.pool.get(), ieee));
    cores.back()->run = this;
  }
  Core &core = *cores[member];
  if (core.epoch != epoch) {
    core.epoch = epoch;
    core.pool = w.pool.get();
    w.used.push_back(&core);
    core.memory = memory;
    core.zeroOutside = zeroOutside;
    core.check = check;
    core.shadow = shadow.get();
    core.forgetBlocks();
  }
  return core;
}

// Buffers are shared by all programs, one pool per running worker: a process
// may hold thousands of small programs.
namespace {
struct IdlePools {
  std::mutex mutex;
  std::vector<std::unique_ptr<BufferPool>> pools;
};
} // namespace

static IdlePools &idlePools() {
  // Never destroyed: programs may outlive static destructors.
  static IdlePools *pools = new IdlePools;
  return *pools;
}

static std::unique_ptr<BufferPool> takePool() {
  IdlePools &idle = idlePools();
  std::lock_guard<std::mutex> lock(idle.mutex);
  if (idle.pools.empty())
    return std::make_unique<BufferPool>();
  std::unique_ptr<BufferPool> pool = std::move(idle.pools.back());
  idle.pools.pop_back();
  return pool;
}

void RunState::finish() {
  shadow.reset();
  IdlePools &idle = idlePools();
  // Last worker first: the first one gets its own pool again.
  for (size_t i = workers.size(); i-- > 0;) {
    Worker &worker = *workers[i];
    for (Core *core : worker.used)
      core->releaseAll();
    worker.used.clear();
    if (!worker.pool)
      continue;
    std::lock_guard<std::mutex> lock(idle.mutex);
    idle.pools.push_back(std::move(worker.pool));
  }
}

RunState::RunState(const Plan &plan, bool ieee) : plan(plan), ieee(ieee) {}

RunState::~RunState() {
  // Constants go back to the pool with their cores.
  for (std::unique_ptr<Worker> &worker : workers) {
    if (!worker->pool)
      worker->pool = takePool();
    for (auto &cores : worker->cores)
      for (std::unique_ptr<Core> &core : cores)
        core->pool = worker->pool.get();
  }
  for (std::unique_ptr<Worker> &worker : workers) {
    worker->used.clear();
    worker->cores.clear();
  }
  finish();
}

void RunState::addWorkers(int count) {
  for (std::unique_ptr<Worker> &worker : workers)
    if (!worker->pool)
      worker->pool = takePool();
  while (static_cast<int>(workers.size()) < count) {
    workers.push_back(std::make_unique<Worker>());
    workers.back()->cores.resize(plan.functions.size());
    workers.back()->pool = takePool();
  }
}

void RunState::start(DeviceMemory &deviceMemory, const RunOptions &options) {
  memory = &deviceMemory;
  zeroOutside = options.oob == OutOfBounds::Zero;
  check = options.check;
  threads = options.threads > 0 ? std::min(options.threads, 256)
                                : ThreadPool::defaultThreads();
  addWorkers(threads);
  work.resize(plan.functions.size(), -1);
  ++epoch;
}

void spyre::runtime::callFunction(Core &caller, const Function &callee,
                                  const Scalar *args) {
  caller.run->call(callee, args);
}

int RunState::threadsFor(const Function &callee, int64_t numTasks) const {
  double known = work[callee.index];
  if (shadow || (known >= 0 && known < kParallelSeconds))
    return 1;
  return static_cast<int>(std::min<int64_t>(numTasks, threads));
}

void RunState::noteWork(const Function &callee, double seconds) {
  double &known = work[callee.index];
  known = known < 0 ? seconds : 0.75 * known + 0.25 * seconds;
}

void RunState::call(const Function &callee, const Scalar *args) {
  int64_t numCores = callee.numCores();
  if (shadow && !callee.hasCalls)
    shadow->beginKernel(numCores);
  if (callee.numProduceOps > 0) {
    callCommunicating(callee, args);
  } else if (callee.hasCalls) {
    Core &core = this->core(0, callee);
    core.execute(0, args);
  } else {
    // Cores that share operands run as a gang on one thread: what one has
    // loaded the others need not convert again.
    int64_t gang = callee.hasContraction && !shadow ? kGangSize : 1;
    int64_t numTasks = (numCores + gang - 1) / gang;
    std::atomic<int64_t> failedTask{numTasks};
    std::exception_ptr failure;
    std::mutex failureMutex;
    int useThreads = threadsFor(callee, numTasks);
    auto body = [&](int64_t task, int worker) {
      // The lowest failing core is reported, whatever the thread count.
      if (task > failedTask.load(std::memory_order_relaxed))
        return;
      try {
        Core *members[kGangSize];
        int numMembers =
            static_cast<int>(std::min<int64_t>(gang, numCores - task * gang));
        for (int i = 0; i < numMembers; ++i) {
          int64_t index = task * gang + i;
          members[i] = &this->core(worker, callee, i);
          members[i]->enter(index, args);
        }
        if (numMembers == 1)
          callee.body.run(*members[0]);
        else
          callee.body.runGang(members, numMembers);
      } catch (...) {
        std::lock_guard<std::mutex> lock(failureMutex);
        if (task < failedTask.load()) {
          failedTask.store(task);
          failure = currentFailure(plan, callee);
        }
      }
    };
    Clock::time_point start = Clock::now();
    if (useThreads == 1)
      for (int64_t task = 0; task < numTasks; ++task)
        body(task, 0);
    else
      ThreadPool::instance().forEach(numTasks, useThreads, body);
    noteWork(callee, secondsSince(start) * useThreads);
    if (failure)
      std::rethrow_exception(failure);
  }
}

void RunState::callCommunicating(const Function &callee, const Scalar *args) {
  int64_t numCores = callee.numCores();
  // A core keeps its buffers while it waits: a pool for each.
  addWorkers(static_cast<int>(numCores));
  std::vector<std::exception_ptr> failures(numCores);
  Exchange *exchange = nullptr;
  ResumableTasks tasks(numCores, [&](int64_t index) {
    bool failed = true;
    try {
      Core &core = this->core(static_cast<int>(index), callee);
      core.exchange = exchange;
      core.produced.assign(callee.numProduceOps, 0);
      core.execute(index, args);
      failed = false;
    } catch (const CoreStopped &) {
      // The core that failed says why.
    } catch (...) {
      failures[index] = currentFailure(plan, callee);
    }
    exchange->leave(failed);
  });
  Exchange meeting(numCores, tasks);
  exchange = &meeting;
  int useThreads = threadsFor(callee, numCores);
  Clock::time_point start = Clock::now();
  tasks.run(useThreads);
  noteWork(callee, secondsSince(start) * useThreads);
  for (std::exception_ptr &failure : failures)
    if (failure)
      std::rethrow_exception(failure);
}

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

Program::Impl::Impl() = default;
Program::Impl::~Impl() = default;
Program::Program(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Program::~Program() = default;
const std::string &Program::name() const { return impl->plan.name; }
const std::vector<ArgumentInfo> &Program::arguments() const {
  return impl->plan.arguments;
}
double Program::predictedSeconds() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->hasReport ? impl->report.predictedSeconds : 0;
}

void Program::checkArgumentCount(const std::vector<int64_t> &argValues) const {
  const Plan &plan = impl->plan;
  if (argValues.size() != plan.arguments.size())
    throw Error(plan.name + ": expected " +
                std::to_string(plan.arguments.size()) +
                " argument values, found " + std::to_string(argValues.size()));
}

std::vector<Scalar>
Program::Impl::makeArguments(const std::vector<int64_t> &argValues) const {
  std::vector<Scalar> args(argValues.size());
  for (size_t i = 0; i < argValues.size(); ++i) {
    args[i].i = argValues[i];
    if (plan.arguments[i].isFloat) {
      uint32_t bits = static_cast<uint32_t>(argValues[i]);
      args[i].i = 0;
      std::memcpy(&args[i].f, &bits, sizeof(bits));
    }
  }
  return args;
}

void Program::Impl::checkAlignment(
    const std::vector<int64_t> &argValues) const {
  constexpr int64_t stick = DeviceMemory::kBlockInBytes;
  for (size_t i = 0; i < argValues.size(); ++i) {
    const ArgumentInfo &info = plan.arguments[i];
    if (info.kind != ArgumentInfo::Pool && !info.layout)
      continue;
    int64_t size =
        info.kind == ArgumentInfo::Pool ? 1 : info.elementSizeInBytes;
    int64_t address;
    if (__builtin_mul_overflow(argValues[i], size, &address) ||
        address % stick != 0)
      throw Error(plan.locations[plan.entry->location] + ": error: argument '" +
                  info.name + "' starts at element " +
                  std::to_string(argValues[i]) + " of " + std::to_string(size) +
                  " bytes, which is not on a stick of " +
                  std::to_string(stick) + " bytes");
  }
}

std::vector<UndefinedRange>
Program::Impl::getPools(const std::vector<int64_t> &argValues) const {
  std::vector<UndefinedRange> pools;
  for (size_t i = 0; i < argValues.size(); ++i) {
    const ArgumentInfo &info = plan.arguments[i];
    if (info.kind == ArgumentInfo::Pool)
      pools.push_back({argValues[i], argValues[i] + int64_t(info.poolBytes),
                       plan.locations[plan.argumentLocations[i]] +
                           ": note: it is part of pool '" + info.name +
                           "' of " + std::to_string(info.poolBytes) +
                           " bytes, allocated here"});
  }
  return pools;
}

RunReport Program::run(DeviceMemory &memory,
                       const std::vector<int64_t> &argValues,
                       const RunOptions &options) const {
  const Plan &plan = impl->plan;
  checkArgumentCount(argValues);
  Clock::time_point start = Clock::now();
  bool ieee = options.numerics == Numerics::IEEE;

  std::unique_ptr<RunState> state;
  {
    std::lock_guard<std::mutex> lock(impl->mutex);
    auto it = std::find_if(impl->idle.begin(), impl->idle.end(),
                           [&](auto &s) { return s->ieee == ieee; });
    if (it != impl->idle.end()) {
      state = std::move(*it);
      impl->idle.erase(it);
    }
  }
  if (!state)
    state = std::make_unique<RunState>(plan, ieee);
  if (options.check != Check::None)
    impl->checkAlignment(argValues);
  state->start(memory, options);
  if (options.check == Check::Full)
    state->shadow =
        std::make_unique<MemoryCheck>(plan, impl->getPools(argValues));
  std::vector<Scalar> args = impl->makeArguments(argValues);
  // A failed run throws its state away: slots may hold half a kernel.
  state->call(*plan.entry, args.data());

  state->finish();
  double seconds = secondsSince(start);
  {
    std::lock_guard<std::mutex> lock(impl->mutex);
    impl->idle.push_back(std::move(state));
  }
  RunReport report;
  if (options.report)
    static_cast<TimingReport &>(report) = timingOf(memory, argValues, options);
  report.wallSeconds = seconds;
  return report;
}

TimingReport Program::timingOf(DeviceMemory &memory,
                               const std::vector<int64_t> &argValues,
                               const RunOptions &options) const {
  // What a report depends on: scalars may be sizes; addresses only shift.
  std::vector<int64_t> key;
  for (size_t i = 0; i < argValues.size(); ++i)
    if (impl->plan.arguments[i].kind == ArgumentInfo::Scalar)
      key.push_back(argValues[i]);
  TimingOptions timing;
  if (options.device)
    timing.spec = *options.device;
  {
    std::lock_guard<std::mutex> lock(impl->mutex);
    if (impl->hasReport && impl->reportKey == key &&
        impl->reportSpec == timing.spec)
      return impl->report;
  }
  TimingReport report = simulate(memory, argValues, options, timing);
  std::lock_guard<std::mutex> lock(impl->mutex);
  impl->report = report;
  impl->reportKey = std::move(key);
  impl->reportSpec = timing.spec;
  impl->hasReport = true;
  return report;
}
