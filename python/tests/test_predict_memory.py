# SPDX-License-Identifier: Apache-2.0
"""The peak of a tree of processes: sums over those that are there at one time."""

import os
import resource
import subprocess
import sys
import time

import pytest
from torch_spyre.predict import memory
from torch_spyre.predict.memory import PeakMemory

MIB = 2**20


@pytest.fixture(autouse=True)
def _only_new_children(monkeypatch):
    """Children that this process has already belong to tests before: as the
    interpreters of interpreters.py, they stay.
    """
    descendants = memory._descendants
    own = os.getpid()
    others = set(descendants(own)) - {own}
    monkeypatch.setattr(
        memory,
        "_descendants",
        lambda root: [p for p in descendants(root) if p not in others],
    )


#: Takes so many MiB, says so, and waits until its input ends.
CHILD = "import sys; x = b'x' * ({} * 2**20); print(); sys.stdout.flush(); input()"
#: Starts a child of its own, and waits as long as that one.
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', {!r}])"


class Children:
    """Processes that take memory until this is left."""

    def __init__(self, *programs):
        self.programs = programs

    def __enter__(self):
        self.running = [
            subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for program in self.programs
        ]
        for child in self.running:
            assert child.stdout.readline() == b"\n"

    def __exit__(self, *_):
        for child in self.running:
            child.communicate(b"\n", timeout=60)


def own_peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def peak_with(*programs):
    with PeakMemory() as watched, Children(*programs):
        time.sleep(0.2)
    return watched.peak_bytes - own_peak()


def test_children_at_one_time_are_added():
    both = peak_with(CHILD.format(64), CHILD.format(96))
    assert 160 * MIB <= both < 160 * MIB + 2 * 64 * MIB


def test_children_one_after_another_are_not_added():
    # More than this process has: until it runs its program, a child seems to have that.
    with PeakMemory() as watched:
        for _ in range(3):
            with Children(CHILD.format(512)):
                time.sleep(0.1)
    assert 512 * MIB <= watched.peak_bytes - own_peak() < 2 * 512 * MIB


def test_children_of_children_count():
    assert peak_with(PARENT.format(CHILD.format(64))) >= 64 * MIB


def test_memory_that_a_child_gave_back_counts():
    program = "x = b'x' * (96 * 2**20); del x; print(flush=True); input()"
    assert peak_with(program) >= 96 * MIB


def test_alone_it_is_the_own_peak():
    with PeakMemory() as watched:
        pass
    assert watched.peak_bytes == pytest.approx(own_peak(), abs=MIB)


def test_without_proc_it_is_the_own_peak(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_PROC", tmp_path / "none")
    assert peak_with(CHILD.format(64)) < MIB


def test_a_process_that_has_not_started_its_program_does_not_count(monkeypatch):
    """It shows the memory of this one, which would count twice."""
    looks = iter([[1, 2], [1], [1, 3], [1, 3]])
    monkeypatch.setattr(memory, "_own_peak", lambda: 100)
    monkeypatch.setattr(memory, "_peak_of", {2: 100, 3: 7}.get)
    monkeypatch.setattr(memory.os, "getpid", lambda: 1)
    monkeypatch.setattr(memory, "_descendants", lambda root: next(looks))
    watched = PeakMemory()
    peaks = []
    for _ in range(4):
        watched._sample()
        peaks.append(watched.peak_bytes)
    assert peaks == [100, 100, 100, 107]
