# SPDX-License-Identifier: Apache-2.0
"""What users have added to the compiler from Python (``torch_spyre.extend``)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

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


def _decompose(extension: Extension, *args: Any, **kwargs: Any) -> Any:
    results = extension.call(*args, **kwargs)
    if results is not NotImplemented:
        _check(extension, results)
    return results


def _check(extension: Extension, results: Any) -> None:
    returns = extension.op._schema.returns
    leaves = tree_leaves(results)
    is_list = any("List" in str(r.type) or "[]" in str(r.type) for r in returns)
    if not is_list and len(leaves) != len(returns):
        raise ExtensionError(
            f"{extension} returned {len(leaves)} values: expected {len(returns)}"
        )
