# SPDX-License-Identifier: Apache-2.0
"""Where the command-line tools of the build are."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from torch_spyre import _C


class ToolError(RuntimeError):
    """A tool is missing or refused its input."""


def find_tool(name: str) -> str:
    """A tool of the build: on the PATH, or beside the extension module."""
    found = shutil.which(name)
    if found:
        return found
    for folder in Path(os.path.realpath(_C.__file__)).parents:
        if (folder / "bin" / name).is_file():
            return str(folder / "bin" / name)
    raise ToolError(f"{name} is not on the PATH")
