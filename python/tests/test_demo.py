# SPDX-License-Identifier: Apache-2.0
"""examples/demo.py: what it refuses, its table, and when it fails."""

import re
import sys
from pathlib import Path

import pytest
import torch
from interpreters import run_main

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.py"
sys.path.insert(0, str(DEMO.parent))

import demo  # noqa: E402
from models import Llama  # noqa: E402


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--prompt", 0), "--prompt: expected at least 1, found 0"),
        (("--batch", 0), "--batch: expected at least 1, found 0"),
        (("--decode", -1), "--decode: expected at least 0, found -1"),
        (("--prompt", 57), "at most 64 tokens together"),
        (("--prompt", 65, "--decode", 0), "found 65"),
    ],
)
def test_refuses_what_it_cannot_run(monkeypatch, capsys, arguments, text):
    status, out, err = run_main(demo, monkeypatch, capsys, *arguments)
    assert (status, out) == (2, "")
    assert text in err


def test_shows_a_run(monkeypatch, capsys):
    arguments = ("--batch", 2, "--prompt", 1, "--decode", 0)
    status, out, err = run_main(demo, monkeypatch, capsys, *arguments)
    assert status == 0, err
    assert "prefill: 1 tokens" in out and "decode 1" not in out
    assert "operators that fell back to the CPU: none" in out


def test_fails_on_nan(monkeypatch, capsys):
    real = Llama.forward

    def forward(self, tokens, positions, cache):
        logits = real(self, tokens, positions, cache)
        return logits * float("nan") if logits.dtype == torch.float64 else logits

    monkeypatch.setattr(Llama, "forward", forward)
    torch.compiler.reset()
    status, out, _ = run_main(demo, monkeypatch, capsys, "--prompt", 1, "--decode", 0)
    assert status == 1
    assert "on the CPU: nan of the signal" in out


class Part:
    def __init__(self, *kernels):
        self.kernels = kernels

    def report(self):
        return [
            {
                "name": name,
                "bottleneck": bottleneck,
                "predicted_seconds": 1e-6,
                "device_bytes_read": 1024,
                "device_bytes_written": 2048,
            }
            for name, bottleneck in self.kernels
        ]


def test_tells_bottlenecks_of_one_name_apart():
    part = Part(("k0_add", "sfu"), ("k1_add", "latency"), ("k2_add", "sfu"))
    lines = [re.split(r"\s{2,}", line) for line in demo.kernel_table([part])]
    assert lines[1:] == [
        ["add", "2", "2.0", "2.0", "4.0", "sfu"],
        ["add", "1", "1.0", "1.0", "2.0", "latency"],
        ["total", "3", "3.0", "3.0", "6.0"],
    ]
