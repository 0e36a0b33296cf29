# SPDX-License-Identifier: Apache-2.0
"""Limits of the device: LX capacity, program memory, spans, addresses."""

import json

import numpy as np
import pytest
from commands import needs_tools
from ktir_runs import fails, results
from ktir_text import function, grid, line_of, load, store

pytestmark = needs_tools

SQUARE, WIDE = (512, 512), (384, 512)


def ones(shape) -> np.ndarray:
    return np.ones(shape, np.float32)


def successors(rest: str, value: str) -> str:
    """A tile of 1 MiB, half of LX, and others that are made from it."""
    t = "tensor<512x512xf32>"
    body = f"""{load("x", SQUARE, "f32")}
    %a = arith.addf %x_d, %x_d : {t}
    %b = arith.mulf %a, %a : {t}
    {rest.replace("T", t)}
    {store("z", SQUARE, "f32", value)}"""
    return grid(function("x z", body))


# Needs what was live before in the last operation.
THREE = "%c = arith.subf %b, %x_d : T\n    %d = arith.addf %c, %a : T"


def test_a_tile_and_its_successor_fit(tmp_path):
    results(successors("", "b"), [ones(SQUARE)] * 2, tmp_path)


def test_three_live_tiles_do_not_fit(tmp_path):
    program = successors(THREE, "d")
    messages = [
        f"program.mlir:{line_of(program, '%b = arith.mulf')}:",
        "error: core 0: LX scratchpad overflow: live data tiles need 3145728 bytes, "
        "available 2097152 bytes (capacity 2097152 bytes, views 0 bytes)",
    ]
    fails(program, [ones(SQUARE)] * 2, tmp_path, messages)


def test_three_live_tiles_run_unchecked(tmp_path):
    program = successors(THREE, "d")
    results(program, [ones(SQUARE)] * 2, tmp_path, "--check", "none")


def transposed(more: str) -> str:
    body = f"""{load("x", WIDE, "f32")}
    {load("z", WIDE, "f32")}
    %e = tensor.empty() : tensor<512x384xf32>
    %u = linalg.transpose ins(%x_d : tensor<384x512xf32>) outs(%e : tensor<512x384xf32>) permutation = [1, 0]
    {more}
    %v = tensor.extract_slice %u[0, 0] [512, 1] [1, 1] : tensor<512x384xf32> to tensor<512x1xf32>"""
    return grid(function("x z", body))


def test_an_operand_and_a_result_fit(tmp_path):
    results(transposed(""), [ones(WIDE)] * 2, tmp_path)


def test_operands_and_results_are_live_together(tmp_path):
    """%z_d is live during the transposition if something later needs it."""
    program = transposed("%w = arith.addf %z_d, %z_d : tensor<384x512xf32>")
    messages = [
        f"program.mlir:{line_of(program, 'linalg.transpose')}:",
        "live data tiles need 2359296 bytes",
    ]
    fails(program, [ones(WIDE)] * 2, tmp_path, messages)


def test_what_a_loop_carries_takes_the_place_of_what_it_yielded(tmp_path):
    t = "tensor<384x512xf32>"
    body = f"""{load("x", WIDE, "f32")}
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
    {store("z", WIDE, "f32", "r")}"""
    found = results(grid(function("x z", body)), [ones(WIDE)] * 2, tmp_path)["z"]
    assert (found == 2.0**25).all()


def test_span_of_a_view(tmp_path):
    """A core's accesses through one view reach 256 MiB far at most."""
    box = "affine_set<(a, b) : (a >= 0, -a + 1 >= 0, b >= 0, -b + 63 >= 0)>"
    body = f"""%v = ktdp.construct_memory_view %x, sizes: [2, 64], strides: [80000000, 1] {{
      coordinate_set = {box}, memory_space = #ktdp.memory_space<global>}} : memref<2x64xf32>
    %t = ktdp.construct_access_tile %v[%c0, %c0] {{access_tile_set = {box},
      access_tile_order = affine_map<(a, b) -> (a, b)>}} : memref<2x64xf32> -> !ktdp.access_tile<2x64xindex>
    %d = ktdp.load %t : !ktdp.access_tile<2x64xindex> -> tensor<2x64xf32>"""
    message = "span 320000256 bytes of device memory, but a core addresses 268435456"
    x = np.zeros(80000064, np.float32)
    fails(function("x", body), [x], tmp_path, [message])
    # 320 MB that pytest would keep.
    (tmp_path / "in0.npy").unlink()


def test_an_empty_tile_of_a_far_view_spans_nothing(tmp_path):
    box = "affine_set<(a, b) : (a >= 0, -a + 1 >= 0, b >= 0, -b + 63 >= 0)>"
    rows = "affine_set<(a, b)[n] : (a >= 0, -a + n - 1 >= 0, b >= 0, -b + 63 >= 0)>"
    body = f"""%v = ktdp.construct_memory_view %x, sizes: [2, 64], strides: [80000000, 1] {{
      coordinate_set = {box}, memory_space = #ktdp.memory_space<global>}} : memref<2x64xf32>
    %t = ktdp.construct_indirect_access_tile intermediate_variables(%a, %b) %v[(%a), (%b mod 64)]
      symbols(%c0) {{variables_space_set = {rows},
      variables_space_order = affine_map<(a, b) -> (a, b)>}} : memref<2x64xf32> -> !ktdp.access_tile<?x64xindex>
    %d = ktdp.load %t : !ktdp.access_tile<?x64xindex> -> tensor<?x64xf32>"""
    results(function("x", body), [np.zeros(64, np.float32)], tmp_path)


def in_place(operation: str, cores: int) -> str:
    """A kernel that replaces the 64 numbers of %x."""
    again = store("x", (64,), "f32", "r").replace("v_x", "w_x").replace("x_t", "y_t")
    body = f"{load('x', (64,), 'f32')}\n    {operation}\n    {again}"
    return grid(function("x", body), cores)


def device(folder, **sizes) -> list:
    path = folder / "device.json"
    path.write_text(json.dumps(sizes))
    return ["--device", path]


def program_of_5632_bytes() -> str:
    """Nine operations and a constant of two blocks on each of four cores."""
    values = list(map(float, range(64)))
    operations = f"""%c = arith.constant dense<{values}> : tensor<64xf32>
    %r = arith.addf %x_d, %c : tensor<64xf32>"""
    return in_place(operations, 4)


def test_program_memory_that_is_just_enough(tmp_path):
    """The programs of all cores fit the segment that holds them."""
    flags = device(tmp_path, segmentBytes=5632)
    results(program_of_5632_bytes(), [ones(64)], tmp_path, *flags)


def test_program_memory_that_is_full(tmp_path):
    message = (
        "program.mlir:1:1: error: program memory is full: the 4 cores of @f need "
        "5632 bytes, and with what comes before the program takes 5632 of 5631 bytes"
    )
    flags = device(tmp_path, segmentBytes=5631)
    fails(program_of_5632_bytes(), [ones(64)], tmp_path, [message], *flags)


DOUBLED = in_place("%r = arith.addf %x_d, %x_d : tensor<64xf32>", 2)


@pytest.mark.parametrize(
    ("size", "room"),
    [
        ("lxBytesPerCore", 256),
        ("maxSpanBytes", 256),
        ("deviceMemoryBytes", 1 << 28),
    ],
)
def test_device_size_that_is_enough(size, room, tmp_path):
    results(DOUBLED, [ones(64)], tmp_path, *device(tmp_path, **{size: room}))


@pytest.mark.parametrize(
    ("size", "room", "message"),
    [
        ("lxBytesPerCore", 255, "LX scratchpad overflow: live data tiles need 256"),
        ("maxSpanBytes", 255, "span 256 bytes of device memory, but a core addresses"),
        ("deviceMemoryBytes", 1 << 16, "device out of memory. 256 bytes requested"),
    ],
    ids=lambda value: None if isinstance(value, int) else value.split(":")[0],
)
def test_device_size_that_is_too_small(size, room, message, tmp_path):
    flags = device(tmp_path, **{size: room})
    fails(DOUBLED, [ones(64)], tmp_path, [message], *flags)


#: A set that is no box goes point by point.
SETS = {"box": "", "points": ", i mod 2 >= 0"}


def at_coordinate(rest: str) -> str:
    """Doubles the 64 numbers from %n on."""
    points = f"affine_set<(i) : (i >= 0, -i + 63 >= 0{rest})>"
    body = f"""%v = ktdp.construct_memory_view %x, sizes: [64], strides: [1] {{coordinate_set = {points},
      memory_space = #ktdp.memory_space<global>}} : memref<64xf32>
    %t = ktdp.construct_access_tile %v[%n] {{access_tile_set = {points}, access_tile_order = affine_map<(i) -> (i)>}}
      : memref<64xf32> -> !ktdp.access_tile<64xindex>
    %d = ktdp.load %t : !ktdp.access_tile<64xindex> -> tensor<64xf32>
    %s = arith.addf %d, %d : tensor<64xf32>
    ktdp.store %s, %t : tensor<64xf32>, !ktdp.access_tile<64xindex>"""
    return function("x n", body)


@pytest.mark.parametrize("rest", SETS.values(), ids=SETS)
@pytest.mark.parametrize("at", [0, 1, 63, 64, 1000, -1, -63, -64, -1000, 2**40])
def test_coordinate_outside_with_oob_zero(at, rest, tmp_path):
    x = np.arange(1, 65, dtype=np.float32)
    found = results(at_coordinate(rest), [x, at], tmp_path, "--oob", "zero")["x"]
    x[max(at, 0) : max(64 + min(at, 0), 0)] *= 2
    assert np.array_equal(found, x)


@pytest.mark.parametrize("rest", SETS.values(), ids=SETS)
@pytest.mark.parametrize("at", [2**63 - 1, 2**62, 2**62 - 1, -(2**62), 2**61, -(2**63)])
def test_coordinate_whose_address_would_wrap_around(at, rest, tmp_path):
    """With --oob=zero, too."""
    x = np.arange(1, 65, dtype=np.float32)
    message = f"coordinate {at} of"
    fails(at_coordinate(rest), [x, at], tmp_path, [message], "--oob", "zero")
