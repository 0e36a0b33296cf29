# SPDX-License-Identifier: Apache-2.0
"""Breaks a good plan in many ways, each of which --spyre-verify-plan must catch."""

import re

import pytest
from commands import ROOT, needs_tools, refused, run

pytestmark = needs_tools

PLAN = (ROOT / "test/Dialect/SpyreGraph/Inputs/plan.mlir").read_text()


def division(splits: str, chunks: str) -> str:
    return rf"\1#spyre_graph.division<splits = {splits}, chunks = {chunks}>}}"


EXP = r"(graph\.exp .*)#d}"
RELU = r"(graph\.relu .*)#spyre_graph\.division<.*}"
MATMUL = r"(graph\.matmul .*)#spyre_graph\.division<.*}"
IDENTITIES = r"(graph\.relu .*)\[#id, #id\]"

# Name, what is replaced (once, in one line), by what, and a part of the error.
FAULTS = [
    # Divisions.
    (
        "a slice too many",
        EXP,
        division("[5, 1]", "[16, 128]"),
        "empty slice|slice 4 of",
    ),
    ("a slice too few", EXP, division("[3, 1]", "[16, 128]"), "48|cover"),
    ("slices one too small", EXP, division("[4, 1]", "[15, 128]"), "60|cover"),
    ("slices too large", EXP, division("[4, 1]", "[32, 128]"), "slice|empty"),
    ("slices one too large", RELU, division("[4, 2]", "[16, 97]"), "same stick"),
    ("no slices", EXP, division("[0, 1]", "[16, 128]"), "slices|positive"),
    ("more cores than there are", RELU, division("[16, 3]", "[4, 64]"), "32 cores"),
    (
        "partners that are no neighbours",
        MATMUL,
        division("[2, 3, 2]", "[32, 64, 64]"),
        "first split one|neighbours",
    ),
    ("a stick cut", MATMUL, division("[2, 6, 1]", "[32, 32, 128]"), "same stick"),
    ("division of other loops", EXP, division("[4]", "[16]"), "1 splits|per loop"),
    ("no division", r"(graph\.exp .*), division = #d", r"\1", "has no work division"),
    # Loops and maps.
    ("no extents", r"(graph\.relu .*)extents = .*?>, ", r"\1", "explicit maps|extents"),
    ("no maps", r"(graph\.exp .*)maps = .*?\], ", r"\1", "explicit maps|maps"),
    (
        "an iteration too many",
        r"(graph\.relu .*)i64: 64, 192>.*}",
        r"\1i64: 65, 192>, division = "
        "#spyre_graph.division<splits = [5, 1], chunks = [13, 192]>}",
        "coordinates 0 to 64",
    ),
    (
        "access shifted by a row",
        IDENTITIES,
        r"\1[affine_map<(i, j) -> (i + 1, j)>, #id]",
        "coordinates 1 to 64",
    ),
    (
        "negative coordinate",
        IDENTITIES,
        r"\1[affine_map<(i, j) -> (i - 1, j)>, #id]",
        "coordinates -1 to 62",
    ),
    (
        "rows never written",
        r"(graph\.matmul .*)i64: 64, 192, 128>.*}",
        r"\1i64: 32, 192, 128>, division = "
        "#spyre_graph.division<splits = [2, 3, 1], chunks = [16, 64, 128]>}",
        "have not been written",
    ),
    (
        "columns never written",
        r"(graph\.gather .*)i64: 64, 128>, division = #d",
        r"\1i64: 64, 64>, division = "
        "#spyre_graph.division<splits = [4, 1], chunks = [16, 64]>",
        "have not been written",
    ),
    (
        "one row written instead of all",
        r"(graph\.gather .*)#id\]",
        r"\1affine_map<(i, j) -> (0, j)>]",
        "parallel|same elements",
    ),
    (
        "all cores write one element",
        r"(graph\.max .*)\[#id, #row\]",
        r"\1[#id, affine_map<(i, j) -> (0, 0)>]",
        "does not hold in LX",
    ),
    (
        "another core's slice",
        EXP,
        division("[2, 2]", "[32, 64]"),
        "does not hold|needs",
    ),
    (
        "another core's rows",
        r"(graph\.max .*)#d}",
        division("[2, 1]", "[32, 128]"),
        "does not hold|needs 32",
    ),
    (
        "rows of LX in reverse",
        r"(graph\.add .*)\[#id, #id, #id\]",
        r"\1[affine_map<(i, j) -> (63 - i, j)>, #id, #id]",
        "does not hold",
    ),
    (
        "a row of LX for all",
        r"(graph\.add .*)\[#id, #id, #id\]",
        r"\1[affine_map<(i, j) -> (0, j)>, #id, #id]",
        "does not hold in LX",
    ),
    # Order.
    ("operation dropped", r"^.*graph\.gather .*$", "", "have not been written"),
    (
        "operations swapped",
        r"^(.*graph\.sub .*)\n(.*graph\.exp .*)$",
        r"\2\n\1",
        "have not been written",
    ),
    (
        "result read before it is made",
        r"(graph\.add ins\(%exp, )%gat(.*\n.*graph\.matmul ins\()%sum",
        r"\1%sum\2%sum",
        "have not been written",
    ),
    # Placements.
    ("no placement", r"(%mm = .*\(\)) {.*>}", r"\1", "has no placement"),
    ("pool offset misaligned", r"(%mm = .*)32768", r"\g<1>32832", "multiple of 128"),
    ("LX offset misaligned", r"(%max = .*)4096", r"\g<1>4100", "multiple of 128"),
    ("negative offset", r"(%mm = .*)32768", r"\1-128", "multiple of 128"),
    ("beyond the pool", r"(%mm = .*)32768", r"\g<1>40960", "outside the pool"),
    ("pool too small", "57344", "57216", "outside the pool"),
    ("no pool", r" attributes {.*}", "", "outside the pool"),
    ("beyond LX", r"(%max = .*)4096", r"\g<1>1677696", "outside the scratchpad"),
    ("overlap in the pool", r"(%sum = .*)16384", r"\g<1>8192", "overlap those"),
    ("overlap in LX", r"(%max = .*)4096", r"\g<1>3968", "overlap those"),
    ("in place, but shifted", r"(%exp = .*)offset = 0", r"\1offset = 128", "overlap"),
    (
        "in place of an operand that lives on",
        r"(graph\.add ins\()%exp, %gat",
        r"\1%sub, %exp",
        "overlap those",
    ),
    ("local shape too small", r"(%exp = .*)\[16,", r"\1[8,", "needs 16 coordinates"),
    (
        "local shape of another rank",
        r"(%exp = .*)\[16, 128\]",
        r"\1[16]",
        "1 local ext",
    ),
    (
        "an operand of other slices in LX",
        r"(%mm = .*)pool, offset = 32768>",
        r"\1lx, offset = 8192, local = [32, 64]>",
        "does not hold in LX",
    ),
    # Layouts.
    ("layout of another rank", "RETYPE %mm", "#o", "not a permutation"),
    ("format of another type", "RETYPE %mm", "#f", "does not store elements"),
    ("no layout", "RETYPE %mm", "1 : i64", "expected a layout as memory space"),
    ("stale layout", "RETYPE %gat", "#c", "same stick"),
    ("stale layout in place", "RETYPE %exp", "#c", "same stick|overlap"),
    # Between cores.
    (
        "parts of others than those who hold them",
        r"source_division = #d,",
        "source_division = #b,",
        "does not hold in LX",
    ),
    (
        "parts that are not all moved",
        r"source_division = #d,",
        "source_division = #spyre_graph.division<splits = [3, 1], chunks = [16, 128]>,",
        "does not divide the loops|cover",
    ),
    (
        "parts for others than those who need them",
        r"(graph\.reshard .*)#b}",
        division("[4, 1]", "[16, 128]"),
        "does not hold in LX|needs",
    ),
    (
        "read where it was before it moved",
        r"(graph\.abs ins\()%blk",
        r"\1%held",
        "does not hold in LX",
    ),
    (
        "moved in place",
        r"(%blk = .*)offset = 4096",
        r"\1offset = 0",
        "overlap those",
    ),
    (
        "moved over a part of itself",
        r"(%blk = .*)offset = 4096",
        r"\1offset = 2048",
        "overlap those",
    ),
    (
        "moved into device memory",
        r"(@moved.*)\) {((?:.*\n)*?  %blk = .*)lx, offset = 4096, local = \[32, 64\]",
        r"\1) attributes {spyre_graph.pool_size = 16384 : i64} {\2pool, offset = 0",
        "moves operand 1 between cores, but it is not in LX",
    ),
    ("not moved", r"^.*graph\.reshard .*$", "", "have not been written"),
    # Tile by tile.
    ("an accumulator without a start", r"^.*graph\.fill .*$", "", "not been written"),
    (
        "an accumulator in other slices",
        r"(graph\.minimum .*)#d1}",
        division("[2]", "[32]"),
        "does not hold in LX|needs",
    ),
    (
        "a part over the accumulator",
        r"(%part = .*)offset = 2048",
        r"\1offset = 0",
        "overlap those",
    ),
    ("a tile too many", r"(%c128 = .* )128", r"\g<1>192", "coordinates 0 to 191"),
    (
        "tiles inside a stick",
        r"(%c64 = .* )64( : index\n.*%c128 = .* )128",
        r"\g<1>32\g<2>96",
        "inside a stick",
    ),
    # No plan at all.
    (
        "foreign operation",
        r"^(.*graph\.relu .*)$",
        r"\1\n  memref.copy %mm, %y : memref<64x192xf16, #l> to memref<64x192xf16, #l>",
        "is not a device operation but uses a buffer",
    ),
]


def retype(plan: str, buffer: str, layout: str) -> str:
    """The plan with another layout for a buffer, where it is made and used."""

    def replace_types(match: re.Match[str]) -> str:
        keyword, values, types = match.groups()
        changed = [
            re.sub(", #.*>", f", {layout}>", kind) if value == buffer else kind
            for value, kind in zip(
                values.split(", "),
                re.findall(r"memref<(?:[^<>]|<[^<>]*>)*>", types),
                strict=True,
            )
        ]
        return f"{keyword}({values} : {', '.join(changed)})"

    lines = []
    for line in plan.splitlines():
        if line.startswith(f"  {buffer} = "):
            line = re.sub(", #[a-z]+>$", f", {layout}>", line)
        lines.append(re.sub(r"(ins|outs)\(([^:]*) : (.*?)\)", replace_types, line))
    return "\n".join(lines) + "\n"


def break_plan(plan: str, pattern: str, replacement: str) -> str:
    """The plan with one fault; a fault that does not apply is an error."""
    if pattern.startswith("RETYPE "):
        broken, count = retype(plan, pattern.split()[1], replacement), 1
    else:
        broken, count = re.subn(pattern, replacement, plan, flags=re.MULTILINE)
    assert count == 1 and broken != plan
    return broken


def verify(command, plan):
    return command(
        "spyre-opt", "-", "--spyre-verify-plan", "-o", "/dev/null", input=plan
    )


def test_plan_without_a_fault():
    verify(run, PLAN)


@pytest.mark.parametrize(
    ("pattern", "replacement", "expected"),
    [fault[1:] for fault in FAULTS],
    ids=[fault[0] for fault in FAULTS],
)
def test_fault(pattern, replacement, expected):
    errors = verify(refused, break_plan(PLAN, pattern, replacement))
    # An error of the verifier is on a line of the plan, not of its syntax.
    assert re.search(f"error: .*({expected})", errors), errors


SPAN = """
func.func @wide(%x: memref<2x4194304x64xf16, #w>, %y: memref<2x4194304x64xf16, #w>) {
  spyre_graph.neg ins(%x : memref<2x4194304x64xf16, #w>)
      outs(%y : memref<2x4194304x64xf16, #w>)
      {maps = [#id3, #id3], extents = array<i64: 2, 4194304, 64>,
       division = #spyre_graph.division<splits = [2, 1, 1],
                                        chunks = [1, 4194304, 64]>}
  return
}
"""


def test_span_too_wide():
    said = "has a span of 1073741824 bytes of device memory per core"
    assert re.search(f"error: .*{said}", verify(refused, PLAN + SPAN))
