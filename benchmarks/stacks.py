# SPDX-License-Identifier: Apache-2.0
"""What two public stacks took for an operation, and what our plan is predicted to take.

Where the card's measurements name the stack that ran an operation, plans the same
operation and predicts it, without running it. Times are those of the device's kernels:
neither the profiler of the card nor this table counts launches. A stack's time is the
shortest and the longest that any of its versions took. Models need transformers;
without it their rows have no prediction.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from card import measurements
from torch import nn
from torch_spyre import _C
from torch_spyre.predict import models, predict, simulate

STACKS = ("sendnn", "torch-spyre")
GRANITE = "granite-3.3-8b"
MICROSECONDS = 1e6

#: Operation and all sizes of its operands, as they stand in the rows.
Key = tuple[str, tuple[int, ...]]
#: Shortest and longest time by stack, in microseconds.
Times = dict[str, tuple[float, float]]

#: Stated with the goals of the project, but by no row of the file.
STATED: dict[Key, Times] = {
    ("softmax", (1, 512, 4096)): {"sendnn": (95, 95), "torch-spyre": (101, 517)},
}


class Function(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(*inputs)


def normalize(x: torch.Tensor) -> torch.Tensor:
    return nn.functional.layer_norm(x, x.shape[-1:])


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention of one head per batch."""
    heads = q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0)
    return nn.functional.scaled_dot_product_attention(*heads).squeeze(0)


#: Functions by the name of their operation in the rows, and how many operands they
#: take, of which all but a product's second one have three sizes.
FUNCTIONS: dict[str, tuple[Callable[..., torch.Tensor], tuple[int, ...]]] = {
    "softmax": (lambda x: torch.softmax(x, -1), (3,)),
    "layernorm": (normalize, (3,)),
    "pointwise_add": (torch.add, (3, 3)),
    "matmul": (torch.matmul, (3, 2)),
    "attention": (attend, (3, 3, 3)),
}


@dataclass(frozen=True)
class Step:
    """A step of Granite 3.3 8B as a row names it; `layer` if only one block ran."""

    batch: int
    prompt: int
    phase: str
    layer: bool


#: A microsecond count with the ends of its interval.
Prediction = tuple[float, float, float]


def stack_of(state: str) -> str | None:
    """The stack that a row says it ran on."""
    match = re.match(rf"({'|'.join(STACKS)})\b.* stack|(sendnn)$", state)
    return (match.group(1) or match.group(2)) if match else None


def read(file: Path) -> dict[Key, Times]:
    """Times of the operations that rows of a stack measured. Raises BadData."""
    found: dict[Key, Times] = {key: dict(times) for key, times in STATED.items()}
    for row in measurements.read(file):
        stack = stack_of(row.state)
        if stack is None:
            continue
        key = row.op, tuple(map(int, re.findall(r"\d+", row.shapes)))
        low, high = found.setdefault(key, {}).get(stack, (row.microseconds,) * 2)
        found[key][stack] = min(low, row.microseconds), max(high, row.microseconds)
    return found


def step_of(name: str) -> Step | None:
    """The step of Granite that the name of an operation means."""
    pattern = r"granite_8b bs(\d+)_pl(\d+)_(full_model|one_block)_(prefill|decode)_only"
    match = re.fullmatch(pattern, name)
    if match is None:
        return None
    batch, prompt, part, phase = match.groups()
    return Step(int(batch), int(prompt), phase, part == "one_block")


def without_launches(total: dict[str, Any], programs: int) -> Prediction:
    """The time of the kernels of so many programs."""
    launches = programs * float(_C.device_spec()["launchSeconds"])
    seconds = (total["predicted_seconds"], *total["interval_seconds"])
    low, middle, high = sorted((s - launches) * MICROSECONDS for s in seconds)
    return middle, low, high


class Predictor:
    """Predictions of operations; a model's steps are predicted once."""

    def __init__(self) -> None:
        self.steps: dict[tuple[int, int, str], dict[str, Any]] = {}

    def predict(self, key: Key) -> Prediction | str:
        """The time of an operation, or why there is none."""
        name, sizes = key
        step = step_of(name)
        if step:
            return self.predict_step(step)
        if name.startswith("matmul ") and len(sizes) == 3:
            # One product with its name: rows, columns, and what is summed.
            rows, columns, depth = sizes
            name, sizes = "matmul", (1, rows, depth, depth, columns)
        if name not in FUNCTIONS:
            return "not known here"
        function, ranks = FUNCTIONS[name]
        if sum(ranks) != len(sizes):
            return "other operands"
        shapes, rest = [], list(sizes)
        for rank in ranks:
            shapes.append(rest[:rank])
            rest = rest[rank:]

        def inputs(*_: int) -> tuple[torch.Tensor, ...]:
            return tuple(
                torch.empty(s, dtype=torch.float16, device="meta") for s in shapes
            )

        model = models.Model(name, Function(function), inputs=inputs)
        result = predict(model, batch=1, prompt=1, phases=("prefill",))
        return self.whole(result["phases"]["prefill"])

    def whole(self, phase: dict[str, Any]) -> Prediction | str:
        if phase["on_host"]:
            return f"on the host: {', '.join(phase['on_host'])}"
        return without_launches(phase, phase["num_programs"])

    def predict_step(self, step: Step) -> Prediction | str:
        key = step.batch, step.prompt, step.phase
        if key not in self.steps:
            try:
                result = predict(
                    GRANITE,
                    batch=step.batch,
                    prompt=step.prompt,
                    phases=(step.phase,),
                )
            except models.ModelError as error:
                return str(error)
            self.steps[key] = result["phases"][step.phase]
        phase = self.steps[key]
        if not step.layer:
            return self.whole(phase)
        layer = max(phase["parts"], key=lambda part: part["count"])
        return without_launches(layer, layer["programs"])


def describe(key: Key) -> str:
    name, sizes = key
    step = step_of(name)
    if step is None:
        return f"{name} {'x'.join(map(str, sizes))}"
    part = "a block" if step.layer else "the model"
    sizes = f"batch {step.batch}, prompt {step.prompt}"
    return f"Granite 3.3 8B, {part}: {step.phase}, {sizes}"


def range_text(times: tuple[float, float] | None) -> str:
    if times is None:
        return "-"
    low, high = times
    return f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"


def table(found: dict[Key, Times]) -> list[dict[str, Any]]:
    """Prints a line per operation and returns the same as objects."""
    predictor = Predictor()
    rows: list[dict[str, Any]] = []
    print(
        f"{'operation, times in us':<58}"
        + "".join(f"{stack:>18}" for stack in STACKS)
        + f"{'ours, 8 of 10 cases':>32}{'ours/faster':>13}"
    )
    for key, times in sorted(found.items()):
        prediction = predictor.predict(key)
        line = f"{describe(key):<58}"
        line += "".join(f"{range_text(times.get(stack)):>18}" for stack in STACKS)
        row: dict[str, Any] = {"operation": describe(key), "stacks": times}
        if isinstance(prediction, str):
            print(f"{line}  no prediction: {prediction}")
            rows.append({**row, "no prediction": prediction})
            continue
        middle, low, high = prediction
        fastest = min(low for low, _ in times.values())
        ours = f"{middle:.1f} ({low:.1f} to {high:.1f})"
        print(f"{line}{ours:>32}{middle / fastest:>13.2f}", flush=True)
        rows.append({**row, "predicted": middle, "interval": [low, high]})
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=measurements.FILE)
    parser.add_argument("--json", type=Path, help="write the table here, too")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="the spyre device does not support")
    try:
        rows = table(read(options.data))
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
    except (measurements.BadData, simulate.ToolError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
