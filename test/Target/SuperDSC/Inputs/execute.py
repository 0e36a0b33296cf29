# SPDX-License-Identifier: Apache-2.0
"""Take planned files through SuperDSC and compare with KTIR, bit for bit.

Usage: execute.py [--timeout=SECONDS] OUTPUT FOLDER

Of each file: the bundle is valid; reading and writing it again gives the same
bytes; it runs and gives what the KTIR of the plan gives, also as the
specification writes it, with symbolic arguments, with loops unrolled, and
without its manifest.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

timeout = 300


def run(*command):
    result = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=timeout
    )
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def make_inputs(manifest, folder):
    """One file per argument; small values, indices below 4."""
    random = np.random.default_rng(0)
    files = []
    for argument in manifest["arguments"]:
        shape = argument["shape"]
        if "int" in argument["dtype"]:
            values = random.integers(0, 4, shape).astype(argument["dtype"])
        elif argument["dtype"] == "bool":
            values = random.integers(0, 2, shape).astype(bool)
        else:
            values = random.standard_normal(shape).astype(argument["dtype"])
        files.append(folder / f"{argument['name']}.npy")
        np.save(files[-1], values)
    return files


def same_files(left, right):
    names = sorted(path.relative_to(left) for path in left.rglob("*.*"))
    for name in names:
        if (left / name).read_bytes() != (right / name).read_bytes():
            sys.exit(f"{left / name} and {right / name} differ")


def outputs(program, inputs, folder, *flags):
    """The arguments after a run, in order."""
    arguments = [part for file in inputs for part in ("--arg", file)]
    folder.mkdir()
    run("spyre-run", program, *arguments, "--out-dir", folder, *flags)
    return folder


def load(folder, names):
    return [np.load(folder / f"{name}.npy") for name in names]


def check_without_manifest(planned, bundle, manifest, inputs, expected):
    """Whether the bits were compared: not of shapes that SuperDSC leaves open."""
    bare = bundle.with_name(f"{bundle.name} bare")
    out = bare.with_suffix(".out")
    names = [argument["name"] for argument in manifest["arguments"]]
    shutil.copytree(bundle, bare)
    (bare / "manifest.json").unlink()
    plain = all(
        argument["dtype"] in ("float16", "float32")
        for argument in manifest["arguments"]
    )
    # Several bundles say it themselves.
    is_alone = (bare / "bundle.mlir").exists()
    flags = ["--pool"] if manifest["pool_bytes"] and is_alone else []
    text = run("spyre-translate", "--from-superdsc", *flags, bare)
    types = [
        ([int(size) for size in shape.split("x")[:-1]], json.loads(order))
        for shape, order in re.findall(
            r"%arg\d+: memref<([0-9x]*)\w+, #[\w.]+<order = (\[[\d, ]*\])", text
        )
    ]
    said = [
        (argument["shape"], argument["order"]) for argument in manifest["arguments"]
    ]

    def comparable(own, other):
        (shape, order), (other_shape, other_order) = map(without_ones, (own, other))
        # A square may be transposed.
        distinct = len(set(shape)) == len(shape)
        return shape == other_shape and (distinct or order == other_order)

    def without_ones(tensor):
        shape, order = tensor
        kept = [dim for dim, size in enumerate(shape) if size != 1]
        return [shape[dim] for dim in kept], [
            kept.index(dim) for dim in order if dim in kept
        ]

    # Without manifest inputs have default layouts, results their iteration
    # space's order of dimensions, and those of extent 1 are not there.
    if not plain or len(types) != len(said) or not all(map(comparable, types, said)):
        outputs(bare, ["zeros"] * len(manifest["arguments"]), out, *flags)
        return False
    shapes = [shape for shape, _ in types]
    own = []
    for file, shape in zip(inputs, shapes, strict=True):
        own.append(bare.with_name(f"{file.stem}.bare.npy"))
        np.save(own[-1], np.load(file).reshape(shape))
    outputs(bare, own, out, *flags)
    found = load(out, [f"arg{n}" for n in range(len(names))])
    for own, left, right in zip(names, expected, found, strict=True):
        if left.tobytes() != right.tobytes():
            sys.exit(f"{planned}: {own} differs without manifest")
    return True


def check(planned, root):
    root.mkdir(parents=True)
    bundle = root / "bundle"
    run("spyre-translate", "--to-superdsc", planned, "-o", bundle)
    run("spyre-translate", "--validate-superdsc", bundle)
    raised = root / "raised.mlir"
    run("spyre-translate", "--from-superdsc", bundle, "-o", raised)
    run("spyre-translate", "--to-superdsc", raised, "-o", root / "again")
    same_files(bundle, root / "again")

    manifest = json.loads((bundle / "manifest.json").read_text())
    inputs = make_inputs(manifest, root)
    ktir = root / "ktir.mlir"
    run("spyre-opt", "--convert-spyre-graph-to-ktir", planned, "-o", ktir)
    names = [argument["name"] for argument in manifest["arguments"]]

    expected = load(outputs(ktir, inputs, root / "expected"), names)
    variants = {
        "asbuilt": [],
        "spec": ["--superdsc-flavor=spec"],
        "symbolic": ["--symbolic-args"],
        "unrolled": ["--unroll-loops"],
        "unrolled and symbolic": ["--unroll-loops", "--symbolic-args"],
    }
    for name, flags in variants.items():
        folder = root / name
        run("spyre-translate", "--to-superdsc", *flags, planned, "-o", folder)
        run("spyre-translate", "--validate-superdsc", folder)
        actual = load(outputs(folder, inputs, root / f"{name}.out"), names)
        for own, left, right in zip(names, expected, actual, strict=True):
            if left.tobytes() != right.tobytes():
                sys.exit(f"{planned}: {own} differs as {name}")

    compared = [
        name
        for name in variants
        if check_without_manifest(planned, root / name, manifest, inputs, expected)
    ]
    count = len(manifest["bundles"])
    print(f"{planned.name}: same bits of {count} bundles, without manifest {compared}")


def main():
    global timeout
    if sys.argv[1].startswith("--timeout="):
        timeout = int(sys.argv.pop(1).partition("=")[2])
    root = Path(sys.argv[1])
    for file in sorted(Path(sys.argv[2]).glob("*.mlir")):
        check(file, root / file.stem)


if __name__ == "__main__":
    main()
