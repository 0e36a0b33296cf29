# SPDX-License-Identifier: Apache-2.0
"""The memory that this process and the tools that it starts take together."""

from __future__ import annotations

import os
import resource
import threading
from pathlib import Path
from typing import Any

_PROC = Path("/proc")


def _parents() -> dict[int, int]:
    """The parent of every process. One that ends meanwhile is left out."""
    parents = {}
    for name in os.listdir(_PROC):
        if not name.isdigit():
            continue
        try:
            text = (_PROC / name / "stat").read_text()
        except OSError:
            continue
        # The name of the program, in parentheses, may hold anything.
        parents[int(name)] = int(text.rpartition(")")[2].split()[1])
    return parents


def _descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for process, parent in _parents().items():
        children.setdefault(parent, []).append(process)
    found = [root]
    for process in found:
        found += children.get(process, ())
    return found


def _peak_of(process: int) -> int:
    """The most resident bytes that a process has had; 0 for one that has ended."""
    try:
        lines = (_PROC / str(process) / "status").read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _own_peak() -> int:
    # Kilobytes on Linux.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class PeakMemory:
    """Watches this process and all that descend from it, while entered.

    ``peak_bytes`` is the largest sum, over the processes that were there at one time,
    of the most resident bytes of each. Pages that processes share count in each, and
    peaks of two processes as if they were at once, so it is rather too large. What can
    be missed is a process that lives shorter than twice ``interval_seconds``, and what
    one takes after it was last looked at. Without ``/proc``, it is the peak of this
    process alone.

    A process counts from the second look on: until it has started its program, it shows
    the memory of the process that it was forked from as its own.

    RUSAGE_CHILDREN does not serve: it has the largest child, not the sum, and a child
    takes over the peak of the process that it was forked from.
    """

    def __init__(self, interval_seconds: float = 0.01) -> None:
        self.peak_bytes = 0
        self._seen: set[int] = set()
        self._interval = interval_seconds
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._done.set()
        self._thread.join()
        self._sample()

    def _watch(self) -> None:
        while not self._done.wait(self._interval):
            self._sample()

    def _sample(self) -> None:
        peaks = [_own_peak()]
        if _PROC.is_dir():
            own = os.getpid()
            found = {p for p in _descendants(own) if p != own}
            peaks += [_peak_of(p) for p in found & self._seen]
            self._seen = found
        self.peak_bytes = max(self.peak_bytes, sum(peaks))
