# SPDX-License-Identifier: Apache-2.0
"""Moves random buffers between the cores' LX; compares with numpy, bit for bit.

Usage: check_reshard.py SEED COUNT FOLDER. Plans are made here: odd extents, uneven
slices, any order of the loops over the cores, dense and sparse sticks, any element
type, parts that several cores get. Exits with 1 and prints the plans that fail.
"""

import pathlib
import sys

import numpy as np
from check_partners import divide, function
from plan_runner import main, run_plan

EXTENTS = [1, 2, 3, 7, 31, 63, 64, 65, 100, 127, 130, 251]
TYPES = {
    "f16": ("SEN169_FP16", 64, np.float16),
    "f32": ("IEEE_FP32", 32, np.float32),
    "i32": ("IEEE_INT32", 32, np.int32),
}


def division(rng, loops: list[tuple[int, int]]):
    """Of (extent, unit) loops in any order over the cores, with its chunks."""
    order = rng.sample(range(len(loops)), len(loops))
    splits, chunks, cores = [1] * len(loops), [0] * len(loops), 1
    for loop in order:
        splits[loop], chunks[loop] = divide(rng, *loops[loop], 32 // cores)
        cores *= splits[loop]
    text = f"splits = {splits}, chunks = {chunks}, order = {order}"
    return f"#spyre_graph.division<{text}>", chunks


def make(rng, numbers):
    rank = rng.choice([1, 2, 2, 3])
    shape = [rng.choice(EXTENTS) for _ in range(rank)]
    while np.prod(shape) > 300000:
        shape[shape.index(max(shape))] = rng.choice([1, 2, 3, 7])
    name, (form, lanes, dtype) = rng.choice(list(TYPES.items()))
    order = rng.sample(range(rank), rank)
    sparse = rng.random() < 0.2 and np.prod(shape) < 20000
    kind = "sparse, " if sparse else ""
    layout = f"#spyre_graph.layout<order = {order}, {kind}{form}>"
    sizes = "".join(f"{size}x" for size in shape)
    buffer = f"memref<{sizes}{name}, {layout}>"
    copies = rng.choice([1, 1, 2, 3, 8])
    outer = f"#spyre_graph.layout<order = {[0] + [d + 1 for d in order]}, {kind}{form}>"
    result = f"memref<{copies}x{sizes}{name}, {outer}>"
    stick = -1 if sparse else order[-1]
    loops = [(size, lanes if d == stick else 1) for d, size in enumerate(shape)]
    held, held_chunks = division(rng, loops)
    wanted, chunks = division(rng, [*loops, (copies, 1)])
    # The loop of the copies is not split where each part is once.
    source = held.replace("], chunks", ", 1], chunks")
    source = source.replace("], order = [", f", {copies}], order = [")
    source = source.replace("]>", f", {rank}]>")
    own = ", ".join(f"d{d}" for d in range(rank))
    alone = f"affine_map<({own}) -> ({own})>"
    each = f"affine_map<({own}, c) -> ({own})>"
    out = f"affine_map<({own}, c) -> (c, {own})>"
    extents = ", ".join(map(str, shape))

    def place(offset: int, of: list[int]) -> str:
        local = [min(chunk, size) for chunk, size in zip(of, shape, strict=False)]
        return (
            f"{{spyre_graph.placement = #spyre_graph.placement<lx, "
            f"offset = {offset}, local = {local}>}} : {buffer}\n"
        )

    body = f"  %a = memref.alloc() {place(0, held_chunks)}"
    body += f"  %b = memref.alloc() {place(802816, chunks)}"
    body += (
        f"  spyre_graph.neg ins(%x0 : {buffer}) outs(%a : {buffer}) "
        f"{{maps = [{alone}, {alone}], extents = array<i64: {extents}>, "
        f"division = {held}}}\n"
        f"  spyre_graph.reshard ins(%a : {buffer}) outs(%b : {buffer}) "
        f"{{source_division = {source}, maps = [{each}, {each}], "
        f"extents = array<i64: {extents}, {copies}>, division = {wanted}}}\n"
        f"  spyre_graph.neg ins(%b : {buffer}) outs(%out0 : {result}) "
        f"{{maps = [{each}, {out}], extents = array<i64: {extents}, {copies}>, "
        f"division = {wanted}}}\n"
    )
    x = numbers.integers(-1000, 1000, shape).astype(dtype)
    expected = np.broadcast_to(x, (copies, *shape))
    return function([buffer, result], body), [x], expected


def check(rng, folder: pathlib.Path) -> str | None:
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    text, values, expected = make(rng, numbers)
    found = run_plan(text, values, folder)
    if isinstance(found, str):
        return found
    if not np.array_equal(found, expected):
        return f"{(found != expected).sum()} of {expected.size} elements differ"
    return None


if __name__ == "__main__":
    sys.exit(main(check))
