# SPDX-License-Identifier: Apache-2.0
"""What the texts of a measurement say of its kernel: operation, extents and plan.

Nothing of this looks at the times.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

REDUCTIONS = {"amax": 1, "sum rows": 1, "mean": 1, "sum columns": 0, "sum all": None}
UNARY = ("neg", "exp", "gelu", "copy (x+1.0)", "mulbcast", "y=x*2.0")
#: Operations over rows and columns, as the sources name them.
NAMES = {
    "bcast a+b[1,C]": "add a row",
    "bcastcol a+b[R,1]": "add a column",
    "write b[1,C]+c[R,1]": "outer sum",
    "isolated ReStickifyOpHBM (a.t().contiguous())": "restickify",
    "amax(dim=1)": "amax",
    "mean(dim=1)": "mean",
    "sumrow": "sum rows",
    "sumcol": "sum columns",
    "sum all": "sum all",
    "read (reduce)": "sum all",
    "add": "add",
    "cat dim0 [x,x]": "cat 0",
    "cat dim1 [x,x]": "cat 1",
    **{name: name for name in UNARY},
}
#: Kernels that move data; none of them can be tiled by a hint.
MOVES = ("restickify", "outer transpose", "cat 0", "cat 1")
#: Operations that no program is made of, their family, and why.
BLOCKS = (
    (
        r"SwiGLU|fused .*(MLP|glu)|fused_|granite|all kernels",
        "block or model",
        "a block or model, not a kernel",
    ),
    (r"flash attention", "attention", "the width of a head is not stated"),
    (
        r"(attention|layernorm|softmax)$",
        "several kernels",
        "how the stack cuts it into kernels is not known",
    ),
    (
        r".*handoff|\(a\+b",
        "several kernels",
        "how its kernels are divided over the cores is not known",
    ),
)
UNKNOWN_SPLIT = "the split is not known"
STACK = "a stack plans, not the row"
BLOCK = "a whole block or model"
#: What a softmax is made of.
SOFTMAX = ("amax", "sub", "exp", "sum", "div")
#: The same, if it is another one and the row lists no stages.
STAGES = {
    "softmax without exp": ("amax", "sub", "sum", "div"),
}


@dataclass(frozen=True)
class Kernel:
    """One kernel as it was measured.

    `name` is what programs.py can write; `extents` are [rows, columns] of the tensors,
    those of the input of a transpose, or [batch, M, N, K] of a product. `splits` are
    slices per extent of a product, if the source tells, and `tiles` is into how many
    parts rows are tiled; `tiles_of_k` those of the K of a product. `lx` says whether
    intermediate tensors stay in LX, `lx_fraction` which share of LX was kept for the
    kernels' own tiles. `count` is the number of operands of a sum, `stages` what a
    softmax is made of, if it is not the usual, and `in_memory` those whose results go
    through device memory though others stay in LX. A softmax is over `dim`.
    `clones_inputs` says whether inputs that are read repeatedly are copied into LX.
    """

    name: str
    extents: tuple[int, ...]
    splits: tuple[int, ...] | None = None
    tiles: int = 1
    lx: bool = True
    lx_fraction: float | None = None
    count: int = 2
    tiles_of_k: int = 1
    stages: tuple[str, ...] = ()
    in_memory: tuple[str, ...] = ()
    dim: int = 1
    clones_inputs: bool = True

    @property
    def is_product(self) -> bool:
        return self.name in ("matmul", "shared matmul")

    @property
    def family(self) -> str:
        if self.is_product:
            one = self.name == "matmul" and self.extents[0] == 1
            return "matmul" if one else "bmm"
        if self.name in REDUCTIONS:
            return "reduction"
        if self.name in MOVES:
            return "transpose"
        return "softmax" if self.name == "softmax" else "pointwise"

    @property
    def shape_key(self) -> tuple[object, ...]:
        """Equal for kernels of one shape, whatever their plan.

        A weight that the batch shares makes one product of the batch: its rows are
        further rows of the left matrix.
        """
        if self.name == "shared matmul":
            batch, m, n, k = self.extents
            return (True, 1, batch * m, n, k)
        return (self.is_product, *self.extents)


@dataclass(frozen=True)
class Description:
    """The kernel of a row, or why there is none, and why it counts for no goal."""

    kernel: Kernel | None
    reason: str = ""
    outside: str = ""
    #: Of the row; that of the kernel, if there is one.
    family: str = ""


def numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]


def operands(shapes: str) -> list[tuple[int, ...]]:
    """The shapes of "1,2 @ 2,3", "[1,2]@[2,3]" or "[[1, 2], [2, 3]]", or nothing."""
    text = shapes.strip()
    if re.fullmatch(r"\[\[[\d, \[\]]+\]\]", text):
        parts = re.findall(r"\[([\d, ]+)\]", text)
    else:
        parts = [part.strip(" []") for part in text.split("@")]
    if not all(re.fullmatch(r"\d+(, ?\d+)*", part) for part in parts):
        return []
    return [tuple(numbers(part)) for part in parts]


def named_product(name: str) -> tuple[int, ...] | None:
    """Batch, M, N and K of a product whose name has them, or nothing.

    The notes of these rows say which share of the peak rate they reach; a test checks
    that the extents make it so.
    """
    if match := re.fullmatch(r"golden_\w+?_(\d+)x(\d+)x(\d+)_x_(\d+)", name):
        b, m, k, n = map(int, match.groups())
        return (b, m, n, k)
    if match := re.fullmatch(r"neighborhood_\w+_mlp_gate_m(\d+)", name):
        return (1, int(match.group(1)), 12800, 4096)
    if match := re.fullmatch(r"neighborhood_decode_attention_qk_n(\d+)", name):
        return (64, 32, int(match.group(1)), 128)
    return None


def product_extents(op: str, shapes: str) -> tuple[int, ...] | None:
    """Batch, M, N and K of a product, or nothing."""
    if found := named_product(op):
        return found
    if match := re.match(r"(?:B(\d+) )?M(\d+) K(\d+) N(\d+)", shapes):
        b, m, k, n = (int(g or 1) for g in match.groups())
        return (b, m, n, k)
    if match := re.match(r"(?:B(\d+) )?M(\d+) N(\d+) K(\d+)", shapes):
        return tuple(int(g or 1) for g in match.groups())
    if match := re.match(r"BxMxNxK (\d+)x(\d+)x(\d+)x(\d+)", shapes):
        return tuple(int(g) for g in match.groups())
    both = operands(shapes)
    if len(both) == 2 and op.startswith("matmul"):
        left, right = both
        if len(right) == 2 and len(left) > 1 and left[-1] == right[0]:
            return (1, math.prod(left[:-1]), right[1], right[0])
    return None


def product_splits(state: str, batch: int, cores: int) -> tuple[int, ...] | None:
    """Slices of batch, M, N and K, or nothing if the row does not tell."""
    if match := re.search(r"b_m_n_k=(\d+)_(\d+)_(\d+)_(\d+)", state):
        return tuple(map(int, match.groups()))
    if match := re.search(r"\bsplit (\d+(?:x\d+)+)(?!\w)", state):
        found = tuple(map(int, match.group(1).split("x")))
        if len(found) == 2:
            # Forced ones are those of each product of the batch.
            return (batch if "forced" in state else 1, *found, 1)
        if len(found) in (3, 4):
            return (*(1,) * (4 - len(found)), *found)
    parts = dict(re.findall(r"\b(x|mb|out|in)=?(\d+)\b", state))
    if "mb" in parts or "out" in parts:
        return tuple(int(parts.get(name, 1)) for name in ("x", "mb", "out", "in"))
    return (1, 1, 1, 1) if cores == 1 else None


def tile_count(state: str) -> int | None:
    """Into how many parts rows are tiled; nothing if the row does not tell."""
    if match := re.search(r"\btiles=(\d+)|\b(\d+) row tiles", state):
        return int(match.group(1) or match.group(2))
    return None if re.search(r"(?<!un)tiled", state) else 1


def in_lx(state: str) -> bool:
    """Whether intermediate tensors stay in LX."""
    return not re.search(r"LX (planning )?off|intermediates in HBM", state)


def product(op: str, shapes: str, state: str, cores: int) -> Description:
    extents = product_extents(op, shapes)
    family = "bmm" if op.startswith("bmm") else "matmul"
    if extents is None:
        return Description(
            None, "the extents of the product are not known", UNKNOWN_SPLIT, family
        )
    splits = product_splits(state, extents[0], cores)
    outside = "" if splits else UNKNOWN_SPLIT
    if "layout" in op and not re.fullmatch(r".*layout default(/default)?", op):
        reason = "which layout the operands had is not said in our terms"
        return Description(None, reason, outside, family)
    tiles = tile_count(state)
    if tiles is None:
        return Description(None, "how it is tiled is not known", outside, family)
    fraction = re.search(r"DXP_LX_FRAC_AVAIL *[=~] *([\d.]+)", state)
    of_k = "k-tiled" in state
    kernel = Kernel(
        "shared matmul" if "shared weight" in op else "matmul",
        extents,
        splits,
        tiles=1 if of_k else tiles,
        tiles_of_k=tiles if of_k else 1,
        lx=in_lx(state),
        lx_fraction=float(fraction.group(1)) if fraction else None,
    )
    return Description(kernel, "", outside)


def softmax_over_rows(kernel: Kernel, state: str) -> Kernel | str:
    """A softmax over dimension 0 whose row says what stays in LX."""
    if kernel.tiles > 1:
        return "tiles would cut the rows that it adds up"
    listed = re.search(r"\bin place: ([\w, ]+)", state)
    in_place = re.findall(r"\w+", listed.group(1)) if listed else []
    memory = [name for name in ("sub", "exp") if name not in in_place]
    return replace(
        kernel,
        name="softmax",
        stages=SOFTMAX,
        in_memory=tuple(memory) if kernel.lx else (),
        dim=0,
        clones_inputs="input cloned to LX" in state,
    )


def over_rows(op: str, shapes: str, state: str) -> Kernel | str:
    """The kernel of an operation on rows and columns, or why there is none."""
    match = re.fullmatch(r"\[(\d+), ?(\d+)\](?:\+same|x(\d+))?", shapes)
    if not match:
        return "not one operation on one plain tensor"
    shape = (int(match.group(1)), int(match.group(2)))
    operands_named = int(match.group(3) or 0)
    tiles, lx = tile_count(state), in_lx(state)
    if tiles is None:
        return "how it is tiled is not known"
    kernel = Kernel("", shape, tiles=tiles, lx=lx)
    if op in NAMES:
        name = NAMES[op]
        # A copy has no intermediates; what it reads twice comes from memory twice.
        return replace(kernel, name=name, lx=lx and not name.startswith("cat"))
    if op.startswith("add_indep2 "):
        return replace(kernel, name="two sums")
    if match := re.match(r"add(\d)(?:_sep)?(?: |$)", op):
        count = int(match.group(1))
        if operands_named not in (0, count) or count < 2:
            return "the number of operands is not clear"
        # One kernel per sum: results go to memory.
        return replace(kernel, name="sum", lx=lx and "_sep" not in op, count=count)
    if op in ("softmax(dim=-1)", "softmax unrolled"):
        return replace(kernel, name="softmax")
    if op == "softmax(dim=0)":
        return softmax_over_rows(kernel, state)
    if op in STAGES:
        return replace(kernel, name="softmax", stages=STAGES[op])
    if match := re.fullmatch(r"softmax_stages: ([\w, ()]+) fused", op):
        stages: list[str] = []
        for part in match.group(1).split(","):
            repeated = re.fullmatch(r"\((\w+) x (\d+)\)", part.strip())
            name, times = repeated.groups() if repeated else (part.strip(), 1)
            stages += [name] * int(times)
        memory = tuple(re.findall(r"\b(\w+) intermediates flagged HBM", state))
        return replace(kernel, name="softmax", stages=tuple(stages), in_memory=memory)
    return "not among the operations that programs.py writes"


def other(op: str, shapes: str, state: str) -> Kernel | str:
    """The kernel of what is no product, or why there is none."""
    if op == "y=x*2.0":
        size = re.search(r"rows x (\d+), S=(\d+) MB", shapes)
        if not size:
            return "the extents are not known"
        columns = int(size.group(1))
        return Kernel(op, (int(size.group(2)) * 2**20 // (2 * columns or 1), columns))
    if op == "pointwise_add":
        both = operands(shapes)
        if len(both) != 2 or both[0] != both[1] or len(both[0]) < 2:
            return "not two operands of one shape with rows and columns"
        rows, columns = math.prod(both[0][:-1]), both[0][-1]
        tiles = tile_count(state)
        if tiles is None:
            return "how it is tiled is not known"
        return Kernel("add", (rows, columns), tiles=tiles, lx=in_lx(state))
    if op.startswith("transpose_outer"):
        sizes = numbers(shapes)
        if len(sizes) != 3:
            return "the extents are not known"
        return Kernel("outer transpose", tuple(sizes))
    return over_rows(op, shapes, state)


def describe(op: str, shapes: str, state: str, cores: int) -> Description:
    """What a row says. `cores` is what it gives beside its texts."""
    block = next((entry for entry in BLOCKS if re.match(entry[0], op)), None)
    if block:
        _, family, reason = block
        outside = BLOCK if family == "block or model" else UNKNOWN_SPLIT
        found = Description(None, reason, outside, family)
    elif product_extents(op, shapes) or op.startswith(("matmul", "bmm")):
        found = product(op, shapes, state, cores)
    else:
        made = other(op, shapes, state)
        if isinstance(made, Kernel):
            found = Description(made)
        else:
            found = Description(None, made)
    kernel = found.kernel
    if kernel and kernel.tiles * kernel.tiles_of_k > 1:
        reason = ""
        if kernel.name in MOVES:
            reason = "no hint tiles a kernel that moves data"
        elif not kernel.lx:
            reason = "tiles are planned together with LX, which was off"
        if reason:
            found = Description(None, reason, found.outside, kernel.family)
    if "stack" in state:
        found = replace(found, outside=STACK)
    if found.kernel:
        return replace(found, family=found.kernel.family)
    return found if found.family else replace(found, family=guess_family(op))


def guess_family(op: str) -> str:
    """Of an operation that has no program."""
    for word, family in (
        ("softmax", "softmax"),
        ("sum", "reduction"),
        ("cat", "transpose"),
        ("transpose", "transpose"),
    ):
        if op.startswith(word):
            return family
    return "pointwise"
