# SPDX-License-Identifier: Apache-2.0
"""The steps of hf-adapters, one test each: docs/spec/drop-in.md, section 7."""

import copy

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
from numerics import assert_exact, assert_like_oracle, device_value, oracle
from torch import Tensor, nn
from torch_spyre import _C

HALF = torch.float16
DEVICE = torch.device("spyre:0")
SIZE, HEADS, KV_HEADS, HEAD_SIZE, PADDED_HEAD = 128, 4, 2, 48, 64
LAYERS, WORDS, LENGTH, PROMPT = 2, 90, 192, 64

pytestmark = [
    pytest.mark.usefixtures("no_fallback"),
    pytest.mark.filterwarnings("ignore:.*does not support int64"),
]


class Block(nn.Module):
    """A decoder block on caches that it updates in place, and returns."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = PatchedRMSNorm(SIZE), PatchedRMSNorm(SIZE)
        self.q = nn.Linear(SIZE, HEADS * HEAD_SIZE, bias=False)
        self.k = nn.Linear(SIZE, KV_HEADS * HEAD_SIZE, bias=False)
        self.v = nn.Linear(SIZE, KV_HEADS * HEAD_SIZE, bias=False)
        self.o = nn.Linear(HEADS * HEAD_SIZE, SIZE, bias=False)
        self.mlp = MLP(SIZE, 2 * SIZE)
        self.head_size = HEAD_SIZE

    def pad_heads(self) -> None:
        """Makes the heads whole sticks, with zeros."""
        extra = PADDED_HEAD - HEAD_SIZE
        half = HEAD_SIZE // 2
        for linear in (self.q, self.k, self.v):
            rows = linear.weight.data.view(-1, HEAD_SIZE, SIZE)
            if linear is self.v:
                rows = F.pad(rows, (0, 0, 0, extra))
            else:  # the halves of a rotary pair stay apart by half a head
                parts = rows.view(-1, 2, half, SIZE)
                rows = F.pad(parts, (0, 0, 0, extra // 2)).flatten(1, 2)
            linear.weight = nn.Parameter(rows.reshape(-1, SIZE))
        columns = self.o.weight.data.view(SIZE, HEADS, HEAD_SIZE)
        self.o.weight = nn.Parameter(F.pad(columns, (0, extra)).flatten(1))
        self.head_size = PADDED_HEAD

    def forward(
        self,
        x: Tensor,
        rotations: Tensor,
        mask: Tensor,
        keys: Tensor,
        values: Tensor,
        index: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        batch, length, _ = x.shape
        h = self.first(x)
        q, k, v = (
            linear(h).view(batch, length, -1, self.head_size)
            for linear in (self.q, self.k, self.v)
        )
        q, k = rotate(q, rotations), rotate(k, rotations)
        keys.index_copy_(2, index, k.transpose(1, 2))
        values.index_copy_(2, index, v.transpose(1, 2))
        attended = F.scaled_dot_product_attention(
            q.transpose(1, 2),
            keys,
            values,
            attn_mask=mask,
            scale=HEAD_SIZE**-0.5,
            enable_gqa=True,
        )
        x = x + self.o(attended.transpose(1, 2).reshape(batch, length, -1))
        return x + self.mlp(self.second(x)), keys, values


class Rotations(nn.Module):
    """RoPE tables, which stay on the CPU."""

    def __init__(self, head_size: int, dtype: torch.dtype) -> None:
        super().__init__()
        table = rope_table(LENGTH, HEAD_SIZE, dtype)
        extra = (head_size - HEAD_SIZE) // 2
        self.register_buffer("table", F.pad(table, (0, extra)))

    def forward(self, positions: Tensor) -> Tensor:
        return self.table[positions]


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, SIZE)
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = PatchedRMSNorm(SIZE)
        self.rotations = Rotations(HEAD_SIZE, torch.float32)
        self.head = nn.Linear(SIZE, WORDS, bias=False)
        spread(self, seed=16, gain=1.5)
        self.head.weight = self.embedding.weight  # tied

    def forward(self, ids, positions, mask, caches, index, device="cpu"):
        """Logits of the last position; updates the caches."""
        rotations = self.rotations(positions).to(device)
        ids, mask, index = (t.to(device) for t in (ids, mask, index))
        x = self.embedding(ids)
        for number, layer in enumerate(self.layers):
            x, *caches[number] = layer(x, rotations, mask, *caches[number], index)
        return self.head(self.norm(x)[:, -1]).cpu()


def prepare(model: Model, dtype: torch.dtype = HALF) -> Model:
    """Steps 2 and 3: what a client does to a model before it goes to the card."""
    model = copy.deepcopy(model).to(dtype)
    model.head.weight = nn.Parameter(model.head.weight.detach().clone())
    rows = -WORDS % 128
    model.head.weight = nn.Parameter(F.pad(model.head.weight.data, (0, 0, 0, rows)))
    for block in model.layers:
        block.pad_heads()
    model.rotations = Rotations(PADDED_HEAD, dtype)
    for number, block in enumerate(model.layers):
        model.layers[number] = torch.compile(block, dynamic=False)
    model.to(dtype=dtype, device="spyre:0")
    model.rotations.to("cpu")
    return model


def cache_layout(shape: tuple[int, ...], dtype: torch.dtype) -> _C.SpyreTensorLayout:
    """Step 4: sticks of all sequences side by side, positions outermost."""
    batch, heads, length, size = shape
    eps = _C.SpyreTensorLayout(shape, dtype).elems_per_stick()
    return _C.SpyreTensorLayout(
        [length, heads, size // eps, batch, eps],
        [size, length * size, eps, heads * length * size, 1],
        _C.get_device_dtype(dtype),
    )


def make_caches(batch: int, dtype: torch.dtype, head_size: int, device: str) -> list:
    shape = (batch, KV_HEADS, LENGTH, head_size)
    if device == "cpu":
        return [
            [torch.zeros(shape, dtype=dtype) for _ in range(2)] for _ in range(LAYERS)
        ]
    layout = cache_layout(shape, dtype)
    caches = []
    for _ in range(LAYERS):
        pair = [
            torch.empty(shape, device=device, device_layout=layout, dtype=dtype)
            for _ in range(2)
        ]
        for cache in pair:
            cache.zero_()
            assert cache.device_tensor_layout() == layout
        caches.append(pair)
    return caches


PROMPTS = [[7, 81, 3, 44, 19, 2, 60], [5], list(range(11, 66))]


def prompt_inputs(prompts: list[list[int]], dtype: torch.dtype):
    """Step 5: ids and positions padded on the left, the mask of the prompt."""
    ids = torch.zeros(len(prompts), PROMPT, dtype=torch.int64)
    positions = torch.zeros_like(ids)
    mask = torch.full((len(prompts), 1, PROMPT, LENGTH), torch.finfo(dtype).min / 2)
    for row, prompt in enumerate(prompts):
        start = PROMPT - len(prompt)
        ids[row, start:] = torch.tensor(prompt)
        positions[row, start:] = torch.arange(len(prompt))
        for query in range(PROMPT):
            mask[row, 0, query, start : query + 1] = 0
    return ids, positions, mask.to(dtype), torch.arange(PROMPT)


def step_inputs(prompts: list[list[int]], step: int, token: Tensor, mask: Tensor):
    """The same for one token of each sequence after ``step`` others."""
    positions = torch.tensor([[len(prompt) + step] for prompt in prompts])
    mask = mask[:, :, -1:].clone()
    mask[..., PROMPT : PROMPT + step + 1] = 0
    return token[:, None], positions, mask, torch.tensor([PROMPT + step])


def generate(model: Model, prompts, count: int, device: str, dtype: torch.dtype):
    """Greedy tokens, by how much the best logit wins, and the caches."""
    head_size = HEAD_SIZE if device == "cpu" else PADDED_HEAD
    caches = make_caches(len(prompts), dtype, head_size, device)
    ids, positions, prompt_mask, index = prompt_inputs(prompts, dtype)
    mask, tokens, margins = prompt_mask, [], []
    with torch.no_grad():
        for step in range(count):
            logits = model(ids, positions, mask, caches, index, device)[:, :WORDS]
            best = logits.float().topk(2, -1)
            tokens.append(best.indices[:, 0])
            margins.append(best.values[:, 0] - best.values[:, 1])
            ids, positions, mask, index = step_inputs(
                prompts, step, tokens[-1], prompt_mask
            )
    return torch.stack(tokens, 1), torch.stack(margins, 1), caches


_one_thread = pytest.fixture(autouse=True, scope="module")(one_thread)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture
def prepared(model) -> Model:
    torch._dynamo.reset()
    return prepare(model)


def test_1_an_option_is_set_at_import():
    """Guarded by ImportError alone: an unknown name would stop the import."""
    from torch_spyre._inductor import config

    before = config.hbm_pool_planning
    try:
        config.hbm_pool_planning = False
        assert config.hbm_pool_planning is False
    finally:
        config.hbm_pool_planning = before


def test_2_models_are_rewritten_on_the_cpu(model):
    """Padded heads and words change no result."""
    padded = copy.deepcopy(model)
    for block in padded.layers:
        block.pad_heads()
        assert block.q.weight.shape == (HEADS * PADDED_HEAD, SIZE)
    padded.rotations = Rotations(PADDED_HEAD, torch.float32)
    ids, positions, mask, index = prompt_inputs(PROMPTS, torch.float32)
    results = []
    for candidate, size in ((model, HEAD_SIZE), (padded, PADDED_HEAD)):
        caches = make_caches(len(PROMPTS), torch.float32, size, "cpu")
        with torch.no_grad():
            results.append(candidate(ids, positions, mask, caches, index))
    torch.testing.assert_close(*results)


def test_3_modules_move_to_the_card_and_some_back(prepared):
    for name, parameter in prepared.named_parameters():
        assert parameter.device == DEVICE, name
        assert parameter.dtype == HALF, name
    assert prepared.head.weight.data_ptr() != prepared.embedding.weight.data_ptr()
    # Sticks along the columns of the product; rows are selected of the embedding.
    head = prepared.head.weight
    order = _C.SpyreTensorLayout(list(head.shape), list(head.stride()), HALF, [1, 0])
    assert head.device_tensor_layout() == order
    plain = _C.SpyreTensorLayout(list(prepared.embedding.weight.shape), HALF)
    assert prepared.embedding.weight.device_tensor_layout() == plain
    assert prepared.rotations.table.device.type == "cpu"


def test_4_caches_have_the_layout_asked_for():
    shape = (3, 2, 70, 128)
    layout = cache_layout(shape, HALF)
    assert layout.device_size == [70, 2, 2, 3, 64]
    cache = torch.empty(shape, device=DEVICE, device_layout=layout, dtype=HALF)
    assert cache.device_tensor_layout() == layout
    assert cache.zero_() is cache
    assert cache.eq(0).all()
    assert _C.read_device_bytes(cache) == bytes(2 * cache.numel())
    new = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(HALF)
    cache.copy_(new)
    assert torch.equal(cache.cpu(), new.to(DEVICE).cpu())
    assert cache.device_tensor_layout() == layout


@pytest.mark.parametrize("dtype", [HALF, torch.bfloat16], ids=str)
def test_5_prompts_then_tokens_one_by_one(model, dtype):
    """Greedy tokens are those of fp32 on the CPU; one compilation for each length."""
    expected, margins, _ = generate(model, PROMPTS, 12, "cpu", torch.float32)
    assert margins.min() > 0.03, "a tie would test nothing"
    torch._dynamo.reset()
    prepared = prepare(model, dtype)
    torch._dynamo.utils.counters.clear()
    tokens, _, caches = generate(prepared, PROMPTS, 2, "spyre:0", dtype)
    stats = torch._dynamo.utils.counters["stats"]
    after_two = stats["unique_graphs"]
    assert after_two == 2, "the blocks share their code"
    tokens, _, caches = generate(prepared, PROMPTS, 12, "spyre:0", dtype)
    assert torch.equal(tokens, expected)
    assert stats["unique_graphs"] == after_two, "tokens were compiled anew"
    layout = cache_layout((len(PROMPTS), KV_HEADS, LENGTH, PADDED_HEAD), dtype)
    for pair in caches:
        assert all(cache.device_tensor_layout() == layout for cache in pair)


def exact(tensor: Tensor) -> Tensor:
    """The fp16 numbers that the device holds for a tensor."""
    return device_value(tensor.to(HALF)).to(HALF)


def test_6_a_block_updates_its_caches_and_returns_them(model):
    block = copy.deepcopy(model.layers[0]).to(HALF)
    block.pad_heads()
    shape = (2, KV_HEADS, LENGTH, PADDED_HEAD)
    rotations = Rotations(PADDED_HEAD, HALF)(torch.arange(2).expand(2, 2) + 5)
    rotations = exact(rotations)
    for parameter in block.parameters():
        parameter.data = exact(parameter.data)
    generator = torch.Generator().manual_seed(4)
    x = exact(torch.randn(2, 2, SIZE, generator=generator))
    mask = torch.full((2, 1, 2, LENGTH), torch.finfo(HALF).min / 2, dtype=HALF)
    mask[..., 3:7] = 0
    index = torch.tensor([5, 6])
    layout = cache_layout(shape, HALF)
    host = [exact(torch.randn(shape, generator=generator)) for _ in range(2)]
    wide = [value.double() for value in (x, rotations, mask)]
    double = copy.deepcopy(block).double()
    with torch.no_grad():
        reference = double(*wide, *(c.double() for c in host), index)
        rounded = oracle(double, *wide, *(c.double() for c in host), index)
    caches = [c.to(DEVICE, device_layout=layout) for c in host]
    arguments = [value.to(DEVICE) for value in (x, rotations, mask)]
    torch._dynamo.reset()
    step = torch.compile(block.to("spyre:0"), dynamic=False)
    with torch.no_grad():
        out, *updated = step(*arguments, *caches, index.to(DEVICE))
    assert_like_oracle(out.cpu(), reference[0], rounded[0])
    kept = [row for row in range(LENGTH) if row not in (5, 6)]
    for number, (cache, result, before) in enumerate(
        zip(caches, updated, host, strict=True), start=1
    ):
        assert result.data_ptr() == cache.data_ptr()
        assert cache.device_tensor_layout() == layout
        now = cache.cpu()
        assert_exact(now[:, :, kept], before[:, :, kept])
        rows = [t[number][:, :, 5:7] for t in (reference, rounded)]
        assert_like_oracle(now[:, :, 5:7], *rows)


def test_7_tokens_are_drawn_on_the_cpu(model, prepared):
    caches = make_caches(len(PROMPTS), HALF, PADDED_HEAD, "spyre:0")
    inputs = prompt_inputs(PROMPTS, HALF)
    ids, positions, mask, index = inputs
    with torch.no_grad():
        logits = prepared(ids, positions, mask, caches, index, "spyre:0")
    assert logits.device.type == "cpu"
    assert logits.shape == (len(PROMPTS), WORDS + -WORDS % 128)
    logits = logits[:, :WORDS].float()
    order = logits.sort(-1, descending=True)
    assert torch.equal(order.indices[:, 0], logits.argmax(-1))
    assert torch.equal(logits.topk(5).values, order.values[:, :5])
    drawn = torch.multinomial(
        logits.softmax(-1), 4, generator=torch.Generator().manual_seed(1)
    )
    assert drawn.shape == (len(PROMPTS), 4)


def test_8_the_profiler_sees_the_kernels(prepared):
    from torch.profiler import ProfilerActivity, profile

    caches = make_caches(len(PROMPTS), HALF, PADDED_HEAD, "spyre:0")
    ids, positions, mask, index = prompt_inputs(PROMPTS, HALF)
    activities = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
    with torch.no_grad(), profile(activities=activities) as seen:
        prepared(ids, positions, mask, caches, index, "spyre:0")
    kernels = [
        event
        for event in seen.events()
        if event.device_type == torch.autograd.DeviceType.PrivateUse1
    ]
    assert kernels
    assert all(event.time_range.elapsed_us() >= 0 for event in kernels)
