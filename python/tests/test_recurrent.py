# SPDX-License-Identifier: Apache-2.0
"""The fused cells of nn.LSTM and nn.GRU run as programs, eager and compiled."""

import copy

import pytest
import torch
from numerics import assert_like_oracle, compiled, device_value, oracle, rms

pytestmark = pytest.mark.usefixtures("no_fallback")


CASES = {
    "lstm": (torch.nn.LSTM, {}),
    "lstm of two layers": (torch.nn.LSTM, {"num_layers": 2, "bidirectional": True}),
    "lstm without bias": (torch.nn.LSTM, {"bias": False}),
    "gru": (torch.nn.GRU, {}),
    "gru without bias": (torch.nn.GRU, {"bias": False, "bidirectional": True}),
}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("size", [1, 33, 64])
def test_recurrent_networks(kind, size):
    make, keywords = CASES[kind]
    torch.manual_seed(size)
    model = make(7, size, batch_first=True, **keywords).half()
    x = torch.randn(3, 5, 7).half()
    wide = copy.deepcopy(model).double()
    for p in wide.parameters():
        p.data = device_value(p.data.half())

    def run(model, x):
        """States and gradients, each scaled to about 1, as one vector."""
        model.zero_grad()
        y, state = model(x)
        leaves = torch.utils._pytree.tree_leaves(state)
        (y.square().sum() + sum(s.sum() for s in leaves)).backward()
        results = [y, *leaves, *(p.grad for p in model.parameters())]
        return [t.detach().cpu().double().flatten() for t in results]

    expected = run(wide, device_value(x))
    rounded = oracle(lambda: run(wide, device_value(x)))
    actual = run(model.to("spyre"), x.to("spyre"))
    scales = [1 / rms(t) for t in expected]
    assert_like_oracle(
        *(
            torch.cat([t * s for t, s in zip(results, scales, strict=True)])
            for results in (actual, expected, rounded)
        )
    )


@pytest.mark.parametrize("make", [torch.nn.LSTMCell, torch.nn.GRUCell])
def test_compiled_cells_give_the_same_bits(make):
    torch.manual_seed(0)
    model = make(65, 63).half().to("spyre")
    x = torch.randn(2, 65).half().to("spyre")
    eager, actual = model(x), compiled(model)(x)
    for e, a in zip(
        *(torch.utils._pytree.tree_leaves(t) for t in (eager, actual)), strict=True
    ):
        assert torch.equal(e.cpu(), a.cpu())
