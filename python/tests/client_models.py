# SPDX-License-Identifier: Apache-2.0
"""What the models of the card's clients do, written from docs/spec/drop-in.md, section 7.

The clients' packages are not installed where these tests run.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def rope_table(positions: int, size: int, dtype: torch.dtype) -> Tensor:
    """``[positions, 2, 2, size / 2]``: a rotation for each pair of a head's halves."""
    frequencies = 1.0 / 10000 ** (torch.arange(0, size, 2) / size)
    angles = torch.outer(torch.arange(positions), frequencies)
    cos, sin = angles.cos(), angles.sin()
    rows = [torch.stack([cos, -sin], 1), torch.stack([sin, cos], 1)]
    return torch.stack(rows, 1).to(dtype)


def rotate(x: Tensor, rotations: Tensor) -> Tensor:
    """``[B, L, heads, size]`` rotated by ``[B, L, 2, 2, size / 2]``."""
    pairs = x.view(*x.shape[:-1], 2, -1).unsqueeze(3)
    turned = rotations.unsqueeze(2).mul(pairs)
    return turned.sum(4, keepdim=True).flatten(3).to(x.dtype)


class PatchedRMSNorm(nn.Module):
    """What a client puts in the place of a model's norm."""

    def __init__(self, size: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)
        return self.weight * (x * scale)


class MLP(nn.Module):
    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(size, hidden, bias=False)
        self.up = nn.Linear(size, hidden, bias=False)
        self.down = nn.Linear(hidden, size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


def spread(module: nn.Module, seed: int, gain: float) -> None:
    """Weights that keep the scale of what they multiply, times ``gain``."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        if parameter.dim() > 1:
            scale = gain / parameter.shape[-1] ** 0.5
            values = torch.randn(parameter.shape, generator=generator) * scale
            parameter.data.copy_(values)


def one_thread():
    """Small models wait for threads longer than they compute; a fixture's body."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
