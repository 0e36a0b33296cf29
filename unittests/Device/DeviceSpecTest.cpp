// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Support/Error.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <set>

using namespace spyre;

namespace {

void expectError(const std::string &json, const std::string &part) {
  try {
    DeviceSpec::fromJson(json, "spec.json");
    FAIL() << "no error; expected: " << part;
  } catch (const Error &error) {
    EXPECT_EQ(std::string(error.what()).rfind("spec.json: ", 0), 0u)
        << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << error.what();
  }
}

TEST(DeviceSpec, OneFunctionChecksNumbersOfCores) {
  for (int64_t cores : {1, 7, 32})
    EXPECT_EQ(checkNumCores(cores), "");
  for (int64_t cores : {-1, 0, 33})
    EXPECT_EQ(checkNumCores(cores),
              "expected 1 to 32 cores, found " + std::to_string(cores));
}

TEST(DeviceSpec, NumbersOfTheSpec) {
  DeviceSpec spec;
  EXPECT_EQ(spec.numCores, 32);
  EXPECT_EQ(spec.usableLXBytes(), 1677721);
  EXPECT_EQ(spec.reservedLXBytes(), 419431); // DESIGN, "Lowering to KTIR"
  EXPECT_EQ(spec.maxSpanBytes, 268435456);
  EXPECT_EQ(spec.numSegments * spec.segmentBytes, spec.deviceMemoryBytes);
  // The reference's 98.304 TFLOP/s per card, two operations per MAC, and the
  // 72.1 of the card's profiler.
  EXPECT_DOUBLE_EQ(spec.referenceMacsPerSecondPerCore * 2 * spec.numCores,
                   98.304e12);
  EXPECT_NEAR(spec.ptMacsPerSecondPerCore * 2 * spec.numCores, 72.1e12,
              0.05e12);
  EXPECT_DOUBLE_EQ(spec.ptMacsPerSecondPerCore,
                   spec.numCoreletsPerCore * spec.numPTRows *
                       spec.numPTColumns * 8 * spec.clockHertz);
  EXPECT_DOUBLE_EQ(spec.deviceMemoryBytesPerSecond, 204.8e9);
  EXPECT_NO_THROW(spec.verify());
}

TEST(DeviceSpec, EveryNumberIsDescribed) {
  // All members are of 8 bytes, so that none can be missing.
  EXPECT_EQ(sizeof(DeviceSpec), 8 * DeviceSpec::parameters().size());
  std::set<std::string> names;
  for (const ParameterInfo &info : DeviceSpec::parameters()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_NE(std::string(info.unit), "") << info.name;
    EXPECT_NE(std::string(info.source), "") << info.name;
    EXPECT_EQ(findParameter(info.name), &info);
  }
  EXPECT_EQ(findParameter("frequency"), nullptr);
}

TEST(DeviceSpec, AtMostFifteenFittedParameters) {
  // More would say less: they are fitted to a few hundred measurements.
  int fitted = 0;
  for (const ParameterInfo &info : DeviceSpec::parameters())
    fitted += info.basis == Basis::Fitted;
  EXPECT_LE(fitted, 15);
}

TEST(DeviceSpec, TimeFactorsAreTheWidestOfAllKinds) {
  DeviceSpec spec;
  spec.pointwiseTimeLow = 0.9;
  spec.pointwiseTimeHigh = 1.1;
  spec.productTimeLow = 0.95;
  spec.productTimeHigh = 1.5;
  spec.movementTimeLow = 0.7;
  spec.movementTimeHigh = 2;
  auto check = [&](KernelKinds kinds, double low, double high) {
    EXPECT_EQ(spec.getTimeFactors(kinds).low, low);
    EXPECT_EQ(spec.getTimeFactors(kinds).high, high);
  };
  KernelKinds pointwise = toKinds(KernelKind::Pointwise);
  KernelKinds product = toKinds(KernelKind::Product);
  check(pointwise, 0.9, 1.1);
  check(product, 0.95, 1.5);
  check(pointwise | product, 0.9, 1.5);
  check(0, 0.7, 2);
  spec.pointwiseTimeLow = 1.2;
  EXPECT_THROW(spec.verify(), Error);
}

TEST(DeviceSpec, JsonRoundTrip) {
  DeviceSpec spec;
  EXPECT_EQ(DeviceSpec::fromJson(spec.toJson()), spec);
  spec.numCores = 4;
  spec.clockHertz = 1.1e9;
  spec.nonNumber = NonNumber::NaN;
  std::string json = spec.toJson();
  EXPECT_EQ(DeviceSpec::fromJson(json), spec);
  EXPECT_NE(spec, DeviceSpec());
  // A changed number is no longer published.
  EXPECT_NE(json.find("\"basis\": \"given\""), std::string::npos);
  EXPECT_NE(json.find("\"default\": 32"), std::string::npos);
}

TEST(DeviceSpec, PartialJsonKeepsDefaults) {
  DeviceSpec spec = DeviceSpec::fromJson(
      R"({"numCores": 8, "clockHertz": {"value": 1000000000}})");
  EXPECT_EQ(spec.numCores, 8);
  EXPECT_EQ(spec.clockHertz, 1e9);
  EXPECT_EQ(spec.lxBytesPerCore, DeviceSpec().lxBytesPerCore);
}

TEST(DeviceSpec, RejectsBadJson) {
  expectError("{", "line 1, column 2: malformed JSON");
  expectError("[]", "expected an object, found array");
  expectError(R"({"cores": 1})", "there is no parameter \"cores\"; spyre-run "
                                 "--print-device-spec lists");
  expectError(R"({"numCores": {}})", "\"numCores\" has no \"value\"");
  expectError(R"({"numCores": 1.5})", "64-bit integer");
  expectError(R"({"numCores": "8"})", "64-bit integer");
  expectError(R"({"segmentBytes": 18446744073709551615})", "64-bit integer");
  expectError(R"({"clockHertz": "fast"})", "a number");
  expectError(R"({"clockHertz": 1e4096})", "malformed JSON near '1e4096'");
  std::string deep(300'000, '[');
  expectError("{\"numCores\": " + deep + std::string(deep.size(), ']') + "}",
              "nested deeper than 64 levels");
  deep.resize(20);
  expectError("{\"numCores\": " + deep + std::string(deep.size(), ']') + "}",
              "64-bit integer, but is an array");
  expectError(R"({"numCores": 4, "clockHertz": 1e9, "numCores": 8})",
              "the key 'numCores' occurs twice in an object");
  expectError(R"({"nonNumber": 1})", "\"inf\" or \"nan\"");
  expectError(R"({"numCores": 0})", "numCores must be positive");
  expectError(R"({"numCores": 33})", "at most 32");
  expectError(R"({"stickBytes": 64})", "stickBytes must be 128");
  expectError(R"({"clockHertz": 0})", "finite and positive");
  expectError(R"({"launchSeconds": -1})", "finite and positive");
  expectError(R"({"lxReservedFraction": 1})", "below 1");
  expectError(R"({"effectiveMemoryBytesPerSecond": 0})", "finite and positive");
  for (std::string name :
       {"cardLinkBytesPerSecond", "machineLinkBytesPerSecond"})
    expectError("{\"" + name + "\": 0}", name + " must be finite and positive");
  EXPECT_NO_THROW(DeviceSpec::fromJson(
      R"({"cardLinkSeconds": 0, "machineLinkSeconds": 0})"));
  expectError(R"({"partialProductEfficiency": 1.5})", "at most 1");
  expectError(R"({"programSegment": 8})", "below numSegments");
  EXPECT_NO_THROW(DeviceSpec::fromJson(R"({"launchSeconds": 0})"));
  EXPECT_NO_THROW(DeviceSpec::fromJson(R"({"programSegment": 0})"));
}

TEST(DeviceSpec, Files) {
  std::string path = testing::TempDir() + "DeviceSpecTest.json";
  std::ofstream(path) << R"({"numCores": 2})";
  EXPECT_EQ(DeviceSpec::fromJsonFile(path).numCores, 2);
  std::remove(path.c_str());
  EXPECT_THROW(DeviceSpec::fromJsonFile(path), Error);
}

TEST(DeviceSpec, RateOfTheHostLink) {
  DeviceSpec spec;
  EXPECT_NEAR(spec.hostLinkBytesPerSecond(), 63.015e9, 1e6);
  spec.pcieLanes = 4;
  spec.pcieGeneration = 2;
  EXPECT_DOUBLE_EQ(spec.hostLinkBytesPerSecond(), 2e9);
  spec.pcieGeneration = 3;
  EXPECT_NEAR(spec.hostLinkBytesPerSecond(), 3.938e9, 1e6);
}

} // namespace
