# SPDX-License-Identifier: Apache-2.0
"""What pyproject.toml says, for scripts that run before anything is installed."""

from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where pip brings the same module.
    from pip._vendor import tomli as tomllib


def read_pyproject() -> dict:
    """Return the tables of pyproject.toml."""
    path = Path(__file__).resolve().parent.parent / "pyproject.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))
