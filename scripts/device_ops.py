# SPDX-License-Identifier: Apache-2.0
"""Write the table of spyre_graph operations and their device operations.

usage: device_ops.py RECORDS.json OUTPUT.md
The records are what `llvm-tblgen --dump-json SpyreGraphAllOps.td` prints.
"""

import json
import sys
from pathlib import Path

HEADER = """\
# Device operations of `spyre_graph`

Made from the definitions of `include/Spyre/Dialect/SpyreGraph/IR`. *Device operations*
are the names that it executes in SuperDSC bundles, with their constants (`?`: may be
absent), those of this project in italics; in parentheses, the name that it is written
under where it has none of its own. *Combiner* is how iterations that write the same
element combine; *layouts* names the rule by which layouts are propagated.

| `spyre_graph.` | what it does | device operations | unit | combiner | layouts |
|---|---|---|---|---|---|
"""


def case_of(expression: str) -> str:
    """The last part of a C++ name: `Unit::SFU` -> `SFU`."""
    return expression.split("::")[-1]


def device_operations(op: dict, records: dict) -> str:
    """Its names in bundles."""

    def text(name: dict) -> str:
        constants = ", ".join(
            constant["name"] + "?" * constant["isOptional"]
            for constant in (records[init["def"]] for init in name["constants"])
        )
        shown = f"`{name['name']}`" if name["isPublished"] else f"*`{name['name']}`*"
        return shown + (f" {{{constants}}}" if constants else "")

    names = [text(records[init["def"]]) for init in op["deviceNames"]]
    written = op["deviceOpName"].strip('"')
    if not names:
        return "none" if written == op["opName"] else f"(`{written}`)"
    return ", ".join(names)


def table(records: dict) -> str:
    """Return the page for the records of the dialect's operations."""
    instances = records["!instanceof"]
    ops = [records[name] for name in instances["SpyreGraph_DeviceOp"]]
    lines = [
        f"| `{op['opName']}` | {op['summary']} | {device_operations(op, records)} "
        f"| {case_of(op['unit'])} | {case_of(op['combiner'])} "
        f"| {case_of(op['layoutRule'])} |\n"
        for op in sorted(ops, key=lambda op: op["opName"])
    ]
    composites = sorted(
        records[name]["opName"] for name in instances["SpyreGraph_Composite"]
    )
    names = ", ".join(f"`{name}`" for name in composites)
    return (
        HEADER
        + "".join(lines)
        + f"\n`--spyre-decompose` turns the others into these: {names}.\n"
    )


def main() -> int:
    """Read the records, write the page."""
    records = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(sys.argv[2]).write_text(table(records), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
