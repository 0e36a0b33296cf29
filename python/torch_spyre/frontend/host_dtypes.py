# SPDX-License-Identifier: Apache-2.0
"""Values inside of a graph of dtypes that the device lacks: float64 and complex.

Models compute angles of positions in them and go on with fp32. No tensor of the device
can hold such a value, but a graph may compute with one all the same: operators that
take or return one run on the CPU, and what they pass on stays there until it has a
dtype of the device. A result that the user would see has to have one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves, tree_map

from torch_spyre import _C
from torch_spyre.device.devices import UNSUPPORTED_DTYPES
from torch_spyre.frontend.eager_steps import call_at_line
from torch_spyre.frontend.host_numbers import is_spyre
from torch_spyre.frontend.narrowed import returned_to_user

_LACKING = frozenset(UNSUPPORTED_DTYPES)
_CPU = torch.device("cpu")


def check_results(gm: GraphModule, kind: str) -> None:
    """Raises UnsupportedDtypeError for a result on the device that it cannot hold."""
    for node in returned_to_user(gm, kind):
        value = node.meta.get("val") if isinstance(node, Node) else None
        if is_lacking(value):
            with unset_fake_temporarily():
                torch.empty((), dtype=value.dtype, device=value.device)


def runs_on_cpu(node: Node, metas: Mapping[Node, Any]) -> bool:
    """Whether an operator takes or returns a value that the device cannot hold.

    One that writes to an argument would write to a copy of it, and one that draws would
    draw other numbers than the device.
    """
    if node.op != "call_function":
        return False
    if not any(_has_lacking(metas[n]) for n in (node, *node.all_input_nodes)):
        return False
    is_drawn = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
    return not is_drawn and not node.is_impure()


@dataclass
class CpuStep:
    """Such an operator."""

    node: Node
    #: The fake value of the result, which says what of it is on the device.
    meta: Any

    def run(self, env: dict[Node, Any]) -> None:
        """Runs on the values of ``env`` and adds the result to it."""
        args = torch.fx.map_arg(self.node.args, lambda n: _on_cpu(env[n]))
        kwargs = torch.fx.map_arg(self.node.kwargs, lambda n: _on_cpu(env[n]))
        args, kwargs = tree_map(_cpu_device, (args, kwargs))
        result = call_at_line(self.node, self._call, args, kwargs)
        env[self.node] = tree_map(_like, result, self.meta)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self.node.target, torch._ops.OpOverload):
            _C.record_fallback(
                self.node.target._schema.name,
                "the device lacks float64 and complex dtypes: it computes in one",
            )
        return self.node.target(*args, **kwargs)


def is_lacking(value: Any) -> bool:
    """Whether a value is a tensor of the device, or a fake one, that it cannot hold."""
    # All values of all graphs are asked: the dtype is what few of them have.
    is_tensor = isinstance(value, torch.Tensor)
    return is_tensor and value.dtype in _LACKING and is_spyre(value)


def _has_lacking(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return is_lacking(value)
    return any(map(is_lacking, tree_leaves(value)))


def _on_cpu(value: Any) -> Any:
    return tree_map(lambda v: v.cpu() if is_spyre(v) else v, value)


def _cpu_device(value: Any) -> Any:
    is_ours = isinstance(value, torch.device) and value.type == "spyre"
    return _CPU if is_ours else value


def _like(result: Any, meta: Any) -> Any:
    """A result where it belongs: what the device can hold is there."""
    if is_spyre(meta) and meta.dtype not in _LACKING:
        return result.to(meta.device, meta.dtype)
    return result
