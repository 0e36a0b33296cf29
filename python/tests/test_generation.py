# SPDX-License-Identifier: Apache-2.0
"""``generate()`` of stock models of ``transformers``, which ``make models`` installs.

The models are unmodified, with tiny configurations and random weights. Each step is
judged by itself: of the tokens that the device chose, the CPU computes all logits in
fp64, row by row without padding or cache, and once more rounded as the device rounds.
Where the two best differ by more than that, the device must have chosen the best. Where
a router's choice of an expert hangs on the rounding, the CPU says what the other expert
would change.
"""

import copy
from dataclasses import dataclass

import pytest
import torch
from numerics import oracle, poison, rms, round_dl16
from torch_spyre.compile_backend import compiled_parts

try:
    import transformers
except ImportError:
    transformers = None

pytestmark = [
    pytest.mark.skipif(transformers is None, reason="transformers is not installed"),
    pytest.mark.usefixtures("without_gradients", "no_traced_cache"),
]

DEVICE = "spyre"
WORDS, PROMPT, COUNT, WINDOW = 128, 6, 12, 8
SIZES = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "vocab_size": WORDS,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
    "pad_token_id": 0,
    # Nothing ends a text.
    "bos_token_id": None,
    "eos_token_id": None,
}
GROUPED = {"num_key_value_heads": 2, "intermediate_size": 128}
#: What one layer may show is shown by one, which compiles sooner.
ONE, TWO = ({"num_hidden_layers": count} for count in (1, 2))
MODELS = {
    "llama": {**TWO, **GROUPED},
    "granite": {**ONE, **GROUPED},
    "qwen3": {**ONE, **GROUPED, "head_dim": 16},
    "gpt2": TWO,
    "mistral": {**ONE, **GROUPED, "sliding_window": WINDOW},
    "gemma2": {
        # Every second layer has a window.
        **TWO,
        **GROUPED,
        "head_dim": 16,
        "sliding_window": WINDOW,
        "tie_word_embeddings": False,
    },
    "mixtral": {**ONE, **GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2},
}


def make_model(name):
    """In fp16, with weights that the device has, too."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(name, **SIZES, **MODELS[name])
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float16)
    for parameter in model.parameters():
        parameter.copy_(round_dl16(parameter.double()))
    return model.eval()


def prompts(batch):
    """Ids and mask [batch, PROMPT], with padding on the left of all rows but one."""
    generator = torch.Generator().manual_seed(batch)
    ids = torch.randint(1, WORDS, (batch, PROMPT), generator=generator)
    starts = torch.arange(batch)[:, None]
    mask = (torch.arange(PROMPT) >= starts).long()
    return ids * mask, mask


def generate(model, batch, cache, **sampling):
    """All tokens [batch, PROMPT + COUNT] and the logits [batch, COUNT, WORDS]."""
    ids, mask = (t.to(model.device) for t in prompts(batch))
    poison()
    result = model.generate(
        ids,
        attention_mask=mask,
        max_new_tokens=COUNT,
        cache_implementation=cache,
        return_dict_in_generate=True,
        output_logits=True,
        **(sampling or {"do_sample": False}),
    )
    logits = torch.stack([step.cpu() for step in result.logits], 1)
    return result.sequences.cpu(), logits.double()


# --- what the CPU says -----------------------------------------------------------


def routers(model):
    """The modules that choose experts, one per layer, or none."""
    kind = transformers.models.mixtral.modeling_mixtral.MixtralTopKRouter
    return [m for m in model.modules() if isinstance(m, kind)]


def forward(model, tokens, pushes=()):
    """Logits of all positions of one text, and those of the experts per layer, [time,
    N]. ``pushes`` adds to what a router gets: (layer, position, [hidden]).
    """
    found, hooks = [], []
    for number, router in enumerate(routers(model)):

        def push(module, arguments, number=number):
            hidden = arguments[0].clone()
            for layer, place, change in pushes:
                if layer == number:
                    hidden.view(len(tokens), -1)[place] += change
            return hidden

        hooks.append(router.register_forward_pre_hook(push))
        hooks.append(
            router.register_forward_hook(lambda m, given, r: found.append(r[0]))
        )
    result = model(input_ids=tokens[None], use_cache=False)
    for hook in hooks:
        hook.remove()
    return result.logits[0], found


@dataclass
class Text:
    """A row of a batch without its padding, and what the CPU says about it."""

    tokens: torch.Tensor
    exact: torch.Tensor  # logits [time, WORDS]
    experts: list[torch.Tensor]  # logits [time, experts] per layer
    rounded: torch.Tensor  # the same, rounded after every operator
    rounded_experts: list[torch.Tensor]
    tolerance: torch.Tensor  # [time], of a logit
    is_settled: torch.Tensor  # [time]: no expert has hung on the rounding yet


def find_ties(texts, layer, chosen):
    """Texts and positions where it hangs on the rounding whom a router chooses.

    The margin of the choice is below twice the error that rounding makes in that layer,
    where no layer before has had a tie.
    """
    errors = [
        (t.experts[layer] - t.rounded_experts[layer]).abs().amax(-1)[t.is_settled]
        for t in texts
    ]
    limit = 2 * torch.cat(errors).max()
    for text in texts:
        best = text.experts[layer].topk(chosen + 1, -1).values
        is_tie = best[:, chosen - 1] - best[:, chosen] <= limit
        # Later positions attend to this one.
        text.is_settled &= is_tie.cumsum(0) == 0
        for place in is_tie.nonzero().flatten().tolist():
            yield text, place


def other_choice(router, logits, chosen):
    """What makes a router take its next expert in place of the last one it chose."""
    best = logits.topk(chosen + 1)
    last, following = best.indices[chosen - 1], best.indices[chosen]
    way = router.weight[following] - router.weight[last]
    margin = best.values[chosen - 1] - best.values[chosen]
    return way * (1.01 * margin + 1e-9) / way.square().sum()


def judge(model, batch, tokens):
    """The texts of a batch; ``model`` is in fp16 on the CPU."""
    wide = copy.deepcopy(model).double()
    if routers(wide):
        # The CPU has no grouped products in fp64.
        wide.set_experts_implementation("eager")
    # Rounding writes to views of buffers.
    rounding = copy.deepcopy(wide)
    texts = []
    for row, mask in zip(tokens, prompts(batch)[1], strict=True):
        row = row[PROMPT - int(mask.sum()) : -1]
        exact, experts = forward(wide, row)
        rounded, rounded_experts = oracle(forward, rounding, row)
        tolerance = 4 * (rounded - exact).abs().amax(-1)
        is_settled = torch.ones_like(row, dtype=torch.bool)
        results = (exact, experts, rounded, rounded_experts, tolerance, is_settled)
        texts.append(Text(row, *results))
    for layer, router in enumerate(routers(wide)):
        chosen = router.top_k
        for text, place in list(find_ties(texts, layer, chosen)):
            # As much as the other expert would change.
            push = other_choice(router, text.experts[layer][place], chosen)
            other, _ = forward(wide, text.tokens, [(layer, place, push)])
            assert not torch.equal(other[place], text.exact[place])
            text.tolerance += (other - text.exact).abs().amax(-1)
    return texts


def of_steps(texts, name):
    """Of all texts, what is about the tokens that were generated."""
    return torch.stack([getattr(text, name)[-COUNT:] for text in texts])


def assert_greedy(model, batch, tokens, logits):
    texts = judge(model, batch, tokens)
    exact, is_settled = of_steps(texts, "exact"), of_steps(texts, "is_settled")
    assert is_settled.any()
    error = rms((logits - exact)[is_settled])
    assert error <= 2 * rms((of_steps(texts, "rounded") - exact)[is_settled])
    best = exact.topk(2, -1)
    margin = best.values[..., 0] - best.values[..., 1]
    is_clear = margin > of_steps(texts, "tolerance")
    assert is_clear.float().mean() >= 0.5
    chosen, wanted = tokens[:, PROMPT:], best.indices[..., 0]
    assert torch.equal(chosen[is_clear], wanted[is_clear])
    # Not the same token again and again.
    assert min(len(row.unique()) for row in chosen) >= 3


def assert_sampled(model, batch, tokens, kept):
    """Each token is one of the ``kept`` best, and not always the best."""
    texts = judge(model, batch, tokens)
    exact, tolerance = of_steps(texts, "exact"), of_steps(texts, "tolerance")
    best = exact.topk(kept, -1).values
    found = exact.gather(-1, tokens[:, PROMPT:, None])[..., 0]
    assert (found >= best[..., -1] - tolerance).all()
    assert (found < best[..., 0] - tolerance).any()


#: Each model has both caches and both batches, but not all four pairs.
CASES = [
    (name, cache, batch)
    for number, name in enumerate(MODELS)
    for cache, batch in ((None, (1, 4)[number % 2]), ("static", (4, 1)[number % 2]))
]


@pytest.mark.parametrize(("name", "cache", "batch"), CASES)
def test_generates(name, cache, batch):
    """Operator by operator and compiled, the likeliest tokens and sampled ones."""
    model = make_model(name)
    device = copy.deepcopy(model).to(DEVICE)
    assert_greedy(model, batch, *generate(device, batch, cache))
    torch._dynamo.reset()
    device.compile(backend="spyre")
    before = len(compiled_parts())
    assert_greedy(model, batch, *generate(device, batch, cache))
    assert len(compiled_parts()) > before
    sampled = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        programs = len(compiled_parts())
        sampled.append(generate(device, batch, cache, do_sample=True, top_k=4)[0])
    # The last two had nothing new to compile.
    assert len(compiled_parts()) == programs
    assert torch.equal(sampled[0], sampled[1])
    assert not torch.equal(sampled[0], sampled[2])
    assert_sampled(model, batch, sampled[2], 4)
