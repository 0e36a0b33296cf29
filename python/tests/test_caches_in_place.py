# SPDX-License-Identifier: Apache-2.0
"""Caches that grow by ``torch.cat`` share memory with what they have grown from."""

import copy
import gc
import io
import math

import pytest
import torch
from numerics import compiled, poison
from torch_spyre import _C
from torch_spyre.compile_backend import compiled_parts

pytestmark = pytest.mark.usefixtures("without_gradients")

DEVICE = "spyre"


def grow_values(cache, new):
    """A cache that has grown, and something computed from it."""
    cache = torch.cat((cache, new), -2)
    return cache, cache.amax(-2)


def grow_keys(cache, new):
    """The same for keys: a product that would have its sticks along the rows."""
    cache = torch.cat((cache, new), -2)
    return cache, new[:, :, -1:] @ cache.transpose(-1, -2)


#: Largest numbers of which all that is computed is exact in fp16.
MOST = {grow_values: 99, grow_keys: 3}

both = pytest.mark.parametrize("function", [grow_values, grow_keys])


class Caches:
    """Caches on the device and what they are to hold."""

    def __init__(
        self, function=grow_values, batch=1, length=5, width=64, dtype=torch.half
    ):
        self.shape, self.dtype = (batch, 2, width), dtype
        self.function = function
        self.step = compiled(function, dynamic=None)
        self.generator = torch.Generator().manual_seed(0)
        self.first = self.rows(length)

    def rows(self, count):
        batch, heads, width = self.shape
        most = MOST[self.function]
        numbers = torch.randint(
            -most, most, (batch, heads, count, width), generator=self.generator
        )
        return numbers.to(self.dtype)

    def start(self):
        """A cache that has grown several times, and what it holds."""
        cache, host = self.first.to(DEVICE), self.first
        for _ in range(4):
            cache, host = self.grow(cache, host)
        assert _C.room_of(cache) is not None
        return cache, host

    def grow(self, cache, host, count=1):
        """The cache and its contents with more rows."""
        torch._dynamo.maybe_mark_dynamic(cache, 2)
        new = self.rows(count)
        host, wanted = self.function(host, new)
        cache, found = self.step(cache, new.to(DEVICE))
        assert torch.equal(found.cpu(), wanted)
        return cache, host


def counted(function):
    """The result, and how often it grew in place, copied, and how many bytes."""
    before = _C.growth_counts()
    result = function()
    after = _C.growth_counts()
    return result, *(
        after[key] - before[key] for key in ("shared", "copied", "bytes_copied")
    )


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (grow_values, torch.half),
        (grow_values, torch.float32),
        (grow_values, torch.int64),
        (grow_keys, torch.half),
        (grow_keys, torch.float32),
    ],
)
@pytest.mark.parametrize("batch", [1, 4])
def test_copies_are_amortised(function, dtype, batch):
    """Few programs and few copies, whose bytes are those of the last cache."""
    caches = Caches(function, batch, dtype=dtype)
    count = 600 if batch == 1 and dtype == torch.half else 30
    programs = []

    def run():
        cache, host = caches.first.to(DEVICE), caches.first
        for _ in range(count):
            before = len(compiled_parts())
            cache, host = caches.grow(cache, host)
            programs.append(len(compiled_parts()) - before)
        return cache, host

    (cache, host), shared, copied, size = counted(run)
    assert torch.equal(cache.cpu(), host)
    # The first step makes what grows, the second one the room.
    assert copied == (1 if count < 500 else 2) and shared == count - 1 - copied
    last = math.prod(_C.room_of(cache)[2].device_size) * (
        2 if dtype.itemsize == 2 else 4
    )
    assert 0 < size <= 3 * last
    assert sum(programs[:3]) == 2 and sum(programs[3:500]) == 0


@pytest.mark.parametrize("length", [2, 62, 63, 64, 65, 126])
@pytest.mark.parametrize("count", [1, 2, 65])
@both
def test_lengths(function, length, count):
    """Rows that begin or end within a stick, at one, or go over several."""
    caches = Caches(function, length=length)
    cache, host = caches.first.to(DEVICE), caches.first
    for _ in range(5):
        cache, host = caches.grow(cache, host, count)
        poison()
        assert torch.equal(cache.cpu(), host)


@both
def test_a_step_writes_the_new_rows_only(function):
    """However much there is already: all of it would be 78 KB at the second length."""
    for length in (5, 300):
        caches = Caches(function, length=length)
        cache, host = caches.start()
        with torch.spyre.profiler.profile() as trace:
            caches.grow(cache, host)
        written = sum(kernel.device_bytes_written for kernel in trace.kernels)
        assert 0 < written <= 4096, length


@both
def test_old_caches_stay(function):
    """Each keeps its rows, while it and all others are there."""
    caches = Caches(function)
    kept = [caches.start()]
    (_, shared, copied, _) = counted(
        lambda: [kept.append(caches.grow(*kept[-1])) for _ in range(9)]
    )
    assert (shared, copied) == (9, 0)
    assert len({cache.data_ptr() for cache, _ in kept}) == len(kept)
    for cache, host in kept:
        assert torch.equal(cache.cpu(), host)
        assert torch.equal((cache * 2).cpu(), host * 2)


def check_that_two_grow_from_one(caches):
    """The second one copies; after the first is gone, nothing is copied."""
    old, host = caches.start()
    (first, one), shared, copied, _ = counted(lambda: caches.grow(old, host))
    assert (shared, copied) == (1, 0)
    (second, two), shared, copied, _ = counted(lambda: caches.grow(old, host))
    assert (shared, copied) == (0, 1)
    for _ in range(3):
        first, one = caches.grow(first, one)
        second, two = caches.grow(second, two)
    for cache, wanted in ((old, host), (first, one), (second, two)):
        assert torch.equal(cache.cpu(), wanted)
    del first, second, cache
    torch.spyre.synchronize()
    (third, three), shared, copied, _ = counted(lambda: caches.grow(old, host))
    assert (shared, copied) == (1, 0)
    assert torch.equal(third.cpu(), three) and torch.equal(old.cpu(), host)


@both
def test_two_grow_from_one(function):
    check_that_two_grow_from_one(Caches(function))


def copy_compiled(cache):
    compiled(lambda x: x.mul_(2))(cache)


def copy_pinned(cache):
    values = torch.full(cache.shape, 7, dtype=cache.dtype).pin_memory()
    cache.copy_(values, non_blocking=True)
    torch.spyre.synchronize()


WRITERS = {
    "eager": lambda x: x.mul_(2),
    "view": lambda x: x[:, :, 1:3].add_(1),
    "fill": lambda x: x.fill_(3),
    "zero": lambda x: x.zero_(),
    "out": lambda x: torch.neg(x.clone(), out=x),
    "host": lambda x: x.copy_(torch.full(x.shape, 5, dtype=x.dtype)),
    "host, a part": lambda x: x[0, 0].copy_(torch.full(x.shape[2:], 5, dtype=x.dtype)),
    "host, another dtype": lambda x: x.copy_(torch.full(x.shape, 5.0)),
    "device": lambda x: x.copy_(torch.ones_like(x)),
    "index": lambda x: x.index_fill_(2, torch.tensor([0, 3], device=DEVICE), 9),
    "random": lambda x: x.uniform_(),
    "bytes": lambda x: x.untyped_storage().fill_(0),
    "compiled": copy_compiled,
    "pinned": copy_pinned,
    "resized": lambda x: x.untyped_storage().resize_(0),
    "set": lambda x: x.set_(torch.zeros_like(x)),
}


def check_written_in_place(caches, writer, *, is_old, steps=1):
    """Only the tensor that is written, and its views, see it; both grow further."""
    old, host = caches.start()
    (new, grown), shared, _, _ = counted(lambda: caches.grow(old, host))
    assert shared == 1
    written, other, kept = (old, new, grown) if is_old else (new, old, host)
    same = (host if is_old else grown).clone()
    view = written[:, :, 2:]
    WRITERS[writer](written)
    assert torch.equal(other.cpu(), kept)
    if writer == "resized":
        return
    assert not torch.equal(written.cpu(), same)
    if writer != "set":
        assert torch.equal(view.cpu(), written.cpu()[:, :, 2:])
    for cache, wanted in ((other, kept), (written, written.cpu())):
        for _ in range(steps):
            cache, wanted = caches.grow(cache, wanted)
            assert torch.equal(cache.cpu(), wanted)
    assert torch.equal(other.cpu(), kept)


@pytest.mark.parametrize("is_old", [True, False], ids=["old", "grown"])
@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_written_in_place(writer, is_old):
    check_written_in_place(Caches(), writer, is_old=is_old)


def test_one_program_reads_the_old_and_writes_the_new():
    """And the other way round."""
    caches = Caches()
    old, host = caches.start()
    new, grown = caches.grow(old, host)
    double = compiled(lambda x, y: y[:, :, :-1].mul_(2).add_(x))
    double(old, new)
    assert torch.equal(old.cpu(), host)
    grown[:, :, :-1] = grown[:, :, :-1] * 2 + host
    assert torch.equal(new.cpu(), grown)
    new, grown = caches.grow(old, host)
    compiled(lambda x, y: y.mul_(2).add_(x[:, :, :-1]))(new, old)
    assert torch.equal(old.cpu(), 3 * host) and torch.equal(new.cpu(), grown)


def check_memory_returns(caches, first):
    """Whichever is freed first; both count once while they share."""
    caches.start()
    gc.collect()
    torch.spyre.synchronize()
    before = torch.spyre.memory_allocated()
    old, host = caches.start()
    torch.spyre.synchronize()
    one = torch.spyre.memory_allocated()
    new, grown = caches.grow(old, host)
    torch.spyre.synchronize()
    assert torch.spyre.memory_allocated() == one
    kept, wanted = (new, grown) if first == "old" else (old, host)
    del old, new
    poison()
    assert torch.equal(kept.cpu(), wanted)
    del kept
    torch.spyre.synchronize()
    assert torch.spyre.memory_allocated() == before


@pytest.mark.parametrize("first", ["old", "new"])
def test_memory_returns(first):
    check_memory_returns(Caches(), first)


def test_room_is_not_made_anew():
    """A cache that has room may be let grow again: its room stays what it is."""
    caches = Caches()
    cache, host = caches.start()
    room = _C.room_of(cache)
    _C.let_grow(cache, 2)
    assert _C.room_of(cache) == room
    before = _C.growth_counts()["copied"]
    cache, host = caches.grow(cache, host)
    assert _C.growth_counts()["copied"] == before
    assert torch.equal(cache.cpu(), host)


def test_copies_have_no_room():
    """Clones, saved tensors and deep copies hold the rows only."""
    cache, host = Caches().start()
    file = io.BytesIO()
    torch.save(cache, file)
    file.seek(0)
    for other in (
        cache.clone(),
        copy.deepcopy(cache),
        torch.load(file),
        cache.to(torch.float32).half(),
    ):
        assert other.device == cache.device and torch.equal(other.cpu(), host)
        assert _C.room_of(other) is None
        layout = other.device_tensor_layout()
        assert layout.device_size < cache.device_tensor_layout().device_size


def test_operators_on_a_cache_with_room():
    """They take it as any tensor, eager and compiled, for one size and for many."""
    caches = Caches()
    cache, host = caches.start()
    for function in (
        lambda x: x + 1,
        lambda x: x.transpose(2, 3) @ x,
        lambda x: x[:, :, 3:].sum(-1),
        lambda x: torch.cat((x, x), 2),
        lambda x: x.index_select(0, torch.zeros(2, dtype=torch.int64, device=x.device)),
    ):
        assert_close(function(cache).cpu(), function(host))
        for dynamic in (False, True):
            assert_close(
                compiled(function, dynamic=dynamic)(cache).cpu(), function(host)
            )


def assert_close(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=2e-3, atol=2e-3)


def test_another_graph_reads_what_has_grown():
    """A graph break between the cache and what reads it costs no program per size."""
    read = torch.compile(lambda x, y: x.float().sum(-2) + y, backend="spyre")
    caches = Caches()
    # What compiled() forgets is Dynamo's, not the functions of other caches.
    cache, host = caches.start()
    zero = torch.zeros((), device=DEVICE)
    programs = []
    for _ in range(6):
        cache, host = caches.grow(cache, host)
        before = len(compiled_parts())
        found = read(cache, zero)
        programs.append(len(compiled_parts()) - before)
        assert torch.equal(found.cpu(), host.float().sum(-2))
    assert sum(programs[2:]) == 0


def test_the_first_program_may_be_for_one_size():
    """Its results are grown by the second one, also if its cache is a view."""
    heads = torch.randn(1, 5, 2, 64).half()
    cache, host = heads.to(DEVICE).transpose(1, 2), heads.transpose(1, 2)
    step = compiled(grow_values, dynamic=None)
    shared = []
    for _ in range(4):
        new = torch.randn(1, 2, 1, 64).half()
        results, count, copied, _ = counted(
            lambda cache=cache, new=new: step(cache, new.to(DEVICE))
        )
        cache, host = results[0], torch.cat((host, new), 2)
        shared.append((count, copied))
    assert shared == [(0, 0), (0, 1), (1, 0), (1, 0)]
    assert (cache.cpu() - host).abs().max() < 0.01
    with pytest.raises(ValueError, match="dimension 4"):
        _C.let_grow(cache, 4)


def test_a_failed_step():
    """The old cache stays; the grown one, and what grows from it, raise."""

    def pick(cache, new, index):
        cache = torch.cat((cache, new), -2)
        return cache, cache.index_select(-1, index)

    caches = Caches()
    step = compiled(pick, dynamic=None)
    right, wrong = (torch.tensor([i], device=DEVICE) for i in (3, 1000))
    cache, host = caches.first.to(DEVICE), caches.first
    for _ in range(4):
        new = caches.rows(1)
        torch._dynamo.maybe_mark_dynamic(cache, 2)
        cache, _ = step(cache, new.to(DEVICE), right)
        host = torch.cat((host, new), -2)
    new = caches.rows(1)
    failed, _ = step(cache, new.to(DEVICE), wrong)
    then, _ = step(failed, new.to(DEVICE), right)
    for broken in (failed, then):
        with pytest.raises(RuntimeError, match="1000"):
            broken.cpu()
    assert torch.equal(cache.cpu(), host)
    grown, _ = step(cache, new.to(DEVICE), right)
    assert torch.equal(grown.cpu(), torch.cat((host, new), -2))


def check_streams(caches):
    """A branch on another stream, while the other one goes on."""
    old, host = caches.start()
    side = torch.Stream(device=DEVICE)
    first, one = caches.grow(old, host)
    side.wait_stream(torch.spyre.current_stream())
    with side:
        second, two = caches.grow(old, host)
        for _ in range(5):
            second, two = caches.grow(second, two)
    for _ in range(5):
        first, one = caches.grow(first, one)
    torch.spyre.synchronize()
    for cache, wanted in ((old, host), (first, one), (second, two)):
        assert torch.equal(cache.cpu(), wanted)


@both
def test_streams(function):
    check_streams(Caches(function))
