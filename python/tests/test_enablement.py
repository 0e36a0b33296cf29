# SPDX-License-Identifier: Apache-2.0
"""spyre-enablement: operators, modules and the whole of a model in one report."""

import json
from html.parser import HTMLParser

import pytest
import torch

pytest.importorskip("yaml")

from torch_spyre.testing import enablement

MODEL = """\
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(65)
        self.linear = nn.Linear(65, 65)

    def forward(self, x, scale=1.0):
        return x + scale * torch.relu(self.linear(self.norm(x)))

class Model(nn.Module):
    def __init__(self, falls_back):
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(2))
        self.falls_back = falls_back

    def forward(self, x):
        for layer in self.layers:
            x = layer(x, scale=0.5)
        return torch.igamma(x.abs(), x.abs()) if self.falls_back else torch.softmax(x, -1)

def native():
    torch.manual_seed(1)
    return Model(False), (torch.randn(3, 65),)

def fallback():
    torch.manual_seed(1)
    return Model(True), {"x": torch.randn(3, 65)}

def nothing():
    return 7
"""


@pytest.fixture
def models(tmp_path, monkeypatch):
    (tmp_path / "enabled_models.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "enabled_models"


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.texts, self.sources = [], []

    def handle_data(self, data):
        self.texts.append(data)

    def handle_starttag(self, tag, attrs):
        self.sources += [v for k, v in attrs if k in ("src", "href")]


def test_report(models, tmp_path, capsys):
    report, page = tmp_path / "r.json", tmp_path / "r.html"
    sources = [f"{models}:native", f"{models}:fallback"]
    options = ["--json", str(report), "--html", str(page), "--quiet"]
    assert enablement.main([*sources, *options]) == 0
    text = capsys.readouterr().out
    native, fallback = json.loads(report.read_text())["models"]
    ops = native["ops"]
    assert ops["native"] == ops["total"] >= 5 and ops["mean_pass_rate"] == 1
    assert ops["not_recorded"] == ops["wrong"] == 0
    # Block, LayerNorm and Linear, each once for two equal layers.
    assert native["modules"] == {"total": 3, "native": 3, "passed": 3}
    assert native["labels"] == {"runnable": True, "verified_spyre": True}
    assert native["end_to_end"]["kind"] == "right"
    assert 0 < native["end_to_end"]["error"] < 0.02
    assert native["end_to_end"]["predicted_seconds"] > 1e-7
    assert fallback["ops"]["fallback"] == 1
    assert fallback["end_to_end"]["kind"] == "fallback"
    assert any("igamma" in op for op in fallback["end_to_end"]["fallbacks"])
    assert "fallback  operator torch.igamma.1" in text
    parser = _Page()
    parser.feed(page.read_text())
    assert f"{models}:fallback" in parser.texts
    # It needs nothing else.
    assert all(s.startswith("#") for s in parser.sources)


def test_a_wrong_model_is_seen(models, monkeypatch, capsys):
    real = enablement._tensors

    def off(value):
        found = real(value)
        return [t + 0.1 if t.device.type == "spyre" else t for t in found]

    monkeypatch.setattr(enablement, "_tensors", off)
    assert enablement.main([f"{models}:native", "--quiet"]) == 1
    text = capsys.readouterr().out
    assert "wrong     model" in text and "above 0.02" in text


def test_descriptors_alone(tmp_path, capsys):
    path = tmp_path / "ops.yaml"
    path.write_text(
        "cases:\n  - {name: a, op: torch.relu, inputs: [tensor: {shape: [65]}]}\n"
    )
    assert enablement.main([str(path), "--json", "-", "--quiet"]) == 0
    (model,) = json.loads(capsys.readouterr().out)["models"]
    assert model["ops"]["native"] == 1 and model["end_to_end"] is None
    assert model["labels"]["runnable"] is None


def test_errors(models, tmp_path, capsys):
    for source, said in (
        (f"{models}:nativ", "did you mean native"),
        (f"{models}:nothing", "expected (module, inputs)"),
        ("no_such_module:f", "No module named"),
        ("missing.yaml", "missing.yaml: No such file"),
        ("words", "expected module:function"),
    ):
        assert enablement.main([source, "--quiet"]) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(SystemExit):
        enablement.main([f"{models}:native", "--bound", "2"])
    assert "expected a number in (0, 1]" in capsys.readouterr().err


def test_error_is_relative_to_the_values():
    x = torch.full((7,), 10.0)
    assert enablement.relative_error([x], [x.to("spyre")]) == 0
    half = enablement.relative_error([x], [(x * 1.5).to("spyre")])
    assert abs(half - 0.5) < 1e-3
    with pytest.raises(AssertionError, match="on cpu"):
        enablement.relative_error([x], [x])
    with pytest.raises(AssertionError, match="infinities"):
        enablement.relative_error([x * torch.inf], [x.to("spyre")])
