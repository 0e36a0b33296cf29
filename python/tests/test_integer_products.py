# SPDX-License-Identifier: Apache-2.0
"""Products with weights of int8 and int4: docs/spec/drop-in.md, section 6."""

import re

import pytest
import torch
from inputs import values
from numerics import (
    assert_contraction,
    assert_exact,
    compiled,
    device_value,
    poisoned,
    round_format,
)
from torch_spyre._inductor.errors import Unsupported

aten = torch.ops.aten
HALF, BFLOAT, FLOAT = torch.float16, torch.bfloat16, torch.float32
pytestmark = pytest.mark.usefixtures("no_fallback")


def integers(shape, dtype=torch.int8, seed=0):
    """Over the whole range, ends included."""
    info = torch.iinfo(dtype)
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(
        info.min, info.max + 1, shape, generator=generator, dtype=dtype
    )


def both(function, *arguments):
    """Eager and compiled results, which are the same."""
    arguments = [poisoned(a) if isinstance(a, torch.Tensor) else a for a in arguments]
    eager = function(*arguments)
    graph = compiled(function, fullgraph=True)(*arguments)
    assert_exact(graph.cpu(), eager.cpu())
    return eager


def through_superdsc(function, *arguments):
    options = {"through_superdsc": True}
    return compiled(function, fullgraph=True, options=options)(*arguments)


WAYS = pytest.mark.parametrize("way", [both, through_superdsc])

SIZES = [
    (1, 16, 16),
    (63, 48, 17),
    (65, 130, 16),
    (2, 1, 5),
    (5, 2500, 129),
    (7, 64, 1),
]


@WAYS
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_int_mm(sizes, transposed, way):
    """The sums of products of 32-bit integers, to the last bit.

    Those of `torch._int_mm` on the CPU, but for K = 1 with a transposed operand, of
    which it gives other numbers on some processors.
    """
    m, k, n = sizes
    x, y = integers((m, k)), integers((n, k) if transposed else (k, n), seed=1)
    x[0] = -128  # the largest products
    right = y.t() if transposed else y
    expected = x.int() @ right.int()
    if k > 1:
        assert_exact(torch._int_mm(x, right), expected)
    result = way(
        lambda a, b: torch._int_mm(a, b.t() if transposed else b),
        x.to("spyre"),
        y.to("spyre"),
    )
    assert_exact(result.cpu(), expected)


@WAYS
@pytest.mark.parametrize("columns", [1, 70])
def test_int_mm_beyond_fp32(columns, way):
    """Sums of more than 24 bits keep their last one."""
    k = 4099
    x = torch.full((3, k), -128, dtype=torch.int8)
    y = torch.full((k, columns), -128, dtype=torch.int8)
    x[:, -1] = 1
    y[-1] = 3
    result = way(torch._int_mm, x.to("spyre"), y.to("spyre")).cpu()
    assert_exact(result, torch._int_mm(x, y))
    assert result[0, 0] == 4098 * 2**14 + 3


def test_int_mm_of_bytes():
    x, y = integers((9, 70), torch.uint8), integers((70, 33), seed=1)
    result = both(torch._int_mm, x.to("spyre"), y.to("spyre"))
    assert_exact(result.cpu(), (x.int() @ y.int()))


@WAYS
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [HALF, BFLOAT, FLOAT], ids=str)
def test_int8_weights(sizes, dtype, way):
    m, k, n = sizes
    x, weight = values((m, k), dtype), integers((n, k), seed=1)
    scales = values((n,), dtype, 2, 0.001, 0.1)
    result = way(
        torch._weight_int8pack_mm,
        x.to("spyre"),
        weight.to("spyre"),
        scales.to("spyre"),
    )
    scale = device_value(scales)
    reference = device_value(x) @ weight.double().t() * scale
    magnitude = device_value(x).abs() @ weight.double().abs().t() * scale
    assert_contraction(result.cpu(), reference, k + 2, magnitude)
    if dtype != FLOAT:
        return
    # PyTorch's kernel sums in its own order.
    expected = torch._weight_int8pack_mm(x, weight, scales).double()
    error = (expected - result.cpu().double()).abs()
    assert (error <= 2 * (k + 4) * 2.0**-24 * magnitude).all()


def pack(numbers):
    """Bytes of two 4-bit numbers, the first of them in the high bits."""
    return (numbers[:, ::2] << 4 | numbers[:, 1::2]).to(torch.uint8)


def int4_case(m, k, n, group, dtype, tiles):
    numbers = torch.randint(
        0, 16, (n, k), generator=torch.Generator().manual_seed(3), dtype=torch.int32
    )
    packed = aten._convert_weight_to_int4pack(pack(numbers).to("spyre"), tiles)
    x = values((m, k), dtype)
    scales = values((k // group, n, 2), dtype, 4, 0.01, 0.3)
    scales[..., 1] -= 0.15
    return numbers, packed, x, scales


INT4 = [
    (1, 32, 8, 32, 2),
    (5, 128, 32, 32, 8),
    (65, 256, 96, 64, 4),
    (3, 256, 40, 128, 8),
    (2, 1024, 64, 256, 2),
    (4, 64, 16, 8, 4),
]


@WAYS
@pytest.mark.parametrize("case", INT4, ids=str)
@pytest.mark.parametrize("dtype", [HALF, BFLOAT, FLOAT], ids=str)
def test_int4_weights(case, dtype, way):
    m, k, n, group, tiles = case
    numbers, packed, x, scales = int4_case(m, k, n, group, dtype, tiles)
    assert packed.dtype == torch.int32
    assert list(packed.shape) == [n // 8, k // (16 * tiles), 32, tiles // 2]
    result = way(
        lambda a, w, s: aten._weight_int4pack_mm(a, w, group, s),
        x.to("spyre"),
        packed,
        scales.to("spyre"),
    )
    stored = device_value(scales)
    scale, zero = (stored[..., i].t().repeat_interleave(group, dim=1) for i in range(2))
    exact = (numbers.double() - 8) * scale + zero
    # The weight is rounded once, to the input's format.
    weight = round_format(exact.float(), dtype).double()
    reference = device_value(x) @ weight.t()
    magnitude = device_value(x).abs() @ weight.abs().t()
    assert_contraction(result.cpu(), reference, k + 2, magnitude)


def test_int4_against_pytorch():
    """The CPU's kernel, which has an order of its own for packed numbers."""
    m, k, n, group = 7, 128, 64, 32
    numbers, packed, x, scales = int4_case(m, k, n, group, FLOAT, 2)
    own = aten._convert_weight_to_int4pack_for_cpu(numbers, 2)
    expected = aten._weight_int4pack_mm_for_cpu(x, own, group, scales)
    result = aten._weight_int4pack_mm(x.to("spyre"), packed, group, scales.to("spyre"))
    torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [32, 64, 40])
def test_where_packed_words_lie(rows):
    """As docs/internals/quantization.md says, so that slices by tiles are weights."""
    k, tiles = 256, 4
    numbers, packed, _, _ = int4_case(1, k, rows, 32, HALF, tiles)
    words = packed.cpu()
    parts, inner = 4, tiles // 2
    for n, word in [(0, 0), (rows - 1, k // 8 - 1), (9, 13), (rows // 2, 5)]:
        part, tile, place = (
            (word // inner) % parts,
            word // (parts * inner),
            word % inner,
        )
        if rows % 32 == 0:
            at = (n // 32 * parts + part, tile, n % 32, place)
        else:
            at = (n // 8, tile, n % 8 * parts + part, place)
        found = [(words[at].item() >> 4 * i) & 15 for i in range(8)]
        assert found == numbers[n, 8 * word : 8 * word + 8].tolist()


def test_int4_weights_stay_small():
    """Eight numbers take 32 bits of device memory where rows fill sticks."""
    _, packed, _, _ = int4_case(1, 1024, 64, 32, HALF, 8)
    size = torch.Size(packed.device_tensor_layout().device_size).numel()
    assert size * 4 == 1024 * 64 // 2


X8, W8 = integers((5, 48)), integers((48, 16), seed=1)
XH, WT, SC = values((5, 48), HALF), integers((16, 48)), torch.ones(16, dtype=HALF)
PACKED = torch.zeros(2, 1, 32, 1, dtype=torch.int32)
GROUPS = torch.ones(1, 16, 2, dtype=HALF)
XK = values((5, 32), HALF)
REFUSED = {
    "int dtype": (torch._int_mm, (X8.float(), W8), "_int_mm of torch.float32"),
    "int sizes": (torch._int_mm, (X8, W8[:40]), "expected matrices that match"),
    "weight dtype": (
        torch._weight_int8pack_mm,
        (XH, WT.half(), SC),
        "with a weight of torch.float16: expected torch.int8",
    ),
    "scales": (
        torch._weight_int8pack_mm,
        (XH, WT, SC[:15]),
        "scales of shape [15]: expected one per row of the weight: [16]",
    ),
    "input": (torch._weight_int8pack_mm, (XH.int(), WT, SC), "an input of torch.int32"),
    "int4 weight": (
        aten._weight_int4pack_mm,
        (XK, PACKED.view(64, 1), 32, GROUPS),
        "expected what _convert_weight_to_int4pack gives",
    ),
    "int4 input": (
        aten._weight_int4pack_mm,
        (XH, PACKED, 32, GROUPS),
        "expected [M, 32]",
    ),
    "group": (aten._weight_int4pack_mm, (XK, PACKED, 12, GROUPS), "groups of 12"),
    "zeros": (
        aten._weight_int4pack_mm,
        (XK, PACKED, 32, GROUPS[:, :8]),
        "scales and zeros of shape [1, 8, 2]: expected [1, 16, 2]",
    ),
    "bytes": (
        aten._convert_weight_to_int4pack,
        (torch.zeros(12, 32, dtype=torch.uint8), 2),
        "a multiple of 8 rows",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("compile_it", [False, True])
def test_refusals(case, compile_it):
    op, arguments, message = REFUSED[case]
    function = compiled(lambda *a: op(*a)) if compile_it else op
    device = [a.to("spyre") if isinstance(a, torch.Tensor) else a for a in arguments]
    with pytest.raises(RuntimeError, match=re.escape(message)):
        function(*device)


def test_unsupported_is_the_error():
    with pytest.raises(Unsupported, match=r"_int_mm of torch\.float32"):
        torch._int_mm(X8.float().to("spyre"), W8.to("spyre"))
