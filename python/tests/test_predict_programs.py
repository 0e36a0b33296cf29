# SPDX-License-Identifier: Apache-2.0
"""Predictions for other devices, of norms, and of exported programs."""

import json

import pytest
import torch
from commands import needs_tools
from torch import nn
from torch_spyre.predict import cli, models, predict
from torch_spyre.predict import what_if as predict_changes

pytestmark = needs_tools


def model_of(module, *shape):
    """A module called with one fp16 tensor, whatever the phase."""
    model = models.from_module(module.half().to("meta"))
    x = torch.empty(shape, dtype=torch.float16, device="meta")
    model.inputs = lambda *_: (x,)
    return model


def moved(result):
    return result["phases"]["prefill"]["bytes"]["device_memory_written"]


def test_models_are_planned_for_the_device():
    """With less LX more goes through device memory, as the plan says, not the time."""
    module = nn.Sequential(
        nn.Linear(2048, 2048, bias=False), nn.ReLU(), nn.Linear(2048, 2048, bias=False)
    )
    as_is, small, same = predict_changes(
        model_of(module, 512, 2048), {"lx": [262144, 2**21]}, phases=["prefill"]
    )
    assert "error" not in small
    assert moved(small) > moved(as_is)
    assert same["phases"]["prefill"] == as_is["phases"]["prefill"]


@pytest.mark.parametrize(
    ("norm", "shape"),
    [
        (nn.RMSNorm(64), (2, 65, 64)),
        (nn.RMSNorm(64), (1, 64)),
        (nn.LayerNorm(64), (2, 65, 64)),
        (nn.GroupNorm(4, 64), (2, 64, 65)),
        (nn.BatchNorm1d(64), (2, 64, 65)),
        (nn.InstanceNorm1d(64, affine=True), (2, 64, 65)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else None,
)
def test_norms_are_programs(norm, shape):
    """PyTorch's decomposition of some has in-place operators."""
    layers = nn.Sequential()
    layers.add_module("layers", nn.ModuleList([norm]))
    layers.forward = lambda x: norm(x) + 1
    phase = predict(model_of(layers, *shape), phases=["prefill"])["phases"]["prefill"]
    assert phase["on_host"] == {}
    assert phase["predicted_seconds"] > 0


class Exported(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(65, 33)
        self.register_buffer("shift", torch.ones(33))

    def forward(self, x, *, scale, twice):
        y = self.linear(x["x"]) * scale + self.shift
        return {"y": (y + y if twice else y) + torch.arange(33, device=y.device)}


def save(path, module, *args, **kwargs):
    torch.export.save(torch.export.export(module, args, kwargs), path)


def test_exported_program(tmp_path, capsys):
    """With constants, buffers, keywords, nested arguments, and values made inside."""
    path = tmp_path / "model.pt2"
    x = {"x": torch.ones(7, 65)}
    save(path, Exported(), x, scale=torch.ones(33), twice=True)
    arguments = ["--model", str(path), "--what-if=cores=1", "--json=-", "--quiet"]
    assert cli.main(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    (phase,) = result["phases"].values()
    assert phase["on_host"] == {}
    names = {k["name"] for p in phase["parts"] for k in p["kernels"]}
    assert any("matmul" in name for name in names)
    assert result["what_if"][0]["phases"]["program"]["predicted_seconds"] > 0


class Product(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(130, 64))

    def forward(self, x):
        return nn.functional.gelu(nn.functional.linear(x, self.weight))


def test_exported_program_is_predicted_as_its_module(tmp_path):
    # It keeps no nn.Linear, whose weight would be stored for matmul.
    module = Product().half()
    save(tmp_path / "model.pt2", module, torch.ones(65, 64).half())
    exported = predict(str(tmp_path / "model.pt2"))["phases"]["program"]
    own = predict(model_of(module, 65, 64), phases=["prefill"])["phases"]["prefill"]
    assert exported["predicted_seconds"] == own["predicted_seconds"]


def test_files_that_are_no_exported_program(tmp_path, capsys):
    (tmp_path / "text.pt2").write_text("no archive")
    torch.save(nn.Linear(2, 2).state_dict(), tmp_path / "weights.pt2")
    for name in ("text.pt2", "weights.pt2"):
        assert cli.main(["--model", str(tmp_path / name)]) == 1
        assert f"{name}: no exported program" in capsys.readouterr().err
    assert cli.main(["--model", "none.pt2"]) == 1
    assert "none.pt2: no such file" in capsys.readouterr().err
