# SPDX-License-Identifier: Apache-2.0
"""Predictions of a model on several cards: parts of it, and sums over rings."""

import pytest
import torch
from commands import needs_tools
from torch import nn
from torch_spyre import _C
from torch_spyre.predict import ModelError, cli, models, predict
from torch_spyre.predict.cards import CARD_LINKS, AllReduce, Cards

pytestmark = needs_tools

WIDTH, HEADS, HEAD = 256, 4, 64


class Block(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.qkv = nn.ModuleDict(
            {n: nn.Linear(WIDTH, HEADS * HEAD, bias=bias) for n in "qkv"}
        )
        self.out = nn.Linear(HEADS * HEAD, WIDTH, bias=bias)
        self.up = nn.Linear(WIDTH, 1024, bias=bias)
        self.down = nn.Linear(1024, WIDTH, bias=bias)

    def forward(self, x):
        q, k, v = (
            self.qkv[n](x).unflatten(-1, (-1, HEAD)).transpose(1, 2) for n in "qkv"
        )
        attended = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(torch.relu(self.up(x)))


class Blocks(nn.Module):
    _tp_plan = {  # noqa: RUF012
        "embedding": "embedding_rowwise",
        "blocks.*.qkv.q": "colwise",
        "blocks.*.qkv.k": "colwise",
        "blocks.*.qkv.v": "colwise",
        "blocks.*.out": "rowwise",
        "blocks.*.up": "colwise",
        "blocks.*.down": "rowwise",
    }

    def __init__(self, count=3, bias=False):
        super().__init__()
        self.embedding = nn.Embedding(131, WIDTH)
        self.blocks = nn.ModuleList(Block(bias) for _ in range(count))

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return x


def numbers(**changed):
    return {**_C.device_spec(), **changed}


def prefill(cards, **more):
    result = predict(Blocks().half(), batch=2, prompt=64, cards=cards, **more)
    return result["phases"]["prefill"]


def cost(phase):
    """All that programs cost, sums over cards left out."""
    return phase["predicted_seconds"] - phase["communication_seconds"]


def test_one_card_is_what_it_was():
    plain = predict(Blocks(), batch=2, prompt=64)
    one = predict(Blocks(), batch=2, prompt=64, cards=1, machines=1, tensor_parallel=1)
    assert one == plain
    assert one["phases"]["prefill"]["communication_seconds"] == 0.0
    assert CARD_LINKS not in one["phases"]["prefill"]["seconds_by_bottleneck"]


@pytest.mark.parametrize("bias", [False, True])
def test_each_card_computes_its_part(bias):
    one, four = (
        predict(Blocks(bias=bias).half(), batch=2, prompt=64, cards=n)["phases"][
            "prefill"
        ]
        for n in (1, 4)
    )
    # All products are divided; what is not divided multiplies nothing.
    assert four["pt_macs"] * 4 == one["pt_macs"]
    kernels = [
        k for p in four["parts"] for k in p["kernels"] * p["count"] if not k["cores"]
    ]
    assert [k["name"] for k in kernels] == ["all_reduce"] * 6
    size = 2 * 64 * WIDTH * 2
    expected = 6 * AllReduce(size).seconds(Cards(4, 1, 4), numbers())
    assert four["communication_seconds"] == pytest.approx(expected, rel=1e-12)
    assert four["interval_seconds"][0] > four["communication_seconds"]
    # A block is cut behind both sums.
    assert four["num_programs"] == one["num_programs"] + 6
    assert not four["on_host"]


def test_the_module_stays_as_it_was():
    module = Blocks()
    predict(module, prompt=64, cards=4)
    assert module.blocks[0].down.weight.shape == (WIDTH, 1024)
    assert module(torch.zeros(1, 2, dtype=torch.int64)).shape == (1, 2, WIDTH)


def test_sums_without_latency_and_with_fast_links():
    free = {
        "cardLinkSeconds": 0.0,
        "cardLinkBytesPerSecond": 1e30,
    }
    phase = prefill(4, device=free)
    assert phase["communication_seconds"] == pytest.approx(0, abs=1e-20)
    slow = prefill(4)
    assert cost(slow) == pytest.approx(cost(phase), rel=1e-12)
    size = 2 * 64 * WIDTH * 2
    only_latency = prefill(4, device={"cardLinkBytesPerSecond": 1e30})
    assert only_latency["communication_seconds"] == pytest.approx(
        6 * 6 * numbers()["cardLinkSeconds"], rel=1e-9
    )
    only_bytes = prefill(4, device={"cardLinkSeconds": 0.0})
    assert only_bytes["communication_seconds"] == pytest.approx(
        6 * 2 * 3 / 4 * size / numbers()["cardLinkBytesPerSecond"], rel=1e-9
    )


def test_ring():
    links = numbers(cardLinkBytesPerSecond=2e9, cardLinkSeconds=1e-3)
    total = AllReduce(8_000_000)
    assert total.seconds(Cards(), links) == 0
    assert total.seconds(Cards(2, 1, 2), links) == pytest.approx(2e-3 + 4e-3)
    assert total.seconds(Cards(8, 1, 8), links) == pytest.approx(14e-3 + 7e-3)
    # Copies in one machine have rings of their own.
    assert total.seconds(Cards(8, 4, 2), links) == pytest.approx(2e-3 + 4e-3)
    links |= {"machineLinkBytesPerSecond": 1e9, "machineLinkSeconds": 5e-3}
    assert total.seconds(Cards(1, 2, 2), links) == pytest.approx(10e-3 + 8e-3)
    assert total.seconds(Cards(8, 2, 16), links) == pytest.approx(39e-3)


class Cached(nn.Module):
    """Updates a cache, then sums over the cards."""

    _tp_plan = {"layers.*.up": "colwise", "layers.*.down": "rowwise"}  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Module() for _ in range(2))
        for layer in self.layers:
            layer.up, layer.down = nn.Linear(64, 256), nn.Linear(256, 64)
            layer.forward = self.step.__get__(layer)

    @staticmethod
    def step(layer, x, cache, position):
        cache.index_copy_(1, position, x)
        x = x + cache.sum(1, keepdim=True)
        return x + layer.down(torch.relu(layer.up(x)))

    def forward(self, x, position, *caches):
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer(x, cache, position)
        return x


def test_a_cache_is_updated_before_the_sum():
    model = models.from_module(Cached().half())
    model.inputs = lambda batch, query, context: (
        torch.empty(batch, query, 64, dtype=torch.float16, device="meta"),
        torch.empty(1, dtype=torch.int64, device="meta"),
        *[torch.empty(batch, context, 64, dtype=torch.float16, device="meta")] * 2,
    )
    for cards in (1, 2):
        phase = predict(model, context=4096, phases=["decode"], cards=cards)["phases"]
        # A cache that is copied is written as a whole.
        assert phase["decode"]["bytes"]["device_memory_written"] < 4096 * 128


def test_copies_divide_the_batch():
    one = predict(Blocks(), batch=1, prompt=64)
    copies = predict(
        Blocks(), batch=8, prompt=64, cards=4, machines=2, tensor_parallel=1
    )
    assert copies["copies"] == 8
    assert copies["phases"] == one["phases"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cards": 0}, "cards: 0 is not positive"),
        ({"machines": 0}, "machines: 0 is not positive"),
        ({"cards": 9}, r"cards: a machine has at most 8 \(numCardsPerSystem\), not 9"),
        ({"cards": 2, "tensor_parallel": 0}, "tensor_parallel: 0 is not positive"),
        (
            {"cards": 4, "machines": 3, "tensor_parallel": 8},
            "tensor_parallel: 3 x 4 cards cannot be divided into groups of 8",
        ),
        ({"cards": 2, "tensor_parallel": 1, "batch": 3}, "batch: 3 cannot be divided"),
        ({"cards": 3}, "Blocks: blocks.0.qkv.q: 256 outputs cannot be divided over 3"),
        ({"cards": 8}, "Blocks: what one of 8 cards computes of it cannot be traced"),
    ],
)
def test_what_cannot_be_divided(arguments, message):
    with pytest.raises(ValueError, match=message):
        predict(Blocks(), **{"batch": 2, "prompt": 64, **arguments})


@pytest.mark.parametrize(
    "name", ["cardLinkBytesPerSecond", "machineLinkBytesPerSecond"]
)
def test_a_link_without_bandwidth(name):
    with pytest.raises(ValueError, match=f"{name} must be finite and positive"):
        prefill(2, device={name: 0.0})


def test_models_that_have_no_plan():
    with pytest.raises(ModelError, match="Sequential: has no plan for tensor parallel"):
        predict(nn.Sequential(nn.Embedding(9, 64)), prompt=4, cards=2)
    packed = Blocks()
    packed._tp_plan = {"blocks.*.up": "packed_colwise"}
    with pytest.raises(ModelError, match=r"blocks\.0\.up: no prediction for a Linear"):
        predict(packed, prompt=4, cards=2)


def test_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("torch_spyre.predict.models.load", lambda name: MODEL)
    assert cli.main(["--model=m", "--prompt=64", "--cards=2", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "1 x the model, each on 2 of 1 x 2 cards" in said
    assert cli.main(["--model=m", "--prompt=64", "--cards=3", "--quiet"]) == 1
    assert "spyre-predict: error: Blocks: blocks.0.qkv.q" in capsys.readouterr().err
    graph = tmp_path / "graph.mlir"
    graph.write_text("")
    assert cli.main([f"--model={graph}", "--cards=2", "--quiet"]) == 1
    assert "a program is for one card" in capsys.readouterr().err


MODEL = models.from_module(Blocks())


class TestTransformers:
    """Configurations, where transformers is installed."""

    TINY = {  # noqa: RUF012
        "model_type": "granite",
        "num_hidden_layers": 3,
        "hidden_size": 256,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "intermediate_size": 512,
        "vocab_size": 131,
    }

    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch):
        pytest.importorskip("transformers")
        monkeypatch.setitem(models.PRESETS, "tiny", self.TINY)

    def test_heads_and_columns_are_divided(self):
        one, two = (predict("tiny", batch=2, prompt=64, cards=n) for n in (1, 2))
        for phase, tokens in (("prefill", 64), ("decode", 1)):
            whole, part = one["phases"][phase], two["phases"][phase]
            last = 2 * 256 * 131  # the last product, which every card computes
            assert (part["pt_macs"] - last) * 2 == whole["pt_macs"] - last
            expected = 6 * AllReduce(2 * tokens * 256 * 2).seconds(
                Cards(2, 1, 2), numbers()
            )
            assert part["communication_seconds"] == pytest.approx(expected, rel=1e-12)
        assert two["tokens_per_second"] == 2 / two["time_per_token_seconds"]

    def test_key_value_heads_are_not_divided_further(self):
        message = "tiny: num_key_value_heads: 2 heads cannot be divided over 4 cards"
        with pytest.raises(ModelError, match=message):
            predict("tiny", cards=4)
