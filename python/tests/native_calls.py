# SPDX-License-Identifier: Apache-2.0
"""Calls of PyTorch's functions on the device, with nothing run on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch_spyre
from numerics import device_value
from torch.utils._pytree import tree_leaves, tree_map


def _map(function: Callable[[torch.Tensor], Any], value: Any) -> Any:
    return tree_map(lambda v: function(v) if isinstance(v, torch.Tensor) else v, value)


def held(value: Any) -> Any:
    """Tensors as the device holds them, in their own dtype."""

    def hold(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype not in (torch.float16, torch.bfloat16):
            return tensor
        return device_value(tensor).to(tensor.dtype)

    return _map(hold, value)


def native(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """The results on the host; arguments that are tensors move to the device."""
    moved, named = _map(lambda t: t.to("spyre"), (list(arguments), keywords))
    torch_spyre.reset_fallback_report()
    results = function(*moved, **named)
    assert torch_spyre.fallback_report() == {}
    return _map(lambda t: t.cpu(), results)


def assert_same(actual: Any, expected: Any, message: str = "") -> None:
    """Dtypes, shapes and values agree exactly; NaN only with NaN."""
    found, wanted = tree_leaves(actual), tree_leaves(expected)
    assert len(found) == len(wanted), message
    for a, e in zip(found, wanted, strict=True):
        if not isinstance(e, torch.Tensor):
            assert a == e, message
            continue
        assert (a.dtype, a.shape) == (e.dtype, e.shape), message
        agree = a == e
        if e.is_floating_point():
            agree |= a.isnan() & e.isnan()
        assert bool(agree.all()), (message, a, e)


def check_exact(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> None:
    """The device gives what the CPU gives of the same values, to the bit.

    A compiled call gives the same.
    """
    expected = function(*held(list(arguments)), **held(keywords))
    assert_same(native(function, *arguments, **keywords), expected, str(function))


def check_compiled(
    function: Callable[..., Any], *arguments: Any, **keywords: Any
) -> None:
    """The same bits eager and compiled."""
    torch._dynamo.reset()
    eager = native(function, *arguments, **keywords)
    compiled = native(torch.compile(function, backend="spyre"), *arguments, **keywords)
    assert_same(compiled, eager, str(function))
