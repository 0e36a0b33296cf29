# SPDX-License-Identifier: Apache-2.0
"""Programs for many sizes whose intermediates do not fit LX run tile by tile."""

import pytest
import torch
import torch.nn.functional as F
from inputs import values
from numerics import assert_like_oracle, compiled, oracle, poisoned
from torch_spyre.compile_backend import compiled_parts


def activations(x):
    return F.layer_norm(F.gelu(x * 2 + 1), x.shape[-1:]) * x


def softmax_of_rows(x):
    return x.softmax(-1)


def attention(is_causal):
    """8 heads of 64: 67 MB of scores of 2,048 tokens."""

    def function(*rows):
        heads = [t.view(1, -1, 8, 64).transpose(1, 2) for t in rows]
        return F.scaled_dot_product_attention(*heads, is_causal=is_causal)

    return function


def rows(size, columns, seed):
    x = poisoned(values((size, columns), torch.float16, seed, -1, 1).to("spyre"))
    torch._dynamo.mark_static(x, 1)
    return x


#: Function, columns of each argument, rows.
#: Sizes of one class: whole tiles, one row more or less, ends of the class.
CASES = {
    "rows": (softmax_of_rows, [4096], (4100, 4097, 8192, 6007)),
    "chain": (activations, [2048], (8193, 16384, 9011)),
    "attention": (attention(False), 3 * [512], (1030, 1025, 2048, 1999)),
    "causal attention": (attention(True), 3 * [512], (1030, 1025, 2048, 1920, 1999)),
}


@pytest.mark.parametrize("name", CASES)
def test_tiles_of_rows(name):
    """As exact as other programs, the same bits in any order of calls, and neither the
    time nor the bytes of device memory are those of intermediates that go through it.
    """
    function, columns, sizes = CASES[name]
    one_size = compiled(function, dynamic=False)
    many = torch.compile(function, backend="spyre", dynamic=True)

    def arguments(size):
        return [rows(size, n, size + i) for i, n in enumerate(columns)]

    def cost(f, xs):
        with torch.spyre.profiler.profile() as trace:
            y = f(*xs).cpu()
        return (
            y,
            sum(k.predicted_seconds for k in trace.kernels),
            sum(k.device_bytes_read + k.device_bytes_written for k in trace.kernels),
        )

    many(*arguments(sizes[0]))
    before = len(compiled_parts())
    found = {}
    for size in sizes:
        xs = arguments(size)
        y, seconds, size_in_bytes = cost(many, xs)
        found[size] = y
        hosts = [x.cpu() for x in xs]
        wide = function(*(x.double() for x in hosts))
        assert_like_oracle(y, wide, oracle(function, *hosts), f"s = {size}")
        _, own_seconds, own_bytes = cost(one_size, xs)
        assert seconds < 1.5 * own_seconds, size
        assert size_in_bytes < 1.5 * own_bytes, size
    # Those for one size.
    assert len(compiled_parts()) - before == len(sizes)
    for size in sizes[1::-1]:
        assert torch.equal(many(*arguments(size)).cpu(), found[size]), size


def test_rows_that_are_changed_are_not_tiled():
    """The last tile would compute some of them twice."""

    def function(x):
        x.mul_(2).add_(1)
        return x.amax(-1)

    many = torch.compile(function, backend="spyre", dynamic=True)
    for size in (4100, 5000, 4097):
        x = rows(size, 4096, size).mul_(8).round_()
        host = x.cpu()
        y = many(x).cpu()
        assert torch.equal(x.cpu(), host * 2 + 1), size
        assert torch.equal(y, (host * 2 + 1).amax(-1)), size


def test_columns_that_are_summed():
    """The rows vary, and a sum over them is not cut."""

    def function(x):
        return (x.exp() * 2).sum(0), x.exp().amax(1)

    many = torch.compile(function, backend="spyre", dynamic=True)
    for size in (8200, 8193, 16384):
        x = rows(size, 2048, size)
        host = x.cpu()
        for y, wide, near in zip(
            many(x), function(host.double()), oracle(function, host), strict=True
        ):
            assert_like_oracle(y.cpu(), wide, near, f"s = {size}")
