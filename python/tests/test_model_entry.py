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
