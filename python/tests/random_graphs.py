# SPDX-License-Identifier: Apache-2.0
"""Random `spyre_graph` functions in imported form, and what numpy makes of them.

The same seed gives the same function. Shapes are drawn from sizes around the stick,
primes, 1 and 0; operations from every layout rule.
"""

import random
import re

import numpy as np

SIZES = [0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 65, 127, 128, 130, 251, 256]
FORMATS = {"f16": "SEN169_FP16", "f32": "IEEE_FP32", "i64": "IEEE_INT32"}


class Function:
    """One function under construction; values are (name, shape, element type, layout)."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng = rng
        self.name = name
        self.lines: list[str] = []
        self.arguments: list[str] = []
        self.values: list[tuple[str, list[int], str, str]] = []
        self.counter = 0

    def fresh(self) -> str:
        self.counter += 1
        return f"%v{self.counter}"

    def argument(
        self, shape: list[int], element: str = "f16"
    ) -> tuple[str, list[int], str, str]:
        value = (
            f"%a{len(self.arguments)}",
            shape,
            element,
            self.layout(shape, element),
        )
        self.arguments.append(f"{value[0]}: {self.type(value)}")
        self.values.append(value)
        return value

    def layout(self, shape: list[int], element: str) -> str:
        order = list(range(len(shape)))
        self.rng.shuffle(order)
        sparse = ", sparse" if shape and self.rng.random() < 0.1 else ""
        if len(shape) == 2 and min(shape) > 1 and self.rng.random() < 0.2:
            # Row by row, which no order gives.
            stick = 64 if element == "f16" else 32
            return (
                f"#spyre_graph.explicit_layout<device_size = "
                f"[{shape[0]}, {-(-shape[1] // stick)}, {stick}], "
                f"stride_map = [{shape[1]}, {stick}, 1], "
                f"host_strides = [{shape[1]}, 1], {FORMATS[element]}>"
            )
        return f"#spyre_graph.layout<order = {order}{sparse}, {FORMATS[element]}>"

    def size(self) -> int:
        """How long a new dimension is."""
        return self.rng.choice(SIZES)

    def position(self, size: int) -> int:
        """A place along a dimension."""
        return self.rng.randrange(size)

    def index(self, shape: list[int], rows: int) -> tuple[str, list[int], str, str]:
        """An argument of indices into so many rows."""
        del rows
        return self.argument(shape, "i64")

    def results(self) -> list[tuple[str, list[int], str, str]]:
        return [v for v in self.values if v[0].startswith("%v")][-3:]

    @staticmethod
    def type(value: tuple[str, list[int], str, str]) -> str:
        dims = "".join(f"{size}x" for size in value[1])
        return f"tensor<{dims}{value[2]}{', ' + value[3] if value[3] else ''}>"

    def define(self, shape: list[int], element: str) -> tuple[str, list[int], str, str]:
        value = (self.fresh(), shape, element, "")
        self.values.append(value)
        return value

    def op(self, name, inputs, shape, element, attributes="", init=None):
        if init is None:
            init = (self.fresh(), shape, element, "")
            self.lines.append(f"{init[0]} = tensor.empty() : {self.type(init)}")
        result = (self.fresh(), init[1], init[2], init[3])
        self.values.append(result)
        ins = ""
        if inputs:
            names = ", ".join(value[0] for value in inputs)
            ins = f"ins({names} : {', '.join(map(self.type, inputs))}) "
        self.lines.append(
            f"{result[0]} = spyre_graph.{name} {ins}outs({init[0]} : {self.type(init)}) "
            f"{attributes} -> {self.type(result)}"
        )
        return result

    def view(self, source, shape, results):
        value = self.define(shape, source[2])
        dims = ", ".join(f"d{i}" for i in range(len(shape)))
        self.lines.append(
            f"{value[0]} = spyre_graph.view {source[0]}, affine_map<({dims}) -> "
            f"({', '.join(results)})> : {self.type(source)} -> {self.type(value)}"
        )
        return value

    def random_view(self, source):
        shape = source[1]
        rank = len(shape)
        kind = self.rng.choice(
            ["permute", "slice", "expand", "split", "merge", "select"]
        )
        if kind == "permute":
            order = list(range(rank))
            self.rng.shuffle(order)
            return self.view(
                source,
                [shape[d] for d in order],
                [f"d{order.index(i)}" for i in range(rank)],
            )
        dim = self.rng.randrange(rank) if rank else -1
        if kind == "slice" and rank and shape[dim] > 1:
            start = self.position(shape[dim])
            step = self.rng.choice([1, 1, 2])
            size = (shape[dim] - start + step - 1) // step
            sliced = shape[:dim] + [size] + shape[dim + 1 :]
            return self.view(
                source,
                sliced,
                [
                    f"d{i} * {step} + {start}" if i == dim else f"d{i}"
                    for i in range(rank)
                ],
            )
        if kind == "split" and rank and rank < 5:
            factors = [
                f for f in (2, 3, 5, 7, 8, 16, 64) if shape[dim] % f == 0 and shape[dim]
            ]
            if factors:
                f = self.rng.choice(factors)
                split = shape[:dim] + [shape[dim] // f, f] + shape[dim + 1 :]
                results = [f"d{i}" for i in range(dim)] + [f"d{dim} * {f} + d{dim + 1}"]
                results += [f"d{i + 1}" for i in range(dim + 1, rank)]
                return self.view(source, split, results)
        if kind == "merge" and rank > 1 and 0 not in shape:
            dim = self.rng.randrange(rank - 1)
            f = shape[dim + 1]
            merged = shape[:dim] + [shape[dim] * f] + shape[dim + 2 :]
            results = [f"d{i}" for i in range(dim)] + [
                f"d{dim} floordiv {f}",
                f"d{dim} mod {f}",
            ]
            results += [f"d{i - 1}" for i in range(dim + 2, rank)]
            return self.view(source, merged, results)
        if kind == "select" and rank and shape[dim] > 0:
            index = self.position(shape[dim])
            results = [f"d{i}" for i in range(dim)] + [f"{index}"]
            results += [f"d{i - 1}" for i in range(dim + 1, rank)]
            return self.view(source, shape[:dim] + shape[dim + 1 :], results)
        if rank < 4:  # expand
            size = self.rng.choice([1, 2, 65])
            return self.view(source, [size, *shape], [f"d{i + 1}" for i in range(rank)])
        return source

    def step(self) -> None:
        source = self.rng.choice(self.values[-4:])
        if self.rng.random() < 0.5:
            source = self.random_view(source)
        shape, element = source[1], source[2]
        rank = len(shape)
        kind = self.rng.choice(
            [
                "unary",
                "binary",
                "broadcast",
                "reduce",
                "keepdim",
                "matmul",
                "cat",
                "gather",
                "cumsum",
                "fill",
                "cast",
            ]
        )
        if kind == "binary":
            other = self.argument(shape, element)
            self.op("add", [source, other], shape, element)
        elif kind == "broadcast" and rank:
            dim = self.rng.randrange(rank)
            other = self.argument(
                [size if i == dim else 1 for i, size in enumerate(shape)], element
            )
            self.op("mul", [other, source], shape, element)
        elif kind in ("reduce", "keepdim") and rank:
            dims = sorted(self.rng.sample(range(rank), self.rng.randint(1, rank)))
            if kind == "reduce":
                reduced = [size for i, size in enumerate(shape) if i not in dims]
            else:
                reduced = [1 if i in dims else size for i, size in enumerate(shape)]
            self.op(
                "sum",
                [source],
                reduced,
                element,
                f"{{dims = array<i64: {str(dims)[1:-1]}>}}",
            )
        elif kind == "matmul" and rank >= 2 and element != "i64":
            n = self.size()
            other = self.argument([shape[-1], n], element)
            result = [*shape[:-1], n]
            self.op("matmul", [source, other], result, element)
        elif kind == "cat" and rank:
            dim = self.rng.randrange(rank)
            size = self.rng.choice([1, 31, 64, 65])
            other = self.argument(shape[:dim] + [size] + shape[dim + 1 :], element)
            total = shape[:dim] + [shape[dim] + size] + shape[dim + 1 :]
            init, offset = None, 0
            for part in self.joined(source, other, dim):
                dims = ", ".join(f"d{i}" for i in range(rank))
                into = ", ".join(
                    f"d{i} + {offset}" if i == dim and offset else f"d{i}"
                    for i in range(rank)
                )
                init = self.op(
                    "identity",
                    [part],
                    total,
                    element,
                    f"{{maps = [affine_map<({dims}) -> ({dims})>, affine_map<({dims}) -> "
                    f"({into})>], extents = array<i64: {str(part[1])[1:-1]}>}}",
                    init,
                )
                offset += part[1][dim]
            self.values.pop(-2)  # what is half written is no value
        elif kind == "gather" and rank:
            axis = self.rng.randrange(rank)
            count = self.size()
            index = self.index([count], shape[axis])
            result = shape[:axis] + [count] + shape[axis + 1 :]
            self.op(
                "gather", [source, index], result, element, f"{{axis = {axis} : i64}}"
            )
        elif kind == "cumsum" and rank:
            dim = self.rng.randrange(rank)
            self.op("cumsum", [source], shape, element, f"{{dim = {dim} : i64}}")
        elif kind == "fill":
            self.fill(shape, element)
        elif kind == "cast" and element != "i64":
            self.op("identity", [source], shape, "f32" if element == "f16" else "f16")
        else:
            self.op("neg", [source], shape, element)

    def joined(self, first, second, dim):
        """In which order a value and a new argument are joined."""
        del dim
        return first, second

    def fill(self, shape, element):
        self.op("fill", [], shape, element, "{immediates = [1.0]}")

    def update_argument(self) -> None:
        target = self.rng.choice([v for v in self.values if v[0].startswith("%a")])
        source = self.op("exp", [target], target[1], target[2])
        dims = ", ".join(f"d{i}" for i in range(len(target[1])))
        maps = f"affine_map<({dims}) -> ({dims})>"
        result = self.op(
            "identity",
            [source],
            target[1],
            target[2],
            f"{{maps = [{maps}, {maps}], extents = array<i64{':' if target[1] else ''} "
            f"{str(target[1])[1:-1]}>}}",
            target,
        )
        self.values.pop()
        done = self.fresh()
        kind = self.type(target)
        self.lines.append(
            f"{done} = bufferization.materialize_in_destination {result[0]} in {target[0]} : "
            f"({kind}, {kind}) -> {kind}"
        )

    def text(self) -> str:
        results = self.results()
        types = ", ".join(map(self.type, results))
        body = "\n  ".join(self.lines)
        names = ", ".join(value[0] for value in results)
        return (
            f"func.func @{self.name}({', '.join(self.arguments)}) -> ({types}) {{\n  {body}\n"
            f"  return {names} : {types}\n}}"
        )


def draw(seed: int, number: int) -> str:
    """The text of a function."""
    rng = random.Random(seed * 1000003 + number)
    function = Function(rng, f"f{seed}_{number}")
    rank = rng.randint(0, 4)
    function.argument(
        [rng.choice(SIZES[:10] if rank > 2 else SIZES) for _ in range(rank)]
    )
    for _ in range(rng.randint(1, 8)):
        function.step()
    if rng.random() < 0.3:
        function.update_argument()
    return function.text()


NUMPY = {"f16": np.float16, "f32": np.float32, "i64": np.int64}
MAX_ELEMENTS = 200_000


class EmptyTableError(Exception):
    """A gather from a table without rows has no value."""


def viewed(data, shape, results):
    """A view of an array; ``results`` are its coordinates in that of ``shape``."""
    indices = np.indices(shape)
    names = {f"d{i}": indices[i] for i in range(len(shape))}
    coordinates = tuple(
        np.broadcast_to(
            eval(text.replace("floordiv", "//").replace("mod", "%"), {}, names),
            shape,
        )
        for text in results
    )
    return data[coordinates] if results else np.broadcast_to(data, shape)


def computed(name, data, shape, attributes, before):
    """What an operation gives; ``before`` is what it writes into, if anything."""
    numbers = [int(text) for text in re.findall(r"\d+", attributes.split("i64:")[-1])]
    if name == "neg":
        return -data[0]
    if name == "add":
        return data[0] + data[1]
    if name == "mul":
        return data[0] * data[1]
    if name == "sum":
        return data[0].sum(axis=tuple(numbers)).reshape(shape)
    if name == "matmul":
        return data[0] @ data[1]
    if name == "fill":
        return np.ones(shape)
    if name == "cumsum":
        return np.cumsum(data[0], axis=numbers[0])
    if name == "gather":
        return np.take(data[0], data[1], axis=numbers[0])
    if before is None and "maps" not in attributes:
        return data[0]
    out = np.full(shape, np.nan) if before is None else before.copy()
    into = re.findall(r"-> \(([^)]*)\)", attributes)[1]
    starts = [int(text.partition("+")[2] or 0) for text in into.split(",") if text]
    box = zip(starts, data[0].shape, strict=True)
    out[tuple(slice(start, start + size) for start, size in box)] = data[0]
    return out


class EvaluatedFunction(Function):
    """A random function that knows the value of each of its values."""

    def __init__(self, rng, name):
        super().__init__(rng, name)
        self.known = {}
        self.inputs = []
        self.numpy_rng = np.random.default_rng(rng.randrange(1 << 30))

    def argument(self, shape, element="f16", low=-2, high=3):
        value = super().argument(shape, element)
        data = self.numpy_rng.integers(low, high, shape)
        self.known[value[0]] = np.asarray(
            data, np.int64 if element == "i64" else np.float64
        )
        self.inputs.append(value)
        return value

    def index(self, shape, rows):
        if rows == 0:
            raise EmptyTableError
        return self.argument(shape, "i64", 0, rows)

    def view(self, source, shape, results):
        value = super().view(source, shape, results)
        self.known[value[0]] = viewed(self.known[source[0]], shape, results)
        return value

    def op(self, name, inputs, shape, element, attributes="", init=None):
        name = "neg" if name == "exp" else name  # keeps values small and exact
        result = super().op(name, inputs, shape, element, attributes, init)
        data = [self.known[value[0]] for value in inputs]
        before = None if init is None else self.known[init[0]]
        self.known[result[0]] = computed(name, data, result[1], attributes, before)
        return result

    def arrays(self) -> list[np.ndarray]:
        """Values of the arguments."""
        return [self.known[name].astype(NUMPY[of]) for name, _, of, _ in self.inputs]


def draw_evaluated(seed: int, number: int) -> EvaluatedFunction:
    """A function whose values are known."""
    rng = random.Random(seed * 1000003 + number)
    function = EvaluatedFunction(rng, f"f{seed}_{number}")
    rank = rng.randint(0, 4)
    function.argument(
        [rng.choice(SIZES[1:8] if rank > 2 else SIZES) for _ in range(rank)]
    )
    for _ in range(rng.randint(1, 6)):
        try:
            function.step()
        except EmptyTableError:
            continue
        largest = max(np.prod(value[1], dtype=int) for value in function.values)
        if largest > MAX_ELEMENTS:
            break
    if rng.random() < 0.3:
        function.update_argument()
    if not function.results():
        function.op("neg", function.values[:1], *function.values[0][1:3])
    return function
