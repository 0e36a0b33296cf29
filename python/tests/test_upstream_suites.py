# SPDX-License-Identifier: Apache-2.0
"""spyre-upstream-tests: device-generic tests by configurations of the field.

Written from spec/test-frameworks.md, "Running upstream PyTorch tests (RFC 1287)".
"""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("yaml")
pytest.importorskip("expecttest")

from interpreters import run_module
from torch_spyre.testing import upstream

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "python/tests/upstream/generic_suites.yaml"
SUITE = """\
import torch
from torch.testing._internal.common_device_type import (
    dtypes, instantiate_device_type_tests, onlyCUDA)
from torch.testing._internal.common_utils import TestCase, parametrize

class TestDemo(TestCase):
    def test_good(self, device):
        self.assertEqual(torch.device(device).type, "spyre")

    def test_bad(self, device):
        self.fail("as ever")

    def test_skips(self, device):
        self.skipTest("nothing here")

    @onlyCUDA
    def test_for_cuda(self, device):
        self.assertEqual(torch.ones(2, device=device).sum().item(), 2)

    @dtypes(torch.float16, torch.int64, torch.float64)
    @parametrize("n", [1, 65])
    def test_dtypes(self, device, dtype, n):
        self.assertLess(torch.tensor([]).numel(), n)

    @dtypes(torch.float16)
    def test_close(self, device, dtype):
        self.assertEqual(torch.ones(2) * 1.01, torch.ones(2))

    def test_compare(self, device):
        self.assertIs(type(self).__base__.__name__, "SpyreTestBase")
        self.check(torch.ones(2, device=device))

    def check(self, x):
        assert x.device.type == "cpu", x.device

instantiate_device_type_tests(TestDemo, globals())
"""
HEAD = """\
test_suite_config:
  files:
    - path: ${TORCH_ROOT}/test/test_demo.py
      unlisted_test_mode: skip
      tests:
"""


def run_pytest(arguments, variables):
    """In a copy of an interpreter that has imported torch: seconds less, each time."""
    done = run_module("pytest", *arguments, ends_at_once=True, **variables)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(autouse=True)
def in_copies(monkeypatch, request):
    if "in_a_new_process" not in request.fixturenames:
        monkeypatch.setattr(upstream, "run_pytest", run_pytest)


@pytest.fixture
def in_a_new_process():
    """As users have it."""


@pytest.fixture
def demo(tmp_path, monkeypatch):
    (tmp_path / "test").mkdir()
    (tmp_path / "test/test_demo.py").write_text(SUITE)
    monkeypatch.setenv("TORCH_ROOT", str(tmp_path))

    def write(tests, name="config.yaml", end=""):
        path = tmp_path / name
        lines = "".join(f"        - {t}\n" for t in tests)
        path.write_text(HEAD + lines + end)
        return str(path)

    return write


def run(capsys, *arguments):
    status = upstream.main([*map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_suites_of_this_tree(monkeypatch, tmp_path, capsys):
    """At least 300 device-generic tests, each as it is listed."""
    monkeypatch.setenv("TORCH_DEVICE_ROOT", str(ROOT))
    report = tmp_path / "report.json"
    # What pytest listens to is written, every graph among it, and the sources of known
    # failures are parsed.
    silent = ("--", "-p", "no:logging", "--tb=native")
    status, out, err = run(capsys, "run", CONFIG, "--json", report, *silent)
    assert status == 0, out + err
    variants = json.loads(report.read_text()).values()
    passed = [v for v in variants if v["outcome"] == "passed"]
    assert len(passed) >= 300
    by_class = {v["class"] for v in passed}
    assert by_class == {"TestOperators", "TestModules", "TestTensors"}
    known = [v for v in variants if v["mode"] == "known failure"]
    assert known and {v["outcome"] for v in known} == {"xfailed"}
    assert {v["outcome"] for v in variants} <= {
        *("passed", "xfailed", "left out", "skipped")
    }


def test_their_configuration_is_not_dead(monkeypatch, capsys):
    """A known failure that names no variant would have failed the run of it."""
    monkeypatch.setenv("TORCH_DEVICE_ROOT", str(ROOT))
    status, out, _ = run(capsys, "check", "--configs", CONFIG, "--fail-on-problems")
    said = "0 duplicates, 0 missing, 0 dead patterns, 0 dead known failures\n"
    assert (status, out) == (0, said)


def test_modes_and_edits(demo, tmp_path, capsys):
    config = demo(
        [
            "{names: [test_good, test_for_cuda], mode: mandatory_success, tags: [a-b]}",
            "{names: test_bad, mode: xfail_strict}",
            "{names: test_skips, mode: xfail}",
            "{names: test_close, mode: mandatory_success}",
            "{names: 'TestDemo::test_d.*', edits: {dtypes: {exclude: [{name: int64}], "
            "include: [{name: int32}]}}}",
            "{names: test_compare, edits: {functions: {cpu_move: [{name: check}]}}}",
        ],
        end="  global:\n    supported_dtypes:\n      - {name: float16, precision: "
        "{atol: 0.02, rtol: 0}}\n      - int64\n",
    )
    report = tmp_path / "report.json"
    status, out, _ = run(capsys, "run", config, "--json", report)
    assert status == 0, out
    data = json.loads(report.read_text())
    found = {k.rpartition("::")[2]: v["outcome"] for k, v in data.items()}
    assert found == {
        "test_good_spyre": "passed",
        "test_for_cuda_spyre": "passed",
        "test_bad_spyre": "xfailed",
        "test_skips_spyre": "xfailed",
        "test_close_spyre_float16": "passed",
        "test_compare_spyre": "passed",
        **{f"test_dtypes_n_{n}_spyre_float16": "passed" for n in (1, 65)},
        **{f"test_dtypes_n_{n}_spyre_int32": "passed" for n in (1, 65)},
        **{f"test_dtypes_n_{n}_spyre_int64": "left out" for n in (1, 65)},
        **{f"test_dtypes_n_{n}_spyre_float64": "left out" for n in (1, 65)},
    }
    # Tags are marks, and pytest's options are taken.
    tagged = run(capsys, "run", config, "--json", report, "--", "-k", "test_good")
    assert tagged[0] == 0, tagged[1]
    outcomes = [v["outcome"] for v in json.loads(report.read_text()).values()]
    assert outcomes.count("passed") == 1


OPS = """\
import torch
from torch.testing._internal.common_device_type import (
    instantiate_device_type_tests, ops)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db, modules
from torch.testing._internal.common_utils import TestCase

class TestOwn(TestCase):
    @ops([o for o in op_db if o.name in ("exp", "sub", "mul")],
         allowed_dtypes=(torch.float16,))
    def test_ops(self, device, dtype, op):
        for sample in op.sample_inputs(device, dtype):
            x = sample.input
            print("RAN", op.name, list(x.shape), x.dtype, x.stride(), sample.kwargs)
            self.assertEqual(x.device.type, "spyre")
            op(x, *sample.args, **sample.kwargs)

    @modules([m for m in module_db if m.name == "nn.ReLU"],
             allowed_dtypes=(torch.float16,))
    def test_modules(self, device, dtype, module_info, training):
        for made in module_info.module_inputs_func(
            module_info, device=device, dtype=dtype, requires_grad=True,
            training=training
        ):
            own, call = made.constructor_input, made.forward_input
            module = module_info.module_cls(*own.args, **own.kwargs).to(device, dtype)
            y = module(*call.args, **call.kwargs)
            x = call.args[0]
            print("RAN", type(module).__name__, list(y.shape), x.requires_grad)

    @ops([o for o in op_db if o.name == "exp"], allowed_dtypes=(torch.float16,))
    def test_loose(self, device, dtype, op):
        self.assertEqual(torch.ones(1, dtype=dtype) * 1.25, torch.ones(1, dtype=dtype))

instantiate_device_type_tests(TestOwn, globals())
"""


@pytest.mark.usefixtures("in_a_new_process")
def test_operators_and_modules_with_inputs_of_their_own(demo, tmp_path, capsys):
    (tmp_path / "test/test_demo.py").write_text(OPS)
    tensor = "{tensor: {shape: [%s], init: full, init_args: {fill_value: 2}}}"
    config = demo(
        [
            # `sub` is left out, `mul` is not supported but included, `add` is not among
            # the test's own.
            "{names: test_ops, edits: {ops: {exclude: [sub], include: ["
            f"{{name: mul, sample_inputs_func: {{args: [{tensor % '3, 5'}, "
            "{value: 2}]}}, {name: add, sample_inputs_func: "
            f"{{args: [{tensor % '7'}, {tensor % '7'}], kwargs: {{alpha: 2}}}}}}]}}, "
            f"inputs: {{args: [{{tensor: {{shape: [2, 3], stride: [1, 2]}}}}]}}}}}}",
            "{names: test_modules, edits: {modules: {exclude: [nn_ReLU], include: ["
            "{name: Linear, module_path: torch.nn, constructor_inputs: "
            "{args: [{value: 64}, {value: 8}]}, forward_inputs: "
            f"[{{args: [{tensor % '3, 64'}]}}, {{args: [{tensor % '1, 64'}]}}]}}]}}}}}}",
            "{names: test_loose, edits: {dtypes: {include: [{name: float16, precision: "
            "{atol: 0.3, rtol: 0}}]}}}",
        ],
        end="  global:\n    supported_ops: [exp, sub]\n    input_config: {seed: 3}\n",
    )
    status, out, err = run(capsys, "run", config, "--verbose", "--", "-s")
    assert status == 0, out + err
    assert sorted(set(re.findall("RAN .*", out))) == [
        "RAN Linear [1, 8] True",
        "RAN Linear [3, 8] True",
        "RAN add [7] torch.float16 (1,) {'alpha': 2}",
        "RAN exp [2, 3] torch.float16 (1, 2) {}",
        "RAN mul [3, 5] torch.float16 (5, 1) {}",
    ]


def test_an_operator_that_does_not_exist(demo, tmp_path, capsys):
    (tmp_path / "test/test_demo.py").write_text(OPS)
    config = demo(["{names: test_ops, edits: {ops: {include: [multiply]}}}"])
    status, out, _ = run(capsys, "run", config)
    assert status == 1 and "op_db has no operator 'multiply'" in out


def test_regressions_and_unexpected_passes_fail(demo, capsys):
    known = "known_failures: [{test: test_%s_spyre, reason: bug}]"
    good = "{names: [test_good, test_bad], " + known % "bad" + "}"
    assert run(capsys, "run", demo([good]))[0] == 0
    passing = known.replace("bug}", "bug}, {test: test_goood_spyre}") % "good"
    tests = ["{names: [test_bad]}", "{names: [test_good], " + passing + "}"]
    status, out, _ = run(capsys, "run", demo(tests))
    assert status == 1 and "failed: TestDemo::test_bad_spyre: " in out
    assert "unexpected pass: TestDemo::test_good_spyre" in out
    said = "config.yaml:7: test_goood_spyre: a known failure that names no variant; "
    assert said + "did you mean test_good_spyre" in out


def test_check_finds_dead_known_failures(demo, capsys):
    """Which tests have which variants is known when they have been made."""
    failures = (
        "[{test: test_bad_spyre, reason: a}, {test: test_goood_spyre, reason: b}]"
    )
    config = demo(["{names: 'test_.*', known_failures: " + failures + "}"])
    arguments = ["check", "--configs", config, "--fail-on-problems"]
    assert run(capsys, *arguments)[0] == 0
    status, out, _ = run(capsys, *arguments, "--instantiate")
    assert status == 1
    dead, counts = out.splitlines()
    assert dead.startswith("dead failure: ") and ":6: test_goood_spyre: " in dead
    assert counts == ("0 duplicates, 0 missing, 0 dead patterns, 1 dead known failures")


def test_check_reads_sources(demo, tmp_path, capsys):
    first = demo(["{names: [test_good, 'test_b.*', test_god, 'test_x.*']}"])
    second = demo(["{names: [test_bad]}"], "second.yaml")
    status, out, _ = run(capsys, "check", "--configs", first, second)
    assert status == 0
    lines = out.splitlines()
    assert lines[0].startswith("duplicate: ") and ":10: test_bad: in" in lines[0]
    assert sum(line.startswith("missing: ") for line in lines) == 5
    assert "config.yaml:6: test_god: matches no test; did you mean test_good" in out
    assert lines[-1].startswith("1 duplicates, 5 missing, 2 dead patterns")
    failing = ["check", "--configs", first, second, "--fail-on-problems"]
    assert run(capsys, *failing)[0] == 1


BROKEN = {
    "{names: test_a, mode: maybe}": "config.yaml:6: ",
    "{mode: skip}": "an entry of tests needs names",
    "{names: 'test_(a'}": "is no expression: missing )",
    "{names: a, edits: {dtypes: {include: [float61]}}}": "'float61' is no dtype; did you mean float",
    "{names: a, known_failures: [{reason: x}]}": "a known failure needs test",
    "{names: a, edits: {modules: {include: [a]}}}": "expected a mapping, found 'a'",
    "{names: a, edits: {modules: {include: [{name: X, forward_inputs: {args: []}}]}}}": "'X' is no module; expected a path such as torch.nn.Linear",
    "{names: a, edits: {modules: {include: [{name: torch.nn.ReLU}]}}}": "needs forward_inputs",
    "{names: a, edits: {ops: {include: [{name: a, sample_inputs_func: {args: [{tensor: {shape: [-1]}}]}}]}}}": "expected a whole number from 0",
    "{names: a, edits: {ops: {include: [{description: b}]}}}": "expected a name",
    "{names: a, edits: {inputs: {}}}": "expected args, kwargs or both",
    "{names: a, edits: {inputs: {args: [{tenor: 1}]}}}": "an input has one key of",
    "{names: a, edits: {dtypes: {include: [{name: int8, precision: {atol: -1}}]}}}": "expected a finite number from 0",
    "{names: [a}": "config.yaml:6: ",
}


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_errors_name_file_and_line(demo, capsys, text):
    status, _, err = run(capsys, "run", demo([text]))
    assert status == 2 and "config.yaml:" in err and BROKEN[text] in err


def test_what_is_missing_is_said(demo, tmp_path, monkeypatch, capsys):
    config = demo(["{names: test_good}"])
    (tmp_path / "test/test_demo.py").unlink()
    status, _, err = run(capsys, "run", config)
    assert status == 2 and "config.yaml:3: " in err and "no such file" in err
    for name in ("TORCH_ROOT", "PYTORCH_ROOT", "PYTORCH"):
        monkeypatch.delenv(name, raising=False)
    status, _, err = run(capsys, "run", config)
    assert status == 2
    assert "TORCH_ROOT is not set; it names a checkout of PyTorch" in err
