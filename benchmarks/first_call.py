# SPDX-License-Identifier: Apache-2.0
"""The first call of a compiled model: our backend against Inductor on the CPU.

Both compile the same fp16 graph with empty caches, each in a process of its own: a copy
of one that has imported what compiling needs. First both compile a trivial function,
which imports the rest, and lets Inductor look at the machine and precompile its
headers. Own time is what a backend spends on the graphs that Dynamo and AOTAutograd
give it; the total is the first call without the execution, that is without the time of
another call. A second process finds the programs of the first one on disk; its own time
is in seconds.

What decides is processor time, of all threads and of the C++ compilers that Inductor
starts: it changes little when others use the machine. Seconds are printed beside it.
Exits with 1 when a ratio is over its limit.

usage: first_call.py [GRAPH ...] [--rounds N]
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import statistics
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))

OWN_LIMIT, TOTAL_LIMIT = 0.2, 0.5
#: Processor seconds of own time in a process that finds its programs on disk.
CACHED_LIMIT = 0.5


class MambaBlock(nn.Module):
    """A selective state space block, its scan a loop over the tokens."""

    def __init__(self, width: int = 256, states: int = 16) -> None:
        super().__init__()
        inner, rank = 2 * width, width // 16
        self.states, self.rank = states, rank
        self.norm = nn.RMSNorm(width)
        self.split = nn.Linear(width, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, 4, groups=inner, padding=3)
        self.selection = nn.Linear(inner, rank + 2 * states, bias=False)
        self.step = nn.Linear(rank, inner)
        self.decay = nn.Parameter(torch.rand(inner, states))
        self.skip = nn.Parameter(torch.ones(inner))
        self.output = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[batch, tokens, width]`` to the same."""
        tokens = x.shape[1]
        y, gate = self.split(self.norm(x)).chunk(2, dim=-1)
        y = self.conv(y.transpose(1, 2))[..., :tokens]
        y = nn.functional.silu(y).transpose(1, 2)
        step, write, read = self.selection(y).split(
            [self.rank, self.states, self.states], dim=-1
        )
        step = nn.functional.softplus(self.step(step))
        kept = torch.exp(-torch.exp(self.decay) * step[..., None])
        written = step[..., None] * write[:, :, None, :] * y[..., None]
        state = torch.zeros_like(kept[:, 0])
        results = []
        for t in range(tokens):
            state = kept[:, t] * state + written[:, t]
            results.append((state * read[:, t, None, :]).sum(-1))
        y = torch.stack(results, dim=1) + y * self.skip
        return x + self.output(y * nn.functional.silu(gate))


class ViT(nn.Module):
    """A vision transformer: patches, a class token, encoder layers, a head."""

    def __init__(self, width: int = 192, layers: int = 12, patch: int = 16) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.label = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (224 // patch) ** 2 + 1, width))
        self.layers = nn.Sequential(
            *(
                nn.TransformerEncoderLayer(
                    width,
                    3,
                    4 * width,
                    activation="gelu",
                    batch_first=True,
                    norm_first=True,
                )
                for _ in range(layers)
            )
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images ``[batch, 3, 224, 224]`` to logits ``[batch, 1000]``."""
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.label.expand(x.shape[0], -1, -1), x), dim=1)
        return self.head(self.norm(self.layers(x + self.positions))[:, 0])


def half(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes).half()


def llama(layers: int) -> tuple[nn.Module, tuple[Any, ...]]:
    from models import Llama, LlamaConfig

    config = LlamaConfig(layers=layers)
    model = Llama(config).half()
    cache = model.make_cache(1, half(1))
    return model, (torch.arange(16)[None], torch.arange(16), cache)


def encoder_layer() -> tuple[nn.Module, tuple[Any, ...]]:
    return nn.TransformerEncoderLayer(512, 8, batch_first=True).half(), (
        half(1, 128, 512),
    )


def convolutions() -> tuple[nn.Module, tuple[Any, ...]]:
    layers = (
        nn.Conv2d(3, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1),
        nn.ReLU(),
    )
    return nn.Sequential(*layers).half(), (half(1, 3, 64, 64),)


GRAPHS: dict[str, Callable[[], tuple[nn.Module, tuple[Any, ...]]]] = {
    "encoder layer": encoder_layer,
    "two convolutions": convolutions,
    "Mamba block": lambda: (MambaBlock().half(), (half(1, 32, 256),)),
    "Llama of 40 blocks": lambda: llama(40),
    "ViT of 12 layers": lambda: (ViT().half(), (half(1, 3, 224, 224),)),
}


def processor_seconds() -> float:
    """Of this process, all its threads, and the processes that it waited for."""
    used = [
        resource.getrusage(who)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    return sum(u.ru_utime + u.ru_stime for u in used)


class Times:
    """Processor and wall seconds spent inside; nested calls count once."""

    def __init__(self) -> None:
        self._is_inside = False
        self.forget()

    def forget(self) -> None:
        self.processor = self.wall = 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        if self._is_inside:
            yield
            return
        self._is_inside = True
        processor, wall = processor_seconds(), time.perf_counter()
        try:
            yield
        finally:
            self.processor += processor_seconds() - processor
            self.wall += time.perf_counter() - wall
            self._is_inside = False

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.counted():
                return function(*args, **kwargs)

        return call


def count_own_time(own: Times) -> None:
    """``own`` counts, from now on, what our backend does after AOT but execution."""
    from torch_spyre import compile_backend
    from torch_spyre.frontend import graph, parts, traced

    compiler_of = compile_backend._compiler

    def counted_compiler(*args: Any) -> Any:
        # PyTorch keeps what a compiler of its class returns, so this remains one.
        compiler = compiler_of(*args)
        if not hasattr(compiler, "compiler_fn"):
            return own.around(compiler)
        compiler.compiler_fn = own.around(compiler.compiler_fn)
        return compiler

    compile_backend._compiler = counted_compiler
    for holder, name in (
        (traced.TracedGraph, "post_compile"),
        (graph.CompiledFunction, "_make_plan"),
        (graph.CompiledFunction, "_make_sized_plan"),
        (parts.CompiledStep, "_compile_or_split"),
    ):
        setattr(holder, name, own.around(getattr(holder, name)))


def backend_of(side: str, own: Times) -> Any:
    """What torch.compile takes as backend; ``own`` counts what it does after AOT."""
    if side == "inductor":
        from torch._inductor import compile_fx

        inner = own.around(compile_fx.compile_fx_inner)
        return lambda gm, inputs: compile_fx.compile_fx(gm, inputs, inner_compile=inner)
    count_own_time(own)
    return "spyre"


def to_device(value: Any, device: str) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(to_device(v, device) for v in value)
    return value.to(device)


def measure(name: str, side: str) -> dict[str, float]:
    """One first call in this process."""
    torch.backends.mha.set_fastpath_enabled(False)
    own = Times()
    backend = backend_of(side, own)
    device = "spyre" if side == "spyre" else "cpu"
    with torch.no_grad():
        trivial = torch.compile(lambda x: x * 2 + 1, backend=backend, dynamic=False)
        trivial(half(64).to(device))
        torch.manual_seed(0)
        model, inputs = GRAPHS[name]()
        model.eval().to(device)
        inputs = to_device(inputs, device)
        torch._dynamo.reset()
        own.forget()
        total, execution = Times(), Times()
        compiled = torch.compile(model, backend=backend, dynamic=False)
        for times in (total, execution):
            with times.counted():
                compiled(*inputs)
                if side == "spyre":
                    torch.spyre.synchronize()
    return {
        "own": own.processor,
        "own_wall": own.wall,
        "total": total.processor - execution.processor,
        "total_wall": total.wall - execution.wall,
    }


#: What the trivial function would import with either backend. What else a graph needs
#: counts.
IMPORTED = (
    "functorch.compile",
    "torch._dynamo.repro.after_dynamo",
    "torch._inductor.scheduler",
    "torch.export._trace",
    "torch_spyre.compile_backend",
    "torch_spyre.frontend.eager",
)


def import_all() -> None:
    """The processes that measure are copies of this one, which only imports."""
    # numpy's pool of threads does not outlive a copy.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    warnings.simplefilter("ignore")
    for name in IMPORTED:
        importlib.import_module(name)


def in_process(name: str, side: str, caches: Path) -> dict[str, float]:
    """What a copy of this process measures."""
    result = caches / "result.json"
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        status = 1
        try:
            os.environ["SPYRE_CACHE_DIR"] = str(caches / "spyre")
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(caches / "inductor")
            result.write_text(json.dumps(measure(name, side)))
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            # The folder is the first process's to remove.
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if status:
        raise RuntimeError(f"{name} on {side}: exit status {status}")
    return json.loads(result.read_text())


def compare(found: Any, name: str, rounds: int) -> None:
    """Inductor once, ourselves in each round."""
    runs: dict[str, list[dict[str, float]]] = {}

    def run(kind: str, side: str, caches: str) -> None:
        of = in_process(name, side, Path(caches))
        runs.setdefault(kind, []).append(of)
        columns = "".join(f"{of[key]:>12.3f}" for key in COLUMNS)
        print(f"{name:<22}{kind:<10}{columns}", flush=True)

    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            run("spyre", "spyre", folder)
            if number == 0:
                run("inductor", "inductor", folder)
            run("cached", "spyre", folder)
    for what, limit in (("own", OWN_LIMIT), ("total", TOTAL_LIMIT)):
        ratios = [of[what] / runs["inductor"][0][what] for of in runs["spyre"]]
        title = f"first call, {name}: {what} / Inductor's"
        found.add(title, statistics.median(ratios), limit, repeated=ratios)
    seconds = [of["own"] for of in runs["cached"]]
    title = f"second process, {name}: own processor seconds"
    found.add(title, statistics.median(seconds), CACHED_LIMIT, repeated=seconds)


COLUMNS = ("own", "own_wall", "total", "total_wall")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="*", help=f"of {', '.join(GRAPHS)}")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    if unknown := [name for name in options.graphs if name not in GRAPHS]:
        parser.error(f"no graph {', '.join(unknown)}")
    import_all()
    from ratios import Ratios

    found = Ratios()
    print(f"{'seconds':<32}" + "".join(f"{c.replace('_', ' '):>12}" for c in COLUMNS))
    for name in options.graphs or GRAPHS:
        compare(found, name, options.rounds)
    return found.finish()


if __name__ == "__main__":
    sys.exit(main())
