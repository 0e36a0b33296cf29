# SPDX-License-Identifier: Apache-2.0
"""spyre-model-ops: descriptors of the field run, are recorded, and fail with a line.

Written from spec/test-frameworks.md, "Model-operator descriptors (RFC 0186)".
"""

import json
import os
from pathlib import Path

import pytest
import torch
from torch import nn

pytest.importorskip("yaml")

from torch_spyre.testing import descriptors, model_ops, record, run_case, selection
from torch_spyre.testing.located import InputError

MODELS = Path(__file__).parent / "model_ops"
SIX = ["bert", "gpt-oss", "granite", "granite-hybrid", "llama", "vit"]
DEMO = """\
model: tiny-demo
defaults: {dtype: fp16, seed: 7, rtol: 5.0e-3, atol: 5.0e-3}
cases:
  - name: torch.nn.functional.softmax.1
    op: torch.nn.functional.softmax
    inputs:
      - tensor:
          {shape: [2, 4, 64], stride: [256, 64, 1], init: rand,
           init_args: {low: -2, high: 2}}
    attrs: {dim: -1}
    description: attention weights of layer 0
  - name: torch.getitem.1
    op: torch.getitem
    inputs:
      - tensor: {shape: [32, 128], stride: [128, 1], dtype: torch.float32, init: xavier}
      - py: (Ellipsis, slice(None, 64, None))
    marks: [constant, fp32operation]
    rtol: 1.0e-2
  - name: torch.Tensor.add_.1
    op: torch.Tensor.add_
    inputs:
      - tensor: {shape: [3, 65], stride: [1, 3], storage_offset: 5}
      - tensor: {shape: [3, 65], stride: [0, 1], init: randn}
  - name: torch.cat.1
    op: torch.cat
    inputs: [tensor_list: [{shape: [1, 63]}, {shape: [2, 63]}]]
  - name: torch.igamma.1
    op: torch.igamma
    inputs: [tensor: {shape: [63], init: rand}, tensor: {shape: [63], init: rand}]
  - name: torch.arange.1
    op: torch.arange
    inputs: [value: 7]
    kwmap: {device: "cuda:0", dtype: int64}
  - name: torch.nn.functional.dropout.1
    op: torch.nn.functional.dropout
    inputs: [tensor: {shape: [65]}]
  - name: torch.mul.bf16
    op: torch.mul
    inputs: [tensor: {shape: [7], dtype: bf16}, value: 2]
    marks: bf16operation
"""


@pytest.fixture
def demo(tmp_path):
    path = tmp_path / "demo.yaml"
    path.write_text(DEMO)
    return path


def run(capsys, *arguments):
    status = model_ops.main(["run", *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


def test_report(demo, tmp_path, capsys):
    report = tmp_path / "report.json"
    status, out, _ = run(capsys, demo, "--json", report, "--show-skipped")
    assert status == 0, out
    data = json.loads(report.read_text())
    kinds = {c["name"]: c["kind"] for c in data["cases"]}
    assert kinds.pop("torch.igamma.1") == "fallback"
    assert set(kinds.values()) == {"right"} and len(kinds) == 6
    softmax = data["cases"][0]
    assert 1e-7 < softmax["predicted_seconds"] < 1e-4 < softmax["compile_seconds"]
    assert softmax["host_seconds"] > 0
    (model,) = data["models"]
    assert (model["cases"], model["right"], model["fallback"]) == (7, 6, 1)
    assert [s["name"] for s in data["skipped"]] == ["torch.mul.bf16"]
    assert "demo.yaml:27): on the CPU: 1 of aten::igamma.out" in out
    assert "skipped   tiny-demo::torch.mul.bf16: its marks" in out


def test_listings(demo, capsys):
    name = f"tiny-demo::torch.getitem.1::torch.getitem ({demo})\n"
    assert run(capsys, demo, "--list-models")[:2] == (0, "tiny-demo\n")
    assert len(run(capsys, demo, "--list-cases")[1].splitlines()) == 8
    assert run(capsys, demo, "--list-cases-by-mark", "constant")[1] == name
    excluded = run(capsys, demo, "--list-cases-by-mark", "constant", "--show-excluded")
    assert name not in excluded[1] and len(excluded[1].splitlines()) == 7
    # Without an expression it is that of -m.
    by_default = run(capsys, demo, "--list-cases-by-mark")[1].splitlines()
    assert len(by_default) == 7 and "bf16" not in "".join(by_default)
    assert (
        run(capsys, demo, "--list-cases", "--test-name", "igamma")[1].count("\n") == 1
    )


def test_equal_cases_run_once(demo, tmp_path):
    other = tmp_path / "other.yaml"
    # Model, tolerances, marks and description are no part of what runs.
    other.write_text(
        DEMO.replace("tiny-demo", "twin").replace("rtol: 5.0e-3", "rtol: 1")
    )
    cases = descriptors.load_all([str(demo), str(other)])
    chosen, skipped = selection.select(cases, [], [], "", True)
    assert len(chosen) == 8 and {c.model for c in chosen} == {"tiny-demo"}
    assert skipped[0][1] == "repeats tiny-demo::torch.nn.functional.softmax.1"
    assert len(selection.select(cases, [], [], "", False)[0]) == 16
    assert len(selection.select(cases, ["twin"], [], "", True)[0]) == 8


def test_wrong_values_are_seen(demo, monkeypatch):
    case = descriptors.load(demo)[0]
    assert run_case.run(case).kind == "right"
    real = torch.nn.functional.softmax

    def off(x, dim):
        return real(x, dim=dim) + (0.02 if x.device.type == "spyre" else 0)

    find = run_case.operators.find
    monkeypatch.setattr(
        run_case.operators,
        "find",
        lambda n, k: type(find(n, k))(n, off, False),
    )
    result = run_case.run(case)
    assert result.kind == "wrong" and "not close" in result.why


TIES = """
model: ties
defaults: {dtype: fp16, seed: 7}
cases:
"""


def test_which_of_equal_elements_is_left_open(tmp_path, monkeypatch):
    """Three values in 500 elements: no order of equal ones is wrong."""
    calls = {
        "sort": "",
        "argsort": "{dim: 0, descending: true}",
        "topk": "{k: 9}",
        "kthvalue": "{k: 3, dim: 1}",
        "max": "{dim: 1, keepdim: true}",
        "min": "{dim: 0}",
        "argmax": "",
        "argmin": "{dim: 1}",
    }
    text = TIES
    for name, attrs in calls.items():
        values = "{shape: [5, 100], init: randint, init_args: {high: 3}}"
        text += f"  - name: {name}\n    op: torch.{name}\n"
        text += f"    inputs: [tensor: {values}]\n"
        text += f"    attrs: {attrs}\n" if attrs else ""
    path = tmp_path / "ties.yaml"
    path.write_text(text)
    cases = descriptors.load(path)
    results = [run_case.run(case) for case in cases]
    assert {(r.name, r.kind, r.why) for r in results} == {
        (name, "right", "") for name in calls
    }

    def change(how):
        def find(name, keywords):
            op = real(name, keywords)

            def function(x, *args, **kwargs):
                result = op.function(x, *args, **kwargs)
                if x.device.type == "cpu":
                    return result
                values, positions = result
                return values, how(positions)

            return type(op)(name, function, False)

        monkeypatch.setattr(run_case.operators, "find", find)

    real = run_case.operators.find
    sort = cases[0]
    change(lambda positions: positions.flip(1))
    assert run_case.run(sort).kind == "wrong"
    change(lambda positions: positions * 0 + positions[:, :1])
    assert run_case.run(sort).kind == "wrong"


def test_strides_are_those_of_the_case(demo):
    case = descriptors.load(demo)[2]
    host, there = run_case.make_arguments(case.inputs, case.seed, "spyre")
    for values in (host, there):
        assert values[0].stride() == (1, 3) and values[0].storage_offset() == 5
        assert values[1].stride() == (0, 1)
    assert torch.equal(host[0], there[0].cpu())
    # Equal for every run, and another seed per input.
    again = run_case.make_arguments(case.inputs, case.seed, "spyre")[0]
    assert torch.equal(host[0], again[0]) and torch.equal(host[1], again[1])


def test_second_form(tmp_path, capsys):
    path = tmp_path / "second.yaml"
    path.write_text("""\
test_suite_config:
  files:
    - path: tests/test_model_ops_v2.py
      tests:
        - names: [TestSpyreModelOps::test_model_ops_db]
          mode: mandatory_success
          edits:
            ops:
              include:
                - name: torch.nn.functional.silu
                  tags: [mine]
                  sample_inputs_func:
                    args: [tensor: {shape: [5, 65], dtype: float16, init: randn}]
                    kwargs: {inplace: "False"}
  global:
    input_config: {seed: 3}
    supported_dtypes: [{name: float16, precision: {atol: 0.25, rtol: 0.125}}]
""")
    (case,) = descriptors.load(path)
    assert (case.seed, case.atol, case.rtol) == (3, 0.25, 0.125)
    assert case.kwmap == {"inplace": False} and case.tags == ("mine",)
    status, out, _ = run(capsys, path, "--model", "mine")
    assert status == 0, out


CASE = "cases:\n  - name: a\n    op: torch.add\n"
BROKEN = {
    "cases: [": "bad.yaml:2: ",
    "": "bad.yaml:1: the file is empty",
    "[1]": "bad.yaml:1: expected a mapping, found a list",
    "cases:\n  - op: torch.add": "bad.yaml:2: cases[0]: a case needs a name",
    "cases:\n  - name: a\n    name: b": "3: name: twice in one mapping, first in line 2",
    "cases:\n  - name: a\n    op: torch.softmaxx": (
        "bad.yaml:3: cases[0].op: unknown operator 'torch.softmaxx'; did you mean "
        "torch.softmax"
    ),
    "cases:\n  - name: a\n    op: os.system": "bad.yaml:3: cases[0].op: unknown",
    "cases:\n  - name: a\n    op: torch.load": "bad.yaml:3: cases[0].op: unknown",
    CASE + "    rtol: -1": "bad.yaml:4: cases[0].rtol: expected a finite number from 0",
    CASE + "    seed: x": "bad.yaml:4: cases[0].seed: expected a whole number",
    CASE + "    dtype: fp61": "'fp61' is no dtype; did you mean fp16",
    CASE + "    inputs: [tensor: {shape: [2, -1]}]": "number from 0, found -1",
    CASE + "    inputs: [tensor: {shape: [2], stride: [1, 1]}]": "2 strides for a sha",
    CASE + "    inputs: [tensor: {shape: [99999999, 99999]}]": "more than 4294967296",
    CASE + "    inputs: [tensor: {shape: [2], init: arrange}]": "did you mean arange",
    CASE + "    inputs: [tensor: {shape: [2], init: randint}]": "init_args with high",
    CASE + "    inputs: [tensor: {shape: [2], init: xavier}]": "needs at least 2",
    CASE + "    inputs: [tesnor: {shape: [2]}]": "an input has one key of tensor",
    CASE + "    inputs: [py: __import__('os')]": "4: cases[0].inputs[0].py: __import__",
    CASE + "    inputs: [py: '(1']": "no such expression",
    CASE + "  - {name: a, op: torch.add}": "bad.yaml:4: case a: named so before",
}


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_errors_name_file_and_line(tmp_path, capsys, text):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    status, out, err = run(capsys, path)
    assert status == 2 and out == ""
    assert err.startswith(f"spyre-model-ops: error: {path}:")
    assert BROKEN[text] in err


def test_unknown_keys_are_named(demo, capsys):
    demo.write_text(DEMO.replace("    rtol: 1.0e-2", "    rtoll: 1.0e-2"))
    _, _, err = run(capsys, demo, "--list-models")
    assert "demo.yaml:18: warning: rtoll is ignored; did you mean rtol" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "tiny-demu"], "no such model; there is tiny-demo"),
        (["-m", "constant +"], "no expression of marks"),
        (["-m", "f()"], "expected names of marks with not, and, or; found f()"),
        (["--compile-backend", "induktor"], "expected a backend of torch.compile"),
        (["--test-name", "nothing"], "no case is left"),
        (["--show-excluded"], "needs --list-cases-by-mark"),
    ],
)
def test_options_out_of_range(demo, capsys, options, said):
    status, _, err = run(capsys, demo, *options)
    assert status == 2 and said in err


def test_a_process_that_dies_costs_one_case(demo, capsys, monkeypatch):
    from torch_spyre.testing import pool

    results = pool.run_all(
        [1, 0, 2], _die_of_zero, 2, 60, lambda item, why: why, lambda result: None
    )
    assert results == [1, "the process died with status 3", 2]


def _die_of_zero(item):
    return item or os._exit(3)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 65)
        self.layers = nn.ModuleList(nn.Linear(65, 65) for _ in range(3))

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = torch.nn.functional.softmax(layer(x), dim=-1, dtype=torch.float16)
        x[:, 0] = 0
        mask = tokens > 3
        return torch.where(condition=mask[..., None], input=x, other=1.0).sum(-1)


def test_recorded_descriptors_run(tmp_path, capsys):
    torch.manual_seed(1)
    module = Block().half()
    with record("block") as recording:
        result = module(torch.randint(0, 10, (2, 7)))
    assert result.shape == (2, 7)
    path = tmp_path / "block.yaml"
    recording.write(path)
    cases = {c.name: c for c in descriptors.load(path)}
    linear = cases["torch.nn.functional.linear.1"]
    # The layers' calls differ in the ranges of their values alone, if at all.
    assert "layers.0" in linear.description
    assert [i.shape for i in linear.inputs] == [(2, 7, 65), (65, 65), (65,)]
    softmax = cases["torch.nn.functional.softmax.1"]
    assert softmax.kwmap == {"dtype": torch.float16} and softmax.attrs["dim"] == -1
    embedding = cases["torch.nn.functional.embedding.1"]
    assert dict(embedding.inputs[0].init_args) == {"low": 0, "high": 10}
    assert cases["torch.setitem.1"].inputs[1] == (slice(None), 0)
    where = cases["torch.where.1"]
    assert where.inputs[0].dtype == torch.bool and where.attrs == {"other": 1.0}
    assert not recording.left_out
    status, out, _ = run(capsys, path)
    assert status == 0, out


def test_record_command(tmp_path, capsys, monkeypatch):
    (tmp_path / "own_model.py").write_text(
        "import torch\n"
        "def make():\n"
        "    return torch.nn.Linear(5, 3), (torch.ones(2, 5),)\n"
        "if __name__ == '__main__':\n"
        "    import sys\n"
        "    torch.relu(torch.ones(int(sys.argv[1])))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for device, dtype in (("cpu", "float16"), ("meta", "float16"), ("spyre", "")):
        arguments = ["record", "own_model:make", "-o", "a.yaml", "--device", device]
        arguments += ["--dtype", dtype] if dtype and device != "cpu" else []
        assert model_ops.main(arguments) == 0
        (case,) = descriptors.load("a.yaml")
        assert case.op == "torch.nn.functional.linear" and case.model == "a"
    script = ["record", "own_model.py", "-o", "b.yaml", "--", "9"]
    assert model_ops.main(script) == 0
    assert [c.op for c in descriptors.load("b.yaml")] == ["torch.ones", "torch.relu"]
    capsys.readouterr()
    assert model_ops.main(["record", "own_model:mak", "-o", "c.yaml"]) == 2
    assert "did you mean make" in capsys.readouterr().err
    assert not Path("c.yaml").exists()


def test_six_models_are_recorded():
    for size in ("tiny", "full"):
        files = sorted((MODELS / size).glob("*.yaml"))
        assert sorted(f.stem for f in files) == SIX
        for file in files:
            cases = descriptors.load(file)
            assert len(cases) >= 20
            assert {c.model for c in cases} == {f"{file.stem}-{size}"}
    total = sum(f.stat().st_size for f in MODELS.rglob("*.yaml"))
    assert total < 500_000


def _one_per_operator(size):
    chosen = {}
    cases = descriptors.load_all([str(MODELS / size)])
    for case in selection.select(cases, [], [], selection.DEFAULT_MARKS, True)[0]:
        chosen.setdefault((case.op, tuple(sorted(case.keywords))), case)
    return list(chosen.values())


def test_recorded_operators_are_right():
    """One call of each operator of the six models."""
    cases = _one_per_operator("tiny")
    assert len(cases) >= 50
    results = model_ops.run_cases(cases)
    worse = [(r.model, r.name, r.kind, r.why) for r in results if r.kind != "right"]
    assert worse == []


def test_full_size_needs_no_data():
    names = ("linear", "softmax", "rsqrt", "scaled_dot_product_attention")
    cases = [c for c in _one_per_operator("full") if c.op.rpartition(".")[2] in names]
    assert len(cases) >= 4
    results = model_ops.run_cases(cases, predict=True)
    assert [r.kind for r in results] == ["predicted"] * len(cases)
    assert max(r.predicted_seconds for r in results) > 1e-6
    with pytest.raises(InputError):
        descriptors.load(MODELS / "missing.yaml")
