# SPDX-License-Identifier: Apache-2.0
"""Graphs on very large tensors for ``large_shapes.py``, and which are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
import torch.nn.functional as F

f16, bf16, f32 = torch.float16, torch.bfloat16, torch.float32
STICK_BYTES = 128
#: Bytes of an element on the device, spec/layouts.md: 16-bit floats and bool are
#: DL16, int64 is int32.
DEVICE_BYTES = {
    f16: 2,
    bf16: 2,
    torch.bool: 2,
    f32: 4,
    torch.int32: 4,
    torch.int64: 4,
}


#: Refused at the user's line, because a core addresses 256 MiB of a tensor
#: (spec/hardware.md, "addressable span"), and what it needs at once lies farther
#: apart.
LIMIT = "bytes of device memory per core, of which 268435456 can be addressed"
LIMITED: set[str] = set()

#: Refused for the same limit (SDSC-ADDRESS-C4) when planned for SuperDSC, with what
#: keeps the first operation refused from being cut. The last two are not of the format:
#: they are not done yet.
_SUMS = "loops carry nothing, so no tiles cut a reduced dimension"
_STICKS = "a change of stick takes whole tensors, whose gaps count the other way"
_SCANS = "the total of a part would leave its lane: a change of stick of a part"
_LAST = (
    "the last tile of a loop has no equal slices (SDSC-DIM-C2) that are small enough"
)
_TABLE = "a choice among parts of a table, by masks of another type"
_UNKNOWN = "not looked at one by one"
SUPERDSC_LIMITED = {
    "matmul one column": _SUMS,
    "matmul dot 2^25": _SUMS,
    "matmul batched, prime batch": _LAST,
    "matmul vector": _SUMS,
    "pointwise 2^25 rows of one": _STICKS,
    "pointwise cast": _LAST,
    "reduce sum square 1": _SUMS,
    "reduce argmax 1": _SUMS,
    "reduce cumsum 1": _SCANS,
    "reduce cumsum short rows": _SCANS,
    "softmax long rows 1": _SUMS,
    "softmax short rows 0": _SUMS,
    "softmax 1-d": _SUMS,
    "norm layer": _STICKS,
    "norm rms": _LAST,
    "move cat 1": _STICKS,
    "move cat 1-d": _LAST,
    "move reshape odd": _STICKS,
    "move pad": _STICKS,
    "move embedding": _TABLE,
    "move embedding odd": _TABLE,
    "matmul long K": _UNKNOWN,
    "matmul long K, one result": _UNKNOWN,
    "matmul long M": _UNKNOWN,
    "reduce amax square 1": _UNKNOWN,
    "reduce sum wide 1": _UNKNOWN,
    "reduce amax wide 1": _UNKNOWN,
    "reduce sum tall 0": _UNKNOWN,
    "reduce amax tall 0": _UNKNOWN,
    "reduce sum tall 1": _UNKNOWN,
    "reduce amax tall 1": _UNKNOWN,
    "reduce sum 1-d 2^31": _UNKNOWN,
    "reduce sum of all": _UNKNOWN,
    "reduce amax 1-d 2^31": _UNKNOWN,
    "reduce argmax 1-d": _UNKNOWN,
    "reduce mean middle": _UNKNOWN,
    "reduce prod": _UNKNOWN,
    "reduce fp32 sum": _UNKNOWN,
    "reduce var 1": _UNKNOWN,
    "softmax square 1": _UNKNOWN,
    "softmax short rows 1": _UNKNOWN,
    "softmax log": _UNKNOWN,
    "norm layer 3-d": _UNKNOWN,
    "move transpose": _UNKNOWN,
    "move transpose long": _UNKNOWN,
    "move permute 4-d stick": _UNKNOWN,
    "move add transposed": _UNKNOWN,
    "move cat 0": _UNKNOWN,
    "move stack": _UNKNOWN,
    "move slice at an odd place": _UNKNOWN,
    "move slice of columns": _UNKNOWN,
    "move expand": _UNKNOWN,
    "move repeat": _UNKNOWN,
    "move roll": _UNKNOWN,
    "move index select columns": _UNKNOWN,
}


def device_bytes(shape: tuple[int, ...], dtype: torch.dtype = f16) -> int:
    """Bytes of a contiguous tensor in the default layout: its last dimension is
    padded to whole sticks.
    """
    per_stick = STICK_BYTES // DEVICE_BYTES[dtype]
    *outer, last = shape or (1,)
    return prod(outer) * -(-last // per_stick) * STICK_BYTES


@dataclass
class Case:
    """A function, its arguments, and what follows from their shapes."""

    name: str
    function: Callable[..., torch.Tensor]
    arguments: list[tuple[tuple[int, ...], torch.dtype]]
    result: tuple[int, ...]
    macs: int = 0
    result_dtype: torch.dtype = f16
    #: Bytes of each argument that must be read at least; None: all of it.
    least_read: list[int | None] | None = None
    #: Whether each argument is read exactly once, and the result written once.
    once: bool = False


# --- cases ---


def matmul(name: str, a: tuple[int, ...], b: tuple[int, ...], **more: Any) -> Case:
    batch = torch.broadcast_shapes(a[:-2], b[:-2])
    result = (*batch, a[-2], b[-1])
    macs = prod(result) * a[-1]
    return Case(
        f"matmul {name}", torch.matmul, [(a, f16), (b, f16)], result, macs, **more
    )


def pointwise(
    name: str, function: Callable, shapes: list, dtype: torch.dtype = f16, **more: Any
) -> Case:
    result = tuple(torch.broadcast_shapes(*shapes))
    more.setdefault("result_dtype", dtype)
    # What is broadcast may be read again; a column may become dense.
    more.setdefault("once", result[-1] > 1 and all(s == result for s in shapes))
    arguments = [(s, dtype) for s in shapes]
    return Case(f"pointwise {name}", function, arguments, result, **more)


def reduction(
    name: str,
    function: Callable,
    shape: tuple[int, ...],
    dims: int | list[int],
    dtype: torch.dtype = f16,
    **more: Any,
) -> Case:
    dims = [dims] if isinstance(dims, int) else dims
    kept = tuple(s for d, s in enumerate(shape) if d not in dims)
    more.setdefault("result_dtype", dtype)
    return Case(f"reduce {name}", function, [(shape, dtype)], kept, **more)


def attention(
    name: str,
    q: tuple[int, int, int, int],
    kv: tuple[int, int, int, int],
    causal: bool = False,
    masked: bool = False,
) -> Case:
    b, h, s, d = q
    t = kv[2]

    def function(q, k, v, mask=None):
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=kv[1] != h
        )

    arguments = [(q, f16), (kv, f16), (kv, f16)]
    if masked:
        arguments.append(((s, t), f16))
    return Case(f"attention {name}", function, arguments, q, macs=2 * b * h * s * t * d)


def make_matmuls() -> list[Case]:
    return [
        # The shape of the report: 2^40 multiply-accumulates.
        matmul("batched 2x2", (2, 2, 2048, 2048), (2, 2, 2048, 65536)),
        matmul("cube 2^33", (2048, 2048), (2048, 2048)),
        matmul("wide 2^36", (2048, 4096), (4096, 8192)),
        matmul("primes", (2039, 4099), (4099, 2053)),
        matmul("all odd", (4097, 2049), (2049, 1025)),
        matmul("one row", (1, 32768), (32768, 65536)),
        matmul("one row, primes", (1, 32749), (32749, 65537)),
        matmul("three rows", (3, 65537), (65537, 16411)),
        matmul("one column", (65537, 32749), (32749, 1)),
        matmul("dot 2^25", (1, 1 << 25), (1 << 25, 1)),
        matmul("long K", (63, (1 << 21) + 7), ((1 << 21) + 7, 65)),
        matmul("long K, one result", (7, (1 << 24) + 1), ((1 << 24) + 1, 5)),
        matmul("long M", ((1 << 24) + 3, 65), (65, 63)),
        matmul("long N", (5, 127), (127, (1 << 24) + 9)),
        matmul("inner 3", (65537, 3), (3, 32771)),
        matmul("inner 2", (65537, 2), (2, 32771)),
        matmul("batch 2^20", (1 << 20, 16, 16), (1 << 20, 16, 16)),
        matmul("batch of primes", (1009, 127, 131), (1009, 131, 257)),
        matmul("batch shared right", (64, 1023, 513), (513, 1025)),
        matmul("batch shared left", (1, 1023, 513), (64, 513, 1025)),
        matmul("batch broadcast both", (8, 1, 1023, 513), (1, 8, 513, 1025)),
        matmul("batch of matrices", (4, 16, 2048, 128), (4, 16, 128, 2048)),
        matmul("batched, K spans", (2, 2, 1024, 4096), (2, 2, 4096, 32768)),
        matmul("batched, odd K", (3, 5, 513, 2047), (3, 5, 2047, 4099)),
        matmul("batched, wide", (2, 4, 128, 1024), (2, 4, 1024, 262144)),
        matmul("batched, prime batch", (7, 257, 4099), (7, 4099, 32771)),
        matmul("batched, tall", (2, 2, 65536, 2048), (2, 2, 2048, 1024)),
        matmul("batched, 3-d", (3, 2048, 2048), (3, 2048, 65536)),
        matmul("vector", (1 << 15, 1 << 16), ((1 << 16), 1)),
        Case(
            "matmul transposed right",
            lambda a, b: a @ b.mT,
            [((2, 2, 2048, 2048), f16), ((2, 2, 65536, 2048), f16)],
            (2, 2, 2048, 65536),
            macs=4 * 2048 * 65536 * 2048,
        ),
        Case(
            "matmul transposed left",
            lambda a, b: a.mT @ b,
            [((2, 2, 2048, 2049), f16), ((2, 2, 2048, 65536), f16)],
            (2, 2, 2049, 65536),
            macs=4 * 2049 * 65536 * 2048,
        ),
        Case(
            "matmul linear with bias",
            F.linear,
            [((8, 512, 4096), f16), ((16384, 4096), f16), ((16384,), f16)],
            (8, 512, 16384),
            macs=8 * 512 * 4096 * 16384,
        ),
        Case(
            "matmul addmm",
            torch.addmm,
            [((4099,), f16), ((1031, 16411), f16), ((16411, 4099), f16)],
            (1031, 4099),
            macs=1031 * 16411 * 4099,
        ),
        Case(
            "matmul chain",
            lambda x, a, b: torch.relu(x @ a) @ b,
            [((2048, 2048), f16), ((2048, 65536), f16), ((65536, 2048), f16)],
            (2048, 2048),
            macs=2 * 2048 * 2048 * 65536,
        ),
    ]


def make_pointwise() -> list[Case]:
    def add(x, y):
        return x + y

    big = 1 << 31
    return [
        pointwise("1-d 2^31", torch.exp, [(big,)]),
        pointwise("1-d 2^31 + 5", torch.exp, [(big + 5,)]),
        pointwise("1-d 2^32 - 1", torch.neg, [(2 * big - 1,)]),
        pointwise("1-d 2^32 + 63", torch.neg, [(2 * big + 63,)]),
        pointwise("1-d prime", torch.neg, [(2147483659,)]),
        pointwise("2-d add", add, [(65536, 65537), (65536, 65537)]),
        pointwise("2-d odd", add, [(46349, 46351), (46349, 46351)]),
        pointwise("two rows of 2^30", torch.exp, [(2, 1 << 30)]),
        pointwise("2^25 rows of one", torch.exp, [((1 << 25) + 1, 1)]),
        pointwise("2^25 rows of 65", torch.exp, [((1 << 24) + 1, 65)]),
        pointwise("broadcast a row", add, [(65537, 32771), (32771,)]),
        pointwise("broadcast a column", add, [(65537, 32771), (65537, 1)]),
        pointwise("outer sum", add, [(65537, 1), (1, 32771)]),
        pointwise("4-d", add, [(7, 31, 1009, 10007), (7, 1, 1009, 10007)]),
        pointwise("fp32 2^31", torch.exp, [(32768, 65536)], f32),
        pointwise("int32 2^31", add, [(46349, 46351), (46349, 46351)], torch.int32),
        pointwise("int64 2^31", add, [(big + 3,), (big + 3,)], torch.int64),
        pointwise("bool 2^31", lambda x: x > 0, [(big + 3,)], result_dtype=torch.bool),
        pointwise("cast", lambda x: x.float(), [(big + 65,)], result_dtype=f32),
        # Of several operations, each reads its operands.
        pointwise(
            "where",
            lambda x, y: torch.where(x > y, x, y),
            [(65537, 32771)] * 2,
            once=False,
        ),
        pointwise(
            "chain",
            lambda x, y: torch.sigmoid(x * y + 1) - x,
            [(65537, 32771)] * 2,
            once=False,
        ),
    ]


def make_reductions() -> list[Case]:
    wide, tall = (33, (1 << 26) + 7), ((1 << 26) + 7, 33)
    square = (46349, 46351)
    cases = []
    for label, shape in (("square", square), ("wide", wide), ("tall", tall)):
        for dim in (0, 1):
            cases += [
                reduction(f"sum {label} {dim}", lambda x, d=dim: x.sum(d), shape, dim),
                reduction(
                    f"amax {label} {dim}", lambda x, d=dim: x.amax(d), shape, dim
                ),
            ]
    big = (1 << 31) + 3
    return cases + [
        reduction("sum 1-d 2^31", lambda x: x.sum(), (big,), 0),
        reduction("sum of all", lambda x: x.sum(), square, [0, 1]),
        reduction("amax 1-d 2^31", lambda x: x.amax(), (big,), 0),
        reduction(
            "argmax 1",
            lambda x: x.argmax(1),
            square,
            1,
            result_dtype=torch.int64,
        ),
        reduction(
            "argmax 1-d",
            lambda x: x.argmax(0),
            (big,),
            0,
            result_dtype=torch.int64,
        ),
        reduction("mean 0", lambda x: x.mean(0), square, 0),
        reduction("mean middle", lambda x: x.mean(1), (129, 16411, 1031), 1),
        reduction("prod", lambda x: x.prod(1), (65537, 32771), 1),
        reduction("any", lambda x: x.any(0), square, 0, torch.bool),
        reduction("fp32 sum", lambda x: x.sum(1), (32771, 65537), 1, f32),
        reduction("sum 0 and 2", lambda x: x.sum((0, 2)), (129, 16411, 1031), [0, 2]),
        Case(
            "reduce cumsum 1",
            lambda x: x.cumsum(1),
            [((65537, 32771), f16)],
            (65537, 32771),
        ),
        Case(
            "reduce cumsum 0",
            lambda x: x.cumsum(0),
            [((65537, 32771), f16)],
            (65537, 32771),
        ),
        Case(
            "reduce cumsum short rows",
            lambda x: x.cumsum(1),
            [(((1 << 24) + 1, 65), f16)],
            ((1 << 24) + 1, 65),
        ),
        Case(
            "reduce var 1",
            lambda x: x.var(1),
            [((65537, 32771), f16)],
            (65537,),
        ),
    ]


def make_normalizations() -> list[Case]:
    cases = []
    for label, shape in (
        ("square", (46349, 46351)),
        ("long rows", (31, (1 << 26) + 7)),
        ("short rows", ((1 << 24) + 1, 65)),
    ):
        for dim in (0, 1):
            cases.append(
                Case(
                    f"softmax {label} {dim}",
                    lambda x, d=dim: torch.softmax(x, d),
                    [(shape, f16)],
                    shape,
                )
            )
    rows = (65537, 32771)
    vectors = [((32771,), f16)] * 2
    return cases + [
        Case("softmax 1-d", lambda x: x.softmax(0), [((1 << 31,), f16)], (1 << 31,)),
        Case(
            "softmax log",
            lambda x: x.log_softmax(1),
            [(rows, f16)],
            rows,
        ),
        Case(
            "norm layer",
            lambda x, w, b: F.layer_norm(x, x.shape[1:], w, b),
            [(rows, f16), *vectors],
            rows,
        ),
        Case(
            "norm layer 3-d",
            lambda x: F.layer_norm(x, x.shape[1:]),
            [((1021, 2047, 1031), f16)],
            (1021, 2047, 1031),
        ),
        Case(
            "norm rms",
            lambda x, w: F.rms_norm(x, x.shape[1:], w),
            [(rows, f16), vectors[0]],
            rows,
        ),
    ]


def make_attentions() -> list[Case]:
    return [
        attention("2^36", (1, 8, 8192, 64), (1, 8, 8192, 64)),
        attention("causal", (2, 4, 8192, 64), (2, 4, 8192, 64), causal=True),
        attention("prime keys", (1, 7, 4099, 64), (1, 7, 8209, 64)),
        attention("grouped", (1, 32, 4096, 128), (1, 4, 4096, 128)),
        attention("masked", (1, 8, 4097, 64), (1, 8, 4097, 64), masked=True),
        attention("one query", (64, 32, 1, 128), (64, 32, 8191, 128)),
        attention("long keys", (1, 1, 33, 64), (1, 1, (1 << 20) + 1, 64)),
    ]


def make_movements() -> list[Case]:
    rows = (65537, 32771)
    big = 1 << 31

    def once(name, function, arguments, result, **more):
        arguments = [a if isinstance(a[0], tuple) else (a, f16) for a in arguments]
        return Case(f"move {name}", function, arguments, result, **more)

    return [
        once("transpose", lambda x: x.t().contiguous(), [rows], rows[::-1]),
        once(
            "transpose long",
            lambda x: x.t().contiguous(),
            [(65, big >> 6)],
            (big >> 6, 65),
        ),
        once(
            "permute 4-d",
            lambda x: x.permute(0, 2, 1, 3).contiguous(),
            [(33, 1021, 65, 1031)],
            (33, 65, 1021, 1031),
        ),
        once(
            "permute 4-d stick",
            lambda x: x.permute(3, 0, 2, 1).contiguous(),
            [(33, 1021, 65, 1031)],
            (1031, 33, 65, 1021),
        ),
        once("add transposed", lambda x, y: x + y.t(), [rows, rows[::-1]], rows),
        once("cat 0", lambda x, y: torch.cat([x, y]), [rows, rows], (131074, 32771)),
        once("cat 1", lambda x, y: torch.cat([x, y], 1), [rows, rows], (65537, 65542)),
        once(
            "cat 1-d",
            lambda x, y: torch.cat([x, y]),
            [(big + 5,), (big - 5,)],
            (2 * big,),
        ),
        once("stack", lambda x, y: torch.stack([x, y]), [rows, rows], (2, *rows)),
        once(
            "flatten",
            lambda x: x.reshape(-1).neg(),
            [(65536, 65536)],
            (1 << 32,),
        ),
        once(
            "reshape",
            lambda x: x.view(65536, 65536) * 2,
            [(1 << 32,)],
            (65536, 65536),
        ),
        once(
            "reshape odd",
            lambda x: x.reshape(32771, 65537).neg(),
            [rows],
            (32771, 65537),
        ),
        once(
            "slice behind 2^32",
            lambda x: x[(1 << 32) :].exp(),
            [((1 << 32) + (1 << 31),)],
            (1 << 31,),
            least_read=[1 << 32],
        ),
        once(
            "slice at an odd place",
            lambda x: x[big + 3 :].exp(),
            [(2 * big + 77,)],
            (big + 74,),
            least_read=[2 * (big + 74)],
        ),
        once(
            "slice of columns",
            lambda x: x[:, 1:32769].neg(),
            [(65537, 32771)],
            (65537, 32768),
            least_read=[65537 * 32768 * 2],
        ),
        once(
            "expand",
            lambda x: x.expand(65537, 32771).contiguous(),
            [(1, 32771)],
            (65537, 32771),
        ),
        once("flip", lambda x: x.flip(0), [rows], rows),
        once("repeat", lambda x: x.repeat(4099, 1), [(129, 4099)], (528771, 4099)),
        once("pad", lambda x: F.pad(x, (1, 2, 3, 4)), [rows], (65544, 32774)),
        once("roll", lambda x: x.roll(5, 0), [rows], rows),
        once("triu", lambda x: x.triu(), [rows], rows, least_read=[0]),
        once(
            "embedding",
            lambda i, w: F.embedding(i, w),
            [((1 << 20,), torch.int64), ((1 << 24, 128), f16)],
            (1 << 20, 128),
            least_read=[None, 0],
        ),
        once(
            "embedding odd",
            lambda i, w: F.embedding(i, w),
            [((129, 16411), torch.int64), ((2097169, 1031), f16)],
            (129, 16411, 1031),
            least_read=[None, 0],
        ),
        once(
            "index select",
            lambda x, i: x.index_select(0, i),
            [rows, ((65539,), torch.int64)],
            (65539, 32771),
            least_read=[0, None],
        ),
        once(
            "index select columns",
            lambda x, i: x.index_select(1, i),
            [rows, ((32771,), torch.int64)],
            rows,
            least_read=[0, None],
        ),
        once("full", lambda x: torch.full_like(x, 3.0), [rows], rows, least_read=[0]),
        once(
            "arange",
            lambda x: torch.arange(big - 5, device="spyre") + x,
            [((1,), torch.int64)],
            (big - 5,),
            result_dtype=torch.int64,
        ),
    ]


def make_cases() -> dict[str, Case]:
    made = [
        *make_matmuls(),
        *make_pointwise(),
        *make_reductions(),
        *make_normalizations(),
        *make_attentions(),
        *make_movements(),
    ]
    cases = {case.name: case for case in made}
    assert len(cases) == len(made), "two cases have one name"
    assert set(cases) >= LIMITED | set(SUPERDSC_LIMITED), (
        "a case that is listed as refused is not there"
    )
    return cases
