# SPDX-License-Identifier: Apache-2.0
"""Extensions of the compiler from Python, without building anything.

An operator of PyTorch, or a custom one, becomes something else on spyre: other
operators (:func:`decomposition`), operations of the compiler (:func:`lowering`), or
code for the CPU (:func:`fallback`), in compiled graphs and eager calls alike.
docs/guide/extending.md has an example of each.

What an extension makes is part of the graph, and so of the key by which programs are
cached. Functions that are compiled already are compiled anew after a change.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch._ops import OpOverload, OpOverloadPacket

from torch_spyre import _C, extensions
from torch_spyre.extensions import Extension, place_of, run_fallback
from torch_spyre.frontend import eager
from torch_spyre.ops.through_cpu import make_kernel

Function = TypeVar("Function", bound=Callable[..., Any])
_kernels: dict[OpOverload, torch.library.Library] = {}


def overloads(ops: Any) -> list[OpOverload]:
    """One overload, or several; raises TypeError for anything else."""
    found = list(ops) if isinstance(ops, (list, tuple)) else [ops]
    for op in found:
        if isinstance(op, OpOverloadPacket):
            names = ", ".join(f"{op}.{name}" for name in op.overloads())
            raise TypeError(f"{op} has several overloads: name one of {names}")
        if not isinstance(op, OpOverload):
            raise TypeError(
                f"expected an operator's overload such as torch.ops.aten.gelu.default, "
                f"found {op!r}"
            )
    return found


def _check_operator(op: OpOverload) -> None:
    if torch._C._dispatch_has_kernel_for_dispatch_key(
        op.name(), "CompositeImplicitAutograd"
    ):
        raise ValueError(
            f"{op} is composite: the device sees only the operators that it calls; "
            "extend those"
        )
    alias = [r.alias_info for r in op._schema.returns if r.alias_info is not None]
    if any(not a.is_write for a in alias):
        raise ValueError(f"{op} is a view: it shares the storage of its argument")


def _check_functional(op: OpOverload, kind: str) -> None:
    if op._schema.is_mutable:
        raise ValueError(
            f"{op} writes its arguments: give the {kind} to the operator that returns "
            "new tensors; compiled graphs have only such ones"
        )


def _check_parameters(op: OpOverload, function: Callable, context: int) -> None:
    """A function takes what the schema has, after ``context`` other parameters."""
    schema = op._schema.arguments
    positional = [None] * (context + sum(not a.kwarg_only for a in schema))
    keywords = {a.name: None for a in schema if a.kwarg_only}
    try:
        inspect.signature(function).bind(*positional, **keywords)
    except TypeError as error:
        raise TypeError(
            f"{place_of(function)} does not take the arguments of {op._schema}: {error}"
        ) from error


def _changed() -> None:
    """Nothing made before is used again, but for programs, whose key says all."""
    eager.forget()
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset()


def _add(kind: str, ops: Any, function: Callable | None, context: int = 0) -> None:
    found = overloads(ops)
    for op in found:
        _check_operator(op)
        if kind != "fallback":
            _check_functional(op, kind)
        if function is not None:
            _check_parameters(op, function, context)
    for op in found:
        extension = Extension(kind, op, function)
        extensions.add(extension)
        if kind != "fallback":
            _C._give_boxed_kernel(op._schema.name, op._schema.overload_name)
        elif function is not None:
            _kernels[op] = make_kernel(op, functools.partial(run_fallback, extension))
    _changed()


def decomposition(ops: Any) -> Callable[[Function], Function]:
    """The function runs in place of the operator, traced into compiled graphs.

    It takes the operator's arguments and returns its results, by calling other
    operators; it goes before what this package has for the operator. With
    NotImplemented it declines a call: the compiler's own operation runs if there is
    one, else the CPU's kernel. Raises TypeError or ValueError if the operator cannot
    have one, or has an extension already.
    """

    def decorate(function: Function) -> Function:
        _add("decomposition", ops, function)
        return function

    return decorate


def lowering(ops: Any) -> Callable[[Function], Function]:
    """The function makes the operator of operations of the compiler.

    It takes a :class:`~torch_spyre.frontend.lowering.LoweringContext` and the
    operator's arguments, tensors as values that have a dtype and a shape, and returns
    what the context's ``op()`` gave: of the dtype and shape that the operator's fake
    function says. With NotImplemented it declines a call, which then runs on the
    CPU. Raises TypeError or ValueError as :func:`decomposition` does.
    """

    def decorate(function: Function) -> Function:
        _add("lowering", ops, function, context=1)
        return function

    return decorate


def fallback(ops: Any) -> Callable[[Function], Function]:
    """The function runs in place of the operator, on CPU copies of its arguments.

    Its results are copied to the device, as are arguments that the operator writes.
    Calls warn and count as other fallbacks do. Raises TypeError or ValueError as
    :func:`decomposition` does.
    """

    def decorate(function: Function) -> Function:
        _add("fallback", ops, function)
        return function

    return decorate


def run_on_cpu(ops: Any) -> None:
    """Operators run by their kernels for the CPU, whatever the device has for them."""
    _add("fallback", ops, None)


def remove(ops: Any) -> None:
    """Takes the extensions of operators back; ValueError for one that has none."""
    for op in overloads(ops):
        extensions.remove(op)
        library = _kernels.pop(op, None)
        if library is not None:
            library._destroy()
    _changed()


__all__ = ["decomposition", "fallback", "lowering", "remove", "run_on_cpu"]
