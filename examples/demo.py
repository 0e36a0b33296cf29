# SPDX-License-Identifier: Apache-2.0
"""The main job: a Llama-style decoder compiled for Spyre.

Prefills a prompt and decodes tokens on the device model, shows the kernels that
ran with predicted time and device-memory traffic, and says how far the logits are
from the same model in fp64 on the CPU.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings

import torch
from models import Llama, LlamaConfig

#: Errors from here on are too large, relative to the root mean square of the logits.
MAX_ERROR = 0.02


def show(text: str) -> None:
    """Prints at once, so that progress is seen as it happens."""
    print(text, flush=True)


def kernel_table(parts: list) -> list[str]:
    """Kernels of all parts by name and bottleneck: calls, predicted time, traffic."""
    rows: dict[tuple[str, str], list[float]] = {}
    for part in parts:
        for kernel in part.report():
            name = kernel["name"].split("_", 1)[-1]
            row = rows.setdefault((name, kernel["bottleneck"]), [0, 0.0, 0, 0])
            row[0] += 1
            row[1] += kernel["predicted_seconds"]
            row[2] += kernel["device_bytes_read"]
            row[3] += kernel["device_bytes_written"]
    lines = [
        f"{'kernel':<24}{'calls':>6}{'predicted us':>14}{'read KiB':>11}"
        f"{'written KiB':>13}  bottleneck"
    ]
    for (name, bottleneck), row in sorted(rows.items(), key=lambda item: -item[1][1]):
        lines.append(
            f"{name:<24}{row[0]:>6}{row[1] * 1e6:>14.1f}{row[2] / 1024:>11.1f}"
            f"{row[3] / 1024:>13.1f}  {bottleneck}"
        )
    total = [sum(row[i] for row in rows.values()) for i in range(4)]
    lines.append(
        f"{'total':<24}{total[0]:>6}{total[1] * 1e6:>14.1f}{total[2] / 1024:>11.1f}"
        f"{total[3] / 1024:>13.1f}"
    )
    return lines


def read_arguments(config: LlamaConfig) -> argparse.Namespace:
    """The options. Ends the process with a message for what cannot be run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=1, help="sequences (default: 1)")
    parser.add_argument(
        "--prompt", type=int, default=16, help="tokens of each prompt (default: 16)"
    )
    parser.add_argument(
        "--decode", type=int, default=8, help="tokens after it (default: 8)"
    )
    arguments = parser.parse_args()
    for name, least in (("batch", 1), ("prompt", 1), ("decode", 0)):
        value = getattr(arguments, name)
        if value < least:
            parser.error(f"--{name}: expected at least {least}, found {value}")
    total = arguments.prompt + arguments.decode
    if total > config.max_tokens:
        parser.error(
            f"--prompt and --decode: expected at most {config.max_tokens} tokens "
            f"together, which the model's cache holds, found {total}"
        )
    return arguments


def main() -> int:
    """Runs the demo; 0 if nothing fell back and the result is close."""
    config = LlamaConfig()
    arguments = read_arguments(config)

    import torch_spyre
    from torch_spyre.compile_backend import compiled_parts

    torch.manual_seed(0)
    model = Llama(config).eval()
    reference = Llama(config).eval().double()
    reference.load_state_dict(
        {
            k: v.half().double() if v.is_floating_point() else v
            for k, v in model.state_dict().items()
        }
    )
    show(
        f"Llama-style decoder: {config.layers} layers, width {config.width}, "
        f"{config.heads} heads ({config.kv_heads} for keys and values), "
        f"{sum(p.numel() for p in model.parameters()):,} parameters, fp16"
    )
    device_model = model.half().to("spyre")
    step = torch.compile(device_model, backend="spyre", dynamic=False)
    total = arguments.prompt + arguments.decode
    tokens = torch.randint(0, config.vocabulary, (arguments.batch, total))

    errors: list[float] = []
    with torch.no_grad():
        cache = device_model.make_cache(
            arguments.batch, next(device_model.parameters())
        )
        expected_cache = reference.make_cache(
            arguments.batch, torch.zeros((), dtype=torch.float64)
        )
        start = 0
        steps = [arguments.prompt] + [1] * arguments.decode
        for number, count in enumerate(steps):
            known = len(compiled_parts())
            what = "prefill" if number == 0 else f"decode {number}"
            print(f"{what}: {count} tokens ... ", end="", flush=True)
            began = time.perf_counter()
            positions = torch.arange(start, start + count)
            part = tokens[:, start : start + count]
            logits = step(part.to("spyre"), positions.to("spyre"), cache).cpu()
            seconds = time.perf_counter() - began
            expected = reference(part, positions, expected_cache)
            error = (logits.double() - expected).pow(2).mean().sqrt()
            relative = (error / expected.pow(2).mean().sqrt()).item()
            errors.append(relative)
            compiled = " (compiled)" if len(compiled_parts()) > known else ""
            show(f"{seconds:.2f} s{compiled}, RMS error {relative:.2e} of the signal")
            start += count

    for part, what in zip(
        compiled_parts(), ("prefill", "one decode step"), strict=False
    ):
        show(f"\n{what}: program {part.name}")
        for line in kernel_table([part]):
            show(line)
    report = torch_spyre.fallback_report()
    show(f"\noperators that fell back to the CPU: {report or 'none'}")
    # NaN is neither larger nor smaller than other errors.
    worst = math.nan if any(map(math.isnan, errors)) else max(errors)
    show(f"largest RMS error against fp64 on the CPU: {worst:.2e} of the signal")
    return 0 if not report and worst < MAX_ERROR else 1


if __name__ == "__main__":
    warnings.simplefilter("default")
    sys.exit(main())
