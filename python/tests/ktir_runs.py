# SPDX-License-Identifier: Apache-2.0
"""Runs the text of KTIR programs in a folder; arguments are those of spyre-run."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from commands import arguments, call, execute

FULL = ("--check", "full")
#: Check modes and numbers of threads.
WAYS = [("bounds", 1), ("bounds", 3), ("none", 2), ("full", 2)]


def save(program: str, folder: Path) -> Path:
    """The program's file, ``program.mlir``."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "program.mlir"
    path.write_text(program)
    return path


def results(
    program: str, values: Sequence, folder: Path, *flags
) -> dict[str, np.ndarray]:
    """The arguments after a run, by name; ``values`` are those of ``arguments``."""
    return execute(save(program, folder), values, folder, *flags)


def fails(
    program: str, values: Sequence, folder: Path, messages: Sequence[str], *flags
) -> None:
    """The run ends with status 1 and every message, and writes no result."""
    assert not isinstance(messages, str)
    path, out = save(program, folder), folder / "out of failure"
    options = [*arguments(values, folder), "--out-dir", out, *flags]
    done = call("spyre-run", path, *options)
    assert done.returncode == 1, f"status {done.returncode}: {done.stderr[-3000:]}"
    for message in messages:
        assert message in done.stderr, (message, done.stderr[-3000:])
    assert not out.exists()


def however_run(
    program: str, values: Sequence, name: str, folder: Path, numerics: str
) -> np.ndarray:
    """An argument after a run; the same bits in every check mode, on any threads."""
    first = None
    for check, threads in WAYS:
        flags = ["--numerics", numerics, "--check", check, "--threads", threads]
        found = results(program, values, folder / f"{check}-{threads}", *flags)[name]
        first = found if first is None else first
        assert first.dtype == found.dtype
        assert first.tobytes() == found.tobytes(), (check, threads)
    return first
