# SPDX-License-Identifier: Apache-2.0
"""Counts of what the compiler refused: operators, and plans that it made itself."""

from __future__ import annotations

import logging
from collections import Counter

from torch_spyre import _C

#: Stands for the operator where the plan of a whole part was refused.
PLAN = "spyre-verify-plan"

_log = logging.getLogger("spyre.inductor")
_refusals: Counter[tuple[str, str]] = Counter()
#: The faults of plans that have been warned of, without source lines.
_logged: set[str] = set()


def refusals() -> dict[tuple[str, str], int]:
    """(operator, reason) -> how often the compiler refused the operator for it.

    A plan that the compiler made, and then found wrong, counts as the operator PLAN.
    """
    return dict(_refusals)


def count(operator: str, error: str) -> str:
    """Counts a refusal; its reason, in one line."""
    lines = error.split("\n")
    # "compiling the graph failed:" is followed by what failed.
    reason = lines[1] if lines[0].endswith(":") and len(lines) > 1 else lines[0]
    _refusals[operator, reason] += 1
    return reason


def count_plan(error: _C.RefusedPlan) -> None:
    """Counts a plan that the compiler refused, and says so the first time.

    Other refusals are of what the compiler does not support. This one is a defect,
    which nobody would see: its operators run in smaller programs, or one by one.
    """
    reason = count(PLAN, str(error))
    # The same operator by itself has no line of the user's.
    _, _, fault = reason.partition(": error: ")
    if fault not in _logged:
        _logged.add(fault)
        _log.warning(
            "the compiler made a wrong plan, which is not run: %s. This is a defect of "
            "the compiler; please report this message, with what SPYRE_DUMP_DIR=folder "
            "writes",
            reason,
        )
