// SPDX-License-Identifier: Apache-2.0
//===- spyre-run.cpp - Run a KTIR program on numpy arrays -----------------===//

#include "Executable.h"
#include "Npy.h"
#include "OutputFiles.h"

#include "Spyre/Device/HostTransfer.h"
#include "Spyre/Dialect/KTIR/IR/SourceCheck.h"
#include "Spyre/Support/Shape.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <optional>
#include <set>

using namespace spyre;
using namespace spyre::runtime;

static const char kUsage[] =
    R"(usage: spyre-run program.mlir [options]

Runs a KTIR program (text or bytecode) on the functional device model, or, if
program.mlir is a folder, the SpyreCode or else the SuperDSC bundles in it.

  --entry NAME       entry function (default: the only function without a grid)
  --arg VALUE        one per argument, in order: FILE.npy, a number, or 'zeros'
                     for an array whose layout says its shape; a uint8 file of
                     the layout's size holds the stored bytes; pool arguments are
                     allocated and take no --arg
  --out-dir DIR      write every array argument to DIR/<name>.npy afterwards
  --numerics MODE    what f16 is: dl16 (default) or ieee
  --check MODE       none: trust the program; bounds (default): stop accesses
                     outside views, allocations and the LX; full: also reads of
                     memory that nothing wrote, overlaps in the LX, races
                     between cores, and the operation that first makes a NaN
  --oob MODE         accesses outside their view: error (default), or zero (reads
                     past an allocation give zeros, writes are dropped)
  --threads N        host threads (default: one per processor)
  --repeat N         run N times on the same inputs (default 1)
  --timing           print where the device's time goes, and host time
  --json FILE        write the same as JSON
  --trace FILE       write a Chrome trace of the device, for Perfetto
  --no-overlap       time each core as doing one step after another
  --predict-only     predict the time without running the program
  --device FILE      numbers of the device, as JSON; those not given keep their
                     defaults. Predictions use all of them, execution the sizes
                     (segmentBytes, deviceMemoryBytes, lxBytesPerCore,
                     maxSpanBytes)
  --lenient          repair parameters that a folder's bundle.mlir declares twice
  --pool             segment 0 of a folder without manifest.json is a pool
  --print-device-spec
                     print all numbers of the device with unit, basis and
                     source (after --device: with its values) and end
  --help

Exit status: 0, or 1 after an error; then no file was written.
)";

namespace {
struct Options {
  std::string program, entry, outDir, json, trace;
  std::shared_ptr<const DeviceSpec> device;
  std::vector<std::string> args;
  Numerics numerics = Numerics::DL16;
  OutOfBounds oob = OutOfBounds::Error;
  CheckLevel check = CheckLevel::Bounds;
  int threads = 0, repeat = 1;
  bool timing = false, overlap = true, predictOnly = false;
  BundleOptions bundle;
};

/// Seconds of the host: each run, and the timing engine.
struct HostTimes {
  std::vector<double> wallSeconds, cpuSeconds;
  double simulationSeconds = 0;
};

/// One array argument of the run.
struct Array {
  size_t argument;
  NpyArray host;
  /// If not empty: what is stored at first, in place of `host`.
  std::vector<uint8_t> deviceImage;
  uint64_t address = 0;
  uint64_t sizeInBytes = 0;

  void keepImage(DeviceMemory &memory) {
    const uint8_t *device = memory.at(address);
    deviceImage.assign(device, device + sizeInBytes);
  }
  /// Writes only what a run has changed: the caches keep what it reads.
  void restore(DeviceMemory &memory) const {
    uint8_t *device = memory.at(address);
    if (std::memcmp(device, deviceImage.data(), sizeInBytes) != 0)
      std::memcpy(device, deviceImage.data(), sizeInBytes);
  }
};
} // namespace

[[noreturn]] static void usageError(const std::string &message) {
  std::cerr << "spyre-run: error: " << message << "\n";
  std::exit(1);
}

static int parseCount(const std::string &flag, const std::string &text) {
  char *end = nullptr;
  errno = 0;
  long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end || errno || value < 1 || value > 1000000000)
    usageError(flag + " expects a positive number, found '" + text + "'");
  return static_cast<int>(value);
}

static Options parseOptions(int argc, char **argv) {
  Options o;
  bool printDevice = false, printHelp = false;
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    std::optional<std::string> inlineValue;
    if (flag.rfind("--", 0) == 0)
      if (size_t equal = flag.find('='); equal != std::string::npos) {
        inlineValue = flag.substr(equal + 1);
        flag.resize(equal);
      }
    bool hasValue = false;
    auto value = [&]() -> std::string {
      hasValue = true;
      if (!inlineValue && i + 1 < argc)
        inlineValue = argv[++i];
      if (!inlineValue || inlineValue->empty())
        usageError(flag + " expects a value");
      return *inlineValue;
    };
    if (flag == "--help" || flag == "-h") {
      printHelp = true;
    } else if (flag == "--entry") {
      o.entry = value();
    } else if (flag == "--arg") {
      o.args.push_back(value());
    } else if (flag == "--out-dir") {
      o.outDir = value();
    } else if (flag == "--json") {
      o.json = value();
    } else if (flag == "--device") {
      o.device =
          std::make_shared<DeviceSpec>(DeviceSpec::fromJsonFile(value()));
      if (o.device->nonNumber != NonNumber::Inf)
        throw Error("--device: the device model reads non-numbers as "
                    "infinities only, found \"nonNumber\": \"nan\"");
    } else if (flag == "--print-device-spec") {
      printDevice = true;
    } else if (flag == "--threads") {
      o.threads = parseCount(flag, value());
    } else if (flag == "--repeat") {
      o.repeat = parseCount(flag, value());
    } else if (flag == "--trace") {
      o.trace = value();
    } else if (flag == "--no-overlap") {
      o.overlap = false;
    } else if (flag == "--predict-only") {
      o.predictOnly = true;
    } else if (flag == "--timing") {
      o.timing = true;
    } else if (flag == "--check") {
      std::string mode = value();
      if (mode == "none")
        o.check = CheckLevel::None;
      else if (mode == "bounds")
        o.check = CheckLevel::Bounds;
      else if (mode == "full")
        o.check = CheckLevel::Full;
      else
        usageError("--check expects none, bounds or full, found '" + mode +
                   "'");
    } else if (flag == "--lenient") {
      o.bundle.lenient = true;
    } else if (flag == "--pool") {
      o.bundle.hasPool = true;
    } else if (flag == "--oob") {
      std::string mode = value();
      if (mode == "error")
        o.oob = OutOfBounds::Error;
      else if (mode == "zero")
        o.oob = OutOfBounds::Zero;
      else
        usageError("--oob expects error or zero, found '" + mode + "'");
    } else if (flag == "--numerics") {
      std::string mode = value();
      if (mode == "dl16")
        o.numerics = Numerics::DL16;
      else if (mode == "ieee")
        o.numerics = Numerics::IEEE;
      else
        usageError("--numerics expects dl16 or ieee, found '" + mode + "'");
    } else if (flag.rfind("-", 0) == 0) {
      usageError("unknown option '" + flag + "'");
    } else if (o.program.empty()) {
      o.program = flag;
    } else {
      usageError("more than one program: '" + flag + "'");
    }
    if (inlineValue && !hasValue)
      usageError(flag + " takes no value");
  }
  if (printHelp) {
    std::cout << kUsage;
    std::exit(0);
  }
  if (printDevice) {
    std::cout << (o.device ? *o.device : DeviceSpec()).toJson();
    std::exit(0);
  }
  if (o.program.empty())
    usageError("no program given (see --help)");
  if (o.predictOnly && !o.outDir.empty())
    usageError("--out-dir needs a run, --predict-only makes none");
  return o;
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// Moves elements between a row-major array and the host image with the
/// strides of a layout (both hold `elemSize`-byte elements).
static void permute(const std::vector<int64_t> &shape,
                    const std::vector<int64_t> &strides, int64_t elemSize,
                    uint8_t *rowMajor, uint8_t *image, bool toImage) {
  int64_t count = 1;
  bool isDense = true;
  for (size_t d = shape.size(); d-- > 0;) {
    isDense &= shape[d] <= 1 || strides[d] == count;
    count *= shape[d];
  }
  if (isDense) {
    if (count > 0)
      std::memcpy(toImage ? image : rowMajor, toImage ? rowMajor : image,
                  count * elemSize);
    return;
  }
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      offset += index[d] * strides[d];
    if (toImage)
      std::memcpy(image + offset * elemSize, rowMajor + i * elemSize, elemSize);
    else
      std::memcpy(rowMajor + i * elemSize, image + offset * elemSize, elemSize);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d])
        break;
      index[d] = 0;
    }
  }
}

static int64_t spanOf(const std::vector<int64_t> &shape,
                      const std::vector<int64_t> &strides) {
  int64_t span = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0)
      return 0;
    span += (shape[d] - 1) * strides[d];
  }
  return span;
}

/// With IEEE numerics 16-bit floats move as bits: the transfer is told of
/// int16.
static void asBits(Numerics numerics, HostDtype &dtype, TensorLayout &layout) {
  if (numerics != Numerics::IEEE || layout.format != DataFormat::SEN169_FP16)
    return;
  if (dtype != HostDtype::Float16)
    throw Error("with --numerics ieee only float16 arrays may use "
                "SEN169_FP16, found " +
                std::string(toString(dtype)));
  dtype = HostDtype::Int16;
  layout.format = DataFormat::SENINT16;
}

/// The layout of a plain array: dense row-major, as elements of the type that
/// its views have. Nothing if the bytes move as they are.
static std::optional<TensorLayout> plainLayout(const ArgumentInfo &info,
                                               const NpyArray &array,
                                               Numerics numerics) {
  const std::string &type = info.elementType;
  HostDtype dtype = array.dtype;
  int64_t count = array.numElements();
  // numpy has no bf16: its uint16 holds the bits, which would pass for the
  // codes of f16 where bf16 values are converted.
  if (array.descriptor == "<u2" && !type.empty() && type != "bf16")
    throw Error("argument '" + info.name + "' has elements of type " + type +
                ", its file uint16, which is for bf16");
  bool isSixteen = dtype == HostDtype::Float16 ||
                   dtype == HostDtype::BFloat16 || dtype == HostDtype::Bool;
  if (type == "f16" ? isSixteen : type.empty() && dtype == HostDtype::Float16) {
    if (numerics == Numerics::IEEE && dtype == HostDtype::Float16)
      return std::nullopt;
    if (numerics == Numerics::IEEE)
      throw Error("argument '" + info.name +
                  "': with --numerics ieee f16 "
                  "arrays are float16, found " +
                  toString(dtype));
    return TensorLayout({count}, dtype);
  }
  if (type == "i32" && dtype == HostDtype::Int64)
    return TensorLayout({count}, dtype);
  if (type == "i32" && dtype == HostDtype::UInt8)
    return TensorLayout({count}, dtype);
  bool same =
      type.empty() || (type == "f32" && dtype == HostDtype::Float32) ||
      (type == "bf16" && dtype == HostDtype::BFloat16) ||
      (type == "i1" && dtype == HostDtype::Bool) ||
      (type == "i8" &&
       (dtype == HostDtype::Int8 || dtype == HostDtype::UInt8)) ||
      ((type == "f8E4M3FN" || type == "f8E5M2") && hostBytes(dtype) == 1) ||
      (type == "i16" && dtype == HostDtype::Int16) ||
      (type == "i32" && dtype == HostDtype::Int32) ||
      ((type == "i64" || type == "index") && dtype == HostDtype::Int64);
  if (!same)
    throw Error("argument '" + info.name + "' has elements of type " + type +
                ", its file " + toString(dtype));
  return std::nullopt;
}

static int64_t elementSize(const ArgumentInfo &info, const NpyArray &array) {
  return info.elementSizeInBytes ? info.elementSizeInBytes
                                 : hostBytes(array.dtype);
}

static uint64_t deviceBytes(const ArgumentInfo &info, const NpyArray &array) {
  if (info.layout)
    return info.layout->sizeInBytes();
  return static_cast<uint64_t>(array.numElements()) * elementSize(info, array);
}

/// A host array of zeros for an argument whose layout says the shape. A
/// prediction takes no data: tensors may be larger than the host's memory.
static NpyArray zerosOf(const ArgumentInfo &info, bool hasData = true) {
  NpyArray zeros;
  zeros.dtype = info.dtype;
  zeros.shape = info.shape;
  if (hasData)
    zeros.data.resize(zeros.numElements() * hostBytes(info.dtype));
  return zeros;
}

/// Whether an array holds the stored bytes of an argument, which say more than
/// its host type can: DL16 has smaller subnormals and larger values than f16.
static bool isDeviceImage(const ArgumentInfo &info, const NpyArray &array) {
  return array.dtype == HostDtype::UInt8 && array.shape != info.shape &&
         array.shape == std::vector<int64_t>{info.layout->sizeInBytes()};
}

static void upload(const ArgumentInfo &info, Array &array, Numerics numerics,
                   DeviceMemory &memory) {
  uint8_t *device = memory.at(array.address);
  HostDtype dtype = array.host.dtype;
  if (!array.deviceImage.empty()) {
    std::memcpy(device, array.deviceImage.data(), array.deviceImage.size());
    return;
  }
  if (info.layout) {
    TensorLayout layout = *info.layout;
    asBits(numerics, dtype, layout);
    int64_t elemSize = hostBytes(dtype);
    std::vector<uint8_t> image(spanOf(info.shape, info.strides) * elemSize);
    permute(info.shape, info.strides, elemSize, array.host.data.data(),
            image.data(), true);
    hostToDevice(image.data(), dtype, info.shape, info.strides, layout, device,
                 nullptr);
    return;
  }
  if (array.host.numElements() == 0)
    return;
  // The last stick's tail is part of the transfer, hence of the allocation.
  if (auto layout = plainLayout(info, array.host, numerics)) {
    std::vector<uint8_t> padded(layout->sizeInBytes());
    hostToDevice(array.host.data.data(), dtype, {array.host.numElements()}, {1},
                 *layout, padded.data(), nullptr);
    std::memcpy(device, padded.data(), deviceBytes(info, array.host));
    return;
  }
  std::memcpy(device, array.host.data.data(), array.host.data.size());
}

static NpyArray download(const ArgumentInfo &info, const Array &array,
                         Numerics numerics, DeviceMemory &memory) {
  NpyArray result = array.host;
  const uint8_t *device = memory.at(array.address);
  HostDtype dtype = result.dtype;
  if (info.layout) {
    TensorLayout layout = *info.layout;
    asBits(numerics, dtype, layout);
    int64_t elemSize = hostBytes(dtype);
    std::vector<uint8_t> image(spanOf(info.shape, info.strides) * elemSize);
    deviceToHost(device, layout, info.shape, info.strides, dtype, image.data());
    permute(info.shape, info.strides, elemSize, result.data.data(),
            image.data(), false);
    return result;
  }
  if (result.numElements() == 0)
    return result;
  if (auto layout = plainLayout(info, result, numerics)) {
    std::vector<uint8_t> padded(layout->sizeInBytes());
    std::memcpy(padded.data(), device, deviceBytes(info, result));
    deviceToHost(padded.data(), *layout, {result.numElements()}, {1}, dtype,
                 result.data.data());
    return result;
  }
  std::memcpy(result.data.data(), device, result.data.size());
  return result;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

static bool isArrayText(const std::string &text) {
  return text.size() > 4 && text.compare(text.size() - 4, 4, ".npy") == 0;
}

static int64_t scalarValue(const ArgumentInfo &info, const std::string &text) {
  const char *start = text.c_str();
  char *end = nullptr;
  errno = 0;
  if (info.isFloat) {
    float value = std::strtof(start, &end);
    bool isTooLarge = errno == ERANGE && std::isinf(value);
    if (text.empty() || *end || isTooLarge)
      throw Error("argument '" + info.name + "': expected a number, found '" +
                  text + "'");
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
  }
  long long value = std::strtoll(start, &end, 0);
  if (text.empty() || *end || errno)
    throw Error("argument '" + info.name + "': expected " +
                (info.kind == ArgumentInfo::Array ? "a .npy file or " : "") +
                "a 64-bit integer, found '" + text + "'");
  return value;
}

/// A name that is one path component.
static void checkFileName(const std::string &name) {
  if (name.empty() || name == "." || name == ".." ||
      name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos)
    throw Error("argument name '" + name + "' cannot name a file");
}

/// CPU time of all threads so far.
static double processSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

static double medianOf(std::vector<double> values) {
  size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  double upper = values[middle];
  if (values.size() % 2)
    return upper;
  return (upper + *std::max_element(values.begin(), values.begin() + middle)) /
         2;
}

/// The report, after times of the host: the median run, if there were any, and
/// the timing engine.
static std::string toJson(const TimingReport &report, const HostTimes &host) {
  nlohmann::ordered_json json;
  if (!host.wallSeconds.empty()) {
    json["host_seconds"] = medianOf(host.wallSeconds);
    json["host_cpu_seconds"] = medianOf(host.cpuSeconds);
  }
  json["simulation_seconds"] = host.simulationSeconds;
  json.update(nlohmann::ordered_json::parse(report.toJson()));
  return json.dump(2) + "\n";
}

static void run(const Options &options) {
  LoadOptions loadOptions;
  loadOptions.entry = options.entry;
  if (options.device)
    loadOptions.programBytes = options.device->segmentBytes;
  // Before the executable, whose job lies in it.
  DeviceMemory memory(options.device ? *options.device : DeviceSpec());
  std::unique_ptr<Executable> executable =
      Executable::load(options.program, loadOptions, options.bundle);
  std::vector<ArgumentInfo> infos = executable->arguments();

  executable->checkCount(options.args.size());

  std::vector<BoundArgument> bound(infos.size());
  std::vector<Array> arrays;
  std::set<std::string> names;
  for (size_t i = 0; i < infos.size(); ++i) {
    ArgumentInfo &info = infos[i];
    const std::string &text = options.args[i];
    bool zeros = text == "zeros";
    if (!isArrayText(text) && !zeros) {
      if (info.layout)
        throw Error("argument '" + info.name +
                    "' is an array: expected a "
                    ".npy file, found '" +
                    text + "'");
      bound[i].value = scalarValue(info, text);
      continue;
    }
    if (info.isFloat)
      throw Error("argument '" + info.name + "' is a float, found '" + text +
                  "'");
    Array array;
    array.argument = i;
    if (zeros) {
      if (!info.layout)
        throw Error("argument '" + info.name +
                    "': 'zeros' needs a ktdp.layout that says the shape");
      array.host = zerosOf(info, !options.predictOnly);
    } else {
      array.host = readNpy(text);
    }
    if (info.layout && isDeviceImage(info, array.host)) {
      // Their bits have another meaning in IEEE arithmetic.
      if (options.numerics == Numerics::IEEE)
        throw Error(text + ": error: device bytes hold the values of " +
                    "--numerics=dl16");
      array.deviceImage = std::move(array.host.data);
      array.host = zerosOf(info);
    }
    if (info.layout && array.host.shape != info.shape)
      if (auto larger = executable->enlarge(info, array.host.shape))
        info = *larger;
    if (info.layout &&
        (array.host.dtype != info.dtype || array.host.shape != info.shape))
      throw Error(text + ": error: argument '" + info.name + "' is " +
                  toString(info.dtype) + " " + formatSizes(info.shape) +
                  ", the file has " + toString(array.host.dtype) + " " +
                  formatSizes(array.host.shape));
    if (!info.layout)
      plainLayout(info, array.host, options.numerics); // checks the type
    else if (deviceFormat(info.dtype) != info.layout->format)
      throw Error("argument '" + info.name + "': arrays of " +
                  toString(info.dtype) + " are stored as " +
                  toString(deviceFormat(info.dtype)) + ", its layout says " +
                  toString(info.layout->format));
    checkFileName(info.name);
    if (!names.insert(info.name).second)
      throw Error("two array arguments are named '" + info.name + "'");
    array.sizeInBytes = deviceBytes(info, array.host);
    array.address = memory.allocate(array.sizeInBytes);
    bound[i].isArray = true;
    bound[i].address = array.address;
    bound[i].value =
        static_cast<int64_t>(array.address) / elementSize(info, array.host);
    arrays.push_back(std::move(array));
  }
  for (size_t i = 0; i < infos.size(); ++i)
    bound[i].info = infos[i];
  executable->bind(memory, std::move(bound));

  RunOptions runOptions;
  runOptions.threads = options.threads;
  runOptions.numerics = options.numerics;
  runOptions.oob = options.oob;
  runOptions.check = options.check;
  HostTimes host;
  int numRuns = options.predictOnly ? 0 : options.repeat;
  for (int repeat = 0; repeat < numRuns; ++repeat) {
    for (Array &array : arrays) {
      if (repeat > 0) {
        array.restore(memory);
        continue;
      }
      upload(infos[array.argument], array, options.numerics, memory);
      if (numRuns > 1)
        array.keepImage(memory);
    }
    double before = processSeconds();
    host.wallSeconds.push_back(executable->run(runOptions));
    host.cpuSeconds.push_back(processSeconds() - before);
  }
  std::vector<NpyArray> results;
  if (!options.outDir.empty())
    for (const Array &array : arrays)
      results.push_back(
          download(infos[array.argument], array, options.numerics, memory));
  TimingReport report;
  if (options.timing || !options.json.empty() || !options.trace.empty()) {
    TimingOptions timing;
    if (options.device)
      timing.spec = *options.device;
    timing.overlap = options.overlap;
    timing.events = !options.trace.empty();
    auto start = std::chrono::steady_clock::now();
    report = executable->simulate(runOptions, timing);
    host.simulationSeconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
  }

  // Everything was right: now files may be written.
  OutputFiles files;
  if (!options.outDir.empty()) {
    files.makeFolder(options.outDir);
    for (size_t i = 0; i < arrays.size(); ++i)
      files.add(options.outDir + "/" + infos[arrays[i].argument].name + ".npy",
                [&](const std::string &path) { writeNpy(path, results[i]); });
  }
  if (!options.json.empty())
    files.addText(options.json, toJson(report, host));
  if (!options.trace.empty())
    files.addText(options.trace, report.toChromeTrace());
  files.commit();
  if (options.timing) {
    std::fputs(report.toText().c_str(), stdout);
    if (const std::vector<double> &runs = host.wallSeconds; !runs.empty())
      std::printf("host first run %.1f us, median of %zu %.1f us\n",
                  runs.front() * 1e6, runs.size(), medianOf(runs) * 1e6);
  }
}

int main(int argc, char **argv) {
  mlir::ktdp::exitOnFatalErrors();
  try {
    run(parseOptions(argc, argv));
  } catch (const std::exception &error) {
    std::string text = error.what();
    // Located errors say "error:" themselves.
    std::cerr << (text.find("error: ") == std::string::npos
                      ? "spyre-run: error: "
                      : "")
              << text << "\n";
    return 1;
  }
  return 0;
}
