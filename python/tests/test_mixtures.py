# SPDX-License-Identifier: Apache-2.0
"""Mixtures of experts of ``transformers``, which ``make models`` installs."""

import copy

import pytest
import torch
from numerics import compiled, poison
from torch_spyre.compile_backend import compiled_parts

try:
    import transformers
except ImportError:
    transformers = None

pytestmark = pytest.mark.skipif(
    transformers is None, reason="transformers is not installed"
)

DEVICE = "spyre"
SIZES = {
    "hidden_size": 128,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "initializer_range": 0.1,
    "num_experts_per_tok": 2,
}
#: By how the library names the number of experts.
MODELS = {
    "mixtral": {"num_local_experts": 4},
    "qwen3_moe": {"num_experts": 8, "moe_intermediate_size": 64, "head_dim": 32},
    "granitemoe": {"num_local_experts": 8},
}
#: With more experts, products are of blocks of rows, as many as a quotient says.
MANY = {
    "qwen3_moe": {"num_experts": 32, "moe_intermediate_size": 64, "head_dim": 32},
}


def generate(step, model, length, count):
    """The tokens, how clear each was, and the programs that each step compiled."""
    generator = torch.Generator().manual_seed(length)
    fed = torch.randint(0, SIZES["vocab_size"], (1, length), generator=generator)
    cache = transformers.DynamicCache(config=model.config)
    logits, programs = [], []
    for _ in range(count):
        before = len(compiled_parts())
        result = step(fed.to(model.device), past_key_values=cache, use_cache=True)
        poison()
        logits.append(result.logits[0, -1].float().cpu())
        fed = logits[-1].argmax().view(1, 1)
        programs.append(len(compiled_parts()) - before)
    return torch.stack(logits), programs


@pytest.mark.parametrize(
    ("name", "experts"),
    [*MODELS.items(), *MANY.items()],
    ids=[*MODELS, *(f"{name} with many" for name in MANY)],
)
def test_greedy_tokens(name, experts):
    """Those of fp32 on the CPU, by at most three programs for each graph."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(name, **SIZES, **experts)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    device = copy.deepcopy(model).half().to(DEVICE)
    num_clear = 0
    step, before, programs = compiled(device, dynamic=None), len(compiled_parts()), []
    with torch.no_grad():
        for length, count in ((7, 33), (20, 3), (33, 3), (300, 3), (509, 3)):
            wanted, _ = generate(model, model, length, count)
            eager, _ = generate(device, device, length, count)
            found, compiled_now = generate(step, device, length, count)
            programs += compiled_now
            for number in range(count):
                best = wanted[number].topk(2).values
                error = (eager[number] - wanted[number]).abs().max()
                if best[0] - best[1] <= 4 * error:
                    break  # What follows hangs on the rounding.
                assert found[number].argmax() == wanted[number].argmax()
                num_clear += 1
    assert num_clear >= 8
    names = [p.name for p in compiled_parts()[before:]]
    assert max(names.count(n) for n in names) <= 3
    # A prompt of the second length has another graph than one of the first; then
    # there is a program for everything.
    assert sum(programs[4:33]) == sum(programs[35:]) == 0
