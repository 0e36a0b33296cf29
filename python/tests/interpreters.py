# SPDX-License-Identifier: Apache-2.0
"""Interpreters for tests of what a process reads once.

They are copies of one that has imported torch without its backends, and what the first
operator loads of it: what torch_spyre reads when it is imported is that of the copy. Of
the variables that torch itself reads when it is imported, they take TORCH_LOGS; the
others need a new process.
"""

import atexit
import gc
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

#: Of one program, in seconds.
TIMEOUT = 300
#: Variables that the copies take, of those whose names torch's begin with.
TAKEN = re.compile(
    "TORCH_SPYRE_.*|TORCH_DEVICE_BACKEND_AUTOLOAD|TORCH_LOGS|TORCHINDUCTOR_CACHE_DIR"
)
#: What the first operator and the first compilation load of torch.
LOADED_LATE = (
    "torch._dynamo.repro.after_dynamo",
    "torch._inductor.fx_passes.joint_graph",
    "torch._inductor.scheduler",
    "torch.export._trace",
)

_original: subprocess.Popen | None = None


def run_python(
    code: str, *, folder: Path | None = None, without=(), **variables: str
) -> subprocess.CompletedProcess:
    """The run of a program in an environment without some variables, with others."""
    global _original
    early = [name for name in variables if name.startswith(("PYTHON", "TORCH"))]
    wrong = [name for name in early if not TAKEN.fullmatch(name)]
    assert not wrong, f"{wrong}: read before torch_spyre is; start a new process"
    if _original is None:
        _original = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        )
        # It ends with its input; waited for, it counts as this process's own time.
        atexit.register(_original.communicate)
    kept = {name: value for name, value in os.environ.items() if name not in without}
    with tempfile.TemporaryDirectory() as outputs:
        request = {
            "code": code,
            "folder": str(folder or Path.cwd()),
            "environment": {**kept, **variables},
            "outputs": outputs,
        }
        print(json.dumps(request), file=_original.stdin, flush=True)
        status = int(_original.stdout.readline())
        out, err = (
            (Path(outputs) / name).read_text(errors="replace") for name in ("1", "2")
        )
    return subprocess.CompletedProcess(code, status, out, err)


def _become(request: dict) -> None:
    """Make this copy the interpreter that a request asks for."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for number in (1, 2):
        path = os.path.join(request["outputs"], str(number))
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), number)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["-c"]
    sys.path[0] = ""
    signal.alarm(TIMEOUT)


def _serve() -> None:
    import torch

    for name in LOADED_LATE:
        importlib.import_module(name)
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        process = os.fork()
        if process == 0:
            _become(request)
            if torch._is_device_backend_autoload_enabled():
                torch._import_device_backends()
            # As torch does after that.
            torch._logging._init_logs()
            exec(compile(request["code"], "<string>", "exec"), {"__name__": "__main__"})
            sys.exit()
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _serve()
