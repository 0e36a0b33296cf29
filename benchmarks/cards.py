# SPDX-License-Identifier: Apache-2.0
"""What several cards and machines would give Granite 3.3 8B, by the timing engine.

Prints Markdown tables: the first token of one prompt and a later token of several
sequences on cards that share the model or have copies of it, and the same for other
numbers of the links, which are guesses. Needs transformers.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

from torch_spyre import _C
from torch_spyre.predict import models, predict

GRANITE = "granite-3.3-8b"
MILLISECONDS = 1e3

#: Cards of a machine, machines, cards that share a copy of the model.
SETUPS = [
    (1, 1, 1),
    (2, 1, 2),
    (4, 1, 4),
    (8, 1, 8),
    (8, 1, 4),
    (8, 1, 2),
    (8, 1, 1),
    (8, 2, 8),
    (8, 2, 1),
]
#: Numbers of the links between the cards of a machine, times what is in use.
LINKS = [(1.0, 1.0), (0.5, 1.0), (1.9, 1.0), (1.0, 0.2), (1.0, 4.0)]


def _step(model: models.Model, phase: str, **arguments: Any) -> dict[str, Any]:
    return predict(model, phases=[phase], **arguments)


def _time(phase: dict[str, Any]) -> str:
    low, high = (end * MILLISECONDS for end in phase["interval_seconds"])
    seconds = phase["predicted_seconds"] * MILLISECONDS
    sums = phase["communication_seconds"] * MILLISECONDS
    return f"{seconds:.1f} ({low:.1f} to {high:.1f}) | {sums:.1f}"


def _print_setups(model: models.Model, options: argparse.Namespace) -> None:
    print(
        "| machines x cards | cards per copy | first token of one prompt, ms | of "
        f"that sums | a token of {options.batch} sequences, ms | of that sums | tokens "
        "per second |"
    )
    print("|---|---|---|---|---|---|---|")
    for cards, machines, shared in SETUPS:
        where = {"cards": cards, "machines": machines, "tensor_parallel": shared}
        # A single prompt has one copy at work.
        alone = {"cards": shared, "tensor_parallel": shared}
        first = _step(model, "prefill", prompt=options.prompt, **alone)
        later = _step(
            model, "decode", batch=options.batch, context=options.context, **where
        )
        print(
            f"| {machines} x {cards} | {shared} | {_time(first['phases']['prefill'])} "
            f"| {_time(later['phases']['decode'])} | {later['tokens_per_second']:.0f} |"
        )


def _print_links(model: models.Model, options: argparse.Namespace) -> None:
    numbers = _C.device_spec()
    print(
        "| GB/s | us per message | first token of one prompt, ms | of that sums | "
        f"a token of {options.batch} sequences, ms | of that sums |"
    )
    print("|---|---|---|---|---|---|")
    for faster, longer in LINKS:
        links = {
            "cardLinkBytesPerSecond": numbers["cardLinkBytesPerSecond"] * faster,
            "cardLinkSeconds": numbers["cardLinkSeconds"] * longer,
        }
        first = _step(model, "prefill", prompt=options.prompt, cards=8, device=links)
        later = _step(
            model,
            "decode",
            batch=options.batch,
            context=options.context,
            cards=8,
            device=links,
        )
        print(
            f"| {links['cardLinkBytesPerSecond'] / 1e9:.1f} "
            f"| {links['cardLinkSeconds'] * 1e6:.0f} "
            f"| {_time(first['phases']['prefill'])} "
            f"| {_time(later['phases']['decode'])} |"
        )


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--context", type=int, default=4096)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    try:
        model = models.load(GRANITE)
    except models.ModelError as error:
        sys.exit(f"cards: {error}")
    _print_setups(model, options)
    print()
    _print_links(model, options)


if __name__ == "__main__":
    main()
