# SPDX-License-Identifier: Apache-2.0
"""PyTorch's controls of caches and dumps: spec/drop-in.md, section 5, item 10."""

import json
import logging
import subprocess
import sys

import pytest
import torch
import torch_spyre
from interpreters import run_python
from torch._dynamo.utils import counters
from torch._inductor.utils import fresh_cache
from torch_spyre import _C
from torch_spyre._inductor import config
from torch_spyre.compile_backend import compiled_parts
from torch_spyre.frontend import cache

INDUCTOR = {"backend": "inductor"}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SPYRE_CACHE_DIR", str(tmp_path / "cache"))
    torch_spyre.clear_cache()
    yield
    torch._dynamo.reset()
    torch_spyre.clear_cache()


def step(x):
    return (x + 1) * 2


def counted(x, function=step, **how):
    """Hits and misses of one compilation from Dynamo's fresh start."""
    torch._dynamo.reset()
    counters.clear()
    result = torch.compile(function, **(how or INDUCTOR))(x)
    assert torch.equal(result.cpu(), function(x.cpu()))
    seen = counters["inductor"]
    return seen["fxgraph_cache_hit"], seen["fxgraph_cache_miss"]


def ones(*shape):
    return torch.ones(shape, dtype=torch.float16).to("spyre")


def programs():
    return sorted(cache.cache_dir().rglob("*.spyre"))


@pytest.mark.parametrize("how", [INDUCTOR, {"backend": "spyre"}, {"dynamic": False}])
def test_hits_and_misses_are_counted(how):
    x = ones(3, 65)
    assert counted(x, **how) == (0, 1)
    assert counted(x, **how) == (1, 0)
    cache._in_memory.clear()
    assert counted(x, **how) == (1, 0)  # from disk
    assert counted(ones(3, 63), **how) == (0, 1)


def test_another_layout_of_an_input_is_another_program():
    function = torch.compile(step, **INDUCTOR)
    rows = torch.ones(64, 128, dtype=torch.float16)
    layout = _C.SpyreTensorLayout([64, 128], [128, 1], torch.float16, [1, 0])
    plain, columns = rows.to("spyre"), rows.to("spyre", device_layout=layout)
    assert plain.device_tensor_layout() != columns.device_tensor_layout()
    torch._dynamo.reset()
    counters.clear()
    for x in (plain, columns, plain, columns):
        assert torch.equal(function(x).cpu(), step(rows))
    assert counters["inductor"]["fxgraph_cache_miss"] == 2


def test_a_fresh_cache_is_empty_and_leaves_nothing():
    x = ones(5, 7)
    counted(x)
    (before,) = programs()
    with fresh_cache():
        assert programs() == [] and counted(x) == (0, 1)
        with fresh_cache():
            assert counted(x) == (0, 1)
        assert counted(x) == (1, 0)
        (inside,) = programs()
        assert inside != before
    assert not inside.exists() and programs() == [before]
    assert counted(x) == (1, 0)


def test_artifacts_take_programs_to_another_process(tmp_path):
    x = ones(2, 127)
    with fresh_cache():
        counted(x)
        artifacts, info = torch.compiler.save_cache_artifacts()
        (key,) = [program.stem for program in programs()]
    assert key in info.artifacts[cache.ARTIFACT_TYPE]
    file = tmp_path / "artifacts"
    file.write_bytes(artifacts)
    code = f"""
import torch, torch_spyre
from torch._dynamo.utils import counters
torch.compiler.load_cache_artifacts(open({str(file)!r}, 'rb').read())
x = torch.ones(2, 127, dtype=torch.float16).to('spyre')
assert torch.compile(lambda x: (x + 1) * 2, backend='inductor')(x).cpu().eq(4).all()
print(counters['inductor']['fxgraph_cache_hit'])
"""
    done = run_python(code)
    assert done.stdout == "1\n", done.stderr


@pytest.mark.parametrize("key", ["../../escape", "A" * 64, ""])
def test_artifacts_stay_in_the_cache(key):
    torch_cache = torch.compiler._cache
    artifact = torch_cache.CacheArtifactFactory.create(cache.ARTIFACT_TYPE, key, b"x")
    with pytest.warns(UserWarning, match="is no program's key"):
        artifact.populate_cache()
    assert not cache.cache_dir().exists() or programs() == []


def test_caches_can_be_switched_off():
    x = ones(1, 3)
    before = len(compiled_parts())
    with torch.compiler.config.patch(force_disable_caches=True):
        assert counted(x) == counted(x) == (0, 0)
    first, second = compiled_parts()[before:]
    assert first.graph is not second.graph and programs() == []
    with config.patch(sdsc_cache=False):
        assert counted(x) == (0, 1) and programs() == []
    torch_spyre.clear_cache()
    with config.patch(sdsc_cache=False, spyre_kernel_cache=True):
        assert counted(x) == (0, 1) and len(programs()) == 1


def test_the_variable_that_switches_caches_off(tmp_path, monkeypatch):
    monkeypatch.setenv("SPYRE_CACHE_DIR", str(tmp_path / "off"))
    code = (
        "import torch; x = torch.ones(3, device='spyre');"
        "print(torch.compile(lambda x: x + 1)(x).cpu().tolist())"
    )
    monkeypatch.setenv("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[2.0, 2.0, 2.0]\n"
    assert not any((tmp_path / "off").rglob("*.spyre"))


@pytest.mark.usefixtures("no_generated_cpp")
def test_our_options_go_through_inductor():
    torch._dynamo.reset()
    x = ones(64, 65)
    for options in ({"cores": 2}, {"cores": 3, "shape_padding": True}):
        function = torch.compile(step, options=options, **INDUCTOR)
        assert torch.equal(function(x).cpu(), step(x.cpu()))
        report = compiled_parts()[-1].report()
        assert {kernel["num_cores"] for kernel in report} == {options["cores"]}
        torch._dynamo.reset()
    # Without spyre tensors they have no meaning.
    function = torch.compile(step, options={"cores": 2}, **INDUCTOR)
    assert torch.equal(function(x.cpu()), step(x.cpu()))
    with pytest.raises(RuntimeError, match="Unexpected optimization option coers"):
        torch.compile(step, options={"coers": 2}, **INDUCTOR)
    with pytest.raises(Exception, match="option cores: expected a number from 1"):
        torch.compile(step, options={"cores": 33}, **INDUCTOR)(x)


def test_no_option_has_a_name_of_inductor():
    from torch._inductor import config as inductor

    names = {row["name"] for row in _C.compile_options()}
    assert not names & set(inductor.get_config_copy())


def test_wrappers_with_other_options_differ():
    first, second, same = (
        torch._TorchCompileInductorWrapper(None, {"cores": cores}, None)
        for cores in (2, 3, 2)
    )
    assert first == same and first != second


CODE = """
import torch
def function(x):
    return torch.softmax(x @ x, -1)
x = torch.ones(64, 64, dtype=torch.float16).to('spyre')
torch.compile(function, backend='inductor')(x)
"""


def test_torch_compile_debug_gets_our_dump(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_COMPILE_DEBUG", "1")
    monkeypatch.setenv("TORCH_COMPILE_DEBUG_DIR", str(tmp_path))
    subprocess.run([sys.executable, "-c", CODE], check=True, cwd=tmp_path)
    (run,) = (tmp_path / "torch_compile_debug").glob("run_*")
    names = {file.name for file in (run / "torch_spyre" / "graph0").iterdir()}
    assert {"fx_graph.txt", "ktir.mlir", "00-import.mlir", "run.sh"} <= names


def test_torch_trace_gets_our_artifacts(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_TRACE", str(tmp_path))
    script = tmp_path / "user.py"
    script.write_text(CODE)
    subprocess.run([sys.executable, str(script)], check=True)
    (log,) = tmp_path.glob("*.log")
    lines = log.read_text().splitlines()
    found = {}
    for number, line in enumerate(lines):
        _, brace, rest = line.partition("{")
        if not brace or '"artifact"' not in line:
            continue
        record = json.loads(brace + rest)
        if (name := record["artifact"]["name"]).startswith("spyre_"):
            assert record["frame_id"] == 0 and record["frame_compile_id"] == 0
            payload = []
            for text in lines[number + 1 :]:
                if not text.startswith("\t"):
                    break
                payload.append(text[1:])
            found[name] = "\n".join(payload)
    assert set(found) == {
        f"spyre_graph0_{what}" for what in ("fx_graph", "ktir", "provenance")
    }
    assert "func.func" in found["spyre_graph0_ktir"]
    provenance = json.loads(found["spyre_graph0_provenance"])
    targets = {node["target"]: node["stack"] for node in provenance["nodes"]}
    assert targets["aten.mm.default"][0]["file"] == str(script)
    assert targets["aten.mm.default"][0]["line"] == 4
    assert provenance["kernels"]


def test_passes_are_logged_by_name(listen):
    names = "spyre-work-division,no-such-pass"
    with listen(cache._passes_log) as records, config.patch(log_passes=names):
        counted(ones(4, 5))
    texts = [record.getMessage() for record in records]
    after = [text for text in texts if " after " in text]
    assert len(after) == 1 and "after spyre-work-division:" in after[0]
    assert "spyre_graph." in after[0]
    warned = [r for r in records if r.levelno == logging.WARNING]
    assert "no pass is called no-such-pass" in warned[0].getMessage()
