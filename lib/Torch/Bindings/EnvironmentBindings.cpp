// SPDX-License-Identifier: Apache-2.0
// Python reads the environment through the table that C++ reads it through.
#include "Bindings.h"

#include "Spyre/Support/Environment.h"
#include "Spyre/Support/Error.h"

namespace py = pybind11;

namespace spyre::pytorch {

using environment::Value;
using environment::Variable;

static const char *nameOf(Variable::Kind kind) {
  switch (kind) {
  case Variable::Switch:
    return "switch";
  case Variable::Number:
    return "number";
  case Variable::Numbers:
    return "numbers";
  case Variable::Choice:
    return "choice";
  case Variable::Text:
    return "text";
  case Variable::Foreign:
    return "foreign";
  }
  return "";
}

static py::dict toDict(const Variable &variable) {
  py::dict row;
  row["name"] = variable.name;
  row["kind"] = nameOf(variable.kind);
  row["group"] = variable.group;
  row["expected"] = variable.expected();
  row["default"] = variable.byDefault;
  row["lowest"] = variable.lowest;
  row["highest"] = variable.highest;
  row["choices"] = variable.choices;
  row["help"] = variable.help;
  return row;
}

void initEnvironmentBindings(py::module &m) {
  m.def(
      "environment_variables",
      [] {
        py::list rows;
        for (const Variable &variable : environment::variables())
          rows.append(toDict(variable));
        return rows;
      },
      "The table of environment variables, a dict each.");
  m.def(
      "read_environment",
      [](const std::string &name) -> py::object {
        try {
          return std::visit(
              [](const auto &value) -> py::object {
                using Type = std::decay_t<decltype(value)>;
                if constexpr (std::is_same_v<Type, std::monostate>)
                  return py::none();
                else if constexpr (std::is_same_v<Type, std::string>)
                  // Paths may be any bytes: decode as Python decodes paths.
                  return py::reinterpret_steal<py::object>(
                      PyUnicode_DecodeFSDefault(value.c_str()));
                else
                  return py::cast(value);
              },
              environment::read(name));
        } catch (const Error &error) {
          throw py::value_error(error.what());
        }
      },
      py::arg("name"),
      "What the environment says now of a variable of the table, else its "
      "default: a bool, a number or None, a list of numbers, or text. Raises "
      "ValueError for a value that means nothing.");
}

} // namespace spyre::pytorch
