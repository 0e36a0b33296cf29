# SPDX-License-Identifier: Apache-2.0
"""Write the table of spyre_graph operations and their device operations.

usage: device_ops.py RECORDS.json OUTPUT.md
The records are what `llvm-tblgen --dump-json DeviceOps.td` prints.
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

BY_NAME = """\

## By name, in bundles

*Basis* is where the meaning comes from: published (a name with one usual meaning),
inferred (from the reference's lowering or the name), ours (of this project: an
extension, or what a published name is taken to mean). Reductions marked "nonstick" also
have a variant of that name with this suffix, which does not reduce the stick dimension.

| device operation | meaning | executed by | basis |
|---|---|---|---|
"""


def case_of(expression: str) -> str:
    """The last part of a C++ name: `Unit::SFU` -> `SFU`."""
    return expression.split("::")[-1]


def constants(name: dict, records: dict) -> str:
    """Those of a device operation, in braces."""
    names = [
        constant["name"] + "?" * constant["isOptional"]
        for constant in (records[init["def"]] for init in name["constants"])
    ]
    return f" {{{', '.join(names)}}}" if names else ""


def by_name(records: dict) -> str:
    """Return a row per device operation, published ones first."""
    ops = [records[name] for name in records["!instanceof"]["DeviceOp"]]
    ops.sort(key=lambda op: (op["isExtension"], op["name"].lower()))
    return "".join(
        f"| `{op['name']}`{' nonstick' * op['hasNonstick']}{constants(op, records)} "
        f"| {op['meaning']} | {op['graphOp'] or 'none'} | {op['basis']} |\n"
        for op in ops
    )


def device_operations(op: dict, records: dict) -> str:
    """Its names in bundles."""
    names = []
    for name in (records[init["def"]] for init in op["deviceNames"]):
        shown = f"`{name['name']}`" if name["isPublished"] else f"*`{name['name']}`*"
        names.append(shown + constants(name, records))
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
        + BY_NAME
        + by_name(records)
    )


def main() -> int:
    """Read the records, write the page."""
    records = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(sys.argv[2]).write_text(table(records), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
