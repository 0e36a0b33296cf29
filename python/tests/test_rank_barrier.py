# SPDX-License-Identifier: Apache-2.0
"""Where ranks meet that map one file: who comes late, and who never does."""

import mmap
import os
import signal
import tempfile
import threading
import time
from contextlib import contextmanager

import pytest
import torch
from torch_spyre import _C

BYTES = _C.RankBarrier.BYTES


@contextmanager
def shared_file(size):
    """Opens the file of a group for each rank, and maps its counts."""
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(mmap.PAGESIZE)

        def barrier_of(rank):
            with open(file.name, "r+b") as own:
                memory = mmap.mmap(own.fileno(), mmap.PAGESIZE)
                counts = torch.frombuffer(memory, dtype=torch.uint8)[: size * BYTES]
                return _C.RankBarrier(own.fileno(), counts, rank, size)

        yield barrier_of


@pytest.mark.parametrize("size", [1, 2, 5])
def test_nobody_goes_on_alone(size):
    turns = 300
    before, after = ([0] * turns for _ in range(2))
    lock = threading.Lock()

    def run(barrier):
        for turn in range(turns):
            with lock:
                before[turn] += 1
            barrier.wait(60)
            with lock:
                after[turn] += before[turn] == size

    with shared_file(size) as barrier_of:
        barriers = [barrier_of(rank) for rank in range(size)]
        ranks = [threading.Thread(target=run, args=[b]) for b in barriers]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
    assert after == [size] * turns


def test_who_sleeps_is_woken():
    """At once, not when it next looks whether the others are alive."""
    waited = []
    with shared_file(2) as barrier_of:
        early, late = barrier_of(0), barrier_of(1)
        for _ in range(5):
            timer = threading.Timer(0.02, late.wait, args=[60])
            timer.start()
            started = time.monotonic()
            early.wait(60)
            waited.append(time.monotonic() - started)
            timer.join()
    # The other one may come before this one does, on a busy machine.
    assert any(0.01 < seconds < 0.09 for seconds in waited)


def test_who_never_comes():
    with shared_file(2) as barrier_of:
        barrier, _other = barrier_of(0), barrier_of(1)
        with pytest.raises(RuntimeError, match=r"rank 1 has not come .* after 0.2 s"):
            barrier.wait(0.2)


def test_who_was_late_is_not_met_later():
    """Each has left one call early: the next ones are not the same collective."""
    with shared_file(2) as barrier_of:
        first, second = barrier_of(0), barrier_of(1)
        with pytest.raises(RuntimeError, match="rank 1 has not come"):
            first.wait(0)
        second.wait(60)
        with pytest.raises(RuntimeError, match="rank 0 has not come"):
            second.wait(0)
        for rank, barrier in enumerate((first, second)):
            for _ in range(2):
                with pytest.raises(RuntimeError, match=rf"rank {rank} has lost the"):
                    barrier.wait(0)


@pytest.mark.parametrize("comes_first", [False, True])
def test_who_ends(comes_first):
    """A process that has come may end; its parent need not have noticed."""
    with shared_file(2) as barrier_of:
        barrier = barrier_of(0)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            other = barrier_of(1)
            if comes_first:
                with pytest.raises(RuntimeError, match="rank 0 has not come"):
                    other.wait(0)
            os.write(write, b"x")
            signal.pause()
        try:
            assert os.read(read, 1) == b"x"
            os.kill(child, signal.SIGKILL)
            if comes_first:
                barrier.wait(60)
            started = time.monotonic()
            with pytest.raises(RuntimeError, match="rank 1 has ended"):
                barrier.wait(60)
            assert time.monotonic() - started < 30
        finally:
            os.waitpid(child, 0)
            os.close(read)
            os.close(write)


def test_bad_arguments():
    counts = torch.zeros(2 * BYTES, dtype=torch.uint8)
    with tempfile.TemporaryFile() as file:
        for memory, rank in [(counts[1:], 0), (counts.int(), 0), (counts, 2)]:
            with pytest.raises(RuntimeError, match=r"expected 128 bytes|rank 2 of 2"):
                _C.RankBarrier(file.fileno(), memory, rank, 2)
    with pytest.raises(RuntimeError, match="cannot lock"):
        _C.RankBarrier(1 << 20, counts, 1, 2)


def test_a_rank_is_one_process():
    with shared_file(2) as barrier_of:
        first = barrier_of(0)
        with pytest.raises(RuntimeError, match="cannot lock"):
            barrier_of(0)
        del first
        barrier_of(0)
