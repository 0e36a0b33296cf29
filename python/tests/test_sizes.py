# SPDX-License-Identifier: Apache-2.0
"""One program for many sizes, from torch.compile to the device."""

import inspect
import logging
import random

import pytest
import torch
import torch.nn.functional as F
from inputs import values
from numerics import (
    assert_exact,
    assert_like_oracle,
    compiled,
    oracle,
    poisoned,
    rms,
)
from sized_graphs import (
    check_bits_of_one_size,
    num_sizes,
    of_one_size,
    parts_since,
    run,
    shape_of,
)
from torch_spyre.compile_backend import compiled_parts

pytestmark = pytest.mark.usefixtures("no_traced_cache")

#: Around sticks (64 elements), granules and the ends of classes; a few primes.
SIZES = (2, 3, 31, 32, 33, 63, 64, 65, 67, 127, 128, 129, 251, 448, 511, 512, 513)


def mlp(x, w, b, v):
    return torch.relu(x @ w + b) @ v


def mlp_weights():
    return (
        values((256, 384), torch.float16, 1, -0.1, 0.1),
        values((384,), torch.float16, 2, -0.5, 0.5),
        values((384, 128), torch.float16, 3, -0.1, 0.1),
    )


def compiled_mlp(**options):
    """A function of the rows: the sizes of weights are never symbols."""
    weights = [w.to("spyre") for w in mlp_weights()]
    for weight in weights:
        torch._dynamo.mark_static(weight)
    return compiled(lambda x: mlp(x, *weights), **options)


def assert_like_mlp(actual, x):
    weights = mlp_weights()
    wide = (w.double() for w in weights)
    assert_like_oracle(
        actual, mlp(x.double(), *wide), oracle(mlp, x, *weights), f"s = {len(x)}"
    )


def rows_of(size, seed=0):
    return values((size, 256), torch.float16, seed, -1, 1)


def test_mlp():
    """Right at every size, with as many programs as there are classes of sizes."""
    f = compiled_mlp(dynamic=True)
    before = len(compiled_parts())
    for size in SIZES:
        x = rows_of(size, size)
        assert_like_mlp(run(f, x), x)
    # To 512 and to 1024.
    assert [num_sizes(p) for p in parts_since(before)] == [1, 1]


def test_size_of_one():
    """Programs of their own for 0 and 1."""
    f = compiled_mlp(dynamic=None)
    before = len(compiled_parts())
    for size in (7, 5, 1, 0, 1, 9):
        x = rows_of(size, size)
        actual = run(f, x, dims=())
        assert actual.shape == (size, 128)
        if size:
            assert_like_mlp(actual, x)
    assert sorted(num_sizes(p) for p in parts_since(before)) == [0, 0, 0, 1]


def test_bits_do_not_depend_on_what_ran_before():
    sizes = [2, 63, 64, 65, 100, 256, 512]
    found = {}
    for seed in range(3):
        f = compiled_mlp(dynamic=True)
        order = sizes * 2
        random.Random(seed).shuffle(order)
        for size in order:
            bits = run(f, rows_of(size)).view(torch.int16)
            assert torch.equal(found.setdefault(size, bits), bits), size


#: Functions of a matrix, and the dimensions whose sizes vary.
FUNCTIONS = {
    "softmax along it": (lambda x: torch.softmax(x, -1), (1,)),
    "softmax across it": (lambda x: torch.softmax(x, 0), (0,)),
    "log_softmax": (lambda x: torch.log_softmax(x, 1), (1,)),
    "layer_norm": (lambda x: F.layer_norm(x, (70,)), (0,)),
    "layer_norm along it": (lambda x: F.layer_norm(x, x.shape[1:]), (1,)),
    "layer_norm along it, with a weight": (
        lambda x: F.layer_norm(x, x.shape[1:], x[0], x[1]),
        (1,),
    ),
    "mean of what does not vary": (lambda x: x.mean(1), (0,)),
    "mean along it": (lambda x: x.mean(0), (0,)),
    "mean along sticks": (lambda x: x.mean(1, keepdim=True), (1,)),
    "means along two": (lambda x: x.mean(0)[:2] + x.mean(1)[:2], (0, 1)),
    "variance along it": (lambda x: x.var(0), (0,)),
    "variance without a correction": (lambda x: x.var(1, correction=0), (1,)),
    "no degrees of freedom": (lambda x: x.var(0, correction=3), (0,)),
    "part of a degree of freedom": (lambda x: x.std(0, correction=0.5), (0,)),
    "deviation and mean": (lambda x: torch.cat(torch.std_mean(x, 0)), (0,)),
    "rms_norm along it": (lambda x: F.rms_norm(x, x.shape[1:]), (1,)),
    "rows less their mean": (lambda x: x - x.mean(0, keepdim=True), (0,)),
    "instance_norm": (lambda x: F.instance_norm(x[None]), (1,)),
    "argmax of all": (torch.argmax, (0,)),
    "argmax of all, by columns": (torch.argmax, (1,)),
    "argmax along it": (lambda x: torch.argmax(x, 1), (1,)),
    "cumsum along it": (lambda x: torch.cumsum(x, 0), (0,)),
    "topk along it": (lambda x: torch.topk(x, 2, 1)[0], (1,)),
    "norm": (lambda x: torch.linalg.vector_norm(x, dim=0), (0,)),
    "1-norm": (lambda x: torch.linalg.vector_norm(x, 1, 0), (0,)),
    "3-norm": (lambda x: torch.linalg.vector_norm(x, 3, 0), (0,)),
    "largest size": (lambda x: torch.linalg.vector_norm(x, torch.inf, 0), (0,)),
    "prod": (lambda x: x.prod(0), (0,)),
    "extrema": (lambda x: x.amax(0) - x.amin(0) + x.max() - x.min(), (0,)),
    "any": (lambda x: (x > 0.9).any(0), (0,)),
    "all": (lambda x: (x > -0.99).all(1), (1,)),
    "count": (lambda x: torch.count_nonzero(x > 0, 0), (0,)),
    "sums and rows": (
        lambda x: x + x.sum(0, keepdim=True) + x.amax(1, keepdim=True),
        (0,),
    ),
    "a range": (
        lambda x: x + torch.arange(x.shape[0], device=x.device)[:, None],
        (0,),
    ),
    "triangle": (lambda x: torch.triu(x, 1), (1,)),
    "outer product": (lambda x: x[:, :1] * x[:, 1].unsqueeze(0), (0,)),
    "x x^T": (lambda x: x @ x.t(), (0,)),
    "batched": (
        lambda x: torch.bmm(x.expand(2, -1, -1), x.t().expand(2, -1, -1)),
        (0,),
    ),
    "flattened": (lambda x: x.flatten() * 2, (0,)),
    "cat along it": (lambda x: torch.cat((x, x * 2), 0), (0,)),
    "cat along it, by columns": (lambda x: torch.cat((x, x * 2), 1), (1,)),
    "cat of three": (lambda x: torch.cat((x[:2], x, x + 1), 0), (0,)),
    "one more row": (lambda x: torch.cat((x, x[:1] * 2)), (0,)),
    "one row before": (lambda x: torch.cat((x[:1] * 2, x)), (0,)),
    "one more column": (lambda x: torch.cat((x, x[:, :1] * 2), 1), (1,)),
    "softmax along what has grown": (
        lambda x: torch.softmax(torch.cat((x, x[:1] * 2)), 0),
        (0,),
    ),
    "a size as a factor": (lambda x: x * x.shape[0], (0,)),
    "a size as a summand": (lambda x: x[:2] + (40 - 2 * x.shape[1]), (1,)),
    "a size among integers": (lambda x: x[:2].to(torch.int64) - x.shape[0], (0,)),
    "rows by index": (lambda x: x[torch.tensor([1, -2], device=x.device)], (0,)),
    "indices of both": (
        lambda x: x[
            torch.arange(2, device=x.device)[:, None] - 1,
            torch.arange(x.shape[1], device=x.device),
        ],
        (1,),
    ),
    "cat across it": (lambda x: torch.cat((x, x * 2), 1), (0,)),
    "stack": (lambda x: torch.stack((x, x * 2)), (0,)),
    "expand": (lambda x: x.expand(3, -1, -1) + 1, (0,)),
    "heads": (lambda x: x.reshape(x.shape[0], 7, -1).transpose(0, 1) + 1, (0,)),
    "halves": (lambda x: torch.add(*x.chunk(2, 1)), (0,)),
    "windows": (lambda x: x.unfold(1, 3, 2) * 1, (0,)),
    "transposed copy": (lambda x: (x.t() * 2).contiguous(), (0, 1)),
}


@pytest.mark.parametrize(("function", "dims"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_as_a_program_of_one_size(function, dims):
    check_bits_of_one_size(function, dims, (7, 2, 63, 64, 65, 130, 3))


#: Sums that programs split between cores, each in an order of its own.
SUMS = {
    "x^T x": (lambda x: x.t() @ x, (0,)),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), (0,)),
    "mean of all": (lambda x: x.mean(), (0,)),
    "mean of all, by columns": (lambda x: x.mean(), (1,)),
    "mean of a square": (lambda x: x.mean(), (0, 1)),
    "variance of all": (lambda x: x.var(), (0,)),
    "mean square": (lambda x: F.mse_loss(x, x * 2), (0,)),
    "mean distance": (lambda x: F.l1_loss(x, x * 2), (0,)),
    "cross entropy": (
        lambda x: F.cross_entropy(
            x, torch.arange(x.shape[0], device=x.device).clamp(max=3)
        ),
        (0,),
    ),
    "layer_norm of all": (lambda x: F.layer_norm(x, x.shape), (0,)),
    "layer_norm of two": (lambda x: F.layer_norm(x, x.shape), (0, 1)),
    "fp32": (lambda x: x.float().sum(), (0, 1)),
    "attention": (
        lambda x: F.scaled_dot_product_attention(x[None, None], x[None], x[None]),
        (0,),
    ),
    "causal attention": (
        lambda x: F.scaled_dot_product_attention(
            x[None, None], x[None, None], x[None, None], is_causal=True
        ),
        (0,),
    ),
}


@pytest.mark.parametrize(("function", "dims"), SUMS.values(), ids=SUMS)
def test_as_exact_as_a_program_of_one_size(function, dims):
    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    found = {}
    for size in (7, 63, 64, 65, 130, 257, 509):
        x = values(shape_of(size, dims), torch.float16, size, -1, 1)
        found[size] = x, run(f, x, dims=[(0, dim) for dim in dims])
    assert all(num_sizes(p) == len(dims) for p in parts_since(before))
    for size, (x, actual) in found.items():
        wanted = function(x.double())
        other = of_one_size(function, x)
        allowed = 1.25 * rms(other.double() - wanted)
        assert rms(actual.double() - wanted) <= allowed, size


#: Rows that cores share, and whether the order of the rows shows in the bits.
OVER_CORES = {
    "sum": (lambda x: x.sum(0), True),
    "mean": (lambda x: x.mean(0), True),
    "norm": (lambda x: torch.linalg.vector_norm(x, dim=0), True),
    "extrema": (lambda x: x.amax(0) - x.amin(0), False),
    "negative maximum": (lambda x: (-x.abs() - 1).amax(0), False),
    "any": (lambda x: (x > 0.48).any(0), False),
    "all": (lambda x: (x > -0.48).all(0), False),
    "rows less their sum": (lambda x: x - x.sum(0, keepdim=True), True),
    "softmax": (lambda x: torch.softmax(x, 0), True),
    "product": (lambda x: x.t() @ x[:, :64], True),
}


@pytest.mark.parametrize(("function", "rounds"), OVER_CORES.values(), ids=OVER_CORES)
def test_over_cores(function, rounds):
    """Each core has some rows, or none, whatever lies behind the last one."""
    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    sizes = (2, 3, 13, 31, 33, 63, 64, 65, 67, 127, 251, 449, 511, 512)
    bits = {}
    for size in (*sizes, *reversed(sizes)):
        # The device has these numbers.
        x = (values((size, 256), torch.float16, size, -0.5, 0.5) * 64).round() / 64
        actual = run(f, x)
        if rounds:
            assert_like_oracle(
                actual, function(x.double()), oracle(function, x), f"s = {size}"
            )
        else:
            assert_exact(actual, function(x), f"s = {size}")
        raw = actual.view(torch.uint8)
        assert torch.equal(bits.setdefault(size, raw), raw), size
    (program,) = parts_since(before)
    assert num_sizes(program) == 1


def test_reductions():
    def function(x):
        return x.sum(0), x.amax(1), x.amin(0), (x * x).sum()

    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    for size in (2, 63, 64, 65, 130, 512):
        x = values((size, 37), torch.float16, size, -0.5, 0.5)
        wanted = function(x.double())
        rounded = oracle(function, x)
        for number, actual in enumerate(run(f, x)):
            assert_like_oracle(
                actual, wanted[number], rounded[number], f"s = {size}, {number}"
            )
    assert all(num_sizes(p) == 1 for p in parts_since(before))


def test_two_sizes():
    def function(x, y):
        return torch.tanh(x @ y) + 1, x.t() * 2

    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    for rows, columns in [(5, 70), (64, 64), (3, 2), (33, 520), (520, 5)]:
        x = values((rows, 96), torch.float16, rows, -0.3, 0.3)
        y = values((96, columns), torch.float16, columns, -0.3, 0.3)
        wanted = function(x.double(), y.double())
        rounded = oracle(function, x, y)
        for number, actual in enumerate(run(f, x, y, dims=[(0, 0), (1, 1)])):
            assert_like_oracle(
                actual, wanted[number], rounded[number], f"{rows}, {columns}: {number}"
            )
    assert all(num_sizes(p) == 2 for p in parts_since(before))
    # Both small, one large, the other one large.
    assert len(parts_since(before)) == 3


@pytest.mark.parametrize("dtype", [torch.float16, torch.int64, torch.bool])
@pytest.mark.parametrize("dim", [0, 1])
def test_joined_along_sizes_that_vary(dim, dtype):
    """Two of them, with what does not vary between them."""

    def function(x, y, z):
        return torch.cat((x, z, y), dim)

    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    for first, second in [(5, 70), (64, 64), (2, 3), (63, 130), (130, 2)]:
        x, y, z = (
            (values((n, 40), dtype, n) > 0).to(dtype).transpose(0, dim).contiguous()
            for n in (first, second, 7)
        )
        assert_exact(run(f, x, y, z, dims=[(0, dim), (1, dim)]), function(x, y, z))
    assert [num_sizes(p) for p in parts_since(before)] == [2]


@pytest.mark.parametrize("dim", [0, 1])
def test_slices(dim):
    """All but the first and the last: PyTorch takes other code where one is left."""

    def function(x):
        n = x.shape[dim]
        return x.narrow(dim, 0, n - 1) + x.narrow(dim, 1, n - 1)

    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    for size in (7, 3, 64, 65, 66, 130):
        x = values(shape_of(size, (dim,)), torch.float16, size).round()
        assert_exact(run(f, x, dims=[(0, dim)]), function(x), f"s = {size}")
    assert [num_sizes(p) for p in parts_since(before)] == [1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_types(dtype):
    def function(x, y):
        return torch.where(x > 0, x + y, y), (x == y)

    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    for size in (2, 31, 32, 33, 65):
        x = values((size, 5), dtype, size).to(dtype)
        y = values((size, 5), dtype, size + 1).to(dtype)
        if dtype == torch.float32:
            x, y = x.round(), y.round()
        for actual, wanted in zip(
            run(f, x, y, dims=[(0, 0), (1, 0)]), function(x, y), strict=True
        ):
            assert_exact(actual, wanted)
    assert all(num_sizes(p) == 1 for p in parts_since(before))


def test_results_that_are_views():
    def function(x):
        y = x + 1
        return y, y.t(), y.unsqueeze(1), x[:, 3:5], y[1]

    f = compiled(function, dynamic=None)
    for size in (2, 63, 65, 100):
        x = values((size, 70), torch.float16, size).round()
        device = x.to("spyre")
        torch._dynamo.mark_dynamic(device, 0)
        results = f(device)
        for actual, wanted in zip(results, function(x), strict=True):
            assert actual.stride() == wanted.stride()
            assert actual.storage_offset() == wanted.storage_offset()
            assert_exact(actual.cpu(), wanted)
        assert results[3].data_ptr() != 0
        results[3].add_(1)
        assert_exact(device.cpu()[:, 3:5], x[:, 3:5] + 1)


def test_written_arguments():
    def function(x, y):
        x.add_(y)
        return x * 2

    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    for size in (2, 63, 65, 100):
        x = values((size, 70), torch.float16, size).round()
        y = values((size, 70), torch.float16, size + 1).round()
        device, other = poisoned(x.to("spyre")), y.to("spyre")
        torch._dynamo.mark_dynamic(device, 0)
        torch._dynamo.mark_dynamic(other, 0)
        actual = f(device, other)
        assert_exact(actual.cpu(), (x + y) * 2)
        assert_exact(device.cpu(), x + y)
    assert all(num_sizes(p) == 1 for p in parts_since(before))


def test_inputs_that_lie_otherwise():
    """A program of its own for those that are transposed or sliced."""
    f = compiled(lambda x: x * 2 + 1, dynamic=True)
    for size in (5, 70, 5, 100):
        x = values((size, 66), torch.float16, size).round()
        for view in (
            lambda t: t,
            lambda t: t.t().contiguous().t(),
            lambda t: t[1:],
            lambda t: t[:, 1:],
        ):
            actual = f(view(x.to("spyre")))
            assert_exact(actual.cpu(), view(x) * 2 + 1)


# --- how sizes become symbols ------------------------------------------------


def test_automatic_dynamic():
    """The second size makes it a symbol; then nothing is compiled."""
    f = compiled(lambda x: (x * 2).amax(1), dynamic=None)
    before = len(compiled_parts())
    for size in (7, 9, 3, 64, 33):
        x = values((size, 70), torch.float16, size).round()
        assert_exact(run(f, x, dims=()), (x * 2).amax(1))
    assert [num_sizes(p) for p in parts_since(before)] == [0, 1]


def test_mark_dynamic():
    f = compiled(lambda x: x * 2 + 1, dynamic=None)
    before = len(compiled_parts())
    for size in (100, 4, 600):
        x = values((size, 70), torch.float16, size).round()
        device = x.to("spyre")
        torch._dynamo.mark_dynamic(device, 0, min=4, max=600)
        assert_exact(f(device).cpu(), x * 2 + 1)
    programs = parts_since(before)
    assert len(programs) == 2
    ranges = [p.graph.print_ktir() for p in programs]
    assert any("upperbound=600" in text for text in ranges)
    assert any("ktdp.least = 4" in text for text in ranges)


def test_export():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(256, 64, dtype=torch.float16)

        def forward(self, x):
            return torch.relu(self.linear(x))

    torch.manual_seed(0)
    model = Model()
    rows = torch.export.Dim("rows", min=2, max=512)
    exported = torch.export.export(
        model, (rows_of(8),), dynamic_shapes={"x": {0: rows}}
    )
    f = compiled(exported.module().to("spyre"), dynamic=None)
    before = len(compiled_parts())
    weight, bias = model.linear.weight.detach().cpu(), model.linear.bias.detach().cpu()

    def function(x, weight, bias):
        return torch.relu(x @ weight.t() + bias)

    for size in (8, 2, 64, 65, 511):
        x = rows_of(size, size)
        assert_like_oracle(
            f(x.to("spyre")).detach().cpu(),
            function(x.double(), weight.double(), bias.double()),
            oracle(function, x, weight, bias),
            f"s = {size}",
        )
    assert len(parts_since(before)) <= 3


# --- what there is no such program for ---------------------------------------


#: What computes with sizes in a way that no one program says, and why not.
REFUSED = {
    "flattened triangles": (
        lambda x: x.expand(len(x), len(x), 70).flatten(0, 1) * 2,
        "the product of sizes that vary",
    ),
    "repeated": (lambda x: x.repeat(len(x), 1), "the product of sizes that vary"),
}


@pytest.mark.parametrize(("function", "why"), REFUSED.values(), ids=REFUSED)
def test_a_program_per_size(function, why, listen):
    """Where a program for many sizes is refused; the log says why, once."""
    f = compiled(function, dynamic=None)
    before = len(compiled_parts())
    found = {}
    with listen(logging.getLogger("spyre.inductor"), logging.INFO) as records:
        for size in (3, 513, 3):
            x = values((size, 70), torch.float16, size)
            found[size] = x, run(f, x)
    assert [num_sizes(p) for p in parts_since(before)] == [0, 0]
    for size, (x, actual) in found.items():
        assert_exact(actual, of_one_size(function, x), f"s = {size}")
    said = [r.getMessage() for r in records if "per size" in r.getMessage()]
    # Of each class of sizes.
    assert len(said) == 2
    assert all(why in text for text in said)


# --- time --------------------------------------------------------------------


def cost(f, x):
    """Predicted seconds, and bytes of device memory, of one run's kernels."""
    with torch.spyre.profiler.profile() as trace:
        f(x)
    kernels = trace.kernels
    return (
        sum(k.predicted_seconds for k in kernels),
        sum(k.device_bytes_read + k.device_bytes_written for k in kernels),
    )


def attention_of_a_token(x, w):
    keys, values = x.view(1, -1, 2, 8, 64).permute(2, 0, 3, 1, 4)
    query = w[:8, :64].reshape(1, 8, 1, 64)
    return F.scaled_dot_product_attention(query, keys, values)


#: Functions of rows, the first after the number of columns.
COSTS = {
    "pointwise": (lambda x: torch.relu(x * 2 + 1) * x, 256),
    "linear": (lambda x, w, b: torch.relu(x @ w + b), 256),
    "mlp": (mlp, 256),
    "sum of rows": (lambda x: x.sum(0), 256),
    "gradient of a weight": (lambda x, w: x.t() @ (x @ w), 256),
    "attention of a token": (attention_of_a_token, 1024),
}


@pytest.mark.parametrize("name", COSTS)
def test_as_fast_as_a_program_of_one_size(name):
    function, columns = COSTS[name]
    weights = [w.to("spyre") for w in mlp_weights()]
    given = weights[: len(inspect.signature(function).parameters) - 1]

    def f(x):
        return function(x, *given)

    for weight in weights:
        torch._dynamo.mark_static(weight)
    sizes = random.Random(0).sample(range(2, 513), 20)
    rows = {s: values((s, columns), torch.float16, s, -1, 1).to("spyre") for s in sizes}
    sized = compiled(f, dynamic=True)
    costs = {}
    for size, x in rows.items():
        torch._dynamo.mark_static(x, 1)
        costs[size] = cost(sized, x)
    for size, (seconds, size_in_bytes) in costs.items():
        wanted_seconds, wanted_bytes = cost(compiled(f), rows[size])
        assert seconds <= 1.15 * wanted_seconds, size
        assert size_in_bytes <= 1.15 * wanted_bytes, size
