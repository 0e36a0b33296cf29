# SPDX-License-Identifier: Apache-2.0
"""Check that every fact that the code cites is in the repository.

A citation is ``spec/FILE.md``, mostly with the heading or the first words of the
paragraph behind it: ``spec/layouts.md, "Host dtype"``. The file must be in docs/spec
and hold these words. Prints each citation that leads nowhere, and exits with 1 if
there are any.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPEC = ROOT / "docs" / "spec"
CITATION = re.compile(r'\bspec/([a-z-]+\.md)(?:,\s+"([^"]+)")?')
#: What begins a line of a comment.
LEADER = re.compile(r"^\s*(///?|#|\*)\s?", re.MULTILINE)


def words(text: str) -> str:
    """The text without markup, every run of white space one space."""
    return " ".join(re.sub(r"[*`]", "", text).split())


def main() -> int:
    """Check the files that git knows."""
    pages = {page.name: words(page.read_text()) for page in SPEC.glob("*.md")}
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    count = bad = 0
    for name in files:
        path = ROOT / name
        if not name or name.startswith("docs/spec/") or not path.is_file():
            continue
        try:
            text = LEADER.sub("", path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            continue
        for match in CITATION.finditer(text):
            if path == Path(__file__).resolve():
                continue
            count += 1
            page, phrase = match.groups()
            line = text.count("\n", 0, match.start()) + 1
            if page not in pages:
                print(f"{name}:{line}: there is no docs/spec/{page}")
            elif phrase and words(phrase) not in pages[page]:
                print(f'{name}:{line}: docs/spec/{page} does not say "{words(phrase)}"')
            else:
                continue
            bad += 1
    print(f"citations: {count} checked, {bad} lead nowhere")
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main())
