// SPDX-License-Identifier: Apache-2.0
#include "Transfer.h"
#include "../Storage/StorageFormatting.h"
#include "../Storage/StorageImage.h"

#include "Spyre/Device/DL16.h"
#include "Spyre/Device/HostTransfer.h"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>

#include <algorithm>
#include <cstring>

namespace spyre::pytorch {

static_assert(kPieceElements * 4 < kLargeElements,
              "a piece is read without an image of the storage");

namespace {

/// Reading fewer elements of a storage than one in this many goes element by
/// element instead of through the image of the whole storage.
constexpr int64_t kImageRatio = 4;

/// Calls function(storage element) for every element of a tensor, row-major.
template <typename Function>
void forEachElement(const at::Tensor &tensor, Function function) {
  c10::IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  int64_t rank = tensor.dim(), offset = tensor.storage_offset();
  if (tensor.numel() == 0)
    return;
  if (rank == 0) {
    function(offset);
    return;
  }
  std::vector<int64_t> index(rank, 0);
  int64_t innerSize = sizes[rank - 1], innerStride = strides[rank - 1];
  while (true) {
    for (int64_t i = 0; i < innerSize; ++i)
      function(offset + i * innerStride);
    int64_t d = rank - 2;
    for (; d >= 0; --d) {
      offset += strides[d];
      if (++index[d] < sizes[d])
        break;
      offset -= index[d] * strides[d];
      index[d] = 0;
    }
    if (d < 0)
      return;
  }
}

/// Layout in which n elements lie one after the other.
TensorLayout packedLayout(int64_t count, HostDtype dtype) {
  return TensorLayout({count}, dtype);
}

/// A CPU tensor over bytes that it owns.
at::Tensor ownBytes(std::vector<uint8_t> &&bytes, c10::IntArrayRef sizes,
                    c10::IntArrayRef strides, int64_t offset,
                    c10::ScalarType dtype) {
  auto *owner = new std::vector<uint8_t>(std::move(bytes));
  auto count = static_cast<int64_t>(owner->size() / c10::elementSize(dtype));
  return at::from_blob(
             owner->data(), {count}, {1}, [owner](void *) { delete owner; },
             at::TensorOptions().dtype(dtype))
      .as_strided(sizes, strides, offset);
}

} // namespace

void checkBacked(const at::Tensor &tensor, const SpyreStorageImpl &storage) {
  uint64_t needed = at::detail::computeStorageNbytes(
      tensor.sizes(), tensor.strides(), tensor.itemsize(),
      tensor.storage_offset());
  TORCH_CHECK(needed <= storage.nbytes(), "tensor addresses ", needed,
              " bytes of a storage that has ", storage.nbytes(), " bytes");
}

/// Calls function(byte offset, count) for the elements of a tensor, row-major,
/// in runs that follow each other on the device.
template <typename Function>
static void forEachRun(const at::Tensor &tensor, const ElementMap &map,
                       Function function) {
  bool hasRows = tensor.dim() > 0 && tensor.stride(-1) == 1 && map.hasRuns();
  if (!hasRows) {
    forEachElement(tensor, [&](int64_t element) {
      function(map.byteOffset(element), int64_t(1));
    });
    return;
  }
  int64_t size = tensor.size(-1);
  forEachElement(tensor.narrow(-1, 0, std::min<int64_t>(size, 1)),
                 [&](int64_t element) {
                   for (int64_t i = 0; i < size;) {
                     ElementMap::Place place = map.find(element + i);
                     int64_t count = std::min(place.numElements, size - i);
                     function(place.byteOffset, count);
                     i += count;
                   }
                 });
}

/// Calls function(width) with the bytes of an element as a constant.
template <typename Function>
static void withWidth(uint64_t size, Function function) {
  switch (size) {
  case 1:
    return function(std::integral_constant<size_t, 1>());
  case 2:
    return function(std::integral_constant<size_t, 2>());
  default:
    return function(std::integral_constant<size_t, 4>());
  }
}

std::vector<uint8_t> gather(const at::Tensor &tensor,
                            const SpyreStorageImpl &storage) {
  ElementMap map(*storage.format);
  std::vector<uint8_t> packed(tensor.numel() * map.elementSizeInBytes());
  const uint8_t *bytes = storage.deviceBytes();
  uint8_t *next = packed.data();
  withWidth(map.elementSizeInBytes(), [&](auto width) {
    forEachRun(tensor, map, [&](uint64_t offset, int64_t count) {
      if (count == 1)
        std::memcpy(next, bytes + offset, width);
      else
        std::memcpy(next, bytes + offset, count * width);
      next += count * width;
    });
  });
  return packed;
}

void scatter(const std::vector<uint8_t> &packed, const at::Tensor &tensor,
             SpyreStorageImpl &storage) {
  ElementMap map(*storage.format);
  uint8_t *bytes = storage.writableBytes();
  const uint8_t *next = packed.data();
  withWidth(map.elementSizeInBytes(), [&](auto width) {
    forEachRun(tensor, map, [&](uint64_t offset, int64_t count) {
      if (count == 1)
        std::memcpy(bytes + offset, next, width);
      else
        std::memcpy(bytes + offset, next, count * width);
      next += count * width;
    });
  });
}

/// Whether a large tensor is moved piece by piece as fast as at once: elements
/// that follow each other do so on the device, too.
static bool goesInPieces(const at::Tensor &tensor) {
  if (tensor.numel() < kLargeElements || !isNative(tensor))
    return false;
  return tensor.stride(-1) == 1 &&
         ElementMap(*storageOf(tensor).format).hasRuns();
}

/// Bytes of a tensor's elements on the device.
static int64_t deviceBytesOf(const at::Tensor &tensor) {
  const SpyreStorageImpl &storage = storageOf(tensor);
  return tensor.numel() * (storage.format && isNative(tensor)
                               ? static_cast<int64_t>(storageBytes(
                                     storage.format->layout.format))
                               : static_cast<int64_t>(tensor.itemsize()));
}

TransferScope traceTransfer(TransferKind kind, const at::Tensor &onDevice) {
  return {kind, storageOf(onDevice).deviceIndex(), deviceBytesOf(onDevice)};
}

/// The values of a native or raw tensor that has elements.
static at::Tensor readValues(const at::Tensor &source) {
  SpyreStorageImpl &storage = storageOf(source);
  if (isNative(source) &&
      source.numel() < storage.format->numElements() / kImageRatio) {
    std::vector<uint8_t> packed = gather(source, storage);
    HostDtype dtype = storage.format->dtype;
    TensorLayout layout = packedLayout(source.numel(), dtype);
    packed.resize(layout.sizeInBytes());
    at::Tensor result =
        at::empty(source.sizes(), source.options().device(c10::kCPU));
    deviceToHost(packed.data(), layout, {source.numel()}, {1}, dtype,
                 result.mutable_data_ptr());
    return result;
  }
  return ownBytes(readHostImage(storage), source.sizes(), source.strides(),
                  source.storage_offset(), source.scalar_type());
}

at::Tensor toHost(const at::Tensor &source) {
  if (source.device().is_cpu())
    return source;
  if (source.numel() == 0)
    return at::empty_strided(source.sizes(), source.strides(),
                             source.options().device(c10::kCPU));
  checkBacked(source, storageOf(source));
  TransferScope scope = traceTransfer(TransferKind::DeviceToHost, source);
  return readValues(source);
}

/// Whether a host dtype cannot hold all that the device holds for it.
static bool isNarrow(const at::Tensor &source) {
  return isNative(source) &&
         storageOf(source).format->layout.format == DataFormat::SEN169_FP16 &&
         source.scalar_type() != c10::kBool;
}

/// The values of a tensor of which isNarrow() holds, in fp32.
static at::Tensor readWide(const at::Tensor &source) {
  const SpyreStorageImpl &storage = storageOf(source);
  bool few = source.numel() < storage.format->numElements() / kImageRatio;
  std::vector<uint8_t> codes =
      few ? gather(source, storage) : readCodes(storage);
  auto count = static_cast<int64_t>(codes.size() / sizeof(uint16_t));
  at::Tensor result =
      at::empty({count}, at::TensorOptions().dtype(c10::kFloat));
  decodeDL16(reinterpret_cast<const uint16_t *>(codes.data()),
             result.mutable_data_ptr<float>(), count);
  return few ? result.view(source.sizes())
             : result.as_strided(source.sizes(), source.strides(),
                                 source.storage_offset());
}

at::Tensor widen(const at::Tensor &source) {
  if (source.device().is_cpu() || source.numel() == 0 || !isNarrow(source))
    return toHost(source);
  checkBacked(source, storageOf(source));
  TransferScope scope = traceTransfer(TransferKind::DeviceToHost, source);
  return readWide(source);
}

void copyToHost(const at::Tensor &source, const at::Tensor &destination) {
  bool isSame = destination.scalar_type() == source.scalar_type();
  if (!goesInPieces(source)) {
    destination.copy_(isSame ? toHost(source) : widen(source));
    return;
  }
  checkBacked(source, storageOf(source));
  TransferScope scope = traceTransfer(TransferKind::DeviceToHost, source);
  bool isWide = !isSame && isNarrow(source);
  forEachPiece(source, destination,
               [&](const at::Tensor &from, const at::Tensor &to, int64_t) {
                 to.copy_(isWide ? readWide(from) : readValues(from));
               });
}

/// Stores values of another dtype in an fp16 or bf16 tensor with a single
/// rounding.
static void storeRounded(const at::Tensor &values,
                         const at::Tensor &destination,
                         SpyreStorageImpl &storage) {
  bool whole = isWholeHome(destination);
  at::Tensor image = at::empty_strided(
      destination.sizes(),
      whole ? destination.strides().vec()
            : c10::TensorType::contiguousStridesOf(destination.sizes()),
      at::TensorOptions().dtype(c10::kFloat));
  image.copy_(values);
  std::vector<uint8_t> codes(image.numel() * sizeof(uint16_t));
  encodeDL16(image.const_data_ptr<float>(),
             reinterpret_cast<uint16_t *>(codes.data()), image.numel());
  if (whole)
    writeCodes(codes.data(), storage);
  else
    scatter(codes, destination, storage);
}

/// Stores the elements of a host image whose bytes are not those of `old`; the
/// others keep their device bits.
static void storeChanged(const std::vector<uint8_t> &image,
                         const std::vector<uint8_t> &old,
                         SpyreStorageImpl &storage) {
  int64_t item = c10::elementSize(scalarType(storage.format->dtype));
  int64_t total = storage.format->numElements();
  std::vector<int64_t> changed;
  for (int64_t i = 0; i < total; ++i)
    if (std::memcmp(&image[i * item], &old[i * item], item) != 0)
      changed.push_back(i);
  if (changed.empty())
    return;
  auto changedCount = static_cast<int64_t>(changed.size());
  std::vector<uint8_t> values(changedCount * item);
  for (int64_t i = 0; i < changedCount; ++i)
    std::memcpy(&values[i * item], &image[changed[i] * item], item);
  TensorLayout layout = packedLayout(changedCount, storage.format->dtype);
  std::vector<uint8_t> packed(layout.sizeInBytes());
  convertToDevice(values.data(), storage.format->dtype, {changedCount}, {1},
                  layout, packed.data());
  ElementMap map(*storage.format);
  uint64_t size = map.elementSizeInBytes();
  uint8_t *bytes = storage.writableBytes();
  for (int64_t i = 0; i < changedCount; ++i)
    std::memcpy(bytes + map.byteOffset(changed[i]), &packed[i * size], size);
}

/// Stores values in a tensor of another dtype over the host image, or in raw
/// bytes.
static void storeInImage(const at::Tensor &source,
                         const at::Tensor &destination,
                         SpyreStorageImpl &storage) {
  c10::ScalarType dtype = destination.scalar_type();
  if (storage.failure() && destination.is_contiguous() &&
      destination.nbytes() == storage.nbytes()) {
    // There is nothing to keep.
    at::Tensor image = source.expand(destination.sizes()).to(dtype);
    writeHostImage(storage, static_cast<const uint8_t *>(
                                image.contiguous().const_data_ptr()));
    return;
  }
  std::vector<uint8_t> image = readHostImage(storage);
  std::vector<uint8_t> old = image;
  auto items = static_cast<int64_t>(image.size() / c10::elementSize(dtype));
  at::from_blob(image.data(), {items}, at::TensorOptions().dtype(dtype))
      .as_strided(destination.sizes(), destination.strides(),
                  destination.storage_offset())
      .copy_(source);
  if (storage.format)
    storeChanged(image, old, storage);
  else
    writeHostImage(storage, image.data());
}

/// Stores values in a tensor that has elements, without a trace of it.
static void storeValues(const at::Tensor &source,
                        const at::Tensor &destination) {
  SpyreStorageImpl &storage = storageOf(destination);
  if (!isNative(destination))
    return storeInImage(source, destination, storage);
  int64_t count = destination.numel();
  c10::ScalarType dtype = destination.scalar_type();
  if (source.scalar_type() != dtype &&
      (dtype == c10::kHalf || dtype == c10::kBFloat16)) {
    storeRounded(source, destination, storage);
    return;
  }
  const StorageFormat &format = *storage.format;
  if (isWholeHome(destination)) {
    at::Tensor image = source;
    if (source.scalar_type() != dtype ||
        source.sizes() != destination.sizes() ||
        source.strides() != destination.strides()) {
      image = at::empty_strided(destination.sizes(), destination.strides(),
                                at::TensorOptions().dtype(dtype));
      image.copy_(source);
    }
    convertToDevice(image.const_data_ptr(), format, storage.writableBytes());
    return;
  }
  at::Tensor values = source.expand(destination.sizes()).to(dtype).contiguous();
  TensorLayout layout = packedLayout(count, format.dtype);
  std::vector<uint8_t> packed(layout.sizeInBytes());
  convertToDevice(values.const_data_ptr(), format.dtype, {count}, {1}, layout,
                  packed.data());
  scatter(packed, destination, storage);
}

/// What comes before a tensor's elements are stored.
static void beginStore(const at::Tensor &destination) {
  SpyreStorageImpl &storage = storageOf(destination);
  checkBacked(destination, storage);
  if (isWholeHome(destination))
    storage.beginOverwrite();
}

/// What is not an element of a whole storage that is stored piece by piece.
static void clearPadding(const at::Tensor &destination) {
  SpyreStorageImpl &storage = storageOf(destination);
  if (isWholeHome(destination) &&
      storage.format->layout.sizeInBytes() !=
          destination.numel() * storageBytes(storage.format->layout.format))
    std::memset(storage.writableBytes(), 0, storage.deviceSizeInBytes());
}

static void storeFromHost(const at::Tensor &source,
                          const at::Tensor &destination) {
  if (destination.numel() == 0)
    return;
  TransferScope scope = traceTransfer(TransferKind::HostToDevice, destination);
  beginStore(destination);
  bool isImage = isWholeHome(destination) &&
                 source.scalar_type() == destination.scalar_type() &&
                 source.sizes() == destination.sizes() &&
                 source.strides() == destination.strides();
  // A transposition is slow piece by piece.
  bool hasRows = source.dim() > 0 && source.stride(-1) <= 1;
  if (isImage || !hasRows || !goesInPieces(destination)) {
    storeValues(source, destination);
    return;
  }
  clearPadding(destination);
  forEachPiece(source.expand(destination.sizes()), destination,
               [](const at::Tensor &from, const at::Tensor &to, int64_t) {
                 storeValues(from, to);
               });
}

void storeMade(const at::Tensor &destination,
               const std::function<at::Tensor(c10::IntArrayRef sizes,
                                              int64_t first)> &make) {
  at::assert_no_internal_overlap(destination);
  if (destination.numel() == 0)
    return;
  TransferScope scope = traceTransfer(TransferKind::HostToDevice, destination);
  beginStore(destination);
  if (!isNative(destination) || destination.numel() < kLargeElements) {
    storeValues(make(destination.sizes(), 0), destination);
    return;
  }
  clearPadding(destination);
  forEachPiece(destination, destination,
               [&](const at::Tensor &to, const at::Tensor &, int64_t first) {
                 storeValues(make(to.sizes(), first), to);
               });
}

void fromHost(const at::Tensor &source, const at::Tensor &destination) {
  storeFromHost(source, destination);
  // After the transfer, which may have said more.
  if (destination.numel() != 0 && destination.scalar_type() == c10::kLong &&
      source.scalar_type() == c10::kLong)
    warnAboutInt64();
}

void changeLayout(const at::Tensor &tensor, const TensorLayout &layout) {
  SpyreStorageImpl &storage = formattedStorage(tensor);
  if (storage.format->layout == layout)
    return;
  // The layout may count dimensions by themselves that were one until now.
  bool isWhole = isWholeHome(tensor);
  StorageFormat format =
      makeFormat(isWhole ? tensor.sizes() : storage.format->sizes,
                 isWhole ? tensor.strides() : storage.format->strides,
                 scalarType(storage.format->dtype), &layout);
  if (storage.nbytes() == 0) {
    storage.format = std::move(format);
    return;
  }
  std::vector<uint8_t> codes = readCodes(storage); // waits for queued work
  c10::DataPtr block =
      allocate(storage.deviceIndex(),
               std::max<uint64_t>(storage.nbytes(), layout.sizeInBytes()));
  storage.set_data_ptr_noswap(std::move(block));
  storage.format = std::move(format);
  std::memset(storage.writableBytes(), 0, storage.deviceSizeInBytes());
  writeCodes(codes.data(), storage);
}

bool describes(const TensorLayout &layout, const at::Tensor &view) {
  SpyreStorageImpl &storage = formattedStorage(view);
  checkBacked(view, storage);
  if (!isNative(view) || layout.format != storage.format->layout.format ||
      layout.arrangement != storage.format->layout.arrangement)
    return false;
  StorageFormat format =
      makeFormat(view.sizes(), view.strides(), view.scalar_type(), &layout);
  ElementMap own(*storage.format), given(format);
  int64_t offset = view.storage_offset();
  bool agree = true;
  forEachElement(view, [&](int64_t element) {
    agree &= own.byteOffset(element) - own.byteOffset(offset) ==
             given.byteOffset(element - offset);
  });
  return agree;
}

} // namespace spyre::pytorch
