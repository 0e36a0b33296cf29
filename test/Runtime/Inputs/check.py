# SPDX-License-Identifier: Apache-2.0
"""Runs one group of programs and compares with numpy: check.py GROUP FOLDER.

A group is a function of one of the modules check_*.py beside this file.
"""

from __future__ import annotations

import glob
import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)


def main() -> None:
    """Finds the group and runs it."""
    group, folder = sys.argv[1:3]
    for path in sorted(glob.glob(os.path.join(HERE, "check_*.py"))):
        module = importlib.import_module(os.path.basename(path)[:-3])
        if hasattr(module, group):
            getattr(module, group)(f"{folder}-{group}")
            return
    sys.exit(f"no group '{group}'")


if __name__ == "__main__":
    main()
