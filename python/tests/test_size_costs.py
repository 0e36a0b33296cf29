# SPDX-License-Identifier: Apache-2.0
"""What programs for many sizes move, and are predicted to take."""

import pytest
import torch
import torch.nn.functional as F
from inputs import values
from numerics import assert_like_oracle, compiled, oracle
from torch_spyre.compile_backend import compiled_parts
from torch_spyre.frontend import cache


def test_few_rows_of_a_long_sum():
    """Cores that have no rows of a product, and share the sum, load nothing."""
    f = compiled(torch.matmul, dynamic=None)
    w = values((2048, 128), torch.float16, 0, -0.1, 0.1)
    on_device = w.to("spyre")
    torch._dynamo.mark_static(on_device)

    def function(x):
        return x @ w.to(x.dtype)

    for size in (300, 9, 26, 65, 2, 512):
        x = values((size, 2048), torch.float16, size, -0.1, 0.1)
        placed = x.to("spyre")
        torch._dynamo.mark_dynamic(placed, 0)
        with torch.spyre.profiler.profile() as trace:
            actual = f(placed, on_device).cpu()
        assert_like_oracle(
            actual, function(x.double()), oracle(function, x), f"s = {size}"
        )
        read = sum(k.device_bytes_read for k in trace.kernels)
        if size <= 26:
            assert read < 1.5 * w.nbytes, size


@pytest.mark.parametrize("function", [torch.argmax, torch.sum], ids=["argmax", "sum"])
def test_few_rows_overlap(function):
    """Cores with few rows compute some of them while they load others."""

    def seconds(f, x):
        with torch.spyre.profiler.profile() as trace:
            y = f(x, -1).cpu()
        assert torch.equal(y, one_size(x, -1).cpu())
        return sum(k.predicted_seconds for k in trace.kernels)

    one_size = compiled(function, dynamic=False)
    many = torch.compile(function, backend="spyre", dynamic=True)
    for size in (512, 134, 70, 32):
        x = values((size, 1024), torch.float16, size, -1, 1).to("spyre")
        torch._dynamo.mark_static(x, 1)
        assert seconds(many, x) < 1.1 * seconds(one_size, x), size


def transposed(x):
    return x.t().contiguous()


def attention(heads, width, is_causal):
    def function(x):
        qkv = x.view(1, -1, 3, heads, width).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(*qkv, is_causal=is_causal)

    return function


@pytest.mark.parametrize(
    ("function", "columns", "sizes"),
    [
        # Sticks along the rows would be as empty as there are few.
        (transposed, 1024, (22, 512)),
        (attention(4, 32, True), 384, (157, 512)),
        (attention(2, 128, False), 768, (157,)),
    ],
    ids=["transposed", "narrow heads", "2 heads"],
)
def test_one_plan_for_few_rows_and_many(function, columns, sizes):
    """Neither the time nor the bytes are far from those of a program for one size."""

    def cost(f, x):
        with torch.spyre.profiler.profile() as trace:
            y = f(x).cpu()
        host = x.cpu()
        assert_like_oracle(
            y, function(host.double()), oracle(function, host), f"s = {len(x)}"
        )
        return (
            sum(k.predicted_seconds for k in trace.kernels),
            sum(k.device_bytes_read + k.device_bytes_written for k in trace.kernels),
        )

    def rows(size):
        x = values((size, columns), torch.float16, size, -1, 1).to("spyre")
        torch._dynamo.mark_static(x, 1)
        return x

    one_size = compiled(function, dynamic=False)
    many = torch.compile(function, backend="spyre", dynamic=True)
    many(rows(300))
    for size in sizes:
        seconds, size_in_bytes = cost(many, rows(size))
        own_seconds, own_bytes = cost(one_size, rows(size))
        assert seconds < 1.15 * own_seconds, size
        assert size_in_bytes < 1.15 * own_bytes, size


def largest_of_columns(x):
    return x.argmax(0)


@pytest.mark.parametrize(
    ("function", "columns", "sizes", "most_bytes"),
    [
        (largest_of_columns, 1024, (22, 128, 129, 497, 2, 300), 1.15),
        (attention(2, 128, False), 768, (22, 250, 256, 257, 497, 300), 1.15),
        # A program of one size shares sums of scores among cores, and reads less.
        (attention(16, 128, True), 6144, (22, 250, 300, 497), 1.2),
    ],
    ids=["argmax", "2 heads", "16 heads"],
)
def test_two_plans_where_one_does_not_serve(function, columns, sizes, most_bytes):
    """Few rows and many have a program each, and no more than these."""

    def cost(f, x):
        with torch.spyre.profiler.profile() as trace:
            y = f(x).cpu()
        host = x.cpu()
        if function is largest_of_columns:
            assert torch.equal(y, function(host))
        else:
            assert_like_oracle(
                y, function(host.double()), oracle(function, host), f"s = {len(x)}"
            )
        return (
            sum(k.predicted_seconds for k in trace.kernels),
            sum(k.device_bytes_read + k.device_bytes_written for k in trace.kernels),
        )

    one_size = compiled(function, dynamic=False)
    many = torch.compile(function, backend="spyre", dynamic=True)
    programs = 0
    for size in sizes:
        x = values((size, columns), torch.float16, size, -1, 1).to("spyre")
        torch._dynamo.mark_static(x, 1)
        before = len(compiled_parts())
        seconds, size_in_bytes = cost(many, x)
        programs += len(compiled_parts()) - before
        own_seconds, own_bytes = cost(one_size, x)
        assert seconds < 1.15 * own_seconds, size
        assert size_in_bytes < most_bytes * own_bytes, size
    assert programs == 2


def test_two_plans_from_the_cache(tmp_path, monkeypatch):
    """What is on disk says, too, that sizes want two programs."""
    monkeypatch.setenv("SPYRE_CACHE_DIR", str(tmp_path))
    found = []
    for _ in range(2):
        cache.forget_loaded()
        many = compiled(largest_of_columns, dynamic=True)
        for size in (300, 22):
            x = values((size, 1024), torch.float16, size, -1, 1).to("spyre")
            torch._dynamo.mark_static(x, 1)
            assert torch.equal(many(x).cpu(), largest_of_columns(x.cpu()))
        found.append((len(compiled_parts()), len(list(tmp_path.rglob("*.spyre")))))
    # The one for all sizes is there, but does not run.
    assert found == [(2, 3), (2, 3)]


@pytest.mark.parametrize("target", ["ktir", "superdsc"])
@pytest.mark.parametrize(("heads", "rows"), [(2, 509), (16, 301)])
def test_scores_of_partners(heads, rows, target, monkeypatch):
    """Cores that share the sums of scores hand them on over the ring (SuperDSC shares
    no sums): device memory gets the result alone.
    """
    monkeypatch.setenv("SPYRE_EXECUTE", target)
    function = attention(heads, 128, False)
    x = values((rows, 3 * heads * 128), torch.float16, rows, -1, 1)
    with torch.spyre.profiler.profile() as trace:
        y = compiled(function)(x.to("spyre")).cpu()
    assert_like_oracle(y, function(x.double()), oracle(function, x))
    if target == "ktir":
        written = sum(k.device_bytes_written for k in trace.kernels)
        assert written < 1.1 * y.nbytes


def test_weights_at_few_rows():
    """Weights go to other sticks on each core that needs them, at every size."""

    def mlp(x, w, v):
        return F.linear(F.gelu(F.linear(x, w)), v)

    def cost(f, x):
        with torch.spyre.profiler.profile() as trace:
            y = f(x, *weights).cpu()
        assert_like_oracle(y, *expected(x), f"s = {len(x)}")
        return (
            sum(k.predicted_seconds for k in trace.kernels),
            sum(k.device_bytes_read + k.device_bytes_written for k in trace.kernels),
        )

    def expected(x):
        x, w, v = (t.cpu() for t in (x, *weights))
        return mlp(x.double(), w.double(), v.double()), oracle(mlp, x, w, v)

    weights = [
        values(shape, torch.float16, seed, -0.1, 0.1).to("spyre")
        for seed, shape in enumerate([(1024, 256), (256, 1024)])
    ]
    for weight in weights:
        torch._dynamo.mark_static(weight)
    one_size = compiled(mlp, dynamic=False)
    many = torch.compile(mlp, backend="spyre", dynamic=True)
    for size in (512, 22, 134):
        x = values((size, 256), torch.float16, size, -1, 1).to("spyre")
        torch._dynamo.mark_static(x, 1)
        seconds, size_in_bytes = cost(many, x)
        own_seconds, own_bytes = cost(one_size, x)
        assert seconds < 1.15 * own_seconds, size
        assert size_in_bytes < 1.15 * own_bytes, size
        # Each weight is read once, and not written.
        assert size_in_bytes < 1.1 * sum(t.nbytes for t in weights) + 4 * x.nbytes


@pytest.mark.parametrize(
    "function",
    [lambda x: torch.cat((x, x * 2)), lambda x: torch.cat((x[:3] * 2, x, x + 1))],
    ids=["two", "three"],
)
def test_joined_rows_are_written_once(function):
    """As in programs of one size: nothing is filled before."""

    def cost(f, x):
        with torch.spyre.profiler.profile() as trace:
            y = f(x).cpu()
        assert torch.equal(y, function(x.cpu()))
        return (
            sum(k.predicted_seconds for k in trace.kernels),
            sum(k.device_bytes_read + k.device_bytes_written for k in trace.kernels),
        )

    one_size = compiled(function, dynamic=False)
    many = torch.compile(function, backend="spyre", dynamic=True)
    for size in (512, 65, 4):
        x = values((size, 256), torch.float16, size, -1, 1).round().to("spyre")
        torch._dynamo.mark_static(x, 1)
        (seconds, moved), (wanted, least) = cost(many, x), cost(one_size, x)
        assert moved == least, size
        assert seconds < 1.15 * wanted, size
