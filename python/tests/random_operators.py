# SPDX-License-Identifier: Apache-2.0
"""Operators of random programs that compute; those of ``random_movement`` besides."""

from __future__ import annotations

import torch
from numerics import LARGEST_EXACT
from random_movement import (
    OPERATORS,
    computes,
    moves,
    part_of,
    writable,
    written,
)
from random_programs import EXACT_SUM, Draw, Nothing

__all__ = ["OPERATORS"]


@computes
def update(d: Draw) -> str:
    x = d.number_tensor(writable)
    number = d.number(d[x].dtype)
    if "." in number and not d[x].dtype.is_floating_point:
        raise Nothing
    method = d.choice(["add_", "sub_", "mul_", "clamp_min_", "clamp_max_"])
    return f"{part_of(d, x)}.{method}({number})"


@computes
def index_add(d: Draw) -> str:
    x = d.value(lambda t: t.dim() and t.dtype.is_floating_point)
    dim = d.dim(x)
    index, values = written(d, x, dim, False)
    method = d.choice(["index_add"] + ["index_add_"] * writable(d[x]))
    return f"{x}.{method}({dim}, {index}, {values})"


@computes
def index_put_accumulate(d: Draw) -> str:
    x = d.value(lambda t: t.dim() and t.dtype.is_floating_point)
    index, values = written(d, x, 0, False)
    return f"{x}.index_put(({index},), {values}, accumulate=True)"


# --- elements ---


@computes
def with_number(d: Draw) -> str:
    x = d.number_tensor()
    number = d.number(d[x].dtype)
    return d.choice(["{0} + {1}", "{1} - {0}", "{0} * {1}", "{0}.sub({1})"]).format(
        x, number
    )


@computes
def compare_number(d: Draw) -> str:
    x = d.number_tensor()
    sign = d.choice(["<", "<=", ">", ">=", "==", "!="])
    return f"{x} {sign} {d.number(d[x].dtype)}"


@computes
def clamp(d: Draw) -> str:
    x = d.number_tensor()
    return f"{x}.clamp({d.number(d[x].dtype)}, {d.number(d[x].dtype)})"


@computes
def unary(d: Draw) -> str:
    x = d.number_tensor()
    name = d.choice(["neg", "abs", "sign", "relu", "square", "floor", "round"])
    return f"{x}.{name}()"


@computes
def binary(d: Draw) -> str:
    x = d.number_tensor()
    name = d.choice(["add", "sub", "mul", "maximum", "minimum", "eq", "gt", "fmod"])
    if name == "fmod":
        return f"{x}.fmod({d.choice([2, 3, 5])})"
    return f"torch.{name}({x}, {d.partner(x)})"


@computes
def mixed(d: Draw) -> str:
    x = d.value()
    y = d.argument([n if d.chance(0.8) else 1 for n in d[x].shape])
    return f"{x} {d.choice(['+', '*'])} {y}"


@computes
def logic(d: Draw) -> str:
    x = d.value(lambda t: not t.dtype.is_floating_point)
    if d.chance(0.2):
        return f"~{x}"
    return f"{x} {d.choice(['&', '|', '^'])} {d.partner(x)}"


@computes
def divide(d: Draw) -> str:
    x = d.value(lambda t: t.dtype in (torch.int32, torch.int64))
    form = d.choice(["{0} // {1}", "{0} % {1}", "{0}.div({1}, rounding_mode='trunc')"])
    return form.format(x, d.choice([2, 3, 7, -2, -5]))


@computes
def addcmul(d: Draw) -> str:
    x = d.number_tensor()
    y, z = d.partner(x), d.partner(x)
    number = d.choice([-2, 1, 2, 3])
    d.within(f"{y}.double() * {z} * {number}", LARGEST_EXACT[d[x].dtype])
    return f"torch.addcmul({x}, {y}, {z}, value={number})"


@computes
def lerp(d: Draw) -> str:
    x = d.value(lambda t: t.dtype.is_floating_point)
    y = d.partner(x)
    weight = float(d.choice([-1, 0, 1, 2, 3]))
    d.within(f"({y}.double() - {x}) * {weight}", LARGEST_EXACT[d[x].dtype])
    d.within(f"({y}.double() - {x}) * {1 - weight}", LARGEST_EXACT[d[x].dtype])
    return f"torch.lerp({x}, {y}, {weight})"


@computes
def convert(d: Draw) -> str:
    x = d.value()
    dtype = d.choice(list(LARGEST_EXACT))
    if dtype != torch.bool:
        d.within(f"{x}.double()", LARGEST_EXACT[dtype])
    return f"{x}.to({dtype})"


# --- reductions and sorting ---


def reduced(d: Draw, x: str) -> tuple[list[int], str]:
    dims = d.random.sample(range(d[x].dim()), d.integer(1, d[x].dim()))
    return dims, str(d.chance(0.5))


@computes
def total(d: Draw) -> str:
    x = d.ranked()
    dims, keep = reduced(d, x)
    d.within(f"{x}.double().abs().sum({dims})", EXACT_SUM)
    return f"{x}.sum({dims}, {keep})"


@computes
def cumsum(d: Draw) -> str:
    x = d.ranked()
    dim = d.dim(x)
    d.within(f"{x}.double().abs().cumsum({dim})", LARGEST_EXACT[d[x].dtype] * 4)
    return f"{x}.cumsum({dim})"


@computes
def count_nonzero(d: Draw) -> str:
    x = d.ranked()
    return f"{x}.count_nonzero({d.dim(x)})"


@moves
def extremum(d: Draw) -> str:
    x = d.ranked()
    dims, keep = reduced(d, x)
    if d[x].dtype == torch.bool:
        return f"{x}.{d.choice(['any', 'all'])}({dims[0]}, {keep})"
    return f"{x}.{d.choice(['amax', 'amin'])}({dims}, {keep})"


def distinct(d: Draw) -> tuple[str, int]:
    """A tensor, and a dimension along which no two values are equal."""

    def dims(t: torch.Tensor) -> list[int]:
        if t.dtype == torch.bool or not t.numel():
            return []
        ordered = [(i, t.double().sort(i)[0]) for i in range(t.dim())]
        return [i for i, s in ordered if bool((s.diff(dim=i) != 0).all())]

    x = d.value(dims)
    return x, d.choice(dims(d[x]))


@moves
def arg_extremum(d: Draw) -> str:
    x, dim = distinct(d)
    name = d.choice(["argmax", "argmin", "max", "min"])
    return f"{x}.{name}({dim}, {d.chance(0.5)})"


@moves
def topk(d: Draw) -> str:
    x, dim = distinct(d)
    count = d.integer(1, min(d[x].shape[dim], 9 if d.chance(0.8) else 64))
    is_largest = d[x].dtype == torch.float32 or d.chance(0.5)
    return f"{x}.topk({count}, {dim}, {is_largest})"


# --- contractions ---


def factor(d: Draw, rank: tuple[int, ...]) -> str:
    return d.value(lambda t: t.dtype.is_floating_point and t.dim() in rank)


@computes
def matmul(d: Draw) -> str:
    x = factor(d, (1, 2, 3, 4))
    t = d[x]
    shape = [t.shape[-1], d.choice([1, 2, 5, 63, 64, 65])]
    if t.dim() > 2 and d.chance(0.4):
        shape = [*t.shape[:-2], *shape]
    if d.chance(0.15):
        shape = shape[-2:-1]
    y = d.argument(shape, t.dtype)
    d.within(f"{x}.double().abs() @ {y}.double().abs()", EXACT_SUM)
    return f"{x} @ {y}"


@computes
def bmm(d: Draw) -> str:
    x = factor(d, (3,))
    batch, rows, inner = d[x].shape
    columns = d.choice([1, 3, 64, 65])
    y = d.argument((batch, columns, inner), d[x].dtype)
    y = f"{y}.transpose(1, 2)"
    d.within(f"{x}.double().abs() @ {y}.double().abs()", EXACT_SUM)
    if d.chance(0.4):
        z = d.argument((1, rows, columns), d[x].dtype)
        d.within(f"{x}.double() @ {y}.double()", LARGEST_EXACT[d[x].dtype])
        return f"torch.baddbmm({z}, {x}, {y})"
    return f"torch.bmm({x}, {y})"


@computes
def addmm(d: Draw) -> str:
    x = factor(d, (2,))
    columns = d.choice([1, 3, 64, 65])
    y = d.argument((columns, d[x].shape[1]), d[x].dtype)
    z = d.argument((columns,), d[x].dtype)
    d.within(f"{x}.double().abs() @ {y}.double().abs().t()", LARGEST_EXACT[d[x].dtype])
    if d.chance(0.5):
        return f"torch.nn.functional.linear({x}, {y}, {z})"
    return f"torch.addmm({z}, {x}, {y}.t(), beta={d.choice([1, 2, -1])})"


@computes
def outer(d: Draw) -> str:
    x = factor(d, (1,))
    return f"torch.outer({x}, {d.argument((d.choice([1, 5, 65]),), d[x].dtype)})"


@computes
def einsum(d: Draw) -> str:
    x = factor(d, (2,))
    y = d.argument((d.choice([1, 3, 65]), d[x].shape[1]), d[x].dtype)
    d.within(f"{x}.double().abs() @ {y}.double().abs().t()", EXACT_SUM)
    return f"torch.einsum('ik,jk->ji', {x}, {y})"
