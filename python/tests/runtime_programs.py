# SPDX-License-Identifier: Apache-2.0
"""Small programs in KTIR on plain arrays, for tests of the runtime's values.

A program is text; it runs in a folder, and its arguments are those of spyre-run.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from commands import arguments, call, execute


def round_dl16(x) -> np.ndarray:
    """Rounds fp32 values to DL16 (spec/numerics.md), NaN to +inf."""
    x = np.asarray(x, np.float32)
    bits = x.view(np.uint32)
    # Half away from zero at the ninth fraction bit.
    magnitude = ((bits & 0x7FFFFFFF) + (1 << 13)) >> 14 << 14
    value = magnitude.astype(np.uint32).view(np.float32).copy()
    # The smallest code is (1 + 1/512) 2^-31, the largest finite one 0x7FFE.
    value[value < (1 + 2.0**-9) * 2.0**-31] = 0.0
    value[value > (2 - 2.0**-8) * 2.0**32] = np.inf
    result = np.where(bits >> 31, -value, value)
    return np.where(np.isnan(x), np.inf, result).astype(np.float32)


def round_half(x) -> np.ndarray:
    """Rounds to IEEE half."""
    return np.asarray(x, np.float32).astype(np.float16).astype(np.float32)


#: What f16 is, and its unit in the last place of 1.
ROUND = {"dl16": round_dl16, "ieee": round_half}
UNIT = {"dl16": 2.0**-9, "ieee": 2.0**-10}


def half(rng, *shape) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float16)


def box(names: str, extents: Sequence) -> str:
    """An affine_set of the box; a string extent is a symbol."""
    dims = names.split()
    symbols = [e for e in extents if isinstance(e, str)]
    parts = []
    for d, e in zip(dims, extents, strict=True):
        last = f"{e} - 1" if isinstance(e, str) else str(e - 1)
        parts += [f"{d} >= 0", f"-{d} + {last} >= 0"]
    text = f"affine_set<({', '.join(dims)})"
    if symbols:
        text += f"[{', '.join(symbols)}]"
    return text + f" : ({', '.join(parts)})>"


def plain(name: str, shape: tuple, element: str) -> str:
    """A dense view of argument ``name`` and a tile of all of it."""
    dims = "abcdef"[: len(shape)]
    names = " ".join(dims)
    strides = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
    text = "x".join(map(str, shape))
    zeros = ", ".join("%c0" for _ in shape)
    return f"""%v_{name} = ktdp.construct_memory_view %{name}, sizes: {list(shape)}, strides: {strides} {{
      coordinate_set = {box(names, shape)}, memory_space = #ktdp.memory_space<global>}} : memref<{text}x{element}>
    %{name}_t = ktdp.construct_access_tile %v_{name}[{zeros}] {{access_tile_set = {box(names, shape)},
      access_tile_order = affine_map<({", ".join(dims)}) -> ({", ".join(dims)})>}} : memref<{text}x{element}> -> !ktdp.access_tile<{text}xindex>"""


def load(name: str, shape: tuple, element: str) -> str:
    text = "x".join(map(str, shape))
    return f"""{plain(name, shape, element)}
    %{name}_d = ktdp.load %{name}_t : !ktdp.access_tile<{text}xindex> -> tensor<{text}x{element}>"""


def store(name: str, shape: tuple, element: str, value: str) -> str:
    text = "x".join(map(str, shape))
    return f"""{plain(name, shape, element)}
    ktdp.store %{value}, %{name}_t : tensor<{text}x{element}>, !ktdp.access_tile<{text}xindex>"""


def function(names: str, body: str) -> str:
    args = ", ".join(f'%{a}: index {{ktdp.name = "{a}"}}' for a in names.split())
    return f"func.func @f({args}) {{\n    %c0 = arith.constant 0 : index\n    {body}\n    return\n}}\n"


def grid(text: str, cores: int = 1) -> str:
    """The same function as a kernel."""
    return text.replace(") {", f") attributes {{grid = [{cores}]}} {{", 1)


def save(program: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "program.mlir"
    path.write_text(program)
    return path


def results(program: str, values, folder: Path, *flags) -> dict[str, np.ndarray]:
    """The arguments after a run, by name."""
    return execute(save(program, folder), values, folder, *flags)


def fails(program: str, values, folder: Path, messages: Sequence[str], *flags):
    """The run ends with status 1, an error that has every message, and no result."""
    assert not isinstance(messages, str)
    path, out = save(program, folder), folder / "out"
    values = arguments(values, folder)
    done = call("spyre-run", path, *values, "--out-dir", out, *flags)
    assert done.returncode == 1, f"status {done.returncode}: {done.stderr[-3000:]}"
    for message in messages:
        assert message in done.stderr
    assert not out.exists()


def line_of(program: str, text: str, occurrence: int = 0) -> int:
    """Number of the line that holds the ``occurrence``-th ``text``."""
    found = [n for n, line in enumerate(program.splitlines(), 1) if text in line]
    return found[occurrence]


def however_run(program, values, name, folder, numerics) -> np.ndarray:
    """An argument after a run; the same bits in every check mode, on any threads."""
    first = None
    for check, threads in [("bounds", 1), ("bounds", 3), ("none", 2), ("full", 2)]:
        flags = ["--numerics", numerics, "--check", check, "--threads", threads]
        found = results(program, values, folder / f"{check}-{threads}", *flags)[name]
        first = found if first is None else first
        assert first.dtype == found.dtype
        assert first.tobytes() == found.tobytes(), (check, threads)
    return first


def check_close(actual: np.ndarray, expected: np.ndarray, bound):
    error = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    bad = ~(error <= bound)
    assert not bad.any(), (np.argwhere(bad)[:5], actual[bad][:5], expected[bad][:5])
