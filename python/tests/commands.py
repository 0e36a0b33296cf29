# SPDX-License-Identifier: Apache-2.0
"""The commands of the build, for tests of graphs, plans and bundles."""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = Path(os.environ.get("SPYRE_BUILD_DIR", ROOT / "build")) / "bin"
#: Plans that are written by hand: those of the reference, and more.
PLANNED = ROOT / "test/Target/SuperDSC/Inputs/planned"
MORE = ROOT / "test/Target/SuperDSC/Inputs/more"
#: As for lit, see test/lit.cfg.py.
REFERENCE_DATA = Path(
    os.environ.get("SPYRE_REFERENCE_DATA") or ROOT.parent / "shared" / "data"
)
#: Of one command, in seconds.
TIMEOUT = 300
# What is run is what lit runs: conftest.py's settings are for the extension.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in ("SPYRE_POISON_FREED", "SPYRE_VERIFY_EACH_PASS")
}

needs_tools = pytest.mark.skipif(
    not (TOOLS / "spyre-run").exists(), reason="the tools are not built"
)


def call(tool, *arguments, **more) -> subprocess.CompletedProcess:
    """The run of a tool of this build, whatever came of it."""
    return subprocess.run(
        [str(TOOLS / tool), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env=ENVIRONMENT,
        **more,
    )


def run(tool, *arguments, **more) -> str:
    """What a tool prints; it has to succeed."""
    done = call(tool, *arguments, **more)
    said = done.stdout[-3000:] + done.stderr[-3000:]
    assert done.returncode == 0, f"{tool} {' '.join(map(str, arguments))}\n{said}"
    return done.stdout


def refused(tool, *arguments, **more) -> str:
    """What a tool prints, errors included; it has to fail, and not to crash."""
    done = call(tool, *arguments, **more)
    assert done.returncode == 1, f"status {done.returncode}: {done.stderr[-3000:]}"
    return done.stdout + done.stderr


def check_written_again(bundle: Path, folder: Path) -> None:
    """A bundle that is read, or raised, is written with the same bytes."""
    raised = folder / "raised.mlir"
    run("spyre-translate", "--validate-superdsc", bundle)
    run("spyre-translate", "--rewrite-superdsc", bundle, "-o", folder / "copy")
    run("spyre-translate", "--from-superdsc", bundle, "-o", raised)
    run("spyre-translate", "--to-superdsc", raised, "-o", folder / "again")
    files = sorted(path.name for path in bundle.iterdir())
    for other in (folder / "copy", folder / "again"):
        assert sorted(path.name for path in other.iterdir()) == files
        for file in files:
            assert (other / file).read_bytes() == (bundle / file).read_bytes()


def arguments(values: Sequence, folder: Path) -> list:
    """Options of spyre-run: each value is an array, or a word or file as it is."""
    options = []
    for number, value in enumerate(values):
        if isinstance(value, np.ndarray):
            np.save(folder / f"in{number}.npy", value)
            value = folder / f"in{number}.npy"
        options += ["--arg", value]
    return options


def execute(program, values: Sequence, folder: Path, *flags) -> dict[str, np.ndarray]:
    """The arguments after a run in ``folder``, by name."""
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / "out"
    run("spyre-run", program, *arguments(values, folder), "--out-dir", out, *flags)
    return {path.stem: np.load(path) for path in out.glob("*.npy")}


def says(text: str, said: str) -> bool:
    """Whether a line of ``text`` has ``said``, in which ... is anything."""
    return bool(re.search(".*".join(map(re.escape, said.split("..."))), text))
