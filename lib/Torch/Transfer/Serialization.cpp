// SPDX-License-Identifier: Apache-2.0
// Saved tensors carry a checksum of themselves, and a layout that is not the
// default one, as names of flags in PyTorch's tensor metadata, which loading
// elsewhere ignores; values are saved as host images. PyTorch does not verify
// the checksums of the files that it reads.
#include "../Python/Interpreter.h"
#include "../Storage/Storage.h"
#include "../Storage/StorageFormatting.h"
#include "../Storage/StorageImage.h"
#include "Transfer.h"

#include "Spyre/Support/Error.h"

#include <c10/util/ConstexprCrc.h>
#include <torch/csrc/jit/serialization/pickler_helper.h>

#include <sstream>

namespace spyre::pytorch {

namespace {

constexpr const char *kPrefix = "spyre.layout/";
constexpr const char *kChecksum = "spyre.checksum/";

using Metadata = std::unordered_map<std::string, bool>;

std::string join(c10::IntArrayRef values) {
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

/// The storage under a tensor if it is one of ours that holds something, else
/// null: fake tensors have another one.
SpyreStorageImpl *ownStorage(const at::Tensor &tensor) {
  auto *storage = tensor.has_storage()
                      ? dynamic_cast<SpyreStorageImpl *>(
                            tensor.storage().unsafeGetStorageImpl())
                      : nullptr;
  return storage && storage->nbytes() ? storage : nullptr;
}

std::string toHex(uint64_t number) {
  std::ostringstream text;
  text << std::hex << number;
  return text.str();
}

/// "spyre.checksum/<CRC-64>/", of how the tensor lies on its storage and of the
/// saved layout.
std::string checksumOfPlace(const at::Tensor &tensor,
                            const std::string &layout) {
  std::ostringstream text;
  text << c10::toString(tensor.scalar_type()) << "/" << join(tensor.sizes())
       << "/" << join(tensor.strides()) << "/" << tensor.storage_offset() << "/"
       << layout;
  return kChecksum + toHex(c10::util::crc64(text.str()).checksum()) + "/";
}

/// The CRC-64 of a tensor's elements as the host has them.
std::string checksumOfValues(at::Tensor tensor) {
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (tensor.stride(d) == 0 && tensor.size(d) > 1)
      tensor = tensor.narrow(d, 0, 1);
  std::string text;
  withoutGIL([&] {
    at::Tensor values = toHost(tensor.detach()).contiguous();
    const auto *bytes = static_cast<const char *>(values.const_data_ptr());
    text = toHex(c10::util::crc64(bytes, values.nbytes()).checksum());
  });
  return text;
}

void save(const at::Tensor &tensor, Metadata &metadata) {
  const SpyreStorageImpl *storage = ownStorage(tensor);
  if (!storage)
    return;
  std::string layout;
  if (storage->format) {
    StorageFormat format = storage->format->withoutRoom();
    // The format that loading would choose by default.
    StorageFormat byItself =
        makeFormat(tensor.sizes(), tensor.strides(), tensor.scalar_type());
    bool isDefault = isWholeHome(tensor) && byItself.layout == format.layout;
    if (!isDefault && isNative(tensor))
      layout = toText(format);
  }
  if (!layout.empty())
    metadata[layout] = true;
  metadata[checksumOfPlace(tensor, layout) + checksumOfValues(tensor)] = true;
}

/// Gives the storage under a tensor the saved layout `text`.
void setLayout(const at::Tensor &tensor, const std::string &text) {
  StorageFormat format = parse(text, hostDtype(tensor.scalar_type()));
  SpyreStorageImpl &storage = formattedStorage(tensor);
  if (static_cast<uint64_t>(format.numElements()) * tensor.itemsize() !=
      storage.nbytes())
    malformed(text,
              "the storage has " + std::to_string(storage.nbytes()) + " bytes");
  if (storage.format->layout == format.layout &&
      storage.format->sizes == format.sizes)
    return;
  std::vector<uint8_t> image = readHostImage(storage);
  c10::DataPtr block = allocate(
      storage.deviceIndex(),
      std::max<uint64_t>(format.layout.sizeInBytes(), storage.nbytes()));
  const Allocation *allocation = allocationOf(block);
  convertToDevice(image.data(), format,
                  allocation->card->memory.at(allocation->address));
  storage.beginOverwrite();
  storage.set_data_ptr_noswap(std::move(block));
  storage.format = std::move(format);
}

/// Whether the tensors that PyTorch is loading have their values already.
bool hasValues() {
  return callPredicate("torch_spyre.device.serialization", "has_values");
}

void load(const at::Tensor &tensor, Metadata &metadata) {
  if (metadata.empty() || !ownStorage(tensor))
    return;
  std::string layout, saved;
  for (const auto &[text, isSet] : metadata) {
    std::string &known = text.rfind(kPrefix, 0) == 0 ? layout : saved;
    if (!isSet || !known.empty() ||
        (&known == &saved && text.rfind(kChecksum, 0) != 0))
      throw Error("the saved tensor is damaged: '" + text +
                  "' is not what spyre tensors have");
    known = text;
  }
  if (!layout.empty())
    setLayout(tensor, layout);
  if (saved.empty() && !layout.empty())
    malformed(layout, "its checksum is missing");
  std::string place = checksumOfPlace(tensor, layout);
  if (saved.rfind(place, 0) != 0)
    throw Error("the saved tensor is damaged: its sizes, strides and layout do "
                "not match their checksum");
  if (hasValues() && saved != place + checksumOfValues(tensor))
    throw Error("the saved tensor is damaged: its values do not match their "
                "checksum");
}

[[maybe_unused]] const bool registered = [] {
  torch::jit::TensorBackendMetaRegistry(kSpyre, &save, &load);
  return true;
}();

} // namespace

} // namespace spyre::pytorch
