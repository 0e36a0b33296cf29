# SPDX-License-Identifier: Apache-2.0
"""A pass and a target are built on an installed tree, as by someone else.

examples/out-of-tree is the source of build/bin/spyre-statistics-opt, too, which
test/Target/Statistics checks. Built outside, it prints the same.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
GRAPH = ROOT / "test" / "Target" / "Statistics" / "statistics.mlir"


def run(*command, **options):
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, **options
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result.stdout + result.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", BUILD, "--prefix", prefix)
    return prefix


@pytest.fixture(scope="module")
def tool(installed, tmp_path_factory):
    build = tmp_path_factory.mktemp("build")
    compiler = shutil.which("clang++-22") or "c++"
    options = [f"-DCMAKE_PREFIX_PATH={installed}", f"-DCMAKE_CXX_COMPILER={compiler}"]
    if shutil.which("ccache"):
        options.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    # The same folder every time, as ccache sees it.
    base = os.path.commonpath([installed, build])
    environment = {**os.environ, "CCACHE_BASEDIR": base, "CCACHE_NOHASHDIR": "1"}
    source = ROOT / "examples" / "out-of-tree"
    run("cmake", "-G", "Ninja", "-S", source, "-B", build, *options, env=environment)
    run("cmake", "--build", build, env=environment)
    return build / "statistics-opt"


def test_installed_tools_run(installed):
    tools = sorted((installed / "bin").iterdir())
    assert [tool.name for tool in tools] == [
        "spyre-lx-plan",
        "spyre-opt",
        "spyre-run",
        "spyre-translate",
    ]
    for path in tools:
        assert "--help" in run(path, "--help")
        # To bind the symbols of all of MLIR would take most of a short run.
        libraries = run("ldd", path)
        assert f"{installed}/bin/../lib/libSpyre.so" in libraries
        assert "MLIR" not in libraries and "LLVM" not in libraries


def test_package_names_no_source(installed):
    for file in (installed / "lib" / "cmake" / "Spyre").iterdir():
        assert str(ROOT) not in file.read_text(), file


@pytest.mark.parametrize("target", ["statistics", "ktir"])
def test_target_and_pass(tool, target):
    pipeline = f"--spyre-pipeline=target={target} to-ktir=false"
    command = [GRAPH, pipeline, "--print-plan-statistics"]
    printed = run(tool, *command)
    cores = {"statistics": 16, "ktir": 32}[target]
    assert f"statistics of @main: {cores} cores" in printed
    assert printed == run(BUILD / "bin" / "spyre-statistics-opt", *command)


def test_lowering(tool):
    command = [GRAPH, "--spyre-pipeline=target=ktir"]
    printed = run(tool, *command)
    assert "ktdp." in printed
    assert printed == run(BUILD / "bin" / "spyre-statistics-opt", *command)
