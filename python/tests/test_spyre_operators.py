# SPDX-License-Identifier: Apache-2.0
"""``torch.ops.spyre.*`` against CPU math: docs/spec/drop-in.md, section 4."""

import pytest
import torch
import torch_spyre
from inputs import pair, values
from numerics import (
    assert_contraction,
    assert_exact,
    assert_rounded,
    assert_units,
    assert_within,
    compiled,
    device_value,
    unit,
)
from torch.nn import functional
from torch_spyre import _C
from torch_spyre._inductor.errors import Unsupported
from torch_spyre.compile_backend import compiled_parts
from torch_spyre.ops.fallbacks import FallbackWarning

spyre = torch.ops.spyre
HALF = torch.float16


def both(function, *arguments):
    """Eager and compiled results, which have the same bits."""
    eager = function(*arguments)
    graph = compiled(function, fullgraph=True)(*arguments)
    for a, b in zip(as_list(eager), as_list(graph), strict=True):
        assert a.stride() == b.stride()
        assert_exact(b.cpu(), a.cpu(), "compiled, not as eager")
    return eager.cpu() if isinstance(eager, torch.Tensor) else [t.cpu() for t in eager]


def as_list(results):
    return [results] if isinstance(results, torch.Tensor) else list(results)


POINTWISE = {
    "softplus": (spyre.softplus, functional.softplus),
    "softplus of numbers": (
        lambda x: spyre.softplus(x, 2.5, 3.0),
        lambda x: functional.softplus(x, 2.5, 3.0),
    ),
    "gelu": (spyre.gelu, functional.gelu),
    "gelu by tanh": (
        lambda x: spyre.gelu(x, "tanh"),
        lambda x: functional.gelu(x, approximate="tanh"),
    ),
    "silu": (spyre.silu, functional.silu),
}


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("name", POINTWISE)
@pytest.mark.parametrize("shape", ["0d", "0", "1", "63", "65", "transposed", "offset"])
def test_activations(name, shape):
    on_spyre, on_cpu = POINTWISE[name]
    host, device = pair(shape, HALF, seed=3)
    result = both(on_spyre, device)
    assert_units(result, on_cpu(device_value(host)), 2, name)


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("dtype", [HALF, torch.float32, torch.int32], ids=str)
def test_clamp(dtype):
    host, device = pair("7x13", dtype)
    wide = device_value(host)
    for limits in [(-1, 2), (None, 1), (0, None)]:
        result = both(lambda x, limits=limits: spyre.clamp(x, *limits), device)
        assert_rounded(result, torch.clamp(wide, *limits), str(limits))
    with pytest.raises(RuntimeError, match=r"min.*max"):
        spyre.clamp(device)


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("dtype", [HALF, torch.bool, torch.int64], ids=str)
@pytest.mark.parametrize("shape", ["0d", "65", "permuted"])
def test_logical_not(shape, dtype):
    host, device = pair(shape, dtype)
    assert_exact(both(spyre.logical_not, device), host.logical_not())


NORMS = ["65", "7x13", "2x1x67x3", "5x37x150", "transposed"]


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("shape", NORMS)
@pytest.mark.parametrize("affine", [False, True])
def test_layer_norm(shape, affine):
    host, device = pair(shape, HALF, seed=1)
    size = host.shape[-1]
    weight, bias = (values((size,), HALF, seed) if affine else None for seed in (2, 3))
    parameters = [t.to("spyre") for t in (weight, bias) if affine]
    result = both(lambda x, *p: spyre.layer_norm(x, [size], *p), device, *parameters)
    wide = [device_value(t) for t in (weight, bias) if affine]
    expected = functional.layer_norm(device_value(host), [size], *wide)
    bound = 2 * unit(expected, HALF)
    if affine:
        bound = bound + 2 * unit(expected - wide[1], HALF)
    assert_within(result, expected, bound)
    host_result = spyre.layer_norm(host, [size], weight, bias)
    assert_exact(host_result, functional.layer_norm(host, [size], weight, bias))


@pytest.mark.parametrize("device", ["cpu", "spyre"])
def test_layer_norm_of_two_dimensions(device):
    x = torch.ones(3, 4, 5, device=device)
    text = "Spyre backend does not support: layer_norm over 2 dimensions"
    with pytest.raises(Unsupported, match=text):
        spyre.layer_norm(x, [4, 5])


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("shape", NORMS)
def test_rms_norm(shape):
    host, device = pair(shape, HALF, seed=1)
    size = host.shape[-1]
    weight = values((size,), HALF, 2)
    result = both(
        lambda x, w: spyre.rms_norm(x, [size], w, 1e-3), device, weight.to("spyre")
    )
    expected = functional.rms_norm(
        device_value(host), [size], device_value(weight), 1e-3
    )
    assert_units(result, expected, 2)
    expected = functional.rms_norm(device_value(host), [size], eps=1e-5)
    assert_units(spyre.rms_norm(device, [size]).cpu(), expected, 2)


def in_steps(x, weight=None, bias=None, eps=1e-5):
    mean = spyre.exx2(x, 1.0 / x.shape[-1], False)
    norm_mean = spyre.layernormscale(mean, eps)
    return spyre.layernormnorm(x, mean, norm_mean, weight, bias)


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("dtype", [HALF, torch.float32], ids=str)
@pytest.mark.parametrize("shape", NORMS)
def test_layer_norm_in_steps(shape, dtype):
    host, device = pair(shape, dtype, seed=1)
    weight, bias = (values((host.shape[-1],), dtype, seed) for seed in (2, 3))
    parameters = (weight.to("spyre"), bias.to("spyre"))
    wide, w, b = (device_value(t) for t in (host, weight, bias))
    expected = functional.layer_norm(wide, [host.shape[-1]], w, b)
    product = expected - b
    # The variance is rounded once more, and that halved: 1 / sqrt.
    bound = 2 * unit(expected, HALF) + 2 * unit(product, HALF)
    if dtype == torch.float32:
        bound = 2e-6 * (1 + product.abs() + expected.abs())
    # Three programs or one, whose sums may be divided otherwise.
    for function in (in_steps, compiled(in_steps, fullgraph=True)):
        assert_within(function(device, *parameters).cpu(), expected, bound)


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("function", [in_steps, lambda x: spyre.layer_norm(x, [130])])
def test_layer_norm_of_nearly_constant_rows(function):
    """E[x^2] - E[x]^2 of rounded statistics is noise here, or below zero."""
    steps = torch.arange(130) % 3 - 1
    host = torch.stack([1000 + steps, 8 + steps / 64, steps * 0 + 37]).to(HALF)
    host = torch.where(host == 1000 - 1, 998, host)
    host = device_value(host).to(HALF)
    result = both(function, host.to("spyre"))
    expected = functional.layer_norm(host.double(), [130])
    assert result[2].eq(0).all()
    assert_within(result, expected, 2.0**-8 * (1 + expected.abs()))


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("zero_mean", [False, True])
def test_statistics(zero_mean):
    host, device = pair("5x37x150", HALF)
    result = both(lambda x: spyre.exx2(x, 1 / 150, zero_mean), device)
    wide = device_value(host)
    assert_contraction(result, wide.square().mean(-1), 150, wide.square().mean(-1))
    scale = both(
        lambda x: spyre.layernormscale(spyre.exx2(x, 1 / 150, zero_mean), 0.5), device
    )
    variance = wide.square().mean(-1) if zero_mean else wide.var(-1, correction=0)
    assert_units(scale, (variance + 0.5).rsqrt(), 2)


@pytest.mark.usefixtures("no_fallback")
def test_scale_that_is_no_mean():
    """The variance is the scaled sum of squares minus the square of the scaled sum."""
    host, device = pair("7x13", HALF, low=0.5, high=1.0)
    wide = device_value(host)
    scale = 0.05
    result = spyre.layernormscale(spyre.exx2(device, scale, False), 0.25).cpu()
    variance = wide.square().sum(-1) * scale - (wide.sum(-1) * scale).square()
    assert_units(result, (variance + 0.25).rsqrt(), 2)


@pytest.mark.usefixtures("no_fallback")
def test_steps_in_two_graphs():
    """Statistics that leave a graph keep what the next step needs."""
    device = values((5, 37, 150), HALF).to("spyre")
    first = compiled(lambda x: spyre.exx2(x, 1 / 150, False))(device)
    second = compiled(lambda m: spyre.layernormscale(m, 1e-5))(first)
    third = compiled(spyre.layernormnorm)(device, first, second)
    assert_exact(third.cpu(), in_steps(device).cpu())
    sliced = spyre.layernormscale(first[1:3], 1e-5)
    assert_exact(sliced.cpu(), second[1:3].cpu())


@pytest.mark.parametrize("change", [torch.clone, lambda t: t + 0, torch.relu])
def test_statistics_that_are_copies(change):
    x = torch.ones(3, 70, device="spyre", dtype=HALF)
    mean = spyre.exx2(x, 1 / 70, False)
    with pytest.raises(Unsupported, match="no result of exx2"):
        spyre.layernormscale(change(mean), 1e-5)
    norm_mean = spyre.layernormscale(mean, 1e-5)
    with pytest.raises(Unsupported, match="no result of layernormscale"):
        spyre.layernormnorm(x, mean, change(norm_mean))
    with pytest.raises(Unsupported, match=r"mean of shape \[2\]: expected \[3\]"):
        spyre.layernormnorm(x, mean[:2], norm_mean)


def test_steps_refuse():
    with pytest.raises(Unsupported, match=r"exx2 of torch.int32"):
        spyre.exx2(torch.ones(3, dtype=torch.int32, device="spyre"), 1.0, False)
    with pytest.raises(Unsupported, match="without dimensions"):
        spyre.exx2(torch.ones((), device="spyre"), 1.0, False)
    x = torch.ones(3, 5, device="spyre", requires_grad=True)
    with pytest.raises(Unsupported, match=r"gradient of spyre::layernormnorm"):
        in_steps(x).sum().backward()


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_top_k(k, dim):
    host = torch.randperm(9 * 71, generator=torch.Generator().manual_seed(k))
    host = (host % 512).reshape(9, 71).to(HALF)
    expected, _ = torch.topk(host, k, dim)
    device = host.to("spyre")
    assert_exact(both(lambda x: spyre.topkvalue(x, k, dim), device), expected)
    index = both(lambda x: spyre.topkindex(x, k, dim), device)
    assert index.dtype == torch.int64
    assert_exact(host.gather(dim, index), expected)


@pytest.mark.parametrize("shape", [(5,), (2, 3, 5)])
def test_top_k_of_other_ranks(shape):
    x = torch.ones(shape, device="spyre")
    for op in (spyre.topkvalue, spyre.topkindex):
        with pytest.raises(Unsupported, match=f"with {len(shape)} dimensions"):
            op(x, 1, 0)


@pytest.mark.parametrize("shape", [(), (0, 3), (5, 65)])
def test_empty(shape):
    device = torch.device("spyre:0")
    for dtype in (None, HALF, torch.int64):
        made = spyre.empty(shape, device, dtype)
        assert (made.device, made.shape) == (device, shape)
        assert made.dtype == (dtype or torch.get_default_dtype())
    with pytest.raises(NotImplementedError, match="found an argument on cpu"):
        spyre.empty(shape, torch.device("cpu"))
    graph = compiled(
        lambda x: spyre.empty(shape, device, HALF).copy_(x), fullgraph=True
    )
    x = values(shape, HALF)
    assert_rounded(graph(x.to("spyre")).cpu(), device_value(x))


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("shape", ["0d", "0", "65", "transposed", "sliced"])
def test_copy_from_d2d(shape):
    host, device = pair(shape, HALF)
    target = torch.zeros_like(device, memory_format=torch.contiguous_format)

    def copy(source, target):
        assert spyre.copy_from_d2d(source, target) is None
        return target + 1

    copy(device, target)
    assert_rounded(target.cpu(), device_value(host))
    again = torch.zeros_like(target)
    compiled(copy, fullgraph=True)(device, again)
    assert_exact(again.cpu(), target.cpu())


@pytest.mark.usefixtures("no_fallback")
def test_copy_from_d2d_keeps_the_layout():
    """A copy between layouts: the values move, the target's layout stays."""
    host = values((67, 130), HALF)
    layout = _C.SpyreTensorLayout([67, 130], [130, 1], HALF, [1, 0])
    target = torch.empty(67, 130, dtype=HALF, device="spyre", device_layout=layout)
    for copy in (spyre.copy_from_d2d, compiled(spyre.copy_from_d2d)):
        target.zero_()
        copy(host.to("spyre"), target)
        assert target.device_tensor_layout() == layout
        assert_rounded(target.cpu(), device_value(host))


OVERWRITES = {
    "rows": ((3, 70), (9, 70), [0], [4]),
    "inside a stick": ((9, 5), (9, 70), [1], [61]),
    "two dimensions": ((2, 3, 5), (7, 3, 70), [2, 0], [1, 5]),
    "a point": ((1, 1), (9, 70), [0, 1], [8, 69]),
    "all": ((9, 70), (9, 70), [], []),
    "nothing": ((0, 70), (9, 70), [0], [2]),
    "negative": ((9, 5), (9, 70), [-1], [3]),
}


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("case", OVERWRITES)
def test_overwrite(case):
    small, large, dims, offsets = OVERWRITES[case]
    source, base = values(small, HALF, 1), values(large, HALF, 2)
    expected = base.clone()
    view = expected
    for dim, offset in zip(dims, offsets, strict=True):
        view = view.narrow(dim, offset, source.shape[dim])
    view.copy_(source)
    on_cpu = base.clone()
    spyre.overwrite(source, on_cpu, dims, offsets)
    assert_exact(on_cpu, expected)

    def update(x, y):
        spyre.overwrite(x, y, dims, offsets)

    for function in (update, compiled(update, fullgraph=True)):
        device = base.to("spyre")
        function(source.to("spyre"), device)
        assert_rounded(device.cpu(), device_value(expected))
    device = base.to("spyre")
    result = both(
        lambda x, y: spyre.overwrite_f(x, y, dims, offsets), source.to("spyre"), device
    )
    assert_rounded(result, device_value(expected))
    assert_rounded(device.cpu(), device_value(base), "overwrite_f keeps its argument")


@pytest.mark.usefixtures("no_fallback")
def test_overwrite_f_writes_in_place():
    """Where the output is then updated by the result, nothing else of it is written."""
    cache = torch.zeros(512, 128, dtype=HALF, device="spyre")
    new = values((2, 128), HALF)

    def step(new, cache):
        cache.copy_(spyre.overwrite_f(new, cache, [0], [37]))

    compiled(step)(new.to("spyre"), cache)
    assert_rounded(cache[37:39].cpu(), device_value(new))
    assert cache.cpu().count_nonzero() == new.count_nonzero()
    (part,) = compiled_parts()[-1:]
    assert max(k["device_bytes_written"] for k in part.report()) < cache.numel() / 4


def test_overwrite_refuses():
    x, y = torch.ones(2, 3, device="spyre"), torch.zeros(5, 7, device="spyre")
    with pytest.raises(ValueError, match="2 dims, but 1 offsets"):
        spyre.overwrite(x, y, [0, 1], [0])
    with pytest.raises(ValueError, match=r"does not fill .* \[2, 7\]"):
        spyre.overwrite(x, y, [0], [0])
    with pytest.raises((RuntimeError, IndexError)):
        spyre.overwrite(x, y, [0, 1], [4, 0])
    assert y.cpu().eq(0).all()


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize(
    "shape", ["0d", "1", "65", "7x13", "3x0x5", "5x37x150", "transposed", "sliced"]
)
def test_restickify(shape):
    host, device = pair(shape, HALF)
    result = spyre.restickify(device)
    assert_rounded(result.cpu(), device_value(host))
    assert_rounded(compiled(spyre.restickify)(device).cpu(), device_value(host))
    if host.dim() > 1 and host.numel():
        last = {"transposed": 1}.get(shape, host.dim() - 2)
        steps = _C.get_spyre_tensor_layout(result).stride_map[-1]
        assert steps == result.stride(last), "sticks lie where they lay"
        again = spyre.restickify(result)
        assert_exact(again.cpu(), result.cpu())
        assert _C.get_spyre_tensor_layout(again).stride_map[-1] != steps


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((5, 67), (67, 130)),
        ((3, 5, 67), (3, 67, 13)),
        ((3, 5, 67), (67, 13)),
        ((2, 3, 1, 65), (2, 3, 65, 1)),
        ((2, 3, 5, 7), (3, 7, 4)),
        ((2, 0, 7), (2, 7, 4)),
    ],
    ids=str,
)
def test_batched_matmul(x, y):
    a, b = values(x, HALF, 1), values(y, HALF, 2)
    result = both(spyre.batched_matmul, a.to("spyre"), b.to("spyre"))
    wide = [device_value(t) for t in (a, b)]
    assert result.shape == (*x[:-1], y[-1])
    sums = wide[0].abs() @ wide[1].abs()
    assert_contraction(result, wide[0] @ wide[1], x[-1], sums)


def test_batched_matmul_refuses():
    ones = [torch.ones(s, device="spyre") for s in ((5,), (3, 5), (2, 5, 4))]
    for x, y in [(0, 1), (1, 0), (1, 2)]:
        with pytest.raises(Unsupported, match="batched_matmul of"):
            spyre.batched_matmul(ones[x], ones[y])


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize(
    ("shape", "numbers"),
    [
        ((2, 3, 7, 9), ([3, 2],)),
        ((1, 1, 5, 5), ([5, 5],)),
        ((2, 3, 11, 9), ([3, 3], [2, 1], [1, 2], [2, 3])),
        ((2, 3, 7, 9), ([2, 2], None, [1, 0], [3, 1])),
    ],
    ids=str,
)
def test_unfold(shape, numbers):
    host = values(shape, HALF)
    result = both(lambda x: spyre.unfold(x, *numbers), host.to("spyre"))
    given = [n for n in numbers[1:] if n is not None]
    expected = functional.unfold(host, *numbers) if len(given) == 3 else None
    if expected is None:
        names = ("dilation", "padding", "stride")
        extra = zip(names, numbers[1:], strict=False)
        extra = {k: v for k, v in extra if v is not None}
        expected = functional.unfold(host, numbers[0], **extra)
    assert_rounded(result, device_value(expected))


@pytest.mark.parametrize(
    ("value", "dtype"), [(2, HALF), (2.5, torch.float32), (3, torch.int64)], ids=str
)
def test_constant(value, dtype):
    device = torch.device("spyre")
    made = spyre.constant(value, dtype, device)
    assert made == value
    assert isinstance(made, float if dtype.is_floating_point else int)
    x = torch.ones(3, device="spyre", dtype=HALF)
    graph = compiled(lambda x: x * spyre.constant(value, dtype, device))
    assert_rounded(graph(x).cpu(), torch.full((3,), float(value)))


FALLBACKS = {
    "max_dim_int64_fallback": (
        lambda x: spyre.max_dim_int64_fallback(x, 1),
        lambda x: x.max(1),
    ),
    "min_dim_int64_fallback": (
        lambda x: spyre.min_dim_int64_fallback(x, -2, True),
        lambda x: x.min(-2, True),
    ),
    "reshape_via_cpu": (
        lambda x: spyre.reshape_via_cpu(x, [13, -1]),
        lambda x: x.reshape(13, -1),
    ),
    "to_dtype_cpu": (
        lambda x: spyre.to_dtype_cpu(x, torch.float32),
        lambda x: x.float(),
    ),
}


@pytest.mark.parametrize("name", FALLBACKS)
@pytest.mark.parametrize("shape", ["7x13", "5x13x4"])
def test_through_the_cpu(name, shape):
    function, expected = FALLBACKS[name]
    host = values([int(n) for n in shape.split("x")], torch.int64, 5)
    for call in (function, compiled(function)):
        torch_spyre.reset_fallback_report()
        words = f"spyre::{name} is falling back to cpu"
        with pytest.warns(FallbackWarning, match=words) as seen:
            results = call(host.to("spyre"))
        assert [w.filename for w in seen if w.category is FallbackWarning] == [__file__]
        assert torch_spyre.fallback_report() == {f"spyre::{name}": 1}
        for got, want in zip(as_list(results), as_list(expected(host)), strict=True):
            assert got.device.type == "spyre"
            assert_exact(got.cpu(), want)
    torch_spyre.reset_fallback_report()


def test_sizes_of_a_dynamic_graph():
    """One compiled function for many sizes."""
    graph = compiled(lambda x: spyre.rms_norm(in_steps(x), [x.shape[-1]]), dynamic=True)
    for rows in (2, 3, 65):
        x = values((rows, 70), HALF, rows).to("spyre")
        expected = spyre.rms_norm(in_steps(x), [70])
        assert_exact(graph(x).cpu(), expected.cpu())
