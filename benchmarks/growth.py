# SPDX-License-Identifier: Apache-2.0
"""Instructions that each pass executes on 40, 80 and 160 blocks.

Times of so small graphs follow the caches more than the algorithms; instructions,
counted by valgrind, differ by less than 1 % from run to run. Growth is
(N160 - N80) / (N80 - N40), 2 for a linear pass and a little more where it sorts: a
quadratic step that takes 5 % of a pass's instructions on 80 blocks shows. The same
again for cores whose LX holds a few of the buffers that are live together, for
values that are all live at once, and for pieces of one concatenation. Exits with 1
when the growth of a pass is over its limit, which for those pieces is that of a
quadratic pass; without valgrind nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from ratios import Ratios

ROOT = Path(__file__).resolve().parent.parent
COUNTS = (40, 80, 160)
LIMIT = 2.08
#: Upstream's bufferization looks at all writes to a buffer for each of them.
PIECES_LIMIT = 4.0
#: In this LX two thirds of the blocks' buffers have a place.
LITTLE_LX = {"lxBytesPerCore": 12288, "lxReservedFraction": 0.96}
#: Passes that execute fewer instructions than this share of all are not looked at:
#: in them sorting and growing containers show.
LEAST_SHARE = 0.01
WIDTH, INNER, ROWS = 128, 256, 8


def layout(*order: int) -> str:
    return f"#spyre_graph.layout<order = [{', '.join(map(str, order))}], SEN169_FP16>"


VECTOR = f"tensor<{WIDTH}xf16, {layout(0)}>"
WIDE_VECTOR = f"tensor<{INNER}xf16, {layout(0)}>"
UP = f"tensor<{INNER}x{WIDTH}xf16, {layout(1, 0)}>"
DOWN = f"tensor<{WIDTH}x{INNER}xf16, {layout(1, 0)}>"
INPUT = f"tensor<{ROWS}x{WIDTH}xf16, {layout(0, 1)}>"
X = f"tensor<{ROWS}x{WIDTH}xf16>"
H = f"tensor<{ROWS}x{INNER}xf16>"


def block(number: int, x: str, x_type: str) -> str:
    """A layer norm, a linear layer, a GELU, another one, and x added."""
    n = number
    return f"""
  %n{n}, %m{n}, %s{n} = spyre_graph.layer_norm {x} weight(%w{n} : {VECTOR})
    bias(%b{n} : {VECTOR}) {{eps = 1.0e-05 : f64, num_dims = 1 : i64}}
    : {x_type} -> {X}, tensor<{ROWS}x1xf32>, tensor<{ROWS}x1xf32>
  %ut{n} = spyre_graph.view %u{n}, #t : {UP} -> tensor<{WIDTH}x{INNER}xf16>
  %e0_{n} = tensor.empty() : {H}
  %h{n} = spyre_graph.matmul
    ins(%n{n}, %ut{n}, %c{n} : {X}, tensor<{WIDTH}x{INNER}xf16>, {WIDE_VECTOR})
    outs(%e0_{n} : {H}) {{has_bias}} -> {H}
  %e1_{n} = tensor.empty() : {H}
  %g{n} = spyre_graph.gelu ins(%h{n} : {H}) outs(%e1_{n} : {H}) -> {H}
  %dt{n} = spyre_graph.view %d{n}, #t : {DOWN} -> tensor<{INNER}x{WIDTH}xf16>
  %e2_{n} = tensor.empty() : {X}
  %y{n} = spyre_graph.matmul
    ins(%g{n}, %dt{n}, %f{n} : {H}, tensor<{INNER}x{WIDTH}xf16>, {VECTOR})
    outs(%e2_{n} : {X}) {{has_bias}} -> {X}
  %e3_{n} = tensor.empty() : {X}
  %x{n} = spyre_graph.add ins({x}, %y{n} : {x_type}, {X}) outs(%e3_{n} : {X}) -> {X}"""


def graph(count: int) -> str:
    arguments = [f"%x: {INPUT}"]
    blocks = []
    x, x_type = "%x", INPUT
    for n in range(count):
        arguments += [
            f"%w{n}: {VECTOR}, %b{n}: {VECTOR}, %u{n}: {UP}",
            f"%c{n}: {WIDE_VECTOR}, %d{n}: {DOWN}, %f{n}: {VECTOR}",
        ]
        blocks.append(block(n, x, x_type))
        x, x_type = f"%x{n}", X
    return (
        "#t = affine_map<(i, j) -> (j, i)>\n"
        f"func.func @main({', '.join(arguments)}) -> {X} {{"
        f"{''.join(blocks)}\n  return {x} : {X}\n}}\n"
    )


def wide_graph(count: int) -> str:
    """Each value is made of the one before, and all are added up at the end."""
    lines = []

    def compute(name: str, operation: str, *operands: str) -> str:
        types = ", ".join(INPUT if o == "%x" else X for o in operands)
        lines.append(
            f"""
  %e_{name} = tensor.empty() : {X}
  %{name} = spyre_graph.{operation} ins({", ".join(operands)} : {types})
    outs(%e_{name} : {X}) -> {X}"""
        )
        return f"%{name}"

    values = ["%x"]
    for n in range(count):
        values.append(compute(f"v{n}", "tanh" if n % 2 else "exp", values[-1]))
    total = values[1]
    for n, value in enumerate(values[2:]):
        total = compute(f"s{n}", "add", total, value)
    return (
        f"func.func @main(%x: {INPUT}) -> {X} {{{''.join(lines)}\n"
        f"  return {total} : {X}\n}}\n"
    )


def concatenation(count: int) -> str:
    """As many pieces, one after the other in one tensor."""
    total = f"tensor<{count * ROWS}x{WIDTH}xf16>"
    rows = f"{{maps = [#piece, #rows%d], extents = array<i64: {ROWS}, {WIDTH}>}}"
    maps = ["#piece = affine_map<(i, j) -> (i, j)>"]
    lines = [f"  %all0 = tensor.empty() : {total}"]
    for n in range(count):
        maps.append(f"#rows{n} = affine_map<(i, j) -> (i + {n * ROWS}, j)>")
        lines.append(
            f"""  %e{n} = tensor.empty() : {X}
  %v{n} = spyre_graph.exp ins(%x{n} : {INPUT}) outs(%e{n} : {X}) -> {X}
  %all{n + 1} = spyre_graph.identity ins(%v{n} : {X})
    outs(%all{n} : {total}) {rows % n} -> {total}"""
        )
    arguments = ", ".join(f"%x{n}: {INPUT}" for n in range(count))
    return "\n".join(
        [*maps, f"func.func @main({arguments}) -> {total} {{", *lines]
        + [f"  return %all{count} : {total}", "}", ""]
    )


#: What is measured: a title, the graph of so many blocks or values, what differs
#: from the device's numbers, and the limit.
CASES: list[tuple[str, Callable[[int], str], dict[str, float], float]] = [
    ("", graph, {}, LIMIT),
    (", little LX", graph, LITTLE_LX, LIMIT),
    (", all live", wide_graph, {}, LIMIT),
    (", pieces", concatenation, {}, PIECES_LIMIT),
]


def count_instructions(
    tool: Path, text: str, numbers: dict[str, float], folder: Path
) -> dict[str, int]:
    """Instructions of each pass, with all that it calls, and of the program."""
    source, profile = folder / "graph.mlir", folder / "profile"
    device = folder / "device.json"
    source.write_text(text)
    device.write_text(json.dumps(numbers))
    done = subprocess.run(
        [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={profile}",
            tool,
            source,
            f"--spyre-pipeline=device={device}",
            "-o",
            "/dev/null",
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    listed = subprocess.run(
        ["callgrind_annotate", "--inclusive=yes", "--threshold=100", profile],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found: dict[str, int] = {}
    for line in listed.splitlines():
        match = re.match(
            r"\s*([\d,]+) .*?(?::|::)(?:\(anonymous namespace\)::)?(\w+)"
            r"::runOnOperation\(\) \[|\s*([\d,]+) .*(PROGRAM TOTALS)",
            line,
        )
        if match:
            number = (match[1] or match[3]).replace(",", "")
            found[match[2] or match[4]] = int(number)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    tool = parser.parse_args().build / "bin" / "spyre-opt"
    if not shutil.which("valgrind"):
        print("valgrind is not installed: nothing is measured")
        return 0
    found = Ratios()
    for title, make, numbers, limit in CASES:
        with tempfile.TemporaryDirectory() as folder:
            counts = [
                count_instructions(tool, make(n), numbers, Path(folder)) for n in COUNTS
            ]
        add_growths(counts, title, limit, found)
    return found.finish()


def add_growths(
    counts: list[dict[str, int]], title: str, limit: float, found: Ratios
) -> None:
    """Prints what each pass executes, and adds the growths of the large ones."""
    print(
        f"{'pass, 10^6 instructions' + title:<38}"
        + "".join(f"{n:>10}" for n in COUNTS)
        + f"{'growth':>10}"
    )
    if len(counts[0]) < 2:
        raise SystemExit("the profile names no pass")
    for name in counts[0]:
        few, some, many = (of_count.get(name, 0) for of_count in counts)
        growth = (many - some) / (some - few) if some > few else float("nan")
        is_small = some < LEAST_SHARE * counts[1]["PROGRAM TOTALS"]
        print(
            f"{name:<38}"
            + "".join(f"{n / 1e6:>10.2f}" for n in (few, some, many))
            + f"{growth:>10.3f}"
        )
        if not is_small:
            found.add(
                f"growth of instructions: {name}{title}",
                growth,
                limit,
                instructions=some,
            )


if __name__ == "__main__":
    sys.exit(main())
