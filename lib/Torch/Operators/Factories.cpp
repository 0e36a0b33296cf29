// SPDX-License-Identifier: Apache-2.0
// Making tensors and changing which storage and sizes they have.
#include "../Eager/Eager.h"
#include "../Storage/Storage.h"
#include "../Storage/StorageFormatting.h"
#include "Fallback.h"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/RangeUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <torch/library.h>

#include <cstring>
#include <limits>

namespace spyre::pytorch {

namespace {

void checkOptions(std::optional<c10::Layout> layout,
                  std::optional<bool> pinMemory) {
  TORCH_CHECK(c10::layout_or_default(layout) == c10::kStrided,
              "spyre tensors have layout torch.strided, not ",
              c10::layout_or_default(layout));
  TORCH_CHECK(!c10::pinned_memory_or_default(pinMemory),
              "only CPU tensors can be pinned");
}

c10::Device deviceOr(std::optional<c10::Device> device) {
  return device ? *device : c10::Device(kSpyre);
}

/// Memory that nobody has written, filled as on the CPU where PyTorch is to be
/// deterministic (torch.utils.deterministic.fill_uninitialized_memory).
at::Tensor unwritten(at::Tensor tensor) {
  const at::Context &context = at::globalContext();
  if (!context.deterministicAlgorithms() ||
      !context.deterministicFillUninitializedMemory())
    return tensor;
  // The largest that the device has.
  if (tensor.scalar_type() == c10::kLong)
    return tensor.fill_(std::numeric_limits<int32_t>::max());
  return at::native::fill_empty_deterministic_(tensor);
}

at::Tensor emptyMemoryFormat(c10::SymIntArrayRef symbolicSizes,
                             std::optional<c10::ScalarType> dtype,
                             std::optional<c10::Layout> layout,
                             std::optional<c10::Device> device,
                             std::optional<bool> pinMemory,
                             std::optional<c10::MemoryFormat> memoryFormat) {
  checkOptions(layout, pinMemory);
  c10::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(symbolicSizes);
  at::detail::check_size_nonnegative(sizes);
  c10::MemoryFormat format =
      memoryFormat.value_or(c10::MemoryFormat::Contiguous);
  std::vector<int64_t> strides;
  switch (format) {
  case c10::MemoryFormat::Contiguous:
  case c10::MemoryFormat::Preserve:
    strides = c10::TensorType::contiguousStridesOf(sizes);
    break;
  case c10::MemoryFormat::ChannelsLast:
    TORCH_CHECK(sizes.size() == 4, "required rank 4 tensor to use "
                                   "channels_last format");
    strides = c10::get_channels_last_strides_2d(sizes);
    break;
  case c10::MemoryFormat::ChannelsLast3d:
    TORCH_CHECK(sizes.size() == 5, "required rank 5 tensor to use "
                                   "channels_last_3d format");
    strides = c10::get_channels_last_strides_3d(sizes);
    break;
  default:
    TORCH_CHECK(false, "unsupported memory format ", format);
  }
  return unwritten(makeTensor(sizes, strides, c10::dtype_or_default(dtype),
                              deviceOr(device)));
}

at::Tensor emptyStrided(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides,
                        std::optional<c10::ScalarType> dtype,
                        std::optional<c10::Layout> layout,
                        std::optional<c10::Device> device,
                        std::optional<bool> pinMemory) {
  checkOptions(layout, pinMemory);
  TORCH_CHECK(sizes.size() == strides.size(), "dimensionality of sizes (",
              sizes.size(), ") must match dimensionality of strides (",
              strides.size(), ")");
  c10::IntArrayRef intStrides = C10_AS_INTARRAYREF_SLOW(strides);
  for (int64_t stride : intStrides)
    TORCH_CHECK(stride >= 0,
                "negative strides are not supported: ", intStrides);
  return unwritten(makeTensor(C10_AS_INTARRAYREF_SLOW(sizes), intStrides,
                              c10::dtype_or_default(dtype), deviceOr(device)));
}

/// Makes the storage large enough for what `self` addresses.
void growStorage(const at::Tensor &self) {
  if (self.numel() == 0)
    return;
  uint64_t needed = at::detail::computeStorageNbytes(
      self.sizes(), self.strides(), self.itemsize(), self.storage_offset());
  SpyreStorageImpl &storage = storageOf(self);
  if (needed > storage.nbytes())
    resizeStorage(storage, needed, &self);
}

const at::Tensor &resize(const at::Tensor &self, c10::SymIntArrayRef sizes,
                         std::optional<c10::MemoryFormat> memoryFormat) {
  c10::IntArrayRef newSizes = C10_AS_INTARRAYREF_SLOW(sizes);
  at::detail::check_size_nonnegative(newSizes);
  c10::TensorImpl *impl = self.unsafeGetTensorImpl();
  if (self.sizes() != newSizes)
    impl->set_sizes_contiguous(newSizes);
  if (memoryFormat) {
    TORCH_CHECK(*memoryFormat != c10::MemoryFormat::Preserve,
                "unsupported memory format ", *memoryFormat);
    impl->empty_tensor_restride(*memoryFormat);
  }
  growStorage(self);
  return self;
}

at::Tensor &setStorageOffset(at::Tensor &self, c10::Storage source,
                             c10::SymInt offset, c10::SymIntArrayRef sizes,
                             c10::SymIntArrayRef strides) {
  int64_t intOffset = offset.guard_int(__FILE__, __LINE__);
  c10::IntArrayRef intSizes = C10_AS_INTARRAYREF_SLOW(sizes);
  c10::IntArrayRef intStrides = C10_AS_INTARRAYREF_SLOW(strides);
  TORCH_CHECK(source.device().type() == kSpyre,
              "cannot set storage of a tensor on device ", self.device(),
              " to one on device ", source.device());
  at::native::checkSetStorage(self, std::move(source), intOffset, intSizes,
                              intStrides);
  c10::TensorImpl *impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(intOffset);
  if (intStrides.data())
    impl->set_sizes_and_strides(intSizes, intStrides);
  else
    impl->set_sizes_contiguous(intSizes);
  growStorage(self);
  formatFor(self);
  return self;
}

at::Tensor &setStorage(at::Tensor &self, c10::Storage source) {
  TORCH_CHECK(source.nbytes() % self.itemsize() == 0, "storage of ",
              source.nbytes(), " bytes does not hold whole elements of dtype ",
              self.scalar_type());
  c10::SymInt size = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return setStorageOffset(self, std::move(source), 0, {size}, {});
}

at::Tensor &setTensor(at::Tensor &self, const at::Tensor &source) {
  if (self.is_same(source))
    return self;
  return setStorageOffset(self, source.storage(), source.sym_storage_offset(),
                          source.sym_sizes(), source.sym_strides());
}

at::Tensor &setEmpty(at::Tensor &self) {
  return setStorageOffset(
      self, c10::Storage(makeRawStorage(self.device().index(), 0)), 0,
      {c10::SymInt(0)}, {});
}

c10::OperatorHandle operatorOf(const char *name, const char *overload) {
  return *c10::Dispatcher::singleton().findSchema({name, overload});
}

/// A line of numbers is stored in as many elements without another size for
/// them: `store` stores it in one row, if they are not one already.
template <typename Store>
bool storeAsLine(at::Tensor &out, int64_t size, Store store) {
  if (out.dim() == 1 || out.numel() != size)
    return false;
  bool isDense = out.is_contiguous();
  at::Tensor line =
      isDense ? out.view({size}) : at::empty({size}, out.options());
  store(line);
  if (!isDense)
    out.copy_(line.view(out.sizes()));
  return true;
}

/// The end of a range only says how many elements there are: a program that
/// fills a tensor of any size, from any start, serves all.
at::Tensor &arangeOut(const at::Scalar &start, const at::Scalar &end,
                      const at::Scalar &step, at::Tensor &out) {
  at::assert_no_internal_overlap(out);
  auto countElements = [&] {
    return out.scalar_type() == c10::kLong
               ? at::native::compute_arange_size<int64_t>(start, end, step)
               : at::native::compute_arange_size<double>(start, end, step);
  };
  if (out.dim() != 1 && !start.isComplex() && !end.isComplex() &&
      !step.isComplex() &&
      storeAsLine(out, countElements(),
                  [&](at::Tensor &line) { arangeOut(start, end, step, line); }))
    return out;
  bool isWhole =
      out.scalar_type() == c10::kLong || out.scalar_type() == c10::kInt;
  bool isPlain =
      out.dim() == 1 && (out.is_floating_point() ||
                         (isWhole && start.isIntegral(/*includeBool=*/false) &&
                          step.isIntegral(/*includeBool=*/false)));
  auto fill =
      c10::Dispatcher::singleton().findSchema({"spyre::fill_range_", ""});
  if (isPlain && fill && !start.isComplex() && !step.isComplex()) {
    int64_t size = countElements();
    at::native::resize_output(out, {size});
    if (size == 0 || callNative(*fill, {out, start, step}))
      return out;
  }
  torch::jit::Stack stack{start, end, step, out};
  runBoxed(operatorOf("aten::arange", "start_out"), &stack);
  return out;
}

at::Tensor &linspaceOut(const at::Scalar &start, const at::Scalar &end,
                        int64_t steps, at::Tensor &out) {
  if (storeAsLine(out, steps, [&](at::Tensor &line) {
        linspaceOut(start, end, steps, line);
      }))
    return out;
  torch::jit::Stack stack{start, end, steps, out};
  runBoxed(operatorOf("aten::linspace", "out"), &stack);
  return out;
}

at::Tensor &logspaceOut(const at::Scalar &start, const at::Scalar &end,
                        int64_t steps, double base, at::Tensor &out) {
  if (storeAsLine(out, steps, [&](at::Tensor &line) {
        logspaceOut(start, end, steps, base, line);
      }))
    return out;
  torch::jit::Stack stack{start, end, steps, base, out};
  runBoxed(operatorOf("aten::logspace", "out"), &stack);
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("arange.start_out", arangeOut);
  m.impl("empty.memory_format", emptyMemoryFormat);
  m.impl("empty_strided", emptyStrided);
  m.impl("linspace.out", linspaceOut);
  m.impl("logspace.out", logspaceOut);
  m.impl("resize_", resize);
  m.impl("set_.source_Storage", setStorage);
  m.impl("set_.source_Storage_storage_offset", setStorageOffset);
  m.impl("set_.source_Tensor", setTensor);
  m.impl("set_", setEmpty);
}

} // namespace

at::Tensor makeNumber(double number, c10::DeviceIndex device, HostDtype dtype) {
  at::Tensor tensor =
      makeTensor({}, {}, scalarType(dtype), c10::Device(kSpyre, device));
  uint8_t *bytes = storageOf(tensor).writableBytes();
  auto store = [&](auto value) { std::memcpy(bytes, &value, sizeof(value)); };
  if (dtype == HostDtype::Float32)
    store(static_cast<float>(number));
  else
    store(static_cast<int32_t>(number));
  return tensor;
}

} // namespace spyre::pytorch
