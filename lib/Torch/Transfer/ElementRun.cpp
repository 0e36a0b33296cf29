// SPDX-License-Identifier: Apache-2.0
#include "ElementRun.h"
#include "../Storage/StorageFormatting.h"
#include "Transfer.h"

#include "Spyre/Device/DL16.h"
#include "Spyre/Runtime/Kernels/TileKernels.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace spyre::pytorch {

/// Whether host element i of the storage is stored as device element i.
static bool isInHostOrder(const StorageFormat &format) {
  return format.sizes.size() == 1 &&
         format.layout == TensorLayout(format.sizes, format.dtype);
}

std::optional<ElementRun> elementRunOf(const at::Tensor &tensor) {
  SpyreStorageImpl &storage = formattedStorage(tensor);
  if (tensor.numel() == 0 || !isNative(tensor))
    return std::nullopt;
  checkBacked(tensor, storage);
  const StorageFormat &format = *storage.format;
  int64_t elementSize = storageBytes(format.layout.format);
  std::string dtype = toString(format.dtype);
  if (isInHostOrder(format) && tensor.is_contiguous())
    return ElementRun{
        static_cast<uint64_t>(tensor.storage_offset() * elementSize),
        tensor.numel(), elementSize, dtype};
  if (!isWholeHome(tensor))
    return std::nullopt;
  std::string kind = dtype + " " + format.layout.str() + " of sizes";
  for (int64_t size : format.sizes)
    kind += " " + std::to_string(size);
  kind += " and strides";
  for (int64_t stride : format.strides)
    kind += " " + std::to_string(stride);
  return ElementRun{
      0, static_cast<int64_t>(format.layout.sizeInBytes()) / elementSize,
      elementSize, kind};
}

at::Tensor storedElements(const at::Tensor &tensor, bool areWritten) {
  std::optional<ElementRun> run = elementRunOf(tensor);
  c10::ScalarType dtype = tensor.scalar_type();
  TORCH_CHECK(run && (dtype == c10::kFloat || dtype == c10::kHalf ||
                      dtype == c10::kBFloat16),
              "the tensor's elements are no floats that follow each other on "
              "the device");
  SpyreStorageImpl &storage = storageOf(tensor);
  uint8_t *first = areWritten ? storage.writableBytes()
                              : const_cast<uint8_t *>(storage.deviceBytes());
  // The elements keep the tensor.
  return at::from_blob(
      first + run->offsetInBytes, {run->count}, [tensor](void *) {},
      at::TensorOptions().dtype(dtype == c10::kFloat ? c10::kFloat
                                                     : c10::kShort));
}

static bool isDenseOnHost(const at::Tensor &tensor, c10::ScalarType type,
                          int64_t count) {
  return tensor.is_cpu() && tensor.scalar_type() == type &&
         tensor.is_contiguous() && tensor.numel() == count;
}

static void checkConversion(const at::Tensor &codes, const at::Tensor &values) {
  TORCH_CHECK(isDenseOnHost(codes, c10::kShort, codes.numel()) &&
                  isDenseOnHost(values, c10::kFloat, codes.numel()),
              "expected dense int16 codes and as many dense fp32 values");
}

void decodeElements(const at::Tensor &codes, const at::Tensor &values) {
  checkConversion(codes, values);
  decodeDL16(reinterpret_cast<const uint16_t *>(codes.const_data_ptr()),
             values.mutable_data_ptr<float>(), codes.numel());
}

void encodeElements(const at::Tensor &values, const at::Tensor &codes) {
  checkConversion(codes, values);
  encodeDL16(values.const_data_ptr<float>(),
             static_cast<uint16_t *>(codes.mutable_data_ptr()), values.numel());
}

void sumElements(const std::vector<at::Tensor> &parts, const at::Tensor &sum) {
  auto isDense = [&](const at::Tensor &codes) {
    return isDenseOnHost(codes, c10::kShort, sum.numel());
  };
  TORCH_CHECK(!parts.empty() && isDense(sum) &&
                  std::all_of(parts.begin(), parts.end(), isDense),
              "expected dense int16 codes, as many in each part as in the sum");
  using namespace runtime;
  const KernelTable &table = kernels();
  auto *result = static_cast<uint16_t *>(sum.mutable_data_ptr());
  if (parts.size() == 2) {
    // The operand of a chain of codes is an array of them.
    ChainStep step = {BinaryOp::Add, /*isReversed=*/false,
                      static_cast<const float *>(parts[1].const_data_ptr()), 1};
    table.chainOfCodes(parts[0].const_data_ptr(), 1, &step, 1, result,
                       sum.numel());
    return;
  }
  // All floats of a block stay in the first-level cache.
  constexpr int64_t block = 2048;
  float total[block], next[block];
  for (int64_t first = 0; first < sum.numel(); first += block) {
    size_t count = std::min(block, sum.numel() - first);
    auto decode = [&](const at::Tensor &part, float *values) {
      table.loadFloatRun(ElementFormat::DL16,
                         static_cast<const uint16_t *>(part.const_data_ptr()) +
                             first,
                         values, count);
    };
    decode(parts.front(), total);
    for (size_t part = 1; part < parts.size(); ++part) {
      decode(parts[part], next);
      table.binary(BinaryOp::Add, total, 1, next, 1, total, count,
                   Rounding::None);
    }
    table.storeFloatRun(ElementFormat::DL16, total, result + first, count);
  }
}

} // namespace spyre::pytorch
