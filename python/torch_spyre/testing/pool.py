# SPDX-License-Identifier: Apache-2.0
"""Work in processes of their own: one that dies or hangs costs one item."""

from __future__ import annotations

import multiprocessing
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any


def _serve(connection: Any, work: Callable[[Any], Any]) -> None:
    while True:
        item = connection.recv()
        if item is None:
            return
        connection.send(work(item))


def run_all(
    items: Sequence[Any],
    work: Callable[[Any], Any],
    jobs: int,
    timeout: float,
    lost: Callable[[Any, str], Any],
    done: Callable[[Any], None],
) -> list[Any]:
    """``work`` of every item in ``jobs`` processes; results in the order of items.

    ``work`` is picklable. ``lost(item, reason)`` is the result of an item whose
    process died or needed more than ``timeout`` seconds; ``done`` sees each result.
    """
    context = multiprocessing.get_context("spawn")
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(items)):
        waiting.put(number)
    results: list[Any] = [None] * len(items)
    lock = threading.Lock()

    def feed() -> None:
        process: Any = None
        ours: Any = None
        while True:
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                break
            if process is None:
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=_serve, args=(theirs, work), daemon=True
                )
                process.start()
                theirs.close()
            reason = ""
            try:
                ours.send(items[number])
                if ours.poll(timeout):
                    results[number] = ours.recv()
                else:
                    reason = f"no end after {timeout:g} seconds"
            except (EOFError, OSError):
                process.join(10)
                reason = f"the process died with status {process.exitcode}"
            if reason:
                process.kill()
                process.join()
                process = None
                results[number] = lost(items[number], reason)
            with lock:
                done(results[number])
        if process is not None:
            ours.send(None)
            process.join()

    threads = [threading.Thread(target=feed) for _ in range(min(jobs, len(items)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
