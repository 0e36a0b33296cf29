# SPDX-License-Identifier: Apache-2.0
"""Runs functions tile by tile, as hints ask, and as a whole: the bits must agree.

Usage: check_tiles.py FOLDER. Odd sizes whose last tile is smaller than the others, loops
in loops, indices of extrema with ties, infinities and NaN, dimensions that views flatten
and take apart, softmaxes of rows without a finite maximum. Exits with 1 and prints what
differs.
"""

import pathlib
import re
import subprocess
import sys

import numpy as np
from check_tiled_reductions import NAMES, PLAN, Case, hint, tensor

HINTS = re.compile(r"(, )?spyre_graph.tile_hints = \[[^\]]*\]")


def view(case: Case, value: str, shape, to, maps: str) -> str:
    name = f"%v{len(case.lines)}"
    case.lines.append(
        f"{name} = spyre_graph.view {value}, affine_map<{maps}> : "
        f"{tensor(shape)} -> {tensor(to)}"
    )
    return name


def values(rng, shape, element: str):
    """Few different ones, so that many are equal."""
    if element == "i1":
        return rng.random(shape) < rng.choice([0.02, 0.98])
    x = rng.integers(-3, 4, shape)
    if element == "i64":
        return x
    x = x.astype(np.float64)
    x[rng.random(shape) < 0.02] = -np.inf
    x[rng.random(shape) < 0.02] = np.inf
    x[rng.random(shape) < 0.01] = np.nan
    x[..., 0] = -np.inf
    x[0] = np.inf
    return x


def extrema(rng):
    for name in ("argmax", "argmin", "max", "min"):
        for element in ("f16", "f32", "i64", "i1"):
            if element == "i1" and not name.startswith("arg"):
                continue
            for shape, dim, tiles in [
                ((65, 130), 0, 3),
                ((63, 200), 1, 2),
                ((127, 64), 0, 127),
                ((3, 449), 1, 3),
                ((128, 1), 0, 4),
            ]:
                case = Case(f"{name} of {element} {shape} over {dim} by {tiles}")
                arg = case.argument(values(rng, shape, element), element)
                keep = tuple(1 if d == dim else n for d, n in enumerate(shape))
                attributes = f"dims = array<i64: {dim}>, {hint((dim, tiles))}"
                out = "i64" if name.startswith("arg") else element
                r = case.op(name, [arg], [None], keep, out, attributes)
                yield case, [(r, np.zeros(keep), out)]
    for dim, tiles in [(0, 2), (0, 5)]:
        case = Case(f"argmax over both dimensions by {tiles}")
        arg = case.argument(values(rng, (5, 67), "f16"))
        attributes = f"dims = array<i64: 0, 1>, {hint((dim, tiles))}"
        r = case.op("argmax", [arg], [None], (1, 1), "i64", attributes)
        yield case, [(r, np.zeros((1, 1)), "i64")]


def chains(rng):
    """Values used inside, outside and on both sides of a loop."""
    for rows, columns, tiles in [(65, 70, 4), (127, 63, 3), (7, 130, 3), (63, 1, 2)]:
        case = Case(f"chain of {rows} rows by {tiles}")
        shape = (rows, columns)
        own = [(shape, "f16")]
        cut = hint((0, tiles))
        arg = case.argument(rng.standard_normal(shape))
        a = case.op("exp", [arg], [None], shape, attributes=cut)
        b = case.op("neg", [a], own, shape, attributes=cut)
        c = case.op("mul", [a, b], own * 2, shape, attributes=cut)
        d = case.op("add", [b, c], own * 2, shape)
        yield case, [(b, np.zeros(shape), "f16"), (d, np.zeros(shape), "f16")]


def matmuls(rng):
    for m, n, k, levels in [
        (65, 200, 63, [(0, 3), (1, 2)]),
        (127, 65, 450, [(2, 3)]),
        (130, 449, 130, [(0, 4), (1, 3), (2, 2)]),
    ]:
        case = Case(f"matmul {m} {n} {k} by {levels}")
        x, y = rng.integers(-2, 3, (m, k)), rng.integers(-2, 3, (k, n))
        names = [case.argument(x), case.argument(y)]
        r = case.op("matmul", names, [None] * 2, (m, n), attributes=hint(*levels))
        yield case, [(r, np.zeros((m, n)), "f16")]


def views(rng):
    """Heads along the columns, and along the rows."""
    for heads, width, tiles in [(4, 64, 2), (5, 64, 3), (6, 128, 6)]:
        yield from view_pair(rng, heads, width, tiles, 1)
    for heads, width, tiles in [(5, 7, 3), (3, 63, 3), (8, 1, 3)]:
        yield from view_pair(rng, heads, width, tiles, 0)


def view_pair(rng, heads: int, width: int, tiles: int, dim: int):
    both = f"h * {width} + d"
    quotient, rest = f"c floordiv {width}, c mod {width}", 65
    if dim == 0:
        flat, apart = (heads * width, rest), (heads, width, rest)
        taken, joined = f"(h, d, a) -> ({both}, a)", f"(c, a) -> ({quotient}, a)"
    else:
        flat, apart = (rest, heads * width), (rest, heads, width)
        taken, joined = f"(a, h, d) -> (a, {both})", f"(a, c) -> (a, {quotient})"
    for name, before, after, maps, step in [
        ("taken apart", flat, apart, taken, width),
        ("joined", apart, flat, joined, 1),
    ]:
        cut = f"spyre_graph.tile_hints = [array<i64: 0, {dim}, {tiles}, {step}>]"
        case = Case(f"{heads} heads of {width} by {tiles}, {name}")
        arg = case.argument(rng.standard_normal(before))
        a = case.op("exp", [arg], [None], before, attributes=cut)
        v = view(case, a, before, after, maps)
        b = case.op("neg", [v], [(after, "f16")], after, attributes=cut)
        yield case, [(b, np.zeros(after), "f16")]


def unusual_rows(columns: int, element: str) -> np.ndarray:
    """Rows whose exponentials below the maximum are 0, so that all sums are exact."""
    inf, half = np.inf, columns // 2
    least = np.finfo(NAMES[element][1]).min
    low = -3.2e38 if element == "f32" else -6.5e4
    # What most of the row is, where it is something else, and what.
    rows = [(value, 0, value) for value in (-inf, low, least, inf, np.nan, 7)]
    for first, second in [(-inf, 5), (-inf, low), (-inf, least), (low, least)]:
        rows.append((first, slice(half, None), second))
        rows.append((second, slice(half, None), first))
    for place in (0, half, columns - 1):
        rows += [(value, place, inf) for value in (1, -inf)]
        rows += [(value, place, np.nan) for value in (1, -inf)]
        rows += [(-inf, place, 3), (-200, place, 3), (least, place, -inf)]
    x = np.empty((len(rows), columns))
    for row, (value, place, other) in zip(x, rows, strict=True):
        row[:] = value
        row[place] = other
    return x


def softmaxes(rng):
    """The maximum, the sum, its logarithm, and what attention makes of values."""
    for element in ("f16", "f32"):
        for columns, tiles in [(192, 3), (256, 4), (450, 3), (130, 2)]:
            case = Case(f"softmax of {element} over {columns} by {tiles}")
            case.checks = "bounds"  # A full check stops where a NaN is made.
            x = unusual_rows(columns, element)
            arg = case.argument(-x, element)
            v = case.argument(rng.integers(-2, 3, x.shape), element)
            own, one = (x.shape, element), ((len(x), 1), element)
            sums = (one[0], "f32")
            cut = hint((1, tiles))
            reduce = f"dims = array<i64: 1>, {cut}"
            score = case.op("neg", [arg], [None], *own, cut)
            m = case.op("max", [score], [own], *one, reduce)
            e = case.op("exp_sub", [score, m], [own, one], *own, cut)
            s = case.op("sum", [e], [own], *sums, reduce)
            w = case.op(
                "sum_products",
                [e, v],
                [own, None],
                *sums,
                f"scale = 1.0 : f64, {reduce}",
            )
            ln = case.op("log", [s], [sums], *sums)
            total = case.op("add", [m, ln], [one, sums], *one)
            mean = case.op("div", [w, s], [sums] * 2, *one)
            yield case, [(r, np.zeros(one[0]), element) for r in (m, total, mean)]


def run(text: str, case: Case, results, folder: pathlib.Path):
    """The results, or what went wrong; and the program."""
    folder.mkdir(parents=True, exist_ok=True)
    graph, program = folder / "graph.mlir", folder / "program.mlir"
    graph.write_text(text)
    command = ["spyre-run", program, f"--check={case.checks}", "--out-dir", folder]
    for number, (_, data, _) in enumerate(case.inputs):
        np.save(folder / f"in{number}.npy", data)
        command += ["--arg", folder / f"in{number}.npy"]
    command += ["--arg", "zeros"] * len(results)
    for step in (
        ["spyre-opt", graph, f"--pass-pipeline={PLAN}", "-o", program],
        command,
    ):
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr, ""
    found = [np.load(folder / f"out{n}.npy") for n in range(len(results))]
    # There is one NaN.
    bits = [np.where(x == x, x, np.nan).astype(x.dtype).tobytes() for x in found]
    return bits, program.read_text()


def check(case: Case, results, folder: pathlib.Path) -> str | None:
    text = case.text(results)
    tiled, tiled_program = run(text, case, results, folder / "tiled")
    whole, whole_program = run(HINTS.sub("", text), case, results, folder / "whole")
    if isinstance(tiled, str) or isinstance(whole, str):
        return f"{tiled}\n{whole}"
    if tiled_program == whole_program:
        return "no tiles"
    return None if tiled == whole else "other bits than the whole"


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    rng = np.random.default_rng(20261122)
    failures = count = 0
    for make in (extrema, chains, matmuls, views, softmaxes):
        for case, results in make(rng):
            count += 1
            difference = check(case, results, folder)
            if difference:
                failures += 1
                print(f"{case.name}: {difference}")
                print((folder / "tiled" / "graph.mlir").read_text())
    print(f"{count - failures} of {count} functions give the bits of the whole")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
