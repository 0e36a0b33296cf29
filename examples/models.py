# SPDX-License-Identifier: Apache-2.0
"""Models in plain ``torch.nn`` that demo, tests and benchmarks share.

All have random weights; shapes are given by small configuration objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional


class MLP(nn.Module):
    """Linear layers with GELU between them.

    Args:
        sizes: features of the input and of each layer's output.

    """

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(sizes))

    def forward(self, x: Tensor) -> Tensor:
        """``[..., sizes[0]]`` to ``[..., sizes[-1]]``."""
        for layer in self.layers[:-1]:
            x = functional.gelu(layer(x))
        return self.layers[-1](x)


@dataclass(frozen=True)
class LlamaConfig:
    """Shape of a Llama-style decoder."""

    layers: int = 4
    width: int = 256
    heads: int = 8
    kv_heads: int = 2
    hidden: int = 640
    vocabulary: int = 512
    max_tokens: int = 64

    @property
    def head_width(self) -> int:
        return self.width // self.heads


class Attention(nn.Module):
    """Grouped-query attention with rotary embedding and a KV cache."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        kv_width = config.kv_heads * config.head_width
        self.query = nn.Linear(config.width, config.width, bias=False)
        self.key = nn.Linear(config.width, kv_width, bias=False)
        self.value = nn.Linear(config.width, kv_width, bias=False)
        self.output = nn.Linear(config.width, config.width, bias=False)

    def forward(
        self,
        x: Tensor,
        rotation: tuple[Tensor, Tensor],
        cache: tuple[Tensor, Tensor],
        positions: Tensor,
        mask: Tensor,
    ) -> Tensor:
        """``x`` is ``[batch, tokens, width]``; the cache's rows at
        ``positions`` (``[tokens]``) are written in place; ``mask`` is
        ``[tokens, max_tokens]``, true where a key may be seen.
        """
        batch, tokens, _ = x.shape
        config = self.config
        q = self.query(x).view(batch, tokens, config.heads, config.head_width)
        k = self.key(x).view(batch, tokens, config.kv_heads, config.head_width)
        v = self.value(x).view(batch, tokens, config.kv_heads, config.head_width)
        q = rotate(q.transpose(1, 2), *rotation)
        k = rotate(k.transpose(1, 2), *rotation)
        keys, values = cache
        keys.index_copy_(2, positions, k)
        values.index_copy_(2, positions, v.transpose(1, 2))
        y = functional.scaled_dot_product_attention(
            q, keys, values, attn_mask=mask, enable_gqa=True
        )
        return self.output(y.transpose(1, 2).reshape(batch, tokens, config.width))


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary embedding of ``[batch, heads, tokens, head_width]``."""
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class DecoderLayer(nn.Module):
    """Attention and SwiGLU, each behind an RMS norm, with residuals."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(config.width, eps=1e-5)
        self.attention = Attention(config)
        self.hidden_norm = nn.RMSNorm(config.width, eps=1e-5)
        self.gate = nn.Linear(config.width, config.hidden, bias=False)
        self.up = nn.Linear(config.width, config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x: Tensor, rotation, cache, positions, mask) -> Tensor:
        """``[batch, tokens, width]`` to the same."""
        x = x + self.attention(self.attention_norm(x), rotation, cache, positions, mask)
        y = self.hidden_norm(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """A Llama-style decoder whose KV cache is given by the caller."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width, eps=1e-5)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        frequency = 10000.0 ** (
            -torch.arange(0, config.head_width, 2).float() / config.head_width
        )
        angle = torch.arange(config.max_tokens).float()[:, None] * frequency
        angle = torch.cat((angle, angle), dim=-1)
        self.register_buffer("cosine", angle.cos())
        self.register_buffer("sine", angle.sin())
        visible = torch.ones(config.max_tokens, config.max_tokens).tril().bool()
        self.register_buffer("visible", visible)

    def make_cache(self, batch: int, like: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Empty keys and values per layer, ``[batch, kv_heads, max, width]``."""
        config = self.config
        shape = (batch, config.kv_heads, config.max_tokens, config.head_width)
        return [
            (
                torch.zeros(shape, dtype=like.dtype).to(like.device),
                torch.zeros(shape, dtype=like.dtype).to(like.device),
            )
            for _ in range(config.layers)
        ]

    def forward(
        self, tokens: Tensor, positions: Tensor, cache: list[tuple[Tensor, Tensor]]
    ) -> Tensor:
        """Logits ``[batch, tokens, vocabulary]`` of the tokens at ``positions``."""
        rotation = (self.cosine[positions], self.sine[positions])
        mask = self.visible[positions]
        x = self.embedding(tokens)
        for layer, layer_cache in zip(self.layers, cache, strict=True):
            x = layer(x, rotation, layer_cache, positions, mask)
        return self.head(self.norm(x))


class GPT2Block(nn.Module):
    """A GPT-2 block (pre-norm, causal attention, tanh GELU)."""

    def __init__(self, width: int = 768, heads: int = 12) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """``[batch, tokens, width]`` to the same."""
        batch, tokens, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(width, dim=-1)
        q, k, v = (
            t.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for t in (q, k, v)
        )
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(batch, tokens, width))
        y = functional.gelu(self.up(self.norm2(x)), approximate="tanh")
        return x + self.down(y)
