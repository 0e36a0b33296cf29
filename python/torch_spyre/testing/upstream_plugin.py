# SPDX-License-Identifier: Apache-2.0
"""A plug-in of pytest: notes what became of each variant of an upstream test."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from torch_spyre.testing import environment

#: Where a run writes it.
REPORT = "SPYRE_UPSTREAM_REPORT"

#: ``file::Class::variant`` -> what it is; filled while tests are instantiated.
variants: dict[str, dict[str, Any]] = {}


def pytest_configure(config: Any) -> None:
    """Takes tags of files that nobody registered."""
    config.option.strict_markers = False


def _key(item: Any) -> str | None:
    generic = getattr(item, "cls", None)
    name = generic.__name__ if generic else ""
    for suffix in ("PRIVATEUSE1", "SPYRE"):
        name = name.removesuffix(suffix)
    key = f"{os.path.realpath(item.path)}::{name}::{item.name}"
    return key if key in variants else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """Notes what became of a variant."""
    report = yield
    key = _key(item)
    if key is not None and (report.when == "call" or report.outcome != "passed"):
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "xfailed" if outcome == "skipped" else "xpassed"
        elif outcome == "failed" and "[XPASS(strict)]" in str(report.longrepr):
            outcome = "unexpected pass"
        if report.when == "call" or variants[key]["outcome"] == "not run":
            variants[key]["outcome"] = outcome
            if call.excinfo is not None:
                lines = str(call.excinfo.value).strip().splitlines() or [""]
                kind = call.excinfo.typename
                variants[key]["why"] = f"{kind}: {lines[0]}"[:300]
    return report


def pytest_sessionfinish() -> None:
    """Writes the report."""
    if path := environment.get(REPORT):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(variants, file)
