# SPDX-License-Identifier: Apache-2.0
"""torch.compile without a backend, and Inductor on spyre tensors."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch_spyre
import torch_spyre.compile_backend
from torch_spyre import _router


@pytest.fixture
def chosen(monkeypatch):
    """Records who compiles instead of compiling."""
    calls = []

    class Inductor:
        def __init__(self, mode, options, dynamic):
            self.arguments = (mode, options)

        def __call__(self, gm, inputs):
            calls.append(("inductor", *self.arguments))
            return gm.forward

    def spyre(gm, inputs, **options):
        calls.append(("spyre", options))
        return gm.forward

    monkeypatch.setattr(torch, "_TorchCompileInductorWrapper", Inductor)
    monkeypatch.setattr(torch_spyre.compile_backend, "spyre", spyre)
    torch._dynamo.reset()
    return calls


def test_router_is_the_default():
    assert torch.compiler.get_default_backend() is _router.spyre_or_inductor


def test_host_graphs_go_to_inductor(chosen):
    torch.compile(lambda x: x + 1)(torch.ones(3))
    torch.compile(lambda x: x + 2, mode="max-autotune")(torch.ones(3))
    torch.compile(lambda x: x + 3, options={"size_asserts": True})(torch.ones(3))
    assert chosen == [
        ("inductor", None, None),
        ("inductor", "max-autotune", None),
        ("inductor", None, {"size_asserts": True}),
    ]


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


def test_inductor_refuses_spyre_tensors():
    torch._dynamo.reset()
    x = torch.ones(3, device="spyre")
    with pytest.raises(RuntimeError, match="backend='spyre'"):
        torch.compile(lambda x: x + 1, backend="inductor")(x)
    assert x.cpu().tolist() == [1, 1, 1]


def test_dynamo_does_not_follow_eager_calls():
    """What is left of a compiled function after a graph break runs eagerly."""
    from torch._dynamo.convert_frame import register_bytecode_hook

    torch._dynamo.reset()
    torch_spyre._C._forget_eager_programs()
    files = []

    @torch.compile(backend="spyre")
    def function(x):
        with torch.spyre.device(0):  # nothing that Dynamo knows
            return x * torch.spyre.device_count() + x

    hook = register_bytecode_hook(lambda old, new: files.append(old.co_filename))
    try:
        x = torch.ones(17, 3, dtype=torch.float32, device="spyre")
        assert function(x).eq(2).all()
    finally:
        hook.remove()
    names = {Path(f).name for f in files}
    assert Path(__file__).name in names and "_eager.py" not in names


def test_dynamo_half_imported_by_another_thread(monkeypatch):
    from torch_spyre import _device

    monkeypatch.setitem(sys.modules, "torch._dynamo", ModuleType("torch._dynamo"))
    assert _device._untraced(len) is len
