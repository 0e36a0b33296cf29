# SPDX-License-Identifier: Apache-2.0
"""Results lie in memory as PyTorch's functions for tensors without values say.

Dynamo computes with the strides that these give. What takes an operator apart may come
to others: what then looks at strides (``view``, ``as_strided``) would fail, or take
other elements.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import (
    compute_elementwise_output_logical_to_physical_perm,
)
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

#: Results whose sizes values decide: each time PyTorch is asked they are new symbols.
_OF_VALUES = (torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output)


def as_inferred(op: Any, function: Callable) -> Callable:
    """What takes ``op`` apart, with the strides that PyTorch infers for ``op``.

    Where it is not traced, it stays as it is.
    """
    if any(tag in getattr(op, "tags", ()) for tag in _OF_VALUES):
        return function

    @functools.wraps(function)
    def take_apart(*args: Any, **kwargs: Any) -> Any:
        results = function(*args, **kwargs)
        if results is NotImplemented:
            return results
        return arranged(results, _infer(op, args, kwargs))

    return take_apart


def arranged(results: Any, inferred: Any) -> Any:
    """Results with the strides of those inferred, where there are such."""
    if isinstance(results, (list, tuple)) and isinstance(inferred, (list, tuple)):
        pairs = zip(results, inferred, strict=True)
        found = [arranged(result, meta) for result, meta in pairs]
        return found if isinstance(results, list) else tuple(found)
    if has_strides(results) and has_strides(inferred):
        return _as(results, inferred)
    return results


def has_strides(value: Any) -> bool:
    """Whether it is a tensor, and no sparse one."""
    return isinstance(value, Tensor) and value.layout == torch.strided


def _infer(op: Any, args: Any, kwargs: Any) -> Any:
    """What PyTorch infers, or None if it is not tracing or does not know."""
    from torch._subclasses.fake_tensor import FakeTensor

    fakes = [v for v in tree_leaves((args, kwargs)) if isinstance(v, FakeTensor)]
    if not fakes:
        return None
    try:
        with _disable_current_modes(), fakes[0].fake_mode:
            return op(*args, **kwargs)
    except Exception:
        return None  # What takes the operator apart knows more of it.


def _as(result: Tensor, inferred: Tensor) -> Tensor:
    """The result with the inferred strides, if these leave no gaps."""
    from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

    if result.dim() != inferred.dim():
        return result  # PyTorch is wrong: of losses of one row it makes a vector.
    # A trace knows nothing of sizes that were inferred before it.
    with disable_proxy_modes_tracing():
        if _has_strides_of(result, inferred):
            return result
        order, _ = compute_elementwise_output_logical_to_physical_perm(inferred)
    places = [order.index(dim) for dim in range(result.dim())]
    return result.permute(order).contiguous().permute(places)


def _has_strides_of(result: Tensor, inferred: Tensor) -> bool:
    """Whether both have the same strides, so far as is known."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    return all(
        statically_known_true(n <= 1)
        or statically_known_true(a == b)
        or _of_elements(a) == _of_elements(b)
        for n, a, b in zip(
            result.shape, result.stride(), inferred.stride(), strict=True
        )
    )


def _of_elements(stride: Any) -> Any:
    """The formula of a stride of a tensor that has elements.

    Strides count dimensions of none as one.
    """
    if not isinstance(stride, torch.SymInt):
        return stride
    import sympy
    from torch.utils._sympy.functions import Max

    def is_size(term: Any) -> bool:
        return isinstance(term, (Max, sympy.Max)) and sympy.S.One in term.args

    def without_one(term: Any) -> Any:
        return type(term)(*(a for a in term.args if a != sympy.S.One))

    return sympy.expand(stride.node.expr.replace(is_size, without_one))
