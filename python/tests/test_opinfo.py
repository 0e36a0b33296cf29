# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own test machinery takes the device; scripts/opinfo.py classifies."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("expecttest")

from torch.testing._internal.common_device_type import (
    instantiate_device_type_tests,
    ops,
)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "opinfo.py"


class TestDeviceType(TestCase):
    def test_add(self, device):
        x = torch.arange(70, device=device)
        self.assertEqual(torch.device(device).type, "spyre")
        self.assertEqual((x + x).cpu(), 2 * torch.arange(70))

    @ops([op for op in op_db if op.name == "cat"], allowed_dtypes=[torch.float16])
    def test_cat(self, device, dtype, op):
        for sample in op.sample_inputs(device, dtype):
            expected = op(
                [t.cpu() for t in sample.input], *sample.args, **sample.kwargs
            )
            actual = op(sample.input, *sample.args, **sample.kwargs)
            self.assertEqual(actual.cpu(), expected)


instantiate_device_type_tests(TestDeviceType, globals(), only_for="privateuse1")


def test_script(tmp_path):
    report, page = tmp_path / "report.json", tmp_path / "page.md"
    result = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", str(SCRIPT), "--limit", "2"),
            *("--only", "add", "sort", "double", "empty"),
            *("--json", str(report), "--doc", str(page)),
        ],
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("native: 2 of 4 fp16 entries, forward\n")
    kinds = {n: r["kind"] for n, r in json.loads(report.read_text()).items()}
    assert kinds == {
        "add": "native",
        "sort": "fallback",
        "double": "unsupported",
        "empty": "native",
    }
    assert "| native | 2 |" in page.read_text()
