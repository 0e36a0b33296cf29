# SPDX-License-Identifier: Apache-2.0
"""Predictions of single programs, by ``spyre-run --predict-only``."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from torch_spyre.tools import ToolError, find_tool


def run_tool(command: list[str], text: str | None = None) -> str:
    """Standard output of a tool."""
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise ToolError(f"{Path(command[0]).name}: {done.stderr.strip()[:2000]}")
    return done.stdout


def simulate(ktir: str, device: dict[str, Any] | None = None) -> dict[str, Any]:
    """The timing report of a program, on a device that differs in some numbers.

    The one place that hands device numbers over.
    """
    command = [find_tool("spyre-run"), "-", "--predict-only", "--json=-"]
    if not device:
        return json.loads(run_tool(command, ktir))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "device.json"
        path.write_text(json.dumps(device))
        return json.loads(run_tool([*command, f"--device={path}"], ktir))
