# SPDX-License-Identifier: Apache-2.0
"""Memory that the ranks of a group share, if all of them run on one machine.

Two halves take turns. Each has a slot per rank, which only that rank writes but where a
collective says otherwise. A half may be written again after a barrier that follows the
turn after it: by then every rank has read what was there.
"""

from __future__ import annotations

import mmap
import os
import secrets
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

#: Where files are memory.
FOLDER = Path("/dev/shm")
#: Bytes of a half: what all ranks move in a turn stays in the processor's cache.
HALF = 8 << 20
_TOKEN = 16
_PAGE = mmap.PAGESIZE
#: Bytes of the widest element.
_WIDEST = 8


def _slot_of(size: int) -> int:
    """Bytes of a slot in a group of ``size`` ranks."""
    return HALF // size // _PAGE * _PAGE


class SharedMemory:
    """The slots of one rank and of its peers."""

    def __init__(self, memory: mmap.mmap, gloo: Any, rank: int, size: int) -> None:
        self._bytes = torch.frombuffer(memory, dtype=torch.uint8)
        self._gloo, self._rank, self._size = gloo, rank, size
        self._turn = 0
        self._slot = _slot_of(size)

    @staticmethod
    def open(
        store: Any, gloo: Any, rank: int, size: int, timeout: timedelta
    ) -> SharedMemory | None:
        """The memory of a group; called by all its ranks. None if they share none.

        Raises RuntimeError if a rank is lost.
        """
        memory, made = None, ""
        if _slot_of(size) >= size * _WIDEST:
            if rank == 0:
                memory, made = _make(store)
            else:
                memory = _find(store, timeout)
        is_there = torch.tensor([memory is not None], dtype=torch.uint8)
        everywhere = [torch.empty_like(is_there) for _ in range(size)]
        try:
            gloo.allgather([everywhere], [is_there]).wait()
        finally:
            if rank == 0 and memory is not None:
                os.unlink(made)
        if memory is None or not all(flag.item() for flag in everywhere):
            return None
        return SharedMemory(memory, gloo, rank, size)

    def pieces(
        self, count: int, dtype: torch.dtype, per_slot: int = 1
    ) -> Iterator[tuple[int, list[Tensor]]]:
        """Divides ``count`` elements into pieces, each of a turn.

        Gives the first element of a piece, and the slots of all ranks, each with
        room for ``per_slot`` such pieces.
        """
        most = self._slot // dtype.itemsize // per_slot
        for first in range(0, count, most):
            begin = _PAGE + self._turn % 2 * HALF
            self._turn += 1
            size = min(most, count - first) * per_slot * dtype.itemsize
            yield (
                first,
                [
                    self._bytes[begin + rank * self._slot :][:size].view(dtype)
                    for rank in range(self._size)
                ],
            )

    def barrier(self) -> None:
        """Returns when all ranks have come. Raises RuntimeError if one is lost."""
        self._gloo.barrier().wait()


def _make(store: Any) -> tuple[mmap.mmap | None, str]:
    """A new file and its name, which the store gets. None if there is no room."""
    path = ""
    token = secrets.token_bytes(_TOKEN)
    try:
        handle, path = tempfile.mkstemp(prefix=f"spyreccl-{os.getpid()}-", dir=FOLDER)
        with os.fdopen(handle, "r+b") as file:
            # Otherwise a lack of room would end the process at its first access.
            os.posix_fallocate(file.fileno(), 0, _PAGE + 2 * HALF)
            memory = mmap.mmap(file.fileno(), _PAGE + 2 * HALF)
        memory[:_TOKEN] = token
    except OSError:
        if path:
            os.unlink(path)
        store.set("memory", "")
        return None, ""
    store.set("memory", f"{path} {token.hex()}")
    return memory, path


def _find(store: Any, timeout: timedelta) -> mmap.mmap | None:
    """The file that the first rank has made, if it is on this machine."""
    store.wait(["memory"], timeout)
    path, _, token = store.get("memory").decode().partition(" ")
    try:
        with open(path, "r+b") as file:
            memory = mmap.mmap(file.fileno(), _PAGE + 2 * HALF)
    except (OSError, ValueError):
        return None
    return memory if memory[:_TOKEN].hex() == token else None
