# SPDX-License-Identifier: Apache-2.0
"""One program for many sizes: gradients."""

import pytest
import torch
import torch.nn.functional as F
from inputs import values
from numerics import compiled, poison, poisoned, rms
from sized_graphs import num_sizes, parts_since, shape_of
from torch_spyre.compile_backend import compiled_parts

#: Of a matrix and a second one; what is differentiated, and what varies.
GRADIENTS = {
    "mean square": (lambda x, y: F.mse_loss(x, y), (0,)),
    "mean square of all": (lambda x, y: F.mse_loss(x, y), (0, 1)),
    "sum of squares": (lambda x, y: F.mse_loss(x, y, reduction="sum"), (0,)),
    "layer_norm": (lambda x, y: (F.layer_norm(x, (70,)) * y).sum(), (0,)),
    "layer_norm along it": (
        lambda x, y: (F.layer_norm(x, x.shape[1:], y[0], y[1]) * y).sum(),
        (1,),
    ),
    "rms_norm along it": (
        lambda x, y: (F.rms_norm(x, x.shape[1:], y[0]) * y).sum(),
        (1,),
    ),
    "joined": (lambda x, y: torch.cat((x, x * y)).square().sum(), (0,)),
    "softmax": (lambda x, y: (x.softmax(1) * y).sum(), (1,)),
    "log_softmax": (lambda x, y: (x.log_softmax(0) * y).sum(), (0,)),
    "elementwise": (
        lambda x, y: (
            F.gelu(x)
            + F.gelu(y, approximate="tanh") * F.silu(x)
            - F.relu(x) * torch.tanh(y)
            + F.softplus(x)
            + F.leaky_relu(x)
        ).sum(),
        (0,),
    ),
}


@pytest.mark.parametrize(("function", "dims"), GRADIENTS.values(), ids=GRADIENTS)
def test_gradients(function, dims):
    """As exact as those of programs of one size."""

    def gradients(f, size, wide=False):
        both = []
        for seed in (0, 1):
            x = values(shape_of(size, dims), torch.float16, size + seed, -1, 1)
            x = x.double() if wide else poisoned(x.to("spyre"))
            both.append(x.detach().requires_grad_())
            for dim in () if wide else dims:
                torch._dynamo.mark_dynamic(both[-1], dim)
        poison()
        f(*both).backward()
        return [x.grad.cpu().double() for x in both]

    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    sizes = (7, 63, 64, 65, 131)
    found = [gradients(f, size) for size in sizes]
    parts = parts_since(before)
    assert all(num_sizes(p) == len(dims) for p in parts)
    assert len(parts) == 2
    for size, actual in zip(sizes, found, strict=True):
        wanted = gradients(function, size, wide=True)
        other = gradients(compiled(function), size)
        for a, b, c in zip(actual, other, wanted, strict=True):
            assert rms(a - c) <= 1.25 * rms(b - c) + 1e-7, size
