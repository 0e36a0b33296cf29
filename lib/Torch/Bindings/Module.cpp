// SPDX-License-Identifier: Apache-2.0
// The Python module torch_spyre._C: devices, memory, random state, fallbacks.
#include "../Card/BackwardThreads.h"
#include "../Card/Card.h"
#include "../Card/Generator.h"
#include "../Operators/Fallback.h"
#include "../Python/Interpreter.h"
#include "../Python/RuntimeLog.h"
#include "Bindings.h"

#include "Spyre/Support/Error.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/pybind.h>

namespace py = pybind11;

/// Defined in CompilerBindings.cpp.
void initCompilerBindings(py::module &m);

using namespace spyre;
using namespace spyre::pytorch;

static SpyreGeneratorImpl *generatorOf(int64_t index) {
  TORCH_CHECK_INDEX(index >= -1 && index < deviceCount(), "spyre device index ",
                    index, " is out of range");
  return defaultGenerator(static_cast<c10::DeviceIndex>(index))
      .get<SpyreGeneratorImpl>();
}

static c10::DeviceIndex checkedIndex(int64_t index) {
  TORCH_CHECK_INDEX(index >= -1 && index < deviceCount(), "spyre device index ",
                    index, " is out of range: there ",
                    deviceCount() == 1 ? "is " : "are ",
                    static_cast<int>(deviceCount()),
                    deviceCount() == 1 ? " device" : " devices");
  return index < 0 ? currentDevice() : static_cast<c10::DeviceIndex>(index);
}

/// Devices, streams and events.
static void initDeviceBindings(py::module &m) {
  m.def("device_count", [] { return static_cast<int>(deviceCount()); });
  m.def("current_device", [] { return static_cast<int>(currentDevice()); });
  m.def(
      "set_device",
      [](int64_t index) { setCurrentDevice(checkedIndex(index)); },
      py::arg("device"));
  m.def(
      "synchronize",
      [](int64_t index) {
        Card &owner = card(checkedIndex(index));
        py::gil_scoped_release release;
        owner.synchronize();
      },
      py::arg("device") = -1,
      "Waits for all work of a device; raises the error of work that failed.");
  m.def("start_runtime", [] { card(currentDevice()); });
  m.def(
      "free_runtime", [] { withoutGIL([] { drainAll(); }); },
      "Waits for all work of all devices. Their memory stays for the tensors "
      "on it.");
  m.def("_await_backward_threads", &awaitBackwardThreads,
        py::call_guard<py::gil_scoped_release>(),
        "Waits until threads that computed gradients have let go of them.");
  m.def("is_initialized", &isInitialized);
  m.def("is_in_bad_fork", &isInBadFork);
  m.def(
      "next_stream",
      [](int64_t index, int64_t priority) {
        return card(checkedIndex(index)).nextStream(priority == 0 ? 0 : -1);
      },
      py::arg("device"), py::arg("priority") = 0,
      "Id of the next stream of the pool of low (0) or high priority.");
  m.def(
      "event_seconds",
      [](int64_t event) {
        auto *recorded = reinterpret_cast<runtime::Event *>(event);
        TORCH_CHECK(recorded && recorded->isRecorded() && recorded->isReached(),
                    "record both events and call synchronize() on them before "
                    "elapsed_time()");
        return std::make_pair(recorded->deviceTime(), recorded->hostTime());
      },
      py::arg("event"),
      "(device, host) time at which a torch.Event's event_id was reached.");
}

/// Generators of random numbers.
static void initGeneratorBindings(py::module &m) {
  m.def(
      "manual_seed",
      [](uint64_t seed, int64_t index) {
        SpyreGeneratorImpl *generator = generatorOf(index);
        std::lock_guard<std::mutex> lock(generator->mutex_);
        generator->set_current_seed(seed);
      },
      py::arg("seed"), py::arg("device") = -1);
  m.def(
      "manual_seed_all",
      [](uint64_t seed) {
        for (c10::DeviceIndex i = 0; i < deviceCount(); ++i) {
          SpyreGeneratorImpl *generator = generatorOf(i);
          std::lock_guard<std::mutex> lock(generator->mutex_);
          generator->set_current_seed(seed);
        }
      },
      py::arg("seed"));
  m.def(
      "initial_seed",
      [](int64_t index) { return generatorOf(index)->current_seed(); },
      py::arg("device") = -1);
  m.def(
      "get_rng_state",
      [](int64_t index) {
        SpyreGeneratorImpl *generator = generatorOf(index);
        std::lock_guard<std::mutex> lock(generator->mutex_);
        return at::Tensor(generator->get_state());
      },
      py::arg("device") = -1);
  m.def(
      "set_rng_state",
      [](const at::Tensor &state, int64_t index) {
        SpyreGeneratorImpl *generator = generatorOf(index);
        std::lock_guard<std::mutex> lock(generator->mutex_);
        generator->set_state(*state.unsafeGetTensorImpl());
      },
      py::arg("state"), py::arg("device") = -1);
  m.def(
      "_get_default_generator",
      [](int64_t index) {
        return py::reinterpret_steal<py::object>(
            THPGenerator_initDefaultGenerator(
                defaultGenerator(checkedIndex(index))));
      },
      py::arg("device") = -1);
}

/// Use of device memory.
static void initMemoryBindings(py::module &m) {
  m.def(
      "memory_stats",
      [](int64_t index) {
        runtime::MemoryStats stats = card(checkedIndex(index)).memory.stats();
        py::dict result;
        result["allocated_bytes.all.current"] = stats.allocatedBytes;
        result["allocated_bytes.all.peak"] = stats.peakBytes;
        result["allocated_bytes.all.allocated"] = stats.totalAllocatedBytes;
        result["reserved_bytes.all.current"] = stats.reservedBytes;
        result["reserved_bytes.all.peak"] = stats.peakReservedBytes;
        result["num_ooms"] = stats.numFailures;
        result["allocation.all.current"] = stats.numAllocations;
        result["allocation.all.allocated"] = stats.totalAllocations;
        result["allocation.all.freed"] = stats.totalFrees;
        return result;
      },
      py::arg("device") = -1,
      "Counters of device memory; bytes are rounded up to 128 per block.");
  m.def(
      "memory_blocks",
      [](int64_t index) {
        py::list result;
        Card &owner = card(checkedIndex(index));
        for (const runtime::MemoryBlock &block : owner.memory.blocks())
          result.append(py::make_tuple(
              reinterpret_cast<int64_t>(owner.pointerOf(block.address)),
              block.sizeInBytes, block.isLive));
        return result;
      },
      py::arg("device") = -1,
      "(address as data_ptr() shows it, bytes, in use) of each block.");
  m.attr("_spyre_get_allocator_stats") = m.attr("memory_stats");
  m.def(
      "mem_get_info",
      [](int64_t index) {
        return c10::getDeviceAllocator(kSpyre)->getMemoryInfo(
            checkedIndex(index));
      },
      py::arg("device") = -1, "(free, total) bytes of device memory.");
  m.def(
      "_spyre_reset_peak_stats",
      [](int64_t index) { card(checkedIndex(index)).memory.resetPeakStats(); },
      py::arg("device") = -1);
  m.def(
      "_spyre_reset_accumulated_stats",
      [](int64_t index) {
        card(checkedIndex(index)).memory.resetAccumulatedStats();
      },
      py::arg("device") = -1);
  m.def("empty_cache", [] { c10::getDeviceAllocator(kSpyre)->emptyCache(); });
}

/// Operators that run on the CPU.
static void initFallbackBindings(py::module &m) {
  m.attr("FallbackWarning") = py::handle(fallbackWarning());
  m.def("fallback_report", &fallbackReport,
        "ATen operator -> times it ran on the CPU for spyre tensors.");
  m.def("reset_fallback_report", &resetFallbackReport);
  m.def("record_fallback", &recordFallback, py::arg("operator_name"),
        py::arg("reason") = "it has no spyre kernel",
        "Counts a CPU run of an operator; the first one warns.");
  m.def("set_source_line", &setSourceLine, py::arg("file"), py::arg("line"),
        "The user's line that warnings of fallbacks are about; \"\" for none.");
}

PYBIND11_MODULE(_C, m) {
  m.doc() = "Device `spyre` of PyTorch: tensors, layouts and the compiler.";
  py::register_exception<Error>(m, "SpyreError", PyExc_RuntimeError);

  initDeviceBindings(m);
  initGeneratorBindings(m);
  initMemoryBindings(m);
  initFallbackBindings(m);
  initLayoutBindings(m);
  initCompilerBindings(m);
  initEagerBindings(m);
  m.def(
      "_set_runtime_log",
      [](py::handle callable) { setRuntimeLog(callable.ptr()); },
      py::arg("callable").none(true),
      "Calls this with every message of the runtime; None: with none.");
  initEnvironmentBindings(m);
  initDeviceSpecBindings(m);
  initJobBindings(m);
  initBundleBindings(m);
}
