# SPDX-License-Identifier: Apache-2.0
"""Compiled functions over changing inputs, aliases, views and mutations."""

import random

import pytest
import torch
import torch_spyre
from inputs import values
from numerics import assert_exact, compiled, device_value, on_host
from torch_spyre import _C

pytestmark = pytest.mark.usefixtures("no_fallback")


def stored(t):
    """A host tensor as it comes back from the device, with its strides."""
    return torch.empty_like(t).copy_(on_host(device_value(t), t.dtype))


def whole(shape, dtype, seed=0):
    """Small whole numbers: every sum, difference and product is exact."""
    return values(shape, torch.int8, seed).to(dtype)


def same_as_eager(function, *hosts, views=None):
    """Compiled results on the device equal those of the stored host values.

    Checks values, dtype, sizes, strides and offset of each result.
    """
    devices = [h.to("spyre") for h in hosts]
    hosts = [stored(h) for h in hosts]
    if views is not None:
        devices, hosts = views(*devices), views(*hosts)
    results, expected = compiled(function)(*devices), function(*hosts)
    if isinstance(results, torch.Tensor):
        results, expected = [results], [expected]
    for actual, wanted in zip(results, expected, strict=True):
        assert actual.device.type == "spyre"
        assert actual.stride() == wanted.stride()
        assert actual.storage_offset() == wanted.storage_offset()
        assert_exact(actual.cpu(), wanted)
    for device, host in zip(devices, hosts, strict=True):
        assert_exact(device.cpu(), host, "input after the call")


@pytest.mark.parametrize("dtype", [torch.float16, torch.int64], ids=str)
def test_changing_shapes(dtype):
    """One function, called with shapes and ranks one after another."""
    f = compiled(lambda x: x * 2)
    for shape in [(3,), (65,), (4, 70), (0, 3), (), (2, 3, 4), (65,)]:
        x = values(shape, dtype)
        assert_exact(f(x.to("spyre")).cpu(), stored(x) * 2)


def test_changing_strides_and_offsets():
    """The same sizes on differently placed storage."""
    f = compiled(lambda x: x * 2)
    base = values((8, 6, 140), torch.float16)
    device, host = base.to("spyre"), stored(base)
    views = [
        lambda t: t[0],
        lambda t: t[3],
        lambda t: t[2:, 0],
        lambda t: t[:6, 5],
        lambda t: t.transpose(0, 1)[:, 7],
        lambda t: t[0, :1].expand(6, 140),
        lambda t: t.view(48, 140)[1::8],
    ]
    for view in views:
        assert_exact(f(view(device)).cpu(), view(host) * 2)


def test_update_of_an_input_with_an_offset():
    """Fake results of scatters have the input's offset; what follows has not."""

    def update(x):
        row = x.unsqueeze(0).select(1, 1)
        row[:1].fill_(9)
        again = x.unsqueeze(0)
        return again[:, :2] + 0, torch.cat([x[1:3], x])

    base = values((8, 5), torch.float16)
    for offset in (0, 2):
        device, host = base.to("spyre"), stored(base)
        results = compiled(update)(device[offset : offset + 5])
        wanted = update(host[offset : offset + 5])
        for actual, expected in zip(results, wanted, strict=True):
            assert_exact(actual.cpu(), expected)
        assert_exact(device.cpu(), host)


def test_changing_layouts():
    """The same tensor, stored with other device layouts."""
    x = values((70, 130), torch.float16)
    f = compiled(lambda x: x * 2)
    layouts = [
        None,
        _C.SpyreTensorLayout([70, 130], [130, 1], torch.float16, [1, 0]),
        _C.SpyreTensorLayout([70, 130], [130, 1], torch.float16, [0, 1, -1]),
    ]
    for layout in layouts:
        device = x.to("spyre", device_layout=layout) if layout else x.to("spyre")
        assert_exact(f(device).cpu(), stored(x) * 2)


def test_transposed_results_keep_strides():
    same_as_eager(lambda x: x * 2, values((5, 70, 3), torch.float16).transpose(0, 2))
    same_as_eager(lambda x: (x * 2).t(), values((5, 70), torch.float16))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x,
        lambda x: (x, x * 2, x),
        lambda x: x.t(),
        lambda x: x[1:3],
        lambda x: (x.view(-1), x * 2),
        lambda x: x.split(2),
    ],
)
def test_results_that_are_inputs(function):
    """They alias the input: a write through one shows in the other."""
    x = values((6, 70), torch.float16)
    device, host = x.to("spyre"), stored(x)
    results = compiled(function)(device)
    expected = function(host)
    if isinstance(results, torch.Tensor):
        results, expected = (results,), (expected,)
    for actual, wanted in zip(results, expected, strict=True):
        assert actual.stride() == wanted.stride()
        assert actual.storage_offset() == wanted.storage_offset()
        assert_exact(actual.cpu(), wanted)
    results[0].copy_(torch.ones_like(results[0].cpu()))
    expected[0].fill_(1)
    assert_exact(device.cpu(), host)


def test_views_of_computed_results():
    def function(x):
        y = x * 2
        return y, y.t(), y[1:, 3:], y.view(-1)[5]

    x = values((6, 70), torch.float16)
    same_as_eager(function, x)
    y, *views = compiled(function)(x.to("spyre"))
    y.copy_(torch.zeros(6, 70, dtype=torch.float16))
    for view in views:
        assert (view.cpu() == 0).all()


def test_aliasing_inputs():
    """The same tensor twice, and overlapping views of one storage."""
    x = values((6, 70), torch.float16)
    same_as_eager(lambda x, y: (x * 2, x - y), x, views=lambda x: [x, x])
    same_as_eager(lambda x, y: x.maximum(y), x, views=lambda x: [x[:4], x[2:]])
    same_as_eager(lambda x, y: x.maximum(y), x, views=lambda x: [x.t()[:6], x[:, :6]])
    # The compiled function meets other aliasing at its next call.
    f = compiled(lambda x, y: x.maximum(y))
    device = x.to("spyre")
    assert_exact(f(device, device).cpu(), stored(x))
    y = values((6, 70), torch.float16, seed=1)
    assert_exact(f(device, y.to("spyre")).cpu(), stored(x).maximum(stored(y)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x.mul_(2),
        lambda x, y: (x.mul_(2), x - y),
        lambda x, y: (y * 2, x.copy_(y))[0],
        lambda x, y: x[1:3].copy_(y[:2]),
        lambda x, y: x[:, 65].fill_(2),
        lambda x, y: (x.t().copy_(y.t()), y * 2)[1],
        lambda x, y: x.copy_(y * 2),
        lambda x, y: (x.neg_(), y.copy_(x))[1],
        lambda x, y: x[2:4].copy_(x[1:3] * 2),
        lambda x, y: x.masked_fill_(y > 0, 1),
        lambda x, y: x.index_copy_(0, torch.tensor([3, 1], device=x.device), y[:2]),
        lambda x, y: x.zero_(),
        lambda x, y: (x.clone().mul_(2), x.neg_())[0],
    ],
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.int64], ids=str)
def test_mutation(function, dtype):
    x, y = whole((6, 70), dtype), whole((6, 70), dtype, seed=1)
    same_as_eager(function, x, y)


def test_mutation_of_views_of_one_storage():
    """Writing through one input shows in the other."""

    def function(a, b):
        a.mul_(2)
        return a + b

    x = values((6, 70), torch.int64)
    same_as_eager(function, x, views=lambda x: [x[:4], x[2:]])
    same_as_eager(function, x, views=lambda x: [x, x])


def test_mutation_of_a_view_leaves_the_rest():
    x = values((6, 70), torch.float16)
    device, host = x.to("spyre"), stored(x)
    compiled(lambda v: v.mul_(2))(device[1:3, 5:66])
    host[1:3, 5:66] *= 2
    assert_exact(device.cpu(), host)


def test_no_inputs():
    result = compiled(lambda: torch.arange(70, device="spyre") * 2)()
    assert_exact(result.cpu(), torch.arange(70) * 2)


def test_module_parameters_and_buffers():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(70))
            self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

        def forward(self, x):
            self.steps += 1
            return x * self.weight * self.steps

    module = Counter().half().to("spyre")
    f = compiled(module)
    x = values((3, 70), torch.float16)
    for step in (1, 2):
        with torch.no_grad():
            assert_exact(f(x.to("spyre")).cpu(), stored(x) * step)
    assert module.steps.item() == 2


def test_zero_dimensional_host_tensors():
    """They may meet device tensors in one operator, as on other devices."""
    x = values((3, 70), torch.float16)
    f = compiled(lambda x, s: x * s)
    for scale in (2.0, 4.0):
        actual = f(x.to("spyre"), torch.tensor(scale)).cpu()
        assert_exact(actual, stored(x) * scale)


def test_graph_breaks():
    def function(x):
        y = x * 2
        if y.sum().item() > 0:
            return y + 1
        return y - 1

    for sign in (1, -1):
        x = torch.full((3, 70), 2.0 * sign).half()
        assert_exact(compiled(function)(x.to("spyre")).cpu(), function(x))


def random_steps(rng):
    """Twelve choices of an operator and its arguments' positions."""
    return [
        (rng.randrange(8), *(rng.randrange(1 << 20) for _ in range(3)))
        for _ in range(12)
    ]


def random_graph(steps, x, y):
    """Exact operators and views, chosen by ``steps``; all results."""
    pool = [x, y]
    for kind, i, j, k in steps:
        a = pool[i % len(pool)]
        d = j % a.dim()
        if kind == 0:
            a = a.transpose(d, k % a.dim())
        elif kind == 1:
            a = a.narrow(d, a.shape[d] // 3, a.shape[d] - a.shape[d] // 3)
        elif kind == 2:
            a = torch.cat((a, a), d)
        elif kind == 3:
            a = a.clamp(-50, 60) - 3
        elif kind == 4:
            a = a.reshape(-1, a.shape[0])
        elif kind == 5:
            same = [b for b in pool if b.shape == a.shape]
            a = torch.maximum(a, same[k % len(same)]) + 1
        elif kind == 6:
            a = a.amax(d, keepdim=True).expand(a.shape)
        else:
            a = torch.where(a > 0, a, -a)
        if a.numel() < 20000:
            pool.append(a)
    return tuple(a + 0 for a in pool[2:])


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(seed):
    rng = random.Random(seed)
    shape = (rng.randint(2, 5), rng.randint(2, 9), rng.choice([1, 63, 65, 70]))
    steps = random_steps(rng)
    x, y = whole(shape, torch.int64), whole(shape, torch.int64, seed=1)
    same_as_eager(lambda x, y: random_graph(steps, x, y), x, y)


def test_report_is_kept_per_part():
    from torch_spyre.compile_backend import compiled_parts

    x = values((64, 128), torch.float16).to("spyre")
    compiled(lambda x: (x * 3).exp())(x)
    report = compiled_parts()[-1].report()
    assert sum(k["device_bytes_read"] for k in report) >= 64 * 128 * 2
    assert all(k["predicted_seconds"] > 0 for k in report)
    assert any("test_compile_inputs.py" in k["location"] for k in report), report
    assert torch_spyre.fallback_report() == {}


def test_a_program_refuses_storages_of_another_layout():
    """Called directly: the compiled callable picks a program by its inputs."""
    x = torch.arange(5 * 70).reshape(5, 70).half().to("spyre")
    _, _, sizes, strides, layout, dtype = _C.tensor_info(x)
    builder = _C.GraphBuilder()
    value = builder.add_argument("x", dtype, sizes, strides, layout)
    negated = builder.op(
        "aten.neg.default", [_C.ValueId(value)], {}, [(dtype, sizes, strides)], []
    )
    builder.set_outputs(negated)
    graph = _C.compile_graph(builder, {})
    out = torch.empty_like(x)
    graph.run([x], [out])
    assert_exact(out.cpu(), -x.cpu())
    others = {
        "shape": torch.zeros(5, 71).half().to("spyre"),
        "strides": torch.zeros(70, 5).half().t().to("spyre"),
        "dtype": torch.zeros(5, 70).to("spyre"),
        "layout": torch.zeros(5, 70)
        .half()
        .to(
            "spyre",
            device_layout=_C.SpyreTensorLayout([5, 70], [70, 1], dtype, [1, 0]),
        ),
    }
    for name, other in others.items():
        with pytest.raises(ValueError, match="was compiled for another layout"):
            graph.run([other], [out])
        with pytest.raises(ValueError, match="argument 'out0' was compiled"):
            graph.run([x], [other])
        assert name
    assert_exact(out.cpu(), -x.cpu())


def windows(shape, strides, offset):
    """A part of a storage on the host and on the device, up to its end."""
    last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    whole = torch.arange(offset + last + 1).remainder(509).half()
    return (b.as_strided(shape, strides, offset) for b in (whole, whole.to("spyre")))


@pytest.mark.parametrize("shape", [(3,), (65,), (5, 64)], ids=str)
def test_places_that_change_in_updated_windows(shape):
    """A result that lies on an argument lies where PyTorch says, in every call."""

    def narrow(x, start):
        return x.narrow(0, start, 1).mul_(2)

    def update(x, start):
        x.add_(1)
        return x[start:].transpose(0, -1), x + 1

    for function in (narrow, update):
        run = compiled(function, dynamic=None)
        for start in (0, 2, 1):
            strides = torch.empty(shape, device="meta").stride()
            host, device = windows(shape, strides, 127)
            expected, actual = function(host, start), run(device, start)
            for e, a in zip(
                *((r if isinstance(r, tuple) else (r,)) for r in (expected, actual)),
                strict=True,
            ):
                assert a.storage_offset() == e.storage_offset()
                assert a.stride() == e.stride()
                assert_exact(a.cpu(), e)
            assert_exact(device.cpu(), host)


GAPS = {
    "steps": ((5, 13, 13), (338, 26, 2), 64),
    "rows": ((31, 64), (192, 3), 65),
    "permuted": ((13, 5, 1), (2, 26, 7), 1),
}


@pytest.mark.parametrize("window", GAPS.values(), ids=GAPS)
def test_updates_of_windows_with_gaps(window):
    """PyTorch's metadata leaves the gaps in computed values, too."""

    def update(x):
        part, _ = x.split([3, x.shape[0] - 3])
        part.fill_(1)
        x.diagonal(-1).fill_(3)
        x.select(1, 4).mul_(2)
        return part, x[1:, ::2] + 1, x[2].transpose(0, -1)

    host, device = windows(*window)
    expected, actual = update(host), compiled(update)(device)
    for e, a in zip(expected, actual, strict=True):
        assert_exact(a.cpu(), e)
    assert_exact(device.cpu(), host)
    # What is returned lies on the argument.
    expected[0].zero_()
    actual[0].zero_()
    assert_exact(device.cpu(), host)


def test_values_that_an_argument_gets_are_no_views_of_it():
    def update(x):
        y = x + 1
        x.copy_(y)
        return y[1:], y

    host, device = windows((65,), (1,), 63)
    expected, actual = update(host), compiled(update)(device)
    device.zero_()
    for e, a in zip(expected, actual, strict=True):
        assert_exact(a.cpu(), e)
