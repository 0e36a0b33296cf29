# SPDX-License-Identifier: Apache-2.0
"""Interpreters for tests of what a process reads once, and of scripts.

They are copies of one that has imported torch without its backends, and what the first
operator loads of it: what torch_spyre reads when it is imported is that of the copy. Of
the variables that torch itself reads when it is imported, they take TORCH_LOGS; the
others need a new process, as does what is tested of the order of imports.

``scripts/run_tests.py`` has one original for all files; a file that runs without it
starts its own.
"""

import atexit
import ctypes
import functools
import gc
import importlib
import importlib.util
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import NoReturn

#: Of one program, in seconds.
TIMEOUT = 400
#: Variables that the copies take, of those whose names torch's begin with.
TAKEN = re.compile(
    "TORCH_SPYRE_.*|TORCH_DEVICE_BACKEND_AUTOLOAD|TORCH_LOGS|TORCHINDUCTOR_CACHE_DIR"
    "|TORCH_TEST_DEVICES"
)
#: What the first operator and the first compilation load of torch.
LOADED_LATE = (
    "torch._dynamo.repro.after_dynamo",
    "torch._inductor.fx_passes.joint_graph",
    "torch._inductor.scheduler",
    "torch.export._trace",
)

#: Takes requests: the folder of each, and where its status is awaited.
_original: socket.socket | None = None
_starting = threading.Lock()
#: Processor time of the copies that this process asked for.
processor_seconds = 0.0


def run_python(
    code: str,
    *arguments: object,
    file: Path | None = None,
    folder: Path | None = None,
    without=(),
    ends_at_once: bool = False,
    **variables: str,
) -> subprocess.CompletedProcess:
    """The run of a program in an environment without some variables, with others.

    Threads may call it at one time. ``file`` is where the code is from, if anywhere.
    ``ends_at_once`` leaves out that the process takes apart what it has imported, half
    of the time of a short program; the others test that it can.
    """
    global _original, processor_seconds
    early = [name for name in variables if name.startswith(("PYTHON", "TORCH"))]
    wrong = [name for name in early if not TAKEN.fullmatch(name)]
    assert not wrong, f"{wrong}: read before torch_spyre is; start a new process"
    kept = {name: value for name, value in os.environ.items() if name not in without}
    with _starting:
        if _original is None:
            _original = _start_original()
    with tempfile.TemporaryDirectory() as outputs:
        request = {
            "code": code,
            "file": str(file or "<string>"),
            "arguments": [str(file or "-c"), *map(str, arguments)],
            "path": str(file.parent) if file else "",
            "folder": str(folder or Path.cwd()),
            "environment": {**kept, **variables},
            "ends_at_once": ends_at_once,
        }
        Path(outputs, "request").write_text(json.dumps(request))
        awaited, reply = os.pipe()
        socket.send_fds(_original, [outputs.encode()], [reply])
        os.close(reply)
        with os.fdopen(awaited) as answers:
            answer = answers.read()
        assert answer, "the interpreter that is copied has ended"
        status, seconds = json.loads(answer)
        processor_seconds += seconds
        out, err = (
            Path(outputs, name).read_text(errors="replace") for name in ("1", "2")
        )
    return subprocess.CompletedProcess(request["arguments"], status, out, err)


def run_script(file: Path, *arguments: object, **more) -> subprocess.CompletedProcess:
    """As ``python FILE ARGUMENT...``."""
    return run_python(file.read_text(), *arguments, file=file, **more)


def run_module(name: str, *arguments: object, **more) -> subprocess.CompletedProcess:
    """As ``python -m NAME ARGUMENT...``."""
    code = f"import runpy; runpy.run_module({name!r}, None, '__main__', True)"
    return run_python(code, *arguments, **more)


def _start_original() -> socket.socket:
    """A new process whose copies the programs of this one are."""
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, __file__, str(other.fileno())],
        stdin=subprocess.DEVNULL,
        pass_fds=[other.fileno()],
    )
    other.close()

    def end() -> None:
        own.close()
        process.wait()

    atexit.register(end)
    return own


def copy_as_original() -> None:
    """Fork: the copy serves all programs that this process and its copies ask for.

    It ends when all of them have. This process must have run ``load``, and have no
    thread.
    """
    global _original
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork():
        other.close()
        _original = own
        return
    own.close()
    os.setpgid(0, 0)
    _serve(other)


def load() -> None:
    """Import what the copies have of torch."""
    autoload = os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD")
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    for name in ("torch", *LOADED_LATE):
        importlib.import_module(name)
    _compile_once()
    _prepare_package()
    # Its variables are read when it is imported.
    assert "torch.testing._internal.common_utils" not in sys.modules
    del os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"]
    if autoload is not None:
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = autoload


def _compile_once() -> None:
    """Have Dynamo make the tables that it makes with the first compilation.

    What is compiled must start no thread: copies would wait for it.
    """
    import torch

    torch.compile(lambda x: x.add(1), backend="eager")(torch.ones(3))
    torch.overrides.get_overridable_functions()
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch._dynamo.utils.clear_compilation_metrics()


def _prepare_package() -> None:
    """Have at hand what importing torch_spyre loads, and import nothing of it.

    Loaded libraries read no variables before the extension is imported. Bytecode is
    kept in files only where Python may write them.
    """
    package = importlib.util.find_spec("torch_spyre")
    assert package is not None and package.submodule_search_locations
    for folder in map(Path, package.submodule_search_locations):
        for extension in folder.glob("_C*.so"):
            ctypes.CDLL(str(extension))
        codes = {
            str(file): compile(file.read_bytes(), file, "exec", dont_inherit=True)
            for file in folder.rglob("*.py")
        }
    read = SourceFileLoader.get_code

    @functools.wraps(read)
    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        return codes.get(loader.path) or read(loader, name)

    SourceFileLoader.get_code = get_code


def load_backends() -> None:
    """As torch does when it is imported, if the environment says so."""
    import torch

    # It has not set levels of loggers yet.
    torch._logging._internal.LOG_TRACE_HANDLER = None
    if torch._is_device_backend_autoload_enabled():
        torch._import_device_backends()
    # As torch does after that.
    torch._logging._init_logs()


def _become(folder: Path) -> None:
    """Make this copy the interpreter that a request asks for, and run its program."""
    request = json.loads((folder / "request").read_text())
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    for number in (1, 2):
        output = os.open(folder / str(number), os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(output, number)
        os.close(output)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["arguments"]
    sys.path.insert(0, request["path"])
    signal.alarm(TIMEOUT)
    main = ModuleType("__main__")
    main.__builtins__ = __builtins__
    # The other name is multiprocessing's, which torch has imported.
    sys.modules["__main__"] = sys.modules["__mp_main__"] = main
    load_backends()
    if request["path"]:
        main.__file__ = request["file"]
    code = compile(request["code"], request["file"], "exec")
    if request["ends_at_once"]:
        _run_and_end(code, main.__dict__)
    exec(code, main.__dict__)
    sys.exit()


def _run_and_end(code: CodeType, scope: dict) -> NoReturn:
    """As Python runs a program, up to its last steps."""
    status = 0
    try:
        exec(code, scope)
    except SystemExit as end:
        # A text is said, and means 1.
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _serve(requests: socket.socket) -> None:
    """Until nobody is left who could ask."""
    global _original
    _original = None
    here = Path(__file__).parent
    own = (str(here), str(here.parents[1] / "scripts"))
    sys.path[:] = [place for place in sys.path if place not in own]
    gc.collect()
    gc.freeze()
    #: By the descriptor of a copy: its id, and where its status is awaited.
    running: dict[int, tuple[int, int]] = {}
    while True:
        for ready in select.select([requests, *running], [], [])[0]:
            if ready is requests:
                folder, replies, *_ = socket.recv_fds(requests, 4096, 1)
                if not folder:
                    for process, _ in running.values():
                        os.kill(process, signal.SIGKILL)
                    os._exit(0)
                process = os.fork()
                if process == 0:
                    requests.close()
                    for descriptor, (_, reply) in running.items():
                        os.close(descriptor)
                        os.close(reply)
                    os.close(replies[0])
                    _become(Path(os.fsdecode(folder)))
                running[os.pidfd_open(process)] = process, replies[0]
            else:
                process, reply = running.pop(ready)
                _, status, usage = os.wait4(process, 0)
                answer = (
                    os.waitstatus_to_exitcode(status),
                    usage.ru_utime + usage.ru_stime,
                )
                # Whoever asked may have gone.
                with suppress(OSError):
                    os.write(reply, json.dumps(answer).encode())
                os.close(reply)
                os.close(ready)


if __name__ == "__main__":
    load()
    _serve(socket.socket(fileno=int(sys.argv[1])))


def run_main(module, monkeypatch, capsys, *arguments):
    """The status, output and errors of a script's main() in this process."""
    name = Path(module.__file__).name
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    try:
        status = module.main()
    except SystemExit as ended:
        status = ended.code
    return status, *capsys.readouterr()
