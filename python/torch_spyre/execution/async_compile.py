# SPDX-License-Identifier: Apache-2.0
"""Compiling specifications to kernels."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch_spyre._inductor.codegen.bundle import generate_bundle
from torch_spyre._inductor.op_spec import find_unimplemented
from torch_spyre.execution.kernel_runner import (
    SpyreSDSCKernelRunner,
    SpyreUnimplementedRunner,
)


def get_output_dir(name: str) -> str:
    """A new folder for a kernel, in ``inductor-spyre`` of Inductor's cache."""
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    base = Path(cache_dir()) / "inductor-spyre"
    base.mkdir(parents=True, exist_ok=True)
    return tempfile.mkdtemp(dir=base, prefix=f"{name}_")


class SpyreAsyncCompile:
    """Makes kernels of specifications, at once; nothing is left to wait for."""

    def sdsc(
        self, name: str, specs: Sequence[Any]
    ) -> SpyreSDSCKernelRunner | SpyreUnimplementedRunner:
        """The kernel of operations and loops; its ``run(*tensors)`` runs it.

        An operation that the card does not have is an error of that run. Raises
        Unsupported and SpyreError for specifications that have no kernel.
        """
        missing = find_unimplemented(specs)
        if missing is not None:
            return SpyreUnimplementedRunner(name, missing.op)
        folder = get_output_dir(name)
        generate_bundle(name, folder, specs)
        return SpyreSDSCKernelRunner(name, folder)

    def wait(self, scope: dict[str, Any]) -> None:
        """Returns when all kernels of a scope are compiled, which they are."""


__all__ = ["SpyreAsyncCompile", "get_output_dir"]
