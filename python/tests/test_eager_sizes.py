# SPDX-License-Identifier: Apache-2.0
"""Eager operators whose sizes vary from call to call: one program for many sizes."""

import importlib
import random

import pytest
import sympy
import torch
import torch.nn.functional as F
import torch_spyre
from inputs import values
from numerics import assert_exact, poison, poisoned
from torch_spyre import _C
from torch_spyre.frontend import eager
from torch_spyre.frontend.size_patterns import Sum, find_pattern

F16 = torch.float16


def whole(*shape, dtype=F16, low=-4, high=5):
    """Integers: sums and products of a few are exact in every float format."""
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randint(low, high, shape, generator=generator).to(dtype)


@pytest.fixture(autouse=True)
def _forgotten():
    """No program is known yet, and nothing runs on the CPU."""
    _C._forget_eager_programs()
    yield
    assert torch_spyre.fallback_report() == {}


class Programs:
    """The programs that operators get from here on."""

    def __init__(self):
        self.before = eager.programs()

    def new(self, kind):
        """Operator -> new programs of a kind, those with none left out."""
        none = eager.Programs()
        counts = {
            name: getattr(found, kind) - getattr(self.before.get(name, none), kind)
            for name, found in eager.programs().items()
        }
        return {name: count for name, count in counts.items() if count}

    def assert_few(self, what=""):
        """At most a few each, and one for many sizes of each operator."""
        many, one = self.new("many_sizes"), self.new("one_size")
        assert many, what
        assert set(many) >= set(one), what
        assert max(many.values()) <= 2, (what, many)
        assert max(one.values()) <= 4, (what, one)


def on_device(tensor):
    return poisoned(tensor.to("spyre"))


WEIGHT = whole(96, 130)
#: What they compute is exact for small integers.
EXACT = {
    "add": lambda x, to: x + x,
    "row": lambda x, to: x * to(WEIGHT[:, 5].clone()),
    "product": lambda x, to: x @ to(WEIGHT),
    "scores": lambda x, to: x @ x.t(),
    "linear": lambda x, to: F.linear(x, to(WEIGHT.t().contiguous())),
    "cat": lambda x, to: torch.cat([x, x[:1]]),
    "cat beside": lambda x, to: torch.cat([x, x], 1),
    "sum of rows": lambda x, to: x.sum(-1),
    "sum of columns": lambda x, to: x.sum(0),
    "largest": lambda x, to: x.amax(0),
    "transposed": lambda x, to: x.t().contiguous(),
    "compared": lambda x, to: x > 1,
    "in place": lambda x, to: x.clone().relu_(),
    "decomposed": lambda x, to: F.threshold(x, 1, 5),
    "part": lambda x, to: x[:, 32:] * 2,
    "expanded": lambda x, to: x[:1].expand_as(x) + x,
    "rows behind": lambda x, to: x[1:] + 1,
    "diagonal of scores": lambda x, to: (x @ x.t()).diagonal() * 2,
    "nearest": lambda x, to: F.interpolate(x[None, None], scale_factor=2),
    "nearest, to one size": lambda x, to: F.interpolate(x.t()[None], size=64),
    "bilinear": lambda x, to: F.interpolate(
        x[None, None], scale_factor=2, mode="bilinear"
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_few_programs_for_all_sizes(name):
    programs = Programs()
    function = EXACT[name]
    sizes = [*range(1, 201), 511, 512, 513, 700]
    for size in sizes if name in ("add", "product", "cat") else sizes[::9]:
        poison()
        x = whole(size, 96)
        result = function(on_device(x), on_device).cpu()
        expected = function(x.float(), lambda t: t.float())
        assert_exact(result, expected.to(result.dtype), f"{name} {size}")
    programs.assert_few(name)


ROUNDED = {
    "softmax": lambda x: torch.softmax(x, -1),
    "softmax of columns": lambda x: torch.softmax(x, 0),
    "gelu": F.gelu,
    "layer norm": lambda x: F.layer_norm(x, (96,)),
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(0),
    "mean of all": lambda x: x.mean(),
    "deviation": lambda x: x.std(0),
    "bilinear between corners": lambda x: F.interpolate(
        x[None, None], scale_factor=2, mode="bilinear", align_corners=True
    ),
    "averages": lambda x: F.adaptive_avg_pool1d(x.t(), 5),
    "product": lambda x: x.t() @ x,
}


@pytest.mark.parametrize("name", ROUNDED)
def test_like_a_program_of_one_size(name):
    """Both are within the format's tolerance of what is exact."""
    programs = Programs()
    function = ROUNDED[name]
    results = {}
    for size in (2, 3, *range(4, 200, 13), 64, 65, 128, 513):
        poison()
        x = values((size, 96), F16, size)
        results[size] = function(on_device(x)).cpu()
    programs.assert_few(name)
    for size, result in results.items():
        _C._forget_eager_programs()
        x = values((size, 96), F16, size)
        single = function(x.to("spyre")).cpu()
        exact = function(x.double())
        own, other = ((r.double() - exact).abs().max() for r in (result, single))
        unit = 2.0**-9 * exact.abs().max()
        assert own <= 2 * other + unit, (name, size, own, other)


@pytest.mark.parametrize("name", ROUNDED)
def test_bits_do_not_depend_on_what_ran_before(name):
    function = ROUNDED[name]
    sizes = [37, 64, 90, 130, 257, 500]
    runs = []
    for first in ([2, 3, 4], [300, 5, 411], [512, 17, 100, 66, 3]):
        _C._forget_eager_programs()
        for size in first:
            function(values((size, 96), F16, 0).to("spyre"))
        programs = Programs()
        order = random.Random(first[0]).sample(sizes, len(sizes))
        found = {n: function(on_device(values((n, 96), F16, n))).cpu() for n in order}
        assert programs.new("one_size") == {}
        runs.append(found)
    for size in sizes:
        for other in runs[1:]:
            assert_exact(other[size], runs[0][size], f"{name} {size}")


def test_sizes_that_vary_together():
    """Heads and keys of attention, and a mask that is as long as the keys."""
    programs = Programs()
    for size in (3, 9, 4, 70, 71, 33, 64, 200):
        poison()
        q, k = whole(2, 4, 1, 32), whole(2, 4, size, 32)
        mask = whole(1, 1, 1, size)
        found = on_device(q) @ on_device(k).transpose(2, 3) + on_device(mask)
        expected = q.float() @ k.float().transpose(2, 3) + mask.float()
        assert_exact(found.cpu(), expected.half(), f"{size}")
    programs.assert_few()


def test_attention_returns_its_sizes():
    """The fused operator says how many rows and keys there were, as integers."""
    fused = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
    programs = Programs()
    for size in (3, 9, 4, 70, 71, 33, 64, 200):
        poison()
        q, k, v = (values((1, 4, n, 32), F16, n, -1, 1) for n in (1, size, size))
        results = fused(*map(on_device, (q, k, v)))
        exact = F.scaled_dot_product_attention(q.double(), k.double(), v.double())
        assert (results[0].cpu().double() - exact).abs().max() < 2.0**-7
        assert results[4:6] == (1, size)
    programs.assert_few()


def test_several_sizes_vary():
    programs = Programs()
    generator = random.Random(1)
    for _ in range(40):
        n, m = generator.randint(2, 150), generator.randint(2, 150)
        poison()
        x, y = whole(3, n, m), whole(m)
        found = on_device(x) + on_device(y)
        assert_exact(found.cpu(), (x.float() + y.float()).half(), f"{n} {m}")
    assert programs.new("many_sizes") == {"aten.add.Tensor": 1}
    assert programs.new("one_size") == {"aten.add.Tensor": 4}


def test_sizes_and_numbers_vary():
    programs = Programs()
    for size in range(2, 60, 3):
        x = whole(size, 70)
        found = on_device(x) * (size / 2.0)
        assert_exact(found.cpu(), (x.float() * (size / 2)).half(), f"{size}")
    programs.assert_few()


@pytest.mark.parametrize("function", [torch.square, torch.neg, torch.cumsum])
def test_resized_results_lie_as_on_the_cpu(function):
    x, numbers = whole(3, 5, 70), (0,) * (function is torch.cumsum)
    for view in (
        lambda t: t.transpose(0, 2),
        lambda t: t[:, :, ::2],
        lambda t: t.permute(1, 2, 0)[1:],
        lambda t: t[:1].expand(3, 5, 70),
    ):
        for _ in range(2):
            host, device = (
                torch.empty(0, dtype=F16, device=d) for d in ("cpu", "spyre")
            )
            function(view(x), *numbers, out=host)
            function(view(x.to("spyre")), *numbers, out=device)
            assert device.stride() == host.stride()
            assert_exact(device.cpu(), host)


def test_out_and_in_place():
    programs = Programs()
    out = torch.empty(0, dtype=F16, device="spyre")
    for size in range(2, 90, 7):
        poison()
        x, y = whole(size, 65), whole(65)
        a = on_device(x)
        a += on_device(y)
        assert_exact(a.cpu(), x + y)
        view = on_device(whole(size + 2, 65))
        view[1:-1].mul_(3)
        expected = whole(size + 2, 65)
        expected[1:-1] *= 3
        assert_exact(view.cpu(), expected)
        target = torch.empty(size, 65, dtype=F16, device="spyre")
        torch.mul(on_device(x), 2, out=target)
        assert_exact(target.cpu(), x * 2)
    with pytest.warns(UserWarning, match="An output with one or more elements"):
        for size in (3, 4, 5, 6, 7):
            x = whole(size, 33)
            torch.add(on_device(x), 1, out=out)
            assert_exact(out.cpu(), x + 1)
    assert programs.new("many_sizes")["aten.add_.Tensor"] == 1


def test_one_storage_or_two():
    """Calls on one storage have another form than calls on two."""
    for size in (2, 3, 4, 5):
        x = on_device(whole(size, 64))
        assert_exact((x + x).cpu(), whole(size, 64) * 2)
    for size in (2, 3, 4, 5):
        x, y = whole(size, 64), whole(size, 64, low=0)
        assert_exact((on_device(x) + on_device(y)).cpu(), x + y)


def test_parts_of_a_storage():
    """What is used of a cache grows; where it begins varies, too."""
    programs = Programs()
    host = whole(4, 300, 64)
    cache = on_device(host)
    for size in (5, 9, 23, 64, 65, 130, 299):
        assert_exact((cache[:, :size] + 1).cpu(), host[:, :size] + 1, f"{size}")
    programs.assert_few()
    rows = on_device(whole(300, 64))
    for size in (5, 9, 23, 64, 65, 130):
        found = rows[size : 2 * size] * 2
        assert_exact(found.cpu(), whole(300, 64)[size : 2 * size] * 2, f"{size}")
    # Elsewhere, with the same sizes.
    for start in (1, 2, 30):
        found = rows[start : start + 9] * 2
        assert_exact(found.cpu(), whole(300, 64)[start : start + 9] * 2, f"{start}")


def test_strides_of_one_element_vary():
    """Of a tensor and of its storage, whose sizes do not."""
    host = whole(1, 20, 64)
    for size in (7, 8, 9, 10, 11):
        row = torch.empty_strided((1, 64), (64 * size, 1), dtype=F16, device="spyre")
        row.fill_(size)
        part = on_device(host)[0, :size]
        assert_exact((part + row).cpu(), host[0, :size] + size)


def test_layouts_differ():
    """A program for many sizes is for one layout."""
    for size in (70, 71, 72, 73, 74, 75):
        x = whole(size, 64)
        layout = _C.SpyreTensorLayout([size, 64], [64, 1], F16, [1, 0])
        other = on_device(x).to(device_layout=layout)
        assert_exact((on_device(x) * 3).cpu(), x * 3)
        assert_exact((other * 3).cpu(), x * 3)


def test_single_sticks_across_what_varies():
    """A result lies as what was made with its size, so that its readers take it."""
    programs = Programs()
    for size in (5, 9, 17, 33, 64, 65, 100, 200):
        x = whole(32, size)
        layout = _C.SpyreTensorLayout([size, 32], [1, size], F16, [0, 1])
        rows = x.to("spyre").t().to(device_layout=layout)
        found = rows * 2
        assert found.device_tensor_layout() == rows.device_tensor_layout() == layout
        assert_exact((found * 2).cpu(), 4 * x.t(), f"{size}")
    assert_one_for_many(programs)


#: Calls with integers that change with the size of a matrix.
INTEGERS = {
    "padded behind": lambda x: F.pad(x, (1, 2)),
    "padded to 300": lambda x: F.pad(x, (0, 0, 0, 300 - len(x))),
    "padded before": lambda x: F.pad(x, (0, 0, 300 - len(x), 0), value=1.5),
    "padded before along sticks": lambda x: F.pad(x.t(), (300 - len(x), 0)),
    "cropped to 4": lambda x: F.pad(x, (0, 0, 0, 4 - len(x))),
    "upper": lambda x: x.triu(len(x) - 5),
    "lower": lambda x: x.tril(1 - len(x)),
    "lower of a batch": lambda x: x.expand(3, -1, -1).tril(len(x) - 40),
    "rolled": lambda x: torch.roll(x, len(x) - 1, 0),
    "rolled back": lambda x: torch.roll(x.t(), 3 - len(x), 1),
}
#: Calls with an integer that changes, of a matrix that does not.
ALONE = {
    "largest": lambda x, k: x.topk(k, sorted=True)[0],
    "largest places": lambda x, k: x[1].topk(k)[1],
    "smallest": lambda x, k: x[:60].topk(k % 59 + 2, 0, False)[0],
    "rolled": lambda x, k: torch.roll(x, k, 1),
    "upper": lambda x, k: x.triu(k),
    "padded": lambda x, k: F.pad(x, (k, 0, 0, k)),
}


def assert_one_for_many(programs):
    many, one = programs.new("many_sizes"), programs.new("one_size")
    assert set(many) >= set(one)
    assert max(many.values()) <= 2, many
    assert max(one.values()) <= 4, one


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_that_change(name):
    """Diagonals, paddings, shifts: what PyTorch lets depend on sizes is no constant."""
    programs = Programs()
    function = INTEGERS[name]
    for size in (5, 9, 17, 33, 63, 64, 65, 100, 200):
        poison()
        x = whole(size, 96)
        found = function(on_device(x)).cpu()
        assert_exact(found, function(x), f"{name} {size}")
    assert_one_for_many(programs)


@pytest.mark.parametrize("name", ALONE)
def test_integers_that_change_alone(name):
    programs = Programs()
    function = ALONE[name]
    generator = torch.Generator().manual_seed(0)
    x = torch.stack([torch.randperm(96, generator=generator) for _ in range(80)]).half()
    for k in (5, 9, 17, 33, 2, 63, 64, 65, 70, 47):
        poison()
        found = function(on_device(x), k).cpu()
        assert_exact(found, function(x, k), f"{name} {k}")
    assert_one_for_many(programs)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", ["topk", "kthvalue"])
def test_integers_up_to_a_size(name, dim):
    """Two symbols: that one is not beyond the other is checked in each call."""
    programs = Programs()
    function = getattr(torch, name)
    for size in (63, 64, 65, 127, 130, 7, 4, 200, 512):
        poison()
        generator = torch.Generator().manual_seed(size)
        rows = [torch.randperm(size, generator=generator) for _ in range(5)]
        x = torch.stack(rows, 1 - dim).half()
        found = function(on_device(x), size // 3 + 1, dim)
        for own, expected in zip(found, function(x, size // 3 + 1, dim), strict=True):
            assert_exact(own.cpu(), expected, f"{size}")
        with pytest.raises(RuntimeError, match="out of range"):
            function(on_device(x), size + 1, dim)
    programs.assert_few()


def test_parts_end_in_storages_whose_size_varies():
    """The diagonal of up to 96 rows is as long as these."""
    programs = Programs()
    for size in (5, 9, 33, 64, 95, 96, 7, 97, 130):
        x = whole(size, 96)
        found = (on_device(x).diagonal() + 1).cpu()
        assert_exact(found, x.diagonal() + 1, f"{size}")
        if size == 7:
            assert programs.new("one_size") == {"aten.add.Tensor": 2}
            assert programs.new("many_sizes") == {"aten.add.Tensor": 1}


def test_what_cannot_be_for_many_sizes_is_counted():
    """It runs as a program per size, and no more are tried after a few."""
    before = eager.size_refusals()
    programs = Programs()
    for size in range(2, 30):
        x = values((1, 1, size + 2, 40), F16, size)
        found = F.max_pool2d(on_device(x), 3, 2).cpu()
        assert_exact(found, F.max_pool2d(on_device(x).cpu(), 3, 2))
    name = "aten.max_pool2d.default"
    assert programs.new("one_size") == {name: 28}
    refused = {
        key: count - before.get(key, 0)
        for key, count in eager.size_refusals().items()
        if key[0] == name
    }
    assert sum(refused.values()) == 4


def form(size, width):
    """The numbers of a contiguous matrix that is its storage's home."""
    return [size, width, width, 1, 0, size, width, width, 1]


SIZES = (0, 1, 5, 6)


def test_patterns():
    symbol, other = Sum(0, 1, (0,)), Sum(0, 1, (1,))
    zero, one, wide = Sum(0), Sum(1), Sum(96)
    assert find_pattern(form(4, 96), SIZES, [form(2, 96)]) is None
    # 1 is a size by itself.
    assert find_pattern(form(4, 96), SIZES, [form(1, 96), form(3, 96)]) is None
    found = find_pattern(form(4, 96), SIZES, [form(2, 96), form(3, 96), form(7, 8)])
    assert found.positions == (0,)
    rows = (symbol, wide, wide, one)
    assert found.numbers == (*rows, zero, *rows)
    earlier = [form(5, 3), form(3, 9), form(2, 4)]
    assert find_pattern(form(4, 7), SIZES, earlier) is None
    found = find_pattern(form(4, 7), SIZES, [*earlier, form(6, 11)])
    assert found.positions == (0, 1)
    both = (symbol, other, other, one)
    assert found.numbers == (*both, zero, *both)


def test_patterns_of_derived_numbers():
    """A size that is larger by one, a stride that is a product, an offset."""

    def numbers(s, t):
        return [s, s + 1, s * t, t, 64 * s - 128]

    earlier = [numbers(s, t) for s, t in ((3, 9), (5, 2), (8, 4), (4, 4))]
    found = find_pattern(numbers(6, 7), (0, 1, 3), earlier)
    assert found.numbers == (
        Sum(0, 1, (0,)),
        Sum(1, 1, (0,)),
        Sum(0, 1, (0, 1)),
        Sum(0, 1, (1,)),
        Sum(-128, 64, (0,)),
    )
    assert found.positions == (0, 3)
    # A stride that is nothing of the sizes.
    assert find_pattern([4, 11], (0,), [[2, 7], [3, 12]]) is None


#: Start and end of ranges of the numbers in a loop, and how far they are apart.
RANGES = {
    "up to": lambda n: (0, n, 1),
    "the next": lambda n: (n, n + 1, 1),
    "the next four": lambda n: (n, n + 4, 1),
    "a part": lambda n: (7, n + 9, 1),
    "every other one": lambda n: (0, 2 * n, 2),
    "backwards": lambda n: (n, -1, -1),
    "from below 0": lambda n: (-n, n, 1),
}


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32, F16])
@pytest.mark.parametrize("name", RANGES)
def test_ranges(name, dtype):
    """Where a range begins is a number, and where it ends follows from its size."""
    programs = Programs()
    for n in (5, 2, 17, 63, 64, 65, 131, 200, 222, 9, 400, 3, 5):
        bounds = RANGES[name](n)
        actual = torch.arange(*bounds, dtype=dtype, device="spyre")
        assert_exact(actual.cpu(), torch.arange(*bounds, dtype=dtype), f"n = {n}")
    assert set(programs.new("one_size")) == {"spyre.fill_range_.default"}
    assert sum(programs.new("one_size").values()) <= 4
    assert sum(programs.new("many_sizes").values()) <= 2


def test_ranges_into_tensors():
    """As on the CPU: parts of others, of another size, empty ones, and errors."""
    x = torch.zeros(20, dtype=torch.int64)
    other = x.to("spyre")
    for given in (x, other):
        torch.arange(3, 9, out=given[4:10])
        torch.arange(6, out=given[::3][1:])
        # As many elements keep their sizes, with gaps and without.
        assert torch.arange(8, out=given[12:].view(2, 4)).shape == (2, 4)
        assert torch.arange(6, out=given.view(4, 5)[:3, 1::2]).shape == (3, 2)
        assert torch.arange(4, 5, out=given[19].view(())).shape == ()
    assert_exact(other.cpu(), x)
    resized = torch.empty(0, dtype=torch.int64, device="spyre")
    assert torch.arange(2, 5, out=resized).tolist() == [2, 3, 4] == resized.tolist()
    assert torch.arange(3, 3, device="spyre").shape == (0,)
    assert torch.arange(0.5, 3, device="spyre").tolist() == [0.5, 1.5, 2.5]
    far = torch.arange(2**31 - 3, 2**31 - 1, device="spyre")
    assert far.tolist() == [2**31 - 3, 2**31 - 2]
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        torch.arange(0, 5, 0, device="spyre")
    with pytest.raises(RuntimeError, match="inconsistent with step sign"):
        torch.arange(5, 0, device="spyre")


LINES = {
    "arange": lambda n, out: torch.arange(n, out=out),
    "linspace": lambda n, out: torch.linspace(0, n - 1, n, out=out),
    "logspace": lambda n, out: torch.logspace(0, n - 1, n, 2, out=out),
}


@pytest.mark.parametrize("dtype", [torch.float32, F16])
@pytest.mark.parametrize("name", LINES)
def test_lines_into_tensors(name, dtype):
    """As many elements keep their sizes, with gaps and without; others are resized."""
    x = torch.zeros(5, 6, dtype=dtype)
    other = on_device(x)
    for given in (x, other):
        parts = (
            given[:2, :4],
            given[4:, 4:].squeeze(0),
            given[2:4],
            given[4, 1].view(()),
        )
        for part in parts:
            shape = part.shape
            found = LINES[name](part.numel(), part)
            assert found is part and part.shape == shape
        empty = given.new_empty(0, 3)
        assert LINES[name](0, empty).shape == (0, 3)
        assert LINES[name](4, empty).shape == (4,)
    torch.testing.assert_close(other.cpu(), x, rtol=2**-9, atol=0)


def test_patterns_with_integers():
    """An integer is a sum of a size if it can be; else a symbol, from 2 on."""
    earlier = [[s, 512 - s, 3] for s in (3, 5, 8)]
    found = find_pattern([6, 506, 3], (0,), earlier, (1, 2))
    assert found.numbers == (Sum(0, 1, (0,)), Sum(512, -1, (0,)), Sum(3))
    assert found.positions == (0,)
    # One changes by itself.
    earlier = [[7, k] for k in (4, 9)]
    found = find_pattern([7, 2], (0,), earlier, (1,))
    assert (found.numbers, found.positions) == ((Sum(7), Sum(0, 1, (0,))), (1,))
    assert find_pattern([7, 1], (0,), earlier, (1,)) is None
    assert find_pattern([7, -3], (0,), earlier, (1,)) is None
    # A negative one follows from the size.
    earlier = [[s, 1 - s] for s in (3, 5)]
    assert find_pattern([8, -7], (0,), earlier, (1,)).positions == (0,)


def test_patterns_of_calls_of_several_kinds():
    """Parts that begin at several places: those like this one have a pattern."""
    other = [[s, 64 * s, 128] for s in (5, 9)]
    assert find_pattern([17, 17 * 64, 256], (0,), other) is None
    earlier = [*other, [33, 33 * 64, 256]]
    assert find_pattern([17, 17 * 64, 256], (0,), earlier) is None
    found = find_pattern([17, 17 * 64, 256], (0,), [*earlier, [40, 40 * 64, 256]])
    assert found.numbers == (Sum(0, 1, (0,)), Sum(0, 64, (0,)), Sum(256))


def test_parts_that_begin_at_several_places():
    programs = Programs()
    for size in (5, 9, 17, 33, 63, 64, 65, 100, 200):
        poison()
        x = whole(size, 384)
        keys, values = on_device(x).split(128, 1)[1:]
        assert_exact((keys * 2).cpu(), x[:, 128:256] * 2, f"{size}")
        assert_exact((values * 2).cpu(), x[:, 256:] * 2, f"{size}")
    programs.assert_few()


def test_constants_are_made_before_threads_use_them():
    """SymPy makes one at its first use, which two threads must not do at once."""
    importlib.import_module("torch_spyre.frontend.symbols")
    assert "NegativeIntInfinity" not in sympy.S._classes_to_install
