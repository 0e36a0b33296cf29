# SPDX-License-Identifier: Apache-2.0
"""A model on several cards: what each of them holds, and what adding up takes.

Cards that share a copy of a model divide its attention heads and the columns of its
MLPs, as the model's plan for tensor parallelism says. Each runs programs of its own
until a sum over all of them is due, and waits for that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.fx import Node

from torch_spyre.predict.models import Model, ModelError

#: What times of sums over cards are bound by.
CARD_LINKS = "links of cards"
#: The group of the traced operators; no process group has to exist.
_GROUP = "cards of a copy"


@dataclass(frozen=True)
class Cards:
    """Cards, the machines that they are in, and how many hold a copy of the model."""

    num_per_machine: int = 1
    num_machines: int = 1
    num_per_copy: int = 1

    @staticmethod
    def of(
        cards: int, machines: int, per_copy: int | None, numbers: dict[str, Any]
    ) -> Cards:
        """Raises ValueError for what no machines can be."""
        for name, value in (("cards", cards), ("machines", machines)):
            if value < 1:
                raise ValueError(f"{name}: {value} is not positive")
        most = numbers["numCardsPerSystem"]
        if cards > most:
            raise ValueError(
                f"cards: a machine has at most {most} (numCardsPerSystem), not {cards}"
            )
        per_copy = cards if per_copy is None else per_copy
        if per_copy < 1:
            raise ValueError(f"tensor_parallel: {per_copy} is not positive")
        within = per_copy <= cards and cards % per_copy == 0
        across = per_copy % cards == 0 and machines * cards % per_copy == 0
        if not (within or across):
            raise ValueError(
                f"tensor_parallel: {machines} x {cards} cards cannot be divided into "
                f"groups of {per_copy}, each of which fills a machine or whole ones"
            )
        return Cards(cards, machines, per_copy)

    @property
    def num_copies(self) -> int:
        """How many copies of the model there are, each with sequences of its own."""
        return self.num_per_machine * self.num_machines // self.num_per_copy

    def batch_of_copy(self, batch: int) -> int:
        """Sequences of each copy."""
        if batch % self.num_copies:
            raise ValueError(
                f"batch: {batch} cannot be divided over {self.num_copies} copies of "
                "the model"
            )
        return batch // self.num_copies


@dataclass(frozen=True)
class AllReduce:
    """A sum over the cards of a copy, of which each gets the result."""

    num_bytes: int

    def seconds(self, cards: Cards, numbers: dict[str, Any]) -> float:
        """Around rings: within each machine, then between machines, then back.

        Each of n in a ring sends n - 1 parts of 1/n of the bytes in order to hold the
        sum of one part, and n - 1 more to have the other sums. Between machines, each
        card sums its own part of the machine's, and all share the machine's link.
        """
        inside = min(cards.num_per_copy, cards.num_per_machine)
        machines = cards.num_per_copy // inside
        size = self.num_bytes
        return _ring_seconds(inside, size, numbers, "card") + _ring_seconds(
            machines, size, numbers, "machine"
        )

    def predict(self, cards: Cards, numbers: dict[str, Any]) -> dict[str, Any]:
        """In the form of a program's report (``simulate``).

        No measurement says how far it may be off, so its interval is the time itself.
        """
        seconds = self.seconds(cards, numbers)
        none: dict[str, Any] = {
            "bytes": {
                "device_memory": {"read": 0, "written": 0},
                "lx": {"read": 0, "written": 0},
                "ring": 0,
            },
            "utilisation": {},
        }
        kernel = {
            **none,
            "name": "all_reduce",
            "cores": 0,
            "predicted_seconds": seconds,
            "interval_seconds": [seconds, seconds],
            "bottleneck": CARD_LINKS,
        }
        return {
            **none,
            "predicted_seconds": seconds,
            "launch_seconds": 0.0,
            "interval_seconds": [seconds, seconds],
            "pt_macs": 0,
            "sfu_element_ops": 0,
            "depends_on_data": [],
            "kernels": [kernel],
        }


def _ring_seconds(count: int, size: int, numbers: dict[str, Any], link: str) -> float:
    steps = 2 * (count - 1)
    rate = numbers[f"{link}LinkBytesPerSecond"]
    return steps * (numbers[f"{link}LinkSeconds"] + size / count / rate)


def all_reduce_of(node: Node) -> AllReduce | None:
    """The sum over cards that a node of a traced graph asks for, if it does."""
    if node.target is not torch.ops._c10d_functional.all_reduce.default:
        return None
    return AllReduce(node.meta["val"].nbytes)


def waits_for_sum(node: Node) -> bool:
    """Whether a node is the end of a sum over cards."""
    return node.target is torch.ops._c10d_functional.wait_tensor.default


@dataclass
class Shard:
    """What one card holds of a model."""

    #: Sizes of the weights of which it holds a part.
    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    #: Paths of the modules whose results are summed over the cards.
    summed: list[str] = field(default_factory=list)


#: Styles of a plan under which every card does the same with the same weights. Plans
#: divide embeddings and the last product, too; the card's software does not.
_WHOLE = {"replicated_with_grad_allreduce", "embedding_rowwise"}


def shard(model: Model, count: int) -> Shard:
    """What a card holds if ``count`` share the model. Raises ModelError if none can."""
    if count == 1:
        return Shard()
    plan = getattr(model.module, "_tp_plan", None)
    if not plan:
        raise ModelError(
            f"{model.name}: has no plan for tensor parallelism (_tp_plan), so that "
            "each card has to hold a copy of it: tensor_parallel 1"
        )
    for name in ("num_attention_heads", "num_key_value_heads"):
        heads = getattr(model.config, name, None)
        if heads and heads % count:
            raise ModelError(
                f"{model.name}: {name}: {heads} heads cannot be divided over {count} "
                "cards"
            )
    last = getattr(model.module, "get_output_embeddings", lambda: None)()
    result = Shard()
    for path, module in model.module.named_modules():
        style = plan.get(re.sub(r"(^|\.)\d+(?=\.|$)", r"\1*", path))
        if style is None or style in _WHOLE or module is last:
            continue
        if style not in ("colwise", "rowwise") or not isinstance(module, nn.Linear):
            raise ModelError(
                f"{model.name}: {path}: no prediction for a "
                f"{type(module).__name__} that is divided {style}"
            )
        _divide(model, path, module, style, count, result)
    return result


def _divide(
    model: Model, path: str, module: nn.Linear, style: str, count: int, result: Shard
) -> None:
    rows, columns = module.weight.shape
    divided = rows if style == "colwise" else columns
    if divided % count:
        what = "outputs" if style == "colwise" else "inputs"
        raise ModelError(
            f"{model.name}: {path}: {divided} {what} cannot be divided over {count} "
            "cards"
        )
    if style == "rowwise":
        result.sizes[f"{path}.weight"] = (rows, columns // count)
        result.summed.append(path)
        return
    result.sizes[f"{path}.weight"] = (rows // count, columns)
    if module.bias is not None:
        result.sizes[f"{path}.bias"] = (rows // count,)


@contextmanager
def summing(module: nn.Module, paths: list[str]) -> Iterator[None]:
    """Has results of submodules summed over the cards, in what is traced meanwhile."""
    if not paths:
        yield
        return
    # Says what shapes the operators have.
    import torch.distributed._functional_collectives

    operators = torch.ops._c10d_functional

    def add_up(_module: nn.Module, _inputs: Any, result: torch.Tensor) -> torch.Tensor:
        return operators.wait_tensor(operators.all_reduce(result, "sum", _GROUP))

    handles = [module.get_submodule(p).register_forward_hook(add_up) for p in paths]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
