# SPDX-License-Identifier: Apache-2.0
"""The command ``spyre-upstream-tests``: PyTorch's device-generic tests on spyre."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torch_spyre.testing import environment, upstream_check, upstream_config
from torch_spyre.testing.located import InputError, nearest
from torch_spyre.testing.model_ops import table
from torch_spyre.testing.upstream_config import Config

#: Outcomes of variants, in the order of the report.
OUTCOMES = (
    *("passed", "xfailed", "xpassed", "skipped", "left out", "not run"),
    *("failed", "unexpected pass"),
)
FAILING = ("failed", "unexpected pass")
_EPILOG = """\
PyTorch's wheel has no folder test/: a configuration names files by
${TORCH_ROOT}/test/test_ops.py, and TORCH_ROOT names a checkout of PyTorch of the
installed version. ${TORCH_DEVICE_ROOT} is the folder of torch-spyre.

examples:
  TORCH_ROOT=~/pytorch spyre-upstream-tests run configs/
  spyre-upstream-tests run config.yaml --json report.json -- -k add -x
  spyre-upstream-tests check --configs config.yaml --fail-on-problems --instantiate
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="spyre-upstream-tests",
        description="Runs PyTorch's device-generic tests on spyre as configurations "
        "say, and checks configurations.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser(
        "run", help="run tests; what follows -- goes to pytest"
    ).add_argument
    add("configs", nargs="+", metavar="FILE|FOLDER", help="configurations")
    add("--skip-slow", action="store_true", help="leave out PyTorch's slow tests")
    add("--json", metavar="FILE", help="write what became of every variant")
    add("--verbose", action="store_true", help="print what pytest prints")
    add = commands.add_parser("check", help="check configurations").add_argument
    add("--configs", nargs="+", default=[], metavar="F", help="configurations")
    add("--config-dir", metavar="D", help="a folder of them")
    add("--test-file", action="append", default=[], metavar="F", help="only of it")
    add("--test-root", metavar="D", help="what ${TORCH_ROOT} is")
    add(
        "--instantiate",
        action="store_true",
        help="make all variants, too, and look for known failures that are none",
    )
    add("--fail-on-problems", action="store_true", help="exit with 1 for a problem")
    return parser


def _variables(configs: Sequence[str], report: str, slow: bool) -> dict[str, str]:
    device = Path(__file__).with_name("upstream_device.py")
    return {
        "PYTORCH_TEST_CONFIG": ":".join(configs),
        "PYTORCH_TESTING_DEVICE_ONLY_FOR": "privateuse1",
        "TORCH_TEST_DEVICES": str(device),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "1",
        "PYTORCH_TEST_WITH_SLOW": "1" if slow else "0",
        "SPYRE_UPSTREAM_REPORT": report,
    }


def run_pytest(arguments: Sequence[str], variables: dict[str, str]) -> tuple[int, str]:
    """Runs pytest in a process of its own: its exit status and what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        env=environment.extended(variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def run_file(
    path: str, configs: Sequence[str], arguments: Sequence[str], slow: bool
) -> tuple[dict[str, dict[str, Any]], int, str]:
    """Runs pytest on a test file: variants, its exit status and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        status, printed = run_pytest(
            [
                *("-q", "--tb=short", "-p", "torch_spyre.testing.upstream_plugin"),
                *("-p", "no:cacheprovider"),
                # Nothing of the folder that it runs in: neither options nor fixtures.
                *("-c", os.devnull, "--noconftest"),
                *("--rootdir", str(Path(path).parent)),
                *("-W", "ignore", path, *arguments),
            ],
            _variables(configs, str(report), slow),
        )
        text = report.read_text() if report.exists() else ""
        return json.loads(text or "{}"), status, printed


def _files(config: Config) -> Iterator[str]:
    seen = set()
    for file in config.files:
        for path in upstream_config.expand(file):
            if path not in seen:
                seen.add(path)
                yield path


def dead_failures(config: Config, variants: Sequence[str]) -> list[str]:
    """Known failures that name no variant which runs, each with its place."""
    names = {key.rpartition("::")[2] for key in variants}
    return [
        f"{place}: {name}: a known failure that names no variant; "
        f"{nearest(name, names)}"
        for file in config.files
        for entry in file.entries
        for name, (_, place) in entry.known_failures.items()
        if name not in names
    ]


def _run(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    configs = [str(Path(c).resolve()) for c in _named(options.configs)]
    config = upstream_config.load(configs)
    paths = list(_files(config))
    if not paths:
        raise InputError(configs[0], 0, "no test file is named")
    everything: dict[str, dict[str, Any]] = {}
    failed = False
    rows = [["file", *OUTCOMES]]
    for path in paths:
        slow = not options.skip_slow
        variants, status, printed = run_file(path, configs, arguments, slow)
        everything.update(variants)
        counts = Counter(v["outcome"] for v in variants.values())
        # Status 5: the options left no test.
        broken = status not in (0, 1, 5) or not variants
        bad = any(counts[o] for o in FAILING)
        if options.verbose or broken or (status == 1 and not bad):
            print(printed)
        if broken:
            print(f"{path}: pytest ended with status {status}", file=sys.stderr)
        failed = failed or broken or bad or status == 1
        rows.append([Path(path).name, *(str(counts[o]) for o in OUTCOMES)])
    for key, variant in everything.items():
        if variant["outcome"] in FAILING:
            why = variant.get("why", "")
            print(f"{variant['outcome']}: {key.partition('::')[2]}: {why}")
    running = [k for k, v in everything.items() if v["outcome"] != "left out"]
    dead = dead_failures(config, running)
    print("\n".join([*dead, table(rows)]))
    if options.json:
        text = json.dumps(everything, indent=1, sort_keys=True)
        Path(options.json).write_text(text + "\n", encoding="utf-8")
    return int(failed or bool(dead))


def _named(names: Sequence[str]) -> list[str]:
    return upstream_config.config_files(names)


def _check(options: argparse.Namespace) -> int:
    names = [*options.configs, *([options.config_dir] if options.config_dir else [])]
    if not names:
        raise ValueError("check needs --configs or --config-dir")
    if options.test_root:
        environment.put("TORCH_ROOT", str(Path(options.test_root).resolve()))
    configs = _named(names)
    problems = upstream_check.check(configs, options.test_file)
    dead = []
    if options.instantiate:
        config = upstream_config.load(configs)
        variants: list[str] = []
        for path in _files(config):
            found, status, printed = run_file(path, configs, ["--collect-only"], True)
            if status != 0:
                print(printed)
                raise ValueError(f"{path}: its tests cannot be collected")
            variants += [k for k, v in found.items() if v["outcome"] != "left out"]
        dead = dead_failures(config, variants)
    for kind, lines in (
        ("duplicate", problems.duplicates),
        ("missing", problems.missing),
        ("dead pattern", problems.dead),
        ("dead failure", dead),
    ):
        for line in lines:
            print(f"{kind}: {line}")
    print(
        f"{len(problems.duplicates)} duplicates, {len(problems.missing)} missing, "
        f"{len(problems.dead)} dead patterns, {len(dead)} dead known failures"
    )
    # As in the reference, a dead pattern alone is a warning; a dead failure hides one.
    worst = problems.duplicates or problems.missing or dead
    return int(bool(options.fail_on_problems and worst))


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit status, 2 for what cannot be read."""
    given = sys.argv[1:] if arguments is None else arguments
    end = given.index("--") if "--" in given else len(given)
    options = _parser().parse_args(given[:end])
    try:
        if options.command == "check":
            return _check(options)
        return _run(options, given[end + 1 :])
    except (InputError, ValueError, OSError) as error:
        print(f"spyre-upstream-tests: error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
