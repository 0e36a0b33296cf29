# SPDX-License-Identifier: Apache-2.0
"""Language models whose caches grow: one program for many lengths."""

import copy

import pytest
import torch
from numerics import compiled, poison, poisoned, rms
from tiny_llama import tiny_llama
from torch.nn.functional import scaled_dot_product_attention
from torch_spyre import _C
from torch_spyre.compile_backend import compiled_parts

pytestmark = pytest.mark.usefixtures("without_gradients")

DEVICE = "spyre"


def on_device(model, dtype):
    return copy.deepcopy(model).to(dtype).to(DEVICE)


def decode(step, model, ids, tokens, cache=None):
    """Feeds ``ids``, then ``tokens`` one by one.

    Gives (logits of the last position, programs compiled) after each, and the cache.
    """
    device = next(model.parameters()).device
    steps = []
    for fed in [ids, *tokens]:
        before = len(compiled_parts())
        logits, cache = step(fed.to(device), cache)
        steps.append((logits[:, -1].float().cpu(), len(compiled_parts()) - before))
    return steps, cache


def tokens_of(count, batch=1, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(0, 96, (batch, 1), generator=generator) for _ in range(count)]


def prompt_of(length, batch=1):
    return torch.cat(tokens_of(length, batch, seed=1), 1)


def errors(model, step, dtype, ids, tokens):
    """Per step, how far logits are from fp64's, and how many programs it compiled."""
    wide = copy.deepcopy(model).double()
    wanted, _ = decode(wide, wide, ids, tokens)
    device = on_device(model, dtype)
    actual, _ = decode(step(device), device, ids, tokens)
    return [
        (rms(a.double() - w.double()) / rms(w.double()), programs)
        for (a, programs), (w, _) in zip(actual, wanted, strict=True)
    ]


@pytest.mark.parametrize(
    ("dtype", "length", "count"),
    [
        (torch.float16, 1, 70),
        (torch.float16, 5, 30),
        (torch.float16, 62, 6),
        (torch.float32, 5, 30),
    ],
)
def test_three_programs_for_all_lengths(dtype, length, count):
    """As exact as operator by operator, and soon nothing is compiled."""
    model = tiny_llama()
    ids, tokens = prompt_of(length), tokens_of(count)
    found = errors(model, lambda m: compiled(m, dynamic=None), dtype, ids, tokens)
    eager = errors(model, lambda m: m, dtype, ids, tokens)
    for number, ((error, _), (allowed, _)) in enumerate(zip(found, eager, strict=True)):
        assert error <= 2 * allowed + 1e-6, f"step {number}: {error}, {allowed}"
    programs = [p for _, p in found]
    # One for the prompt, one for the first length, and one for all others.
    assert programs[0] == 1
    assert sum(programs[1:]) <= 2
    assert sum(programs[5:]) == 0


def test_long_caches():
    """Up to 512: nothing is compiled after the first steps."""
    model = on_device(tiny_llama(1), torch.float16)
    step = compiled(model, dynamic=None)
    steps, cache = decode(step, model, prompt_of(3), tokens_of(4))
    programs = [p for _, p in steps]
    for length in (8, 64, 65, 129, 511):
        cache = [
            tuple(torch.randn(1, 2, length, 32).half().to(DEVICE) for _ in pair)
            for pair in cache
        ]
        found, cache = decode(step, model, tokens_of(1)[0], tokens_of(1), cache)
        programs += [p for _, p in found]
        assert cache[0][0].shape[2] == length + 2
    # Tensors from the host may lie otherwise than results of programs do.
    assert sum(programs[1:]) <= 4
    assert sum(programs[7:]) == 0


def test_bits_do_not_depend_on_what_ran_before():
    """Nor on what memory held."""
    model = on_device(tiny_llama(1), torch.float16)
    ids, tokens = prompt_of(4), tokens_of(30)
    found = []
    for history in (0, 40, 12):
        step = compiled(model, dynamic=True)
        if history:
            decode(step, model, prompt_of(2), tokens_of(history, seed=5))
        poison()
        found.append([logits for logits, _ in decode(step, model, ids, tokens)[0]])
    for number, logits in enumerate(zip(*found, strict=True)):
        for other in logits[1:]:
            assert torch.equal(logits[0], other), f"step {number}"


@pytest.mark.parametrize(
    ("batch", "heads", "shared", "width"),
    [(1, 32, 4, 64), (4, 32, 4, 64), (1, 4, 2, 32), (1, 8, 8, 128)],
)
def test_keys_and_values_grow_in_place(batch, heads, shared, width):
    """Of the caches a step reads all once, and writes the token's rows."""

    def attend(query, key, value, keys, values):
        keys, values = torch.cat((keys, key), 2), torch.cat((values, value), 2)
        found = scaled_dot_product_attention(query, keys, values, enable_gqa=True)
        return found, keys, values

    step = compiled(attend, dynamic=None)
    before = len(compiled_parts())
    shape = (batch, shared, 190, width)
    wide = [torch.randn(shape).half().double() for _ in range(2)]
    cache = [x.half().to(DEVICE) for x in wide]
    for number in range(6):
        new = [
            torch.randn(batch, n, 1, width).half().double()
            for n in (heads, shared, shared)
        ]
        wanted, *wide = attend(*new, *wide)
        counts = _C.growth_counts()
        with torch.spyre.profiler.profile() as trace:
            found, *cache = step(*(x.half().to(DEVICE) for x in new), *cache)
        error = rms(found.cpu().double() - wanted) / rms(wanted)
        assert error < 4e-3, f"step {number}: {error}"
        if number >= 2:
            assert _C.growth_counts()["shared"] == counts["shared"] + 2
    for grown, kept in zip(wide, cache, strict=True):
        assert (grown - kept.cpu().double()).abs().max() < 0.01
    assert len(compiled_parts()) - before == 2
    stored = sum(x.untyped_storage().nbytes() for x in cache)
    read = sum(kernel.device_bytes_read for kernel in trace.kernels)
    written = sum(kernel.device_bytes_written for kernel in trace.kernels)
    # Sticks of narrow heads are not full.
    stored *= max(64 // width, 1)
    assert read <= 1.2 * stored + 64 * 1024 and written <= stored / 20


def test_all_caches_of_a_model_grow_in_place():
    """From the third token on, whatever the prompt left, by one program; what grows from
    a cache does not change it.
    """
    model = on_device(tiny_llama(), torch.float16)
    step = compiled(model, dynamic=None)
    steps, cache = decode(step, model, prompt_of(7), tokens_of(2))
    before = [[x.cpu() for x in pair] for pair in cache]
    counts = _C.growth_counts()
    more, _ = decode(step, model, tokens_of(1)[0], tokens_of(19), cache)
    grown = _C.growth_counts()
    assert grown["shared"] == counts["shared"] + 20 * 4
    assert grown["copied"] == counts["copied"]
    # The prompt, the first length, and all others.
    assert [programs for _, programs in steps] == [1, 1, 1]
    assert sum(programs for _, programs in more) == 0
    for pair, kept in zip(cache, before, strict=True):
        for x, y in zip(pair, kept, strict=True):
            assert torch.equal(x.cpu(), y)
    (again,), _ = decode(step, model, tokens_of(1)[0], [], cache)
    assert torch.equal(more[0][0], again[0])


def test_masks_that_operators_join_lie_as_usual():
    """Programs of operators do not grow in place, whatever their sizes."""
    mask = torch.ones(4, 20, dtype=torch.int64, device=DEVICE)
    for _ in range(12):
        mask = torch.cat((mask, mask.new_ones(4, 1)), -1)
    usual = torch.ones(4, 32, dtype=torch.int64, device=DEVICE)
    assert mask.device_tensor_layout() == usual.device_tensor_layout()


def test_poisoned_tails():
    """What lies behind the last row of a cache is never read."""
    model = on_device(tiny_llama(1), torch.float16)
    step = compiled(model, dynamic=True)
    _, cache = decode(step, model, prompt_of(3), tokens_of(4))
    host = [[x.cpu() for x in pair] for pair in cache]
    token = tokens_of(1)[0].to(DEVICE)
    found = []
    for is_poisoned in (False, True, True):
        poison()
        placed = [[x.to(DEVICE) for x in pair] for pair in host]
        if is_poisoned:
            placed = [[poisoned(x) for x in pair] for pair in placed]
        found.append(step(token, placed)[0].cpu())
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
    assert found[0].isfinite().all()


def test_what_is_only_read_keeps_its_room():
    """Another thread may read it at once: programs that take it otherwise get a copy."""
    model = on_device(tiny_llama(1), torch.float16)
    step = compiled(model, dynamic=None)
    _, cache = decode(step, model, prompt_of(3), tokens_of(3))
    keys = cache[0][0]
    pointer, host = keys.data_ptr(), keys.cpu()
    layout = keys.device_tensor_layout()
    assert torch.equal((keys * 2).cpu(), host * 2)
    assert keys.data_ptr() == pointer and keys.device_tensor_layout() == layout
    counts = _C.growth_counts()
    decode(step, model, tokens_of(1)[0], [], cache)
    assert _C.growth_counts()["copied"] == counts["copied"]
    # What is written moves, and is what others read then.
    keys *= 2
    assert torch.equal(keys.cpu(), host * 2)
