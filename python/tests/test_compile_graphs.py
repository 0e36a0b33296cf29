# SPDX-License-Identifier: Apache-2.0
"""Graphs with operators the table lacks, symbolic sizes, wrong use."""

import warnings

import pytest
import torch
import torch_spyre
from inputs import values
from numerics import assert_exact, compiled
from torch_spyre import _C
from torch_spyre.compile_backend import compiled_parts
from torch_spyre.frontend import eager


def whole(shape, dtype=torch.float16, seed=0):
    return values(shape, torch.int8, seed).to(dtype)


# --- between compiled parts --------------------------------------------------


def test_unsupported_operator_between_parts():
    """It runs on the CPU, warns by name, and is counted every time."""

    def function(x):
        y = torch.special.erfcx(x + 1)
        return y * 2, (y - 1).amax(-1)

    f = compiled(function)
    x = whole((6, 70), torch.float32)
    before = len(compiled_parts())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            for actual, wanted in zip(f(x.to("spyre")), function(x), strict=True):
                assert_exact(actual.cpu(), wanted)
    report = torch_spyre.fallback_report()
    assert len(report) == 1
    ((name, count),) = report.items()
    assert "erfcx" in name
    assert count == 3
    named = [w for w in seen if "has no spyre kernel" in str(w.message)]
    assert len(named) == 3
    assert all("erfcx" in str(w.message) for w in named)
    assert len(compiled_parts()) - before == 2


def test_two_unsupported_operators():
    def function(x):
        y = torch.special.erfcx(x) + 1
        z = torch.special.bessel_j0(y * 2)
        return z - 1, y.t()

    x = whole((5, 33), torch.float32).abs() + 1
    with pytest.warns(UserWarning, match="has no spyre kernel") as seen:
        results = compiled(function)(x.to("spyre"))
    for actual, wanted in zip(results, function(x), strict=True):
        assert_exact(actual.cpu(), wanted)
    operators = {n.split(".")[0] for n in torch_spyre.fallback_report()}
    assert operators == {"aten::special_erfcx", "aten::special_bessel_j0"}
    assert len([w for w in seen if "has no spyre kernel" in str(w.message)]) == 2


@pytest.mark.filterwarnings("ignore:.*has no spyre kernel")
def test_mutation_across_parts():
    """A view written after an unsupported operator."""

    def function(x):
        y = torch.gcd(x, x * 0 + 6)
        x[1:3].copy_(y[1:3])
        return x * 2

    x = whole((5, 33), torch.int64)
    device, host = x.to("spyre"), x.clone()
    assert_exact(compiled(function)(device).cpu(), function(host))
    assert_exact(device.cpu(), host)


@pytest.mark.filterwarnings("ignore:.*has no spyre kernel")
def test_constants_are_read_before():
    """What depends on nothing does not divide a graph."""

    def function(x):
        y = x * 2
        nothing = torch.tensor([], dtype=x.dtype, device=x.device)
        return torch.cat((nothing, y)) + torch.tensor([3.0], device=x.device)

    x = whole((7,))
    before = len(compiled_parts())
    assert_exact(compiled(function)(x.to("spyre")).cpu(), function(x))
    assert len(compiled_parts()) == before + 1


@pytest.mark.usefixtures("no_fallback")
def test_constants_are_computed_while_tracing():
    """An operator that runs for the first time then is taken apart as at any time."""

    def function(x):
        return x + torch.tensor([0.5, 0.8], device=x.device).erfinv()

    eager.forget()
    x = whole((3, 2), torch.float32)
    torch.testing.assert_close(compiled(function)(x.to("spyre")).cpu(), function(x))
    # It is kept for later calls.
    torch.testing.assert_close(function(x.to("spyre")).cpu(), function(x))


def test_backward_through_an_unsupported_operator():
    def function(x):
        return (torch.cdist(x * 2, x, p=1.0) * 3).sum()

    x = whole((5, 33), torch.float32).abs() + 1
    device = x.to("spyre").requires_grad_()
    host = x.clone().requires_grad_()
    compiled(function)(device).backward()
    function(host).backward()
    assert_exact(device.grad.cpu(), host.grad)


def test_transfers_inside_the_graph():
    def function(x, h):
        y = x * 2
        return y.cpu() + h, h.to("spyre") * 3

    x, h = whole((5, 33)), whole((5, 33), seed=1)
    moved, back = compiled(function)(x.to("spyre"), h)
    assert moved.device.type == "cpu"
    assert_exact(moved, x * 2 + h)
    assert_exact(back.cpu(), h * 3)


# --- symbolic sizes ----------------------------------------------------------


def test_symbolic_sizes():
    """One trace for every size; right results for each."""

    def function(x, y):
        z = (x * 2).reshape(-1, x.shape[-1])
        return torch.cat((z, y), 0).sum(-1), z.t()[1:]

    f = compiled(function, dynamic=True)
    torch._dynamo.utils.counters.clear()
    for rows, columns in [(3, 65), (5, 70), (2, 129), (3, 65)]:
        x = whole((2, rows, columns), torch.int64)
        y = whole((7, columns), torch.int64, seed=1)
        results = f(x.to("spyre"), y.to("spyre"))
        wanted = function(x, y)
        for actual, expected in zip(results, wanted, strict=True):
            assert actual.stride() == expected.stride()
            assert_exact(actual.cpu(), expected)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    assert torch_spyre.fallback_report() == {}


def test_automatic_dynamic_sizes():
    """Dynamo makes a size symbolic when it changes."""
    f = compiled(lambda x: (x * 2).amax(0), dynamic=None)
    for rows in (3, 5, 9, 64, 65):
        x = whole((rows, 70))
        assert_exact(f(x.to("spyre")).cpu(), (x * 2).amax(0))
    assert torch_spyre.fallback_report() == {}


def test_symbolic_backward():
    def function(x):
        return (x * x).sum()

    f = compiled(function, dynamic=True)
    for rows in (3, 5):
        x = whole((rows, 7), torch.float32)
        device = x.to("spyre").requires_grad_()
        f(device).backward()
        assert_exact(device.grad.cpu(), 2 * x)


def test_symbolic_number():
    f = compiled(lambda x, n: x * n + n, dynamic=True)
    for n in (2, 3, 5):
        x = whole((5, 33), torch.int64)
        assert_exact(f(x.to("spyre"), n).cpu(), x * n + n)


# --- who compiles ------------------------------------------------------------


def test_no_backend_named():
    torch._dynamo.reset()
    before = len(compiled_parts())
    x = whole((5, 33))
    f = torch.compile(lambda x: x * 2 + 1, dynamic=False)
    assert_exact(f(x.to("spyre")).cpu(), x * 2 + 1)
    assert len(compiled_parts()) == before + 1


def test_backend_is_listed():
    assert "spyre" in torch.compiler.list_backends()


@pytest.mark.parametrize(
    "options, message",
    [({"cores": 0}, "cores"), ({"cores": 33}, "cores"), ({"speed": 1}, "speed")],
)
def test_bad_options(options, message):
    torch._dynamo.reset()
    x = whole((5, 33)).to("spyre")
    with pytest.raises(Exception, match=message):
        torch.compile(lambda x: x * 2, backend="spyre", options=options)(x)


@pytest.mark.parametrize("cores", [1, 3, 32])
def test_cores_do_not_change_results(cores):
    torch._dynamo.reset()
    x, w = whole((33, 130)).to("spyre"), whole((130, 70), seed=1).to("spyre")
    f = torch.compile(
        lambda x, w: (x @ w).softmax(-1) + x.sum(),
        backend="spyre",
        options={"cores": cores},
        dynamic=False,
    )
    expected = compiled(lambda x, w: (x @ w).softmax(-1) + x.sum())(x, w)
    assert_exact(f(x, w).cpu(), expected.cpu())


def test_same_bits_every_time():
    x = values((33, 130), torch.float16).to("spyre")
    f = compiled(lambda x: (x @ x.t()).softmax(-1).sum(0))
    first = f(x).cpu()
    for _ in range(3):
        assert_exact(f(x).cpu(), first)


# --- bad input ---------------------------------------------------------------


def works():
    x = whole((5, 33))
    assert_exact(compiled(lambda x: x + 1)(x.to("spyre")).cpu(), x + 1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64])
def test_types_the_device_lacks(dtype):
    x = whole((5, 33)).to("spyre")
    with pytest.raises(Exception, match=r"float64|complex|Double|double|Complex"):
        compiled(lambda x: x.to(dtype) * 2)(x)
    works()


def test_mixed_devices():
    x = whole((5, 33))
    with pytest.raises(Exception, match=r"device"):
        compiled(lambda x, y: x + y)(x.to("spyre"), x)
    works()


def test_index_out_of_range():
    table = whole((5, 33)).to("spyre")
    rows = torch.tensor([1, 7]).to("spyre")
    with pytest.raises(Exception, match=r"(?i)index|bounds|range|outside"):
        compiled(lambda t, r: torch.nn.functional.embedding(r, t))(table, rows).cpu()
    works()


def test_graph_too_large_for_the_device():
    x = torch.ones(1, 1, dtype=torch.float16).to("spyre")

    def function(x):
        y = x.expand(2**19, 2**19) + 1
        return y.sum()

    with pytest.raises(Exception, match=r"(?i)memory|large|fit"):
        compiled(function)(x).cpu()
    works()


def test_errors_name_the_users_line():
    """Compiler errors sit on the line of the PyTorch source."""
    builder = _C.GraphBuilder()
    layout = _C.SpyreTensorLayout([4], torch.float16)
    value = builder.add_argument("x", torch.float16, [4], [1], layout)
    with pytest.raises(_C.UnsupportedOp, match=r"no_such"):
        builder.op("aten.no_such.default", [_C.ValueId(value)], {}, [None], [])
    with pytest.raises(_C.SpyreError):
        builder.view(value, [5], [1], 0, [("model.py", 7, "forward")])
    with pytest.raises(_C.SpyreError):
        builder.view(value + 100, [4], [1], 0, [])


# --- lists and ragged tensors ------------------------------------------------


def test_operators_of_lists():
    """What optimizers call with numbers of each tensor, or with one for all."""

    def function(x, y, z):
        return (
            torch._foreach_addcmul(x, y, z, [0.5, 2.0]),
            torch._foreach_addcmul(x, y, z, 0.5),
            torch._foreach_addcdiv(x, y, z, [0.5, 2.0]),
            torch._foreach_maximum(x, 2.0),
            torch._foreach_minimum(x, [2.0, 3.0]),
            torch._foreach_minimum(x, y),
            torch._foreach_pow(2.0, x),
            torch._foreach_lerp(x, y, [0.25, 0.75]),
        )

    host = [
        [whole((3, 70), torch.float32, s), whole((5,), torch.float32, s)]
        for s in range(3)
    ]
    host[2] = [t.abs() + 1 for t in host[2]]
    actual = compiled(function)(*([t.to("spyre") for t in ts] for ts in host))
    for found, wanted in zip(actual, function(*host), strict=True):
        for a, e in zip(found, wanted, strict=True):
            torch.testing.assert_close(a.cpu(), e, rtol=2e-6, atol=0)
    assert torch_spyre.fallback_report() == {}


def test_ragged_tensors():
    """Their ragged size is no number; programs are for the values."""

    def function(x, weight):
        return torch.nn.functional.linear(x, weight).relu() * 2

    f = compiled(function, fullgraph=True)
    weight = whole((4, 8), torch.float32, seed=3)
    for lengths in ((3, 5), (2, 1, 9)):
        parts = [whole((n, 8), torch.float32, seed=n) for n in lengths]
        host = torch.nested.nested_tensor(parts, layout=torch.jagged)
        x = torch.nested.nested_tensor(
            [p.to("spyre") for p in parts], layout=torch.jagged, device="spyre"
        )
        result = f(x, weight.to("spyre"))
        assert_exact(result.values().cpu(), function(host, weight).values())
    assert torch_spyre.fallback_report() == {}
