# SPDX-License-Identifier: Apache-2.0
"""scripts/run_tests.py: what it counts over files of pytest.

And what conftest.py does for files that run in one process.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
# Without torch, which these files do not use. The hour is over when a file says so.
PROGRAM = """
import sys
import run_tests
run_tests.preload = lambda: None
run_tests.FileRun.is_late = lambda run: run.file.with_suffix(".late").exists()
sys.exit(run_tests.main())
"""
ALONE = """
import builtins
def test_alone():
    assert not hasattr(builtins, "left_behind")
    builtins.left_behind = 1
"""


def run(folder, *bodies):
    files = [folder / f"test_{number}.py" for number in range(len(bodies))]
    for file, body in zip(files, bodies, strict=True):
        file.write_text(body)
    command = [sys.executable, "-c", PROGRAM, "pytest", "--build", folder / "build"]
    done = subprocess.run(
        [*command, *files], capture_output=True, text=True, timeout=600, cwd=SCRIPTS
    )
    return done.returncode, done.stdout, done.stderr


def test_files_see_nothing_of_each_other(tmp_path):
    status, out, err = run(tmp_path, ALONE, ALONE, ALONE)
    assert (status, err) == (0, ""), out
    assert out.endswith("\n3 passed, 0 failed, 0 skipped\n")
    assert out.count("1 passed, 0 failed, 0 skipped (") == 3


@pytest.mark.parametrize(
    ("body", "counted", "said"),
    [
        (
            "def test(): assert 6 * 9 == 42",
            "0 passed, 1 failed",
            "assert (6 * 9) == 42",
        ),
        ("raise OSError('no luck')", "0 passed, 1 failed", "no luck"),
        (
            "import os\ndef test(): print('last words', flush=True); os.abort()",
            "0 passed, 1 failed",
            "exit status -6 without a failed test",
        ),
        (
            "import atexit, os\natexit.register(os._exit, 3)\ndef test(): pass",
            "1 passed, 1 failed",
            "exit status 3 without a failed test",
        ),
        (
            "import pathlib, time\n"
            "def test():\n"
            "  pathlib.Path(__file__).with_suffix('.late').touch()\n"
            "  time.sleep(1000)",
            "0 passed, 1 failed",
            "no end after 3600 s",
        ),
        ("", "0 passed, 1 failed", "no tests ran"),
    ],
)
def test_failures_are_counted_and_shown(body, counted, said, tmp_path):
    """The files beside the failing one run to their end."""
    status, out, _ = run(tmp_path, body, ALONE)
    assert status == 1
    assert f"test_0.py: {counted}, 0 skipped (" in out and said in out
    assert "test_1.py: 1 passed, 0 failed, 0 skipped (" in out


LEAVES = """
import os
import pytest

@pytest.fixture(scope="module")
def kept():
    os.environ["SPYRE_DUMP_DIR"] = "here"

def test_sets(kept):
    os.environ["SPYRE_EXECUTE"] = "superdsc"

def test_changes_and_removes():
    assert "SPYRE_EXECUTE" not in os.environ
    os.environ["SPYRE_POISON_FREED"] = "0"
    del os.environ["TORCH_SPYRE_DEBUG"]

def test_is_innocent(monkeypatch):
    assert os.environ["SPYRE_POISON_FREED"] == "1"
    assert os.environ["TORCH_SPYRE_DEBUG"] == "0"
    monkeypatch.setenv("SPYRE_EXECUTE", "superdsc")
"""


def test_what_leaves_variables_changed_fails(tmp_path):
    (tmp_path / "test_leaves.py").write_text(LEAVES)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-rE", tmp_path],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            **{k: v for k, v in os.environ.items() if "SPYRE" not in k},
            "PYTHONPATH": str(Path(__file__).parent),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "TORCH_SPYRE_DEBUG": "0",
        },
    )
    assert "3 passed, 3 errors" in done.stdout, done.stdout + done.stderr
    said = "leaves variables of the environment changed: "
    for line in (
        f"test_leaves.py::test_sets {said}SPYRE_EXECUTE from None to 'superdsc'",
        f"test_leaves.py::test_changes_and_removes {said}SPYRE_POISON_FREED from '1' "
        "to '0', TORCH_SPYRE_DEBUG from '0' to None",
        f"test_leaves.py {said}SPYRE_DUMP_DIR from None to 'here'",
    ):
        assert f"\n{line}\n" in done.stdout, done.stdout
