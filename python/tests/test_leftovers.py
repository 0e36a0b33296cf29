# SPDX-License-Identifier: Apache-2.0
"""What lives as long as a compiled function, and what does not grow with its layers."""

import gc
import re
import weakref

import pytest
import torch
from inputs import values
from numerics import assert_exact, compiled
from torch.fx import GraphModule, Node
from torch_spyre import compile_backend
from torch_spyre.frontend.graph import CompiledFunction


@pytest.fixture
def traced(monkeypatch):
    """The graphs of Dynamo and of AOTAutograd that a test compiles."""
    found = {"dynamo": [], "aot": []}
    original = compile_backend.aot_autograd

    def aot_autograd(**options):
        compiler = original(**options)

        def compile_traced(gm, example_inputs):
            found["dynamo"].append(weakref.ref(gm))
            return compiler(gm, example_inputs)

        return compile_traced

    init = CompiledFunction.__init__

    def note(self, gm, *rest):
        found["aot"].append(gm)
        init(self, gm, *rest)

    monkeypatch.setattr(compile_backend, "aot_autograd", aot_autograd)
    monkeypatch.setattr(CompiledFunction, "__init__", note)
    torch._dynamo.reset()
    yield found
    torch._dynamo.reset()


def arithmetic_on_sizes(x):
    for _ in range(3):
        x = torch.cat([x, x[:1] + 1]).view(-1, x.size(1)).softmax(-1)
    return x


def test_what_was_erased_is_not_kept(traced):
    function = compiled(arithmetic_on_sizes, dynamic=True)
    for rows in (5, 7):
        x = values((rows, 65), torch.float16)
        function(x.to("spyre"))
    (gm,) = traced["aot"]
    named = gm.graph._graph_namespace._obj_to_name
    nodes = [n for n in named if isinstance(n, Node)]
    assert sorted(n.name for n in nodes) == sorted(n.name for n in gm.graph.nodes)
    for node in gm.graph.nodes:
        assert node.meta.keys() <= {"val", "stack_trace", "custom"}
    # Names of later nodes are new ones all the same.
    later = gm.graph.call_function(
        torch.neg, (gm.graph.find_nodes(op="placeholder")[0],)
    )
    assert [n.name for n in gm.graph.nodes].count(later.name) == 1


@pytest.mark.parametrize("needs_gradient", [False, True])
def test_the_graph_of_dynamo_is_not_kept(traced, needs_gradient):
    x = values((5, 65), torch.float16).to("spyre").requires_grad_(needs_gradient)
    function = compiled(lambda x: (x * 3).sigmoid())
    first = function(x)
    gc.collect()
    assert [graph() for graph in traced["dynamo"]] == [None]
    assert all(isinstance(gm, GraphModule) for gm in traced["aot"])
    assert_exact(function(x).detach().cpu(), first.detach().cpu())
    if needs_gradient:
        first.sum().backward()
        assert x.grad.abs().sum().item() > 0


def layer(x, weight, scale):
    return torch.nn.functional.rms_norm(x @ weight, (x.shape[-1],), scale) + x


def deep(count):
    def function(x, *parameters):
        for number in range(count):
            x = layer(x, *parameters[2 * number : 2 * number + 2])
        return x

    return function


@pytest.mark.parametrize("dynamic", [False, True])
def test_layers_share_their_kernels(dynamic, tmp_path, monkeypatch):
    def kernels(count):
        """Of a program of so many layers, and what calls them."""
        folder = tmp_path / str(count)
        monkeypatch.setenv("SPYRE_DUMP_DIR", str(folder))
        torch._dynamo.reset()
        inputs = [values((5, 128), torch.float16).to("spyre")]
        for number in range(count):
            inputs.append(values((128, 128), torch.float16, seed=number).to("spyre"))
            inputs.append(values((128,), torch.float16, seed=number).to("spyre"))
        if dynamic:
            torch._dynamo.mark_dynamic(inputs[0], 0)
        compiled(deep(count))(*inputs)
        (text,) = [path.read_text() for path in folder.glob("*/ktir.mlir")]
        return (
            len(re.findall(r"^ *func\.func private", text, re.MULTILINE)),
            len(re.findall(r"^ *call @", text, re.MULTILINE)),
        )

    few, fewer_calls = kernels(3)
    many, more_calls = kernels(9)
    assert more_calls > 2 * fewer_calls
    assert many == few
