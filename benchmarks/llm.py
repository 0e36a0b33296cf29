# SPDX-License-Identifier: Apache-2.0
"""A stock Llama with its growing cache: compiled, operator by operator, on the CPU.

The model has the shape of TinyLlama (1.1 billion parameters, random weights, fp16), or,
unless ``--whole``, of its first 4 layers. All run in turns in one process, so that a
busy machine slows all of them; the CPU's dtype is the one of its fastest decode step.
How long ``model.to("spyre")`` takes is compared with a copy of the weights. Decode
steps are at lengths that the programs have not met. The first token is that of
a prompt, with an empty cache of programs on disk, and again with what that has then.
With ``--whole``, two more processes say how much memory one takes beyond the weights,
and beyond what it took before the model was made, after prompts and decode steps.
Without ``transformers``, which ``make models`` installs, nothing is measured.

With ``--bf16-weights`` the weights are numbers of bf16, as those of most checkpoints.

usage: llm.py [--whole] [--bf16-weights] [--steps N] [--rounds N] [--profile]
"""

from __future__ import annotations

import argparse
import copy
import cProfile
import importlib.util
import multiprocessing
import os
import pstats
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
from large import status
from ratios import Ratios
from torch._inductor.utils import fresh_cache
from torch_spyre.compile_backend import compiled_parts
from torch_spyre.frontend import cache

LAYERS, ALL_LAYERS = 4, 22
VOCABULARY = 32000
PROMPTS = (64, 512)
#: Seconds that the first token may take without and with programs on disk.
COLD, WARM = 15, 3
#: Memory beyond the weights, as a part of them.
MEMORY = 0.15
MEMORY_STEPS = 30
#: Decode steps of one runner before the next one's turn.
STEPS_IN_TURN = 8
#: Loads of the weights, and copies of them on the host, in turns.
LOADS = 6


def make_model(layers: int, *, has_bf16_weights: bool = False) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=2048,
        intermediate_size=5632,
        num_hidden_layers=layers,
        num_attention_heads=32,
        num_key_value_heads=4,
        vocab_size=VOCABULARY,
        max_position_embeddings=2048,
    )
    torch.set_default_dtype(torch.float16)
    model = LlamaForCausalLM(config).eval()
    torch.set_default_dtype(torch.float32)
    return model.bfloat16().half() if has_bf16_weights else model


class Runner:
    """A model on a device, with the cache of one text."""

    def __init__(self, step: Callable[..., Any], config: Any, device: str) -> None:
        self.step, self.config, self.device = step, config, device
        self.cache: Any = None

    def feed(self, ids: torch.Tensor, *, is_new: bool) -> float:
        """Seconds until the logits of the last token are on the host."""
        from transformers import DynamicCache

        if is_new:
            self.cache = DynamicCache(config=self.config)
        start = time.perf_counter()
        result = self.step(
            input_ids=ids.to(self.device),
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        result.logits.float().cpu()
        return time.perf_counter() - start


def ids_of(count: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, VOCABULARY, (1, count), generator=generator)


def fastest_on_cpu(model: Any) -> tuple[str, Runner]:
    """The dtype in which a decode step takes the least time."""
    found = []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        runner = Runner(copy.deepcopy(model).to(dtype), model.config, "cpu")
        runner.feed(ids_of(8, 1), is_new=True)
        times = [runner.feed(ids_of(1, n), is_new=False) for n in range(4)]
        found.append((min(times), str(dtype).removeprefix("torch."), runner))
        if len(found) > 1:
            # One copy of the weights at a time, and the best one.
            found = [min(found, key=lambda entry: entry[0])]
    return found[0][1], found[0][2]


def prompt_in_turns(runners: dict[str, Runner], ids: torch.Tensor) -> dict[str, float]:
    """Seconds of each for a prompt."""
    return {name: r.feed(ids, is_new=True) for name, r in runners.items()}


def steps_in_turns(runners: dict[str, Runner], first: int) -> dict[str, float]:
    """Seconds of each for a decode step, the median of some that follow each other.

    The first of them is not counted: threads of the runner before still wait for work
    then, without sleeping.
    """
    return {
        name: statistics.median(
            [
                runner.feed(ids_of(1, first + n), is_new=False)
                for n in range(STEPS_IN_TURN)
            ][1:]
        )
        for name, runner in runners.items()
    }


def medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}


def first_token(step: Callable[..., Any], config: Any) -> float:
    """Seconds to the first token of a prompt if nothing is compiled in memory."""
    torch._dynamo.reset()
    cache.forget_loaded()
    runner = Runner(step, config, "spyre")
    return runner.feed(ids_of(PROMPTS[0] - 1, 3), is_new=True)


def measure_memory(folder: str, results: Any) -> None:
    """In a process of its own: bytes beyond the weights, over those of the weights.

    Programs, and what PyTorch traces, are in ``folder`` and its like.
    """
    os.environ["SPYRE_CACHE_DIR"] = folder
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(folder, "traced")
    from transformers import DynamicCache, LlamaForCausalLM  # noqa: F401

    before = status("VmRSS")
    with torch.no_grad():
        model = make_model(ALL_LAYERS).to("spyre")
        weights = sum(p.nbytes for p in model.parameters())
        step = torch.compile(model, backend="spyre")
        runner = Runner(step, model.config, "spyre")
        for number, length in enumerate((*PROMPTS, PROMPTS[0])):
            runner.feed(ids_of(length, number), is_new=True)
        for number in range(MEMORY_STEPS):
            runner.feed(ids_of(1, number), is_new=False)
    results.put((status("VmRSS") - before - weights) / weights)


def add_memory(found: Ratios) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("cold", "warm"):
            process = context.Process(target=measure_memory, args=(folder, results))
            process.start()
            process.join()
            if process.exitcode:
                raise SystemExit("the process whose memory is measured failed")
            share = results.get()
            print(f"memory beyond the weights, {name}: {100 * share:.1f} %")
            found.add(
                f"memory beyond the weights, {name} / {MEMORY:.0%}", share / MEMORY, 1
            )


def add_loading(found: Ratios, model: Any) -> None:
    """Time of ``model.to("spyre")`` over that of a copy of the weights on the host.

    In memory that the process has used before: the first round is not counted.
    """
    weights = [p.detach() for p in model.parameters()]
    copies = [torch.empty_like(weight) for weight in weights]
    each = []
    for _ in range(LOADS):
        start = time.perf_counter()
        for target, weight in zip(copies, weights, strict=True):
            target.copy_(weight)
        copied = time.perf_counter() - start
        loaded = copy.deepcopy(model)
        start = time.perf_counter()
        loaded.to("spyre")
        torch.spyre.synchronize()
        each.append((time.perf_counter() - start) / copied)
        del loaded
    each = each[1:]
    found.add("loading / copying", statistics.median(each), 2, repeated=each)


def speedup(found: Ratios, name: str, rounds: list[dict[str, float]], by: str) -> None:
    """How many times as fast compiled code is as ``by``."""
    each = [r[by] / r["compiled"] for r in rounds]
    found.add(name, statistics.median(each), at_least=True, repeated=each)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--bf16-weights", action="store_true")
    parser.add_argument("--steps", type=int, default=256)
    parser.add_argument(
        "--rounds", type=int, default=4, help="of a prompt; the first is not counted"
    )
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if importlib.util.find_spec("transformers") is None:
        print("transformers is not installed: nothing is measured")
        return Ratios().finish()
    layers = ALL_LAYERS if options.whole else LAYERS
    found = Ratios()
    if options.whole:
        add_memory(found)
    with torch.no_grad():
        model = make_model(layers, has_bf16_weights=options.bf16_weights)
        add_loading(found, model)
        dtype, on_cpu = fastest_on_cpu(model)
        device = model.to("spyre")
        runners = {
            "compiled": Runner(
                torch.compile(device, backend="spyre"), model.config, "spyre"
            ),
            "eager": Runner(device, model.config, "spyre"),
            "CPU": on_cpu,
        }
        print(f"{layers} layers, the CPU in {dtype}; seconds")
        print(f"{'':<24}" + "".join(f"{name:>12}" for name in runners))

        def show(name: str, times: dict[str, float]) -> None:
            print(f"{name:<24}" + "".join(f"{t:>12.4f}" for t in times.values()))

        with fresh_cache():
            for name, most in (("cold", COLD), ("warm", WARM)):
                seconds = first_token(runners["compiled"].step, model.config)
                found.add(f"first token, {name} / {most} s", seconds / most, 1)
        for length in PROMPTS:
            rounds = [
                prompt_in_turns(runners, ids_of(length, n))
                for n in range(options.rounds)
            ][1:]
            show(f"prompt of {length}", medians(rounds))
            speedup(found, f"prompt of {length}: compiled / CPU", rounds, "CPU")
            speedup(found, f"prompt of {length}: compiled / eager", rounds, "eager")
        before = len(compiled_parts())
        prompt_in_turns(runners, ids_of(PROMPTS[0], 4))
        rounds = [
            steps_in_turns(runners, first)
            for first in range(0, options.steps, STEPS_IN_TURN)
        ][1:]
        programs = len(compiled_parts()) - before
        show("decode step", medians(rounds))
        speedup(found, "decode: compiled / CPU", rounds, "CPU")
        speedup(found, "decode: compiled / eager", rounds, "eager")
        found.add(f"programs of {options.steps} decode steps", programs, 3)
        if options.profile:
            profile = cProfile.Profile()
            profile.enable()
            for n in range(32):
                runners["compiled"].feed(ids_of(1, n), is_new=False)
            profile.disable()
            pstats.Stats(profile).sort_stats("tottime").print_stats(14)
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
