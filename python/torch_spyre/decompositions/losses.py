# SPDX-License-Identifier: Apache-2.0
"""Losses that PyTorch takes apart wrongly, or not at all.

They are computed in fp32 and rounded once at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


DECOMPOSITIONS: dict[Any, Callable] = {
    aten.multilabel_margin_loss_forward.default: multilabel_margin_loss_forward,
    aten.multilabel_margin_loss_backward.default: multilabel_margin_loss_backward,
}
