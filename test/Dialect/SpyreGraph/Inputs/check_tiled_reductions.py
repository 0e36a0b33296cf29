# SPDX-License-Identifier: Apache-2.0
"""Runs reductions tile by tile, as hints ask, and compares with numpy.

Usage: check_tiled_reductions.py FOLDER. Matrix products along K, reductions along the
stick and across it, several in one loop, inside of a loop over other tiles, and attention
whose softmax is rescaled from tile to tile. Sums are of small integers, which fp32 holds
exactly, so that only the last rounding, to 10 bits, is left. Exits with 1 and prints what
differs.
"""

import pathlib
import subprocess
import sys

import numpy as np

PLAN = "builtin.module(spyre-pipeline{verify-each})"
NAMES = {
    "f16": ("SEN169_FP16", np.float16),
    "f32": ("IEEE_FP32", np.float32),
    "i64": ("IEEE_INT32", np.int64),
    "i1": ("SEN169_FP16", np.bool_),
}


def tensor(shape, element="f16", layout=False) -> str:
    sizes = "".join(f"{size}x" for size in shape)
    order = list(range(len(shape)))
    form = NAMES[element][0]
    encoding = f", #spyre_graph.layout<order = {order}, {form}>" if layout else ""
    return f"tensor<{sizes}{element}{encoding}>"


class Case:
    """A function in text, its inputs and what it should give."""

    def __init__(self, name: str, tolerance: float = 2.0**-9) -> None:
        self.name, self.tolerance = name, tolerance
        self.inputs, self.lines, self.count = [], [], 0
        self.loops, self.checks = "scf.for", "full"

    def argument(self, value, element="f16") -> str:
        name = f"%x{len(self.inputs)}"
        self.inputs.append((name, np.asarray(value, NAMES[element][1]), element))
        return name

    def op(self, op, inputs, types, shape, element="f16", attributes="") -> str:
        result, init = f"%r{self.count}", f"%e{self.count}"
        self.count += 1
        kind = tensor(shape, element)
        given = {name: tensor(data.shape, e, True) for name, data, e in self.inputs}
        ins = ", ".join(inputs)
        kinds = ", ".join(
            given.get(name) or tensor(*own)
            for name, own in zip(inputs, types, strict=True)
        )
        self.lines.append(f"{init} = tensor.empty() : {kind}")
        self.lines.append(
            f"{result} = spyre_graph.{op} ins({ins} : {kinds}) outs({init} : {kind})"
            f" {{{attributes}}} -> {kind}"
        )
        return result

    def text(self, results) -> str:
        arguments = ", ".join(
            f'{name}: {tensor(data.shape, e, True)} {{spyre_graph.name = "x{i}"}}'
            for i, (name, data, e) in enumerate(self.inputs)
        )
        kinds = [tensor(value.shape, e) for _, value, e in results]
        named = ", ".join(
            f'{kind} {{spyre_graph.name = "out{i}"}}' for i, kind in enumerate(kinds)
        )
        names = ", ".join(name for name, _, _ in results)
        lines = "\n".join("  " + line for line in self.lines)
        return (
            f"func.func @main({arguments}) -> ({named}) {{\n{lines}\n"
            f"  return {names} : {', '.join(kinds)}\n}}\n"
        )


def hint(*levels) -> str:
    """Of [loop dimension, tiles], outermost first."""
    parts = ", ".join(
        f"array<i64: {scope}, {dim}, {tiles}>"
        for scope, (dim, tiles) in enumerate(levels)
    )
    return f"spyre_graph.tile_hints = [{parts}]"


def matmuls(rng):
    for m, n, k, tiles in [(5, 70, 256, 4), (64, 64, 128, 2), (130, 1, 512, 8)]:
        for alpha, beta in [(1.0, None), (0.5, None), (1.0, 1.0), (0.5, 2.0)]:
            case = Case(f"matmul {m} {n} {k} by {tiles}, {alpha}, {beta}")
            x, y = rng.integers(-2, 3, (m, k)), rng.integers(-2, 3, (k, n))
            names = [case.argument(x), case.argument(y)]
            expected = alpha * (x @ y)
            attributes = f"alpha = {alpha} : f64, {hint((2, tiles))}"
            if beta is not None:
                bias = rng.integers(-2, 3, (n,))
                names.append(case.argument(bias))
                expected = expected + beta * bias
                attributes += f", beta = {beta} : f64, has_bias"
            types = [None] * len(names)
            r = case.op("matmul", names, types, (m, n), attributes=attributes)
            yield case, [(r, expected, "f16")]


def reductions(rng):
    functions = {
        "sum": np.sum,
        "mean": np.mean,
        "max": np.max,
        "min": np.min,
        "prod": np.prod,
        "any": np.any,
        "all": np.all,
    }
    for name, function in functions.items():
        for dim in (0, 1):
            for element in ("f16", "f32", "i64"):
                if element == "i64" and name in ("mean", "any", "all"):
                    continue
                shape = (192, 320)
                case = Case(f"{name} of {element} over {dim}")
                x = rng.integers(-9, 10, shape)
                if name in ("any", "all"):
                    x = (rng.random(shape) < 0.01) ^ (name == "all")
                if name == "prod":
                    x = np.where(rng.random(shape) < 0.98, 1, rng.integers(1, 3, shape))
                arg = case.argument(x, element)
                out = "i1" if name in ("any", "all") else element
                keep = (1 if dim == 0 else 192, 320 if dim == 0 else 1)
                tiles = 3 if dim == 0 else 5
                attributes = f"dims = array<i64: {dim}>, {hint((dim, tiles))}"
                r = case.op(name, [arg], [None], keep, out, attributes)
                yield case, [(r, function(x, axis=dim, keepdims=True), out)]


def several(rng):
    case = Case("an exponential, its sum and its largest in one loop", 2.0**-8)
    x = rng.standard_normal((64, 256))
    arg = case.argument(x)
    e = case.op("exp", [arg], [None], (64, 256), attributes=hint((1, 4)))
    reduce = f"dims = array<i64: 1>, {hint((1, 4))}"
    own = [((64, 256), "f16")]
    s = case.op("sum", [e], own, (64, 1), "f32", reduce)
    m = case.op("max", [e], own, (64, 1), "f16", reduce)
    y = np.exp(x.astype(np.float16).astype(float))
    yield (
        case,
        [
            (e, y, "f16"),
            (s, y.sum(1, keepdims=True), "f32"),
            (m, y.max(1, keepdims=True), "f16"),
        ],
    )
    case = Case("a product along K, inside of a loop over rows")
    x, y = rng.integers(-2, 3, (128, 256)), rng.integers(-2, 3, (256, 64))
    names = [case.argument(x), case.argument(y)]
    both = hint((0, 4), (2, 2))
    r = case.op("matmul", names, [None, None], (128, 64), attributes=both)
    yield case, [(r, x @ y, "f16")]


def attentions(rng):
    for rows, columns, tiles, causal in [
        (64, 512, 4, 0),
        (70, 256, 2, 1),
        (3, 192, 3, 0),
        (63, 450, 3, 1),
    ]:
        case = Case(f"attention {rows} {columns} by {tiles}, causal {causal}", 2.0**-7)
        q = rng.standard_normal((1, 2, rows, 64))
        k = rng.standard_normal((1, 2, columns, 64)) * 2
        v = rng.standard_normal((1, 2, columns, 64))
        names = [case.argument(value) for value in (q, k, v)]
        q, k, v = (data.astype(float) for _, data, _ in case.inputs)
        scores = q @ k.transpose(0, 1, 3, 2) * 0.125
        if causal:
            scores += np.triu(np.full((rows, columns), -np.inf), 1)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        expected = (e / e.sum(-1, keepdims=True)) @ v
        shape = (1, 2, rows, 64)
        columns_of = hint((3, tiles))
        scored = ((1, 2, rows, columns), "f16")
        maps = (
            "maps = [affine_map<(a,b,c,d,e) -> (a,b,c,e)>, affine_map<(a,b,c,d,e) -> "
            "(a,b,d,e)>, {}affine_map<(a,b,c,d,e) -> (a,b,c,d)>], "
        )
        bias = "affine_map<(a,b,c,d,e) -> (c,d)>, " if causal else ""
        inputs, types = names[:2], [None, None]
        if causal:
            triangle = np.triu(np.full((rows, columns), -np.inf), 1)
            inputs.append(case.argument(triangle))
            types.append(None)
        s = case.op(
            "matmul",
            inputs,
            types,
            scored[0],
            attributes=maps.format(bias)
            + f"extents = array<i64: 1, 2, {rows}, {columns}, 64>, "
            + ("has_bias, " if causal else "")
            + f"alpha = 0.125 : f64, {columns_of}",
        )
        reduce = f"dims = array<i64: 3>, {columns_of}"
        one = (1, 2, rows, 1)
        m = case.op("max", [s], [scored], one, "f16", reduce)
        x = case.op(
            "exp_sub", [s, m], [scored, (one, "f16")], scored[0], "f16", columns_of
        )
        t = case.op("sum", [x], [scored], one, "f32", reduce)
        w = case.op(
            "matmul",
            [x, names[2]],
            [scored, None],
            shape,
            attributes="maps = [affine_map<(a,b,c,d,e) -> (a,b,c,e)>, "
            "affine_map<(a,b,c,d,e) -> (a,b,e,d)>, affine_map<(a,b,c,d,e) -> (a,b,c,d)>], "
            f"extents = array<i64: 1, 2, {rows}, 64, {columns}>, {hint((4, tiles))}",
        )
        r = case.op("div", [w, t], [(shape, "f16"), (one, "f32")], shape)
        yield case, [(r, expected, "f16")]


def check(case: Case, results, folder: pathlib.Path) -> str | None:
    graph, program = folder / "graph.mlir", folder / "program.mlir"
    graph.write_text(case.text(results))
    steps = [
        ["spyre-opt", graph, f"--pass-pipeline={PLAN}", "-o", program],
        ["spyre-run", program],
    ]
    for number, (_, data, _) in enumerate(case.inputs):
        path = folder / f"in{number}.npy"
        np.save(path, data)
        steps[1] += ["--arg", path]
    for _ in results:
        steps[1] += ["--arg", "zeros"]
    steps[1] += ["--check=full", "--out-dir", folder]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr
    if case.loops not in program.read_text().split("func.func private")[0]:
        return "no loop over tiles"
    for number, (_, expected, _) in enumerate(results):
        found = np.load(folder / f"out{number}.npy").astype(float)
        expected = np.asarray(expected, float)
        bound = case.tolerance * np.maximum(abs(expected), abs(expected).max())
        wrong = ~(abs(found - expected) <= bound)
        if wrong.any():
            return f"{wrong.sum()} of {wrong.size} elements of result {number} differ"
    return None


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20260605)
    failures = count = 0
    for make in (matmuls, reductions, several, attentions):
        for case, results in make(rng):
            count += 1
            difference = check(case, results, folder)
            if difference:
                failures += 1
                print(f"{case.name}: {difference}")
                print((folder / "graph.mlir").read_text())
    print(f"{count - failures} of {count} reductions over tiles are right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
