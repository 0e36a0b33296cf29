// SPDX-License-Identifier: Apache-2.0
// Layouts, device formats, and what a tensor's storage looks like.
#include "../Eager/Eager.h"
#include "../Launch/Growth.h"
#include "../Python/Interpreter.h"
#include "../Storage/Storage.h"
#include "../Storage/StorageFormatting.h"
#include "../Storage/StorageImage.h"
#include "../Storage/ViewShift.h"
#include "../Transfer/ElementRun.h"
#include "../Transfer/ProcessMemory.h"
#include "../Transfer/RankBarrier.h"
#include "../Transfer/Transfer.h"
#include "Bindings.h"

#include "Spyre/Device/DataFormat.h"
#include "Spyre/Device/TensorLayout.h"

#include <c10/core/DeviceGuard.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>

namespace py = pybind11;

namespace spyre::pytorch {

namespace {

constexpr int kPickleVersion = 3;

/// A member of an enumeration whose last one is given. Throws ValueError.
template <typename Enum>
Enum memberOf(const py::handle &value, Enum last, const char *name) {
  auto number = py::int_(py::reinterpret_borrow<py::object>(value)).cast<int>();
  TORCH_CHECK_VALUE(number >= 0 && number <= static_cast<int>(last), name,
                    " in a pickled SpyreTensorLayout: expected 0 to ",
                    static_cast<int>(last), ", found ", number);
  return static_cast<Enum>(number);
}

/// Reads the state of a pickle of version 1 (the dimension map of the host is
/// between size and stride map), 2 (no arrangement) or 3.
TensorLayout layoutOfPickle(const py::tuple &state) {
  int64_t version = state.empty() ? 0 : state[0].cast<int64_t>();
  size_t expected = version == 1 ? 5 : version == 2 ? 4 : 5;
  if (version < 1 || version > kPickleVersion || state.size() != expected)
    throw py::value_error("expected a pickled SpyreTensorLayout of version 1 "
                          "to " +
                          std::to_string(kPickleVersion));
  size_t strideMap = version == 1 ? 3 : 2;
  auto format =
      memberOf(state[strideMap + 1], DataFormat::SEN18F_FP24, "device_dtype");
  auto arrangement = ElementArrangement::STANDARD;
  if (version == kPickleVersion)
    arrangement =
        memberOf(state[4], ElementArrangement::EXX2, "element_arrangement");
  return TensorLayout(state[1].cast<std::vector<int64_t>>(),
                      state[strideMap].cast<std::vector<int64_t>>(), format,
                      arrangement);
}

TensorLayout layoutOfHostTensor(std::vector<int64_t> sizes,
                                std::vector<int64_t> strides,
                                c10::ScalarType dtype,
                                std::vector<int64_t> order,
                                ElementArrangement arrangement) {
  return TensorLayout(sizes, strides, hostDtype(dtype), order, arrangement);
}

at::Tensor emptyWithLayout(std::vector<int64_t> sizes,
                           std::vector<int64_t> strides, c10::ScalarType dtype,
                           const TensorLayout &layout,
                           std::optional<c10::Device> device) {
  TORCH_CHECK(sizes.size() == strides.size(),
              "sizes and strides differ in length: ", sizes.size(), " and ",
              strides.size());
  return makeTensor(sizes, strides, dtype, device.value_or(kSpyre), &layout);
}

at::Tensor emptyInLayout(const std::vector<int64_t> &sizes,
                         const TensorLayout &layout,
                         std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Device> device,
                         std::optional<bool> pinMemory,
                         std::optional<c10::MemoryFormat> memoryFormat) {
  TORCH_CHECK_VALUE(!pinMemory.value_or(false),
                    "memory of a spyre device cannot be pinned");
  c10::MemoryFormat format =
      memoryFormat.value_or(c10::MemoryFormat::Contiguous);
  TORCH_CHECK(format == c10::MemoryFormat::Contiguous ||
                  format == c10::MemoryFormat::Preserve,
              "Spyre backend only supports contiguous memory format with a "
              "layout, found ",
              format);
  return makeTensor(sizes, c10::TensorType::contiguousStridesOf(sizes),
                    dtype.value_or(c10::get_default_dtype_as_scalartype()),
                    device.value_or(kSpyre), &layout);
}

at::Tensor reinterpretTensor(const at::Tensor &tensor,
                             const std::vector<int64_t> &sizes,
                             const std::vector<int64_t> &strides,
                             int64_t offsetIncrement) {
  storageOf(tensor); // a spyre tensor
  return tensor.as_strided(sizes, strides,
                           tensor.storage_offset() + offsetIncrement);
}

at::Tensor requireLayout(at::Tensor view, const TensorLayout &layout) {
  TORCH_CHECK_VALUE(
      describes(layout, view), "the layout of a view is that of its storage, ",
      formattedStorage(view).format->layout.str(), "; ", layout.str(),
      " places its elements elsewhere: copy with .to(device_layout=...)");
  return view;
}

py::bytes readDeviceBytes(const at::Tensor &tensor) {
  const SpyreStorageImpl &storage = formattedStorage(tensor);
  uint64_t size = storage.nbytes() ? storage.format->layout.sizeInBytes() : 0;
  return py::bytes(reinterpret_cast<const char *>(storage.deviceBytes()), size);
}

py::tuple tensorInfo(const at::Tensor &tensor) {
  const SpyreStorageImpl &storage = formattedStorage(tensor);
  const StorageFormat &format = *storage.format;
  return py::make_tuple(
      storage.serial(), storage.deviceAddress(), format.sizes, format.strides,
      format.layout,
      py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject *>(
          torch::getTHPDtype(scalarType(format.dtype)))));
}

/// To the letter as users' tests have it, a blank before "=" included; they
/// know only the standard arrangement, which is not named.
std::string reprOfLayout(const TensorLayout &layout) {
  std::string text =
      "SpyreTensorLayout(device_size=" +
      std::string(py::repr(py::cast(layout.deviceSize))) +
      ", stride_map =" + std::string(py::repr(py::cast(layout.strideMap))) +
      ", device_dtype=DataFormats." + toString(layout.format);
  if (layout.arrangement != ElementArrangement::STANDARD)
    text += ", element_arrangement=" +
            std::string(py::str(py::cast(layout.arrangement)));
  return text + ")";
}

void initFormatBindings(py::module &m) {
  py::enum_<DataFormat> formats(m, "DataFormats",
                                "Element formats of the device.");
  for (int value = 0; value <= static_cast<int>(DataFormat::SEN18F_FP24);
       ++value)
    formats.value(toString(static_cast<DataFormat>(value)),
                  static_cast<DataFormat>(value));
  formats.def(
      "elems_per_stick",
      [](DataFormat format) { return elemsPerStick(format); },
      "Elements in a stick of 128 bytes.");

  py::enum_<ElementArrangement> arrangements(m, "ElementArrangement");
  for (int value = 0; value <= static_cast<int>(ElementArrangement::EXX2);
       ++value)
    arrangements.value(toString(static_cast<ElementArrangement>(value)),
                       static_cast<ElementArrangement>(value));
}

void initLayoutClass(py::module &m) {
  py::class_<TensorLayout>(
      m, "SpyreTensorLayout",
      "Device layout of a tensor: storage is row-major over device_size, and "
      "stride_map holds the host elements that a step along each device "
      "dimension advances (-1: synthetic or of size 1).")
      .def(py::init([](std::vector<int64_t> sizes, c10::ScalarType dtype) {
             return TensorLayout(sizes, hostDtype(dtype));
           }),
           py::arg("host_size"), py::arg("dtype"))
      .def(py::init(&layoutOfHostTensor), py::arg("host_size"),
           py::arg("host_strides"), py::arg("dtype"), py::arg("dim_order"),
           py::arg("element_arrangement") = ElementArrangement::STANDARD)
      .def(py::init([](std::vector<int64_t> deviceSize,
                       std::vector<int64_t> strideMap, DataFormat format,
                       ElementArrangement arrangement) {
             return TensorLayout(deviceSize, strideMap, format, arrangement);
           }),
           py::arg("device_size"), py::arg("stride_map"),
           py::arg("device_dtype"),
           py::arg("element_arrangement") = ElementArrangement::STANDARD)
      .def_readonly("device_size", &TensorLayout::deviceSize)
      .def_readonly("stride_map", &TensorLayout::strideMap)
      .def_readonly("device_dtype", &TensorLayout::format)
      .def_readonly("element_arrangement", &TensorLayout::arrangement)
      .def_property_readonly("size_in_bytes", &TensorLayout::sizeInBytes)
      .def(
          "elems_per_stick",
          [](const TensorLayout &layout) {
            return elemsPerStick(layout.format);
          },
          "Elements of the device's format in a stick of 128 bytes.")
      .def(
          "with_element_arrangement",
          [](TensorLayout layout, ElementArrangement arrangement) {
            layout.arrangement = arrangement;
            return layout;
          },
          py::arg("element_arrangement"),
          "A copy whose elements are arranged otherwise within sticks.")
      .def("__eq__",
           [](const TensorLayout &a, const py::object &b) {
             return py::isinstance<TensorLayout>(b) &&
                    a == b.cast<const TensorLayout &>();
           })
      .def("__hash__", [](const TensorLayout &layout) { return layout.hash(); })
      .def("__repr__", &reprOfLayout)
      .def(py::pickle(
          [](const TensorLayout &layout) {
            return py::make_tuple(kPickleVersion, layout.deviceSize,
                                  layout.strideMap,
                                  static_cast<int>(layout.format),
                                  static_cast<int>(layout.arrangement));
          },
          &layoutOfPickle))
      // Protocols 0 and 1 would make an instance of pybind11's base class,
      // which ends the process.
      .def("__reduce_ex__", [](const py::object &self, int protocol) {
        return py::module_::import("builtins")
            .attr("object")
            .attr("__reduce_ex__")(self, std::max(protocol, 2));
      });
}

/// Tensors whose storage has a given layout.
void initStorageBindings(py::module &m) {
  m.def(
      "get_spyre_tensor_layout",
      [](const at::Tensor &tensor) {
        return formattedStorage(tensor).format->layout;
      },
      py::arg("tensor"), "The layout of the storage under a spyre tensor.");
  m.attr("UnsupportedDtypeError") = py::handle(unsupportedDtypeError());
  m.def(
      "get_device_dtype",
      [](c10::ScalarType dtype) {
        return isSupportedDtype(dtype) ? deviceFormat(hostDtype(dtype))
                                       : DataFormat::INVALID;
      },
      py::arg("dtype"), "INVALID for a dtype that the device cannot hold.");
  m.def(
      "get_elem_in_stick",
      [](c10::ScalarType dtype) {
        return elemsPerStick(deviceFormat(hostDtype(dtype)));
      },
      py::arg("dtype"));
  for (const char *name : {"empty_with_layout", "spyre_empty_with_layout"})
    m.def(name, &emptyWithLayout, py::arg("size"), py::arg("stride"),
          py::arg("dtype"), py::arg("layout"), py::arg("device") = py::none(),
          "Uninitialised spyre tensor whose storage has the given layout.");
  m.def("empty_with_layout", &emptyInLayout, py::arg("size"), py::arg("layout"),
        py::arg("dtype") = py::none(), py::arg("device") = py::none(),
        py::arg("pin_memory") = py::none(),
        py::arg("memory_format") = py::none());
  m.def(
      "number_tensor",
      [](double number, c10::DeviceIndex device) {
        return makeNumber(number, device);
      },
      py::arg("number"), py::arg("device"),
      "A number as the fp32 tensor without dimensions that programs take.");
  m.def("set_spyre_tensor_layout", &changeLayout, py::arg("tensor"),
        py::arg("layout"),
        "Stores the tensor's storage in another layout; its values stay.");
}

/// What grows in the memory of others.
void initGrowthBindings(py::module &m) {
  m.def(
      "room_of",
      [](const at::Tensor &tensor)
          -> std::optional<std::tuple<size_t, int64_t, TensorLayout>> {
        const StorageFormat &format = *formattedStorage(tensor).format;
        if (!format.room)
          return std::nullopt;
        return std::make_tuple(format.room->dim, format.room->numRows,
                               format.room->tight);
      },
      py::arg("tensor"),
      "(dimension of the home, rows along it that the layout has places for, "
      "layout without room) of the storage under a tensor that has grown; None "
      "for others.");
  m.def(
      "let_grow",
      [](const at::Tensor &tensor, size_t dim) {
        SpyreStorageImpl &storage = formattedStorage(tensor);
        TORCH_CHECK_VALUE(dim < storage.format->sizes.size(), "dimension ", dim,
                          " of a storage of ",
                          c10::IntArrayRef(storage.format->sizes));
        letGrow(storage, dim);
      },
      py::arg("tensor"), py::arg("dim"),
      "Says that programs for many sizes may grow the storage under a tensor "
      "along a dimension of its home, unless its sticks run along it.");
  m.def(
      "grow_rows",
      [](const at::Tensor &tensor, size_t dim,
         int64_t rows) -> std::optional<at::Tensor> {
        TORCH_CHECK_VALUE(
            dim < tensor.sizes().size() && rows > tensor.sizes()[dim], rows,
            " rows along dimension ", dim, " of ", tensor.sizes());
        py::gil_scoped_release release;
        if (!firstGrowingRow(tensor, dim) ||
            !rowsOf(storageOf(tensor).format->dtype, tensor.sizes(), dim))
          return std::nullopt;
        return growAndCopyRows(tensor, dim, rows);
      },
      py::arg("tensor"), py::arg("dim"), py::arg("rows"),
      "A tensor of so many rows along a dimension that begins with those of "
      "this one, all or the last ones of a storage that may grow, in the same "
      "memory where that has room. The other rows hold anything. None if this "
      "is no such tensor.");
  m.def(
      "rows_layout",
      [](const std::vector<int64_t> &sizes, c10::ScalarType dtype,
         size_t dim) -> std::optional<TensorLayout> {
        std::optional<Rows> rows = rowsOf(hostDtype(dtype), sizes, dim);
        if (!rows)
          return std::nullopt;
        return rows->format.layout;
      },
      py::arg("sizes"), py::arg("dtype"), py::arg("dim"),
      "The layout of what grow_rows() makes, or None if tensors of these sizes "
      "do not grow along the dimension.");
  m.def(
      "growth_counts",
      [] {
        GrowthCounts counts = growthCounts();
        py::dict result;
        result["shared"] = counts.numShared;
        result["copied"] = counts.numCopied;
        result["bytes_copied"] = counts.bytesCopied;
        return result;
      },
      "How often tensors have grown in the memory of others, and how often and "
      "how many bytes were copied into larger memory for that.");
}

/// Views, and where they lie on the device.
void initViewBindings(py::module &m) {
  m.def("reinterpret_tensor", &reinterpretTensor, py::arg("tensor"),
        py::arg("size"), py::arg("stride"), py::arg("offset_increment") = 0,
        "as_strided() at an offset counted from the tensor's own.");
  m.def(
      "reinterpret_tensor_with_layout",
      [](const at::Tensor &tensor, const std::vector<int64_t> &sizes,
         const std::vector<int64_t> &strides, int64_t offsetIncrement,
         const TensorLayout &layout) {
        return requireLayout(
            reinterpretTensor(tensor, sizes, strides, offsetIncrement), layout);
      },
      py::arg("tensor"), py::arg("size"), py::arg("stride"),
      py::arg("offset_increment"), py::arg("layout"),
      "reinterpret_tensor() that raises unless the layout says where the "
      "view's elements are.");
  m.def(
      "as_strided_with_layout",
      [](const at::Tensor &tensor, const std::vector<int64_t> &sizes,
         const std::vector<int64_t> &strides, std::optional<int64_t> offset,
         const TensorLayout &layout) {
        storageOf(tensor); // a spyre tensor
        return requireLayout(tensor.as_strided(sizes, strides, offset), layout);
      },
      py::arg("tensor"), py::arg("size"), py::arg("stride"), py::arg("offset"),
      py::arg("layout"),
      "as_strided() that raises unless the layout says where the view's "
      "elements are.");
  m.def("read_device_bytes", &readDeviceBytes, py::arg("tensor"),
        "The bytes of the tensor's storage as the device holds them: "
        "row-major over the layout's device_size, padding included.");
  m.def("tensor_info", &tensorInfo, py::arg("tensor"),
        "(storage id, device byte address, home sizes, home strides, layout, "
        "dtype) of the storage under a spyre tensor. Formats a raw storage.");
  m.def(
      "shift_views",
      [](const std::vector<at::Tensor> &tensors) {
        std::vector<std::pair<int64_t, int64_t>> result;
        for (const ViewShift &shift : shiftViews(tensors))
          result.emplace_back(shift.hostElements, shift.deviceElements);
        return result;
      },
      py::arg("tensors"),
      "Per tensor, by how many elements a program may take it as lying nearer "
      "to its storage's start, and by how many device elements the storage's "
      "address then grows. Equal for tensors of one storage.");
  m.def("get_downcast_warning", &downcastWarning);
  m.def("set_downcast_warning", &setDowncastWarning, py::arg("enabled"));
}

/// What collectives move.
void initElementBindings(py::module &m) {
  using Release = py::call_guard<py::gil_scoped_release>;
  m.def(
      "element_run",
      [](const at::Tensor &tensor)
          -> std::optional<std::pair<int64_t, std::string>> {
        std::optional<ElementRun> run = elementRunOf(tensor);
        if (!run)
          return std::nullopt;
        return std::make_pair(run->count, run->kind);
      },
      py::arg("tensor"),
      "(count, kind) of the stored elements of a tensor that follow each other "
      "on the device: its own in their order, or all of its storage, padding "
      "included. Tensors with the same pair have equal elements at equal "
      "places. None if there is no such run.");
  m.def("stored_elements", &storedElements, py::arg("tensor"),
        py::arg("are_written"),
        "The elements of a tensor's run where they are: a one-dimensional CPU "
        "tensor of fp32 values, or of int16 codes of 16-bit floats. Nothing "
        "else may use the tensor until they have been read or written.",
        Release());
  m.def("decode_elements", &decodeElements, py::arg("codes"), py::arg("values"),
        "Stores the fp32 values of int16 codes of SEN169_FP16.", Release());
  m.def("encode_elements", &encodeElements, py::arg("values"), py::arg("codes"),
        "Stores the nearest codes of SEN169_FP16 of fp32 values.", Release());
  m.def(
      "sum_elements", &sumElements, py::arg("parts"), py::arg("sum"),
      "Adds up int16 codes of SEN169_FP16 in fp32, in the order of the parts, "
      "and rounds once.",
      Release());
  py::class_<RankBarrier>(m, "RankBarrier",
                          "Where ranks meet that map one file of a machine.")
      .def(py::init<int, at::Tensor, int64_t, int64_t>(), py::arg("file"),
           py::arg("memory"), py::arg("rank"), py::arg("size"))
      .def(
          "wait", &RankBarrier::wait, py::arg("timeout"), Release(),
          "Returns when all ranks have called it as often. Raises RuntimeError "
          "if a process has ended, or has not come after so many seconds.")
      .def_readonly_static("BYTES", &RankBarrier::kBytes,
                           "Bytes of the file's memory per rank.");
  m.def("share_process_memory", &shareProcessMemory,
        "Lets all processes of the same user read and write the memory of this "
        "one, where the kernel would not.");
  m.def("read_process", &readProcess, py::arg("process"), py::arg("address"),
        py::arg("values"), py::arg("device"),
        "Copies from an address in the memory of a process into a dense CPU "
        "tensor, and traces a transfer to card `device`. Raises RuntimeError "
        "if the process has ended or may not be reached.",
        Release());
  m.def("write_process", &writeProcess, py::arg("process"), py::arg("address"),
        py::arg("values"), py::arg("device"), "The reverse of read_process().",
        Release());
}

} // namespace

void initLayoutBindings(py::module &m) {
  initFormatBindings(m);
  initLayoutClass(m);
  initStorageBindings(m);
  initGrowthBindings(m);
  initViewBindings(m);
  initElementBindings(m);
}

} // namespace spyre::pytorch
