# SPDX-License-Identifier: Apache-2.0
"""The tables in docs/reference that are made from tables in the code.

Writes, between two comments of a page, what a .def file of include/, or the module of
options in Python, says:

  <!-- made by scripts/docs_tables.py: NAME -->
  <!-- end of NAME -->

With --check it writes nothing; it prints the pages that are out of date, and exits
with 1 if there are any.
"""

import argparse
import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include" / "Spyre"


def entries(path: Path) -> list[tuple[str, list[Any]]]:
    """(macro, arguments) of each entry of a .def file, in order.

    An argument that is a literal is its value, another its text.
    """
    text = re.sub(r"^(?://|#).*$", "", path.read_text(encoding="utf-8"), flags=re.M)
    literal = r'"(?:\\.|[^"\\])*"'
    entry = re.compile(rf"^SPYRE_(\w+)\(((?:{literal}|[^\")])*)\)", re.M)
    return [(m[1], [_value(a) for a in _split(m[2])]) for m in entry.finditer(text)]


def _split(arguments: str) -> list[str]:
    parts = re.findall(r'(?:"(?:\\.|[^"\\])*"|[^",])+', arguments)
    return [part.strip() for part in parts]


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    try:
        # Literals beside each other are one, in Python too.
        return ast.literal_eval(f"({text})")
    except (ValueError, SyntaxError):
        return text


def variables() -> list[tuple[str, str, str, str]]:
    """(group, name, kind, help) of each environment variable."""
    group, rows = "", []
    for kind, arguments in entries(INCLUDE / "Support" / "Environment.def"):
        if kind == "GROUP":
            group = arguments[0]
        else:
            rows.append((group, arguments[1], kind.lower(), arguments[-1]))
    return rows


def _environment() -> str:
    lines: list[str] = []
    last = ""
    for group, name, _, text in variables():
        if group != last:
            lines += ["", f"## {group}", "", "| variable | |", "|---|---|"]
        last = group
        lines.append(f"| `{name}` | {text} |")
    return "\n".join(lines).strip("\n")


def options() -> list[tuple[str, Any, str]]:
    """(name, default, help) of each option of torch.compile."""
    table = entries(INCLUDE / "Compiler" / "CompileOptions.def")
    return [
        (arguments[1], "" if macro.endswith("TEXT") else arguments[2], arguments[-1])
        for macro, arguments in table
    ]


def _options() -> str:
    lines = ["| option | default | |", "|---|---|---|"]
    lines += [f"| `{name}` | {default} | {text} |" for name, default, text in options()]
    return "\n".join(lines)


PYTHON = ROOT / "python" / "torch_spyre"


def _module(path: Path) -> dict[str, Any]:
    """Names that a module gives literal values, and what functions of it return."""
    found: dict[str, Any] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name, value = node.target.id, node.value
        elif isinstance(node, ast.FunctionDef) and isinstance(
            node.body[-1], ast.Return
        ):
            name, value = node.name, node.body[-1].value
        else:
            continue
        try:
            found[name] = ast.literal_eval(value)  # type: ignore[arg-type]
        except ValueError:
            found[name] = None
    return found


def configuration() -> list[tuple[str, list[str], Any, str]]:
    """(name, variables, default, effect) of each option of torch-spyre."""
    module = _module(PYTHON / "_inductor" / "config.py")
    effects = _module(PYTHON / "frontend" / "options.py")["EFFECTS"]
    variables = module.pop("_variables")
    names = [
        n for n, value in module.items() if isinstance(value, (bool, int, float, str))
    ]
    return [
        (name, list(variables.get(name, ())), module[name], effects.get(name, ""))
        for name in names
    ]


def _configuration() -> str:
    lines = ["| name | default | variable | sets |", "|---|---|---|---|"]
    for name, variables, default, effect in configuration():
        shown = f"`{default!r}`".replace("'", '"')
        listed = ", ".join(f"`{v}`" for v in variables)
        lines.append(f"| `{name}` | {shown} | {listed} | {effect} |")
    return "\n".join(lines)


def _variables_of_options() -> str:
    lines = ["| variable | sets |", "|---|---|"]
    rows = [
        (variable, name)
        for name, variables, _, _ in configuration()
        for variable in variables
    ]
    owners: dict[str, list[str]] = {}
    for variable, name in rows:
        owners.setdefault(variable, []).append(name)
    for variable, names in sorted(owners.items()):
        lines.append(f"| `{variable}` | {', '.join(f'`{n}`' for n in names)} |")
    return "\n".join(lines)


#: Page -> name of the table -> how it is made.
TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "reference/environment.md": {
        "environment variables": _environment,
        "variables of options": _variables_of_options,
    },
    "reference/options.md": {
        "options of torch.compile": _options,
        "options of torch-spyre": _configuration,
    },
}


def filled(page: str) -> str:
    """The text of a page with its tables as the code has them now.

    Raises ValueError if the page has no place for one.
    """
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for name, make in TABLES[page].items():
        begin = f"<!-- made by scripts/docs_tables.py: {name} -->\n"
        end = f"<!-- end of {name} -->\n"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"docs/{page} has no place for the table '{name}'")
        text = f"{before}{begin}\n{make()}\n\n{end}{after}"
    return text


def main() -> int:
    """Write the tables, or check that they are written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    outdated = []
    for page in TABLES:
        path = ROOT / "docs" / page
        text = filled(page)
        if text == path.read_text(encoding="utf-8"):
            continue
        outdated.append(page)
        if not arguments.check:
            path.write_text(text, encoding="utf-8")
    for page in outdated:
        print(f"docs/{page}: {'out of date' if arguments.check else 'written'}")
    return 1 if outdated and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
