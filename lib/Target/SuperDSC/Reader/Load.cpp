// SPDX-License-Identifier: Apache-2.0
//===- Load.cpp - Reading and validating a folder ---------------*- C++ -*-===//

#include "Spyre/Target/SuperDSC/Reader/Load.h"
#include "CheckManifest.h"
#include "Spyre/Support/OpenDirectory.h"
#include "Spyre/Target/SuperDSC/Model/BundleProgram.h"
#include "Spyre/Target/SuperDSC/Model/SdscRules.h"
#include "Spyre/Target/SuperDSC/Reader/BundleParser.h"
#include "Spyre/Target/SuperDSC/Reader/SdscReader.h"

#include <algorithm>
#include <set>

using namespace spyre;
using namespace spyre::superdsc;

/// Reads and parses a JSON file; `display` is its name in reports.
static std::optional<Json> readJson(const OpenDirectory &folder,
                                    const std::string &name,
                                    const std::string &display,
                                    Report &report) {
  std::string message;
  JsonLimits limits;
  std::optional<std::string> text = folder.read(name, limits.bytes, message);
  if (!text) {
    // SDSC-FILE-C1
    report.add(display, "", "SDSC-FILE-C1", message);
    return std::nullopt;
  }
  JsonError error;
  std::optional<Json> json = parseJson(*text, error, limits);
  if (!json)
    // SDSC-FILE-C2
    report.add(display, error.path, "SDSC-FILE-C2", error.message, error.line,
               error.column);
  return json;
}

namespace {

/// Reads the bundle in one folder.
class BundleLoader {
public:
  BundleLoader(const OpenDirectory &folder, std::string name, Report &report,
               const LoadOptions &options)
      : folder(folder), prefix(getPrefix(name)), report(report),
        options(options) {
    loaded.folder = std::move(name);
  }

  std::optional<LoadedBundle> run() {
    std::string message;
    std::string display = prefix + kBundleFile;
    std::optional<std::string> text =
        folder.read(kBundleFile, JsonLimits().bytes, message);
    if (!text) {
      report.add(display, "", "SDSC-FILE-C1", message);
    } else if (auto bundle =
                   parseBundle(*text, display, report, options.lenient)) {
      loaded.bundle = std::move(*bundle);
      isParsed = true;
      checkSteps(loaded.bundle.steps);
    }
    // Files that nothing executes are validated all the same.
    for (const std::string &name : folder.list()) {
      bool isSdsc = name.rfind("sdsc", 0) == 0 && name.size() > 5 &&
                    name.compare(name.size() - 5, 5, ".json") == 0;
      if (!isSdsc || loadFile(name) == nullptr || !isParsed)
        continue;
      // SDSC-BUNDLE-C5
      if (!executed.count(name))
        report.add(prefix + name, "", "SDSC-BUNDLE-C5",
                   "bundle.mlir does not execute this file");
    }
    if (!isParsed)
      return std::nullopt;
    return std::move(loaded);
  }

private:
  const Sdsc *loadFile(const std::string &name) {
    auto [entry, isNew] = known.try_emplace(name, false);
    if (!isNew)
      return entry->second ? &loaded.files.at(name) : nullptr;
    std::string display = prefix + name;
    std::optional<Json> json = readJson(folder, name, display, report);
    if (!json)
      return nullptr;
    std::optional<Sdsc> sdsc = readSdsc(*json, display, report);
    if (!sdsc)
      return nullptr;
    validateSdsc(*sdsc, display, report);
    entry->second = true;
    return &(loaded.files[name] = std::move(*sdsc));
  }

  void checkSteps(const std::vector<Step> &steps) {
    for (const Step &step : steps) {
      if (report.isFull())
        return;
      if (step.isLoop()) {
        checkSteps(step.body);
        continue;
      }
      executed.insert(step.file);
      // SDSC-BUNDLE-C2
      if (!isPlainName(step.file) || !folder.exists(step.file)) {
        report.add(prefix + kBundleFile, "", "SDSC-BUNDLE-C2",
                   "'" + step.file.substr(0, 80) +
                       "' is not the plain name of a file in the folder",
                   step.line);
        continue;
      }
      if (const Sdsc *sdsc = loadFile(step.file))
        checkSymbols(step, *sdsc);
    }
  }

  void checkSymbols(const Step &step, const Sdsc &sdsc) {
    // What each symbol is, where the file uses it first.
    std::map<int64_t, std::string> used;
    std::set<int64_t> bound(step.symbols.begin(), step.symbols.end());
    for (const Dim &dim : sdsc.dims)
      if (dim.symbol) {
        used.try_emplace(dim.symbol->id, describeSize(sdsc, dim));
        checkSize(step, dim);
      }
    for (size_t number = 0; number < sdsc.tensors.size(); ++number) {
      const Tensor &tensor = sdsc.tensors[number];
      for (size_t core = 0; tensor.symbolic && core < tensor.addresses.size();
           ++core)
        used.try_emplace(tensor.addresses[core],
                         "the address of tensor " + std::to_string(number) +
                             " on core " + std::to_string(core));
    }
    // SDSC-BUNDLE-C3
    for (const auto &[id, what] : used)
      if (!bound.count(id))
        report.add(prefix + kBundleFile, "", "SDSC-BUNDLE-C3",
                   "the symbol " + std::to_string(id) + " of " + step.file +
                       ", " + what + ", is not bound",
                   step.line);
    for (int64_t id : bound)
      if (!used.count(id))
        report.add(prefix + kBundleFile, "", "SDSC-BUNDLE-C3",
                   "the symbol " + std::to_string(id) + " does not occur in " +
                       step.file,
                   step.line);
    // SDSC-BUNDLE-C4
    for (const auto &[id, what] : used) {
      auto [owner, isNew] = owners.try_emplace(id, step.file);
      if (!isNew && owner->second != step.file)
        report.add(prefix + step.file, "", "SDSC-BUNDLE-C4",
                   "the symbol " + std::to_string(id) + " belongs to " +
                       owner->second);
    }
  }

  /// "the size 's' (multiples of 32 up to 96) of dimension 'mb' of tensors 0
  /// and 1"
  static std::string describeSize(const Sdsc &sdsc, const Dim &dim) {
    const DimSymbol &symbol = *dim.symbol;
    std::vector<std::string> numbers;
    for (size_t number = 0; number < sdsc.tensors.size(); ++number) {
      const Tensor &tensor = sdsc.tensors[number];
      for (size_t i = 0; i < tensor.order.size(); ++i)
        if (&sdsc.dims[tensor.order[i]] == &dim &&
            tensor.scale[i] == Scale::Present)
          numbers.push_back(std::to_string(number));
    }
    std::string text = "the size '" + symbol.name + "' (";
    text +=
        symbol.granularity > 1
            ? "multiples of " + std::to_string(symbol.granularity) + " up to "
            : std::string("1 to ");
    text += std::to_string(dim.size) + ") of dimension '" + dim.name + "'";
    if (!numbers.empty())
      text += numbers.size() == 1 ? " of tensor " : " of tensors ";
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (i > 0)
        text += i + 1 == numbers.size() ? " and " : ", ";
      text += numbers[i];
    }
    return text;
  }

  /// Whether a step gives a dimension the size that this names.
  void checkSize(const Step &step, const Dim &dim) {
    const DimSymbol &symbol = *dim.symbol;
    auto place = std::find(step.symbols.begin(), step.symbols.end(), symbol.id);
    if (place == step.symbols.end())
      return;
    SizeParameter wanted{symbol.name, symbol.granularity, dim.size};
    std::optional<size_t> size =
        step.operands[place - step.symbols.begin()].getSize();
    // SDSC-BUNDLE-C8
    if (!size || !(loaded.bundle.sizes[*size] == wanted))
      report.add(prefix + kBundleFile, "", "SDSC-BUNDLE-C8",
                 "the symbol " + std::to_string(symbol.id) + " of " +
                     step.file + ", of dimension '" + dim.name +
                     "', must be bound to a size '" + wanted.name +
                     "' with granularity " +
                     std::to_string(wanted.granularity) + " and max_value " +
                     std::to_string(wanted.maximum),
                 step.line);
  }

  const OpenDirectory &folder;
  std::string prefix;
  Report &report;
  const LoadOptions &options;
  LoadedBundle loaded;
  bool isParsed = false;
  /// Whether each file that was looked at could be read.
  std::map<std::string, bool> known;
  std::set<std::string> executed;
  std::map<int64_t, std::string> owners;
};

} // namespace

/// Folders bundle_<k> in the order of k, where no manifest lists them.
static std::vector<std::string> listBundles(const OpenDirectory &folder,
                                            Report &report) {
  const std::string prefix = "bundle_";
  size_t count = 0;
  for (const std::string &name : folder.list())
    count += name.rfind(prefix, 0) == 0 && name.size() > prefix.size() &&
             name.find_first_not_of("0123456789", prefix.size()) ==
                 std::string::npos;
  std::vector<std::string> names;
  for (size_t number = 0; number < count; ++number) {
    std::string name = prefix + std::to_string(number);
    // SDSC-BUNDLE-C7
    if (folder.exists(name))
      names.push_back(name);
    else
      report.add(name, "", "SDSC-BUNDLE-C7",
                 "is not there, but the folder has " + std::to_string(count) +
                     " bundles " + prefix + "<k> and no manifest.json");
  }
  return names;
}

/// Whether bundles agree on the sizes that they share.
static void checkSizes(const BundleProgram &program, Report &report) {
  const char *said = program.manifest ? kManifestFile : nullptr;
  std::map<std::string, SizeParameter> known;
  if (program.manifest)
    for (const SizeParameter &size : program.manifest->sizes)
      known.emplace(size.name, size);
  for (const LoadedBundle &bundle : program.bundles)
    for (const SizeParameter &size : bundle.bundle.sizes) {
      auto own = known.find(size.name);
      if (own == known.end() && !said) {
        known.emplace(size.name, size);
        continue;
      }
      // SDSC-BUNDLE-C8
      if (own == known.end() || !(own->second == size))
        report.add(getPrefix(bundle.folder) + kBundleFile, "", "SDSC-BUNDLE-C8",
                   "the size '" + size.name + "' with granularity " +
                       std::to_string(size.granularity) + " and max_value " +
                       std::to_string(size.maximum) + " is not that of " +
                       (said ? said : "another bundle"));
    }
}

std::optional<BundleProgram>
spyre::superdsc::loadProgram(const std::string &path, Report &report,
                             const LoadOptions &options) {
  std::string message;
  std::optional<OpenDirectory> folder = OpenDirectory::open(path, message);
  if (!folder) {
    report.add(path, "", "SDSC-FILE-C1", message);
    return std::nullopt;
  }
  BundleProgram program;
  if (folder->exists(kManifestFile))
    if (auto json = readJson(*folder, kManifestFile, kManifestFile, report))
      program.manifest = readManifest(*json, report);

  std::vector<std::string> names;
  if (program.manifest)
    for (const ManifestBundle &bundle : program.manifest->bundles)
      names.push_back(bundle.folder);
  else if (!folder->exists(kBundleFile))
    names = listBundles(*folder, report);
  if (names.empty())
    names.push_back(".");
  bool complete = true;
  for (const std::string &name : names) {
    std::optional<OpenDirectory> inner;
    if (name != ".") {
      inner = folder->openInner(name, message);
      if (!inner) {
        report.add(name, "", "SDSC-FILE-C1", message);
        complete = false;
        continue;
      }
    }
    auto bundle =
        BundleLoader(inner ? *inner : *folder, name, report, options).run();
    if (bundle)
      program.bundles.push_back(std::move(*bundle));
    else
      complete = false;
  }
  if (!complete)
    return std::nullopt;
  if (program.manifest)
    checkManifest(program, report);
  checkSizes(program, report);
  return program;
}
