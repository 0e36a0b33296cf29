# SPDX-License-Identifier: Apache-2.0
"""Random programs of many operators: on the CPU, eager and compiled, to the bit.

All values are small whole numbers, or are only moved, so that every rounding is
exact. ``SPYRE_RANDOM_PROGRAMS=2000 SPYRE_RANDOM_SEED=1`` runs that many from that seed
on; a failure prints the smallest program that still fails, as Python to run.
"""

import faulthandler
import os
import re
from collections import Counter

import pytest
import torch
import torch_spyre
from numerics import assert_exact, compiled
from random_operators import OPERATORS
from random_programs import draw_program, shrink
from torch_spyre import compile_backend

COUNT = int(os.environ.get("SPYRE_RANDOM_PROGRAMS", 100))
SEED = int(os.environ.get("SPYRE_RANDOM_SEED", 0))
#: At least so many programs run without a step on the CPU.
NATIVE_SHARE = 0.95
#: Programs that are run to shrink one failure.
TRIES = 40


def compare(actual, expected, what):
    for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
        if isinstance(e, torch.Tensor):
            assert_exact(a.cpu(), e, f"{what} {i}")


def run(program, is_compiled=True):
    """Eager and compiled; operators that ran on the CPU.

    Raises: AssertionError for other values, or what the program raised.
    """
    torch_spyre.reset_fallback_report()
    function, arguments = program.functions()
    refusals = compile_backend.refusals()
    ways = {"eager": function}
    if is_compiled:
        ways["compiled"] = compiled(function, dynamic=None)
    for call in range(program.num_calls):
        wanted_arguments = arguments("cpu", call)
        wanted = function(*wanted_arguments)
        for way, run_it in ways.items():
            given = arguments("spyre", call)
            results = run_it(*given)
            compare(results, wanted, f"{way}, call {call}: result")
            compare(given, wanted_arguments, f"{way}, call {call}: argument")
    new = {
        reason: count - refusals.get(reason, 0)
        for reason, count in compile_backend.refusals().items()
        if count > refusals.get(reason, 0)
    }
    assert not new, f"refused: {new}"
    return torch_spyre.fallback_report()


def failure_of(program):
    """What is wrong with a program, and its kind: the text without numbers."""
    try:
        run(program)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        kind = text.split(" values differ")[0][:300]
        return text, re.sub(r"\d+", "", kind)[:150]
    return None


def fails_without_spyre(program):
    """Whether PyTorch's part of compiling is wrong: on the CPU, without a compiler.

    Writes through ``unfold`` zero what the windows leave out, and arguments on one
    storage do not go with every view. Eager, the program has to be right.
    """
    function, arguments = program.functions()
    try:
        run(program, is_compiled=False)
    except Exception:
        return False
    torch._dynamo.reset()
    by_compiler = torch.compile(function, backend="aot_eager")
    try:
        for call in range(program.num_calls):
            wanted_arguments, given = arguments("cpu", call), arguments("cpu", call)
            compare(by_compiler(*given), function(*wanted_arguments), "result")
            compare(given, wanted_arguments, "argument")
    except Exception:
        return True
    return False


def describe(failures):
    """One shrunk program per kind of failure."""
    kinds = {}
    for seed, program in failures.items():
        text, kind = failure_of(program) or ("did not fail again", "")
        kinds.setdefault(kind, []).append((seed, program, text))
    for kind, found in kinds.items():
        _, program, text = min(found, key=lambda f: len(f[1].lines))

        def fails(candidate, kind=kind):
            failure = failure_of(candidate)
            return (
                failure is not None
                and failure[1] == kind
                and not fails_without_spyre(candidate)
            )

        least = shrink(program, fails, TRIES)
        yield f"seeds {[s for s, _, _ in found]}: {text}\n\n{least.runnable()}"


@pytest.fixture
def refuse():
    """Refusals are counted per program, not per test."""


@pytest.mark.filterwarnings("ignore:.*has no spyre kernel")
@pytest.mark.usefixtures("refuse")
def test_random_programs(capsys):
    faulthandler.cancel_dump_traceback_later()  # by hand it may take its time
    used, fallbacks = Counter(), Counter()
    failures = {}
    not_ours = []
    native = 0
    for seed in range(SEED, SEED + COUNT):
        program = draw_program(seed, OPERATORS)
        used.update(line.operator for line in program.lines)
        try:
            report = run(program)
        except Exception as error:
            if fails_without_spyre(program):
                not_ours.append(seed)
                continue
            failures[seed] = program
            with capsys.disabled():
                print(f"\nseed {seed}: {type(error).__name__}: {error}"[:400])
            continue
        native += not report
        fallbacks.update(report)
    count = COUNT - len(not_ours)
    with capsys.disabled():
        print(
            f"\nseeds {SEED} to {SEED + COUNT - 1}: {len(failures)} failed, "
            f"{native} of {count} ran natively; aot_eager is wrong on the CPU for "
            f"{not_ours}"
        )
        print("lines:", ", ".join(f"{n} {c}" for n, c in sorted(used.items())))
        print("on the CPU:", dict(fallbacks) or "nothing")
    assert not failures, "\n\n".join(["wrong programs", *describe(failures)])
    assert native >= NATIVE_SHARE * count
