// SPDX-License-Identifier: Apache-2.0
#ifndef SPYRE_LIB_TORCH_BINDINGS_BINDINGS_H
#define SPYRE_LIB_TORCH_BINDINGS_BINDINGS_H

#include <torch/csrc/utils/pybind.h>

namespace spyre::pytorch {

void initBundleBindings(pybind11::module &m);
void initDeviceSpecBindings(pybind11::module &m);
void initLayoutBindings(pybind11::module &m);
void initEagerBindings(pybind11::module &m);
void initEnvironmentBindings(pybind11::module &m);
void initJobBindings(pybind11::module &m);

} // namespace spyre::pytorch

#endif // SPYRE_LIB_TORCH_BINDINGS_BINDINGS_H
