# SPDX-License-Identifier: Apache-2.0
"""What ``SPYRE_DUMP_DIR`` and ``TORCH_SPYRE_DEBUG=1`` leave behind.

One folder per compiled part: the FX nodes, the imported graph, the IR after
each pass, the KTIR program, its inputs as ``.npy`` and the command that runs
it again with ``spyre-run``.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.fx import Node

from torch_spyre import _C

_BOOLEANS = {"0": False, "": False, "false": False, "1": True, "true": True}


def dump_dir() -> Path | None:
    """Where to dump, or None. Raises ValueError for a nonsensical setting."""
    folder = os.environ.get("SPYRE_DUMP_DIR")
    debug = os.environ.get("TORCH_SPYRE_DEBUG", "0").lower()
    if debug not in _BOOLEANS:
        raise ValueError(f"TORCH_SPYRE_DEBUG must be 0 or 1, but is {debug!r}")
    if folder:
        return Path(folder)
    return Path("spyre_debug") if _BOOLEANS[debug] else None


@dataclass
class PartDump:
    """The folder of one compiled part."""

    folder: Path
    saved: bool = False

    def save_program(self, graph: Any) -> None:
        (self.folder / "ktir.mlir").write_text(graph.print_ktir())

    def save_inputs(self, names: list[str], storages: list[torch.Tensor]) -> None:
        """Saves the inputs of the first run and how to run it again."""
        if self.saved:
            return
        self.saved = True
        arguments = []
        for name, tensor in zip(names, storages, strict=False):
            _, _, sizes, strides, _, _ = _C.tensor_info(tensor)
            home = tensor.as_strided(sizes, strides, 0).cpu()
            if home.dtype == torch.bfloat16:
                home = home.view(torch.uint16)
            np.save(self.folder / f"{name}.npy", home.numpy())
            arguments += ["--arg", f"{name}.npy"]
        command = ["spyre-run", "ktir.mlir", *arguments, "--out-dir", "out"]
        (self.folder / "run.sh").write_text(
            "#!/bin/sh\n# Runs the dumped program on the inputs of its first run.\n"
            'cd "$(dirname "$0")" && ' + shlex.join(command) + "\n"
        )


def begin(name: str, nodes: list[Node], builder: Any) -> PartDump | None:
    """Opens the folder of a part about to be compiled, if dumping is on."""
    base = dump_dir()
    if base is None:
        return None
    folder = base / name
    number = 1
    while folder.exists():
        folder = base / f"{name}_{number}"
        number += 1
    folder.mkdir(parents=True)
    (folder / "fx_graph.txt").write_text(
        "\n".join(n.format_node() or str(n) for n in nodes) + "\n"
    )
    (folder / "import.mlir").write_text(builder.print())
    return PartDump(folder)
