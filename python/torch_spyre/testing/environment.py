# SPDX-License-Identifier: Apache-2.0
"""The variables of PyTorch's and the field's test frameworks; all are read here.

spec/test-frameworks.md, "Running upstream PyTorch tests (RFC 1287)", lists them.
"""

from __future__ import annotations

import os


def get(name: str) -> str | None:
    """The value of a variable, None if it is unset or empty."""
    return os.environ.get(name) or None


def put(name: str, value: str) -> None:
    """Sets a variable of this process."""
    os.environ[name] = value


def extended(values: dict[str, str]) -> dict[str, str]:
    """The environment of a process that has these values, too."""
    return {**os.environ, **values}
