# SPDX-License-Identifier: Apache-2.0
"""How element types of floats are stored and rounded."""

from __future__ import annotations

import kernels as k
import numpy as np
from programs import round_half


def fp8_values(exponent_bits: int, fraction_bits: int) -> np.ndarray:
    """The value of each of the 256 codes; not finite where the format says so."""
    code = np.arange(256)
    fraction = code & ((1 << fraction_bits) - 1)
    exponent = (code >> fraction_bits) & ((1 << exponent_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    scale = np.ldexp(1.0, np.maximum(exponent, 1) - bias - fraction_bits)
    value = scale * (fraction + np.where(exponent > 0, 1 << fraction_bits, 0))
    if exponent_bits == 5:
        value[exponent == 31] = np.inf
    else:
        value[(exponent == 15) & (fraction == 7)] = np.nan
    return np.where(code & 128, -value, value).astype(np.float32)


def round_to(x: np.ndarray, bits: int, lowest: int) -> np.ndarray:
    """To `bits` bits of fraction, nearest even; 2^lowest is the smallest normal."""
    x = np.asarray(x, np.float64)
    with np.errstate(divide="ignore"):
        exponent = np.floor(np.log2(np.abs(np.where(x == 0, 1, x))))
    unit = np.exp2(np.maximum(exponent, lowest) - bits)
    return (np.rint(x / unit) * unit).astype(np.float32)


class Float:
    """How a type is stored and rounded; the fraction's bits."""

    def __init__(self, element: str, numerics: str = "dl16"):
        self.element, self.numerics = element, numerics
        self.bits, self.lowest = {
            "f32": (23, -126),
            "bf16": (7, -126),
            "f8E4M3FN": (3, -6),
            "f8E5M2": (2, -14),
            "f16": (10, -14) if numerics == "ieee" else (9, -31),
        }[element]

    def round(self, x: np.ndarray) -> np.ndarray:
        x = np.asarray(x, np.float32)
        if self.element == "f32":
            return x
        if self.element == "f16":
            return round_half(x) if self.numerics == "ieee" else k.round_dl16(x)
        return round_to(x, self.bits, self.lowest)

    def codes(self) -> np.ndarray:
        return fp8_values(4, 3) if self.element == "f8E4M3FN" else fp8_values(5, 2)

    def encode(self, x: np.ndarray) -> np.ndarray:
        """The file that holds rounded values."""
        if self.element == "f32":
            return x.astype(np.float32)
        if self.element == "f16":
            return x.astype(np.float16)
        if self.element == "bf16":
            return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        codes = self.codes()
        order = np.argsort(np.where(np.isfinite(codes), codes, np.inf), kind="stable")
        found = order[np.searchsorted(codes[order], x)]
        assert (codes[found] == x).all()
        return found.astype(np.uint8)

    def decode(self, x: np.ndarray) -> np.ndarray:
        if self.element == "bf16":
            return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        if self.element.startswith("f8"):
            return self.codes()[x]
        return x.astype(np.float32)

    def unit(self, x: np.ndarray) -> np.ndarray:
        exponent = np.floor(np.log2(np.maximum(np.abs(x), 2.0**self.lowest)))
        return np.exp2(exponent - self.bits)
