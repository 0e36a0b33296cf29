# SPDX-License-Identifier: Apache-2.0
"""Products of groups of rows: ``torch._grouped_mm``, and operators of ibm-fms and
transformers.
"""

import pytest
import torch
from inputs import values
from native_calls import native
from numerics import assert_contraction, compiled, device_value, poison
from torch_spyre.compile_backend import compiled_parts
from torch_spyre.decompositions import grouped

HALF, BFLOAT = torch.float16, torch.bfloat16
#: Ends of groups: of few and of many, some empty, some longer than a block.
ENDS = {
    "few": [0, 5, 5, 70, 96],
    "one": [96],
    "many": [3, 3, 10, 11, 76, 76, 80, 81, 90, 91, 96],
}
#: Of fewer rows than groups.
FEW_ROWS = [0, 0, 1, 1, 1, 3, 3, 4, 4]


def grouped_mm(x, y, offsets):
    return torch.ops.aten._grouped_mm.default(x, y, offsets)


def offsets_of(name):
    return torch.tensor(ENDS[name], dtype=torch.int32)


def bounds(name):
    return list(zip([0, *ENDS[name]], ENDS[name], strict=False))


@pytest.mark.parametrize("dtype", [BFLOAT, HALF], ids=str)
@pytest.mark.parametrize("name", ENDS)
def test_rows_by_group(name, dtype):
    offsets = offsets_of(name)
    assert (offsets.numel() > grouped._FEW) == (name == "many")
    x = values((96, 64), dtype)
    y = values((offsets.numel(), 64, 72), dtype, 1)
    actual = native(grouped_mm, x, y, offsets)
    assert (actual.dtype, actual.shape) == (dtype, (96, 72))
    a, b = device_value(x), device_value(y)
    for group, (start, end) in enumerate(bounds(name)):
        rows, matrix = a[start:end], b[group]
        assert_contraction(
            actual[start:end], rows @ matrix, 64, rows.abs() @ matrix.abs()
        )


def test_few_rows():
    """Each row is multiplied with its own matrix, and no other one is read."""
    offsets = torch.tensor(FEW_ROWS, dtype=torch.int32)
    x, y = values((4, 64), HALF), values((len(FEW_ROWS), 64, 72), HALF, 1)
    own = y[[2, 5, 5, 7]]
    y[[0, 1, 3, 4, 6, 8]] = torch.inf
    actual = native(grouped_mm, x, y, offsets)
    a, b = device_value(x), device_value(own)
    exact, sums = torch.bmm(a[:, None], b), torch.bmm(a[:, None].abs(), b.abs())
    assert_contraction(actual, exact[:, 0], 64, sums[:, 0])


@pytest.mark.parametrize("name", ENDS)
def test_columns_by_group(name):
    offsets = offsets_of(name)
    x = values((offsets.numel(), 40, 64), BFLOAT)
    y = values((64, 96), BFLOAT, 1)
    actual = native(grouped_mm, x, y, offsets)
    assert actual.shape == (40, 96)
    a, b = device_value(x), device_value(y)
    for group, (start, end) in enumerate(bounds(name)):
        columns, matrix = b[:, start:end], a[group]
        assert_contraction(
            actual[:, start:end], matrix @ columns, 64, matrix.abs() @ columns.abs()
        )


@pytest.mark.parametrize("name", ENDS)
def test_sums_by_group(name):
    """A group has a part of the reduction; an empty one is zero."""
    offsets = offsets_of(name)
    x, y = values((40, 96), BFLOAT), values((96, 72), BFLOAT, 1)
    actual = native(grouped_mm, x, y, offsets)
    assert actual.shape == (offsets.numel(), 40, 72)
    a, b = device_value(x), device_value(y)
    for group, (start, end) in enumerate(bounds(name)):
        left, right = a[:, start:end], b[start:end]
        assert_contraction(actual[group], left @ right, 96, left.abs() @ right.abs())


def test_batches_without_groups():
    x, y = values((3, 40, 64), BFLOAT), values((3, 64, 72), BFLOAT, 1)
    actual = native(grouped_mm, x, y, None)
    a, b = device_value(x), device_value(y)
    assert_contraction(actual, a @ b, 64, a.abs() @ b.abs())


def _moe_mm(x, matrices, experts, topk):
    """``moe::moe_mm``, as the library defines it, which need not be there."""
    if not hasattr(torch.ops.moe, "moe_mm"):

        @torch.library.custom_op("moe::moe_mm", mutates_args=(), device_types="cpu")
        def moe_mm(
            input: torch.Tensor,
            moe_matrix: torch.Tensor,
            token_expert_mapping: torch.Tensor,
            padded_token_ids_per_block: torch.Tensor,
            expert_block_mapping: torch.Tensor,
            total_padded_tokens: torch.Tensor,
            topk: int,
            padding_size: int,
        ) -> torch.Tensor:
            raise AssertionError("this test runs it on the device")

        @moe_mm.register_fake
        def _(input, moe_matrix, token_expert_mapping, a, b, c, topk, padding_size):
            return input.new_empty(*token_expert_mapping.shape, moe_matrix.shape[1])

    blocks = torch.zeros(1, dtype=torch.int64, device=x.device)
    return torch.ops.moe.moe_mm(x, matrices, experts, blocks, blocks, blocks, topk, 64)


@pytest.mark.parametrize("topk", [1, 2])
@pytest.mark.parametrize("count", [3, 11], ids=["few", "many"])
def test_products_of_experts(count, topk):
    """Rows in any order, of which some experts get none."""
    experts = torch.randint(0, count - 1, (17, 2))
    x = values((experts.numel() // topk, 64), HALF)
    matrices = values((count, 72, 64), HALF, 1)
    actual = native(_moe_mm, x, matrices, experts, topk)
    assert (actual.dtype, actual.shape) == (HALF, (*experts.shape, 72))
    rows = device_value(x).repeat_interleave(topk, 0)
    chosen = device_value(matrices)[experts.reshape(-1)]
    exact = torch.einsum("rk,rnk->rn", rows, chosen).view(actual.shape)
    sums = torch.einsum("rk,rnk->rn", rows.abs(), chosen.abs()).view(actual.shape)
    assert_contraction(actual, exact, 64, sums)


def test_products_of_experts_compiled():
    x, matrices = values((16, 64), HALF), values((3, 72, 64), HALF, 1)
    experts = torch.randint(0, 3, (16, 2))
    eager = native(_moe_mm, x, matrices, experts, 2)
    compiled = torch.compile(_moe_mm, backend="spyre", fullgraph=True)
    assert torch.equal(native(compiled, x, matrices, experts, 2), eager)


def _define_fallback():
    """``transformers::grouped_mm_fallback``, unless the library has defined it."""
    if hasattr(torch.ops.transformers, "grouped_mm_fallback"):
        return
    name = "transformers::grouped_mm_fallback"

    @torch.library.custom_op(name, mutates_args=(), device_types="cpu")
    def fallback(
        input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor
    ) -> torch.Tensor:
        raise AssertionError("this test runs it on the device")

    @fallback.register_fake
    def _(input, weight, offs):
        return input.new_empty(input.shape[0], weight.shape[2])


@pytest.mark.parametrize("count", [5, 20])
def test_fallback_of_transformers(count):
    """One program for all numbers of rows; rows of no group are zero.

    Few groups are as many products, with a program for few rows and one for many; of
    many, there are as many blocks of rows as a quotient of the number of rows says.
    """
    _define_fallback()
    step = compiled(torch.ops.transformers.grouped_mm_fallback, dynamic=True)
    before = len(compiled_parts())
    matrices = values((count, 64, 72), HALF, 1)
    for size in (3, 20, 63, 64, 65, 128, 129, 191, 257, 500, 512):
        poison()
        x = values((size, 64), HALF)
        ends = torch.tensor([0, 1, 1, size // 2, size - 1], dtype=torch.int32)
        if count > len(ends):
            generator = torch.Generator().manual_seed(size)
            more = torch.randint(0, size, (count - len(ends),), generator=generator)
            ends = torch.cat((ends, more)).sort().values.to(torch.int32)
        device = [t.to("spyre") for t in (x, matrices, ends)]
        torch._dynamo.mark_static(device[0], 1)
        torch._dynamo.mark_static(device[1])
        torch._dynamo.mark_static(device[2])
        actual = step(*device).cpu()
        a, b = device_value(x), device_value(matrices)
        groups = torch.bucketize(torch.arange(size - 1), ends, right=True)
        own = b[groups]
        exact = torch.bmm(a[:-1, None], own)[:, 0]
        sums = torch.bmm(a[:-1, None].abs(), own.abs())[:, 0]
        assert_contraction(actual[:-1], exact, 64, sums)
        assert (actual[-1] == 0).all()
    sizes = [p.graph.num_sizes for p in compiled_parts()[before:]]
    assert sizes == ([1, 1] if count == 5 else [2])
