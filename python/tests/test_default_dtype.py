# SPDX-License-Identifier: Apache-2.0
"""``torch.set_default_dtype()`` says what results of integers are, and nothing else.

Programs that an operator has got under one default are not those of another one, and
what operators compute inside is fp32 under any.
"""

import pytest
import torch
import torch.nn.functional as F
from numerics import compiled


@pytest.fixture
def set_default():
    before = torch.get_default_dtype()
    yield torch.set_default_dtype
    torch.set_default_dtype(before)


OF_INTEGERS = {
    "div": lambda x: x / 2,
    "exp": torch.exp,
    "add": lambda x: x + 0.5,
    "atan": torch.atan,
}


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_results_of_integers(name, set_default):
    """In turns: no call gets a program that another default has made."""
    x = torch.arange(1, 9, device="spyre")
    for dtype in (torch.float32, torch.float16, torch.bfloat16) * 2:
        set_default(dtype)
        y = OF_INTEGERS[name](x)
        assert y.dtype == dtype == OF_INTEGERS[name](x.cpu()).dtype


def bags(x, mode):
    index = torch.tensor([1, 2, 0, 3, 1], device=x.device)
    offsets = torch.tensor([0, 3], device=x.device)
    return F.embedding_bag(index, x, offsets, mode=mode)


#: Name -> a function of fp32 [4, 16].
OF_FP32 = {
    "acos": lambda x: torch.acos(x / 8),
    "angle": torch.angle,
    "atan2": lambda x: torch.atan2(x, x.flip(0)),
    "bags": lambda x: bags(x, "mean"),
    "largest of bags": lambda x: bags(x, "max"),
    "reflected": lambda x: F.grid_sample(
        x.view(1, 1, 4, 16),
        x.view(1, 8, 4, 2),
        padding_mode="reflection",
        align_corners=False,
    ),
    "segments": lambda x: torch.segment_reduce(
        x, "mean", lengths=torch.tensor([3, 1], device=x.device)
    ),
}


@pytest.mark.parametrize("way", ["eager", "compiled"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_inside_of_operators(dtype, way, set_default, no_fallback):
    x = torch.randn(4, 16, generator=torch.Generator().manual_seed(1)).to("spyre")
    for name, function in OF_FP32.items():
        call = compiled(function) if way == "compiled" else function
        expected = call(x).cpu()
        set_default(dtype)
        # Graphs and programs are made anew.
        torch._dynamo.reset()
        actual = (compiled(function) if way == "compiled" else function)(x).cpu()
        set_default(torch.float32)
        assert torch.equal(actual, expected), name
