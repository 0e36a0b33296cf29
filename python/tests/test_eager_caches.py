# SPDX-License-Identifier: Apache-2.0
"""Caches that grow by ``torch.cat`` operator by operator share memory, too."""

import math

import pytest
import torch
from numerics import poison
from test_caches_in_place import (
    MOST,
    WRITERS,
    check_memory_returns,
    check_streams,
    check_that_two_grow_from_one,
    check_written_in_place,
    counted,
    grow_keys,
    grow_values,
)
from test_eager_sizes import Programs
from torch_spyre import _C

pytestmark = pytest.mark.usefixtures("without_gradients")

DEVICE = "spyre"


class Rows:
    """Tensors with rows along a dimension, on the device and the host."""

    def __init__(self, shape=(1, 2, 5, 64), dim=2, dtype=torch.half, most=99):
        self.shape, self.dim, self.dtype, self.most = shape, dim, dtype, most
        self.generator = torch.Generator().manual_seed(0)
        self.first = self.rows(shape[dim])

    def rows(self, count):
        shape = [*self.shape]
        shape[self.dim] = count
        numbers = torch.randint(-self.most, self.most, shape, generator=self.generator)
        return numbers.to(self.dtype)

    def start(self):
        """What has grown several times."""
        cache, host = self.first.to(DEVICE), self.first
        for _ in range(4):
            cache, host = self.grow(cache, host)
        return cache, host

    def grow(self, cache, host, *counts):
        new = [self.rows(count) for count in counts or (1,)]
        host = torch.cat([host, *new], self.dim)
        cache = torch.cat([cache, *(x.to(DEVICE) for x in new)], self.dim)
        poison()
        assert torch.equal(cache.cpu(), host)
        return cache, host


SHAPES = {
    "cache": ((1, 2, 5, 64), 2),
    "caches of four": ((4, 2, 5, 64), 2),
    "wide heads": ((1, 2, 5, 128), 2),
    "odd heads": ((3, 2, 5, 70), 2),
    "by heads": ((2, 5, 3, 64), 1),
    "mask": ((2, 1, 5, 1, 40), 2),
    "matrices": ((3, 5, 70), 1),
    "batch": ((5, 3, 70), 0),
    "rows": ((5, 30), 0),
    "few columns": ((5, 3), 0),
}


@pytest.mark.parametrize("dtype", [torch.half, torch.float32, torch.int64, torch.bool])
@pytest.mark.parametrize("name", SHAPES)
def test_copies_are_amortised(name, dtype):
    """Few copies, whose bytes are those of the last cache, and few programs."""
    shape, dim = SHAPES[name]
    caches = Rows(shape, dim, dtype)
    cache, host = caches.first.to(DEVICE), caches.first
    _C._forget_eager_programs()

    def run(cache, host, count):
        for _ in range(count):
            cache, host = caches.grow(cache, host)
        return cache, host

    (cache, host), shared, copied, size = counted(lambda: run(cache, host, 60))
    assert shared + copied == 59 and copied <= 5
    layout = cache.device_tensor_layout()
    last = math.prod(layout.device_size) * (2 if layout.device_size[-1] == 64 else 4)
    assert 0 < size <= 2 * last
    programs = Programs()
    (cache, host), shared, copied, _ = counted(lambda: run(cache, host, 10))
    assert shared == 10
    assert not programs.new("one_size") and not programs.new("many_sizes")


@pytest.mark.parametrize("count", [2, 5, 65])
@pytest.mark.parametrize("length", [2, 63, 64, 65, 126])
def test_lengths(length, count):
    """What is longer than the cache itself is no growth."""
    caches = Rows((1, 2, length, 64))
    cache, host = caches.first.to(DEVICE), caches.first
    for _ in range(5):
        cache, host = caches.grow(cache, host, count)
    caches.grow(cache, host, 1, count, 3)


def test_a_step_writes_the_new_rows_only():
    for length in (5, 300):
        caches = Rows((1, 2, length, 64))
        cache, _ = caches.start()
        new = caches.rows(1).to(DEVICE)
        with torch.spyre.profiler.profile() as trace:
            torch.cat([cache, new], 2)
            torch.spyre.synchronize()
        moved = sum(
            kernel.device_bytes_read + kernel.device_bytes_written
            for kernel in trace.kernels
        )
        assert 0 < moved <= 4096, length
        assert not trace.transfers


def test_old_caches_stay():
    caches = Rows()
    kept = [caches.start()]
    (_, shared, copied, _) = counted(
        lambda: [kept.append(caches.grow(*kept[-1])) for _ in range(8)]
    )
    assert shared + copied == 8 and shared >= 6
    assert len({cache.data_ptr() for cache, _ in kept}) == len(kept)
    for cache, host in kept:
        assert torch.equal(cache.cpu(), host)
        assert torch.equal((cache * 2).cpu(), host * 2)


def test_two_grow_from_one():
    check_that_two_grow_from_one(Rows())


def test_grown_from_itself():
    """What is new may be a view of the old cache, or all of it."""
    caches = Rows()
    cache, host = caches.start()
    for last in (slice(-1, None), slice(2, 5), slice(None)):
        cache = torch.cat([cache, cache[:, :, last]], 2)
        host = torch.cat([host, host[:, :, last]], 2)
        assert torch.equal(cache.cpu(), host)


@pytest.mark.parametrize("is_old", [True, False], ids=["old", "grown"])
@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_written_in_place(writer, is_old):
    check_written_in_place(Rows(), writer, is_old=is_old)


def test_what_is_written_before_it_has_run():
    """Work that waits in a stream stores and reads what it was given."""
    caches = Rows((1, 2, 300, 64))
    old, host = caches.start()
    for _ in range(20):
        new = caches.rows(1)
        longer = torch.cat([old * 1, new.to(DEVICE)], 2)
        longer = torch.cat([old, new.to(DEVICE)], 2)
        old.add_(1)
        longer.mul_(1)
        assert torch.equal(longer.cpu(), torch.cat([host, new], 2))
        host = host + 1
        assert torch.equal(old.cpu(), host)
        old, host = old.clamp(-99, 99), host.clamp(-99, 99)
        old, host = caches.grow(*caches.grow(old, host))
        old, host = caches.grow(old, host)


@pytest.mark.parametrize("first", ["old", "new"])
def test_memory_returns(first):
    check_memory_returns(Rows(), first)


def test_a_failed_step():
    """The old cache stays; what grows by what could not be computed raises."""
    caches = Rows()
    cache, host = caches.start()
    new = caches.rows(1).to(DEVICE)
    wrong = torch.tensor([1000], device=DEVICE)
    failed = torch.cat([cache, new.index_select(2, wrong)], 2)
    then = torch.cat([failed, new], 2)
    for broken in (failed, then):
        with pytest.raises(RuntimeError, match="1000"):
            broken.cpu()
    assert torch.equal(cache.cpu(), host)
    caches.grow(cache, host)


def test_streams():
    check_streams(Rows())


@pytest.mark.parametrize("function", [grow_values, grow_keys])
def test_compiled_steps_between(function):
    """A cache may grow both ways."""
    step = torch.compile(function, backend="spyre", dynamic=None)
    caches = Rows(most=MOST[function])
    cache, host = caches.first.to(DEVICE), caches.first
    for number in range(24):
        if number % 8 < 4:
            cache, host = caches.grow(cache, host)
            continue
        new = caches.rows(1)
        torch._dynamo.maybe_mark_dynamic(cache, 2)
        cache, found = step(cache, new.to(DEVICE))
        host, wanted = function(host, new)
        assert torch.equal(cache.cpu(), host) and torch.equal(found.cpu(), wanted)


def test_no_growth():
    """Of what is not alike: as on the CPU, and so are errors."""
    caches = Rows()
    cache, host = caches.start()

    new = caches.rows(1)
    for parts, dim in (
        ([new.float()], 2),
        ([host], 1),
        ([host], 3),
        ([host[:, :, :0]], 2),
        ([torch.zeros(0, dtype=torch.half)], 2),
        ([host, host], 2),
    ):
        found, shared, copied, _ = counted(
            lambda parts=parts, dim=dim: torch.cat(
                [cache, *(p.to(DEVICE) for p in parts)], dim
            ).cpu()
        )
        assert torch.equal(found, torch.cat([host, *parts], dim))
        assert (shared, copied) == (0, 0)
    for parts, dim in (([new[0]], 2), ([caches.rows(1)[..., :3]], 2), ([new], 4)):
        with pytest.raises((RuntimeError, IndexError)) as wanted:
            torch.cat([host, *parts], dim)
        with pytest.raises(wanted.type) as found:
            torch.cat([cache, *(p.to(DEVICE) for p in parts)], dim)
        assert str(found.value) == str(wanted.value)
