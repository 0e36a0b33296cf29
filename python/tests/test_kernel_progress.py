# SPDX-License-Identifier: Apache-2.0
"""Kernels that run long say how far they are, on a terminal or where that is asked."""

import os
import pty
import re
import subprocess
import sys

from interpreters import run_python

#: Sums of a split reduction wait for each other; a product runs in gangs.
PROGRAM = """
import torch, torch_spyre
x = torch.ones(512, 512, dtype=torch.float16, device="spyre")
(x @ x).cpu()
x.sum().cpu()
"""
AFTER = "SPYRE_PROGRESS_AFTER"
LINE = r"k\d+_\w+: \d+ % after \d+ s"


def test_lines_where_they_are_asked_for():
    done = run_python(PROGRAM, SPYRE_NUM_THREADS="2", **{AFTER: "0"})
    lines = done.stderr.splitlines()
    kernels = [line for line in lines if re.fullmatch(LINE, line)]
    assert any("_matmul: " in line for line in kernels), lines
    assert any("_sum: " in line for line in kernels), lines


def test_one_line_that_is_cleared_on_a_terminal():
    reader, writer = pty.openpty()
    command = [sys.executable, "-c", PROGRAM]
    process = subprocess.Popen(command, env={**os.environ, AFTER: "0"}, stderr=writer)
    os.close(writer)
    found = b""
    try:
        while block := os.read(reader, 4096):
            found += block
    except OSError:
        # What a terminal says when nobody has it open any longer.
        pass
    os.close(reader)
    assert process.wait() == 0, found
    text = found.decode()
    assert re.search(rf"\r{LINE}\x1b\[K", text), text
    assert text.endswith("\r\x1b[K"), text


def test_nothing_elsewhere():
    assert not re.search(LINE, run_python(PROGRAM, without=(AFTER,)).stderr)
    assert not re.search(LINE, run_python(PROGRAM, **{AFTER: "3600"}).stderr)
