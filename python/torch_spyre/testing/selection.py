# SPDX-License-Identifier: Apache-2.0
"""Which cases run: models, names, expressions of marks, repeats."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from torch_spyre.testing.descriptors import Case

#: What the reference's pytest_models.ini leaves out.
DEFAULT_MARKS = "not bf16operation"


def matches(expression: str, marks: Sequence[str]) -> bool:
    """Whether marks satisfy an expression of names, ``not``, ``and``, ``or``.

    Raises ValueError for another expression; an empty one takes everything.
    """
    if not expression.strip():
        return True

    def walk(node: ast.expr) -> bool:
        match node:
            case ast.BoolOp(op=ast.And()):
                return all([walk(v) for v in node.values])
            case ast.BoolOp(op=ast.Or()):
                return any([walk(v) for v in node.values])
            case ast.UnaryOp(op=ast.Not()):
                return not walk(node.operand)
            case ast.Name():
                return node.id in marks
        raise ValueError(
            f"-m {expression!r}: expected names of marks with not, and, or; "
            f"found {ast.unparse(node)}"
        )

    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(
            f"-m {expression!r}: no expression of marks, such as 'not bf16operation'"
        ) from error
    return walk(tree)


def marks_of(case: Case) -> list[str]:
    """The marks of a case, that of its model and its tags included."""
    return [*case.marks, *case.tags, f"model_{case.model}"]


def is_of_model(case: Case, model: str) -> bool:
    """Whether ``--model`` means the case: by model, file stem or tag."""
    stem = case.file.replace("\\", "/").rpartition("/")[2].rpartition(".")[0]
    return model in (case.model, stem, *case.tags)


def select(
    cases: Sequence[Case],
    models: Sequence[str],
    names: Sequence[str],
    expression: str,
    dedupe: bool,
) -> tuple[list[Case], list[tuple[Case, str]]]:
    """The cases that run, and the others with the reason."""
    chosen: list[Case] = []
    skipped: list[tuple[Case, str]] = []
    seen: dict[str, Case] = {}
    for case in cases:
        if models and not any(is_of_model(case, m) for m in models):
            skipped.append((case, "of another model"))
        elif names and not any(n in case.name for n in names):
            skipped.append((case, "another name"))
        elif not matches(expression, marks_of(case)):
            skipped.append((case, f"its marks: -m {expression!r}"))
        elif dedupe and case.key in seen:
            first = seen[case.key]
            skipped.append((case, f"repeats {first.model}::{first.name}"))
        else:
            seen[case.key] = case
            chosen.append(case)
    return chosen, skipped
