# SPDX-License-Identifier: Apache-2.0
"""Random operators that are made of the device's uniform and normal numbers."""

from __future__ import annotations

import torch
from torch import Generator, Tensor


def _normal(
    mean: Tensor | float, std: Tensor | float, generator: Generator | None
) -> Tensor:
    like = mean if isinstance(mean, Tensor) else std
    assert isinstance(like, Tensor)
    if isinstance(std, Tensor) and bool((std < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    if not isinstance(std, Tensor) and std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    shape = like.shape
    if isinstance(mean, Tensor) and isinstance(std, Tensor):
        shape = torch.broadcast_shapes(mean.shape, std.shape)
    drawn = torch.empty(shape, dtype=torch.float32, device=like.device)
    drawn.normal_(0.0, 1.0, generator=generator)
    wide_std = std.float() if isinstance(std, Tensor) else std
    wide_mean = mean.float() if isinstance(mean, Tensor) else mean
    return (drawn * wide_std + wide_mean).to(like.dtype)


def normal_of_means(
    mean: Tensor, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """``aten.normal.Tensor_float``."""
    return _normal(mean, std, generator)


def normal_of_stds(
    mean: float, std: Tensor, *, generator: Generator | None = None
) -> Tensor:
    """``aten.normal.float_Tensor``."""
    return _normal(mean, std, generator)


def normal_of_both(
    mean: Tensor, std: Tensor, *, generator: Generator | None = None
) -> Tensor:
    """``aten.normal.Tensor_Tensor``."""
    return _normal(mean, std, generator)


def _check_weights(weights: Tensor, count: int, replacement: bool) -> None:
    if weights.dim() not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not weights.is_floating_point():
        raise RuntimeError(
            "multinomial only supports floating-point dtypes for input, got: "
            f"{weights.dtype}"
        )
    if count <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and count > weights.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    wide = weights.float()
    if bool(((wide < 0) | ~torch.isfinite(wide)).any()):
        raise RuntimeError(
            "probability tensor contains either `inf`, `nan` or element < 0"
        )
    if not bool((wide > 0).any(-1).all()):
        raise RuntimeError(
            "invalid multinomial distribution (sum of probabilities <= 0)"
        )


def multinomial(
    weights: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """``aten.multinomial``.

    Without replacement, those with the largest quotients of their weight and an
    exponential number, and then some of weight 0. With it, where uniform numbers lie
    among the sums of weights.
    """
    _check_weights(weights, num_samples, replacement)
    wide = weights.float()
    if not replacement:
        drawn = torch.empty_like(wide).exponential_(1.0, generator=generator)
        return torch.topk(wide / drawn, num_samples, -1).indices
    ends = wide.cumsum(-1)
    shape = (*wide.shape[:-1], num_samples)
    drawn = torch.empty(shape, dtype=torch.float32, device=wide.device)
    drawn.uniform_(0.0, 1.0, generator=generator)
    found = torch.searchsorted(ends, drawn * ends[..., -1:], right=True)
    # Rounding may reach the sum; the last one with a weight is where it is reached.
    last = torch.searchsorted(ends, ends[..., -1:].contiguous())
    return torch.minimum(found, last)
