# SPDX-License-Identifier: Apache-2.0
"""Write build/sources/compile_commands.json: how to compile each source by itself.

CMake's own build/compile_commands.json has batches of them (cmake/SpyreBatches.cmake).
For clang-tidy and editors.
"""

import json
import re
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
MARKER = re.compile(r'^# 1 "(.*)"$', re.MULTILINE)


def sources_of(file: Path) -> list[str]:
    """The files of a batch; the file itself if it is none."""
    if not (file.is_relative_to(BUILD) and file.exists()):
        return [str(file)]
    return MARKER.findall(file.read_text()) or [str(file)]


def entries() -> list[dict[str, str]]:
    """CMake's entries, with one of its own for each source of a batch."""
    commands = BUILD / "compile_commands.json"
    if not commands.exists():
        sys.exit("there is no build/compile_commands.json: make build")
    found = []
    for entry in json.loads(commands.read_text()):
        for source in sources_of(Path(entry["file"])):
            words = [
                source if word == entry["file"] else word
                for word in shlex.split(entry["command"])
            ]
            found.append(entry | {"file": source, "command": shlex.join(words)})
    return found


def main() -> int:
    if len(sys.argv) > 1:
        print(__doc__)
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    out = BUILD / "sources" / "compile_commands.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(entries(), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
