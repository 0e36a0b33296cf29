// SPDX-License-Identifier: Apache-2.0
//===- FolderFuzzTest.cpp - Mutated folders -------------------------------===//
//
// Whatever is in a folder, reading it gives a program or located violations,
// and nothing outside of it is read. Files vanish, change names, places and
// kinds, and lead elsewhere. SPYRE_FUZZ_FOLDERS says how many mutants,
// SPYRE_FUZZ_SEED from where.
//
//===----------------------------------------------------------------------===//

#include "../Mutator.h"
#include "TestBundles.h"

#include "Spyre/Target/SuperDSC/Model/BundleProgram.h"
#include "Spyre/Target/SuperDSC/Raise/RaiseGraph.h"
#include "Spyre/Target/SuperDSC/Reader/Load.h"
#include "Spyre/Target/SuperDSC/Writer/ProgramPrinter.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace spyre::superdsc;
using namespace spyre::superdsc::testing;
using spyre::testing::getSetting;
using spyre::testing::Mutator;
namespace fs = std::filesystem;

//===----------------------------------------------------------------------===//
// Valid folders
//===----------------------------------------------------------------------===//

/// Two rows of `from` to `to`, four times.
static LoadedBundle makeLoop(int64_t first, int64_t second, int64_t third) {
  LoadedBundle loaded;
  Sdsc sdsc = makeSdsc("add", {{"mb", 2, 1, 0}, {"out", 128, 1, 0}},
                       {{"OUTPUT", {0, 1}, {{1, 64}}}});
  Step loop, step;
  loop.count = 4;
  step.file = "sdsc_0.json";
  for (int64_t argument : {first, second, third}) {
    Tensor tensor = makeTensor(sdsc, {0, 1}, 0);
    tensor.gap = {6, 0};
    tensor.symbolic = true;
    int64_t symbol = -1 - static_cast<int64_t>(step.symbols.size());
    tensor.addresses = {symbol};
    sdsc.tensors.push_back(tensor);
    step.symbols.push_back(symbol);
    Address address;
    address.base = Address::Argument;
    address.argument = argument;
    address.strides = {256};
    step.operands.push_back(address);
    loaded.bundle.arguments.push_back(argument);
  }
  sdsc.inputs = {0, 1};
  sdsc.outputs = {2};
  loop.body = {step};
  loaded.bundle.steps = {loop};
  loaded.bundle.segments.emplace();
  loaded.files.emplace(step.file, std::move(sdsc));
  return loaded;
}

static LoadedBundle makeSum(std::vector<int64_t> segments) {
  LoadedBundle loaded;
  Step step;
  step.file = "sdsc_0.json";
  loaded.bundle.steps = {step};
  loaded.bundle.segments = std::move(segments);
  loaded.files.emplace(step.file, makeAdd());
  return loaded;
}

/// c = a + b; e = c + d; f = e + a tile by tile.
static BundleProgram makeProgram(bool hasManifest) {
  BundleProgram program;
  program.bundles = {makeSum({0, 1, 2}), makeSum({2, 3, 4}), makeLoop(4, 0, 5)};
  Manifest manifest;
  for (int64_t number = 0; number < 6; ++number) {
    ManifestTensor tensor;
    tensor.name = std::string(1, static_cast<char>('a' + number));
    tensor.shape = {8, 128};
    tensor.strides = {128, 1};
    tensor.order = {0, 1};
    manifest.arguments.push_back(tensor);
  }
  const std::vector<int64_t> arguments[] = {{0, 1, 2}, {2, 3, 4}, {0, 4, 5}};
  const std::vector<int64_t> tensors[] = {{0, 1, 2}, {2, 3, 4}, {4, 0, 5}};
  for (size_t number = 0; number < program.bundles.size(); ++number) {
    LoadedBundle &bundle = program.bundles[number];
    bundle.folder = "bundle_" + std::to_string(number);
    ManifestFile file{"sdsc_0.json", {}, tensors[number], {0, 0, 0}};
    manifest.bundles.push_back(
        {bundle.folder, arguments[number], false, {file}});
  }
  if (hasManifest)
    program.manifest = std::move(manifest);
  return program;
}

//===----------------------------------------------------------------------===//
// Mutants
//===----------------------------------------------------------------------===//

namespace {

/// What is at a path. Folders are there because something is in them.
struct Entry {
  enum Kind { File, Link, Folder, Pipe, Huge } kind = File;
  /// Of a file; where a link leads.
  std::string content;
};
using Entries = std::map<std::string, Entry>;

/// Changes what is where.
class FolderMutator {
public:
  /// `outside`: a folder whose files must not be read.
  FolderMutator(uint64_t seed, std::string outside)
      : random(seed), texts(seed), outside(std::move(outside)) {}

  Entries mutate(Entries entries) {
    for (size_t i = 0, rounds = 1 + below(3); i < rounds && !entries.empty();
         ++i)
      mutateOnce(entries);
    return entries;
  }

private:
  size_t below(size_t limit) {
    return std::uniform_int_distribution<size_t>(0, limit - 1)(random);
  }

  Entries::iterator pick(Entries &entries) {
    return std::next(entries.begin(), below(entries.size()));
  }

  std::string otherName(Entries &entries) {
    static const char *const kNames[] = {
        "bundle.mlir",
        "manifest.json",
        "sdsc_0.json",
        "sdsc_1.json",
        "sdsc.json",
        "bundle_0",
        "bundle_1/bundle.mlir",
        "bundle_2/sdsc_1.json",
        "bundle_3/bundle.mlir",
        "bundle_01/sdsc_0.json",
        "bundle_99999999999999999999/bundle.mlir",
        "bundle_/bundle.mlir",
        "spyrecode.json",
        "bundle_0/a b\n\"c"};
    return below(2) ? pick(entries)->first : kNames[below(std::size(kNames))];
  }

  std::string target() {
    const std::string kTargets[] = {".",
                                    "..",
                                    "../bundle_0",
                                    "bundle_0",
                                    "bundle_2",
                                    "sdsc_0.json",
                                    "bundle.mlir",
                                    "/dev/zero",
                                    "/proc/self/mem",
                                    outside,
                                    outside + "/sdsc_0.json",
                                    outside + "/bundle.mlir",
                                    outside + "/manifest.json"};
    return kTargets[below(std::size(kTargets))];
  }

  /// Text that names something else or is too much.
  void distort(std::string &text) {
    static const char *const kWords[] = {
        "sdsc_0.json",   "bundle_0",    "bundle_1",  "bundle_2",
        "sdsc_execute",  "arith.addi",  "scf.for",   "array<i64",
        "affine_map",    "return",      "module",    "segments",
        "\"arguments\"", "\"tensors\"", "\"shape\"", "\"folder\""};
    static const char *const kOthers[] = {"../outside/sdsc_0.json",
                                          "/etc/passwd",
                                          ".",
                                          "..",
                                          "bundle_0/sdsc_0.json",
                                          "scf.if",
                                          "scf.while",
                                          "arith.muli",
                                          "memref.alloc",
                                          "func.func",
                                          "",
                                          "bundle_0",
                                          "bundle_1",
                                          "sdsc_1.json",
                                          "\"files\"",
                                          "cf.br",
                                          "llvm.call",
                                          "builtin.unrealized_conversion_cast"};
    switch (below(4)) {
    case 0: {
      std::string word = kWords[below(std::size(kWords))];
      size_t at = text.find(word, below(text.size() + 1));
      if (at == std::string::npos)
        at = text.find(word);
      if (at != std::string::npos)
        text.replace(at, word.size(), kOthers[below(std::size(kOthers))]);
      break;
    }
    case 1: { // Deep.
      static const char *const kOpen[] = {"[", "{\"a\":",  "(",       "{",
                                          "<", "scf.for ", "module {"};
      std::string deep, open = kOpen[below(std::size(kOpen))];
      for (size_t i = 0, count = 1 + below(5000); i < count; ++i)
        deep += open;
      text.insert(below(text.size() + 1), deep);
      break;
    }
    case 2: { // Long.
      std::string part = text.substr(below(text.size() + 1), 1 + below(400));
      for (size_t i = 0; i < 5; ++i)
        part += part;
      text.insert(below(text.size() + 1), part);
      break;
    }
    default:
      text.resize(below(text.size() + 1));
    }
  }

  void mutateOnce(Entries &entries) {
    auto entry = pick(entries);
    Entry own = entry->second;
    switch (below(10)) {
    case 0: // Gone.
      entries.erase(entry);
      break;
    case 1: // Another name.
      entries.erase(entry);
      if (!entries.empty())
        entries[otherName(entries)] = own;
      break;
    case 2: // Another's content.
      std::swap(entry->second, pick(entries)->second);
      break;
    case 3: // There twice.
      entries[otherName(entries)] = own;
      break;
    case 4: // A file or a whole folder leads elsewhere.
      if (size_t slash = entry->first.find('/');
          slash != std::string::npos && below(2)) {
        std::string folder = entry->first.substr(0, slash);
        auto inside = [&](const auto &other) {
          return other.first.rfind(folder + "/", 0) == 0;
        };
        for (auto it = entries.begin(); it != entries.end();)
          it = inside(*it) ? entries.erase(it) : std::next(it);
        entries[folder] = {Entry::Link, target()};
      } else {
        entry->second = {Entry::Link, target()};
      }
      break;
    case 5: {
      static const Entry::Kind kKinds[] = {Entry::Folder, Entry::Pipe,
                                           Entry::Huge, Entry::File};
      entry->second = {kKinds[below(std::size(kKinds))], ""};
      break;
    }
    case 6:
    case 7:
      distort(entry->second.content);
      break;
    default:
      entry->second.content = texts.mutate(entry->second.content);
    }
  }

  std::mt19937_64 random;
  Mutator texts;
  std::string outside;
};

/// Makes folders of entries. What cannot be made (a file inside a file) is
/// left out.
class Disk {
public:
  Disk() {
    std::string name = (fs::temp_directory_path() / "spyre-fuzz-XXXXXX");
    if (!::mkdtemp(name.data()))
      throw std::runtime_error("no temporary folder");
    root = name;
    fs::create_directories(outside());
    // Whoever reads these says so: the word stands nowhere else.
    writeFile(outside() / "sdsc_0.json", "{\"0_secret\": {\"secret\": 1}}");
    writeFile(outside() / "manifest.json", "{\"secret\": 1}");
    writeFile(outside() / "bundle.mlir", "module { \"secret.op\"() : () }");
  }
  ~Disk() { fs::remove_all(root); }

  fs::path outside() const { return root / "outside"; }

  fs::path make(const Entries &entries) const {
    fs::path folder = root / "bundle";
    fs::remove_all(folder);
    fs::create_directories(folder);
    for (const auto &[name, entry] : entries) {
      fs::path path = folder / name;
      std::error_code code;
      fs::create_directories(path.parent_path(), code);
      // Not through a link that is there already.
      bool isPlain = path.parent_path() == folder ||
                     (!code && !fs::is_symlink(path.parent_path()));
      if (!isPlain || fs::exists(fs::symlink_status(path, code)))
        continue;
      switch (entry.kind) {
      case Entry::Link:
        fs::create_symlink(entry.content, path, code);
        break;
      case Entry::Folder:
        fs::create_directory(path, code);
        break;
      case Entry::Pipe:
        ::mkfifo(path.c_str(), 0600);
        break;
      case Entry::Huge:
        writeFile(path, "");
        fs::resize_file(path, uintmax_t(1) << 40, code);
        break;
      case Entry::File:
        writeFile(path, entry.content);
      }
    }
    return folder;
  }

private:
  static void writeFile(const fs::path &path, const std::string &content) {
    std::ofstream(path, std::ios::binary) << content;
  }

  fs::path root;
};

struct Outcome {
  bool isValid = false, isRaised = false;
};

} // namespace

static Outcome readFolder(const fs::path &folder, mlir::MLIRContext &context,
                          bool lenient) {
  Report report;
  auto program = loadProgram(folder.string(), report, {lenient});
  EXPECT_TRUE(program || !report.ok());
  for (const Violation &violation : report.get()) {
    EXPECT_FALSE(violation.file.empty());
    EXPECT_EQ(violation.rule.rfind("SDSC-", 0), 0u) << violation.rule;
    EXPECT_FALSE(violation.message.empty());
  }
  EXPECT_EQ(report.toText().find("secret"), std::string::npos)
      << report.toText();
  Outcome outcome;
  outcome.isValid = program && report.ok();
  if (outcome.isValid)
    outcome.isRaised = static_cast<bool>(raiseProgram(*program, {}, &context));
  return outcome;
}

static Entries makeEntries(const BundleProgram &program) {
  Entries entries;
  for (auto &[name, content] : printProgram(program))
    entries[name] = {Entry::File, content};
  return entries;
}

TEST(FolderFuzz, Folders) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  size_t numDiagnostics = 0;
  mlir::ScopedDiagnosticHandler count(&context, [&](mlir::Diagnostic &) {
    ++numDiagnostics;
    return mlir::success();
  });
  Disk disk;
  uint64_t seed = getSetting("SPYRE_FUZZ_SEED", 21);
  FolderMutator mutator(seed, disk.outside().string());
  std::vector<Entries> bases = {makeEntries(makeProgram(true)),
                                makeEntries(makeProgram(false))};
  for (const Entries &base : bases)
    ASSERT_TRUE(readFolder(disk.make(base), context, false).isRaised);
  size_t mutants = getSetting("SPYRE_FUZZ_FOLDERS", 600), valid = 0, raised = 0;
  double slowest = 0;
  for (size_t i = 0; i < mutants; ++i) {
    fs::path folder = disk.make(mutator.mutate(bases[i % bases.size()]));
    numDiagnostics = 0;
    auto start = std::chrono::steady_clock::now();
    Outcome outcome = readFolder(folder, context, i % 3 == 0);
    std::chrono::duration<double> taken =
        std::chrono::steady_clock::now() - start;
    slowest = std::max(slowest, taken.count());
    valid += outcome.isValid;
    raised += outcome.isRaised;
    // What cannot be raised is said.
    if (outcome.isValid && !outcome.isRaised)
      EXPECT_GT(numDiagnostics, 0u) << "mutant " << i;
    ASSERT_FALSE(HasFailure()) << "mutant " << i << " of seed " << seed;
  }
  std::printf(
      "seed %llu: %zu folders, %zu valid, %zu raised, slowest %.0f ms\n",
      static_cast<unsigned long long>(seed), mutants, valid, raised,
      slowest * 1e3);
}
