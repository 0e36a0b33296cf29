# SPDX-License-Identifier: Apache-2.0
"""The LX solver: the public instances, random graphs, and packings without waste.

Times are of solving alone, as spyre-lx-plan measures it, on one core. Exits with
1 when a ratio is over its limit.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from ratios import Ratios

ROOT = Path(__file__).resolve().parent.parent
CAPACITY = 1 << 20
# The figure for the best published solver on these six, and its limit.
PUBLISHED_SECONDS = 20.0
LIMIT_SECONDS = 5.0
WITHOUT_LIMIT = ("random graphs: median / firstfit's",)
LIMIT_MEDIAN_SECONDS = 1e-3
# Arguments of one call of the tool.
FILES_PER_CALL = 2000

Row = dict[str, str]


def run_tool(tool: Path, arguments: list[str], files: list[Path]) -> list[Row]:
    """One row of --report per file."""
    rows: list[Row] = []
    for begin in range(0, len(files), FILES_PER_CALL):
        names = [str(file) for file in files[begin : begin + FILES_PER_CALL]]
        result = subprocess.run(
            [tool, "--report", *arguments, *names], capture_output=True, text=True
        )
        if result.returncode not in (0, 1) or result.stderr:
            raise SystemExit(f"{tool} failed: {result.stderr}")
        rows += csv.DictReader(io.StringIO(result.stdout))
    return rows


def random_graph(source: random.Random, num_buffers: int) -> str:
    """Buffers of a graph in MiniMalloc's format.

    Operations in a row each make a tensor; most read the last one or two, some
    one from further back (a residual, a saved activation), and now and then a
    temporary lives for one operation only. Sizes are whole sticks, few distinct
    ones per graph, as layers repeat.
    """
    sizes = [128 * source.randint(1, 1 << source.randint(1, 9)) for _ in range(6)]
    last_use = [0] * num_buffers
    for number in range(num_buffers):
        last_use[number] = number + 1
        for _ in range(source.choice([1, 1, 2])):
            if number == 0:
                break
            back = 1 if source.random() < 0.7 else source.randint(1, min(number, 12))
            last_use[number - back] = max(last_use[number - back], number)
    lines = ["id,lower,upper,size"]
    lines += [
        f"{number},{number},{last + 1},{source.choice(sizes)}"
        for number, last in enumerate(last_use)
    ]
    return "\n".join(lines) + "\n"


def exact_packing(source: random.Random, num_buffers: int) -> str:
    """Boxes into which the memory, over some time, is cut: they fill all of it."""
    boxes = [(0, 300, 0, CAPACITY)]
    while len(boxes) < num_buffers:
        sizes = [(end - begin) * (high - low) for begin, end, low, high in boxes]
        number = source.choices(range(len(boxes)), sizes)[0]
        begin, end, low, high = boxes[number]
        if end - begin > 1 and (source.random() < 0.5 or high - low < 2):
            cut = source.randint(begin + 1, end - 1)
            parts = [(begin, cut, low, high), (cut, end, low, high)]
        elif high - low > 1:
            cut = source.randint(low + 1, high - 1)
            parts = [(begin, end, low, cut), (begin, end, cut, high)]
        else:
            continue
        boxes[number : number + 1] = parts
    source.shuffle(boxes)
    lines = ["id,lower,upper,size"]
    lines += [
        f"{number},{begin},{end},{high - low}"
        for number, (begin, end, low, high) in enumerate(boxes)
    ]
    return "\n".join(lines) + "\n"


def print_packings(tool: Path, seed: int) -> None:
    source = random.Random(seed)
    print("packings without waste, at most 5 s each:")
    for num_buffers in (50, 100, 200, 400):
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / f"{number}.csv" for number in range(8)]
            for file in files:
                file.write_text(exact_packing(source, num_buffers))
            rows = run_tool(tool, [f"--capacity={CAPACITY}", "--timeout=5"], files)
        solved = sum(row["status"] == "solved" for row in rows)
        seconds = statistics.median(float(row["seconds"]) for row in rows)
        print(
            f"  {num_buffers} buffers: {solved} of {len(rows)} solved,"
            f" median {seconds:.3f} s"
        )
    print()


def print_instances(tool: Path, data: Path) -> list[tuple[str, float, float]]:
    files = sorted(data.glob("*.csv"))
    if len(files) != 6:
        print(f"skipped: {data} does not hold the six public instances\n")
        return []
    optimal = run_tool(tool, [f"--capacity={CAPACITY}", "--timeout=60"], files)
    # What the reference's heuristics would need.
    heights = {
        solver: run_tool(tool, ["--minimize", f"--solver={solver}"], files)
        for solver in ("greedy", "firstfit", "bestfit")
    }
    print(
        f"{'instance':<10}{'buffers':>8}{'status':>9}{'seconds':>10}{'nodes':>9}"
        f"{'live/cap':>10}" + "".join(f"{name + '/cap':>14}" for name in heights)
    )
    for number, (file, row) in enumerate(zip(files, optimal, strict=True)):
        print(
            f"{file.name.split('.')[0]:<10}{row['buffers']:>8}{row['status']:>9}"
            f"{float(row['seconds']):>10.4f}{row['nodes']:>9}"
            f"{int(row['lower_bound']) / CAPACITY:>10.3f}"
            + "".join(
                f"{int(rows[number]['height']) / CAPACITY:>14.3f}"
                for rows in heights.values()
            )
        )
    if any(row["status"] != "solved" for row in optimal):
        raise SystemExit("an instance was not solved")
    seconds = sum(float(row["seconds"]) for row in optimal)
    print(f"together {seconds:.3f} s\n")
    return [
        ("six instances: seconds / limit", seconds, LIMIT_SECONDS),
        ("six instances: seconds / published best", seconds, PUBLISHED_SECONDS),
    ]


def print_graphs(tool: Path, count: int, seed: int) -> list[tuple[str, float, float]]:
    source = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number in range(count):
            file = Path(folder) / f"{number}.csv"
            file.write_text(random_graph(source, source.randint(20, 200)))
            files.append(file)
        optimal = run_tool(tool, ["--minimize", "--timeout=2"], files)
        peers = {
            solver: run_tool(tool, ["--minimize", f"--solver={solver}"], files)
            for solver in ("greedy", "firstfit", "bestfit")
        }
    seconds = sorted(float(row["seconds"]) for row in optimal)
    proven = sum(row["status"] == "solved" for row in optimal)
    median = statistics.median(seconds)
    print(f"{count} random graphs of 20 to 200 buffers, seed {seed}:")
    print(
        f"{'solver':<10}{'median us':>11}{'99 % us':>10}{'most us':>11}"
        f"{'height / least':>16}{'least at':>10}"
    )

    def print_solver(name: str, rows: list[Row]) -> None:
        times = sorted(float(row["seconds"]) * 1e6 for row in rows)
        ratios = [
            int(row["height"]) / int(best["height"])
            for row, best in zip(rows, optimal, strict=True)
        ]
        least = sum(ratio <= 1 for ratio in ratios) / len(ratios)
        print(
            f"{name:<10}{statistics.median(times):>11.1f}"
            f"{times[len(times) * 99 // 100]:>10.1f}{times[-1]:>11.1f}"
            f"{statistics.mean(ratios):>16.4f}{least:>10.1%}"
        )

    print_solver("optimal", optimal)
    for name, rows in peers.items():
        print_solver(name, rows)
    print(
        f"optimal: {proven} of {count} proven to be the least height; greedy's "
        "seconds are those of looking for its least capacity\n"
    )
    firstfit = statistics.median(float(row["seconds"]) for row in peers["firstfit"])
    heights = sum(int(row["height"]) for row in optimal)
    greedy_heights = sum(int(row["height"]) for row in peers["greedy"])
    return [
        ("random graphs: median / limit", median, LIMIT_MEDIAN_SECONDS),
        ("random graphs: height / greedy's", heights, greedy_heights),
        ("random graphs: median / firstfit's", median, firstfit),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    arguments = parser.parse_args()
    tool = arguments.build / "bin" / "spyre-lx-plan"
    data = os.environ.get("SPYRE_REFERENCE_DATA", ROOT.parent / "shared" / "data")
    rows = print_instances(tool, Path(data) / "lx")
    rows += print_graphs(tool, arguments.graphs, arguments.seed)
    print_packings(tool, arguments.seed)
    found = Ratios()
    for name, left, right in rows:
        limit = None if name in WITHOUT_LIMIT else 1.0
        found.add(f"LX plan, {name}", left / right, limit)
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
