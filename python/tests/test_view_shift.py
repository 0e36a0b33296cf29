# SPDX-License-Identifier: Apache-2.0
"""Views at other offsets of a storage run the program of the first."""

import math
import random

import numpy as np
import pytest
import torch
from torch_spyre import _C, compile_backend
from torch_spyre.frontend import eager


@pytest.fixture
def compiled(monkeypatch):
    """The names of the eager calls that got a program of their own."""
    names = []
    finish = eager._finish

    def count(call, *rest):
        names.append(call.name)
        return finish(call, *rest)

    monkeypatch.setattr(eager, "_finish", count)
    _C._forget_eager_programs()
    return names


def _random_view(x, rng):
    view = x
    for _ in range(3):
        kind = rng.randrange(5)
        dim = rng.randrange(view.dim()) if view.dim() else 0
        if kind == 0 and view.dim():
            first = rng.randrange(view.shape[dim])
            view = view.narrow(dim, first, rng.randint(1, view.shape[dim] - first))
        elif kind == 1 and view.dim() > 1:
            view = view.select(dim, rng.randrange(view.shape[dim]))
        elif kind == 2 and view.dim():
            view = view[..., rng.randrange(view.shape[-1]) :: rng.randint(1, 3)]
        elif kind == 3 and view.is_contiguous():
            view = view.view(-1)
        elif kind == 4:
            total = x.untyped_storage().nbytes() // x.element_size()
            count, stride = rng.randint(1, max(1, total // 4)), rng.choice([1, 1, 2, 3])
            offset = rng.randrange(max(1, total - (count - 1) * stride))
            view = x.as_strided((count,), (stride,), offset)
    return view


@pytest.mark.parametrize("seed", range(8))
def test_shift_moves_every_element_alike(seed):
    """Where a view's elements lie is where the moved view's lie, moved."""
    rng = random.Random(seed)
    words = {1: np.int8, 2: np.int16, 4: np.int32}
    moved = 0
    for _ in range(40):
        sizes = [
            rng.choice([1, 2, 3, 5, 7, 64, 65, 128, 130])
            for _ in range(rng.randint(1, 4))
        ]
        while math.prod(sizes) > 60000:
            sizes[rng.randrange(len(sizes))] = 1
        order = rng.sample(range(len(sizes)), len(sizes))
        dtype = rng.choice([torch.float16, torch.float32, torch.int8, torch.int16])
        x = torch.empty([sizes[d] for d in order], dtype=dtype)
        x = x.permute([order.index(d) for d in range(len(sizes))]).to("spyre")
        view = _random_view(x, rng)
        [(elements, on_device)] = _C.shift_views([view])
        assert 0 <= elements <= view.storage_offset()
        assert on_device * words[x.element_size()]().itemsize % 128 == 0
        if elements == 0:
            assert on_device == 0
            continue
        moved += 1

        def places(tensor, x=x):
            x.zero_()
            tensor.copy_(torch.ones(tensor.shape, dtype=x.dtype))
            stored = np.frombuffer(_C.read_device_bytes(x), words[x.element_size()])
            return np.flatnonzero(stored)

        nearer = x.as_strided(
            view.shape, view.stride(), view.storage_offset() - elements
        )
        np.testing.assert_array_equal(places(view), places(nearer) + on_device)
    assert moved >= 10


def test_eager_views_share_a_program(compiled):
    host = torch.arange(16 * 4 * 130).reshape(16, 4, 130).remainder(97).half()
    x = host.to("spyre")
    for i in range(16):
        assert torch.equal((x[i] + 1).cpu(), host[i] + 1)
    assert compiled == ["aten.add.Tensor"]
    for i in range(4):
        x[:, i] *= i + 2.0
        host[:, i] *= i + 2
    assert torch.equal(x.cpu(), host)
    # The second number of a kind asks for a program of any numbers.
    assert compiled[1:] == ["aten.mul_.Tensor"] * 2


def test_within_a_stick_offsets_differ(compiled):
    host = torch.arange(256).half()
    x = host.to("spyre")
    for offset in (0, 64, 128, 3, 67, 131):
        found = (x[offset : offset + 64] + 1).cpu()
        assert torch.equal(found, host[offset : offset + 64] + 1)
    assert len(compiled) == 2


def test_views_of_one_storage_keep_their_distance(compiled):
    host = torch.arange(12 * 64).remainder(61).half().reshape(12, 64)
    x = host.to("spyre")
    for i in range(2, 8):
        assert torch.equal((x[i] - x[i + 2]).cpu(), host[i] - host[i + 2])
    assert len(compiled) == 1
    assert torch.equal((x[4] - x[7]).cpu(), host[4] - host[7])
    assert len(compiled) == 2


def test_a_cache_takes_rows_with_one_program(compiled):
    cache = torch.zeros(1, 4, 40, 64, dtype=torch.float16, device="spyre")
    expected = torch.zeros(1, 4, 40, 64, dtype=torch.float16)
    compiled.clear()
    for i in range(12):
        rows = torch.full((1, 4, 1, 64), float(i + 1), dtype=torch.float16)
        cache[:, :, i : i + 1].copy_(rows.to("spyre"))
        expected[:, :, i : i + 1] = rows
    assert torch.equal(cache.cpu(), expected)
    assert compiled == ["aten.copy_.default"]


def test_compiled_functions_share_a_program():
    @torch.compile(backend="spyre")
    def step(cache, row):
        cache.mul_(2)
        return cache, cache + row

    host = torch.arange(8 * 3 * 64).remainder(53).half().reshape(8, 3, 64)
    cache, row = host.to("spyre"), torch.ones(64).half().to("spyre")
    before = len(compile_backend.compiled_parts())
    for i in range(1, 8):
        view, added = step(cache[i], row)
        host[i] *= 2
        assert torch.equal(added.cpu(), host[i] + 1)
        # A result that is its argument lies where that does.
        assert view.storage_offset() == i * 192
        assert view.data_ptr() == cache[i].data_ptr()
    assert torch.equal(cache.cpu(), host)
    assert len(compile_backend.compiled_parts()) == before + 1


def test_shifts_are_checked():
    x = torch.ones(64, device="spyre")

    @torch.compile(backend="spyre")
    def double(x):
        return x + x

    double(x)
    graph = compile_backend.compiled_parts()[-1].graph
    with pytest.raises(ValueError, match="one shift per input, found 2 for 1"):
        graph.run([x], [torch.empty_like(x)], [0, 0])
    # A wrong shift meets the model's bounds, not other memory.
    graph.run([x], [torch.empty_like(x)], [32 << 20])
    with pytest.raises(RuntimeError, match="not in allocated device memory"):
        torch.spyre.synchronize()
