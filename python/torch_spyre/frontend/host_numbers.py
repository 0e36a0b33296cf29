# SPDX-License-Identifier: Apache-2.0
"""Floating numbers that change from call to call of a compiled function.

Dynamo passes a changing float as a 0-dimensional float64 CPU tensor, and users pass
such tensors of other dtypes: numbers that may meet device tensors in one operator.
Arithmetic among them stays on the host. A program takes one as an fp32 argument
without dimensions, as those of eager operators do, and so serves all values. In a
program for many sizes, floats that are computed from these are such numbers, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Node

from torch_spyre import _C


def is_spyre(value: Any) -> bool:
    """Whether a value is a tensor of the device, or a fake one."""
    return isinstance(value, torch.Tensor) and value.device.type == "spyre"


def is_host_number(meta: Any) -> bool:
    """Whether a value is a floating number that programs take as an argument."""
    # PyTorch dispatches a fake tensor's is_cpu, which takes ten times as long.
    is_on_host = may_meet_device(meta) and meta.device.type == "cpu"
    return is_on_host and meta.is_floating_point()


def may_meet_device(meta: Any) -> bool:
    """Whether a tensor is on the device or may be an operand beside such ones."""
    if not isinstance(meta, torch.Tensor):
        return False
    if is_spyre(meta):
        return True
    plain = meta.layout == torch.strided and not (
        meta.is_complex() or meta.is_quantized
    )
    return meta.is_cpu and meta.dim() == 0 and plain


def runs_on_host(node: Node, metas: Mapping[Node, Any]) -> bool:
    """Whether a node has nothing to do with the device, nor effects on others."""
    if node.op not in ("call_function", "get_attr") or node.is_impure():
        return False
    leaves = torch.utils._pytree.tree_leaves(
        [metas[n] for n in (node, *node.all_input_nodes)]
    )
    return all(not isinstance(v, torch.Tensor) or v.is_cpu for v in leaves)


def with_numbers_of_sizes(metas: Mapping[Node, Any]) -> dict[Node, Any]:
    """The fake values of a graph, with host numbers for floats computed from sizes:
    no program that serves many sizes has them as they are.
    """
    found = dict(metas)
    with FakeTensorMode():
        for node, meta in metas.items():
            if isinstance(meta, torch.SymFloat):
                found[node] = torch.empty((), dtype=torch.float64)
    return found


def on_device(values: Sequence[torch.Tensor | float]) -> list[torch.Tensor]:
    """The inputs of a program, numbers moved to where the others are."""
    index = next((v.device.index for v in values if is_spyre(v)), None)
    if index is None:
        index = _C.current_device()
    return [v if is_spyre(v) else _place(v, index) for v in values]


def _place(value: torch.Tensor | float, index: int) -> torch.Tensor:
    if isinstance(value, float):
        return _C.number_tensor(value, index)
    if value.is_floating_point():
        return _C.number_tensor(value.item(), index)
    return value.to(torch.device("spyre", index))
