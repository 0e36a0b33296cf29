# SPDX-License-Identifier: Apache-2.0
"""The stub of the extension module says what the module has (mypy's stubtest)."""

import ast
import os
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import torch
import torch_spyre

PACKAGE = Path(torch_spyre.__file__).parent

#: What a stub cannot say of pybind11's classes: their metaclass, and that those
#: without a constructor have one that raises.
ALLOWED = r"""
torch_spyre\._C\.(CompiledGraph|DataFormats|ElementArrangement|GraphBuilder)
torch_spyre\._C\.(JobPlan|OutputInfo|RankBarrier|SizeExpr|SizedProgram|SpyreTensorLayout)
torch_spyre\._C\.(Trace|ValueId)
torch_spyre\._C\.(CompiledGraph|JobPlan|OutputInfo|SizeExpr)\.__init__
"""
#: To read all of torch takes six times as long as the rest.
SETTINGS = """
[mypy]
[mypy-torch.*,numpy.*]
follow_imports = skip
"""


def test_names_of_torch_exist():
    """What mypy, which does not read torch, takes for any type."""
    stub = (PACKAGE / "_C.pyi").read_text(encoding="utf-8")
    attributes = [n for n in ast.walk(ast.parse(stub)) if isinstance(n, ast.Attribute)]
    names = {ast.unparse(node) for node in attributes}
    found = [attrgetter(n[6:])(torch) for n in names if n.startswith("torch.")]
    assert torch.dtype in found


def test_docstrings_of_what_python_completes():
    """The stub says of these what the module does."""
    from torch_spyre import _C

    stub = ast.parse((PACKAGE / "_C.pyi").read_text(encoding="utf-8"))
    said = {
        node.name: ast.get_docstring(node)
        for node in stub.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node)
    }
    functions = [n for n in said if not isinstance(getattr(_C, n), type)]
    assert "copy_tensor" in functions
    assert {"SpyreError", "UnsupportedOp", "RefusedPlan"} <= set(said)
    for name in functions:
        assert getattr(_C, name).__doc__ == said[name], name


def test_stub_of_the_extension(tmp_path):
    assert (PACKAGE / "py.typed").exists()
    allowed, settings = tmp_path / "allowed", tmp_path / "mypy.ini"
    allowed.write_text(ALLOWED)
    settings.write_text(SETTINGS)
    result = subprocess.run(
        [
            *(sys.executable, "-m", "mypy.stubtest", "torch_spyre._C", "--concise"),
            *("--ignore-disjoint-bases", "--allowlist", str(allowed)),
            *("--ignore-unused-allowlist", "--mypy-config-file", str(settings)),
        ],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stdout + result.stderr
