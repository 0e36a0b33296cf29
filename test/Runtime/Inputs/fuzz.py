# SPDX-License-Identifier: Apache-2.0
"""Runs spyre-run on mutated programs: an error is fine, a crash or a hang is not.

fuzz.py FOLDER [--count N] [--seed N] [--tool spyre-run|spyre-opt]. The programs that
are mutated are the dialect's and the runtime's tests. Prints how the mutants ended;
exit status 1 if one crashed, hung, or made a sanitizer report. Those are kept in
FOLDER. Arrays are ones; each mutant gets ten seconds and 12 GiB of address space
(none under a sanitizer, whose own limits apply).
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import os
import random
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
from check_tiles import gather_program, scatter_program
from programs import function, load, store

SECONDS = 10
FINE = ("ran", "refused")
ADDRESS_SPACE = 12 << 30
TESTS = Path(__file__).resolve().parent.parent.parent
NUMBERS = "0 1 2 3 7 63 64 65 -1 -2 127 4096 2147483647 4294967296 9223372036854775807"
TOKENS = [
    "index",
    "i1",
    "i8",
    "i32",
    "i64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "f8E4M3FN",
    "?",
    "mod",
    "floordiv",
    "ceildiv",
    "symbols",
    "global",
    "ct_local",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    ":",
    ",",
    "->",
    "%",
    "#",
    "!",
    "@",
    "^bb0",
    "=",
    ">=",
    "==",
]
TOKEN = re.compile(r"[%#@!^]?[A-Za-z_][\w.$]*|-?\d+(?:\.\d+)?|\S")


def seeds() -> list[str]:
    """Every program of the tests, one function or split part each."""
    parts = []
    for pattern in ("Dialect/KTIR/*.mlir", "Runtime/*.mlir", "tools/spyre-run/*.mlir"):
        for path in sorted(TESTS.glob(pattern)):
            text = re.sub(
                r"(?m)^\s*// (?:RUN|CHECK|expected).*\n", "", path.read_text()
            )
            parts += [p for p in text.split("// -----") if "func.func" in p]
    return parts


def runnable() -> list[str]:
    """Programs that run as they are, on arrays of 8192 ones."""
    tile = "ktdp.load %x_t : !ktdp.access_tile<5x7xindex> -> tensor<5x7xf32>"
    x, z = load("x", (5, 7), "f32"), store("z", (5, 7), "f32", "r")
    assert tile in x
    bodies = [
        "%r = arith.addf %x_d, %x_d : tensor<5x7xf32>",
        """%zero = arith.constant 0.0 : f32
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %x_d) -> (tensor<5x7xf32>) {
      %e = tensor.extract %a[%i, %c0] : tensor<5x7xf32>
      %b = tensor.insert %e into %a[%c0, %i] : tensor<5x7xf32>
      scf.yield %b : tensor<5x7xf32>
    }""",
        """%e = tensor.empty() : tensor<5xf32>
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
    %s = linalg.reduce { arith.addf } ins(%x_d : tensor<5x7xf32>) outs(%f : tensor<5xf32>) dimensions = [1]
    %o = tensor.empty() : tensor<5x7xf32>
    %r = linalg.broadcast ins(%s : tensor<5xf32>) outs(%o : tensor<5x7xf32>) dimensions = [1]""",
        """%p = tensor.pad %x_d low[1, 0] high[0, 2] {
    ^bb0(%i: index, %j: index):
      %c = arith.constant 2.5 : f32
      tensor.yield %c : f32
    } : tensor<5x7xf32> to tensor<6x9xf32>
    %r = tensor.extract_slice %p[1, 1] [5, 7] [1, 1] : tensor<6x9xf32> to tensor<5x7xf32>""",
        """%s = tensor.collapse_shape %x_d [[0, 1]] : tensor<5x7xf32> into tensor<35xf32>
    %t = math.exp %s : tensor<35xf32>
    %r = tensor.expand_shape %t [[0, 1]] output_shape [5, 7] : tensor<35xf32> into tensor<5x7xf32>""",
        """%o = tensor.empty() : tensor<7x5xf32>
    %t = linalg.transpose ins(%x_d : tensor<5x7xf32>) outs(%o : tensor<7x5xf32>) permutation = [1, 0]
    %e = tensor.empty() : tensor<5x5xf32>
    %m = linalg.matmul ins(%x_d, %t : tensor<5x7xf32>, tensor<7x5xf32>) outs(%e : tensor<5x5xf32>) -> tensor<5x5xf32>
    %r = tensor.insert_slice %m into %x_d[0, 1] [5, 5] [1, 1] : tensor<5x5xf32> into tensor<5x7xf32>""",
    ]
    result = [function("x z", f"{x}\n    {body}\n    {z}") for body in bodies]
    result += [gather_program(16, 20), scatter_program(16, 20)]
    for kernel in ("square", "pair_sum", "gather_rows"):
        text = (TESTS / "Dialect/KTIR/kernels.mlir").read_text()
        text = re.sub(r"(?m)^\s*//.*\n", "", text)
        aliases = "\n".join(re.findall(r"(?m)^#.*$", text))
        body = re.search(rf"(?ms)^func\.func @{kernel}\(.*?^\}}", text)
        assert body
        result.append((aliases + "\n" + body.group()).replace("f16", "f32"))
    return result


def mutate(text: str, others: list[str], rng: random.Random) -> str:
    """One to three edits of tokens or lines."""
    for _ in range(rng.randint(1, 3)):
        kind = rng.random()
        if kind < 0.15:
            lines = text.split("\n")
            at = rng.randrange(len(lines))
            choice = rng.random()
            if choice < 0.4:
                del lines[at]
            elif choice < 0.7:
                lines.insert(rng.randrange(len(lines) + 1), lines[at])
            else:
                donor = rng.choice(others).split("\n")
                lines.insert(at, rng.choice(donor))
            text = "\n".join(lines)
            continue
        tokens = list(TOKEN.finditer(text))
        if not tokens:
            continue
        numbers = [t for t in tokens if re.fullmatch(r"-?\d+", t.group())]
        token = rng.choice(numbers if kind < 0.7 and numbers else tokens)
        word = token.group()
        if kind < 0.4 and numbers:
            new = str(int(word) + rng.choice([-1, 1, 2, int(word)]))
        elif kind < 0.7 and numbers:
            new = rng.choice(NUMBERS.split())
        elif kind < 0.9:
            new = rng.choice(tokens).group()
        else:
            new = rng.choice([*TOKENS, ""])
        if kind < 0.3 and numbers:
            # Everywhere: shapes stay consistent more often.
            new = str(max(int(word) + rng.choice([-1, 1, 2, int(word)]), 0))
            text = re.sub(rf"(?<![\w.]){re.escape(word)}(?=x|\b)", new, text)
            continue
        text = text[: token.start()] + new + text[token.end() :]
    return text


def limit() -> None:
    """Called in the child."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(tool: str, path: Path, entry: str, arguments: list[str]) -> tuple[str, str]:
    """How a mutant ended, and what it said."""
    command = [tool, str(path)]
    if tool.endswith("spyre-run"):
        command += ["--check", "full"]
        command += ["--entry", entry] if entry else []
        for argument in arguments:
            command += ["--arg", argument]
    else:
        command += ["--canonicalize", "--ktdp-strict", "--allow-unregistered-dialect"]
    sanitized = "ASAN_OPTIONS" in os.environ
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=SECONDS * (6 if sanitized else 1),
            preexec_fn=None if sanitized else limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "hang", ""
    text = done.stderr.decode(errors="replace")
    if "Sanitizer" in text or "runtime error:" in text:
        return "report", text
    if done.returncode not in (0, 1):
        return "crash", text
    if done.returncode == 1 and "error" not in text:
        return "silent", text
    return "ran" if done.returncode == 0 else "refused", text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tool", default="spyre-run")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    array = options.folder / "ones.npy"
    indices = options.folder / "indices.npy"
    np.save(array, np.ones(8192, np.float32))
    np.save(indices, np.arange(20, dtype=np.int32) % 8)
    programs, running = seeds(), runnable()

    def one(number: int) -> tuple[str, Path]:
        rng = random.Random(options.seed * 1000003 + number)
        text = rng.choice(running if rng.random() < 0.7 else programs)
        if rng.random() < 0.9:
            text = mutate(text, programs + running, rng)
        path = options.folder / f"{options.seed}-{number}.mlir"
        path.write_text(text)
        functions = re.findall(r"func\.func (?:private )?@(\w+)\(([^)]*)\)", text)
        entry, signature = rng.choice(functions) if functions else ("", "")
        arguments = [
            "1"
            if "index" not in a
            else str(indices)
            if re.match(r"\s*%i(dx)?\b", a)
            else rng.choice([str(array)] * 9 + ["7"])
            for a in signature.split(",")
            if a.strip() and "pool_size" not in a
        ]
        how, said = run(options.tool, path, entry, arguments)
        if how in FINE:
            path.unlink()
        else:
            path.with_suffix(".txt").write_text(f"{entry} {arguments}\n{said}")
        return how, path

    ends: collections.Counter[str] = collections.Counter()
    bad = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for how, path in pool.map(one, range(options.count)):
            ends[how] += 1
            if how not in FINE:
                bad.append(f"{path}: {how}")
    print(
        f"seed {options.seed}: "
        + ", ".join(f"{n} {h}" for h, n in sorted(ends.items()))
    )
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
