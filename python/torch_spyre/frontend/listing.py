# SPDX-License-Identifier: Apache-2.0
"""What ``torch._inductor.utils.run_and_get_code()`` gets of programs on spyre.

It replaces a function to which Inductor gives the source of every graph. A program here
has no source in Python: it is shown as the device operations that run, with the names
of ``torch_spyre._inductor.op_spec``, and as KTIR.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

_FUNCTION = re.compile(r"func\.func (?:private )?@(\w+)\(")
_GRID = re.compile(r"attributes \{grid = \[(\d+)\]")
_CONSTANT = re.compile(r"(%\w+) = arith\.constant (-?\d+) : index")
_LOOP = re.compile(r"scf\.for %\w+ = (%\w+) to (%\w+) step (%\w+)")
_CALL = re.compile(r"\bcall @(\w+)\(")


def offer(name: str, graph: Any) -> None:
    """Gives the text of a program to who listens."""
    inductor = sys.modules.get("torch._inductor.graph")
    if inductor is None:
        return
    save = inductor.GraphLowering.save_output_code
    if save is not None:
        save(describe(name, graph.print_ktir()))


def describe(name: str, ktir: str) -> str:
    """The operations of a program, loops included, and its KTIR."""
    bodies = list(_functions(ktir))
    cores = {kernel: _GRID.search(text) for kernel, text in bodies}
    main = next(text for kernel, text in bodies if cores[kernel] is None)
    lines = [f"# The program {name}, which is KTIR: operations of the device in order."]
    lines.append(f"operations_of_{name} = [")
    constants = {c: int(number) for c, number in _CONSTANT.findall(main)}
    # One entry per open region: whether it is a loop.
    regions: list[bool] = []
    for text in main.splitlines()[1:]:
        indent = "    " * (1 + sum(regions))
        loop = _LOOP.search(text)
        if loop:
            # A bound that is no constant is shown by its name.
            count: object = loop[2]
            if constants.keys() >= set(loop.groups()):
                first, end, step = (constants[value] for value in loop.groups())
                count = -(-(end - first) // step)
            lines.append(f"{indent}LoopSpec({count}, [")
        elif call := _CALL.search(text):
            grid = cores.get(call[1])
            op = re.sub(r"^k\d+_", "", call[1])
            lines.append(f"{indent}OpSpec({op!r}, cores={grid[1] if grid else 1}),")
        if text.endswith("{"):
            regions.append(loop is not None)
        elif text.lstrip().startswith("}") and regions and regions.pop():
            lines.append(f"{indent[4:]}]),")
    return "\n".join([*lines, "]", f'KTIR = """{ktir}"""', ""])


def _functions(ktir: str) -> Iterator[tuple[str, str]]:
    """(name, text) of each function of a module."""
    starts = [(m.start(), m[1]) for m in _FUNCTION.finditer(ktir)]
    ends = [start for start, _ in starts[1:]] + [len(ktir)]
    for (start, name), end in zip(starts, ends, strict=True):
        yield name, ktir[start:end]
