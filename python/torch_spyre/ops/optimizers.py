# SPDX-License-Identifier: Apache-2.0
"""Optimizers' steps for lists of parameters, and the scale of gradients.

``torch.optim`` calls them with ``fused=True``, ``torch.amp.GradScaler`` always. What a
step depends on is read once for all parameters; the rest are programs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor


def check_and_unscale_(
    gradients: Sequence[Tensor], found_inf: Tensor, inverse_scale: Tensor
) -> None:
    """``aten._amp_foreach_non_finite_check_and_unscale_``."""
    for gradient in gradients:
        is_bad = gradient.isfinite().logical_not().any()
        found_inf.copy_(torch.maximum(found_inf, is_bad.to(found_inf.dtype)))
        gradient.mul_(inverse_scale)


def update_scale_(
    scale: Tensor,
    tracker: Tensor,
    found_inf: Tensor,
    growth_factor: float,
    backoff_factor: float,
    interval: int,
) -> Tensor:
    """``aten._amp_update_scale_``: less after an infinity, more after many steps
    without one, which the tracker counts.
    """
    is_bad = found_inf.reshape(scale.shape) != 0
    count = tracker + 1
    is_long = count == interval
    grown = scale * growth_factor
    kept = torch.where(is_long & grown.isfinite(), grown, scale)
    new = torch.where(is_bad, scale * backoff_factor, kept)
    tracker.copy_(torch.where(is_bad | is_long, 0, count))
    return scale.copy_(new)


def _is_skipped(found_inf: Tensor | None) -> bool:
    return found_inf is not None and found_inf.item() != 0


def _counted(
    parameters: Sequence[Tensor], steps: Sequence[Tensor], found_inf: Tensor | None
) -> Iterator[tuple[int, Tensor, float]]:
    """Places, parameters and their steps, all of which are read at once; none if this
    step is skipped.
    """
    if not parameters or _is_skipped(found_inf):
        return
    counts = torch.stack(list(steps)).tolist()
    for i, (parameter, count) in enumerate(zip(parameters, counts, strict=True)):
        yield i, parameter, count


def _direction(
    parameter: Tensor,
    gradient: Tensor,
    grad_scale: Tensor | None,
    maximize: bool,
    weight_decay: float,
) -> Tensor:
    """The gradient without its scale, to go down along, and towards smaller weights."""
    if grad_scale is not None:
        gradient.div_(grad_scale)
    if maximize:
        gradient = -gradient
    if weight_decay != 0:
        gradient = gradient.add(parameter, alpha=weight_decay)
    return gradient


def _step_of_adam(
    is_decoupled: bool,
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    means: Sequence[Tensor],
    squares: Sequence[Tensor],
    largest: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: float | Tensor,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    amsgrad: bool,
    maximize: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    rate = float(lr)
    for i, parameter, count in _counted(parameters, steps, found_inf):
        decay = 0.0 if is_decoupled else weight_decay
        gradient = _direction(parameter, gradients[i], grad_scale, maximize, decay)
        if is_decoupled and weight_decay != 0:
            parameter.mul_(1 - rate * weight_decay)
        means[i].lerp_(gradient, 1 - beta1)
        squares[i].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        square = squares[i]
        if amsgrad:
            square = largest[i].copy_(torch.maximum(largest[i], square))
        root = square.sqrt().div_(math.sqrt(1 - beta2**count)).add_(eps)
        parameter.addcdiv_(means[i], root, value=-rate / (1 - beta1**count))


def adam_(*args, **kwargs) -> None:  # type: ignore[no-untyped-def]
    """``aten._fused_adam_``, whose decay of weights is part of the gradient."""
    _step_of_adam(False, *args, **kwargs)


def adamw_(*args, **kwargs) -> None:  # type: ignore[no-untyped-def]
    """``aten._fused_adamw_``, which makes weights smaller by themselves."""
    _step_of_adam(True, *args, **kwargs)


def sgd_(
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    buffers: Sequence[Tensor],
    *,
    weight_decay: float,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    """``aten._fused_sgd_``; there are no buffers without momentum."""
    if _is_skipped(found_inf):
        return
    rate = float(lr)
    for i, parameter in enumerate(parameters):
        step = _direction(parameter, gradients[i], grad_scale, maximize, weight_decay)
        if momentum != 0:
            if is_first_step:
                buffers[i].copy_(step)
            else:
                buffers[i].mul_(momentum).add_(step, alpha=1 - dampening)
            step = step.add(buffers[i], alpha=momentum) if nesterov else buffers[i]
        parameter.add_(step, alpha=-rate)


def adagrad_(
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    sums: Sequence[Tensor],
    steps: Sequence[Tensor],
    *,
    lr: float | Tensor,
    lr_decay: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    """``aten._fused_adagrad_``."""
    rate = float(lr)
    for i, parameter, count in _counted(parameters, steps, found_inf):
        step = _direction(parameter, gradients[i], grad_scale, maximize, weight_decay)
        sums[i].addcmul_(step, step)
        root = sums[i].sqrt().add_(eps)
        parameter.addcdiv_(step, root, value=-rate / (1 + (count - 1) * lr_decay))
