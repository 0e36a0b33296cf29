# SPDX-License-Identifier: Apache-2.0
"""JSON files of users: device numbers and configurations of models."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def read_json(path: str | os.PathLike[str]) -> Any:
    """The value in a JSON file.

    Raises OSError for a file that cannot be read, and ValueError, which says where, for
    one that is no JSON or has a key twice in an object. The words are those of the
    compiler (Spyre/Support/Json.h). Unlike there, numbers may be ``Infinity`` or
    ``NaN``, which configurations of models have.
    """
    text = Path(path).read_text(encoding="utf-8")
    try:
        value = json.loads(text, object_pairs_hook=_object)
        _check(value, "")
    except RecursionError:
        raise ValueError("arrays and objects are nested too deep") from None
    return value


class _Twice:
    """Stands for an object that has a key twice: where it is, its parents know."""

    def __init__(self, key: str) -> None:
        self.key = key


def _object(members: list[tuple[str, Any]]) -> dict[str, Any] | _Twice:
    result: dict[str, Any] = {}
    for key, value in members:
        if key in result:
            return _Twice(key)
        result[key] = value
    return result


def _check(value: Any, path: str) -> None:
    """Raises ValueError for a key twice; ``path`` is the JSON pointer to the value."""
    if isinstance(value, _Twice):
        key = value.key
        place = f"{path}/{_escaped(key)}"
        raise ValueError(f"{place}: the key '{key}' occurs twice in an object")
    if isinstance(value, dict):
        for key, member in value.items():
            _check(member, f"{path}/{_escaped(key)}")
    if isinstance(value, list):
        for number, element in enumerate(value):
            _check(element, f"{path}/{number}")


def _escaped(key: str) -> str:
    """A key as JSON pointers have it."""
    return key.replace("~", "~0").replace("/", "~1")
