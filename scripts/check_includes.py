# SPDX-License-Identifier: Apache-2.0
"""Check that C++ files include what they use: that each compiles by itself, without
precompiled headers and the other files of its batch, which hide what it forgot.

    scripts/check_includes.py [PATH...]

PATH is a file, or a folder of files, that build/ knows; without one, all are checked.
Prints the compiler's errors, and exits with 1 if there are any.
"""

import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import source_commands

ROOT = Path(__file__).resolve().parent.parent


def arguments(command: str) -> list[str]:
    """The compiler's command, without ccache, precompiled headers and output."""
    words = iter(shlex.split(command))
    kept: list[str] = []
    for word in words:
        if word == "-Xclang":
            option = next(words)
            if option in ("-include-pch", "-include"):
                next(words), next(words)  # -Xclang FILE
            else:
                kept += [word, option]
        elif word == "-o":
            next(words)
        elif word != "-c":
            kept.append(word)
    compiler = next(i for i, word in enumerate(kept) if "clang++" in Path(word).name)
    return [*kept[compiler:], "-fsyntax-only"]


def errors(entry: dict[str, str]) -> str:
    result = subprocess.run(
        arguments(entry["command"]),
        cwd=entry["directory"],
        capture_output=True,
        text=True,
        errors="replace",
    )
    return result.stderr if result.returncode else ""


def main() -> int:
    """Check the files of the paths."""
    if any(path.startswith("-") for path in sys.argv[1:]):
        print(__doc__)
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    paths = [Path(path).resolve() for path in sys.argv[1:]] or [ROOT]
    entries = {
        entry["file"]: entry
        for entry in source_commands.entries()
        if any(Path(entry["file"]).is_relative_to(path) for path in paths)
    }
    if not entries:
        sys.exit("build/ knows no file of these paths")
    bad = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for count, text in enumerate(pool.map(errors, entries.values()), 1):
            if text:
                bad += 1
                print(text)
            if sys.stderr.isatty() or count % 50 == 0:
                print(f"{count} of {len(entries)}", end="\r", file=sys.stderr)
    print(f"includes: {len(entries)} files checked, {bad} do not include what they use")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
