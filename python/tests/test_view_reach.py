# SPDX-License-Identifier: Apache-2.0
"""Programs shared between offsets of a storage stay inside it.

A plan may access more of a storage than the views it was compiled for: it may
rearrange all of it, or take indices into a dimension. Such a program serves
only where what it accesses lies in the storage.
"""

import math
import random

import pytest
import torch
from torch_spyre import _C, compile_backend
from torch_spyre.frontend import eager


def _values(sizes):
    return torch.arange(math.prod(sizes)).remainder(7).half().reshape(sizes)


def _flip_of_chunk(x):
    return x.repeat(1, 1, 2).chunk(2, 1)[1].narrow(2, 0, 1).flip(0)


def _gather_of_chunk(x):
    chunk = torch.stack([x.chunk(2, 3)[1]] * 2, 3).chunk(2, 0)[1]
    return chunk.gather(4, torch.zeros_like(chunk, dtype=torch.int64))


def _diagonal_of_flip(x):
    last = x.shape[-1] - 1
    index = torch.arange(last, -1, -1, device=x.device).expand(x.shape)
    chunk = x.gather(-1, index).chunk(2, 0)[1]
    return chunk.flip(2).diagonal(0, 1, 2).clone()


@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    ("function", "sizes"),
    [
        (_flip_of_chunk, (65, 3, 1)),
        (_gather_of_chunk, (3, 1, 64, 127)),
        (_diagonal_of_flip, (3, 65, 63)),
    ],
)
def test_chunks_at_the_end(function, sizes, is_compiled):
    host = _values(sizes)
    run = torch.compile(function, backend="spyre") if is_compiled else function
    assert torch.equal(run(host.to("spyre")).cpu(), function(host))


#: Operators that read a view in another order, or at indices.
READS = {
    "add": lambda v: v + 1,
    "flip": lambda v: v.flip(0),
    "flip_last": lambda v: v.flip(-1),
    "flip_all": lambda v: v.flip(list(range(v.dim()))),
    "roll": lambda v: v.roll(1, -1),
    "transpose": lambda v: v.transpose(0, -1).contiguous(),
    "flatten": lambda v: v.reshape(-1) * 2,
    "turned": lambda v: v.transpose(0, -1).reshape(-1) * 2,
    "diagonal": lambda v: v.diagonal(0, 0, -1) + 1 if v.dim() > 1 else v + 1,
    "sum_first": lambda v: v.sum(0),
    "sum_last": lambda v: v.sum(-1),
    "argmax": lambda v: v.argmax(-1),
    "gather": lambda v: v.gather(-1, torch.zeros_like(v, dtype=torch.int64)),
    "gather_first": lambda v: v.gather(0, torch.zeros_like(v, dtype=torch.int64)),
    "select": lambda v: v.index_select(
        -1, torch.arange(v.shape[-1] - 1, -1, -1, device=v.device)
    ),
    "rows": lambda v: v.index_select(
        0, torch.arange(v.shape[0] - 1, -1, -1, device=v.device)
    ),
    "product": lambda v: (v - 3) @ (v - 3).transpose(-1, -2) if v.dim() > 1 else v * v,
    "cat": lambda v: torch.cat([v, v.flip(0)], -1),
    "where": lambda v: torch.where(v > 3, v, -v),
}

#: Those whose plans may make a copy of the whole storage first.
MOVES = ["flip", "flip_last", "flip_all", "gather", "select", "turned"]


def _index_copy(v, dim):
    order = torch.arange(v.shape[dim] - 1, -1, -1, device=v.device)
    v.index_copy_(dim, order, v + 1)


#: Operators that write a view.
WRITES = {
    "add": lambda v: v.add_(1),
    "fill": lambda v: v.fill_(5),
    "turned": lambda v: v.copy_(v.flip(0).clone()),
    "flip": lambda v: v.copy_((v * 2).flip(-1)),
    "masked": lambda v: v.masked_fill_(v > 3, 0),
    "index_copy": lambda v: _index_copy(v, 0),
    "index_copy_last": lambda v: _index_copy(v, -1),
    "scatter": lambda v: v.scatter_(
        -1, torch.zeros_like(v, dtype=torch.int64)[..., :1], 9.0
    ),
    "transposed": lambda v: v.transpose(0, -1).mul_(2),
    "where": lambda v: v.copy_(torch.where(v > 3, v, -v)),
}


def _random_sizes(rng):
    while True:
        sizes = [
            rng.choice([1, 2, 3, 5, 7, 31, 63, 64, 65, 127, 130])
            for _ in range(rng.randint(1, 4))
        ]
        if math.prod(sizes) <= 20000:
            return sizes


def _random_places(sizes, rng):
    """Views of one kind: (sizes, strides) and offsets from first to very last."""
    strides = [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]
    taken = [rng.choice([1, s, rng.randint(1, s), (s + 1) // 2]) for s in sizes]
    if rng.random() < 0.5:
        # Whole rows: plans of such views rearrange all of the storage.
        taken[-1] = sizes[-1]
    steps = [
        rng.choice([1, 1, 2]) if 2 * n <= s else 1
        for n, s in zip(taken, sizes, strict=True)
    ]
    room = [s - (n - 1) * k - 1 for s, n, k in zip(sizes, taken, steps, strict=True)]
    ends = [[0] * len(room), [r // 2 for r in room], room]
    ends += [[rng.randint(0, r) for r in room] for _ in range(2)]
    offsets = {
        sum(c * s for c, s in zip(corner, strides, strict=True)) for corner in ends
    }
    order = rng.sample(range(len(sizes)), len(sizes))
    kept = [d for d in order if taken[d] > 1 or rng.random() < 0.5] or order[:1]
    view = [taken[d] for d in kept], [strides[d] * steps[d] for d in kept]
    return view, rng.sample(sorted(offsets), len(offsets))


def _check_reads(name, run, sizes, view, offsets, dtype):
    host = _values(sizes).to(dtype)
    x = host.to("spyre")
    for offset in offsets:
        expected = READS[name](host.as_strided(*view, offset))
        found = run(x.as_strided(*view, offset)).cpu()
        assert torch.equal(found, expected), (name, sizes, view, offset, dtype)


def _check_writes(name, run, sizes, view, offsets, dtype):
    host = _values(sizes).to(dtype)
    x = host.to("spyre")
    for offset in offsets:
        WRITES[name](host.as_strided(*view, offset))
        run(x.as_strided(*view, offset))
        assert torch.equal(x.cpu(), host), (name, sizes, view, offset, dtype)
        host.remainder_(7)
        x.copy_(host)


@pytest.mark.parametrize("seed", range(8))
def test_eager_views_everywhere(seed):
    rng = random.Random(seed)
    for _ in range(12):
        sizes = _random_sizes(rng)
        view, offsets = _random_places(sizes, rng)
        dtype = rng.choice([torch.float16, torch.float16, torch.float32])
        for name in [rng.choice(MOVES), *rng.sample(sorted(READS), 2)]:
            _check_reads(name, READS[name], sizes, view, offsets, dtype)
        for name in rng.sample(sorted(WRITES), 2):
            _check_writes(name, WRITES[name], sizes, view, offsets, dtype)


NAMES = [*READS, *(f"{n}_" for n in WRITES)]


def _check_compiled(name, rng, count, options):
    writes = name.endswith("_")
    torch._dynamo.reset()
    function = WRITES[name[:-1]] if writes else READS[name]
    run = torch.compile(function, backend="spyre", dynamic=False, options=options)
    check = _check_writes if writes else _check_reads
    for _ in range(count):
        sizes = _random_sizes(rng)
        places = _random_places(sizes, rng)
        check(name.removesuffix("_"), run, sizes, *places, torch.float16)


@pytest.mark.parametrize("name", NAMES)
def test_compiled_views_everywhere(name):
    _check_compiled(name, random.Random(name), 3, {})


@pytest.mark.parametrize("name", ["flip_last", "gather", "turned", "add_", "flip_"])
def test_superdsc_views_everywhere(name):
    _check_compiled(name, random.Random(name), 2, {"through_superdsc": True})


@pytest.fixture
def graphs(monkeypatch):
    """The programs that eager calls got."""
    found = []
    finish = eager._finish

    def record(call, *rest):
        program = finish(call, *rest)
        found.append(program[0])
        return program

    monkeypatch.setattr(eager, "_finish", record)
    _C._forget_eager_programs()
    return found


def test_a_plan_that_rearranges_all_is_for_one_offset(graphs):
    """More windows than elements: the plan copies the storage, not the view.

    They go on from row to row. Along one row, the view would be copied.
    """
    ones = torch.ones(10, 10, 65).half()

    def windows(x, plane):
        return x.as_strided((10, 10), (1, 1), 27 * plane + 5).unsqueeze(-1)

    host = _values([2, 3, 9])
    x, ones_there = host.to("spyre"), ones.to("spyre")
    graphs.clear()
    for plane in (0, 1, 1, 0):
        found = windows(x, plane) + ones_there
        assert torch.equal(found.cpu(), windows(host, plane) + ones)
    assert len(graphs) == 2
    # Planes of 27 elements; those of a larger storage are not copied.
    assert all(g.stays_in_storages([0, 0]) for g in graphs)
    assert not any(g.stays_in_storages([27, 0]) for g in graphs)
    host = _values([5, 3, 9])
    x = host.to("spyre")
    graphs.clear()
    for plane in (0, 4, 2):
        found = windows(x, plane) + ones_there
        assert torch.equal(found.cpu(), windows(host, plane) + ones)
    assert len(graphs) == 1


def test_windows_of_a_row_are_for_every_row(graphs):
    """More windows than elements: a copy holds each element of the row once."""
    host = _values([2, 9])
    x, ones = host.to("spyre"), torch.ones(4, 6, 65).half().to("spyre")
    graphs.clear()
    for row in (0, 1, 1, 0):
        found = x[row].unfold(0, 6, 1).unsqueeze(-1) + ones
        expected = host[row].unfold(0, 6, 1).unsqueeze(-1) + torch.ones(4, 6, 65).half()
        assert torch.equal(found.cpu(), expected)
    assert len(graphs) == 1


def test_a_diagonal_shares_a_program(graphs):
    host = _values([4, 7, 130, 7])
    x = host.to("spyre")
    graphs.clear()
    for i, j, k in ((0, 0, 0), (3, 4, 127), (1, 2, 8)):
        expected = host[i, j : j + 3, k : k + 3].diagonal(0, 0, 1) + 1
        found = x[i, j : j + 3, k : k + 3].diagonal(0, 0, 1) + 1
        assert torch.equal(found.cpu(), expected)
    assert len(graphs) == 1


def test_gathers_from_a_row_share_a_program(graphs):
    host = _values([7, 65])
    x = host.to("spyre")
    index = torch.arange(64, -1, -1).expand(1, 65).contiguous()
    on_device = index.to("spyre")
    graphs.clear()
    for row in (6, 0, 3):
        found = x[row : row + 1].gather(1, on_device).cpu()
        assert torch.equal(found, host[row : row + 1].gather(1, index))
    assert len(graphs) == 1


def test_stays_in_storages_is_checked():
    @torch.compile(backend="spyre")
    def double(x):
        return x + x

    x = torch.ones(3, 65, device="spyre")
    double(x[1])
    graph = compile_backend.compiled_parts()[-1].graph
    assert "ktdp.reach = array<i64: 1, 65>" in graph.print_ktir()
    assert [graph.stays_in_storages([65 * n]) for n in range(4)] == [
        True,
        True,
        True,
        False,
    ]
    # One element further on is in another lane.
    assert not graph.stays_in_storages([1])
    with pytest.raises(ValueError, match="one shift per input, found 2 for 1"):
        graph.stays_in_storages([0, 0])
