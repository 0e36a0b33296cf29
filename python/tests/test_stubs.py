# SPDX-License-Identifier: Apache-2.0
"""The stub of the extension module says what the module has (mypy's stubtest)."""

import os
import subprocess
import sys
from pathlib import Path

import torch_spyre

#: What a stub cannot say of pybind11's classes: their metaclass, and that those
#: without a constructor have one that raises.
ALLOWED = r"""
torch_spyre\._C\.(CompiledGraph|DataFormats|ElementArrangement|GraphBuilder)
torch_spyre\._C\.(JobPlan|OutputInfo|SizeExpr|SizedProgram|SpyreTensorLayout|Trace|ValueId)
torch_spyre\._C\.(CompiledGraph|JobPlan|OutputInfo|SizeExpr)\.__init__
"""


def test_stub_of_the_extension(tmp_path):
    package = Path(torch_spyre.__file__).parent
    assert (package / "py.typed").exists()
    allowed = tmp_path / "allowed"
    allowed.write_text(ALLOWED)
    result = subprocess.run(
        [
            *(sys.executable, "-m", "mypy.stubtest", "torch_spyre._C", "--concise"),
            *("--ignore-disjoint-bases", "--allowlist", str(allowed)),
            "--ignore-unused-allowlist",
        ],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(package.parent)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stdout + result.stderr
