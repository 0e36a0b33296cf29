# SPDX-License-Identifier: Apache-2.0
"""What the device holds, written from spec/ without the project's code."""

import numpy as np
import torch
from f16_values import decode_dl16, encode_dl16

ELEMENTS_PER_STICK = {
    torch.float16: 64,
    torch.bfloat16: 64,
    torch.bool: 64,
    torch.float32: 32,
    torch.uint8: 32,
    torch.int8: 128,
    torch.int16: 64,
    torch.int32: 32,
    torch.int64: 32,
}
DTYPES = list(ELEMENTS_PER_STICK)


def round_dl16(tensor):
    """A float tensor rounded to DL16, as fp32."""
    array = tensor.detach().cpu().to(torch.float32).numpy()
    return torch.from_numpy(decode_dl16(encode_dl16(array)).reshape(array.shape))


def round_trip(tensor):
    """What a CPU tensor is after a trip to the device and back."""
    if tensor.dtype == torch.float16:
        wide = round_dl16(tensor)
        # 65536 is the largest fp16 rounded up; it returns as that.
        wide = torch.where(wide.abs() == 65536, wide.sign() * 65504, wide)
        return wide.to(torch.float16)
    if tensor.dtype == torch.bfloat16:
        return round_dl16(tensor).to(torch.bfloat16)
    return tensor.clone()


def device_elements(tensor):
    """The device codes of a tensor's elements, as an unsigned numpy array."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype in (torch.float16, torch.bfloat16, torch.bool):
        return encode_dl16(tensor.to(torch.float32).numpy())
    if tensor.dtype == torch.float32:
        return tensor.numpy().view(np.uint32)
    if tensor.dtype == torch.int8:
        return tensor.numpy().view(np.uint8)
    if tensor.dtype == torch.int16:
        return tensor.numpy().view(np.uint16)
    return tensor.numpy().astype(np.int64).astype(np.int32).view(np.uint32)


def sticks(tensor, order=None):
    """Device bytes of a tensor in dimension order `order` (-1 last: sparse).

    spec/layouts.md, generic-stick constructor: the device dimensions are
    o1..o(n-1), o0, o(n-1); the first visit of the stick dimension counts
    sticks, the last is within the stick; padding is zero.
    """
    per_stick = ELEMENTS_PER_STICK[tensor.dtype]
    elements = device_elements(tensor)
    if tensor.dim() == 0:
        elements = elements.reshape(1)
        device = np.zeros((1, per_stick), elements.dtype)
        device[0, 0] = elements[0]
        return device.tobytes()
    order = list(range(tensor.dim())) if order is None else list(order)
    stick = order[-1]
    dims = [order[0], order[0]] if len(order) == 1 else [*order[1:], order[0], stick]
    size = []
    for position, dim in enumerate(dims):
        if position == len(dims) - 1:
            size.append(per_stick)
        elif dim == -1:
            size.append(1)
        elif dim == stick:
            size.append(-(-tensor.shape[dim] // per_stick))
        else:
            size.append(tensor.shape[dim])
    device = np.zeros(size, elements.dtype)
    index = np.indices(tensor.shape) if elements.size else None
    if index is not None:
        coordinates = []
        for position, dim in enumerate(dims):
            if dim == -1:
                coordinates.append(np.zeros(tensor.shape, int))
            elif position == len(dims) - 1:
                coordinates.append(index[dim] % per_stick)
            elif dim == stick:
                coordinates.append(index[dim] // per_stick)
            else:
                coordinates.append(index[dim])
        device[tuple(coordinates)] = elements
    return device.tobytes()


def sample(shape, dtype, seed=0):
    """Values of a dtype that include the awkward ones."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        low, high = max(info.min, -(2**31)), min(info.max, 2**31 - 1)
        values = torch.randint(low, high + 1, shape, generator=generator)
        values = values.to(dtype)
        special = [low, high, 0, 1]
    else:
        values = torch.randn(shape, generator=generator)
        values = (values * torch.exp(4 * torch.randn(shape, generator=generator))).to(
            dtype
        )
        special = [0.0, -0.0, float("inf"), -float("inf"), 65504.0, 2.0**-24, -1.001]
    flat = values.view(-1)
    for i, value in enumerate(special[: max(flat.numel() - 1, 0)]):
        flat[i] = value
    return values


def assert_same(actual, expected):
    """Equal values and metadata; NaN equals NaN, and zeros keep their sign."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if actual.dtype.is_floating_point:
        same = (actual == expected) | (actual.isnan() & expected.isnan())
        same &= torch.signbit(actual) == torch.signbit(expected)
    else:
        same = actual == expected
    bad = (~same).nonzero()
    assert bad.numel() == 0, (
        f"{len(bad)} values differ, first at {bad[0].tolist()}: "
        f"{actual[tuple(bad[0])]} != {expected[tuple(bad[0])]}"
    )
