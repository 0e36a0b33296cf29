# SPDX-License-Identifier: Apache-2.0
"""The memory of the ranks of a group, if all of them run on one machine.

Each rank reads and writes the values of the others where these are, between two
meetings: at the first one, all values are there, and after the second one nobody
touches those of others any more. Where values are, and who has come, stands in a file
in memory that all of them map. Its first bytes are what the file is known by.
"""

from __future__ import annotations

import mmap
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from torch_spyre import _C
from torch_spyre._C import RankBarrier

#: Where files are memory.
FOLDER = Path("/dev/shm")
_TOKEN = 16
_ADDRESS = torch.int64.itemsize


def _bytes_of(size: int) -> int:
    """Of the file of a group: the token's place is as large as a rank's count."""
    return (1 + size) * RankBarrier.BYTES + size * _ADDRESS


class _Mapped:
    """A file of a group, mapped by one rank. Raises OSError if that does not work."""

    def __init__(self, file: IO[bytes], rank: int, size: int) -> None:
        self.memory = mmap.mmap(file.fileno(), _bytes_of(size))
        whole = torch.frombuffer(self.memory, dtype=torch.uint8)
        counts = whole[RankBarrier.BYTES : (1 + size) * RankBarrier.BYTES]
        #: Where the values of each rank are.
        self.addresses = whole[(1 + size) * RankBarrier.BYTES :].view(torch.int64)
        try:
            self.barrier = RankBarrier(file.fileno(), counts, rank, size)
        except RuntimeError as error:
            raise OSError(str(error)) from error


class RankMemory:
    """What one rank needs to reach the memory of its peers."""

    def __init__(
        self, mapped: _Mapped, processes: list[int], rank: int, timeout: timedelta
    ) -> None:
        self._addresses, self._barrier = mapped.addresses, mapped.barrier
        self._processes, self._rank = processes, rank
        self._timeout = timeout.total_seconds()

    @staticmethod
    def open(
        store: Any, gloo: Any, rank: int, size: int, timeout: timedelta
    ) -> RankMemory | None:
        """The memory of a group; called by all its ranks.

        None if they run on several machines, or if the kernel keeps them apart. Raises
        RuntimeError if a rank is lost.
        """

        def exchange(*numbers: int) -> list[list[int]]:
            own = torch.tensor(numbers)
            everywhere = [torch.empty_like(own) for _ in range(size)]
            gloo.allgather([everywhere], [own]).wait()
            return [other.tolist() for other in everywhere]

        _C.share_process_memory()
        if rank == 0:
            mapped, made = _make(store, size)
        else:
            mapped, made = _find(store, rank, size, timeout), ""
        # A number that no other process has at this place.
        proof = torch.tensor([secrets.randbits(62)])
        try:
            known = exchange(os.getpid(), proof.data_ptr(), int(proof.item()))
            is_open = mapped is not None and all(_can_read(*peer) for peer in known)
            is_open_everywhere = all(flag for [flag] in exchange(is_open))
        finally:
            if made:
                os.unlink(made)
        if mapped is None or not is_open_everywhere:
            return None
        return RankMemory(mapped, [process for process, *_ in known], rank, timeout)

    @contextmanager
    def reaching(self, values: Tensor) -> Iterator[None]:
        """Lets the other ranks reach ``values``, a dense CPU tensor, in this scope.

        All ranks enter it together, and none leaves it before the others have done
        what they do there. Raises RuntimeError if a rank is lost.
        """
        self._addresses[self._rank] = values.data_ptr()
        self._barrier.wait(self._timeout)
        try:
            yield
        finally:
            # After an error, too: the others would wait for this rank.
            self._barrier.wait(self._timeout)

    def read(self, rank: int, first: int, into: Tensor, device: int) -> None:
        """Copies the values of a rank, from number ``first`` on, ``into`` a tensor.

        That is one of card ``device``, dense, on the host, of the values' type.
        """
        address = self._address(rank, first, into)
        _C.read_process(self._processes[rank], address, into, device)

    def write(self, rank: int, first: int, values: Tensor, device: int) -> None:
        """The reverse of ``read()``."""
        address = self._address(rank, first, values)
        _C.write_process(self._processes[rank], address, values, device)

    def _address(self, rank: int, first: int, like: Tensor) -> int:
        return int(self._addresses[rank]) + first * like.itemsize


def _can_read(process: int, address: int, proof: int) -> bool:
    """Whether a process is on this machine, and may be reached."""
    found = torch.empty(1, dtype=torch.int64)
    try:
        _C.read_process(process, address, found, 0)
    except RuntimeError:
        return False
    return int(found.item()) == proof


def _make(store: Any, size: int) -> tuple[_Mapped | None, str]:
    """A new file and its name, which the store gets. None if there is no room."""
    path = ""
    token = secrets.token_bytes(_TOKEN)
    try:
        handle, path = tempfile.mkstemp(prefix=f"spyreccl-{os.getpid()}-", dir=FOLDER)
        with os.fdopen(handle, "r+b") as file:
            # Otherwise a lack of room would end the process at its first access.
            os.posix_fallocate(file.fileno(), 0, _bytes_of(size))
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
