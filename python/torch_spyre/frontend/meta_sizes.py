# SPDX-License-Identifier: Apache-2.0
"""Sizes in the fake values of a graph's nodes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.fx import Node

from torch_spyre.frontend.eager_steps import tensors_in
from torch_spyre.frontend.size_classes import SYMBOLIC


def products_in(metas: Iterable[Any]) -> Iterator[Any]:
    """The sizes of dimensions of fake tensors that are products of symbols."""
    tensors = itertools.chain.from_iterable(map(tensors_in, metas))
    for size in itertools.chain.from_iterable(t.shape for t in tensors):
        if isinstance(size, torch.SymInt):
            expr = size.node.expr
            if expr.is_Mul and len(expr.free_symbols) > 1:
                yield size


def paddings_in(nodes: Iterable[Node], metas: Mapping[Node, Any]) -> Iterator[Any]:
    """Numbers computed from sizes by which tensors are padded, or cropped where these
    are negative.
    """
    for node in nodes:
        if node.target is torch.ops.aten.constant_pad_nd.default:
            for amount in node.args[1]:  # type: ignore[union-attr]
                value = metas[amount] if isinstance(amount, Node) else amount
                if isinstance(value, torch.SymInt):
                    yield value


def sizes_in(meta: Any) -> Iterator[Any]:
    """The numbers in a node's fake value."""
    if isinstance(meta, (tuple, list)):
        for value in meta:
            yield from sizes_in(value)
    elif isinstance(meta, torch.Tensor):
        yield from (*meta.shape, *meta.stride(), meta.storage_offset())
    elif isinstance(meta, SYMBOLIC):
        yield meta
