# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's cache of traced graphs keeps of graphs that are compiled here."""

import json
import os
import pickle
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
import torch
import torch_spyre
from interpreters import run_python
from tiny_llama import tiny_llama
from torch._dynamo.utils import counters
from torch._functorch import config as functorch_config
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing._internal.two_tensor import TwoTensor
from torch_spyre import compile_backend, extend, spyre_hint
from torch_spyre._inductor import config
from torch_spyre.decompositions import table
from torch_spyre.frontend import importer, traced


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Of this test's caches."""
    monkeypatch.setenv("SPYRE_CACHE_DIR", str(tmp_path / "programs"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "traced"))
    torch_spyre.clear_cache()
    yield tmp_path / "traced" / "aotautograd"
    torch._dynamo.reset()
    torch_spyre.clear_cache()


def entries(folder):
    return sorted(p for p in Path(folder).rglob("*") if p.is_file())


def values(*shape):
    return (torch.arange(torch.Size(shape).numel()).view(shape) % 7 - 3).half()


def traced_by(function, *inputs, options=None, **how):
    """The result, and what Dynamo's fresh start found in the cache."""
    torch._dynamo.reset()
    counters.clear()
    step = torch.compile(function, backend="spyre", options=options, **how)
    result = step(*(x.to("spyre") for x in inputs))
    found = counters["aot_autograd"]
    names = ("hit", "miss", "bypass", "saved")
    return result.cpu(), {n: c for n in names if (c := found[f"autograd_cache_{n}"])}


NEW = {"miss": 1, "saved": 1}
KNOWN = {"hit": 1}
NOT_KEPT = {}


def step(x):
    return (x * 2 + 1).softmax(-1)


# ------------------------------------------------------------------------------
# Another process

INFERENCE = """
weight = number((64, 96), 5).to("spyre")
cache = torch.zeros(4, 64, dtype=torch.float16, device="spyre")
def function(x):
    grown = torch.tensor([], dtype=x.dtype, device=x.device)
    cache[1:3] = x[:2]
    scale = torch.tensor([1.5, 0.25, -2.0], dtype=torch.float16)
    y = torch.cat((grown, (x @ weight).relu()), -1)
    return y, y.sum(-1).sort().indices, cache[1:], scale
with torch.no_grad():
    results = [r.cpu() for r in torch.compile(function, backend="spyre")(
        number((5, 64), 7).to("spyre"))] + [cache.cpu()]
"""

TRAINING = """
model = torch.nn.Sequential(
    torch.nn.Linear(64, 96), torch.nn.LayerNorm(96), torch.nn.GELU(),
    torch.nn.Linear(96, 32),
).half()
for k, p in enumerate(model.parameters()):
    p.data = number(p.shape, 5 + k) / 16
model = model.to("spyre")
x = number((5, 64), 7).to("spyre").requires_grad_()
torch.compile(model, backend="spyre")(x).square().mean().backward()
results = [x.grad.cpu(), *(p.grad.cpu() for p in model.parameters())]
"""

PROGRAM = """
import hashlib, json
import torch
from torch._dynamo.utils import counters
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing._internal.two_tensor import TwoTensor
import torch_spyre.compile_backend
from torch_spyre.frontend import traced
def number(shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).half()
{before}
{body}
print(json.dumps([
    {{k: v for k, v in counters["aot_autograd"].items() if "cache" in k}},
    [[r.flatten().double().tolist(), list(r.shape)] for r in results],
]))
"""


def run(body, before=""):
    done = run_python(PROGRAM.format(body=body, before=before), ends_at_once=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("body", [INFERENCE, TRAINING])
def test_another_process_traces_nothing(body, folder):
    first, expected = run(body)
    assert first == {"autograd_cache_miss": 1, "autograd_cache_saved": 1}
    assert len(entries(folder)) == 1
    second, found = run(body)
    assert second == {"autograd_cache_hit": 1}
    assert found == expected
    # Without the cache, values are the same.
    none, found = run(body, "torch._functorch.config.enable_autograd_cache = False")
    assert none == {} and found == expected
    # Another version of this package does not trust it.
    other, found = run(body, "traced._source_hash = lambda: 'another'")
    assert other == first and found == expected


# ------------------------------------------------------------------------------
# The key


@contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    yield
    torch.set_default_dtype(before)


def with_hint(x):
    with spyre_hint(work_div={"rows": 2}, named_dims=["rows", "columns"]):
        return (x * 2 + 1).softmax(-1)


CHANGES = {
    "another number": dict(function=lambda x: (x * 2 + 3).softmax(-1)),
    "another size": dict(inputs=[values(6, 70)], dynamic=False),
    "other strides": dict(inputs=[values(70, 5).t()]),
    "another dtype": dict(inputs=[values(5, 70).float()]),
    "an option": dict(options={"cores": 2}),
    "a configuration": dict(context=lambda: config.patch(sencores=4)),
    "gradients": dict(context=torch.enable_grad, gradient=True),
    "a kind of attention": dict(context=lambda: sdpa_kernel(SDPBackend.MATH)),
    "a default dtype": dict(context=lambda: default_dtype(torch.float16)),
    "a hint": dict(function=with_hint),
    "another line": dict(function=lambda x: (x * 2 + 1).softmax(-1)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_the_graph_is_traced(change):
    change = dict(CHANGES[change])
    x = values(5, 70)
    with torch.no_grad():
        _, found = traced_by(step, x)
        assert found == NEW
        _, found = traced_by(step, x)
        assert found == KNOWN
        function = change.get("function", step)
        inputs = change.get("inputs", [x])
        how = {k: change[k] for k in ("options", "dynamic") if k in change}
        with change.get("context", nullcontext)():
            torch._dynamo.reset()
            counters.clear()
            given = [i.to("spyre") for i in inputs]
            if change.get("gradient"):
                given[0].requires_grad_()
            result = torch.compile(function, backend="spyre", **how)(*given)
            # The entry is made as soon as the graph is.
            assert counters["aot_autograd"]["autograd_cache_miss"] == 1
            assert counters["aot_autograd"]["autograd_cache_saved"] == 1
            expected = function(*(i.float() for i in inputs))
        torch.testing.assert_close(
            result.detach().cpu().float(), expected, atol=2e-3, rtol=2e-3
        )


def test_the_compiler_is_part_of_the_key(monkeypatch):
    with torch.no_grad():
        traced_by(step, values(5, 70))
        monkeypatch.setattr(traced, "_source_hash", lambda: "another")
        assert traced_by(step, values(5, 70))[1] == NEW


def test_decompositions_are_not_asked_for_if_the_graph_is_known(monkeypatch):
    asked = []

    def decompositions(*arguments):
        asked.append(True)
        return table.decompositions(*arguments)

    monkeypatch.setattr(compile_backend, "decompositions", decompositions)
    with torch.no_grad():
        assert traced_by(step, values(5, 70))[1] == NEW
        assert asked == [True]
        assert traced_by(step, values(5, 70))[1] == KNOWN
    assert asked == [True]


# ------------------------------------------------------------------------------
# What is not kept


def test_functions_of_the_user_are_not_kept():
    """Nothing says whether they are the same in the next process."""
    op = torch.ops.aten.sinh.default

    def function(x):
        return torch.sinh(x)

    x = values(5, 70)
    with torch.no_grad():
        assert traced_by(function, x)[1] == NEW
        extend.decomposition(op)(lambda x: x * 3)
        try:
            result, found = traced_by(function, x)
        finally:
            extend.remove(op)
        assert found == NOT_KEPT and torch.equal(result, x * 3)
        with table.enabled({op: lambda x: x * 2}):
            result, found = traced_by(function, x)
        assert found == NOT_KEPT and torch.equal(result, x * 2)
        assert traced_by(function, x)[1] == KNOWN


def test_names_of_kernels_of_others_are_not_taken_apart(monkeypatch):
    class Name(str):
        def split(self, separator):
            apart.append(str(self))
            return super().split(separator)

    apart = []
    names = [Name(n) for n in ("aten/add/CPU", "prims/add/Python", "other/add/CPU")]
    monkeypatch.setattr(torch.library, "_impls", set(names))
    with torch.no_grad():
        assert traced_by(step, values(5, 70))[1] == NEW
    assert apart == ["aten/add/CPU"]


def test_graphs_are_not_kept_while_an_operator_has_a_kernel_of_the_user():
    """``torch.library`` may put it under the operator, where no table shows it."""

    def function(x):
        return torch.square(x)

    x = values(5, 70)
    with torch.no_grad():
        assert traced_by(function, x)[1] == NEW
        library = torch.library.Library("aten", "IMPL")
        library.impl("square", lambda x: x * 3, "CompositeImplicitAutograd")
        try:
            result, found = traced_by(function, x)
        finally:
            library._destroy()
        assert found == NOT_KEPT and torch.equal(result, x * 3)
        assert traced_by(function, x)[1] == KNOWN


def test_operators_of_other_libraries_are_not_kept():
    @torch.library.custom_op("traced_graphs::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)
    with torch.no_grad():
        result, found = traced_by(lambda x: twice(x) + 1, values(5, 70))
    assert found == NOT_KEPT
    assert torch.equal(result, values(5, 70) * 2 + 1)


def test_classes_of_tensors_are_not_kept(folder):
    """Their functions say what operators do."""
    torch._dynamo.reset()
    counters.clear()
    x = values(5, 70)
    step = torch.compile(lambda x: x + 1, backend="spyre")
    with torch.no_grad():
        result = step(TwoTensor(x.to("spyre"), x.to("spyre")))
    assert torch.equal(result.b.cpu(), x + 1)
    assert counters["aot_autograd"]["autograd_cache_bypass"] == 1
    assert entries(folder) == []


def test_nothing_is_done_for_a_cache_that_is_off(folder, monkeypatch):
    monkeypatch.setattr(traced, "_source_hash", lambda: pytest.fail("a key is made"))
    with torch.no_grad(), functorch_config.patch(enable_autograd_cache=False):
        result, found = traced_by(step, values(5, 70))
    assert found == NOT_KEPT and entries(folder) == []
    monkeypatch.undo()
    with torch.no_grad():
        assert torch.equal(traced_by(step, values(5, 70))[0], result)


def test_results_that_are_views_of_a_product_are_kept():
    """Of one result, two views: PyTorch writes wrong sizes of the product's own."""

    def heads(x, weight):
        rows = (x @ weight).view(2, 3, 4, 16).transpose(1, 2)
        return rows[..., 1:], rows

    inputs = [values(2, 3, 32), values(32, 64)]
    results = []
    for known in (NEW, KNOWN):
        torch._dynamo.reset()
        counters.clear()
        leaves = [x.to("spyre").requires_grad_() for x in inputs]
        views = torch.compile(heads, backend="spyre")(*leaves)
        assert all(view._base is not None for view in views)
        (views[0].sum() + (views[1] * 2).sum()).backward()
        results.append([*views, *(leaf.grad for leaf in leaves)])
        (name,) = known.keys() - {"saved"}
        assert counters["aot_autograd"][f"autograd_cache_{name}"] == 1
    for first, again, wanted in zip(*results, heads(*inputs), strict=False):
        assert torch.equal(first.cpu(), again.cpu())
        assert torch.equal(first.cpu(), wanted)
    assert [r.stride() for r in results[0]] == [r.stride() for r in results[1]]


def test_sizes_that_vary_are_not_kept(folder):
    with torch.no_grad():
        _, found = traced_by(step, values(5, 70), dynamic=True)
        assert found == {"miss": 1, "bypass": 1}
    assert entries(folder) == []


def test_numbers_that_change_are_those_of_the_call():
    """One of two uses of a number stays a number, and is guarded, in the graph."""
    function = torch.compile(
        lambda s: torch.full((4,), s, device="spyre") * s, backend="spyre"
    )
    for number in (1.5, 2.5, 3.5, 4.5):
        assert function(number).tolist() == 4 * [number * number]
    like = torch.compile(lambda x, s: torch.full_like(x, s) * x, backend="spyre")
    x = torch.full((4,), 2.0, device="spyre")
    for number in (1.5, 2.5, 3.5):
        given = torch.tensor(number, dtype=torch.float64)
        assert like(x, given).tolist() == 4 * [number * 2]


# ------------------------------------------------------------------------------
# Damage


def test_damaged_files_are_replaced(folder, caplog):
    x = values(5, 70)
    with torch.no_grad():
        expected, _ = traced_by(step, x)
        (path,) = entries(folder)
        whole = path.read_bytes()
        places = range(0, len(whole), max(1, len(whole) // 12))
        for damaged in [
            b"",
            whole[:-1],
            pickle.dumps("something else"),
            *(whole[:i] + bytes([whole[i] ^ 4]) + whole[i + 1 :] for i in places),
        ]:
            path.write_bytes(damaged)
            caplog.clear()
            result, found = traced_by(step, x)
            assert torch.equal(result, expected)
            assert found == NEW, len(damaged)
            assert f"{path} is damaged" in caplog.text
            os.replace(entries(folder)[0], path)
            path.write_bytes(whole)
        assert traced_by(step, x)[1] == KNOWN


# ------------------------------------------------------------------------------
# The graph itself


def described(node):
    """How the node's values lie."""
    leaves = torch.utils._pytree.tree_leaves(node.meta.get("val"))
    return [
        traced._description(v) if isinstance(v, torch.Tensor) else v for v in leaves
    ]


def test_a_graph_is_read_back_as_it_was(monkeypatch):
    graphs = []
    dump = traced._dump

    def kept(gm):
        content = dump(gm)
        graphs.append((gm, content))
        return content

    monkeypatch.setattr(traced, "_dump", kept)
    model = tiny_llama().half().to("spyre")
    ids = torch.arange(12).view(1, 12).to("spyre")
    step = torch.compile(model, backend="spyre", dynamic=False)
    step(ids)[0].float().square().mean().backward()
    assert len(graphs) == 2
    for gm, content in graphs:
        back = traced._load(content)
        # Python code of it is made when it is asked for.
        assert back._needs_recompile() and back.code == gm.code
        assert str(back.graph) == str(gm.graph)
        for a, b in zip(gm.graph.nodes, back.graph.nodes, strict=True):
            assert b.meta.get("stack_trace") == a.meta.get("stack_trace")
            assert described(b) == described(a), a


def test_equal_stack_traces_are_read_once():
    """Nodes of layers that are alike come from the same lines."""

    def layers(x, count):
        for _ in range(count):
            x = (x * 2).relu()
        return x

    def read(count):
        importer._frames_of.cache_clear()
        with torch.no_grad():
            traced_by(lambda x: layers(x, count), values(5, 70))
        return importer._frames_of.cache_info()

    few, many = read(2), read(8)
    assert many.misses == few.misses < few.hits < many.hits


# ------------------------------------------------------------------------------
# Whole frames, of which Dynamo keeps what it has traced

PRECOMPILED = """
import torch, json
from torch._dynamo.utils import counters
import torch_spyre.compile_backend
from tiny_llama import tiny_llama
torch._dynamo.config.caching_precompile = True
model = tiny_llama(1).half().to("spyre")
step = torch.compile(model, backend="spyre")
results = []
for length in (5, 5, {lengths}):
    logits, _ = step(torch.arange(length).view(1, length).to("spyre"))
    logits.float().square().mean().backward()
    results.append([logits.tolist(), *(p.grad.tolist() for p in model.parameters())])
torch.compiler.save_cache_artifacts()
print(json.dumps([counters["frames"]["ok"], results]))
"""


@pytest.mark.parametrize("lengths, frames", [("5", (1, 0)), ("3", (2, 2))])
def test_dynamo_keeps_frames(lengths, frames):
    """``caching_precompile``, which PyTorch calls experimental, takes our graphs.

    Another length makes it vary. PyTorch keeps all graphs of a function or none.
    """
    runs = [
        run_python(PRECOMPILED.format(lengths=lengths), folder=Path(__file__).parent)
        for _ in range(2)
    ]
    for done in runs:
        assert done.returncode == 0, done.stderr
    (first, expected), (second, found) = (
        json.loads(done.stdout.splitlines()[-1]) for done in runs
    )
    assert found == expected
    assert (first, second) == frames
