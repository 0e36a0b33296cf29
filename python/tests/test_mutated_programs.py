# SPDX-License-Identifier: Apache-2.0
"""Mutated programs: an error is fine, a crash or a hang is not.

The programs that are mutated are the tests of the dialects, the passes and the runtime.
Arrays are ones; each mutant gets ten seconds and 12 GiB of address space (none under a
sanitizer, whose own limits apply). ``SPYRE_FUZZ_PROGRAMS=20000 SPYRE_RANDOM_SEED=1`` runs
that many, half as many through the KTIR dialect, and as many through passes; a failure
says where its program is.
"""

import os
import random
import re
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from commands import ENVIRONMENT, ROOT, TOOLS, needs_tools
from ktir_text import function, gather_program, load, scatter_program, store

pytestmark = needs_tools

COUNT = int(os.environ.get("SPYRE_FUZZ_PROGRAMS", 120))
SEED = int(os.environ.get("SPYRE_RANDOM_SEED", 7))
SANITIZED = "ASAN_OPTIONS" in os.environ
SECONDS = 60 if SANITIZED else 10
ADDRESS_SPACE = 12 << 30
LIMITED = f'ulimit -c 0; ulimit -v {ADDRESS_SPACE >> 10}; exec "$@"'
TESTS = ROOT / "test"
NUMBERS = "0 1 2 3 7 63 64 65 -1 -2 127 4096 2147483647 4294967296 9223372036854775807"
WORDS = """index i1 i8 i32 i64 f16 bf16 f32 f64 f8E4M3FN ? mod floordiv ceildiv symbols
global ct_local ( ) [ ] { } < > : , -> % # ! @ ^bb0 = >= =="""
TOKEN = re.compile(r"[%#@!^]?[A-Za-z_][\w.$]*|-?\d+(?:\.\d+)?|\S")


def parts(path: Path) -> list[str]:
    """The programs of a test, one function or split part each."""
    text = re.sub(r"(?m)^\s*// (?:RUN|CHECK|expected).*\n", "", path.read_text())
    return [p for p in text.split("// -----") if "func.func" in p]


def files_in(*folders: str) -> list[Path]:
    found = [p for folder in folders for p in sorted(TESTS.glob(f"{folder}/*.mlir"))]
    assert found
    return found


def seeds() -> list[str]:
    """Every program of the tests of KTIR and the runtime."""
    paths = files_in("Dialect/KTIR", "Runtime", "tools/spyre-run")
    return [p for path in paths for p in parts(path)]


class PassTest(NamedTuple):
    programs: list[str]
    runs: list[list[str]]  # options of spyre-opt


def options_of(run: str) -> list[str]:
    """Those that say what spyre-opt does, not what is compared or where files are."""
    others = re.compile(r"--?(o$|split-input-file|verify-diagnostics|mlir-print)|.*%")
    return [w for w in shlex.split(run) if w[0] == "-" and not others.match(w)]


def pass_tests() -> list[PassTest]:
    """The tests of passes, but for those of errors."""
    found = []
    for path in files_in("Dialect/SpyreGraph", "Conversion/*", "Compiler", "Target/*"):
        lines = re.sub(r"\\\n\s*//( RUN:)?", "", path.read_text())
        runs = re.findall(r"// RUN:.*?spyre-opt ([^|>\n]*)", lines)
        options = [words for run in runs if (words := options_of(run))]
        if options and "invalid" not in path.name:
            found.append(PassTest(parts(path), options))
    return found


BODIES = {
    "add": "%r = arith.addf %x_d, %x_d : tensor<5x7xf32>",
    "loop": """%zero = arith.constant 0.0 : f32
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %x_d) -> (tensor<5x7xf32>) {
      %e = tensor.extract %a[%i, %c0] : tensor<5x7xf32>
      %b = tensor.insert %e into %a[%c0, %i] : tensor<5x7xf32>
      scf.yield %b : tensor<5x7xf32>
    }""",
    "reduce": """%e = tensor.empty() : tensor<5xf32>
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
    %s = linalg.reduce { arith.addf } ins(%x_d : tensor<5x7xf32>) outs(%f : tensor<5xf32>) dimensions = [1]
    %o = tensor.empty() : tensor<5x7xf32>
    %r = linalg.broadcast ins(%s : tensor<5xf32>) outs(%o : tensor<5x7xf32>) dimensions = [1]""",
    "pad": """%p = tensor.pad %x_d low[1, 0] high[0, 2] {
    ^bb0(%i: index, %j: index):
      %c = arith.constant 2.5 : f32
      tensor.yield %c : f32
    } : tensor<5x7xf32> to tensor<6x9xf32>
    %r = tensor.extract_slice %p[1, 1] [5, 7] [1, 1] : tensor<6x9xf32> to tensor<5x7xf32>""",
    "reshape": """%s = tensor.collapse_shape %x_d [[0, 1]] : tensor<5x7xf32> into tensor<35xf32>
    %t = math.exp %s : tensor<35xf32>
    %r = tensor.expand_shape %t [[0, 1]] output_shape [5, 7] : tensor<35xf32> into tensor<5x7xf32>""",
    "matmul": """%o = tensor.empty() : tensor<7x5xf32>
    %t = linalg.transpose ins(%x_d : tensor<5x7xf32>) outs(%o : tensor<7x5xf32>) permutation = [1, 0]
    %e = tensor.empty() : tensor<5x5xf32>
    %m = linalg.matmul ins(%x_d, %t : tensor<5x7xf32>, tensor<7x5xf32>) outs(%e : tensor<5x5xf32>) -> tensor<5x5xf32>
    %r = tensor.insert_slice %m into %x_d[0, 1] [5, 5] [1, 1] : tensor<5x5xf32> into tensor<5x7xf32>""",
}


#: Of test/Dialect/KTIR/kernels.mlir.
KERNELS = ["square", "pair_sum", "gather_rows"]


def runnable() -> list[str]:
    """Programs that run as they are, on arrays of 64 x 256 ones."""
    tile = "ktdp.load %x_t : !ktdp.access_tile<5x7xindex> -> tensor<5x7xf32>"
    x, z = load("x", (5, 7), "f32"), store("z", (5, 7), "f32", "r")
    assert tile in x
    result = [function("x z", f"{x}\n    {body}\n    {z}") for body in BODIES.values()]
    result += [gather_program(16, 20), scatter_program(16, 20)]
    for kernel in KERNELS:
        text = (TESTS / "Dialect/KTIR/kernels.mlir").read_text()
        text = re.sub(r"(?m)^\s*//.*\n", "", text)
        aliases = "\n".join(re.findall(r"(?m)^#.*$", text))
        body = re.search(rf"(?ms)^func\.func @{kernel}\(.*?^\}}", text)
        assert body
        result.append((aliases + "\n" + body.group()).replace("f16", "f32"))
    return result


#: Of those that run.
NAMES = [*BODIES, "gather", "scatter", *KERNELS]


def mutate_lines(text: str, others: list[str], rng: random.Random) -> str:
    """A line less, again, or of another program."""
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
    return "\n".join(lines)


def mutate_token(text: str, kind: float, rng: random.Random) -> str:
    """Another number or token, up to ``kind`` 0.3 wherever the number stands."""
    tokens = list(TOKEN.finditer(text))
    if not tokens:
        return text
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
        new = rng.choice([*WORDS.split(), ""])
    if kind < 0.3 and numbers:
        # Everywhere: shapes stay consistent more often.
        new = str(max(int(word) + rng.choice([-1, 1, 2, int(word)]), 0))
        return re.sub(rf"(?<![\w.]){re.escape(word)}(?=x|\b)", new, text)
    return text[: token.start()] + new + text[token.end() :]


def mutate(text: str, others: list[str], rng: random.Random) -> str:
    """One to three edits of tokens or lines."""
    for _ in range(rng.randint(1, 3)):
        kind = rng.random()
        if kind < 0.15:
            text = mutate_lines(text, others, rng)
        else:
            text = mutate_token(text, kind, rng)
    return text


class Corpus(NamedTuple):
    programs: list[str]
    running: list[str]
    array: str
    indices: str


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arrays")
    array, indices = folder / "ones.npy", folder / "indices.npy"
    np.save(array, np.ones(64 * 256, np.float32))
    np.save(indices, np.arange(20, dtype=np.int32) % 8)
    return Corpus(seeds(), runnable(), str(array), str(indices))


@pytest.fixture(scope="module")
def pass_corpus():
    return pass_tests()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of the mutants; those that fail stay."""
    return tmp_path_factory.mktemp("mutants")


def arguments(signature: str, corpus: Corpus, rng: random.Random | None) -> list[str]:
    """Options for a function's arguments, some of the wrong kind if drawn."""
    options = []
    for argument in signature.split(","):
        if not argument.strip() or "pool_size" in argument:
            continue
        if "index" not in argument:
            value = "1"
        elif re.match(r"\s*%i(dx)?\b", argument):
            value = corpus.indices
        else:
            value = rng.choice([corpus.array] * 9 + ["7"]) if rng else corpus.array
        options += ["--arg", value]
    return options


def signatures(text: str) -> list[tuple[str, str]]:
    return re.findall(r"func\.func (?:private )?@(\w+)\(([^)]*)\)", text)


def draw(seed: int, number: int, corpus: Corpus) -> tuple[str, list[str]]:
    """A program, mutated but for every tenth, and the options to run it."""
    rng = random.Random(seed * 1000003 + number)
    text = rng.choice(corpus.running if rng.random() < 0.7 else corpus.programs)
    if rng.random() < 0.9:
        text = mutate(text, corpus.programs + corpus.running, rng)
    functions = signatures(text)
    entry, signature = rng.choice(functions) if functions else ("", "")
    options = ["--entry", entry] if entry else []
    return text, [*options, *arguments(signature, corpus, rng)]


def check(text: str, path, tool: str, *options: str) -> int:
    """The status of a program's run, which must be 0, or 1 with an error."""
    path.write_text(text)
    command = [str(TOOLS / tool), str(path), *options]
    if not SANITIZED:
        command = ["sh", "-c", LIMITED, "sh", *command]
    what = " ".join([tool, str(path), *options])
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=SECONDS, env=ENVIRONMENT
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"hangs: {what}")
    said = done.stderr.decode(errors="replace")
    assert "Sanitizer" not in said and "runtime error:" not in said, f"{what}\n{said}"
    assert done.returncode in (0, 1), f"status {done.returncode}: {what}\n{said}"
    assert done.returncode == 0 or "error" in said, f"says nothing: {what}"
    path.unlink()
    return done.returncode


@pytest.mark.parametrize("number", range(COUNT))
def test_run(number, corpus, folder):
    text, options = draw(SEED, number, corpus)
    path = folder / f"{SEED}-{number}.mlir"
    check(text, path, "spyre-run", "--check", "full", *options)


@pytest.mark.parametrize("number", range(COUNT // 2))
def test_opt(number, corpus, folder):
    text, _ = draw(SEED + 1, number, corpus)
    path = folder / f"{SEED + 1}-{number}.mlir"
    flags = ["--canonicalize", "--ktdp-strict", "--allow-unregistered-dialect"]
    check(text, path, "spyre-opt", *flags)


@pytest.mark.parametrize("number", range(COUNT))
def test_passes(number, pass_corpus, folder):
    """The tests of passes with one or two edits, through what they are tests of."""
    rng = random.Random((SEED + 2) * 1000003 + number)
    test = rng.choice(pass_corpus)
    text = rng.choice(test.programs)
    for _ in range(rng.choice([1, 1, 2])):
        kind = rng.random()
        if kind < 0.1:
            text = mutate_lines(text, test.programs, rng)
        else:
            text = mutate_token(text, rng.uniform(0, 0.7), rng)
    path = folder / f"{SEED + 2}-{number}.mlir"
    check(text, path, "spyre-opt", *rng.choice(test.runs))


@pytest.mark.parametrize("name", NAMES)
def test_runs_before_it_is_mutated(name, corpus, folder):
    text = corpus.running[NAMES.index(name)]
    ((entry, signature),) = signatures(text)
    options = ["--entry", entry, *arguments(signature, corpus, None)]
    path = folder / f"{name}.mlir"
    assert check(text, path, "spyre-run", "--check", "full", *options) == 0
