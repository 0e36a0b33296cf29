# SPDX-License-Identifier: Apache-2.0
"""Specifications as a folder of SuperDSC: ``bundle.mlir`` and a file per operation.

docs/internals/superdsc.md says what is read and executed of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from torch_spyre import _C
from torch_spyre._inductor import config
from torch_spyre._inductor.codegen.superdsc import (
    Description,
    Loop,
    Symbols,
)
from torch_spyre._inductor.op_spec import (
    LoopSpec,
    OpSpec,
    TensorArg,
    find_unimplemented,
)
from torch_spyre.errors import Unsupported


def operations(specs: Iterable[Any]) -> Iterator[OpSpec]:
    """The operations of specifications, in order, loops' bodies included."""
    for spec in specs:
        if isinstance(spec, LoopSpec):
            yield from operations(spec.body)
        else:
            yield spec


def tensors(specs: Iterable[Any]) -> Iterator[TensorArg]:
    """The tensors of all operations."""
    for op in operations(specs):
        yield from op.args


class _Writer:
    def __init__(self, unroll_loops: bool, symbolic_args: bool) -> None:
        self.unroll_loops = unroll_loops
        self.symbolic_args = symbolic_args
        self.files: dict[str, dict[str, Any]] = {}
        self.symbols = Symbols()

    def steps(
        self, specs: Iterable[Any], loops: Sequence[Loop] = ()
    ) -> Iterator[dict[str, Any]]:
        """What the bundle does for specifications inside of loops."""
        for spec in specs:
            if isinstance(spec, OpSpec):
                yield self._execution(spec, loops)
            elif isinstance(spec, LoopSpec):
                yield from self._loop(spec, loops)
            else:
                raise TypeError(f"expected OpSpec or LoopSpec, found {spec!r}")

    def _execution(self, spec: OpSpec, loops: Sequence[Loop]) -> dict[str, Any]:
        number = len(self.files)
        file = f"sdsc_{number}.json"
        self.symbols.begin_file()
        self.files[file] = Description(spec, number).describe(
            loops, self.symbols, self.symbolic_args
        )
        symbols, operands = self.symbols.operands()
        return {"file": file, "symbols": symbols, "operands": operands}

    def _loop(self, spec: LoopSpec, loops: Sequence[Loop]) -> Iterator[dict[str, Any]]:
        try:
            count = int(spec.count)
        except TypeError:
            raise Unsupported(f"a loop of {spec.count} iterations") from None
        symbols = tuple(spec.tiled_symbols) or None
        if self.unroll_loops:
            for value in range(count):
                yield from self.steps(spec.body, [*loops, Loop(count, value, symbols)])
            return
        around = [*loops, Loop(count, None, symbols)]
        yield {"count": count, "body": list(self.steps(spec.body, around))}


def generate_bundle(
    kernel_name: str,
    output_dir: str | os.PathLike[str],
    specs: Sequence[Any],
    unroll_loops: bool | None = None,
    symbolic_args: bool | None = None,
) -> None:
    """Writes the bundle of operations and loops (``op_spec``) into a folder.

    A loop advances the symbols that its ``tiled_symbols`` name, or else the one that an
    operation's ``tiled_symbols`` have at its position, outermost first, by the
    operation's range; a tensor's device sizes are those of the whole tensor. With
    ``unroll_loops`` (by default ``config.unroll_loops``) every iteration is written,
    with ``symbolic_args`` (``config.bundle_symbolic_args``) addresses of arguments are
    parameters. Constants of an operation are ``op_info["constants"]``, name to number.

    Raises Unsupported for what a bundle cannot say, TypeError for what is no
    specification, OSError.
    """
    missing = find_unimplemented(specs)
    if missing is not None:
        raise Unsupported(
            f"{missing.op} in {kernel_name}: the card has no such operation"
        )
    unroll = config.unroll_loops if unroll_loops is None else unroll_loops
    is_symbolic = (
        config.bundle_symbolic_args if symbolic_args is None else symbolic_args
    )
    writer = _Writer(unroll, is_symbolic)
    steps = list(writer.steps(specs))
    used = [arg for arg in tensors(specs) if "lx" not in arg.allocation]
    has_pool = any("pool" in arg.allocation for arg in used)
    arguments = sorted({a.arg_index for a in used if "hbm" in a.allocation})
    segments = None
    if has_pool and not is_symbolic:
        segments = [-1, *range(max(arguments, default=-1) + 1)]
    bundle = {
        "has_pool_parameter": has_pool and is_symbolic,
        "arguments": arguments if is_symbolic else [],
        "segments": segments,
        "steps": steps,
    }
    folder = Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in _C.write_bundle(bundle, writer.files).items():
        (folder / name).write_bytes(content)


__all__ = ["generate_bundle"]
