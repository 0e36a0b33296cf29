# SPDX-License-Identifier: Apache-2.0
"""What ``SPYRE_DUMP_DIR``, ``TORCH_SPYRE_DEBUG=1`` and ``TORCH_COMPILE_DEBUG=1`` leave.

One folder per compiled part: the FX nodes, the imported graph, the IR after
each pass, the plan's decisions, the KTIR program, its inputs as ``.npy`` and the
command that runs it again with ``spyre-run``. ``SPYRE_DECISIONS_IN=folder`` takes
the decisions of each part from an earlier dump, where they may have been edited.
"""

from __future__ import annotations

import itertools
import json
import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.fx import Node

from torch_spyre import _C
from torch_spyre._inductor import config
from torch_spyre.tools import ToolError, find_tool


def dump_dir() -> Path | None:
    """Where to dump, or None. Raises ValueError for a nonsensical setting."""
    folder = _C.read_environment("SPYRE_DUMP_DIR")
    debug = _C.read_environment("TORCH_SPYRE_DEBUG")
    if folder:
        return Path(folder)
    if debug:
        return Path("spyre_debug")
    if config.is_debugging_torch():
        from torch._dynamo.utils import get_debug_dir

        return Path(get_debug_dir()) / "torch_spyre"
    return None


def decisions_dir() -> Path | None:
    """The dump whose decisions replace the planned ones, or None.

    Raises ValueError if it is no folder, or if nothing is dumped.
    """
    folder = _C.read_environment("SPYRE_DECISIONS_IN")
    if not folder:
        return None
    if not Path(folder).is_dir():
        raise ValueError(
            "environment variable SPYRE_DECISIONS_IN: expected a folder, found "
            f"{folder!r}"
        )
    if dump_dir() is None:
        raise ValueError(
            "environment variable SPYRE_DECISIONS_IN: needs SPYRE_DUMP_DIR as well"
        )
    return Path(folder)


@dataclass
class PartDump:
    """The folder of one compiled part."""

    folder: Path
    saved: bool = False

    def save_program(self, graph: Any) -> None:
        """Saves the KTIR of the compiled part."""
        (self.folder / "ktir.mlir").write_text(graph.print_ktir())

    def save_inputs(
        self, names: list[str], storages: list[torch.Tensor], outputs: list[tuple]
    ) -> None:
        """Saves the inputs of the first run and how to run it again.

        ``storages`` and ``outputs`` are the program's arguments in order; of an
        output, whose values do not matter, only dtype and sizes are taken.
        """
        if self.saved:
            return
        self.saved = True
        arguments = []

        def save(name: str, array: torch.Tensor) -> str:
            if array.dtype == torch.bfloat16:
                array = array.view(torch.uint16)
            elif array.dtype.is_floating_point and array.dtype.itemsize == 1:
                # numpy has no 8-bit floats: spyre-run takes their codes.
                array = array.view(torch.uint8)
            np.save(self.folder / f"{name}.npy", array.numpy())
            return f"{name}.npy"

        for name, tensor in zip(names, storages, strict=True):
            array, image = _read_storage(tensor)
            file = save(name, array)
            if image is not None:
                file = save(f"{name}.device", image)
            arguments += ["--arg", file]
        for number, (dtype, sizes, *_) in enumerate(outputs):
            file = save(f"out{number}", torch.zeros(sizes, dtype=dtype))
            arguments += ["--arg", file]
        command = shlex.join(["ktir.mlir", *arguments, "--out-dir", "out"])
        (self.folder / "run.sh").write_text(
            "#!/bin/sh\n# Runs the dumped program on the inputs of its first run.\n"
            f"tool={shlex.quote(_path_of_spyre_run())}\n"
            '[ -x "$tool" ] || tool=spyre-run\n'
            f'cd "$(dirname "$0")" && "$tool" {command}\n'
        )

    def save_report(self, kernels: list[dict[str, Any]]) -> None:
        """Saves what each kernel of the first run cost on the device model."""
        path = self.folder / "report.json"
        if not path.exists():
            path.write_text(json.dumps(kernels, indent=2) + "\n")


def _path_of_spyre_run() -> str:
    """Of the tool that this package uses; its name alone if there is none."""
    try:
        return os.path.abspath(find_tool("spyre-run"))
    except ToolError:
        return "spyre-run"


def _read_storage(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The host values of a tensor's whole storage, and its device bytes.

    The bytes are None where the values determine them. DL16 has smaller
    subnormals than fp16, and padding may hold anything.
    """
    _, _, sizes, strides, layout, dtype = _C.tensor_info(tensor)
    values = tensor.as_strided(sizes, strides, 0).cpu()
    copy = _C.empty_with_layout(sizes, strides, dtype, layout, device=tensor.device)
    copy.copy_(values)
    image = _C.read_device_bytes(tensor)
    if image == _C.read_device_bytes(copy):
        return values, None
    return values, torch.frombuffer(bytearray(image), dtype=torch.uint8)


def make_folder(base: Path, name: str) -> Path:
    """A new folder of a name, or of that and a number: other processes make some."""
    for number in itertools.count():
        folder = base / (f"{name}_{number}" if number else name)
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise OSError(
                f"environment variable SPYRE_DUMP_DIR: cannot make this folder: {error}"
            ) from error
        return folder
    raise AssertionError("numbers end")


def begin(name: str, nodes: list[Node]) -> PartDump | None:
    """Opens the folder of a part about to be compiled, if dumping is on."""
    base, decisions = dump_dir(), decisions_dir()
    if base is None:
        return None
    folder = make_folder(base, name)
    graph = nodes[0].graph if nodes else None
    (folder / "fx_graph.txt").write_text(f"{graph}\n")
    if decisions is not None and (decisions / folder.name / "decisions.json").exists():
        shutil.copy(
            decisions / folder.name / "decisions.json", folder / "decisions-in.json"
        )
    return PartDump(folder)
