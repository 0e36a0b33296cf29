# SPDX-License-Identifier: Apache-2.0
"""YAML whose values know their line, so that an error can name it."""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

try:
    import yaml  # type: ignore[import-untyped]
except ImportError as error:  # pragma: no cover - an environment without the extra
    raise ImportError(
        "PyYAML is missing, which reads descriptors and configurations: "
        f"run {sys.executable} -m pip install expecttest pytest pyyaml"
    ) from error

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: The longest file that is read, in bytes.
MOST_BYTES = 64 << 20


class InputError(ValueError):
    """What a file says cannot be used; the text begins with file and line."""

    def __init__(self, file: str, line: int, message: str) -> None:
        self.file, self.line, self.message = file, line, message
        super().__init__(f"{file}:{line}: {message}" if line else f"{file}: {message}")


def nearest(name: str, known: Collection[str]) -> str:
    """The end of an error: what a name could have meant, or all there is."""
    close = difflib.get_close_matches(name, sorted(known), 3, 0.6)
    if close:
        return f"did you mean {' or '.join(close)}?"
    if len(known) <= 12:
        return f"expected one of {', '.join(sorted(known))}"
    return f"none of the {len(known)} known names is similar"


class Located:
    """A node of a YAML file. Getters raise InputError unless it is what they say."""

    def __init__(self, file: str, node: yaml.Node, path: str = "") -> None:
        self.file, self.node, self.path = file, node, path

    @property
    def line(self) -> int:
        """The line in the file, from 1."""
        return self.node.start_mark.line + 1

    def error(self, message: str) -> InputError:
        """An error here."""
        where = f"{self.path}: " if self.path else ""
        return InputError(self.file, self.line, where + message)

    def _kind(self) -> str:
        if isinstance(self.node, yaml.MappingNode):
            return "a mapping"
        if isinstance(self.node, yaml.SequenceNode):
            return "a list"
        value = self.plain()
        return "nothing" if value is None else f"{value!r}"

    def child(self, node: yaml.Node, key: object) -> Located:
        """A node below this one."""
        path = f"{self.path}.{key}" if isinstance(key, str) else f"{self.path}[{key}]"
        return Located(self.file, node, path.lstrip("."))

    @property
    def is_mapping(self) -> bool:
        """Whether it has keys."""
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        """Whether it has items."""
        return isinstance(self.node, yaml.SequenceNode)

    def mapping(self, known: Collection[str] | None = None) -> dict[str, Located]:
        """Key -> value. A key that is not ``known`` is ignored with a warning.

        The reference ignores them, so files of the field may have some.
        """
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error(f"expected a mapping, found {self._kind()}")
        result: dict[str, Located] = {}
        for key, value in self.node.value:
            located = self.child(key, "key")
            if not isinstance(key, yaml.ScalarNode):
                raise located.error("expected a name as key")
            if key.value in result:
                first = result[key.value].line
                raise InputError(
                    self.file,
                    located.line,
                    f"{key.value}: twice in one mapping, first in line {first}",
                )
            result[key.value] = self.child(value, key.value)
            if known is not None and key.value not in known:
                print(
                    f"{self.file}:{located.line}: warning: {key.value} is ignored; "
                    f"{nearest(key.value, known)}",
                    file=sys.stderr,
                )
        return result

    def items(self) -> list[Located]:
        """The items of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error(f"expected a list, found {self._kind()}")
        return [self.child(node, i) for i, node in enumerate(self.node.value)]

    def plain(self) -> Any:
        """The value in Python's own types."""
        loader = _Loader("")
        try:
            return loader.construct_document(self.node)
        except yaml.YAMLError as error:
            raise self.error(str(error).splitlines()[0]) from error
        except (ValueError, TypeError, RecursionError) as error:
            raise self.error(f"no value: {error}") from error
        finally:
            loader.dispose()

    def text(self) -> str:
        """A string that is not empty."""
        value = self.plain() if isinstance(self.node, yaml.ScalarNode) else None
        if not isinstance(value, str) or not value:
            raise self.error(f"expected text, found {self._kind()}")
        return value

    def choice(self, known: Collection[str]) -> str:
        """One of some words."""
        value = self.text()
        if value not in known:
            raise self.error(f"{value!r} is unknown; {nearest(value, known)}")
        return value

    def integer(self, low: int | None = None, high: int | None = None) -> int:
        """A whole number from ``low`` to ``high``."""
        value = self.plain() if isinstance(self.node, yaml.ScalarNode) else None
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(f"expected a whole number, found {self._kind()}")
        if (low is not None and value < low) or (high is not None and value > high):
            bounds = f"from {low}" + ("" if high is None else f" to {high}")
            raise self.error(f"expected a whole number {bounds}, found {value}")
        return value

    def number(self, low: float | None = None) -> float:
        """A finite number, at least ``low``; ``1e-3`` counts, which YAML calls text."""
        value = self.plain() if isinstance(self.node, yaml.ScalarNode) else None
        try:
            if isinstance(value, bool) or value is None:
                raise ValueError
            number = float(value)
        except (TypeError, ValueError):
            raise self.error(f"expected a number, found {self._kind()}") from None
        if not math.isfinite(number) or (low is not None and number < low):
            bound = "" if low is None else f" from {low:g}"
            raise self.error(f"expected a finite number{bound}, found {number:g}")
        return number

    def boolean(self) -> bool:
        """``true`` or ``false``."""
        value = self.plain() if isinstance(self.node, yaml.ScalarNode) else None
        if not isinstance(value, bool):
            raise self.error(f"expected true or false, found {self._kind()}")
        return value

    def integers(self, low: int | None = None) -> tuple[int, ...]:
        """A list of whole numbers."""
        return tuple(item.integer(low) for item in self.items())

    def texts(self) -> list[str]:
        """A list of strings; one alone counts as a list."""
        if self.is_list:
            return [item.text() for item in self.items()]
        return [self.text()]


def read(path: str | Path) -> Located:
    """The root of a YAML file. Raises InputError for what is no YAML."""
    file = str(path)
    try:
        if Path(path).stat().st_size > MOST_BYTES:
            raise InputError(file, 0, f"longer than {MOST_BYTES} bytes")
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(file, 0, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise InputError(file, 0, f"byte {error.start} is not UTF-8") from error
    return parse(text, file)


def parse(text: str, file: str) -> Located:
    """As :func:`read`, of a text."""
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(t for t in (error.context, error.problem) if t)
        raise InputError(file, mark.line + 1 if mark else 0, problem) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        message = str(error).splitlines()[0]
        raise InputError(file, 0, f"no YAML: {message}") from error
    if node is None:
        raise InputError(file, 1, "the file is empty; expected a mapping")
    return Located(file, node)
