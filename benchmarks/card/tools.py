# SPDX-License-Identifier: Apache-2.0
"""The tools that turn a kernel into a program and predict it, and their device."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from pathlib import Path
from threading import Lock
from typing import Any

from card import programs
from card.kernels import REDUCTIONS, Kernel
from card.measurements import Measurement

ROOT = Path(__file__).resolve().parents[2]


class ToolError(OSError):
    """A tool is missing, or fails for another reason than a row's program."""


def tool(name: str) -> str:
    return shutil.which(name) or str(ROOT / "build" / "bin" / name)


def run(command: list[str], source: Path | None = None) -> str:
    """What a command prints.

    Raises NotExpressible with the first error that is located in `source`, the program
    that is compiled, and ToolError for any other failure.
    """
    name = Path(command[0]).name
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ToolError(f"{name}: {error.strerror}: {command[0]}") from error
    if done.returncode == 0:
        return done.stdout
    lines = done.stderr.splitlines()
    if done.returncode > 0 and source:
        pattern = re.escape(str(source)) + r":\d+:\d+: error: (.*)"
        for line in lines:
            if match := re.match(pattern, line):
                raise programs.NotExpressible(match.group(1))
    errors = [line for line in lines if "error:" in line] or lines or ["no message"]
    how = f"exit status {done.returncode}"
    if done.returncode < 0:
        how = f"ended by signal {-done.returncode}"
    raise ToolError(f"{name}: {errors[0].removeprefix(name + ': ')} ({how})")


class Devices:
    """The numbers of the device, which a row may change, as files in a folder."""

    def __init__(self, path: Path | None, folder: Path) -> None:
        """Raises ToolError if there is no object of numbers in the file at `path`."""
        self.path, self.folder, self.lock = path, folder, Lock()
        self.numbers: dict[str, Any] = {}
        if path is None:
            return
        try:
            self.numbers = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ToolError(f"{path}: {error}") from error
        if not isinstance(self.numbers, dict):
            found = type(self.numbers).__name__
            raise ToolError(f"{path}: expected an object, found {found}")

    def check(self) -> None:
        """Raises ToolError if spyre-run does not know the numbers."""
        if self.path:
            run([tool("spyre-run"), f"--device={self.path}", "--print-device-spec"])

    def of(self, kernel: Kernel) -> dict[str, Any]:
        """The numbers for a kernel; its share of LX is what it was measured with."""
        if kernel.lx_fraction is None:
            return self.numbers
        return {**self.numbers, **lx_share(kernel)}

    def file(self, kernel: Kernel) -> Path | None:
        """A file of the numbers for a kernel; none if they are those of the model."""
        if kernel.lx_fraction is None:
            return self.path
        path = self.folder / f"lx-fraction-{kernel.lx_fraction:g}.json"
        text = json.dumps(self.of(kernel), indent=1)
        # Rows that are predicted at once share the file.
        with self.lock:
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
        return path


def planned_for(kernel: Kernel) -> dict[str, Any]:
    """The numbers of the device that spyre-opt plans for, if not those of the model.

    Not those of --device: the rows tell what the card planned, and fits predict the
    same programs with other numbers.
    """
    return {} if kernel.lx_fraction is None else lx_share(kernel)


def lx_share(kernel: Kernel) -> dict[str, Any]:
    """DXP_LX_FRAC_AVAIL: the share of LX that the kernels' own tiles may take."""
    return {"lxReservedFraction": kernel.lx_fraction}


def device_option(kernel: Kernel, folder: Path, name: str) -> str:
    """The pipeline's option for the device that a kernel is planned for, if any."""
    numbers = planned_for(kernel)
    if not numbers:
        return ""
    path = folder / f"{name}.device.json"
    path.write_text(json.dumps(numbers, indent=1))
    return f" device={{{path}}}"


def is_divided_by_rules(kernel: Kernel) -> bool:
    """Whether the rules of the card's compiler divide a kernel over the cores.

    Those of spec/passes.md, where a row does not tell the division. They leave the sum
    of all elements on one core; the rows read the card's full bandwidth, so it was
    divided in another way. That, and softmax over rows, of which the rows tell what
    stays in LX, are planned by our own rules.
    """
    is_sum_of_all = REDUCTIONS.get(kernel.name, 0) is None
    is_over_rows = kernel.name == "softmax" and kernel.dim == 0
    return not kernel.splits and not is_sum_of_all and not is_over_rows


def pipeline(row: Measurement, folder: Path) -> str:
    """The options that the program of a row is made with."""
    assert row.kernel is not None
    options = f"cores={row.cores} lx-planning={str(row.kernel.lx).lower()}"
    options += "" if row.kernel.clones_inputs else " lx-clone-inputs=false"
    options += " mode=reference" if is_divided_by_rules(row.kernel) else ""
    return options + device_option(row.kernel, folder, row.id)


def source_text(row: Measurement) -> str:
    """The program of a row for spyre-opt, with all that its plan depends on."""
    assert row.kernel is not None
    body = programs.write(row.kernel)
    plan = {
        "cores": row.cores,
        "lx": row.kernel.lx,
        "in memory": row.kernel.in_memory,
        "clones inputs": row.kernel.clones_inputs,
        "divided by rules": is_divided_by_rules(row.kernel),
        "device": planned_for(row.kernel),
    }
    return f"// {json.dumps(plan)}\n{body}"


def put_in_memory(decisions: Path, source: str, stages: tuple[str, ...]) -> None:
    """Moves the results of some operations from LX to the pool of device memory."""
    found = json.loads(decisions.read_text())
    lines = source.splitlines()
    for function in found["functions"]:
        for buffer in function["buffers"]:
            line = lines[int(buffer["location"].rsplit(":", 1)[1]) - 1]
            if any(f"= spyre_graph.{stage} " in line for stage in stages):
                *outer, columns = buffer["shape"]
                offset = function["pool_size"]
                buffer["placement"] = {"space": "pool", "offset": offset}
                # Whole sticks of 64 elements, 128 bytes.
                size = math.prod(outer) * -(-columns // 64) * 128
                function["pool_size"] = offset + size
    decisions.write_text(json.dumps(found))


def compile_row(row: Measurement, folder: Path) -> Path:
    """The KTIR program of a row. Raises NotExpressible and ToolError.

    A program of an earlier run is taken if it was made of the same text by the same
    spyre-opt.
    """
    assert row.kernel is not None
    source, program = folder / f"{row.id}.mlir", folder / f"{row.id}.ktir"
    text, compiler = source_text(row), tool("spyre-opt")
    if is_current(source, program, text, compiler):
        return program
    program.unlink(missing_ok=True)
    source.write_text(text)
    options = pipeline(row, folder)
    if row.kernel.in_memory:
        decisions = folder / f"{row.id}.decisions.json"
        first = f"{options} to-ktir=false decisions-out={{{decisions}}}"
        run([compiler, f"--spyre-pipeline={first}", str(source)], source)
        put_in_memory(decisions, text, row.kernel.in_memory)
        options += f" decisions-in={{{decisions}}}"
    command = [compiler, f"--spyre-pipeline={options}", str(source), "-o", str(program)]
    run(command, source)
    return program


def is_current(source: Path, program: Path, text: str, compiler: str) -> bool:
    """Whether a program is what the compiler makes of a text."""
    try:
        made = program.stat().st_mtime_ns
        same = source.read_text() == text
        return same and made > Path(compiler).stat().st_mtime_ns
    except (OSError, UnicodeDecodeError):
        return False


def predict_program(program: Path, device: Path | None) -> dict[str, Any]:
    """The report of a program's prediction. Raises ToolError."""
    command = [tool("spyre-run"), str(program), "--entry=main", "--predict-only"]
    command += [f"--device={device}"] if device else []
    report: dict[str, Any] = json.loads(run([*command, "--json=-"]))
    return report
