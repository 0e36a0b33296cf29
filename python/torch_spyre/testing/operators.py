# SPDX-License-Identifier: Apache-2.0
"""Operators by the names that descriptors use.

A file from outside names functions: only those that compute on tensors are found, so
that no descriptor loads or runs something else.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

#: Functions without a tensor among their arguments, which no override sees.
_FACTORIES = {
    "arange", "empty", "empty_strided", "eye", "full", "linspace", "logspace", "ones",
    "rand", "randint", "randn", "randperm", "scalar_tensor", "tensor", "tril_indices",
    "triu_indices", "zeros", "zeros_like", "ones_like", "full_like", "empty_like",
    "rand_like", "randn_like", "bartlett_window", "hann_window", "hamming_window",
    "blackman_window", "kaiser_window", "range",
}  # fmt: skip
#: Of the module ``operator``: what calls or looks up anything else.
_NO_COMPUTATION = {"attrgetter", "call", "itemgetter", "methodcaller", "length_hint"}
_NAMESPACES: dict[str, Any] = {
    "torch.nn.functional": torch.nn.functional,
    "torch.special": torch.special,
    "torch.linalg": torch.linalg,
    "torch.fft": torch.fft,
    "torch._C._nn": torch._C._nn,
}
#: Methods that leave tensors, or the process.
_NO_METHODS = {
    "backward", "register_hook", "register_post_accumulate_grad_hook", "numpy",
    "share_memory_", "tolist", "map_", "map2_", "apply_", "__reduce_ex__",
    "__deepcopy__", "__setstate__", "retain_grad", "storage", "untyped_storage",
}  # fmt: skip


@dataclass(frozen=True)
class Operator:
    """A function and how its result is taken."""

    name: str
    function: Callable[..., Any]
    #: Argument 0 after the call is compared, too.
    is_inplace: bool

    @property
    def is_random(self) -> bool:
        """Whether its values are drawn, or never written: nothing to compare."""
        return self.name.rpartition(".")[2].strip("_") in _RANDOM


_RANDOM = {
    "bernoulli", "empty", "empty_like", "empty_permuted", "empty_strided",
    "exponential", "multinomial", "new_empty", "normal", "rand", "rand_like",
    "randint", "randint_like", "randn", "randn_like", "randperm", "random", "uniform",
}  # fmt: skip


@functools.cache
def known_operators() -> dict[str, Callable[..., Any]]:
    """Name -> function of every operator that descriptors may name."""
    found: dict[str, Callable[..., Any]] = {}
    functions = torch.overrides.get_overridable_functions()
    overridable = {id(f) for group in functions.values() for f in group}
    for name in dir(torch):
        value = getattr(torch, name, None)
        computes = id(value) in overridable or name in _FACTORIES
        if callable(value) and computes and name[:2] != "__" and name != "from_file":
            found[f"torch.{name}"] = value
    for name in dir(torch.Tensor):
        value = getattr(torch.Tensor, name, None)
        if callable(value) and id(value) in overridable and name not in _NO_METHODS:
            found[f"torch.Tensor.{name}"] = value
    for space, module in _NAMESPACES.items():
        for name in dir(module):
            value = getattr(module, name)
            is_own = callable(value) and not isinstance(value, (type, ModuleType))
            if is_own and not name.startswith("_") and _is_computation(value):
                found[f"{space}.{name}"] = value
    # The method itself is no override of another function.
    found["torch.Tensor.to"] = torch.Tensor.to
    for name in operator.__all__:
        if name in _NO_COMPUTATION:
            continue
        for spelling in (name, f"__{name.strip('_')}__"):
            if hasattr(operator, spelling):
                found[f"operator.{spelling}"] = getattr(operator, spelling)
    found["torch.getitem"] = operator.getitem
    found["torch.setitem"] = operator.setitem
    return found


def _is_computation(value: Any) -> bool:
    module = getattr(value, "__module__", None) or ""
    return type(value).__name__ == "builtin_function_or_method" or module.startswith(
        ("torch.nn.functional", "torch._jit_internal", "torch.special", "torch._C")
    )


def _overload(name: str) -> Callable[..., Any] | None:
    """``torch.ops.<library>.<operator>`` with or without an overload."""
    words = name.split(".")[2:]
    if len(words) not in (2, 3) or words[0] == "profiler" or "from_file" in words:
        return None
    value: Any = torch.ops
    for word in words:
        try:
            value = getattr(value, word)
        except (AttributeError, RuntimeError):
            return None
    kinds = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)
    return value if isinstance(value, kinds) else None


def find(name: str, keywords: dict[str, Any]) -> Operator | None:
    """The operator of a name with its keyword arguments, or None."""
    is_overload = name.startswith("torch.ops.")
    function = _overload(name) if is_overload else known_operators().get(name)
    if function is None:
        return None
    last = name.split(".")[3 if is_overload else -1]
    bare = last.strip("_")
    is_inplace = (
        (last.endswith("_") and not last.endswith("__"))
        or bare == "setitem"
        or (name.startswith("operator.") and bare in _INPLACE_OPERATORS)
        or keywords.get("inplace") is True
    )
    return Operator(name, function, is_inplace)


_INPLACE_OPERATORS = {
    "iadd", "iand", "iconcat", "ifloordiv", "ilshift", "imatmul", "imod", "imul",
    "ior", "ipow", "irshift", "isub", "itruediv", "ixor",
}  # fmt: skip


def prepare(op: Operator, keywords: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of a call that is compared: nothing is dropped by chance."""
    if op.name.rpartition(".")[2] in _DROPOUTS:
        return {**keywords, "training": False}
    return keywords


_DROPOUTS = {"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"}
