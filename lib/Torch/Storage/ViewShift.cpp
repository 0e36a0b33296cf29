// SPDX-License-Identifier: Apache-2.0
#include "ViewShift.h"

#include "Spyre/Runtime/Memory/DeviceMemory.h"

#include <algorithm>

namespace spyre::pytorch {

namespace {

/// A dimension of a storage's home with more than one element.
struct HomeDim {
  int64_t size, stride;
  /// Moving by this many elements moves by this many bytes on the device,
  /// wherever the move starts; 0: no such number is known.
  int64_t granule = 0, bytes = 0;
};

/// The home's dimensions, the outermost first.
std::vector<HomeDim> describeHome(const StorageFormat &format) {
  std::vector<DeviceDim> resolved =
      resolveDeviceDims(format.layout, format.sizes, format.strides);
  std::vector<HomeDim> dims;
  for (size_t h = 0; h < format.sizes.size(); ++h) {
    if (format.sizes[h] <= 1)
      continue;
    HomeDim dim{format.sizes[h], format.strides[h]};
    std::vector<int64_t> steps;
    int64_t scale = static_cast<int64_t>(storageBytes(format.layout.format));
    for (size_t d = resolved.size(); d-- > 0;) {
      if (resolved[d].hostDim == static_cast<int64_t>(h)) {
        steps.push_back(resolved[d].step);
        if (resolved[d].step > dim.granule) {
          dim.granule = resolved[d].step;
          dim.bytes = scale;
        }
      }
      scale *= format.layout.deviceSize[d];
    }
    // A move by the largest step leaves the smaller coordinates alone if they
    // repeat within it.
    for (int64_t step : steps)
      if (dim.granule % step != 0)
        dim.granule = 0;
    dims.push_back(dim);
  }
  std::sort(dims.begin(), dims.end(), [](const HomeDim &a, const HomeDim &b) {
    return a.stride > b.stride;
  });
  return dims;
}

/// The coordinates of an offset, in elements, along the home's dimensions.
std::vector<int64_t> coordinatesOf(int64_t offset,
                                   const std::vector<HomeDim> &dims) {
  std::vector<int64_t> result;
  for (const HomeDim &dim : dims) {
    result.push_back(offset / dim.stride);
    offset %= dim.stride;
  }
  return result;
}

/// Whether no element of a view has a coordinate that runs over into the next
/// outer dimension, so that coordinates of offset and strides simply add up.
bool staysInside(const at::Tensor &view, const std::vector<HomeDim> &dims) {
  std::vector<int64_t> last = coordinatesOf(view.storage_offset(), dims);
  for (int64_t k = 0; k < view.dim(); ++k) {
    std::vector<int64_t> step = coordinatesOf(view.stride(k), dims);
    for (size_t d = 0; d < dims.size(); ++d)
      last[d] += (view.size(k) - 1) * step[d];
  }
  for (size_t d = 1; d < dims.size(); ++d)
    if (last[d] >= dims[d].size)
      return false;
  return true;
}

ViewShift shiftTogether(const SpyreStorageImpl &storage,
                        const std::vector<const at::Tensor *> &views) {
  for (const at::Tensor *view : views)
    if (view->storage_offset() == 0 || view->numel() == 0)
      return {};
  const StorageFormat &format = *storage.format;
  std::vector<HomeDim> dims = describeHome(format);
  // A move along the outermost dimension changes no other coordinate.
  size_t count = dims.empty() ? 0 : 1;
  if (std::all_of(views.begin(), views.end(), [&](const at::Tensor *view) {
        return staysInside(*view, dims);
      }))
    count = dims.size();
  std::vector<int64_t> first = coordinatesOf(views[0]->storage_offset(), dims);
  for (const at::Tensor *view : views) {
    std::vector<int64_t> other = coordinatesOf(view->storage_offset(), dims);
    for (size_t d = 0; d < dims.size(); ++d)
      first[d] = std::min(first[d], other[d]);
  }
  ViewShift shift;
  int64_t item = static_cast<int64_t>(storageBytes(format.layout.format));
  for (size_t d = 0; d < count; ++d) {
    if (dims[d].granule == 0 ||
        dims[d].bytes % runtime::DeviceMemory::kBlockInBytes != 0)
      continue;
    int64_t steps = first[d] / dims[d].granule;
    shift.hostElements += steps * dims[d].granule * dims[d].stride;
    shift.deviceElements += steps * dims[d].bytes / item;
  }
  return shift;
}

} // namespace

bool staysInStorage(const runtime::ArgumentInfo &argument, int64_t hostElements,
                    const std::vector<int64_t> &sizes) {
  // What is reached where the sizes are the largest is not exceeded at others.
  runtime::ArrayStorage home = argument.storageAt(sizes);
  std::vector<size_t> dims;
  for (size_t d = 0; d < home.shape.size(); ++d)
    if (home.shape[d] > 1)
      dims.push_back(d);
  std::sort(dims.begin(), dims.end(), [&](size_t a, size_t b) {
    return home.strides[a] > home.strides[b];
  });
  // The sum of whole steps that shiftViews() made comes apart again.
  for (size_t d : dims) {
    int64_t moved = hostElements / home.strides[d];
    hostElements %= home.strides[d];
    if (moved + argument.reach[d] > home.shape[d] && moved != 0)
      return false;
  }
  return hostElements == 0;
}

std::vector<ViewShift> shiftViews(const std::vector<at::Tensor> &tensors) {
  std::vector<ViewShift> shifts(tensors.size());
  if (std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor &tensor) {
        return tensor.storage_offset() == 0;
      }))
    return shifts;
  std::vector<bool> isDone(tensors.size(), false);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (isDone[i] || tensors[i].storage_offset() == 0)
      continue;
    SpyreStorageImpl &storage = storageOf(tensors[i]);
    if (!storage.format)
      continue;
    std::vector<const at::Tensor *> views;
    std::vector<size_t> same;
    for (size_t j = 0; j < tensors.size(); ++j)
      if (&storageOf(tensors[j]) == &storage) {
        views.push_back(&tensors[j]);
        same.push_back(j);
      }
    ViewShift shift = shiftTogether(storage, views);
    for (size_t j : same) {
      shifts[j] = shift;
      isDone[j] = true;
    }
  }
  return shifts;
}

} // namespace spyre::pytorch
