# SPDX-License-Identifier: Apache-2.0
"""One program for many sizes: what is divided, padded to multiples, or read in steps."""

import itertools
import math

import pytest
import sympy
import torch
import torch.nn.functional as F
from sized_graphs import check_bits_of_one_size
from torch._higher_order_ops.associative_scan import associative_scan
from torch.utils._sympy.functions import (
    CeilToInt,
    FloatTrueDiv,
    FloorDiv,
    FloorToInt,
    IntTrueDiv,
    Mod,
    OpaqueUnaryFn_log2,
    PowByNatural,
    PythonMod,
    ToFloat,
    TruncToInt,
)
from torch_spyre.frontend.quotients import (
    CutNeeded,
    in_integers,
    ratio_of,
    without_quotients,
)


def weight_like(x, *shape):
    return (
        torch.arange(
            shape[0] * shape[1] * shape[2], dtype=torch.float32, device=x.device
        )
        .view(shape)
        .sub(20)
        .div(64)
        .half()
    )


def in_chunks(x, count=32):
    """Sums of chunks of rows, the last one padded, as state-space models have."""
    rest = (count - x.shape[0] % count) % count
    padded = F.pad(x, (0, 0, 0, rest), value=0.5)
    return padded.view(-1, count, x.shape[1]).sum(1)


def to_multiple(x, count=8):
    return F.pad(x, (0, -x.shape[1] % count)) * 2


def halves(x):
    half = x.shape[0] // 2
    return x[:half] + x[-half:]


def halves_joined(x):
    first, second = torch.cat((x, x + 1)).chunk(2)
    return first * second


def between_halves(x):
    half = x.shape[0] // 2
    return F.pad(x, (0, 0, half, x.shape[0] - half))


#: Functions of a matrix, the dimension whose size varies, the least of its sizes, how
#: many symbols programs have, and how many graphs Dynamo: it has one for even sizes, or
#: for those that need no padding.
FUNCTIONS = {
    "chunks": (in_chunks, 0, 2, 2, 2),
    "chunks of 48": (lambda x: in_chunks(x, 48), 0, 2, 2, 2),
    "to a multiple": (to_multiple, 1, 2, 2, 1),
    "halves": (halves, 0, 4, 2, 1),
    "every second row": (lambda x: x[::2] * 2, 0, 3, 2, 1),
    "every third column": (lambda x: x[:, 1::3].exp(), 1, 5, 2, 1),
    "first chunk": (lambda x: x.chunk(2)[0] * 2, 0, 3, 2, 1),
    "convolved in steps": (
        lambda x: F.conv1d(x[None], weight_like(x, 5, 40, 3), stride=2, padding=1),
        *(1, 3, 2, 2),
    ),
    "convolved in steps of steps": (
        lambda x: F.conv1d(
            F.conv1d(x[None], weight_like(x, 6, 40, 3), stride=2, padding=1),
            weight_like(x, 5, 6, 2),
            stride=3,
        ),
        *(1, 10, 3, 4),
    ),
    "as many rows as a quotient that is rounded up": (
        lambda x: x[: math.ceil(x.shape[0] / 4)] * 2,
        *(0, 3, 2, 1),
    ),
    "half of the rows, by a float": (
        lambda x: x[: int(x.shape[0] * 0.5)] * 2,
        *(0, 4, 2, 1),
    ),
    "a third of the rows, by floats": (
        lambda x: x[: int(x.shape[0] / 3)] + x[-math.floor(x.shape[0] / 3) :],
        *(0, 4, 2, 1),
    ),
    "half a size as a summand": (lambda x: x + len(x) / 2, 0, 2, 1, 1),
    "a third of a size as a factor": (
        lambda x: x.float() * (len(x) / 3),
        *(0, 2, 1, 1),
    ),
    "the root of a size as a divisor": (
        lambda x: x / math.sqrt(len(x)),
        *(0, 2, 1, 1),
    ),
    "a size to a power": (
        lambda x: x[:2] + (x.shape[1] / 600) ** 1.5,
        *(1, 2, 1, 1),
    ),
    "before, to a multiple": (
        lambda x: F.pad(x, (0, 0, -x.shape[0] % 8, 0)) + 1,
        *(0, 3, 2, 1),
    ),
    "between halves": (between_halves, 0, 3, 2, 1),
    "halves joined": (halves_joined, 0, 3, 1, 1),
    "rows of a third": (lambda x: x[: x.shape[0] // 3 + 1].sum(0), 0, 4, 2, 1),
    "rolled by half": (lambda x: x.roll(x.shape[0] // 2, 0), 0, 4, 2, 1),
    "median": (lambda x: x.median(1), 1, 3, 2, 1),
    "largest half": (lambda x: x.topk(x.shape[1] // 2), 1, 4, 2, 1),
    "smallest third of each column": (
        lambda x: x.float().topk(x.shape[0] // 3, 0, largest=False),
        *(0, 6, 2, 1),
    ),
    "largest integers": (lambda x: (x * 9).int().topk(len(x) // 2, 0), 0, 4, 2, 1),
    "upper median": (lambda x: x.kthvalue(x.shape[1] // 2 + 1), 1, 3, 2, 1),
    "first quarter of each column": (
        lambda x: x.float().kthvalue((len(x) + 3) // 4, 0, keepdim=True),
        *(0, 5, 2, 1),
    ),
    "pooled": (lambda x: F.avg_pool1d(x[None], 3, 2, 1), 1, 3, 2, 2),
}
SIZES = (130, 31, 63, 64, 65, 202, 203, 511, 512)


@pytest.mark.parametrize(
    ("function", "dim", "least", "symbols", "graphs"), FUNCTIONS.values(), ids=FUNCTIONS
)
def test_bits_of_a_program_of_one_size(function, dim, least, symbols, graphs):
    sizes = (*SIZES, least + 2)
    check_bits_of_one_size(function, (dim,), sizes, symbols, graphs)


S, T = (sympy.Symbol(name, integer=True, positive=True) for name in "st")
RANGES = {S: (2, 40), T: (1, 8)}


@pytest.mark.parametrize("divisor", [2, 3, 8, 12])
@pytest.mark.parametrize(
    "expr",
    [S, -S, 8 * S + T - 1, 24 * T + S, 12 * S + T, 2 * S + 1, S * T * 24, S + 5, 7 - S],
    ids=str,
)
def test_quotients_are_exact(expr, divisor):
    """At all sizes, with or without a cut, or none is found."""
    for kind in (FloorDiv, Mod, PythonMod):
        quotient = kind(expr, divisor)
        try:
            plain, cut = without_quotients(quotient, RANGES.get), None
        except CutNeeded as needed:
            cut = needed.cut
            if cut is None:
                continue
            whole, rest = (sympy.Symbol(n, integer=True, positive=True) for n in "wr")
            stands = cut.divisor * whole + rest - 1 - cut.shift
            plain = quotient.xreplace({cut.symbol: stands})
            ranges = {**RANGES, whole: (1, 40), rest: (1, cut.divisor)}
            plain = without_quotients(plain, ranges.get)
        assert not plain.has(FloorDiv, Mod, PythonMod)
        for s, t in itertools.product((2, 3, 7, 8, 12, 23, 24, 25, 39, 40), (1, 2, 8)):
            sizes = {S: s, T: t}
            if cut is not None:
                parts = divmod(sizes[cut.symbol] + cut.shift, cut.divisor)
                sizes |= {whole: parts[0], rest: parts[1] + 1}
            at_sizes = int(expr.subs(sizes))
            expected = at_sizes // divisor if kind is FloorDiv else at_sizes % divisor
            assert plain.subs(sizes) == expected, (quotient, s, t)


#: Of sizes, as floats: the expression, and what Python computes.
FLOATS = {
    "half": (ToFloat(S) * 0.5, lambda s, t: s * 0.5),
    "once and a half": (ToFloat(S) * 1.5 + 2.25, lambda s, t: s * 1.5 + 2.25),
    "a third": (IntTrueDiv(S, 3), lambda s, t: s / 3),
    "two sizes": (IntTrueDiv(S + 1, T), lambda s, t: (s + 1) / t),
    "steps": (
        FloatTrueDiv(ToFloat(S) - 1.0, ToFloat(S) * 2.0 - 1.0),
        lambda s, t: (s - 1.0) / (s * 2.0 - 1.0),
    ),
    "itself": (FloatTrueDiv(ToFloat(S), ToFloat(S) * 1.5), lambda s, t: s / (s * 1.5)),
    "negative": (ToFloat(S) * -0.25, lambda s, t: s * -0.25),
}


@pytest.mark.parametrize(("expr", "computed"), FLOATS.values(), ids=FLOATS)
def test_floats_as_quotients(expr, computed):
    """They are rounded as Python's, and whole numbers of them are those of Python's."""
    dividend, divisor = ratio_of(expr)
    for s, t in itertools.product((2, 3, 7, 39, 40, 1023, 4095), (1, 2, 3, 7)):
        sizes = {S: s, T: t}
        exact = int(dividend.subs(sizes)) / int(divisor.subs(sizes))
        assert exact == computed(s, t)
        for whole, rounded in (
            (CeilToInt, math.ceil),
            (FloorToInt, math.floor),
            (TruncToInt, math.trunc),
        ):
            found = in_integers(whole(expr), lambda e: e.subs({S: 2, T: 1}) >= 0)
            if not found.has(whole):
                assert found.subs(sizes) == rounded(computed(s, t)), (whole, s, t)
            else:
                assert whole is TruncToInt and computed(2, 1) < 0


@pytest.mark.parametrize(
    "expr",
    [
        ToFloat(S) * 0.1,
        ToFloat(S) * ToFloat(T),
        sympy.sqrt(ToFloat(S)),
        ToFloat(S) ** 2,
    ],
    ids=str,
)
def test_floats_that_are_no_quotients(expr):
    assert ratio_of(expr) is None
    assert in_integers(TruncToInt(expr), lambda e: True) == TruncToInt(expr)


def halved_to_one_row(x):
    """As parallel scans do, over a power of two of rows."""
    count = 2 ** math.ceil(math.log2(x.shape[0]))
    x = F.pad(x, (0, 0, 0, count - x.shape[0]))
    for _ in range(math.ceil(math.log2(x.shape[0]))):
        x = x.view(x.shape[0] // 2, 2, x.shape[1]).sum(1)
    return x


def test_powers_of_two_that_depend_on_a_size():
    """They are no polynomials, which was an error of the compiler."""
    size = sympy.Symbol("s", positive=True, integer=True)
    power = PowByNatural(2, CeilToInt(OpaqueUnaryFn_log2(ToFloat(size))))
    with pytest.raises(CutNeeded):
        without_quotients(FloorDiv(size, power), lambda symbol: (2, 9))
    run = torch.compile(halved_to_one_row, backend="spyre", dynamic=True)
    for count in (24, 30, 40, 65):
        x = torch.arange(count * 3.0).view(count, 3) / 8
        assert torch.equal(run(x.to("spyre")).cpu(), halved_to_one_row(x))


@pytest.mark.parametrize("count", [9, 13])
def test_guards_exclude_sizes_of_a_quotient(count):
    """That a quotient is even, for instance, of which 2 and 3 are else possible."""
    x = torch.arange(count * 3.0).view(count, 3)

    def cumsum(x):
        return associative_scan(torch.add, x, dim=0, combine_mode="generic")

    run = torch.compile(cumsum, backend="spyre", dynamic=True)
    assert torch.equal(run(x.to("spyre")).cpu(), x.cumsum(0))
