# SPDX-License-Identifier: Apache-2.0
"""Derivatives that PyTorch takes otherwise on the CPU: of shortened rows, and those of
attention that only its composition has.
"""

import copy

import pytest
import torch
import torch.autograd.forward_ad as forward
from inputs import values
from numerics import assert_within
from torch.func import functional_call, hessian, jvp
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as attention


def assert_same(function, name=""):
    """On both devices, but for the order of fp32 sums."""
    expected = function("cpu")
    actual = function("spyre").cpu()
    assert actual.dtype == expected.dtype
    unit = 2.0**-8 if expected.dtype == torch.float16 else 2.0**-20
    bound = unit * expected.abs().max().float()
    assert_within(actual, expected.double(), bound, name)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("p", [1, 2, 3.5, float("inf")])
def test_renorm(p, dim, dtype):
    x = values((3, 5, 65), dtype)
    x[1] /= 500  # Short enough.

    def of_norms(device, in_place=False):
        leaf = x.to(device).requires_grad_()
        y = (leaf * 1).renorm_(p, dim, 2.5) if in_place else leaf.renorm(p, dim, 2.5)
        weight = torch.arange(y.numel(), device=device).view_as(y) % 7
        (gradient,) = torch.autograd.grad((y * weight.to(dtype)).sum(), leaf)
        return torch.stack((y.detach(), gradient))

    assert_same(of_norms)
    assert_same(lambda device: of_norms(device, in_place=True), "in place")


@pytest.mark.parametrize(
    ("shape", "p", "most", "message"),
    [
        ((3, 4), 0, 1, "non-positive-norm"),
        ((3, 4), 2, -1, "maxnorm to be >= 0"),
        ((3,), 2, 1, "at least 2 dimensions"),
    ],
)
def test_wrong_renorm(shape, p, most, message):
    for device in ("cpu", "spyre"):
        with pytest.raises(RuntimeError, match=message):
            torch.ones(shape, device=device).renorm(p, 0, most)


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 2, 65, 8)])
def test_second_derivatives_of_attention(shape):
    x = values(shape, torch.float32)

    def second(device):
        leaf = x.to(device).requires_grad_()
        with sdpa_kernel(SDPBackend.MATH):
            y = attention(leaf, leaf * 2, leaf + 1)
        (gradient,) = torch.autograd.grad(y.square().sum(), leaf, create_graph=True)
        return torch.autograd.grad(gradient.square().sum(), leaf)[0]

    assert_same(second)


@pytest.mark.parametrize("number", range(3))
def test_forward_derivatives_of_attention(number):
    """Of the query, the keys and the values; nobody has to ask for the composition."""
    x = values((2, 3, 4), torch.float32)

    def tangent(device):
        given = [x.to(device), x.to(device) * 2, x.to(device) + 1]
        with forward.dual_level():
            given[number] = forward.make_dual(given[number], torch.ones_like(given[0]))
            return forward.unpack_dual(attention(*given)).tangent

    assert_same(tangent)


@pytest.mark.parametrize("kind", ["GRU", "RNN", "LSTM"])
def test_forward_derivatives_of_recurrent_layers(kind):
    torch.manual_seed(0)
    layers = getattr(torch.nn, kind)(4, 3, num_layers=2, bidirectional=True)
    x, direction = values((5, 2, 4), torch.float32), values((5, 2, 4), torch.float32, 1)

    def tangent(device):
        # The CPU has no rule for its LSTM either, but for one in double.
        dtype = torch.float64 if device == "cpu" else torch.float32
        own = copy.deepcopy(layers).to(device, dtype)
        given = tuple(t.to(device, dtype) for t in (x, direction))
        return jvp(lambda x: own(x)[0], given[:1], given[1:])[1].float()

    assert_same(tangent)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["GRUCell", "RNNCell", "LSTMCell"])
def test_forward_derivatives_of_recurrent_cells(kind, bias):
    torch.manual_seed(0)
    cell = getattr(torch.nn, kind)(4, 3, bias=bias)
    state = values((5, 3), torch.float32, 2)
    given = (values((5, 4), torch.float32), state)
    directions = (values((5, 4), torch.float32, 1), state * 0.5 - 1)
    weights = {n: p.detach() for n, p in cell.named_parameters()}

    def tangents(device):
        own = {n: w.to(device) for n, w in weights.items()}

        def run(x, h, own):
            states = (h, h * 2) if kind == "LSTMCell" else h
            return functional_call(cell, own, (x, states))

        primals = [t.to(device) for t in given]
        along = [t.to(device) for t in directions]
        slopes = {n: w * 0.5 for n, w in own.items()}
        result = jvp(run, (*primals, own), (*along, slopes))[1]
        return torch.stack(result) if kind == "LSTMCell" else result

    assert_same(tangents)


def test_states_of_recurrent_cells_that_do_not_fit():
    """Also where derivatives are taken forward."""
    cell = torch.nn.GRUCell(4, 3).to("spyre")
    x, state = torch.randn(5, 4, device="spyre"), torch.randn(1, 3, device="spyre")
    for run in (cell, lambda *t: jvp(cell, t, t)):
        with pytest.raises(RuntimeError, match="Input batch size 5 doesn't match"):
            run(x, state)


def test_hessian_of_a_recurrent_layer():
    torch.manual_seed(0)
    layer = torch.nn.GRU(2, 3)
    x = values((3, 2), torch.float32)

    def second(device):
        own = copy.deepcopy(layer).to(device)
        return hessian(lambda x: own(x)[0].square().sum())(x.to(device))

    assert_same(second)
