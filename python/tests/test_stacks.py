# SPDX-License-Identifier: Apache-2.0
"""The table of public stacks beside our plans (benchmarks/stacks.py)."""

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def stacks(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield __import__("stacks")
    sys.modules.pop("stacks", None)


@pytest.mark.parametrize(
    "state, stack",
    [
        ("sendnn stack", "sendnn"),
        ("sendnn", "sendnn"),
        ("torch-spyre a73350b stack", "torch-spyre"),
        ("torch-spyre a73350b", None),
        ("sendnn profile", None),
        ("", None),
    ],
)
def test_the_stack_of_a_row(stacks, state, stack):
    assert stacks.stack_of(state) == stack


def test_times_span_the_versions_of_a_stack(stacks):
    found = stacks.read(stacks.measurements.FILE)
    key = "attention", (1, 512, 128, 1, 4096, 128, 1, 4096, 128)
    low, high = found[key]["torch-spyre"]
    assert found[key]["sendnn"][0] < low < high
    assert found[key]["sendnn"][1] < low
    assert found["softmax", (1, 512, 4096)] == stacks.STATED["softmax", (1, 512, 4096)]


def test_steps_of_the_model(stacks):
    step = stacks.step_of("granite_8b bs4_pl1_one_block_decode_only")
    assert step == stacks.Step(4, 1, "decode", layer=True)
    assert not stacks.step_of("granite_8b bs1_pl512_full_model_prefill_only").layer
    assert stacks.step_of("granite_8b bs1_pl512_full_model") is None


def test_predictions_have_intervals_or_reasons(stacks):
    predictor = stacks.Predictor()
    middle, low, high = predictor.predict(("pointwise_add", (1, 2, 64, 1, 2, 64)))
    assert 0 < low < middle < high
    one = predictor.predict(("matmul", (1, 3, 64, 64, 130)))
    assert predictor.predict(("matmul of a name", (3, 130, 64))) == one
    assert predictor.predict(("pointwise_add", (1, 2, 64))) == "other operands"
    assert predictor.predict(("conv2d", (1, 2, 64))) == "not known here"


def test_bad_data_is_an_error(stacks, tmp_path, monkeypatch, capsys):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"rows": 1}))
    monkeypatch.setattr(sys, "argv", ["stacks.py", f"--data={path}"])
    assert stacks.main() == 2
    assert str(path) in capsys.readouterr().err
