# SPDX-License-Identifier: Apache-2.0
"""A small Llama of plain PyTorch modules, with a cache that grows by concatenation."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, KEY_HEADS, HEAD = 128, 4, 2, 32


def rotate(x, cos, sin):
    """Rotary embedding of [batch, heads, time, head]."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        mean = x.float().pow(2).mean(-1, keepdim=True)
        return self.weight * (x.float() * torch.rsqrt(mean + 1e-5)).to(x.dtype)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = Norm(), Norm()
        self.query = nn.Linear(WIDTH, HEADS * HEAD, bias=False)
        self.key = nn.Linear(WIDTH, KEY_HEADS * HEAD, bias=False)
        self.value = nn.Linear(WIDTH, KEY_HEADS * HEAD, bias=False)
        self.out = nn.Linear(HEADS * HEAD, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def heads(self, x):
        return x.unflatten(-1, (-1, HEAD)).transpose(1, 2)

    def forward(self, x, cos, sin, cache, mask):
        y = self.before(x)
        query = rotate(self.heads(self.query(y)), cos, sin)
        key = rotate(self.heads(self.key(y)), cos, sin)
        value = self.heads(self.value(y))
        if cache is not None:
            key = torch.cat((cache[0], key), 2)
            value = torch.cat((cache[1], value), 2)
        attended = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            is_causal=cache is None and mask is None,
            enable_gqa=True,
        )
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        y = self.after(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), (key, value)


class Llama(nn.Module):
    """Takes ids and a cache, a list of (keys, values); gives logits and the cache."""

    def __init__(self, layers=2, vocabulary=96):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm = Norm()
        self.head = nn.Linear(WIDTH, vocabulary, bias=False)
        frequencies = 1e4 ** (-torch.arange(0, HEAD, 2, dtype=torch.float32) / HEAD)
        self.register_buffer("frequencies", frequencies)

    def forward(self, ids, cache=None, mask=None):
        past = 0 if cache is None else cache[0][0].shape[2]
        x = self.embedding(ids)
        positions = torch.arange(ids.shape[1], device=ids.device) + past
        angles = positions[:, None].float() * self.frequencies
        angles = torch.cat((angles, angles), -1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        grown = []
        for number, layer in enumerate(self.layers):
            kept = None if cache is None else cache[number]
            x, pair = layer(x, cos, sin, kept, mask)
            grown.append(pair)
        return self.head(self.norm(x)), grown


def tiny_llama(layers=2, seed=0):
    torch.manual_seed(seed)
    model = Llama(layers)
    for name, parameter in model.named_parameters():
        if "before" not in name and "after" not in name and "norm" not in name:
            nn.init.normal_(parameter, std=0.1)
    return model.eval()
