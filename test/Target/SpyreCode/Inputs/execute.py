# SPDX-License-Identifier: Apache-2.0
"""Take planned files through SpyreCode and compare with KTIR, bit for bit.

Usage: execute.py OUTPUT FOLDER

Of each file, in both flavours, with bound and with symbolic arguments: the job
is valid, written again it has the same bytes, and it runs and gives what the
KTIR of the plan gives.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "SuperDSC" / "Inputs"))
from execute import run, same_files


def make_inputs(ktir, count, folder):
    """One file per argument; small values, indices below 4."""
    random = np.random.default_rng(0)
    shapes = folder / "shapes"
    shapes.mkdir()
    run("spyre-run", ktir, *["--arg", "zeros"] * count, "--out-dir", shapes)
    files = []
    for file in sorted(shapes.iterdir()):
        array = np.load(file)
        if array.dtype.kind == "i":
            values = random.integers(0, 4, array.shape)
        elif array.dtype == bool:
            values = random.integers(0, 2, array.shape)
        else:
            values = random.standard_normal(array.shape)
        np.save(folder / file.name, values.astype(array.dtype))
        files.append(folder / file.name)
    return files


def outputs(program, inputs, folder):
    """Contents of all arguments after a run, by file name."""
    folder.mkdir()
    arguments = [part for file in inputs for part in ("--arg", file)]
    run("spyre-run", program, *arguments, "--out-dir", folder)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def check(planned, root):
    root.mkdir(parents=True)
    ktir = root / "ktir.mlir"
    run("spyre-opt", "--convert-spyre-graph-to-ktir", planned, "-o", ktir)
    signature = planned.read_text().split("@main(")[1].split("{\n")[0]
    names = [part.split(":")[0] for part in signature.split("%")[1:]]
    files = make_inputs(ktir, len(names), root)
    by_name = {file.stem: file for file in files}
    # The text of KTIR names arguments by `ktdp.name` or SSA name.
    if not all(name in by_name for name in names):
        names = [f"arg{number}" for number in range(len(names))]
    inputs = [by_name[name] for name in names]
    expected = outputs(ktir, inputs, root / "expected")
    for flavor in ("asbuilt", "spec"):
        for flags in ([], ["--symbolic-args"]):
            command = ["spyre-translate", "--to-spyrecode", *flags]
            command += [f"--spyrecode-flavor={flavor}", planned, "-o"]
            code = root / (flavor + "".join(flags))
            run(*command, code)
            run(*command, root / "again")
            same_files(code, root / "again")
            run("spyre-translate", "--validate-spyrecode", code)
            found = outputs(code, inputs, root / (code.name + ".out"))
            for number, name in enumerate(names):
                # Bytecode has no SSA names.
                own = found.get(f"{name}.npy", found.get(f"arg{number}.npy"))
                if own != expected[f"{name}.npy"]:
                    sys.exit(f"{planned}: {name} differs as {code.name}")
    print(f"{planned.name}: same bits")


def main():
    root = Path(sys.argv[1])
    for file in sorted(Path(sys.argv[2]).glob("*.mlir")):
        check(file, root / file.stem)


if __name__ == "__main__":
    main()
