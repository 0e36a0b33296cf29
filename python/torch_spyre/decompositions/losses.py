# SPDX-License-Identifier: Apache-2.0
"""Losses that PyTorch takes apart wrongly, or not at all.

They are computed in fp32 and rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

aten = torch.ops.aten

#: at::Reduction.
_MEAN, _SUM = 1, 2


def _labels_of(target: Tensor) -> tuple[Tensor, Tensor]:
    """Labels [N, T] before the first -1 of each row: which these are, 0 elsewhere."""
    count = target.shape[1]
    places = torch.arange(count, device=target.device)
    end = torch.where(target == -1, places, count).amin(1, keepdim=True)
    is_label = places < end
    return is_label, torch.where(is_label, target, 0)


def _margins(x: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Margins [N, T, C] of every class to every label, 0 for pairs that do not count;
    which classes are labels [N, C]; which class each label is [N, T, C].
    """
    is_label, labels = _labels_of(target)
    classes = torch.arange(x.shape[1], device=x.device)
    is_class = (labels.unsqueeze(-1) == classes) & is_label.unsqueeze(-1)
    is_target = is_class.any(1)
    wide = x.float()
    margins = 1.0 - wide.gather(1, labels).unsqueeze(-1) + wide.unsqueeze(1)
    counts = is_label.unsqueeze(-1) & ~is_target.unsqueeze(1)
    return torch.where(counts, margins.clamp_min(0), 0.0), is_target, is_class


def multilabel_margin_loss_forward(
    x: Tensor, target: Tensor, reduction: int
) -> tuple[Tensor, Tensor]:
    """The loss, and which classes of x, [N, C] or [C], are labels.

    PyTorch's own decomposition also counts what follows the first -1 as label 0.
    """
    rows, labels = torch.atleast_2d(x), torch.atleast_2d(target)
    margins, is_target, _ = _margins(rows, labels)
    losses = margins.sum((1, 2)) / rows.shape[1]
    if reduction == _MEAN:
        losses = losses.mean()
    elif reduction == _SUM:
        losses = losses.sum()
    elif x.dim() < 2:
        losses = losses.reshape(())
    return losses.to(x.dtype), is_target.reshape(target.shape).to(x.dtype)


def multilabel_margin_loss_backward(
    gradient: Tensor, x: Tensor, target: Tensor, reduction: int, is_target: Tensor
) -> Tensor:
    """The gradient of x."""
    rows, labels = torch.atleast_2d(x), torch.atleast_2d(target)
    margins, _, is_class = _margins(rows, labels)
    grows = (margins > 0).float()
    pulled = is_class.float() * grows.sum(2, keepdim=True)
    share = rows.numel() if reduction == _MEAN else rows.shape[1]
    scale = gradient.float().reshape(-1, 1) / share
    return ((grows - pulled).sum(1) * scale).reshape(x.shape).to(x.dtype)


class _Margins(NamedTuple):
    """Of rows [N, C]: how far each class is within the margin of the target's, 0 where
    it is not and for the target; where the target is [N, C], its weights [N, 1].
    """

    within: Tensor
    is_target: Tensor
    weights: Tensor | None

    @classmethod
    def of(
        cls, x: Tensor, target: Tensor, margin: float, weight: Tensor | None
    ) -> _Margins:
        rows, targets = torch.atleast_2d(x).float(), target.reshape(-1, 1)
        is_target = targets == torch.arange(rows.shape[1], device=x.device)
        margins = margin - rows.gather(1, targets) + rows
        within = torch.where((margins > 0) & ~is_target, margins, 0.0)
        weights = None if weight is None else weight.float()[targets]
        return cls(within, is_target, weights)


def multi_margin_loss(
    x: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1,
    weight: Tensor | None = None,
    reduction: int = _MEAN,
) -> Tensor:
    """The loss of classes x, [N, C] or [C]."""
    margins = _Margins.of(x, target, margin, weight)
    losses = margins.within if p == 1 else margins.within.square()
    if margins.weights is not None:
        losses = losses * margins.weights
    losses = losses.sum(1) / losses.shape[1]
    if reduction == _MEAN:
        losses = losses.mean()
    elif reduction == _SUM or target.dim() == 0:
        losses = losses.sum()
    return losses.to(x.dtype)


def multi_margin_loss_backward(
    gradient: Tensor,
    x: Tensor,
    target: Tensor,
    p: int,
    margin: float,
    weight: Tensor | None = None,
    reduction: int = _MEAN,
) -> Tensor:
    """The gradient of x."""
    margins = _Margins.of(x, target, margin, weight)
    within = margins.within
    pulled = (within > 0).float() if p == 1 else 2 * within
    count, classes = within.shape
    scale = gradient.float().reshape(-1, 1) / classes
    if reduction == _MEAN and count:
        scale = scale / count
    if margins.weights is not None:
        scale = scale * margins.weights
    of_target = torch.where(margins.is_target, -pulled.sum(1, keepdim=True), pulled)
    return (of_target * scale).reshape(x.shape).to(x.dtype)


DECOMPOSITIONS: dict[Any, Callable] = {
    aten.multi_margin_loss.default: multi_margin_loss,
    aten.multi_margin_loss_backward.default: multi_margin_loss_backward,
    aten.multilabel_margin_loss_forward.default: multilabel_margin_loss_forward,
    aten.multilabel_margin_loss_backward.default: multilabel_margin_loss_backward,
}
