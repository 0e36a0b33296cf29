# SPDX-License-Identifier: Apache-2.0
"""Compare bundles with those of the same name in another folder, byte for byte.

Usage: same.py EXPECTED ACTUAL
"""

import sys
from pathlib import Path


def main():
    expected, actual = Path(sys.argv[1]), Path(sys.argv[2])
    differ = compared = 0
    for folder in sorted(path for path in actual.iterdir() if path.is_dir()):
        for file in sorted((expected / folder.name).iterdir()):
            if file.name == "case.json":
                continue
            compared += 1
            if file.read_bytes() != (folder / file.name).read_bytes():
                differ += 1
                print(f"{folder.name}/{file.name} differs")
    print(f"{compared} files compared")
    sys.exit(differ != 0 or compared == 0)


if __name__ == "__main__":
    main()
