# SPDX-License-Identifier: Apache-2.0
"""torch.compile without a backend, and Inductor on spyre tensors."""

import contextlib
import importlib.machinery
import importlib.util
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch_spyre
import torch_spyre.compile_backend
from torch._dynamo.convert_frame import register_bytecode_hook
from torch_spyre.compile_backend import compiled_parts
from torch_spyre.frontend import dynamo, eager

pytestmark = pytest.mark.usefixtures("no_generated_cpp")


@pytest.fixture
def chosen(monkeypatch):
    """Records who compiles instead of compiling."""
    calls = []

    def inductor(self, gm, inputs, *, config_patches=None):
        calls.append(("inductor", self.config))
        return gm.forward

    def spyre(gm, inputs, **options):
        calls.append(("spyre", options))
        return gm.forward

    stock = torch._TorchCompileInductorWrapper.__mro__[1]
    monkeypatch.setattr(stock, "__call__", inductor)
    monkeypatch.setattr(torch_spyre.compile_backend, "spyre", spyre)
    torch._dynamo.reset()
    return calls


def test_host_graphs_go_to_inductor(chosen):
    torch.compile(lambda x: x + 1)(torch.ones(3))
    torch.compile(lambda x: x + 2, mode="max-autotune-no-cudagraphs")(torch.ones(3))
    torch.compile(lambda x: x + 3, options={"size_asserts": True})(torch.ones(3))
    assert [name for name, *_ in chosen] == ["inductor"] * 3
    assert chosen[0][1] == {} and chosen[1][1]["max_autotune"] is True
    assert chosen[2][1] == {"size_asserts": True}


def test_options_of_ours_on_host_graphs_warn_once(chosen, monkeypatch):
    monkeypatch.setattr(dynamo, "_warned", set())
    given = {"cores": 4, "mode": "reference", "size_asserts": True}
    with pytest.warns(UserWarning, match="of spyre without effect.*: cores, mode$"):
        torch.compile(lambda x: x + 1, options=given)(torch.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.compile(lambda x: x + 2, options=given)(torch.ones(3))
        torch.compile(lambda x: x + 3, options={"cores": 4})(
            torch.ones(3, device="spyre")
        )
    host = ("inductor", {"size_asserts": True})
    assert chosen == [host, host, ("spyre", {"options": {"cores": 4}})]


def test_another_default_of_the_user_stays():
    torch.compiler.set_default_backend("eager")
    try:
        x = torch.ones(3, device="spyre")
        result, programs = compiled_calls(lambda x: x + 1, x)
        assert result.cpu().tolist() == [2] * 3 and programs == 0
    finally:
        torch.compiler.set_default_backend("inductor")


def test_programs_on_spyre_do_not_import_inductor():
    code = (
        "import sys, torch; x = torch.ones(3, device='spyre');"
        "print(torch.compile(lambda x: x + 1, mode='max-autotune')(x).tolist());"
        "assert 'torch._inductor.compile_fx' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.filterwarnings("ignore:.*has no spyre kernel")
def test_graphs_that_touch_spyre_come_here(chosen):
    x = torch.ones(3, device="spyre")
    linear = torch.nn.Linear(3, 2).to("spyre")
    torch.compile(lambda x: x + 1, options={"cores": 2})(x)
    torch.compile(lambda: torch.ones(3, device="spyre"))()
    torch.compile(lambda x: x.to("spyre"))(torch.ones(3))
    torch.compile(lambda x: linear(x.to("spyre")).cpu())(torch.ones(3))
    assert [name for name, *_ in chosen] == ["spyre"] * 4
    assert chosen[0][1] == {"options": {"cores": 2}}


def compiled_calls(function, *args, **how):
    """What the compiled function gives, and how many programs of ours it made."""
    torch._dynamo.reset()
    before = len(compiled_parts())
    result = torch.compile(function, **how)(*args)
    return result, len(compiled_parts()) - before


@pytest.mark.parametrize("how", [{}, {"mode": "max-autotune"}, {"fullgraph": True}])
@pytest.mark.parametrize("backend", [{}, {"backend": "inductor"}])
def test_inductor_by_name_is_routed_like_the_default(backend, how):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="options of Inductor")
        for size in (1, 63, 65):
            x = torch.arange(size, dtype=torch.float16)
            on_spyre = compiled_calls(lambda x: x + 1, x.to("spyre"), **backend, **how)
            assert on_spyre[0].device.type == "spyre" and on_spyre[1] == 1
            assert torch.equal(on_spyre[0].cpu(), x + 1)
            on_cpu = compiled_calls(lambda x: x + 1, x, **backend, **how)
            assert on_cpu[0].device.type == "cpu" and on_cpu[1] == 0
            assert torch.equal(on_cpu[0], x + 1)


def test_inductor_by_its_function():
    """Who takes Inductor's function for a backend of their own comes here, too."""
    from torch._dynamo.backends.registry import lookup_backend

    def own(gm, inputs):
        from torch._inductor.compile_fx import compile_fx

        return compile_fx(gm, inputs)

    ways = [
        lambda f: torch.compile(f, backend=own),
        lambda f: torch.compile(f, backend=lookup_backend("inductor")),
        torch._dynamo.optimize("inductor"),
    ]
    x = torch.arange(65, dtype=torch.float16)
    for way in ways:
        for given in (x.to("spyre"), x):
            torch._dynamo.reset()
            before = len(compiled_parts())
            result = way(lambda x: x * 2 + 1)(given)
            assert result.device == given.device
            assert torch.equal(result.cpu(), x * 2 + 1)
            assert len(compiled_parts()) - before == (given.device.type == "spyre")


def test_inductor_makes_tensors_on_spyre():
    """No input tells the device: the graph does."""
    for device in ("spyre", torch.device("spyre", 0)):
        result, programs = compiled_calls(
            lambda device=device: torch.ones(7, dtype=torch.float16, device=device) * 3,
            backend="inductor",
        )
        assert result.cpu().tolist() == [3] * 7 and programs == 1


def test_inductor_takes_modules_and_graphs_of_both_devices():
    torch._dynamo.reset()

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(65, 3)

        def forward(self, x):
            return torch.relu(self.linear(x))

    block = Block().to("spyre", torch.float16)
    x = torch.ones(2, 65, dtype=torch.float16, device="spyre")
    expected = block(x).cpu()
    block.compile(backend="inductor", fullgraph=True, dynamic=False)
    assert torch.allclose(block(x).cpu(), expected, rtol=2**-9, atol=2**-9)

    def mixed(a, b):
        return (a + 1).cpu() * b

    b = torch.full((2, 65), 2.0, dtype=torch.float16)
    result, programs = compiled_calls(mixed, x, b, backend="inductor")
    assert torch.equal(result, torch.full((2, 65), 4.0, dtype=torch.float16))
    assert programs >= 1


@pytest.mark.parametrize("backend", [{}, {"backend": "inductor"}])
def test_options_of_inductor_are_ignored_with_one_warning(backend):
    x = torch.ones(5, dtype=torch.float16, device="spyre")
    how = {**backend, "options": {"epilogue_fusion": False, "shape_padding": True}}
    dynamo._warned.clear()
    with pytest.warns(UserWarning, match="on spyre: epilogue_fusion") as warned:
        assert compiled_calls(lambda x: x + 1, x, **how)[0].cpu().tolist() == [2] * 5
    assert len([w for w in warned if "options of Inductor" in str(w.message)]) == 1
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="options of Inductor")
        compiled_calls(lambda x: x + 2, x, **how)
    # As in Inductor, before any graph is there.
    with pytest.raises(RuntimeError, match="Unexpected optimization option no_such"):
        torch.compile(lambda x: x + 3, **backend, options={"no_such_option": 1})
    with pytest.raises(RuntimeError, match="Unexpected type of attr epilogue_fusion"):
        torch.compile(lambda x: x + 3, **backend, options={"epilogue_fusion": "no"})
    with pytest.raises(Exception, match="epilogue_fusion"):
        compiled_calls(lambda x: x * 2, x, backend="spyre", options=how["options"])


@contextlib.contextmanager
def traced_files():
    """The files of the frames that Dynamo compiles meanwhile, from a fresh start."""
    torch._dynamo.reset()
    torch_spyre._C._forget_eager_programs()
    files = []
    hook = register_bytecode_hook(lambda old, new: files.append(old.co_filename))
    try:
        yield files
    finally:
        hook.remove()


def test_dynamo_does_not_follow_eager_calls():
    """What is left of a compiled function after a graph break runs eagerly."""

    @torch.compile(backend="spyre")
    def function(x):
        with torch.spyre.device(0):  # nothing that Dynamo knows
            return x * torch.spyre.device_count() + x

    x = torch.ones(17, 3, dtype=torch.float32, device="spyre")
    with traced_files() as files:
        assert function(x).eq(2).all()
    assert __file__ in files and eager.__file__ not in files


def test_dynamo_traces_no_frame_of_the_package(caplog):
    """Whoever calls it: an eager operator's first call, torch, or the user."""

    # Dynamo looks at what it calls.
    @torch.compiler.disable(recursive=False)
    def run_eagerly(x, size):
        y = x[:, :size] + 1
        (y * 3).sum(-1).to(torch.float32, non_blocking=True)
        torch.nn.Linear(size, 2).to("spyre")
        repr(torch.empty((size,), device=y.device).fill_(0))
        torch.spyre.current_stream(), torch.spyre.memory_allocated()
        return y.exp()

    @torch.compile(backend="spyre")
    def function(x):
        y = x * 2
        torch._dynamo.graph_break()
        for size in range(1, 12):
            run_eagerly(y, size)
        return y + 1

    x = torch.ones(5, 13, dtype=torch.float16, device="spyre")
    with traced_files() as files:
        assert function(x).eq(3).all()
    package = str(Path(torch_spyre.__file__).parent)
    assert files and not [f for f in files if f.startswith(package)]
    assert "recompile_limit" not in caplog.text


def test_dynamo_traces_into_the_package_from_traced_functions():
    """``spyre_hint`` is a context of the graph, not a graph break."""
    torch._dynamo.reset()

    @torch.compile(backend="spyre", fullgraph=True)
    def function(x):
        with torch_spyre.spyre_hint(named_dims=["M"]):
            return x * 2 + torch.empty((3,), device=x.device).fill_(1)

    assert function(torch.ones(3, device="spyre")).cpu().tolist() == [3, 3, 3]


def test_threads_load_the_backend_once(monkeypatch):
    from torch._dynamo.backends import registry

    def backend(graph, inputs):
        return graph.forward

    class EntryPoint:
        @staticmethod
        def load():
            time.sleep(0.1)
            return backend

    monkeypatch.setitem(registry._BACKENDS, "loaded_late", EntryPoint)
    monkeypatch.setattr(registry, "_COMPILER_FNS", dict(registry._COMPILER_FNS))
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(torch._dynamo.lookup_backend, ["loaded_late"] * 4))
    assert found == {backend}
    with pytest.raises(AssertionError, match="duplicate name"):
        registry.register_backend(lambda *_: None, "loaded_late")


def test_dynamo_half_imported_by_another_thread(monkeypatch):
    from torch_spyre import _registration

    monkeypatch.setitem(sys.modules, "torch._dynamo", ModuleType("torch._dynamo"))
    assert _registration._untraced(len) is len


def test_modules_that_were_looked_up_first_are_still_told(tmp_path, monkeypatch):
    """``importlib.util.find_spec`` asks for a module, and imports nothing."""
    name, told = "spyre_told_late", []
    (tmp_path / f"{name}.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(dynamo._HOOKS, name, told.append)
    monkeypatch.delitem(sys.modules, name, raising=False)
    finder = dynamo._AfterImport([name])
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    aside = importlib.util.find_spec(name)
    assert importlib.util.find_spec(name).origin == str(tmp_path / f"{name}.py")
    aside.loader.exec_module(importlib.util.module_from_spec(aside))
    assert not told
    module = importlib.import_module(name)
    assert told == [module] and module.value == 1
    monkeypatch.delitem(sys.modules, name)
    assert importlib.import_module(name) is not module
    assert told == [module]


def test_import_beside_one_that_is_told(tmp_path, monkeypatch):
    told = []
    for name in ("spyre_told", "spyre_beside"):
        (tmp_path / f"{name}.py").write_text("value = 1\n")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(dynamo._HOOKS, "spyre_told", told.append)

    class OtherThread:
        """What another thread does while this one goes through the finders."""

        def find_spec(self, fullname, path=None, target=None):
            if fullname == "spyre_beside":
                importlib.import_module("spyre_told")

    finders = [dynamo._AfterImport(["spyre_told"]), *sys.meta_path]
    finders.insert(finders.index(importlib.machinery.PathFinder), OtherThread())
    monkeypatch.setattr(sys, "meta_path", finders)
    assert importlib.import_module("spyre_beside").value == 1
    assert told == [sys.modules["spyre_told"]]


def test_dynamo_compiles_many_sizes():
    code = (
        "import torch, torch._dynamo.config as config;"
        "print(config.cache_size_limit, config.recompile_limit);"
        "config.cache_size_limit = 100000;"
        "import torch._dynamo; print(config.recompile_limit)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["1024", "1024", "100000"]
