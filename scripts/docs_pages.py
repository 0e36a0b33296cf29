# SPDX-License-Identifier: Apache-2.0
"""The pages of the documentation that are made from the code.

usage: docs_pages.py
Prints their names. `make docs` puts them into the site (scripts/docs_hooks.py);
nothing here needs the extension, nor MkDocs.
"""

import ast
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "torch_spyre"

#: Page -> what mlir-tblgen wrote into build/docs, and its title if it has none.
TABLEGEN = {
    "reference/passes/spyre-graph.md": ("SpyreGraphPasses", "Passes on spyre_graph"),
    "reference/passes/conversion.md": ("SpyreConversionPasses", "Lowering passes"),
    "reference/passes/superdsc.md": ("SuperDSCPasses", "Passes for SuperDSC"),
    "reference/passes/ktdp.md": ("KTIRPasses", "Passes on ktdp"),
    "reference/dialects/spyre-graph.md": ("SpyreGraphDialect", ""),
    "reference/dialects/device-operations.md": ("DeviceOps", ""),
    "reference/dialects/ktdp.md": ("KTIRDialect", ""),
    "reference/dialects/sdscbundle.md": ("SDSCBundleDialect", ""),
    "reference/dialects/check.md": ("CheckDialect", ""),
}

#: Page -> file at the root of the repository.
ROOT_FILES = {
    "contributing/index.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}

#: Heading of the Python API -> files, the first of which says what they are, and the
#: names to show (None: all that are public; methods by `Class.method`).
API: dict[str, tuple[tuple[str, ...], tuple[str, ...] | None]] = {
    'torch.compile(backend="spyre")': (
        ("compile_backend.py", "frontend/parts.py", "frontend/refusals.py"),
        ("spyre", "compiled_parts", "CompiledPart.report", "refusals"),
    ),
    "torch_spyre: hints": (
        ("frontend/hints.py",),
        ("spyre_hint", "declare_tensor_dim", "name_tensor_dims"),
    ),
    "torch_spyre: the cache": (("frontend/cache.py",), ("clear_cache",)),
    "torch_spyre.extend": (
        ("extend.py", "frontend/lowering.py", "errors.py"),
        (
            "decomposition",
            "lowering",
            "LoweringContext.op",
            "fallback",
            "run_on_cpu",
            "remove",
            "ExtensionError",
        ),
    ),
    "torch_spyre.predict": (
        ("predict/__init__.py", "predict/api.py", "predict/models.py"),
        ("predict", "what_if", "predict_mlir", "ModelError"),
    ),
    "torch_spyre.testing": (
        ("testing/__init__.py", "testing/recorder.py", "testing/located.py"),
        ("record", "Recording", "InputError"),
    ),
    "torch_spyre.model_utils": (("model_utils.py",), None),
    "torch.spyre": (
        (
            "device/__init__.py",
            "device/devices.py",
            "device/streams.py",
            "device/random.py",
            "device/memory_use.py",
        ),
        None,
    ),
    "torch.spyre.memory": (
        ("memory.py",),
        (
            "memory_snapshot",
            "memory_stats_as_nested_dict",
            "memory_summary",
        ),
    ),
    "torch.spyre.profiler": (("profiler.py",), None),
    "torch_spyre.logging_config": (("logging_config.py",), None),
}

#: Characters of a signature that a line of the site shows.
WIDTH = 76

CONSTRAINT = re.compile(
    r"(?:///)?\s*- `?([A-Z][A-Z0-9_]*(?:-[A-Z0-9_]+)+-C[0-9]+)`?(?: \([^)]*\))?: (.*)"
)


def with_blank_lines(text: str) -> str:
    """Part each list from the paragraph before it, as Markdown proper wants it."""
    lines: list[str] = []
    is_code = False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        before = lines[-1] if lines else ""
        starts_item = re.match(r"(?:[-*]|\d+\.) ", line)
        in_list = before.startswith((" ", "- ", "* ")) or re.match(r"\d+\. ", before)
        if not is_code and starts_item and before.strip() and not in_list:
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def _tablegen(name: str, title: str) -> str:
    """A page of build/docs."""
    path = ROOT / "build" / "docs" / f"{name}.md"
    text = path.read_text(encoding="utf-8").replace("[TOC]\n", "")
    if title:
        # The title is above the passes, not beside them. Two dashes are usual.
        text = re.sub(r"^###(#?) ", r"##\1 ", text, flags=re.M)
        text = text.replace("## `-", "## `--")
    return (f"# {title}\n\n" if title else "") + text


def _linked(text: str, page: str) -> str:
    """The text of a file at the root, with links from where its page is."""
    pages = {file: name for name, file in ROOT_FILES.items()}

    def link(match: re.Match) -> str:
        label, target = match[1], match[2]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        file, hash_mark, anchor = target.partition("#")
        inside = pages.get(file, file.removeprefix("docs/"))
        if inside == file and not file.startswith("docs/"):
            return label
        relative = os.path.relpath(inside, os.path.dirname(page) or ".")
        return f"[{label}]({relative}{hash_mark}{anchor})"

    return re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", link, text)


def _root_file(page: str) -> str:
    return _linked((ROOT / ROOT_FILES[page]).read_text(encoding="utf-8"), page)


# --- Python API ----------------------------------------------------------------


def _prose(docstring: str) -> str:
    """A docstring as Markdown: literals, code after `::`, sections of arguments."""
    lines: list[str] = []
    section = code = False
    for line in docstring.split("\n"):
        if line.endswith("::"):
            line = line.removesuffix(":") if line != "::" else ""
            lines += [line, "```python"] if line.strip() else ["```python"]
            code = True
            continue
        if code and line and not line.startswith("    "):
            while lines and not lines[-1]:
                lines.pop()
            lines += ["```", ""]
            code = False
        if code:
            # Not the empty line between the colons and the code.
            if line or lines[-1] != "```python":
                lines.append(line.removeprefix("    "))
            continue
        if re.fullmatch(r"(Args|Raises|Returns):", line):
            lines += ["", line, ""]
            section = True
            continue
        entry = re.fullmatch(r"    (\w+): (.*)", line) if section else None
        text = f"- `{entry[1]}`: {entry[2]}" if entry else line
        text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
        lines.append(re.sub(r"``([^`]+)``", r"`\1`", text))
    if code:
        lines.append("```")
    return "\n".join(lines)


def _signature(node: ast.FunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    arguments = ast.unparse(node.args)
    arguments = re.sub(r"^(self|cls)(, |$)", "", arguments)
    line = f"{node.name}({arguments}){returns}"
    if len(line) <= WIDTH:
        return line
    # A comma inside of brackets belongs to a type or a default.
    lines, depth = "", 0
    for piece in re.split(r"(, |[\[\](){}])", arguments):
        depth += (piece in ("[", "(", "{")) - (piece in ("]", ")", "}"))
        lines += ",\n    " if piece == ", " and depth == 0 else piece
    return f"{node.name}(\n    {lines}\n){returns}"


def _member(node: ast.FunctionDef) -> str:
    """A method's signature, or a property's name and type."""
    if "property" in map(ast.unparse, node.decorator_list):
        return (
            f"{node.name}: {ast.unparse(node.returns)}" if node.returns else node.name
        )
    return _signature(node)


def _entry(node: ast.AST, level: int, name: str = "") -> list[str]:
    """Heading, signature and docstring of a function or class."""
    docstring = ast.get_docstring(node) or ""  # type: ignore[arg-type]
    mark = "#" * level
    if isinstance(node, ast.FunctionDef):
        head = ["```python", _signature(node), "```"]
        return [f"{mark} `{name or node.name}`", "", *head, "", _prose(docstring), ""]
    assert isinstance(node, ast.ClassDef)
    fields = [
        ast.unparse(item) for item in node.body if isinstance(item, ast.AnnAssign)
    ]
    lines = [f"{mark} `{node.name}`", "", _prose(docstring), ""]
    if fields:
        lines += ["```python", *fields, "```", ""]
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
            text = " ".join((ast.get_docstring(item) or "").split())
            text = re.sub(r"``([^`]+)``", r"`\1`", text)
            lines.append(f"- `{_member(item)}`: {text}")
    return [*lines, ""]


def _named(by_name: dict[str, Any], name: str) -> Any:
    """The function or class of a name, or the method of `Class.method`."""
    head, _, method = name.partition(".")
    node = by_name[head]
    if not method:
        return node
    return next(n for n in node.body if getattr(n, "name", "") == method)


def _python_api() -> str:
    lines = [
        "# Python API",
        "",
        "Made from the docstrings of `python/torch_spyre`. `torch.spyre` is the",
        "device's module, as `torch.cuda` is CUDA's.",
        "",
    ]
    for title, (files, names) in API.items():
        trees = [ast.parse((PACKAGE / f).read_text(encoding="utf-8")) for f in files]
        lines += [f"## {title}", "", _prose(ast.get_docstring(trees[0]) or ""), ""]
        nodes = [
            n
            for tree in trees
            for n in tree.body
            if isinstance(n, (ast.FunctionDef, ast.ClassDef))
        ]
        by_name = {node.name: node for node in nodes}
        if names is None:
            names = tuple(
                n for n in by_name if not n.startswith("_") and n != "register"
            )
        for name in names:
            lines += _entry(_named(by_name, name), 3, name)
    stub = (PACKAGE / "_C.pyi").read_text(encoding="utf-8")
    lines += [
        "## torch_spyre._C",
        "",
        "The extension, as `_C.pyi` describes it. `SpyreError`, `fallback_report`",
        "and `reset_fallback_report` are names of `torch_spyre` too.",
        "",
        "```python",
        stub.rstrip("\n"),
        "```",
        "",
    ]
    return "\n".join(lines)


# --- constraints -----------------------------------------------------------------


def constraints() -> dict[str, tuple[str, str]]:
    """Id of each numbered rule -> its text, and the TableGen file that states it."""
    rules: dict[str, tuple[str, str]] = {}
    for path in sorted((ROOT / "include").rglob("*.td")):
        current = ""
        for line in path.read_text(encoding="utf-8").split("\n"):
            start = CONSTRAINT.match(line)
            if start:
                current = start[1]
                rules[current] = (start[2], path.relative_to(ROOT).as_posix())
            elif (
                current
                and re.match(r"(?:///)?\s+[^\s\-#}/]", line)
                and "}]" not in line
            ):
                text, file = rules[current]
                rules[current] = (f"{text} {line.strip(' /')}", file)
            else:
                current = ""
    return rules


def _constraints() -> str:
    rules = constraints()
    lines = [
        "# Constraints",
        "",
        "Each rule of an operation, an attribute, a pass or a file has a number.",
        "TableGen states the rule. The code that checks it names the number in a",
        "comment, and so does a test that breaks the rule;",
        "`scripts/check_constraints.py` compares the three. Reports about bundles",
        "and SpyreCode name the number of the rule that is broken.",
        "",
    ]
    areas: dict[str, list[str]] = {}
    for rule in rules:
        areas.setdefault(rule.split("-")[0], []).append(rule)
    titles = {
        "KTDP": "KTIR (`ktdp`)",
        "SG": "Graphs (`spyre_graph`)",
        "SDSC": "SuperDSC bundles",
        "SDSCBUNDLE": "`bundle.mlir` (`sdscbundle`)",
        "SPYRECODE": "SpyreCode",
        "CHECK": "Test cases (`check`)",
    }

    def order(rule: str) -> tuple[str, int]:
        area, number = rule.rsplit("-C", 1)
        return area, int(number)

    for area, names in areas.items():
        lines += [f"## {titles.get(area, area)}", "", "| rule | |", "|---|---|"]
        for rule in sorted(names, key=order):
            text = rules[rule][0].replace("|", "\\|")
            lines.append(f"| `{rule}` | {text} |")
        lines.append("")
    return "\n".join(lines)


# --- device numbers --------------------------------------------------------------


def _device_numbers() -> str:
    numbers = json.loads(
        (ROOT / "docs" / "reference" / "device.json").read_text(encoding="utf-8")
    )
    lines = [
        "# Device numbers",
        "",
        "What the device model and the planners take the card to be. `published`",
        "numbers stand in public documents, `fitted` ones follow from published",
        "measurements ([how](../internals/timing.md#where-the-numbers-come-from)),",
        "`guessed` ones are our choice. `spyre-run --print-device-spec` prints this",
        "table as JSON; `spyre-run --device FILE` takes other numbers.",
        "[Changing the device](../contributing/device.md) says how to change one.",
        "",
        "Sources: numbers such as m04197 are rows of",
        "`benchmarks/card/measurements.json`, which names where each was published.",
        "Product page and product documentation are IBM's, of the card. The",
        "architecture, layouts, work-division and LX planning pages, the SpyreCode",
        "specification and the reference cost model are those of torch-spyre.",
        "[The specification](../spec/hardware.md) has what they say.",
        "",
        "| number | value | basis |",
        "|---|---|---|",
    ]
    for name, number in numbers.items():
        value = number["value"]
        shown = f"{value:g}" if isinstance(value, float) else f"{value}"
        lines.append(
            f"| `{name}` | {shown} {number['unit']} | {number['basis']}: "
            f"{number['source']} |"
        )
    return "\n".join(lines) + "\n"


def makers() -> dict[str, Callable[[], str]]:
    """Name of each page that is made -> how."""
    pages: dict[str, Callable[[], str]] = {
        "reference/python.md": _python_api,
        "reference/constraints.md": _constraints,
        "reference/device-numbers.md": _device_numbers,
    }
    for page, (name, title) in TABLEGEN.items():
        pages[page] = lambda name=name, title=title: _tablegen(name, title)
    for page in ROOT_FILES:
        pages[page] = lambda page=page: _root_file(page)
    return pages


def generated_pages() -> dict[str, str]:
    """Name -> text of the pages that are made."""
    return {page: make() for page, make in makers().items()}


if __name__ == "__main__":
    print("\n".join(makers()))
    sys.exit(0)
