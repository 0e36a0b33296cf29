# SPDX-License-Identifier: Apache-2.0
"""What each --check mode finds, with the places it names; same bits otherwise."""

from __future__ import annotations

import os
import shutil

import kernels as k
import numpy as np
from programs import function, half, load, ok, store


def fails(
    folder: str, program: str, arguments: list, messages: list, *options: str
) -> None:
    """The run ends with status 1 and text that holds every message."""
    shutil.rmtree(os.path.join(folder, "bad"), ignore_errors=True)
    process = k.run(os.path.join(folder, "bad"), program, arguments, *options)
    assert process.returncode == 1, "no error was found"
    for message in messages:
        assert message in process.stderr, (message, process.stderr)
    assert not os.path.exists(os.path.join(folder, "bad", "out"))


def line_of(program: str, text: str, occurrence: int = 0) -> int:
    """Number of the line that holds the `occurrence`-th `text`."""
    found = [n for n, line in enumerate(program.splitlines(), 1) if text in line]
    return found[occurrence]


BOX = "affine_set<(i) : (i >= 0, -i + 63 >= 0)>"
ORDER = "affine_map<(i) -> (i)>"


def view(name: str, pointer: str, space: str, size: int = 64) -> str:
    return (
        f"%{name} = ktdp.construct_memory_view %{pointer}, sizes: [{size}], strides: "
        f"[1] {{coordinate_set = affine_set<(i) : (i >= 0, -i + {size - 1} >= 0)>, "
        f"memory_space = #ktdp.memory_space<{space}>}} : memref<{size}xf32>"
    )


def tile(name: str, base: str, at: str, size: int = 64) -> str:
    return (
        f"%{name} = ktdp.construct_access_tile %{base}[%{at}] {{access_tile_set = "
        f"affine_set<(i) : (i >= 0, -i + 63 >= 0)>, access_tile_order = {ORDER}}} : "
        f"memref<{size}xf32> -> !ktdp.access_tile<64xindex>"
    )


def kernel(name: str, arguments: str, grid: int, body: str) -> str:
    text = ", ".join(f"%{a}: index" for a in arguments.split())
    return f"""
func.func private @{name}({text}) attributes {{grid = [{grid}]}} {{
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %core = ktdp.get_compute_tile_id : index
  {body}
  return
}}"""


LOAD = "ktdp.load %{0} : !ktdp.access_tile<64xindex> -> tensor<64xf32>"
STORE = "ktdp.store %{0}, %{1} : tensor<64xf32>, !ktdp.access_tile<64xindex>"


def undefined(folder: str) -> None:
    """Reads of a pool and of LX that nothing has written."""
    x = np.ones(64, np.float32)
    for space, pointer in [("global", "p"), ("ct_local", "c16")]:
        program = f"""func.func @main(%x: index {{ktdp.name = "x"}}, %pool: index {{ktdp.pool_size = 256 : i64}}) {{
  %c4 = arith.constant 4 : index
  %p = arith.divui %pool, %c4 : index
  call @copy(%x, %p) : (index, index) -> ()
  return
}}
{
            kernel(
                "copy",
                "x p",
                1,
                f'''{view("vp", pointer, space)}
  {tile("tp", "vp", "c0")}
  {view("vx", "x", "global")}
  {tile("tx", "vx", "c0")}
  %d = {LOAD.format("tp")}
  {STORE.format("d", "tx")}''',
            )
        }
"""
        ok(k.run(folder, program, [x]))
        place = "device memory byte" if space == "global" else "LX of core 0 byte 64"
        fails(
            folder,
            program,
            [x],
            [
                f"program.mlir:{line_of(program, '%d = ktdp.load')}:",
                f"error: core 0: reads {place}",
                "which nothing has written",
                "program.mlir:1:46: note: it is part of pool 'pool' of 256 bytes, allocated here"
                if space == "global"
                else f"program.mlir:{line_of(program, '%vp = ')}:9: note: this view gives it "
                "a meaning, LX bytes 64 to 319",
            ],
            "--check",
            "full",
        )


def overlap(folder: str) -> None:
    """Two buffers in LX share bytes while both are live."""
    x = np.arange(64, dtype=np.float32)

    def program(second: str, again: str = "") -> str:
        return f"""func.func @main(%x: index {{ktdp.name = "x"}}) {{
  call @a(%x) : (index) -> ()
  return
}}
{
            kernel(
                "a",
                "x",
                1,
                f'''{view("vx", "x", "global")}
  {tile("tx", "vx", "c0")}
  {view("va", "c0", "ct_local")}
  {tile("ta", "va", "c0")}
  {view("vb", second, "ct_local")}
  {tile("tb", "vb", "c0")}
  %d = {LOAD.format("tx")}
  {STORE.format("d", "ta")}
  {STORE.format("d", "tb")}
  {again}
  %e = {LOAD.format("ta")}
  {STORE.format("e", "tx")}''',
            )
        }
"""

    for text in [
        program("c64"),
        program("c0"),
        program("c32", STORE.format("d", "ta")),
    ]:
        ok(k.run(folder, text, [x], "--check", "full"))
        assert (k.result(folder, "x") == x).all()
    text = program("c32")
    fails(
        folder,
        text,
        [x],
        [
            f"program.mlir:{line_of(text, '%e = ktdp.load')}:",
            "error: core 0: reads LX of core 0 byte 128, which was overwritten",
            f"program.mlir:{line_of(text, 'ktdp.store')}:3: note: core 0 wrote the live value here",
            f"program.mlir:{line_of(text, 'ktdp.store', 1)}:3: note: core 0 overwrote it here",
        ],
        "--check",
        "full",
    )


def races(folder: str) -> None:
    """Cores that touch the same bytes in one kernel; communication orders them."""
    x = np.arange(128, dtype=np.float32)

    def program(first: str, second: str, between: str = "") -> str:
        body = f"""{view("vx", "x", "global", 128)}
  %own = arith.muli %core, %c64 : index
  %one = arith.constant 1 : index
  %rest = arith.subi %one, %core : index
  %other = arith.muli %rest, %c64 : index
  {tile("town", "vx", "own", 128)}
  {tile("tother", "vx", "other", 128)}
  {tile("tlow", "vx", "c0", 128)}
  {tile("thigh", "vx", "c64", 128)}
  {first}
  {between}
  {second}"""
        text = kernel("f", "x", 2, body).replace(
            "@f(%x: index)", '@f(%x: index {ktdp.name = "x"})'
        )
        return text.replace("func.func private", "func.func")

    barrier = """%future = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<(i)[g] : (i >= 0, -i + 1 >= 0)>
      : tensor<1xf32> -> <(tensor<1xf32>), groups = affine_set<(g) : (g == 0)>> {
  ^bb0(%group: index):
    %s = tensor.splat %zero : tensor<1xf32>
    ktdp.yield_partial %s : tensor<1xf32>
  }
  %all = ktdp.inter_tile_gather(%future) consumer_tiles_per_group = affine_set<(i)[g] : (i >= 0, -i + 1 >= 0)>,
      gather_dimension = 0 : <(tensor<1xf32>), groups = affine_set<(g) : (g == 0)>> -> tensor<2xf32>"""
    zero = "%zero = arith.constant 0.0 : f32\n  %d = tensor.splat %zero : tensor<64xf32>\n  "
    own, other = "%e = " + LOAD.format("town"), "%e = " + LOAD.format("tother")
    # Ordered: each core its own part, or an exchange in between.
    ok(
        k.run(
            folder,
            program(zero + STORE.format("d", "town"), own),
            [x],
            "--check",
            "full",
        )
    )
    ok(
        k.run(
            folder,
            program(zero + STORE.format("d", "town"), other, barrier),
            [x],
            "--check",
            "full",
        )
    )
    # Write after read.
    text = program(
        "%e = " + LOAD.format("thigh") + "\n  " + zero,
        "%second = arith.cmpi eq, %core, %one : index\n  scf.if %second {\n  "
        + STORE.format("d", "thigh")
        + "\n  }",
    )
    ok(k.run(folder, text, [x]))
    fails(
        folder,
        text,
        [x],
        [
            f"program.mlir:{line_of(text, 'ktdp.store')}:3: error: core 1: writes device memory byte",
            "which core 0 reads, and nothing orders the two",
            f"program.mlir:{line_of(text, '%e = ktdp.load')}:8: note: core 0 reads here",
        ],
        "--check",
        "full",
    )
    # Read after write.
    text = program(zero + STORE.format("d", "town"), "%e = " + LOAD.format("tlow"))
    fails(
        folder,
        text,
        [x],
        [
            "error: core 1: reads device memory byte",
            "which core 0 writes with nothing",
            f"program.mlir:{line_of(text, 'ktdp.store')}:3: note: core 0 writes here",
        ],
        "--check",
        "full",
    )
    # Write after write.
    fails(
        folder,
        program(zero, STORE.format("d", "tlow")),
        [x],
        ["error: core 1: writes device memory byte", "note: core 0 writes here"],
        "--check",
        "full",
    )


def nans(folder: str) -> None:
    """The operation that first makes a NaN, before DL16 hides it."""
    shape = (4, 8)
    x = np.ones(shape, np.float16)
    x[2, 3] = np.inf
    t = "tensor<4x8xf16>"

    def program(body: str, out: tuple = shape) -> str:
        return function(
            "x z",
            f"{load('x', shape, 'f16')}\n    {body}\n    {store('z', out, 'f16', 'r')}",
        )

    text = program(
        f"%y = arith.addf %x_d, %x_d : {t}\n    %r = arith.subf %y, %x_d : {t}"
    )
    ok(k.run(folder, text, [x, np.zeros_like(x)]))
    assert not np.isnan(k.result(folder, "z")).any()
    fails(
        folder,
        text,
        [x, np.zeros_like(x)],
        [
            f"program.mlir:{line_of(text, 'arith.subf')}:",
            "error: arith.subf computes NaN from inf and inf",
            f"program.mlir:{line_of(text, 'arith.addf')}:10: note: an operand is computed here",
            f"program.mlir:{line_of(text, 'ktdp.load')}:12: note: an operand is computed here",
        ],
        "--check",
        "full",
    )
    ok(
        k.run(
            folder,
            text,
            [np.ones(shape, np.float16), np.zeros(shape, np.float16)],
            "--check",
            "full",
        )
    )
    # A sum of both infinities.
    y = x.copy()
    y[2, 5] = -np.inf
    text = program(
        """%init = arith.constant dense<0.0> : tensor<4xf16>
    %r = linalg.reduce { arith.addf } ins(%x_d : tensor<4x8xf16>) outs(%init : tensor<4xf16>) dimensions = [1]""",
        (4,),
    )
    ok(k.run(folder, text, [x, np.zeros(4, np.float16)], "--check", "full"))
    fails(
        folder,
        text,
        [y, np.zeros(4, np.float16)],
        [
            "linalg.reduce computes NaN from numbers and infinities",
            f"program.mlir:{line_of(text, 'ktdp.load')}:12: note: an operand is computed here",
        ],
        "--check",
        "full",
    )
    # In the body of a loop: what the loop reads, and what carries it there.
    text = program(
        f"""%c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%v = %x_d) -> ({t}) {{
      %e = tensor.empty() : {t}
      %n = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]}} ins(%v : {t}) outs(%e : {t}) {{
      ^bb0(%p: f16, %unused: f16):
        %q = arith.subf %p, %p : f16
        linalg.yield %q : f16
      }} -> {t}
      scf.yield %n : {t}
    }}"""
    )
    fails(
        folder,
        text,
        [x, np.zeros_like(x)],
        [
            f"program.mlir:{line_of(text, 'arith.subf')}:",
            "error: arith.subf computes NaN from inf and inf",
            f"program.mlir:{line_of(text, 'ktdp.load')}:12: note: an operand is computed here",
            f"program.mlir:{line_of(text, 'linalg.generic')}:12: note: an operand is computed here",
        ],
        "--check",
        "full",
    )
    # One that the input brought is not made here.
    z = np.full(shape, np.nan, np.float32)
    text = function(
        "x z",
        f"{load('x', shape, 'f32')}\n    %r = arith.addf %x_d, %x_d : tensor<4x8xf32>\n"
        f"    {store('z', shape, 'f32', 'r')}",
    )
    ok(k.run(folder, text, [z, np.zeros_like(z)], "--check", "full"))


def modes(folder: str) -> None:
    """The same bits in every mode, with any number of threads, per numerics."""
    rng = np.random.default_rng(31)
    a, b = half(rng, 70, 130), half(rng, 130, 200)
    cases = [
        (k.softmax_program(100, 200, 25), [half(rng, 100, 200), "zeros"], "out", 1),
        (
            k.matmul_program(70, 200, 130, (3, 2)),
            [a, b, "zeros"],
            "c",
            np.abs(a).astype(np.float32) @ np.abs(b).astype(np.float32),
        ),
    ]
    for program, arguments, name, scale in cases:
        results = []
        for check in ["none", "bounds", "full"]:
            for threads in ["1", "3"]:
                ok(
                    k.run(
                        folder,
                        program,
                        arguments,
                        "--check",
                        check,
                        "--threads",
                        threads,
                    )
                )
                results.append(k.result(folder, name))
        assert all((r == results[0]).all() for r in results), name
        ok(k.run(folder, program, arguments, "--numerics", "ieee"))
        ieee = k.result(folder, name).astype(np.float32)
        # Inputs and the result are rounded to nine bits instead of ten.
        error = np.abs(ieee - results[0].astype(np.float32))
        assert (error <= 2.0**-8 * scale).all(), name
        assert (ieee != results[0]).any(), name


def deadlock(folder: str) -> None:
    """Who waits for whom."""
    pair = "affine_set<(i)[g] : (i >= 0, -i + 1 >= 0)>"
    group = "affine_set<(g) : (g == 0)>"
    text = f"""func.func @f(%n: index) attributes {{grid = [3]}} {{
  %c0 = arith.constant 0 : index
  %core = ktdp.get_compute_tile_id : index
  %zero = arith.constant dense<0.0> : tensor<1xf32>
  %first = arith.cmpi eq, %core, %c0 : index
  scf.if %first {{
    %future = ktdp.inter_tile_produce producer_tiles_per_group = {pair} : tensor<1xf32> -> <(tensor<1xf32>), groups = {group}> {{
    ^bb0(%group: index):
      ktdp.yield_partial %zero : tensor<1xf32>
    }}
    %all = ktdp.inter_tile_gather(%future) consumer_tiles_per_group = {pair}, gather_dimension = 0
      : <(tensor<1xf32>), groups = {group}> -> tensor<2xf32>
  }} else {{
    %future = ktdp.inter_tile_produce producer_tiles_per_group = {pair} : tensor<1xf32> -> <(tensor<1xf32>), groups = {group}> {{
    ^bb0(%group: index):
      ktdp.yield_partial %zero : tensor<1xf32>
    }}
    %all = ktdp.inter_tile_gather(%future) consumer_tiles_per_group = {pair}, gather_dimension = 0
      : <(tensor<1xf32>), groups = {group}> -> tensor<2xf32>
  }}
  return
}}
"""
    fails(
        folder,
        text,
        [1],
        [
            f"program.mlir:{line_of(text, 'inter_tile_gather')}:",
            "error: core 0: ktdp.inter_tile_gather: deadlock: core 0 waits for core 1, core 1 waits for core 0",
        ],
    )


def send(name: str, source: int, target: int) -> str:
    """A message from one core to another; the third one has no part in it."""
    only = "affine_set<(i)[g] : (i - {} == 0)>"
    groups = "groups = affine_set<(g) : (g == 0)>"
    return f"""%{name}_f = ktdp.inter_tile_produce producer_tiles_per_group = {only.format(source)}
      : tensor<1xf32> -> <(tensor<1xf32>), {groups}> {{
  ^bb0(%group: index):
    %s = tensor.splat %zero : tensor<1xf32>
    ktdp.yield_partial %s : tensor<1xf32>
  }}
  %{name} = ktdp.inter_tile_consume(%{name}_f) consumer_tiles_per_group = {only.format(target)}
      : <(tensor<1xf32>), {groups}> -> tensor<1xf32>"""


def messages(folder: str) -> None:
    """A message orders what its sender did before with what its receiver does after,
    also by way of another core, and nothing the other way round.
    """
    x = np.arange(64, dtype=np.float32)
    only = "scf.if %is{} {{\n  {}\n  }}"

    def program(*steps: str) -> str:
        body = "\n  ".join(
            [
                view("vx", "x", "global"),
                tile("t", "vx", "c0"),
                "%zero = arith.constant 0.0 : f32",
                "%d = tensor.splat %zero : tensor<64xf32>",
                *(f"%n{i} = arith.constant {i} : index" for i in range(3)),
                *(f"%is{i} = arith.cmpi eq, %core, %n{i} : index" for i in range(3)),
                *steps,
            ]
        )
        text = kernel("f", "x", 3, body).replace("func.func private", "func.func")
        return text.replace("(%x: index)", '(%x: index {ktdp.name = "x"})')

    def write(core: int) -> str:
        return only.format(core, STORE.format("d", "t"))

    def read(core: int) -> str:
        return only.format(core, "%e = " + LOAD.format("t"))

    full = ("--check", "full")
    for steps in [
        (write(0), send("a", 0, 1), read(1)),
        (read(0), send("a", 0, 1), write(1)),
        (write(0), send("a", 0, 1), send("b", 1, 2), write(2)),
        (write(0), send("a", 0, 1), write(1), send("b", 1, 0), read(0)),
    ]:
        ok(k.run(folder, program(*steps), [x], *full))
    for steps, message in [
        ((send("a", 0, 1), write(0), read(1)), "core 1: reads device memory byte"),
        ((write(1), send("a", 0, 1), read(0)), "which core 0 reads with nothing"),
        ((write(0), send("a", 1, 0), write(1)), "core 1: writes device memory byte"),
        # The second message leaves before the first one arrives.
        (
            (write(0), send("b", 1, 2), send("a", 0, 1), write(2)),
            "core 2: writes device memory byte",
        ),
    ]:
        ok(k.run(folder, program(*steps), [x]))
        fails(folder, program(*steps), [x], [message], *full)
