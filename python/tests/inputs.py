# SPDX-License-Identifier: Apache-2.0
"""Inputs of operator tests: values, odd shapes, odd strides."""

import torch


def values(shape, dtype, seed=0, low=-4.0, high=4.0):
    """A host tensor of uniform values; integers and bools over small ranges."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if not dtype.is_floating_point:
        low = 0 if dtype == torch.uint8 else max(int(low * 20), -100)
        numbers = torch.randint(low, 100, shape, generator=generator)
        return numbers.to(dtype)
    return (low + (high - low) * torch.rand(shape, generator=generator)).to(dtype)


#: Name -> (shape to make, how to view it). The view is made on both sides.
LAYOUTS = {
    "0d": ((), lambda t: t),
    "0": ((0,), lambda t: t),
    "1": ((1,), lambda t: t),
    "63": ((63,), lambda t: t),
    "65": ((65,), lambda t: t),
    "3x0x5": ((3, 0, 5), lambda t: t),
    "7x13": ((7, 13), lambda t: t),
    "2x1x67x3": ((2, 1, 67, 3), lambda t: t),
    "5x37x150": ((5, 37, 150), lambda t: t),
    "128x192": ((128, 192), lambda t: t),
    "transposed": ((67, 130), lambda t: t.t()),
    "permuted": ((3, 5, 70), lambda t: t.permute(2, 0, 1)),
    "sliced": ((5, 200), lambda t: t[1:4, 3:131:2]),
    "offset": ((9, 66), lambda t: t[2:, 1:]),
    "expanded": ((1, 65, 1), lambda t: t.expand(3, 65, 70)),
    "column": ((33, 66), lambda t: t[:, 5]),
}


def pair(name, dtype, seed=0, **limits):
    """The same tensor on the host and on the device."""
    shape, view = LAYOUTS[name]
    host = values(shape, dtype, seed, **limits)
    device = view(host.to("spyre"))
    return view(host), device
