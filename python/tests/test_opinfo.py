# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own test machinery takes the device; scripts/opinfo.py classifies."""

import json
from pathlib import Path

import pytest
import torch
from interpreters import run_script

pytest.importorskip("expecttest")

from torch.testing._internal.common_device_type import (
    instantiate_device_type_tests,
    ops,
)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase
from torch.testing._internal.opinfo.core import SampleInput

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
    arguments = [
        *("--limit", "2", "--both"),
        *("--only", "add", "igamma", "double", "empty", "kthvalue"),
        *("--state", str(tmp_path / "state")),
        *("--json", str(report), "--doc", str(page), "--commit", "0123abc"),
    ]
    result = run_script(SCRIPT, *arguments)
    assert result.returncode == 0, result.stderr
    assert "native: 3 of 5 fp16 entries, forward\n" in result.stdout
    # `empty` and `igamma` have no gradient.
    assert "native: 2 of 3 fp16 entries, backward\n" in result.stdout
    runs = json.loads(report.read_text())
    kinds = {n: r["kind"] for n, r in runs["forward"].items()}
    assert kinds == {
        "add": "native",
        "igamma": "fallback",
        "kthvalue": "native",
        "double": "unsupported",
        "empty": "native",
    }
    assert runs["backward"]["double"]["kind"] == "unsupported"
    assert "| native | 3 | 6 |" in page.read_text()
    assert "on commit 0123abc." in page.read_text()

    # What is known is not run again.
    state = tmp_path / "state.forward"
    lines = [json.loads(line) for line in state.read_text().splitlines()]
    lines = [x for x in lines if x["name"] != "kthvalue"]
    state.write_text("".join(json.dumps(x) + "\n" for x in lines))
    again = run_script(SCRIPT, *arguments)
    assert again.stdout == result.stdout
    assert again.stderr.split() == ["native", "kthvalue"]


def _entry_that_overwrites(where):
    """An operator that, on the device alone, changes what lies in its argument."""

    def call(x, y):
        result = x + y
        if x.device.type == "spyre":
            x.as_strided((), (), where).fill_(7)
        return result

    call.name = "overwriting"
    return call


@pytest.mark.parametrize("where", [1, 5], ids=["its values", "beside its view"])
@pytest.mark.parametrize("backward", [False, True])
def test_overwritten_inputs_are_wrong(monkeypatch, where, backward):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import opinfo_entry

    whole = torch.arange(8, dtype=torch.float16)
    x, y = whole[:4], torch.ones(4, dtype=torch.float16)
    sample = SampleInput(x, args=(y,))
    entry = _entry_that_overwrites(where)
    if backward:
        y.requires_grad_()
    with pytest.raises(opinfo_entry.Wrong, match=r"tensor 0 .* was overwritten"):
        opinfo_entry._run_sample(entry, sample, backward)
    assert whole.tolist() == list(range(8))


def test_equal_elements_keep_their_order(monkeypatch):
    """The CPU's sort need not: another order than its own is right, too."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import opinfo_entry

    def call(x):
        return torch.argsort(x)

    call.name = "ordering"
    values = torch.arange(8000) % 7
    sample = SampleInput(values.half())
    assert opinfo_entry._run_sample(call, sample, False)[0] == "native"

    def descend(x):
        return torch.argsort(x, descending=x.device.type == "spyre")

    descend.name = "descending"
    with pytest.raises(opinfo_entry.Wrong):
        opinfo_entry._run_sample(descend, sample, False)


@pytest.mark.parametrize("dim", [0, -1])
def test_modes_are_last_in_sorted_order(monkeypatch, dim):
    """The CPU's sort inside need not keep the order: the last of a run is right."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import opinfo_entry

    def call(x, dim):
        return torch.mode(x, dim)

    call.name = "mode"
    values = (torch.arange(600).reshape(20, 30) * 7 % 11).half()
    last = call(values.to("spyre"), dim).indices.cpu()
    assert not torch.equal(last, call(values, dim).indices)
    sample = SampleInput(values, args=(dim,))
    assert opinfo_entry._run_sample(call, sample, False)[0] == "native"

    def first(x, dim):
        if x.device.type != "spyre":
            return torch.mode(x, dim)
        found = torch.mode(x, dim, True).values
        places = (x == found).to(torch.float32).argmax(dim)
        return found.squeeze(dim), places

    first.name = "first"
    with pytest.raises(opinfo_entry.Wrong):
        opinfo_entry._run_sample(first, sample, False)


def test_inputs_that_the_cpu_changes_may_change(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import opinfo_entry

    def call(x):
        return x.mul_(2)

    call.name = "doubling"
    sample = SampleInput(torch.arange(4, dtype=torch.float16))
    assert opinfo_entry._run_sample(call, sample, False)[0] == "native"
