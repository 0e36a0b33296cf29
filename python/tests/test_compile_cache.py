# SPDX-License-Identifier: Apache-2.0
"""The compile cache in memory and on disk; what dumps leave behind."""

import gc
import json
import os
import subprocess
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import torch_spyre
from inputs import values
from interpreters import run_python
from numerics import assert_exact, compiled
from torch_spyre import _C
from torch_spyre.compile_backend import compiled_parts
from torch_spyre.frontend import cache, dump

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("SPYRE_BUILD_DIR", ROOT / "build")) / "bin"

#: Compiles one function and says how many graphs the compiler saw.
PROGRAM = """
import json, sys, warnings
import torch
from torch_spyre import _C
import torch_spyre.compile_backend

seen = []
compile_graph = _C.compile_graph
def counted(*args):
    seen.append(1)
    return compile_graph(*args)
_C.compile_graph = counted

def function(x):
    return (x * 2 + 1).softmax(-1)

x = (torch.arange(350).view(5, 70) % 7).half().to("spyre")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    y = torch.compile(function, backend="spyre", dynamic=False)(x).cpu()
print(json.dumps({
    "compiled": len(seen),
    "values": y.flatten().tolist(),
    "warnings": [str(w.message) for w in caught],
}))
"""


def run(folder):
    """As a process that is started and finished."""
    done = run_python(PROGRAM, ends_at_once=True, SPYRE_CACHE_DIR=str(folder))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def cached_files(folder):
    return [p for p in Path(folder).rglob("*") if p.is_file()]


def test_second_process_compiles_nothing(tmp_path):
    first = run(tmp_path)
    assert first["compiled"] == 1
    (file,) = cached_files(tmp_path)
    again = run(tmp_path)
    assert again["compiled"] == 0
    assert again["values"] == first["values"]
    assert cached_files(tmp_path) == [file]


def test_programs_are_checked_that_were_not(tmp_path, monkeypatch):
    """SPYRE_VERIFY_EACH_PASS checks what was compiled without it, and once."""
    monkeypatch.setenv("SPYRE_CACHE_DIR", str(tmp_path))
    x = values((5, 70), torch.float16).to("spyre")

    def passes():
        torch._dynamo.reset()
        compiled(lambda x: (x * 2 + 1).softmax(-1))(x)
        part = compiled_parts()[-1].graph
        return part.cache_key, [name for name, _ in part.pass_seconds]

    monkeypatch.delenv("SPYRE_VERIFY_EACH_PASS")
    plain, names = passes()
    monkeypatch.setenv("SPYRE_VERIFY_EACH_PASS", "1")
    checked, more = passes()
    assert more.count("spyre-verify-plan") > names.count("spyre-verify-plan")
    assert passes()[0] == checked != plain


def test_damaged_files_are_replaced(tmp_path):
    first = run(tmp_path)
    (file,) = cached_files(tmp_path)
    good = file.read_bytes()
    damages = [
        good[: len(good) // 2],
        good[:-100] + bytes(100),
        good[:40] + bytes([good[40] ^ 255]) + good[41:],
    ]
    for damaged in damages:
        file.write_bytes(damaged)
        again = run(tmp_path)
        assert again["compiled"] == 1
        assert again["values"] == first["values"]
        assert any("damaged" in w for w in again["warnings"])
        assert file.read_bytes() == good, "the compiler is deterministic"


def test_files_of_other_programs_are_replaced(tmp_path, monkeypatch):
    """Whatever swapped them."""
    monkeypatch.setenv("SPYRE_CACHE_DIR", str(tmp_path))
    x = values((5, 70), torch.float16).to("spyre")
    cache._in_memory.clear()
    expected = compiled(lambda x: x * 3 + 1)(x).cpu()
    (file,) = cached_files(tmp_path)
    compiled(lambda x: x * 5 + 1)(x)
    (other,) = set(cached_files(tmp_path)) - {file}
    file.write_bytes(other.read_bytes())
    cache._in_memory.clear()
    with pytest.warns(UserWarning, match="damaged"):
        actual = compiled(lambda x: x * 3 + 1)(x).cpu()
    assert_exact(actual, expected)
    assert file.read_bytes() != other.read_bytes()


def test_every_damage_is_noticed(tmp_path, monkeypatch):
    """Truncations and flipped bytes raise SpyreError, never crash."""
    monkeypatch.setenv("SPYRE_CACHE_DIR", str(tmp_path))
    x = values((5, 70), torch.float16).to("spyre")
    cache._in_memory.clear()
    compiled(lambda x: x * 3 + 1)(x)
    (file,) = cached_files(tmp_path)
    good = file.read_bytes()
    _C.CompiledGraph.deserialize(good)
    step = max(len(good) // 60, 1)
    for i in range(0, len(good), step):
        for damaged in (good[:i], good[:i] + bytes([good[i] ^ 0x55]) + good[i + 1 :]):
            with pytest.raises(_C.SpyreError):
                _C.CompiledGraph.deserialize(damaged)


def test_concurrent_processes(tmp_path):
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(run, [tmp_path] * 3))
    assert all(r["values"] == results[0]["values"] for r in results)
    assert all(r["warnings"] == results[0]["warnings"] for r in results)
    assert len(cached_files(tmp_path)) == 1


def test_folder_that_cannot_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = run(blocked)
    assert result["compiled"] == 1
    assert any("cached" in w for w in result["warnings"])


def test_same_key_compiles_once(tmp_path, monkeypatch):
    """Another function with the same graph; another one; another option."""
    monkeypatch.setenv("SPYRE_CACHE_DIR", str(tmp_path))
    torch_spyre.clear_cache()
    seen = []
    original = _C.compile_graph

    def counted(*args):
        seen.append(1)
        return original(*args)

    monkeypatch.setattr(_C, "compile_graph", counted)
    x = values((5, 70), torch.float16).to("spyre")
    wide = values((5, 70), torch.float32).to("spyre")
    compiled(lambda x: x * 3 + 1)(x)
    compiled(lambda x: x * 3 + 1)(x)
    assert len(seen) == 1
    compiled(lambda x: x * 3 + 2)(x)
    compiled(lambda x: x * 3 + 1)(wide)
    compiled(lambda x: x * 3 + 1, options={"cores": 2})(x)
    assert len(seen) == 4
    assert len(cached_files(tmp_path)) == 4
    torch_spyre.clear_cache()
    assert cached_files(tmp_path) == []
    compiled(lambda x: x * 3 + 1)(x)
    assert len(seen) == 5


def test_clear_cache_forgets_what_is_listed(tmp_path, monkeypatch):
    monkeypatch.setenv("SPYRE_CACHE_DIR", str(tmp_path))
    x = values((5, 70), torch.float16).to("spyre")
    function = compiled(lambda x: x * 3 + 1)
    expected = function(x).cpu()
    part = weakref.ref(compiled_parts()[-1])
    torch_spyre.clear_cache()
    assert compiled_parts() == []
    assert_exact(function(x).cpu(), expected)
    del function
    torch._dynamo.reset()
    gc.collect()
    assert part() is None


def test_other_files_survive_clear_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SPYRE_CACHE_DIR", str(tmp_path))
    mine = tmp_path / "notes.txt"
    mine.write_text("mine")
    torch_spyre.clear_cache()
    assert mine.exists()


# --- dumps -------------------------------------------------------------------


def dumped(folder, function, *inputs, monkeypatch):
    monkeypatch.setenv("SPYRE_DUMP_DIR", str(folder))
    result = compiled(function)(*inputs)
    return result, sorted(p for p in Path(folder).iterdir() if p.is_dir())


def test_decisions_of_a_dump_are_honoured(tmp_path, monkeypatch):
    x = values((64, 256), torch.float16).to("spyre")
    expected, (first,) = dumped(
        tmp_path / "first", torch.exp, x, monkeypatch=monkeypatch
    )
    decisions = json.loads((first / "decisions.json").read_text())
    (op,) = [
        op
        for function in decisions["functions"]
        for op in function["ops"]
        if op["op"] == "spyre_graph.exp"
    ]

    def save():
        # Graphs are numbered in each process: a later one finds its name.
        number = int(first.name.removeprefix("graph"))
        for later in range(number + 1, number + 9):
            folder = tmp_path / "edited" / f"graph{later}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "decisions.json").write_text(json.dumps(decisions))

    op["division"] = {"splits": [3, 2], "chunks": [22, 128]}
    save()
    monkeypatch.setenv("SPYRE_DECISIONS_IN", str(tmp_path / "edited"))
    actual, (second,) = dumped(
        tmp_path / "second", torch.exp, x, monkeypatch=monkeypatch
    )
    assert torch.equal(actual.cpu(), expected.cpu())
    assert compiled_parts()[-1].report()[0]["num_cores"] == 6
    honoured = json.loads((second / "decisions.json").read_text())
    assert honoured["functions"][0]["ops"][0]["division"] == op["division"]

    # A plan that cannot be is refused, and so is that of another graph.
    op["division"] = {"splits": [3, 4], "chunks": [22, 65]}
    save()
    with pytest.raises(Exception, match="same stick"):
        dumped(tmp_path / "third", torch.exp, x, monkeypatch=monkeypatch)
    with pytest.raises(Exception, match="for another operation"):
        dumped(tmp_path / "fourth", torch.neg, x, monkeypatch=monkeypatch)
    monkeypatch.delenv("SPYRE_DUMP_DIR")
    with pytest.raises(Exception, match="needs SPYRE_DUMP_DIR"):
        compiled(torch.sin)(x)


def test_dumps_are_read_back(tmp_path, monkeypatch):
    """Every file between two passes is input to spyre-opt."""
    if not (TOOLS / "spyre-opt").exists():
        pytest.skip("spyre-opt is not built")
    x = values((33, 130), torch.float16).to("spyre")
    _, (folder,) = dumped(
        tmp_path,
        lambda x: torch.nn.functional.layer_norm(x @ x.t(), (33,)).exp(),
        x,
        monkeypatch=monkeypatch,
    )
    files = sorted(folder.glob("*.mlir"))
    names = [f.stem for f in files]
    for stage in (
        "import",
        "spyre-decompose",
        "spyre-propagate-layouts",
        "spyre-coarse-tiling",
        "spyre-work-division",
        "spyre-bufferize",
        "spyre-lx-planning",
        "spyre-memory-planning",
        "ktir",
    ):
        assert any(stage in n for n in names), names
    assert (folder / "fx_graph.txt").read_text().count("aten") >= 3
    for file in files:
        read = subprocess.run(
            [str(TOOLS / "spyre-opt"), str(file), "-o", os.devnull],
            capture_output=True,
            text=True,
        )
        assert read.returncode == 0, f"{file.name}: {read.stderr[:2000]}"


def test_dumps_can_be_compiled_further(tmp_path, monkeypatch):
    """The pass by hand on one dump gives the next dump."""
    if not (TOOLS / "spyre-opt").exists():
        pytest.skip("spyre-opt is not built")
    x = values((33, 130), torch.float16).to("spyre")
    _, (folder,) = dumped(tmp_path, lambda x: x.softmax(-1), x, monkeypatch=monkeypatch)
    dumps = sorted(folder.glob("[0-9]*.mlir"))
    after = next(
        i for i, f in enumerate(dumps) if f.stem.endswith("spyre-propagate-layouts")
    )

    def run(*arguments):
        return subprocess.run(
            [str(TOOLS / "spyre-opt"), *map(str, arguments)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    by_hand = run("--spyre-propagate-layouts", dumps[after - 1])
    assert by_hand == run(dumps[after])


def test_one_folder_per_part(tmp_path, monkeypatch):
    x = values((5, 70), torch.float16).to("spyre")

    def function(x):
        return (torch.igamma(x * 2, x) * 3).sum()

    with pytest.warns(UserWarning, match="has no spyre kernel"):
        _, folders = dumped(tmp_path, function, x, monkeypatch=monkeypatch)
    assert len(folders) == 2
    for folder in folders:
        assert (folder / "ktir.mlir").exists()
        assert (folder / "run.sh").exists()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_dump_finds_the_tool(tmp_path, monkeypatch, is_there):
    """The one of this package; where the folder has gone elsewhere, that on the PATH."""
    x = values((5, 70), torch.float16).to("spyre")
    _, (folder,) = dumped(tmp_path, lambda x: x + 1, x, monkeypatch=monkeypatch)
    script = folder / "run.sh"
    path = os.environ["PATH"]
    if not is_there:
        line = next(n for n in script.read_text().splitlines() if "tool=/" in n)
        script.write_text(script.read_text().replace(line, "tool=/nowhere/spyre-run"))
        path = f"{TOOLS}{os.pathsep}{path}"
    environment = {**os.environ, "PATH": path}
    command = ["sh", str(script)]
    subprocess.run(command, env=environment, check=True, cwd=tmp_path, timeout=100)
    assert (folder / "out").is_dir()


def test_dumps_of_processes_in_one_folder(tmp_path, monkeypatch):
    """Another one makes the folder after this one has found that there is none."""
    exists = Path.exists
    make = Path.mkdir

    def made_by_another(self, *args, **kinds):
        if self.parent == tmp_path and self.name == "part" and not exists(self):
            make(self)
        make(self, *args, **kinds)

    monkeypatch.setenv("SPYRE_DUMP_DIR", str(tmp_path))
    monkeypatch.setattr(Path, "mkdir", made_by_another)
    assert dump.begin("part", []).folder == tmp_path / "part_1"


def test_dumping_does_not_change_results(tmp_path, monkeypatch):
    x = values((33, 130), torch.float16).to("spyre")
    plain = compiled(lambda x: (x @ x.t()).softmax(-1))(x)
    with_dump, _ = dumped(
        tmp_path, lambda x: (x @ x.t()).softmax(-1), x, monkeypatch=monkeypatch
    )
    assert_exact(with_dump.cpu(), plain.cpu())


@pytest.mark.parametrize(
    "environment",
    [{"TORCH_SPYRE_DEBUG": "maybe"}, {"SPYRE_DUMP_DIR": "/dev/null/here"}],
)
def test_nonsense_in_the_environment(environment, monkeypatch):
    """A clear exception that names the variable; then all is well."""
    x = values((5, 70), torch.float16).to("spyre")
    with monkeypatch.context() as patched:
        for name, value in environment.items():
            patched.setenv(name, value)
        with pytest.raises(Exception, match=next(iter(environment))):
            compiled(lambda x: x * 5)(x)
    compiled(lambda x: x * 5)(x)
