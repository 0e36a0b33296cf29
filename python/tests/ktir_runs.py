# SPDX-License-Identifier: Apache-2.0
"""Runs programs of KTIR, and compares what they compute or say."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from commands import arguments, call, execute

FULL = ("--check", "full")


def launch(program: str, values: Sequence, folder: Path, *flags) -> dict:
    """The arguments after a run of a program's text, by name."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "program.mlir"
    file.write_text(program)
    return execute(file, values, folder, *flags)


def fails(program: str, values: Sequence, messages: Sequence, folder: Path, *flags):
    """The run ends with status 1 and every message, and writes nothing."""
    folder = folder / "bad"
    folder.mkdir()
    file, out = folder / "program.mlir", folder / "out"
    file.write_text(program)
    options = [*arguments(values, folder), "--out-dir", out, *flags]
    done = call("spyre-run", file, *options)
    assert done.returncode == 1, f"status {done.returncode}: {done.stderr[-3000:]}"
    for message in messages:
        assert message in done.stderr, (message, done.stderr)
    assert not out.exists()


def line_of(program: str, text: str, occurrence: int = 0) -> int:
    """Number of the line that holds the ``occurrence``-th ``text``."""
    found = [n for n, line in enumerate(program.splitlines(), 1) if text in line]
    return found[occurrence]


def half(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float16)


def round_dl16(x) -> np.ndarray:
    """Rounds float32 values to DL16 (spec/numerics.md), NaN to +inf."""
    x = np.asarray(x, np.float32)
    bits = x.view(np.uint32).astype(np.int64)
    sign = bits & 0x80000000
    magnitude = ((bits & 0x7FFFFFFF) + (1 << 13)) >> 14 << 14
    exponent = (magnitude >> 23) - 127 + 31
    value = magnitude.astype(np.uint32).view(np.float32).copy()
    zero = (exponent < 0) | ((exponent == 0) & (magnitude & 0x7FFFFF == 0))
    value[zero] = 0.0
    fraction = (magnitude >> 14) & 511
    value[(exponent > 63) | ((exponent == 63) & (fraction == 511))] = np.inf
    result = np.where(sign != 0, -value, value)
    result = np.where(np.isnan(x), np.inf, result)
    return result.astype(np.float32)


def round_half(x) -> np.ndarray:
    """Rounds to IEEE half."""
    return np.asarray(x, np.float32).astype(np.float16).astype(np.float32)


#: What f16 is, and its unit in the last place of 1.
ROUND = {"dl16": round_dl16, "ieee": round_half}
UNIT = {"dl16": 2.0**-9, "ieee": 2.0**-10}
#: Check modes and numbers of threads.
WAYS = [("bounds", 1), ("bounds", 3), ("none", 2), ("full", 2)]


def check_close(actual: np.ndarray, expected: np.ndarray, bound) -> None:
    error = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    bad = error > bound
    assert not bad.any(), (np.argwhere(bad)[:5], actual[bad][:5], expected[bad][:5])


def everywhere(
    program: str, values: Sequence, name: str, numerics: str, folder: Path
) -> np.ndarray:
    """Argument ``name`` after a run; the same bits however it runs."""
    results = []
    for check, threads in WAYS:
        flags = ["--numerics", numerics, "--check", check, "--threads", threads]
        results.append(
            launch(program, values, folder / f"{check}{threads}", *flags)[name]
        )
        assert results[0].tobytes() == results[-1].tobytes(), (check, threads)
    return results[0]
