# SPDX-License-Identifier: Apache-2.0
"""scripts/model_entry.py says how a model ran, here of small ones of our own."""

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import model_entry
from model_zoo import Entry


class Shuffled(nn.Module):
    """Adds rows in an order that is drawn on the CPU, as vilt draws its patches."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x):
        order = torch.multinomial(torch.ones(x.shape[0]), x.shape[0])
        return self.linear(x)[order.to(x.device)] + self.linear(x)


def shuffled():
    torch.manual_seed(0)
    return Shuffled(), {"x": torch.randn(33, 64)}


@pytest.fixture(scope="module")
def trial():
    return model_entry._Trial(Entry("shuffled", "test", shuffled))


@pytest.mark.parametrize("step", ["eager", "compiled", "superdsc"])
def test_every_run_draws_the_same_numbers(trial, step):
    outcome = getattr(trial, step)()
    assert outcome["kind"] == "right", outcome["why"]


def test_what_is_right_does_not_depend_on_numbers_that_are_drawn(trial):
    (expected,), (half,) = trial.expected, trial.half
    assert (half - expected).abs().max() <= 2.0**-9 * expected.abs().max()


class Normalized(nn.Module):
    """The mean square of what comes out is the same whatever goes in."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64)
        self.norm = nn.LayerNorm(64)

    def forward(self, x):
        return self.norm(self.linear(x))


def normalized():
    torch.manual_seed(0)
    return Normalized(), {"x": torch.randn(33, 64)}


def test_gradients_are_more_than_rounding():
    trial = model_entry._Trial(Entry("normalized", "test", normalized))
    weight, *_ = model_entry._step(trial.wide, trial.wide_inputs, None)
    assert weight.abs().max() > 2.0**-14
    outcome = trial.training()
    assert outcome["kind"] == "right", outcome["why"]


def test_weights_and_inputs_are_held_exactly(trial):
    model, inputs = trial._there()
    for there, here in zip(model.parameters(), trial.wide.parameters(), strict=True):
        assert torch.equal(there.cpu().float(), here)
    assert torch.equal(inputs["x"].cpu().float(), trial.wide_inputs["x"])


def test_an_error_of_rounding_is_told_from_a_wrong_one():
    def unknown():
        raise TypeError

    def judge(actual, rounded):
        expected = half = [torch.ones(2)]
        fallbacks = model_entry._Fallbacks()
        fallbacks.found = {}
        return model_entry._judge(expected, half, [actual], fallbacks, rounded)

    far, near = torch.tensor([1.0, 1.5]), torch.tensor([1.0, 1.3])
    assert judge(torch.ones(2), pytest.fail)["kind"] == "right"
    assert judge(far, lambda: [torch.ones(2)])["kind"] == "wrong"
    assert judge(far, lambda: [near])["kind"] == "imprecise"
    assert judge(far, unknown)["kind"] == "wrong"
