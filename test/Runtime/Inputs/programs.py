# SPDX-License-Identifier: Apache-2.0
"""What the checks share: small programs on plain arrays, and comparisons."""

from __future__ import annotations

from collections.abc import Iterator

import kernels as k
import numpy as np


def half(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float16)


def ok(process) -> None:
    assert process.returncode == 0, process.stderr


def check_close(actual: np.ndarray, expected: np.ndarray, bound) -> None:
    error = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    bad = error > bound
    assert not bad.any(), (np.argwhere(bad)[:5], actual[bad][:5], expected[bad][:5])


def round_half(x: np.ndarray) -> np.ndarray:
    """Rounds to IEEE half."""
    return np.asarray(x, np.float32).astype(np.float16).astype(np.float32)


# What f16 is, and its unit in the last place of 1.
ROUND = {"dl16": k.round_dl16, "ieee": round_half}
UNIT = {"dl16": 2.0**-9, "ieee": 2.0**-10}


def everywhere(
    folder: str, program: str, arguments: list, name: str
) -> Iterator[tuple[str, np.ndarray]]:
    """Argument `name` after runs in both numerics; the same bits however it runs."""
    for numerics in ROUND:
        results = []
        for check, threads in [("bounds", 1), ("bounds", 3), ("none", 2), ("full", 2)]:
            flags = ["--check", check, "--threads", str(threads)]
            ok(k.run(folder, program, arguments, "--numerics", numerics, *flags))
            results.append(k.result(folder, name))
            same = results[0].tobytes() == results[-1].tobytes()
            assert same, (numerics, check, threads)
        yield numerics, results[0]


def plain(name: str, shape: tuple, element: str) -> str:
    """A dense view of argument `name` and a tile of all of it."""
    dims = "abcdef"[: len(shape)]
    names = " ".join(dims)
    strides = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
    text = "x".join(map(str, shape))
    zeros = ", ".join("%c0" for _ in shape)
    return f"""%v_{name} = ktdp.construct_memory_view %{name}, sizes: {list(shape)}, strides: {strides} {{
      coordinate_set = {k.box(names, list(shape))}, memory_space = #ktdp.memory_space<global>}} : memref<{text}x{element}>
    %{name}_t = ktdp.construct_access_tile %v_{name}[{zeros}] {{access_tile_set = {k.box(names, list(shape))},
      access_tile_order = affine_map<({", ".join(dims)}) -> ({", ".join(dims)})>}} : memref<{text}x{element}> -> !ktdp.access_tile<{text}xindex>"""


def load(name: str, shape: tuple, element: str) -> str:
    text = "x".join(map(str, shape))
    return (
        plain(name, shape, element) + f"\n    %{name}_d = ktdp.load %{name}_t : "
        f"!ktdp.access_tile<{text}xindex> -> tensor<{text}x{element}>"
    )


def store(name: str, shape: tuple, element: str, value: str) -> str:
    text = "x".join(map(str, shape))
    return (
        plain(name, shape, element)
        + f"\n    ktdp.store %{value}, %{name}_t : tensor<{text}x{element}>, "
        f"!ktdp.access_tile<{text}xindex>"
    )


def function(arguments: str, body: str) -> str:
    args = ", ".join(f'%{a}: index {{ktdp.name = "{a}"}}' for a in arguments.split())
    return f"func.func @f({args}) {{\n    %c0 = arith.constant 0 : index\n    {body}\n    return\n}}\n"
