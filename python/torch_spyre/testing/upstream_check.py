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
from torch_spyre.testing.upstream_config import Config


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
        if not isinstance(node, ast.ClassDef):
            continue
        for item in node.body:
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if item.name.startswith("test"):
                    found[item.name] = item.lineno
            elif isinstance(item, ast.Assign) and isinstance(item.value, ast.Dict):
                names = [t.id for t in item.targets if isinstance(t, ast.Name)]
                if "PARAMS" not in names:
                    continue
                for key in item.value.keys:
                    pair = isinstance(key, ast.Tuple) and key.elts
                    first = pair[0] if pair else key
                    if isinstance(first, ast.Constant) and isinstance(first.value, str):
                        found[first.value] = first.lineno
    return found


def check(configs: Sequence[str], only: Sequence[str] = ()) -> Problems:
    """What is wrong in configurations; with ``only``, about these test files."""
    problems = Problems()
    loaded: dict[str, Config] = {c: upstream_config.load([c]) for c in configs}
    wanted = {str(Path(p).resolve()) for p in only}
    users: dict[tuple[str, str], list[str]] = {}
    methods: dict[str, dict[str, int]] = {}
    for name, config in loaded.items():
        for file in config.files:
            paths = [str(Path(p).resolve()) for p in upstream_config.expand(file)]
            paths = [p for p in paths if not wanted or p in wanted]
            for path in paths:
                methods.setdefault(path, methods_of(path))
            known = {m for p in paths for m in methods[p]}
            for entry in file.entries:
                for listed in entry.names:
                    # A parametrized test may be listed by one of its names.
                    found = {
                        m
                        for m in known
                        if listed.matches(m) or listed.method.startswith(f"{m}_")
                    }
                    if paths and not found:
                        problems.dead.append(
                            f"{listed.place}: {listed.text}: matches no test; "
                            f"{nearest(listed.method, known)}"
                        )
                    for path in paths:
                        for method in found & methods[path].keys():
                            users.setdefault((path, method), []).append(name)
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
