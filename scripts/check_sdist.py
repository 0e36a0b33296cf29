# SPDX-License-Identifier: Apache-2.0
"""Make a source distribution and check that it has what git has.

usage: check_sdist.py FOLDER, into which it is written. What pyproject.toml leaves out
(sdist.exclude) may be missing; a file that git does not know may not be there.
"""

import subprocess
import sys
import tarfile
from pathlib import Path, PurePosixPath

from project_metadata import read_pyproject
from scikit_build_core.build import build_sdist

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Print the differences and exit with 1 if there are any."""
    folder = Path(sys.argv[1]).resolve()
    with tarfile.open(folder / build_sdist(str(folder))) as archive:
        names = [PurePosixPath(m.name) for m in archive.getmembers() if m.isfile()]
    found = {str(name.relative_to(name.parts[0])) for name in names} - {"PKG-INFO"}
    known = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    excluded = tuple(read_pyproject()["tool"]["scikit-build"]["sdist"]["exclude"])
    expected = {n for n in known.stdout.split("\0") if n and not n.startswith(excluded)}
    for name in sorted(expected - found):
        print(f"missing from the source distribution: {name}")
    for name in sorted(found - expected):
        print(f"in the source distribution, but not in git: {name}")
    if found != expected:
        sys.exit(1)


if __name__ == "__main__":
    main()
