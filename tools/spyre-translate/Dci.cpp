// SPDX-License-Identifier: Apache-2.0
#include "Spyre/Support/Error.h"
#include "Spyre/Support/Json.h"
#include "Spyre/Support/Shape.h"
#include "Translations.h"

using namespace spyre;

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
      request.strides ? *request.strides : rowMajorStrides(request.size);
  TensorLayout layout = makeLayout(request, strides);
  int64_t numElements = countHomeElements(request.size, strides);
  std::vector<TransferDescriptor> nests =
      makeTransferDescriptors(layout, request.size, strides, request.direction);
  bool toDevice = request.direction == TransferDirection::HostToDevice;

  if (request.json) {
    Json list = Json::array();
    for (const TransferDescriptor &nest : nests)
      list.push_back({{"sizes", nest.sizes},
                      {"host_strides", nest.hostStrides},
                      {"device_strides", nest.deviceStrides},
                      {"host_offset", nest.hostOffset},
                      {"device_offset", nest.deviceOffset}});
    Json document = {
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
    return dumpJson(document) + "\n";
  }

  std::string text = std::string("host ") + toString(request.dtype) + " size " +
                     formatSizes(request.size) + " strides " +
                     formatSizes(strides) + " (" + std::to_string(numElements) +
                     " elements)\n" + "device " + toString(layout.format) +
                     " device_size " + formatSizes(layout.deviceSize) +
                     " stride_map " + formatSizes(layout.strideMap) + " (" +
                     std::to_string(layout.sizeInBytes()) + " bytes)\n" +
                     (toDevice ? "host to device, " : "device to host, ") +
                     std::to_string(nests.size()) +
                     (nests.size() == 1 ? " descriptor" : " descriptors") +
                     ", in elements, outermost loop first\n";
  for (size_t i = 0; i < nests.size(); ++i)
    text += std::to_string(i) + ": sizes " + formatSizes(nests[i].sizes) +
            " host_strides " + formatSizes(nests[i].hostStrides) +
            " device_strides " + formatSizes(nests[i].deviceStrides) +
            " host_offset " + std::to_string(nests[i].hostOffset) +
            " device_offset " + std::to_string(nests[i].deviceOffset) + "\n";
  return text;
}
