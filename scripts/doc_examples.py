# SPDX-License-Identifier: Apache-2.0
"""The examples of the documentation: print them, or check those in MLIR.

PAGE [NUMBER] prints the MLIR examples of a page, for a tool's
--split-input-file: all of them, or the one with this number, counted from 1. A
comment above each names its page and line. Exit status 1 if the page has no
such example or one is not closed.

--check executes what the pages of a folder say of their examples, with the tools
on the PATH.
Each MLIR example must verify and read back as it prints. A comment right above a
block says more:

  <!-- made from the one above by: COMMAND -->
      the MLIR example is what COMMAND makes of the MLIR example before it
  <!-- printed by: COMMAND -->
      the block is COMMAND's output
  <!-- not run: REASON -->
      nothing executes the block

python/tests/test_docs.py runs the other blocks.
"""

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"```(\S*)\s*")
COMMENT = re.compile(
    r"<!-- (made from the one above by|printed by|quoted from|not run|file): (.*) -->"
)


@dataclass
class Block:
    """A fenced block of a page; `line` is that of its opening fence."""

    line: int
    language: str
    text: str
    #: What the comments right above it say, by their first words.
    notes: dict[str, str]


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page. Raises ValueError if one is not closed."""
    blocks = []
    start, language, text = 0, "", []
    notes: dict[str, str] = {}
    for number, line in enumerate(page.splitlines(), 1):
        fence = FENCE.fullmatch(line)
        comment = COMMENT.fullmatch(line)
        if not start and fence:
            start, language, text = number, fence[1], []
        elif start and line.startswith("```"):
            blocks.append(Block(start, language, "\n".join(text), notes))
            start, notes = 0, {}
        elif start:
            text.append(line)
        elif comment:
            notes[comment[1]] = comment[2]
        else:
            notes = {}
    if start:
        raise ValueError(f"line {start}: the example is not closed")
    return blocks


def mlir_examples(page: str) -> list[tuple[int, str]]:
    """Return (line of the opening fence, text) of every ```mlir block."""
    return [(b.line, b.text) for b in blocks_of(page) if b.language == "mlir"]


def _output(command: str, text: str = "") -> str:
    """What a shell command prints. Raises ValueError if it fails."""
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        input=text,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if result.returncode != 0:
        raise ValueError(f"{command} failed:\n{result.stderr}")
    return result.stdout


def _check(block: Block, before: str) -> str | None:
    """Why a block is not what its page says, or None."""
    if "printed by" in block.notes:
        expected = _output(block.notes["printed by"]).strip("\n")
        if expected != block.text.strip("\n"):
            return f"{block.notes['printed by']} prints\n{expected}"
    if block.language != "mlir" or "not run" in block.notes:
        return None
    read = "spyre-opt --verify-roundtrip -"
    printed = _output(read, block.text)
    command = block.notes.get("made from the one above by")
    if command and _output(f"{command} - | {read}", before) != printed:
        return f"{command} makes\n{_output(command + ' -', before)}"
    return None


def check(pages: list[Path]) -> int:
    """Execute what pages say of their examples; return the exit status."""
    wrong = checked = 0
    for page in pages:
        before = ""
        for block in blocks_of(page.read_text(encoding="utf-8")):
            if block.language != "mlir" and "printed by" not in block.notes:
                continue
            try:
                reason = _check(block, before)
            except ValueError as error:
                reason = str(error)
            if reason:
                print(f"{page}:{block.line}: {reason}")
                wrong += 1
            checked += 1
            if block.language == "mlir":
                before = block.text
    print(f"examples: {checked} checked, {wrong} wrong")
    return 1 if wrong or not checked else 0


def main() -> int:
    """Print the examples of the page that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("page", nargs="?", type=Path)
    parser.add_argument("number", nargs="?", type=int)
    parser.add_argument("--check", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    if (arguments.check is None) == (arguments.page is None):
        parser.error("expected a page, or --check and a folder")
    if arguments.check:
        return check(sorted(arguments.check.rglob("*.md")))
    path = arguments.page
    examples = mlir_examples(path.read_text(encoding="utf-8"))
    if arguments.number is not None:
        number = arguments.number
        # The first is 1; nothing precedes it.
        examples = examples[number - 1 : number] if number > 0 else []
    if not examples:
        print(f"{path}: no such MLIR example", file=sys.stderr)
        return 1
    blocks = [f"// {path.name}:{line}\n{text}\n" for line, text in examples]
    print("\n// -----\n\n".join(blocks), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
