# SPDX-License-Identifier: Apache-2.0
"""scripts/models.py says what models do on the device."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import model_entry  # noqa: E402
import model_zoo  # noqa: E402


def trial(model):
    def make():
        torch.manual_seed(0)
        model.apply(lambda m: getattr(m, "reset_parameters", lambda: None)())
        return model, {"x": torch.randn(3, 65)}

    return model_entry._Trial(model_zoo.Entry("llama", "test", make))


class Differs(nn.Module):
    """A linear layer, and what follows it on the device and on the CPU."""

    def __init__(self, there, here=lambda y: y):
        super().__init__()
        self.linear = nn.Linear(65, 67)
        self.there, self.here = there, here

    def forward(self, x):
        y = self.linear(x)
        return self.there(y) if y.device.type == "spyre" else self.here(y)


def broken(y):
    torch._dynamo.graph_break()
    return y + 0


def on_cpu(y):
    return torch.linalg.lstsq(y.float() * 0, y.float()).solution.sum() * 0 + y


@pytest.mark.parametrize("step", model_entry.STEPS)
def test_right(step):
    outcome = getattr(trial(Differs(nn.GELU(), nn.GELU())), step)()
    assert outcome["kind"] == "right", outcome


def test_a_break_that_the_cpu_has_in_fp16():
    def broken_in_fp16(y):
        return broken(y) if y.dtype == torch.float16 else y

    outcome = trial(Differs(broken_in_fp16, broken_in_fp16)).compiled()
    assert (outcome["kind"], outcome["graphs"]) == ("right", 2)


@pytest.mark.parametrize(
    ("there", "step", "kind", "why"),
    [
        (lambda y: y * 1.02, "eager", "wrong", "times what is right"),
        (lambda y: y * 1.01, "eager", "imprecise", "times what is right"),
        (lambda y: y * 1.02, "compiled", "wrong", "times what is right"),
        (lambda y: y * 1.02, "training", "wrong", "times what is right"),
        (lambda y: y[1:], "eager", "wrong", "shape [2, 67]"),
        (lambda y: y / 0, "eager", "wrong", "not finite"),
        (lambda y: (y, y), "eager", "wrong", "2 tensors, not 1"),
        (lambda y: y.cpu().to("spyre"), "eager", "right", ""),
        (broken, "compiled", "break", "2 graphs, where the CPU has 1"),
        (on_cpu, "eager", "fallback", "lstsq"),
    ],
)
def test_not_right(there, step, kind, why):
    outcome = getattr(trial(Differs(there)), step)()
    assert outcome["kind"] == kind
    assert why in outcome["why"]


def test_error_names_what_failed(monkeypatch):
    def make():
        return Differs(lambda y: y @ y), {"x": torch.randn(3, 65)}

    entry = model_zoo.Entry("tiny", "test", make)
    monkeypatch.setattr(model_zoo, "entries", lambda: [entry])
    monkeypatch.setattr(model_zoo, "prepare", lambda: None)
    result = model_entry.run_entry(("tiny", ("eager",)))
    assert result["steps"]["eager"]["kind"] == "error"
    assert "RuntimeError" in result["steps"]["eager"]["why"]


def test_enough_of_each_library():
    entries = model_zoo.entries()
    assert len({e.name for e in entries}) == len(entries)
    libraries = [e.name.split("/")[0] if "/" in e.name else "" for e in entries]
    assert libraries.count("") >= 60
    assert libraries.count("timm") >= 20
    assert libraries.count("fms") >= 6
    assert {e.name for e in entries} >= model_zoo.TRAINED
    assert len(model_zoo.TRAINED) >= 20


def run(*arguments):
    return subprocess.run(
        [sys.executable, str(SCRIPTS / "models.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_report_of_a_state(tmp_path):
    state = tmp_path / "state.jsonl"
    steps = {
        "eager": {"kind": "right", "why": "", "error": 0.25},
        "superdsc": {"kind": "error", "why": "no a|b"},
    }
    other = {"eager": {"kind": "wrong", "why": "old"}}
    lines = [
        {"name": "llama", "kind": "decoder", "steps": steps, "commit": "0123abc"},
        {"name": "gpt2", "kind": "decoder", "steps": other, "commit": "an older one"},
    ]
    state.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = run(
        *("--no-run", "--state", state, "--commit", "0123abc"),
        *("--only", "llama", "gpt2", "--steps", "eager", "superdsc"),
    )
    assert result.returncode == 0, result.stderr
    assert "eager: 1 right, 1 not run, of 2\n" in result.stdout
    assert "error    superdsc llama: no a|b\n" in result.stdout
    assert "old" not in result.stdout


def test_unknown_names():
    result = run("--only", "no_such_model")
    assert result.returncode == 2
    assert "no model is called no_such_model; see --list" in result.stderr
