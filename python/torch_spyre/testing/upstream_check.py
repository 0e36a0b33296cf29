# SPDX-License-Identifier: Apache-2.0
"""Configurations against the sources of tests: what names no test, and what is missed.

Reads the sources; nothing is imported.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torch_spyre.testing import upstream_config
from torch_spyre.testing.located import InputError, nearest
from torch_spyre.testing.upstream_config import Config, TestFile


@dataclass
class Problems:
    """Lines of text, one per problem."""

    duplicates: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)


def methods_of(path: str) -> dict[str, int]:
    """Test methods of classes, by base name, with their lines.

    Also the first of each pair of keys in a class's ``PARAMS``, which names a test.
    """
    try:
        tree = ast.parse(Path(path).read_text(encoding="utf-8"), path)
    except SyntaxError as error:
        raise InputError(path, error.lineno or 0, f"no Python: {error.msg}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, 0, str(error)) from error
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                found.update(_tests_of(item))
    return found


def _tests_of(item: ast.stmt) -> dict[str, int]:
    """The tests that a statement of a class defines, with their lines."""
    if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return {item.name: item.lineno} if item.name.startswith("test") else {}
    if not isinstance(item, ast.Assign) or not isinstance(item.value, ast.Dict):
        return {}
    if not any(isinstance(t, ast.Name) and t.id == "PARAMS" for t in item.targets):
        return {}
    keys = [
        key.elts[0] if isinstance(key, ast.Tuple) and key.elts else key
        for key in item.value.keys
    ]
    return {
        key.value: key.lineno
        for key in keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


#: Path and method -> the configurations that list it.
_Users = dict[tuple[str, str], list[str]]


def _check_entries(
    name: str,
    file: TestFile,
    methods: dict[str, dict[str, int]],
    users: _Users,
    problems: Problems,
) -> None:
    """Adds what a configuration lists of the ``methods`` of its files, by path."""
    known = {method for own in methods.values() for method in own}
    for listed in (listed for entry in file.entries for listed in entry.names):
        # A parametrized test may be listed by one of its names.
        found = {
            m for m in known if listed.matches(m) or listed.method.startswith(f"{m}_")
        }
        if methods and not found:
            problems.dead.append(
                f"{listed.place}: {listed.text}: matches no test; "
                f"{nearest(listed.method, known)}"
            )
        for path, own in methods.items():
            for method in found & own.keys():
                users.setdefault((path, method), []).append(name)


def check(configs: Sequence[str], only: Sequence[str] = ()) -> Problems:
    """What is wrong in configurations; with ``only``, about these test files."""
    problems = Problems()
    loaded: dict[str, Config] = {c: upstream_config.load([c]) for c in configs}
    wanted = {str(Path(p).resolve()) for p in only}
    users: _Users = {}
    methods: dict[str, dict[str, int]] = {}
    for name, config in loaded.items():
        for file in config.files:
            paths = [str(Path(p).resolve()) for p in upstream_config.expand(file)]
            paths = [p for p in paths if not wanted or p in wanted]
            for path in paths:
                if path not in methods:
                    methods[path] = methods_of(path)
            of_file = {path: methods[path] for path in paths}
            _check_entries(name, file, of_file, users, problems)
    for (path, method), names in sorted(users.items()):
        if len(set(names)) > 1:
            where = ", ".join(dict.fromkeys(names))
            problems.duplicates.append(
                f"{path}:{methods[path][method]}: {method}: in {where}"
            )
    for path, own in sorted(methods.items()):
        for method, line in sorted(own.items(), key=lambda pair: pair[1]):
            if (path, method) not in users:
                problems.missing.append(f"{path}:{line}: {method}: in no configuration")
    return problems
