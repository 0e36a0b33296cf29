// SPDX-License-Identifier: Apache-2.0
#include "EagerProgram.h"

#include <algorithm>
#include <bit>

namespace py = pybind11;

namespace spyre::pytorch {

static ResultSpec toResultSpec(py::handle object) {
  ResultSpec spec;
  if (object.is_none())
    return spec;
  if (py::isinstance<py::int_>(object)) {
    spec.kind = ResultSpec::Value;
    spec.number = object.cast<int64_t>();
  } else if (py::isinstance<py::list>(object)) {
    spec.kind = ResultSpec::List;
    for (py::handle entry : object)
      spec.entries.push_back(toResultSpec(entry));
  } else {
    spec.kind = ResultSpec::Integer;
    py::object size = object.cast<py::tuple>()[1];
    spec.size = py::isinstance<SizeExpr>(size) ? size.cast<SizeExpr>()
                                               : SizeExpr(size.cast<int64_t>());
  }
  return spec;
}

/// Integers as numbers.
static ResultSpec resolve(ResultSpec spec, const std::vector<int64_t> &sizes) {
  if (spec.kind == ResultSpec::Integer)
    spec.number = spec.size.at(sizes);
  for (ResultSpec &entry : spec.entries)
    entry = resolve(std::move(entry), sizes);
  return spec;
}

EagerProgram EagerProgram::fromPython(const py::tuple &answer) {
  EagerProgram program;
  program.graph = answer[0].cast<std::shared_ptr<BoundGraph>>();
  program.arguments = answer[1].cast<std::vector<int>>();
  program.values = answer[2].cast<std::vector<OutputInfo>>();
  for (py::handle result : answer[3])
    program.results.push_back(toResultSpec(result));
  return program;
}

std::shared_ptr<const Entry>
EagerProgram::at(std::vector<int64_t> sizes) const {
  auto entry = std::make_shared<Entry>();
  entry->graph = graph;
  entry->arguments = arguments;
  for (const OutputInfo &value : values)
    entry->values.emplace_back(value, sizes);
  entry->outputs = graph->outputsAt(sizes);
  for (const ResultSpec &result : results)
    entry->results.push_back(resolve(result, sizes));
  entry->sizes = std::move(sizes);
  return entry;
}

bool areSameNumbers(const std::vector<double> &a,
                    const std::vector<double> &b) {
  return std::ranges::equal(a, b, {}, std::bit_cast<int64_t, double>,
                            std::bit_cast<int64_t, double>);
}

} // namespace spyre::pytorch
