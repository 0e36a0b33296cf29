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


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("make", [torch.nn.LSTMCell, torch.nn.GRUCell])
def test_compiled_cells_give_the_same_bits(make, bias):
    torch.manual_seed(0)
    model = make(65, 63, bias=bias).half().to("spyre")
    x = torch.randn(2, 65).half().to("spyre")
    eager, actual = model(x), compiled(model)(x)
    for e, a in zip(
        *(torch.utils._pytree.tree_leaves(t) for t in (eager, actual)), strict=True
    ):
        assert torch.equal(e.cpu(), a.cpu())


NETWORKS = {
    "lstm": (torch.nn.LSTM, {}),
    "lstm with projections": (torch.nn.LSTM, {"proj_size": 8}),
    "gru": (torch.nn.GRU, {}),
    "tanh": (torch.nn.RNN, {}),
    "relu": (torch.nn.RNN, {"nonlinearity": "relu"}),
}


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("kind", NETWORKS)
def test_gradients_of_many_steps_are_summed_at_once(kind, is_packed):
    """Each by itself: what rounds after every step is lost in one norm of all."""
    make, keywords = NETWORKS[kind]
    torch.manual_seed(0)
    steps = 100
    model = make(16, 16, **keywords).half()
    x = torch.randn(steps, 4, 16).half()
    gradient = torch.randn(steps, 4, keywords.get("proj_size", 16)).half()
    wide = copy.deepcopy(model).double()
    for p in wide.parameters():
        p.data = device_value(p.data.half())
    lengths = torch.tensor([steps, steps, 61, 1])

    def run(model, x, gradient):
        model.zero_grad()
        if is_packed:
            given = torch.nn.utils.rnn.pack_padded_sequence(x, lengths)
            model(given)[0].data.backward(
                torch.nn.utils.rnn.pack_padded_sequence(gradient, lengths).data
            )
        else:
            model(x)[0].backward(gradient)
        return {n: p.grad.cpu().double() for n, p in model.named_parameters()}

    given = device_value(x), device_value(gradient)
    expected = run(wide, *given)
    rounded = oracle(lambda: run(wide, *given))
    actual = run(model.to("spyre"), x.to("spyre"), gradient.to("spyre"))
    for name in expected:
        assert_like_oracle(actual[name], expected[name], rounded[name], name)


@pytest.mark.parametrize("kind", NETWORKS)
def test_sequences_and_packed_ones_give_what_the_cpu_gives(kind):
    make, keywords = NETWORKS[kind]
    torch.manual_seed(0)
    keywords = {**keywords, "num_layers": 2, "bidirectional": True}
    model = make(3, 9, **keywords).eval()
    x = torch.randn(6, 4, 3)
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([6, 5, 2, 2]))
    on_device = copy.deepcopy(model).to("spyre")
    flat = torch.utils._pytree.tree_leaves
    for given in (x, x[:1], x[:, :0], x[:, 0], packed):
        with torch.no_grad():
            expected, actual = flat(model(given)), flat(on_device(given.to("spyre")))
        assert len(actual) == len(expected)
        for e, a in zip(expected, actual, strict=True):
            if e is None:  # A packed sequence in order has no indices.
                continue
            torch.testing.assert_close(a.cpu(), e, rtol=1e-4, atol=1e-5)
            assert a.stride() == e.stride()


def test_graphs_with_recurrent_networks_give_the_bits_of_the_operators():
    torch.manual_seed(0)
    model = torch.nn.LSTM(7, 9, batch_first=True).half().to("spyre")
    x = torch.randn(2, 3, 7).half().to("spyre")
    with torch._dynamo.config.patch(allow_rnn=True):
        actual = compiled(model)(x)
    for e, a in zip(
        *(torch.utils._pytree.tree_leaves(t) for t in (model(x), actual)), strict=True
    ):
        assert torch.equal(e.cpu(), a.cpu())


def test_recurrent_networks_name_what_they_cannot_take():
    model = torch.nn.LSTM(7, 9).to("spyre")
    with pytest.raises(RuntimeError, match="larger than 0"):
        model(torch.zeros(0, 2, 7, device="spyre"))
    with pytest.raises(RuntimeError, match="at the same device"):
        model(torch.zeros(3, 2, 7, device="spyre"), (torch.zeros(1, 2, 9),) * 2)
