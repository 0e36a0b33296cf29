# SPDX-License-Identifier: Apache-2.0
"""Check that every numbered rule is written, checked and tested.

A rule's id (KTDP-LOAD-C2) stands in the TableGen description that states it, in
a comment of the code that checks it, and in a negative test that breaks it. A test
is tied to the rule by what stands beside the id, not by the file:

- in a `.mlir` file, a comment with the id lies at most REACH lines above an
  `expected-error` of the same case (`// -----` ends one), or above a line in which
  FileCheck expects `error: `;
- in a `.test` file likewise, or the id is part of the text, `[KTDP-LOAD-C2]`, that
  FileCheck or a grep in a RUN line expects of the tool;
- in a `.py` file below `python/tests`, the text that a tool must print ends in the
  id, `"... [KTDP-LOAD-C2]"`; other mentions there count for nothing;
- a rule that no input breaks has the mark `KTDP-LOAD-C2: not reachable: <why>`.

Reports each id that one of the three lists lacks, and each that a test names beside
no error; exit status 1 if there is one.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ID = re.compile(r"\b[A-Z][A-Z0-9_]*(?:-[A-Z0-9_]+)+-C[0-9]+\b")
# Where a rule must appear: what for, and the tracked files that count.
PLACES = {
    "stated in TableGen": ("include/*.td",),
    "named where lib/ checks it": ("lib/*.cpp", "lib/*.h"),
}
TESTS = ("test/*.mlir", "test/*.test", "python/tests/*.py")
# An error stands at most this many lines below the id of its rule.
REACH = 4
# A directive of FileCheck: a prefix in capitals, perhaps with a suffix.
DIRECTIVE = re.compile(r"^\s*(?://|#)?\s*[A-Z][A-Z0-9_-]*:")
# What a Python test expects of a tool: the end of a string.
SAID = re.compile(rf"\[({ID.pattern})\]\"")
UNREACHABLE = r": not reachable: \S"


def read(patterns: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """Names and lines of the tracked files."""
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    for file in filter(None, files):
        yield file, (ROOT / file).read_text(encoding="utf-8").splitlines()


def ids_in(patterns: tuple[str, ...]) -> dict[str, str]:
    """Map each id in the tracked files to `file:line` of its first mention."""
    found: dict[str, str] = {}
    for file, lines in read(patterns):
        for number, line in enumerate(lines, 1):
            for identifier in ID.findall(line):
                found.setdefault(identifier, f"{file}:{number}")
    return found


def is_error(line: str, identifier: str) -> bool:
    """Whether a line of a test expects an error, or text with the id in it."""
    if "expected-error" in line or (DIRECTIVE.match(line) and "error: " in line):
        return True
    said = re.search(rf"(?:\[|\"){identifier}(?:\]|\")", line)
    return bool(said and ("grep" in line or DIRECTIVE.match(line)))


def is_tied(lines: list[str], index: int, identifier: str) -> bool:
    """Whether the id in line `index` stands beside an error, or says why not."""
    if re.search(identifier + UNREACHABLE, lines[index]):
        return True
    for line in lines[index : index + REACH + 1]:
        if line.startswith("// -----"):
            return False
        if is_error(line, identifier):
            return True
    return False


def tested_ids() -> tuple[dict[str, str], list[str]]:
    """The ids that tests tie to errors, and complaints about the others."""
    found: dict[str, str] = {}
    loose: list[str] = []
    for file, lines in read(TESTS):
        for index, line in enumerate(lines):
            if file.endswith(".py"):
                for identifier in SAID.findall(line):
                    found.setdefault(identifier, f"{file}:{index + 1}")
                continue
            for identifier in ID.findall(line):
                where = f"{file}:{index + 1}"
                if is_tied(lines, index, identifier):
                    found.setdefault(identifier, where)
                else:
                    loose.append(
                        f"{where}: {identifier} has no expected error in the "
                        f"{REACH} lines below it"
                    )
    return found, loose


def main() -> int:
    """Compare the three lists; return the exit status."""
    lists = {place: ids_in(patterns) for place, patterns in PLACES.items()}
    lists["tied to an error by a negative test"], loose = tested_ids()
    every = sorted(set().union(*lists.values()))
    incomplete = 0
    for identifier in every:
        lacking = [place for place, ids in lists.items() if identifier not in ids]
        if lacking:
            seen = next(ids[identifier] for ids in lists.values() if identifier in ids)
            print(f"{seen}: {identifier} is not {', not '.join(lacking)}")
            incomplete += 1
    print(*loose, sep="\n", end="\n" if loose else "")
    print(
        f"constraints: {len(every)} ids, {incomplete} incomplete, "
        f"{len(loose)} beside no error"
    )
    if not every:
        print("constraints: found no id at all")
        return 1
    return 1 if incomplete or loose else 0


if __name__ == "__main__":
    sys.exit(main())
