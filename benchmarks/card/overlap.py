# SPDX-License-Identifier: Apache-2.0
"""Programs whose cores overlap loads with work, and contend, by kind of kernel.

They compare the cost model with the timing engine; nothing of them was measured. Sizes
go from parts of a stick to more than LX holds, cores from one to all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from card import programs
from card.kernels import Kernel
from card.tools import predict_program, run, tool
from cost_model import rank_correlation
from ratios import Ratios

#: Rank correlations are to be above it.
GOAL = 0.97
#: Names of kernels that move data only.
MOVES = ("identity", "restickify", "reshard")
CORES = (1, 4, 32)
SHAPES = ((3, 65), (127, 1009), (512, 512), (2048, 1024), (1024, 8192))
#: Slices of two loops on 32 cores.
GRIDS = ((32, 1), (8, 4), (4, 8), (1, 32), (16, 1))


@dataclass(frozen=True)
class Case:
    """A program for spyre-opt. `kind` is that of its kernels, but for moves."""

    kind: str
    name: str
    text: str
    options: str


@dataclass(frozen=True)
class Pair:
    """Seconds of a kernel by the cost model, and by the timing engine."""

    program: str
    kernel: str
    model: float
    engine: float


def of_kernel(kind: str, kernel: Kernel, cores: int) -> Case:
    extents = "x".join(map(str, kernel.extents))
    name = f"{kernel.name} {extents} on {cores}"
    lx = str(kernel.lx).lower()
    return Case(kind, name, programs.write(kernel), f"cores={cores} lx-planning={lx}")


def on_rows(kind: str, names: tuple[str, ...], tiles: int) -> Iterator[Case]:
    """Operations on rows and columns, also in tiles of rows."""
    for name in names:
        for shape in SHAPES:
            for cores in CORES:
                yield of_kernel(kind, Kernel(name, shape), cores)
            if shape[0] % (32 * tiles) == 0:
                yield of_kernel(kind, Kernel(name, shape, tiles=tiles), 32)


def matmuls() -> Iterator[Case]:
    for m, n, k in (
        (1, 4096, 4096),
        (32, 2048, 512),
        (65, 193, 1009),
        (512, 512, 512),
        (1024, 1024, 4096),
        (2048, 2048, 2048),
    ):
        for cores in CORES:
            yield of_kernel("matmul", Kernel("matmul", (1, m, n, k)), cores)
        if m % 32 or n < 2048:
            continue
        for splits in ((1, 32, 1, 1), (1, 1, 32, 1), (1, 8, 4, 1), (1, 4, 4, 2)):
            kernel = Kernel("matmul", (1, m, n, k), splits=splits)
            yield of_kernel("matmul", kernel, 32)


def batched_matmuls() -> Iterator[Case]:
    for batch, m, n, k in (
        (3, 65, 65, 127),
        (8, 128, 128, 64),
        (32, 1, 1024, 128),
        (32, 512, 512, 128),
        (32, 512, 128, 512),
        (64, 32, 2048, 128),
    ):
        for cores in CORES:
            yield of_kernel("bmm", Kernel("matmul", (batch, m, n, k)), cores)
        if batch % 32 or n % 512:
            continue
        for splits in ((32, 1, 1, 1), (8, 1, 4, 1), (4, 1, 8, 1), (1, 1, 8, 1)):
            kernel = Kernel("matmul", (batch, m, n, k), splits=splits)
            yield of_kernel("bmm", kernel, 32)


def softmaxes() -> Iterator[Case]:
    for shape in SHAPES:
        for cores in CORES:
            for lx in (True, False):
                yield of_kernel("softmax", Kernel("softmax", shape, lx=lx), cores)
        if shape[0] % 128 == 0:
            yield of_kernel("softmax", Kernel("softmax", shape, tiles=4), 32)


def resharded(
    shape: tuple[int, int], first: tuple[int, ...], second: tuple[int, ...]
) -> Case:
    """Two operations that want other slices: a move over the ring, if it pays."""
    kind = programs.tensor(shape)
    body = ""
    value = "%a0"
    for name, op, slices in (("%r0", "neg", first), ("%r1", "exp", second)):
        hint = f"spyre_graph.work_division_hint = array<i64: {slices[0]}, {slices[1]}>"
        body += programs.call(name, op, [(value, kind)], kind, [hint])
        value = name
    text = programs.module([kind], body, [(value, kind)])
    name = f"{shape} in {first}, then {second} slices"
    return Case("pointwise", name, text, "cores=32 lx-planning=true")


def moves() -> Iterator[Case]:
    for name in ("restickify", "cat 0", "cat 1"):
        for shape in ((64, 128), (192, 1024), (512, 512), (2048, 1024), (1024, 8192)):
            for cores in CORES:
                yield of_kernel("movement", Kernel(name, shape, lx=False), cores)
    for extents in ((3, 5, 65), (64, 32, 128), (512, 32, 128), (128, 8, 1024)):
        for cores in CORES:
            kernel = Kernel("outer transpose", extents)
            yield of_kernel("movement", kernel, cores)
    for shape in ((512, 512), (512, 2048), (2048, 1024), (2048, 2048), (4096, 2048)):
        for first in GRIDS:
            for second in GRIDS:
                # Slices are of whole sticks.
                if first != second and max(first[1], second[1]) * 64 <= shape[1]:
                    yield resharded(shape, first, second)


def cases() -> list[Case]:
    pointwise = ("neg", "exp", "gelu", "add", "add a row", "add a column", "sum")
    return [
        *on_rows("pointwise", pointwise, 4),
        *on_rows("reduction", ("amax", "mean", "sum columns", "sum all"), 2),
        *matmuls(),
        *batched_matmuls(),
        *softmaxes(),
        *moves(),
    ]


def predict(number: int, case: Case, folder: Path) -> list[tuple[str, Pair]]:
    """The kernels of a program, each with its kind. Raises ToolError."""
    source, program = folder / f"{number}.mlir", folder / f"{number}.ktir"
    source.write_text(case.text)
    command = [tool("spyre-opt"), f"--spyre-pipeline={case.options}", str(source)]
    run([*command, "-o", str(program)])
    found = []
    for kernel in predict_program(program, None)["kernels"]:
        name = re.sub(r"^k\d+_", "", kernel["name"])
        times = kernel["cost_model_seconds"], kernel["predicted_seconds"]
        kind = "movement" if name in MOVES else case.kind
        found.append((kind, Pair(case.name, kernel["name"], *times)))
    return found


def pairs(listed: list[Case], folder: Path) -> dict[str, list[Pair]]:
    """The kernels of programs, by kind. Raises ToolError."""
    result: dict[str, list[Pair]] = {}
    with ThreadPoolExecutor(2) as pool:
        made = pool.map(predict, range(len(listed)), listed, [folder] * len(listed))
        for kernels in made:
            for kind, pair in kernels:
                result.setdefault(kind, []).append(pair)
    return result


def agreement(pairs: dict[str, list[Pair]], ratios: Ratios) -> None:
    """Prints a line per kind and adds its rank correlation, which is to be above GOAL.

    It is NaN, hence not above, if no two kernels of a kind take different times.
    """
    print(
        f"\n{'cost model against timing engine':<34}{'kernels':>8}{'ranks':>8}"
        f"{'median':>8}   furthest apart (model / engine)"
    )
    for kind, listed in pairs.items():
        title = f"rank correlation, cost model and engine, {kind}"
        # A kernel of no work has no time.
        timed = [p for p in listed if p.engine > 0]
        if not timed:
            print(f"{kind:<34}{0:>8}   no kernel takes time")
            ratios.add(title, math.nan, GOAL, at_least=True, strict=True)
            continue
        model, engine = [p.model for p in timed], [p.engine for p in timed]
        ranks = rank_correlation(model, engine)
        ratio = np.array(model) / np.array(engine)
        worst = int(np.argmax(np.abs(np.log(ratio))))
        print(
            f"{kind:<34}{len(timed):>8}{ranks:>8.4f}{np.median(ratio):>8.2f}"
            f"   {timed[worst].kernel} of {timed[worst].program}: {ratio[worst]:.2f}"
        )
        ratios.add(title, ranks, GOAL, at_least=True, strict=True)
