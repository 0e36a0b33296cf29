# SPDX-License-Identifier: Apache-2.0
"""The operators of ``torch.ops.spyre`` as functions."""

from __future__ import annotations

from typing import Any

import torch


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and hasattr(torch.ops.spyre, name):
        return getattr(torch.ops.spyre, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
