# SPDX-License-Identifier: Apache-2.0
"""Layouts that clients build by hand: docs/spec/drop-in.md, sections 5 to 7."""

import copy
import io
import pickle
import random

import pytest
import torch
from inputs import values
from numerics import assert_exact, compiled, device_value
from torch_spyre import _C
from torch_spyre._C import DataFormats, ElementArrangement, SpyreTensorLayout

HALF = torch.float16
E4M3 = torch.float8_e4m3fn
DEVICE = torch.device("spyre:0")

pytestmark = [
    pytest.mark.usefixtures("no_fallback"),
    pytest.mark.filterwarnings("ignore:.*does not support int64"),
]


def exact(shape, seed=0, dtype=HALF):
    """Values that the device stores as they are."""
    return device_value(values(shape, dtype, seed)).to(dtype)


def strides_of(shape):
    return list(torch.empty(shape, device="meta").stride())


def merged(shape, first, last, dtype=HALF):
    """A row-major layout that counts dimensions ``first`` to ``last`` as one."""
    eps = _C.get_elem_in_stick(dtype)
    count = 1
    for size in shape[first:last]:
        count *= size
    sizes = [*shape[:first], count, *shape[last:]]
    strides = strides_of(sizes)
    return SpyreTensorLayout(
        [*sizes[:-1], -(-sizes[-1] // eps), eps],
        [*strides[:-1], eps, 1],
        _C.get_device_dtype(dtype),
    )


#: Shape, and the dimensions that one device dimension counts.
MERGED = [
    ((5, 64, 2, 128), 0, 2),
    ((5, 3, 2, 65), 0, 2),
    ((2, 5, 3, 7), 0, 3),
    ((3, 2, 5, 70), 1, 3),
    ((1, 7, 1, 130), 0, 2),
    ((2, 3, 1, 2, 2, 3, 66), 2, 6),
    ((4, 96), 0, 2),
]


@pytest.mark.parametrize("dtype", [HALF, torch.float32, torch.int8, torch.bool])
@pytest.mark.parametrize(("shape", "first", "last"), MERGED)
def test_one_device_dimension_counts_several(shape, first, last, dtype):
    layout = merged(shape, first, last, dtype)
    host = exact(shape, 1, dtype)
    x = host.to(DEVICE, device_layout=layout)
    assert x.shape == host.shape and x.stride() == host.stride()
    assert x.device_tensor_layout() == layout
    assert_exact(x.cpu(), host)
    # The sticks lie as the layout says.
    rows = host.flatten(first, last - 1)
    eps = layout.elems_per_stick()
    sticks = torch.nn.functional.pad(rows.float(), (0, -rows.shape[-1] % eps))
    in_order = sticks.to(dtype).reshape(-1, eps).to(DEVICE)
    assert _C.read_device_bytes(x) == _C.read_device_bytes(in_order)


@pytest.mark.parametrize(("shape", "first", "last"), MERGED)
def test_operators_read_and_write_there(shape, first, last):
    layout = merged(shape, first, last)
    host, other = exact(shape, 2), exact(shape, 3)

    def update(x, y):
        x.mul_(2)
        x.select(0, 0).copy_(y.select(0, 0))
        return x + y, x.flatten(first, last - 1) * 2, x.transpose(0, -1).neg()

    for function in (update, compiled(update)):
        x = host.to(DEVICE, device_layout=layout)
        results = function(x, other.to(DEVICE))
        expected = host.clone()
        wanted = update(expected, other)
        assert_exact(x.cpu(), expected)
        assert x.device_tensor_layout() == layout
        for got, want in zip(results, wanted, strict=True):
            torch.testing.assert_close(got.cpu(), want, atol=0, rtol=2**-9)


def test_copies_keep_the_layout():
    shape = (5, 64, 2, 128)
    layout = merged(shape, 0, 2)
    x = exact(shape, 4).to(DEVICE, device_layout=layout)
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    parameter = torch.nn.Parameter(x)
    for other in (
        x.clone(),
        copy.deepcopy(x),
        torch.load(file),
        x.to(torch.bfloat16).to(HALF),
        parameter.detach(),
    ):
        assert other.device_tensor_layout() == layout
        assert other.shape == x.shape
    assert_exact(x.clone().cpu(), x.cpu())
    # Sticks of fp32 are half as long; the others stay where they are.
    wide = x.float()
    assert wide.device_tensor_layout() == merged(shape, 0, 2, torch.float32)
    assert_exact(wide.cpu(), x.cpu().float())


def test_the_layout_of_a_storage_can_change():
    shape = (5, 64, 2, 128)
    host = exact(shape, 5)
    x = host.to(DEVICE)
    plain, paged = x.device_tensor_layout(), merged(shape, 0, 2)
    for layout in (paged, plain, paged):
        _C.set_spyre_tensor_layout(x, layout)
        assert x.device_tensor_layout() == layout
        assert_exact(x.cpu(), host)
    assert x.to(device_layout=paged) is x
    assert_exact(x.to(device_layout=plain).cpu(), host)


def random_layout(rng, shape):
    """Device dimensions that are any order of groups of a tensor's dimensions."""
    groups, at = [], 0
    while at < len(shape):
        size = rng.randint(1, len(shape) - at)
        groups.append((at, at + size))
        at += size
    sizes = [int(torch.tensor(shape[a:b]).prod()) for a, b in groups]
    strides = strides_of(sizes)
    counted = []
    for size, stride in list(zip(sizes, strides, strict=True))[:-1]:
        divisors = [d for d in range(1, size + 1) if size % d == 0]
        inner = rng.choice(divisors)
        counted.append((inner, stride))
        if inner != size:
            counted.append((size // inner, stride * inner))
    eps, lane = 64, 1 if sizes[-1] > 1 else -1
    spare = rng.randint(0, 1) if sizes[-1] > eps else 0
    counted.append((-(-sizes[-1] // eps) + spare, eps * lane if lane > 0 else -1))
    rng.shuffle(counted)
    counted.append((eps, lane))
    return SpyreTensorLayout(
        [size for size, _ in counted],
        [stride for _, stride in counted],
        DataFormats.SEN169_FP16,
    )


def test_random_layouts_hold_their_tensors():
    """Groups of dimensions, in blocks, in any order."""
    rng = random.Random(17)
    for number in range(60):
        shape = [rng.choice([1, 2, 3, 4, 6]) for _ in range(rng.randint(0, 4))]
        shape.append(rng.choice([1, 7, 63, 64, 65, 130]))
        layout = random_layout(rng, shape)
        host = exact(shape, number)
        x = host.to(DEVICE, device_layout=layout)
        assert x.device_tensor_layout() == layout
        assert_exact(x.cpu(), host, layout)
        part = tuple(slice(rng.randint(0, size - 1), None) for size in shape)
        assert_exact(x[part].cpu(), host[part], layout)
        x[part] = 1
        host[part] = 1
        assert_exact(x.cpu(), host, layout)
        assert_exact((x.flatten() + x.flatten()).cpu(), host.flatten() * 2, layout)


#: Device size, stride map, what is wrong with it for [5, 64, 2, 128].
WRONG = [
    ([319, 2, 2, 64], [256, 128, 64, 1], "319 positions is too small"),
    ([320, 2, 1, 64], [256, 128, 64, 1], "1 positions|no device dimension|small"),
    ([320, 2, 2, 64], [256, 128, 64, 2], "single steps"),
    ([320, 2, 2, 64], [250, 128, 64, 1], "not a multiple|do not nest"),
    ([640, 64], [96, 1], "do not nest|too small"),
]


@pytest.mark.parametrize(("size", "strides", "message"), WRONG)
def test_layouts_that_do_not_fit_are_errors(size, strides, message):
    layout = SpyreTensorLayout(size, strides, DataFormats.SEN169_FP16)
    fitting = SpyreTensorLayout([5, 64, 2, 128], HALF)
    for make in (
        lambda: torch.zeros(5, 64, 2, 128, dtype=HALF).to(DEVICE, device_layout=layout),
        lambda: torch.empty(5, 64, 2, 128, dtype=HALF, device_layout=layout),
    ):
        with pytest.raises(RuntimeError, match=message) as seen:
            make()
        assert "what fits is, for instance" in str(seen.value)
        assert f"device_size={fitting.device_size}" in str(seen.value)


def test_layouts_of_another_dtype_are_errors():
    layout = SpyreTensorLayout([3, 70], torch.float32)
    with pytest.raises(RuntimeError, match=r"torch\.float16.*SEN169_FP16"):
        torch.empty(3, 70, dtype=HALF, device_layout=layout)


# Updates (section 5.13) ------------------------------------------------------

CACHE = (2, 3, 70, 128)


def pinned():
    """hf-adapters' layout: positions outermost, sequences side by side."""
    batch, heads, length, size = CACHE
    return SpyreTensorLayout(
        [length, heads, size // 64, batch, 64],
        [size, length * size, 64, heads * length * size, 1],
        DataFormats.SEN169_FP16,
    )


UPDATES = {
    "index_copy": lambda c, i, new: c.index_copy(2, i, new),
    "index_copy_": lambda c, i, new: c.index_copy_(2, i, new),
    "index_put_": lambda c, i, new: c.index_put_(
        (i[:1] - 60,), new[1:, :, :1].expand(1, 3, 70, 128)
    ),
    "slice": lambda c, i, new: c[:, :, 5:7].copy_(new),
    "slice_scatter": lambda c, i, new: c.slice_scatter(new, 2, 5, 7),
    "select_scatter": lambda c, i, new: c.select_scatter(new[:, :, 0], 2, 9),
    "fill": lambda c, i, new: c.zero_(),
    "multiply": lambda c, i, new: c.mul_(2),
}


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("is_compiled", [False, True])
def test_updates_keep_a_pinned_layout(name, is_compiled):
    host, new = exact(CACHE, 6), exact((2, 3, 2, 128), 7)
    index = torch.tensor([61, 5])
    cache = host.to(DEVICE, device_layout=pinned())
    function = compiled(UPDATES[name]) if is_compiled else UPDATES[name]
    result = function(cache, index.to(DEVICE), new.to(DEVICE))
    before = host.clone()
    expected = UPDATES[name](host, index, new)
    assert_exact(result.cpu(), expected)
    assert_exact(cache.cpu(), host)
    assert cache.device_tensor_layout() == pinned()
    if result.shape == cache.shape:
        assert result.device_tensor_layout() == pinned()
    if name.endswith("copy") or name.endswith("scatter"):
        assert_exact(host, before)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_copies_with_new_rows_keep_the_pages(is_compiled):
    """What index_copy out of place makes lies as the rows that it copies."""
    shape = (5, 64, 2, 128)
    layout = merged(shape, 0, 2)
    host, new = exact(shape, 8), exact((2, 2, 128), 9)
    slots = torch.tensor([300, 7])

    def store(pages, slots, new):
        return pages.view(-1, 2, 128).index_copy(0, slots, new)

    function = compiled(store) if is_compiled else store
    pages = host.to(DEVICE, device_layout=layout)
    result = function(pages, slots.to(DEVICE), new.to(DEVICE))
    assert_exact(result.cpu(), store(host, slots, new))
    assert_exact(pages.cpu(), host)
    assert result.device_tensor_layout() == layout


# float8 (section 6) ----------------------------------------------------------


def quantized(shape):
    """The layout of what qfp8ch makes of a tensor in the default layout."""
    return SpyreTensorLayout(list(shape), E4M3).with_element_arrangement(
        ElementArrangement.QFP8CH
    )


def test_layouts_of_quantized_tensors():
    layout = quantized((5, 300))
    assert layout.device_size == [3, 5, 128]
    assert layout.stride_map == [128, 300, 1]
    assert layout.elems_per_stick() == 128
    assert layout.device_dtype == DataFormats.SEN143_FP8
    assert layout.element_arrangement == ElementArrangement.QFP8CH
    assert layout != SpyreTensorLayout([5, 300], E4M3)
    assert pickle.loads(pickle.dumps(layout)) == layout
    assert eval(repr(layout), vars(_C)) == layout


@pytest.mark.parametrize("shape", [(), (1,), (64, 64), (5, 300), (2, 3, 129)], ids=str)
def test_quantized_tensors_are_transferred(shape):
    """What the host reads are the values, bit for bit."""
    host = values(shape, torch.float32, 8).to(E4M3)
    layout = quantized(shape)
    x = host.to(DEVICE, device_layout=layout)
    assert x.device_tensor_layout() == layout
    assert torch.equal(x.cpu().view(torch.uint8), host.view(torch.uint8))
    assert x.clone().device_tensor_layout() == layout
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    assert torch.load(file).device_tensor_layout() == layout
    # Other formats have no such arrangement.
    wide = x.to(HALF)
    assert wide.device_tensor_layout() == SpyreTensorLayout(list(shape), HALF)
    assert torch.equal(wide.cpu(), host.to(HALF))
    widen = compiled(lambda t: t.to(HALF))
    assert torch.equal(widen(x).cpu(), host.to(HALF))


@pytest.mark.parametrize("arrangement", ["DL16_TO_FP32", "EXX2", "QFP8CH"])
def test_arrangements_that_are_not_stored(arrangement):
    layout = SpyreTensorLayout([3, 70], HALF).with_element_arrangement(
        getattr(ElementArrangement, arrangement)
    )
    with pytest.raises(RuntimeError, match=arrangement):
        torch.empty(3, 70, dtype=HALF, device_layout=layout)
