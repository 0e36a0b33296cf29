// SPDX-License-Identifier: Apache-2.0
//===- FuzzTest.cpp - Mutated SpyreCode -----------------------------------===//
//
// Whatever the bytes are, reading gives a job or located violations.
//
//===----------------------------------------------------------------------===//

#include "../Mutator.h"

#include "Spyre/Runtime/Loader/ImageFile.h"
#include "Spyre/Runtime/Loader/Loader.h"
#include "Spyre/Support/BrokenRule.h"
#include "Spyre/Target/SpyreCode/Translate.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <map>

using namespace spyre;
using namespace spyre::spyrecode;
using spyre::testing::getSetting;
using spyre::testing::Mutator;

/// y = x in the first n rows, with a pool that is not used.
static const char kProgram[] = R"(
#whole = affine_set<(r, c) : (r >= 0, -r + 63 >= 0, c >= 0, -c + 63 >= 0)>
#part = affine_set<(r, c) : (r >= 0, -r + 15 >= 0, c >= 0, -c + 63 >= 0)>
#order = affine_map<(r, c) -> (r, c)>
#layout = #ktdp.layout<device_size = [1, 64, 64], stride_map = [-1, 64, 1], format = SEN169_FP16, host_dtype = float16, shape = [64, 64], strides = [64, 1]>
func.func @main(%x: index {ktdp.name = "x", ktdp.layout = #layout},
                %y: index {ktdp.name = "y", ktdp.layout = #layout},
                %n: !ktdp.runtime_arg<index, granularity=16, upperbound=64>,
                %pool: index {ktdp.pool_size = 256 : i64})
    attributes {grid = [1]} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %rows = ktdp.runtime_arg_extract value from %n : !ktdp.runtime_arg<index, granularity=16, upperbound=64> -> index
  %v = ktdp.construct_memory_view %x, sizes: [64, 64], strides: [64, 1] {coordinate_set = #whole, memory_space = #ktdp.memory_space<global>} : memref<64x64xf16>
  %w = ktdp.construct_memory_view %y, sizes: [64, 64], strides: [64, 1] {coordinate_set = #whole, memory_space = #ktdp.memory_space<global>} : memref<64x64xf16>
  scf.for %r = %c0 to %rows step %c16 {
    %s = ktdp.construct_access_tile %v[%r, %c0] {access_tile_set = #part, access_tile_order = #order} : memref<64x64xf16> -> !ktdp.access_tile<16x64xindex>
    %t = ktdp.construct_access_tile %w[%r, %c0] {access_tile_set = #part, access_tile_order = #order} : memref<64x64xf16> -> !ktdp.access_tile<16x64xindex>
    %d = ktdp.load %s : !ktdp.access_tile<16x64xindex> -> tensor<16x64xf16>
    ktdp.store %d, %t : tensor<16x64xf16>, !ktdp.access_tile<16x64xindex>
  }
  return
}
)";

using Files = std::map<std::string, std::string>;

static Files makeJob(const WriteOptions &options,
                     llvm::StringRef text = kProgram) {
  mlir::DialectRegistry registry;
  runtime::registerProgramDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  EXPECT_TRUE(module);
  auto files = writeModule(*module, options);
  EXPECT_TRUE(mlir::succeeded(files));
  return Files(files->begin(), files->end());
}

static std::vector<Files> makeJobs() {
  std::vector<Files> jobs;
  for (Flavor flavor : {Flavor::AsBuilt, Flavor::Spec})
    for (bool isSymbolic : {false, true})
      jobs.push_back(makeJob({flavor, isSymbolic}));
  return jobs;
}

/// Whether a job is valid; one that is not has a located violation.
static bool read(const std::string &json, const Files &files) {
  superdsc::Report report;
  auto job = readSpyreCode(
      json,
      [&](const std::string &name, size_t limit,
          std::string &message) -> std::optional<std::string> {
        auto found = files.find(name);
        if (found != files.end() && found->second.size() <= limit)
          return found->second;
        message = "is not there";
        return std::nullopt;
      },
      report);
  EXPECT_EQ(job.has_value(), report.ok());
  for (const superdsc::Violation &violation : report.get()) {
    EXPECT_FALSE(violation.file.empty());
    EXPECT_EQ(violation.rule.rfind("SPYRECODE-", 0), 0u) << violation.rule;
    EXPECT_FALSE(violation.message.empty());
  }
  return job.has_value();
}

static void print(const char *what, size_t count, size_t valid) {
  std::printf("%zu mutants of %s, %zu valid\n", count, what, valid);
}

TEST(SpyreCodeFuzz, Jobs) {
  std::vector<Files> jobs = makeJobs();
  Mutator mutator(getSetting("SPYRE_FUZZ_SEED", 11));
  size_t count = getSetting("SPYRE_FUZZ_MUTANTS", 6000), valid = 0;
  for (const Files &job : jobs)
    ASSERT_TRUE(read(job.at(kCodeFile), job)) << "the bases must be valid";
  for (size_t i = 0; i < count; ++i) {
    const Files &job = jobs[i % jobs.size()];
    valid += read(mutator.mutate(job.at(kCodeFile)), job);
  }
  print("spyrecode.json", count, valid);
}

/// Mutants of the bytes from `begin` to `end` of an image, with the checksum
/// made right: what damages by accident does not get that far.
static void fuzzImages(const char *what, uint64_t seed, size_t count,
                       size_t (*beginOf)(const std::string &),
                       size_t (*endOf)(const std::string &)) {
  std::vector<Files> jobs = makeJobs();
  Mutator mutator(seed);
  size_t valid = 0;
  for (size_t i = 0; i < count;) {
    const std::string &base = jobs[i % jobs.size()].at("program.bin");
    std::string image = base;
    size_t begin = beginOf(image), end = endOf(image);
    std::string part = mutator.mutate(image.substr(begin, end - begin));
    // Keeps its place, so that all of the header stays where it is.
    part.resize(end - begin);
    image.replace(begin, end - begin, part);
    // Some kinds of mutation find nothing in binary data.
    if (image == base)
      continue;
    ++i;
    runtime::sealImage(image);
    try {
      runtime::decodeImage(image, "program.bin");
      ++valid;
    } catch (const runtime::BrokenRule &broken) {
      EXPECT_EQ(broken.rule.rfind("SPYRECODE-IMAGE-", 0), 0u);
    }
  }
  print(what, count, valid);
}

static size_t getProgramStart(const std::string &image) {
  return image.find("ML\xefR");
}

TEST(SpyreCodeFuzz, ImageHeaders) {
  fuzzImages(
      "image headers", getSetting("SPYRE_FUZZ_SEED", 12),
      getSetting("SPYRE_FUZZ_MUTANTS", 6000) / 4,
      [](const std::string &) { return size_t(0); }, getProgramStart);
}

// By hand only, with SPYRE_FUZZ_PROGRAMS: what a program with the right
// checksum is made of goes to MLIR's own reader of bytecode.
TEST(SpyreCodeFuzz, ImagePrograms) {
  size_t count = getSetting("SPYRE_FUZZ_PROGRAMS", 0);
  fuzzImages("image programs", getSetting("SPYRE_FUZZ_SEED", 13), count,
             getProgramStart,
             [](const std::string &image) { return image.size(); });
}

TEST(SpyreCodeFuzz, DamagedImages) {
  Files job = makeJob({});
  std::string image = job.at("program.bin");
  Mutator mutator(getSetting("SPYRE_FUZZ_SEED", 14));
  for (size_t i = 0; i < getSetting("SPYRE_FUZZ_MUTANTS", 6000) / 4; ++i) {
    std::string mutant = mutator.mutate(image);
    if (mutant == image)
      continue;
    EXPECT_THROW(runtime::decodeImage(mutant, "program.bin"),
                 runtime::BrokenRule);
  }
}

// Attributes that bytecode holds as text.
TEST(SpyreCodeFuzz, AttributesThatCrashTheParser) {
  std::string text = kProgram, map;
  while (map.size() < 8000)
    map += map.empty() ? "d0" : ", d0";
  std::string attribute = "affine_map<(d0) -> (" + map + ")>";
  text.replace(text.find("grid = [1]"), 0, "test.map = " + attribute + ", ");
  std::string image = makeJob({}, text).at("program.bin");
  EXPECT_NO_THROW(runtime::decodeImage(image, "program.bin"));
  size_t begin = image.find(map);
  ASSERT_NE(begin, std::string::npos);
  for (std::string part :
       {"(", "--", "- ", "-//\n", "-//\x80\n", "( // )\n", "array<index>"}) {
    std::string mutant = image, mutated;
    bool repeats = part != "array<index>";
    while (mutated.size() + part.size() <= (repeats ? 8000 : part.size()))
      mutated += part;
    mutated.resize(map.size(), ' ');
    mutant.replace(begin, mutated.size(), mutated);
    runtime::sealImage(mutant);
    try {
      runtime::decodeImage(mutant, "program.bin");
      FAIL() << part;
    } catch (const runtime::BrokenRule &broken) {
      EXPECT_EQ(broken.rule, "SPYRECODE-IMAGE-C3");
      EXPECT_NE(broken.message.find("attributes cannot be read"),
                std::string::npos)
          << broken.message;
    }
  }
}
