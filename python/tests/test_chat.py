# SPDX-License-Identifier: Apache-2.0
"""examples/chat.py: a prompt, streamed tokens, tokens per second."""

import re
import subprocess
import sys
from pathlib import Path

CHAT = Path(__file__).resolve().parents[2] / "examples" / "chat.py"


def chat(*arguments):
    return subprocess.run(
        [sys.executable, CHAT, *arguments], capture_output=True, timeout=300
    )


def test_continues_a_prompt():
    """The same each time, and one program for all tokens after the prompt."""
    first, again = (chat("--tokens", "12", "Hello, card") for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith(b"Hello, card")
    assert len(first.stdout) >= len("Hello, card") + 12
    assert first.stdout == again.stdout
    found = re.search(
        rb"(\d+) tokens without compilation; per second: ([\d.]+) here, ([\d.]+)",
        first.stderr,
    )
    assert found, first.stderr
    assert int(found[1]) >= 9 and float(found[2]) > 0 and float(found[3]) > 0
    # The bar, which is drawn once where there is no terminal.
    assert first.stderr.count(b"compiling [") == 1


def test_refuses_what_it_cannot_do():
    for arguments, text in [
        ([""], b"the prompt is empty"),
        (["--tokens", "0", "x"], b"--tokens must be at least 1"),
        (["--model", "/nowhere", "x"], b"/nowhere is no folder"),
    ]:
        done = chat(*arguments)
        assert done.returncode == 2
        assert text in done.stderr
