# SPDX-License-Identifier: Apache-2.0
"""Loops that read a large tile in pieces, or where it is, read what they read of a
whole one: from where their map starts, and of sizes that are checked.
"""

import numpy as np
import pytest
from commands import needs_tools
from ktir_runs import WAYS, fails, however_run
from ktir_text import box, function, grid, load, store

pytestmark = needs_tools


def tensor(shape, element="f16"):
    return f"tensor<{'x'.join(map(str, (*shape, element)))}>"


def loops(dims, kinds, inputs, output, body, result="%s"):
    """``%r``, of ``inputs`` (name, shape, map); ``output`` has (name, shape, map)."""
    maps = ", ".join(f"affine_map<({dims}) -> ({m})>" for *_, m in [*inputs, output])
    names = ", ".join(f"%{name}" for name, *_ in inputs)
    types = ", ".join(tensor(shape) for _, shape, _ in inputs)
    arguments = "".join(f"%a{i}: f16, " for i in range(len(inputs)))
    words = {"p": '"parallel"', "r": '"reduction"'}
    of = tensor(output[1])
    return f"""linalg.generic {{indexing_maps = [{maps}], iterator_types = [
      {", ".join(words[k] for k in kinds)}]}} ins({names} : {types}) outs(%{output[0]} : {of}) {{
    ^bb0({arguments}%o: f16):
      {body}
      linalg.yield {result} : f16
    }} -> {of}"""


def program(shape, output, lines):
    text = f"""{load("x", shape, "f16")}
    %zero = arith.constant 0.0 : f16
    %e = tensor.empty() : {tensor(output)}
    {lines}
    {store("y", output, "f16", "r")}"""
    return grid(function("x y", text))


def elementwise(shape, dims, reads, output, copies=False):
    body, result = ("", "%a0") if copies else ("%s = arith.addf %a0, %a0 : f16", "%s")
    inputs, outputs = [("x_d", shape, reads)], ("e", output, dims)
    text = loops(dims, "p" * len(output), inputs, outputs, body, result)
    return program(shape, output, f"%r = {text}")


def summed(shape, dims, reads, output):
    start = f"""%f = linalg.fill ins(%zero : f16) outs(%e : {tensor(output)}) -> {tensor(output)}
    %r = """
    text = loops(
        dims,
        "p" * len(output) + "r",
        [("x_d", shape, reads)],
        ("f", output, ", ".join(dims.split(", ")[:-1])),
        "%s = arith.addf %a0, %o : f16",
    )
    return program(shape, output, start + text)


def centred(shape, output):
    """Rows less their largest: of one tile that two loops read."""
    rows = (output[0],)
    start = f"""%me = tensor.empty() : {tensor(rows)}
    %mf = linalg.fill ins(%zero : f16) outs(%me : {tensor(rows)}) -> {tensor(rows)}
    %m = """
    reads = "d0, 1, d1"
    largest = loops(
        "d0, d1",
        "pr",
        [("x_d", shape, reads)],
        ("mf", rows, "d0"),
        "%s = arith.maximumf %a0, %o : f16",
    )
    less = loops(
        "d0, d1",
        "pp",
        [("x_d", shape, reads), ("m", rows, "d0")],
        ("e", output, "d0, d1"),
        "%s = arith.subf %a0, %a1 : f16",
    )
    return program(shape, output, f"{start}{largest}\n    %r = {less}")


def double(x):
    return x + x


@pytest.mark.parametrize(
    ("text", "shape", "output", "expected"),
    [
        (
            elementwise((3, 8192), "d0", "1, d0", (8192,), True),
            (3, 8192),
            (8192,),
            lambda x: x[1],
        ),
        (
            elementwise((3, 8192), "d0", "2, d0", (8192,)),
            (3, 8192),
            (8192,),
            lambda x: double(x[2]),
        ),
        (
            elementwise((65, 65, 2), "d0, d1", "d0, d1, 1", (65, 65), True),
            (65, 65, 2),
            (65, 65),
            lambda x: x[..., 1],
        ),
        (
            elementwise((97, 2, 64), "d0, d1", "d0, 1, d1", (97, 64)),
            (97, 2, 64),
            (97, 64),
            lambda x: double(x[:, 1]),
        ),
        (
            elementwise((9000,), "d0", "d0 + 8", (8992,)),
            (9000,),
            (8992,),
            lambda x: double(x[8:]),
        ),
        (
            summed((2, 64, 128), "d0, d1", "1, d0, d1", (64,)),
            (2, 64, 128),
            (64,),
            lambda x: x[1].sum(-1),
        ),
        (
            centred((5, 2, 2048), (5, 2048)),
            (5, 2, 2048),
            (5, 2048),
            lambda x: x[:, 1] - np.maximum(x[:, 1].max(-1, keepdims=True), 0),
        ),
    ],
    ids=["row", "last-row", "columns", "middle", "shifted", "sum", "rows"],
)
@pytest.mark.parametrize("numerics", ["dl16", "ieee"])
def test_maps_that_start_elsewhere(text, shape, output, expected, numerics, tmp_path):
    x = (np.arange(np.prod(shape)) % 7 - 3).reshape(shape).astype(np.float16)
    y = np.zeros(output, np.float16)
    found = however_run(text, [x, y], "y", tmp_path, numerics)
    assert np.array_equal(found, expected(x.astype(np.float32)))


@pytest.mark.parametrize("size", [9000, 16383])
def test_sizes_of_what_is_copied(size, tmp_path):
    """A loop that only moves elements checks sizes as others do."""
    order, number = "affine_map<(i) -> (i)>", 16384
    views = "".join(
        f"""
    %v_{name} = ktdp.construct_memory_view %{name}, sizes: [{number}], strides: [1] {{
      coordinate_set = {box("i", [number])}, memory_space = #ktdp.memory_space<global>}} : memref<{number}xf16>
    %{name}_t = ktdp.construct_access_tile %v_{name}[%c0] symbols(%n{name}) {{
      access_tile_set = {box("i", ["n"])}, access_tile_order = {order}}} : memref<{number}xf16> -> !ktdp.access_tile<?xindex>"""
        for name in "xy"
    )
    text = f"""%nx = arith.constant {size} : index
    %ny = arith.constant {number} : index{views}
    %d = ktdp.load %x_t : !ktdp.access_tile<?xindex> -> tensor<?xf16>
    %e = tensor.empty(%ny) : tensor<?xf16>
    %r = linalg.generic {{indexing_maps = [{order}, {order}], iterator_types = ["parallel"]}} ins(%d : tensor<?xf16>) outs(%e : tensor<?xf16>) {{
    ^bb0(%a: f16, %o: f16):
      linalg.yield %a : f16
    }} -> tensor<?xf16>
    ktdp.store %r, %y_t : tensor<?xf16>, !ktdp.access_tile<?xindex>"""
    values = [np.ones(number, np.float16), np.zeros(number, np.float16)]
    message = f"has size {number}, but its loop goes over {size}"
    for check, threads in WAYS:
        flags = ["--check", check, "--threads", threads]
        fails(grid(function("x y", text)), values, tmp_path, [message], *flags)
