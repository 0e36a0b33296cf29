# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pooling run as programs, eager and compiled."""

import copy
import json

import pytest
import torch
import torch_spyre
from numerics import (
    assert_contraction,
    assert_like_oracle,
    assert_units,
    compiled,
    device_value,
    oracle,
    to_device,
)
from torch.nn import functional
from torch_spyre.compile_backend import compiled_parts

pytestmark = pytest.mark.usefixtures("no_fallback")


def half(*sizes):
    return torch.randn(
        sizes, generator=torch.Generator().manual_seed(sum(sizes))
    ).half()


#: input, weight, keywords
CONVOLUTIONS = {
    "1d": ((3, 4, 17), (6, 4, 3), {"stride": 2}),
    "1d of 65": ((1, 1, 65), (1, 1, 65), {}),
    "2d": ((2, 4, 9, 11), (6, 4, 3, 2), {}),
    "2d all": (
        (2, 4, 9, 11),
        (6, 2, 3, 2),
        {"stride": (2, 1), "padding": (1, 2), "dilation": (2, 3), "groups": 2},
    ),
    "1x1": ((2, 65, 5, 7), (3, 65, 1, 1), {}),
    "depthwise": ((1, 7, 6, 6), (7, 1, 3, 3), {"padding": 1, "groups": 7}),
    "without batch": ((4, 8, 8), (2, 4, 3, 3), {"padding": "same"}),
    "large": ((1, 3, 64, 64), (16, 3, 7, 7), {"stride": 2, "padding": 3}),
    "3d": ((2, 2, 4, 5, 6), (4, 1, 3, 2, 3), {"padding": 1, "groups": 2}),
    "3d of groups": ((2, 6, 4, 5, 6), (4, 3, 3, 2, 3), {"padding": 1, "groups": 2}),
    "2d of many channels": ((1, 65, 5, 7), (63, 65, 3, 2), {"stride": (1, 2)}),
    "2d of groups": ((2, 96, 7, 9), (66, 48, 3, 5), {"groups": 2, "padding": 2}),
    "2d of two per channel": ((2, 5, 9, 9), (10, 1, 2, 3), {"groups": 5}),
    "1d of a Mamba block": ((2, 130, 65), (130, 1, 4), {"groups": 130, "padding": 3}),
    "1d of 127": ((1, 32, 63), (32, 8, 127), {"groups": 4, "padding": 63}),
    "1d that ends early": ((1, 3, 31), (5, 3, 3), {"stride": 7, "padding": 1}),
    "2d of patches": ((2, 3, 13, 8), (65, 3, 4, 4), {"stride": 4}),
    "2d of channels": ((1, 7, 9, 8), (7, 1, 3, 3), {"stride": 2, "groups": 7}),
    "2d of odd rows": ((1, 3, 31, 29), (5, 3, 7, 7), {"stride": 2, "padding": 3}),
}
TRANSPOSED = {
    "1d": ((2, 4, 5), (4, 3, 3), {"groups": 2, "stride": 3, "dilation": 2}),
    "2d": (
        (2, 4, 5, 7),
        (4, 6, 3, 2),
        {"stride": 2, "padding": 1, "output_padding": 1},
    ),
    "2d cropped": ((1, 2, 5, 5), (2, 3, 2, 2), {"padding": 2}),
    "3d": ((1, 2, 3, 3, 4), (2, 2, 2, 3, 2), {"stride": (1, 2, 1)}),
    "1d of gaps": ((2, 65, 5), (65, 3, 2), {"stride": 5, "output_padding": 3}),
    "1d of 16": ((1, 6, 13), (6, 33, 16), {"stride": 8, "padding": 4, "groups": 2}),
    "2d of stride and dilation": (
        (1, 4, 5, 4),
        (4, 2, 3, 5),
        {"stride": (2, 3), "padding": (3, 5), "dilation": (1, 2), "groups": 2},
    ),
    "2d of channels": ((1, 7, 4, 5), (7, 2, 4, 3), {"stride": (3, 2), "groups": 7}),
    "3d of blocks": ((1, 5, 2, 3, 2), (5, 63, 2, 2, 2), {"stride": 2}),
    "2d of 4 at 2": ((1, 5, 4, 7), (5, 65, 4, 4), {"stride": 2, "padding": 1}),
    "1d of late phases": (
        (2, 6, 5),
        (6, 3, 3),
        {"stride": 3, "padding": 1, "dilation": 2, "groups": 3},
    ),
    "2d of dilated phases": (
        (1, 4, 5, 4),
        (4, 2, 3, 3),
        {"stride": 2, "padding": (2, 1), "dilation": 2, "output_padding": 1},
    ),
    "2d of far elements": (
        (1, 4, 5, 4),
        (4, 2, 2, 3),
        {"stride": 2, "padding": 3, "dilation": (5, 3), "output_padding": (0, 1)},
    ),
}
CASES = [
    *((f"conv{k[:2]}", *v) for k, v in CONVOLUTIONS.items() if k[1] == "d"),
    *(("conv2d", *v) for k, v in CONVOLUTIONS.items() if k[1] != "d"),
    *((f"conv_transpose{k[:2]}", *v) for k, v in TRANSPOSED.items()),
]


@pytest.mark.parametrize(("name", "size", "kernel", "keywords"), CASES)
@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
def test_convolution(name, size, kernel, keywords, is_compiled):
    x, weight = half(*size), half(*kernel)
    transposed = "transpose" in name
    channels = kernel[1] * keywords.get("groups", 1) if transposed else kernel[0]
    bias = half(channels)

    def function(x, weight, bias):
        return getattr(functional, name)(x, weight, bias, **keywords)

    run = compiled(function) if is_compiled else function
    actual = run(*to_device((x, weight, bias))).cpu()
    values = [device_value(t) for t in (x, weight, bias)]
    terms = weight.numel() // (kernel[1] if transposed else kernel[0]) + 1
    assert_contraction(
        actual, function(*values), terms, function(*(v.abs() for v in values))
    )


@pytest.mark.parametrize("which", [(), (0,), (1,), (0, 1)])
@pytest.mark.parametrize(
    ("size", "kernel"),
    [
        ((2, 5, 9, 11), (7, 5, 3, 2)),
        ((2, 5, 9, 11), (7, 5, 1, 1)),
        ((2, 1, 4, 5), (1, 1, 2, 2)),
        ((2, 3, 4, 5, 6), (4, 3, 2, 1, 3)),
    ],
)
def test_strides_are_those_of_the_cpu(size, kernel, which):
    last = torch.channels_last if len(size) == 4 else torch.channels_last_3d
    inputs = [half(*size), half(*kernel)]
    for i in which:
        inputs[i] = inputs[i].contiguous(memory_format=last)
    there = to_device(inputs)
    assert [t.stride() for t in there] == [t.stride() for t in inputs]
    convolve = getattr(functional, f"conv{len(size) - 2}d")
    # In fp16 they depend on the CPU's instructions.
    expected = convolve(*(t.float() for t in inputs))
    for run in (convolve, compiled(convolve)):
        actual = run(*there)
        assert actual.stride() == expected.stride()
        values = [device_value(t) for t in inputs]
        magnitude = convolve(*(v.abs() for v in values))
        terms = inputs[1][0].numel()
        assert_contraction(actual.cpu(), convolve(*values), terms, magnitude)


@pytest.mark.parametrize(
    ("x", "y", "dims", "bias"),
    [
        ((2, 3, 1, 5, 6, 7), (1, 3, 4, 1, 1, 7), [5], None),
        ((2, 3, 1, 5, 6, 7), (1, 3, 4, 1, 1, 7), [5], (1, 3, 4, 1, 1)),
        ((2, 3, 4, 5, 1), (2, 3, 1, 5, 6), [0, 3], None),
        ((2, 3), (2, 3), [0, 1], ()),
        ((1, 1), (1, 5), [0], None),
        ((0, 3), (1, 3), [1], None),
        ((2, 3), (2, 3), [], None),
    ],
)
def test_inferred_products_are_as_computed_ones(x, y, dims, bias):
    operator = torch.ops.spyre.sum_products
    for order in (1, -1):
        left, right = (
            half(*n[::order]).permute(*range(len(n))[::order]) for n in (x, y)
        )
        more = None if bias is None else half(*bias)
        computed = operator(left, right, dims, more)
        inferred = operator(*(t.to("meta") for t in (left, right)), dims, more)
        for part in ("shape", "dtype"):
            assert getattr(inferred, part) == getattr(computed, part)
        assert inferred.stride() == computed.stride()


@pytest.mark.parametrize(
    ("name", "sizes", "how"),
    [
        ("windows", (5, 9), ([3], [1], [1], [7])),
        ("windows", (9, 11), ([3, 4], [2, 1], [3, 2], [2, 5])),
        ("windows", (2, 3, 9), ([1], [9], [1], [1])),
        ("windows", (0, 9), ([9], [1], [1], [1])),
        ("windows", (5, 2), ([3], [1], [1], [0])),
        ("grouped_windows", (2, 6, 9), ([3], [2], [1], [4], 2, 0)),
        ("grouped_windows", (2, 6, 9), ([3], [2], [1], [4], 2, 1)),
        ("grouped_windows", (2, 3, 9, 11), ([2, 3], [2, 1], [1, 2], [4, 7], 1, 1)),
        ("grouped_windows", (1, 3, 9, 11), ([2, 3], [1, 1], [1, 1], [8, 9], 3, 2)),
        ("grouped_windows", (0, 3, 9), ([3], [1], [1], [7], 1, 1)),
    ],
)
def test_windows_are_parts_of_the_input(name, sizes, how):
    operator = getattr(torch.ops.spyre, name)
    x = half(*sizes)
    computed = operator(x, *how)
    inferred = operator(x.to("meta"), *how)
    for part in ("shape", "dtype"):
        assert getattr(inferred, part) == getattr(computed, part)
    assert inferred.stride() == computed.stride()
    kernel, stride, dilation, out, *more = how
    if more:
        groups, merged = more
        apart = 3 + 2 * len(kernel) - merged  # Channels are there.
        sizes = sizes[1] // groups, *kernel[len(kernel) - merged :]
        computed = computed.unflatten(-1, sizes).movedim(apart, 2)
        computed = computed.squeeze(3).flatten(1, 2)
    for d, (k, s, step, n) in enumerate(
        zip(kernel, stride, dilation, out, strict=True), x.dim() - len(kernel)
    ):
        reach = (k - 1) * step + 1
        if n == 0:
            assert computed.numel() == 0
            return
        x = x.narrow(d, 0, (n - 1) * s + reach).unfold(d, reach, s)[..., ::step]
    assert torch.equal(computed, x)


def test_one_program_for_images_of_any_size():
    """Nor do odd heights and widths, which pooling cuts, need programs of their own."""

    def function(x, w, u):
        y = functional.relu(functional.conv2d(x, w, padding=1))
        z = functional.conv_transpose2d(functional.max_pool2d(y, 2), u, stride=2)
        missing = (0, y.shape[3] - z.shape[3], 0, y.shape[2] - z.shape[2])
        return torch.cat([y, functional.pad(z, missing)], 1)

    weights = half(5, 3, 3, 3), half(5, 5, 2, 2)
    device = to_device(weights)
    run = compiled(function, dynamic=True)
    before = len(compiled_parts())
    for height, width in ((64, 80), (97, 55), (50, 101), (65, 65)):
        x = half(1, 3, height, width)
        expected = function(*(device_value(t) for t in (x, *weights)))
        actual = run(x.to("spyre"), *device).cpu()
        error = (actual - expected).abs().max()
        assert error <= 0.01 * expected.abs().max(), (height, width)
    assert len(compiled_parts()) == before + 1


def test_windows_end_in_the_gradient(caplog):
    """Where the padding varies, too, a gradient ends with its windows in calls only."""

    def function(x, weight, padding):
        return functional.conv1d(x, weight, stride=2, padding=padding)

    run = compiled(function, dynamic=True)
    weight = torch.randn(3, 3, 3)
    for size in (4, 7, 16):
        x, found = torch.randn(1, 3, size), []
        for f, device in ((function, "cpu"), (run, "spyre")):
            inputs = [t.to(device).requires_grad_() for t in (x, weight)]
            y = f(*inputs, 2)
            found.append(torch.autograd.grad((y * y).sum(), inputs))
        for want, got in zip(*found, strict=True):
            assert (got.cpu() - want).abs().max() <= 1e-5 * want.abs().max(), size
    assert "wrong plan" not in caplog.text


def test_convolution_of_nothing():
    x, weight = half(0, 3, 9, 9), half(5, 3, 3, 3)
    run = compiled(functional.conv2d)
    assert run(*to_device((x, weight))).shape == (0, 5, 7, 7)
    assert functional.conv2d(*to_device((x, weight))).shape == (0, 5, 7, 7)
    spread = functional.conv_transpose2d(*to_device((x, half(3, 5, 3, 3))), stride=2)
    assert spread.shape == (0, 5, 19, 19)
    weight = weight.to("spyre").requires_grad_()
    functional.conv2d(x.to("spyre"), weight).sum().backward()
    assert torch.equal(weight.grad.cpu(), torch.zeros(5, 3, 3, 3).half())


@pytest.mark.parametrize(("name", "size", "kernel", "keywords"), CASES)
def test_gradients_of_convolutions(name, size, kernel, keywords):
    def gradients(x, weight, seed):
        x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
        y = getattr(functional, name)(x, weight, **keywords)
        return torch.autograd.grad(y, (x, weight), seed(y).to(y.dtype))

    x, weight = half(*size), half(*kernel)

    def seed(y):
        return half(*y.shape).to(y.device)

    actual = gradients(*to_device((x, weight)), seed)

    def seed_wide(y):
        return device_value(half(*y.shape))

    values = [device_value(t) for t in (x, weight)]
    expected = gradients(*values, seed_wide)
    magnitudes = gradients(*(v.abs() for v in values), lambda y: seed_wide(y).abs())
    terms = x.numel() // x.shape[0 if x.dim() == len(kernel) else 1] + weight.numel()
    for a, e, m in zip(actual, expected, magnitudes, strict=True):
        assert_contraction(a.cpu(), e, terms, m)


#: Function, sizes of its inputs, most operations on the device. With an operation per
#: element of a window there would be 196, 49, 49 and 27.
FEW = {
    "patches": (functional.conv2d, ((1, 3, 30, 40), (16, 3, 14, 14)), 7),
    "depthwise": (
        lambda x, w: functional.conv2d(x, w, groups=65, padding=3),
        ((1, 65, 9, 11), (65, 1, 7, 7)),
        7,
    ),
    "average": (lambda x: functional.avg_pool2d(x, 7, 1), ((1, 65, 9, 11),), 4),
    "transposed": (
        lambda x, w: functional.conv_transpose2d(x, w, None, 4),
        ((1, 65, 5, 7), (65, 3, 4, 4)),
        6,
    ),
    "gradient of an average": (
        lambda g, x: torch.ops.aten.avg_pool2d_backward(
            g, x, [4, 4], [2, 2], [0, 0], False, True, None
        ),
        ((1, 65, 3, 5), (1, 65, 8, 12)),
        9,
    ),
    "largest": (lambda x: functional.max_pool2d(x, 7, 2, 3), ((1, 65, 9, 11),), 3),
    "3d": (functional.conv3d, ((1, 65, 5, 6, 7), (3, 65, 3, 3, 3)), 6),
}


@pytest.mark.parametrize("name", FEW)
def test_windows_are_walked_by_loops(name, tmp_path, monkeypatch):
    function, sizes, most = FEW[name]
    monkeypatch.setenv("SPYRE_DUMP_DIR", str(tmp_path))
    compiled(function)(*to_device([half(*s) for s in sizes]))
    (report,) = tmp_path.glob("*/report.json")
    assert 1 <= len(json.loads(report.read_text())) <= most


POOLS = [
    ("avg_pool1d", (2, 3, 11), (3,), {"stride": 2}),
    ("avg_pool2d", (2, 3, 9, 7), ((3, 2),), {"stride": 2, "padding": (1, 0)}),
    (
        "avg_pool2d",
        (1, 2, 9, 8),
        (3,),
        {"stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False},
    ),
    ("avg_pool2d", (1, 2, 9, 8), (2,), {"ceil_mode": True, "padding": 1}),
    ("avg_pool2d", (1, 65, 6, 6), (2,), {"divisor_override": 3}),
    ("avg_pool2d", (2, 3, 8, 12), ((4, 3),), {"stride": (2, 3)}),
    (
        "avg_pool2d",
        (1, 3, 12, 9),
        (6,),
        {"stride": (3, 2), "padding": (3, 2), "ceil_mode": True},
    ),
    ("avg_pool3d", (1, 2, 5, 6, 7), (2,), {"stride": (1, 2, 3), "padding": 1}),
    ("adaptive_avg_pool1d", (2, 3, 11), (4,), {}),
    ("adaptive_avg_pool2d", (2, 3, 7, 12), ((3, 4),), {}),
    ("adaptive_avg_pool3d", (1, 2, 5, 3, 4), ((2, 3, 1),), {}),
]


@pytest.mark.parametrize(("name", "size", "arguments", "keywords"), POOLS)
@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
def test_average_pooling(name, size, arguments, keywords, is_compiled):
    def function(x):
        return getattr(functional, name)(x, *arguments, **keywords)

    x = half(*size)
    run = compiled(function) if is_compiled else function
    assert_units(run(x.to("spyre")).cpu(), function(device_value(x)), 1)


#: With windows that overlap, that leave gaps, and that begin outside.
MAX_POOLS = [
    ("max_pool1d", (2, 3, 65), (3,), {"stride": 2}),
    ("max_pool2d", (2, 3, 9, 7), ((3, 2),), {"stride": (1, 3), "padding": (1, 0)}),
    ("max_pool2d", (1, 2, 9, 8), (2,), {"ceil_mode": True, "padding": 1}),
    ("max_pool2d", (3, 7, 9), (2,), {"stride": 1, "dilation": (3, 2)}),
]


@pytest.mark.parametrize(
    ("name", "size", "arguments", "keywords"), [*POOLS, *MAX_POOLS]
)
def test_gradients_of_pooling(name, size, arguments, keywords):
    def gradient(x, seed):
        x = x.detach().requires_grad_()
        y = getattr(functional, name)(x, *arguments, **keywords)
        return torch.autograd.grad(y, x, seed(y))[0]

    x = half(*size)
    actual = gradient(x.to("spyre"), lambda y: half(*y.shape).to("spyre")).cpu()
    expected = gradient(device_value(x), lambda y: device_value(half(*y.shape)))
    rounded = oracle(
        lambda: gradient(device_value(x), lambda y: device_value(half(*y.shape)))
    )
    assert_like_oracle(actual, expected, rounded + 0 * expected)


#: More sizes, and windows of all of the input, of one element, or of none.
MORE_MAX_POOLS = [
    ("max_pool2d", (2, 65, 13, 13), (3, 2, 1), {}),
    ("max_pool2d", (1, 1, 1, 1), (1,), {}),
    ("max_pool2d", (2, 3, 5, 7), ((5, 7),), {}),
    ("max_pool2d", (0, 3, 8, 8), (2,), {}),
    ("max_pool3d", (1, 3, 5, 7, 9), (3, 2, 1), {}),
    ("max_pool3d", (2, 5, 5, 6), (2,), {"ceil_mode": True, "dilation": 2, "stride": 1}),
]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64])
@pytest.mark.parametrize(
    ("name", "size", "arguments", "keywords"), [*MAX_POOLS, *MORE_MAX_POOLS]
)
def test_max_pooling(name, size, arguments, keywords, dtype):
    """With numbers of maxima, many of which are equal, and strides of results."""

    def pool(x, numbers):
        function = getattr(functional, name)
        return function(x, *arguments, return_indices=numbers, **keywords)

    x = torch.randint(-4, 5, size, generator=torch.Generator().manual_seed(1)).to(dtype)
    on_device = x.to("spyre")
    wanted = pool(x, True)
    torch_spyre.reset_fallback_report()
    for run in (pool, compiled(pool)):
        for actual, expected in zip(run(on_device, True), wanted, strict=True):
            assert torch.equal(actual.cpu(), expected)
            assert actual.stride() == expected.stride()
        if dtype.is_floating_point:
            assert torch.equal(run(on_device, False).cpu(), wanted[0])
    assert torch_spyre.fallback_report() == {}


def test_max_pooling_channels_last():
    x = half(2, 8, 9, 9).round().contiguous(memory_format=torch.channels_last)
    wanted = functional.max_pool2d(x, 3, 2, 1, return_indices=True)
    found = functional.max_pool2d(x.to("spyre"), 3, 2, 1, return_indices=True)
    for actual, expected in zip(found, wanted, strict=True):
        assert torch.equal(actual.cpu(), expected)
        assert actual.stride() == expected.stride()


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [(3, 2, 1, 1), (4, 1, 2, 1), (3, 2, 1, 2), ((4, 2), 3, (2, 0), 3)],
)
def test_max_pooling_of_what_pads(kernel, stride, padding, dilation):
    """Where all is minus infinity, the first element of the input is the maximum."""
    x = half(1, 2, 11, 10)
    x[:, :, :6] = -torch.inf
    how = {"stride": stride, "padding": padding, "dilation": dilation}
    wanted = functional.max_pool2d(
        device_value(x).half(), kernel, return_indices=True, **how
    )
    found = functional.max_pool2d(x.to("spyre"), kernel, return_indices=True, **how)
    for actual, expected in zip(found, wanted, strict=True):
        assert torch.equal(actual.cpu(), expected)


@pytest.mark.parametrize("is_training", [False, True], ids=["eval", "train"])
def test_a_small_network(is_training):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.AvgPool2d(2),
        torch.nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=2),
        torch.nn.GELU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 5),
    ).half()
    model.train(is_training)
    wide = copy.deepcopy(model).double()
    for p in wide.parameters():
        p.data = device_value(p.data.half())
    x = half(2, 3, 16, 16)
    rounded = oracle(lambda: copy.deepcopy(wide)(device_value(x)))
    expected = wide(device_value(x))
    eager = copy.deepcopy(model).to("spyre")(x.to("spyre")).cpu()
    model = model.to("spyre")
    actual = compiled(model)(x.to("spyre"))
    assert_like_oracle(actual.cpu(), expected, rounded)
    assert torch.equal(eager, actual.cpu()) or is_training
    if is_training:
        expected.sum().backward()
        actual.sum().backward()
        # What batch norm subtracts leaves nothing but noise before it.
        for index in (4, 8):
            for a, e in zip(
                model[index].parameters(), wide[index].parameters(), strict=True
            ):
                error = (a.grad.cpu().double() - e.grad).abs().max()
                assert error <= 2.0**-6 * e.grad.abs().max()
        assert_units(model[1].running_var.cpu(), wide[1].running_var, 4)


@pytest.mark.parametrize("size", [(2, 3, 4, 5), (3, 4, 65), (1, 2, 5, 3, 4)])
def test_pooling_to_the_same_size(size):
    """Gives a tensor of its own, on the device."""
    pool = getattr(functional, f"adaptive_avg_pool{3 if len(size) == 5 else 2}d")
    x = torch.arange(float(torch.Size(size).numel())).view(size).to("spyre")
    torch_spyre.reset_fallback_report()
    result = pool(x, size[-3:] if len(size) == 5 else size[-2:])
    assert torch_spyre.fallback_report() == {}
    assert result.data_ptr() != x.data_ptr() and torch.equal(result.cpu(), x.cpu())
