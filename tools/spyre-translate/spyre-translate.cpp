// SPDX-License-Identifier: Apache-2.0
//===- spyre-translate.cpp - To and from other formats --------------------===//
//
// mlirTranslateMain does not fit: it reads one file and writes one, while some
// translations here have no input, or read and write folders.
//
//===----------------------------------------------------------------------===//

#include "../OneOf.h"

#include "Spyre/Dialect/KTIR/IR/ParserGuards.h"
#include "Spyre/Support/Error.h"
#include "Spyre/Support/Version.h"
#include "Translations.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

using namespace spyre;
namespace cl = llvm::cl;

namespace {
/// Made in main: the choice of translations is read from the registry.
struct Options {
  cl::OptionCategory category{"Options of spyre-translate"};
  cl::opt<std::string> input{cl::Positional, cl::desc("[input file or folder]"),
                             cl::init("-"), cl::cat(category)};
  cl::opt<std::string> output{
      "o",
      cl::desc("File or folder to write (default: -, which is standard "
               "output)"),
      cl::value_desc("file"), cl::init("-"), cl::cat(category)};
  cl::opt<const mlir::Translation *, false, mlir::TranslationParser>
      translation{"", cl::desc("Translations of KTIR; give at most one:"),
                  cl::cat(category)};

  cl::OptionCategory dciCategory{
      "Options of --print-dci",
      "A list is numbers separated by commas, such as 4,100"};
  cl::opt<bool> printDci{
      "print-dci",
      cl::desc("Print the loop nests by which a tensor is copied between host "
               "and device"),
      cl::cat(dciCategory)};
  cl::opt<std::string> size{
      "size", cl::desc("Sizes of the tensor; '' for one without dimensions"),
      cl::value_desc("list"), cl::cat(dciCategory)};
  cl::opt<std::string> strides{
      "strides",
      cl::desc("Strides of the tensor on the host, in elements (default: "
               "row-major)"),
      cl::value_desc("list"), cl::cat(dciCategory)};
  cl::opt<std::string> dtype{
      "dtype",
      cl::desc("Type of the elements, by PyTorch's name (default: float16)"),
      cl::init("float16"), cl::cat(dciCategory)};
  cl::opt<std::string> dimOrder{
      "dim-order",
      cl::desc("Order of the dimensions on the device. The last one lies along "
               "the sticks; append -1 for a layout with one element per stick "
               "(default: the order on the host)"),
      cl::value_desc("list"), cl::cat(dciCategory)};
  cl::opt<std::string> deviceSize{
      "device-size",
      cl::desc("Sizes of the tensor on the device, instead of --dim-order; "
               "needs --stride-map"),
      cl::value_desc("list"), cl::cat(dciCategory)};
  cl::opt<std::string> strideMap{
      "stride-map",
      cl::desc("For each device dimension, the distance on the host between "
               "two steps, in elements; needs --device-size"),
      cl::value_desc("list"), cl::cat(dciCategory)};
  cl::opt<TransferDirection, false, OneOf<TransferDirection>> direction{
      "direction", cl::desc("Direction of the copy:"),
      cl::values(clEnumValN(TransferDirection::HostToDevice, "host-to-device",
                            "to the device (default)"),
                 clEnumValN(TransferDirection::DeviceToHost, "device-to-host",
                            "to the host; an expanded dimension is read once")),
      cl::init(TransferDirection::HostToDevice), cl::cat(dciCategory)};
  cl::opt<bool> json{"json",
                     cl::desc("Print JSON instead of text; also works with "
                              "--validate-superdsc and --validate-spyrecode"),
                     cl::cat(dciCategory)};

  cl::OptionCategory superdscCategory{
      "Options for SuperDSC bundles",
      "A bundle is a folder with bundle.mlir and sdsc_<i>.json. "
      "docs/internals/superdsc.md describes it"};
  cl::opt<bool> validateSuperDSC{
      "validate-superdsc",
      cl::desc("List every rule that the bundle in the input folder breaks"),
      cl::cat(superdscCategory)};
  cl::opt<bool> toSuperDSC{
      "to-superdsc",
      cl::desc("Write the planned spyre_graph in the input file as bundles to "
               "the output folder"),
      cl::cat(superdscCategory)};
  cl::opt<bool> fromSuperDSC{
      "from-superdsc",
      cl::desc("Raise the bundles in the input folder to planned spyre_graph"),
      cl::cat(superdscCategory)};
  cl::opt<bool> printSchema{"print-superdsc-schema",
                            cl::desc("Print the JSON schema of sdsc_<i>.json"),
                            cl::cat(superdscCategory)};
  cl::opt<std::string> flavor{
      "superdsc-flavor",
      cl::desc("Form of the files to write: asbuilt, as IBM's torch-spyre "
               "writes them (default), or spec, as the specification says"),
      cl::init("asbuilt"), cl::cat(superdscCategory)};
  cl::opt<bool> symbolicArguments{
      "symbolic-args",
      cl::desc("Write the addresses of arguments as symbols, which bundle.mlir "
               "binds, instead of numbers"),
      cl::cat(superdscCategory)};
  cl::opt<bool> unrollLoops{
      "unroll-loops",
      cl::desc("Write each iteration of a loop instead of the loop"),
      cl::cat(superdscCategory)};
  cl::opt<bool> hasPool{
      "pool",
      cl::desc("Take segment 0 of a bundle without manifest.json as the pool "
               "of intermediates, not as an argument"),
      cl::cat(superdscCategory)};
  cl::opt<bool> rewriteSuperDSC{
      "rewrite-superdsc",
      cl::desc("Read the bundle in the input folder and write it again, to the "
               "output folder"),
      cl::cat(superdscCategory)};
  cl::opt<bool> lenient{
      "lenient",
      cl::desc("Accept a bundle.mlir that declares a parameter twice: drop the "
               "second one"),
      cl::cat(superdscCategory)};

  cl::OptionCategory spyrecodeCategory{
      "Options for SpyreCode",
      "A job is a folder with spyrecode.json and program images. "
      "docs/internals/spyrecode.md describes it. With --symbolic-args its "
      "programs read addresses from a correction tensor"};
  cl::opt<bool> toSpyreCode{
      "to-spyrecode",
      cl::desc("Write the planned spyre_graph, or the KTIR, in the input file "
               "as a job to the output folder"),
      cl::cat(spyrecodeCategory)};
  cl::opt<bool> validateSpyreCode{
      "validate-spyrecode",
      cl::desc("List every rule that the job in the input folder breaks"),
      cl::cat(spyrecodeCategory)};
  cl::opt<std::string> spyrecodeFlavor{
      "spyrecode-flavor",
      cl::desc("Keys of spyrecode.json: asbuilt, as IBM's torch-spyre writes "
               "them (default), or spec, as the specification says"),
      cl::init("asbuilt"), cl::cat(spyrecodeCategory)};
};
} // namespace

static std::optional<std::vector<int64_t>>
parseList(const cl::opt<std::string> &option) {
  if (option.getNumOccurrences() == 0)
    return std::nullopt;
  std::vector<int64_t> values;
  llvm::StringRef text = option.getValue();
  if (text.empty())
    return values;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  for (llvm::StringRef part : parts) {
    int64_t value;
    if (part.trim().getAsInteger(10, value))
      throw Error("--" + option.ArgStr.str() +
                  " expects 64-bit integers separated by commas, found '" +
                  part.str() + "' in '" + text.str() + "'");
    values.push_back(value);
  }
  return values;
}

/// Refuses an input file beside an action without one.
static void refuseInput(const Options &options, const cl::opt<bool> &action) {
  if (options.input.getNumOccurrences() != 0)
    throw Error("--" + action.ArgStr.str() + " reads no file, found '" +
                options.input + "'");
}

static std::string runPrintDci(const Options &options) {
  DciRequest request;
  auto size = parseList(options.size);
  if (!size)
    throw Error("--print-dci needs --size");
  refuseInput(options, options.printDci);
  request.size = *size;
  request.strides = parseList(options.strides);
  request.dimOrder = parseList(options.dimOrder);
  request.deviceSize = parseList(options.deviceSize);
  request.strideMap = parseList(options.strideMap);
  if (request.deviceSize.has_value() != request.strideMap.has_value())
    throw Error("--device-size and --stride-map must be given together");
  if (request.deviceSize && request.dimOrder)
    throw Error("--dim-order and --device-size cannot be used together");
  auto dtype = parseHostDtype(options.dtype);
  if (!dtype)
    throw Error("--dtype expects a type that the device stores, such as "
                "float16, found '" +
                options.dtype + "'");
  request.dtype = *dtype;
  request.direction = options.direction;
  request.json = options.json;
  return printDci(request);
}

/// Reads the value of a flavour option.
static bool isAsSpecified(const cl::opt<std::string> &option) {
  if (option != "spec" && option != "asbuilt")
    throw Error("--" + option.ArgStr.str() +
                " expects asbuilt or spec, found '" + option + "'");
  return option == "spec";
}

/// Refuses what else was asked for beside an action on folders.
static void refuseOthers(const Options &options, llvm::StringRef action) {
  const bool isTranslated = options.translation.getNumOccurrences() != 0;
  if (isTranslated || options.printDci)
    throw Error("--" + action.str() + " and " +
                (isTranslated ? "a translation" : "--print-dci") +
                " cannot be used together");
}

/// Refuses options of other actions than what was asked for.
static void refuseIdleOptions(const Options &options) {
  using Actions = std::vector<const cl::opt<bool> *>;
  const Actions dci = {&options.printDci};
  const std::pair<const cl::Option *, Actions> uses[] = {
      {&options.size, dci},
      {&options.strides, dci},
      {&options.dtype, dci},
      {&options.dimOrder, dci},
      {&options.deviceSize, dci},
      {&options.strideMap, dci},
      {&options.direction, dci},
      {&options.json,
       {&options.printDci, &options.validateSuperDSC,
        &options.validateSpyreCode}},
      {&options.flavor, {&options.toSuperDSC}},
      {&options.symbolicArguments, {&options.toSuperDSC, &options.toSpyreCode}},
      {&options.unrollLoops, {&options.toSuperDSC}},
      {&options.hasPool, {&options.validateSuperDSC, &options.fromSuperDSC}},
      {&options.lenient,
       {&options.validateSuperDSC, &options.fromSuperDSC,
        &options.rewriteSuperDSC}},
      {&options.spyrecodeFlavor, {&options.toSpyreCode}}};
  for (const auto &[option, actions] : uses) {
    if (option->getNumOccurrences() == 0 ||
        llvm::any_of(actions,
                     [](const cl::opt<bool> *action) { return bool(*action); }))
      continue;
    std::string names;
    for (const cl::opt<bool> *action : actions)
      names += (names.empty()              ? "--"
                : action == actions.back() ? " or --"
                                           : ", --") +
               action->ArgStr.str();
    throw Error("--" + option->ArgStr.str() + " needs " + names);
  }
}

/// Runs the one action on SpyreCode that was asked for, or nothing.
static std::optional<std::string> runSpyreCode(const Options &options,
                                               bool &ok) {
  if (!options.toSpyreCode && !options.validateSpyreCode)
    return std::nullopt;
  if (options.toSpyreCode && options.validateSpyreCode)
    throw Error(
        "--to-spyrecode and --validate-spyrecode cannot be used together");
  for (const cl::opt<bool> *other :
       {&options.validateSuperDSC, &options.rewriteSuperDSC,
        &options.toSuperDSC, &options.fromSuperDSC, &options.printSchema})
    if (*other)
      throw Error("--" + other->ArgStr.str() +
                  " and actions on SpyreCode cannot be used together");
  refuseOthers(options, options.toSpyreCode ? options.toSpyreCode.ArgStr
                                            : options.validateSpyreCode.ArgStr);
  SpyreCodeRequest request;
  request.action = options.toSpyreCode ? SpyreCodeRequest::Write
                                       : SpyreCodeRequest::Validate;
  request.input = options.input;
  request.asSpecified = isAsSpecified(options.spyrecodeFlavor);
  request.symbolicArguments = options.symbolicArguments;
  request.json = options.json;
  request.output = options.output;
  if (options.toSpyreCode && request.output == "-")
    throw Error("--to-spyrecode needs a folder to write, -o");
  return spyre::runSpyreCode(request, ok);
}

/// Runs the one action on bundles that was asked for, or nothing.
static std::optional<std::string> runSuperDSC(const Options &options,
                                              bool &ok) {
  SuperDSCRequest request;
  std::pair<const cl::opt<bool> *, SuperDSCRequest::Action> actions[] = {
      {&options.validateSuperDSC, SuperDSCRequest::Validate},
      {&options.rewriteSuperDSC, SuperDSCRequest::Rewrite},
      {&options.toSuperDSC, SuperDSCRequest::Write},
      {&options.fromSuperDSC, SuperDSCRequest::Raise},
      {&options.printSchema, SuperDSCRequest::Schema}};
  const cl::opt<bool> *chosen = nullptr;
  for (auto [option, action] : actions) {
    if (!*option)
      continue;
    if (chosen)
      throw Error("--" + chosen->ArgStr.str() + " and --" +
                  option->ArgStr.str() + " cannot be used together");
    chosen = option;
    request.action = action;
  }
  if (!chosen)
    return std::nullopt;
  refuseOthers(options, chosen->ArgStr);
  if (request.action == SuperDSCRequest::Schema)
    refuseInput(options, *chosen);
  request.asSpecified = isAsSpecified(options.flavor);
  request.symbolicArguments = options.symbolicArguments;
  request.unrollLoops = options.unrollLoops;
  request.hasPool = options.hasPool;
  request.folder = options.input;
  request.lenient = options.lenient;
  request.json = options.json;
  request.output = options.output;
  bool writesFolder = request.action == SuperDSCRequest::Rewrite ||
                      request.action == SuperDSCRequest::Write;
  if (writesFolder && request.output == "-")
    throw Error("--" + chosen->ArgStr.str() + " needs a folder to write, -o");
  return spyre::runSuperDSC(request, ok);
}

/// Success, and the bytes to write; or diagnostics.
static llvm::LogicalResult runTranslation(const Options &options,
                                          std::string &result) {
  const mlir::Translation &translation = *options.translation.getValue();
  std::string message;
  auto input = mlir::openInputFile(
      options.input, translation.getInputAlignment().value_or(llvm::Align()),
      &message);
  if (!input)
    throw Error(message);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(input), llvm::SMLoc());
  mlir::SourceMgrDiagnosticHandler handler(*sources, &context);
  llvm::raw_string_ostream os(result);
  return translation(sources, os, &context);
}

/// Nothing is written before everything is known to be right.
static void write(const std::string &path, const std::string &bytes) {
  std::string message;
  auto file = mlir::openOutputFile(path, &message);
  if (!file)
    throw Error(message);
  file->os() << bytes;
  file->os().flush();
  if (file->os().has_error()) {
    message = file->os().error().message();
    file->os().clear_error();
    throw Error("cannot write '" + path + "': " + message);
  }
  file->keep();
}

int spyre_translate_main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::ktdp::exitOnFatalErrors();
  registerKTIRTranslations();
  setVersionPrinter();
  Options options;
  // libLLVM brings hundreds of options along.
  cl::HideUnrelatedOptions({&options.category, &options.dciCategory,
                            &options.superdscCategory,
                            &options.spyrecodeCategory});
  cl::ParseCommandLineOptions(
      argc, argv,
      "Translates between IR and other formats. Give one action: a "
      "translation, "
      "--print-dci,\nor one of the options for SuperDSC and SpyreCode. A file "
      "- is standard input or output.\n\n"
      "Exit status: 0 after success; 1 after an error, and then nothing was "
      "written.\n");
  try {
    std::string result;
    bool ok = true;
    refuseIdleOptions(options);
    auto text = runSpyreCode(options, ok);
    if (!text)
      text = runSuperDSC(options, ok);
    if (text) {
      // What writes a folder has no text. A list of faults is for whoever
      // asked.
      if (ok && !text->empty())
        write(options.output, *text);
      else
        llvm::outs() << *text;
      return ok ? 0 : 1;
    }
    if (options.printDci) {
      if (options.translation.getNumOccurrences() != 0)
        throw Error("--print-dci and a translation cannot be used together");
      result = runPrintDci(options);
    } else {
      if (!options.translation.getValue())
        throw Error("nothing to do; --help lists the translations");
      if (failed(runTranslation(options, result)))
        return 1;
    }
    write(options.output, result);
  } catch (const Error &error) {
    llvm::WithColor::error(llvm::errs(), "spyre-translate")
        << error.what() << '\n';
    return 1;
  }
  return 0;
}
