# SPDX-License-Identifier: Apache-2.0
"""Which device operation converts one dtype to another.

docs/spec/ops.md, "Coverage of the compiler", has the pairs. What this compiler
converts beyond them needs no operation of that kind.
"""

from __future__ import annotations

from typing import ClassVar

import torch

from torch_spyre._inductor.constants import (
    DL16TOFP32_OP,
    FP8TODL16_OP,
    FP32TODL16_OP,
    IDENTITY_OP,
)

DtypePair = tuple[torch.dtype, torch.dtype]


class DtypeOpTable:
    """Conversions between dtypes; fp16, bf16 and bool are one format on the card."""

    _table: ClassVar[dict[DtypePair, str]] = {
        (torch.float16, torch.float32): DL16TOFP32_OP,
        (torch.bfloat16, torch.float32): DL16TOFP32_OP,
        (torch.float32, torch.float16): FP32TODL16_OP,
        (torch.float32, torch.bfloat16): FP32TODL16_OP,
        (torch.float8_e4m3fn, torch.float16): FP8TODL16_OP,
        (torch.float16, torch.bool): IDENTITY_OP,
        (torch.bool, torch.float16): IDENTITY_OP,
        (torch.float16, torch.bfloat16): IDENTITY_OP,
        (torch.bfloat16, torch.float16): IDENTITY_OP,
    }

    @classmethod
    def get_operator(cls, src: torch.dtype, dst: torch.dtype) -> str | None:
        """The device operation from ``src`` to ``dst``; None if there is none."""
        return cls._table.get((src, dst))

    @classmethod
    def get_table(cls) -> dict[DtypePair, str]:
        """(source, destination) -> device operation; a copy."""
        return dict(cls._table)

    @classmethod
    def get_dtype_pairs(cls) -> list[DtypePair]:
        """All (source, destination)."""
        return list(cls._table)

    @classmethod
    def is_dtype_op(cls, op: str) -> bool:
        """Whether a device operation is one of the table."""
        return op in cls._table.values()


__all__ = ["DtypeOpTable"]
