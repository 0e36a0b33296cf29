// SPDX-License-Identifier: Apache-2.0
//===- FuzzTest.cpp - Mutated bundles -------------------------------------===//
//
// Whatever the bytes are, reading gives a program or located violations. By
// default some thousands of mutants; SPYRE_FUZZ_MUTANTS says how many,
// SPYRE_FUZZ_SEED from where.
//
//===----------------------------------------------------------------------===//

#include "../Mutator.h"
#include "TestBundles.h"

#include "Spyre/Target/SuperDSC/Model/BundleProgram.h"
#include "Spyre/Target/SuperDSC/Model/SdscRules.h"
#include "Spyre/Target/SuperDSC/Raise/RaiseGraph.h"
#include "Spyre/Target/SuperDSC/Reader/BundleParser.h"
#include "Spyre/Target/SuperDSC/Reader/SdscReader.h"
#include "Spyre/Target/SuperDSC/Writer/BundlePrinter.h"
#include "Spyre/Target/SuperDSC/Writer/SdscWriter.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace spyre::superdsc;
using namespace spyre::superdsc::testing;
using spyre::DataFormat;
using spyre::testing::getSetting;
using spyre::testing::Mutator;

//===----------------------------------------------------------------------===//
// Valid bundles
//===----------------------------------------------------------------------===//

static Sdsc makeMax() {
  Sdsc sdsc = makeSdsc("max", {{"mb", 8, 4, 0}, {"out", 128, 1, 28}},
                       {{"OUTPUT", {0, 1}, {{1, 64}}}});
  sdsc.constants = {{"samv-maskvalue", DataFormat::SEN169_FP16, 0xFFFF}};
  sdsc.maskConstant = 0;
  sdsc.tensors.push_back(makeTensor(sdsc, {0, 1}, 0));
  sdsc.tensors.push_back(makeTensor(sdsc, {0, 1}, int64_t(1) << 34,
                                    {Scale::Present, Scale::AbsentStick}));
  sdsc.inputs = {0, 1};
  sdsc.outputs = {1};
  return sdsc;
}

static Sdsc makeMatmul() {
  Sdsc sdsc = makeSdsc("batchmatmul",
                       {{"mb", 8, 2, 0}, {"out", 128, 2, 0}, {"in", 64, 1, 0}},
                       {{"INPUT", {0, 2}, {{2, 64}}},
                        {"KERNEL", {2, 1}, {{1, 64}}},
                        {"OUTPUT", {0, 1}, {{1, 64}}}});
  sdsc.unit = "pt";
  sdsc.tensors.push_back(makeTensor(sdsc, {0, 2}, 0, {}, 0));
  sdsc.tensors.push_back(makeTensor(sdsc, {2, 1}, int64_t(1) << 34, {}, 1));
  sdsc.tensors.push_back(makeTensor(sdsc, {0, 1}, int64_t(2) << 34, {}, 2));
  sdsc.inputs = {0, 1};
  sdsc.outputs = {2};
  return sdsc;
}

static const char kLoop[] =
    R"(#map_0 = affine_map<(d0)[s0] -> (s0 + 1024*d0)>
module {
	func.func @sdsc_bundle(%pool_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>) attributes {sdscbundle.segments = array<i64: -1, 3, 0>} {
		%pool = sdscbundle.input_arg_extract value from %pool_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_1 = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
		%c0 = arith.constant 0 : index
		%c1 = arith.constant 1 : index
		%loop_bound_0 = arith.constant 4 : index
		%arg_1_core_offset_512 = arith.constant 512 : index
		%arg_1_core_512 = arith.addi %arg_1, %arg_1_core_offset_512 : index
		%pool_offset_128 = arith.constant 128 : index
		%pool_addr_128 = arith.addi %pool, %pool_offset_128 : index
		scf.for %i_0 = %c0 to %loop_bound_0 step %c1 {
			%addr_0 = affine.apply #map_0(%i_0)[%arg_1_core_512]
			sdscbundle.sdsc_execute (%addr_0, %pool_addr_128) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2]}
		}
		return
	}
}
)";

static const char kSizeLoop[] =
    R"(#map_0 = affine_map<(d0)[s0] -> (s0 + 128*d0)>
module {
	func.func @sdsc_bundle(%arg_0_base_addr: !sdscbundle.input_arg<index>, %arg_1_base_addr: !sdscbundle.input_arg<index>, %dim_s_base: !sdscbundle.input_arg<index, granularity=8, max_value=32>) {
		%arg_0 = sdscbundle.input_arg_extract value from %arg_0_base_addr : !sdscbundle.input_arg<index> -> index
		%arg_1 = sdscbundle.input_arg_extract value from %arg_1_base_addr : !sdscbundle.input_arg<index> -> index
		%dim_s = sdscbundle.input_arg_extract value from %dim_s_base : !sdscbundle.input_arg<index, granularity=8, max_value=32> -> index
		%c0 = arith.constant 0 : index
		%step_0 = arith.constant 8 : index
		scf.for %i_0 = %c0 to %dim_s step %step_0 {
			%addr_0 = affine.apply #map_0(%i_0)[%arg_0]
			%addr_1 = affine.apply #map_0(%i_0)[%arg_1]
			sdscbundle.sdsc_execute (%addr_0, %addr_1) {sdsc_filename="sdsc_0.json", "symbol_ids"=[-1, -2]}
		}
		return
	}
}
)";

/// A tile of 8 rows of up to 32, as kSizeLoop executes it.
static Sdsc makeTile() {
  Sdsc sdsc = makeSdsc("abs", {{"mb", 8, 1, 0}, {"out", 128, 1, 0}},
                       {{"OUTPUT", {0, 1}, {{1, 64}}}});
  for (int64_t number = 0; number < 2; ++number) {
    sdsc.tensors.push_back(makeTensor(sdsc, {0, 1}, 0));
    sdsc.tensors.back().gap[0] = 24;
    sdsc.tensors.back().symbolic = true;
    sdsc.tensors.back().addresses = {-1 - number};
  }
  sdsc.inputs = {0};
  sdsc.outputs = {1};
  return sdsc;
}

//===----------------------------------------------------------------------===//
// Mutants
//===----------------------------------------------------------------------===//

namespace {
struct Counts {
  size_t mutants = 0, valid = 0, raised = 0;
};
} // namespace

/// Reads one file as the bundle loader would; what is valid is raised.
static void readFile(const std::string &text, mlir::MLIRContext &context,
                     Counts &counts) {
  ++counts.mutants;
  ::spyre::JsonError error;
  std::optional<Json> json = ::spyre::parseJson(text, error);
  if (!json) {
    EXPECT_FALSE(error.message.empty());
    return;
  }
  Report report;
  std::optional<Sdsc> sdsc = readSdsc(*json, "sdsc_0.json", report);
  if (!sdsc) {
    EXPECT_FALSE(report.ok());
    return;
  }
  validateSdsc(*sdsc, "sdsc_0.json", report);
  if (!report.ok())
    return;
  ++counts.valid;
  // What is valid is what its model writes, key order apart.
  EXPECT_EQ(nlohmann::json(writeSdsc(*sdsc)), nlohmann::json(*json));
  BundleProgram program;
  LoadedBundle bundle;
  bundle.folder = ".";
  Step step;
  step.file = "sdsc_0.json";
  bundle.bundle.steps.push_back(step);
  bundle.files.emplace(step.file, std::move(*sdsc));
  program.bundles.push_back(std::move(bundle));
  counts.raised += static_cast<bool>(raiseProgram(program, {}, &context));
}

static void fuzzFiles(const std::vector<Sdsc> &bases, size_t count,
                      uint64_t seed) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::ScopedDiagnosticHandler silence(
      &context, [](mlir::Diagnostic &) { return mlir::success(); });
  Mutator mutator(seed);
  Counts counts;
  std::vector<std::string> texts;
  for (const Sdsc &base : bases) {
    texts.push_back(::spyre::dumpJson(writeSdsc(base)));
    readFile(texts.back(), context, counts);
  }
  ASSERT_EQ(counts.raised, bases.size()) << "the bases must be valid";
  for (size_t i = 0; i < count; ++i)
    readFile(mutator.mutate(texts[i % texts.size()]), context, counts);
  std::printf("seed %llu: %zu mutants, %zu valid, %zu raised\n",
              static_cast<unsigned long long>(seed), counts.mutants,
              counts.valid, counts.raised);
}

TEST(Fuzz, Files) {
  fuzzFiles({makeAdd(), makeMax(), makeMatmul()},
            getSetting("SPYRE_FUZZ_MUTANTS", 6000),
            getSetting("SPYRE_FUZZ_SEED", 1));
}

TEST(Fuzz, FilesAsSpecified) {
  std::vector<Sdsc> bases = {makeAdd(), makeMatmul()};
  for (Sdsc &base : bases)
    base.flavor = Flavor::Spec;
  fuzzFiles(bases, getSetting("SPYRE_FUZZ_MUTANTS", 6000) / 4,
            getSetting("SPYRE_FUZZ_SEED", 2));
}

TEST(Fuzz, Programs) {
  Mutator mutator(getSetting("SPYRE_FUZZ_SEED", 3));
  Report report;
  std::optional<Bundle> base = parseBundle(kLoop, "bundle.mlir", report);
  ASSERT_TRUE(base) << report.toText();
  EXPECT_EQ(printBundle(*base), kLoop);
  size_t count = getSetting("SPYRE_FUZZ_MUTANTS", 6000) / 4, valid = 0;
  for (size_t i = 0; i < count; ++i) {
    Report own;
    bool parsed =
        parseBundle(mutator.mutate(kLoop), "bundle.mlir", own, i % 2 != 0)
            .has_value();
    EXPECT_EQ(parsed, own.ok()) << own.toText();
    valid += parsed;
  }
  std::printf("%zu mutants of bundle.mlir, %zu valid\n", count, valid);
}

TEST(Fuzz, SizeLoops) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::ScopedDiagnosticHandler silence(
      &context, [](mlir::Diagnostic &) { return mlir::success(); });
  Mutator mutator(getSetting("SPYRE_FUZZ_SEED", 5));
  size_t count = getSetting("SPYRE_FUZZ_MUTANTS", 6000) / 4, numRaised = 0;
  for (size_t i = 0; i <= count; ++i) {
    Report report;
    std::optional<Bundle> parsed = parseBundle(
        i == 0 ? kSizeLoop : mutator.mutate(kSizeLoop), "bundle.mlir", report);
    EXPECT_EQ(parsed.has_value(), report.ok()) << report.toText();
    if (i == 0) {
      ASSERT_TRUE(parsed);
      EXPECT_EQ(printBundle(*parsed), kSizeLoop);
    }
    // The loader has made sure that files are there.
    std::vector<Step> pending = parsed ? parsed->steps : std::vector<Step>();
    bool isKnown = parsed.has_value();
    while (!pending.empty()) {
      Step step = std::move(pending.back());
      pending.pop_back();
      pending.insert(pending.end(), step.body.begin(), step.body.end());
      isKnown &= step.isLoop() || step.file == "sdsc_0.json";
    }
    if (!isKnown)
      continue;
    BundleProgram program;
    LoadedBundle &bundle = program.bundles.emplace_back();
    bundle.folder = ".";
    bundle.bundle = std::move(*parsed);
    bundle.files.emplace("sdsc_0.json", makeTile());
    bool isRaised = static_cast<bool>(raiseProgram(program, {}, &context));
    ASSERT_TRUE(i > 0 || isRaised) << "the base must be valid";
    numRaised += isRaised;
  }
  std::printf("%zu mutants of a loop up to a size, %zu raised\n", count,
              numRaised);
}

TEST(Fuzz, Manifests) {
  Manifest manifest;
  ManifestTensor tensor;
  tensor.name = "x";
  tensor.shape = {8, 128};
  tensor.strides = {128, 1};
  tensor.order = {0, 1};
  manifest.arguments = {tensor};
  tensor.strides.clear();
  manifest.buffers = {tensor};
  manifest.poolBytes = 2048;
  manifest.bundles = {
      {".", {0}, true, {{"sdsc_0.json", {{"out", 100}}, {0, -1}, {0, 128}}}}};
  std::string text = ::spyre::dumpJson(writeManifest(manifest));
  Mutator mutator(getSetting("SPYRE_FUZZ_SEED", 4));
  size_t count = getSetting("SPYRE_FUZZ_MUTANTS", 6000), valid = 0;
  for (size_t i = 0; i <= count; ++i) {
    ::spyre::JsonError error;
    std::optional<Json> json =
        ::spyre::parseJson(i == 0 ? text : mutator.mutate(text), error);
    if (!json)
      continue;
    Report report;
    std::optional<Manifest> read = readManifest(*json, report);
    EXPECT_EQ(read.has_value(), report.ok());
    ASSERT_TRUE(i > 0 || read) << report.toText();
    valid += read.has_value();
  }
  std::printf("%zu mutants of manifest.json, %zu valid\n", count, valid);
}
