// SPDX-License-Identifier: Apache-2.0
//===- Options.cpp - What spyre-run is asked for --------------------------===//

#include "Options.h"

#include "../OneOf.h"

#include "Spyre/Support/Error.h"
#include "Spyre/Support/Version.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <charconv>
#include <cstdlib>

using namespace spyre;
using namespace spyre::runtime;
using llvm::StringRef;
namespace cl = llvm::cl;

namespace {

/// Text that says something.
class Text : public cl::parser<std::string> {
public:
  using cl::parser<std::string>::parser;
  bool parse(cl::Option &option, StringRef, StringRef text,
             std::string &value) {
    value = text.str();
    return text.empty() && option.error("expects a value");
  }
};

class PositiveNumber : public cl::parser<int> {
public:
  using cl::parser<int>::parser;
  bool parse(cl::Option &option, StringRef, StringRef text, int &value) {
    if (!text.getAsInteger(10, value) && value >= 1 && value <= 1000000000)
      return false;
    return option.error("expects a positive number, found '" + text + "'");
  }
};

using TextOption = cl::opt<std::string, false, Text>;
using NumberOption = cl::opt<int, false, PositiveNumber>;

/// A switch: it takes no value.
struct Switch : cl::opt<bool> {
  Switch(const char *name, const char *help, cl::OptionCategory &category)
      : cl::opt<bool>(StringRef(name), cl::desc(help), cl::cat(category),
                      cl::ValueDisallowed) {}
};

/// Made in main, after the options that libLLVM brings along were taken away.
struct CommandLine {
  cl::OptionCategory program{"1. What runs"}, data{"2. Arguments and results"},
      model{"3. How it runs"}, report{"4. Times"},
      device{"5. Numbers of the device"};

  cl::opt<std::string> path{cl::Positional, cl::cat(program),
                            cl::value_desc("program.mlir"),
                            cl::desc("program.mlir")};
  TextOption entry{
      "entry", cl::cat(program), cl::value_desc("name"),
      cl::desc("Entry function (default: the only function without a grid)")};
  Switch cases{"cases",
               "Run the check.case operations of a program: inputs, calls and\n"
               "what must come out; prints what does not hold",
               program};
  Switch lenient{"lenient",
                 "Repair parameters that a folder's bundle.mlir declares twice",
                 program};
  Switch pool{"pool", "Segment 0 of a folder without manifest.json is a pool",
              program};

  cl::list<std::string, bool, Text> args{
      "arg", cl::cat(data), cl::value_desc("value"),
      cl::desc("One per argument, in order: FILE.npy, a number, or 'zeros'\n"
               "for an array whose layout says its shape; a uint8 file of\n"
               "the layout's size holds the stored bytes; pool arguments\n"
               "are allocated and take no --arg. With --predict-only, no\n"
               "--arg at all means 'zeros' for each")};
  TextOption outDir{
      "out-dir", cl::cat(data), cl::value_desc("folder"),
      cl::desc("Write every array argument to <folder>/<name>.npy afterwards")};

  cl::opt<Numerics, false, OneOf<Numerics>> numerics{
      "numerics", cl::cat(model), cl::desc("What f16 is:"),
      cl::init(Numerics::DL16),
      cl::values(clEnumValN(Numerics::DL16, "dl16", "the card's (default)"),
                 clEnumValN(Numerics::IEEE, "ieee", "IEEE's"))};
  cl::opt<CheckLevel, false, OneOf<CheckLevel>> check{
      "check", cl::cat(model), cl::desc("What is checked:"),
      cl::init(CheckLevel::Bounds),
      cl::values(
          clEnumValN(CheckLevel::None, "none", "trust the program"),
          clEnumValN(CheckLevel::Bounds, "bounds",
                     "stop accesses outside views, allocations and the LX\n"
                     "(default)"),
          clEnumValN(CheckLevel::Full, "full",
                     "also reads of memory that nothing wrote, overlaps in\n"
                     "the LX, races between cores, and the operation that\n"
                     "first makes a NaN"))};
  cl::opt<OutOfBounds, false, OneOf<OutOfBounds>> oob{
      "oob", cl::cat(model), cl::desc("Accesses outside their view:"),
      cl::init(OutOfBounds::Error),
      cl::values(clEnumValN(OutOfBounds::Error, "error", "stop (default)"),
                 clEnumValN(OutOfBounds::Zero, "zero",
                            "reads past an allocation give zeros, writes are\n"
                            "dropped"))};
  NumberOption threads{"threads", cl::cat(model), cl::value_desc("number"),
                       cl::init(0),
                       cl::desc("Host threads (default: one per processor)")};
  NumberOption repeat{
      "repeat", cl::cat(model), cl::value_desc("number"), cl::init(1),
      cl::desc("Run so many times on the same inputs (default: 1)")};

  Switch timing{"timing", "Print where the device's time goes, and host time",
                report};
  TextOption json{"json", cl::cat(report), cl::value_desc("file"),
                  cl::desc("Write the same as JSON; - is standard output")};
  TextOption trace{
      "trace", cl::cat(report), cl::value_desc("file"),
      cl::desc("Write a Chrome trace of the device, for Perfetto; - is\n"
               "standard output")};
  Switch noOverlap{"no-overlap",
                   "Time each core as doing one step after another", report};
  Switch predictOnly{"predict-only",
                     "Predict the time without running the program", report};

  TextOption deviceFile{
      "device", cl::cat(device), cl::value_desc("file"),
      cl::desc("Numbers of the device, as JSON, instead of what the program\n"
               "is planned for; those not given keep their defaults.\n"
               "Predictions use all of them, execution the sizes\n"
               "(segmentBytes, deviceMemoryBytes, lxBytesPerCore,\n"
               "maxSpanBytes)")};
  Switch printDeviceSpec{
      "print-device-spec",
      "Print all numbers of the device with unit, basis and\n"
      "source (after --device: with its values) and end",
      device};
};

} // namespace

/// libLLVM registers hundreds of options, which mean nothing here: a mistyped
/// flag would be one of them, unnoticed.
static void removeForeignOptions() {
  std::vector<cl::Option *> foreign;
  for (auto &[name, option] : cl::getRegisteredOptions())
    if (!llvm::is_contained({"help", "h", "version"}, name))
      foreign.push_back(option);
  for (cl::Option *option : foreign)
    option->removeArgument();
}

static void checkNonNumbers(const DeviceSpec &spec, llvm::StringRef of) {
  if (spec.nonNumber != NonNumber::Inf)
    throw Error(of.str() + ": the device model reads non-numbers as "
                           "infinities only, found \"nonNumber\": \"nan\"");
}

DeviceSpec
spyre::chooseDevice(const Options &options,
                    const std::optional<runtime::PlannedDevice> &planned) {
  if (options.device)
    return *options.device;
  if (!planned)
    return DeviceSpec();
  checkNonNumbers(planned->spec,
                  planned->location + ": error: spyre_graph.device");
  return planned->spec;
}

void spyre::warnOfOtherDevice(
    const Options &options,
    const std::optional<runtime::PlannedDevice> &planned) {
  if (!options.device || !planned)
    return;
  auto textOf = [](auto value) -> std::string {
    if constexpr (std::is_same_v<decltype(value), NonNumber>) {
      return value == NonNumber::Inf ? "inf" : "nan";
    } else {
      char text[32];
      return {text, std::to_chars(text, std::end(text), value).ptr};
    }
  };
  std::string ofPlan, given;
  for (const ParameterInfo &parameter : DeviceSpec::parameters())
    std::visit(
        [&](auto member) {
          auto first = planned->spec.*member;
          auto second = (*options.device).*member;
          if (first == second)
            return;
          std::string name = (ofPlan.empty() ? "" : ", ") +
                             std::string(parameter.name) + " = ";
          ofPlan += name + textOf(first);
          given += name + textOf(second);
        },
        parameter.member);
  if (!ofPlan.empty())
    llvm::errs() << planned->location
                 << ": warning: the program is planned for a device with "
                 << ofPlan << ", but --device has " << given
                 << ": leave --device out for the device of the plan\n";
}

Options spyre::parseOptions(int argc, char **argv) {
  removeForeignOptions();
  setVersionPrinter();
  CommandLine line;
  cl::ParseCommandLineOptions(
      argc, argv,
      "runs a KTIR program (text or bytecode; - is standard input) on the\n"
      "functional device model, or, if program.mlir is a folder, the "
      "SpyreCode\n"
      "or else the SuperDSC bundles in it.\n\n"
      "Exit status: 0, or 1 after an error; then no file was written.\n");
  Options options;
  options.program = line.path;
  options.entry = line.entry;
  options.outDir = line.outDir;
  options.json = line.json;
  options.trace = line.trace;
  options.args.assign(line.args.begin(), line.args.end());
  options.numerics = line.numerics;
  options.oob = line.oob;
  options.check = line.check;
  options.threads = line.threads;
  options.repeat = line.repeat;
  options.timing = line.timing;
  options.overlap = !line.noOverlap;
  options.predictOnly = line.predictOnly;
  options.cases = line.cases;
  options.bundle.lenient = line.lenient;
  options.bundle.hasPool = line.pool;
  if (!line.deviceFile.empty()) {
    options.device =
        std::make_shared<DeviceSpec>(DeviceSpec::fromJsonFile(line.deviceFile));
    checkNonNumbers(*options.device, "--device");
  }
  if (line.printDeviceSpec) {
    llvm::outs() << (options.device ? *options.device : DeviceSpec()).toJson();
    llvm::outs().flush();
    std::exit(0);
  }
  if (options.program.empty())
    throw Error("no program given (see --help)");
  bool asksForFiles = !options.outDir.empty() || !options.json.empty() ||
                      !options.trace.empty();
  if (options.cases &&
      (!options.entry.empty() || !options.args.empty() || asksForFiles ||
       options.timing || options.predictOnly || options.repeat != 1 ||
       options.bundle.lenient || options.bundle.hasPool))
    throw Error("--cases takes options of how programs run only (see --help)");
  if (options.predictOnly && !options.outDir.empty())
    throw Error("--out-dir needs a run, --predict-only makes none");
  return options;
}
