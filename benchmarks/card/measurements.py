# SPDX-License-Identifier: Apache-2.0
"""Published kernel times of the card, and what each row says of its kernel.

The file is a list of rows with the fields FIELDS (times in microseconds, fp16 tensors).
A row becomes a Measurement whose `kernel` names the operation with its extents and what
is known of the plan; a row that cannot be made into a program here has a `reason`
instead. Nothing of this looks at the times.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIELDS = (
    "id",
    "op",
    "shapes",
    "dtype",
    "cores",
    "state",
    "metric",
    "value_us",
    "source",
    "note",
)
FILE = Path(__file__).with_name("measurements.json")

#: Rows that are left out of every figure: times of 163 and 457 ms beside 0.6 ms of all
#: other splits of the same matmul.
EXCLUDED = {"m00464", "m00468"}
#: Rows that are shown, but count for no goal, and why.
OUTSIDE_GOALS = {
    "m00290": "outer product",
    "m00378": "outer product",
    "m00440": "contradicts the other splits of its matmul",
    **{f"m{n:05d}": "2880 columns" for n in range(1133, 1139)},
}
#: Kernels below this time count for no goal, in microseconds.
SHORTEST = 20.0


class BadData(ValueError):
    """A file of measurements that says nothing or contradicts itself."""


@dataclass(frozen=True)
class Kernel:
    """One kernel as it was measured.

    `name` is what programs.py can write; `extents` are [rows, columns] of the tensors,
    those of the input of a transpose, or [batch, M, N, K] of a product. `splits` are
    slices per extent of a product, if the source tells, and `tiles` is into how many
    parts rows are tiled. `lx` says whether intermediate tensors stay in LX, `count` is
    the number of operands of a sum.
    """

    name: str
    extents: tuple[int, ...]
    splits: tuple[int, ...] | None = None
    tiles: int = 1
    lx: bool = True
    lx_fraction: float | None = None
    count: int = 2

    @property
    def family(self) -> str:
        if self.name == "matmul":
            return "matmul" if self.extents[0] == 1 else "bmm"
        if self.name == "shared matmul":
            return "bmm"
        if self.name in REDUCTIONS:
            return "reduction"
        if self.name in ("restickify", "outer transpose"):
            return "transpose"
        return "softmax" if self.name == "softmax" else "pointwise"


@dataclass
class Measurement:
    """A row of the file."""

    id: str
    op: str
    shapes: str
    state: str
    source: str
    cores: int
    microseconds: float
    kernel: Kernel | None = None
    #: Why there is no kernel.
    reason: str = ""
    #: Why the row counts for no goal; empty if it counts.
    outside: str = ""
    fields: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def shape_key(self) -> tuple[Any, ...]:
        """Equal for rows of one shape, whatever their source and plan."""
        if self.kernel is None:
            return ("row", self.id)
        return (self.kernel.family in ("matmul", "bmm"), *self.kernel.extents)


REDUCTIONS = {"amax": 1, "sum rows": 1, "mean": 1, "sum columns": 0, "sum all": None}
UNARY = ("neg", "exp", "gelu", "copy (x+1.0)", "mulbcast", "y=x*2.0")
#: Rows whose op names a product with its extents in another way: batch, M, N, K.
NAMED_PRODUCTS = {
    "golden_prefill_qk_t_scores_512x32x128_x_512": (512, 32, 512, 128),
    "golden_prefill_mlp_down_w2_1x512x12800_x_4096": (1, 512, 4096, 12800),
    "golden_prefill_q_o_proj_1x512x4096_x_4096": (1, 512, 4096, 4096),
    "golden_decode_qk_t_scores_64x32x128_x_576": (64, 32, 576, 128),
    "golden_decode_attn_v_32x64x576_x_128": (32, 64, 128, 576),
    "golden_decode_mlp_gate_up_w1_w3_1x64x4096_x_12800": (1, 64, 12800, 4096),
    "golden_decode_q_o_proj_1x64x4096_x_4096": (1, 64, 4096, 4096),
    "golden_decode_k_v_proj_gqa_1x64x4096_x_1024": (1, 64, 1024, 4096),
    "neighborhood_prefill_mlp_gate_m1024": (1, 1024, 12800, 4096),
    "neighborhood_decode_mlp_gate_m64": (1, 64, 12800, 4096),
}


def numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]


def product_extents(op: str, shapes: str) -> tuple[int, ...] | None:
    """Batch, M, N and K of a product, or nothing."""
    if op in NAMED_PRODUCTS:
        return NAMED_PRODUCTS[op]
    if match := re.match(r"(?:B(\d+) )?M(\d+) K(\d+) N(\d+)", shapes):
        b, m, k, n = (int(g or 1) for g in match.groups())
        return (b, m, n, k)
    if match := re.match(r"(?:B(\d+) )?M(\d+) N(\d+) K(\d+)", shapes):
        return tuple(int(g or 1) for g in match.groups())
    if match := re.match(r"BxMxNxK (\d+)x(\d+)x(\d+)x(\d+)", shapes):
        return tuple(int(g) for g in match.groups())
    match = re.fullmatch(r"\[*([\d, ]+)\]*,? ?@? ?\[*([\d, ]+)\]*", shapes)
    if match and op.startswith("matmul"):
        left, right = numbers(match.group(1)), numbers(match.group(2))
        if len(right) == 2 and left[-1] == right[0]:
            return (1, math.prod(left[:-1]), right[1], right[0])
    return None


def product_splits(state: str, batch: int) -> tuple[int, ...] | None:
    """Slices of batch, M, N and K, or nothing if the row does not tell."""
    if match := re.search(r"b_m_n_k=(\d+)_(\d+)_(\d+)_(\d+)", state):
        return tuple(map(int, match.groups()))
    if match := re.search(r"split (\d+)x(\d+)x(\d+)x(\d+)$", state):
        return tuple(map(int, match.groups()))
    if match := re.search(r"split (\d+)x(\d+)x(\d+)$", state):
        return (1, *map(int, match.groups()))
    if match := re.search(r"split (\d+)x(\d+)$", state):
        return (1, *map(int, match.groups()), 1)
    if state == "split 2x2 forced":
        return (batch, 2, 2, 1)
    if state == "1 core":
        return (1, 1, 1, 1)
    parts = dict(re.findall(r"\b(x|mb|out|in)(\d+)", state))
    if "mb" in parts or "out" in parts:
        return tuple(int(parts.get(name, 1)) for name in ("x", "mb", "out", "in"))
    return None


def product(op: str, shapes: str, state: str) -> tuple[Kernel | None, str, str]:
    """The kernel of a product, why there is none, and why it counts for no goal."""
    extents = product_extents(op, shapes)
    if extents is None:
        return None, "the extents of the product are not known", ""
    if "layout" in op:
        return None, "which layout the operands had is not said in our terms", ""
    if "k-tiled" in state:
        return None, "tiles along K with partial sums in memory between them", ""
    shared = "shared weight" in op
    tiles = re.search(r"(?<!k-tiled )tiles=(\d+)", state)
    fraction = re.search(r"DXP_LX_FRAC_AVAIL[=~]([\d.]+)", state)
    splits = product_splits(state, extents[0])
    return (
        Kernel(
            "shared matmul" if shared else "matmul",
            extents,
            splits,
            int(tiles.group(1)) if tiles else 1,
            lx_fraction=float(fraction.group(1)) if fraction else None,
        ),
        "",
        "" if splits else "the split is not known",
    )


def describe(op: str, shapes: str, state: str) -> tuple[Kernel | None, str, str]:
    """The kernel of a row, why there is none, and why it counts for no goal."""
    outside = "a stack plans, not the row" if "stack" in state else ""
    if "@" in shapes and not op.startswith("pointwise"):
        kernel, reason, other = product(op, shapes, state)
        return kernel, reason, outside or other
    if product_extents(op, shapes) or op.startswith(("matmul", "bmm")):
        kernel, reason, other = product(op, shapes, state)
        return kernel, reason, outside or other
    if op == "y=x*2.0":
        size = int(re.search(r"S=(\d+) MB", shapes).group(1))
        return Kernel(op, (size * 2**20 // 4096, 2048)), "", outside
    if op in ("pointwise_add", "layernorm", "softmax", "attention"):
        if op != "pointwise_add":
            return None, "how the stack cuts it into kernels is not known", outside
        return Kernel("add", (512, 4096)), "", outside
    if op.startswith("transpose_outer"):
        return Kernel("outer transpose", tuple(numbers(shapes))), "", outside
    extents = re.match(r"\[(\d+), ?(\d+)\]", shapes)
    if not extents:
        return None, "not one operation on one plain tensor", outside
    shape = (int(extents.group(1)), int(extents.group(2)))
    lx = "LX off" not in state and "LX planning off" not in state
    names = {
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
    }
    if op in names or op in UNARY:
        return Kernel(names.get(op, op), shape, lx=lx), "", outside
    if match := re.match(r"add(\d)(?:_sep)?(?: |$)", op):
        lx = lx and "_sep" not in op  # one kernel per sum: results go to memory
        return Kernel("sum", shape, lx=lx, count=int(match.group(1))), "", outside
    if op == "softmax(dim=-1)":
        tiles = re.search(r"tiles=(\d+)", state)
        return (
            Kernel("softmax", shape, tiles=int(tiles.group(1)) if tiles else 1),
            "",
            outside,
        )
    if op.startswith("cat dim"):
        return None, "a concatenation is several copies here", outside
    return None, "not among the operations that programs.py writes", outside


def read(path: Path = FILE) -> list[Measurement]:
    """The rows of a file, in its order. Raises BadData with the row's number."""
    try:
        rows = json.loads(path.read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise BadData(f"{path}: {error}") from error
    if not isinstance(rows, list):
        raise BadData(f"{path}: expected a list of rows, found {type(rows).__name__}")
    found: dict[str, Measurement] = {}
    for number, row in enumerate(rows):
        where = f"{path}: row {number}"
        if not isinstance(row, dict):
            raise BadData(f"{where}: expected an object, found {type(row).__name__}")
        where += f" ({row.get('id', 'without id')})"
        if missing := [name for name in FIELDS if name not in row]:
            raise BadData(f"{where}: no field {', '.join(missing)}")
        if row["id"] in found:
            raise BadData(f"{where}: the id occurs twice")
        if row["dtype"] != "fp16":
            raise BadData(f"{where}: expected fp16, found {row['dtype']}")
        time, cores = row["value_us"], row["cores"] or 32
        is_number = isinstance(time, (int, float)) and not isinstance(time, bool)
        if not is_number or not math.isfinite(time) or time <= 0:
            raise BadData(f"{where}: value_us must be a positive number, but is {time}")
        if not isinstance(cores, int) or not 1 <= cores <= 32:
            raise BadData(f"{where}: cores must be 1 to 32, but is {cores}")
        state = row["state"] or ""
        kernel, reason, outside = describe(row["op"], row["shapes"], state)
        if kernel and kernel.splits:
            used = math.prod(kernel.splits)
            if used > 32:
                raise BadData(f"{where}: the split takes {used} cores of 32")
            cores = used
        outside = OUTSIDE_GOALS.get(row["id"], outside)
        if time < SHORTEST and not outside:
            outside = f"shorter than {SHORTEST:g} us"
        found[row["id"]] = Measurement(
            row["id"],
            row["op"],
            row["shapes"],
            state,
            row["source"],
            cores,
            float(time),
            kernel,
            reason,
            outside,
            row,
        )
    return list(found.values())
