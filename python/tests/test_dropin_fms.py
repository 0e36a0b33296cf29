# SPDX-License-Identifier: Apache-2.0
"""A caller of ibm-fms's paged attention: docs/spec/drop-in.md, section 7.

With ibm-fms installed its own model runs; without it one that does the same runs, which
it also does with ibm-fms installed.
"""

import importlib.util
import random

import paged_reference  # noqa: F401  defines the operators
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
from torch import Tensor, nn

HALF = torch.float16
WORDS, SIZE, HEADS, KV_HEADS, HEAD_SIZE, LAYERS = 90, 128, 4, 2, 32, 2
PAGE, PAGES = 64, 8
HAS_FMS = importlib.util.find_spec("fms") is not None

pytestmark = pytest.mark.filterwarnings("ignore:.*does not support int64")
_one_thread = pytest.fixture(autouse=True, scope="module")(one_thread)


class Attention(nn.Module):
    """A layer that stores its keys and values by the client's operators."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = PatchedRMSNorm(SIZE), PatchedRMSNorm(SIZE)
        self.qkv = nn.Linear(SIZE, (HEADS + 2 * KV_HEADS) * HEAD_SIZE, bias=False)
        self.out = nn.Linear(HEADS * HEAD_SIZE, SIZE, bias=False)
        self.mlp = MLP(SIZE, 256)

    def forward(self, x: Tensor, rotations: Tensor, caches, attention):
        batch, length, _ = x.shape
        heads = self.qkv(self.first(x)).view(batch, length, -1, HEAD_SIZE)
        q, k, v = heads.split([HEADS, KV_HEADS, KV_HEADS], 2)
        q, k = rotate(q, rotations), rotate(k, rotations)
        slots, mask = attention["slot_mapping"], attention["mask"]
        caches = torch.ops.spyre.paged_attn_store(k, v, *caches, slots)
        if attention["block_table"] is None:
            attended = F.scaled_dot_product_attention(
                q.transpose(1, 2),
                k.transpose(1, 2),
                v.transpose(1, 2),
                attn_mask=mask,
                enable_gqa=True,
            ).transpose(1, 2)
        else:
            attended = torch.ops.spyre.paged_attn_compute(
                q,
                *caches,
                HEAD_SIZE**-0.5,
                attention["current_tkv_mask"],
                attention["left_padded_prompt_mask"],
                attention["block_table"],
            )
        x = x + self.out(attended.reshape(batch, length, -1))
        return x + self.mlp(self.second(x)), caches


class Model(nn.Module):
    """What the caller sees of a model of ibm-fms."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, SIZE)
        self.layers = nn.ModuleList(Attention() for _ in range(LAYERS))
        self.norm = PatchedRMSNorm(SIZE)
        self.head = nn.Linear(SIZE, WORDS, bias=False)
        spread(self, seed=SEED, gain=1.5)
        table = rope_table(256, HEAD_SIZE, torch.float32)
        self.register_buffer("table", table, persistent=False)

    def forward(
        self,
        ids: Tensor,
        *,
        position_ids: Tensor,
        slot_mapping: Tensor,
        past_key_value_states,
        mask: Tensor | None = None,
        block_table: Tensor | None = None,
        current_tkv_mask: Tensor | None = None,
        left_padded_prompt_mask: Tensor | None = None,
        use_cache: bool = True,
        last_n_tokens: int = 1,
        attn_name: str = "spyre_paged_attn",
    ):
        attention = {
            "slot_mapping": slot_mapping,
            "mask": mask,
            "block_table": block_table,
            "current_tkv_mask": current_tkv_mask,
            "left_padded_prompt_mask": left_padded_prompt_mask,
        }
        rotations = self.table[position_ids]
        x, states = self.embedding(ids), []
        for layer, caches in zip(self.layers, past_key_value_states, strict=True):
            x, caches = layer(x, rotations, caches, attention)
            states.append(caches)
        return self.head(self.norm(x)[:, -last_n_tokens:]), states


SEED = 14


class Caller:
    """Prefills one sequence at a time, then decodes all together."""

    def __init__(self, model, prompts, device: str, dtype: torch.dtype, kv_heads, size):
        self.model, self.device, self.dtype = model, device, dtype
        self.prompts = prompts
        self.states = [
            tuple(
                torch.zeros(PAGES, PAGE, kv_heads, size, dtype=dtype, device=device)
                for _ in range(2)
            )
            for _ in range(LAYERS)
        ]
        self.free = list(range(PAGES))
        random.Random(1).shuffle(self.free)
        self.longest = max(-(-len(p) // PAGE) * PAGE for p in prompts)
        self.tables: list[list[int]] = []

    def ids(self, values: list) -> Tensor:
        return torch.tensor(values, dtype=torch.int64)

    def call(self, ids: Tensor, dims: dict[str, tuple[int, ...]], **arguments):
        """Moves what the model gets, and marks the dimensions that vary."""
        given = {"ids": ids, **arguments}
        for name, value in given.items():
            if not isinstance(value, Tensor):
                continue
            given[name] = value = value.to(self.device)
            for dim in dims.get(name, ()):
                torch._dynamo.mark_dynamic(value, dim)
            if 0 not in dims.get(name, ()) and value.dim() > 1:
                torch._dynamo.mark_static(value, 0)
        ids = given.pop("ids")
        logits, self.states = self.model(
            ids,
            past_key_value_states=self.states,
            use_cache=True,
            last_n_tokens=1,
            attn_name="spyre_paged_attn",
            **given,
        )
        return logits[:, -1].float().cpu()

    def prefill(self, prompt: list[int], chunk: int = 0) -> Tensor:
        """A prompt padded on the left to whole pages."""
        length = -(-len(prompt) // PAGE) * PAGE
        start = length - len(prompt)
        pages = [self.free.pop() for _ in range(length // PAGE)]
        self.tables.append([pages[0]] * ((self.longest - length) // PAGE) + pages)
        slots = [pages[at // PAGE] * PAGE + at % PAGE for at in range(length)]
        ids = [0] * start + prompt
        positions = [0] * start + list(range(len(prompt)))
        if chunk:
            for first in range(0, length, chunk):
                last = first + chunk
                logits = self.call(
                    self.ids([ids[first:last]]),
                    {"ids": (1,), "slot_mapping": (1,), "position_ids": (1,)},
                    slot_mapping=self.ids([slots[first:last]]),
                    position_ids=self.ids([positions[first:last]]),
                    current_tkv_mask=self.ids([last]),
                    left_padded_prompt_mask=self.ids([start]),
                    block_table=self.ids([pages[: -(-last // PAGE)]]),
                )
            return logits
        seen = torch.ones(length, length).tril()
        seen[:, :start] = 0
        mask = torch.where(seen.bool(), 0.0, -torch.inf)
        mask[:start] = 0  # padding attends to anything
        return self.call(
            self.ids([ids]),
            {
                "ids": (1,),
                "slot_mapping": (1,),
                "position_ids": (1,),
                "mask": (2, 3),
            },
            slot_mapping=self.ids([slots]),
            position_ids=self.ids([positions]),
            mask=mask.to(self.dtype)[None, None].contiguous(),
        )

    def decode(self, tokens: Tensor, step: int) -> Tensor:
        """A token of each sequence, in a page that may be new."""
        at = self.longest + step
        if at % PAGE == 0:
            for table in self.tables:
                table.append(self.free.pop())
        slots = [[table[at // PAGE] * PAGE + at % PAGE] for table in self.tables]
        every = (0,)
        return self.call(
            tokens[:, None],
            {
                "ids": every,
                "slot_mapping": every,
                "position_ids": every,
                "current_tkv_mask": every,
                "left_padded_prompt_mask": every,
                "block_table": (0, 1),
            },
            slot_mapping=self.ids(slots),
            position_ids=self.ids([[len(p) + step] for p in self.prompts]),
            current_tkv_mask=self.ids([at + 1 for _ in self.prompts]),
            left_padded_prompt_mask=self.ids(
                [self.longest - len(p) for p in self.prompts]
            ),
            block_table=self.ids(self.tables),
        )

    def generate(self, count: int, chunk: int = 0) -> Tensor:
        with torch.no_grad():
            logits = [self.prefill(prompt, chunk) for prompt in self.prompts]
            tokens = [torch.cat(logits).argmax(-1)]
            for step in range(count - 1):
                tokens.append(self.decode(tokens[-1], step).argmax(-1))
        return torch.stack(tokens, 1)


def expected_tokens(logits_of, prompts, count: int) -> tuple[Tensor, float]:
    """Greedy tokens of a prompt at a time without a cache; the least margin."""
    every, margin = [], float("inf")
    for prompt in prompts:
        words = list(prompt)
        for _ in range(count):
            best = logits_of(torch.tensor([words])).float().topk(2)
            margin = min(margin, (best.values[0] - best.values[1]).item())
            words.append(best.indices[0].item())
        every.append(words[len(prompt) :])
    return torch.tensor(every), margin


PROMPTS = [[7, 81, 3, 44, 19], list(range(1, 74))]


def logits_without_cache(model: Model, ids: Tensor) -> Tensor:
    length = ids.shape[1]
    mask = torch.full((length, length), -torch.inf).triu(1)[None, None]
    states = [
        tuple(torch.zeros(4, PAGE, KV_HEADS, HEAD_SIZE) for _ in range(2))
        for _ in range(LAYERS)
    ]
    positions = torch.arange(length)[None]
    with torch.no_grad():
        logits, _ = model(
            ids,
            position_ids=positions,
            slot_mapping=positions,
            past_key_value_states=states,
            mask=mask,
        )
    return logits[0, -1]


@pytest.mark.parametrize("chunk", [0, PAGE], ids=["whole", "chunks"])
def test_a_model_like_theirs(chunk, no_fallback):
    torch._dynamo.reset()
    model = Model()
    expected, margin = expected_tokens(
        lambda ids: logits_without_cache(model, ids), PROMPTS, 4
    )
    assert margin > 0.03, "a tie would test nothing"
    model.to(dtype=HALF, device="spyre:0")
    model.compile(backend="inductor")
    caller = Caller(model, PROMPTS, "spyre:0", HALF, KV_HEADS, HEAD_SIZE)
    assert torch.equal(caller.generate(4, chunk), expected)


@pytest.mark.skipif(not HAS_FMS, reason="ibm-fms is not installed")
@pytest.mark.parametrize("chunk", [0, PAGE], ids=["whole", "chunks"])
def test_their_model(chunk):
    from fms.models.llama import LLaMA, LLaMAConfig

    torch._dynamo.reset()
    torch.manual_seed(5)
    config = LLaMAConfig(
        src_vocab_size=WORDS,
        emb_dim=SIZE,
        nheads=HEADS,
        kvheads=KV_HEADS,
        nlayers=LAYERS,
        multiple_of=64,
        max_expected_seq_len=256,
        pad_id=-1,
    )
    model = LLaMA(config)
    model.reset_parameters()
    model.eval()
    spread(model, seed=SEED, gain=1.5)

    def logits_of(ids):
        with torch.no_grad():
            return model(ids, attn_name="sdpa_causal")[0, -1]

    expected, margin = expected_tokens(logits_of, PROMPTS, 4)
    assert margin > 0.03, "a tie would test nothing"
    model.to(dtype=HALF, device="spyre:0")
    model.post_init()  # as get_model() does when the weights are where they stay
    model.compile(backend="inductor")
    caller = Caller(model, PROMPTS, "spyre:0", HALF, KV_HEADS, HEAD_SIZE)
    assert torch.equal(caller.generate(4, chunk), expected)
