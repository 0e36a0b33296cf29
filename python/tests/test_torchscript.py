# SPDX-License-Identifier: Apache-2.0
"""TorchScript of modules on the device."""

import io
import warnings

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def perceptron() -> tuple[nn.Module, torch.Tensor]:
    module = nn.Sequential(nn.Linear(8, 4), nn.GELU()).to("spyre")
    return module, torch.randn(5, 8).to("spyre")


def test_trace():
    """Its check compares in float64."""
    module, x = perceptron()
    with warnings.catch_warnings():
        warnings.simplefilter("error", torch.jit.TracerWarning)
        traced = torch.jit.trace(module, x)
    assert torch.equal(traced(x).cpu(), module(x).cpu())
    assert "double" not in vars(torch.Tensor)


def test_the_check_of_traces_finds_differences():
    calls = []

    def differs(x):
        calls.append(x)
        return x + len(calls)

    with pytest.raises(torch.jit.TracingCheckError, match="Graphs differed"):
        torch.jit.trace(differs, torch.ones(3).to("spyre"))


def test_the_check_of_traces_compares_values():
    with pytest.warns(torch.jit.TracerWarning, match="does not match"):
        torch.jit.trace(torch.rand_like, torch.ones(3).to("spyre"))


def test_scripts_are_saved_and_loaded():
    module, x = perceptron()
    script = torch.jit.script(module)
    assert torch.equal(script(x).cpu(), module(x).cpu())
    file = io.BytesIO()
    torch.jit.save(script, file)
    file.seek(0)
    assert torch.equal(torch.jit.load(file)(x).cpu(), module(x).cpu())
    file.seek(0)
    on_host = torch.jit.load(file, map_location="cpu")(x.cpu())
    torch.testing.assert_close(on_host, module(x).cpu())
