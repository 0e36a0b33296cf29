# SPDX-License-Identifier: Apache-2.0
"""The layouts that the compiler chooses are the cheapest of all of small graphs.

Of each random graph every assignment of layouts to results is a function of its own,
whose results have their layout given; the compiler prices all of them, and the graph
without given layouts must cost what the cheapest does (and not less: the price must be
that of an assignment). By hand: ``SPYRE_RANDOM_SEED=1`` draws others.
"""

import itertools
import os
import random
import re

import pytest
from commands import call, needs_tools

pytestmark = needs_tools

REMARK = re.compile(
    r'Function=(\w+) \| Remark="layouts are priced at (\d+) bytes \(\d+ cycles\), the '
    r'(least possible|least of those looked at)"'
)
SEED = int(os.environ.get("SPYRE_RANDOM_SEED", 20261122))
COUNT = 40
SIZES = [3, 64, 130]
# Of columns: a tensor's size -> first, step and size of slices. They begin at sticks,
# inside sticks, and take every second element.
SLICES = {64: [(7, 1, 3)], 130: [(64, 1, 64), (3, 1, 64), (1, 2, 64)]}
# A value as an operand: which one, what slice of its columns, and whether it is turned.
Operand = tuple[int, tuple[int, int, int] | None, bool]
MAX_ASSIGNMENTS = 800


def layout(order: tuple[int, ...], sparse: bool = False) -> str:
    """Of a tensor of f16; the last dimension of `order` lies along the sticks."""
    text = ", ".join(map(str, order))
    return f"#spyre_graph.layout<order = [{text}]{', sparse' * sparse}, SEN169_FP16>"


def tensor(shape: tuple[int, ...], text: str = "") -> str:
    sizes = "x".join(map(str, shape))
    return f"tensor<{sizes}xf16{', ' + text if text else ''}>"


class Graph:
    """Operations on matrices, each a function of what its operands' types are."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.shapes: list[tuple[int, int]] = []
        self.ops: list[tuple[str, list[Operand], str]] = []
        self.arguments: list[str] = []
        for _ in range(rng.randint(1, 3)):
            order = rng.choice([(0, 1), (1, 0)])
            self.shapes.append((rng.choice(SIZES), rng.choice(SIZES)))
            self.arguments.append(layout(order, rng.random() < 0.1))
        for _ in range(rng.randint(2, 6)):
            self.add()

    def shape(self, value: Operand) -> tuple[int, int]:
        number, part, turned = value
        rows, columns = self.shapes[number]
        if part:
            columns = part[2]
        return (columns, rows) if turned else (rows, columns)

    def operands(self) -> list[Operand]:
        """All values, and a slice of each that has some."""
        values = []
        for number, (_, columns) in enumerate(self.shapes):
            parts = [None]
            if columns in SLICES:
                parts.append(self.rng.choice(SLICES[columns]))
            values += [(number, p, turned) for p in parts for turned in (False, True)]
        return values

    def add(self) -> None:
        values = self.operands()
        a = self.rng.choice(values)
        rows, columns = self.shape(a)
        kind = self.rng.choice(["exp", "sum", "add", "add", "mul", "matmul", "matmul"])
        if kind == "sum":
            dim = self.rng.randrange(2)
            kept = (1, columns) if dim == 0 else (rows, 1)
            return self.append("sum", [a], f"{{dims = array<i64: {dim}>}}", kept)
        if kind == "matmul":
            others = [v for v in values if self.shape(v)[0] == columns]
            if others and columns > 1:
                b = self.rng.choice(others)
                return self.append("matmul", [a, b], "", (rows, self.shape(b)[1]))
            kind = "exp"
        if kind != "exp":
            fitting = {(rows, columns), (rows, 1), (1, columns)}
            others = [v for v in values if self.shape(v) in fitting]
            b = self.rng.choice(others)
            return self.append(kind, [a, b], "", (rows, columns))
        return self.append("exp", [a], "", (rows, columns))

    def append(self, kind, inputs, attributes, shape) -> None:
        self.ops.append((kind, inputs, attributes))
        self.shapes.append(shape)

    def layouts(self, number: int) -> list[str]:
        """Those that the result of operation `number` may have."""
        value = number + len(self.arguments)
        shape = self.shapes[value]
        sticks = [dim for dim in (1, 0) if shape[dim] > 1]
        if self.ops[number][0] == "matmul":
            # Along n, or along m with the factors exchanged, if it stays inside.
            is_read = any(
                value == source for _, ins, _ in self.ops for source, _, _ in ins
            )
            return [layout((0, 1))] + [layout((1, 0))] * is_read
        every = [layout((1 - dim, dim)) for dim in sticks]
        # One element has the usual layout.
        return [*every, layout((0, 1), bool(sticks))]

    def print(self, name: str, given: tuple[str, ...] | None) -> str:
        count = len(self.arguments)
        types = [
            tensor(s, a) for s, a in zip(self.shapes, self.arguments, strict=False)
        ]
        types += [
            tensor(shape, given[i] if given else "")
            for i, shape in enumerate(self.shapes[count:])
        ]
        lines = []
        for i, (kind, inputs, attributes) in enumerate(self.ops):
            operands = []
            for j, (source, part, turned) in enumerate(inputs):
                operands.append((f"%{source}", types[source]))
                if part or turned:
                    view = tensor(self.shape((source, part, turned)))
                    row, column = ("d1", "d0") if turned else ("d0", "d1")
                    if part:
                        column += f" * {part[1]} + {part[0]}"
                    lines.append(
                        f"%t{i}_{j} = spyre_graph.view %{source}, affine_map<(d0, d1) "
                        f"-> ({row}, {column})> : {types[source]} -> {view}"
                    )
                    operands[-1] = (f"%t{i}_{j}", view)
            names, kinds = zip(*operands, strict=True)
            result = types[count + i]
            lines.append(f"%e{i} = tensor.empty() : {result}")
            lines.append(
                f"%{count + i} = spyre_graph.{kind} ins({', '.join(names)} : "
                f"{', '.join(kinds)}) outs(%e{i} : {result}) {attributes} -> {result}"
            )
        read = {source for _, inputs, _ in self.ops for source, _, _ in inputs}
        returned = [n for n in range(count, len(self.shapes)) if n not in read]
        results = ", ".join(types[n] for n in returned)
        parameters = ", ".join(f"%{n}: {types[n]}" for n in range(count))
        lines.append(f"return {', '.join(f'%{n}' for n in returned)} : {results}")
        body = "\n  ".join(lines)
        return f"func.func @{name}({parameters}) -> ({results}) {{\n  {body}\n}}\n"


def draw(seed: int, count: int) -> list[Graph]:
    rng = random.Random(seed)
    return [Graph(rng) for _ in range(count)]


def assignments(graph: Graph) -> list[tuple[str, ...]]:
    return list(itertools.product(*map(graph.layouts, range(len(graph.ops)))))


GRAPHS = {
    f"{SEED}-{number}": graph
    for number, graph in enumerate(draw(SEED, COUNT))
    if len(assignments(graph)) <= MAX_ASSIGNMENTS
}


@pytest.mark.parametrize("name", GRAPHS)
def test_cheapest(name):
    graph = GRAPHS[name]
    every = assignments(graph)
    chosen = graph.print("chosen", None)
    text = chosen + "".join(graph.print(f"given{n}", g) for n, g in enumerate(every))
    passes = ["--spyre-propagate-layouts", "-o", "/dev/null"]
    remarks = ["--remark-policy=all", "--remarks-filter=spyre-propagate-layouts"]
    done = call("spyre-opt", "-", *passes, *remarks, input=text)
    assert done.returncode == 0, done.stderr[:2000] + text[:3000]
    prices = {n: (int(p), kind) for n, p, kind in REMARK.findall(done.stderr)}
    assert len(prices) == len(every) + 1
    price, kind = prices.pop("chosen")
    least = min(prices, key=lambda name: prices[name][0])
    best = every[int(least.removeprefix("given"))]
    assert kind == "least possible"
    assert price == prices[least][0], f"cheaper: {best}\n{chosen}"
