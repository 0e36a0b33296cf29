// SPDX-License-Identifier: Apache-2.0
//===- spyre-lx-plan.cpp - The LX solver as a tool ------------------------===//

#include "../OneOf.h"

#include "Spyre/Planning/MiniMallocFormat.h"
#include "Spyre/Support/Error.h"
#include "Spyre/Support/Version.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

#include <algorithm>
#include <chrono>
#include <optional>

using namespace spyre;
using namespace spyre::planning;
namespace cl = llvm::cl;

namespace {

enum class Solver { Optimal, Greedy, FirstFit, BestFit };

struct Options {
  cl::OptionCategory category{"Options of spyre-lx-plan"};
  cl::list<std::string> inputs{
      cl::Positional, cl::desc("[input.csv...] (default: standard input)"),
      cl::cat(category)};
  cl::opt<std::string> output{"o",
                              cl::desc("File to write (default: -, which is "
                                       "standard output)"),
                              cl::value_desc("file"), cl::init("-"),
                              cl::cat(category)};
  cl::opt<int64_t> capacity{
      "capacity",
      cl::desc("Place the buffers below this many bytes; required unless "
               "--minimize is given"),
      cl::value_desc("bytes"), cl::init(-1), cl::cat(category)};
  cl::opt<bool> minimize{
      "minimize",
      cl::desc("Find the smallest memory that holds the buffers. Standard "
               "error gets its height, a lower bound, and whether the height "
               "is proven optimal"),
      cl::cat(category)};
  cl::opt<double> timeout{
      "timeout", cl::desc("Give up after this many seconds (default: 60)"),
      cl::value_desc("seconds"), cl::init(60), cl::cat(category)};
  cl::opt<int64_t> alignment{
      "alignment",
      cl::desc("Make every offset a multiple of this (default: 1); a buffer "
               "takes its size rounded up to a multiple of it"),
      cl::value_desc("bytes"), cl::init(1), cl::cat(category)};
  cl::opt<Solver, false, OneOf<Solver>> solver{
      "solver", cl::desc("How to place the buffers:"),
      cl::init(Solver::Optimal),
      cl::values(
          clEnumValN(Solver::Optimal, "optimal",
                     "try heuristics, then search until there is a placement "
                     "or a proof that there is none (default)"),
          clEnumValN(Solver::Greedy, "greedy",
                     "the default heuristic of IBM's torch-spyre"),
          clEnumValN(Solver::FirstFit, "firstfit", "its first-fit heuristic"),
          clEnumValN(Solver::BestFit, "bestfit", "its best-fit heuristic")),
      cl::cat(category)};
  cl::opt<bool> report{
      "report",
      cl::desc("Print one line per input instead of its placement: file, "
               "buffers, status (solved, infeasible, unknown), height, "
               "lower_bound, nodes of the search, seconds"),
      cl::cat(category)};
};

struct Outcome {
  SolveResult result;
  double seconds = 0;
};

} // namespace

/// Runs a heuristic and reports as the solver does. Greedy looks for gaps only
/// when the memory is full: its least height is the first capacity, in steps of
/// 1 % above the lower bound, that suffices.
static SolveResult runHeuristic(AllocationProblem problem, Solver solver,
                                bool minimize) {
  verifyProblem(problem);
  SolveResult result;
  result.lowerBound = getLiveMaximum(problem).bytes;
  if (minimize)
    problem.capacity = std::numeric_limits<int64_t>::max();
  switch (solver) {
  case Solver::Greedy:
    if (minimize)
      problem.capacity = result.lowerBound;
    result.offsets = allocateGreedy(problem);
    while (minimize && std::count(result.offsets.begin(), result.offsets.end(),
                                  kUnplaced)) {
      problem.capacity += result.lowerBound / 100 + 1;
      result.offsets = allocateGreedy(problem);
    }
    break;
  case Solver::FirstFit:
    result.offsets = allocateByFit(problem, GapChoice::First);
    break;
  default:
    result.offsets = allocateByFit(problem, GapChoice::Best);
    break;
  }
  int64_t numUnplaced =
      std::count(result.offsets.begin(), result.offsets.end(), kUnplaced);
  if (numUnplaced != 0) {
    result.offsets.clear();
    result.reason = "the heuristic leaves " + std::to_string(numUnplaced) +
                    " buffers without a place, which does not mean that there "
                    "is none";
    return result;
  }
  result.height = getHeight(problem, result.offsets);
  bool isDone = !minimize || result.height <= result.lowerBound;
  result.status = isDone ? SolveStatus::Solved : SolveStatus::Unknown;
  return result;
}

static Outcome run(AllocationProblem problem, const Options &options) {
  verifyProblem(problem);
  // Bounds and heights of all solvers count what a buffer keeps from others.
  for (Buffer &buffer : problem.buffers)
    buffer.size = roundUp(buffer.size, problem.alignment);
  SolveOptions solveOptions;
  solveOptions.timeoutSeconds = options.timeout;
  Outcome outcome;
  auto started = std::chrono::steady_clock::now();
  if (options.solver != Solver::Optimal)
    outcome.result = runHeuristic(problem, options.solver, options.minimize);
  else if (options.minimize)
    outcome.result = minimizeHeight(problem, solveOptions);
  else
    outcome.result = solve(problem, solveOptions);
  std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - started;
  outcome.seconds = elapsed.count();
  // A placement that is none must never leave this tool.
  if (!outcome.result.offsets.empty() || problem.buffers.empty()) {
    AllocationProblem limits = problem;
    if (options.minimize)
      limits.capacity = std::numeric_limits<int64_t>::max();
    std::string wrong = checkOffsets(limits, outcome.result.offsets);
    if (!wrong.empty())
      throw Error("internal error: " + wrong);
  }
  return outcome;
}

static const char *toString(SolveStatus status) {
  switch (status) {
  case SolveStatus::Solved:
    return "solved";
  case SolveStatus::Infeasible:
    return "infeasible";
  case SolveStatus::Unknown:
    return "unknown";
  }
  return "";
}

/// Whether what was asked for was found.
static bool finishInput(const std::string &name, const MiniMallocFile &file,
                        const Outcome &outcome, const Options &options,
                        llvm::raw_ostream &os) {
  const SolveResult &result = outcome.result;
  bool isPlaced = !result.offsets.empty() || file.ids.empty();
  bool fits =
      isPlaced && (options.capacity < 0 || result.height <= options.capacity);
  if (options.report) {
    os << name << "," << file.ids.size() << "," << toString(result.status)
       << "," << result.height << "," << result.lowerBound << ","
       << result.numNodes << "," << llvm::format("%.6f", outcome.seconds)
       << "\n";
    return fits;
  }
  if (options.minimize && isPlaced) {
    llvm::errs() << "height " << result.height << ", lower bound "
                 << result.lowerBound;
    if (result.height <= result.lowerBound)
      llvm::errs() << ", proven optimal\n";
    else
      llvm::errs() << ", gap "
                   << llvm::format("%.2f",
                                   100.0 *
                                       static_cast<double>(result.height -
                                                           result.lowerBound) /
                                       static_cast<double>(result.lowerBound))
                   << " %\n";
  }
  if (fits) {
    os << printMiniMalloc(file, result.offsets);
    return true;
  }
  std::string reason = result.reason;
  if (isPlaced)
    reason =
        "the lowest placement found has " + std::to_string(result.height) +
        " bytes, " +
        (result.height <= result.lowerBound
             ? std::string("and none is lower")
             : "and none is lower than " + std::to_string(result.lowerBound)) +
        ", but the capacity is " + std::to_string(options.capacity);
  llvm::WithColor::error(llvm::errs(), "spyre-lx-plan")
      << name << ": no placement: " << reason << "\n";
  return false;
}

static int runTool(Options &options) {
  auto fail = [](const std::string &what) {
    llvm::WithColor::error(llvm::errs(), "spyre-lx-plan") << what << "\n";
    return 1;
  };
  bool hasCapacity = options.capacity.getNumOccurrences() != 0;
  if (!hasCapacity && !options.minimize)
    return fail("expected --capacity or --minimize");
  if (hasCapacity && options.capacity < 0)
    return fail("expected a capacity of at least 0, found " +
                std::to_string(options.capacity));
  if (options.alignment < 1)
    return fail("expected an alignment of at least 1, found " +
                std::to_string(options.alignment));
  if (!(options.timeout >= 0))
    return fail("expected a timeout of at least 0 seconds");
  std::vector<std::string> inputs(options.inputs.begin(), options.inputs.end());
  if (inputs.empty())
    inputs.push_back("-");
  if (inputs.size() > 1 && !options.report)
    return fail("expected one input without --report, found " +
                std::to_string(inputs.size()));

  std::string text;
  llvm::raw_string_ostream os(text);
  if (options.report)
    os << "file,buffers,status,height,lower_bound,nodes,seconds\n";
  bool allFound = true;
  for (const std::string &input : inputs) {
    auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(input, /*IsText=*/true);
    if (!buffer)
      return fail("cannot read '" + input +
                  "': " + buffer.getError().message());
    std::string name = input == "-" ? "<stdin>" : input;
    MiniMallocFile file = parseMiniMalloc((*buffer)->getBuffer().str(), name);
    if (hasCapacity)
      file.problem.capacity = options.capacity;
    file.problem.alignment = options.alignment;
    allFound &=
        finishInput(name, file, run(file.problem, options), options, os);
  }
  if (!options.report && !allFound)
    return 1;
  std::error_code error;
  llvm::ToolOutputFile out(options.output, error, llvm::sys::fs::OF_None);
  if (error)
    return fail("cannot write '" + options.output + "': " + error.message());
  out.os() << os.str();
  out.os().flush();
  if (out.os().has_error()) {
    std::string message = out.os().error().message();
    out.os().clear_error();
    return fail("cannot write '" + options.output + "': " + message);
  }
  out.keep();
  return allFound ? 0 : 1;
}

int spyre_lx_plan_main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  Options options;
  cl::HideUnrelatedOptions(options.category);
  spyre::setVersionPrinter();
  cl::ParseCommandLineOptions(
      argc, argv,
      "spyre-lx-plan - place buffers with known lifetimes in one memory\n\n"
      "Reads MiniMalloc's CSV (columns id,lower,upper,size; live during\n"
      "[lower, upper)) and writes it with a column offset. Exit status 1, "
      "with\n"
      "the reason, if no placement was found.\n");
  try {
    return runTool(options);
  } catch (const std::exception &error) {
    llvm::WithColor::error(llvm::errs(), "spyre-lx-plan")
        << error.what() << "\n";
    return 1;
  }
}
