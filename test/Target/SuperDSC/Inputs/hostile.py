# SPDX-License-Identifier: Apache-2.0
"""Make folders that nobody should trust.

Usage: hostile.py FOLDER
"""

import json
import os
import sys
from pathlib import Path

import bundle
from bundle import add, program


def main():
    root = Path(sys.argv[1])
    good = add()
    text = good["bundle.mlir"]

    def make(name, **changed):
        files = good | {key.replace("__", "."): value for key, value in changed.items()}
        bundle.write(root / name, {k: v for k, v in files.items() if v is not None})

    make("truncated", sdsc_0__json='{"0_add": {"sdscFoldProps_": [{"factor_"')
    make("deep", sdsc_0__json='{"0_add": ' + "[" * 100000 + "]" * 100000 + "}")
    make("binary", sdsc_0__json=bytes(range(256)))
    make("overflow", sdsc_0__json='{"0_add": 99999999999999999999}')
    make("array", sdsc_0__json=[1, 2, 3])
    make("empty", sdsc_0__json="")
    make("behind_zero", sdsc_0__json=json.dumps(good["sdsc_0.json"]) + "\0 behind")
    make("missing", sdsc_0__json=None)
    make("no_program", bundle__mlir=None)
    make("deep_program", bundle__mlir="module {" + "scf.if {" * 100000)
    make("alias", bundle__mlir="!a = tuple<i1, i1>\n!b = tuple<!a, !a>\n" + text)
    make("outside", bundle__mlir=program("../good/sdsc_0.json"))
    make("absolute", bundle__mlir=program("/etc/passwd"))
    loop = text.replace(
        "\t\tsdscbundle",
        "\t\t%c0 = arith.constant 0 : index\n\t\t%c1 = arith.constant 1 : index\n"
        "\t\t%n = arith.constant 1000000000 : index\n"
        "\t\tscf.for %i = %c0 to %n step %c1 {\n\t\tsdscbundle",
    ).replace("\t\treturn", "\t\t}\n\t\treturn")
    make("endless", bundle__mlir=loop)
    make("symbolic_bound", bundle__mlir=loop.replace("arith.constant 1000000000", "f"))
    sums = "\n".join(
        f"\t\t%s{n} = arith.addi %s{n - 1}, %s{n - 1} : index" for n in range(1, 80)
    )
    sums = f"\t\t%s0 = arith.constant 128 : index\n{sums}\n\t\treturn"
    make("sum", bundle__mlir=text.replace("\t\treturn", sums))
    make("pipe", sdsc_0__json=None)
    os.mkfifo(root / "pipe" / "sdsc_0.json")
    make("folder", sdsc_0__json=None)
    (root / "folder" / "sdsc_0.json").mkdir()
    make(
        "manifest_outside",
        manifest__json={
            "version": 1,
            "pool_bytes": 0,
            "arguments": [],
            "buffers": [],
            "bundles": [
                {"folder": "../good", "pool": False, "arguments": [], "files": []}
            ],
        },
    )
    bundle.write(root / "good", good)
    (root / "linked").mkdir()
    os.symlink("../good", root / "linked" / "bundle_0")
    with open(root / "huge.json", "wb") as file:
        file.truncate(1 << 40)
    make("huge", sdsc_0__json=None)
    os.rename(root / "huge.json", root / "huge" / "sdsc_0.json")


if __name__ == "__main__":
    main()
