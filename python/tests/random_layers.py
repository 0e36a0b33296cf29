# SPDX-License-Identifier: Apache-2.0
"""Random layers of sequences: each takes ``[batch, time, WIDTH]``, of any batch and
time, and gives as much, or a little longer or shorter a time.
"""

import random

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTH = 24
#: Rows of the table of each layer.
ROWS = 40


class Layer(nn.Module):
    """One of the functions below, and what they may use."""

    def __init__(self, name: str, rng: random.Random) -> None:
        super().__init__()
        self.name = name
        self.shift = rng.randrange(1, 4)
        self.heads = rng.choice([1, 2, 4])
        self.is_causal = rng.random() < 0.5

        def weight(*shape: int, terms: int = 1) -> nn.Parameter:
            return nn.Parameter(torch.randn(shape) / terms**0.5)

        self.weight = weight(WIDTH, WIDTH, terms=WIDTH)
        self.wide = weight(2 * WIDTH, WIDTH, terms=WIDTH)
        self.bias = nn.Parameter(torch.randn(WIDTH) / 10)
        self.scale = nn.Parameter(1 + torch.randn(WIDTH) / 10)
        self.window = weight(WIDTH, WIDTH, 3, terms=3 * WIDTH)
        self.own_window = weight(WIDTH, 1, 3, terms=3)
        self.table = weight(ROWS, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return LAYERS[self.name](self, x)


def times(x: Tensor) -> Tensor:
    return torch.arange(x.shape[1], device=x.device)


# --- layers as models have them ---------------------------------------------------


def linear(layer, x):
    return F.linear(x, layer.weight, layer.bias)


def linear_of_rows(layer, x):
    return F.linear(x.reshape(-1, WIDTH), layer.weight).view(x.shape)


def perceptron(layer, x):
    return F.linear(F.gelu(F.linear(x, layer.wide)), layer.wide.t()) * 0.7


def gated(layer, x):
    return F.glu(F.linear(x, layer.wide), -1)


def swiglu(layer, x):
    a, b = F.linear(x, layer.wide).chunk(2, -1)
    return F.silu(a) * b


def layer_norm(layer, x):
    return F.layer_norm(x, (WIDTH,), layer.scale, layer.bias)


def rms_norm(layer, x):
    return F.rms_norm(x, (WIDTH,), layer.scale)


def group_norm(layer, x):
    return F.group_norm(x.mT, 4, layer.scale, layer.bias).mT


def attention(layer, x):
    def heads(y):
        return y.unflatten(2, (layer.heads, -1)).transpose(1, 2)

    query, key = heads(x), heads(F.linear(x, layer.weight))
    y = F.scaled_dot_product_attention(query, key, query, is_causal=layer.is_causal)
    return y.transpose(1, 2).flatten(2)


def masked_attention(layer, x):
    size = x.shape[1]
    mask = torch.ones(size, size, dtype=torch.bool, device=x.device).tril(layer.shift)
    scores = x @ F.linear(x, layer.weight).mT / WIDTH**0.5
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ x


def attention_by_distance(layer, x):
    distance = (times(x)[:, None] - times(x)[None]).abs().to(x.dtype)
    return ((x @ x.mT) / WIDTH - distance * 0.1).softmax(-1) @ x


def rotary(layer, x):
    half = WIDTH // 2
    rates = torch.arange(half, device=x.device).float().mul(-0.4).exp()
    angles = times(x).float()[:, None] * rates
    cos, sin = angles.cos(), angles.sin()
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def positions(layer, x):
    return x + F.embedding(times(x) % ROWS, layer.table)


def rows_of_a_table(layer, x):
    number = torch.arange(x.shape[0] * x.shape[1], device=x.device) * 7 % ROWS
    return x + layer.table[number.view(x.shape[:2])]


# --- windows ----------------------------------------------------------------------


def convolution(layer, x):
    return F.conv1d(x.mT, layer.window, layer.bias, padding=1).mT


def causal_convolution(layer, x):
    return F.conv1d(F.pad(x.mT, (2, 0)), layer.window, layer.bias).mT


def depthwise(layer, x):
    return F.conv1d(x.mT, layer.own_window, layer.bias, padding=1, groups=WIDTH).mT


def dilated(layer, x):
    return F.conv1d(x.mT, layer.window, padding=2, dilation=2).mT


def transposed(layer, x):
    return F.conv_transpose1d(x.mT, layer.window, layer.bias, padding=1).mT


def down_and_up(layer, x):
    y = F.conv1d(x.mT, layer.window, layer.bias, padding=1, stride=2)
    return F.interpolate(y, size=x.shape[1], mode="nearest").mT


def pooled_and_interpolated(layer, x):
    y = F.avg_pool1d(x.mT, 2, ceil_mode=True)
    y = F.interpolate(y, size=x.shape[1], mode="linear", align_corners=False)
    return y.mT + x * 0.1


def largest_of_windows(layer, x):
    return F.max_pool1d(x.mT, 3, 1, 1).mT


def weighted_windows(layer, x):
    windows = F.pad(x, (0, 0, 1, 1)).unfold(1, 3, 1)
    return (windows * layer.window[:, 0].softmax(-1)).sum(-1)


def means_of_pairs(layer, x):
    y = torch.cat([x, x[:, :1]], 1) if x.shape[1] % 2 else x
    pairs = y.unflatten(1, (-1, 2)).mean(2)
    return pairs.repeat_interleave(2, 1)[:, : x.shape[1]]


# --- reductions over time ----------------------------------------------------------


def standardized(layer, x):
    variance = x.var(1, keepdim=True, unbiased=False)
    return (x - x.mean(1, keepdim=True)) / (variance + 0.01).sqrt()


def softmax_over_time(layer, x):
    return x.softmax(1) * x.shape[1] * 0.5 + x * 0.5


def log_softmax(layer, x):
    return x.log_softmax(2) * 0.3 + x


def log_sum(layer, x):
    return x - x.logsumexp(1, keepdim=True) * 0.2


def scaled_by_largest(layer, x):
    return x / (1 + x.abs().amax(1, keepdim=True))


def normalized(layer, x):
    return F.normalize(x, dim=layer.shift - 1) * 2


def product_over_time(layer, x):
    return x * (1 + 0.1 * x.tanh()).prod(1, keepdim=True).clamp(-2, 2)


def running_mean(layer, x):
    return x.cumsum(1) / (times(x) + 1)[:, None]


def running_largest(layer, x):
    return x.cummax(1).values


def running_log_sum(layer, x):
    return x.logcumsumexp(1) * 0.3


def in_order(layer, x):
    return x.sort(1).values


def with_largest(layer, x):
    return x + x.topk(1, 1).values * 0.3


def mixed_over_batch(layer, x):
    return x + x.mean(0, keepdim=True) * 0.5 + x.roll(1, 0) * 0.5


def bilinear(layer, x):
    return torch.bmm(x, torch.bmm(x.mT, x)) / (x.shape[1] * 3)


def products(layer, x):
    y = torch.einsum("btc,bsc,sd->btd", x, x, x[0])
    return y / (x.shape[1] * WIDTH**0.5)


def lower_triangle(layer, x):
    return (x @ x.mT / WIDTH).tril() @ x / x.shape[1]


def diagonal(layer, x):
    scores = x @ x.mT / WIDTH
    return x * scores.diagonal(dim1=1, dim2=2)[..., None].clamp(-3, 3)


def distances(layer, x):
    return x + torch.cdist(x, x).softmax(-1) @ x


# --- movement ---------------------------------------------------------------------


def differences(layer, x):
    return torch.cat([x[:, :1], x[:, 1:] - x[:, :-1]], 1)


def halves_swapped(layer, x):
    half = x.shape[1] // 2
    return torch.cat([x[:, half:], x[:, :half]], 1)


def prefixed(layer, x):
    return torch.cat([layer.table[: layer.shift].expand(len(x), -1, -1), x], 1)


def without_first(layer, x):
    return x[:, 1:] if x.shape[1] > 3 else x


def without_last(layer, x):
    return x[:, :-1] if x.shape[1] > 3 else x


def backwards(layer, x):
    return torch.lerp(x, x.flip(1), 0.3)


def rolled(layer, x):
    return torch.roll(x, (-layer.shift, 2), (1, 2)) * layer.scale


def interleaved(layer, x):
    return torch.stack([x, x * layer.scale], 2).flatten(1, 2)[:, : x.shape[1]]


def turned(layer, x):
    return (x.mT.contiguous() * 1.1).mT


def every_other(layer, x):
    return torch.where(times(x)[:, None] % 2 == 0, x, x.tanh())


def masked_end(layer, x):
    count = (x.shape[1] * 2 + 2) // 3
    return x.masked_fill(times(x)[None, :, None] >= count, 0.0)


def permuted(layer, x):
    return x[:, (times(x) * 5 + layer.shift) % x.shape[1]]


def index_of_elements(layer, x):
    columns = torch.arange(WIDTH, device=x.device)
    index = (times(x)[:, None] * 3 + columns) % x.shape[1]
    return index.expand(len(x), -1, -1)


def gathered(layer, x):
    return x.gather(1, index_of_elements(layer, x))


def scattered(layer, x):
    return torch.zeros_like(x).scatter_add(1, index_of_elements(layer, x), x) * 0.7


def added_at_places(layer, x):
    places = (times(x) * 3 + layer.shift) % x.shape[1]
    return torch.zeros_like(x).index_add(1, places, x)


def sums_of_parts(layer, x):
    parts = torch.zeros(len(x), (x.shape[1] + 1) // 2, WIDTH, device=x.device)
    sums = parts.to(x.dtype).index_add(1, times(x) // 2, x)
    return sums.repeat_interleave(2, 1)[:, : x.shape[1]]


def updated(layer, x):
    y = x.clone()
    y[:, ::2] *= 0.5
    y[:, -1] += 1
    return y


def shifted_in_place(layer, x):
    y = torch.zeros_like(x)
    y[:, 1:] = x[:, :-1]
    y[:, 0].fill_(0.25)
    return y + x


LAYERS = {
    function.__name__: function
    for function in (
        linear,
        linear_of_rows,
        perceptron,
        gated,
        swiglu,
        layer_norm,
        rms_norm,
        group_norm,
        attention,
        masked_attention,
        attention_by_distance,
        rotary,
        positions,
        rows_of_a_table,
        convolution,
        causal_convolution,
        depthwise,
        dilated,
        transposed,
        down_and_up,
        pooled_and_interpolated,
        largest_of_windows,
        weighted_windows,
        means_of_pairs,
        standardized,
        softmax_over_time,
        log_softmax,
        log_sum,
        scaled_by_largest,
        normalized,
        product_over_time,
        running_mean,
        running_largest,
        running_log_sum,
        in_order,
        with_largest,
        mixed_over_batch,
        bilinear,
        products,
        lower_triangle,
        diagonal,
        distances,
        differences,
        halves_swapped,
        prefixed,
        without_first,
        without_last,
        backwards,
        rolled,
        interleaved,
        turned,
        every_other,
        masked_end,
        permuted,
        gathered,
        scattered,
        added_at_places,
        sums_of_parts,
        updated,
        shifted_in_place,
    )
}


class Network(nn.Module):
    """Layers after each other, some with a residual, and a loss over classes."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        names = [rng.choice(list(LAYERS)) for _ in range(rng.randrange(1, 5))]
        self.layers = nn.ModuleList(Layer(name, rng) for name in names)
        self.is_residual = [rng.random() < 0.4 for _ in names]

    def forward(self, x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        for layer, is_residual in zip(self.layers, self.is_residual, strict=True):
            y = layer(x)
            x = x + y if is_residual and y.shape == x.shape else y
        logits = F.linear(x, self.layers[0].weight)[:, : target.shape[1]]
        target = target[:, : logits.shape[1]]
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0)
        return x, loss
