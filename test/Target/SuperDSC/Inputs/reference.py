# SPDX-License-Identifier: Apache-2.0
"""Validate and rewrite every bundle in a folder; compare the bytes.

Usage: reference.py FOLDER OUTPUT
"""

import subprocess
import sys
from pathlib import Path


def main():
    source, output = Path(sys.argv[1]), Path(sys.argv[2])
    count = 0
    for folder in sorted(path.parent for path in source.glob("*/bundle.mlir")):
        text = (folder / "bundle.mlir").read_text().partition("@sdsc_bundle(")[2]
        names = text.split(")")[0].split(", ")
        flags = ["--lenient"] if len(set(names)) != len(names) else []
        translate = ["spyre-translate", *flags, folder]
        subprocess.run([*translate, "--validate-superdsc"], check=True)
        written = output / folder.name
        subprocess.run([*translate, "--rewrite-superdsc", "-o", written], check=True)
        for file in sorted(folder.iterdir()):
            # What the lenient reader repaired is not written again.
            skipped = {"case.json"} | ({"bundle.mlir"} if flags else set())
            if file.name in skipped:
                continue
            count += 1
            if file.read_bytes() != (written / file.name).read_bytes():
                sys.exit(f"{file} and {written / file.name} differ")
    print(f"{count} files equal")
    if count == 0:
        sys.exit(f"no bundles in {source}")


if __name__ == "__main__":
    main()
