# SPDX-License-Identifier: Apache-2.0
"""Memory that the ranks of a group share, if all of them run on one machine.

Two halves take turns. Each has a slot per rank, which only that rank writes but where a
collective says otherwise. A half may be written again after a barrier that follows the
turn after it: by then every rank has read what was there. In front of them is a page
with what the file is known by and where the ranks meet.
"""

from __future__ import annotations

import mmap
import os
import secrets
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from torch_spyre._C import RankBarrier

#: Where files are memory.
FOLDER = Path("/dev/shm")
#: Bytes of a half: what all ranks move in a turn stays in the processor's cache.
HALF = 4 << 20
_TOKEN = 16
_PAGE = mmap.PAGESIZE
#: Bytes of the widest element.
_WIDEST = 8


def _slot_of(size: int) -> int:
    """Bytes of a slot in a group of ``size`` ranks."""
    return HALF // size // _PAGE * _PAGE


def _has_room(size: int) -> bool:
    """Whether so many ranks find room in the memory."""
    return _slot_of(size) >= size * _WIDEST and size < _PAGE // RankBarrier.BYTES


class _Mapped:
    """A file of a group, mapped by one rank. Raises OSError if that does not work."""

    def __init__(self, file: IO[bytes], rank: int, size: int) -> None:
        self.memory = mmap.mmap(file.fileno(), _PAGE + 2 * HALF)
        self.bytes = torch.frombuffer(self.memory, dtype=torch.uint8)
        counts = self.bytes[RankBarrier.BYTES : (1 + size) * RankBarrier.BYTES]
        try:
            self.barrier = RankBarrier(file.fileno(), counts, rank, size)
        except RuntimeError as error:
            raise OSError(str(error)) from error


class SharedMemory:
    """The slots of one rank and of its peers."""

    def __init__(self, mapped: _Mapped, size: int, timeout: timedelta) -> None:
        self._bytes, self._barrier = mapped.bytes, mapped.barrier
        self._size, self._timeout = size, timeout.total_seconds()
        self._turn = 0
        self._slot = _slot_of(size)

    @staticmethod
    def open(
        store: Any, gloo: Any, rank: int, size: int, timeout: timedelta
    ) -> SharedMemory | None:
        """The memory of a group; called by all its ranks. None if they share none.

        Raises RuntimeError if a rank is lost.
        """
        mapped, made = None, ""
        if _has_room(size):
            if rank == 0:
                mapped, made = _make(store, size)
            else:
                mapped = _find(store, rank, size, timeout)
        is_there = torch.tensor([mapped is not None], dtype=torch.uint8)
        everywhere = [torch.empty_like(is_there) for _ in range(size)]
        try:
            gloo.allgather([everywhere], [is_there]).wait()
        finally:
            if rank == 0 and mapped is not None:
                os.unlink(made)
        if mapped is None or not all(flag.item() for flag in everywhere):
            return None
        return SharedMemory(mapped, size, timeout)

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
        self._barrier.wait(self._timeout)


def _make(store: Any, size: int) -> tuple[_Mapped | None, str]:
    """A new file and its name, which the store gets. None if there is no room."""
    path = ""
    token = secrets.token_bytes(_TOKEN)
    try:
        handle, path = tempfile.mkstemp(prefix=f"spyreccl-{os.getpid()}-", dir=FOLDER)
        with os.fdopen(handle, "r+b") as file:
            # Otherwise a lack of room would end the process at its first access.
            os.posix_fallocate(file.fileno(), 0, _PAGE + 2 * HALF)
            mapped = _Mapped(file, 0, size)
        mapped.memory[:_TOKEN] = token
    except OSError:
        if path:
            os.unlink(path)
        store.set("memory", "")
        return None, ""
    store.set("memory", f"{path} {token.hex()}")
    return mapped, path


def _find(store: Any, rank: int, size: int, timeout: timedelta) -> _Mapped | None:
    """The file that the first rank has made, if it is on this machine."""
    store.wait(["memory"], timeout)
    path, _, token = store.get("memory").decode().partition(" ")
    try:
        with open(path, "r+b") as file:
            mapped = _Mapped(file, rank, size)
    except (OSError, ValueError):
        return None
    return mapped if mapped.memory[:_TOKEN].hex() == token else None
