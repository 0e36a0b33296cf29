# SPDX-License-Identifier: Apache-2.0
"""Operators that run on the CPU, and the warning that says so."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torch_spyre._C import FallbackWarning


def warn_fallback(op: object, fallback_device: str = "cpu") -> None:
    """Warn, at the caller's line, that an operator runs on another device."""
    warnings.warn(
        f"{op} is falling back to {fallback_device}", FallbackWarning, stacklevel=2
    )


#: Overloads that users sent to the CPU by the functions below.
fallback_ops: list[Any] = []


def _check_device(device: str) -> None:
    if device != "cpu":
        raise ValueError(f"fallbacks run on 'cpu', not on {device!r}")


def register_fallback(ops: Any, device: str = "cpu") -> Callable[[Callable], Callable]:
    """torch-spyre's name of :func:`torch_spyre.extend.fallback`."""
    from torch_spyre import extend

    _check_device(device)

    def decorate(function: Callable) -> Callable:
        extend.fallback(ops)(function)
        fallback_ops.extend(extend.overloads(ops))
        return function

    return decorate


def register_fallback_default(ops: Any) -> None:
    """torch-spyre's name of :func:`torch_spyre.extend.run_on_cpu`."""
    from torch_spyre import extend

    extend.run_on_cpu(ops)
    fallback_ops.extend(extend.overloads(ops))


__all__ = [
    "FallbackWarning",
    "fallback_ops",
    "register_fallback",
    "register_fallback_default",
    "warn_fallback",
]
