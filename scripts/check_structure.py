# SPDX-License-Identifier: Apache-2.0
"""Check the structure of the tree: rooms, targets, sizes, names of tests.

- A room (a folder, and the folder of its headers) includes only the rooms that ROOMS
  lists for it, and no two rooms stand on each other.
- Units of a room (the files of one name) do not include each other in a circle. A
  header NameImpl.h is part of the unit Name.
- Rooms of MLIR_FREE do not include MLIR.
- A package of python/torch_spyre imports only what PYTHON_ROOMS lists for it, and no
  modules import each other in a circle, imports inside functions included.
- Passes, analyses and lowering know no compute operation by name, but for
  Decompose.cpp: they ask interfaces.
- Passes, conversions and solvers ask a module's target what it allows; they know no
  target by name (docs/contributing/target.md).
- No file is longer than 600 lines unless its first 30 lines say why, in a sentence
  that begins "Longer than 600 lines:".
- No C++ function is longer than 100 lines, and no script that a lit test runs: if it
  needs more, it is a test of pytest.
- Tests are named as docs/contributing/setup.md, "Names of tests", says.

Prints a line per violation, and exits with 1 if there are any.
"""

import ast
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_LINES = 600
MOST_FUNCTION_LINES = 100
REASON = "Longer than 600 lines:"

GRAPH = "Dialect/SpyreGraph/"
PASSES = GRAPH + "Transforms"
SDSC = "Target/SuperDSC/"
#: What each room may include beside itself. Later rooms stand on earlier ones.
ROOMS: dict[str, set[str]] = {
    "Support": set(),
    "Device": {"Support"},
    "Planning": {"Device", "Support"},
    "Dialect/KTIR/IR": {"Device", "Support"},
    "Dialect/KTIR/Transforms": {"Dialect/KTIR/IR"},
    "Dialect/Check/IR": {"Dialect/KTIR/IR"},
    "Dialect/SDSCBundle/IR": set(),
    GRAPH + "IR": {"Device", "Support"},
    GRAPH + "Analysis": {"Device", GRAPH + "IR"},
    "Target/Interface": {GRAPH + "IR"},
    PASSES: {"Device", "Target/Interface", GRAPH + "IR"},
    PASSES + "/Layout": {
        "Device",
        "Planning",
        "Support",
        "Target/Interface",
        GRAPH + "Analysis",
        GRAPH + "IR",
        PASSES,
    },
    PASSES + "/Division": {
        "Device",
        "Planning",
        "Target/Interface",
        GRAPH + "Analysis",
        GRAPH + "IR",
        PASSES,
    },
    PASSES + "/Tiling": {
        "Device",
        "Target/Interface",
        GRAPH + "Analysis",
        GRAPH + "IR",
        PASSES,
        PASSES + "/Division",
        PASSES + "/Layout",
    },
    PASSES + "/Memory": {
        "Device",
        "Planning",
        "Target/Interface",
        GRAPH + "Analysis",
        GRAPH + "IR",
        PASSES,
        PASSES + "/Division",
    },
    PASSES + "/Decisions": {GRAPH + "Analysis", GRAPH + "IR", PASSES, "Support"},
    PASSES + "/Verify": {"Device", GRAPH + "Analysis", GRAPH + "IR", PASSES},
    "Conversion": {"Device"},
    "Conversion/ATenToSpyreGraph": {
        "Conversion",
        "Device",
        GRAPH + "IR",
        "Support",
    },
    "Conversion/SpyreGraphToKTIR": {
        "Conversion",
        "Device",
        "Dialect/KTIR/IR",
        GRAPH + "Analysis",
        GRAPH + "IR",
    },
    "Target/KTIR": {"Target/Interface"},
    SDSC + "Transforms": {"Target/Interface", GRAPH + "Analysis", GRAPH + "IR"},
    # The table of device operations is made from the dialect's definitions.
    SDSC + "Model": {"Device", GRAPH + "IR", "Support"},
    SDSC + "Mapping": {"Device", GRAPH + "IR", SDSC + "Model"},
    SDSC + "Writer": {
        "Device",
        "Support",
        GRAPH + "Analysis",
        GRAPH + "IR",
        SDSC + "Mapping",
        SDSC + "Model",
    },
    # What a file repeats is held against what the writer writes.
    SDSC + "Reader": {
        "Support",
        "Device",
        "Dialect/SDSCBundle/IR",
        SDSC + "Model",
        SDSC + "Writer",
    },
    SDSC + "Raise": {
        GRAPH + "Analysis",
        GRAPH + "IR",
        SDSC + "Mapping",
        SDSC + "Model",
    },
    "Target": {"Target/KTIR", SDSC + "Transforms"},
    "Runtime/Memory": {"Device", "Support"},
    "Runtime/Report": {"Device"},
    "Runtime/Kernels": {"Device", "Support"},
    "Runtime/Program": {
        "Device",
        "Runtime/Kernels",
        "Runtime/Memory",
        "Runtime/Report",
        "Support",
    },
    "Runtime/Engine": {
        "Device",
        "Runtime/Kernels",
        "Runtime/Memory",
        "Runtime/Program",
        "Support",
    },
    "Runtime/Timing": {
        "Device",
        "Runtime/Engine",
        "Runtime/Program",
        "Runtime/Report",
        "Support",
    },
    "Runtime/Launch": {"Runtime/Memory", "Runtime/Program", "Support"},
    "Runtime/Loader": {
        "Device",
        "Dialect/KTIR/IR",
        "Dialect/KTIR/Transforms",
        GRAPH + "IR",
        "Runtime/Engine",
        "Runtime/Launch",
        "Runtime/Program",
        "Support",
    },
    "Target/SpyreCode": {
        "Conversion",
        GRAPH + "IR",
        "Runtime/Launch",
        "Runtime/Loader",
        SDSC + "Model",
        "Support",
    },
    "Compiler": {
        "Conversion",
        "Conversion/ATenToSpyreGraph",
        "Device",
        "Dialect/KTIR/IR",
        GRAPH + "IR",
        PASSES,
        "Runtime/Loader",
        "Runtime/Program",
        SDSC + "Raise",
        SDSC + "Reader",
        SDSC + "Writer",
        "Support",
        "Target",
    },
    "Torch": set(),
    # Its precompiled header begins with that of the others.
    "Torch/Python": {"Torch"},
    "Torch/Card": {"Runtime/Launch", "Runtime/Memory", "Support", "Torch/Python"},
    "Torch/Profiling": {"Device", "Runtime/Program", "Torch/Card", "Torch/Python"},
    "Torch/Storage": {
        "Device",
        "Runtime/Memory",
        "Runtime/Program",
        "Support",
        "Torch/Card",
        "Torch/Python",
    },
    "Torch/Launch": {
        "Compiler",
        "Runtime/Launch",
        "Support",
        "Target/SpyreCode",
        "Torch/Card",
        "Torch/Profiling",
        "Torch/Python",
        "Torch/Storage",
    },
    "Torch/Eager": {
        "Conversion/ATenToSpyreGraph",
        "Device",
        "Torch/Launch",
        "Torch/Storage",
    },
    # A copy between dtypes on the device is an eager call.
    "Torch/Transfer": {
        "Device",
        "Runtime/Kernels",
        "Support",
        "Torch/Eager",
        "Torch/Profiling",
        "Torch/Python",
        "Torch/Storage",
    },
    "Torch/Operators": {
        "Device",
        "Support",
        "Torch/Card",
        "Torch/Eager",
        "Torch/Launch",
        "Torch/Storage",
        "Torch/Transfer",
    },
    "Torch/Bindings": {
        "Compiler",
        "Conversion/ATenToSpyreGraph",
        "Device",
        SDSC + "Writer",
        "Support",
        "Target/SpyreCode",
        "Torch/Card",
        "Torch/Eager",
        "Torch/Launch",
        "Torch/Operators",
        "Torch/Python",
        "Torch/Storage",
        "Torch/Transfer",
    },
}
#: Rooms without MLIR: libraries that link it would have to bring it along.
MLIR_FREE = {
    "Device",
    "Planning",
    "Runtime/Engine",
    "Runtime/Kernels",
    "Runtime/Launch",
    "Runtime/Memory",
    "Runtime/Program",
    "Runtime/Report",
    "Runtime/Timing",
    "Support",
    "Target/SuperDSC/Model",
}
#: What each package of python/torch_spyre, and each module beside them, may import
#: beside itself and _C: nothing if it is not here.
PYTHON_ROOMS: dict[str, set[str]] = {
    "torch_spyre": {"_registration", "constants", "device", "frontend"},
    # Tells PyTorch of all there is.
    "_registration": {
        "decompositions",
        "device",
        "distributed",
        "frontend",
        "logging_config",
        "ops",
    },
    # The names of torch-spyre that users import: aliases.
    "_inductor": {
        "aten_table",
        "constants",
        "decompositions",
        "device",
        "errors",
        "extend",
        "frontend",
        "logging_config",
    },
    "_monkey_patch": {"device"},
    "execution": {"_inductor"},
    "compile_backend": {"_inductor", "decompositions", "frontend"},
    "memory": {"device"},
    "model_utils": {"device"},
    "streams": {"device"},
    "version": {"torch_spyre"},
    "predict": {"decompositions", "device", "frontend", "json_files", "tools"},
    # What users add to the compiler, and where it is kept.
    "extend": {"extensions", "frontend", "ops"},
    "extensions": {"errors"},
    "aten_table": {"extensions"},
    "decompositions": {"aten_table", "errors", "extensions"},
    "ops": {"decompositions", "errors", "extend"},
    # Runs descriptors and predicts them.
    "testing": {"_C", "decompositions", "predict"},
    # What ranks share, and how they reduce.
    "distributed": {"rank_memory", "reductions"},
    # Its names that are rarely used, when somebody asks for them.
    "device": {"_inductor", "errors", "memory"},
    # Dynamo's interface of the device, and the backend once it is chosen.
    "frontend": {
        "_inductor",
        "aten_table",
        "compile_backend",
        "decompositions",
        "device",
        "errors",
        "extensions",
        "json_files",
        "logging_config",
        "tools",
    },
}
PYTHON_PACKAGE = "python/torch_spyre/"
#: Rooms of these folders know no target.
TARGET_BLIND = ("Dialect/", "Conversion/", "Planning")
TARGET_NAMES = re.compile(
    r'"(?:ktir|superdsc)"|\w*(?:KTIR|SuperDSC)Target\b|superdscCompatible'
    r"|\bisa<\w*Target>|\b[tT]arget(?:\.|->)getName\(\)\s*[=!]="
)
#: Rooms of passes that know no operation but those that move data, and the file that
#: takes composite operations apart. Analysis and lowering ask interfaces, too.
OPERATION_BLIND = (
    PASSES,
    GRAPH + "Analysis",
    "Conversion/SpyreGraphToKTIR",
    "Planning",
)
DECOMPOSITION = f"lib/{PASSES}/Decompose.cpp"
DATA_MOVEMENT = {"ViewOp", "IdentityOp", "InsertOp", "RestickifyOp", "ReshardOp"}
#: Which compute no elements.
INDICES = {"TileStartOp"}
OPERATIONS = (
    {
        name
        for file in (ROOT / "include/Spyre" / GRAPH / "IR").glob("SpyreGraph*Ops.td")
        if file.name != "SpyreGraphBundleOps.td"
        for name in re.findall(
            r"^def SpyreGraph_(\w+Op)\b", file.read_text(), re.MULTILINE
        )
    }
    - DATA_MOVEMENT
    - INDICES
)
OPERATION = re.compile(rf"(?<!linalg::)\b(?:{'|'.join(sorted(OPERATIONS))})\b")
#: Names of test files, by the beginning and the end of their paths. Files below Inputs
#: are no tests.
KEBAB = r"[a-z0-9]+(?:-[a-z0-9]+)*"
TEST_NAMES = (
    ("test/", ".mlir", re.compile(KEBAB), "in kebab-case"),
    ("test/", ".test", re.compile(KEBAB), "in kebab-case"),
    ("unittests/", ".cpp", re.compile(r"[A-Z]\w*(?:Test|Bench)"), "<Unit>Test.cpp"),
    ("python/tests/", ".py", re.compile(r"[a-z][a-z0-9_]*"), "in snake_case"),
)
MLIR_INCLUDE = re.compile(r'^#include "mlir/', re.MULTILINE)
INCLUDE = re.compile(r'^#?include "([^"]+)"', re.MULTILINE)
#: What opens a block that is no function.
OTHER_BLOCK = re.compile(
    r"^(?:namespace|class|struct|enum|union|extern|if|for|while|switch|else|do|try|"
    r"catch|return|case|default)\b"
)


def room_of(path: str) -> str | None:
    """The room that a file of include/Spyre or lib belongs to."""
    match = re.match(r"(?:include/Spyre|lib)/(.+)/[^/]+$", path)
    return inner_room(match.group(1)) if match else None


def inner_room(folder: str) -> str | None:
    """The innermost room around a folder."""
    while folder:
        if folder in ROOMS:
            return folder
        folder = folder.rpartition("/")[0]
    return None


def included(path: str, name: str) -> str | None:
    """Our file (or generated one) that a file includes under a name, or none."""
    if name.startswith("Spyre/"):
        return "include/" + name
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
    return beside if (ROOT / beside).is_file() else None


def without_text(code: str) -> str:
    """The code with comments and literals blanked, lines kept."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
        r"'(?:\\.|[^'\\\n])'",
        re.DOTALL,
    )
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), code)


def functions(code: str) -> Iterator[tuple[int, int]]:
    """First and last line of each function, lambdas not counted by themselves."""
    depth, start, begin = 0, None, 0
    stack: list[bool] = []
    code = re.sub(r"^#.*$", "", without_text(code), flags=re.MULTILINE)
    for position, char in enumerate(code):
        if char == "{":
            head = code[begin:position].strip()
            is_function = (
                start is None
                and ")" in head
                and not OTHER_BLOCK.match(head)
                and not re.search(r"=\s*$", head)
            )
            stack.append(is_function)
            if is_function:
                first = (
                    begin
                    + len(code[begin:position])
                    - len(code[begin:position].lstrip())
                )
                start = code.count("\n", 0, first) + 1
            depth += 1
            begin = position + 1
        elif char == "}" and stack:
            depth -= 1
            if stack.pop() and start is not None:
                yield start, code.count("\n", 0, position) + 1
                start = None
            begin = position + 1
        elif char == ";":
            begin = position + 1


def check_sizes(path: str, text: str) -> Iterator[str]:
    """Files and functions that are too long."""
    lines = text.count("\n")
    head = "\n".join(text.splitlines()[:30])
    if lines > MOST_LINES and REASON not in head:
        yield (
            f"{path}: {lines} lines, allowed are {MOST_LINES}; split it, or say in its "
            f"first 30 lines '{REASON} <why>'"
        )
    if "/Inputs/" in path and path.endswith(".py") and lines > MOST_FUNCTION_LINES:
        yield f"{path}: {lines} lines; write a test of pytest instead"
    if not path.endswith((".cpp", ".h")):
        return
    for first, last in functions(text):
        if last - first + 1 > MOST_FUNCTION_LINES:
            yield f"{path}:{first}: a function of {last - first + 1} lines"


def check_test_name(path: str, text: str) -> Iterator[str]:
    """A test whose name does not say what it is."""
    folder, _, name = path.rpartition("/")
    if "Inputs" in folder.split("/"):
        return
    for start, suffix, pattern, how in TEST_NAMES:
        if not path.startswith(start) or not name.endswith(suffix):
            continue
        stem = name.removesuffix(suffix)
        if not pattern.fullmatch(stem):
            yield f"{path}: name the test {how}"
        if suffix == ".mlir":
            refuses = "expected-error" in text
            if stem.endswith("-invalid") and not refuses:
                yield f"{path}: expects no error, so its name must not say invalid"
            if not stem.endswith("-invalid") and refuses and "FileCheck" not in text:
                yield f"{path}: expects errors only: name it <feature>-invalid.mlir"
        if suffix == ".py":
            is_test = re.search(r"^ *def test_", text, re.MULTILINE) is not None
            if stem.startswith("test_") != is_test:
                yield f"{path}: files with tests, and they alone, are test_<subject>.py"


def check(path: str, text: str) -> Iterator[str]:
    """The violations of one file."""
    yield from check_sizes(path, text)
    yield from check_test_name(path, text)
    if not path.endswith((".cpp", ".h", ".td")):
        return
    own = room_of(path)
    if own is None and path.startswith(("lib/", "include/")):
        yield f"{path}: belongs to no room of scripts/check_structure.py"
    if own is None:
        return
    if own in MLIR_FREE:
        for match in MLIR_INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: room {own} does without MLIR"
    for match in INCLUDE.finditer(text):
        file = included(path, match.group(1))
        other = room_of(file) if file else None
        if other is not None and other != own and other not in ROOMS[own]:
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: room {own} may not include room {other}"
    if own.startswith(OPERATION_BLIND) and path != DECOMPOSITION:
        for match in OPERATION.finditer(without_text(text)):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: names an operation: {match.group()}"
    # TableGen's descriptions may give examples.
    if own.startswith(TARGET_BLIND) and not path.endswith(".td"):
        for match in TARGET_NAMES.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: names a target: {match.group()}"


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Sets of nodes that reach each other, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            members = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(members) > 1:
                found.append(sorted(members))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def unit_of(path: str) -> str:
    """Room and name of the unit that a file is part of."""
    return f"{room_of(path)}/{Path(path).stem.removesuffix('Impl')}"


def check_circles(texts: dict[str, str]) -> Iterator[str]:
    """Rooms, and units within a room, that stand on each other."""
    for members in circles(ROOMS):
        yield f"rooms stand on each other: {', '.join(members)}"
    graph: dict[str, set[str]] = {}
    for path, text in texts.items():
        if not path.endswith((".cpp", ".h")) or room_of(path) is None:
            continue
        unit = unit_of(path)
        for match in INCLUDE.finditer(text):
            file = included(path, match.group(1))
            if file and file.endswith(".h") and room_of(file) == room_of(path):
                graph.setdefault(unit, set()).add(unit_of(file))
    for members in circles(graph):
        yield f"units stand on each other: {', '.join(members)}"


def imported(path: str, text: str, modules: dict[str, str]) -> set[str]:
    """The modules of `modules` that a module imports, wherever it does."""
    found = set()
    for node in ast.walk(ast.parse(text, path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                # From the package around, or one further out for each more dot.
                name = path.removeprefix("python/").removesuffix(".py")
                around = name.split("/")[: -node.level]
                source = ".".join([*around, source] if source else around)
            for alias in node.names:
                name = f"{source}.{alias.name}"
                # The package itself is no more than the way to its extension.
                is_extension = name == "torch_spyre._C"
                found.add(name if name in modules or is_extension else source)
    return found & modules.keys()


def check_python(texts: dict[str, str]) -> Iterator[str]:
    """Packages that import what they may not, and modules in a circle."""
    modules = {
        path.removeprefix("python/")
        .removesuffix(".py")
        .removesuffix("/__init__")
        .replace("/", "."): path
        for path in texts
        if path.startswith(PYTHON_PACKAGE) and path.endswith(".py")
    }
    graph = {m: imported(p, texts[p], modules) - {m} for m, p in modules.items()}
    for module, others in sorted(graph.items()):
        room = module.split(".")[1] if "." in module else module
        for other in sorted(others):
            target = other.split(".")[1] if "." in other else other
            if target != room and target not in PYTHON_ROOMS.get(room, ()):
                yield f"{modules[module]}: {room} may not import {other}"
    for members in circles(graph):
        yield f"modules import each other: {', '.join(members)}"


def main() -> int:
    """Check what git knows."""
    suffixes = ("*.cpp", "*.h", "*.td", "*.py", "*.sh", "*.mlir", "*.test")
    listed = subprocess.run(
        ["git", "ls-files", "-z", *suffixes],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    files = [name for name in listed if name and (ROOT / name).is_file()]
    texts = {name: (ROOT / name).read_text() for name in files}
    found = [v for name, text in texts.items() for v in check(name, text)]
    found += check_circles(texts)
    found += check_python(texts)
    print(*found, sep="\n", end="\n" if found else "")
    print(f"structure: {len(files)} files checked, {len(found)} violations")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
