# SPDX-License-Identifier: Apache-2.0
"""Many KTIR programs as one, so that one process predicts them all.

Starting spyre-run takes longer than predicting a row's program. Kernels run one after
another, so a program's time is the sum of its kernels' in the report of the merged one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

PROCESSES = 2


@dataclass(frozen=True)
class Part:
    """A program with a tag before all of its names."""

    aliases: str
    arguments: str
    body: str
    kernels: str

    @staticmethod
    def of(tag: str, text: str) -> Part:
        """Raises ValueError if the text is not as spyre-opt prints a finished plan."""
        text = re.sub(r"%([\w$.-]+)", rf"%{tag}_\1", text)
        text = re.sub(r"#((?:map|set)\d*)\b", rf"#{tag}_\1", text)
        text = re.sub(r"@([\w$.]+)", rf"@{tag}_\1", text)
        text = text.replace('ktdp.name = "', f'ktdp.name = "{tag}_')
        found = re.fullmatch(
            r"(.*?)module(?: attributes \{[^\n]*\})? \{\n(.*?)"
            rf"  func\.func @{tag}_main\(([^\n]*)\) \{{\n(.*?)    return\n  \}}\n"
            r"(.*)\}\n*",
            text,
            re.DOTALL,
        )
        if not found:
            raise ValueError("not a module with @main")
        aliases, before, arguments, body, after = found.groups()
        return Part(aliases, arguments, body, before + after)


def merge(parts: Iterable[Part]) -> str:
    parts = list(parts)
    arguments = ", ".join(part.arguments for part in parts if part.arguments)
    return (
        "".join(part.aliases for part in parts)
        + f"module {{\n  func.func @main({arguments}) {{\n"
        + "".join(part.body for part in parts)
        + "    return\n  }\n"
        + "".join(part.kernels for part in parts)
        + "}\n"
    )


class Programs:
    """Predicts programs together. `run` prints what a command prints, or raises."""

    def __init__(
        self, texts: dict[str, str], folder: Path, run: Callable[[list[str]], str]
    ) -> None:
        self.folder, self.run = folder, run
        self.parts = {
            name: Part.of(f"p{i}", text) for i, (name, text) in enumerate(texts.items())
        }
        self.owner = {f"p{i}": name for i, name in enumerate(texts)}

    def share(
        self, number: int, names: list[str], command: list[str]
    ) -> dict[str, float]:
        parts = [self.parts[name] for name in names]
        file = self.folder / f"merged{number}.mlir"
        file.write_text(merge(parts))
        arguments = ["--entry=main", "--predict-only", "--json=-"]
        report = json.loads(self.run([*command, str(file), *arguments]))
        seconds = dict.fromkeys(names, 0.0)
        for kernel in report["kernels"]:
            seconds[self.owner[kernel["name"].split("_")[0]]] += kernel[
                "predicted_seconds"
            ]
        return seconds

    def predict(self, names: list[str], command: list[str]) -> dict[str, float]:
        """Microseconds of the programs with these names."""
        shares = [names[i::PROCESSES] for i in range(PROCESSES)]
        with ThreadPoolExecutor(PROCESSES) as pool:
            found = pool.map(
                lambda i: self.share(i, shares[i], command) if shares[i] else {},
                range(PROCESSES),
            )
            return {name: s * 1e6 for share in found for name, s in share.items()}
