# SPDX-License-Identifier: Apache-2.0
"""Caches of a window slide through memory: a step writes the new rows only."""

import gc
import math

import pytest
import torch
from numerics import compiled, poison
from test_caches_in_place import (
    WRITERS,
    check_that_two_grow_from_one,
    check_written_in_place,
    counted,
)
from test_eager_sizes import Programs
from torch_spyre import _C
from torch_spyre.compile_backend import compiled_parts

pytestmark = pytest.mark.usefixtures("without_gradients")

DEVICE = "spyre"

WAYS = {"compiled": compiled, "eager": lambda function: function}

both = pytest.mark.parametrize("way", WAYS)


class Windows:
    """Caches of the last rows on the device, and what they are to hold."""

    def __init__(self, way, window=64, batch=1, width=64, dtype=torch.half):
        def slide(cache, new):
            """What is kept of a cache and new rows, and something computed of all."""
            full = torch.cat((cache, new), -2)
            return full[:, :, 1 - window :], full.amax(-2)

        self.window, self.shape, self.dtype = window, (batch, 2, width), dtype
        self.slide = slide
        self.step = WAYS[way](slide)
        self.generator = torch.Generator().manual_seed(0)

    def rows(self, count):
        batch, heads, width = self.shape
        numbers = torch.randint(
            -99, 99, (batch, heads, count, width), generator=self.generator
        )
        return numbers.to(self.dtype)

    def begin(self, length=None):
        """A cache of the last rows but one, and what it holds."""
        host = self.rows(self.window - 1 if length is None else length)
        return host.to(DEVICE), host

    def start(self):
        """A full window that has slid several times."""
        cache, host = self.begin()
        for _ in range(5):
            cache, host = self.grow(cache, host)
        assert _C.room_of(cache) is not None
        return cache, host

    def grow(self, cache, host, count=1):
        """The cache and its contents after so many tokens more."""
        new = self.rows(count)
        host, wanted = self.slide(host, new)
        cache, found = self.step(cache, new.to(DEVICE))
        assert torch.equal(found.cpu(), wanted)
        return cache, host


def programs_of(function):
    """The result, and how many programs of graphs and of operators it has made."""
    eager, parts = Programs(), len(compiled_parts())
    result = function()
    new = len(compiled_parts()) - parts
    for kind in ("one_size", "many_sizes"):
        new += sum(eager.new(kind).values())
    return result, new


@pytest.mark.parametrize("window", [2, 63, 64, 65, 100])
@pytest.mark.parametrize("batch", [1, 4])
@both
def test_copies_are_amortised(window, batch, way):
    """The window is copied once while it slides on by itself, and one row; no new
    programs.
    """
    windows = Windows(way, window, batch)

    def run(cache, host, count):
        for _ in range(count):
            cache, host = windows.grow(cache, host)
            poison()
            assert torch.equal(cache.cpu(), host)
        return cache, host

    # To where it has slid out of its memory once.
    cache, host = run(*windows.begin(), window + 6)
    (((cache, host), programs), shared, copied, size) = counted(
        lambda: programs_of(lambda: run(cache, host, 2 * (window + 1)))
    )
    assert programs == 0
    assert copied == 2 and shared == 2 * window
    row = math.prod(cache.device_tensor_layout().device_size[1:])
    assert size == copied * 2 * (window - 1) * row


@both
def test_a_step_writes_the_new_rows_only(way):
    """All of the window would be 77 KB at the second one."""
    for window in (6, 301):
        windows = Windows(way, window)
        cache, host = windows.start()
        with torch.spyre.profiler.profile() as trace:
            windows.grow(cache, host)
            torch.spyre.synchronize()
        written = sum(kernel.device_bytes_written for kernel in trace.kernels)
        assert 0 < written <= 4096 and not [
            transfer for transfer in trace.transfers if transfer.bytes > 1024
        ]


@both
def test_memory_is_bounded(way):
    """Room for as many rows again, whatever was there before."""
    windows = Windows(way, 40, width=128)
    before = torch.spyre.memory_allocated()
    cache, host = windows.begin(400)
    for _ in range(100):
        cache, host = windows.grow(cache, host)
        torch.spyre.synchronize()
    gc.collect()
    full = 2 * 40 * 128 * 2
    assert torch.spyre.memory_allocated() - before <= 2 * full + 1024


@both
def test_lengths_that_vary(way):
    """Prompts in parts, then tokens: memory that one part needed is not kept."""
    windows = Windows(way, 20)
    cache, host = windows.begin()
    for count in (1, 1, 1, 5, 1, 1, 2, 9, 1, 1, 30, 1, 1, 1):
        cache, host = windows.grow(cache, host, count)
        poison()
        assert torch.equal(cache.cpu(), host)


@both
def test_from_growing_to_sliding(way):
    """Rows that grow in place, until there are as many as the window has."""
    windows = Windows(way, 30)
    cache, host = windows.begin(20)

    def run(cache, host):
        for _ in range(60):
            cache, host = windows.grow(cache, host)
            assert torch.equal(cache.cpu(), host)

    _, shared, copied, _ = counted(lambda: run(cache, host))
    assert copied <= 5 and shared >= 60 - 9


@both
def test_old_windows_stay(way):
    """Each keeps its rows, while it and all others are there."""
    windows = Windows(way)
    kept = [windows.start()]
    (_, shared, copied, _) = counted(
        lambda: [kept.append(windows.grow(*kept[-1])) for _ in range(80)]
    )
    assert copied <= 2 and shared >= 78
    assert len({x.untyped_storage().data_ptr() for x, _ in kept}) == len(kept)
    for cache, host in kept:
        assert torch.equal(cache.cpu(), host)
        assert torch.equal((cache * 2).cpu(), host * 2)
    del cache
    while kept:
        kept.pop(len(kept) // 2)
        poison()
        if len(kept) % 9 == 0:
            for cache, host in kept:
                assert torch.equal(cache.cpu(), host)


@both
def test_two_slide_from_one(way):
    check_that_two_grow_from_one(Windows(way))


@both
def test_a_part_that_does_not_end_where_its_storage_does(way):
    """It is copied, as are rows of another dimension and every other row."""
    windows = Windows(way, 20)
    cache, host = windows.start()
    for part in (
        lambda x: x[:, :, :-1],
        lambda x: x[:, :, ::2],
        lambda x: x[:, :, :, 1:],
        lambda x: x[:, 1:],
    ):
        few, wanted = part(cache), part(host)
        new = windows.rows(1)[:, : wanted.shape[1], :, : wanted.shape[3]]
        (found, _), shared, copied, _ = counted(
            lambda few=few, new=new: windows.step(few, new.to(DEVICE))
        )
        assert torch.equal(found.cpu(), windows.slide(wanted, new)[0])
        assert (shared, copied) == (0, 0)
        assert torch.equal(cache.cpu(), host)


@pytest.mark.parametrize("is_old", [True, False], ids=["old", "new"])
@pytest.mark.parametrize("writer", WRITERS)
@both
def test_what_is_written_in_place(way, writer, is_old):
    check_written_in_place(Windows(way, 20), writer, is_old=is_old, steps=3)


@both
def test_a_failed_step(way):
    """The old window stays; what slides on from what failed raises."""
    windows = Windows(way)
    cache, host = windows.start()
    new = windows.rows(1).to(DEVICE)
    wrong = torch.tensor([1000], device=DEVICE)
    failed, _ = windows.step(cache, new.index_select(2, wrong))
    then, _ = windows.step(failed, new)
    for broken in (failed, then):
        with pytest.raises(RuntimeError, match="1000"):
            broken.cpu()
    assert torch.equal(cache.cpu(), host)
    windows.grow(cache, host)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@both
def test_other_types(way, dtype):
    windows = Windows(way, 9, dtype=dtype, width=70)
    cache, host = windows.start()
    ((cache, host), shared, copied, _) = counted(lambda: windows.grow(cache, host))
    assert (shared, copied) == (1, 0)
    for _ in range(20):
        cache, host = windows.grow(cache, host)
        assert torch.equal(cache.cpu(), host)


def test_both_ways_in_turns():
    """What one way has stored, the other one slides on, without copies."""
    ways = [Windows(way, 20) for way in WAYS]
    cache, host = ways[0].start()
    for windows in ways:
        cache, host = windows.grow(cache, host)

    def run(cache, host):
        for number in range(6):
            cache, host = ways[number % 2].grow(cache, host)
            assert torch.equal(cache.cpu(), host)

    _, shared, copied, _ = counted(lambda: run(cache, host))
    assert (shared, copied) == (6, 0)
