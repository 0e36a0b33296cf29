# SPDX-License-Identifier: Apache-2.0
"""Operators of random programs that move values; views and writes to them.

``OPERATORS``: name -> (operator, whether it only moves values, weight); those of
``random_operators`` join. An operator draws operands and gives an expression. It may
give an expression that is wrong, as of sizes that do not fit: the CPU refuses
it, and another one is drawn. What it must see to is that values stay whole numbers,
and that what is computed on the way is exact (``Draw.within``).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from random_programs import Draw, Nothing

Operator = Callable[[Draw], str]
OPERATORS: dict[str, tuple[Operator, bool, float]] = {}
SMALL = 1 << 10


def moves(operator: Operator) -> Operator:
    OPERATORS[operator.__name__] = operator, True, 1.0
    return operator


def computes(operator: Operator) -> Operator:
    OPERATORS[operator.__name__] = operator, False, 2.0
    return operator


def sizes(name: str, d: Draw) -> list[int]:
    return list(d[name].shape)


def colons(dim: int) -> str:
    return ":, " * dim


# --- views ---


@moves
def narrow(d: Draw) -> str:
    x = d.ranked()
    dim = d.dim(x)
    length = d.integer(0 if d.chance(0.1) else 1, d[x].shape[dim])
    return f"{x}.narrow({dim}, {d.place(d[x].shape[dim] - length)}, {length})"


@moves
def slice_steps(d: Draw) -> str:
    x = d.ranked()
    places = []
    for size in d[x].shape[: d.integer(1, d[x].dim())]:
        start = d.integer(0, size)
        stop = d.choice(["", d.integer(start, size), -1])
        places.append(f"{start}:{stop}:{d.choice([1, 1, 2, 3, 5])}")
    return f"{x}[{', '.join(places)}]"


@moves
def select(d: Draw) -> str:
    x = d.ranked()
    dim = d.dim(x)
    return f"{x}.select({dim}, {d.place(d[x].shape[dim] - 1)})"


@moves
def chunk(d: Draw) -> str:
    x = d.ranked()
    return f"{x}.chunk({d.integer(2, 4)}, {d.dim(x)})"


@moves
def split(d: Draw) -> str:
    x = d.ranked()
    dim = d.dim(x)
    size = d[x].shape[dim]
    if d.chance(0.5):
        return f"torch.tensor_split({x}, {d.integer(2, 4)}, {dim})"
    first = d.integer(0, size)
    return f"{x}.split([{first}, {size - first}], {dim})"


@moves
def unbind(d: Draw) -> str:
    x = d.value(lambda t: t.dim() and min(t.shape) < 4)
    dim = d.choice([i for i, n in enumerate(d[x].shape) if 0 < n < 4])
    return f"{x}.unbind({dim})"


@moves
def unfold(d: Draw) -> str:
    x = d.ranked()
    dim = d.dim(x)
    size = d.integer(1, min(d[x].shape[dim], 9))
    return f"{x}.unfold({dim}, {size}, {d.integer(1, 4)})"


@moves
def diagonal(d: Draw) -> str:
    x = d.ranked(2)
    first, second = d.random.sample(range(d[x].dim()), 2)
    return f"{x}.diagonal({d.integer(-3, 3)}, {first}, {second})"


@moves
def as_strided(d: Draw) -> str:
    # Somewhere between where a tensor starts and where it ends. Not of all results:
    # ``select_scatter`` has the offset of its argument on the CPU. Not of gaps: a
    # compiled update of the argument leaves them out.
    x = d.value(lambda t: t.numel() > 1)
    t = d[x]
    last = sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))
    is_whole = t.untyped_storage().nbytes() == t.numel() * t.element_size()
    if last + 1 != t.numel():
        raise Nothing
    if not (x.startswith("x") or (is_whole and t.is_contiguous())):
        raise Nothing
    columns = d.integer(1, last + 1)
    step = d.integer(1, 3)
    rows = d.integer(0, (last + 1 - columns) // step) + 1
    rest = last - (columns - 1) - (rows - 1) * step
    if rest < 0 or rows * columns > SMALL:
        raise Nothing
    offset = t.storage_offset() + d.choice([0, rest, d.integer(0, rest)])
    return f"{x}.as_strided(({rows}, {columns}), ({step}, 1), {offset})"


@moves
def movedim(d: Draw) -> str:
    x = d.ranked(2)
    source, target = (d.random.sample(range(d[x].dim()), 2) for _ in range(2))
    return f"{x}.movedim({source}, {target})"


@moves
def transpose(d: Draw) -> str:
    x = d.ranked(2)
    return f"{x}.transpose({d.dim(x)}, {d.dim(x)})"


@moves
def squeeze(d: Draw) -> str:
    x = d.value()
    if d.chance(0.5):
        return f"{x}.unsqueeze({d.integer(0, d[x].dim())})"
    return f"{x}.squeeze()" if d.chance(0.5) else f"{x}.squeeze({d.dim(x)})"


@moves
def reshape(d: Draw) -> str:
    x = d.value(lambda t: t.numel() > 0)
    total = d[x].numel()
    factors = [n for n in range(1, 17) if total % n == 0]
    first = d.choice(factors)
    second = d.choice([n for n in factors if total % (first * n) == 0])
    order = [first, second, -1]
    d.random.shuffle(order)
    method = d.choice(["reshape", "reshape", "view"])
    return f"{x}.{method}({order})"


@moves
def flatten(d: Draw) -> str:
    x = d.ranked(2)
    start = d.integer(0, d[x].dim() - 2)
    return f"{x}.flatten({start}, {d.integer(start + 1, d[x].dim() - 1)})"


@moves
def unflatten(d: Draw) -> str:
    x = d.ranked()
    dim = d.dim(x)
    size = d[x].shape[dim]
    factor = d.choice([n for n in range(1, 9) if size and size % n == 0])
    return f"{x}.unflatten({dim}, ({factor}, {size // factor}))"


@moves
def expand(d: Draw) -> str:
    x = d.value(lambda t: t.numel() <= SMALL)
    wanted = [n if n != 1 or d.chance(0.3) else d.integer(1, 5) for n in d[x].shape]
    return f"{x}.expand({[d.integer(1, 3), *wanted]})"


# --- copies at other places ---


@moves
def repeat(d: Draw) -> str:
    x = d.value(lambda t: t.numel() <= SMALL)
    times = [d.integer(1, 3) for _ in d[x].shape]
    if d.chance(0.3):
        times.insert(0, 2)
    return f"{x}.{d.choice(['repeat', 'tile'])}({times})"


@moves
def repeat_interleave(d: Draw) -> str:
    x = d.ranked()
    return f"{x}.repeat_interleave({d.integer(1, 3)}, {d.dim(x)})"


@moves
def flip(d: Draw) -> str:
    x = d.ranked()
    dims = d.random.sample(range(d[x].dim()), d.integer(1, d[x].dim()))
    return f"{x}.flip({dims})"


@moves
def rot90(d: Draw) -> str:
    x = d.ranked(2)
    return f"{x}.rot90({d.integer(-1, 3)}, {d.random.sample(range(d[x].dim()), 2)})"


@moves
def roll(d: Draw) -> str:
    x = d.ranked()
    if d.chance(0.2):
        return f"{x}.roll({d.integer(-3, 70)})"
    dims = d.random.sample(range(d[x].dim()), d.integer(1, d[x].dim()))
    shifts = [d.integer(-3, 70) for _ in dims]
    return f"{x}.roll({shifts}, {dims})"


@moves
def stack(d: Draw) -> str:
    x = d.value()
    y = d.value(lambda t: t.shape == d[x].shape)
    return f"torch.stack([{x}, {y}, {x}], {d.integer(0, d[x].dim())})"


@moves
def cat(d: Draw) -> str:
    x = d.ranked()
    dim = d.dim(x)
    shape = sizes(x, d)
    shape[dim] = d.choice([0, 1, 2, 63, 64, 65])
    y = d.argument(shape, d[x].dtype)
    return f"torch.cat({d.choice([[x, y], [y, x], [y, x, y]])}, {dim})".replace("'", "")


@moves
def pad(d: Draw) -> str:
    x = d.ranked()
    kept = d.integer(1, d[x].dim())
    widths = [d.integer(-2, 4) for _ in range(2 * kept)]
    value = d.number(d[x].dtype)
    return f"torch.nn.functional.pad({x}, {widths}, value={value})"


@moves
def pad_from_inside(d: Draw) -> str:
    x = d.ranked(2, 4)
    widths = [d.integer(0, 2), d.integer(0, 3)]
    mode = d.choice(["reflect", "replicate", "circular"])
    return f"torch.nn.functional.pad({x}, {widths}, mode='{mode}')"


@moves
def triangle(d: Draw) -> str:
    x = d.ranked(2)
    return f"{x}.{d.choice(['tril', 'triu'])}({d.integer(-3, 3)})"


@moves
def diag_embed(d: Draw) -> str:
    x = d.value(lambda t: 0 < t.dim() < 4 and t.shape[-1] <= 31)
    return f"{x}.diag_embed({d.integer(-2, 2)})"


@moves
def clone(d: Draw) -> str:
    x = d.value()
    return f"{x}.{d.choice(['clone', 'contiguous'])}()"


@moves
def masked_fill(d: Draw) -> str:
    x = d.value()
    mask = d.mask(x)
    return f"{x}.masked_fill({mask}, {d.number(d[x].dtype)})"


@moves
def where(d: Draw) -> str:
    x = d.value()
    return f"torch.where({d.mask(x)}, {x}, {d.partner(x)})"


# --- indices ---


@moves
def index_select(d: Draw) -> str:
    x = d.ranked()
    dim = d.dim(x)
    index = d.indices((d.choice([1, 2, 5, 63, 65]),), d[x].shape[dim])
    return f"{x}.index_select({dim}, {index})"


@moves
def gather(d: Draw) -> str:
    x = d.ranked()
    dim = d.dim(x)
    shape = [n if d.chance(0.7) or not n else d.integer(1, n) for n in d[x].shape]
    shape[dim] = d.choice([1, 2, 7, 64])
    return f"{x}.gather({dim}, {d.indices(tuple(shape), d[x].shape[dim])})"


@moves
def take_along_dim(d: Draw) -> str:
    x = d.ranked()
    dim = d.dim(x)
    shape = [n if d.chance(0.7) else 1 for n in d[x].shape]
    shape[dim] = d.choice([1, 2, 7, 64])
    index = d.indices(tuple(shape), d[x].shape[dim])
    return f"torch.take_along_dim({x}, {index}, {dim})"


@moves
def index(d: Draw) -> str:
    x = d.ranked()
    dim = d.dim(x)
    first = d.indices((d.choice([1, 2, 5, 65]),), d[x].shape[dim])
    if dim + 1 < d[x].dim() and d.chance(0.4):
        second = d.indices((1,), d[x].shape[dim + 1])
        return f"{x}[{colons(dim)}{first}, {second}]"
    return f"{x}[{colons(dim)}{first}]"


@moves
def take(d: Draw) -> str:
    x = d.value(lambda t: t.numel() > 0)
    return f"{x}.take({d.indices((d.choice([1, 3, 64]),), d[x].numel())})"


@moves
def embedding(d: Draw) -> str:
    x = d.value(lambda t: t.dim() == 2 and t.dtype.is_floating_point)
    rows = d.indices((d.choice([1, 2, 5]), d.choice([1, 3])), d[x].shape[0])
    return f"torch.nn.functional.embedding({rows}, {x})"


def written(d: Draw, x: str, dim: int, unique: bool) -> tuple[str, str]:
    """Indices along a dimension, and the values to write there."""
    count = d.integer(1, max(1, min(d[x].shape[dim], 9)))
    index = d.indices((count,), d[x].shape[dim], unique)
    shape = sizes(x, d)
    shape[dim] = count
    return index, d.argument(shape, d[x].dtype, is_alone=True)


@moves
def index_copy(d: Draw) -> str:
    x = d.ranked()
    dim = d.dim(x)
    index, values = written(d, x, dim, True)
    return f"{x}.index_copy({dim}, {index}, {values})"


@moves
def index_fill(d: Draw) -> str:
    x = d.ranked()
    dim = d.dim(x)
    index = d.indices((d.choice([1, 2, 3]),), d[x].shape[dim])
    return f"{x}.index_fill({dim}, {index}, {d.number(d[x].dtype)})"


@moves
def index_put(d: Draw) -> str:
    x = d.ranked()
    index, values = written(d, x, 0, True)
    method = d.choice(["index_put"] + ["index_put_"] * writable(d[x]))
    return f"{x}.{method}(({index},), {values})"


@moves
def scatter(d: Draw) -> str:
    x = d.ranked()
    dim = d.dim(x)
    shape = sizes(x, d)
    shape[dim] = d.integer(1, max(1, min(d[x].shape[dim], 7)))
    # Along the dimension, each place once; the same everywhere else.
    row = d.indices((shape[dim],), d[x].shape[dim], True)
    place = [1] * len(shape)
    place[dim] = -1
    index = f"{row}.view({place}).expand({shape})"
    if d.chance(0.4):
        return f"{x}.scatter({dim}, {index}, {d.number(d[x].dtype)})"
    return f"{x}.scatter({dim}, {index}, {d.argument(shape, d[x].dtype)})"


@moves
def part_scatter(d: Draw) -> str:
    # PyTorch's results lie as x does; with elements on top of each other their
    # values depend on the order of the writes.
    x = d.value(lambda t: t.dim() and writable(t))
    dim = d.dim(x)
    size = d[x].shape[dim]
    shape = sizes(x, d)
    if d.chance(0.5):
        del shape[dim]
        part = d.argument(shape, d[x].dtype)
        return f"{x}.select_scatter({part}, {dim}, {d.place(size - 1)})"
    start = d.integer(0, size)
    step = d.choice([1, 1, 2, 3])
    shape[dim] = len(range(start, size, step))
    part = d.argument(shape, d[x].dtype)
    return f"{x}.slice_scatter({part}, {dim}, {start}, {size}, {step})"


@moves
def diagonal_scatter(d: Draw) -> str:
    x = d.value(lambda t: t.dim() == 2 and writable(t))
    offset = d.integer(-2, 2)
    part = d.argument(d[x].diagonal(offset).shape, d[x].dtype)
    return f"{x}.diagonal_scatter({part}, {offset})"


@moves
def one_hot(d: Draw) -> str:
    classes = d.choice([1, 2, 7, 65])
    rows = d.indices(d.choice([(), (1,), (5,), (2, 3), (0, 2)]), classes)
    return f"torch.nn.functional.one_hot({rows}, {classes})"


# --- writes ---


def writable(t: torch.Tensor) -> bool:
    """No two elements at one place: what is left of such writes is undefined."""
    last = sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True))
    places = torch.arange(max(last, 0) + 1).as_strided(t.shape, t.stride(), 0)
    return places.unique().numel() == t.numel()


def part_of(d: Draw, x: str) -> str:
    """A view to write to, or the whole."""
    t = d[x]
    if not t.dim() or d.chance(0.3):
        return x
    dim = d.dim(x)
    size = t.shape[dim]
    kind = d.integer(0, 3)
    if kind == 0:
        return f"{x}.select({dim}, {d.place(size - 1)})"
    if kind == 1:
        start = d.integer(0, size)
        return f"{x}[{colons(dim)}{start}::{d.choice([1, 2, 3])}]"
    if kind == 2 and t.dim() > 1:
        return f"{x}.diagonal({d.integer(-2, 2)})"
    length = d.integer(1, size)
    return f"{x}.narrow({dim}, {d.place(size - length)}, {length})"


@moves
def fill(d: Draw) -> str:
    x = d.value(writable)
    if d.chance(0.2):
        return f"{part_of(d, x)}.zero_()"
    return f"{part_of(d, x)}.fill_({d.number(d[x].dtype)})"


@moves
def copy(d: Draw) -> str:
    x = d.value(lambda t: t.dim() and writable(t))
    dim = d.dim(x)
    length = d.integer(1, d[x].shape[dim])
    shape = [n if d.chance(0.7) else 1 for n in d[x].shape]
    shape[dim] = length
    source = d.argument(shape, d[x].dtype, is_alone=True)
    start = d.place(d[x].shape[dim] - length)
    return f"{x}.narrow({dim}, {start}, {length}).copy_({source})"


@moves
def masked_fill_in_place(d: Draw) -> str:
    x = d.value(writable)
    return f"{x}.masked_fill_({d.mask(x)}, {d.number(d[x].dtype)})"


@moves
def index_fill_in_place(d: Draw) -> str:
    x = d.value(lambda t: t.dim() and writable(t))
    dim = d.dim(x)
    index = d.indices((d.choice([1, 2]),), d[x].shape[dim])
    return f"{x}.index_fill_({dim}, {index}, {d.number(d[x].dtype)})"
