# SPDX-License-Identifier: Apache-2.0
"""The command-line tools of the wheel, which lie in ``torch_spyre/bin``.

A package of its own, since importing ``torch_spyre`` imports PyTorch, which no
tool needs. Each function replaces the process by the tool of its name, with the
same arguments; it does not return.
"""

import importlib.util
import os
import sys
from pathlib import Path
from typing import NoReturn


def _become(tool: str) -> NoReturn:
    spec = importlib.util.find_spec("torch_spyre")  # Imports nothing.
    for folder in (spec and spec.submodule_search_locations) or []:
        path = Path(folder) / "bin" / tool
        if path.exists():
            os.execv(path, [tool, *sys.argv[1:]])
    sys.exit(f"{tool}: not in the package torch_spyre; install its wheel again")


def spyre_lx_plan() -> NoReturn:
    """Place buffers with known lifetimes in one memory."""
    _become("spyre-lx-plan")


def spyre_opt() -> NoReturn:
    """Run passes on IR."""
    _become("spyre-opt")


def spyre_run() -> NoReturn:
    """Run a program on the device model."""
    _become("spyre-run")


def spyre_translate() -> NoReturn:
    """Translate between IR and other formats."""
    _become("spyre-translate")
