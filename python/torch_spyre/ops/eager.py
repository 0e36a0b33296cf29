# SPDX-License-Identifier: Apache-2.0
"""Operators that compile themselves when they are called eagerly.

Every operator with a row in the compiler's table, or a decomposition, does so here.
These are torch-spyre's names for operators of users.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket

from torch_spyre import _C


def compile_once(op: Callable[..., Any], **kw: Any) -> Callable[..., Any]:
    """A function that compiles ``op`` when it is first called, and keeps the result.

    ``kw`` are arguments of ``torch.compile``, by default ``dynamic=False``.
    """
    options = {"dynamic": False, **kw}

    @functools.cache
    def compiled() -> Callable[..., Any]:
        return torch.compile(op, **options)

    @functools.wraps(op)
    def call(*args: Any, **kwargs: Any) -> Any:
        return compiled()(*args, **kwargs)

    return call


def _takes_tensors(overload: OpOverload) -> bool:
    return "dtype" not in overload._overloadname and any(
        "Tensor" in str(argument.type) for argument in overload._schema.arguments
    )


def _overloads(ops: Any) -> list[OpOverload]:
    found: list[OpOverload] = []
    for op in ops if isinstance(ops, (list, tuple)) else [ops]:
        if isinstance(op, OpOverloadPacket):
            every = (getattr(op, name) for name in op.overloads())
            found += [overload for overload in every if _takes_tensors(overload)]
        elif isinstance(op, OpOverload):
            found.append(op)
        else:
            raise TypeError(
                f"expected an operator such as torch.ops.aten.gelu, found {op!r}"
            )
    return found


def register_torch_compile_kernel(ops: Any) -> None:
    """Eager calls of operators on spyre tensors run as programs of their own.

    An operator, all of whose overloads with tensors are meant, an overload, or a list
    of them. A custom operator becomes its decomposition
    (:func:`torch_spyre.extend.decomposition`) or its lowering; PyTorch's own have
    programs without this. Raises TypeError for what is no operator.
    """
    for overload in _overloads(ops):
        _C._give_boxed_kernel(overload._schema.name, overload._schema.overload_name)


__all__ = ["compile_once", "register_torch_compile_kernel"]
