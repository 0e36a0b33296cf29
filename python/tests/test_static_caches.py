# SPDX-License-Identifier: Apache-2.0
"""Caches of one size that a prompt of any length is written into, and experts."""

import copy

import pytest
import torch
import torch.nn.functional as F
from numerics import compiled, poison, rms
from torch import nn
from torch_spyre.compile_backend import compiled_parts

pytestmark = pytest.mark.usefixtures("without_gradients")

DEVICE = "spyre"
ROOM, HEADS, WIDTH = 512, 2, 32
LENGTHS = (1, 7, 20, 33, 64, 65, 129, 500, 3, 511)


class Attention(nn.Module):
    """Writes keys and values into a cache, and attends to what is there."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inputs = nn.Linear(HEADS * WIDTH, 3 * HEADS * WIDTH, bias=False)
        self.output = nn.Linear(HEADS * WIDTH, HEADS * WIDTH, bias=False)

    def forward(self, x, keys, values, positions):
        """``x`` is [batch, n, heads * width], ``positions`` [n] of the cache."""
        split = self.inputs(x).view(len(x), -1, 3 * HEADS, WIDTH).transpose(1, 2)
        query, key, value = split.chunk(3, 1)
        keys.index_copy_(2, positions, key)
        values.index_copy_(2, positions, value)
        room = torch.arange(ROOM, device=x.device)
        mask = room[None, :] <= positions[:, None]
        found = F.scaled_dot_product_attention(query, keys, values, mask)
        return self.output(found.transpose(1, 2).flatten(2))


def caches(model, batch):
    like = model.output.weight
    return [
        torch.zeros(batch, HEADS, ROOM, WIDTH, dtype=like.dtype, device=like.device)
        for _ in "kv"
    ]


def feed(step, model, lengths, batch):
    """The outputs of prompts of these lengths and of a token after each."""
    like = model.output.weight
    found = []
    for length in lengths:
        cache = caches(model, batch)
        for start, count in ((0, length), (length, 1)):
            poison()
            generator = torch.Generator().manual_seed(length + count)
            x = torch.randn(batch, count, HEADS * WIDTH, generator=generator)
            positions = torch.arange(start, start + count)
            before = len(compiled_parts())
            result = step(
                x.half().to(like.device, like.dtype),
                *cache,
                positions.to(like.device),
            )
            found.append((result.cpu().double(), len(compiled_parts()) - before))
    return found


@pytest.mark.parametrize("batch", [1, 4])
def test_prompts_of_any_length_in_a_cache_of_one(batch):
    model = Attention().half()
    wide = copy.deepcopy(model).double()
    device = copy.deepcopy(model).to(DEVICE)
    actual = feed(compiled(device, dynamic=None), device, LENGTHS, batch)
    eager = feed(device, device, LENGTHS, batch)
    wanted = feed(wide, wide, LENGTHS, batch)
    results = zip(actual, eager, wanted, strict=True)
    for number, ((found, _), (alone, _), (exact, _)) in enumerate(results):
        allowed = 2 * rms(alone - exact) + 1e-6
        assert rms(found - exact) <= allowed, number
    # A token; a prompt of the second length; all others, which may have one program
    # for few rows and one for many.
    programs = [count for _, count in actual]
    assert sum(programs) <= 3
    assert sum(programs[6:]) <= 1


class Grouped(nn.Module):
    """Attention over a cache of one size: ``heads`` of queries share ``shared`` of
    keys, which may be repeated, as transformers repeats them.
    """

    def __init__(self, heads, shared, width, is_repeated):
        super().__init__()
        torch.manual_seed(0)
        self.heads, self.shared, self.width = heads, shared, width
        self.is_repeated = is_repeated
        self.inputs = nn.Linear(64, (heads + 2 * shared) * width, bias=False)
        self.output = nn.Linear(heads * width, 64, bias=False)

    def repeat(self, cache):
        if not self.is_repeated:
            return cache
        count = self.heads // self.shared
        repeated = cache[:, :, None].expand(-1, -1, count, -1, -1)
        return repeated.reshape(len(cache), self.heads, -1, self.width)

    def forward(self, x, keys, values, positions):
        split = self.inputs(x).unflatten(-1, (-1, self.width)).transpose(1, 2)
        query, key, value = split.split([self.heads, self.shared, self.shared], 1)
        keys.index_copy_(2, positions, key)
        values.index_copy_(2, positions, value)
        mask = torch.arange(keys.shape[2], device=x.device) <= positions[:, None]
        found = F.scaled_dot_product_attention(
            query,
            self.repeat(keys),
            self.repeat(values),
            mask[None, None],
            enable_gqa=True,
        )
        return self.output(found.transpose(1, 2).flatten(2))


def step_on(step, model, cache, start, count):
    like = model.output.weight
    generator = torch.Generator().manual_seed(start + count)
    x = torch.randn(len(cache[0]), count, 64, generator=generator).half()
    positions = torch.arange(start, start + count).to(like.device)
    return step(x.to(like.device, like.dtype), *cache, positions).cpu().double()


@pytest.mark.parametrize(
    ("batch", "heads", "shared", "room", "width", "is_repeated"),
    [
        (1, 32, 4, 512, 64, True),
        (4, 32, 4, 512, 64, True),
        (1, 32, 8, 4096, 128, True),
        (1, 32, 8, 4096, 128, False),
        (4, 8, 8, 2048, 128, False),
    ],
)
def test_a_token_reads_each_key_once(batch, heads, shared, room, width, is_repeated):
    """Whether keys change their sticks on the way to the product or not: of the cache,
    nothing is written to device memory but the token's rows.
    """
    model = Grouped(heads, shared, width, is_repeated).half()
    device = copy.deepcopy(model).to(DEVICE)
    wide = copy.deepcopy(model).double()
    shape = (batch, shared, room, width)
    caches = {
        m: [torch.zeros(shape, dtype=t).to(d) for _ in "kv"]
        for m, t, d in ((device, torch.half, DEVICE), (wide, torch.double, "cpu"))
    }
    step = compiled(device, dynamic=False)
    before = len(compiled_parts())
    layouts = [t.device_tensor_layout() for t in caches[device]]
    for start, count, run in ((0, 3, device), (3, 1, step), (4, 1, device)):
        found = step_on(run, device, caches[device], start, count)
        exact = step_on(wide, wide, caches[wide], start, count)
        assert rms(found - exact) <= 4e-3 * rms(exact), start
    assert [t.device_tensor_layout() for t in caches[device]] == layouts
    (program,) = compiled_parts()[before:]
    kernels = program.report()
    weights = sum(p.numel() for p in model.parameters())
    cache = batch * shared * room * width
    read = sum(kernel["device_bytes_read"] for kernel in kernels)
    written = sum(kernel["device_bytes_written"] for kernel in kernels)
    assert read <= 1.1 * 2 * (weights + 2 * cache)
    assert written <= 0.1 * 2 * cache


class Experts(nn.Module):
    """Rows of each expert beside each other for the product, then back in order."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.router = nn.Linear(64, 4, bias=False)
        self.weight = nn.Parameter(torch.randn(4, 64, 64) / 8)

    def forward(self, x):
        scores, experts = self.router(x).softmax(-1).topk(2, -1)
        flat = experts.flatten()
        order = torch.argsort(flat)
        rows = torch.arange(len(x), device=x.device).repeat_interleave(2)[order]
        ordered = flat[order]
        weights = self.weight[ordered]
        products = (x[rows][:, None] @ weights)[:, 0] * scores.flatten()[order][:, None]
        return torch.zeros_like(x).index_add_(0, rows, products)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [torch.int64, torch.float16])
def test_sort_of_a_number_of_elements_that_varies(dtype, descending):
    """As the stable sort of the CPU, by one program."""
    step = compiled(
        lambda x: torch.sort(x, descending=descending, stable=True), dynamic=True
    )
    before = len(compiled_parts())
    for size in (2, 3, 63, 64, 65, 128, 500):
        poison()
        generator = torch.Generator().manual_seed(size)
        x = torch.randint(-4, 5, (size,), generator=generator).to(dtype)
        found = step(x.to(DEVICE))
        expected = torch.sort(x, descending=descending, stable=True)
        for one, other in zip(found, expected, strict=True):
            assert torch.equal(one.cpu(), other), size
    assert [p.graph.num_sizes for p in compiled_parts()[before:]] == [1]


WRITES = {
    "index_put": lambda x, i, v: torch.ops.aten.index_put(x, [i], v),
    "accumulated": lambda x, i, v: torch.ops.aten.index_put(x, [i], v, True),
    "index_add": lambda x, i, v: x.index_add(0, i, v, alpha=2),
    "index_copy": lambda x, i, v: x.index_copy(0, i, v),
}


@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_writes_through_a_number_of_indices_that_varies(name, grows):
    """Whether or not what is written into is as large as the number says."""
    step = compiled(WRITES[name], dynamic=True)
    before = len(compiled_parts())
    for size in (2, 3, 63, 64, 65, 128, 300):
        poison()
        generator = torch.Generator().manual_seed(size)
        rows = size + 3 if grows else 303
        x = torch.randint(-8, 9, (rows, 70), generator=generator).half()
        values = torch.randint(-8, 9, (size, 70), generator=generator).half()
        index = torch.randperm(rows, generator=generator)[:size]
        if name in ("accumulated", "index_add"):
            index[1] = index[0]
        device = [t.to(DEVICE) for t in (x, index, values)]
        if not grows:
            torch._dynamo.mark_static(device[0])
            torch._dynamo.mark_static(device[2], 1)
        found = step(*device).cpu()
        assert torch.equal(found, WRITES[name](x, index, values)), size
    assert all(p.graph.num_sizes for p in compiled_parts()[before:])
    assert len(compiled_parts()) - before <= 2


def test_experts():
    """As exact as one by one, and one program for all numbers of tokens."""
    model = Experts().half()
    wide = copy.deepcopy(model).double()
    device = copy.deepcopy(model).to(DEVICE)
    step = compiled(device, dynamic=True)
    before = len(compiled_parts())
    for size in (3, 20, 33, 64, 129):
        poison()
        x = torch.randn(size, 64, generator=torch.Generator().manual_seed(size)).half()
        exact = wide(x.double())
        alone = device(x.to(DEVICE)).cpu().double()
        found = step(x.to(DEVICE)).cpu().double()
        assert rms(found - exact) <= 2 * rms(alone - exact) + 1e-6, size
    parts = compiled_parts()[before:]
    assert all(p.graph.num_sizes for p in parts)
    assert len(parts) <= 3


def test_sums_of_what_each_token_has_two_of():
    """What experts give is added up over pairs of rows, which stay in LX."""

    def step(x):
        count = len(x)
        return x.view(2 * count, 128).exp().view(count, 2, 128).sum(1)

    sized = compiled(step, dynamic=True)
    before = len(compiled_parts())
    for size in (3, 20, 33, 64, 129, 500):
        poison()
        x = torch.randn(size, 256, generator=torch.Generator().manual_seed(size)).half()
        exact = step(x.double())
        alone = step(x.to(DEVICE)).cpu().double()
        found = sized(x.to(DEVICE)).cpu().double()
        assert rms(found - exact) <= 2 * rms(alone - exact) + 1e-6, size
    assert [p.graph.num_sizes for p in compiled_parts()[before:]] == [1]
