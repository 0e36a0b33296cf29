# SPDX-License-Identifier: Apache-2.0
"""Numbers that the type of the elements does not have.

The CPU refuses some of them (``fill_``, ``clamp``, ``alpha``), makes infinities of
others (``x + 1e300``), and takes some in a wider type (``addcmul``, ``leaky_relu`` of
float16). Calls with such numbers are rare, so the CPU is asked what it does: it
runs the call on zeros. The device's 16-bit floats reach further than float16, and would
take them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses import FakeTensor
from torch.fx import Node
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from torch_spyre import _C, extensions
from torch_spyre.frontend.eager_calls import Call, cpu_zeros
from torch_spyre.frontend.importer import RefusedNode

#: In what PyTorch says of a number that a type does not have.
_REFUSED = "without overflow"
_HALF_MAX = torch.finfo(torch.float16).max


def check_numbers(call: Call, arguments: list[Any], metas: list[Any]) -> None:
    """Raises UnsupportedOp for a call of which the CPU refuses a number.

    ``metas`` are results without values. Users may say what an operator is.
    """
    op = call.functional
    if op in extensions.decompositions() or extensions.lowering_of(str(op)):
        return
    values = [arguments[i] for i in call.inputs]
    if not _has_beyond(op, values, [*arguments, metas]):
        return
    dtype = arguments[call.written[0]].dtype if call.is_factory else None
    _ask_cpu(lambda: call.invoke(cpu_zeros(values), dtype, "cpu"))


def check_node(node: Node, metas: Mapping[Node, Any]) -> None:
    """Raises RefusedNode likewise for a call in a graph, with fake tensors of nodes."""
    if not _any_beyond([*node.args, *node.kwargs.values()], _HALF_MAX):
        return
    if not isinstance(node.target, OpOverload):
        return
    args, kwargs = pytree.tree_map_only(
        Node, metas.__getitem__, (list(node.args), dict(node.kwargs))
    )
    values = [*args]
    for parameter in node.target._schema.arguments[len(args) :]:
        values.append(kwargs.get(parameter.name))
    if not _has_beyond(node.target, values, [*values, metas[node]]):
        return
    try:
        named = {name: cpu_zeros(value) for name, value in kwargs.items()}
        _ask_cpu(lambda: node.target(*cpu_zeros(args), **named))
    except _C.UnsupportedOp as error:
        raise RefusedNode(node, str(error)) from error


def _ask_cpu(run: Callable[[], Any]) -> None:
    with _disable_current_modes(), torch.no_grad():
        try:
            run()
        except Exception as error:  # others are not about numbers
            if _REFUSED in str(error):
                raise _C.UnsupportedOp(f"the CPU refuses a number: {error}") from error


def _has_beyond(op: OpOverload, values: list[Any], every: list[Any]) -> bool:
    """Whether a number is beyond the narrowest type of a call; sizes are none."""
    largest = _largest(_flatten(every))
    pairs = zip(op._schema.arguments, values, strict=False)
    numbers = [v for p, v in pairs if not _is_size(p)]
    return _any_beyond(numbers, largest)


def _is_size(parameter: torch.Argument) -> bool:
    return "int" in str(parameter.real_type)


def _flatten(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flatten(value)
        else:
            yield value


def _any_beyond(values: Iterable[Any], largest: float) -> bool:
    # Every argument of every call is asked, and most of them are nodes.
    for value in values:
        if isinstance(value, (list, tuple)):
            if _any_beyond(value, largest):
                return True
        elif not isinstance(value, Node) and _is_beyond(value, largest):
            return True
    return False


def _is_number(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_cpu and value.dim() == 0


def _largest(values: Iterable[Any]) -> float:
    """The largest number of the narrowest floating type of tensors and dtypes."""
    types = [
        v if isinstance(v, torch.dtype) else v.dtype
        for v in values
        if isinstance(v, torch.dtype)
        or (isinstance(v, torch.Tensor) and not _is_number(v))
    ]
    limits = [torch.finfo(t).max for t in types if t.is_floating_point]
    return min(limits, default=torch.finfo(torch.float32).max)


def _is_beyond(value: Any, largest: float) -> bool:
    if _is_number(value) and not isinstance(value, FakeTensor):
        value = value.item()
    if not isinstance(value, (int, float)):
        return False
    return math.isfinite(value) and abs(value) > largest
