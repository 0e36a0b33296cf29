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


class Scaled(nn.Module):
    """With numbers, and a part that has some, too."""

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Sequential(nn.Linear(8, 4), nn.Hardtanh(-0.7, 0.3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.part(x) * 1.5
        return torch.where(y > 0.25, y, y - 0.125)


@pytest.mark.parametrize("device", ["spyre", torch.device("spyre", 0)])
@pytest.mark.parametrize("where", ["path", "file"])
def test_traces_with_numbers_are_loaded_to_the_device(device, where, tmp_path):
    """A trace keeps each number as a float64 tensor, as `x * 1.5`."""
    module, x = Scaled(), torch.randn(5, 8)
    torch.jit.save(torch.jit.trace(module, x), tmp_path / "module.pt")
    names = {"extra.txt": ""}
    if where == "path":
        loaded = torch.jit.load(tmp_path / "module.pt", map_location=device)
    else:
        buffer = io.BytesIO(b"skipped" + (tmp_path / "module.pt").read_bytes())
        buffer.seek(7)
        loaded = torch.jit.load(buffer, device, names)
    assert {p.device.type for p in loaded.parameters()} == {"spyre"}
    y = loaded(x.to("spyre"))
    assert y.is_spyre
    torch.testing.assert_close(y.cpu(), module(x))


def test_constants_of_loaded_traces_are_on_the_device():
    constant = torch.arange(8.0)
    traced = torch.jit.trace(lambda x: (x + constant) * 0.5, torch.ones(8))
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    loaded = torch.jit.load(file, map_location="spyre")
    y = loaded(torch.ones(8).to("spyre"))
    assert torch.equal(y.cpu(), (1 + constant) * 0.5)


def test_traces_with_float64_parameters_are_refused():
    traced = torch.jit.trace(nn.Linear(3, 3).double(), torch.ones(2, 3).double())
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    with pytest.raises(TypeError, match=r"does not support dtype torch.float64"):
        torch.jit.load(file, map_location="spyre")
