# SPDX-License-Identifier: Apache-2.0
"""Well-known kernels by hand on several cores, against numpy in double precision."""

import numpy as np
import pytest
from commands import needs_tools
from f16_values import ROUND, UNIT, check_close, half
from ktir_runs import however_run
from ktir_text import box

pytestmark = [needs_tools, pytest.mark.parametrize("numerics", ROUND)]

GROUP = "affine_set<(g) : (g == 0)>"


def view(name: str, shape: tuple) -> str:
    rows, columns = shape
    return (
        f"%v_{name} = ktdp.construct_memory_view %{name}, sizes: [{rows}, {columns}], strides: [{columns}, 1] "
        f"{{coordinate_set = {box('r c', [rows, columns])}, memory_space = #ktdp.memory_space<global>}} : "
        f"memref<{rows}x{columns}xf16>\n  "
    )


def tile(result: str, name: str, shape: tuple, at: tuple, extents: tuple) -> str:
    text = "x".join(map(str, extents))
    return (
        f"%{result} = ktdp.construct_access_tile %v_{name}[%{at[0]}, %{at[1]}] {{access_tile_set = "
        f"{box('r c', list(extents))}, access_tile_order = affine_map<(r, c) -> (r, c)>}} : "
        f"memref<{shape[0]}x{shape[1]}xf16> -> !ktdp.access_tile<{text}xindex>\n  "
    )


def load(result: str, name: str, shape: tuple, at: tuple, extents: tuple) -> str:
    text = "x".join(map(str, extents))
    return tile(result + "_t", name, shape, at, extents) + (
        f"%{result} = ktdp.load %{result}_t : !ktdp.access_tile<{text}xindex> -> tensor<{text}xf16>\n  "
    )


def store(value: str, name: str, shape: tuple, at: tuple, extents: tuple) -> str:
    text = "x".join(map(str, extents))
    return tile(value + "_s", name, shape, at, extents) + (
        f"ktdp.store %{value}, %{value}_s : tensor<{text}xf16>, !ktdp.access_tile<{text}xindex>\n  "
    )


def matmul(result: str, a: str, b: str, m: int, depth: int, n: int) -> str:
    """An fp32 product of two f16 tiles."""
    return (
        f"%{result}_e = tensor.empty() : tensor<{m}x{n}xf32>\n  "
        f"%{result}_f = linalg.fill ins(%zero : f32) outs(%{result}_e : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>\n  "
        f"%{result} = linalg.matmul ins(%{a}, %{b} : tensor<{m}x{depth}xf16>, tensor<{depth}x{n}xf16>) "
        f"outs(%{result}_f : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>\n  "
    )


def all_reduce(result: str, value: str, cores: int, tensor: str) -> str:
    """The sum over all cores, in ascending order, on every core."""
    every = f"affine_set<(i)[g] : (i >= 0, -i + {cores - 1} >= 0)>"
    future = f"!ktdp.tile_future<{tensor}, groups = {GROUP}>"
    return f"""%{result}_p = ktdp.inter_tile_produce producer_tiles_per_group = {every} : {tensor} -> {future} {{
  ^bb0(%group: index):
    ktdp.yield_partial %{value} : {tensor}
  }}
  %{result}_i = arith.constant dense<0.0> : {tensor}
  %{result} = ktdp.inter_tile_reduce(%{result}_p) consumer_tiles_per_group = {every}, identity(%{result}_i : {tensor})
      : {future} -> {tensor} {{
  ^bb0(%lhs: {tensor}, %rhs: {tensor}):
    %sum = arith.addf %lhs, %rhs : {tensor}
    ktdp.yield_reduced %sum : {tensor}
  }}
  """


def kernel(arguments: str, cores: int, body: str, *constants: int) -> str:
    args = ", ".join(f'%{a}: index {{ktdp.name = "{a}"}}' for a in arguments.split())
    values = "".join(
        f"%c{c} = arith.constant {c} : index\n  " for c in sorted({0, 1, *constants})
    )
    return (
        f"func.func @f({args}) attributes {{grid = [{cores}]}} {{\n  {values}"
        f"%zero = arith.constant 0.0 : f32\n  %core = ktdp.get_compute_tile_id : index\n  {body}return\n}}\n"
    )


def exact(numerics: str, *arrays: np.ndarray) -> list[np.ndarray]:
    return [ROUND[numerics](a).astype(np.float64) for a in arrays]


@pytest.mark.parametrize(
    ("m", "depth", "n", "cores"), [(5, 64, 33, 4), (16, 130, 64, 2), (1, 7, 1, 7)]
)
def test_k_split(m, depth, n, cores, numerics, tmp_path):
    """A product whose depth is divided among cores; one of them stores the sum."""
    rng = np.random.default_rng(41)
    part = depth // cores
    body = (
        f"%k = arith.muli %core, %c{part} : index\n  "
        + view("a", (m, depth))
        + view("b", (depth, n))
        + view("c", (m, n))
        + load("x", "a", (m, depth), ("c0", "k"), (m, part))
        + load("y", "b", (depth, n), ("k", "c0"), (part, n))
        + matmul("p", "x", "y", m, part, n)
        + all_reduce("s", "p", cores, f"tensor<{m}x{n}xf32>")
        + f"%h = arith.truncf %s : tensor<{m}x{n}xf32> to tensor<{m}x{n}xf16>\n  "
        + "%first = arith.cmpi eq, %core, %c0 : index\n  scf.if %first {\n  "
        + store("h", "c", (m, n), ("c0", "c0"), (m, n))
        + "}\n  "
    )
    a, b = half(rng, m, depth), half(rng, depth, n)
    program = kernel("a b c", cores, body, part)
    arrays = [a, b, np.zeros((m, n), np.float16)]
    c = however_run(program, arrays, "c", tmp_path, numerics)
    x, y = exact(numerics, a, b)
    scale = np.abs(x) @ np.abs(y)
    bound = UNIT[numerics] * np.abs(x @ y) + depth * 2.0**-24 * scale
    check_close(c, x @ y, bound + 2.0**-24)


def test_swiglu(numerics, tmp_path):
    """Gate, up and down projections with the hidden width over four cores."""
    rng = np.random.default_rng(42)
    tokens, width, hidden, cores = 7, 36, 60, 4
    part, out = hidden // cores, width // cores
    t32 = f"tensor<{tokens}x{part}xf32>"
    body = (
        f"%h = arith.muli %core, %c{part} : index\n  %o = arith.muli %core, %c{out} : index\n  "
        + view("x", (tokens, width))
        + view("g", (width, hidden))
        + view("u", (width, hidden))
        + view("d", (hidden, width))
        + view("z", (tokens, width))
        + load("xd", "x", (tokens, width), ("c0", "c0"), (tokens, width))
        + load("gd", "g", (width, hidden), ("c0", "h"), (width, part))
        + load("ud", "u", (width, hidden), ("c0", "h"), (width, part))
        + load("dd", "d", (hidden, width), ("h", "c0"), (part, width))
        + matmul("gate", "xd", "gd", tokens, width, part)
        + matmul("up", "xd", "ud", tokens, width, part)
        + f"""%one = arith.constant dense<1.0> : {t32}
  %neg = arith.negf %gate : {t32}
  %e = math.exp %neg : {t32}
  %den = arith.addf %e, %one : {t32}
  %silu = arith.divf %gate, %den : {t32}
  %act = arith.mulf %silu, %up : {t32}
  %hidden = arith.truncf %act : {t32} to tensor<{tokens}x{part}xf16>
  """
        + matmul("partial", "hidden", "dd", tokens, part, width)
        + all_reduce("sum", "partial", cores, f"tensor<{tokens}x{width}xf32>")
        + f"""%own = tensor.extract_slice %sum[0, %o] [{tokens}, {out}] [1, 1]
      : tensor<{tokens}x{width}xf32> to tensor<{tokens}x{out}xf32>
  %y = arith.truncf %own : tensor<{tokens}x{out}xf32> to tensor<{tokens}x{out}xf16>
  """
        + store("y", "z", (tokens, width), ("c0", "o"), (tokens, out))
    )
    arrays = [
        half(rng, tokens, width),
        half(rng, width, hidden),
        half(rng, width, hidden),
        half(rng, hidden, width),
    ]
    program = kernel("x g u d z", cores, body, part, out)
    arguments = [*arrays, np.zeros((tokens, width), np.float16)]
    z = however_run(program, arguments, "z", tmp_path, numerics)
    x, g, u, d = exact(numerics, *arrays)
    gate, up = x @ g, x @ u
    act = gate / (1 + np.exp(-gate)) * up
    # The hidden values are rounded, then the result.
    bound = UNIT[numerics] * (np.abs(act) @ np.abs(d) + np.abs(act @ d))
    check_close(z, act @ d, bound + 2.0**-16)


@pytest.mark.parametrize("causal", [False, True], ids=["whole", "causal"])
def test_flash(causal, numerics, tmp_path):
    """Attention with a running maximum and sum, causal or not; rows over cores."""
    rng = np.random.default_rng(43)
    length, width, rows, block = 45, 17, 15, 9
    cores, blocks = length // rows, length // block
    s = f"tensor<{rows}x{block}xf32>"
    r, acc = f"tensor<{rows}xf32>", f"tensor<{rows}x{width}xf32>"
    maps = '[affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]'

    def rowwise(result: str, value: str, row: str, wide: str, op: str) -> str:
        return f"""%{result}_e = tensor.empty() : {wide}
    %{result} = linalg.generic {{indexing_maps = {maps}}} ins(%{value}, %{row} : {wide}, {r}) outs(%{result}_e : {wide}) {{
    ^bb0(%a: f32, %b: f32, %unused: f32):
      %y = arith.{op} %a, %b : f32
      linalg.yield %y : f32
    }} -> {wide}
    """

    mask = f"""%m_e = tensor.empty() : {s}
%masked = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
  iterator_types = ["parallel", "parallel"]}} ins(%scaled : {s}) outs(%m_e : {s}) {{
^bb0(%a: f32, %unused: f32):
  %i = linalg.index 0 : index
  %j = linalg.index 1 : index
  %gi = arith.addi %i, %row : index
  %gj = arith.addi %j, %at : index
  %seen = arith.cmpi sle, %gj, %gi : index
  %low = arith.constant -1.0e30 : f32
  %y = arith.select %seen, %a, %low : f32
  linalg.yield %y : f32
}} -> {s}
"""
    body = (
        f"%row = arith.muli %core, %c{rows} : index\n  "
        + "".join(view(n, (length, width)) for n in "qkvz")
        + load("qd", "q", (length, width), ("row", "c0"), (rows, width))
        + f"""%scale = arith.constant dense<{width**-0.5}> : {s}
  %m0 = arith.constant dense<-1.0e30> : {r}
  %l0 = arith.constant dense<0.0> : {r}
  %a0 = arith.constant dense<0.0> : {acc}
  %m, %l, %o = scf.for %step = %c0 to %c{blocks} step %c1 iter_args(%mi = %m0, %li = %l0, %oi = %a0) -> ({r}, {r}, {acc}) {{
%at = arith.muli %step, %c{block} : index
"""
        + load("kd", "k", (length, width), ("at", "c0"), (block, width))
        + load("vd", "v", (length, width), ("at", "c0"), (block, width))
        + f"""%kt_e = tensor.empty() : tensor<{width}x{block}xf16>
%kt = linalg.transpose ins(%kd : tensor<{block}x{width}xf16>) outs(%kt_e : tensor<{width}x{block}xf16>) permutation = [1, 0]
"""
        + matmul("sc", "qd", "kt", rows, width, block)
        + f"%scaled = arith.mulf %sc, %scale : {s}\n    "
        + (mask if causal else f"%masked = arith.mulf %sc, %scale : {s}\n    ")
        + f"""%mn = linalg.reduce {{ arith.maximumf }} ins(%masked : {s}) outs(%mi : {r}) dimensions = [1]
"""
        + rowwise("shifted", "masked", "mn", s, "subf")
        + f"""%p = math.exp %shifted : {s}
%dm = arith.subf %mi, %mn : {r}
%corr = math.exp %dm : {r}
%lc = arith.mulf %li, %corr : {r}
%ln = linalg.reduce {{ arith.addf }} ins(%p : {s}) outs(%lc : {r}) dimensions = [1]
%ph = arith.truncf %p : {s} to tensor<{rows}x{block}xf16>
"""
        + rowwise("oc", "oi", "corr", acc, "mulf")
        + f"""%on = linalg.matmul ins(%ph, %vd : tensor<{rows}x{block}xf16>, tensor<{block}x{width}xf16>) outs(%oc : {acc}) -> {acc}
scf.yield %mn, %ln, %on : {r}, {r}, {acc}
  }}
  """
        + rowwise("y32", "o", "l", acc, "divf")
        + f"%y = arith.truncf %y32 : {acc} to tensor<{rows}x{width}xf16>\n  "
        + store("y", "z", (length, width), ("row", "c0"), (rows, width))
    )
    q, key, v = (half(rng, length, width) for _ in range(3))
    program = kernel("q k v z", cores, body, rows, block, blocks)
    arrays = [q, key, v, np.zeros((length, width), np.float16)]
    z = however_run(program, arrays, "z", tmp_path, numerics)
    q64, k64, v64 = exact(numerics, q, key, v)
    scores = q64 @ k64.T * width**-0.5
    if causal:
        scores[np.triu_indices(length, 1)] = -np.inf
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    # Probabilities and the result are rounded.
    bound = UNIT[numerics] * (p @ np.abs(v64) + np.abs(p @ v64))
    check_close(z, p @ v64, bound + 2.0**-20)


def test_futures(numerics, tmp_path):
    """A tile that is received more than once: by two operations, and in a loop."""
    rng = np.random.default_rng(44)
    cores, width, rounds = 5, 7, 40
    t, all_t = f"tensor<1x{width}xf32>", f"tensor<{cores}x{width}xf32>"
    every = f"affine_set<(i)[g] : (i >= 0, -i + {cores - 1} >= 0)>"
    future = f"!ktdp.tile_future<{t}, groups = {GROUP}>"

    def gather(result: str, source: str) -> str:
        return f"""%{result} = ktdp.inter_tile_gather(%{source}) consumer_tiles_per_group = {every}, gather_dimension = 0
      : {future} -> {all_t}
  """

    def produce(result: str, value: str) -> str:
        return f"""%{result} = ktdp.inter_tile_produce producer_tiles_per_group = {every} : {t} -> {future} {{
  ^bb0(%group: index):
    ktdp.yield_partial %{value} : {t}
  }}
  """

    body = (
        view("x", (cores, width))
        + view("z", (cores, width))
        + load("h", "x", (cores, width), ("core", "c0"), (1, width))
        + f"%own = arith.extf %h : tensor<1x{width}xf16> to {t}\n  %none = arith.constant dense<0.0> : {all_t}\n  "
        + produce("once", "own")
        + f"%s = scf.for %i = %c0 to %c{rounds} step %c1 iter_args(%a = %none) -> ({all_t}) {{\n  "
        + gather("g", "once")
        + produce("twice", "own")
        + gather("u", "twice")
        + gather("v", "twice")
        + f"""%b = arith.addf %a, %g : {all_t}
  %c = arith.addf %b, %u : {all_t}
  %d = arith.subf %c, %v : {all_t}
  scf.yield %d : {all_t}
  }}
  %o = tensor.extract_slice %s[%core, 0] [1, {width}] [1, 1] : {all_t} to {t}
  %y = arith.truncf %o : {t} to tensor<1x{width}xf16>
  """
        + store("y", "z", (cores, width), ("core", "c0"), (1, width))
    )
    x = rng.integers(-9, 9, (cores, width)).astype(np.float16)
    arrays = [x, np.zeros_like(x)]
    program = kernel("x z", cores, body, rounds)
    z = however_run(program, arrays, "z", tmp_path, numerics)
    assert (z == rounds * x).all()
