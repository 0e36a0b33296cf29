// SPDX-License-Identifier: Apache-2.0
// Python takes numbers of the device from where C++ takes them.
#include "Bindings.h"

#include "Spyre/Device/DeviceSpec.h"

#include <type_traits>
#include <variant>

namespace py = pybind11;

namespace spyre::pytorch {

static py::object valueOf(const DeviceSpec &spec, const ParameterInfo &info) {
  return std::visit(
      [&](auto member) -> py::object {
        if constexpr (std::is_same_v<decltype(member), NonNumber DeviceSpec::*>)
          return py::str(spec.*member == NonNumber::Inf ? "inf" : "nan");
        else
          return py::cast(spec.*member);
      },
      info.member);
}

void initDeviceSpecBindings(py::module &m) {
  m.def(
      "device_spec",
      [] {
        const DeviceSpec spec;
        py::dict numbers;
        for (const ParameterInfo &info : DeviceSpec::parameters())
          numbers[info.name] = valueOf(spec, info);
        return numbers;
      },
      "The numbers of the device (docs/reference/device.json), by name.");
}

} // namespace spyre::pytorch
