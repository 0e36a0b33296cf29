# SPDX-License-Identifier: Apache-2.0
"""Published kernel times of the card, and what each row says of its kernel.

The file is a list of rows with the fields FIELDS (times in microseconds, fp16 tensors).
A row becomes a Measurement whose `kernel` names the operation with its extents and what
is known of the plan; a row that cannot be made into a program here has a `reason`
instead. Nothing of this looks at the times, but for SHORTEST.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from card.kernels import BLOCK, STACK, UNKNOWN_SPLIT, Description, Kernel, describe

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
#: Cores of the card: what a row means that does not say how many it used.
CORES = 32

#: Why a row is left out of figures even where rows outside the goals are in: times of
#: 163 and 457 ms beside 0.6 ms of all other splits of the same matmul.
EXCLUDED = "excluded: hundreds of times the other splits of its matmul"
#: Rows that are shown, but count for no goal, and why.
OUTSIDE_GOALS = {
    "m00464": EXCLUDED,
    "m00468": EXCLUDED,
    "m00290": "outer product",
    "m00378": "outer product",
    "m00440": "contradicts the other splits of its matmul",
    **{f"m{n:05d}": "2880 columns" for n in range(1133, 1139)},
    **{f"s{n:05d}": "contradicts all other rows" for n in range(1, 6)},
}
#: Kernels below this time count for no goal, in microseconds.
SHORTEST = 20.0


class BadData(ValueError):
    """A file of measurements that says nothing or contradicts itself."""


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
    #: Of the kernel; of a row without one, what its operation would be.
    family: str = ""
    #: Whether the row tells the plan: its split, if it is a product.
    plan_known: bool = True
    fields: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def shape_key(self) -> tuple[Any, ...]:
        """Equal for rows of one shape, whatever their source and plan."""
        return self.kernel.shape_key if self.kernel else ("row", self.id)

    @property
    def is_excluded(self) -> bool:
        return self.outside == EXCLUDED


def check_fields(row: dict[str, Any], where: str) -> None:
    """Raises BadData if a field is missing, or not of its type."""
    if missing := [name for name in FIELDS if name not in row]:
        raise BadData(f"{where}: no field {', '.join(missing)}")
    for name in ("id", "op", "shapes", "state"):
        if not isinstance(row[name], str) and (name, row[name]) != ("state", None):
            found = type(row[name]).__name__
            raise BadData(f"{where}: {name} must be a string, found {found}")
    if not row["id"]:
        raise BadData(f"{where}: the id is empty")
    if row["dtype"] != "fp16":
        raise BadData(f"{where}: expected fp16, found {row['dtype']}")
    time, cores = row["value_us"], row["cores"]
    # An integer that no float can hold is too long for a time.
    fits = type(time) is float or (type(time) is int and time < 2**63)
    if not fits or not math.isfinite(time) or time <= 0:
        raise BadData(f"{where}: value_us must be a positive number, but is {time}")
    if cores is not None and (type(cores) is not int or not 1 <= cores <= CORES):
        raise BadData(f"{where}: cores must be 1 to {CORES}, but is {cores!r}")
    # A size in brackets, after the letter of a dimension, or between two x.
    if match := re.search(
        r"(?:^|[\[, @]|\b[A-Z]=?|\dx)(-\d+|0+)(?=[\], @)x]|$)", row["shapes"]
    ):
        raise BadData(f"{where}: shapes has the size {match.group(1)}")


def check_plan(kernel: Kernel, cores: int | None, state: str, where: str) -> int:
    """The cores that a row used. Raises BadData if it contradicts itself."""
    if min(kernel.extents) < 1:
        raise BadData(f"{where}: shapes has the size {min(kernel.extents)}")
    if min(kernel.tiles, kernel.tiles_of_k) < 1:
        raise BadData(f"{where}: the number of tiles is 0")
    if kernel.lx_fraction is not None and not 0 <= kernel.lx_fraction < 1:
        raise BadData(f"{where}: the share of LX is {kernel.lx_fraction:g}")
    if not kernel.splits:
        return cores or CORES
    if min(kernel.splits) < 1:
        raise BadData(f"{where}: the split has a zero")
    used = math.prod(kernel.splits)
    # All cores is also what rows say that do not tell.
    allowed = CORES if cores is None else cores
    stated = re.search(r"\b(\d+) cores?\b", state)
    if used > allowed or (allowed < CORES and used != allowed):
        raise BadData(f"{where}: the split takes {used} cores of {allowed}")
    if stated and int(stated.group(1)) != used:
        raise BadData(f"{where}: the split takes {used} cores, not {stated.group(1)}")
    return used


def read_row(row: Any, where: str) -> Measurement:
    if not isinstance(row, dict):
        raise BadData(f"{where}: expected an object, found {type(row).__name__}")
    where += f" ({row.get('id', 'without id')})"
    check_fields(row, where)
    state, cores = row["state"] or "", row["cores"]
    found: Description = describe(row["op"], row["shapes"], state, cores or CORES)
    if found.kernel:
        cores = check_plan(found.kernel, cores, state, where)
    outside = OUTSIDE_GOALS.get(row["id"], found.outside)
    if row["value_us"] < SHORTEST and not outside:
        outside = f"shorter than {SHORTEST:g} us"
    return Measurement(
        row["id"],
        row["op"],
        row["shapes"],
        state,
        row["source"],
        cores or CORES,
        float(row["value_us"]),
        found.kernel,
        found.reason,
        outside,
        found.family,
        found.outside not in (STACK, UNKNOWN_SPLIT, BLOCK),
        row,
    )


def read(path: Path = FILE) -> list[Measurement]:
    """The rows of a file, in its order. Raises BadData with the row's number."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        # ValueError: neither JSON nor UTF-8, or a number with too many digits.
        raise BadData(f"{path}: {error}") from error
    if not isinstance(rows, list):
        raise BadData(f"{path}: expected a list of rows, found {type(rows).__name__}")
    found: dict[str, Measurement] = {}
    for number, row in enumerate(rows):
        where = f"{path}: row {number}"
        measurement = read_row(row, where)
        if measurement.id in found:
            raise BadData(f"{where} ({measurement.id}): the id occurs twice")
        found[measurement.id] = measurement
    return list(found.values())
