// SPDX-License-Identifier: Apache-2.0
// Operators that move values: copies, fills and reading a scalar.
#include "Copy.h"
#include "../Eager/Eager.h"
#include "../Storage/Sticks.h"
#include "../Storage/StorageImage.h"
#include "AsyncCopy.h"
#include "Transfer.h"

#include "Spyre/Device/HostTransfer.h"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/NativeFunctions.h>
#include <torch/library.h>

#include <cstring>

namespace spyre::pytorch {

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
    StorageFormat format = from.format->withoutRoom();
    to.set_data_ptr_noswap(copySticks(
        format.layout, from.format->layout, from.deviceBytes(), format.layout,
        to.deviceIndex(), blockSize(format, from.nbytes())));
    to.format = std::move(format);
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
        std::memmove(to.writableBytes(), from.deviceBytes(),
                     from.format->layout.sizeInBytes());
      else
        writeCodes(readCodes(from).data(), to);
      return;
    }
    std::vector<uint8_t> packed =
        gather(source.expand(destination.sizes()), from);
    if (isWholeHome(destination))
      std::memset(to.writableBytes(), 0, to.deviceSizeInBytes()); // padding
    scatter(packed, destination, to);
    return;
  }
  fromHost(widen(source.expand(destination.sizes())), destination);
}

void copyTensor(const at::Tensor &source, const at::Tensor &destination,
                bool nonBlocking) {
  at::assert_no_internal_overlap(destination);
  at::assert_no_partial_overlap(destination, source);
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
  copyToHost(expanded, destination);
}

at::Tensor withoutRepeats(const at::Tensor &tensor) {
  std::vector<int64_t> sizes = tensor.sizes().vec();
  for (size_t dim : c10::irange(sizes.size()))
    if (tensor.stride(dim) == 0 && tensor.size(dim) > 1)
      sizes[dim] = 1;
  return tensor.as_strided(sizes, tensor.strides());
}

void fillTensor(const at::Tensor &tensor, const c10::Scalar &value) {
  if (tensor.numel() == 0)
    return;
  if (at::has_internal_overlap(tensor) == at::MemOverlap::Yes)
    return fillTensor(withoutRepeats(tensor), value);
  SpyreStorageImpl &storage = storageOf(tensor);
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
    std::memset(storage.writableBytes(), 0, storage.deviceSizeInBytes());
    return;
  }
  fromHost(at::full({}, value, at::TensorOptions().dtype(tensor.dtype()))
               .expand(tensor.sizes()),
           tensor);
}

namespace {

at::Tensor copyFrom(const at::Tensor &self, const at::Tensor &destination,
                    bool nonBlocking) {
  copyTensor(self, destination, nonBlocking);
  return destination;
}

// PyTorch negates or conjugates views of some tensors when they are read. Its
// own kernels for these would write to a copy of the destination, because the
// schema of _copy_from does not say that it is written.

at::Tensor copyFromNegated(const at::Tensor &self,
                           const at::Tensor &destination, bool nonBlocking) {
  at::Tensor source = self.is_neg() ? at::neg(at::_neg_view(self)) : self;
  if (!destination.is_neg()) {
    at::_copy_from(source, destination, nonBlocking);
    return destination;
  }
  source = at::neg(source.to(destination.scalar_type()));
  at::_copy_from(source, at::_neg_view(destination), nonBlocking);
  return destination;
}

at::Tensor copyFromConjugated(const at::Tensor &self,
                              const at::Tensor &destination, bool nonBlocking) {
  if (destination.is_conj())
    at::_copy_from(self.conj().resolve_conj(), destination.conj(), nonBlocking);
  else
    at::_copy_from(self.resolve_conj(), destination, nonBlocking);
  return destination;
}

at::Tensor copyFromAndResize(const at::Tensor &self,
                             const at::Tensor &destination) {
  if (destination.sizes() != self.sizes())
    destination.resize_(self.sizes());
  copyTensor(self, destination);
  return destination;
}

c10::Scalar localScalarDense(const at::Tensor &self) {
  TORCH_CHECK(self.numel() == 1, "a tensor with ", self.numel(),
              " elements cannot be converted to a scalar");
  return toHost(self).item();
}

/// Whether each floating type has a number.
bool isSmall(const c10::Scalar &value) {
  return !value.isComplex() &&
         std::abs(value.toDouble()) <=
             std::numeric_limits<c10::Float8_e4m3fn>::max();
}

at::Tensor &fillScalar(at::Tensor &self, const c10::Scalar &value) {
  if (!self.is_floating_point() || isSmall(value) || self.numel() == 0) {
    fillTensor(self, value);
    return self;
  }
  // The CPU refuses numbers that the type lacks, but for a single element.
  at::Tensor like = at::empty({self.numel() == 1 ? 1 : 2},
                              at::TensorOptions().dtype(self.dtype()));
  like.fill_(value);
  fillTensor(self, self.numel() == 1 ? like.item() : value);
  return self;
}

at::Tensor &fillFromTensor(at::Tensor &self, const at::Tensor &value) {
  TORCH_CHECK(value.dim() == 0,
              "fill_ only supports a 0-dimensional value "
              "tensor, found one with ",
              value.dim(), " dimensions");
  // Integers wrap, and numbers too large are infinite, as in a copy.
  fillTensor(self, self.scalar_type() == c10::kBool
                       ? value.item()
                       : value.cpu().to(self.scalar_type()).item());
  return self;
}

at::Tensor &zero(at::Tensor &self) {
  fillTensor(self, 0);
  return self;
}

// one_hot asserts in compiled graphs that its indices are in range.
void assertAsync(const at::Tensor &self) {
  TORCH_CHECK(at::is_nonzero(self),
              "Expected Tensor with single nonzero value, but got zero");
}

void assertAsyncWithMessage(const at::Tensor &self, c10::string_view message) {
  TORCH_CHECK(at::is_nonzero(self),
              message.empty() ? "Assertion is failed" : message);
}

bool equal(const at::Tensor &self, const at::Tensor &other) {
  TORCH_CHECK(self.device() == other.device(),
              "Expected all tensors to be on the same device, found ",
              self.device(), " and ", other.device());
  TORCH_CHECK(self.scalar_type() == other.scalar_type(),
              "Expected tensors of one dtype, found ", self.scalar_type(),
              " and ", other.scalar_type());
  return self.sizes() == other.sizes() &&
         (self.numel() == 0 || at::eq(self, other).all().item<bool>());
}

/// A copy that keeps the dimension order of `self`'s device layout, so that
/// copied and converted weights stay as module.to() stored them; nothing where
/// `self` is a view or has another format.
std::optional<at::Tensor> copyInLayoutOf(const at::Tensor &self,
                                         c10::ScalarType dtype,
                                         c10::Device device,
                                         bool nonBlocking = false) {
  // _to_copy also comes here for CPU tensors that go to a spyre device.
  if (self.device().type() != kSpyre || !isNative(self) || !isWholeHome(self) ||
      self.is_neg() || !isSupportedDtype(dtype))
    return std::nullopt;
  const StorageFormat &format = *storageOf(self).format;
  std::optional<TensorLayout> layout = layoutFor(format, hostDtype(dtype));
  if (!layout)
    return std::nullopt;
  at::Tensor result =
      makeTensor(format.sizes, format.strides, dtype, device, &*layout);
  // Of the home, some of whose dimensions may be several of the tensor's.
  copyTensor(homeOf(self), result, nonBlocking);
  result.unsafeGetTensorImpl()->set_sizes_and_strides(self.sizes(),
                                                      self.strides());
  return result;
}

bool preserves(std::optional<c10::MemoryFormat> format) {
  return format.value_or(c10::MemoryFormat::Preserve) ==
         c10::MemoryFormat::Preserve;
}

at::Tensor clone(const at::Tensor &self,
                 std::optional<c10::MemoryFormat> memoryFormat) {
  std::optional<at::Tensor> result;
  if (preserves(memoryFormat))
    result = copyInLayoutOf(self, self.scalar_type(), self.device());
  return result ? *result : at::native::clone(self, memoryFormat);
}

at::Tensor toCopy(const at::Tensor &self, std::optional<c10::ScalarType> dtype,
                  std::optional<c10::Layout> layout,
                  std::optional<c10::Device> device,
                  std::optional<bool> pinMemory, bool nonBlocking,
                  std::optional<c10::MemoryFormat> memoryFormat) {
  c10::Device target = device.value_or(self.device());
  std::optional<at::Tensor> result;
  if (target.type() == kSpyre && preserves(memoryFormat) &&
      c10::layout_or_default(layout) == c10::kStrided &&
      !c10::pinned_memory_or_default(pinMemory))
    result = copyInLayoutOf(self, dtype.value_or(self.scalar_type()), target,
                            nonBlocking);
  return result ? *result
                : at::native::_to_copy(self, dtype, layout, device, pinMemory,
                                       nonBlocking, memoryFormat);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", copyFrom);
  m.impl("_copy_from_and_resize", copyFromAndResize);
  m.impl("_local_scalar_dense", localScalarDense);
  m.impl("_assert_async", assertAsync);
  m.impl("_assert_async.msg", assertAsyncWithMessage);
  m.impl("fill_.Scalar", fillScalar);
  m.impl("fill_.Tensor", fillFromTensor);
  m.impl("zero_", zero);
  m.impl("clone", clone);
  m.impl("_to_copy", toCopy);
  m.impl("equal", equal);
}

TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", copyFromNegated); }

TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", copyFromConjugated);
}

} // namespace

} // namespace spyre::pytorch
