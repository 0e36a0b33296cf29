# SPDX-License-Identifier: Apache-2.0
"""Random graphs of sizes that vary, at all kinds of sizes, in all kinds of programs.

``SPYRE_RANDOM_SIZES=2000 SPYRE_RANDOM_SEED=1`` runs that many of each kind from that
seed on.
"""

import faulthandler
import os
import random

import numpy as np
import pytest
import torch
from commands import arguments, call, needs_tools, run
from numerics import (
    assert_exact,
    compiled,
    poison,
    poisoned,
    rms,
    round_dl16,
)
from random_operators import OPERATORS
from random_programs import draw_program
from random_sizes import Symbol, draw_sized, shape_at
from resized_programs import with_sizes
from torch_spyre import compile_backend
from torch_spyre.compile_backend import compiled_parts

COUNT = int(os.environ.get("SPYRE_RANDOM_SIZES", 0))
SEED = int(os.environ.get("SPYRE_RANDOM_SEED", 20261129))

# --- functions of the graph dialect -------------------------------------------

#: Ranges of one symbol or of two: with at most 32 sizes the verifier checks each, with
#: more it proves them.
RANGES = (
    ((1, 130),),
    ((1, 7),),
    ((3, 200),),
    ((1, 66), (2, 65)),
    ((2, 512),),
    ((60, 70),),
)
#: A step and the largest size: SuperDSC has what is between.
STEPS = ((13, 65), (64, 256), (21, 63), (1, 7), (31, 248))
#: What no run may read, nor leave in a result.
POISON = {
    np.dtype(np.float16): np.inf,
    np.dtype(np.float32): np.nan,
    np.dtype(np.int64): 1 << 20,
}


def draw_function(seed, number, ranges, **how):
    """The first of its number whose values are not too large."""
    symbols = [Symbol(name, *r) for name, r in zip("st", ranges, strict=False)]
    found = (draw_sized(seed, number * 1000 + i, symbols, **how) for i in range(1000))
    return next(function for function in found if function is not None)


def sizes_of(symbols, rng):
    """Ends of ranges, around sticks, and some more; in no order."""
    kinds = (1, 31, 32, 33, 63, 64, 65, 127, 128, 129)
    each = []
    for symbol in symbols:
        most = symbol.most
        inside = [
            n for n in kinds if symbol.least <= n <= most and n % symbol.step == 0
        ]
        some = rng.sample(inside, min(3, len(inside)))
        each.append([symbol.least, most, *some])
        rng.shuffle(each[-1])
    count = max(map(len, each))
    for i in range(count):
        yield {s.name: e[i % len(e)] for s, e in zip(symbols, each, strict=True)}


def rounded(values):
    return round_dl16(torch.from_numpy(np.array(values, np.float64))).numpy()


def check_value(found, exact, oracle, what):
    """As exact as one that is rounded after every operation."""
    assert found.shape == exact.shape, what
    if found.dtype == np.int64:
        assert np.array_equal(found, exact), what
        return
    error, other, size = (
        rms(torch.from_numpy(np.asarray(a, np.float64)))
        for a in (found - exact, oracle - exact, exact)
    )
    # A sum of few is sometimes exact by chance; of fp16 there is one rounding.
    assert error <= 2 * other + 2.0**-10 * size, (
        f"{what}: RMS error {error:.4g}, the oracle's is {other:.4g}, of {size:.4g}"
    )


def results_of(program, given, function, numbers, folder):
    """Names and values of what is written, after a run with these sizes."""
    options = arguments(given, folder)
    for number in numbers:
        options += ["--arg", number]
    out = folder / "out"
    run("spyre-run", program, *options, "--out-dir", out, "--check=full")
    names = [f"out{i}" for i in range(len(function.results()))]
    if function.written:
        names.append(function.written[0][1:])
    return {name: np.load(out / f"{name}.npy") for name in names}


def expected(function, sizes, rounding=None):
    known = function.known(sizes, rounding)
    values = {f"out{i}": known[v[0]] for i, v in enumerate(function.results())}
    if function.written:
        values[function.written[0][1:]] = known[function.written[1]]
    return values


def check_results(found, function, sizes, text):
    exact = expected(function, sizes)
    oracle = expected(function, sizes, rounded)
    for name, value in found.items():
        check_value(value, exact[name], oracle[name], f"{name} at {sizes}\n{text}")


def run_tight(program, function, sizes, folder, is_sized=True):
    """On arrays that are as large as the run."""
    given = [*function.arrays(sizes).values(), *["zeros"] * len(function.results())]
    numbers = sizes.values() if is_sized else ()
    return results_of(program, given, function, numbers, folder)


@needs_tools
@pytest.mark.parametrize("number", range(COUNT or 36))
def test_functions_of_any_size(number, tmp_path):
    """Right at each size, and as exact as the program of that size."""
    rng = random.Random(SEED + number)
    function = draw_function(SEED, number, RANGES[number % len(RANGES)])
    text, program = function.text(), tmp_path / "program.mlir"
    run("spyre-opt", "-", "--spyre-pipeline", "-o", program, input=text)
    for sizes in sizes_of(function.symbols, rng):
        found = run_tight(program, function, sizes, tmp_path)
        check_results(found, function, sizes, text)


@needs_tools
@pytest.mark.parametrize("number", range(COUNT or 12))
def test_functions_as_exact_as_of_one_size(number, tmp_path):
    rng = random.Random(SEED + number)
    function = draw_function(SEED + 1, number, RANGES[number % len(RANGES)])
    text, program = function.text(), tmp_path / "program.mlir"
    run("spyre-opt", "-", "--spyre-pipeline", "-o", program, input=text)
    for sizes in list(sizes_of(function.symbols, rng))[:3]:
        one_size = tmp_path / "one.mlir"
        own = function.text(sizes)
        run("spyre-opt", "-", "--spyre-pipeline", "-o", one_size, input=own)
        found = run_tight(program, function, sizes, tmp_path)
        other = run_tight(one_size, function, sizes, tmp_path, is_sized=False)
        exact = expected(function, sizes)
        for name, value in found.items():
            what = f"{name} at {sizes}\n{text}"
            check_value(value, exact[name], other[name], what)


# --- bundles ------------------------------------------------------------------


def make_bundle(text, folder):
    """Paths as KTIR and as SuperDSC; none if it says that there is no such bundle."""
    ktir, planned, bundle = (folder / n for n in ("k.mlir", "p.mlir", "bundle"))
    for command in (
        ("spyre-opt", "-", "--spyre-pipeline=superdsc-compatible=true", "-o", ktir),
        (
            "spyre-opt",
            "-",
            "--spyre-pipeline=superdsc-compatible=true to-ktir=false",
            "-o",
            planned,
        ),
        ("spyre-translate", "--to-superdsc", planned, "-o", bundle),
    ):
        done = call(*command, input=text)
        if done.returncode:
            assert done.returncode == 1 and "error:" in done.stderr, done.stderr
            return None
    return ktir, bundle


def roomy(array, shape, most):
    """An array in one that is as large as it can be."""
    whole = np.full(shape_at(shape, most), POISON[array.dtype], array.dtype)
    whole[tuple(slice(n) for n in array.shape)] = array
    return whole


def check_bundle(function, ktir, bundle, folder, rng):
    """The bits of KTIR at sizes in any order, and nothing else written."""
    text = function.text()
    (symbol,) = function.symbols
    most = {symbol.name: symbol.most}
    for sizes in sizes_of(function.symbols, rng):
        wanted = run_tight(ktir, function, sizes, folder)
        check_results(wanted, function, sizes, text)
        shapes = {value[0]: value[1] for value in function.inputs}
        arrays = function.arrays(sizes).items()
        given = [roomy(array, shapes[name], most) for name, array in arrays]
        stale = {}
        for position, value in enumerate(function.results()):
            name = f"out{position}"
            stale[name] = np.full(shape_at(value[1], most), 7, wanted[name].dtype)
            given.append(stale[name])
        if function.written:
            names = [value[0] for value in function.inputs]
            name = function.written[0]
            stale[name[1:]] = given[names.index(name)].copy()
        found = results_of(bundle, given, function, sizes.values(), folder)
        for name, value in found.items():
            whole = stale[name]
            whole[tuple(slice(n) for n in wanted[name].shape)] = wanted[name]
            what = f"{name} at {sizes}\n{text}"
            assert np.array_equal(value, whole, equal_nan=True), what


@needs_tools
def test_bundles_of_any_size(tmp_path):
    """Where SuperDSC has the sizes, and what is computed with them."""
    admitted = 0
    count = COUNT or 36
    for number in range(count):
        least, most = STEPS[number % len(STEPS)]
        function = draw_function(
            SEED + 2, number, ((least, most, least),), is_for_bundles=number % 6 > 0
        )
        folder = tmp_path / str(number)
        folder.mkdir()
        made = make_bundle(function.text(), folder)
        if made is not None:
            check_bundle(function, *made, folder, random.Random(number))
            admitted += 1
    assert admitted > count / 3


# --- programs of PyTorch ------------------------------------------------------


def on_device(program, number, with_fractions=False):
    """Arguments on storages with poison in all that no element is in.

    ``with_fractions``: of which sums are rounded.
    """
    poison()
    storages = {}
    for window in program.windows:
        buffer = window.buffer
        if buffer.name not in storages:
            values = eval(buffer.formula, {"torch": torch}).to(buffer.dtype)
            if with_fractions and buffer.dtype.is_floating_point:
                values = (values.double() * 0.37 + 0.01).to(buffer.dtype)
            storages[buffer.name] = poisoned(values.to("spyre"))
    tensors = [
        storages[w.buffer.name].as_strided(w.shape, w.strides, w.offset)
        for w in program.windows
    ]
    return [*tensors, *(values[number] for values in program.scalars.values())]


def bits(value):
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return value.cpu().contiguous().view(kinds[value.element_size()])


class Runs:
    """A compiled program at many sizes."""

    def __init__(self, sized, number):
        self.sized = sized
        self.function = sized.program.functions()[0]
        self.compiled = compiled(self.function, dynamic=None)
        self.number = number
        self.sizes = random.Random(number).sample(sized.sizes, len(sized.sizes))

    def call_of(self, program):
        """Which of the numbers that change from call to call it is for."""
        return self.number % program.num_calls

    def run(self, size, with_fractions=False):
        program = self.sized.at(size)
        given = on_device(program, self.call_of(program), with_fractions)
        self.mark(program, given)
        return self.compiled(*given), given

    def mark(self, program, given):
        """Says which dimensions vary."""
        names = [w.name for w in program.windows]
        for name, dim in self.sized.dims:
            torch._dynamo.maybe_mark_dynamic(given[names.index(name)], dim)

    def check(self, size):
        """Exactly what the CPU gives."""
        program = self.sized.at(size)
        wanted_given = program.functions()[1]("cpu", self.call_of(program))
        wanted = self.function(*wanted_given)
        for kind, actual, expected in zip(
            ("result", "argument"), self.run(size), (wanted, wanted_given), strict=True
        ):
            for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
                if isinstance(e, torch.Tensor):
                    assert_exact(a.cpu(), e, f"size {size}, {kind} {i}")

    def bits(self, size):
        return [
            bits(value)
            for values in self.run(size, with_fractions=True)
            for value in values
            if isinstance(value, torch.Tensor)
        ]

    def fails_without_spyre(self):
        """Whether PyTorch's part of compiling is wrong: on the CPU, at the same sizes.

        Arguments on one storage do not go with every view whose size varies, and what
        is a view of one that is written begins in the wrong place.
        """
        torch._dynamo.reset()
        by_compiler = torch.compile(self.function, backend="aot_eager")
        for size in self.sizes:
            program = self.sized.at(size)
            wanted_given, given = (
                program.functions()[1]("cpu", self.call_of(program)) for _ in range(2)
            )
            self.mark(program, given)
            wanted = self.function(*wanted_given)
            try:
                for a, e in zip(by_compiler(*given), wanted, strict=True):
                    if isinstance(e, torch.Tensor):
                        assert_exact(a, e, "")
            except Exception:
                return True
        return False


def draw_sized_program(number):
    seeds = range(SEED + number * 1000, SEED + number * 1000 + 1000)
    found = (with_sizes(draw_program(seed, OPERATORS), seed) for seed in seeds)
    return next(sized for sized in found if sized is not None)


def check_program(runs):
    refusals = compile_backend.refusals()
    for size in runs.sizes:
        runs.check(size)
    assert compile_backend.refusals() == refusals
    found = {size: runs.bits(size) for size in runs.sizes}
    for size in reversed(runs.sizes):
        for a, b in zip(runs.bits(size), found[size], strict=True):
            assert torch.equal(a, b), f"other bits at size {size}"


@pytest.fixture
def refuse():
    """Refusals are found per program, not per test."""


@pytest.mark.filterwarnings("ignore:.*has no spyre kernel")
@pytest.mark.usefixtures("refuse")
def test_programs_of_any_size():
    """Exact at each size; where values are rounded, whatever ran before."""
    faulthandler.cancel_dump_traceback_later()  # by hand it may take its time
    count = COUNT or 20
    num_sized, failures = 0, []
    for number in range(count):
        sized = draw_sized_program(number)
        runs = Runs(sized, number)
        before = len(compiled_parts())
        try:
            check_program(runs)
        except Exception as error:
            if not runs.fails_without_spyre():
                failures.append(
                    f"number {number}: {type(error).__name__}: {error}\n"
                    f"sizes {runs.sizes} of {sorted(sized.dims)} in\n"
                    f"{sized.program.runnable()}"
                )
        num_sized += any(p.graph.num_sizes for p in compiled_parts()[before:])
    assert not failures, "\n\n".join(failures)
    assert num_sized > count / 2
