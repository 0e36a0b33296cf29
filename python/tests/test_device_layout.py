# SPDX-License-Identifier: Apache-2.0
import pickle

import pytest
import torch
from torch_spyre import _C
from torch_spyre._C import DataFormats, ElementArrangement, SpyreTensorLayout

# spec/layouts.md, fp16: host size, dimension order, device_size, stride_map.
TABLE = [
    ([120], None, [2, 64], [64, 1]),
    ([512, 240], None, [4, 512, 64], [64, 240, 1]),
    ([512, 8, 240], None, [8, 4, 512, 64], [240, 64, 1920, 1]),
    ([5, 100, 150], None, [100, 3, 5, 64], [150, 64, 15000, 1]),
    ([512, 256], [1, 0], [8, 256, 64], [16384, 1, 256]),
    ([512, 8, 256], [1, 2, 0], [256, 8, 8, 64], [1, 131072, 256, 2048]),
    ([512, 256], [0, 1, -1], [256, 1, 512, 64], [1, -1, 256, -1]),
    ([], None, [1, 64], [-1, -1]),
]


def strides_of(sizes):
    return list(torch.empty(sizes, device="meta").stride())


@pytest.mark.parametrize("sizes, order, device_size, stride_map", TABLE)
def test_constructors(sizes, order, device_size, stride_map):
    explicit = SpyreTensorLayout(device_size, stride_map, DataFormats.SEN169_FP16)
    if order is None:
        assert SpyreTensorLayout(sizes, torch.float16) == explicit
        order = list(range(len(sizes)))
    layout = SpyreTensorLayout(sizes, strides_of(sizes), torch.float16, order)
    assert layout == explicit
    assert hash(layout) == hash(explicit)
    assert layout.device_size == device_size
    assert layout.stride_map == stride_map
    assert layout.device_dtype == DataFormats.SEN169_FP16
    assert layout.element_arrangement == ElementArrangement.STANDARD


def test_equality_covers_all_fields():
    layout = SpyreTensorLayout([3, 70], torch.float16)
    others = [
        SpyreTensorLayout([3, 71], torch.float16),
        SpyreTensorLayout([3, 70], torch.float32),
        SpyreTensorLayout([2, 3, 64], [64, 71, 1], DataFormats.SEN169_FP16),
        SpyreTensorLayout(
            [2, 3, 64],
            [64, 70, 1],
            DataFormats.SEN169_FP16,
            ElementArrangement.EXX2,
        ),
        None,
    ]
    for other in others:
        assert layout != other


def test_pickle_and_repr():
    layout = SpyreTensorLayout(
        [2, 3, 64], [64, 70, 1], DataFormats.SEN169_FP16, ElementArrangement.QFP8CH
    )
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(layout, protocol)) == layout
    assert eval(repr(layout)) == layout
    standard = layout.with_element_arrangement(ElementArrangement.STANDARD)
    text = (
        "SpyreTensorLayout(device_size=[2, 3, 64], stride_map =[64, 70, 1], "
        "device_dtype=DataFormats.SEN169_FP16)"
    )
    assert repr(standard) == str(standard) == text
    assert layout.element_arrangement == ElementArrangement.QFP8CH


def test_pickles_of_former_versions():
    def read(*state):
        layout = SpyreTensorLayout.__new__(SpyreTensorLayout)
        layout.__setstate__(state)
        return layout

    size, strides = [2, 3, 64], [64, 70, 1]
    expected = SpyreTensorLayout(size, strides, DataFormats.SEN169_FP16)
    for dtype in (DataFormats.SEN169_FP16, DataFormats.SEN169_FP16.value):
        assert read(3, size, strides, dtype, ElementArrangement.STANDARD) == expected
        assert read(2, size, strides, dtype) == expected
        assert read(1, size, [1, 0, 1], strides, dtype) == expected
    for state in ((4, size, strides, 0, 0), (2, size, strides, 0, 0), ()):
        with pytest.raises(ValueError, match="version 1 to 3"):
            read(*state)
    for state in ((2, size, strides, 99), (3, size, strides, -1, 0)):
        with pytest.raises(ValueError, match="device_dtype in a pickled"):
            read(*state)
    with pytest.raises(ValueError, match=r"element_arrangement .* expected 0 to 3"):
        read(3, size, strides, 0, 4)


def test_elements_per_stick_of_a_layout():
    assert SpyreTensorLayout([3, 65], torch.float16).elems_per_stick() == 64
    assert SpyreTensorLayout([3, 65], torch.float32).elems_per_stick() == 32
    assert SpyreTensorLayout([], torch.int8).elems_per_stick() == 128


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([3, 70], [70, 1], torch.float16, [0, 0]), "permutation"),
        (([3, 70], [70], torch.float16, [0, 1]), "strides"),
        (([1] * 7, torch.float16), "6"),
        (([2, 64], [1], DataFormats.SEN169_FP16), "length"),
        (([2, 32], [64, 1], DataFormats.SEN169_FP16), "64"),
    ],
)
def test_bad_layouts(arguments, message):
    with pytest.raises(RuntimeError, match=message):
        SpyreTensorLayout(*arguments)


def test_unsupported_dtypes_are_named():
    with pytest.raises(
        TypeError, match=r"torch\.float64; supported are torch\.float16"
    ):
        SpyreTensorLayout([3], torch.float64)
    assert _C.get_device_dtype(torch.complex64) == DataFormats.INVALID


def test_formats():
    assert DataFormats.SEN18F_FP24.value == 18
    assert DataFormats.SEN169_FP16.elems_per_stick() == 64
    expected = {
        torch.float16: ("SEN169_FP16", 64),
        torch.bfloat16: ("SEN169_FP16", 64),
        torch.bool: ("SEN169_FP16", 64),
        torch.float32: ("IEEE_FP32", 32),
        torch.int8: ("SENINT8", 128),
        torch.int16: ("SENINT16", 64),
        torch.int32: ("IEEE_INT32", 32),
        torch.int64: ("IEEE_INT32", 32),
        torch.uint8: ("SENUINT32", 32),
    }
    for dtype, (name, count) in expected.items():
        assert _C.get_device_dtype(dtype).name == name
        assert _C.get_elem_in_stick(dtype) == count


def test_every_name_is_in_torch_spyre():
    for name in dir(_C):
        if not name.startswith("__"):
            assert getattr(torch.spyre, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = torch.spyre.nonsense


def test_off_device_tensors_have_no_layout():
    assert torch.zeros(3).device_tensor_layout() is None
    with pytest.raises(RuntimeError, match="spyre device, found cpu"):
        _C.get_spyre_tensor_layout(torch.zeros(3))


def test_non_dense_homes_are_one_dimensional():
    x = torch.empty_strided((3, 5), (7, 1), dtype=torch.float16, device="spyre")
    assert x.device_tensor_layout() == SpyreTensorLayout([19], torch.float16)
    y = torch.empty([2] * 7, dtype=torch.float16, device="spyre")
    assert y.device_tensor_layout() == SpyreTensorLayout([128], torch.float16)
