# SPDX-License-Identifier: Apache-2.0
"""Which compiler ``torch.compile`` without a backend uses.

Graphs that touch spyre tensors come to this package, all others go to Inductor
as they would without it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree

_REGISTRY = "torch._dynamo.backends.registry"


def _is_on_spyre(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.device.type == "spyre"
    return isinstance(value, torch.device) and value.type == "spyre"


def touches_spyre(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> bool:
    """Whether an input, a result, an attribute or a device argument is on spyre."""
    if any(_is_on_spyre(value) for value in example_inputs):
        return True
    tensors = [*gm.parameters(), *gm.buffers()]
    if any(_is_on_spyre(value) for value in tensors):
        return True
    for node in gm.graph.nodes:
        values = [node.meta.get("example_value"), node.meta.get("val")]
        leaves = _pytree.tree_leaves([values, node.args, node.kwargs])
        if any(_is_on_spyre(leaf) for leaf in leaves):
            return True
    return False


def spyre_or_inductor(
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """The default backend of ``torch.compile``."""
    if touches_spyre(gm, example_inputs):
        from torch_spyre.compile_backend import spyre

        return spyre(gm, example_inputs, options=options or {})
    inductor = torch._TorchCompileInductorWrapper(mode, options, None)
    return inductor(gm, example_inputs)


def _set_default(registry: ModuleType) -> None:
    if registry.get_default_backend() == "inductor":
        registry.set_default_backend(spyre_or_inductor)


class _AfterRegistry(importlib.abc.MetaPathFinder):
    """Sets the default once Dynamo is imported, which ``import torch`` does not do."""

    def find_spec(
        self, fullname: str, path: Any, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _REGISTRY:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _set_default(module)

        spec.loader.exec_module = exec_module
        return spec


def install() -> None:
    """Become the default backend, now or as soon as Dynamo is imported."""
    if _REGISTRY in sys.modules:
        _set_default(sys.modules[_REGISTRY])
    else:
        sys.meta_path.insert(0, _AfterRegistry())
