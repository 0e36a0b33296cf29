# SPDX-License-Identifier: Apache-2.0
"""Make bundles that read of LX and of the pool what is there, and what is not.

Usage: scratch.py FOLDER
"""

import sys
from pathlib import Path

from bundle import program, sdsc, tensor, write

ROWS = ["mb", "out"]
LABEL = (ROWS, {"out": 64})
SEGMENT = 1 << 34


def step(index, source, target, slices=8):
    dims = {"mb": (8, slices), "out": (128, 1)}
    return sdsc("neg", dims, [LABEL], [source, target], index=index)


def memory(segment):
    return tensor(ROWS, segment * SEGMENT)


def lx(address):
    return tensor(ROWS, address, lx=True)


def bundle(*steps, segments=None):
    names = [f"sdsc_{number}.json" for number in range(len(steps))]
    text = program(*names)
    if segments:
        attribute = f"sdscbundle.segments = array<i64: {segments}>"
        text = text.replace("bundle() {", f"bundle() attributes {{{attribute}}} {{")
    return dict(zip(names, steps, strict=True)) | {"bundle.mlir": text}


def main():
    root = Path(sys.argv[1])
    there = step(0, memory(0), lx(256)), step(1, lx(256), memory(1))
    write(root / "chain", bundle(*there))
    write(root / "reversed", bundle(there[1], there[0]))
    # Half as many cores read two rows each, of which each has one.
    fewer = step(1, lx(256), memory(1), slices=4)
    write(root / "fewer cores", bundle(there[0], fewer))
    write(root / "pool", bundle(step(0, memory(0), memory(1))))
    parts = (
        bundle(step(0, memory(1), memory(0)), segments="-1, 0"),
        bundle(step(0, memory(0), memory(1)), segments="-1, 1"),
    )
    for name, numbers in ("both", (0, 1)), ("no last", (0,)), ("no first", (1,)):
        for place, number in enumerate(numbers):
            write(root / name / f"bundle_{place}", parts[number])
    three = bundle(step(0, memory(0), memory(1)), segments="2, 3")
    write(root / "no last of three" / "bundle_0", parts[0])
    write(root / "no last of three" / "bundle_1", three)


if __name__ == "__main__":
    main()
