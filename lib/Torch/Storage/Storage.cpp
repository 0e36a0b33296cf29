// SPDX-License-Identifier: Apache-2.0
#include "Storage.h"
#include "../Python/Interpreter.h"
#include "Sticks.h"

#include "Spyre/Support/Error.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <numeric>
#include <string>
#include <unordered_set>

namespace spyre::pytorch {

namespace {

std::atomic<uint64_t> nextSerial{1};

constexpr size_t kMaxLayoutRank = 6;

/// Python's name of a dtype.
std::string dtypeName(c10::ScalarType dtype) {
  std::string name(c10::getDtypeNames(dtype).first);
  return name.empty() ? c10::toString(dtype) : name;
}

c10::intrusive_ptr<c10::StorageImpl>
createStorage(c10::StorageImpl::use_byte_size_t useByteSize,
              c10::SymInt sizeInBytes, c10::DataPtr pointer,
              c10::Allocator *owner, bool resizable) {
  if (!pointer && !sizeInBytes.is_heap_allocated()) {
    uint64_t bytes = sizeInBytes.as_int_unchecked();
    pointer = allocate(pointer.device().type() == kSpyre
                           ? resolveIndex(pointer.device())
                           : currentDevice(),
                       bytes);
    // Raw bytes get a dtype later; zeros are valid in every dtype.
    if (const Allocation *allocation = allocationOf(pointer))
      std::memset(allocation->card->memory.at(allocation->address), 0, bytes);
  }
  return c10::make_intrusive<SpyreStorageImpl>(
      useByteSize, std::move(sizeInBytes), std::move(pointer),
      owner ? owner : allocator(), resizable);
}

[[maybe_unused]] const bool factoryRegistered = [] {
  c10::SetStorageImplCreate(kSpyre, &createStorage);
  return true;
}();

/// All storages, to find one by its data pointer.
struct Registry {
  std::mutex mutex;
  std::unordered_set<SpyreStorageImpl *> storages;
};

Registry &registry() {
  static auto *instance = new Registry;
  return *instance;
}

/// PyTorch reads and writes storages through tensors that it makes of their
/// data pointer alone (at::from_blob). Puts such a tensor on the storage that
/// it means, whose host image it then is.
void adoptStorage(const at::Tensor &tensor) {
  c10::StorageImpl *found =
      tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  if (dynamic_cast<SpyreStorageImpl *>(found) || !found->data())
    return;
  Registry &all = registry();
  std::unique_lock<std::mutex> lock(all.mutex);
  for (SpyreStorageImpl *storage : all.storages) {
    if (storage->data() != found->data() || storage->nbytes() < found->nbytes())
      continue;
    c10::Storage owner(
        c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage));
    lock.unlock();
    tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(owner));
    return;
  }
}

size_t hostBytesOf(const StorageFormat &format, c10::IntArrayRef sizes,
                   c10::IntArrayRef strides) {
  return at::detail::computeStorageNbytes(sizes, strides,
                                          hostBytes(format.dtype));
}

at::Tensor makeTensorOn(StorageFormat format, c10::IntArrayRef sizes,
                        c10::IntArrayRef strides, c10::DataPtr block) {
  auto type = c10::scalarTypeToTypeMeta(scalarType(format.dtype));
  auto storage = c10::make_intrusive<SpyreStorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      static_cast<int64_t>(hostBytesOf(format, sizes, strides)),
      std::move(block), allocator(),
      /*resizable=*/true);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      type);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  storage->format = std::move(format);
  return tensor;
}

} // namespace

int64_t StorageFormat::numElements() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                         std::multiplies<>());
}

SpyreStorageImpl::SpyreStorageImpl(use_byte_size_t useByteSize,
                                   c10::SymInt sizeInBytes,
                                   c10::DataPtr pointer,
                                   c10::Allocator *allocator, bool resizable)
    : c10::StorageImpl(useByteSize, std::move(sizeInBytes), std::move(pointer),
                       allocator, resizable),
      serialNumber(nextSerial++) {
  Registry &all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.storages.insert(this);
}

SpyreStorageImpl::~SpyreStorageImpl() {
  // A lock of the parent's may never be released in a fork.
  if (isInBadFork())
    return;
  Registry &all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.storages.erase(this);
}

uint64_t SpyreStorageImpl::deviceAddress() const {
  const Allocation *allocation = allocationOf(data_ptr());
  return allocation ? allocation->address : 0;
}

int64_t SpyreStorageImpl::elementAddress() const {
  return static_cast<int64_t>(deviceAddress()) /
         storageBytes(format->layout.format);
}

uint64_t SpyreStorageImpl::deviceSizeInBytes() const {
  const Allocation *allocation = allocationOf(data_ptr());
  return allocation ? allocation->sizeInBytes : 0;
}

void SpyreStorageImpl::beginUse(runtime::Stream &stream, bool isWritten) {
  std::lock_guard<std::mutex> lock(usesMutex);
  for (const Use &use : uses) {
    uint64_t number = isWritten ? use.last : use.lastWrite;
    if (use.stream == &stream || use.stream->isFinished(number))
      continue;
    runtime::Event event;
    event.record(*use.stream);
    event.block(stream);
  }
}

void SpyreStorageImpl::addUse(runtime::Stream &stream, uint64_t number,
                              bool isWritten) {
  uint64_t write = isWritten ? number : 0;
  std::lock_guard<std::mutex> lock(usesMutex);
  for (Use &use : uses)
    if (use.stream == &stream) {
      use.last = std::max(use.last, number);
      use.lastWrite = std::max(use.lastWrite, write);
      return;
    }
  uses.push_back({&stream, number, write});
}

void SpyreStorageImpl::waitForUses() const {
  // In a fork nobody does the work.
  if (isInBadFork())
    return;
  std::vector<Use> pending;
  {
    std::lock_guard<std::mutex> lock(usesMutex);
    uses.erase(std::remove_if(uses.begin(), uses.end(),
                              [](const Use &use) {
                                return use.stream->isFinished(use.last);
                              }),
               uses.end());
    pending = uses;
  }
  if (!pending.empty())
    withoutGIL([&] {
      for (const Use &use : pending)
        use.stream->wait(use.last);
    });
}

void SpyreStorageImpl::setFailure(runtime::FailureRef why) {
  std::lock_guard<std::mutex> lock(usesMutex);
  lastFailure = std::move(why);
}

runtime::FailureRef SpyreStorageImpl::failure() const {
  std::lock_guard<std::mutex> lock(usesMutex);
  return lastFailure;
}

void SpyreStorageImpl::beginOverwrite() {
  waitForUses();
  ownMemory();
  setFailure(nullptr);
}

void SpyreStorageImpl::ownMemory() {
  const Allocation *shared = allocationOf(data_ptr());
  if (!shared || !shared->isShared())
    return;
  waitForUses();
  set_data_ptr_noswap(copySticks(format->tightLayout(), format->layout,
                                 shared->card->memory.at(shared->address),
                                 format->layout, deviceIndex(),
                                 shared->sizeInBytes));
}

uint8_t *SpyreStorageImpl::writableBytes() {
  ownMemory();
  return const_cast<uint8_t *>(deviceBytes());
}

const uint8_t *SpyreStorageImpl::deviceBytes() const {
  Card &owner = card(deviceIndex()); // throws in a fork
  waitForUses();
  if (runtime::FailureRef why = failure()) {
    // Reading is a synchronising call: the error is raised here.
    owner.forget(why);
    std::rethrow_exception(why->error);
  }
  const Allocation *allocation = allocationOf(data_ptr());
  return allocation ? allocation->card->memory.at(allocation->address)
                    : nullptr;
}

void SpyreStorageImpl::release_resources() {
  format.reset();
  c10::StorageImpl::release_resources();
}

uint64_t blockSize(const StorageFormat &format, uint64_t hostBytes) {
  if (hostBytes == 0)
    return 0;
  return std::max<uint64_t>(format.layout.sizeInBytes(), hostBytes);
}

bool isSupportedDtype(c10::ScalarType dtype) {
  switch (dtype) {
#define SPYRE_HOST_DTYPE(name, pytorchName, bytes, format, elementType, npy,   \
                         scalarType)                                           \
  case c10::ScalarType::scalarType:
#include "Spyre/Device/NumberFormats.def"
    return true;
  default:
    return false;
  }
}

/// "torch.float16, ... and torch.int64"
static std::string supportedDtypes() {
  std::vector<std::string> names = {
#define SPYRE_HOST_DTYPE(name, pytorchName, bytes, format, elementType, npy,   \
                         scalarType)                                           \
  "torch." pytorchName,
#include "Spyre/Device/NumberFormats.def"
  };
  std::string last = names.back();
  names.pop_back();
  return c10::Join(", ", names) + " and " + last;
}

HostDtype hostDtype(c10::ScalarType dtype) {
  switch (dtype) {
#define SPYRE_HOST_DTYPE(name, pytorchName, bytes, format, elementType, npy,   \
                         scalarType)                                           \
  case c10::ScalarType::scalarType:                                            \
    return HostDtype::name;
#include "Spyre/Device/NumberFormats.def"
  default:
    throwUnsupportedDtype("Spyre backend does not support dtype torch." +
                          dtypeName(dtype) + "; supported are " +
                          supportedDtypes());
  }
}

c10::ScalarType scalarType(HostDtype dtype) {
  switch (dtype) {
#define SPYRE_HOST_DTYPE(name, pytorchName, bytes, format, elementType, npy,   \
                         scalarType)                                           \
  case HostDtype::name:                                                        \
    return c10::ScalarType::scalarType;
#include "Spyre/Device/NumberFormats.def"
  }
  throw Error("unknown host dtype");
}

bool isDense(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0)
      return true;
    if (sizes[i] != 1)
      dims.emplace_back(strides[i], sizes[i]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t expected = 1;
  for (auto [stride, size] : dims) {
    if (stride != expected)
      return false;
    expected *= size;
  }
  return true;
}

/// The layout of a tensor for which nobody has chosen one.
static TensorLayout defaultLayout(const StorageFormat &format) {
  std::vector<int64_t> order(format.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  return TensorLayout(format.sizes, format.strides, format.dtype, order);
}

void checkLayout(const StorageFormat &format) {
  format.layout.checkHolds(format.dtype);
  if (format.numElements() != 0)
    resolveDeviceDims(format.layout, format.sizes, format.strides);
}

/// Makes the home one that `layout` counts, and takes the layout.
static void putInLayout(StorageFormat &format, const TensorLayout &layout) {
  layout.checkHolds(format.dtype);
  auto [sizes, strides] =
      mergeUncountedDims(layout, format.sizes, format.strides);
  try {
    if (format.numElements() != 0)
      resolveDeviceDims(layout, sizes, strides);
  } catch (const Error &error) {
    std::string fitting =
        format.sizes.size() <= kMaxLayoutRank
            ? "; what fits is, for instance, " + defaultLayout(format).str()
            : "";
    throw Error(error.what() + fitting);
  }
  format.sizes = std::move(sizes);
  format.strides = std::move(strides);
  format.layout = layout;
}

StorageFormat makeFormat(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                         c10::ScalarType dtype, const TensorLayout *layout) {
  StorageFormat format;
  format.dtype = hostDtype(dtype);
  if ((layout || sizes.size() <= kMaxLayoutRank) && isDense(sizes, strides)) {
    format.sizes = sizes.vec();
    format.strides = strides.vec();
  } else {
    int64_t span = static_cast<int64_t>(
        at::detail::computeStorageNbytes(sizes, strides, 1));
    format.sizes = {span};
    format.strides = {1};
  }
  if (layout)
    putInLayout(format, *layout);
  else
    format.layout = defaultLayout(format);
  return format;
}

at::Tensor makeTensor(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                      c10::ScalarType dtype, c10::Device device,
                      const TensorLayout *layout) {
  at::detail::check_size_nonnegative(sizes);
  hostDtype(dtype);
  c10::DeviceIndex index = resolveIndex(device);
  StorageFormat format = makeFormat(sizes, strides, dtype, layout);
  uint64_t bytes = blockSize(format, hostBytesOf(format, sizes, strides));
  return makeTensorOn(std::move(format), sizes, strides,
                      allocate(index, bytes));
}

at::Tensor makeTensor(const StorageFormat &format, c10::DeviceIndex index) {
  size_t bytes = hostBytesOf(format, format.sizes, format.strides);
  return makeTensor(format, allocate(index, blockSize(format, bytes)));
}

at::Tensor makeTensor(const StorageFormat &format, c10::DataPtr block) {
  return makeTensorOn(format, format.sizes, format.strides, std::move(block));
}

c10::intrusive_ptr<c10::StorageImpl> makeRawStorage(c10::DeviceIndex index,
                                                    uint64_t sizeInBytes) {
  return createStorage(c10::StorageImpl::use_byte_size_t(),
                       static_cast<int64_t>(sizeInBytes),
                       c10::DataPtr(nullptr, c10::Device(kSpyre, index)),
                       allocator(), /*resizable=*/true);
}

SpyreStorageImpl &asSpyreStorage(c10::StorageImpl &storage) {
  auto *result = dynamic_cast<SpyreStorageImpl *>(&storage);
  TORCH_CHECK(result,
              "expected a storage of a spyre tensor, found one that "
              "something else made on ",
              storage.device());
  return *result;
}

SpyreStorageImpl &asSpyreStorage(const c10::Storage &storage) {
  return asSpyreStorage(*storage.unsafeGetStorageImpl());
}

SpyreStorageImpl &storageOf(const at::Tensor &tensor) {
  TORCH_CHECK(tensor.defined() && tensor.device().type() == kSpyre,
              "expected a tensor on a spyre device, found ",
              tensor.defined() ? tensor.device().str() : "no tensor");
  adoptStorage(tensor);
  return asSpyreStorage(tensor.unsafeGetTensorImpl()->unsafe_storage());
}

bool isNative(const at::Tensor &tensor) {
  const SpyreStorageImpl &storage = storageOf(tensor);
  return storage.format &&
         scalarType(storage.format->dtype) == tensor.scalar_type();
}

bool isWholeHome(const at::Tensor &tensor) {
  const SpyreStorageImpl &storage = storageOf(tensor);
  if (!storage.format || tensor.storage_offset() != 0)
    return false;
  const StorageFormat &format = *storage.format;
  // Strides of size-1 dimensions do not matter.
  auto isHome = [&](c10::IntArrayRef sizes, c10::IntArrayRef strides) {
    if (sizes != c10::IntArrayRef(format.sizes))
      return false;
    for (size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] != 1 && strides[d] != format.strides[d])
        return false;
    return true;
  };
  if (isHome(tensor.sizes(), tensor.strides()))
    return true;
  // The layout may count several of the tensor's dimensions as one.
  if (tensor.dim() <= static_cast<int64_t>(format.sizes.size()) ||
      tensor.numel() != format.numElements() ||
      !isDense(tensor.sizes(), tensor.strides()))
    return false;
  HomeShape shape = mergeUncountedDims(format.layout, tensor.sizes().vec(),
                                       tensor.strides().vec());
  return isHome(shape.sizes, shape.strides);
}

at::Tensor homeOf(const at::Tensor &tensor) {
  const StorageFormat &format = *storageOf(tensor).format;
  bool isHome = tensor.storage_offset() == 0 &&
                tensor.sizes() == c10::IntArrayRef(format.sizes) &&
                tensor.strides() == c10::IntArrayRef(format.strides);
  return isHome ? tensor : tensor.as_strided(format.sizes, format.strides, 0);
}

std::optional<TensorLayout> layoutFor(const StorageFormat &format,
                                      HostDtype dtype) {
  if (format.numElements() == 0)
    return std::nullopt;
  std::optional<TensorLayout> layout = changeStick(
      format.tightLayout(), format.sizes, format.strides, deviceFormat(dtype));
  // An arrangement is that of a format.
  if (layout && layout->format != format.layout.format)
    layout->arrangement = ElementArrangement::STANDARD;
  return layout;
}

} // namespace spyre::pytorch
