# SPDX-License-Identifier: Apache-2.0
"""Work division of 200 shapes: our choice against the reference's rule and
against the cheapest of all divisions, under the one cost model.

The cheapest is over every number of slices of every parallel dimension and of one
reduction, even and uneven, of which the compiler prices each. Prices are of one
operation alone, operands in device memory. Of shapes up to SMALL elements it is also
over tiles, up to MAX_TILES along every dimension, each tile with its own cheapest
division; the setup of tiles' transfers is not counted, which favours them. Exits with 1
when a ratio is over its limit.
"""

from __future__ import annotations

import argparse
import itertools
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from ratios import Ratios

ROOT = Path(__file__).resolve().parent.parent
SMALL, MAX_TILES = 1 << 22, 8
LIMIT_MEAN, LIMIT_WORST, LIMIT_REFERENCE = 1.05, 1.02, 1.0
REMARK = re.compile(
    r'Function=(\w+) \| Remark="(\w+) on \d+ cores, splits \[.*\]: (\S+) s alone, '
    r'the cheapest of (\d+) (\S+) s"'
)


def layout(rank: int) -> str:
    order = ", ".join(map(str, range(rank)))
    return f"#spyre_graph.layout<order = [{order}], SEN169_FP16>"


def tensor(shape: tuple[int, ...], extra: str = "") -> str:
    sizes = "x".join(map(str, shape))
    return f"tensor<{sizes}xf16, {extra or layout(len(shape))}>"


def function(name: str, op: str, ins: list[str], out: str, attributes: str = "") -> str:
    arguments = ", ".join(f"%{i}: {t}" for i, t in enumerate(ins))
    values = ", ".join(f"%{i}" for i in range(len(ins)))
    return (
        f"func.func @{name}({arguments}) -> {out} {{\n"
        f"  %e = tensor.empty() : {out}\n"
        f"  %r = spyre_graph.{op} ins({values} : {', '.join(ins)}) "
        f"outs(%e : {out}) {attributes} -> {out}\n"
        f"  return %r : {out}\n}}\n"
    )


def matmul(name: str, m: int, n: int, k: int, batch: tuple[int, ...] = ()) -> str:
    return function(
        name,
        "matmul",
        [tensor((*batch, m, k)), tensor((*batch, k, n))],
        tensor((*batch, m, n)),
    )


def shared_weight(name: str, batch: int, m: int, n: int, k: int) -> str:
    """A batch of inputs times one weight, which the maps do not batch."""
    maps = (
        "maps = [affine_map<(b, m, n, k) -> (b, m, k)>, "
        "affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>], "
        f"extents = array<i64: {batch}, {m}, {n}, {k}>"
    )
    return function(
        name,
        "matmul",
        [tensor((batch, m, k)), tensor((k, n))],
        tensor((batch, m, n)),
        f"{{{maps}}}",
    )


def reduction(name: str, shape: tuple[int, ...], dim: int) -> str:
    kept = tuple(size for i, size in enumerate(shape) if i != dim)
    sparse = dim == len(shape) - 1
    order = ", ".join(map(str, range(len(kept))))
    kind = "sparse, SEN169_FP16" if sparse else "SEN169_FP16"
    result = f"#spyre_graph.layout<order = [{order}], {kind}>"
    return function(
        name,
        "sum",
        [tensor(shape)],
        tensor(kept, result),
        f"{{dims = array<i64: {dim}>}}",
    )


def make_shapes() -> list[tuple[str, str]]:
    """Kind and function of each of 200 shapes."""
    shapes: list[tuple[str, str]] = []

    def add(kind: str, make, *arguments) -> None:
        shapes.append((kind, make(f"f{len(shapes)}", *arguments)))

    # LLM prefill and decode: rows x the layers of common widths.
    for m in (1, 4, 8, 32, 128, 512, 2048):
        for n, k in (
            (4096, 4096),
            (1024, 4096),
            (14336, 4096),
            (4096, 14336),
            (12800, 4096),
            (768, 3072),
            (2048, 2048),
        ):
            add("matmul", matmul, m, n, k)
    for m, n, k in (
        (197, 768, 768),
        (197, 3072, 768),
        (49, 2048, 512),
        (3136, 64, 576),
    ):
        add("matmul vision", matmul, m, n, k)
    for m, n, k in (
        (63, 65, 127),
        (7, 1000, 513),
        (131, 1009, 257),
        (1, 65, 4099),
        (251, 4097, 100),
        (33, 129, 8191),
        (1000, 999, 998),
    ):
        add("matmul odd", matmul, m, n, k)
    for heads, m, n, k in (
        (8, 128, 128, 64),
        (32, 1, 2048, 128),
        (32, 1, 128, 2048),
        (32, 512, 512, 128),
        (12, 197, 197, 64),
        (12, 197, 64, 197),
        (40, 64, 4096, 128),
        (5, 33, 65, 127),
        (3, 1000, 64, 64),
        (128, 16, 64, 64),
    ):
        add("bmm", matmul, m, n, k, (heads,))
        add("bmm", matmul, m, n, k, (2, heads))
    for batch, m, n, k in (
        (4, 128, 4096, 4096),
        (8, 1, 4096, 4096),
        (2, 197, 768, 768),
        (3, 63, 1000, 513),
        (32, 1, 14336, 4096),
        (16, 16, 1024, 1024),
    ):
        add("shared-weight bmm", shared_weight, batch, m, n, k)
    sizes = (1, 7, 33, 63, 128, 251, 512, 1024, 2048)
    for rows in sizes:
        for columns in (64, 65, 960, 1000, 4096, 11008):
            add(
                "pointwise",
                lambda name, r=rows, c=columns: function(
                    name, "exp", [tensor((r, c))], tensor((r, c))
                ),
            )
    for rows in sizes:
        for columns in (64, 1000, 4096):
            add("reduction of sticks", reduction, (rows, columns), 1)
            add("reduction of rows", reduction, (rows, columns), 0)
    for batch, rows, columns in ((3, 197, 768), (8, 128, 512)):
        for dim in range(3):
            add("reduction of three", reduction, (batch, rows, columns), dim)
    return shapes[:200]


def loop_extents(text: str) -> tuple[list[int], list[bool]]:
    """Extent of each loop of a function made here, and which lie along sticks."""
    arguments = text.split(") -> ", 1)[0]
    shapes = [
        [int(size) for size in match.split("x")[:-1]]
        for match in re.findall(r"tensor<([\dx]+)f16", arguments)
    ]
    if len(shapes) == 1:
        return shapes[0], [dim == len(shapes[0]) - 1 for dim in range(len(shapes[0]))]
    extents = [*shapes[0][:-1], shapes[1][-1], shapes[0][-1]]
    return extents, [dim >= len(extents) - 2 for dim in range(len(extents))]


def make_tiled(name: str, text: str) -> list[tuple[str, int]]:
    """The function with every hint for tiles, and how many tiles that are."""
    extents, sticks = loop_extents(text)
    size = 1
    for extent in extents:
        size *= extent
    if size > SMALL:
        return []
    counts = [
        [
            count
            for count in range(1, MAX_TILES + 1)
            if extent % count == 0
            and (count == 1 or not along or extent // count % 64 == 0)
        ]
        for extent, along in zip(extents, sticks, strict=True)
    ]
    tiled = []
    for choice in itertools.product(*counts):
        cut = [(dim, count) for dim, count in enumerate(choice) if count > 1]
        if not cut:
            continue
        # The reduced dimension is the innermost loop.
        if " spyre_graph.sum " in text:
            reduced = int(re.search(r"dims = array<i64: (\d+)>", text)[1])
            cut.sort(key=lambda item: item[0] == reduced)
        hints = ", ".join(
            f"array<i64: {scope}, {dim}, {count}>"
            for scope, (dim, count) in enumerate(cut)
        )
        hint = f"spyre_graph.tile_hints = [{hints}]"
        head, tail = text.replace(f"@{name}(", f"@{name}_{len(tiled)}(").split(" outs(")
        if "{" in tail:
            tail = tail.replace("{", f"{{{hint}, ", 1)
        else:
            tail = tail.replace(")", f") {{{hint}}}", 1)
        number = 1
        for _, count in cut:
            number *= count
        tiled.append((f"{head} outs({tail}", number))
    return tiled


def run(
    tool: Path, file: Path, options: str, tiling: str = ""
) -> dict[str, tuple[float, float, int]]:
    """Seconds of the choice and of the cheapest, and the latter's field."""
    result = subprocess.run(
        [
            tool,
            file,
            "--pass-pipeline=builtin.module(func.func("
            f"{tiling}spyre-work-division{{{options}}}))",
            "--remark-policy=all",
            "--remarks-filter=spyre-work-division",
            "-o",
            "/dev/null",
        ],
        capture_output=True,
        text=True,
    )
    if result.returncode != 0:
        raise SystemExit(result.stderr)
    # Tiles of a reduction are put together by small operations, too.
    return {
        name: (float(seconds), float(cheapest), int(count))
        for name, op, seconds, count, cheapest in REMARK.findall(result.stderr)
        if op in ("matmul", "exp", "sum")
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    tool = parser.parse_args().build / "bin" / "spyre-opt"
    shapes = make_shapes()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "shapes.mlir"
        file.write_text("".join(text for _, text in shapes))
        ours = run(tool, file, "")
        reference = run(tool, file, "mode=reference")
        tiles: dict[str, int] = {}
        texts = []
        for number, (_, text) in enumerate(shapes):
            for i, (tiled, count) in enumerate(make_tiled(f"f{number}", text)):
                texts.append(tiled)
                tiles[f"f{number}_{i}"] = count
        file.write_text("".join(texts))
        in_tiles = run(tool, file, "", "spyre-coarse-tiling,")
    if in_tiles.keys() != tiles.keys():
        raise SystemExit(f"{len(in_tiles)} of {len(tiles)} tilings priced")
    cheapest_tiled: dict[str, float] = {}
    for name, (_, seconds, _) in in_tiles.items():
        shape = name.split("_")[0]
        whole = cheapest_tiled.get(shape, ours[shape][1])
        cheapest_tiled[shape] = min(whole, seconds * tiles[name])
    if len(ours) != len(shapes) or len(reference) != len(shapes):
        raise SystemExit(f"{len(ours)} and {len(reference)} of {len(shapes)} priced")

    rows: dict[str, list[tuple[float, float]]] = {}
    for number, (kind, _) in enumerate(shapes):
        seconds, cheapest, _ = ours[f"f{number}"]
        cheapest = cheapest_tiled.get(f"f{number}", cheapest)
        rows.setdefault(kind, []).append(
            (seconds / cheapest, seconds / reference[f"f{number}"][0])
        )
    print(
        f"{'kind':<22}{'shapes':>7}{'ours / cheapest':>17}{'worst':>8}"
        f"{'ours / reference':>18}{'worst':>8}{'best':>8}"
    )

    def print_row(name: str, values: list[tuple[float, float]]) -> None:
        cheapest, reference = zip(*values, strict=True)
        print(
            f"{name:<22}{len(values):>7}{statistics.mean(cheapest):>17.4f}"
            f"{max(cheapest):>8.4f}{statistics.geometric_mean(reference):>18.4f}"
            f"{max(reference):>8.4f}{min(reference):>8.4f}"
        )

    for kind, values in rows.items():
        print_row(kind, values)
    every = [value for values in rows.values() for value in values]
    print_row("all", every)
    print(f"of {len(cheapest_tiled)} shapes also over {len(tiles)} tilings")
    cheapest, against = zip(*every, strict=True)
    found = Ratios()
    found.add("division / cheapest: mean", statistics.mean(cheapest), LIMIT_MEAN)
    found.add("division / cheapest: worst", max(cheapest), LIMIT_WORST)
    found.add("division / reference's: worst", max(against), LIMIT_REFERENCE)
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
