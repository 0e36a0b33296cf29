# SPDX-License-Identifier: Apache-2.0
"""float8_e4m3fn in numpy, without the project's code and PyTorch's."""

import numpy as np

#: Values of float8_e4m3fn by code: subnormals, then (1 + f/8) 2^(e - 7).
E4M3 = np.array(
    [
        (f / 8 if e == 0 else 1 + f / 8) * 2.0 ** (max(e, 1) - 7)
        for e in range(16)
        for f in range(8)
    ]
)
E4M3 = np.concatenate([E4M3, -E4M3])
E4M3[[0x7F, 0xFF]] = np.nan


def to_e4m3(x):
    """The nearest value of float8_e4m3fn, ties to the even code; at most 448."""
    numbers = E4M3[:0x7F]
    magnitude = np.minimum(np.abs(x), 448)
    above = np.searchsorted(numbers, magnitude)
    below = np.maximum(above - 1, 0)
    down, up = magnitude - numbers[below], numbers[above] - magnitude
    take = np.where((down < up) | ((down == up) & (below % 2 == 0)), below, above)
    return np.sign(x) * numbers[take]
