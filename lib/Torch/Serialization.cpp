// SPDX-License-Identifier: Apache-2.0
// Saved tensors carry a layout that is not the default one as the name of a
// flag in PyTorch's tensor metadata, which loading elsewhere ignores; values
// are saved as host images.
#include "Storage.h"
#include "Transfer.h"

#include "Spyre/Device/Error.h"
#include "Spyre/Device/HostTransfer.h"

#include <torch/csrc/jit/serialization/pickler_helper.h>

#include <sstream>

namespace spyre::device {

namespace {

constexpr const char *kPrefix = "spyre.layout/";

using Metadata = std::unordered_map<std::string, bool>;

std::string join(const std::vector<int64_t> &values) {
  std::string text;
  for (int64_t value : values)
    text += (text.empty() ? "" : ",") + std::to_string(value);
  return text;
}

/// "spyre.layout/<home sizes>/<home strides>/<device size>/<stride
/// map>/<arrangement>"
std::string toText(const StorageFormat &format) {
  const TensorLayout &layout = format.layout;
  return kPrefix + join(format.sizes) + "/" + join(format.strides) + "/" +
         join(layout.deviceSize) + "/" + join(layout.strideMap) + "/" +
         std::to_string(static_cast<int>(layout.arrangement));
}

[[noreturn]] void malformed(const std::string &text, const std::string &why) {
  throw Error("the saved layout '" + text + "' is damaged: " + why);
}

std::vector<int64_t> split(const std::string &text, const std::string &part) {
  std::vector<int64_t> values;
  std::stringstream entries(part);
  for (std::string entry; std::getline(entries, entry, ',');) {
    size_t used = 0;
    try {
      values.push_back(std::stoll(entry, &used));
    } catch (const std::exception &) {
      used = 0;
    }
    if (used == 0 || used != entry.size())
      malformed(text, "'" + entry + "' is not a number");
  }
  return values;
}

StorageFormat parse(const std::string &text, HostDtype dtype) {
  std::vector<std::string> parts;
  std::stringstream stream(text.substr(std::string(kPrefix).size()));
  for (std::string part; std::getline(stream, part, '/');)
    parts.push_back(part);
  if (parts.size() != 5)
    malformed(text,
              "expected five parts, found " + std::to_string(parts.size()));
  StorageFormat format;
  format.dtype = dtype;
  format.sizes = split(text, parts[0]);
  format.strides = split(text, parts[1]);
  std::vector<int64_t> arrangement = split(text, parts[4]);
  for (int64_t size : format.sizes)
    if (size < 0)
      malformed(text, "a size is negative");
  if (format.sizes.size() != format.strides.size() ||
      !isDense(format.sizes, format.strides))
    malformed(text, "sizes and strides are not those of a dense tensor");
  if (arrangement.size() != 1 || arrangement[0] < 0 || arrangement[0] > 3)
    malformed(text, "there is no such element arrangement");
  try {
    format.layout = TensorLayout(
        split(text, parts[2]), split(text, parts[3]), deviceFormat(dtype),
        static_cast<ElementArrangement>(arrangement[0]));
    checkLayout(format);
  } catch (const Error &error) {
    malformed(text, error.what());
  }
  return format;
}

void save(const at::Tensor &tensor, Metadata &metadata) {
  // Fake tensors have another storage.
  const auto *storage = tensor.has_storage()
                            ? dynamic_cast<const SpyreStorageImpl *>(
                                  tensor.storage().unsafeGetStorageImpl())
                            : nullptr;
  if (!storage || !storage->format || storage->nbytes() == 0)
    return;
  const StorageFormat &format = *storage->format;
  // What loading would give it by itself.
  StorageFormat byItself =
      makeFormat(tensor.sizes(), tensor.strides(), tensor.scalar_type());
  bool isDefault = isWholeHome(tensor) && byItself.layout == format.layout;
  if (!isDefault && isNative(tensor))
    metadata[toText(format)] = true;
}

void load(const at::Tensor &tensor, Metadata &metadata) {
  for (const auto &[text, isSet] : metadata) {
    if (text.rfind(kPrefix, 0) != 0 || !isSet)
      continue;
    StorageFormat format = parse(text, hostDtype(tensor.scalar_type()));
    SpyreStorageImpl &storage = formattedStorage(tensor);
    if (static_cast<uint64_t>(format.numElements()) * tensor.itemsize() !=
        storage.nbytes())
      malformed(text, "the storage has " + std::to_string(storage.nbytes()) +
                          " bytes");
    if (storage.format->layout == format.layout &&
        storage.format->sizes == format.sizes)
      continue;
    std::vector<uint8_t> image = readHostImage(storage);
    c10::DataPtr block = allocate(
        storage.deviceIndex(),
        std::max<uint64_t>(format.layout.sizeInBytes(), storage.nbytes()));
    const Allocation *allocation = allocationOf(block);
    hostToDevice(image.data(), format.dtype, format.sizes, format.strides,
                 format.layout,
                 allocation->card->memory.at(allocation->address), nullptr);
    storage.beginOverwrite();
    storage.set_data_ptr_noswap(std::move(block));
    storage.format = std::move(format);
  }
}

[[maybe_unused]] const bool registered = [] {
  torch::jit::TensorBackendMetaRegistry(kSpyre, &save, &load);
  return true;
}();

} // namespace

} // namespace spyre::device
