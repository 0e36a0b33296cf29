# SPDX-License-Identifier: Apache-2.0
"""Check the subjects of commits.

A subject is `[Area] Imperative subject`: an area of the table in CONTRIBUTING.md, a
word that begins with a capital letter, no full stop, at most 72 characters. Whether
it is imperative nobody can check but you.

The commit that added this file is the first that counts. Of a shallow clone those
that are there are checked. Exit status 1 if a subject is of another form.
"""

import re
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 72


def git(*arguments: str) -> list[str]:
    """Lines that git prints."""
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()


def areas(text: str) -> list[str]:
    """The areas that CONTRIBUTING.md lists."""
    table = text.partition("| area | what |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `(\w+)` \|", table, flags=re.M)


def fault(subject: str, known: Collection[str]) -> str:
    """What is wrong with a subject; empty if nothing is."""
    match = re.fullmatch(r"\[(\w+)\] ([A-Z].*)", subject)
    if not match:
        return "is not of the form `[Area] Imperative subject`"
    if match[1] not in known:
        return f"names the area {match[1]}, which CONTRIBUTING.md does not list"
    if subject.endswith("."):
        return "ends in a full stop"
    if len(subject) > LONGEST:
        return f"has {len(subject)} characters, more than {LONGEST}"
    return ""


def main() -> int:
    """Report subjects of another form; return the exit status."""
    known = areas((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    own = str(Path(__file__).resolve().relative_to(ROOT))
    added = git("log", "--diff-filter=A", "--format=%H", "--", own)
    if not added:
        print("commits: nothing to check before this file is committed")
        return 0
    commits = git("log", "--no-merges", "--format=%h %s", f"{added[-1]}..HEAD", "--")
    commits += git("log", "-1", "--format=%h %s", added[-1], "--")
    faults = 0
    for commit in commits:
        name, _, subject = commit.partition(" ")
        if said := fault(subject, known):
            print(f"{name}: '{subject}' {said}")
            faults += 1
    print(f"commits: {len(commits)} subjects, {faults} of another form")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
