# SPDX-License-Identifier: Apache-2.0
"""Breaks a plan for many sizes at some of them, which --spyre-verify-plan must name.

A range of at most 32 sizes is checked size by size, a larger one is proven: both must
find the same faults.
"""

import re

import pytest
from commands import needs_tools, refused, run

pytestmark = needs_tools

PLAN = """
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#e = #spyre_graph.layout<order = [0], sparse, SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#r = affine_map<(i) -> (i)>
#rows = affine_map<()[s] -> (s, 128)>
#row = affine_map<()[s] -> (s)>
#columns = affine_map<()[s] -> (4, s)>
#by_row = affine_map<()[s] -> (s ceildiv 32, 128)>
#d = #spyre_graph.division<splits = [32, 1], chunks = [8, 128], chunk_map = #by_row>
func.func @main(%x: memref<MOSTx128xf16, #l> {spyre_graph.size_map = #rows},
                %y: memref<MOSTx128xf16, #l> {spyre_graph.size_map = #rows},
                %z: memref<MOSTxf16, #e> {spyre_graph.size_map = #row},
                %v: memref<4xMOSTxf16, #l> {spyre_graph.size_map = #columns},
                %w: memref<4xMOSTxf16, #l> {spyre_graph.size_map = #columns})
    attributes {spyre_graph.pool_size = 65536 : i64,
                spyre_graph.symbols = [#spyre_graph.symbol<"s", LEAST to MOST>]} {
  %exp = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [8, 128]>} : memref<MOSTx128xf16, #l>
  %abs = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<MOSTx128xf16, #l>
  %sum = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 4096, local = [8]>} : memref<MOSTxf16, #e>
  spyre_graph.exp ins(%x : memref<MOSTx128xf16, #l>) outs(%exp : memref<MOSTx128xf16, #l>) {maps = [#id, #id], extents = array<i64: MOST, 128>, extent_map = #rows, division = #d}
  spyre_graph.sum ins(%exp : memref<MOSTx128xf16, #l>) outs(%sum : memref<MOSTxf16, #e>) {dims = array<i64: 1>, maps = [#id, affine_map<(i, j) -> (i)>], extents = array<i64: MOST, 128>, extent_map = #rows, division = #d}
  spyre_graph.abs ins(%exp : memref<MOSTx128xf16, #l>) outs(%abs : memref<MOSTx128xf16, #l>) {maps = [#id, #id], extents = array<i64: MOST, 128>, extent_map = #rows, division = #d}
  spyre_graph.neg ins(%abs : memref<MOSTx128xf16, #l>) outs(%y : memref<MOSTx128xf16, #l>) {maps = [#id, #id], extents = array<i64: MOST, 128>, extent_map = #rows, division = #d}
  spyre_graph.sqrt ins(%sum : memref<MOSTxf16, #e>) outs(%z : memref<MOSTxf16, #e>) {maps = [#r, #r], extents = array<i64: MOST>, extent_map = #row, division = #spyre_graph.division<splits = [32], chunks = [8], chunk_map = affine_map<()[s] -> (s ceildiv 32)>>}
  spyre_graph.tanh ins(%v : memref<4xMOSTxf16, #l>) outs(%w : memref<4xMOSTxf16, #l>) {maps = [#id, #id], extents = array<i64: 4, MOST>, extent_map = #columns, division = #spyre_graph.division<splits = [1, 2], chunks = [4, 128], chunk_map = affine_map<()[s] -> (4, (s ceildiv 128) * 64)>>}
  return
}
"""

#: The other chunks of rows, which are too small where s is 225.
SMALL = r"(graph\.OP .*)division = #d}"
OTHER = (
    r"\1division = #spyre_graph.division<splits = [32, 1], chunks = [8, 128], "
    r"chunk_map = affine_map<()[s] -> (FORMULA, 128)>>}"
)


def rows(op: str, formula: str) -> tuple[str, str]:
    return SMALL.replace("OP", op), OTHER.replace("FORMULA", formula)


def extents(op: str, formula: str) -> tuple[str, str]:
    return (
        rf"(graph\.{op} .*)extent_map = #rows",
        rf"\1extent_map = affine_map<()[s] -> ({formula}, 128)>",
    )


def argument(name: str, formula: str) -> tuple[str, str]:
    return (
        rf"(%{name}: .*)size_map = #rows",
        rf"\1size_map = affine_map<()[s] -> ({formula}, 128)>",
    )


def odd(size: int) -> bool:
    return size % 2 == 1


#: Name, what is replaced by what, the range that is checked size by size, at which
#: sizes the plan is then wrong, and how that is said.
FAULTS = [
    (
        "slices that leave a row out",
        *rows("neg", "(s + 30) floordiv 32"),
        (224, 254),
        lambda s: s == 225,
        "do not cover loop dimension 0|cover 224 of 225",
    ),
    (
        "another core's rows in LX",
        *rows("abs", "(s + 32) floordiv 32"),
        (224, 254),
        lambda s: s in (224, 256),
        "does not hold in LX",
    ),
    (
        "reads beyond an argument",
        *argument("x", "(s floordiv 2) * 2"),
        (224, 254),
        odd,
        "beyond its|coordinates 0 to",
    ),
    (
        "writes beyond an argument",
        *argument("y", "(s floordiv 2) * 2"),
        (224, 254),
        odd,
        "beyond its|coordinates 0 to",
    ),
    (
        "reads what was not written",
        *extents("abs", "(s floordiv 2) * 2"),
        (224, 254),
        odd,
        "beyond its|have not been written",
    ),
    (
        "reads of LX what was not written",
        *extents("exp", "(s floordiv 2) * 2"),
        (224, 254),
        odd,
        "beyond its|does not hold in LX",
    ),
    (
        "a stick cut",
        r"\(s ceildiv 128\) \* 64",
        "s ceildiv 2",
        (226, 256),
        lambda s: s < 255,
        "parts of the same stick",
    ),
]

#: A row more: written whole, then in a part, and read.
GROWN = """
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#old = affine_map<()[s] -> (s, 128)>
#new = affine_map<()[s] -> (s + 1, 128)>
#d = #spyre_graph.division<splits = [1, 2], chunks = [MOST, 64], chunk_map = affine_map<()[s] -> (s, 64)>>
#e = #spyre_graph.division<splits = [1, 2], chunks = [GROWN, 64], chunk_map = affine_map<()[s] -> (s + 1, 64)>>
func.func @main(%x: memref<MOSTx128xf16, #l> {spyre_graph.size_map = #old},
                %r: memref<1x128xf16, #l>,
                %y: memref<GROWNx128xf16, #l> {spyre_graph.size_map = #new})
    attributes {spyre_graph.pool_size = 131072 : i64,
                spyre_graph.symbols = [#spyre_graph.symbol<"s", LEAST to MOST>]} {
  %z = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<pool, offset = 0>} : memref<GROWNx128xf16, #l>
  spyre_graph.exp ins(%r : memref<1x128xf16, #l>) outs(%z : memref<GROWNx128xf16, #l>) {maps = [affine_map<(i, j) -> (0, j)>, #id], extents = array<i64: GROWN, 128>, extent_map = #new, division = #e}
  spyre_graph.abs ins(%x : memref<MOSTx128xf16, #l>) outs(%z : memref<GROWNx128xf16, #l>) {maps = [#id, #id], extents = array<i64: MOST, 128>, extent_map = #old, division = #d}
  spyre_graph.tanh ins(%z : memref<GROWNx128xf16, #l>) outs(%y : memref<GROWNx128xf16, #l>) {maps = [#id, #id], extents = array<i64: GROWN, 128>, extent_map = #new, division = #e}
  spyre_graph.neg ins(%x : memref<MOSTx128xf16, #l>) outs(%y : memref<GROWNx128xf16, #l>) {maps = [#id, affine_map<(i, j) -> (i + 1, j)>], extents = array<i64: MOST, 128>, extent_map = #old, division = #d}
  return
}
"""


def grown(name: str, formula: str) -> tuple[str, str]:
    return (
        rf"(graph\.{name} .*)extent_map = #new, division = #e}}",
        rf"\1extent_map = affine_map<()[s] -> ({formula}, 128)>, division = #e}}",
    )


GROWN_FAULTS = [
    (
        "writes a part beyond an argument",
        r"(%y: .*)size_map = #new",
        r"\1size_map = affine_map<()[s] -> ((s floordiv 2) * 2 + 1, 128)>",
        (224, 254),
        odd,
        "beyond its|coordinates 0 to|coordinates 1 to",
    ),
    (
        "reads beyond what was written whole",
        *grown("exp", "(s floordiv 2) * 2 + 1"),
        (224, 254),
        odd,
        "beyond its|have not been written",
    ),
]


#: Sums of pairs of rows in LX, which one loop counts in one operation and two in the
#: other.
PAIRS = """
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#pairs = affine_map<()[s] -> (s * 2, 128)>
#sums = affine_map<()[s] -> (s, 128)>
func.func @main(%x: memref<PAIRSx128xf16, #l> {spyre_graph.size_map = #pairs},
                %y: memref<MOSTx128xf16, #l> {spyre_graph.size_map = #sums})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", LEAST to MOST>]} {
  %z = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [16, 128]>} : memref<PAIRSx128xf16, #l>
  spyre_graph.exp ins(%x : memref<PAIRSx128xf16, #l>) outs(%z : memref<PAIRSx128xf16, #l>) {maps = [#id, #id], extents = array<i64: PAIRS, 128>, extent_map = #pairs, division = #spyre_graph.division<splits = [32, 1], chunks = [16, 128], chunk_map = affine_map<()[s] -> ((s ceildiv 32) * 2, 128)>>}
  spyre_graph.sum ins(%z : memref<PAIRSx128xf16, #l>) outs(%y : memref<MOSTx128xf16, #l>) {dims = array<i64: 1>, maps = [affine_map<(i, k, j) -> (i * 2 + k, j)>, affine_map<(i, k, j) -> (i, j)>], extents = array<i64: MOST, 2, 128>, extent_map = affine_map<()[s] -> (s, 2, 128)>, division = #spyre_graph.division<splits = [32, 1, 1], chunks = [8, 2, 128], chunk_map = affine_map<()[s] -> (s ceildiv 32, 2, 128)>>}
  return
}
"""

PAIRS_FAULTS = [
    (
        "another core's pairs in LX",
        r"\(s ceildiv 32, 2, 128\)",
        "((s + 32) floordiv 32, 2, 128)",
        (224, 254),
        lambda s: s in (224, 256),
        "does not hold in LX",
    ),
    (
        "half a pair in LX",
        r"\(\(s ceildiv 32\) \* 2, 128\)",
        "((s * 2 + 31) floordiv 32, 128)",
        (224, 254),
        lambda s: 0 < s % 32 <= 16,
        "does not hold in LX",
    ),
]


#: Rows whose sums eight partners share, and a result in LX that all of them hold.
PARTNERS = """
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#v = #spyre_graph.layout<order = [0], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#rows = affine_map<()[s] -> (s, 128)>
#r = affine_map<(j) -> (j)>
func.func @main(%x: memref<MOSTx128xf16, #l> {spyre_graph.size_map = #rows},
                %y: memref<128xf16, #v>)
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", LEAST to MOST>]} {
  %e = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [32, 128]>} : memref<MOSTx128xf16, #l>
  spyre_graph.exp ins(%x : memref<MOSTx128xf16, #l>) outs(%e : memref<MOSTx128xf16, #l>) {maps = [#id, #id], extents = array<i64: MOST, 128>, extent_map = #rows, division = #spyre_graph.division<splits = [8, 1], chunks = [32, 128], chunk_map = affine_map<()[s] -> (s ceildiv 8, 128)>>}
  spyre_graph.sum ins(%e : memref<MOSTx128xf16, #l>) outs(%y : memref<128xf16, #v>) {dims = array<i64: 0>, maps = [#id, affine_map<(i, j) -> (j)>], extents = array<i64: MOST, 128>, extent_map = #rows, division = #spyre_graph.division<splits = [8, 1], chunks = [32, 128], chunk_map = affine_map<()[s] -> (s ceildiv 8, 128)>>}
  return
}
"""


def partners(op: str, formula: str) -> tuple[str, str]:
    return (
        rf"(graph\.{op} .*)s ceildiv 8, 128",
        rf"\1{formula}, 128",
    )


PARTNERS_FAULTS = [
    (
        "partners that leave a row out",
        *partners("sum", "(s + 6) floordiv 8"),
        (224, 254),
        lambda s: s % 8 == 1,
        "do not cover loop dimension 0|cover [0-9]* of|does not hold in LX",
    ),
    (
        "another partner's rows in LX",
        *partners("sum", "(s + 8) floordiv 8"),
        (224, 254),
        lambda s: s % 8 == 0,
        "does not hold in LX|larger than",
    ),
    (
        "partners that sum what was not written",
        *(
            r"(graph\.exp .*)extent_map = #rows",
            r"\1extent_map = affine_map<()[s] -> ((s floordiv 2) * 2, 128)>",
        ),
        (224, 254),
        odd,
        "beyond its|does not hold in LX|have not been written",
    ),
]


#: Columns that move from cores that have sticks to cores that have rows.
MOVED = """
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#columns = affine_map<()[s] -> (4, s)>
#by_row = #spyre_graph.division<splits = [4, 1], chunks = [1, MOST], chunk_map = affine_map<()[s] -> (1, s)>>
func.func @main(%x: memref<4xMOSTxf16, #l> {spyre_graph.size_map = #columns},
                %y: memref<4xMOSTxf16, #l> {spyre_graph.size_map = #columns})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", LEAST to MOST>]} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [4, 128]>} : memref<4xMOSTxf16, #l>
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 4096, local = [1, MOST]>} : memref<4xMOSTxf16, #l>
  spyre_graph.exp ins(%x : memref<4xMOSTxf16, #l>) outs(%a : memref<4xMOSTxf16, #l>) {maps = [#id, #id], extents = array<i64: 4, MOST>, extent_map = #columns, division = #spyre_graph.division<splits = [1, 2], chunks = [4, 128], chunk_map = affine_map<()[s] -> (4, (s ceildiv 128) * 64)>>}
  spyre_graph.reshard ins(%a : memref<4xMOSTxf16, #l>) outs(%b : memref<4xMOSTxf16, #l>) {source_division = #spyre_graph.division<splits = [1, 2], chunks = [4, 128], chunk_map = affine_map<()[s] -> (4, (s ceildiv 128) * 64)>>, maps = [#id, #id], extents = array<i64: 4, MOST>, extent_map = #columns, division = #by_row}
  spyre_graph.neg ins(%b : memref<4xMOSTxf16, #l>) outs(%y : memref<4xMOSTxf16, #l>) {maps = [#id, #id], extents = array<i64: 4, MOST>, extent_map = #columns, division = #by_row}
  return
}
"""

MOVED_FAULTS = [
    (
        "moves other columns than those written",
        r"(source_division.*)\(s ceildiv 128\) \* 64",
        r"\1((s + 30) floordiv 128) * 64",
        (225, 256),
        lambda s: s < 226,
        "do not cover|cover [0-9]* of|does not hold in LX",
    ),
    (
        "columns written in parts of sticks",
        r"(graph.exp.*)\(s ceildiv 128\) \* 64",
        r"\1s ceildiv 2",
        (226, 256),
        lambda s: s < 255,
        "parts of the same stick|does not hold in LX",
    ),
]


#: Columns that no core divides: as many as vary are put in place of some of those that
#: are filled, and read again.
UNDIVIDED = """
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#first = affine_map<()[s] -> (4, s)>
#by_row = #spyre_graph.division<splits = [4, 1], chunks = [1, MOST], chunk_map = affine_map<()[s] -> (1, s)>>
func.func @main(%x: memref<4xMOSTxf16, #l> {spyre_graph.size_map = #first},
                %y: memref<4xMOSTxf16, #l> {spyre_graph.size_map = #first},
                %z: memref<4x100xf16, #l>)
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", LEAST to MOST>]} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [1, PAIRS]>} : memref<4xPAIRSxf16, #l>
  spyre_graph.fill outs(%a : memref<4xPAIRSxf16, #l>) {immediates = [0.0 : f32], maps = [#id], extents = array<i64: 4, PAIRS>, division = #spyre_graph.division<splits = [4, 1], chunks = [1, PAIRS]>}
  spyre_graph.exp ins(%x : memref<4xMOSTxf16, #l>) outs(%a : memref<4xPAIRSxf16, #l>) {maps = [#id, #id], extents = array<i64: 4, MOST>, extent_map = #first, division = #by_row}
  spyre_graph.neg ins(%a : memref<4xPAIRSxf16, #l>) outs(%y : memref<4xMOSTxf16, #l>) {maps = [#id, #id], extents = array<i64: 4, MOST>, extent_map = #first, division = #by_row}
  spyre_graph.abs ins(%a : memref<4xPAIRSxf16, #l>) outs(%z : memref<4x100xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 100>, division = #spyre_graph.division<splits = [4, 1], chunks = [1, 100]>}
  return
}
"""

#: The first of columns that vary, which are not divided, either.
FIRST = """
#l = #spyre_graph.layout<order = [0, 1], SEN169_FP16>
#id = affine_map<(i, j) -> (i, j)>
#first = affine_map<()[s] -> (4, s)>
#by_row = #spyre_graph.division<splits = [4, 1], chunks = [1, MOST], chunk_map = affine_map<()[s] -> (1, s)>>
func.func @main(%x: memref<4xMOSTxf16, #l> {spyre_graph.size_map = #first},
                %z: memref<4x200xf16, #l>)
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", LEAST to MOST>]} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [1, MOST]>} : memref<4xMOSTxf16, #l>
  spyre_graph.exp ins(%x : memref<4xMOSTxf16, #l>) outs(%a : memref<4xMOSTxf16, #l>) {maps = [#id, #id], extents = array<i64: 4, MOST>, extent_map = #first, division = #by_row}
  spyre_graph.abs ins(%a : memref<4xMOSTxf16, #l>) outs(%z : memref<4x200xf16, #l>) {maps = [#id, #id], extents = array<i64: 4, 200>, division = #spyre_graph.division<splits = [4, 1], chunks = [1, 200]>}
  return
}
"""

FIRST_FAULTS = [
    (
        "reads first columns that were not written",
        "extent_map = #first",
        "extent_map = affine_map<()[s] -> (4, s * 2 - 254)>",
        (224, 254),
        lambda s: s < 227,
        "beyond its|have not been written",
    ),
]


def plan_for(least: int, most: int, text: str = PLAN) -> str:
    return (
        text.replace("LEAST", str(least))
        .replace("PAIRS", str(2 * most))
        .replace("GROWN", str(most + 1))
        .replace("MOST", str(most))
    )


def verify(command, plan):
    return command(
        "spyre-opt", "-", "--spyre-verify-plan", "-o", "/dev/null", input=plan
    )


@pytest.mark.parametrize("sizes", [(200, 256), (224, 254), (1, 256), (226, 256)])
def test_plan_without_a_fault(sizes):
    verify(run, plan_for(*sizes))


@pytest.mark.parametrize(
    "plan",
    [GROWN, PAIRS, PARTNERS, MOVED, UNDIVIDED],
    ids=["grows", "pairs", "partners", "moved", "undivided"],
)
@pytest.mark.parametrize("sizes", [(200, 256), (224, 254), (1, 256)])
def test_other_plans_without_a_fault(sizes, plan):
    verify(run, plan_for(*sizes, plan))


@pytest.mark.parametrize("sizes", [(200, 256), (224, 254)])
def test_first_columns_without_a_fault(sizes):
    verify(run, plan_for(*sizes, FIRST))


@pytest.mark.parametrize("is_proven", [False, True], ids=["one by one", "proven"])
@pytest.mark.parametrize(
    ("plan", "pattern", "replacement", "sizes", "is_wrong", "expected"),
    [(PLAN, *fault[1:]) for fault in FAULTS]
    + [(GROWN, *fault[1:]) for fault in GROWN_FAULTS]
    + [(PAIRS, *fault[1:]) for fault in PAIRS_FAULTS]
    + [(PARTNERS, *fault[1:]) for fault in PARTNERS_FAULTS]
    + [(MOVED, *fault[1:]) for fault in MOVED_FAULTS]
    + [(FIRST, *fault[1:]) for fault in FIRST_FAULTS],
    ids=[
        fault[0]
        for fault in FAULTS
        + GROWN_FAULTS
        + PAIRS_FAULTS
        + PARTNERS_FAULTS
        + MOVED_FAULTS
        + FIRST_FAULTS
    ],
)
def test_fault(plan, pattern, replacement, sizes, is_wrong, expected, is_proven):
    least, most = (200, sizes[1]) if is_proven else sizes
    broken, count = re.subn(pattern, replacement, plan_for(least, most, plan))
    assert count == 1
    errors = verify(refused, broken)
    assert re.search(f"error: .*({expected})", errors), errors
    (size,) = {int(s) for s in re.findall(r"where s is (\d+)", errors)}
    assert is_wrong(size), errors


@pytest.mark.parametrize(
    ("pattern", "replacement", "is_wrong"),
    [(fault[1], fault[2], fault[4]) for fault in FAULTS],
    ids=[fault[0] for fault in FAULTS],
)
def test_no_fault_at_other_sizes(pattern, replacement, is_wrong):
    """A broken formula is right where it gives the same numbers."""
    size = next(s for s in range(256, 199, -1) if not is_wrong(s))
    broken, count = re.subn(pattern, replacement, plan_for(size, size))
    assert count == 1
    verify(run, broken)


#: Expressions of chunks for 32 slices of s rows, right ones and wrong ones.
FORMULAS = [
    "s ceildiv 32",
    "(s + 31) floordiv 32",
    "(s + 30) floordiv 32",
    "(s - 1) floordiv 32 + 1",
    "(s ceildiv 64) * 2",
    "((s + 63) floordiv 64) + (s ceildiv 64)",
    "(s + 32) floordiv 32",
    "(s + 15) floordiv 32 + 1",
    "(s ceildiv 16) floordiv 2 + 1",
    "(s floordiv 2 + 15) floordiv 16",
    "8",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_prover_and_sizes_one_by_one_agree(formula):
    least, most = 193, 255  # 63 sizes, whose chunks are 7 and 8
    text = plan_for(least, most)
    broken, count = re.subn(*rows("neg", formula), text)
    assert count == 1
    value = formula.replace("floordiv", "//")
    value = re.sub(r"(\([^()]*\)|\bs) ceildiv (\d+)", r"(-(-\1 // \2))", value)
    chunks = {s: eval(value, {"s": s}) for s in range(least, most + 1)}
    covered = all(chunk * 32 >= s for s, chunk in chunks.items())
    if chunks[most] != 8 or max(chunks.values()) != 8:
        covered = False
    errors = verify(run if covered else refused, broken)
    if not covered and chunks[most] == 8 and max(chunks.values()) == 8:
        (size,) = {int(s) for s in re.findall(r"where s is (\d+)", errors)}
        assert chunks[size] * 32 < size
