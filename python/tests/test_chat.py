# SPDX-License-Identifier: Apache-2.0
"""examples/chat.py: a prompt, streamed tokens, tokens per second."""

import re
from pathlib import Path

from interpreters import run_script

CHAT = Path(__file__).resolve().parents[2] / "examples" / "chat.py"


def test_continues_a_prompt():
    """The same each time, and one program for all tokens after the prompt."""
    first, again = (run_script(CHAT, "--tokens", "12", "Hello, card") for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("Hello, card")
    assert len(first.stdout.encode()) >= len("Hello, card") + 12
    assert first.stdout == again.stdout
    found = re.search(
        r"(\d+) tokens without compilation; per second: ([\d.]+) here, ([\d.]+)",
        first.stderr,
    )
    assert found, first.stderr
    assert int(found[1]) >= 9 and float(found[2]) > 0 and float(found[3]) > 0
    # The bar, which is drawn once where there is no terminal.
    assert first.stderr.count("compiling [") == 1


def test_refuses_what_it_cannot_do():
    for arguments, text in [
        ([""], "the prompt is empty"),
        (["--tokens", "0", "x"], "--tokens must be at least 1"),
        (["--model", "/nowhere", "x"], "/nowhere is no folder"),
    ]:
        done = run_script(CHAT, *arguments)
        assert done.returncode == 2
        assert text in done.stderr
