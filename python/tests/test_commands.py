# SPDX-License-Identifier: Apache-2.0
"""Commands in Python are in the environment that set-up has made."""

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest
from interpreters import run_script

COMMANDS = (
    "spyre-predict",
    "spyre-model-ops",
    "spyre-upstream-tests",
    "spyre-enablement",
)
SCRIPTS = Path(sysconfig.get_paths()["scripts"])


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name):
    done = run_script(SCRIPTS / name, "--help", ends_at_once=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {name} ")


def test_a_shell_finds_the_interpreter_of_each():
    """The first line says it, and the system starts it."""
    lines = {name: (SCRIPTS / name).read_text().splitlines()[0] for name in COMMANDS}
    assert len(set(lines.values())) == 1, lines
    assert all(os.access(SCRIPTS / name, os.X_OK) for name in COMMANDS)
    done = subprocess.run(
        [SCRIPTS / COMMANDS[0], "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {COMMANDS[0]} ")
