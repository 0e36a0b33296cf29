# SPDX-License-Identifier: Apache-2.0
"""Kernels that are ready to run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import torch

from torch_spyre import _C


class SpyreSDSCKernelRunner:
    """The kernel in a folder: a SuperDSC bundle, or SpyreCode in ``spyreCodeDir``.

    With ``DUMP_SPYRE_CODE=1``, read now, a bundle becomes SpyreCode in that folder
    first, and runs as such. Raises SpyreError for what is wrong in the folder.
    """

    def __init__(self, name: str, code_dir: str | os.PathLike[str]) -> None:
        self.kernel_name = name
        self.code_dir = Path(code_dir)
        self._job: _C.JobPlan | None = None
        self._graph: _C.CompiledGraph | None = None
        code = self.code_dir / "spyreCodeDir"
        if not code.exists() and _C.read_environment("DUMP_SPYRE_CODE"):
            files = _C.write_spyrecode(str(self.code_dir))
            code.mkdir()
            for file, content in files.items():
                (code / file).write_bytes(content)
        if code.exists():
            self._job = _C.prepare_kernel(str(code))
        else:
            self._graph = _C.load_bundles(str(self.code_dir))

    def run(self, *tensors: torch.Tensor) -> None:
        """Queues a run on the current stream; the last tensors are written.

        One tensor per argument of the kernel, in their order. One more, in front, is
        the pool of intermediates, which a run allocates itself. Raises ValueError for
        tensors that are not stored as the kernel expects.
        """
        if self._job is not None:
            _C.launch_jobplan(self._job, list(tensors))
            return
        assert self._graph is not None
        given = list(tensors)
        if self._graph.pool_bytes and len(given) == len(self._graph.inputs) + 1:
            del given[0]
        self._graph.run(given, [])


class SpyreUnimplementedRunner:
    """A kernel with an operation that the card does not have."""

    def __init__(self, name: str, op: str) -> None:
        self.kernel_name = name
        self.op = op

    def run(self, *tensors: torch.Tensor) -> NoReturn:
        """Raises RuntimeError, which names the operation."""
        raise RuntimeError(
            f"kernel {self.kernel_name} needs operation {self.op}, which the card does "
            "not have"
        )


__all__ = ["SpyreSDSCKernelRunner", "SpyreUnimplementedRunner"]
