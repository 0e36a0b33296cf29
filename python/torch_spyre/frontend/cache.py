# SPDX-License-Identifier: Apache-2.0
"""Content-addressed cache of compiled programs on disk.

A file's name is the compiler's key of what it was compiled from. Files appear
whole (written aside, then renamed), so concurrent processes need no lock; a
file that cannot be read back is compiled anew and replaced.

PyTorch's controls of its caches hold for it too: ``fresh_cache()``,
``torch.compiler.save_cache_artifacts()`` and ``load_cache_artifacts()``,
``TORCHINDUCTOR_FORCE_DISABLE_CACHES`` and the counters of Inductor's cache.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import re
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from torch_spyre import _C
from torch_spyre._inductor import config
from torch_spyre.frontend import refusals
from torch_spyre.logging_config import set_log_level

_in_memory: dict[str, Any] = {}
#: What ``parts.compiled_parts()`` lists.
parts: list[Any] = []
_is_counted: ContextVar[bool] = ContextVar("is_counted", default=False)
#: Folders of the fresh_cache() contexts that are open, innermost last.
_fresh: list[Path] = []
#: What programs are called among the artifacts of torch.compiler.
ARTIFACT_TYPE = "spyre_program"
_log = logging.getLogger("spyre.inductor")
_passes_log = logging.getLogger("spyre.inductor.passes")
_codegen_log = logging.getLogger("spyre.inductor.codegen")
_stickify_log = logging.getLogger("spyre.inductor.stickify")


def cache_dir() -> Path:
    """``SPYRE_CACHE_DIR``, by default ``torch_spyre`` in the XDG cache folder.

    Under ``torch._inductor.utils.fresh_cache()`` a folder that is deleted afterwards.
    """
    if _fresh:
        return _fresh[-1]
    own = _C.read_environment("SPYRE_CACHE_DIR")
    if own:
        return Path(own)
    base = _C.read_environment("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "torch_spyre"


def forget_loaded() -> None:
    """Forget every compiled program in this process; those on disk stay.

    What a compiled function has stays with it, but is not listed any more.
    """
    _in_memory.clear()
    parts.clear()
    _C._forget_eager_programs()


def clear_cache() -> None:
    """Forget every compiled program, in this process and on disk."""
    forget_loaded()
    shutil.rmtree(cache_dir() / "programs", ignore_errors=True)


@contextmanager
def counted() -> Iterator[None]:
    """Programs looked up inside are hits or misses of Inductor's counters."""
    token = _is_counted.set(True)
    try:
        yield
    finally:
        _is_counted.reset(token)


@functools.cache
def _variables() -> tuple[str, ...]:
    return tuple(row["name"] for row in _C.environment_variables())


def _check_environment() -> None:
    """Reads all variables, also those that a process may have no use for.

    A wrong value is the user's error, and would go unnoticed. The compiler's own error
    would pass for a graph that it refuses.
    """
    for name in _variables():
        _C.read_environment(name)


def load_or_compile(builder: Any, options: dict[str, Any]) -> Any:
    """The program of an imported graph, from memory, disk or the compiler.

    Raises ValueError for a variable of the environment with a wrong value.
    """
    _check_environment()
    key = _C.get_cache_key(builder, options)
    if _C.read_environment("SPYRE_VERIFY_EACH_PASS"):
        # Programs that were made without being checked are made again.
        key = hashlib.sha256(f"{key} checked after each pass".encode()).hexdigest()
    if "dump_dir" in options or torch.compiler.config.force_disable_caches:
        return _compile(key, builder, options)
    graph = _in_memory.get(key)
    if graph is not None:
        _count("hit")
        return graph
    path = _path(key) if _is_kept_on_disk() else None
    graph = _load(path) if path is not None else None
    _count("miss" if graph is None else "hit")
    stores = graph is None and path is not None
    if graph is None:
        graph = _compile(key, builder, options)
    records = _is_counted.get()
    if stores or records:
        content = graph.serialize()
        if stores:
            _store(path, content)
        if records:
            _record(key, content)
    _in_memory[key] = graph
    return graph


def _is_kept_on_disk() -> bool:
    """``sdsc_cache`` is on by default; ``spyre_kernel_cache`` alone is enough."""
    return config.sdsc_cache or config.spyre_kernel_cache


def _path(key: str) -> Path:
    return cache_dir() / "programs" / key[:2] / f"{key}.spyre"


def _count(what: str) -> None:
    if _is_counted.get():
        from torch._dynamo.utils import counters

        counters["inductor"][f"fxgraph_cache_{what}"] += 1


def _record(key: str, content: bytes) -> None:
    """Puts a program among what save_cache_artifacts() returns."""
    from torch.compiler._cache import CacheArtifactManager

    CacheArtifactManager.record_artifact(ARTIFACT_TYPE, key, content)


def register_artifact(torch_cache: ModuleType) -> None:
    """Tells ``torch.compiler._cache`` how load_cache_artifacts() keeps programs."""

    class SpyreProgram(torch_cache.CacheArtifact):
        def populate_cache(self) -> None:
            if not re.fullmatch("[0-9a-f]{64}", self.key):
                warnings.warn(
                    f"cache artifact {self.key!r} is no program's key", stacklevel=2
                )
            elif not torch.compiler.config.force_disable_caches:
                _store(_path(self.key), self.content)

        @staticmethod
        def type() -> str:
            return ARTIFACT_TYPE

    torch_cache.CacheArtifactFactory.register(SpyreProgram)


def wrap_fresh_cache(utils: ModuleType) -> None:
    """Makes ``torch._inductor.utils.fresh_cache()`` fresh for programs as well."""
    original: Callable[..., Any] = utils.fresh_cache

    @wraps(original)
    @contextmanager
    def fresh_cache(*args: Any, **kwargs: Any) -> Iterator[None]:
        with tempfile.TemporaryDirectory(prefix="spyre-cache-") as folder:
            kept = dict(_in_memory)
            _in_memory.clear()
            _fresh.append(Path(folder))
            try:
                with original(*args, **kwargs):
                    yield
            finally:
                _fresh.remove(Path(folder))
                _in_memory.clear()
                _in_memory.update(kept)

    utils.fresh_cache = utils.fresh_inductor_cache = fresh_cache


def _compile(key: str, builder: Any, options: dict[str, Any]) -> Any:
    started = time.perf_counter()
    try:
        if config.log_passes and "dump_dir" not in options:
            graph = _compile_with_log(key, builder, options)
        else:
            graph = _C.compile_graph(builder, options, key)
    except _C.RefusedPlan as error:
        refusals.count_plan(error)
        _dump_refused(key, builder, options)
        raise
    _log.info("compiled %s in %.1f ms", key[:12], 1e3 * (time.perf_counter() - started))
    if _passes_log.isEnabledFor(logging.DEBUG):
        times = [f"{name} {1e3 * t:.2f} ms" for name, t in graph.pass_seconds]
        _passes_log.debug("%s: %s", key[:12], ", ".join(times))
    if _codegen_log.isEnabledFor(logging.DEBUG):
        _codegen_log.debug("%s:\n%s", key[:12], graph.print_ktir())
    if _stickify_log.isEnabledFor(logging.DEBUG):
        kernels = re.findall(r"func\.func private @(k\d+_\w+)", graph.print_ktir())
        moving = [k for k in kernels if k.endswith("_restickify")]
        _stickify_log.debug(
            "%s: %d of %d kernels change a layout%s",
            key[:12],
            len(moving),
            len(kernels),
            ": " + ", ".join(moving) if moving else "",
        )
    return graph


def _dump_refused(key: str, builder: Any, options: dict[str, Any]) -> None:
    """Dumps the wrong plan of an operator that runs by itself: the warning asks for it,
    and only parts of compiled graphs have been dumped.
    """
    from torch_spyre.frontend import dump

    base = dump.dump_dir()
    if base is None or "dump_dir" in options:
        return
    folder = dump.make_folder(base, "refused_plan")
    with suppress(_C.SpyreError):
        _C.compile_graph(builder, {**options, "dump_dir": str(folder)}, key)


def _compile_with_log(key: str, builder: Any, options: dict[str, Any]) -> Any:
    """Compiles, and logs the IR after the passes that ``log_passes`` names."""
    names = {name for name in re.split(r"[,\s]+", config.log_passes) if name}
    if not _passes_log.isEnabledFor(logging.INFO):
        set_log_level("spyre.inductor.passes", logging.INFO)
    with tempfile.TemporaryDirectory(prefix="spyre-passes-") as folder:
        graph = _C.compile_graph(builder, {**options, "dump_dir": folder}, key)
        for file in sorted(Path(folder).glob("[0-9]*.mlir")):
            name = file.stem.partition("-")[2]
            if names & {"all", name}:
                _passes_log.info("%s after %s:\n%s", key[:12], name, file.read_text())
    unknown = names - {"all"} - {name for name, _ in graph.pass_seconds}
    if unknown:
        known = ", ".join(name for name, _ in graph.pass_seconds)
        _passes_log.warning(
            "SPYRE_LOG_PASSES: no pass is called %s; passes are %s",
            ", ".join(sorted(unknown)),
            known,
        )
    return graph


def _load(path: Path) -> Any:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    try:
        graph = _C.CompiledGraph.deserialize(data)
        if graph.cache_key != path.stem:
            raise _C.SpyreError(f"it has the program {graph.cache_key}")
    except _C.SpyreError as error:
        warnings.warn(
            f"recompiling: cache file {path} is damaged: {error}", stacklevel=2
        )
        return None
    _log.debug("loaded %s", path)
    return graph


def _store(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        warnings.warn(f"compiled programs are not cached: {error}", stacklevel=2)
