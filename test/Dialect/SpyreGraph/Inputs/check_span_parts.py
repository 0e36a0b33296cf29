# SPDX-License-Identifier: Apache-2.0
"""Runs small graphs on a device whose cores address little of a tensor.

Usage: check_span_parts.py FOLDER. Plans are made for the same small span, and every one
must have been cut for it; the numbers are compared with numpy's. Exits with 1 and prints
what differs.
"""

import json
import pathlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np


def tensor(shape, layout: bool = True, element: str = "f16") -> str:
    dims = "".join(f"{size}x" for size in shape)
    formats = {"f16": "SEN169_FP16", "i64": "IEEE_INT32"}
    order = ", ".join(map(str, range(len(shape))))
    attribute = f", #spyre_graph.layout<order = [{order}], {formats[element]}>"
    return f"tensor<{dims}{element}{attribute if layout else ''}>"


@dataclass
class Case:
    """A graph, its inputs, what it gives, and the span for which it is cut."""

    name: str
    span: int
    inputs: list[np.ndarray]
    expected: np.ndarray
    #: What the program must report instead of giving numbers.
    error: str = ""
    lines: list[str] = field(default_factory=list)

    def add(self, text: str) -> str:
        self.lines.append(f"%{len(self.lines)} = {text}")
        return f"%{len(self.lines) - 1}"

    def empty(self, shape) -> str:
        return self.add(f"tensor.empty() : {tensor(shape, False)}")

    def view(self, value: str, kind: str, shape, maps: str) -> str:
        to = tensor(shape, False)
        return self.add(
            f"spyre_graph.view {value}, affine_map<{maps}> : {kind} -> {to}"
        )

    def op(self, name: str, ins, init: str, shape, attributes: str = "") -> str:
        """``ins``: pairs of a value and its type."""
        values = ", ".join(value for value, _ in ins)
        types = ", ".join(kind for _, kind in ins)
        read = f"ins({values} : {types}) " if ins else ""
        own = tensor(shape, False)
        return self.add(
            f"spyre_graph.{name} {read}outs({init} : {own}) {attributes} -> {own}"
        )

    def text(self, result: str) -> str:
        elements = {np.dtype(np.float16): "f16", np.dtype(np.int64): "i64"}
        arguments = ", ".join(
            f"%a{n}: {tensor(x.shape, True, elements[x.dtype])}"
            for n, x in enumerate(self.inputs)
        )
        own = tensor(self.expected.shape, False)
        body = "\n  ".join(self.lines)
        return (
            f"func.func @main({arguments}) -> {own} {{\n  {body}\n"
            f"  return {result} : {own}\n}}\n"
        )


def numbers(rng, shape) -> np.ndarray:
    return rng.integers(-100, 101, shape).astype(np.float16)


def flattened(rng):
    """Rows that follow each other in the result, far apart in the argument."""
    for rows, columns, span in [(64, 1024, 1 << 14), (63, 960, 1 << 14)]:
        x, flat = numbers(rng, (rows, columns)), (rows * columns,)
        maps = f"(i) -> (i floordiv {columns}, i mod {columns})"
        for isRead in (False, True):
            name = f"flatten {x.shape}{', read' * isRead}"
            case = Case(name, span, [x], (-x).ravel())
            v = case.view("%a0", tensor(x.shape), flat, maps)
            kind = tensor(flat, False)
            result = case.op("neg", [(v, kind)], case.empty(flat), flat)
            if isRead:
                case.expected = case.expected * np.float16(2)
                result = case.op("add", [(result, kind)] * 2, case.empty(flat), flat)
            yield case, result


def reshaped(rng):
    """Rows that go on in the next one."""
    for rows, columns, span in [(1025, 259, 140000), (1087, 261, 150000)]:
        x, to = numbers(rng, (rows, columns)), (columns, rows)
        index = f"i * {rows} + j"
        maps = f"(i, j) -> (({index}) floordiv {columns}, ({index}) mod {columns})"
        case = Case(f"reshape {x.shape}", span, [x], -x.reshape(to))
        v = case.view("%a0", tensor(x.shape), to, maps)
        yield case, case.op("neg", [(v, tensor(to, False))], case.empty(to), to)


def copy(case: Case, argument: int, init: str, shape, offsets) -> str:
    x = case.inputs[argument]
    names = [f"d{dim}" for dim in range(x.ndim)]
    loops = ", ".join(names)
    places = ", ".join(f"{d} + {o}" for d, o in zip(names, offsets, strict=True))
    maps = f"[affine_map<({loops}) -> ({loops})>, affine_map<({loops}) -> ({places})>]"
    extents = ", ".join(map(str, x.shape))
    attributes = f"{{maps = {maps}, extents = array<i64: {extents}>}}"
    return case.op(
        "identity", [(f"%a{argument}", tensor(x.shape))], init, shape, attributes
    )


def joined(rng):
    """Parts that begin inside a stick."""
    for shapes, dim, span in [
        ([(5003,), (3001,)], 0, 1024),
        ([(5003,), (1059,), (2063,), (1,)], 0, 1024),
        ([(65, 1031), (65, 259)], 1, 17000),
        ([(3, 33, 515), (3, 33, 515)], 2, 13000),
    ]:
        parts = [numbers(rng, shape) for shape in shapes]
        expected = np.concatenate(parts, dim)
        case = Case(f"cat {shapes} along {dim}", span, parts, expected)
        result, offset = case.empty(expected.shape), 0
        for number, part in enumerate(parts):
            offsets = [offset if d == dim else 0 for d in range(part.ndim)]
            result = copy(case, number, result, expected.shape, offsets)
            offset += part.shape[dim]
        yield case, result
    x = numbers(rng, (131, 1031))
    case = Case("pad", 34000, [x], np.pad(x, ((3, 4), (1, 2))))
    shape = case.expected.shape
    zero = "{immediates = [0.0 : f32]}"
    filled = case.op("fill", [], case.empty(shape), shape, zero)
    yield case, copy(case, 0, filled, shape, (3, 1))


def permuted(rng):
    """A stick of the result is from planes that are far apart."""
    for shape, span in [((5, 190, 7, 131), 250000), ((3, 65, 5, 70), 60000)]:
        x = numbers(rng, shape)
        expected = x.transpose(3, 0, 2, 1)
        case = Case(f"permute {shape}", span, [x], expected)
        to = expected.shape
        maps = "(a, b, c, d) -> (b, d, c, a)"
        v = case.view("%a0", tensor(shape), to, maps)
        yield case, case.op("identity", [(v, tensor(to, False))], case.empty(to), to)


def multiplied(rng):
    """A stick of x is from rows of y that are far apart."""
    for batch, m, k, n, span in [
        (64, 16, 16, 16, 1 << 14),
        (63, 7, 65, 33, 1 << 15),
        (1, 130, 640, 700, 1 << 18),
    ]:
        x = rng.integers(-3, 4, (batch, m, k)).astype(np.float16)
        y = rng.integers(-3, 4, (batch, k, n)).astype(np.float16)
        product = x.astype(np.float64) @ y.astype(np.float64)
        case = Case(f"matmul {batch} {m} {k} {n}", span, [x, y], product)
        ins = [("%a0", tensor(x.shape)), ("%a1", tensor(y.shape))]
        yield case, case.op("matmul", ins, case.empty(product.shape), product.shape)


def gathered(rng):
    """Any row of a table whose parts alone are within reach."""
    for rows, columns, indices, span in [
        (1031, 130, (77,), 50000),
        (1024, 64, (5, 33), 33000),
        (2049, 259, (3, 65), 100000),
        (131, 1, (1,), 4000),
    ]:
        table = numbers(rng, (rows, columns))
        index = rng.integers(0, rows, indices)
        # On both sides of each place where parts may meet.
        index.flat[: min(index.size, 4)] = [0, rows - 1, rows // 2, 1][: index.size]
        case = Case(f"gather {rows} {columns}", span, [table, index], table[index])
        ins = [("%a0", tensor(table.shape)), ("%a1", tensor(indices, element="i64"))]
        shape = case.expected.shape
        axis = "{axis = 0 : i64}"
        yield case, case.op("gather", ins, case.empty(shape), shape, axis)
    for wrong in (-1, 1031, 5000):
        index = np.array([3, wrong, 1030])
        table = numbers(rng, (1031, 130))
        case = Case(f"gather row {wrong}", 50000, [table, index], table[:3], "index")
        ins = [("%a0", tensor(table.shape)), ("%a1", tensor((3,), element="i64"))]
        shape = case.expected.shape
        yield case, case.op("gather", ins, case.empty(shape), shape, axis)


def run(case: Case, result: str, folder: pathlib.Path) -> str | None:
    """What is wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    graph, program = folder / "graph.mlir", folder / "program.mlir"
    device = folder / "device.json"
    graph.write_text(case.text(result))
    device.write_text(json.dumps({"maxSpanBytes": case.span}))
    plan = ["spyre-opt", graph, "--spyre-pipeline=verify-each to-ktir=false", "-o", "-"]
    command = ["spyre-run", program, "--device", device, "--check=full"]
    command += ["--out-dir", folder]
    for number, value in enumerate(case.inputs):
        np.save(folder / f"in{number}.npy", value)
        command += ["--arg", folder / f"in{number}.npy"]
    command += ["--arg", "zeros"]
    plans = []
    for options in ("", f" max-span={case.span}"):
        plan[2] = f"--spyre-pipeline=verify-each to-ktir=false{options}"
        done = subprocess.run(plan, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr
        plans.append(done.stdout)
    if plans[0] == plans[1]:
        return "is not cut"
    plan[2] = f"--spyre-pipeline=verify-each max-span={case.span}"
    plan[-1] = program
    for step in (plan, command):
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            isExpected = step is command and case.error and case.error in done.stderr
            return None if isExpected else done.stderr
    if case.error:
        return "reports no error"
    found = np.load(folder / "out0.npy")
    expected = case.expected.astype(np.float16)
    if found.shape != expected.shape or not np.array_equal(found, expected):
        return f"{np.sum(found != expected)} of {expected.size} elements differ"
    return None


def main() -> int:
    rng, folder = np.random.default_rng(1), pathlib.Path(sys.argv[1])
    count = failures = 0
    makers: list[Callable] = [
        flattened,
        reshaped,
        joined,
        permuted,
        multiplied,
        gathered,
    ]
    for maker in makers:
        for case, result in maker(rng):
            count += 1
            difference = run(case, result, folder / str(count))
            if difference:
                failures += 1
                print(f"{case.name}: {difference}")
    print(f"{count - failures} of {count} graphs are right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
