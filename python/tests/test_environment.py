# SPDX-License-Identifier: Apache-2.0
"""Environment variables: one table for C++, Python and the documentation."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from interpreters import run_python
from torch_spyre import _C

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import docs_tables  # noqa: E402

TABLE = {row["name"]: row for row in _C.environment_variables()}
PARSED = [n for n, row in TABLE.items() if row["kind"] not in ("text", "foreign")]

#: What reads each variable, in a process of its own.
USES = {
    "AIU_WORLD_SIZE": "torch.spyre.device_count()",
    "SPYRE_DEVICES": "torch.spyre.device_count()",
    "FLEX_DEVICE": "torch.spyre.device_count()",
    "LOCAL_RANK": "torch.spyre.device_count()",
    "LOCAL_WORLD_SIZE": "torch.spyre.device_count()",
    "IS_INDUCTOR_SPAWNED_SUBPROCESS": "torch.spyre.device_count()",
    "SPYRE_LAUNCH_BLOCKING": "x + x",
    "SPYRE_POISON_FREED": "x + x",
    "SPYRE_ALLOW_TILED_LAUNCH": "x + x",
    "TORCH_SPYRE_DOWNCAST_WARN": "x + x",
    "TORCH_SPYRE_DOWNCAST_ERROR": "torch.compile(torch.exp, backend='spyre')(x)",
    "TORCH_SPYRE_DEBUG": "torch.compile(torch.exp, backend='spyre')(x)",
    "SPYRE_DUMP_DIR": "torch.compile(torch.exp, backend='spyre')(x)",
    "SPYRE_DECISIONS_IN": "torch.compile(torch.exp, backend='spyre')(x)",
    "SPYRE_EXECUTE": "torch.compile(torch.exp, backend='spyre')(x)",
    "DUMP_SPYRE_CODE": "x + x",
    "SPYRE_VERIFY_EACH_PASS": "x + x",
    "SPYRE_NUM_THREADS": "x + x; torch.spyre.synchronize()",
    "SPYRE_CPU_CAPABILITY": "x + x; torch.spyre.synchronize()",
    "SPYRE_PROGRESS_AFTER": "x + x; torch.spyre.synchronize()",
    "SPYRE_INDUCTOR_LOG": "",
    "SPYRE_INDUCTOR_LOG_LEVEL": "",
    "SPYRE_LOG_FILE": "",
}
#: A folder of the cache that cannot be made is a warning: nothing is kept.
UNREFUSED = {"SPYRE_CACHE_DIR", "XDG_CACHE_HOME", "TORCH_LOGS"}
UNREFUSED |= {"TORCH_SENDNN_LOG", "DT_DEEPRT_VERBOSE", "DTLOG_LEVEL"}


def test_every_variable_is_tried():
    assert set(USES) | UNREFUSED == set(TABLE)


@pytest.mark.parametrize("name", USES)
def test_a_bad_value_is_an_error_that_names_it(name, tmp_path):
    code = f"""
import torch
from torch_spyre import _C
x = torch.ones(5, 65, dtype=torch.float16).to("spyre")
{USES[name]}
"""
    result = run_python(
        code,
        folder=tmp_path,
        without=TABLE,
        ends_at_once=True,
        **{"SPYRE_CACHE_DIR": str(tmp_path), name: "/dev/null/maybe"},
    )
    assert result.returncode == 1, result.stderr
    assert f"environment variable {name}: " in result.stderr
    assert "/dev/null/maybe" in result.stderr


@pytest.mark.parametrize("name", PARSED)
def test_errors_say_what_is_expected(name, monkeypatch):
    monkeypatch.setenv(name, "maybe")
    expected = re.escape(
        f"environment variable {name}: expected {TABLE[name]['expected']}, found "
    )
    with pytest.raises(ValueError, match=expected + "'maybe'"):
        _C.read_environment(name)
    monkeypatch.setenv(name, "")
    unset = _C.read_environment(name)
    monkeypatch.delenv(name)
    assert _C.read_environment(name) == unset


def test_values_have_the_type_of_their_kind(monkeypatch):
    for name, text, value in [
        ("SPYRE_NUM_THREADS", "63", 63),
        ("SPYRE_DEVICES", "0,3,3", [0, 3, 3]),
        ("SPYRE_EXECUTE", "SuperDSC", "superdsc"),
        ("TORCH_SPYRE_DEBUG", "True", True),
        ("SPYRE_ALLOW_TILED_LAUNCH", "off", False),
        ("SPYRE_DUMP_DIR", "a b", "a b"),
        ("SPYRE_DUMP_DIR", "\udcff", "\udcff"),
    ]:
        monkeypatch.setenv(name, text)
        assert _C.read_environment(name) == value
    with pytest.raises(ValueError, match="SPYRE_NONE"):
        _C.read_environment("SPYRE_NONE")


def test_the_script_reads_the_table_as_the_compiler_does():
    rows = [(r["group"], r["name"], r["kind"], r["help"]) for r in TABLE.values()]
    assert docs_tables.variables() == rows


def test_variables_of_test_frameworks_are_documented():
    page = (ROOT / "docs" / "reference" / "environment.md").read_text()
    folder = ROOT / "python" / "torch_spyre"
    texts = [path.read_text() for path in (folder / "testing").glob("*.py")]
    texts.append((folder / "_inductor" / "config.py").read_text())
    read = re.compile(r'environ(?:ment)?\.get\("(\w+)"|^ +"(TORCH_\w*ROOT)": ', re.M)
    names = {a or b for text in texts for a, b in read.findall(text)}
    assert {"TORCH_ROOT", "TORCH_COMPILE_DEBUG", "OOT_TEST_FILE"} <= names
    assert [name for name in names if f"`{name}`" not in page] == []


@pytest.mark.parametrize("name", ["SENCORES", "SPYRE_INDUCTOR_LOG"])
def test_what_import_torch_reads_is_named_by_its_error(name):
    """As the page on troubleshooting shows it."""
    result = run_python("import torch", without=TABLE, ends_at_once=True, **{name: "x"})
    assert result.returncode == 1
    assert f"{name}: expected" in result.stderr
    assert "Failed to load the backend extension: torch_spyre" in result.stderr


@pytest.mark.parametrize("page", docs_tables.TABLES)
def test_tables_are_written(page):
    assert docs_tables.filled(page) == (ROOT / "docs" / page).read_text()


def test_nothing_reads_the_environment_by_itself():
    reading = re.compile(r"\b(?:secure_)?getenv\(|\bos\.environ\b")
    found = [
        str(path.relative_to(ROOT))
        for folder in ("lib", "include", "tools", "python/torch_spyre")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".cpp", ".h", ".py") and reading.search(path.read_text())
    ]
    # The options that users of torch-spyre set are a table of their own.
    options = "python/torch_spyre/_inductor/config.py"
    # Those of test frameworks belong to PyTorch and the field.
    testing = "python/torch_spyre/testing/environment.py"
    # And defaults of the card's own libraries are set there.
    quiet = "python/torch_spyre/_registration.py"
    assert sorted(found) == ["lib/Support/Environment.cpp", options, quiet, testing]


def test_import_torch_loads_no_more_than_it_needs():
    """Symbols of sizes and Dynamo take longer to import than all of the device."""
    late = ("sympy", "torch.fx.experimental.symbolic_shapes", "torch._dynamo")
    code = f"import sys, torch; print([m for m in {late} if m in sys.modules])"
    # A process of its own: those of run_python() are copies of one with more.
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
