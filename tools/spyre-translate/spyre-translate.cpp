// SPDX-License-Identifier: Apache-2.0
//===- spyre-translate.cpp - To and from other formats --------------------===//
//
// Not mlirTranslateMain: that always reads one file and writes one, and some
// of what this tool does has no input, or folders.
//
//===----------------------------------------------------------------------===//

#include "Spyre/Dialect/KTIR/IR/SourceCheck.h"
#include "Spyre/Support/Error.h"
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
  cl::opt<std::string> input{cl::Positional, cl::desc("[input file]"),
                             cl::init("-"), cl::cat(category)};
  cl::opt<std::string> output{
      "o", cl::desc("Output file (default: -, which is standard output)"),
      cl::value_desc("file"), cl::init("-"), cl::cat(category)};
  cl::opt<const mlir::Translation *, false, mlir::TranslationParser>
      translation{"", cl::desc("Translations, at most one:"),
                  cl::cat(category)};

  cl::OptionCategory dciCategory{"Options of --print-dci",
                                 "Lists are numbers separated by commas"};
  cl::opt<bool> printDci{
      "print-dci",
      cl::desc("Print how a tensor is transferred between host and device"),
      cl::cat(dciCategory)};
  cl::opt<std::string> size{"size", cl::desc("Sizes; '' for a scalar"),
                            cl::value_desc("list"), cl::cat(dciCategory)};
  cl::opt<std::string> strides{
      "strides", cl::desc("Host strides in elements (default: row-major)"),
      cl::value_desc("list"), cl::cat(dciCategory)};
  cl::opt<std::string> dtype{
      "dtype", cl::desc("PyTorch's name of the type (default: float16)"),
      cl::init("float16"), cl::cat(dciCategory)};
  cl::opt<std::string> dimOrder{
      "dim-order",
      cl::desc("Order of dimensions, the stick last, or -1 appended for a "
               "sparse layout (default: as they are)"),
      cl::value_desc("list"), cl::cat(dciCategory)};
  cl::opt<std::string> deviceSize{
      "device-size", cl::desc("Explicit layout, with --stride-map"),
      cl::value_desc("list"), cl::cat(dciCategory)};
  cl::opt<std::string> strideMap{
      "stride-map", cl::desc("Host elements per step of a device dimension"),
      cl::value_desc("list"), cl::cat(dciCategory)};
  cl::opt<TransferDirection> direction{
      "direction", cl::desc("Which way"),
      cl::values(clEnumValN(TransferDirection::HostToDevice, "host-to-device",
                            "default"),
                 clEnumValN(TransferDirection::DeviceToHost, "device-to-host",
                            "an expanded dimension is read once")),
      cl::init(TransferDirection::HostToDevice), cl::cat(dciCategory)};
  cl::opt<bool> json{"json",
                     cl::desc("Print JSON (also of --validate-superdsc and "
                              "--validate-spyrecode)"),
                     cl::cat(dciCategory)};

  cl::OptionCategory superdscCategory{
      "Options for SuperDSC bundles",
      "A folder with bundle.mlir and sdsc_<i>.json; "
      "docs/internals/superdsc.md"};
  cl::opt<bool> validateSuperDSC{
      "validate-superdsc",
      cl::desc("Report every rule that the bundle in the input folder breaks"),
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
      cl::desc("Form of the files that are written: asbuilt, the reference's "
               "(default), or spec, the written specification's"),
      cl::init("asbuilt"), cl::cat(superdscCategory)};
  cl::opt<bool> symbolicArguments{
      "symbolic-args",
      cl::desc("Addresses of arguments are symbols that bundle.mlir binds"),
      cl::cat(superdscCategory)};
  cl::opt<bool> unrollLoops{
      "unroll-loops",
      cl::desc("Write each iteration of a loop instead of the loop"),
      cl::cat(superdscCategory)};
  cl::opt<bool> hasPool{
      "pool",
      cl::desc("Segment 0 of a bundle without manifest is a pool of "
               "intermediates"),
      cl::cat(superdscCategory)};
  cl::opt<bool> rewriteSuperDSC{
      "rewrite-superdsc",
      cl::desc("Read the bundle in the input folder and write it to the output "
               "folder"),
      cl::cat(superdscCategory)};
  cl::opt<bool> lenient{
      "lenient", cl::desc("Repair parameters that bundle.mlir declares twice"),
      cl::cat(superdscCategory)};

  cl::OptionCategory spyrecodeCategory{
      "Options for SpyreCode",
      "A folder with spyrecode.json and program images; "
      "docs/internals/spyrecode.md. "
      "--symbolic-args: programs get addresses in a correction tensor"};
  cl::opt<bool> toSpyreCode{
      "to-spyrecode",
      cl::desc("Write the planned spyre_graph, or the KTIR, in the input file "
               "as a job to the output folder"),
      cl::cat(spyrecodeCategory)};
  cl::opt<bool> validateSpyreCode{
      "validate-spyrecode",
      cl::desc("Report every rule that the job in the input folder breaks"),
      cl::cat(spyrecodeCategory)};
  cl::opt<std::string> spyrecodeFlavor{
      "spyrecode-flavor",
      cl::desc("Keys of spyrecode.json: asbuilt, the reference's (default), or "
               "spec, the written specification's"),
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

static std::string runPrintDci(const Options &options) {
  DciRequest request;
  auto size = parseList(options.size);
  if (!size)
    throw Error("--print-dci needs --size");
  if (options.input.getNumOccurrences() != 0)
    throw Error("--print-dci reads no file, found '" + options.input + "'");
  request.size = *size;
  request.strides = parseList(options.strides);
  request.dimOrder = parseList(options.dimOrder);
  request.deviceSize = parseList(options.deviceSize);
  request.strideMap = parseList(options.strideMap);
  if (request.deviceSize.has_value() != request.strideMap.has_value())
    throw Error("--device-size and --stride-map need each other");
  if (request.deviceSize && request.dimOrder)
    throw Error("--dim-order and --device-size exclude each other");
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

/// Runs the one action on SpyreCode that was asked for, or nothing.
static std::optional<std::string> runSpyreCode(const Options &options,
                                               bool &ok) {
  if (!options.toSpyreCode && !options.validateSpyreCode) {
    if (options.spyrecodeFlavor.getNumOccurrences() != 0)
      throw Error("--spyrecode-flavor needs --to-spyrecode");
    return std::nullopt;
  }
  if (options.toSpyreCode && options.validateSpyreCode)
    throw Error("--to-spyrecode and --validate-spyrecode exclude each other");
  for (const cl::opt<bool> *other :
       {&options.validateSuperDSC, &options.rewriteSuperDSC,
        &options.toSuperDSC, &options.fromSuperDSC, &options.printSchema})
    if (*other)
      throw Error("--" + other->ArgStr.str() +
                  " and actions on SpyreCode exclude each other");
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
                  option->ArgStr.str() + " exclude each other");
    chosen = option;
    request.action = action;
  }
  if (!chosen)
    return std::nullopt;
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

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::ktdp::exitOnFatalErrors();
  registerKTIRTranslations();
  Options options;
  // libLLVM brings hundreds of options along.
  cl::HideUnrelatedOptions({&options.category, &options.dciCategory,
                            &options.superdscCategory,
                            &options.spyrecodeCategory});
  cl::ParseCommandLineOptions(
      argc, argv,
      "to and from other formats; - is standard input or output\n\n"
      "Exit status: 0, or 1 after an error; then nothing was written.\n");
  try {
    std::string result;
    bool ok = true;
    if (auto text = runSpyreCode(options, ok)) {
      llvm::outs() << *text;
      return ok ? 0 : 1;
    }
    if (auto text = runSuperDSC(options, ok)) {
      if (ok && options.fromSuperDSC)
        write(options.output, *text);
      else
        llvm::outs() << *text;
      return ok ? 0 : 1;
    }
    if (options.printDci) {
      if (options.translation.getNumOccurrences() != 0)
        throw Error("--print-dci and a translation exclude each other");
      result = runPrintDci(options);
    } else {
      for (cl::Option *option : {static_cast<cl::Option *>(&options.size),
                                 static_cast<cl::Option *>(&options.strides),
                                 static_cast<cl::Option *>(&options.dtype),
                                 static_cast<cl::Option *>(&options.dimOrder),
                                 static_cast<cl::Option *>(&options.deviceSize),
                                 static_cast<cl::Option *>(&options.strideMap),
                                 static_cast<cl::Option *>(&options.direction),
                                 static_cast<cl::Option *>(&options.json)})
        if (option->getNumOccurrences() != 0)
          throw Error("--" + option->ArgStr.str() + " needs --print-dci");
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
