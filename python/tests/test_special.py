# SPDX-License-Identifier: Apache-2.0
"""Gamma and Bessel functions, exponentials and inverses of matrices, against fp64."""

import math

import pytest
import torch
import torch_spyre
from aten_rows import F16, F32
from native_calls import held, native
from numerics import assert_within, compiled, unit

EDGES = [0.0, -0.0, 1, 2, 0.5, 1.5, 2.5, 6, 1e4, 1e-3, -1e-3, 3.75, -3.75]
EDGES += [-1.4999727, -8.499925, -2.5]  # Between poles, where the cotangent is 0.
FUNCTIONS = {
    "lgamma": torch.lgamma,
    "digamma": torch.digamma,
    "i0": torch.i0,
    "i0e": torch.special.i0e,
    "i1": torch.special.i1,
    "i1e": torch.special.i1e,
    **{f"polygamma_{n}": lambda x, n=n: torch.polygamma(n, x) for n in (0, 1, 2, 3, 4)},
}
#: Of 1 - x for a negative x: the largest terms of the difference that gives
#: the value. A unit of them is lost.
CANCELS = {
    "lgamma": lambda z: torch.lgamma(z).abs(),
    "digamma": lambda z: (z + 6).log(),  # Steps of one lead to z + 6.
}


@pytest.mark.parametrize("dtype", [F16, torch.bfloat16, F32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name, dtype):
    """Within two units in the last place, and of fp32's near a zero of the function."""
    function = FUNCTIONS[name]
    x = torch.cat([torch.randn(500) * 5, torch.rand(300) * 3, torch.tensor(EDGES)])
    if name.startswith("polygamma"):
        x = x[(x > 0) | (x != x.round())]  # PyTorch has some number at a pole.
    x = held(x.to(dtype))
    exact = function(x.double())
    if dtype == F16:  # 65536 comes back as 65504.
        x = x[(exact.abs() < 65400) | (exact.abs() > 65600)]
        exact = function(x.double())
    bound = 2 * unit(exact, dtype) + 2.0**-21 * (1 + exact.abs())
    if name in CANCELS:
        bound = bound + 2.0**-23 * torch.where(x < 0, CANCELS[name](1 - x.double()), 0)
    if name.startswith("polygamma"):
        # Powers of the cotangent multiply its error.
        bound = bound + 2.0**-19 * (1 + exact.abs()) * (x < 0.5)
    assert_within(native(function, x), exact, bound, name)


def test_complementary_error_function():
    """Of each result: small ones, too, are right to eight units in the last place."""
    x = held(torch.cat([torch.linspace(-4, 9, 2000), torch.tensor([0.0, -0.0])]))
    exact = torch.erfc(x.double())
    assert_within(native(torch.erfc, x), exact, 8 * unit(exact, F32), "erfc")
    edges = torch.tensor([10.2, 1e30, math.inf, -1e30, -math.inf, math.nan])
    actual = native(torch.erfc, edges)
    torch.testing.assert_close(
        actual, torch.erfc(edges), rtol=0, atol=0, equal_nan=True
    )


def test_poles():
    x = torch.tensor([0.0, -0.0, -1.0, -7.0, math.inf, -math.inf, math.nan])
    for function in (torch.lgamma, torch.digamma):
        expected, actual = function(x.double()), native(function, x).double()
        agree = (actual == expected) | (actual.isnan() & expected.isnan())
        assert agree.all(), (function, actual, expected)


def test_integers_become_floats():
    x = torch.tensor([1, 2, 5])
    assert native(torch.lgamma, x).dtype == F32
    assert torch.allclose(native(torch.lgamma, x), torch.lgamma(x), atol=2**-21)


@pytest.mark.parametrize(("size", "scale"), [(1, 1.0), (3, 1.0), (5, 3.0), (9, 0.1)])
def test_matrix_exp(size, scale):
    """Each of up to five squarings doubles the error."""
    for dtype in (F16, F32):
        x = held((torch.randn(2, size, size) * scale).to(dtype))
        exact = torch.linalg.matrix_exp(x.double())
        if dtype == F16 and exact.abs().max() > 65000:
            continue
        error = (native(torch.linalg.matrix_exp, x).double() - exact).abs().max()
        assert error <= exact.abs().max() * (2.0**-9 if dtype == F16 else 2.0**-17)


def test_matrix_exp_of_any_norm():
    """Turns by large angles, and by none."""
    angles = torch.tensor([0.0, 0.5, 100.0, 3000.0])
    x = torch.zeros(4, 2, 2)
    x[:, 0, 1], x[:, 1, 0] = -angles, angles
    exact = torch.linalg.matrix_exp(x.double())
    error = (native(torch.linalg.matrix_exp, x).double() - exact).abs().amax((1, 2))
    # The angle has a relative error of 2^-24 when it is the result of 12 squarings.
    assert bool((error <= 2.0**-22 * (1 + 2 * angles)).all()), error


@pytest.mark.parametrize("is_unit", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("upper", [False, True])
def test_triangular_systems(upper, left, is_unit):
    """The error of substitution, which grows with what the inverse's sizes say."""
    rows = 37  # No power of two.
    a = torch.randn(2, 1, rows, rows) * 0.2 + 2 * torch.eye(rows)
    b = torch.randn(3, *((rows, 5) if left else (5, rows)))

    def solve(a, b):
        return torch.linalg.solve_triangular(
            a, b, upper=upper, left=left, unitriangular=is_unit
        )

    exact = solve(a.double(), b.double())
    one = torch.eye(rows, dtype=torch.float64)
    used = a.double().triu() if upper else a.double().tril()
    if is_unit:
        used = used - used * one + one
    grown = used.inverse().abs() @ used.abs()
    size = (
        grown @ exact.abs() if left else exact.abs() @ used.abs() @ used.inverse().abs()
    )
    actual = native(solve, a, b)
    assert actual.shape == exact.shape and actual.stride() == solve(a, b).stride()
    assert_within(actual, exact, rows * 2.0**-24 * size)


def test_triangular_systems_do_not_read_the_other_half():
    a = torch.tensor([[2.0, math.inf], [1.0, 4.0]])
    b = torch.tensor([[2.0], [9.0]])
    solved = native(lambda a, b: torch.linalg.solve_triangular(a, b, upper=False), a, b)
    assert solved.tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize("name", ["lgamma", "digamma", "i0", "i0e", "i1", "i1e"])
def test_gradients(name):
    start = torch.rand(50) * 4 + 0.3

    def differentiate(x):
        x = x.detach().requires_grad_()
        FUNCTIONS[name](x).sum().backward()
        return x.grad

    exact = differentiate(start.double())
    error = (native(differentiate, start).double() - exact).abs()
    assert bool((error <= 2.0**-19 * (1 + exact.abs())).all())


@pytest.mark.parametrize("dtype", [F16, torch.bfloat16, F32])
@pytest.mark.parametrize(
    ("start", "end", "steps", "base"),
    [
        (0, 1, 5, 10.0),
        (-3.5, 4, 65, 10.0),
        (0, 8, 9, 2.0),
        (2, 0, 1, 3.0),
        (0, 1, 0, 2.0),
    ],
)
def test_logspace(start, end, steps, base, dtype):
    def make(first, last, **kind):
        return torch.logspace(first, last, steps, base, **kind)

    exact = make(start, end, dtype=torch.float64)
    bound = 2 * unit(exact, dtype)
    torch_spyre.reset_fallback_report()
    ends = [torch.tensor(float(v)).to("spyre") for v in (start, end)]
    for first, last in ((start, end), ends):
        actual = make(first, last, dtype=dtype, device="spyre")
        assert actual.dtype == dtype
        assert_within(actual.cpu(), exact, bound)
    assert torch_spyre.fallback_report() == {}


@pytest.mark.parametrize("is_compiled", [False, True])
def test_an_infinite_side_has_an_infinite_hypotenuse(is_compiled):
    values = torch.tensor([torch.inf, -torch.inf, torch.nan, 0.0, 3.0, 1e30])
    a, b = (t.flatten() for t in torch.meshgrid(values, values, indexing="ij"))
    run = compiled(torch.hypot) if is_compiled else torch.hypot
    actual = run(a.to("spyre"), b.to("spyre")).cpu()
    torch.testing.assert_close(actual, torch.hypot(a, b), equal_nan=True)


@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize("arguments", [(0,), (1,), (63,), (65, False), (7, True, 8.0)])
def test_kaiser_windows(arguments, dtype):
    def window(device):
        return torch.kaiser_window(*arguments, dtype=dtype, device=device)

    expected = window("cpu").to("spyre").cpu()
    for make in window, compiled(window):
        found = make("spyre")
        assert found.device.type == "spyre" and found.dtype == dtype
        assert torch.equal(found.cpu(), expected)
