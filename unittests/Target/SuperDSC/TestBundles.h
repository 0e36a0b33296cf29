// SPDX-License-Identifier: Apache-2.0
//===- TestBundles.h - Small valid bundles ----------------------*- C++ -*-===//

#ifndef SPYRE_UNITTESTS_TARGET_SUPERDSC_TESTBUNDLES_H
#define SPYRE_UNITTESTS_TARGET_SUPERDSC_TESTBUNDLES_H

#include "Spyre/Target/SuperDSC/Model/Geometry.h"

#include <string>
#include <utility>
#include <vector>

namespace spyre::superdsc::testing {

/// A tensor whose cores start where their slices do.
inline Tensor makeTensor(const Sdsc &sdsc, std::vector<unsigned> order,
                         int64_t base, std::vector<Scale> scale = {},
                         unsigned label = 0) {
  Tensor tensor;
  tensor.label = label;
  tensor.order = order;
  tensor.scale = scale.empty() ? std::vector(order.size(), Scale::Present)
                               : std::move(scale);
  tensor.gap.assign(order.size(), 0);
  tensor.maxSize.assign(order.size(), -1);
  Geometry geometry = *getGeometry(sdsc, tensor);
  for (int64_t core = 0; core < sdsc.numCores(); ++core)
    tensor.addresses.push_back(base + 128 * geometry.offsetOf(sdsc, core));
  return tensor;
}

inline Sdsc makeSdsc(std::string op, std::vector<Dim> dims,
                     std::vector<Label> labels) {
  Sdsc sdsc;
  sdsc.op = std::move(op);
  sdsc.unit = "sfp";
  sdsc.dims = std::move(dims);
  sdsc.labels = std::move(labels);
  for (unsigned dim = 0; dim < sdsc.dims.size(); ++dim)
    sdsc.coreOrder.push_back(dim);
  return sdsc;
}

/// Sum of the 8 x 128 fp16 tensors in segments 0 and 1, into segment 2.
inline Sdsc makeAdd() {
  Sdsc sdsc = makeSdsc("add", {{"mb", 8, 2, 0}, {"out", 128, 1, 0}},
                       {{"OUTPUT", {0, 1}, {{1, 64}}}});
  for (int64_t segment = 0; segment < 3; ++segment)
    sdsc.tensors.push_back(makeTensor(sdsc, {0, 1}, segment << 34));
  sdsc.inputs = {0, 1};
  sdsc.outputs = {2};
  return sdsc;
}

} // namespace spyre::superdsc::testing

#endif // SPYRE_UNITTESTS_TARGET_SUPERDSC_TESTBUNDLES_H
