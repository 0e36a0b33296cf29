# SPDX-License-Identifier: Apache-2.0
"""Values of f16, as DL16 (spec/numerics.md) and as IEEE half, and how close they are.

Without torch and the project's code: for tests that call the tools alone, too.
"""

import numpy as np


def encode_dl16(values):
    """fp32 array -> DL16 codes: half away from zero, spec/numerics.md."""
    values = np.asarray(values, dtype=np.float32)
    bits = values.view(np.uint32)
    sign = ((bits >> 16) & 0x8000).astype(np.int64)
    rounded = ((bits & 0x7FFFFFFF).astype(np.int64) + (1 << 13)) >> 14
    code = rounded - ((127 - 31) << 9)
    code = np.where(code < 0, 0, np.minimum(code, 0x7FFF))
    code = np.where(np.isinf(values), 0x7FFF, code)
    result = (sign | code).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FFF), result)


def decode_dl16(codes):
    """DL16 codes -> fp32 array."""
    codes = np.asarray(codes, dtype=np.uint16)
    exponent = ((codes >> 9) & 63).astype(np.int32)
    fraction = (codes & 511).astype(np.float64)
    value = np.ldexp(1 + fraction / 512, exponent - 31)
    value = np.where((codes & 0x7FFF) == 0, 0.0, value)
    value = np.where((codes & 0x7FFF) == 0x7FFF, np.inf, value)
    return np.where(codes & 0x8000, -value, value).astype(np.float32)


def round_dl16(x) -> np.ndarray:
    """Rounds fp32 values to DL16, NaN to +inf."""
    return decode_dl16(encode_dl16(x))


def round_half(x) -> np.ndarray:
    """Rounds to IEEE half."""
    return np.asarray(x, np.float32).astype(np.float16).astype(np.float32)


#: What f16 is, and its unit in the last place of 1.
ROUND = {"dl16": round_dl16, "ieee": round_half}
UNIT = {"dl16": 2.0**-9, "ieee": 2.0**-10}


def half(rng, *shape) -> np.ndarray:
    """Normally distributed numbers of fp16."""
    return rng.standard_normal(shape).astype(np.float16)


def check_close(actual: np.ndarray, expected: np.ndarray, bound) -> None:
    """No error is above its bound, and none is NaN."""
    error = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    bad = ~(error <= bound)
    assert not bad.any(), (np.argwhere(bad)[:5], actual[bad][:5], expected[bad][:5])
