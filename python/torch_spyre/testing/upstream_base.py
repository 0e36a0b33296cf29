# SPDX-License-Identifier: Apache-2.0
"""The base class of PyTorch's device-generic tests on spyre.

PYTORCH_TEST_CONFIG names files of configuration, separated by ``:``. PyTorch takes the
class from upstream_device.py, which TORCH_TEST_DEVICES names.
``spyre-upstream-tests run`` sets both.
"""

from __future__ import annotations

import functools
import inspect
import os
import platform
import unittest
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch
from torch.testing._internal import common_device_type, common_utils

from torch_spyre.testing import environment, upstream_config
from torch_spyre.testing.located import nearest
from torch_spyre.testing.upstream_config import Config, Entry, TestFile
from torch_spyre.testing.upstream_inputs import with_samples
from torch_spyre.testing.upstream_plugin import variants


def _running_test() -> Callable[..., Any] | None:
    """The innermost function of a TestCase among the callers, or None.

    PyTorch asks before and after each variant and for each sample, with a list of all
    callers, for which Python reads their sources: a fifth of the time of a suite.
    """
    frame = inspect.currentframe()
    while frame is not None:
        case = frame.f_locals.get("self")
        if isinstance(case, unittest.TestCase):
            name = case._testMethodName
            if name.startswith("test"):
                return getattr(case, name).__func__
        frame = frame.f_back
    return None


common_utils.extract_test_fn = _running_test


@functools.cache
def _config() -> Config | None:
    names = environment.get("PYTORCH_TEST_CONFIG")
    return upstream_config.load(names.split(":")) if names else None


def _parametrizers(function: Any, seen: set[int]) -> list[Any]:
    """The ``@ops`` and ``@modules`` behind a function that makes variants."""
    if function is None or id(function) in seen:
        return []
    seen.add(id(function))
    owner = getattr(function, "__self__", None)
    found = [owner] if hasattr(owner, "_parametrize_test") else []
    for cell in getattr(function, "__closure__", None) or ():
        if callable(cell.cell_contents):
            found += _parametrizers(cell.cell_contents, seen)
    return found


def _names(op: Any) -> tuple[str, ...]:
    return (op.name, getattr(op, "full_name", op.name))


def _edit_ops(ops: list[Any], config: Config, entries: list[Entry]) -> list[Any]:
    """The operators of a test: supported ones, and what its entries include."""
    from torch.testing._internal.common_methods_invocations import op_db

    included = {n: i for e in entries for n, i in e.include_ops.items()}
    inputs = [i for e in entries for i in e.inputs]
    listed = config.ops.keys() | included.keys() if config.ops else None
    kept = [o for o in ops if listed is None or listed & set(_names(o))] or ops
    known = {name for op in kept for name in _names(op)}
    for name in sorted(included.keys() - known):
        more = [o for o in op_db if name in _names(o)]
        if not more:
            raise ValueError(
                f"edits.ops.include: PyTorch's op_db has no operator {name!r}; "
                f"{nearest(name, {n for o in op_db for n in _names(o)})}"
            )
        kept = [*kept, *more]
    result = []
    for op in kept:
        own = next((included[n] for n in _names(op) if included.get(n)), inputs)
        result.append(with_samples(op, own, config.seed) if own else op)
    return result


def _narrow(
    test: Any, config: Config, entries: list[Entry], include: tuple[torch.dtype, ...]
) -> None:
    """Leaves supported operators and modules, if there are any, and adds others."""
    for maker in _parametrizers(getattr(test, "parametrize_fn", None), set()):
        if hasattr(maker, "op_list"):
            maker.op_list = _edit_ops(maker.op_list, config, entries)
        if hasattr(maker, "module_info_list"):
            listed = config.modules.keys()
            every = maker.module_info_list
            kept = [m for m in every if not listed or m.formatted_name in listed]
            more = [m for e in entries for m in e.include_modules]
            own = [m.as_info(config.seed) for m in more]
            maker.module_info_list = [*(kept or every), *own]
        if include and getattr(maker, "allowed_dtypes", None) is not None:
            maker.allowed_dtypes |= set(include)
        if include and isinstance(getattr(maker, "opinfo_dtypes", None), (list, tuple)):
            maker.opinfo_dtypes = list({*maker.opinfo_dtypes, *include})


def _is_left_out(config: Config, entry: Entry | None, kwargs: dict[str, Any]) -> bool:
    """Whether dtypes or modules of a variant are not to run."""
    dtype, module = kwargs.get("dtype"), kwargs.get("module_info")
    op = kwargs.get("op")
    if entry and op and set(_names(op)) & set(entry.exclude_ops):
        return True
    if entry and dtype in entry.exclude_dtypes:
        return True
    if entry and module and module.formatted_name in entry.exclude_modules:
        return True
    if dtype is None or (entry and dtype in entry.include_dtypes):
        return False
    if config.dtypes and dtype not in config.dtypes:
        return True
    limits = [config.modules.get(module.formatted_name)] if module else []
    if op:
        limits += [config.ops.get(n) for n in _names(op)]
    return any(limit and limit.dtypes and dtype not in limit.dtypes for limit in limits)


def _is_forced(config: Config, kwargs: dict[str, Any]) -> bool:
    """Whether something global says that a variant may fail."""
    dtype = config.dtypes.get(kwargs.get("dtype"))  # type: ignore[arg-type]
    limits: list[Any] = [dtype]
    if op := kwargs.get("op"):
        limits += [config.ops.get(n) for n in _names(op)]
    if module := kwargs.get("module_info"):
        limits.append(config.modules.get(module.formatted_name))
    return any(limit and limit.force_xfail for limit in limits)


def _moved(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = torch.utils._pytree.tree_map_only(
            torch.Tensor, lambda t: t.cpu(), (args, kwargs)
        )
        return function(*args, **kwargs)

    return call


def _wrapped(function: Any, cpu_move: tuple[str, ...], skip_fails: bool) -> Any:
    """A test that moves arguments of some methods, and may not skip itself."""

    @functools.wraps(function)
    def test(self: Any) -> Any:
        for name in cpu_move:
            setattr(self, name, _moved(getattr(self, name)))
        try:
            return function(self)
        except unittest.SkipTest as error:
            if skip_fails:
                raise AssertionError(f"skipped: {error}") from error
            raise
        finally:
            for name in cpu_move:
                delattr(self, name)

    del test.__wrapped__  # pytest would take the parameters of what it wraps
    return test


def _marks(mode: str, reason: str, entry: Entry | None, kwargs: Any) -> list[Any]:
    names = [f"platform__{platform.machine()}", *(entry.tags if entry else ())]
    if op := kwargs.get("op"):
        names.append(f"op__{op.formatted_name}")
    if dtype := kwargs.get("dtype"):
        names.append(f"dtype__{str(dtype).removeprefix('torch.')}")
    if module := kwargs.get("module_info"):
        names.append(f"module__{module.formatted_name}")
    marks = [getattr(pytest.mark, n) for n in names]
    if mode != "mandatory_success":
        strict = mode == "xfail_strict"
        marks.append(pytest.mark.xfail(strict=strict, reason=reason or mode))
    return marks


class SpyreTestBase(common_device_type.PrivateUse1TestBase):
    """Variants of the tests that a configuration wants, marked as it says."""

    bypass_device_restrictions = True
    device_type: ClassVar[str] = "privateuse1"

    @classmethod
    def instantiate_test(cls, name: str, test: Any, *, generic_cls: Any = None) -> None:
        """Makes the variants of a test, and takes away those that are not to run."""
        config = _config()
        path = environment.get("OOT_TEST_FILE") or inspect.getfile(generic_cls)
        file = config.of_file(path) if config else None
        if config is None or file is None:
            super().instantiate_test(name, test, generic_cls=generic_cls)
            return
        include = {d for e in file.entries for d in e.include_dtypes}
        include = {d for d in include if _includes(file, name, d)}
        _narrow(test, config, file.entries_of(name), tuple(include))
        before = set(cls.__dict__)
        super().instantiate_test(name, test, generic_cls=generic_cls)
        for variant in [n for n in cls.__dict__ if n not in before]:
            cls._treat(config, file, path, generic_cls.__name__, name, variant)

    @classmethod
    def _treat(
        cls,
        config: Config,
        file: TestFile,
        path: str,
        generic: str,
        name: str,
        variant: str,
    ) -> None:
        function = cls.__dict__[variant]
        # What PyTorch bound: operator, module, dtype.
        kwargs = function.__defaults__[0]
        entry = file.entry_of(name, kwargs.get("dtype"))
        mode = entry.mode if entry else file.unlisted
        key = f"{os.path.realpath(path)}::{generic}::{variant}"
        record = {"class": generic, "method": name, "mode": mode, "outcome": "not run"}
        variants[key] = record
        if mode == "skip" or _is_left_out(config, entry, kwargs):
            delattr(cls, variant)
            record["outcome"] = "left out"
            return
        reason = ""
        if mode == "mandatory_success" and _is_forced(config, kwargs):
            mode = "xfail"
        if entry and variant in entry.known_failures:
            mode, reason = "xfail_strict", entry.known_failures[variant][0]
            record["mode"] = "known failure"
        moves = entry.cpu_move if entry else ()
        made = _wrapped(function, moves, skip_fails=mode.startswith("xfail"))
        made.pytestmark = [
            *getattr(function, "pytestmark", []),
            *_marks(mode, reason, entry, kwargs),
        ]
        setattr(cls, variant, made)

    @classmethod
    def _get_dtypes(cls, test: Any) -> Any:
        """The dtypes of ``@dtypes`` with those that the configuration includes."""
        dtypes, config = super()._get_dtypes(test), _config()
        if dtypes is None or config is None:
            return dtypes
        entry = _entry_of(test, config, None)
        more = entry.include_dtypes if entry else ()
        return (*dtypes, *(d for d in more if d not in dtypes))

    def _apply_precision_override_for_test(self, test: Any, param_kwargs: Any) -> None:
        super()._apply_precision_override_for_test(test, param_kwargs)
        config = _config()
        dtype = param_kwargs.get("dtype")
        known = config.dtypes.get(dtype) if config and dtype else None
        bounds = known.precision if known else None
        entry = _entry_of(test, config, dtype)
        if entry and dtype in entry.precisions:
            bounds = entry.precisions[dtype]
        if bounds:
            self.precision, self.rel_tol = bounds
        if config and config.seed is not None:
            torch.manual_seed(config.seed)

    def _should_stop_test_suite(self) -> bool:
        return False


def _entry_of(
    test: Any, config: Config | None, dtype: torch.dtype | None
) -> Entry | None:
    """The entry about a test function."""
    if config is None:
        return None
    path = environment.get("OOT_TEST_FILE") or inspect.getfile(inspect.unwrap(test))
    file = config.of_file(path)
    return file.entry_of(test.__name__, dtype) if file else None


def _includes(file: TestFile, method: str, dtype: torch.dtype) -> bool:
    entry = file.entry_of(method, dtype)
    return entry is not None and dtype in entry.include_dtypes


def use_base(bases: list[Any]) -> None:
    """Takes PyTorch's own base class for the device out: there is one class each."""
    bases[:] = [b for b in bases if b is not common_device_type.PrivateUse1TestBase]
