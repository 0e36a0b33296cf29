# SPDX-License-Identifier: Apache-2.0
"""Eager operators on parts of tensors where both lengths vary: one program for many."""

import pytest
import torch
import torch_spyre
from numerics import assert_exact, poison, poisoned
from test_eager_sizes import Programs, on_device, whole
from torch_spyre import _C
from torch_spyre.frontend import eager
from torch_spyre.frontend.size_patterns import Sum, find_pattern


@pytest.fixture(autouse=True)
def _forgotten():
    """No program is known yet, and nothing runs on the CPU."""
    _C._forget_eager_programs()
    yield
    assert torch_spyre.fallback_report() == {}


def test_patterns_of_parts():
    """A home is longer than its part, by what varies."""

    def numbers(part, rest):
        return [part, 96, 96, 1, 0, part + rest, 96, 96, 1]

    earlier = [numbers(*sizes) for sizes in ((3, 9), (5, 2), (8, 41), (4, 4))]
    places, parts = (0, 1, 5, 6), {5: 0}
    found = find_pattern(numbers(6, 7), places, earlier, (), parts)
    assert (found.positions, found.parts) == ((0, 5), (None, 0))
    assert found.values([6, 7]) == [6, 13]
    assert [n.of(found.values([6, 7])) for n in found.numbers] == numbers(6, 7)
    # One that is hardly longer is of another kind, and so are those that are longer.
    assert find_pattern(numbers(6, 1), places, earlier, (), parts) is None
    others = [*earlier, numbers(6, 1), numbers(9, 0)]
    assert find_pattern(numbers(6, 7), places, others, (), parts) == found
    # What it is longer by is always the same.
    grown = [numbers(s, 1) for s in (3, 5)]
    found = find_pattern(numbers(8, 1), places, grown, (), parts)
    assert (found.positions, found.parts) == ((0,), (None,))
    assert found.numbers[5] == Sum(1, 1, (0,))


def filled(x, n):
    x[:n].mul_(2)
    return x


def into_first(x, n):
    out = torch.zeros_like(x)
    torch.mm(x[:n], x.new_ones(96, 96), out=out[:n])
    return out


#: Of matrices of p rows of 96, of which n are used, or of p columns.
PARTS = {
    "first rows": (lambda x, n: x[:n] * 2, lambda p: (p, 96)),
    "rows after three": (lambda x, n: x[3 : n + 3] + 1, lambda p: (p + 5, 96)),
    "columns": (lambda x, n: x[:, :n] * 2 + x[:, :n], lambda p: (9, p)),
    "cache": (lambda x, n: x[:, :n].sum(-1), lambda p: (4, p, 64)),
    "written": (filled, lambda p: (p, 96)),
    "product": (into_first, lambda p: (p, 96)),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_what_varies(name):
    """Both sizes vary, and nothing says how one follows from the other."""
    function, shape = PARTS[name]
    programs = Programs()

    def run_all(sizes):
        for n, p in sizes:
            x = whole(*shape(p), low=-1, high=2)
            poison()
            found = function(poisoned(x.to("spyre")), n)
            assert_exact(found.cpu(), function(x.clone(), n), f"{n} of {p}")

    run_all([(5, 20), (11, 33), (7, 41), (20, 97), (9, 47), (13, 66), (63, 130)])
    assert programs.new("many_sizes"), eager.size_refusals()
    programs = Programs()
    run_all([(64, 300), (65, 129), (2, 511), (127, 256), (30, 32), (131, 200)])
    assert not programs.new("one_size"), programs.new("one_size")
    # All rows, all but one, one, and none.
    run_all([(50, 50), (50, 51), (1, 70), (0, 40), (1, 1), (509, 512)])


def test_a_size_behind_whole_sticks():
    """Plans whose cores cut what varies behind sticks of another part are right."""
    programs = Programs()
    for shape in ((100,), (5,), (200,), (300,), (64,), (3, 70), (4, 300)):
        x = torch.where(whole(*shape) > 0, -1.0, 1.0).half()
        out = torch.empty(shape, dtype=x.dtype, device="spyre")
        torch.cumprod(poisoned(x.to("spyre")), -1, out=out)
        assert_exact(out.cpu(), x.cumprod(-1), f"{shape}")
    assert programs.new("many_sizes").get("aten.cumprod.out"), eager.size_refusals()


def test_rows_of_a_line():
    """Each of whole sticks, behind one more."""
    programs = Programs()
    for count in (2, 4, 63, 5):
        line, rows = whole(64 * count + 64), whole(count, 64)
        found = on_device(line)
        for x in found, line:
            x.as_strided((count, 64), (64, 1), 64).copy_(rows.to(x.device))
        assert_exact(found.cpu(), line, f"{count}")
    assert programs.new("many_sizes")
