# SPDX-License-Identifier: Apache-2.0
"""What users have added to the compiler from Python (``torch_spyre.extend``)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._C import _is_alias_of  # type: ignore[attr-defined]
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

from torch_spyre.errors import ExtensionError, Unsupported


def place_of(function: Callable) -> str:
    """File and line of a function, for messages."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", str(function))
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name


@dataclass(frozen=True)
class Extension:
    """What an operator becomes."""

    #: "decomposition", "lowering" or "fallback".
    kind: str
    op: torch._ops.OpOverload
    #: None: the operator's kernel for the CPU.
    function: Callable | None

    def __str__(self) -> str:
        where = "" if self.function is None else f" {place_of(self.function)}"
        return f"the {self.kind}{where} of {self.op}"

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function; its exceptions say what it is."""
        assert self.function is not None
        try:
            return self.function(*args, **kwargs)
        except (ExtensionError, Unsupported):
            raise
        except Exception as error:
            raise ExtensionError(
                f"{self} raised {type(error).__name__}: {error}"
            ) from error


_extensions: dict[torch._ops.OpOverload, Extension] = {}


def add(extension: Extension) -> None:
    """Takes an extension; raises ValueError if its operator has one."""
    if extension.op in _extensions:
        raise ValueError(
            f"{extension.op} has {_extensions[extension.op]} already; "
            "torch_spyre.extend.remove() it first"
        )
    _extensions[extension.op] = extension
    _forget()


def remove(op: torch._ops.OpOverload) -> Extension:
    """Forgets the extension of an operator; raises ValueError if it has none."""
    if op not in _extensions:
        raise ValueError(f"{op} has no extension")
    _forget()
    return _extensions.pop(op)


def are_there() -> bool:
    """Whether any operator has an extension."""
    return bool(_extensions)


def _forget() -> None:
    _by_name.cache_clear()
    names.cache_clear()


@functools.cache
def _by_name(kind: str) -> dict[str, Extension]:
    return {str(e.op): e for e in _extensions.values() if e.kind == kind}


@functools.cache
def names(kind: str) -> frozenset[str]:
    """The operators that have an extension of a kind."""
    return frozenset(_by_name(kind))


def lowering_of(name: str) -> Extension | None:
    """The lowering of an operator, by its overload's name."""
    return _by_name("lowering").get(name)


def decompositions() -> dict[Any, Callable]:
    """The decompositions that users have given."""
    return {
        extension.op: functools.partial(_decompose, extension)
        for extension in _by_name("decomposition").values()
    }


def run_fallback(extension: Extension, *args: Any, **kwargs: Any) -> Any:
    """Calls a fallback; what it raises is as the operator's own kernel raised it."""
    assert extension.function is not None
    return _checked(extension, extension.function(*args, **kwargs), args, kwargs)


def _decompose(extension: Extension, *args: Any, **kwargs: Any) -> Any:
    results = extension.call(*args, **kwargs)
    if results is NotImplemented:
        return results
    return _checked(extension, results, args, kwargs)


def _checked(
    extension: Extension, results: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """What a decomposition or fallback returned for a call.

    Raises ExtensionError unless it is what the operator returns: as many tensors, on
    the device of the arguments, of the dtypes and shapes that the operator's fake
    function says, if it has one. A result that shares memory with an argument, which
    no new tensor does, is copied.
    """
    returns = extension.op._schema.returns
    leaves = tree_leaves(results) if returns else []
    is_list = any("List" in str(r.type) or "[]" in str(r.type) for r in returns)
    if not is_list and len(leaves) != len(returns):
        raise ExtensionError(
            f"{extension} returned {len(leaves)} values: expected {len(returns)}"
        )
    given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    expected = _expected(extension.op, args, kwargs)
    if len(expected) != len(leaves):
        expected = [None] * len(leaves)
    for number, (result, wanted) in enumerate(zip(leaves, expected, strict=True)):
        problem = _difference(result, wanted, given[0].device if given else None)
        if problem:
            raise ExtensionError(
                f"{extension} returned {problem[0]} as result {number}: expected "
                f"{problem[1]}"
            )
    if any(r.alias_info is not None for r in returns):
        return results
    return tree_map_only(
        torch.Tensor,
        lambda r: r.clone() if any(_is_alias_of(r, t) for t in given) else r,
        results,
    )


def _expected(
    op: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any]
) -> list[Any]:
    """The results that an operator has for these arguments, without data; none if it
    has no fake function, or if they depend on data.
    """

    def without_data(value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device("meta")
        if not isinstance(value, torch.Tensor):
            return value
        return torch.empty_strided(
            value.shape, value.stride(), dtype=value.dtype, device="meta"
        )

    with _disable_current_modes(), torch.no_grad():
        try:
            given, named = tree_map(without_data, (tuple(args), kwargs))
            return tree_leaves(op(*given, **named))
        except Exception:
            return []


def _difference(
    result: Any, expected: Any, device: torch.device | None
) -> tuple[str, str] | None:
    """What a result is, and what it should be, if it is not that."""
    if expected is None and not isinstance(result, torch.Tensor):
        return None
    if not isinstance(expected, torch.Tensor | None):
        return None
    if not isinstance(result, torch.Tensor):
        return f"a {type(result).__name__}", "a tensor"
    if device is not None and result.device != device:
        return f"a tensor on {result.device}", f"one on {device}"
    if expected is None:
        return None
    sizes, wanted = list(result.shape), list(expected.shape)
    is_other = len(sizes) != len(wanted) or any(
        isinstance(n, int) and isinstance(m, int) and n != m
        for n, m in zip(sizes, wanted, strict=True)
    )
    if is_other or result.dtype != expected.dtype:
        return (
            f"{result.dtype} of shape {sizes}",
            f"{expected.dtype} of shape {wanted}",
        )
    return None
