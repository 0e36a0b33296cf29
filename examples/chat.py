# SPDX-License-Identifier: Apache-2.0
"""Continue a prompt with a causal language model compiled for Spyre.

Without --model it is a small Llama over bytes with random weights, which answers
nonsense; with it, a folder with a checkpoint of transformers, which must be installed.
Tokens are printed as they come, up to the first that the model ends with; then how many
there were per second, here and, as predicted, on the card. The prediction is of the
card's programs alone, as if the host were never late.
"""

from __future__ import annotations

import argparse
import codecs
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from models import Llama, LlamaConfig
from torch_spyre import _C
from torch_spyre.compile_backend import compiled_parts
from torch_spyre.profiler import Kernel

#: Takes ids [1, tokens] on the device; gives the logits after the last one.
Step = Callable[[torch.Tensor], torch.Tensor]

_WIDTH = 24

#: Weights of a checkpoint, in one file or in several.
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


class ChatError(Exception):
    """What the user can mend; its text says how."""


@contextmanager
def progress(text: str) -> Iterator[None]:
    """A bar on the terminal while something is compiled: nobody knows how long."""
    start = time.perf_counter()
    before = len(compiled_parts())
    done = threading.Event()

    def line(bar: str) -> str:
        programs = len(compiled_parts()) - before
        seconds = time.perf_counter() - start
        return f"{text} [{bar}] {seconds:.1f} s, {programs} programs"

    def draw() -> None:
        place = 0
        while not done.wait(0.1):
            bar = ("." * place + "===").ljust(_WIDTH, ".")[:_WIDTH]
            print(f"\r{line(bar)}", end="", file=sys.stderr, flush=True)
            place = (place + 1) % (_WIDTH - 2)

    thread = threading.Thread(target=draw, daemon=True)
    if sys.stderr.isatty():
        thread.start()
    try:
        yield
    finally:
        done.set()
        if thread.is_alive():
            thread.join()
            print("\r", end="", file=sys.stderr)
        print(line("=" * _WIDTH), file=sys.stderr, flush=True)


class ByteModel:
    """A Llama with random weights, whose tokens are bytes."""

    def __init__(self, room: int) -> None:
        torch.manual_seed(0)
        model = Llama(LlamaConfig(vocabulary=256, max_tokens=room))
        self._model = model.half().to("spyre")
        weight = self._model.embedding.weight
        self._cache = self._model.make_cache(1, weight)
        self._step = torch.compile(self._model, backend="spyre")
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._past = 0

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, token: int) -> str:
        return self._decoder.decode(bytes([token]))

    def is_end(self, token: int) -> bool:
        return False

    def step(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits [vocabulary] after the last of ids [1, tokens]."""
        count = ids.shape[1]
        positions = torch.arange(self._past, self._past + count).to("spyre")
        self._past += count
        return self._step(ids.to("spyre"), positions, self._cache)[0, -1]


def check_checkpoint(folder: Path) -> None:
    """Raises ChatError for a folder without a checkpoint of transformers."""
    if not folder.is_dir():
        raise ChatError(f"{folder} is no folder")
    if not (folder / "config.json").is_file():
        raise ChatError(
            f"{folder} has no config.json: it is no checkpoint of transformers"
        )
    if not any(file for pattern in _WEIGHTS for file in folder.glob(pattern)):
        raise ChatError(f"{folder} has no weights: no file is {' or '.join(_WEIGHTS)}")


def end_tokens(*said: Any) -> frozenset[int]:
    """The tokens that end a text, of all that say so: a number, several, or None."""
    found: set[int] = set()
    for tokens in said:
        if tokens is not None:
            found.update([tokens] if isinstance(tokens, int) else tokens)
    return frozenset(found)


class Checkpoint:
    """A model of transformers from a folder that ``check_checkpoint`` has taken.

    Raises ChatError if transformers is not there or cannot load it.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache
        except ImportError as error:
            raise ChatError(f"a checkpoint needs transformers: {error}") from error
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(
                folder, local_files_only=True
            )
            model = AutoModelForCausalLM.from_pretrained(
                folder, local_files_only=True, dtype=torch.float16
            )
        except (OSError, ValueError) as error:
            raise ChatError(f"transformers cannot load {folder}: {error}") from error
        self._model = model.eval().to("spyre")
        self._ends = end_tokens(
            self._model.generation_config.eos_token_id, self._tokenizer.eos_token_id
        )
        self._cache = DynamicCache(config=self._model.config)
        self._step = torch.compile(self._model, backend="spyre")
        self._tokens: list[int] = []
        self._shown = ""

    def encode(self, text: str) -> list[int]:
        return self._tokenizer(text)["input_ids"]

    def decode(self, token: int) -> str:
        """What a token adds: the text of several is not that of each."""
        self._tokens.append(token)
        text = self._tokenizer.decode(self._tokens)
        # A character of several tokens is not whole yet.
        if text.endswith("\N{REPLACEMENT CHARACTER}"):
            return ""
        new, self._shown = text[len(self._shown) :], text
        return new

    def is_end(self, token: int) -> bool:
        return token in self._ends

    def step(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits [vocabulary] after the last of ids [1, tokens]."""
        result = self._step(
            input_ids=ids.to("spyre"),
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return result.logits[0, -1]


def choose(logits: torch.Tensor, temperature: float) -> int:
    """The likeliest token, or one by chance.

    A token whose logit is minus infinity is never chosen. Raises ChatError if others
    are not finite, or none is: then no token is likelier than another.
    """
    largest = logits.max()
    if not largest.isfinite():
        bad = int((~logits.isfinite()).sum())
        raise ChatError(
            f"the model gives no next token: {bad} of its {logits.numel()} logits are "
            "NaN or infinite, as they are when its weights are, or when values on the "
            "way are too large for fp16"
        )
    if temperature == 0:
        return int(logits.argmax())
    # What is small next to the largest vanishes, however low the temperature is.
    odds = torch.softmax((logits.double() - largest.double()) / temperature, -1)
    return int(torch.multinomial(odds, 1))


def card_seconds(kernels: Iterable[Kernel]) -> float:
    """What the card is predicted to take for kernels that ran one after the other.

    Launches of their programs count, waits of the card for the host do not.
    """
    launch = _C.device_spec()["launchSeconds"]
    assert isinstance(launch, float)
    seconds, end = 0.0, float("-inf")
    for kernel in sorted(kernels, key=lambda kernel: kernel.start_seconds):
        # Kernels of one program follow each other without a gap.
        if kernel.start_seconds - end > launch / 2:
            seconds += launch
        seconds += kernel.predicted_seconds
        end = kernel.start_seconds + kernel.predicted_seconds
    return seconds


def timed(step: Step, ids: list[int]) -> tuple[torch.Tensor, float]:
    """Logits on the host, and the seconds that the card is predicted to take."""
    with torch.spyre.profiler.profile() as profile:
        logits = step(torch.tensor([ids]))
    return logits.cpu(), card_seconds(profile.kernels)


@dataclass
class Speed:
    """Of the steps that compiled nothing: the others do not take what the next will."""

    steps: int = 0
    here: float = 0.0  # seconds
    card: float = 0.0  # seconds, predicted


def answer(
    model: ByteModel | Checkpoint,
    logits: torch.Tensor,
    count: int,
    temperature: float,
    speed: Speed,
) -> Iterator[int]:
    """Up to ``count`` tokens after ``logits`` [vocabulary], without one that ends."""
    for number in range(count):
        token = choose(logits, temperature)
        if model.is_end(token):
            return
        yield token
        if number == count - 1:
            return
        programs = len(compiled_parts())
        start = time.perf_counter()
        logits, predicted = timed(model.step, [token])
        if len(compiled_parts()) == programs:
            speed.steps += 1
            speed.here += time.perf_counter() - start
            speed.card += predicted


def per_second(count: int, seconds: float) -> str:
    return f"{count / seconds:.1f}" if seconds > 0 else "?"


def chat(options: argparse.Namespace) -> None:
    """Prints the prompt, what the model makes of it, and the speed."""
    model: ByteModel | Checkpoint
    if options.model is None:
        length = len(options.prompt.encode())
        model = ByteModel(length + options.tokens)
    else:
        model = Checkpoint(options.model)
    torch.manual_seed(0)
    # Ids fit into 32 bits.
    warnings.filterwarnings("ignore", message=".*does not support int64")
    speed = Speed()
    ids = model.encode(options.prompt)
    with torch.no_grad():
        with progress("compiling"):
            logits, _ = timed(model.step, ids)
        print(options.prompt, end="", flush=True)
        try:
            for token in answer(
                model, logits, options.tokens, options.temperature, speed
            ):
                print(model.decode(token), end="", flush=True)
        finally:
            print()
    print(
        f"{speed.steps} tokens without compilation; per second: "
        f"{per_second(speed.steps, speed.here)} here, "
        f"{per_second(speed.steps, speed.card)} predicted on the card",
        file=sys.stderr,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("prompt", metavar="PROMPT", help="the text to continue")
    parser.add_argument(
        "--model",
        type=Path,
        metavar="FOLDER",
        help="a checkpoint of transformers (default: a small model of random weights)",
    )
    parser.add_argument(
        "--tokens",
        type=int,
        default=32,
        metavar="N",
        help="how many to add at most (default: 32)",
    )
    parser.add_argument(
        "--temperature",
        type=float,
        default=0.0,
        metavar="T",
        help="0 takes the likeliest token (default), more draws among the likely ones",
    )
    options = parser.parse_args()
    if options.tokens < 1 or not 0 <= options.temperature < float("inf"):
        parser.error("--tokens must be at least 1, --temperature at least 0, finite")
    if not options.prompt:
        parser.error("the prompt is empty")
    try:
        if options.model is not None:
            check_checkpoint(options.model)
    except ChatError as error:
        parser.error(f"--model: {error}")
    try:
        chat(options)
    except ChatError as error:
        print(f"chat.py: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
