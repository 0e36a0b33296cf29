// SPDX-License-Identifier: Apache-2.0
//===- TimingReport.cpp - Reports as text, JSON and traces ----------------===//

#include "Spyre/Runtime/Report/TimingReport.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

using namespace spyre::runtime;
using Json = nlohmann::ordered_json;

const char *spyre::runtime::toString(TimedUnit unit) {
  static const char *const names[] = {"pt",    "sfu",  "load",
                                      "store", "ring", "device memory"};
  return names[int(unit)];
}

template <typename... T>
static std::string format(const char *pattern, T... values) {
  char line[512];
  std::snprintf(line, sizeof(line), pattern, values...);
  return line;
}

//===----------------------------------------------------------------------===//
// Several runs
//===----------------------------------------------------------------------===//

/// Adds what runs next, but for the bottleneck.
static void append(TimingReport &all, TimingReport next) {
  auto join = [](double &mean, double weight, double other,
                 double otherWeight) {
    if (weight + otherWeight > 0)
      mean = (mean * weight + other * otherWeight) / (weight + otherWeight);
  };
  join(all.guessedShare, all.predictedSeconds, next.guessedShare,
       next.predictedSeconds);
  for (int u = 0; u < kNumTimedUnits; ++u)
    join(all.utilisation[u], all.predictedSeconds - all.launchSeconds,
         next.utilisation[u], next.predictedSeconds - next.launchSeconds);
  for (KernelReport &kernel : next.kernels) {
    kernel.startSeconds += all.predictedSeconds;
    all.kernels.push_back(std::move(kernel));
  }
  int firstName = static_cast<int>(all.names.size());
  for (TraceEvent &event : next.events) {
    event.name += firstName;
    event.location += firstName;
    event.start += all.predictedSeconds;
    all.events.push_back(event);
  }
  all.names.insert(all.names.end(), next.names.begin(), next.names.end());
  all.lanes.insert(next.lanes.begin(), next.lanes.end());
  for (TensorTraffic &own : next.tensors) {
    auto known = std::find_if(
        all.tensors.begin(), all.tensors.end(),
        [&](const TensorTraffic &other) { return other.name == own.name; });
    if (known == all.tensors.end()) {
      all.tensors.push_back(std::move(own));
      continue;
    }
    known->bytesRead += own.bytesRead;
    known->bytesWritten += own.bytesWritten;
  }
  std::set<std::string> places(all.dataDependent.begin(),
                               all.dataDependent.end());
  places.insert(next.dataDependent.begin(), next.dataDependent.end());
  all.dataDependent.assign(places.begin(), places.end());
  all.predictedSeconds += next.predictedSeconds;
  all.lowSeconds += next.lowSeconds;
  all.highSeconds += next.highSeconds;
  all.launchSeconds += next.launchSeconds;
  addWork(all, next);
}

TimingReport spyre::runtime::joinReports(std::vector<TimingReport> runs) {
  if (runs.empty())
    return {};
  TimingReport all = std::move(runs.front());
  if (runs.size() == 1)
    return all;
  for (size_t run = 1; run < runs.size(); ++run)
    append(all, std::move(runs[run]));
  std::map<std::string, double> seconds = {{"launch", all.launchSeconds}};
  for (const KernelReport &kernel : all.kernels)
    seconds[kernel.bottleneck] += kernel.predictedSeconds;
  auto less = [](const auto &a, const auto &b) { return a.second < b.second; };
  all.bottleneck =
      std::max_element(seconds.begin(), seconds.end(), less)->first;
  return all;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string utilisationText(const double *utilisation) {
  std::string text;
  for (int u = 0; u < kNumTimedUnits; ++u)
    text += format("%s%s %.0f %%", u ? ", " : "", toString(TimedUnit(u)),
                   100 * utilisation[u]);
  return text;
}

static std::string intervalText(double lowSeconds, double highSeconds) {
  return format("%.2f to %.2f", lowSeconds * 1e6, highSeconds * 1e6);
}

std::string TimingReport::toText() const {
  std::string text;
  text += format("%-28s %5s %11s %19s %11s %11s %11s %11s %10s %9s  %s\n",
                 "kernel", "cores", "us", "10 to 90 % us", "read", "written",
                 "LX read", "LX written", "GFLOP/s", "of roof", "bottleneck");
  using ull = unsigned long long;
  for (const KernelReport &k : kernels) {
    double roof = k.attainableFlopsPerSecond > 0
                      ? 100 * k.flopsPerSecond / k.attainableFlopsPerSecond
                      : 0;
    text +=
        format("%-28.28s %5lld %11.2f %19s %11llu %11llu %11llu %11llu %10.1f "
               "%7.1f %%  %s\n",
               k.name.c_str(), static_cast<long long>(k.numCores),
               k.predictedSeconds * 1e6,
               intervalText(k.lowSeconds, k.highSeconds).c_str(),
               ull(k.deviceBytesRead), ull(k.deviceBytesWritten),
               ull(k.lxBytesRead), ull(k.lxBytesWritten),
               k.flopsPerSecond * 1e-9, roof, k.bottleneck.c_str());
  }
  for (const TensorTraffic &t : tensors)
    text += format("device memory, %s: %llu bytes read, %llu written\n",
                   t.name.c_str(), ull(t.bytesRead), ull(t.bytesWritten));
  if (deviceBytesDemanded > deviceBytesRead)
    text += format("broadcasts: %llu bytes read serve %llu\n",
                   ull(deviceBytesRead), ull(deviceBytesDemanded));
  text += "busy: " + utilisationText(utilisation) + "\n";
  for (const std::string &place : dataDependent)
    text += place + ": note: depends on data, timed as if it were 0\n";
  text += format("predicted %.2f us%s, in 8 of 10 cases %s us "
                 "(launch %.2f us), bottleneck %s, %.0f %% "
                 "rests on guesses\n",
                 predictedSeconds * 1e6, overlap ? "" : " without overlap",
                 intervalText(lowSeconds, highSeconds).c_str(),
                 launchSeconds * 1e6, bottleneck.c_str(), 100 * guessedShare);
  return text;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static Json utilisationJson(const double *utilisation) {
  Json result = Json::object();
  for (int u = 0; u < kNumTimedUnits; ++u)
    result[toString(TimedUnit(u))] = utilisation[u];
  return result;
}

/// JSON has no infinity.
static Json orNull(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

template <typename T>
static Json bytesJson(const T &report) {
  return {{"device_memory",
           {{"read", report.deviceBytesRead},
            {"written", report.deviceBytesWritten},
            {"demanded", report.deviceBytesDemanded}}},
          {"lx",
           {{"read", report.lxBytesRead}, {"written", report.lxBytesWritten}}},
          {"ring", report.ringBytes}};
}

std::string TimingReport::toJson() const {
  Json kernelList = Json::array();
  for (const KernelReport &k : kernels)
    kernelList.push_back(
        {{"name", k.name},
         {"location", k.location},
         {"cores", k.numCores},
         {"start_seconds", k.startSeconds},
         {"predicted_seconds", k.predictedSeconds},
         {"interval_seconds", {k.lowSeconds, k.highSeconds}},
         {"cost_model_seconds", k.costModelSeconds},
         {"bottleneck", k.bottleneck},
         {"guessed_share", k.guessedShare},
         {"bytes", bytesJson(k)},
         {"sfu_element_ops", k.sfuElementOps},
         {"pt_macs", k.ptMacs},
         {"flops", k.flops()},
         {"utilisation", utilisationJson(k.utilisation)},
         {"roofline",
          {{"flops_per_byte", orNull(k.arithmeticIntensity)},
           {"attainable_flops_per_second", k.attainableFlopsPerSecond},
           {"flops_per_second", k.flopsPerSecond},
           {"bound", k.isMemoryBound ? "device memory" : "compute"}}}});
  Json tensorList = Json::array();
  for (const TensorTraffic &t : tensors)
    tensorList.push_back({{"name", t.name},
                          {"bytes_read", t.bytesRead},
                          {"bytes_written", t.bytesWritten}});
  Json result = {{"predicted_seconds", predictedSeconds},
                 {"interval_seconds", {lowSeconds, highSeconds}},
                 {"launch_seconds", launchSeconds},
                 {"overlap", overlap},
                 {"bottleneck", bottleneck},
                 {"guessed_share", guessedShare},
                 {"bytes", bytesJson(*this)},
                 {"tensors", std::move(tensorList)},
                 {"sfu_element_ops", sfuElementOps},
                 {"pt_macs", ptMacs},
                 {"utilisation", utilisationJson(utilisation)},
                 {"depends_on_data", dataDependent},
                 {"kernels", std::move(kernelList)}};
  return result.dump(2) + "\n";
}

//===----------------------------------------------------------------------===//
// Traces
//===----------------------------------------------------------------------===//

std::string TimingReport::toChromeTrace() const {
  std::string text = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  bool isFirst = true;
  auto add = [&](const Json &event) {
    text += isFirst ? "" : ",\n";
    text += event.dump();
    isFirst = false;
  };
  std::set<int> processes;
  for (const auto &[lane, name] : lanes) {
    auto [process, number] = lane;
    if (processes.insert(process).second) {
      std::string title = process == 0   ? "program"
                          : process == 1 ? "device memory"
                          : process == 2
                              ? "ring"
                              : "core " + std::to_string(process - 3);
      add({{"ph", "M"},
           {"pid", process},
           {"name", "process_name"},
           {"args", {{"name", title}}}});
      add({{"ph", "M"},
           {"pid", process},
           {"name", "process_sort_index"},
           {"args", {{"sort_index", process}}}});
    }
    add({{"ph", "M"},
         {"pid", process},
         {"tid", number},
         {"name", "thread_name"},
         {"args", {{"name", name}}}});
  }
  for (const TraceEvent &event : events) {
    if (event.kind == TraceEvent::Counter) {
      add({{"ph", "C"},
           {"pid", event.process},
           {"ts", event.start * 1e6},
           {"name", names[event.name]},
           {"args", {{"bytes", event.bytes}}}});
      continue;
    }
    Json arguments = {{"location", names[event.location]}};
    if (event.bytes > 0)
      arguments["bytes"] = event.bytes;
    if (event.highSeconds > 0)
      arguments["interval_us"] = {event.lowSeconds * 1e6,
                                  event.highSeconds * 1e6};
    add({{"ph", "X"},
         {"pid", event.process},
         {"tid", event.lane},
         {"ts", event.start * 1e6},
         {"dur", event.seconds * 1e6},
         {"name", names[event.name]},
         {"args", std::move(arguments)}});
  }
  return text + "\n]}\n";
}
