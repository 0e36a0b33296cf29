# SPDX-License-Identifier: Apache-2.0
"""The steps of spyre-inference, one test each: docs/spec/drop-in.md, section 7."""

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from client_models import (
    MLP,
    PatchedRMSNorm,
    one_thread,
    rope_table,
    rotate,
    spread,
)
from interpreters import run_python, run_script
from numerics import assert_exact, assert_like_oracle, oracle, to_device
from torch import Tensor, nn
from torch.utils._pytree import tree_map
from torch_spyre import _C

HALF = torch.float16
DEVICE = torch.device("spyre:0")
SIZE, HEADS, KV_HEADS, HEAD_SIZE = 128, 4, 2, 128
BLOCKS, BLOCK_SIZE = 5, 64
SCALE = HEAD_SIZE**-0.5

pytestmark = [
    pytest.mark.usefixtures("no_fallback"),
    pytest.mark.filterwarnings("ignore:.*does not support int64"),
]
_one_thread = pytest.fixture(autouse=True, scope="module")(one_thread)


def draw(*shape: int, seed: int = 0) -> Tensor:
    """fp16 numbers that the device holds exactly."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(HALF).to(DEVICE).cpu()


# Step 1 ----------------------------------------------------------------------

WORKER = """
import os, sys
import torch

assert "torch_spyre" not in sys.modules
os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")
import torch_spyre

torch_spyre._autoload()
for name in ("cache_size_limit", "accumulated_cache_size_limit"):
    setattr(torch._dynamo.config, name, 100000)
torch_spyre._autoload()
assert torch._dynamo.config.cache_size_limit == 100000
torch.spyre.set_device(0)
assert torch.spyre.device_count() >= 1
torch.distributed.init_process_group(
    "cpu:gloo,spyre:spyreccl", init_method=sys.argv[1], rank=0, world_size=1
)
x = torch.ones(64, dtype=torch.float16, device="spyre")
torch.distributed.all_reduce(x)
torch.spyre.synchronize(torch.device("spyre:0"))
print(x.sum().item())
torch.distributed.destroy_process_group()
"""


def test_1_a_worker_starts_by_hand(tmp_path):
    worker = run_python(
        WORKER, f"file://{tmp_path}/store", TORCH_DEVICE_BACKEND_AUTOLOAD="0"
    )
    assert worker.returncode == 0, worker.stderr
    assert worker.stdout.split() == ["64.0"]


# Step 2 ----------------------------------------------------------------------


class Transposed(nn.Module):
    """A linear layer whose weight is stored as its product reads it."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight = nn.Parameter(linear.weight.data.t().contiguous())

    def forward(self, x: Tensor) -> Tensor:
        return torch.matmul(x, self.weight)


def test_2_weights_are_stored_transposed():
    linear = nn.Linear(SIZE, 200, bias=False, dtype=HALF)
    linear.weight.data.copy_(draw(200, SIZE, seed=1) / 16)
    x = draw(7, SIZE, seed=2)
    layer = Transposed(linear).to(DEVICE)
    result = torch.compile(layer, dynamic=False)(x.to(DEVICE)).cpu()
    expected = F.linear(x.double(), linear.weight.to(DEVICE).cpu().double())
    torch.testing.assert_close(result.double(), expected, atol=0.01, rtol=2**-9)


def test_2_the_head_is_padded_to_columns_and_sliced():
    words, columns = 2000, 2048
    weight = F.pad(draw(SIZE, words, seed=3) / 16, (0, columns - words))
    x = draw(3, SIZE, seed=4)

    @torch.compile(dynamic=False)
    def logits(x, weight):
        return torch.matmul(x, weight)[:, : -(columns - words)]

    result = logits(x.to(DEVICE), weight.to(DEVICE)).cpu()
    assert result.shape == (3, words)
    expected = x.double() @ weight.to(DEVICE).cpu().double()[:, :words]
    torch.testing.assert_close(result.double(), expected, atol=0.01, rtol=2**-9)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_2_rotations_are_selected_on_the_card(is_compiled):
    table = rope_table(300, HEAD_SIZE, HALF).to(DEVICE)
    assert table.shape == (300, 2, 2, HEAD_SIZE // 2)
    positions = torch.tensor([0, 299, 17, 17, 64])
    x = draw(5, 3, HEAD_SIZE, seed=5)

    def turn(x, table, positions):
        rotations = table.index_select(0, positions)
        return rotate(x.unsqueeze(0), rotations.unsqueeze(0)).squeeze(0)

    function = torch.compile(turn, dynamic=False) if is_compiled else turn
    result = function(x.to(DEVICE), table, positions.to(DEVICE)).cpu()
    wide = turn(x.double(), table.cpu().double(), positions)
    torch.testing.assert_close(result.double(), wide, atol=2**-7, rtol=2**-8)


# Step 3 ----------------------------------------------------------------------


def test_3_decompositions_are_copied_at_warm_up():
    from torch._inductor.decomposition import decompositions
    from torch_spyre._inductor.decompositions import spyre_decompositions

    before = dict(decompositions)
    copied = {
        op: function
        for op, function in spyre_decompositions.items()
        if "addm" in op.name()
    }
    try:
        decompositions.update(copied)
        # Inductor still compiles for the CPU with what was copied.
        b, x, w = (draw(*shape).float() for shape in ((4,), (3, 5), (5, 4)))
        torch._dynamo.reset()
        result = torch.compile(torch.addmm, backend="inductor")(b, x, w)
        torch.testing.assert_close(result, b + x @ w)
    finally:
        decompositions.clear()
        decompositions.update(before)


class InferenceBlock(nn.Module):
    """A block without attention: what it does with parameters is the point."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.norm, self.mlp = PatchedRMSNorm(SIZE), MLP(SIZE, 192)
        spread(self, seed, 1.0)

    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        residual = residual + x
        return self.mlp(self.norm(residual)), residual


def test_3_blocks_share_one_artifact():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    blocks = [InferenceBlock(seed).to(HALF).to(DEVICE) for seed in range(4)]
    x = draw(6, SIZE, seed=6)

    def run(blocks, out, residual):
        for block in blocks:
            out, residual = block(out, residual)
        return out

    wide = []
    for block in blocks:
        wide.append(InferenceBlock(0).double())
        state = {n: p.cpu().double() for n, p in block.state_dict().items()}
        wide[-1].load_state_dict(state)
    start = (x.double(), torch.zeros_like(x).double())
    with torch.no_grad():
        expected = run(wide, *start)
        rounded = oracle(lambda *start: run(wide, *start), *start)
        for block in blocks:
            block.compile(backend="inductor", fullgraph=True, dynamic=False)
        result = run(blocks, x.to(DEVICE), torch.zeros_like(x, device=DEVICE))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    assert_like_oracle(result.cpu(), expected, rounded)


# Step 4 ----------------------------------------------------------------------


def page_layout(shape: tuple[int, ...]) -> _C.SpyreTensorLayout:
    """One device dimension counts the slots of all blocks."""
    blocks, block_size, heads, size = shape
    eps = _C.get_elem_in_stick(HALF)
    sticks = size // eps
    return _C.SpyreTensorLayout(
        [blocks * block_size, heads, sticks, eps],
        [heads * sticks * eps, sticks * eps, eps, 1],
        _C.get_device_dtype(HALF),
    )


PAGES = (BLOCKS, BLOCK_SIZE, KV_HEADS, HEAD_SIZE)


def make_pages(host: Tensor | None = None) -> Tensor:
    host = torch.zeros(PAGES, dtype=HALF) if host is None else host
    return host.to(DEVICE, device_layout=page_layout(PAGES))


def test_4_caches_are_made_in_pages():
    host = draw(*PAGES, seed=7)
    pages = make_pages(host)
    layout = page_layout(PAGES)
    assert pages.shape == PAGES and pages.is_contiguous()
    assert pages.device_tensor_layout() == layout
    assert_exact(pages.cpu(), host)
    for view in (pages.view(-1, KV_HEADS, HEAD_SIZE), pages[1:], pages.detach()):
        assert view.device_tensor_layout() == layout
    assert make_pages().eq(0).all()


# Step 5 ----------------------------------------------------------------------


def store(key_pages, value_pages, key, value, slots):
    key_pages.view(-1, KV_HEADS, HEAD_SIZE).index_copy_(0, slots, key)
    value_pages.view(-1, KV_HEADS, HEAD_SIZE).index_copy_(0, slots, value)


@pytest.mark.parametrize("slot_dtype", [torch.int64, torch.int32], ids=str)
@pytest.mark.parametrize("is_compiled", [False, True])
def test_5_slots_are_stored(slot_dtype, is_compiled):
    tokens = 3
    host = [draw(*PAGES, seed=8), draw(*PAGES, seed=9)]
    qkv = draw(tokens, (HEADS + 2 * KV_HEADS) * HEAD_SIZE, seed=10)
    slots = torch.tensor([70, 319, 2], dtype=slot_dtype)

    def split(qkv):
        sizes = [HEADS * HEAD_SIZE, KV_HEADS * HEAD_SIZE, KV_HEADS * HEAD_SIZE]
        _, key, value = qkv.split(sizes, -1)
        return [part.view(tokens, KV_HEADS, HEAD_SIZE) for part in (key, value)]

    pages = [make_pages(h) for h in host]
    key, value = split(qkv.to(DEVICE))
    assert not key.is_contiguous()
    function = torch.compile(store, dynamic=False) if is_compiled else store
    function(*pages, key, value, slots.to(DEVICE))
    store(*host, *split(qkv), slots.long())
    for cache, expected in zip(pages, host, strict=True):
        assert_exact(cache.cpu(), expected)
        assert cache.device_tensor_layout() == page_layout(PAGES)


def test_5_a_store_writes_its_rows_alone():
    """The cache is neither copied nor rearranged."""
    pages = make_pages()
    rows = pages.view(-1, KV_HEADS, HEAD_SIZE)
    key = draw(2, KV_HEADS, HEAD_SIZE, seed=11).to(DEVICE)
    slots = torch.tensor([1, 300], dtype=torch.int32, device=DEVICE)
    rows.index_copy_(0, slots, key)
    _C.reset_native_report()
    rows.index_copy_(0, slots, key)
    torch.spyre.synchronize()
    ((_, (runs, moved)),) = _C.native_report().items()
    assert runs == 1
    # Rows read and written, and the sticks of the slots.
    assert moved < 4 * key.numel() * key.element_size() + 4 * 128


# Steps 6 and 7 ---------------------------------------------------------------


def attend(query, pages, tables, masks, output, numbers, cap, slopes):
    """Attention of padded queries over pages, which are taken one by one."""
    key_pages, value_pages = pages
    first, last, count = numbers
    q = F.pad(query, (0, 0, 0, 0, 0, count - query.shape[0]))
    q = torch.stack(q.unbind(1)).unflatten(0, (KV_HEADS, HEADS // KV_HEADS))
    highest = total = summed = None
    for number, mask in enumerate(masks):
        page = tables[number, 0:1]
        key = key_pages.index_select(0, page).squeeze(0).permute(1, 2, 0).unsqueeze(1)
        value = value_pages.index_select(0, page)
        value = value.squeeze(0).permute(1, 0, 2).unsqueeze(1)
        scores = torch.matmul(q, key) * SCALE
        if cap:
            scores = cap * torch.tanh(scores / cap)
        if slopes is not None:
            scores = scores + slopes[number]
        scores = scores + mask
        now = scores.amax(-1, keepdim=True)
        if highest is None:
            highest = now
            weights = torch.exp(scores - now)
            total = weights.sum(-1, keepdim=True)
            summed = torch.matmul(weights, value)
            continue
        highest, before = torch.maximum(highest, now), highest
        weights = torch.exp(scores - highest)
        rescale = torch.exp(before - highest)
        total = total * rescale + weights.sum(-1, keepdim=True)
        summed = summed * rescale + torch.matmul(weights, value)
    result = (summed / total).flatten(0, 1).permute(1, 0, 2)
    rows = result[: last - first].reshape(last - first, HEADS * HEAD_SIZE)
    output[first:last] = rows
    return output


def expected_attention(query, keys, values, start, cap, slopes):
    """In fp64, of queries from position ``start`` on, over all keys at once."""
    length, count = keys.shape[0], query.shape[0]
    k, v = (t.repeat_interleave(HEADS // KV_HEADS, 1) for t in (keys, values))
    scores = torch.einsum("qhd,khd->hqk", query, k) * SCALE
    if cap:
        scores = cap * torch.tanh(scores / cap)
    positions = torch.arange(length)
    if slopes is not None:
        scores = scores + slopes[:, None, None] * positions
    seen = positions <= torch.arange(count)[:, None] + start
    scores = scores.masked_fill(~seen, -math.inf)
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), v).flatten(1)


def sequence_inputs(start, count, numbers, slopes):
    """The page table of a sequence, and masks and biases of each page."""
    table = torch.zeros(len(numbers), 32, dtype=torch.int32)
    table[:, 0] = numbers
    padded = -(-count // 32) * 32
    at = torch.arange(len(numbers) * BLOCK_SIZE)
    seen = at <= torch.arange(padded)[:, None] + start
    seen[count:] = at == 0  # rows of padding attend to something
    mask = torch.where(seen, 0.0, torch.finfo(HALF).min / 2).to(HALF)
    biases = None
    if slopes is not None:
        by_head = slopes[:, None] * (at - start - count + 1)
        by_head = by_head.view(KV_HEADS, -1, 1, len(at)).to(HALF)
        biases = list(by_head.split(BLOCK_SIZE, -1))
    return table, list(mask.split(BLOCK_SIZE, 1)), biases, padded


def widen(value):
    """Tensors of floats as fp64, in whatever holds them."""
    return tree_map(
        lambda v: v.double() if isinstance(v, Tensor) and v.dtype == HALF else v, value
    )


#: (sequences as (first position, queries), tanh cap, whether with ALiBi)
ATTENTIONS = {
    "prompts": ([(0, 40), (0, 64), (0, 1)], 0.0, False),
    "tokens": ([(63, 1), (64, 1), (0, 1), (150, 1)], 0.0, False),
    "cap": ([(100, 1), (0, 33)], 5.0, False),
    "alibi": ([(100, 1), (0, 33)], 0.0, True),
}


@pytest.mark.parametrize("case", ATTENTIONS)
def test_6_and_7_sequences_attend_one_by_one(case):
    """A call per sequence; queries are padded to 32."""
    sequences, cap, has_slopes = ATTENTIONS[case]
    slopes = 2.0 ** -torch.arange(1, HEADS + 1) if has_slopes else None
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    kernel = torch.compile(attend, dynamic=False)
    host = [draw(*PAGES, seed=12), draw(*PAGES, seed=13)]
    pages = [make_pages(h) for h in host]
    order = torch.tensor([3, 0, 4])
    tokens = sum(count for _, count in sequences)
    queries = draw(tokens, HEADS, HEAD_SIZE, seed=14)
    output = torch.zeros(tokens, HEADS * HEAD_SIZE, dtype=HALF, device=DEVICE)
    first, kinds = 0, set()
    for start, count in sequences:
        length, last = start + count, first + count
        numbers = order[: -(-length // BLOCK_SIZE)]
        table, masks, biases, padded = sequence_inputs(start, count, numbers, slopes)
        query, place = queries[first:last], (first, last, padded)
        inputs = to_device((query, table, masks, biases))
        kernel(inputs[0], pages, *inputs[1:3], output, place, cap, inputs[3])
        kinds.add((len(numbers), place))
        rows = widen([t[numbers].flatten(0, 1)[:length] for t in host])
        expected = expected_attention(query.double(), *rows, start, cap, slopes)
        rounded = torch.zeros(output.shape, dtype=torch.float64)
        wide = widen((query, host, table, masks, rounded, place, cap, biases))
        oracle(attend, *wide)
        result = output[first:last].cpu()
        assert_like_oracle(result, expected, rounded[first:last], str(place))
        first = last
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert graphs == len(kinds)
    assert torch._dynamo.utils.counters["unimplemented"] == {}


def test_6_pages_are_read_where_they_lie():
    """Selecting a page moves a page, not the cache."""
    pages = make_pages(draw(*PAGES, seed=15))
    page = torch.tensor([[4] + [0] * 31], dtype=torch.int32, device=DEVICE)[0, 0:1]
    assert_exact(pages.index_select(0, page).cpu(), pages.cpu()[4:5])
    _C.reset_native_report()
    pages.index_select(0, page)
    torch.spyre.synchronize()
    ((_, (runs, moved)),) = _C.native_report().items()
    assert runs == 1
    size = pages[0].numel() * pages.element_size()
    assert moved < 3 * size < pages.numel() * pages.element_size()


@pytest.mark.parametrize("number", [BLOCKS, -1, 1 << 26])
def test_6_pages_that_there_are_not_are_errors(number):
    pages = make_pages()
    page = torch.tensor([number], device=DEVICE)
    with pytest.raises(RuntimeError, match="outside its range"):
        pages.index_select(0, page).cpu()


# Step 8 ----------------------------------------------------------------------


def test_8_prefixes_are_copied_without_waiting():
    buffer = torch.zeros(2048, dtype=torch.int32, device=DEVICE)
    host = torch.arange(2048, dtype=torch.int32)
    for count in (1, 63, 2048, 100):
        buffer[:count].copy_(host[:count] + count, non_blocking=True)
        torch.spyre.synchronize(DEVICE)
        assert torch.equal(buffer[:count].cpu(), host[:count] + count)
    assert torch.equal(buffer[100:].cpu(), host[100:] + 2048)


@pytest.fixture
def transfer():
    """A custom operator that hides a transfer from the compiler."""
    library = torch.library.Library("inference_client", "FRAGMENT")
    library.define("put(Tensor(a!) destination, Tensor source) -> ()")

    def put(destination: Tensor, source: Tensor) -> None:
        destination.copy_(source, non_blocking=True)

    library.impl("put", put, "CompositeExplicitAutograd")
    torch.library.register_fake("inference_client::put", lambda a, b: None, lib=library)
    yield torch.ops.inference_client.put
    library._destroy()


@pytest.mark.parametrize("is_compiled", [False, True])
def test_8_transfers_hide_in_a_custom_operator(transfer, is_compiled):
    def step(buffer, host):
        transfer(buffer[:3], host)
        return buffer * 2

    torch._dynamo.reset()
    function = torch.compile(step, dynamic=False) if is_compiled else step
    buffer = torch.zeros(5, 64, dtype=HALF, device=DEVICE)
    host = draw(3, 64, seed=16)
    result = function(buffer, host)
    torch.spyre.synchronize(DEVICE)
    expected = F.pad(host, (0, 0, 0, 2))
    assert_exact(buffer.cpu(), expected)
    assert_exact(result.cpu(), expected * 2)


# Step 9 ----------------------------------------------------------------------


def test_9_collectives_of_two_ranks(tmp_path):
    script = Path(__file__).with_name("client_ranks.py")

    def run(rank):
        return run_script(script, rank, tmp_path, TORCH_DEVICE_BACKEND_AUTOLOAD="0")

    with ThreadPoolExecutor(2) as pool:
        for done in pool.map(run, range(2)):
            assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


# Step 10 ---------------------------------------------------------------------


def encode(hidden, where, mask, weights):
    """Gathers packed tokens into rows, attends, and gathers them back."""
    rows_of, back = where
    padded = F.pad(hidden, (0, 0, 0, 1))  # a row of zeros for what is not there
    rows = padded.index_select(0, rows_of).view(mask.shape[0], -1, SIZE)
    q, k, v = (
        torch.matmul(rows, w).view(*rows.shape[:2], 4, -1).transpose(1, 2)
        for w in weights
    )
    attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return attended.transpose(1, 2).reshape(-1, SIZE).index_select(0, back)


def pool(hidden, last):
    chosen = hidden.index_select(0, last)
    return chosen * torch.rsqrt(chosen.square().sum(-1, keepdim=True))


@pytest.mark.parametrize("kind", ["CLS", "LAST"])
def test_10_encoders_pool_a_token(kind):
    lengths, longest = [5, 32, 17], 32
    tokens = sum(lengths)
    rows_of = torch.full((len(lengths), longest), tokens)
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    back, last = [], []
    mask = torch.full((len(lengths), 1, 1, longest), torch.finfo(HALF).min / 2)
    for row, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        rows_of[row, :length] = torch.arange(start, start + length)
        back += range(row * longest, row * longest + length)
        mask[row, ..., :length] = 0
        last.append(start if kind == "CLS" else start + length - 1)
    where = (rows_of.flatten(), torch.tensor(back))
    last = torch.tensor(last)
    hidden = draw(tokens, SIZE, seed=17)
    weights = [draw(SIZE, SIZE, seed=18 + i) / 11 for i in range(3)]
    weights = [w.to(DEVICE).cpu() for w in weights]
    mask = mask.to(HALF)

    def run(hidden, where, mask, weights, last):
        return pool(encode(hidden, where, mask, weights), last)

    inputs = (hidden, where, mask, weights, last)
    expected = run(*widen(inputs))
    rounded = oracle(run, *widen(inputs))
    torch._dynamo.reset()
    result = torch.compile(run, dynamic=False)(*to_device(inputs))
    assert_like_oracle(result.cpu(), expected, rounded)


# What fails on the card, by the client's strict-xfail probes -----------------

PROBES = {
    "matmul with one column": lambda x, w: torch.matmul(x, w[:, :1]),
    "matmul with columns that fill no stick": lambda x, w: torch.matmul(x, w[:, :77]),
    "fancy indexing": lambda x, w: x[torch.tensor([5, 0, 2], device=x.device)],
    "fancy indexing of columns": lambda x, w: x[
        torch.tensor([5, 0], device=x.device)[:, None],
        torch.tensor([1, 64, 127], device=x.device),
    ],
    "index_add": lambda x, w: x.clone().index_add(
        0, torch.tensor([2, 2, 0], device=x.device), w[:3, : x.shape[1]]
    ),
    "in-place product of a view": lambda x, w: x.clone()[:, ::2].mul_(w[: len(x), :64]),
    "storage offsets": lambda x, w: x[2:, 3:100] + w[1 : len(x) - 1, 20:117],
}


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("probe", PROBES)
def test_probes(probe, is_compiled):
    function = PROBES[probe]
    x, w = draw(9, SIZE, seed=21), draw(SIZE, SIZE, seed=22)
    # Bits that cancel nothing: sums of a few products are exact.
    x, w = (t.mul(8).round().clamp(-16, 16).div(8).to(HALF) for t in (x, w))
    torch._dynamo.reset()
    run = torch.compile(function, dynamic=False) if is_compiled else function
    result = run(x.to(DEVICE), w.to(DEVICE)).cpu()
    expected = function(x.double(), w.double())
    torch.testing.assert_close(result.double(), expected, atol=0, rtol=2**-9)


def test_probe_in_place_products_change_their_view_alone():
    host = draw(9, SIZE, seed=23)
    x = host.to(DEVICE)
    x[:, ::2].mul_(2)
    host[:, ::2].mul_(2)
    assert_exact(x.cpu(), host)
