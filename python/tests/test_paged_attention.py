# SPDX-License-Identifier: Apache-2.0
"""``spyre::paged_attn_*`` of ibm-fms on spyre tensors: drop-in.md, section 7."""

import paged_reference as reference
import pytest
import torch
import torch_spyre
from inputs import values
from interpreters import run_python
from numerics import assert_exact, compiled, device_value, to_device
from paged_reference import Pages

spyre = torch.ops.spyre
HALF = torch.float16
pytestmark = pytest.mark.usefixtures("no_fallback")

#: (shape of the keys, pages, page size, slots)
STORES = {
    "one": ((1, 1, 1, 16), 2, 8, [[13]]),
    "prefill": ((1, 11, 2, 16), 5, 8, [list(range(8, 19))]),
    "decode": ((3, 1, 2, 65), 4, 8, [[31], [0], [9]]),
    "page of 64": ((2, 3, 1, 128), 3, 64, [[64, 191, 7], [5, 63, 128]]),
    "twice": ((2, 3, 2, 7), 4, 4, [[3, 3, 5], [5, 0, 3]]),
    "from the end": ((1, 2, 2, 16), 3, 8, [[-1, -9]]),
}


@pytest.mark.parametrize("case", STORES)
@pytest.mark.parametrize("slot_dtype", [torch.int64, torch.int32], ids=str)
def test_store(case, slot_dtype):
    shape, pages, size, slots = STORES[case]
    key, value = values(shape, HALF, 1), values(shape, HALF, 2)
    caches = [values((pages, size, *shape[2:]), HALF, seed) for seed in (3, 4)]
    host = [*(device_value(t).to(HALF) for t in (key, value, *caches))]
    expected = reference.store(*host, torch.tensor(slots))
    device = to_device([*host, torch.tensor(slots, dtype=slot_dtype)])
    op = spyre.paged_attn_store
    for function in (op, compiled(lambda *a: op(*a), fullgraph=True)):
        for got, want in zip(function(*device), expected, strict=True):
            assert_exact(got.cpu(), want)
        for now, before in zip(device, host, strict=False):
            assert_exact(now.cpu(), before, "an argument has changed")


def test_store_refuses_slots_that_there_are_not():
    key = torch.ones(1, 2, 1, 16, device="spyre")
    cache = torch.zeros(2, 8, 1, 16, device="spyre")
    slots = torch.tensor([[3, 16]], device="spyre")
    with pytest.raises(RuntimeError, match="outside its range"):
        spyre.paged_attn_store(key, key, cache, cache, slots)[0].cpu()


#: Lengths of the sequences, and what else differs.
CASES = {
    "decode": ([(0, 1), (0, 23), (3, 16), (9, 40)], {}),
    "one key": ([(7, 8)], {}),
    "a head for all": ([(0, 23), (5, 24)], dict(kv_heads=1)),
    "as many heads": ([(0, 23), (5, 24)], dict(kv_heads=4)),
    "pages of 64": ([(0, 65), (70, 193)], dict(page_size=64, head_size=128)),
    "chunk": ([(0, 23), (4, 16)], dict(queries=7)),
    "prompt": ([(0, 7), (3, 16)], dict(queries=7)),
    "padded queries": ([(0, 3), (6, 11), (0, 40)], dict(queries=13)),
}
TOLERANCE = {torch.float32: 1e-5, HALF: 6e-3}


def check(op, pages, expected, *more):
    arguments = to_device([*pages.arguments(), *more])
    tolerance = TOLERANCE[pages.query.dtype]
    for function in (op, compiled(lambda *a: op(*a), fullgraph=True)):
        result = function(*arguments)
        assert result.dtype == pages.query.dtype
        result = result.cpu().double()
        assert result.shape == expected.shape
        torch.testing.assert_close(result, expected, atol=tolerance, rtol=tolerance)
        is_padding = expected.eq(0).all(-1)
        assert result[is_padding].eq(0).all()


def rounded(pages):
    """The reference's arguments: what the device holds."""
    return [
        device_value(a) if isinstance(a, torch.Tensor) else a for a in pages.arguments()
    ]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_compute(case, dtype):
    lengths, options = CASES[case]
    pages = Pages(lengths, dtype, **options)
    check(spyre.paged_attn_compute, pages, reference.compute(*rounded(pages)))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("window", [0, 1, 5, 64])
def test_compute_with_sinks(case, window):
    lengths, options = CASES[case]
    pages = Pages(lengths, torch.float32, seed=1, **options)
    expected = reference.compute(*rounded(pages), pages.sinks, window)
    op = spyre.paged_attn_compute_with_sinks
    check(op, pages, expected, pages.sinks, window)


def test_compute_with_sinks_in_half_precision():
    pages = Pages([(0, 23), (9, 40)], HALF, queries=5)
    sinks = device_value(pages.sinks)
    expected = reference.compute(*rounded(pages), sinks, 7)
    op = spyre.paged_attn_compute_with_sinks
    check(op, pages, expected, pages.sinks, 7)


def test_one_program_serves_all_lengths():
    """Lengths, pages and slots are values: other ones compile nothing."""
    graph = compiled(lambda *a: spyre.paged_attn_compute(*a))
    counts = []
    for end in (9, 13, 16):
        pages = Pages([(0, end), (2, 32)], torch.float32, seed=end)
        arguments = to_device(pages.arguments())
        result = graph(*arguments).cpu().double()
        expected = reference.compute(*rounded(pages))
        torch.testing.assert_close(result, expected, atol=1e-5, rtol=1e-5)
        counts.append(len(torch_spyre.compile_backend.compiled_parts()))
    assert counts[0] == counts[-1]


def test_sizes_that_vary():
    """As ibm-fms marks them: batch and table in decoding, the sequence in prefill."""
    graph = compiled(lambda *a: spyre.paged_attn_compute(*a), dynamic=None)
    for batch in (2, 3, 5):
        lengths = [(i, 9 * batch + i) for i in range(batch)]
        pages = Pages(lengths, torch.float32, queries=batch)
        arguments = to_device(pages.arguments())
        query, key_cache, value_cache, _, ends, starts, table = arguments
        for tensor in (query, key_cache, value_cache, ends, starts, table):
            torch._dynamo.mark_dynamic(tensor, 0)
        torch._dynamo.mark_dynamic(query, 1)
        torch._dynamo.mark_dynamic(table, 1)
        expected = reference.compute(*rounded(pages))
        result = graph(*arguments).cpu().double()
        torch.testing.assert_close(result, expected, atol=1e-5, rtol=1e-5)


def test_store_then_compute():
    """A step of decoding, as a model has it, in one graph."""
    pages = Pages([(2, 12), (0, 21)], torch.float32)
    key, value = (values((2, 1, 2, 16), torch.float32, s) for s in (5, 6))
    slots = torch.stack(
        [pages.table[i, (n - 1) // 8] * 8 + (n - 1) % 8 for i, n in enumerate((12, 21))]
    )[:, None]

    def step(key, value, slots, query, key_cache, value_cache, *rest):
        stored = spyre.paged_attn_store(key, value, key_cache, value_cache, slots)
        return spyre.paged_attn_compute(query, *stored, *rest)

    arguments = pages.arguments()
    stored = reference.store(key, value, pages.key, pages.value, slots)
    expected = reference.compute(arguments[0], *stored, *arguments[3:])
    device = to_device([key, value, slots, *arguments])
    for function in (step, compiled(step, fullgraph=True)):
        result = function(*device).cpu().double()
        torch.testing.assert_close(result, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.skipif(not reference.HAS_FMS, reason="ibm-fms is not installed")
@pytest.mark.parametrize("case", CASES)
def test_reference_is_as_ibm_fms(case):
    """Its kernels for the CPU."""
    lengths, options = CASES[case]
    pages = Pages(lengths, torch.float32, **options)
    arguments = pages.arguments()
    expected = reference.compute(*arguments)
    made = spyre.paged_attn_compute(*arguments).double()
    torch.testing.assert_close(made, expected, atol=1e-5, rtol=1e-5)
    for window in (0, 5):
        expected = reference.compute(*arguments, pages.sinks, window)
        made = spyre.paged_attn_compute_with_sinks(*arguments, pages.sinks, window)
        torch.testing.assert_close(made.double(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.skipif(not reference.HAS_FMS, reason="ibm-fms is not installed")
@pytest.mark.parametrize("case", STORES)
def test_stores_are_as_ibm_fms(case):
    shape, pages, size, slots = STORES[case]
    new = [values(shape, torch.float32, seed) for seed in (1, 2)]
    caches = [values((pages, size, *shape[2:]), torch.float32, s) for s in (3, 4)]
    arguments = (*new, *caches, torch.tensor(slots))
    made = spyre.paged_attn_store(*arguments)
    for got, want in zip(made, reference.store(*arguments), strict=True):
        assert_exact(got, want)


DEFINE = """
import torch
@torch.library.custom_op(
    "spyre::paged_attn_store", mutates_args=(), device_types=["cpu", "cuda"]
)
def store(
    key: torch.Tensor, value: torch.Tensor, key_cache: torch.Tensor,
    value_cache: torch.Tensor, slot_mapping: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    raise AssertionError("the CPU's kernel runs")
@store.register_fake
def _(key, value, key_cache, value_cache, slot_mapping):
    return key_cache, value_cache
"""
LOAD = "import torch; torch.ones(3).to('spyre')\n"
COMPILE = """
torch.compile(lambda x: torch.ops.spyre.gelu(x) + 1)(torch.ones(3, device="spyre"))
"""
USE = """
import torch_spyre
x = torch.ones(1, 1, 1, 8, device="spyre")
cache = torch.zeros(2, 4, 1, 8, device="spyre")
op = torch.ops.spyre.paged_attn_store
for function in (op, torch.compile(lambda *a: op(*a), fullgraph=True)):
    made, _ = function(x, x, cache, cache, torch.tensor([[5]], device="spyre"))
    assert made.cpu().sum() == 8 and made.cpu()[1, 1].sum() == 8
assert torch_spyre.fallback_report() == {}
"""


@pytest.mark.parametrize("first", ["definition", "device"])
def test_definition_comes_first_or_last(first):
    """Neither prevents the other, and nothing has been looked up too early."""
    before = LOAD + COMPILE + "assert not hasattr(torch.ops.spyre, 'paged_attn_store')"
    code = DEFINE + LOAD + COMPILE if first == "definition" else before + DEFINE
    run = run_python(code + USE)
    assert run.returncode == 0, run.stderr
