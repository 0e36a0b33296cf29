# SPDX-License-Identifier: Apache-2.0
"""Predictions of whole models: sums of what spyre-run says, equal layers once."""

import json
import re
import sys
from collections import Counter

import pytest
import torch
from commands import needs_tools, run
from torch import nn
from torch_spyre._inductor import config
from torch_spyre.frontend import refusals
from torch_spyre.predict import ModelError, api, cli, models, parts, predict, report
from torch_spyre.predict import what_if as predict_changes
from torch_spyre.predict.trace import trace

pytestmark = needs_tools

TINY = {
    "model_type": "granite",
    "num_hidden_layers": 3,
    "hidden_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 320,
    "vocab_size": 131,
}

GRAPH = """
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: tensor<65x130xf16, #l> {spyre_graph.name = "x"},
                %y: tensor<65x130xf16, #l> {spyre_graph.name = "y"})
    -> (tensor<65x130xf16> {spyre_graph.name = "z"}) {
  %e = tensor.empty() : tensor<65x130xf16>
  %0 = spyre_graph.add ins(%x, %y : tensor<65x130xf16, #l>, tensor<65x130xf16, #l>)
    outs(%e : tensor<65x130xf16>) -> tensor<65x130xf16>
  return %0 : tensor<65x130xf16>
}
"""


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)

    def forward(self, x, cache, position):
        cache.index_copy_(1, position, self.linear(self.norm(x)))
        return x + cache.sum(1, keepdim=True)


class Stack(nn.Module):
    """Blocks with a cache each."""

    def __init__(self, width=65, count=4):
        super().__init__()
        self.embedding = nn.Embedding(131, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(count))
        self.head = nn.Linear(width, 131)

    def forward(self, ids, position, *caches):
        x = self.embedding(ids)
        for block, cache in zip(self.blocks, caches, strict=True):
            x = block(x, cache, position)
        return self.head(x).argmax(-1)


def stack():
    def inputs(batch, query, context):
        # Its step adds one token, whatever the phase.
        caches = [torch.empty(batch, context, 65, dtype=torch.float16)] * 4
        ids = torch.empty(batch, 1, dtype=torch.int64)
        return (ids, torch.empty(1, dtype=torch.int64), *caches)

    return Stack(), inputs


def model_of(factory):
    module, inputs = factory()
    model = models.from_module(module.half().to("meta"), "stack")
    model.inputs = lambda *shape: tuple(t.to("meta") for t in inputs(*shape))
    return model


def seconds_of(graph, folder):
    program = folder / "program.mlir"
    program.write_text(graph.print_ktir())
    said = json.loads(run("spyre-run", program, "--predict-only", "--json=-"))
    return said["predicted_seconds"]


@pytest.mark.parametrize(("batch", "context"), [(1, 1), (1, 63), (2, 65), (3, 127)])
def test_sums_are_those_of_the_programs(batch, context, tmp_path):
    model = model_of(stack)
    phase = predict(model, batch=batch, context=context, phases=["decode"])["phases"][
        "decode"
    ]
    calls = parts.compile_step(trace(model, batch, 1, context), {}).calls
    expected = sum(seconds_of(call.graph, tmp_path) for call in calls)
    assert phase["predicted_seconds"] == pytest.approx(expected, rel=1e-12)
    rows = phase["parts"]
    total = sum(row["count"] * row["predicted_seconds"] for row in rows)
    assert total == pytest.approx(expected, rel=1e-12)
    assert phase["num_programs"] == len(calls)
    assert not phase["on_host"]


def test_equal_layers_are_one_program():
    calls = parts.compile_step(trace(model_of(stack), 1, 1, 65), {}).calls
    # Updates of the caches are in their layers, not behind all of them.
    assert [call.layer for call in calls] == [
        "before layers",
        *(f"blocks.{i}" for i in range(4)),
        "after layers",
    ]
    assert len({id(call.graph) for call in calls[1:5]}) <= 2
    assert calls[2].graph is calls[3].graph is calls[4].graph


def test_a_cache_is_not_copied():
    phase = predict(model_of(stack), context=4096, phases=["decode"])["phases"][
        "decode"
    ]
    row = next(r for r in phase["parts"] if r["name"].startswith("blocks"))
    # A row of 65 elements has two sticks.
    cache = 4096 * 2 * 128
    assert row["bytes"]["device_memory_written"] < cache / 4


def test_plain_module_of_tokens():
    module = nn.Sequential(nn.Embedding(131, 65), nn.Linear(65, 131))
    result = predict(module, batch=3, prompt=63)
    assert list(result["phases"]) == ["prefill"]
    assert result["time_to_first_token_seconds"] > 0
    assert [r["name"] for r in result["phases"]["prefill"]["parts"]] == ["model"]
    # The caller's module stays as it was.
    assert all(p.device.type == "cpu" for p in module.parameters())
    assert all(m.training for m in module.modules())


@pytest.mark.parametrize(
    ("phases", "message"),
    [
        (["decode"], "there is no phase decode.*let the function return"),
        ([], "expected some of"),
        (["prefill", "train"], "expected some of"),
    ],
)
def test_phases_that_are_not_there(phases, message):
    module = nn.Sequential(nn.Embedding(131, 65), nn.Linear(65, 131))
    with pytest.raises(ValueError, match=message):
        predict(module, prompt=3, phases=phases)


def test_a_preset_without_transformers(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert cli.main(["--model", "granite-3.3-8b", "--quiet"]) == 1
    assert f"run {sys.executable} -m pip install transformers" in capsys.readouterr()[1]


def test_changed_devices():
    results = predict_changes(
        model_of(stack),
        {"cores": [1, 32], "launchSeconds": [1e-3]},
        context=65,
        phases=["decode"],
    )
    times = [r["time_per_token_seconds"] for r in results]
    assert [r["changed"].get("cores") for r in results] == [None, 1, 32]
    programs = results[0]["phases"]["decode"]["num_programs"]
    assert times[2] - times[0] == pytest.approx(programs * (1e-3 - 4.2e-6))
    cores = {
        k["cores"]
        for p in results[1]["phases"]["decode"]["parts"]
        for k in p["kernels"]
    }
    assert cores == {1}


def test_intervals_are_added_if_all_reports_have_them():
    def program(*kernels):
        return {"launch_seconds": 1.0, "kernels": list(kernels)}

    a, b = {"interval_seconds": [2.0, 4.0]}, {"interval_seconds": [0.5, 1.0]}
    assert report.interval_of(program(a, b)) == [3.5, 6.0]
    assert report.interval_of(program(a, {})) is None
    assert report.sum_intervals([(a, 40), (b, 2)]) == [81.0, 162.0]
    assert report.sum_intervals([(a, 40), ({}, 1)]) is None


def test_names_of_equal_layers():
    assert api._range_of(["m.layers.7"]) == "m.layers.7"
    assert api._range_of(["l.0", "l.2", "l.3", "l.4"]) == "l.0,2-4"
    assert api._range_of([f"l.{i}" for i in range(40)]) == "l.0-39"


def test_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_predicted.py").write_text("from test_predict import stack\n")
    arguments = ["--model", "own_predicted:stack", "--context", "63"]
    assert (
        cli.main([*arguments, "--phase=decode", "--per-kernel", "--json=r.json"]) == 0
    )
    shown = capsys.readouterr()
    assert "blocks.1-3" in shown.out or "blocks.0-3" in shown.out
    assert "predicting" in shown.err
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["host"]["peak_bytes"] > 0
    assert "what_if" not in result


def test_graph_file(tmp_path, capsys):
    path = tmp_path / "graph.mlir"
    path.write_text(GRAPH)
    assert cli.main(["--model", str(path), "--json=-", "--quiet"]) == 0
    result = json.loads(capsys.readouterr().out)
    run("spyre-opt", path, "--spyre-pipeline=to-ktir", "-o", tmp_path / "ktir.mlir")
    said = run("spyre-run", tmp_path / "ktir.mlir", "--predict-only", "--json=-")
    expected = json.loads(said)["predicted_seconds"]
    assert result["phases"]["program"]["predicted_seconds"] == expected
    assert cli.main(["--model", str(path), "--what-if=launchSeconds=1,2"]) == 0
    assert "2.000 s [2.000 s, 2.000 s], launch" in capsys.readouterr().out


CHAIN = """
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
func.func @main(%x: tensor<512x1024xf16, #l> {spyre_graph.name = "x"})
    -> (tensor<512x1024xf16> {spyre_graph.name = "z"}) {
  %e = tensor.empty() : tensor<512x1024xf16>
  %0 = spyre_graph.add ins(%x, %x : tensor<512x1024xf16, #l>, tensor<512x1024xf16, #l>)
    outs(%e : tensor<512x1024xf16>) -> tensor<512x1024xf16>
  %1 = spyre_graph.mul ins(%0, %0 : tensor<512x1024xf16>, tensor<512x1024xf16>)
    outs(%e : tensor<512x1024xf16>) -> tensor<512x1024xf16>
  return %1 : tensor<512x1024xf16>
}
"""


def test_graph_file_is_planned_for_the_device(tmp_path):
    path = tmp_path / "graph.mlir"
    path.write_text(CHAIN)
    as_is, small = api.what_if_mlir(str(path), {"lx": [16384]}, device={})
    # The plan for the usual LX does not fit a smaller one.
    assert "error" not in small
    for result in (as_is, small):
        assert result["phases"]["program"]["predicted_seconds"] > 0


@pytest.fixture
def refuse(monkeypatch):
    """The compiler refuses operators, for a reason."""
    monkeypatch.setattr(refusals, "_refusals", Counter())


@pytest.mark.filterwarnings("ignore:.*runs by itself")
def test_a_device_that_is_too_small_says_what_of(refuse):
    layer = nn.Sequential(nn.Embedding(9, 256), nn.Linear(256, 256)).half()
    as_is, small = predict_changes(layer, {"lx": [1000]}, phases=["prefill"])
    assert as_is["phases"]["prefill"]["predicted_seconds"] > 0
    assert "nothing of it runs on the card in prefill; aten." in small["error"]
    assert re.search(r"needs \d+ bytes of LX for its smallest tiles", small["error"])


class LlamaNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * y.to(x.dtype)


class LlamaBlock(nn.Module):
    """Grouped attention with a static cache, and a gated product."""

    def __init__(self, width, heads, groups, inner):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norms = nn.ModuleDict({n: LlamaNorm(width) for n in ("in", "out")})
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, groups * self.size, bias=False)
        self.v = nn.Linear(width, groups * self.size, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x, mask, at, keys, values):
        batch, query, width = x.shape
        y = self.norms["in"](x)
        q, k, v = (
            f(y).view(batch, query, -1, self.size).transpose(1, 2)
            for f in (self.q, self.k, self.v)
        )
        keys.index_copy_(2, at, k)
        values.index_copy_(2, at, v)
        y = nn.functional.scaled_dot_product_attention(
            q, keys, values, attn_mask=mask, enable_gqa=True
        )
        x = x + self.o(y.transpose(1, 2).reshape(batch, query, width))
        y = self.norms["out"](x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, width=128, heads=4, groups=2, inner=320, count=3):
        super().__init__()
        self.embedding = nn.Embedding(131, width)
        self.layers = nn.ModuleList(
            LlamaBlock(width, heads, groups, inner) for _ in range(count)
        )
        self.head = nn.Linear(width, 131, bias=False)

    def forward(self, ids, at, mask, *caches):
        x = self.embedding(ids)
        for i, layer in enumerate(self.layers):
            x = layer(x, mask, at, caches[2 * i], caches[2 * i + 1])
        return self.head(x[:, -1]).argmax(-1)


def llama():
    def inputs(batch, query, context):
        half = {"dtype": torch.float16}
        return (
            torch.empty(batch, query, dtype=torch.int64),
            torch.empty(query, dtype=torch.int64),
            torch.empty(batch, 1, query, context, **half),
            *[torch.empty(batch, 2, context, 32, **half)] * 6,
        )

    return Llama(), inputs


@pytest.mark.parametrize(
    ("batch", "prompt", "context"), [(1, 1, 2), (1, 63, 65), (3, 65, 127)]
)
def test_prefill_and_decode_of_a_whole_model(batch, prompt, context):
    result = predict(model_of(llama), batch=batch, prompt=prompt, context=context)
    assert list(result["phases"]) == ["prefill", "decode"]
    for phase in result["phases"].values():
        counts = {r["name"]: r["count"] for r in phase["parts"]}
        assert sum(n for name, n in counts.items() if "layers." in name) == 3
        assert phase["num_distinct_programs"] < phase["num_programs"]
        assert not phase["on_host"]
    assert result["time_to_first_token_seconds"] > 0
    assert result["time_per_token_seconds"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model=nothing"], "nothing: no preset"),
        (["--model=none.json"], "none.json: "),
        (["--model=list.json"], "list.json: expected an object"),
        (["--model=kind.json"], "kind.json: "),
        (["--model=none.mlir"], "none.mlir: no such file"),
        (["--model=no_such_module:f"], "no_such_module:f: "),
        (["--model=json:loads_not"], "json:loads_not: "),
        (
            ["--model=own:stack", "--what-if=wings=2"],
            "wings: the device has no such number; spyre-run --print-device-spec lists",
        ),
        (
            ["--model=torch.nn:Identity"],
            "torch.nn:Identity: nothing of it runs on the card in prefill",
        ),
        (
            ["--model=torch.nn:Identity", "--phase=decode"],
            "torch.nn:Identity: there is no phase decode",
        ),
        (["--model=own:stack", "--device=list.json"], "list.json: expected an object"),
        (
            ["--model=twice.json"],
            "twice.json: /rope/a~1b: the key 'a/b' occurs twice in an object",
        ),
        (["--model=deep.json"], "deep.json: arrays and objects are nested too deep"),
        (["--model=bytes.json"], "bytes.json: 'utf-8' codec can't decode byte 0xff"),
        (
            ["--model=own:stack", "--device=twice.json"],
            "twice.json: /rope/a~1b: the key 'a/b' occurs twice in an object",
        ),
        (["--model=own:stack", "--device=empty.json"], "empty.json: lx has no value"),
        (
            ["--model=own:stack", "--device=names.json"],
            "names.json: numCores: numCores is given twice",
        ),
        (
            ["--model=own:stack", "--device=half.json"],
            "half.json: cores: expected a whole number, found 8.5",
        ),
        (
            ["--model=own:stack", "--what-if=cores=8,8.5"],
            "cores: expected a whole number, found 8.5",
        ),
        (
            ["--model=own:stack", "--what-if=cores=8", "--what-if=cores=16"],
            "--what-if cores: is given twice",
        ),
        (
            ["--model=own:stack", "--what-if=lx=8", "--what-if=lxBytesPerCore=16"],
            "lxBytesPerCore: lxBytesPerCore is given twice",
        ),
    ],
)
def test_errors_name_what_is_wrong(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "list": "[]",
        "kind": '{"hidden_size": 64}',
        "twice": '{"lx": 1, "rope": {"a/b": 1, "c": [{}], "a/b": 2}}',
        "deep": "[" * 100_000,
        "empty": '{"lx": {}}',
        "names": '{"cores": 4, "numCores": 8}',
        "half": '{"cores": 8.5}',
    }.items():
        (tmp_path / f"{name}.json").write_text(text)
    (tmp_path / "bytes.json").write_bytes(b'{"a": "\xff"}')
    assert cli.main(arguments) == 1
    assert f"spyre-predict: error: {message}" in capsys.readouterr().err


@pytest.mark.parametrize("value", [2, 2.0])
def test_device_numbers_of_programs(value):
    """Whole numbers may be floats; infinity of the device is a text."""
    assert api.device_numbers({"cores": value, "nonNumber": "inf"}) == {
        "numCores": 2,
        "nonNumber": "inf",
    }
    for wrong in ("2", True, None, [2], float("inf"), float("nan")):
        with pytest.raises(ValueError, match="cores: expected a whole number"):
            api.device_numbers({"cores": wrong})
    with pytest.raises(ValueError, match="bandwidth: expected a number, found '2'"):
        api.device_numbers({"bandwidth": "2"})
    with pytest.raises(ValueError, match="bandwidth: expected a finite number"):
        api.device_numbers({"bandwidth": float("nan")})


@pytest.mark.parametrize("value", ["cores", "cores=", "cores=many"])
def test_changes_need_values(value, capsys):
    with pytest.raises(SystemExit):
        cli.main(["--model=own:stack", f"--what-if={value}"])
    assert "expected NAME=VALUE" in capsys.readouterr().err


def test_counts_are_positive():
    with pytest.raises(ValueError, match="batch: 0 is not positive"):
        predict(Stack(), batch=0)


class TestTransformers:
    """Configurations, where transformers is installed."""

    @pytest.fixture(autouse=True)
    def _installed(self):
        pytest.importorskip("transformers")

    @pytest.mark.parametrize(
        ("batch", "prompt", "context"), [(1, 1, 2), (1, 63, 65), (3, 65, 127)]
    )
    def test_layers_of_a_configuration(self, batch, prompt, context, tmp_path):
        path = tmp_path / "tiny.json"
        path.write_text(json.dumps(TINY))
        result = predict(str(path), batch=batch, prompt=prompt, context=context)
        for phase in result["phases"].values():
            counts = {r["name"]: r["count"] for r in phase["parts"]}
            assert sum(n for name, n in counts.items() if "layers." in name) == 3
            assert phase["num_distinct_programs"] < phase["num_programs"]
        assert result["time_to_first_token_seconds"] > 0
        assert result["time_per_token_seconds"] > 0

    @pytest.mark.parametrize("infinity", ['{"__float__": "Infinity"}', "Infinity"])
    def test_infinity(self, infinity, tmp_path):
        """As transformers 5 saves it, and as those before did."""
        path = tmp_path / "config.json"
        values = json.dumps({**TINY, "model_type": "bamba", "time_step_limit": []})
        path.write_text(values.replace("[]", f"[0.0, {infinity}]"))
        config = models.load(str(path)).config
        assert list(config.time_step_limit) == [0.0, float("inf")]

    @pytest.mark.parametrize(
        "values", [{"model_type": "granit"}, {**TINY, "num_attention_heads": 0}]
    )
    def test_wrong_configuration(self, values, tmp_path):
        path = tmp_path / "wrong.json"
        path.write_text(json.dumps(values))
        with pytest.raises(ModelError, match=r"wrong\.json"):
            predict(str(path))


def test_functions_of_models_take_no_arguments(tmp_path, monkeypatch):
    (tmp_path / "own_needs.py").write_text("def make(width):\n    return None\n")
    monkeypatch.chdir(tmp_path)
    message = "own_needs:make: is called without arguments, missing .*'width'"
    with pytest.raises(ModelError, match=message):
        predict("own_needs:make")


@pytest.mark.parametrize(
    ("name", "value"), [("lx_planning", False), ("dxp_lx_frac_avail", 0.9999)]
)
def test_the_configuration_counts(name, value):
    def traffic(device=None):
        phase = predict(model_of(stack), context=64, phases=["decode"], device=device)
        found = phase["phases"]["decode"]["bytes"]
        return found["device_memory_read"] + found["device_memory_written"]

    planned = traffic()
    with config.patch({name: value}):
        assert traffic() > planned
        # What is given comes before the configuration.
        given = traffic({"lxReservedFraction": 0.2})
    assert (given == planned) == (name == "dxp_lx_frac_avail")
