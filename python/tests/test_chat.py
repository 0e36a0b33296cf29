# SPDX-License-Identifier: Apache-2.0
"""examples/chat.py: a prompt, streamed tokens, tokens per second."""

import re
import sys
import time
from pathlib import Path

import pytest
import torch
from interpreters import run_main, run_script
from torch_spyre import _C
from torch_spyre.compile_backend import compiled_parts

CHAT = Path(__file__).resolve().parents[2] / "examples" / "chat.py"
sys.path.insert(0, str(CHAT.parent))

import chat  # noqa: E402


def test_continues_a_prompt():
    """The same each time, and one program for all tokens after the prompt."""
    first, again = (run_script(CHAT, "--tokens", "12", "Hello, card") for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("Hello, card")
    assert len(first.stdout.encode()) >= len("Hello, card") + 12
    assert first.stdout == again.stdout
    found = re.search(
        r"(\d+) tokens without compilation; per second: ([\d.]+) here, ([\d.]+)",
        first.stderr,
    )
    assert found, first.stderr
    assert int(found[1]) >= 9 and float(found[2]) > 0 and float(found[3]) > 0
    # The bar, which is drawn once where there is no terminal.
    assert first.stderr.count("compiling [") == 1


def test_refuses_what_it_cannot_do(monkeypatch, capsys, tmp_path):
    bare = tmp_path / "bare"
    without_weights = tmp_path / "without weights"
    for folder in (bare, without_weights):
        folder.mkdir()
    (without_weights / "config.json").write_text("{}")
    for arguments, text in [
        ([""], "the prompt is empty"),
        (["--tokens", "0", "x"], "--tokens must be at least 1"),
        (["--temperature", "-1", "x"], "--temperature at least 0"),
        (["--temperature", "nan", "x"], "--temperature at least 0"),
        (["--temperature", "inf", "x"], "--temperature at least 0, finite"),
        (["--model", "/nowhere", "x"], "/nowhere is no folder"),
        (["--model", bare, "x"], f"{bare} has no config.json"),
        (["--model", without_weights, "x"], f"{without_weights} has no weights"),
    ]:
        status, out, err = run_main(chat, monkeypatch, capsys, *arguments)
        assert (status, out) == (2, ""), arguments
        assert text in err


@pytest.mark.parametrize(
    ("said", "ends"),
    [
        ((None, None), set()),
        ((2, None), {2}),
        ((None, 0), {0}),
        (([7, 9], 2), {2, 7, 9}),
        (([], 2), {2}),
    ],
)
def test_tokens_that_end(said, ends):
    assert chat.end_tokens(*said) == ends


class Scripted:
    """Gives logits [4] one after the other, of which the first follow the prompt."""

    def __init__(self, logits, ends):
        self.logits, self.ends = iter(logits), iter(ends)

    def encode(self, text):
        return [0]

    def decode(self, token):
        return f" {token}"

    def is_end(self, token):
        return next(self.ends)

    def step(self, ids):
        return torch.tensor(next(self.logits))


LIKELY = [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0], [3.0, 0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("count", "ends", "text"),
    [
        (3, [False, False, False], " 1 2 0"),
        (2, [False, False], " 1 2"),
        (3, [False, True, False], " 1"),
        (3, [True, False, False], ""),
        (1, [True], ""),
    ],
)
def test_nothing_follows_the_end(monkeypatch, capsys, count, ends, text):
    """Nor is a token drawn again, that another draw may not end with."""
    model = Scripted(LIKELY, ends)
    monkeypatch.setattr(chat, "ByteModel", lambda room: model)
    status, out, err = run_main(chat, monkeypatch, capsys, "--tokens", count, "x")
    assert (status, out) == (0, f"x{text}\n"), err


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize("temperature", [0, 0.7])
@pytest.mark.parametrize(
    ("logits", "count"),
    [
        ([0.0, NAN, 1.0, 0.0], 1),
        ([INFINITY, 0.0, INFINITY, 0.0], 2),
        ([NAN] * 4, 4),
        ([-INFINITY] * 4, 4),
    ],
)
def test_logits_that_say_nothing(monkeypatch, capsys, logits, count, temperature):
    model = Scripted([LIKELY[0], logits], [False] * 3)
    monkeypatch.setattr(chat, "ByteModel", lambda room: model)
    status, out, err = run_main(
        chat, monkeypatch, capsys, "--temperature", temperature, "x"
    )
    assert (status, out[0], out[-1]) == (1, "x", "\n")
    assert f"chat.py: error: the model gives no next token: {count} of its 4" in err


@pytest.mark.parametrize("temperature", [0, 1e-320, 1e-3, 1e300])
def test_tokens_that_are_never_chosen(temperature):
    """Nor is the likeliest one missed, at any temperature."""
    logits = torch.tensor([-INFINITY, 5.0, 4.0, -INFINITY])
    drawn = {chat.choose(logits, temperature) for _ in range(64)}
    assert drawn == ({1, 2} if temperature > 1 else {1})


def test_predicts_the_card_without_the_host():
    """A step takes what its program takes, launch included, however late the host is."""
    model = chat.ByteModel(8)
    with torch.no_grad():
        for token in b"ab":
            _, seconds = chat.timed(model.step, [token])
    expected = compiled_parts()[-1].graph.predicted_seconds
    assert seconds == pytest.approx(expected, rel=1e-6)


def test_counts_every_launch():
    launch = _C.device_spec()["launchSeconds"]
    x = torch.ones(64, device="spyre") + 1
    with torch.spyre.profiler.profile() as profile:
        for _ in range(3):
            x = x + 1
        torch.spyre.synchronize()
        time.sleep(0.01)
        x = x + 1
    kernels = sum(kernel.predicted_seconds for kernel in profile.kernels)
    seconds = chat.card_seconds(profile.kernels)
    assert len(profile.kernels) == 4
    assert seconds == pytest.approx(kernels + 4 * launch, rel=1e-6)
    assert chat.card_seconds([]) == 0


def test_help_says_what_options_do(monkeypatch, capsys):
    status, out, _ = run_main(chat, monkeypatch, capsys, "--help")
    assert status == 0 and out.count("usage:") == 1
    for text in ("the text to continue", "a checkpoint of", "how many", "likeliest"):
        assert text in out


WORDS = [f"w{number}" for number in range(64)]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A folder with a tiny Llama of random weights over words, which nothing ends."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("checkpoint")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.5,
        bos_token_id=None,
        eos_token_id=None,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    words = {word: number for number, word in enumerate(WORDS)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, "w0"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(
        folder
    )
    return folder


def continue_prompt(monkeypatch, capsys, folder):
    """The tokens that chat.py adds to a prompt."""
    arguments = ("--model", folder, "--tokens", 8, "w3 w4 w5 ")
    status, out, err = run_main(chat, monkeypatch, capsys, *arguments)
    assert status == 0, err
    assert out.startswith("w3 w4 w5 ")
    return [WORDS.index(word) for word in out.split()[3:]]


def test_ends_where_the_checkpoint_says(monkeypatch, capsys, checkpoint):
    """Whatever of its files says it, and in whatever form."""
    import transformers

    tokens = continue_prompt(monkeypatch, capsys, checkpoint)
    assert len(tokens) == 8
    # A token that has not been before.
    place = next(n for n in range(2, 8) if tokens[n] not in tokens[:n])
    unused = next(n for n in range(len(WORDS)) if n not in tokens)
    generation = transformers.GenerationConfig()
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    for said in (tokens[place], [unused, tokens[place]]):
        generation.eos_token_id = said
        generation.save_pretrained(checkpoint)
        assert continue_prompt(monkeypatch, capsys, checkpoint) == tokens[:place]
    generation.eos_token_id = unused
    generation.save_pretrained(checkpoint)
    assert continue_prompt(monkeypatch, capsys, checkpoint) == tokens
    tokenizer.eos_token = WORDS[tokens[place]]
    tokenizer.save_pretrained(checkpoint)
    assert continue_prompt(monkeypatch, capsys, checkpoint) == tokens[:place]


def test_weights_that_cannot_be_loaded(monkeypatch, capsys, checkpoint, tmp_path):
    for file in checkpoint.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "config.json").write_text("{")
    status, out, err = run_main(chat, monkeypatch, capsys, "--model", tmp_path, "x")
    assert (status, out) == (1, "")
    assert f"chat.py: error: transformers cannot load {tmp_path}: " in err
