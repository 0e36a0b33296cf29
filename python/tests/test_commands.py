# SPDX-License-Identifier: Apache-2.0
"""Commands in Python are in the environment that set-up has made."""

import subprocess
import sysconfig
from pathlib import Path

import pytest

COMMANDS = (
    "spyre-predict",
    "spyre-model-ops",
    "spyre-upstream-tests",
    "spyre-enablement",
)


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name):
    command = Path(sysconfig.get_paths()["scripts"]) / name
    done = subprocess.run([command, "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {name} ")
