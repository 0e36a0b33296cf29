# SPDX-License-Identifier: Apache-2.0
"""As which operator without side effects an eager call is run."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload

from torch_spyre import _C, extensions
from torch_spyre.aten_table import table_operators
from torch_spyre.decompositions.table import decomposition_of
from torch_spyre.frontend.host_numbers import is_spyre
from torch_spyre.frontend.importer import is_view

#: Results have sizes, strides and dtype of the first argument.
LIKE_SELF = {
    torch.ops.aten.copy.default,
    torch.ops.aten.fill.Scalar,
    torch.ops.aten.fill.Tensor,
    torch.ops.aten.zero.default,
    torch.ops.spyre.fill_range.default,
}


@dataclass(frozen=True)
class Call:
    """How an overload is run: as which functional one, on which arguments."""

    name: str
    functional: OpOverload
    #: Positions of the functional overload's arguments, and of the written ones.
    inputs: tuple[int, ...]
    written: tuple[int, ...]
    #: The functional overload makes a tensor of a dtype and device, where the
    #: other one stores in a tensor that has them.
    is_factory: bool = False
    #: It stores in ``out=`` arguments, which get the sizes of the results.
    is_out: bool = False

    @property
    def location(self) -> tuple[str, int, str]:
        """What errors name as the place of an eager operator."""
        return f"<{self.name}>", 0, self.name

    @property
    def is_tuple(self) -> bool:
        """Whether Python sees the results of the functional operator as a tuple."""
        return len(self.functional._schema.returns) != 1

    def invoke(
        self,
        arguments: list[Any],
        dtype: torch.dtype | None,
        device: Any,
        function: Callable | None = None,
    ) -> Any:
        """Runs the functional overload, as on meta or fake tensors, or ``function``."""
        schema = self.functional._schema.arguments
        positional, keywords = [], {}
        if self.is_factory:
            keywords = {"dtype": dtype, "device": device}
        for parameter, value in zip(schema, arguments, strict=not self.is_factory):
            if parameter.kwarg_only:
                keywords[parameter.name] = value
            else:
                positional.append(value)
        return (function or self.functional)(*positional, **keywords)


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


_FACTORY = ["dtype", "layout", "device", "pin_memory"]


def _find_functional(
    op: OpOverload,
) -> tuple[OpOverload, tuple[int, ...], bool] | None:
    """The overload without side effects, where its arguments are, is_factory."""
    arguments = op._schema.arguments
    name = op._schema.name.split("::")[1]
    is_out = any(a.is_out for a in arguments)
    if not is_out:
        if not name.endswith("_"):
            return None
        name = name[:-1]
    inputs = tuple(i for i, a in enumerate(arguments) if not a.is_out)
    wanted = [(arguments[i].name, str(arguments[i].type)) for i in inputs]
    packet = getattr(getattr(torch.ops, op.namespace), name, None)
    if packet is None:
        return None
    for overload in packet.overloads():
        candidate = getattr(packet, overload)
        schema = candidate._schema
        if any(_is_written(a) for a in schema.arguments) or is_view(candidate):
            continue
        found = [(a.name, str(a.type)) for a in schema.arguments]
        if found == wanted:
            return candidate, inputs, False
        if found[:-4] == wanted and [name for name, _ in found[-4:]] == _FACTORY:
            return candidate, inputs, True
    return None


@functools.cache
def call_of(namespace: str, name: str, overload: str) -> Call | None:
    """How calls of an overload are run; None if they have no program."""
    op = getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")
    schema = op._schema
    written = tuple(i for i, a in enumerate(schema.arguments) if _is_written(a))
    functional, inputs, is_factory = op, tuple(range(len(schema.arguments))), False
    if written:
        found = _find_functional(op)
        if found is None:
            return None
        functional, inputs, is_factory = found
    if is_view(functional):
        return None
    # A random operator's decomposition would draw the same numbers every time.
    random = torch.Tag.nondeterministic_seeded in functional.tags
    known = str(functional) in table_operators() or (
        not random
        and str(functional) not in extensions.names("fallback")
        and torch.Tag.data_dependent_output not in functional.tags
        and (decomposition_of(functional) is not None or functional._can_decompose())
    )
    if not known:
        return None
    is_out = any(a.is_out for a in schema.arguments)
    return Call(str(op), functional, inputs, written, is_factory, is_out)


def by_places(op: OpOverload, function: Callable) -> Callable:
    """A function, called with all arguments in the order of the operator's schema."""
    parameters = op._schema.arguments

    def call(*values: Any) -> Any:
        pairs = list(zip(parameters, values, strict=True))
        keywords = {p.name: value for p, value in pairs if p.kwarg_only}
        return function(*(v for p, v in pairs if not p.kwarg_only), **keywords)

    return call


def leaves(values: Any) -> Iterator[torch.Tensor]:
    """The spyre tensors of a call, in the order that _C counts them."""
    for value in values:
        if isinstance(value, list):
            yield from leaves(value)
        elif is_spyre(value):
            yield value


def in_lists(function: Callable[[Any], Any], value: Any) -> Any:
    """A value with what a function makes of it, or of the elements of its lists.

    A nested function that calls itself would keep what it uses, a call's tensors or
    the graph that is built, until Python looks for cycles.
    """
    if isinstance(value, list):
        return [in_lists(function, v) for v in value]
    return function(value)


class WholeNumber(int):
    """A number that meets integers, and may be an argument of the program."""


class SizeNumber(int):
    """An integer that PyTorch lets depend on sizes."""


def count_sizes(value: Any) -> int:
    """How many SizeNumbers an argument has."""
    if isinstance(value, list):
        return sum(map(count_sizes, value))
    return int(isinstance(value, SizeNumber))


def with_sizes(value: Any, numbers: Iterator[Any]) -> Any:
    """An argument with what its integers are in a program for many sizes."""
    if isinstance(value, list):
        return [with_sizes(v, numbers) for v in value]
    return next(numbers) if isinstance(value, SizeNumber) else value


@dataclass(frozen=True)
class Shapes:
    """Prints dtypes and sizes of the tensors of a call, if it is printed at all."""

    arguments: list[Any]

    def __str__(self) -> str:
        shapes = [
            f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}"
            for t in leaves(self.arguments)
        ]
        return f"({', '.join(shapes)})"


def has_say(number: torch.Tensor, tensors: list[torch.Tensor]) -> bool:
    """Whether an integer tensor of the CPU widens the type to compare others in.

    Beside tensors with dimensions, it gives way to their type, as Python's numbers do.
    """
    if number.is_floating_point() or any(t.dim() > 0 for t in tensors):
        return False
    return any(
        not t.is_floating_point()
        and t.dtype not in (torch.bool, number.dtype)
        and torch.result_type(number, t) != t.dtype
        for t in tensors
    )


def differ_in_size(out: torch.Tensor, meta: torch.Tensor) -> bool:
    """Whether a result has other sizes in the call than what it is stored in."""
    sizes = [s.node.hint if isinstance(s, torch.SymInt) else s for s in meta.shape]
    return list(out.shape) != sizes


def check_updated(outs: list[torch.Tensor], metas: list[torch.Tensor]) -> None:
    """Raises UnsupportedOp unless arguments are as large as what is stored in them."""
    for out, meta in zip(outs, metas, strict=True):
        if out.shape != meta.shape:
            raise _C.UnsupportedOp(
                f"an argument of shape {list(out.shape)} is too small for a result of "
                f"{list(meta.shape)}"
            )


def check_written(call: Call, arguments: list[Any], metas: list[Any]) -> None:
    """Raises UnsupportedOp unless the results can be stored in these arguments."""
    outs = [arguments[i] for i in call.written]
    if len(outs) != len(metas) or not all(isinstance(m, torch.Tensor) for m in metas):
        raise _C.UnsupportedOp(
            f"it stores into {len(outs)} arguments, but has {len(metas)} results"
        )
    for out, meta in zip(outs, metas, strict=True):
        if not isinstance(out, torch.Tensor):
            raise _C.UnsupportedOp("it stores into a list of tensors")
        if not torch.can_cast(meta.dtype, out.dtype):
            raise _C.UnsupportedOp(f"{meta.dtype} cannot be stored as {out.dtype}")
    if call.is_out and not call.is_factory:
        _check_types(call, arguments, outs, metas)


def _check_types(
    call: Call, arguments: list[Any], outs: list[torch.Tensor], metas: list[Any]
) -> None:
    """Raises UnsupportedOp if the CPU refuses ``out=`` of other types than the results.

    Some operators convert what they store, others do not: the CPU is asked, by a call
    on zeros.
    """
    if all(o.dtype == m.dtype for o, m in zip(outs, metas, strict=True)):
        return
    values = cpu_zeros(arguments)
    for index, meta in zip(call.written, metas, strict=True):
        sizes = cpu_zeros(list(meta.shape))
        values[index] = torch.zeros(sizes, dtype=arguments[index].dtype)
    namespace, name, overload = call.name.split(".")
    op = getattr(getattr(getattr(torch.ops, namespace), name), overload)
    try:
        by_places(op, op)(*values)
    except RuntimeError as error:
        raise _C.UnsupportedOp(f"the CPU refuses it: {error}") from error


def cpu_zeros(value: Any) -> Any:
    """What stands for an argument: zeros of the CPU for a tensor of the device."""
    if isinstance(value, (list, tuple)):
        return [cpu_zeros(v) for v in value]
    if isinstance(value, torch.device):
        return torch.device("cpu")
    if isinstance(value, torch.SymInt):
        return value.node.hint
    if not is_spyre(value):
        return value
    return torch.zeros([cpu_zeros(s) for s in value.shape], dtype=value.dtype)


def resize_written(outs: list[torch.Tensor], metas: list[torch.Tensor]) -> bool:
    """Gives out= tensors the sizes of the results; whether any had others."""
    changed = False
    for out, meta in zip(outs, metas, strict=True):
        if out.shape == meta.shape:
            continue
        changed = True
        if out.numel() != 0:
            warnings.warn(
                "An output with one or more elements was resized since it had shape "
                f"{list(out.shape)}, which does not match the required output shape "
                f"{list(meta.shape)}. This behavior is deprecated, and in a future "
                "PyTorch release outputs will not be resized unless they have zero "
                "elements.",
                stacklevel=2,
            )
        out.resize_(meta.shape)
        # Dense ones without overlaps keep their strides, as tensors that are like them.
        if out.stride() != meta.stride() == torch.empty_like(meta).stride():
            out.as_strided_(meta.shape, meta.stride())
    return changed


@contextmanager
def undisturbed() -> Iterator[None]:
    """PyTorch without the modes of the code that called the operator.

    A trace computes what depends on constants alone where no Python key is dispatched
    to: traces of operators need those keys.
    """
    from torch.utils._python_dispatch import _disable_current_modes

    excluded = torch._C._dispatch_tls_local_exclude_set()
    for key in (torch._C.DispatchKey.Python, torch._C.DispatchKey.PythonTLSSnapshot):
        excluded = excluded.remove(key)
    included = torch._C._dispatch_tls_local_include_set()
    with (
        torch._C._ForceDispatchKeyGuard(included, excluded),
        torch._C.DisableTorchFunction(),
        _disable_current_modes(),
        torch.no_grad(),
    ):
        yield


def fresh(results: Any, inputs: Sequence[Any]) -> Any:
    """Results of a decomposition, copied where it gives back an input: those of an
    operator are tensors of their own.
    """
    if isinstance(results, (list, tuple)):
        return [fresh(result, inputs) for result in results]
    return results.clone() if any(results is value for value in inputs) else results


def constant_of(module: Any, node: torch.fx.Node) -> Any:
    """The number that a node of a decomposition reads."""
    value = getattr(module, node.target)
    if not isinstance(value, torch.Tensor) or value.dim() != 0:
        raise _C.UnsupportedOp(
            "its decomposition uses a constant tensor that has dimensions"
        )
    return value.item()
