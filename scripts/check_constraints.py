# SPDX-License-Identifier: Apache-2.0
"""Check that every numbered rule is written, checked and tested.

A rule's id (KTDP-LOAD-C2) stands in the TableGen description that states it, in
a comment of the code that checks it, and in a negative test that breaks it.
Reports each id that one of the three lists lacks; exit status 1 if there is one.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ID = re.compile(r"\b[A-Z][A-Z0-9_]*(?:-[A-Z0-9_]+)+-C[0-9]+\b")
# Where a rule must appear: what for, and the tracked files that count.
PLACES = {
    "stated in TableGen": ("include/*.td",),
    "named where lib/ checks it": ("lib/*.cpp", "lib/*.h"),
    "named by a negative test": ("test/*.mlir", "test/*.test"),
}


def ids_in(patterns: tuple[str, ...], tests: bool) -> dict[str, str]:
    """Map each id in the tracked files to `file:line` of its first mention."""
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    found: dict[str, str] = {}
    for file in filter(None, files):
        text = (ROOT / file).read_text(encoding="utf-8")
        # An id in a test that expects no error tests nothing.
        if tests and not ("expected-error" in text or "not spyre" in text):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for identifier in ID.findall(line):
                found.setdefault(identifier, f"{file}:{number}")
    return found


def main() -> int:
    """Compare the three lists; return the exit status."""
    lists = {
        place: ids_in(patterns, tests="test" in place)
        for place, patterns in PLACES.items()
    }
    every = sorted(set().union(*lists.values()))
    incomplete = 0
    for identifier in every:
        lacking = [place for place, ids in lists.items() if identifier not in ids]
        if lacking:
            seen = next(ids[identifier] for ids in lists.values() if identifier in ids)
            print(f"{seen}: {identifier} is not {', not '.join(lacking)}")
            incomplete += 1
    print(f"constraints: {len(every)} ids, {incomplete} incomplete")
    if not every:
        print("constraints: found no id at all")
        return 1
    return 1 if incomplete else 0


if __name__ == "__main__":
    sys.exit(main())
