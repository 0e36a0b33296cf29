# SPDX-License-Identifier: Apache-2.0
"""Print the MLIR examples of a page, for a tool's --split-input-file.

usage: doc_examples.py PAGE.md [NUMBER]
All of them, or the one with this number, counted from 1. A comment above each
example names its page and line. Exit status 1 if the page has no such example or
one is not closed.
"""

import re
import sys
from pathlib import Path


def mlir_examples(page: str) -> list[tuple[int, str]]:
    """Return (line of the opening fence, text) of every ```mlir block."""
    examples = []
    start, block = 0, []
    for number, line in enumerate(page.splitlines(), 1):
        if not start and re.fullmatch(r"```mlir\s*", line):
            start, block = number, []
        elif start and line.startswith("```"):
            examples.append((start, "\n".join(block)))
            start = 0
        elif start:
            block.append(line)
    if start:
        raise ValueError(f"line {start}: the example is not closed")
    return examples


def main() -> int:
    """Print the examples of the page that the command line names."""
    path = Path(sys.argv[1])
    examples = mlir_examples(path.read_text(encoding="utf-8"))
    if len(sys.argv) > 2:
        number = int(sys.argv[2])
        examples = examples[number - 1 : number]
    if not examples:
        print(f"{path}: no such MLIR example", file=sys.stderr)
        return 1
    blocks = [f"// {path.name}:{line}\n{text}\n" for line, text in examples]
    print("\n// -----\n\n".join(blocks), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
