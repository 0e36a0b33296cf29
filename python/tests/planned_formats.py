# SPDX-License-Identifier: Apache-2.0
"""Takes a planned file through SuperDSC and compares with KTIR, bit for bit."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
from commands import execute, run

#: Ways to write a bundle.
VARIANTS = {
    "asbuilt": [],
    "spec": ["--superdsc-flavor=spec"],
    "symbolic": ["--symbolic-args"],
    "unrolled": ["--unroll-loops"],
    "unrolled and symbolic": ["--unroll-loops", "--symbolic-args"],
}


def draw(dtype, shape, random):
    """Small values, indices below 4."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        return random.integers(0, 4, shape).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    return random.standard_normal(shape).astype(dtype)


def same_files(left, right):
    names = sorted(path.relative_to(left) for path in left.rglob("*.*"))
    assert names
    for name in names:
        assert (left / name).read_bytes() == (right / name).read_bytes(), name


def lower(planned, folder):
    run(
        "spyre-opt",
        "--convert-spyre-graph-to-ktir",
        planned,
        "-o",
        folder / "ktir.mlir",
    )
    return folder / "ktir.mlir"


def bits(outputs, names):
    return [outputs[name].tobytes() for name in names]


def without_ones(tensor):
    shape, order = tensor
    kept = [dim for dim, size in enumerate(shape) if size != 1]
    return [shape[dim] for dim in kept], [kept.index(d) for d in order if d in kept]


def comparable(own, other):
    """Whether the shapes of two arguments are the same, except for dimensions of 1."""
    (shape, order), (other_shape, other_order) = map(without_ones, (own, other))
    # A square may be transposed.
    distinct = len(set(shape)) == len(shape)
    return shape == other_shape and (distinct or order == other_order)


def check_without_manifest(bundle, said, inputs, expected, folder):
    """Whether the bits were compared: not of shapes that SuperDSC leaves open."""
    bare = folder / "bare"
    shutil.copytree(bundle, bare)
    (bare / "manifest.json").unlink()
    # Several bundles say it themselves.
    is_alone = (bare / "bundle.mlir").exists()
    flags = ["--pool"] if said["pool_bytes"] and is_alone else []
    text = run("spyre-translate", "--from-superdsc", *flags, bare)
    types = [
        ([int(size) for size in shape.split("x")[:-1]], json.loads(order))
        for shape, order in re.findall(
            r"%arg\d+: memref<([0-9x]*)\w+, #[\w.]+<order = (\[[\d, ]*\])", text
        )
    ]
    arguments = said["arguments"]
    own = [(argument["shape"], argument["order"]) for argument in arguments]
    plain = all(argument["dtype"] in ("float16", "float32") for argument in arguments)
    # Without manifest inputs have default layouts, results their iteration
    # space's order of dimensions, and those of extent 1 are not there.
    if not plain or len(types) != len(own) or not all(map(comparable, types, own)):
        execute(bare, ["zeros"] * len(arguments), folder / "bare.run", *flags)
        return False
    values = [x.reshape(shape) for x, (shape, _) in zip(inputs, types, strict=True)]
    found = execute(bare, values, folder / "bare.run", *flags)
    assert bits(found, [f"arg{n}" for n in range(len(values))]) == expected
    return True


def check_superdsc(planned: Path, root: Path) -> tuple[int, list[str]]:
    """The number of bundles, and the variants whose bits need no manifest.

    Each variant is valid and runs as the KTIR of the plan does; what is read of the
    first is written as it was.
    """
    bundle, again = root / "bundle", root / "again"
    run("spyre-translate", "--to-superdsc", planned, "-o", bundle)
    run("spyre-translate", "--from-superdsc", bundle, "-o", root / "raised.mlir")
    run("spyre-translate", "--to-superdsc", root / "raised.mlir", "-o", again)
    same_files(bundle, again)
    said = json.loads((bundle / "manifest.json").read_text())
    names = [argument["name"] for argument in said["arguments"]]
    random = np.random.default_rng(0)
    inputs = [draw(a["dtype"], a["shape"], random) for a in said["arguments"]]
    ktir = lower(planned, root)
    expected = bits(execute(ktir, inputs, root / "expected"), names)
    compared = []
    for variant, flags in VARIANTS.items():
        folder = root / variant
        folder.mkdir()
        own = folder / "bundle"
        run("spyre-translate", "--to-superdsc", *flags, planned, "-o", own)
        run("spyre-translate", "--validate-superdsc", own)
        assert bits(execute(own, inputs, folder / "run"), names) == expected, variant
        if check_without_manifest(own, said, inputs, expected, folder):
            compared.append(variant)
    return len(said["bundles"]), compared
