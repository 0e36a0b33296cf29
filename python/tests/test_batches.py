# SPDX-License-Identifier: Apache-2.0
"""Sources that are compiled in batches (cmake/SpyreBatches.cmake)."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(batches LANGUAGES CXX)
include({root}/cmake/SpyreBatches.cmake)
spyre_batch(sources parts a/first.cpp a/second.cpp a/third.cpp b/alone.cpp)
add_library(parts STATIC ${{sources}})
target_compile_options(parts PRIVATE -Wall -Werror)
"""
#: What quoted includes find stands beside a source, not beside its batch. Text that CMake
#: could read as a list, a variable or a generator expression is code like any other.
SOURCES = {
    "a/count.h": "constexpr int kCount = 3;\n",
    "a/first.cpp": '#include "count.h"\nint first[] = {1, 2, kCount};\n',
    "a/second.cpp": 'const char *second() { return "${x};[;]$<1:y>"; }\n',
    "a/third.cpp": "static int half(int x) { return x / 2; }\n\nint third() { return half(6); }\n",
    "b/alone.cpp": "int alone() { return 1; }\n",
}

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("cmake", "ninja", "clang++-22"))),
    reason="needs cmake, ninja and clang 22",
)


def run(*command: str) -> tuple[int, str]:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.returncode, done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(root=ROOT))
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    status, output = configure(tmp_path)
    assert status == 0, output
    return tmp_path


def configure(project: Path, *options: str) -> tuple[int, str]:
    return run(
        *("cmake", "-G", "Ninja", "-S", str(project), "-B", str(project / "build")),
        *("-DCMAKE_CXX_COMPILER=clang++-22", *options),
    )


def build(project: Path) -> tuple[int, str]:
    return run("ninja", "-C", str(project / "build"))


def objects(project: Path) -> int:
    return len(list((project / "build").rglob("*.o")))


def test_sources_of_a_folder_are_one_object(project: Path) -> None:
    status, output = build(project)
    assert status == 0, output
    assert objects(project) == 2
    assert "no work to do" in build(project)[1]


def test_each_source_is_an_object_without_batches(project: Path) -> None:
    assert configure(project, "-DSPYRE_BATCHES=OFF")[0] == 0
    status, output = build(project)
    assert status == 0, output
    assert objects(project) == 4


def test_an_unused_function_of_any_source_is_a_warning(project: Path) -> None:
    third = project / "a" / "third.cpp"
    third.write_text(third.read_text() + "static int unused() { return 0; }\n")
    status, output = build(project)
    assert status != 0
    assert f"{third}:4:12: error: unused function 'unused'" in output


def test_a_change_compiles_the_batch_again(project: Path) -> None:
    assert build(project)[0] == 0
    second = project / "a" / "second.cpp"
    second.write_text("int second() { return 2 }\n")
    status, output = build(project)
    assert status != 0
    assert f"{second}:1:24: error: expected ';'" in output
    second.write_text("int second() { return 2; }\n")
    assert build(project)[0] == 0
