# SPDX-License-Identifier: Apache-2.0
"""Sizes as SuperDSC has them: all multiples of a step up to a largest one.

``torch._dynamo.mark_dynamic(tensor, dim, min=, max=)`` declares them. The rules are
those of docs/spec/symbolic-shapes.md, "torch-spyre's bucket rules": the step is the
least size, and divides the largest.
"""

from __future__ import annotations

import logging
import weakref
from dataclasses import dataclass

import sympy
from torch.fx.experimental.symbolic_shapes import ShapeEnv, StrictMinMaxConstraint

from torch_spyre import _C

_log = logging.getLogger("spyre.inductor")

#: Multiples of a step up to the largest size.
_MAX_SIZES = 32
#: The least step, where none is declared.
_LEAST_STEP = 4
#: The least size that PyTorch takes where none is declared.
_TORCH_LEAST = 2

_declared: weakref.WeakKeyDictionary[ShapeEnv, dict[sympy.Symbol, DeclaredSizes]] = (
    weakref.WeakKeyDictionary()
)


@dataclass(frozen=True)
class DeclaredSizes:
    """The multiples of a step up to a largest size."""

    #: The first dimension that has them, as Dynamo names it: "dimension 0 of L['x']".
    place: str
    step: int
    most: int

    def check(self, size: int) -> None:
        """Raises UnsupportedOp for a size that is none of these."""
        if 0 < size <= self.most and size % self.step == 0:
            return
        below = min(size, self.most) // self.step * self.step
        near = [below, below + self.step] if below < self.most else [below]
        raise _C.UnsupportedOp(
            f"{self.place} is {size}, but SuperDSC has a program for the multiples of "
            f"{self.step} up to {self.most}, as mark_dynamic says; the nearest: "
            + ", ".join(str(n) for n in near if n > 0)
        )


def step_of(place: str, least: int, most: int) -> int:
    """The step of sizes that are declared to be from ``least`` to ``most``.

    Raises UnsupportedOp for a range that SuperDSC does not have.
    """
    if least > _TORCH_LEAST or least == 1:
        if most % least:
            raise _C.UnsupportedOp(
                f"{place} is from {least} to {most}: for SuperDSC the least size is "
                "the step between sizes, and must divide max"
            )
        if most // least > _MAX_SIZES:
            raise _C.UnsupportedOp(
                f"{place} is from {least} to {most}: for SuperDSC the least size is "
                f"the step between sizes; it produces {most // least} buckets, exceeds "
                f"max_buckets {_MAX_SIZES}"
            )
        return least
    for step in range(_LEAST_STEP, most + 1):
        if most % step == 0 and most // step <= _MAX_SIZES:
            _log.warning("%s: defaulting granularity to %d", place, step)
            return step
    raise _C.UnsupportedOp(
        f"{place} is at most {most}: for SuperDSC there must be a step of at least "
        f"{_LEAST_STEP} between sizes"
    )


def declared_sizes(env: ShapeEnv) -> dict[sympy.Symbol, DeclaredSizes]:
    """The sizes of the symbols that have a declared largest one.

    Raises UnsupportedOp for ranges that SuperDSC does not have, and for two ranges of
    one symbol.
    """
    # Dynamo forgets what was declared before the gradients' graph is compiled.
    if env in _declared:
        return _declared[env]
    declared: dict[sympy.Symbol, DeclaredSizes] = {}
    for tracked in env.tracked_fakes or ():
        constraints = getattr(tracked.symbolic_context, "constraint_sizes", None)
        for dim, constraint in enumerate(constraints or ()):
            if not isinstance(constraint, StrictMinMaxConstraint):
                continue
            least, most = constraint.vr.lower, constraint.vr.upper
            symbol = getattr(tracked.fake.shape[dim], "node", None)
            if not most.is_Integer or not isinstance(
                getattr(symbol, "expr", None), sympy.Symbol
            ):
                continue
            place = f"dimension {dim} of {tracked.source.name}"
            step = step_of(
                place, int(least) if least.is_Integer else _TORCH_LEAST, int(most)
            )
            own = DeclaredSizes(place, step, int(most))
            first = declared.setdefault(symbol.expr, own)
            if (first.step, first.most) != (own.step, own.most):
                raise _C.UnsupportedOp(
                    f"{first.place} and {own.place} are one size, but declared as "
                    f"multiples of {first.step} up to {first.most} and of {own.step} "
                    f"up to {own.most}"
                )
    _declared[env] = declared
    return declared
