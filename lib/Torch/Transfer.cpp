// SPDX-License-Identifier: Apache-2.0
#include "Transfer.h"
#include "Eager.h"
#include "Trace.h"

#include "Spyre/Device/DL16.h"
#include "Spyre/Device/HostTransfer.h"
#include "Spyre/Support/Error.h"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

namespace spyre::device {

namespace {

bool readSwitch(const char *variable, bool byDefault) {
  const char *text = std::getenv(variable);
  std::string value = text ? text : "";
  if (value.empty())
    return byDefault;
  if (value == "1" || value == "true" || value == "on")
    return true;
  if (value == "0" || value == "false" || value == "off")
    return false;
  throw Error(std::string("environment variable ") + variable +
              ": expected 1, true, on, 0, false or off, found '" + value + "'");
}

/// Read on first use, so that an error reaches the caller and the next use
/// reports it again.
std::atomic<bool> &warnDowncast() {
  static std::atomic<bool> enabled{
      readSwitch("TORCH_SPYRE_DOWNCAST_WARN", true)};
  return enabled;
}

/// Whether an int64 value that a transfer would lose is an error.
bool isDowncastError() {
  static const bool enabled = readSwitch("TORCH_SPYRE_DOWNCAST_ERROR", false);
  return enabled;
}

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

void checkBacked(const at::Tensor &tensor, const SpyreStorageImpl &storage) {
  uint64_t needed = at::detail::computeStorageNbytes(
      tensor.sizes(), tensor.strides(), tensor.itemsize(),
      tensor.storage_offset());
  TORCH_CHECK(needed <= storage.nbytes(), "tensor addresses ", needed,
              " bytes of a storage that has ", storage.nbytes(), " bytes");
}

/// The device elements of a tensor, packed.
std::vector<uint8_t> gather(const at::Tensor &tensor,
                            const SpyreStorageImpl &storage) {
  ElementMap map(*storage.format);
  uint64_t size = map.elementSizeInBytes();
  std::vector<uint8_t> packed(tensor.numel() * size);
  const uint8_t *bytes = storage.deviceBytes();
  uint8_t *next = packed.data();
  auto run = [&](auto width) {
    forEachElement(tensor, [&](int64_t element) {
      std::memcpy(next, bytes + map.byteOffset(element), width);
      next += width;
    });
  };
  switch (size) {
  case 1:
    run(std::integral_constant<size_t, 1>());
    break;
  case 2:
    run(std::integral_constant<size_t, 2>());
    break;
  default:
    run(std::integral_constant<size_t, 4>());
    break;
  }
  return packed;
}

void scatter(const std::vector<uint8_t> &packed, const at::Tensor &tensor,
             const SpyreStorageImpl &storage) {
  ElementMap map(*storage.format);
  uint64_t size = map.elementSizeInBytes();
  uint8_t *bytes = storage.deviceBytes();
  const uint8_t *next = packed.data();
  forEachElement(tensor, [&](int64_t element) {
    std::memcpy(bytes + map.byteOffset(element), next, size);
    next += size;
  });
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

/// Whether the first transfer of int64 values, and the first that lost some,
/// have warned: a loss is said once even after the other warning.
std::atomic<bool> hasWarnedOfInt64{false}, hasWarnedOfLoss{false};

/// Users of the card filter both for "does not support int64".
void warnAboutInt64() {
  if (downcastWarning() &&
      (!hasWarnedOfInt64.exchange(true) || c10::WarningUtils::get_warnAlways()))
    TORCH_WARN("the spyre device does not support int64: tensors of it have "
               "32-bit elements, and values outside that range become the "
               "nearest inside (TORCH_SPYRE_DOWNCAST_WARN=0 silences this, "
               "TORCH_SPYRE_DOWNCAST_ERROR=1 makes the loss of a value an "
               "error)");
}

void warnAboutLoss(const TransferStats &stats) {
  if (stats.int64OutOfRange == 0 || !downcastWarning())
    return;
  hasWarnedOfInt64 = true;
  if (!hasWarnedOfLoss.exchange(true) || c10::WarningUtils::get_warnAlways())
    TORCH_WARN("the spyre device does not support int64 beyond 32 bits: ",
               stats.firstInt64OutOfRange, " of a transfer does not fit; ",
               stats.int64OutOfRange,
               " of its values became the nearest that do "
               "(TORCH_SPYRE_DOWNCAST_WARN=0 silences this, "
               "TORCH_SPYRE_DOWNCAST_ERROR=1 makes it an error)");
}

/// hostToDevice plus the warnings about values that are out of range: of int64,
/// and of bf16 (spec/numerics.md, "Host formats").
void convert(const void *image, HostDtype dtype,
             const std::vector<int64_t> &sizes,
             const std::vector<int64_t> &strides, const TensorLayout &layout,
             uint8_t *device) {
  TransferStats stats;
  bool raises = dtype == HostDtype::Int64 && isDowncastError();
  hostToDevice(image, dtype, sizes, strides, layout, device,
               raises ? nullptr : &stats);
  warnAboutLoss(stats);
  if (stats.bf16OutOfRange) {
    TORCH_WARN_ONCE(stats.bf16OutOfRange,
                    " finite bfloat16 values of a tensor are outside the range "
                    "of the device format (2^-31 < |x| < 2^33) and became zero "
                    "or infinity");
  }
}

/// A format of literal integers whose elements are as wide as `layout`'s, so
/// that bits move without conversion.
std::pair<HostDtype, TensorLayout> literal(TensorLayout layout) {
  switch (storageBytes(layout.format)) {
  case 1:
    layout.format = DataFormat::SENINT8;
    return {HostDtype::Int8, layout};
  case 2:
    layout.format = DataFormat::SENINT16;
    return {HostDtype::Int16, layout};
  default:
    layout.format = DataFormat::IEEE_INT32;
    return {HostDtype::Int32, layout};
  }
}

/// Device elements of a whole home in the order of the host image, and back.
std::vector<uint8_t> readCodes(const SpyreStorageImpl &storage) {
  const StorageFormat &format = *storage.format;
  auto [dtype, layout] = literal(format.layout);
  std::vector<uint8_t> codes(format.numElements() * hostBytes(dtype));
  deviceToHost(storage.deviceBytes(), layout, format.sizes, format.strides,
               dtype, codes.data());
  return codes;
}

void writeCodes(const void *codes, const SpyreStorageImpl &storage) {
  const StorageFormat &format = *storage.format;
  auto [dtype, layout] = literal(format.layout);
  hostToDevice(codes, dtype, format.sizes, format.strides, layout,
               storage.deviceBytes());
}

void storeWhole(const void *image, SpyreStorageImpl &storage) {
  convertToDevice(image, *storage.format, storage.deviceBytes());
}

} // namespace

void convertToDevice(const void *image, const StorageFormat &format,
                     uint8_t *device) {
  convert(image, format.dtype, format.sizes, format.strides, format.layout,
          device);
}

void warnAboutInt64Image(const void *image, const StorageFormat &format) {
  if (format.dtype != HostDtype::Int64 || isDowncastError())
    return;
  TransferStats stats;
  checkInt64Image(image, format.sizes, format.strides, stats);
  warnAboutLoss(stats);
  warnAboutInt64();
}

bool downcastWarning() { return warnDowncast(); }
void setDowncastWarning(bool enabled) { warnDowncast() = enabled; }

ElementMap::ElementMap(const StorageFormat &format)
    : elementSize(storageBytes(format.layout.format)) {
  std::vector<DeviceDim> resolved =
      resolveDeviceDims(format.layout, format.sizes, format.strides);
  std::vector<uint64_t> scales(resolved.size());
  uint64_t scale = elementSize;
  for (size_t d = resolved.size(); d-- > 0;) {
    scales[d] = scale;
    scale *= format.layout.deviceSize[d];
  }
  for (size_t h = 0; h < format.sizes.size(); ++h) {
    if (format.sizes[h] <= 1)
      continue;
    Dim dim{format.strides[h], {}};
    for (size_t d = 0; d < resolved.size(); ++d) {
      if (resolved[d].hostDim != static_cast<int64_t>(h))
        continue;
      int64_t next = INT64_MAX;
      for (const DeviceDim &other : resolved)
        if (other.hostDim == static_cast<int64_t>(h) &&
            other.step > resolved[d].step)
          next = std::min(next, other.step);
      dim.terms.push_back(
          {resolved[d].step,
           next == INT64_MAX ? INT64_MAX : next / resolved[d].step, scales[d]});
    }
    dims.push_back(std::move(dim));
  }
  std::sort(dims.begin(), dims.end(),
            [](const Dim &a, const Dim &b) { return a.stride > b.stride; });
}

uint64_t ElementMap::byteOffset(int64_t hostElement) const {
  uint64_t result = 0;
  for (const Dim &dim : dims) {
    int64_t index = hostElement / dim.stride;
    hostElement -= index * dim.stride;
    for (const Term &term : dim.terms) {
      int64_t coordinate = term.step == 1 ? index : index / term.step;
      if (term.modulus != INT64_MAX)
        coordinate %= term.modulus;
      result += coordinate * term.scale;
    }
  }
  return result;
}

std::vector<uint8_t> readHostImage(SpyreStorageImpl &storage) {
  std::vector<uint8_t> image(storage.nbytes());
  if (image.empty())
    return image;
  if (storage.format)
    deviceToHost(storage.deviceBytes(), storage.format->layout,
                 storage.format->sizes, storage.format->strides,
                 storage.format->dtype, image.data());
  else
    std::memcpy(image.data(), storage.deviceBytes(), image.size());
  return image;
}

void writeHostImage(SpyreStorageImpl &storage, const uint8_t *image) {
  if (storage.nbytes() == 0)
    return;
  storage.beginOverwrite();
  if (storage.format)
    storeWhole(image, storage);
  else
    std::memcpy(storage.deviceBytes(), image, storage.nbytes());
}

/// Bytes of a tensor's elements on the device.
static int64_t deviceBytesOf(const at::Tensor &tensor) {
  const SpyreStorageImpl &storage = storageOf(tensor);
  return tensor.numel() * (storage.format && isNative(tensor)
                               ? static_cast<int64_t>(storageBytes(
                                     storage.format->layout.format))
                               : static_cast<int64_t>(tensor.itemsize()));
}

static TransferScope traceTransfer(TransferKind kind,
                                   const at::Tensor &onDevice) {
  return {kind, storageOf(onDevice).deviceIndex(), deviceBytesOf(onDevice)};
}

at::Tensor toHost(const at::Tensor &source) {
  if (source.device().is_cpu())
    return source;
  SpyreStorageImpl &storage = storageOf(source);
  if (source.numel() == 0)
    return at::empty_strided(source.sizes(), source.strides(),
                             source.options().device(c10::kCPU));
  checkBacked(source, storage);
  TransferScope scope = traceTransfer(TransferKind::DeviceToHost, source);
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

/// Float values of a tensor without the limits of its host dtype: fp16 and
/// bf16 tensors come as fp32.
static at::Tensor widen(const at::Tensor &source) {
  if (source.device().is_cpu())
    return source;
  SpyreStorageImpl &storage = storageOf(source);
  if (source.numel() == 0 || !isNative(source) ||
      storage.format->layout.format != DataFormat::SEN169_FP16 ||
      source.scalar_type() == c10::kBool)
    return toHost(source);
  checkBacked(source, storage);
  TransferScope scope = traceTransfer(TransferKind::DeviceToHost, source);
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

static void storeFromHost(const at::Tensor &source,
                          const at::Tensor &destination) {
  SpyreStorageImpl &storage = storageOf(destination);
  int64_t count = destination.numel();
  if (count == 0)
    return;
  checkBacked(destination, storage);
  TransferScope scope = traceTransfer(TransferKind::HostToDevice, destination);
  if (isWholeHome(destination))
    storage.beginOverwrite();
  c10::ScalarType dtype = destination.scalar_type();
  if (!isNative(destination)) {
    if (storage.failure() && destination.is_contiguous() &&
        destination.nbytes() == storage.nbytes()) {
      // There is nothing to keep.
      at::Tensor image = source.expand(destination.sizes()).to(dtype);
      writeHostImage(storage, static_cast<const uint8_t *>(
                                  image.contiguous().const_data_ptr()));
      return;
    }
    // Another dtype over the host image, or raw bytes.
    std::vector<uint8_t> image = readHostImage(storage);
    std::vector<uint8_t> old = image;
    auto items = static_cast<int64_t>(image.size() / c10::elementSize(dtype));
    at::from_blob(image.data(), {items}, at::TensorOptions().dtype(dtype))
        .as_strided(destination.sizes(), destination.strides(),
                    destination.storage_offset())
        .copy_(source);
    if (!storage.format) {
      writeHostImage(storage, image.data());
      return;
    }
    // Elements whose bytes did not change keep their device bits.
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
    convert(values.data(), storage.format->dtype, {changedCount}, {1}, layout,
            packed.data());
    ElementMap map(*storage.format);
    uint64_t size = map.elementSizeInBytes();
    uint8_t *bytes = storage.deviceBytes();
    for (int64_t i = 0; i < changedCount; ++i)
      std::memcpy(bytes + map.byteOffset(changed[i]), &packed[i * size], size);
    return;
  }

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
    storeWhole(image.const_data_ptr(), storage);
    return;
  }
  at::Tensor values = source.expand(destination.sizes()).to(dtype).contiguous();
  TensorLayout layout = packedLayout(count, format.dtype);
  std::vector<uint8_t> packed(layout.sizeInBytes());
  convert(values.const_data_ptr(), format.dtype, {count}, {1}, layout,
          packed.data());
  scatter(packed, destination, storage);
}

void fromHost(const at::Tensor &source, const at::Tensor &destination) {
  storeFromHost(source, destination);
  // After the transfer, which may have said more.
  if (destination.numel() != 0 && destination.scalar_type() == c10::kLong &&
      source.scalar_type() == c10::kLong)
    warnAboutInt64();
}

/// Whether two tensors may share elements.
static bool overlaps(const at::Tensor &a, const at::Tensor &b) {
  // PyTorch finds views that are not dense too hard, wherever they lie.
  if (!a.is_alias_of(b))
    return false;
  at::MemOverlapStatus status = at::get_overlap_status(a, b);
  return status != at::MemOverlapStatus::No;
}

void copyOnDevice(const at::Tensor &source, const at::Tensor &destination) {
  if (destination.numel() == 0)
    return;
  SpyreStorageImpl &from = storageOf(source);
  SpyreStorageImpl &to = storageOf(destination);
  checkBacked(source, from);
  checkBacked(destination, to);
  TransferKind kind = from.deviceIndex() == to.deviceIndex()
                          ? TransferKind::DeviceToDevice
                          : TransferKind::CardToCard;

  // Copies of whole storages (deepcopy, save) come as uint8 tensors over
  // them: the copy takes the format with the bytes.
  if (source.scalar_type() == c10::kByte &&
      destination.scalar_type() == c10::kByte && &from != &to && from.format &&
      !to.format && from.nbytes() == to.nbytes() &&
      static_cast<size_t>(source.numel()) == from.nbytes() &&
      static_cast<size_t>(destination.numel()) == to.nbytes() &&
      source.is_contiguous() && destination.is_contiguous()) {
    TransferScope scope = traceTransfer(kind, source);
    to.beginOverwrite();
    c10::DataPtr block = allocate(to.deviceIndex(), from.deviceSizeInBytes());
    const Allocation *allocation = allocationOf(block);
    std::memcpy(allocation->card->memory.at(allocation->address),
                from.deviceBytes(), from.deviceSizeInBytes());
    to.set_data_ptr_noswap(std::move(block));
    to.format = from.format;
    return;
  }

  bool native = isNative(source) && isNative(destination);
  if (native && isWholeHome(destination) && to.failure())
    to.beginOverwrite();
  if (native && from.deviceIndex() == to.deviceIndex() &&
      !overlaps(source, destination)) {
    static const c10::OperatorHandle op =
        c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", "");
    if (callNative(op, {destination, source, false}))
      return;
  }
  bool sameBits = native &&
                  from.format->layout.format == to.format->layout.format &&
                  (destination.scalar_type() != c10::kBool ||
                   source.scalar_type() == c10::kBool);
  if (sameBits) {
    TransferScope scope = traceTransfer(kind, destination);
    if (isWholeHome(source) && isWholeHome(destination) &&
        source.strides() == destination.strides()) {
      if (from.format->layout == to.format->layout)
        std::memmove(to.deviceBytes(), from.deviceBytes(),
                     from.format->layout.sizeInBytes());
      else
        writeCodes(readCodes(from).data(), to);
      return;
    }
    std::vector<uint8_t> packed =
        gather(source.expand(destination.sizes()), from);
    if (isWholeHome(destination))
      std::memset(to.deviceBytes(), 0, to.deviceSizeInBytes()); // padding
    scatter(packed, destination, to);
    return;
  }
  fromHost(widen(source.expand(destination.sizes())), destination);
}

void copyTensor(const at::Tensor &source, const at::Tensor &destination,
                bool nonBlocking) {
  at::assert_no_internal_overlap(destination);
  if (destination.numel() == 0)
    return;
  if (nonBlocking && copyAsynchronously(source, destination))
    return;
  at::Tensor expanded = source.sizes() == destination.sizes()
                            ? source
                            : source.expand(destination.sizes());
  bool fromSpyre = source.device().type() == kSpyre;
  bool toSpyre = destination.device().type() == kSpyre;
  TORCH_CHECK((fromSpyre || source.device().is_cpu()) &&
                  (toSpyre || destination.device().is_cpu()),
              "cannot copy from device ", source.device(), " to device ",
              destination.device());
  if (fromSpyre && toSpyre) {
    copyOnDevice(expanded, destination);
    return;
  }
  if (toSpyre) {
    fromHost(expanded, destination);
    return;
  }
  SpyreStorageImpl &storage = storageOf(source);
  if (isNative(source) && isWholeHome(source) &&
      destination.scalar_type() == source.scalar_type() &&
      destination.sizes() == source.sizes() &&
      destination.strides() == source.strides()) {
    checkBacked(source, storage);
    TransferScope scope = traceTransfer(TransferKind::DeviceToHost, source);
    deviceToHost(storage.deviceBytes(), storage.format->layout,
                 storage.format->sizes, storage.format->strides,
                 storage.format->dtype, destination.mutable_data_ptr());
    return;
  }
  destination.copy_(destination.scalar_type() == source.scalar_type()
                        ? toHost(expanded)
                        : widen(expanded));
}

void changeLayout(SpyreStorageImpl &storage, const TensorLayout &layout) {
  StorageFormat format = *storage.format;
  if (format.layout == layout)
    return;
  format.layout = layout;
  format = makeFormat(format.sizes, format.strides, scalarType(format.dtype),
                      &format.layout);
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
  std::memset(storage.deviceBytes(), 0, storage.deviceSizeInBytes());
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

void fillTensor(const at::Tensor &tensor, const c10::Scalar &value) {
  if (tensor.numel() == 0)
    return;
  SpyreStorageImpl &storage = storageOf(tensor);
  at::assert_no_internal_overlap(tensor);
  checkBacked(tensor, storage);
  static const c10::OperatorHandle op =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::fill_", "Scalar");
  // The transfer says at once what does not fit.
  bool fits = !value.isIntegral(false) ||
              value.toLong() == static_cast<int32_t>(value.toLong());
  if (isNative(tensor) && isWholeHome(tensor) && storage.failure())
    storage.beginOverwrite();
  if (fits && isNative(tensor) && callNative(op, {tensor, value}))
    return;
  // Zero is all-zero bits in every device format.
  bool isZero = value.isBoolean() ? !value.toBool()
                : value.isIntegral(false)
                    ? value.toLong() == 0
                    : value.isFloatingPoint() && value.toDouble() == 0.0 &&
                          !std::signbit(value.toDouble());
  if (isZero && isNative(tensor) && isWholeHome(tensor)) {
    TransferScope scope = traceTransfer(TransferKind::Fill, tensor);
    std::memset(storage.deviceBytes(), 0, storage.deviceSizeInBytes());
    return;
  }
  fromHost(at::full({}, value, at::TensorOptions().dtype(tensor.dtype()))
               .expand(tensor.sizes()),
           tensor);
}

} // namespace spyre::device
