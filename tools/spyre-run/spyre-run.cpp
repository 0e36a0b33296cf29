// SPDX-License-Identifier: Apache-2.0
//===- spyre-run.cpp - Run a KTIR program on numpy arrays -----------------===//

#include "Arrays.h"
#include "Cases.h"
#include "Executable.h"
#include "Npy.h"
#include "Options.h"
#include "OutputFiles.h"

#include "Spyre/Dialect/KTIR/IR/ParserGuards.h"
#include "Spyre/Support/Error.h"
#include "Spyre/Support/Json.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <new>
#include <optional>
#include <set>

using namespace spyre;
using namespace spyre::runtime;

namespace {
/// Seconds of the host: each run, and the timing engine.
struct HostTimes {
  std::vector<double> wallSeconds, cpuSeconds;
  double simulationSeconds = 0;
};

} // namespace

static bool isArrayText(const std::string &text) {
  return text.size() > 4 && text.compare(text.size() - 4, 4, ".npy") == 0;
}

static int64_t scalarValue(const ArgumentInfo &info, const std::string &text) {
  if (info.isFloat) {
    const char *start = text.c_str();
    char *end = nullptr;
    errno = 0;
    float value = std::strtof(start, &end);
    bool isTooLarge = errno == ERANGE && std::isinf(value);
    if (text.empty() || llvm::isSpace(*start) || *end || isTooLarge)
      throw Error("argument '" + info.name + "': expected a number, found '" +
                  text + "'");
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
  }
  // Leading zeros mean nothing, as numpy has it.
  llvm::StringRef digits = text;
  int64_t value = 0;
  bool isNegative = digits.consume_front("-");
  bool isHexadecimal = digits.consume_front("0x") || digits.consume_front("0X");
  bool isNumber = !digits.empty() && llvm::isAlnum(digits.front()) &&
                  !llvm::StringRef((isNegative ? "-" : "") + digits.str())
                       .getAsInteger(isHexadecimal ? 16 : 10, value);
  if (!isNumber)
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
  Json json;
  if (!host.wallSeconds.empty()) {
    json["host_seconds"] = medianOf(host.wallSeconds);
    json["host_cpu_seconds"] = medianOf(host.cpuSeconds);
  }
  json["simulation_seconds"] = host.simulationSeconds;
  json.update(Json::parse(report.toJson()));
  return dumpJson(json) + "\n";
}

namespace {
/// One run of the tool.
class Runner {
public:
  explicit Runner(const Options &options)
      : options(options),
        executable(Executable::load(options.program, loadOptions(options),
                                    options.bundle)),
        device(chooseDevice(options, executable->plannedDevice())),
        infos(executable->arguments()), args(options.args),
        bound(infos.size()) {
    // No values are read.
    if (options.predictOnly && args.empty())
      args.assign(infos.size(), "zeros");
    memory.emplace(device);
    warnOfOtherDevice(options, executable->plannedDevice());
    runOptions.threads = options.threads;
    runOptions.numerics = options.numerics;
    runOptions.oob = options.oob;
    runOptions.check = options.check;
  }

  void run() {
    executable->checkCount(args.size());
    // Numbers first: arrays may be as large as these say.
    for (size_t i = 0; i < infos.size(); ++i)
      if (isNumber(i))
        bindArgument(i);
    setSizes();
    for (size_t i = 0; i < infos.size(); ++i)
      if (!isNumber(i))
        bindArgument(i);
    for (size_t i = 0; i < infos.size(); ++i)
      bound[i].info = infos[i];
    executable->bind(*memory, std::move(bound));
    execute();
    if (!options.outDir.empty())
      for (const Array &array : arrays)
        results.push_back(
            download(infos[array.argument], array, options.numerics, *memory));
    simulate();
    // Everything was right: now files may be written.
    write();
  }

private:
  static LoadOptions loadOptions(const Options &options) {
    LoadOptions result;
    result.entry = options.entry;
    if (options.device)
      result.programBytes = options.device->segmentBytes;
    return result;
  }

  bool isNumber(size_t i) const {
    return !isArrayText(args[i]) && args[i] != "zeros";
  }
  void setSizes();
  void bindArgument(size_t i);
  NpyArray readArray(const ArgumentInfo &info, const std::string &text);
  void execute();
  void simulate();
  void write() const;

  const Options &options;
  /// Outlives the executable, whose job lies in it.
  std::optional<DeviceMemory> memory;
  const std::unique_ptr<Executable> executable;
  const DeviceSpec device;
  std::vector<ArgumentInfo> infos;
  /// What --arg says of each.
  std::vector<std::string> args;
  std::vector<BoundArgument> bound;
  /// What the sizes of the run are, for messages.
  std::string sizes;
  std::vector<Array> arrays;
  std::set<std::string> names;
  RunOptions runOptions;
  HostTimes host;
  std::vector<NpyArray> results;
  TimingReport report;
};
} // namespace

NpyArray Runner::readArray(const ArgumentInfo &info, const std::string &text) {
  if (text != "zeros") {
    NpyArray array = readNpy(text);
    // numpy has no 8-bit floats: bytes are their codes.
    auto isFloat8 = [](HostDtype dtype) {
      return dtype == HostDtype::Float8E4M3FN ||
             dtype == HostDtype::Float8E5M2FNUZ;
    };
    // The bytes that the device stores stay such.
    if (info.layout && isFloat8(info.dtype) && !isDeviceImage(info, array) &&
        (array.dtype == HostDtype::UInt8 || isFloat8(array.dtype)))
      array.dtype = info.dtype;
    return array;
  }
  if (!info.layout)
    throw Error("argument '" + info.name +
                "': 'zeros' needs a ktdp.layout that says the shape");
  return zerosOf(info, !options.predictOnly);
}

/// Arrays whose sizes vary get those of this run.
void Runner::setSizes() {
  std::vector<int64_t> values;
  for (size_t i = 0; i < infos.size(); ++i)
    if (infos[i].isRuntimeArgument) {
      if (std::string wrong = checkSize(infos, i, bound[i].value);
          !wrong.empty())
        throw Error(wrong);
      values.push_back(bound[i].value);
    }
  sizes = listSizes(infos, values);
  for (ArgumentInfo &info : infos) {
    if (info.sizes.empty() || info.hasRoom)
      continue;
    ArrayStorage storage = info.storageAt(values);
    info.shape = storage.shape;
    info.strides = storage.strides;
    info.layout = storage.layout;
  }
}

void Runner::bindArgument(size_t i) {
  ArgumentInfo &info = infos[i];
  const std::string &text = args[i];
  if (isNumber(i)) {
    if (info.layout)
      throw Error("argument '" + info.name +
                  "' is an array: expected a "
                  ".npy file, found '" +
                  text + "'");
    bound[i].value = scalarValue(info, text);
    return;
  }
  if (info.isFloat)
    throw Error("argument '" + info.name + "' is a float, found '" + text +
                "'");
  if (info.layout && !options.predictOnly)
    checkHostSize(info, memory->capacityInBytes());
  Array array;
  array.argument = i;
  array.host = readArray(info, text);
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
  checkArray(info, array.host, text, options.numerics,
             info.sizes.empty() ? "" : sizes);
  checkFileName(info.name);
  if (!names.insert(info.name).second)
    throw Error("two array arguments are named '" + info.name + "'");
  array.sizeInBytes = deviceBytes(info, array.host);
  try {
    array.address = memory->allocate(array.sizeInBytes);
  } catch (const OutOfMemory &error) {
    throw Error("argument '" + info.name + "': " + error.what());
  }
  bound[i].isArray = true;
  bound[i].address = array.address;
  bound[i].value =
      static_cast<int64_t>(array.address) / elementSize(info, array.host);
  arrays.push_back(std::move(array));
}

void Runner::execute() {
  int numRuns = options.predictOnly ? 0 : options.repeat;
  for (int repeat = 0; repeat < numRuns; ++repeat) {
    for (Array &array : arrays) {
      const runtime::ArgumentInfo &info = infos[array.argument];
      if (repeat == 0)
        upload(info, array, options.numerics, *memory);
      if (!info.mayBeRead)
        continue;
      if (repeat > 0)
        array.restore(*memory);
      else if (numRuns > 1)
        array.keepImage(*memory);
    }
    double before = processSeconds();
    host.wallSeconds.push_back(executable->run(runOptions));
    host.cpuSeconds.push_back(processSeconds() - before);
  }
}

void Runner::simulate() {
  if (!options.timing && options.json.empty() && options.trace.empty())
    return;
  TimingOptions timing;
  timing.spec = device;
  timing.overlap = options.overlap;
  timing.events = !options.trace.empty();
  auto start = std::chrono::steady_clock::now();
  report = executable->simulate(runOptions, timing);
  host.simulationSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
}

void Runner::write() const {
  OutputFiles files;
  if (!options.outDir.empty()) {
    files.makeFolder(options.outDir);
    for (size_t i = 0; i < arrays.size(); ++i)
      files.add(
          options.outDir + "/" + infos[arrays[i].argument].name + ".npy",
          [&, i](const std::string &path) { writeNpy(path, results[i]); });
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

int spyre_run_main(int argc, char **argv) {
  mlir::ktdp::exitOnFatalErrors();
  try {
    Options options = parseOptions(argc, argv);
    if (options.cases)
      return runCases(options) ? 0 : 1;
    Runner(options).run();
  } catch (const std::bad_alloc &) {
    std::cerr << "spyre-run: error: the host has too little memory for the "
                 "arrays of this run\n";
    return 1;
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
