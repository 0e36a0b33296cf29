# SPDX-License-Identifier: Apache-2.0
"""Operators that run on the CPU, and the warning that says so."""

from __future__ import annotations

import warnings

from torch_spyre._C import FallbackWarning


def warn_fallback(op: object, fallback_device: str = "cpu") -> None:
    """Warn, at the caller's line, that an operator runs on another device."""
    warnings.warn(
        f"{op} is falling back to {fallback_device}", FallbackWarning, stacklevel=2
    )


__all__ = ["FallbackWarning", "warn_fallback"]
