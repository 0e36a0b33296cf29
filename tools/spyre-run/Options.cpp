// SPDX-License-Identifier: Apache-2.0
//===- Options.cpp - What spyre-run is asked for --------------------------===//

#include "Options.h"

#include "Spyre/Support/Error.h"

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <optional>

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

/// One of several words.
template <typename Enum>
static Enum parseWord(const std::string &flag, const std::string &text,
                      const std::vector<std::pair<const char *, Enum>> &words) {
  std::string expected;
  for (size_t i = 0; i < words.size(); ++i) {
    if (text == words[i].first)
      return words[i].second;
    expected += i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    expected += words[i].first;
  }
  usageError(flag + " expects " + expected + ", found '" + text + "'");
}

static std::shared_ptr<const DeviceSpec> parseDevice(const std::string &path) {
  auto device = std::make_shared<DeviceSpec>(DeviceSpec::fromJsonFile(path));
  if (device->nonNumber != NonNumber::Inf)
    throw Error("--device: the device model reads non-numbers as "
                "infinities only, found \"nonNumber\": \"nan\"");
  return device;
}

namespace {
/// The options by name: those with a value, and those without.
struct OptionTable {
  explicit OptionTable(Options &o)
      : withValue{
            {"--entry", [&](auto &, auto &value) { o.entry = value; }},
            {"--arg", [&](auto &, auto &value) { o.args.push_back(value); }},
            {"--out-dir", [&](auto &, auto &value) { o.outDir = value; }},
            {"--json", [&](auto &, auto &value) { o.json = value; }},
            {"--trace", [&](auto &, auto &value) { o.trace = value; }},
            {"--device",
             [&](auto &, auto &value) { o.device = parseDevice(value); }},
            {"--threads",
             [&](auto &flag, auto &value) {
               o.threads = parseCount(flag, value);
             }},
            {"--repeat",
             [&](auto &flag, auto &value) {
               o.repeat = parseCount(flag, value);
             }},
            {"--check",
             [&](auto &flag, auto &value) {
               o.check = parseWord<CheckLevel>(flag, value,
                                               {{"none", CheckLevel::None},
                                                {"bounds", CheckLevel::Bounds},
                                                {"full", CheckLevel::Full}});
             }},
            {"--oob",
             [&](auto &flag, auto &value) {
               o.oob = parseWord<OutOfBounds>(flag, value,
                                              {{"error", OutOfBounds::Error},
                                               {"zero", OutOfBounds::Zero}});
             }},
            {"--numerics",
             [&](auto &flag, auto &value) {
               o.numerics = parseWord<Numerics>(
                   flag, value,
                   {{"dl16", Numerics::DL16}, {"ieee", Numerics::IEEE}});
             }},
        },
        alone{
            {"--help", [this] { printHelp = true; }},
            {"-h", [this] { printHelp = true; }},
            {"--print-device-spec", [this] { printDevice = true; }},
            {"--no-overlap", [&] { o.overlap = false; }},
            {"--predict-only", [&] { o.predictOnly = true; }},
            {"--timing", [&] { o.timing = true; }},
            {"--lenient", [&] { o.bundle.lenient = true; }},
            {"--pool", [&] { o.bundle.hasPool = true; }},
        } {}

  using Take =
      std::function<void(const std::string &flag, const std::string &value)>;
  const std::map<std::string, Take> withValue;
  const std::map<std::string, std::function<void()>> alone;
  bool printHelp = false, printDevice = false;
};
} // namespace

Options spyre::parseOptions(int argc, char **argv) {
  Options o;
  OptionTable table(o);
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    std::optional<std::string> value;
    if (flag.rfind("--", 0) == 0)
      if (size_t equal = flag.find('='); equal != std::string::npos) {
        value = flag.substr(equal + 1);
        flag.resize(equal);
      }
    auto withValue = table.withValue.find(flag);
    auto alone = table.alone.find(flag);
    if (withValue != table.withValue.end()) {
      if (!value && i + 1 < argc)
        value = argv[++i];
      if (!value || value->empty())
        usageError(flag + " expects a value");
      withValue->second(flag, *value);
      continue;
    }
    if (alone != table.alone.end())
      alone->second();
    else if (flag.rfind("-", 0) == 0)
      usageError("unknown option '" + flag + "'");
    else if (o.program.empty())
      o.program = flag;
    else
      usageError("more than one program: '" + flag + "'");
    if (value)
      usageError(flag + " takes no value");
  }
  if (table.printHelp) {
    std::cout << kUsage;
    std::exit(0);
  }
  if (table.printDevice) {
    std::cout << (o.device ? *o.device : DeviceSpec()).toJson();
    std::exit(0);
  }
  if (o.program.empty())
    usageError("no program given (see --help)");
  if (o.predictOnly && !o.outDir.empty())
    usageError("--out-dir needs a run, --predict-only makes none");
  return o;
}
