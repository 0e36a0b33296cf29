# SPDX-License-Identifier: Apache-2.0
"""Builds the text of functions on tensors, operation by operation."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from commands import execute, run

NAMES = {
    "f16": ("SEN169_FP16", np.float16),
    "f32": ("IEEE_FP32", np.float32),
    "i64": ("IEEE_INT32", np.int64),
    "i1": ("SEN169_FP16", np.bool_),
}


class Value(NamedTuple):
    """A value of a function; arguments have a layout."""

    name: str
    shape: tuple[int, ...]
    element: str = "f16"
    layout: bool = False

    @property
    def type(self) -> str:
        sizes = "".join(f"{size}x" for size in self.shape)
        order, form = list(range(len(self.shape))), NAMES[self.element][0]
        layout = f", #spyre_graph.layout<order = {order}, {form}>" * self.layout
        return f"tensor<{sizes}{self.element}{layout}>"


class Graph:
    """A function, its inputs and what it returns."""

    def __init__(self) -> None:
        self.inputs: list[np.ndarray] = []
        self.arguments: list[Value] = []
        self.lines: list[str] = []
        self.results: Sequence[Value] = ()

    def argument(self, values, element: str = "f16") -> Value:
        array = np.asarray(values, NAMES[element][1])
        value = Value(f"%x{len(self.inputs)}", array.shape, element, True)
        self.inputs.append(array)
        self.arguments.append(value)
        return value

    def define(self, text: str, shape, element: str) -> Value:
        value = Value(f"%v{len(self.lines)}", tuple(shape), element)
        self.lines.append(f"{value.name} = {text}")
        return value

    def empty(self, shape, element: str = "f16") -> Value:
        kind = Value("", tuple(shape), element).type
        return self.define(f"tensor.empty() : {kind}", shape, element)

    def view(self, value: Value, shape, maps: str) -> Value:
        to = Value("", tuple(shape), value.element).type
        text = (
            f"spyre_graph.view {value.name}, affine_map<{maps}> : {value.type} -> {to}"
        )
        return self.define(text, shape, value.element)

    def op(self, name, inputs, shape, element="f16", attributes="", init=None) -> Value:
        init = init or self.empty(shape, element)
        names = ", ".join(value.name for value in inputs)
        types = ", ".join(value.type for value in inputs)
        read = f"ins({names} : {types}) " if inputs else ""
        result = self.define(
            f"spyre_graph.{name} {read}outs({init.name} : {init.type}) "
            f"{{{attributes}}} -> {init.type}",
            init.shape,
            init.element,
        )
        return result._replace(layout=init.layout)

    def text(self) -> str:
        arguments = ", ".join(
            f'{value.name}: {value.type} {{spyre_graph.name = "{value.name[1:]}"}}'
            for value in self.arguments
        )
        results = ", ".join(
            f'{value.type} {{spyre_graph.name = "out{n}"}}'
            for n, value in enumerate(self.results)
        )
        body = "\n  ".join(self.lines)
        names = ", ".join(value.name for value in self.results)
        types = ", ".join(value.type for value in self.results)
        return (
            f"func.func @main({arguments}) -> ({results}) {{\n  {body}\n"
            f"  return {names} : {types}\n}}\n"
        )


def plan(text: str, options: str = "") -> str:
    """The program of a graph, or what else the options of the pipeline say."""
    pipeline = f"--spyre-pipeline=verify-each {options}"
    return run("spyre-opt", "-", pipeline, "-o", "-", input=text)


def run_program(program: str, graph: Graph, folder: Path, *flags) -> list[np.ndarray]:
    """What the program of a graph returns."""
    folder.mkdir(exist_ok=True)
    file = folder / "program.mlir"
    file.write_text(program)
    values = [*graph.inputs, *["zeros"] * len(graph.results)]
    out = execute(file, values, folder, *flags)
    return [out[f"out{n}"] for n in range(len(graph.results))]


def hint(*levels: tuple[int, int]) -> str:
    """Of (loop dimension, tiles), outermost first."""
    parts = ", ".join(
        f"array<i64: {scope}, {dim}, {tiles}>"
        for scope, (dim, tiles) in enumerate(levels)
    )
    return f"spyre_graph.tile_hints = [{parts}]"
