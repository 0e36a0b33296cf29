# SPDX-License-Identifier: Apache-2.0
"""The command ``spyre-predict``."""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from typing import Any

from torch_spyre import _C
from torch_spyre.predict import api, models, report, simulate
from torch_spyre.predict.memory import PeakMemory

_EPILOG = """\
models:
  a preset           {presets};
                     needs transformers: pip install transformers
  FILE.json          a configuration of transformers, with its model_type;
                     needs transformers, too
  module:function    a Python function without arguments that returns an nn.Module,
                     or one and a function (batch, query, context) -> inputs;
                     a module without such a function is called with token numbers
                     and has no phase decode
  FILE.pt2           a program of torch.export.save, with its example inputs
  FILE.mlir          a program in spyre_graph
                     (batch, prompt, context and phase say nothing of these two)

device numbers are those of spyre-run --print-device-spec, or {aliases}; values may
end in k, M, G, T (powers of 1000) or Ki, Mi, Gi (powers of 1024).

examples:
  spyre-predict --model granite-3.3-8b --batch 4 --prompt 512 --context 4096
  spyre-predict --model config.json --phase decode --what-if cores=8,16,32 --json -
  spyre-predict --model granite-3.3-8b --batch 8 --cards 8 --machines 2
"""

_FACTORS = {
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
}


def parse_value(text: str) -> float:
    """A number with a unit's prefix."""
    for suffix, factor in _FACTORS.items():
        if text.endswith(suffix):
            return float(text.removesuffix(suffix)) * factor
    return float(text)


def _parse_change(text: str) -> tuple[str, list[float]]:
    name, equals, values = text.partition("=")
    try:
        if not equals:
            raise ValueError
        return name, [parse_value(v) for v in values.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text}: expected NAME=VALUE,VALUE,..."
        ) from None


def _parse_count(text: str) -> int:
    try:
        value = int(text)
        if value < 1:
            raise ValueError
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: expected a count from 1") from None
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="spyre-predict",
        description="Predicts how long a model takes on the card, without running it "
        "and without its weights.",
        epilog=_EPILOG.format(
            presets=", ".join(models.PRESETS), aliases=", ".join(api.ALIASES)
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", required=True, help="what is predicted; see below")
    parser.add_argument(
        "--batch", type=_parse_count, default=1, help="sequences (default: 1)"
    )
    parser.add_argument(
        "--prompt",
        type=_parse_count,
        default=512,
        help="tokens of each prompt (default: 512)",
    )
    parser.add_argument(
        "--context",
        type=_parse_count,
        help="tokens of each sequence that a decoded token sees, itself included "
        "(default: one more than the prompt)",
    )
    parser.add_argument(
        "--phase",
        choices=[*api.PHASES, "both"],
        default="both",
        help="what is predicted: time to first token, time per token (default: both)",
    )
    parser.add_argument(
        "--cores", type=_parse_count, help="cores; work is planned for so many"
    )
    parser.add_argument(
        "--cards",
        type=_parse_count,
        default=1,
        help="cards of each machine (default: 1)",
    )
    parser.add_argument(
        "--machines", type=_parse_count, default=1, help="machines (default: 1)"
    )
    parser.add_argument(
        "--tensor-parallel",
        type=_parse_count,
        metavar="CARDS",
        help="cards that divide the heads and the MLPs of a copy of the model "
        "(default: those of a machine); the copies divide the batch",
    )
    parser.add_argument("--device", metavar="FILE", help="JSON of other device numbers")
    parser.add_argument(
        "--what-if",
        metavar="NAME=V1,V2,..",
        action="append",
        type=_parse_change,
        default=[],
        help="also predict for other values of a device number, and print a table; "
        "several make all combinations",
    )
    parser.add_argument(
        "--per-kernel", action="store_true", help="also print every kernel"
    )
    parser.add_argument(
        "--json", metavar="FILE", help="write all as JSON; - is standard output"
    )
    parser.add_argument(
        "--quiet", action="store_true", help="no progress on standard error"
    )
    return parser


def _format_value(value: float | None) -> str:
    return "as is" if value is None else f"{value:.12g}"


def _format_table(results: list[dict[str, Any]]) -> str:
    names = list(results[-1]["changed"])
    phases = list(results[0]["phases"])
    rows = [[*names, *(f"{p}: time, bound by" for p in phases)]]
    for result in results:
        changed = [_format_value(result["changed"].get(n)) for n in names]
        times = [
            f"{report.time_of(p)}, {p['bottleneck']}" for p in result["phases"].values()
        ]
        if "error" in result:
            times = [result["error"].splitlines()[0], *[""] * (len(phases) - 1)]
        rows.append([*changed, *times])
    return report.table(rows)


def _format_cards(result: dict[str, Any]) -> str:
    text = (
        f"{result['copies']} x the model, each on {result['tensor_parallel']} of "
        f"{result['machines']} x {result['cards']} cards"
    )
    if "tokens_per_second" in result:
        text += f": {result['tokens_per_second']:.1f} tokens per second in all"
    return text


def _run(options: argparse.Namespace) -> dict[str, Any]:
    started = time.perf_counter()

    def progress(text: str) -> None:
        if not options.quiet:
            seconds = time.perf_counter() - started
            print(f"[{seconds:6.1f} s] {text}", file=sys.stderr)

    device = api.load_device(options.device) if options.device else {}
    if options.cores:
        device["numCores"] = options.cores
    phases = list(api.PHASES) if options.phase == "both" else [options.phase]
    changes = dict(options.what_if)
    for name in changes:
        if sum(name == other for other, _ in options.what_if) > 1:
            raise ValueError(f"--what-if {name}: is given twice; separate by commas")
    with PeakMemory() as memory:
        if options.model.endswith(".mlir"):
            if options.cards * options.machines > 1:
                raise ValueError(f"{options.model}: a program is for one card")
            results = api.what_if_mlir(options.model, changes, device=device)
        else:
            results = api.what_if(
                options.model,
                changes,
                batch=options.batch,
                prompt=options.prompt,
                context=options.context or 0,
                phases=phases,
                cards=options.cards,
                machines=options.machines,
                tensor_parallel=options.tensor_parallel,
                device=device,
                progress=progress,
            )
    result = dict(results[0])
    del result["changed"]
    if changes:
        result["what_if"] = results[1:]
    peak = memory.peak_bytes
    seconds = time.perf_counter() - started
    result["host"] = {"seconds": seconds, "peak_bytes": peak}
    progress(f"done, {peak / 2**30:.2f} GiB at most")
    if options.json != "-":
        for name, phase in result["phases"].items():
            print(report.format_phase(name, phase, options.per_kernel))
        if options.cards * options.machines > 1:
            print(_format_cards(result))
        if changes:
            print(_format_table(results))
    return result


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    options = _parser().parse_args(arguments)
    warnings.filterwarnings("ignore", message="the spyre device does not support")
    try:
        result = _run(options)
        if options.json:
            text = json.dumps(result, indent=2) + "\n"
            if options.json == "-":
                sys.stdout.write(text)
            else:
                with open(options.json, "w") as file:
                    file.write(text)
    except (ValueError, OSError, simulate.ToolError, _C.SpyreError) as error:
        print(f"spyre-predict: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
