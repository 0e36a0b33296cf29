# SPDX-License-Identifier: Apache-2.0
"""benchmarks/ratios.py and scripts/bench.py: limits, the table, regressions."""

import ast
import json
import math
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [str(ROOT / "benchmarks"), str(ROOT / "scripts")]
sys.path[:0] = FOLDERS
import bench  # noqa: E402
from ratios import RESULTS, Ratio, Ratios  # noqa: E402

sys.path[:] = [folder for folder in sys.path if folder not in FOLDERS]


def ratio(value, low=None, high=None, **more):
    return Ratio("r", value, low=low, high=high, **more)


@pytest.mark.parametrize(
    ("value", "limit", "at_least", "holds"),
    [
        (1.0, 1.0, False, True),
        (1.01, 1.0, False, False),
        (math.nan, 1.0, False, False),
        (0.97, 0.97, True, True),
        (0.96, 0.97, True, False),
        (math.nan, 0.97, True, False),
        (1e9, None, False, True),
    ],
)
def test_limits(value, limit, at_least, holds, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv(RESULTS, str(tmp_path / "results"))
    found = Ratios()
    found.add("fine", 1.0, 2.0, repeated=[0.9, 1.2])
    found.add("this", value, limit, at_least=at_least)
    assert found.finish() == (0 if holds else 1)
    fine, this = capsys.readouterr().out.splitlines()[-2:]
    assert fine.split() == ["fine", "1", "0.9", "to", "1.2", "<=", "2", "ok"]
    assert this.endswith(("OVER", "UNDER")) != holds
    written = (tmp_path / "results").read_text().splitlines()
    assert [Ratio(**json.loads(line)).name for line in written] == ["fine", "this"]


@pytest.mark.parametrize("at_least", [False, True])
def test_strict_limits(at_least, capsys):
    """The limit itself is beyond a strict one."""
    found, better = Ratios(), 0.98 if at_least else 0.96
    found.add("r", better, 0.97, at_least=at_least, strict=True)
    assert found.finish() == 0
    found.add("r", 0.97, 0.97, at_least=at_least, strict=True)
    assert found.finish() == 1
    assert "=" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "is_worse"),
    [
        # Numbers without noise.
        (ratio(1.0), ratio(1.009), False),
        (ratio(1.0), ratio(1.02), True),
        (ratio(1.0), ratio(0.5), False),
        # Ranges that overlap, that do not, and that are a little apart.
        (ratio(1.0, 0.9, 1.3), ratio(1.5, 1.2, 1.6), False),
        (ratio(1.0, 0.9, 1.1), ratio(1.5, 1.2, 1.6), True),
        (ratio(1.0, 1.0, 1.01), ratio(1.03, 1.02, 1.04), False),
        # Instructions decide, whatever the time says.
        (ratio(1.0, 0.9, 1.1, instructions=100), ratio(9.0, 8, 10), True),
        (ratio(1.0, instructions=100), ratio(9.0, instructions=101), False),
        (ratio(1.0, instructions=100), ratio(1.0, instructions=103), True),
        (ratio(1.0), ratio(math.nan), True),
        # The larger the better.
        (ratio(0.99, at_least=True), ratio(0.97, at_least=True), True),
        (ratio(0.97, at_least=True), ratio(0.99, at_least=True), False),
    ],
)
def test_regressions(old, new, is_worse):
    assert (bench.regression(old, new) is not None) == is_worse


def test_history_is_of_one_kind_of_machine(tmp_path):
    file = tmp_path / "new" / "history.jsonl"
    assert bench.last_run(file, "a") == {}
    for machine, value in (("a", 1.0), ("b", 2.0), ("a", 3.0)):
        entry = {"machine": machine, "benchmark": "x", "ratio": vars(ratio(value))}
        bench.append(file, [entry])
    assert bench.last_run(file, "a") == {("x", "r"): ratio(3.0)}
    assert bench.last_run(file, "b") == {("x", "r"): ratio(2.0)}


def fake(monkeypatch, tmp_path, text):
    (tmp_path / "b.py").write_text(text)
    monkeypatch.setattr(bench, "BENCHMARKS", tmp_path)
    monkeypatch.setattr(bench, "COMMANDS", {"b": []})
    history = tmp_path / "history.jsonl"
    monkeypatch.setattr(sys, "argv", ["bench.py", "--check", "--history", str(history)])


def test_a_run_that_has_become_worse_fails(monkeypatch, tmp_path, capsys):
    text = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r})\n"
        "from ratios import Ratios\nfound = Ratios()\n"
        "found.add('r', VALUE, 1.5)\nsys.exit(found.finish())\n"
    )
    for value, status in (("1", 0), ("2", 1), ("2", 0)):
        fake(monkeypatch, tmp_path, text.replace("VALUE", value))
        assert bench.main() == status
    out = capsys.readouterr().out
    assert "b: r: 1 -> 2" in out and out.count("OVER") == 2


def test_a_benchmark_that_measures_nothing_says_so(monkeypatch, tmp_path, capsys):
    text = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r})\n"
        "from ratios import Ratios\nsys.exit(Ratios().finish())\n"
    )
    fake(monkeypatch, tmp_path, text)
    assert bench.main() == 0
    assert "b: measured nothing" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["raise SystemExit(2)", "import missing_module", ""])
def test_a_benchmark_that_does_not_run_fails(monkeypatch, tmp_path, capsys, text):
    fake(monkeypatch, tmp_path, text)
    assert bench.main() == 1
    assert "did not run: b: exit code" in capsys.readouterr().out


def test_every_benchmark_is_listed():
    helpers = {"ratios", "merged", "robust_fit"}
    # Reports, fits and tests of endurance: they take longer or have no limits.
    others = {"cards", "fit", "large", "stacks", "soak"}
    files = {file.stem for file in (ROOT / "benchmarks").glob("*.py")}
    assert set(bench.COMMANDS) == files - helpers - others


def test_benchmarks_find_what_they_import_from_each_other():
    """None of them runs here, and a name that is gone shows only when one starts."""
    trees = {
        file.stem: ast.parse(file.read_text())
        for file in (ROOT / "benchmarks").glob("*.py")
    }

    def names(tree):
        for node in tree.body:
            yield from {t.id for t in ast.walk(node) if isinstance(t, ast.Name)}
            yield getattr(node, "name", None)
            yield from (a.asname or a.name for a in getattr(node, "names", ()))

    known = {stem: set(names(tree)) for stem, tree in trees.items()}
    imported = [
        (stem, node.module, alias.name)
        for stem, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in trees
        for alias in node.names
    ]
    assert ("superdsc", "run", "empty_caches") in imported
    assert [use for use in imported if use[2] not in known[use[1]]] == []
