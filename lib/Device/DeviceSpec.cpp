// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/DeviceSpec.h"
#include "Spyre/Device/DataFormat.h"
#include "Spyre/Support/Error.h"
#include "Spyre/Support/Json.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

using namespace spyre;

const char *spyre::toString(Basis basis) {
  switch (basis) {
  case Basis::Published:
    return "published";
  case Basis::Fitted:
    return "fitted";
  case Basis::Residual:
    return "residual";
  case Basis::Guessed:
    return "guessed";
  }
  throw Error("unknown basis " + std::to_string(static_cast<int>(basis)));
}

static constexpr Basis published = Basis::Published, fitted = Basis::Fitted,
                       guessed = Basis::Guessed;
using S = DeviceSpec;

static constexpr ParameterInfo kParameters[] = {
    {"numCores", &S::numCores, "cores per card", published,
     "product documentation"},
    {"numCoreletsPerCore", &S::numCoreletsPerCore, "corelets per core",
     published, "torch-spyre architecture page"},
    {"numPTRows", &S::numPTRows, "rows of processing elements per corelet",
     published, "torch-spyre architecture page"},
    {"numPTColumns", &S::numPTColumns,
     "columns of processing elements per corelet", published,
     "torch-spyre architecture page"},
    {"numSFULanes", &S::numSFULanes, "elements per cycle and corelet", guessed,
     "a stick of fp16 per cycle and corelet, the width of LX: pointwise "
     "operations on one core are bound by what it reads"},
    {"sfuTranscendentalWeight", &S::sfuTranscendentalWeight,
     "cycles of a transcendental function per element and lane", published,
     "passes of sigmoid on one core, m04197 to m04199: 116 us for 1,048,576 "
     "elements, 15.6 cycles, of which 3 are simple operations"},
    {"sfuAccumulationWeight", &S::sfuAccumulationWeight,
     "cycles of an accumulation per element and lane", guessed,
     "as a transcendental function: each step waits for the one before"},
    {"clockHertz", &S::clockHertz, "Hz", published,
     "the utilisation that the card's profiler reports: 72.1 TFLOP/s"},
    {"ptMacsPerSecondPerCore", &S::ptMacsPerSecondPerCore,
     "fp16 multiply-accumulates per second and core", published,
     "1,024 per cycle: the utilisation that the card's profiler reports"},
    {"ptFP8Rate", &S::ptFP8Rate,
     "multiply-accumulates of fp8 in the time of one of fp16", guessed,
     "as many bits of factors per cycle as with fp16"},
    {"ptInt8Rate", &S::ptInt8Rate,
     "multiply-accumulates of int8 in the time of one of fp16", guessed,
     "as many bits of factors per cycle as with fp16"},
    {"ptInt4Rate", &S::ptInt4Rate,
     "multiply-accumulates of int4 in the time of one of fp16", guessed,
     "as many bits of factors per cycle as with fp16: 288 TOP/s; the product "
     "page says more than 300 TOPS of low precision"},
    {"partialProductEfficiency", &S::partialProductEfficiency,
     "fraction of the matrix unit's rate while K is divided over cores", fitted,
     "benchmarks/fit.py: products whose K is divided"},
    {"accumulatorBytesPerCore", &S::accumulatorBytesPerCore,
     "bytes of the matrix unit's accumulators per core", published,
     "two register files of 64 KiB per core"},
    {"batchedLXBytesPerRow", &S::batchedLXBytesPerRow,
     "bytes of the kernels' LX per row of a batched product's accumulators",
     fitted, "benchmarks/fit.py: batched products with two LX fractions"},
    {"cardOpsPerSecond", &S::cardOpsPerSecond,
     "low-precision operations per second, a lower bound", published,
     "product page"},
    {"cardWatts", &S::cardWatts, "W", published, "product page"},
    {"pcieGeneration", &S::pcieGeneration, "generation", published,
     "product page"},
    {"pcieLanes", &S::pcieLanes, "lanes", published, "product page"},
    {"numCardsPerSystem", &S::numCardsPerSystem, "cards", published,
     "product documentation"},
    {"numCardsPerZ17", &S::numCardsPerZ17, "cards", published,
     "product documentation"},
    {"systemMemoryBytes", &S::systemMemoryBytes,
     "bytes of device memory of a full system", published,
     "product documentation"},
    {"lxBytesPerCore", &S::lxBytesPerCore, "bytes per core", published,
     "LX planning page"},
    {"lxReservedFraction", &S::lxReservedFraction,
     "fraction kept for the back end", published, "LX planning page"},
    {"lxBytesPerSecondPerCore", &S::lxBytesPerSecondPerCore,
     "bytes per second and core, each of reading and writing", guessed,
     "one stick per cycle and corelet, the width of the ring, at the "
     "clock"},
    {"stickBytes", &S::stickBytes, "bytes", published, "layouts page"},
    {"deviceMemoryBytes", &S::deviceMemoryBytes, "bytes per card", published,
     "spec page: up to 128 GB; 8 segments of 16 GiB"},
    {"deviceMemoryBytesPerSecond", &S::deviceMemoryBytesPerSecond,
     "bytes per second and card", published, "reference cost model"},
    {"effectiveMemoryBytesPerSecond", &S::effectiveMemoryBytesPerSecond,
     "bytes per second and card", fitted,
     "benchmarks/fit.py: pointwise operations and reductions"},
    {"memoryTurnaroundSecondsPerByte", &S::memoryTurnaroundSecondsPerByte,
     "seconds per byte read or written, whichever is less", fitted,
     "benchmarks/fit.py: pointwise operations"},
    {"coreMemoryBytesPerSecond", &S::coreMemoryBytesPerSecond,
     "bytes per second that one core reads", fitted,
     "benchmarks/fit.py: pointwise operations on few cores, products that "
     "give every core a large operand"},
    {"memoryRunOverheadBytes", &S::memoryRunOverheadBytes,
     "bytes lost per run of contiguous sticks", fitted,
     "benchmarks/fit.py: products whose batch is divided"},
    {"overlappedRunBytes", &S::overlappedRunBytes,
     "bytes of a run of contiguous sticks that a core loads while its vector "
     "unit works",
     fitted, "benchmarks/fit.py: reductions of many and of few rows per core"},
    {"maxSpanBytes", &S::maxSpanBytes,
     "bytes of contiguous device memory per core and tensor", published,
     "work-division page"},
    {"numBroadcastCores", &S::numBroadcastCores,
     "cores that share one read without loss", published,
     "reference cost model"},
    {"numSegments", &S::numSegments, "segments of the job address space",
     published, "SpyreCode specification"},
    {"segmentBytes", &S::segmentBytes, "bytes per segment", published,
     "SpyreCode specification"},
    {"programSegment", &S::programSegment, "index of the segment of programs",
     published, "SpyreCode specification"},
    {"ringBytesPerCycle", &S::ringBytesPerCycle,
     "bytes per cycle, direction and link", published,
     "RaPiD, DOI 10.1109/ISCA52012.2021.00021"},
    {"ringHopCycles", &S::ringHopCycles, "cycles per hop", guessed,
     "one register stage per stop of the ring"},
    {"cardLinkBytesPerSecond", &S::cardLinkBytesPerSecond,
     "bytes per second and direction of a card's link to the others of its "
     "machine",
     guessed,
     "half of PCIe 5.0 x16, as in the fastest published copies between host "
     "and "
     "card: 12.6 MB in 386 us"},
    {"cardLinkSeconds", &S::cardLinkSeconds,
     "seconds of a message between cards, before bytes flow", guessed,
     "about launchSeconds: a card starts on it as on a program"},
    {"machineLinkBytesPerSecond", &S::machineLinkBytesPerSecond,
     "bytes per second and direction of a machine, which its cards share",
     guessed, "a network port of 100 Gbit/s"},
    {"machineLinkSeconds", &S::machineLinkSeconds,
     "seconds of a message between machines, before bytes flow", guessed,
     "twice cardLinkSeconds: it passes a link of cards on both sides"},
    {"launchSeconds", &S::launchSeconds, "seconds per program", guessed,
     "the one-core softmax measurements of the LX planning page leave about as "
     "much; the card's profiler does not count it"},
    {"transferSetupSeconds", &S::transferSetupSeconds,
     "seconds per operand in device memory and op, before bytes flow", guessed,
     "pointwise kernels of 20 us show no more than a microsecond for all of "
     "their operands"},
    {"kernelRepeatSeconds", &S::kernelRepeatSeconds,
     "seconds per call of a kernel in a loop, but the first", fitted,
     "benchmarks/fit.py: softmax by tiles of rows"},
    {"movementTimeLow", &S::movementTimeLow,
     "measured over predicted time, 10th percentile", Basis::Residual,
     "benchmarks/fit.py: transposes, copies and pointwise kernels left out of "
     "the fit"},
    {"movementTimeHigh", &S::movementTimeHigh,
     "measured over predicted time, 90th percentile", Basis::Residual,
     "benchmarks/fit.py: transposes, copies and pointwise kernels left out of "
     "the fit"},
    {"pointwiseTimeLow", &S::pointwiseTimeLow,
     "measured over predicted time, 10th percentile", Basis::Residual,
     "benchmarks/fit.py: pointwise operations left out of the fit"},
    {"pointwiseTimeHigh", &S::pointwiseTimeHigh,
     "measured over predicted time, 90th percentile", Basis::Residual,
     "benchmarks/fit.py: pointwise operations left out of the fit"},
    {"reductionTimeLow", &S::reductionTimeLow,
     "measured over predicted time, 10th percentile", Basis::Residual,
     "benchmarks/fit.py: reductions left out of the fit"},
    {"reductionTimeHigh", &S::reductionTimeHigh,
     "measured over predicted time, 90th percentile", Basis::Residual,
     "benchmarks/fit.py: reductions left out of the fit"},
    {"productTimeLow", &S::productTimeLow,
     "measured over predicted time, 10th percentile", Basis::Residual,
     "benchmarks/fit.py: matrix products left out of the fit"},
    {"productTimeHigh", &S::productTimeHigh,
     "measured over predicted time, 90th percentile", Basis::Residual,
     "benchmarks/fit.py: matrix products left out of the fit"},
    {"batchedProductTimeLow", &S::batchedProductTimeLow,
     "measured over predicted time, 10th percentile", Basis::Residual,
     "benchmarks/fit.py: batched products left out of the fit"},
    {"batchedProductTimeHigh", &S::batchedProductTimeHigh,
     "measured over predicted time, 90th percentile", Basis::Residual,
     "benchmarks/fit.py: batched products left out of the fit"},
    {"referenceMacsPerSecondPerCore", &S::referenceMacsPerSecondPerCore,
     "fp16 multiply-accumulates per second and core", published,
     "reference cost model: 98.304 TFLOP/s per card"},
    {"partialSumSecondsPerElementHop", &S::partialSumSecondsPerElementHop,
     "seconds per output element and ring hop", published,
     "reference cost model"},
    {"ptFillSeconds", &S::ptFillSeconds,
     "seconds per halving of the passes below full rate", published,
     "reference cost model"},
    {"numRowsPerPass", &S::numRowsPerPass, "rows of M per pass", published,
     "reference cost model"},
    {"numPassesForFullRate", &S::numPassesForFullRate, "passes", published,
     "reference cost model"},
    {"batchSplitExponent", &S::batchSplitExponent,
     "exponent of the batch split", published, "reference cost model"},
    {"nonNumber", &S::nonNumber, "inf or nan", guessed,
     "spec/numerics.md, \"The non-number\": not confirmed by hardware"},
};

const std::vector<ParameterInfo> &DeviceSpec::parameters() {
  static const std::vector<ParameterInfo> table(std::begin(kParameters),
                                                std::end(kParameters));
  return table;
}

const ParameterInfo *spyre::findParameter(const std::string &name) {
  for (const ParameterInfo &info : DeviceSpec::parameters())
    if (name == info.name)
      return &info;
  return nullptr;
}

std::string spyre::checkNumCores(int64_t cores) {
  if (cores >= 1 && cores <= DeviceSpec::kMaxCores)
    return "";
  return "expected 1 to " + std::to_string(DeviceSpec::kMaxCores) +
         " cores, found " + std::to_string(cores);
}

namespace {
/// The numbers of DeviceSpec for one kind of kernel.
struct TimeFactorMembers {
  double DeviceSpec::*low, DeviceSpec::*high;
};
} // namespace

/// In the order of KernelKind.
static constexpr TimeFactorMembers kTimeFactors[kNumKernelKinds] = {
    {&S::movementTimeLow, &S::movementTimeHigh},
    {&S::pointwiseTimeLow, &S::pointwiseTimeHigh},
    {&S::reductionTimeLow, &S::reductionTimeHigh},
    {&S::productTimeLow, &S::productTimeHigh},
    {&S::batchedProductTimeLow, &S::batchedProductTimeHigh}};

TimeFactors DeviceSpec::getTimeFactors(KernelKinds kinds) const {
  if (kinds == 0)
    kinds = toKinds(KernelKind::Movement);
  TimeFactors result{std::numeric_limits<double>::infinity(), 0};
  for (int kind = 0; kind < kNumKernelKinds; ++kind) {
    if (!(kinds & toKinds(KernelKind(kind))))
      continue;
    result.low = std::min(result.low, this->*kTimeFactors[kind].low);
    result.high = std::max(result.high, this->*kTimeFactors[kind].high);
  }
  return result;
}

double DeviceSpec::hostLinkBytesPerSecond() const {
  auto generation = static_cast<double>(pcieGeneration);
  double bitsPerSecond = pcieGeneration <= 2
                             ? 2.5e9 * generation * 8 / 10
                             : 8e9 * std::exp2(generation - 3) * 128 / 130;
  return static_cast<double>(pcieLanes) * bitsPerSecond / 8;
}

int64_t DeviceSpec::usableLXBytes() const {
  return static_cast<int64_t>(static_cast<double>(lxBytesPerCore) *
                              (1.0 - lxReservedFraction));
}

void DeviceSpec::verify() const {
  auto fail = [](const std::string &name, const std::string &expected,
                 const std::string &found) {
    throw Error("device spec: " + name + " must be " + expected + ", but is " +
                found);
  };
  for (const ParameterInfo &info : parameters()) {
    if (auto *member = std::get_if<int64_t DeviceSpec::*>(&info.member)) {
      int64_t value = this->**member;
      if (value <
          (info.member == decltype(info.member)(&DeviceSpec::programSegment)
               ? 0
               : 1))
        fail(info.name, "positive", std::to_string(value));
    } else if (auto *member = std::get_if<double DeviceSpec::*>(&info.member)) {
      double value = this->**member;
      // Times may be zero, rates may not.
      bool mayBeZero = std::string(info.unit).rfind("seconds", 0) == 0 ||
                       *member == &DeviceSpec::lxReservedFraction ||
                       *member == &DeviceSpec::memoryRunOverheadBytes;
      if (!std::isfinite(value) || value < 0 || (value == 0 && !mayBeZero))
        fail(info.name, "finite and positive", std::to_string(value));
    }
  }
  if (numCores > kMaxCores)
    fail("numCores", "at most " + std::to_string(kMaxCores),
         std::to_string(numCores));
  if (lxReservedFraction >= 1)
    fail("lxReservedFraction", "below 1", std::to_string(lxReservedFraction));
  if (partialProductEfficiency > 1)
    fail("partialProductEfficiency", "at most 1",
         std::to_string(partialProductEfficiency));
  for (const TimeFactorMembers &factors : kTimeFactors)
    if (this->*factors.low > this->*factors.high)
      for (const ParameterInfo &info : parameters())
        if (info.member == decltype(info.member)(factors.low))
          fail(info.name, "at most " + std::to_string(this->*factors.high),
               std::to_string(this->*factors.low));
  if (stickBytes != kStickBytes)
    fail("stickBytes", std::to_string(kStickBytes) + " (layouts depend on it)",
         std::to_string(stickBytes));
  if (programSegment >= numSegments)
    fail("programSegment", "below numSegments", std::to_string(programSegment));
}

static Json valueOf(const DeviceSpec &spec, const ParameterInfo &info) {
  return std::visit(
      [&](auto member) -> Json {
        if constexpr (std::is_same_v<decltype(member), NonNumber DeviceSpec::*>)
          return spec.*member == NonNumber::Inf ? "inf" : "nan";
        else
          return spec.*member;
      },
      info.member);
}

bool DeviceSpec::operator==(const DeviceSpec &other) const {
  for (const ParameterInfo &info : parameters())
    if (!std::visit([&](auto member) { return this->*member == other.*member; },
                    info.member))
      return false;
  return true;
}

std::string DeviceSpec::toJson() const {
  Json result = Json::object();
  DeviceSpec defaults;
  for (const ParameterInfo &info : parameters()) {
    Json entry;
    Json value = valueOf(*this, info), standard = valueOf(defaults, info);
    entry["value"] = value;
    entry["unit"] = info.unit;
    if (value == standard) {
      entry["basis"] = toString(info.basis);
      entry["source"] = info.source;
    } else {
      entry["basis"] = "given";
      entry["default"] = standard;
    }
    result[info.name] = std::move(entry);
  }
  return dumpJson(result) + "\n";
}

DeviceSpec DeviceSpec::fromJson(const std::string &text,
                                const std::string &name) {
  JsonLimits limits;
  limits.fractions = true;
  JsonError error;
  std::optional<Json> parsed = parseJson(text, error, limits);
  if (!parsed)
    throw Error(name + ": " + error.toString());
  const Json &json = *parsed;
  if (!json.is_object())
    throw Error(name + ": expected an object, found " + json.type_name());
  DeviceSpec spec;
  for (auto &[key, entry] : json.items()) {
    const ParameterInfo *info = findParameter(key);
    if (!info)
      throw Error(name + ": there is no parameter \"" + key +
                  "\"; spyre-run --print-device-spec lists those that there "
                  "are");
    if (entry.is_object() && !entry.contains("value"))
      throw Error(name + ": \"" + key + "\" has no \"value\"");
    const Json &value = entry.is_object() ? entry.at("value") : entry;
    auto fail = [&, &key = key](const char *expected) {
      std::string found = value.is_structured()
                              ? std::string("an ") + value.type_name()
                              : dumpJsonLine(value);
      throw Error(name + ": \"" + key + "\" must be " + expected + ", but is " +
                  found);
    };
    if (auto *member = std::get_if<int64_t DeviceSpec::*>(&info->member)) {
      if (!value.is_number_integer() ||
          (value.is_number_unsigned() &&
           value.get<uint64_t>() >
               static_cast<uint64_t>(std::numeric_limits<int64_t>::max())))
        fail("a 64-bit integer");
      spec.**member = value.get<int64_t>();
    } else if (auto *member =
                   std::get_if<double DeviceSpec::*>(&info->member)) {
      if (!value.is_number())
        fail("a number");
      spec.**member = value.get<double>();
    } else {
      if (value != "inf" && value != "nan")
        fail("\"inf\" or \"nan\"");
      spec.nonNumber = value == "inf" ? NonNumber::Inf : NonNumber::NaN;
    }
  }
  try {
    spec.verify();
  } catch (const Error &error) {
    throw Error(name + ": " + error.what());
  }
  return spec;
}

DeviceSpec DeviceSpec::fromJsonFile(const std::string &path) {
  std::ifstream file(path);
  file.peek(); // A folder opens, but cannot be read.
  if (!file && !file.eof())
    throw Error("cannot read device spec '" + path +
                "': " + std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  return fromJson(text.str(), path);
}
