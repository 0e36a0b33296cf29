# SPDX-License-Identifier: Apache-2.0
"""Which upstream tests run and what is expected of them: YAML as the field has it.

spec/test-frameworks.md, "Running upstream PyTorch tests (RFC 1287)". Ours beside it:
``known_failures`` of a test, by the full name of a variant, which has to fail.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from torch_spyre.testing import environment
from torch_spyre.testing.descriptors import dtype_of
from torch_spyre.testing.located import InputError, Located, read
from torch_spyre.testing.upstream_inputs import Arguments, Module

MODES = ("mandatory_success", "xfail", "xfail_strict", "skip")
#: Any of them makes a name a regular expression.
_EXPRESSION = re.compile(r"[\\.^$*+?{}\[\]|()]")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_FILE_KEYS = ("path", "unlisted_test_mode", "tests")
_TEST_KEYS = ("names", "mode", "tags", "edits", "known_failures", "description")


@dataclass(frozen=True)
class Name:
    """A name of tests as it stands in a file."""

    text: str
    place: str

    @property
    def method(self) -> str:
        """The part that is matched: classes have no say."""
        return self.text.rpartition("::")[2]

    @property
    def is_expression(self) -> bool:
        """Whether it is a regular expression."""
        return bool(_EXPRESSION.search(self.method))

    def matches(self, method: str) -> bool:
        """Whether it means a test method, by its base name."""
        if self.is_expression:
            return re.fullmatch(self.method, method) is not None
        return self.method == method


@dataclass
class Entry:
    """Tests that are treated alike."""

    names: list[Name]
    mode: str
    tags: tuple[str, ...] = ()
    include_dtypes: tuple[torch.dtype, ...] = ()
    exclude_dtypes: tuple[torch.dtype, ...] = ()
    #: What the dtypes of ``edits.dtypes.include`` say of tolerances.
    precisions: dict[torch.dtype, tuple[float, float]] = field(default_factory=dict)
    exclude_modules: tuple[str, ...] = ()
    include_modules: tuple[Module, ...] = ()
    #: Name of an operator -> its inputs; none: PyTorch's.
    include_ops: dict[str, list[Arguments]] = field(default_factory=dict)
    exclude_ops: tuple[str, ...] = ()
    #: Of every operator that has none of its own.
    inputs: list[Arguments] = field(default_factory=list)
    cpu_move: tuple[str, ...] = ()
    #: Full name of a variant -> (reason, place).
    known_failures: dict[str, tuple[str, str]] = field(default_factory=dict)

    def matches(self, method: str, exact: bool) -> bool:
        """Whether a name of it means a method, by equality or by expression."""
        return any(n.is_expression != exact and n.matches(method) for n in self.names)


@dataclass
class TestFile:
    """What is expected of the tests of files; ``path`` may be a glob."""

    path: str
    place: str
    unlisted: str
    entries: list[Entry]

    def entries_of(self, method: str) -> list[Entry]:
        """The entries about a test method: those with its exact name, else others."""
        exact = [e for e in self.entries if e.matches(method, True)]
        return exact or [e for e in self.entries if e.matches(method, False)]

    def entry_of(self, method: str, dtype: torch.dtype | None) -> Entry | None:
        """The entry of a variant: exact names first, then the one with its dtype."""
        found = self.entries_of(method)
        own = [e for e in found if dtype in e.include_dtypes]
        free = [e for e in found if not e.include_dtypes]
        return next(iter(own or free or found), None)


@dataclass
class DType:
    """A dtype of ``global.supported_dtypes``."""

    precision: tuple[float, float] | None
    force_xfail: bool


@dataclass
class Supported:
    """An operator or module of ``global``; no dtypes means all."""

    force_xfail: bool
    dtypes: tuple[torch.dtype, ...]


@dataclass
class Config:
    """Everything that some files of configuration say."""

    files: list[TestFile]
    dtypes: dict[torch.dtype, DType]
    ops: dict[str, Supported]
    modules: dict[str, Supported]
    seed: int | None

    def of_file(self, path: str) -> TestFile | None:
        """The part about a test file."""
        real = os.path.realpath(path)
        for file in self.files:
            if real in {os.path.realpath(p) for p in expand(file)}:
                return file
        return None


def resolve(text: str, place: str) -> str:
    """A path with its ``${...}`` replaced. Raises InputError for one that is unset."""
    file, _, line = place.rpartition(":")

    def value(match: re.Match[str]) -> str:
        name = match[1]
        # What the RFC and the schema call the two.
        others = {
            "TORCH_ROOT": ("PYTORCH_ROOT", "PYTORCH"),
            "TORCH_DEVICE_ROOT": ("TORCH_SPYRE_ROOT", "TORCH_SPYRE"),
        }
        for spelling, more in others.items():
            if name in (spelling, *more):
                found = next(
                    (v for n in (spelling, *more) if (v := environment.get(n))),
                    None,
                )
                if found:
                    return found
                what = (
                    "a checkout of PyTorch: the wheel has no folder test/"
                    if spelling == "TORCH_ROOT"
                    else "the folder of torch-spyre"
                )
                raise InputError(
                    file, int(line), f"{spelling} is not set; it names {what}"
                )
        raise InputError(
            file,
            int(line),
            f"${{{name}}} is unknown; expected ${{TORCH_ROOT}} or "
            "${TORCH_DEVICE_ROOT}",
        )

    return _VARIABLE.sub(value, text)


def expand(test_file: TestFile) -> list[str]:
    """The files of a path. Raises InputError if there is none."""
    path = resolve(test_file.path, test_file.place)
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        file, _, line = test_file.place.rpartition(":")
        parent = Path(path)
        while not parent.exists():
            parent = parent.parent
        raise InputError(
            file, int(line), f"{path}: no such file; there is nothing below {parent}"
        )
    return found


def _entry(value: Located) -> Entry:
    keys = value.mapping(_TEST_KEYS)
    if "names" not in keys:
        raise value.error("an entry of tests needs names")
    listed = keys["names"]
    items = listed.items() if listed.is_list else [listed]
    names = [Name(i.text(), f"{i.file}:{i.line}") for i in items]
    for name, item in zip(names, items, strict=True):
        if name.is_expression:
            try:
                re.compile(name.method)
            except re.error as error:
                raise item.error(f"{name.method!r} is no expression: {error}") from None
    mode = keys["mode"].choice(MODES) if "mode" in keys else "mandatory_success"
    entry = Entry(names, mode)
    if "tags" in keys:
        entry.tags = tuple(keys["tags"].texts())
    if "edits" in keys:
        _edit(entry, keys["edits"])
    failures = keys["known_failures"].items() if "known_failures" in keys else []
    for item in failures:
        parts = item.mapping(("test", "reason")) if item.is_mapping else {"test": item}
        if "test" not in parts:
            raise item.error("a known failure needs test, the full name of a variant")
        reason = parts["reason"].text() if "reason" in parts else "known failure"
        name = parts["test"].text()
        if name in entry.known_failures:
            raise item.error(f"{name}: listed before")
        entry.known_failures[name] = (reason, f"{item.file}:{item.line}")
    return entry


def _edit(entry: Entry, value: Located) -> None:
    edits = value.mapping(("dtypes", "modules", "functions", "ops", "inputs"))
    if "dtypes" in edits:
        parts = edits["dtypes"].mapping(("include", "exclude"))
        lists = {n: tuple(map(_named_dtype, p.items())) for n, p in parts.items()}
        entry.include_dtypes = lists.get("include", ())
        entry.exclude_dtypes = lists.get("exclude", ())
        for item in parts["include"].items() if "include" in parts else []:
            dtype, own = _dtype(item)
            if own.precision:
                entry.precisions[dtype] = own.precision
    if "modules" in edits:
        parts = edits["modules"].mapping(("include", "exclude"))
        included = parts["include"].items() if "include" in parts else []
        entry.include_modules = tuple(Module.read(i) for i in included)
        excluded = parts["exclude"].items() if "exclude" in parts else []
        entry.exclude_modules = tuple(_named(i)[0] for i in excluded)
    if "functions" in edits:
        parts = edits["functions"].mapping(("cpu_move",))
        moved = parts["cpu_move"].items() if "cpu_move" in parts else []
        entry.cpu_move = tuple(_named(i)[0] for i in moved)
    if "ops" in edits:
        parts = edits["ops"].mapping(("include", "exclude"))
        excluded = parts["exclude"].items() if "exclude" in parts else []
        entry.exclude_ops = tuple(_named(i)[0] for i in excluded)
        for item in parts["include"].items() if "include" in parts else []:
            name, keys = _named(item)
            own = entry.include_ops.setdefault(name, [])
            if "sample_inputs_func" in keys:
                own.append(Arguments(keys["sample_inputs_func"]))
    if "inputs" in edits:
        given = edits["inputs"]
        calls = given.items() if given.is_list else [given]
        entry.inputs = [Arguments(call) for call in calls]


def _named(value: Located) -> tuple[str, dict[str, Located]]:
    """A name, or a mapping that has one."""
    if not value.is_mapping:
        return value.text(), {}
    keys = value.mapping()
    if "name" not in keys:
        raise value.error("expected a name")
    return keys["name"].text(), keys


def _named_dtype(value: Located) -> torch.dtype:
    if not value.is_mapping:
        return dtype_of(value)
    keys = value.mapping()
    if "name" not in keys:
        raise value.error("a dtype needs a name")
    return dtype_of(keys["name"])


def _test_file(value: Located) -> TestFile:
    keys = value.mapping(_FILE_KEYS)
    if "path" not in keys:
        raise value.error("a file needs a path")
    unlisted = keys.get("unlisted_test_mode")
    mode = unlisted.choice(MODES) if unlisted else "xfail"
    tests = keys["tests"].items() if "tests" in keys else []
    path = keys["path"]
    entries = [_entry(t) for t in tests]
    return TestFile(path.text(), f"{path.file}:{path.line}", mode, entries)


def _supported(value: Located) -> dict[str, Supported]:
    result = {}
    for item in value.items():
        name, keys = _named(item)
        dtypes = keys["dtypes"].items() if "dtypes" in keys else []
        result[name] = Supported(
            keys["force_xfail"].boolean() if "force_xfail" in keys else False,
            tuple(_named_dtype(d) for d in dtypes),
        )
    return result


def _dtype(value: Located) -> tuple[torch.dtype, DType]:
    if not value.is_mapping:
        return dtype_of(value), DType(None, False)
    keys = value.mapping(("name", "precision", "force_xfail", "description"))
    precision = None
    if "precision" in keys:
        parts = keys["precision"].mapping(("atol", "rtol"))
        bounds = [parts[n].number(0) if n in parts else 0.0 for n in ("atol", "rtol")]
        precision = (bounds[0], bounds[1])
    forced = keys["force_xfail"].boolean() if "force_xfail" in keys else False
    return _named_dtype(value), DType(precision, forced)


def load(paths: Sequence[str | Path]) -> Config:
    """Files merged: tests of one path are joined, global lists united.

    Raises InputError, also if two files state different seeds.
    """
    config = Config([], {}, {}, {}, None)
    for path in paths:
        root = read(path)
        keys = root.mapping(("test_suite_config",))
        if "test_suite_config" not in keys:
            raise root.error("expected a test_suite_config")
        suite = keys["test_suite_config"].mapping(("files", "global"))
        for item in suite["files"].items() if "files" in suite else []:
            _add_file(config, _test_file(item))
        if "global" in suite:
            _add_global(config, suite["global"])
    return config


def _add_file(config: Config, new: TestFile) -> None:
    for file in config.files:
        if file.path == new.path:
            file.entries += new.entries
            return
    config.files.append(new)


def _add_global(config: Config, value: Located) -> None:
    known = ("supported_dtypes", "supported_ops", "supported_modules", "input_config")
    keys = value.mapping(known)
    if "supported_dtypes" in keys:
        config.dtypes.update(map(_dtype, keys["supported_dtypes"].items()))
    if "supported_ops" in keys:
        config.ops.update(_supported(keys["supported_ops"]))
    if "supported_modules" in keys:
        config.modules.update(_supported(keys["supported_modules"]))
    if "input_config" in keys:
        inputs = keys["input_config"].mapping(("seed",))
        if "seed" in inputs:
            seed = inputs["seed"].integer(0, 2**63 - 1)
            if config.seed not in (None, seed):
                raise inputs["seed"].error(f"{seed} here, {config.seed} before")
            config.seed = seed


def config_files(paths: Sequence[str]) -> list[str]:
    """Files and the YAML files of folders. Raises InputError for an empty folder."""
    result: list[str] = []
    for name in paths:
        if not Path(name).is_dir():
            result.append(name)
            continue
        folder = Path(name)
        found = sorted(map(str, [*folder.glob("*.yaml"), *folder.glob("*.yml")]))
        if not found:
            raise InputError(name, 0, "the folder has no .yaml files")
        result += found
    return result
