# SPDX-License-Identifier: Apache-2.0
"""What clients work around on the card is right here: docs/spec/drop-in.md, 5.5 and 5.13."""

import pytest
import torch
import torch.nn.functional as F
from client_models import rope_table, rotate
from inputs import values
from numerics import assert_exact, assert_units, compiled, device_value
from torch_spyre import _C

HALF = torch.float16
DEVICE = torch.device("spyre:0")

pytestmark = [
    pytest.mark.usefixtures("no_fallback"),
    pytest.mark.filterwarnings("ignore:.*does not support int64"),
]


def exact(shape, seed=0, dtype=HALF):
    return device_value(values(shape, dtype, seed)).to(dtype)


def both(function, *arguments):
    """Results of a function on the card, eager and compiled, from new arguments."""
    for run in (function, compiled(function)):
        yield run(*(a.to(DEVICE) for a in arguments))


@pytest.mark.parametrize("offset", [1, 63, 64, 70, 200])
def test_compiled_kernels_honour_storage_offsets(offset):
    host = exact((7, 300), 1)
    x = host.to(DEVICE)
    function = compiled(lambda t: t * 2)
    for view in (
        lambda t: t[:, offset:],
        lambda t: t[1:, offset : offset + 5],
        lambda t: t.flatten()[offset:],
        lambda t: t.as_strided((3, 64), (300, 1), offset),
    ):
        assert_exact(function(view(x)).cpu(), view(host) * 2)


@pytest.mark.parametrize("dim", [0, 1, 2, 3])
def test_scatters_whichever_dimension_is_outermost(dim):
    """Into a cache whose indexed dimension is not outermost on the device."""
    shape = (3, 5, 70, 66)
    host, new = exact(shape, 2), exact(shape, 3).narrow(dim, 0, 2)
    index = torch.tensor([2, 0])
    for order in ([0, 1, 2, 3], [2, 1, 0, 3], [3, 0, 1, 2]):
        strides = list(host.stride())
        layout = _C.SpyreTensorLayout(list(shape), strides, HALF, order)
        for run in (torch.Tensor.index_copy_, compiled(torch.Tensor.index_copy_)):
            cache = host.to(DEVICE, device_layout=layout)
            run(cache, dim, index.to(DEVICE), new.to(DEVICE))
            assert_exact(cache.cpu(), host.index_copy(dim, index, new))
            assert cache.device_tensor_layout() == layout


@pytest.mark.parametrize("count", [1, 63, 64, 65])
def test_writing_from_a_prefix_stays_within_it(count):
    host, new = exact((4, 200), 4), exact((4, 200), 5)

    def write(target, source):
        target[1:3, :count].copy_(source[1:3, :count])
        return target

    for result in both(write, host, new):
        assert_exact(result.cpu(), write(host.clone(), new))


def test_infinities_come_back():
    host = torch.tensor([-torch.inf, torch.inf, 1.0, -65504.0], dtype=HALF)
    for result in both(lambda t: t.clone(), host):
        back = result.cpu()
        assert back[0] == -torch.inf and back[1] == torch.inf
        assert back[2] == 1 and back[3] == -65504
    scores = torch.zeros(2, 65, dtype=HALF)
    scores[0, 1:] = -torch.inf
    for result in both(lambda t: t.softmax(-1), scores):
        assert result.cpu()[0].tolist() == [1.0] + [0.0] * 64


@pytest.mark.parametrize("size", [64, 128, 96])
def test_rotary_embeddings_by_slices_of_the_head(size):
    """The halves of a head, sliced and joined, give what the table gives."""
    table = rope_table(40, size, torch.float32)
    x = exact((2, 40, 3, size), 6)

    def by_slices(x, cos, sin):
        half = size // 2
        low, high = x[..., :half], x[..., half:]
        return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)

    cos = device_value(table[:, 0, 0][:, None].to(HALF))
    sin = device_value(table[:, 1, 0][:, None].to(HALF))
    rows = [torch.stack([cos[:, 0], -sin[:, 0]], 1), torch.stack([sin, cos], 2)[:, 0]]
    wide = torch.stack([rows[0], torch.stack([sin[:, 0], cos[:, 0]], 1)], 1)
    expected = rotate(x.double(), wide.double().expand(2, *wide.shape))
    for result in both(by_slices, x, cos.to(HALF), sin.to(HALF)):
        # Three roundings, of products of at most twice the largest value.
        error = (result.cpu().double() - expected).abs()
        assert (error <= 3 * 2.0**-10 * 8).all()


@pytest.mark.parametrize("value", [3.0, -1000.0, 0.0])
def test_layer_norm_of_rows_that_hardly_vary(value):
    x = torch.full((3, 130), value, dtype=HALF)
    x[1, 5] += 1
    weight, bias = exact((130,), 7), exact((130,), 8)

    def norm(x, weight, bias):
        return F.layer_norm(x, (130,), weight, bias)

    wide = [t.double() for t in (x, weight, bias)]
    expected = norm(*wide)
    for result in both(norm, x, weight, bias):
        back = result.cpu()
        assert back.isfinite().all()
        # A constant row is the bias.
        assert_exact(back[0], bias)
        assert_exact(back[2], bias)
        assert_units(back[1], expected[1], 4)


# Errors (section 5.5) --------------------------------------------------------


def test_memory_formats():
    layout = _C.SpyreTensorLayout([2, 3, 4, 5], HALF)
    text = "Spyre backend only supports contiguous memory format"
    for accepted in (torch.contiguous_format, torch.preserve_format):
        x = torch.empty(
            2, 3, 4, 5, dtype=HALF, device_layout=layout, memory_format=accepted
        )
        assert x.is_contiguous() and x.device_tensor_layout() == layout
        plain = torch.empty(2, 3, 4, 5, device=DEVICE, memory_format=accepted)
        assert plain.is_contiguous()
    for refused in (
        lambda: torch.empty(
            2, 3, 4, 5, device=DEVICE, memory_format=torch.channels_last
        ),
        lambda: torch.empty(
            (2, 3, 4, 5, 6), device="spyre", memory_format=torch.channels_last_3d
        ),
        lambda: torch.empty(
            2,
            3,
            4,
            5,
            dtype=HALF,
            device_layout=layout,
            memory_format=torch.channels_last,
        ),
        lambda: _C.empty_with_layout(
            [2, 3, 4, 5], layout, HALF, memory_format=torch.channels_last
        ),
    ):
        with pytest.raises(RuntimeError, match=text):
            refused()
    # Elsewhere nothing changes, and tensors on the card may have the format.
    host = torch.empty(2, 3, 4, 5, memory_format=torch.channels_last)
    assert host.is_contiguous(memory_format=torch.channels_last)
    assert host.to(DEVICE).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("source", "target"),
    [(torch.int8, HALF), (torch.float32, torch.int32), (HALF, torch.int64)],
)
def test_copies_convert(source, target):
    """The card refuses these casts of transfers."""
    host = torch.tensor([3, -7, 0, 100]).to(source)
    destination = torch.empty(4, dtype=target, device=DEVICE)
    destination.copy_(host)
    assert_exact(destination.cpu(), host.to(target))
    back = torch.empty(4, dtype=target)
    back.copy_(host.to(DEVICE))
    assert_exact(back, host.to(target))


def test_devices_out_of_range():
    for index in (torch.spyre.device_count(), 1000, -2):
        with pytest.raises(Exception):  # noqa: B017  the sheet: any exception
            torch.spyre.set_device(index)
    assert torch.spyre.current_device() == 0
