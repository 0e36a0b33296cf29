# SPDX-License-Identifier: Apache-2.0
"""Limits of the device: LX capacity, program memory, spans."""

from __future__ import annotations

import json
import os

import kernels as k
import numpy as np
from check_modes import fails, line_of
from programs import function, load, ok, store


def grid(text: str, cores: int = 1) -> str:
    """The same function as a kernel."""
    return text.replace(") {", f") attributes {{grid = [{cores}]}} {{", 1)


def limits(folder: str) -> None:
    """LX capacity with liveness."""
    x = np.ones((512, 512), np.float32)

    def program(body: str) -> str:
        return grid(function("x z", f"{load('x', (512, 512), 'f32')}\n    {body}"))

    # Two megabytes: one tile and its successor never live together with a third.
    t = "tensor<512x512xf32>"
    alive = f"%a = arith.addf %x_d, %x_d : {t}\n    %b = arith.mulf %a, %a : {t}\n"
    ok(
        k.run(
            folder, program(f"{alive}    {store('z', (512, 512), 'f32', 'b')}"), [x, x]
        )
    )
    both = (
        f"{alive}    %c = arith.subf %b, %x_d : {t}\n    %d = arith.addf %c, %a : {t}\n"
        f"    {store('z', (512, 512), 'f32', 'd')}"
    )
    text = program(both)
    ok(k.run(folder, text, [x, x], "--check", "none"))
    fails(
        folder,
        text,
        [x, x],
        [
            f"program.mlir:{line_of(text, '%b = arith.mulf')}:",
            "error: core 0: LX scratchpad overflow: live data tiles need 3145728 bytes, "
            "available 2097152 bytes (capacity 2097152 bytes, views 0 bytes)",
        ],
    )
    # During an operation its operands and its result are live.
    wide = np.ones((384, 512), np.float32)
    t = "tensor<384x512xf32>"
    three = f"""{load("x", wide.shape, "f32")}
    {load("z", wide.shape, "f32")}
    %e = tensor.empty() : tensor<512x384xf32>
    %u = linalg.transpose ins(%x_d : {t}) outs(%e : tensor<512x384xf32>) permutation = [1, 0]
    %v = tensor.extract_slice %u[0, 0] [512, 1] [1, 1] : tensor<512x384xf32> to tensor<512x1xf32>"""
    text = grid(function("x z", three))
    ok(k.run(folder, text, [wide, wide]))
    text = text.replace("    %v = ", f"    %w = arith.addf %z_d, %z_d : {t}\n    %v = ")
    fails(
        folder,
        text,
        [wide, wide],
        [
            f"program.mlir:{line_of(text, 'linalg.transpose')}:",
            "live data tiles need 2359296 bytes",
        ],
    )
    # What a loop carries takes the place of what it yielded before.
    carried = f"""{load("x", (384, 512), "f32")}
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %l = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x_d) -> ({t}) {{
      %n = arith.addf %a, %a : {t}
      scf.yield %n : {t}
    }}
    %m = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %l) -> ({t}) {{
      %n = arith.mulf %a, %a : {t}
      scf.yield %n : {t}
    }}
    %r = arith.addf %m, %m : {t}
    {store("z", (384, 512), "f32", "r")}"""
    ok(k.run(folder, grid(function("x z", carried)), [wide, wide]))
    assert (k.result(folder, "z") == 2.0**25).all()


def spans(folder: str) -> None:
    """A core's accesses through one view reach 256 MiB far at most."""
    wide = function(
        "x",
        """%v = ktdp.construct_memory_view %x, sizes: [2, 64], strides: [80000000, 1] {coordinate_set =
      affine_set<(a, b) : (a >= 0, -a + 1 >= 0, b >= 0, -b + 63 >= 0)>, memory_space = #ktdp.memory_space<global>}
      : memref<2x64xf32>
    %t = ktdp.construct_access_tile %v[%c0, %c0] {access_tile_set = affine_set<(a, b) : (a >= 0, -a + 1 >= 0, b >= 0,
      -b + 63 >= 0)>, access_tile_order = affine_map<(a, b) -> (a, b)>} : memref<2x64xf32> -> !ktdp.access_tile<2x64xindex>
    %d = ktdp.load %t : !ktdp.access_tile<2x64xindex> -> tensor<2x64xf32>""",
    )
    process = k.run(
        os.path.join(folder, "wide"), wide, [np.zeros(80000064, np.float32)]
    )
    assert process.returncode == 1, process.stderr
    assert (
        "span 320000256 bytes of device memory, but a core addresses 268435456"
        in process.stderr
    ), process.stderr


def program_memory(folder: str) -> None:
    """The programs of all cores fit the segment that holds them."""
    x = np.ones(64, np.float32)
    body = f"""{load("x", (64,), "f32")}
    %c = arith.constant dense<{list(map(float, range(64)))}> : tensor<64xf32>
    %r = arith.addf %x_d, %c : tensor<64xf32>
    {store("x", (64,), "f32", "r").replace("v_x", "w_x").replace("x_t", "y_t")}"""
    text = grid(function("x", body), 4)
    # Nine operations and a constant of two blocks on each of four cores.
    os.makedirs(folder, exist_ok=True)
    device = os.path.join(folder, "device.json")
    for room, fits in [(5632, True), (5631, False)]:
        with open(device, "w", encoding="utf-8") as file:
            json.dump({"segmentBytes": room}, file)
        if fits:
            ok(k.run(folder, text, [x], "--device", device))
            continue
        fails(
            folder,
            text,
            [x],
            [
                "program.mlir:1:1: error: program memory is full: the 4 cores of @f need "
                "5632 bytes, and with what comes before the program takes 5632 of 5631 bytes"
            ],
            "--device",
            device,
        )


def device_sizes(folder: str) -> None:
    """--device sets the sizes that execution checks."""
    x = np.ones(64, np.float32)
    body = f"""{load("x", (64,), "f32")}
    %r = arith.addf %x_d, %x_d : tensor<64xf32>
    {store("x", (64,), "f32", "r").replace("v_x", "w_x").replace("x_t", "y_t")}"""
    text = grid(function("x", body), 2)
    os.makedirs(folder, exist_ok=True)
    device = os.path.join(folder, "device.json")
    for name, room, message in [
        ("lxBytesPerCore", 256, ""),
        ("lxBytesPerCore", 255, "LX scratchpad overflow: live data tiles need 256"),
        ("maxSpanBytes", 256, ""),
        ("maxSpanBytes", 255, "span 256 bytes of device memory, but a core addresses"),
        ("deviceMemoryBytes", 1 << 28, ""),
        ("deviceMemoryBytes", 1 << 16, "out of device memory: 256 bytes requested"),
    ]:
        with open(device, "w", encoding="utf-8") as file:
            json.dump({name: room}, file)
        if message:
            fails(folder, text, [x], [message], "--device", device)
        else:
            ok(k.run(folder, text, [x], "--device", device))


def far(folder: str) -> None:
    """With --oob=zero, too: a coordinate whose address would wrap around."""
    x = np.arange(1, 65, dtype=np.float32)
    body = """%v = ktdp.construct_memory_view %x, sizes: [64], strides: [1] {coordinate_set = SET,
      memory_space = #ktdp.memory_space<global>} : memref<64xf32>
    %t = ktdp.construct_access_tile %v[%n] {access_tile_set = SET, access_tile_order = ORDER}
      : memref<64xf32> -> !ktdp.access_tile<64xindex>
    %d = ktdp.load %t : !ktdp.access_tile<64xindex> -> tensor<64xf32>
    %s = arith.addf %d, %d : tensor<64xf32>
    ktdp.store %s, %t : tensor<64xf32>, !ktdp.access_tile<64xindex>"""
    texts = []
    # A set that is no box goes point by point.
    for rest in ["", ", i mod 2 >= 0"]:
        points = f"affine_set<(i) : (i >= 0, -i + 63 >= 0{rest})>"
        text = body.replace("SET", points).replace("ORDER", "affine_map<(i) -> (i)>")
        texts.append(function("x n", text))
    for text in texts:
        for at in [0, 1, 63, 64, 1000, -1, -63, -64, -1000, 2**40]:
            ok(k.run(folder, text, [x, at], "--oob", "zero"))
            expected = x.copy()
            expected[max(at, 0) : max(64 + min(at, 0), 0)] *= 2
            assert (k.result(folder, "x") == expected).all(), at
        for at in [2**63 - 1, 2**62, 2**62 - 1, -(2**62), 2**61, -(2**63)]:
            fails(folder, text, [x, at], [f"coordinate {at} of"], "--oob", "zero")
