# SPDX-License-Identifier: Apache-2.0
"""A small kernel's later runs compute the bits of its first.

From the second run on, iterations of all cores run as one where they can
(``Engine/Stacks.h``); the first run goes core by core, and a run that checks
everything does so always.
"""

import pytest
import torch

F16, F32 = torch.float16, torch.float32
RUNS = 4


def values(*shape, dtype=F16, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    if not dtype.is_floating_point:
        return torch.randint(-50, 50, shape, generator=generator).to(dtype)
    return torch.randn(shape, generator=generator).to(dtype)


def bits(tensor):
    tensor = tensor.cpu().contiguous()
    return tensor.view(
        {2: torch.int16, 4: torch.int32}.get(tensor.itemsize, tensor.dtype)
    )


SIZES = [(), (0,), (1,), (63,), (64,), (65,), (127,), (509,), (4096,), (4099,), (8191,)]
SIZES += [(3, 5), (5, 100, 15), (64, 65), (2, 3, 4, 67), (33, 130), (1, 300), (300, 1)]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_repeats_the_bits_of_any_size(size):
    for function in (
        lambda x, y: x + y,
        lambda x, y: torch.where(x > 0, x, y * 2),
        lambda x, y: torch.sigmoid(x) * y,
    ):
        found = []
        for _ in range(RUNS):
            # Other addresses each time: all of them live on.
            x, y = values(*size).to("spyre"), values(*size, seed=1).to("spyre")
            found.append((function(x, y), x, y))
        first = bits(found[0][0])
        for result, _, _ in found[1:]:
            assert torch.equal(bits(result), first)
        exact = function(values(*size).float(), values(*size, seed=1).float())
        torch.testing.assert_close(
            found[-1][0].cpu().float(), exact, atol=2**-7, rtol=2**-7
        )


OPERANDS = {
    "row": lambda x: (x, x[:1]),
    "column": lambda x: (x, x[:, :1]),
    "number": lambda x: (x, x[0, 0]),
    "transposed": lambda x: (x, x.t().contiguous().t()),
    "part": lambda x: (x[3:40], x[3:40]),
    "columns": lambda x: (x[:, 5:70], x[:, 7:72]),
    "every second": lambda x: (x[::2], x[1::2]),
    "one tensor": lambda x: (x, x),
}


@pytest.mark.parametrize(
    "dtype", [F16, F32, torch.int32, torch.int64, torch.bool], ids=str
)
@pytest.mark.parametrize("operands", OPERANDS)
def test_repeats_operands_of_other_places(operands, dtype):
    host = values(64, 130, dtype=dtype)
    found = [
        torch.maximum(*OPERANDS[operands](host.to("spyre"))).cpu() for _ in range(RUNS)
    ]
    expected = torch.maximum(*OPERANDS[operands](host))
    if dtype == F16:  # DL16 has fewer bits
        expected = found[0]
    for result in found:
        assert torch.equal(result, expected)


@pytest.mark.parametrize("size", [1, 65, 4096, 5000])
def test_changes_in_place_each_time(size):
    host = torch.arange(size).remainder(5).to(F16)
    x = host.to("spyre")
    for run in range(RUNS):
        x.add_(x).sub_(1)
        host.add_(host).sub_(1)
        assert torch.equal(x.cpu(), host), run
    first, second = x[: size // 2], x[size - size // 2 :]
    for run in range(RUNS):
        second.copy_(first + second)
        host[size - size // 2 :] += host[: size // 2]
        assert torch.equal(x.cpu(), host), run


def test_stays_right_when_programs_take_turns():
    x, y = values(4096).to("spyre"), values(65, 70).to("spyre")
    scalars = [bits(x + number) for number in (1.0, 2.0, 3.0)]
    expected = bits(y * y)
    for _ in range(RUNS):
        for number, wanted in zip((1.0, 2.0, 3.0), scalars, strict=True):
            assert torch.equal(bits(x + number), wanted)
        assert torch.equal(bits(y * y), expected)


def test_repeats_compiled_kernels():
    @torch.compile(backend="spyre")
    def block(x, y, z):
        return torch.nn.functional.gelu(x * y + z), (x > z).to(F32)

    arguments = [values(37, 200, seed=s).to("spyre") for s in range(3)]
    first = [bits(t) for t in block(*arguments)]
    for _ in range(RUNS):
        copies = [t.clone() for t in arguments]
        for found, expected in zip(block(*copies), first, strict=True):
            assert torch.equal(bits(found), expected)
