# SPDX-License-Identifier: Apache-2.0
"""Batches of rows whose number varies, as one matrix and apart: one program."""

import copy

import pytest
import torch
import torch.nn.functional as F
import torch_spyre
from inputs import values
from numerics import assert_exact, compiled, poison, poisoned, rms
from sized_graphs import num_sizes, of_one_size, parts_since, run
from test_eager_sizes import Programs
from tiny_llama import tiny_llama
from torch.utils._pytree import tree_leaves
from torch_spyre import _C
from torch_spyre.compile_backend import compiled_parts

pytestmark = pytest.mark.usefixtures("without_gradients")

SIZES = (5, 9, 17, 33, 63, 64, 65, 100, 200, 2)


def whole(*shape, seed=0, low=-2, high=3):
    """Sums and products of such integers are exact."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randint(low, high, shape, generator=generator).half()


WEIGHT, WIDE, BIAS = whole(70, 96), whole(64, 70), whole(70)


def mixed(x, w, wide, bias):
    """Two products, with what stands between them as one matrix."""
    rows = F.linear(x, w, bias).flatten(0, 1).clamp(-20, 20)
    return F.linear(rows.view(len(x), -1, 70), wide)


#: Of [4, s, 96] and of weights.
FUNCTIONS = {
    "product": lambda x, w, wide, bias: F.linear(x, w),
    "product and bias": lambda x, w, wide, bias: F.linear(x, w, bias),
    "rows": lambda x, w, wide, bias: x.flatten(0, 1) @ w.t(),
    "sum of all rows": lambda x, w, wide, bias: x.flatten(0, 1).sum(0),
    "largest of all rows": lambda x, w, wide, bias: x.reshape(-1, 96).amax(0),
    "gram": lambda x, w, wide, bias: (
        x.flatten(0, 1).clamp(0, 1).t() @ x.flatten(0, 1).clamp(0, 1)
    ),
    "heads": lambda x, w, wide, bias: (
        x.view(4, -1, 3, 32).transpose(1, 2).reshape(-1, 32) + 1
    ),
    "apart again": lambda x, w, wide, bias: (x.flatten(0, 1) * 2).view(4, -1, 96) + x,
    "last rows": lambda x, w, wide, bias: (
        F.linear(x, w).transpose(0, 1)[-1:] + x[:, -1:, :70].transpose(0, 1)
    ),
    "two": mixed,
    "backwards": lambda x, w, wide, bias: x.flatten(0, 1).flip(0) + 1,
    "each row with each": lambda x, w, wide, bias: (
        x.flatten(0, 1)[:, :1] * x.flatten(0, 1)[:, 1:2].t()
    ),
}


def arguments_of(size):
    return whole(4, size, 96), WEIGHT, WIDE, BIAS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_program(name):
    function = FUNCTIONS[name]
    step = compiled(function, dynamic=None)
    before = len(compiled_parts())
    for size in SIZES:
        found = run(step, *arguments_of(size), dims=((0, 1),))
        expected = function(*(a.float() for a in arguments_of(size)))
        assert_exact(found, expected.half(), f"{size}")
    assert [num_sizes(p) for p in parts_since(before)] == [1]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_few_programs_of_each_operator(name):
    """Operator by operator."""
    _C._forget_eager_programs()
    programs = Programs()
    function = FUNCTIONS[name]

    def run_all(sizes):
        for size in sizes:
            poison()
            device = [poisoned(a.to("spyre")) for a in arguments_of(size)]
            expected = function(*(a.float() for a in arguments_of(size)))
            assert_exact(function(*device).cpu(), expected.half(), f"{size}")

    run_all(SIZES[:-2])
    many, one = programs.new("many_sizes"), programs.new("one_size")
    assert set(many) == set(one)
    assert set(many.values()) == {1}, many
    assert set(one.values()) == {2}, one
    # 4 times 129 rows are of another class of sizes.
    programs = Programs()
    run_all((129, 200, 150, 131))
    assert programs.new("one_size") == {}
    assert set(programs.new("many_sizes").values()) <= {1}
    assert torch_spyre.fallback_report() == {}


@pytest.mark.parametrize("heads", [3, 6, 12, 24])
def test_few_programs_of_heads_in_fp32(heads):
    """Copies in another type lie as the rows that they are made of: Qwen3 does this."""
    _C._forget_eager_programs()
    weight = whole(384, 96)

    def function(x, w):
        rows = F.linear(x, w).view(4, x.shape[1], heads, -1)
        wide = rows.float()
        return (wide.abs().amax(-1, True) + wide).half() + rows.clone()

    for size in SIZES[:-2]:
        poison()
        x = whole(4, size, 96, seed=heads)
        found = function(poisoned(x.to("spyre")), weight.to("spyre"))
        expected = function(x.float(), weight.float())
        assert_exact(found.cpu(), expected.half(), f"{size}")
    programs = Programs()
    for size in (101, 77):
        function(whole(4, size, 96).to("spyre"), weight.to("spyre"))
    assert programs.new("one_size") == {} == programs.new("many_sizes")


def test_no_copy_of_what_is_multiplied():
    """Rows of a batch are multiplied where they lie."""
    step = compiled(FUNCTIONS["product and bias"], dynamic=None)
    before = len(compiled_parts())
    run(step, *arguments_of(33), dims=((0, 1),))
    (program,) = parts_since(before)
    text = program.graph.print_ktir()
    assert "scatter" not in text and "gather" not in text


def between_products(x, w, wide, bias):
    """Products of the rows of each head between two of all rows."""
    rows = F.linear(x, w[:64]).clamp(-1, 1).view(len(x), -1, 2, 32).transpose(1, 2)
    found = (rows @ rows.mT).clamp(0, 1) @ rows
    return F.linear(found.transpose(1, 2).reshape(x.shape[0], -1, 64), w[:, :64])


def residual(x, w, wide, bias):
    """What is added to the rows of a product, as one matrix."""
    rows = x.reshape(-1, 96)
    return (rows @ w.t()).clamp(-9, 9) + rows[:, :70] * bias


def written(x, w, wide, bias):
    """Rows summed up in those of a table that their elements name."""
    rows = x.flatten(0, 1)
    return w.new_zeros(5, 96).index_add(0, rows[:, 3].long() + 2, rows.clamp(-1, 1))


#: Of [b, s, 96] and of weights; all treat rows alike.
OF_BATCHES = {
    "product": FUNCTIONS["product"],
    "product and bias": FUNCTIONS["product and bias"],
    "rows": FUNCTIONS["rows"],
    "last rows": FUNCTIONS["last rows"],
    "products of heads": between_products,
    "apart again": lambda x, w, wide, bias: (x.flatten(0, 1) * 2).view(x.shape) + x,
    "two": mixed,
    "residual": residual,
    "all elements": lambda x, w, wide, bias: x.view(-1) + 1,
    "heads": lambda x, w, wide, bias: (
        x.view(len(x), -1, 3, 32).transpose(1, 2).reshape(-1, 32) + 1
    ),
    "transposed": lambda x, w, wide, bias: x.flatten(0, 1).t() * 2,
    "column": lambda x, w, wide, bias: x.flatten(0, 1)[:, 5] * 2,
    "repeated": lambda x, w, wide, bias: x[..., :1].flatten(0, 1).expand(-1, 7) * 2,
    "joined": lambda x, w, wide, bias: torch.cat(
        (x.flatten(0, 1), x.reshape(-1, 96) * 2), 1
    ),
    "chosen": lambda x, w, wide, bias: torch.where(
        x.flatten(0, 1) > 0, x.flatten(0, 1), bias[:1]
    ),
    "made": lambda x, w, wide, bias: (
        x.flatten(0, 1)[:, :70] + x.new_full((len(x) * x.shape[1], 70), 3)
    ),
    "sums of each": lambda x, w, wide, bias: x.flatten(0, 1).sum(1),
    "largest of each": lambda x, w, wide, bias: x.flatten(0, 1).argmax(-1).half(),
    "sums along each": lambda x, w, wide, bias: x.flatten(0, 1).cumsum(1),
    "order of each": lambda x, w, wide, bias: x.flatten(0, 1).sort(1)[0],
    "largest two": lambda x, w, wide, bias: x.flatten(0, 1).topk(2)[0],
    "table": lambda x, w, wide, bias: F.embedding(x[..., 0].flatten().long() + 2, wide),
    "elements of each": lambda x, w, wide, bias: x.flatten(0, 1).gather(
        1, x.flatten(0, 1)[:, :3].long() + 2
    ),
    "summed up": written,
    "sum of all rows": FUNCTIONS["sum of all rows"],
    "largest of all rows": FUNCTIONS["largest of all rows"],
    "gram": FUNCTIONS["gram"],
}
BATCHES = ((2, 7), (3, 64), (4, 65), (2, 131), (5, 20), (8, 64), (3, 2), (7, 63))


@pytest.mark.parametrize("name", OF_BATCHES)
def test_batches_that_vary_too(name):
    """One for the first of them, for any number of rows; then one for all up to each
    power of two.
    """
    function = OF_BATCHES[name]
    step = compiled(function, dynamic=None)
    before = len(compiled_parts())
    for batch, size in BATCHES:
        arguments = whole(batch, size, 96), *arguments_of(0)[1:]
        found = run(step, *arguments, dims=((0, 0), (0, 1)))
        expected = function(*(a.float() for a in arguments))
        assert_exact(found, expected.half(), f"{batch} x {size}")
    assert [num_sizes(p) for p in parts_since(before)] == [1, 2, 2]


def test_batches_that_vary_unmarked():
    """Dynamo finds out what varies; a batch of one has programs of its own."""
    weight = whole(96, 64)
    torch._dynamo.mark_static(placed := weight.to("spyre"))
    f = compiled(lambda x: (x @ placed).relu(), dynamic=None)
    batches = [2, 3, 5, 3, 2, 5, 5, 1, 1, 1]
    before, counts = len(compiled_parts()), []
    for batch, size in zip(
        batches, (7, 9, 33, 64, 100, 12, 9, 30, 65, 20), strict=True
    ):
        x = whole(batch, size, 96)
        wanted = (x.float() @ weight.float()).relu().half()
        assert_exact(f(poisoned(x.to("spyre"))).cpu(), wanted, f"{batch} x {size}")
        counts.append(len(compiled_parts()) - before)
    assert counts[6] == counts[4] <= 4 and counts[9] == counts[8]


def test_one_batch_and_any_number_of_rows():
    """The batch is a number, though Dynamo takes it for a symbol."""
    step = compiled(FUNCTIONS["product"], dynamic=None)
    before = len(compiled_parts())
    for size in (7, 64, 65, 9):
        arguments = arguments_of(size)
        found = run(step, *arguments, dims=((0, 0), (0, 1)))
        expected = FUNCTIONS["product"](*(a.float() for a in arguments))
        assert_exact(found, expected.half(), f"{size}")
    assert [num_sizes(p) for p in parts_since(before)] == [1]


#: Operators that tell rows apart.
MIXING = {
    "backwards": FUNCTIONS["backwards"],
    "sums along rows": lambda x, w, wide, bias: x.flatten(0, 1).clamp(-1, 1).cumsum(0),
    "largest row": lambda x, w, wide, bias: x.flatten(0, 1).argmax(0).half(),
    "some rows": lambda x, w, wide, bias: x.flatten(0, 1)[x[0, :, 0].long() + 2],
}


@pytest.mark.parametrize("name", MIXING)
def test_batches_whose_rows_need_a_copy(name):
    """A program for each of these, which serves any number of rows."""
    mixing = MIXING[name]
    step = compiled(mixing, dynamic=None)
    before = len(compiled_parts())
    for batch, size in ((2, 7), (3, 64), (3, 65), (2, 130), (5, 20), (3, 9)):
        arguments = whole(batch, size, 96), *arguments_of(0)[1:]
        found = run(step, *arguments, dims=((0, 0), (0, 1)))
        expected = mixing(*(a.float() for a in arguments))
        assert_exact(found, expected.half(), f"{batch} x {size}")
    assert [num_sizes(p) for p in parts_since(before)] == [1, 1, 1]


#: Of floats [b, s, 96] alone, not exact.
OF_FLOATS = {
    "softmax": lambda x: torch.softmax(x.flatten(0, 1), -1),
    "log_softmax": lambda x: torch.log_softmax(x.flatten(0, 1).float(), -1),
    "layer_norm": lambda x: F.layer_norm(x.flatten(0, 1), (96,)),
    "rms_norm": lambda x: F.rms_norm(x.reshape(-1, 96), (96,)),
    "mean": lambda x: x.flatten(0, 1).mean(-1),
    "gelu": lambda x: F.gelu(x.flatten(0, 1)).view(x.shape) + x,
    "largest two": lambda x: torch.topk(x.flatten(0, 1)[:, :8].float() * 3, 2),
}


@pytest.mark.parametrize("name", OF_FLOATS)
def test_bits_of_batches_that_vary(name):
    """Those that a program of one size gives."""
    function = OF_FLOATS[name]
    step = compiled(function, dynamic=None)
    before, found = len(compiled_parts()), {}
    for batch, size in BATCHES:
        x = values((batch, size, 96), torch.float16, size, -2, 2)
        found[batch, size] = x, run(step, x, dims=((0, 0), (0, 1)))
    assert [num_sizes(p) for p in parts_since(before)] == [1, 2, 2]
    for sizes, (x, actual) in found.items():
        expected = of_one_size(function, x)
        for a, e in zip(tree_leaves(actual), tree_leaves(expected), strict=True):
            assert_exact(a, e, f"{sizes}")


def test_losses_of_batches_that_vary():
    """The mean over all rows but the last one of each batch."""

    def function(x, w):
        logits = F.linear(x, w.to(x.dtype)).float()
        labels = x[:, 1:, 0].long() + 2
        return F.cross_entropy(logits[:, :-1].reshape(-1, 70), labels.reshape(-1))

    step = compiled(function, dynamic=None)
    before = len(compiled_parts())
    for batch, size in ((2, 7), (3, 64), (4, 65), (2, 131), (3, 5), (4, 3)):
        x = whole(batch, size, 96)
        found = run(step, x, WEIGHT, dims=((0, 0), (0, 1)))
        torch.testing.assert_close(
            found.double(), function(x.double(), WEIGHT).double(), atol=0, rtol=2e-3
        )
    assert [num_sizes(p) for p in parts_since(before)] == [1, 2]


def test_routers_of_batches_that_vary():
    """Which order the exponentials are summed up in depends on the plan."""

    def router(x):
        return torch.softmax(x.flatten(0, 1)[:, :8].float(), -1).topk(2)

    step = compiled(router, dynamic=None)
    before = len(compiled_parts())
    for batch, size in BATCHES:
        x = values((batch, size, 96), torch.float16, size, -2, 2)
        generator = torch.Generator().manual_seed(size)
        x[..., :8] = torch.rand(batch, size, 8, generator=generator).argsort(-1) / 4
        found, places = run(step, x, dims=((0, 0), (0, 1)))
        expected, wanted = router(x)
        assert torch.equal(places, wanted), f"{batch} x {size}"
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    assert [num_sizes(p) for p in parts_since(before)] == [1, 2, 2]


MODELS = {
    "all": {},
    "window": {"windows": (16, 16)},
}


@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
def test_prompts_of_four(options):
    """Padded on the left."""
    model = tiny_llama(**options)
    wide = copy.deepcopy(model).double()
    device = copy.deepcopy(model).half().to("spyre")
    step = compiled(device, dynamic=None)
    counts = []
    for size in SIZES[:-1]:
        generator = torch.Generator().manual_seed(size)
        ids = torch.randint(0, 96, (4, size), generator=generator)
        is_token = torch.arange(size) >= torch.arange(4)[:, None]
        mask = is_token
        if not options:
            seen = torch.arange(size)[None] <= torch.arange(size)[:, None]
            mask = (is_token[:, None] & seen)[:, None]
        before = len(compiled_parts())
        poison()
        results = [
            run_on(f, ids.to(d), mask.to(d))
            for f, d in ((step, "spyre"), (device, "spyre"), (wide, "cpu"))
        ]
        counts.append(len(compiled_parts()) - before)
        found, alone, exact = (r.cpu().double()[is_token] for r in results)
        assert rms(found - exact) <= 2 * rms(alone - exact) + 1e-6 * rms(exact), size
    assert sum(counts) <= 3, counts


def run_on(model, ids, mask):
    return model(ids, None, mask, 0)[0]
