# SPDX-License-Identifier: Apache-2.0
"""A small Llama of plain PyTorch modules, with a cache that grows by concatenation.

With a window it keeps only the last keys and values; with a cap it computes attention
by operators, as Gemma 2 does.
"""

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


def capped_attention(query, key, value, mask, cap):
    """Attention with scores below ``cap``."""
    repeats = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(repeats, 1) for x in (key, value))
    scores = query @ key.transpose(2, 3) * HEAD**-0.5
    scores = torch.tanh(scores / cap) * cap
    scores = scores.masked_fill(~mask, -60000.0)
    return torch.softmax(scores, -1, dtype=torch.float32).to(query.dtype) @ value


class Layer(nn.Module):
    def __init__(self, window=None, cap=None):
        super().__init__()
        self.window, self.cap = window, cap
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

    def is_seen(self, total, kept, positions, padding):
        """Which of the last ``kept`` of ``total`` positions each position sees."""
        keys = torch.arange(kept, device=positions.device) + (total - kept)
        seen = keys <= positions[:, None]
        if self.window is not None:
            seen = seen & (keys > positions[:, None] - self.window)
        if padding is None:
            return seen
        return seen & padding[:, None, None, total - kept :]

    def forward(self, x, cos, sin, cache, mask, positions=None, total=None):
        y = self.before(x)
        query = rotate(self.heads(self.query(y)), cos, sin)
        key = rotate(self.heads(self.key(y)), cos, sin)
        value = self.heads(self.value(y))
        if cache is not None:
            key = torch.cat((cache[0], key), 2)
            value = torch.cat((cache[1], value), 2)
        grown = key, value
        if self.window is not None:
            grown = tuple(t[:, :, 1 - self.window :] for t in grown)
        if self.window is not None or self.cap is not None:
            mask = self.is_seen(total, key.shape[2], positions, mask)
        if self.cap is not None:
            attended = capped_attention(query, key, value, mask, self.cap)
            return self.end(x, attended), grown
        attended = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            is_causal=cache is None and mask is None,
            enable_gqa=True,
        )
        return self.end(x, attended), grown

    def end(self, x, attended):
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        y = self.after(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Takes ids and a cache, a list of (keys, values); gives logits and the cache.

    ``windows`` has an entry per layer. With one that is not None, ``mask`` says which
    of all positions are no padding, and ``past`` how many came before.
    """

    def __init__(self, layers=2, vocabulary=96, windows=(), cap=None):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.windows = windows or (None,) * layers
        self.layers = nn.ModuleList(Layer(window, cap) for window in self.windows)
        self.norm = Norm()
        self.head = nn.Linear(WIDTH, vocabulary, bias=False)
        frequencies = 1e4 ** (-torch.arange(0, HEAD, 2, dtype=torch.float32) / HEAD)
        self.register_buffer("frequencies", frequencies)

    def forward(self, ids, cache=None, mask=None, past=None, only_last=False):
        if past is None:
            past = 0 if cache is None else cache[0][0].shape[2]
        x = self.embedding(ids)
        positions = torch.arange(ids.shape[1], device=ids.device) + past
        angles = positions[:, None].float() * self.frequencies
        angles = torch.cat((angles, angles), -1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        grown = []
        for number, layer in enumerate(self.layers):
            kept = None if cache is None else cache[number]
            x, pair = layer(x, cos, sin, kept, mask, positions, past + ids.shape[1])
            grown.append(pair)
        if only_last:
            x = x[:, -1:]
        return self.head(self.norm(x)), grown


def tiny_llama(layers=2, seed=0, **options):
    torch.manual_seed(seed)
    model = Llama(layers, **options)
    for name, parameter in model.named_parameters():
        if "before" not in name and "after" not in name and "norm" not in name:
            nn.init.normal_(parameter, std=0.1)
    return model.eval()
