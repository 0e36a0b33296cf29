# SPDX-License-Identifier: Apache-2.0
"""Content-addressed cache of compiled programs on disk.

A file's name is the compiler's key of what it was compiled from. Files appear
whole (written aside, then renamed), so concurrent processes need no lock; a
file that cannot be read back is compiled anew and replaced.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from torch_spyre import _C

_in_memory: dict[str, Any] = {}
_log = logging.getLogger("torch_spyre.inductor")
_passes_log = logging.getLogger("torch_spyre.inductor.passes")
_codegen_log = logging.getLogger("torch_spyre.inductor.codegen")
_stickify_log = logging.getLogger("torch_spyre.inductor.stickify")


def cache_dir() -> Path:
    """``SPYRE_CACHE_DIR``, by default ``torch_spyre`` in the XDG cache folder."""
    own = _C.read_environment("SPYRE_CACHE_DIR")
    if own:
        return Path(own)
    base = _C.read_environment("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "torch_spyre"


def clear_cache() -> None:
    """Forget every compiled program, in this process and on disk."""
    _in_memory.clear()
    _C._forget_eager_programs()
    shutil.rmtree(cache_dir() / "programs", ignore_errors=True)


def load_or_compile(builder: Any, options: dict[str, Any]) -> Any:
    """The program of an imported graph, from memory, disk or the compiler."""
    key = _C.get_cache_key(builder, options)
    if "dump_dir" in options:
        return _compile(key, builder, options)
    graph = _in_memory.get(key)
    if graph is not None:
        return graph
    path = cache_dir() / "programs" / key[:2] / f"{key}.spyre"
    graph = _load(path)
    if graph is None:
        graph = _compile(key, builder, options)
        _store(path, graph.serialize())
    _in_memory[key] = graph
    return graph


def _compile(key: str, builder: Any, options: dict[str, Any]) -> Any:
    # A wrong value is the user's error; the compiler's own would pass for a graph that
    # it refuses.
    _C.read_environment("SPYRE_VERIFY_EACH_PASS")
    started = time.perf_counter()
    graph = _C.compile_graph(builder, options, key)
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


def _load(path: Path) -> Any:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    try:
        graph = _C.CompiledGraph.deserialize(data)
        _log.debug("loaded %s", path)
        return graph
    except _C.SpyreError as error:
        warnings.warn(
            f"recompiling: cache file {path} is damaged: {error}", stacklevel=2
        )
        return None


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
