# SPDX-License-Identifier: Apache-2.0
"""Random networks, trained compiled at sizes that vary.

By hand: ``SPYRE_RANDOM_LAYERS=200 SPYRE_RANDOM_SEED=1`` runs that many from that seed
on.
"""

import copy
import os
import random
import warnings

import pytest
import torch
from numerics import compiled
from random_layers import WIDTH, Network

COUNT = int(os.environ.get("SPYRE_RANDOM_LAYERS", 4))
SEED = int(os.environ.get("SPYRE_RANDOM_SEED", 0))
#: One, around sticks, and larger than all before.
SIZES = (4, 5, 7, 31, 33, 63, 64, 65, 97, 129, 130)
#: Of the largest value of each result, as fractions: products round their factors to
#: DL16, and a layer passes on what it gets wrong.
BOUND = 0.03


def results(network, call, x, target):
    """What a step gives: results, the loss, and gradients by name."""
    network.zero_grad()
    x = x.requires_grad_()
    y, loss = call(x, target)
    loss.backward()
    found = {"result": y.detach(), "loss": loss.detach(), "gradient": x.grad}
    found |= {name: p.grad for name, p in network.named_parameters()}
    return {name: None if t is None else t.cpu() for name, t in found.items()}


def error(actual, expected):
    """The largest one, as a fraction of the largest value."""
    scale = expected.abs().max() + 1e-3
    return ((actual - expected).abs().max() / scale).item()


def run_network(seed):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    network = Network(rng)
    device = copy.deepcopy(network).to("spyre")
    how = rng.choice(["dynamic", "second size", "marked"])
    call = compiled(device, dynamic=True if how == "dynamic" else None)
    sizes = [(rng.randrange(2, 6), rng.choice(SIZES)) for _ in range(4)]
    for batch, time in [*sizes, (1, 9), (2, 1), (7, 200)]:
        what = f"seed {seed}, {how}, {[batch, time]}, "
        what += ", ".join(layer.name for layer in network.layers)
        x, target = (
            torch.randn(batch, time, WIDTH),
            torch.randint(1, WIDTH, (batch, time)),
        )
        on_device = x.to("spyre"), target.to("spyre")
        if how == "marked":
            for tensor in on_device:
                for dim in (0, 1):
                    torch._dynamo.maybe_mark_dynamic(tensor, dim)
        expected = results(network, network, x, target)
        if not expected["loss"].isfinite():
            continue
        try:
            found = results(device, call, *on_device)
        except Exception as raised:
            raise AssertionError(what) from raised
        for name, wanted in expected.items():
            assert (found[name] is None) == (wanted is None), f"{what}: {name}"
            if wanted is not None:
                assert found[name].shape == wanted.shape, f"{what}: {name}"
                assert error(found[name], wanted) < BOUND, f"{what}: {name}"


@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT))
def test_random_layers(seed):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*D2D dtype conversion")
        run_network(seed)
