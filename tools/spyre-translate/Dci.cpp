// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Device/Error.h"
#include "Translations.h"

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace spyre;

static std::string format(const std::vector<int64_t> &values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i)
    text += (i ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

static std::vector<int64_t> rowMajor(const std::vector<int64_t> &size) {
  std::vector<int64_t> strides(size.size(), 1);
  for (size_t i = size.size(); i-- > 1;)
    if (__builtin_mul_overflow(strides[i], std::max<int64_t>(size[i], 1),
                               &strides[i - 1]))
      throw Error("size " + format(size) + " overflows 64 bits");
  return strides;
}

static TensorLayout makeLayout(const DciRequest &request,
                               const std::vector<int64_t> &strides) {
  if (request.deviceSize)
    return TensorLayout(*request.deviceSize, *request.strideMap,
                        deviceFormat(request.dtype));
  std::vector<int64_t> order(request.size.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<int64_t>(i);
  return TensorLayout(request.size, strides, request.dtype,
                      request.dimOrder.value_or(order));
}

std::string spyre::printDci(const DciRequest &request) {
  std::vector<int64_t> strides =
      request.strides ? *request.strides : rowMajor(request.size);
  TensorLayout layout = makeLayout(request, strides);
  int64_t numElements = countHomeElements(request.size, strides);
  std::vector<TransferDescriptor> nests =
      makeTransferDescriptors(layout, request.size, strides, request.direction);
  bool toDevice = request.direction == TransferDirection::HostToDevice;

  if (request.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const TransferDescriptor &nest : nests)
      list.push_back({{"sizes", nest.sizes},
                      {"host_strides", nest.hostStrides},
                      {"device_strides", nest.deviceStrides},
                      {"host_offset", nest.hostOffset},
                      {"device_offset", nest.deviceOffset}});
    nlohmann::ordered_json document = {
        {"direction", toDevice ? "host_to_device" : "device_to_host"},
        {"unit", "elements"},
        {"loop_order", "outermost_first"},
        {"host",
         {{"dtype", toString(request.dtype)},
          {"size", request.size},
          {"strides", strides},
          {"elements", numElements}}},
        {"device",
         {{"format", toString(layout.format)},
          {"device_size", layout.deviceSize},
          {"stride_map", layout.strideMap},
          {"bytes", layout.sizeInBytes()}}},
        {"descriptors", std::move(list)}};
    return document.dump(2) + "\n";
  }

  std::string text = std::string("host ") + toString(request.dtype) + " size " +
                     format(request.size) + " strides " + format(strides) +
                     " (" + std::to_string(numElements) + " elements)\n" +
                     "device " + toString(layout.format) + " device_size " +
                     format(layout.deviceSize) + " stride_map " +
                     format(layout.strideMap) + " (" +
                     std::to_string(layout.sizeInBytes()) + " bytes)\n" +
                     (toDevice ? "host to device, " : "device to host, ") +
                     std::to_string(nests.size()) +
                     (nests.size() == 1 ? " descriptor" : " descriptors") +
                     ", in elements, outermost loop first\n";
  for (size_t i = 0; i < nests.size(); ++i)
    text += std::to_string(i) + ": sizes " + format(nests[i].sizes) +
            " host_strides " + format(nests[i].hostStrides) +
            " device_strides " + format(nests[i].deviceStrides) +
            " host_offset " + std::to_string(nests[i].hostOffset) +
            " device_offset " + std::to_string(nests[i].deviceOffset) + "\n";
  return text;
}
