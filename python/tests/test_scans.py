# SPDX-License-Identifier: Apache-2.0
"""Sums of all elements up to each one, in dimensions that are cut into parts."""

import math

import pytest
import torch
from aten_rows import BOOL, F16, F32, I64
from native_calls import native

SHAPES = [
    ((1024,), 0),
    ((1025,), 0),
    ((70001,), 0),
    ((3, 1300), 1),
    ((1300, 3), 0),
    ((2, 5000, 3), -2),
    ((32, 1500), 1),
    ((2000, 33), 0),
    ((0, 2000), 1),
    ((2000, 0), 0),
]
DTYPES = [F16, torch.bfloat16, F32, I64, torch.int32, torch.uint8, BOOL]
#: Largest error over the sum of what was added, without signs.
BOUNDS = {F16: 2**-9, torch.bfloat16: 2**-7, F32: 2**-20}


def compiled(function, dynamic=False):
    torch._dynamo.reset()
    return torch.compile(function, backend="spyre", fullgraph=True, dynamic=dynamic)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_long_sums(shape, dim, dtype):
    x = (torch.randn(shape) * 3).to(dtype)
    expected, device = x.cumsum(dim), x.to("spyre")
    found = native(device.cumsum, dim)
    assert (found.dtype, found.stride()) == (expected.dtype, expected.stride())
    graph = compiled(lambda x: x.cumsum(dim))(device)
    assert torch.equal(graph.cpu(), found.cpu())
    if dtype not in BOUNDS:
        assert torch.equal(found.cpu(), expected)
    elif x.numel():
        wide = x.double()
        error = (found.cpu().double() - wide.cumsum(dim)).abs().max()
        assert error <= BOUNDS[dtype] * wide.abs().sum(dim).max()


def test_dtype_that_is_asked_for():
    x = torch.full((3000,), 200, dtype=torch.uint8)
    found = native(x.to("spyre").cumsum, 0)
    narrow = native(x.to("spyre").cumsum, 0, dtype=torch.uint8)
    halves = native((x.to("spyre") + 0.75).cumsum, 0, dtype=torch.int32)
    assert torch.equal(found.cpu(), x.cumsum(0))
    assert torch.equal(narrow.cpu(), x.cumsum(0, dtype=torch.uint8))
    assert torch.equal(halves.cpu(), (x + 0.75).cumsum(0, dtype=torch.int32))


def test_infinities_stay():
    x = torch.ones(5000)
    x[1000], x[3000] = math.inf, -math.inf
    torch.testing.assert_close(
        x.to("spyre").cumsum(0).cpu(), x.cumsum(0), rtol=0, atol=0, equal_nan=True
    )
    x[3000] = 1
    x[4000] = math.nan
    torch.testing.assert_close(
        x.to("spyre").cumsum(0).cpu(), x.cumsum(0), rtol=0, atol=0, equal_nan=True
    )


def test_written_where_it_was():
    x = torch.arange(3000, dtype=F32)
    y = x.to("spyre")
    y.cumsum_(0)
    torch.testing.assert_close(y.cpu(), x.cumsum(0))
    out = torch.empty(3000, device="spyre")
    torch.cumsum(x.to("spyre"), 0, out=out)
    torch.testing.assert_close(out.cpu(), x.cumsum(0))


def test_sizes_that_vary():
    f = compiled(lambda x: x.cumsum(0) * 2, dynamic=True)
    for size in (1500, 1025, 4097, 20000, 1024, 700, 5, 1026):
        x = torch.randint(-5, 9, (size,))
        assert torch.equal(f(x.to("spyre")).cpu(), x.cumsum(0) * 2), size
        assert torch.equal(x.to("spyre").cumsum(0).cpu(), x.cumsum(0)), size


def test_gradients():
    x = torch.randn(3000)
    y = x.to("spyre").requires_grad_()
    (y.cumsum(0) * torch.linspace(0, 1, 3000, device="spyre")).sum().backward()
    z = x.double().requires_grad_()
    (z.cumsum(0) * torch.linspace(0, 1, 3000, dtype=torch.float64)).sum().backward()
    torch.testing.assert_close(y.grad.cpu().double(), z.grad, rtol=1e-4, atol=1e-4)


def predicted_seconds(x: torch.Tensor) -> float:
    with torch.spyre.profiler.profile() as trace:
        x.cumsum(-1)
        torch.spyre.synchronize()
    return sum(kernel.predicted_seconds for kernel in trace.kernels)


def test_parts_are_summed_side_by_side():
    """A sum after the other would take as long per element as one of 1,024 does."""
    short, long = (torch.zeros(1, n, device="spyre") for n in (1024, 32000))
    assert predicted_seconds(long) < 5 * predicted_seconds(short)
