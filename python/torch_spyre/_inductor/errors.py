# SPDX-License-Identifier: Apache-2.0
"""Errors by the names that users of torch-spyre know."""

from __future__ import annotations

from torch_spyre.errors import Unsupported

__all__ = ["Unsupported"]
