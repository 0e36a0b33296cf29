# SPDX-License-Identifier: Apache-2.0
"""Random elementwise loops over tiles: the same bits in every check mode, on any
threads and instruction set, and in every run. ``--check=full`` keeps each tile, the
others fuse loops, stack tiles, read them in pieces and store codes.

``SPYRE_RANDOM_LOOPS=5000 SPYRE_RANDOM_SEED=1`` runs that many from that seed on.
"""

import os
import random
from math import prod

import numpy as np
import pytest
from commands import ENVIRONMENT, needs_tools
from ktir_runs import results
from ktir_text import box, function, grid

pytestmark = needs_tools

COUNT = int(os.environ.get("SPYRE_RANDOM_LOOPS", 150))
SEED = int(os.environ.get("SPYRE_RANDOM_SEED", 0))
SIZES = [1, 2, 3, 7, 31, 63, 64, 65, 127, 130]
LARGE = [*SIZES, 192, 300, 1024, 2049, 4099, 8192]
TYPES = {"f16": np.float16, "f32": np.float32}
WAYS = [
    ("full", 1, 1, ""),
    ("bounds", 1, 2, ""),
    ("none", 3, 3, ""),
    ("bounds", 1, 1, "baseline"),
]


def typed(shape, element):
    return "x".join(map(str, (*shape, element)))


class Program:
    """A loop over tiles: each trip loads some, computes and stores."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.number = 0
        self.views, self.lines = [], []
        self.arguments = []  # (element, elements)
        self.values = []  # (name, shape, element)
        large = self.random.random() < 0.5
        self.trips = 1 if large else self.random.choice([1, 2, 5])
        sizes, least, most = (LARGE, 8192, 40000) if large else (SIZES, 1, 3000)
        self.shape = []
        while not self.shape or not least <= prod(self.shape) <= most:
            rank = self.random.choice([1, 2, 2, 3])
            self.shape = [self.random.choice(sizes) for _ in range(rank)]
        for _ in range(self.random.choice([1, 2, 3])):
            value = self.compute()
            if self.random.random() < 0.5:
                self.store(value)
        self.store(value)

    def fresh(self):
        self.number += 1
        return f"%v{self.number}"

    def tile(self, shape, element):
        """Of an argument of its own, with one part for each trip; a dimension may lie
        in sticks, others in any order and with gaps.
        """
        r = self.random
        dims = [(self.trips, "(%i)")]
        split = r.randrange(len(shape)) if shape and r.random() < 0.4 else -1
        for d, size in enumerate(shape):
            if d == split:
                stick = r.choice([64, 32, 7])
                dims.append((-(-size // stick), f"(%x{d} floordiv {stick})"))
                dims.append((stick, f"(%x{d} mod {stick})"))
            else:
                gap = r.choice([0, 0, 0, 3])
                dims.append((size + gap, f"(%x{d} + {gap})" if gap else f"(%x{d})"))
        order = list(range(len(dims)))
        if r.random() < 0.4:
            r.shuffle(order)
        strides, step = [0] * len(dims), 1
        for place in reversed(order):
            strides[place] = step
            step *= dims[place][0]
        name = f"b{len(self.arguments)}"
        self.arguments.append((element, step))
        view, tile = self.fresh(), self.fresh()
        sizes, letters = (
            [size for size, _ in dims],
            ["a", "b", "c", "d", "e", "f", "g", "h"],
        )
        memory = f"memref<{typed(sizes, element)}>"
        self.views.append(
            f"{view} = ktdp.construct_memory_view %{name}, sizes: {sizes}, strides: {strides} {{coordinate_set = "
            f"{box(' '.join(letters[: len(sizes)]), sizes)}, memory_space = #ktdp.memory_space<global>}} : {memory}"
        )
        names = letters[: len(shape)]
        variables = ", ".join(f"%x{d}" for d in range(len(shape)))
        kind = f"!ktdp.access_tile<{'x'.join(map(str, shape))}xindex>"
        self.lines.append(
            f"{tile} = ktdp.construct_indirect_access_tile intermediate_variables({variables}) "
            f"{view}[{', '.join(text for _, text in dims)}] {{variables_space_set = {box(' '.join(names), shape)}, "
            f"variables_space_order = affine_map<({', '.join(names)}) -> ({', '.join(names)})>}} : {memory} -> {kind}"
        )
        return tile, kind

    def load(self, shape, element):
        tile, kind = self.tile(shape, element)
        value = self.fresh()
        self.lines.append(
            f"{value} = ktdp.load {tile} : {kind} -> tensor<{typed(shape, element)}>"
        )
        return value, tuple(shape), element

    def store(self, value):
        name, shape, element = value
        tile, kind = self.tile(shape, element)
        self.lines.append(
            f"ktdp.store {name}, {tile} : tensor<{typed(shape, element)}>, {kind}"
        )

    def operand(self, is_first):
        """What a loop reads, and the map: an older result, or a new tile, which may
        lack dimensions and have one of which it reads one place.
        """
        r, rank = self.random, len(self.shape)
        whole = [v for v in self.values if v[1] == tuple(self.shape)]
        if whole and r.random() < 0.6:
            return r.choice(whole), [f"d{d}" for d in range(rank)]
        kept = [d for d in range(rank) if is_first or r.random() < 0.7] or [rank - 1]
        if r.random() < 0.3:
            r.shuffle(kept)
        shape, reads = [self.shape[d] for d in kept], [f"d{d}" for d in kept]
        if r.random() < 0.15:
            place, extent = r.randrange(len(kept) + 1), r.choice([1, 2, 3])
            shape.insert(place, extent)
            reads.insert(place, str(r.randrange(extent)))
        return self.load(shape, r.choice(["f16", "f16", "f32"])), reads

    def body(self, inputs, element):
        """Sums, extrema and the like, in either type."""
        r, lines = self.random, []
        values = [(f"%a{i}", value[2]) for i, (value, _) in enumerate(inputs)]

        def convert(value, to):
            if value[1] == to:
                return value
            name = f"%r{len(lines)}"
            word = "extf" if to == "f32" else "truncf"
            lines.append(f"{name} = arith.{word} {value[0]} : {value[1]} to {to}")
            return name, to

        for _ in range(r.choice([0, 1, 2, 3, 5, 10])):
            to = r.choice(list(TYPES))
            a = convert(values[-1] if r.random() < 0.7 else r.choice(values), to)[0]
            b = convert(r.choice(values), to)[0]
            word = (
                r.choice(
                    ["add", "sub", "add", "sub", "maximum", "minimum", "mul", "div"]
                )
                + "f"
            )
            # None makes a value more than twice as large.
            if word in ("mulf", "divf") or r.random() < 0.2:
                b = f"%r{len(lines)}"
                number = r.choice([-1.0, 0.75 if word == "mulf" else 3.0])
                lines.append(f"{b} = arith.constant {number} : {to}")
            elif r.random() < 0.4:
                a, b = b, a
            name = f"%r{len(lines)}"
            lines.append(f"{name} = arith.{word} {a}, {b} : {to}")
            values.append((name, to))
        lines.append(f"linalg.yield {convert(values[-1], element)[0]} : {element}")
        return lines

    def compute(self):
        r, rank = self.random, len(self.shape)
        inputs = [self.operand(i == 0) for i in range(r.choice([1, 1, 2, 3]))]
        element = r.choice(["f16", "f16", "f32"])
        order = list(range(rank))
        if r.random() < 0.3:
            r.shuffle(order)
        shape = tuple(self.shape[d] for d in order)
        dims = ", ".join(f"d{d}" for d in range(rank))
        reads = [*(m for _, m in inputs), [f"d{d}" for d in order]]
        maps = ", ".join(f"affine_map<({dims}) -> ({', '.join(m)})>" for m in reads)
        names = ", ".join(value[0] for value, _ in inputs)
        types = ", ".join(f"tensor<{typed(*value[1:])}>" for value, _ in inputs)
        arguments = "".join(
            f"%a{i}: {value[2]}, " for i, (value, _) in enumerate(inputs)
        )
        empty, name = self.fresh(), self.fresh()
        of = f"tensor<{typed(shape, element)}>"
        body = "\n      ".join(self.body(inputs, element))
        self.lines.append(f"{empty} = tensor.empty() : {of}")
        self.lines.append(
            f"{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["
            + ", ".join(['"parallel"'] * rank)
            + f"]}} ins({names} : {types}) outs({empty} : {of}) {{\n"
            f"    ^bb0({arguments}%o: {element}):\n      {body}\n    }} -> {of}"
        )
        self.values.append((name, shape, element))
        return self.values[-1]

    def text(self):
        names = " ".join(f"b{i}" for i in range(len(self.arguments)))
        views, lines = "\n    ".join(self.views), "\n    ".join(self.lines)
        return grid(
            function(
                names,
                f"""%c1 = arith.constant 1 : index
    %trips = arith.constant {self.trips} : index
    {views}
    scf.for %i = %c0 to %trips step %c1 {{
    {lines}
    }}""",
            )
        )


@pytest.mark.parametrize("seed", range(SEED, SEED + COUNT))
def test_the_same_bits(seed, tmp_path, monkeypatch):
    program = Program(seed)
    generator = np.random.default_rng(seed)
    values = [
        generator.normal(0, 2, count).astype(TYPES[element])
        for element, count in program.arguments
    ]
    numerics = "ieee" if seed % 8 == 7 else "dl16"
    first = None
    for check, threads, repeat, capability in WAYS:
        if capability:
            monkeypatch.setitem(ENVIRONMENT, "SPYRE_CPU_CAPABILITY", capability)
        found = results(
            program.text(),
            values,
            tmp_path / f"{check}{capability}",
            *("--check", check, "--threads", threads, "--repeat", repeat),
            *("--numerics", numerics),
        )
        first = first or found
        for name, expected in first.items():
            assert found[name].tobytes() == expected.tobytes(), (check, name)
