# SPDX-License-Identifier: Apache-2.0
"""What a user's lowering is called with (``torch_spyre.extend.lowering``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._prims_common import make_contiguous_strides_for

from torch_spyre import _C
from torch_spyre.errors import ExtensionError
from torch_spyre.extensions import Extension

Kind = tuple[torch.dtype, tuple[int, ...]]


@dataclass(frozen=True)
class GraphValue:
    """A tensor of the graph that is being made."""

    id: int
    dtype: torch.dtype
    #: Elements along each dimension.
    shape: tuple[int, ...]


class LoweringContext:
    """Adds operations to the graph, at the source line of the call that is lowered."""

    def __init__(
        self,
        lowering: Extension,
        builder: _C.GraphBuilder,
        kinds: dict[int, Kind],
        location: list[tuple[str, int, str]],
        hints: list[Any],
    ) -> None:
        self._lowering = lowering
        self._builder = builder
        self._kinds = kinds
        self._location = location
        self._hints = hints
        self._made: set[int] = set()

    def op(
        self,
        name: str,
        *operands: Any,
        dtype: torch.dtype | None = None,
        shape: Sequence[int] | None = None,
        attributes: str = "",
        **keywords: Any,
    ) -> GraphValue:
        """Adds an operation with one result, and returns that.

        ``name`` is a device operation of the dialect, ``spyre_graph.exp``, whose
        operands are values and numbers and whose other ``attributes`` are written as in
        its textual form, ``{dims = array<i64: 1>}``; or an overload of the compiler's
        ATen table, ``aten.mm.default``, with its arguments. The result has the dtype of
        the first operand that is a value, and the shape that all of them broadcast to,
        unless told otherwise. Raises ExtensionError if the compiler refuses it.
        """
        values = [o for o in operands if isinstance(o, GraphValue)]
        if not values and (dtype is None or shape is None):
            raise ExtensionError(
                f"{self._lowering}: {name} has no operand that is a value, so that it "
                "needs dtype= and shape="
            )
        dtype = dtype or values[0].dtype
        try:
            if shape is None:
                shape = torch.broadcast_shapes(*[v.shape for v in values])
            sizes = [int(s) for s in shape]
            if attributes:
                keywords["attributes"] = attributes
            (made,) = self._builder.op(
                name,
                [self._argument(o) for o in operands],
                {k: self._argument(v) for k, v in keywords.items()},
                [(dtype, sizes, list(make_contiguous_strides_for(sizes)))],
                self._location,
                self._hints,
            )
        except (RuntimeError, TypeError, ValueError) as error:
            raise ExtensionError(f"{self._lowering}: {name}: {error}") from error
        self._kinds[made] = (dtype, tuple(sizes))
        self._made.add(made)
        return GraphValue(made, dtype, tuple(sizes))

    def _argument(self, value: Any) -> Any:
        if isinstance(value, GraphValue):
            return _C.ValueId(value.id)
        if isinstance(value, (list, tuple)):
            return [self._argument(v) for v in value]
        if isinstance(value, torch.dtype):
            return str(value).removeprefix("torch.")
        return value

    def _value(self, argument: Any) -> Any:
        if isinstance(argument, _C.ValueId):
            return GraphValue(argument.id, *self._kinds[argument.id])
        if isinstance(argument, list):
            return [self._value(a) for a in argument]
        return argument

    def lower(
        self, args: list[Any], kwargs: dict[str, Any], specs: Sequence[Any]
    ) -> list[int]:
        """Calls the lowering; values of the results, whose (dtype, sizes, strides) are
        ``specs``. Raises ``_C.UnsupportedOp`` if it returns NotImplemented.
        """
        named = {k: self._value(v) for k, v in kwargs.items()}
        made = self._lowering.call(self, *[self._value(a) for a in args], **named)
        if made is NotImplemented:
            raise _C.UnsupportedOp(
                f"{self._lowering} declines these arguments: it returned NotImplemented"
            )
        results = list(made) if isinstance(made, (tuple, list)) else [made]
        if len(results) != len(specs):
            raise ExtensionError(
                f"{self._lowering} returned {len(results)} values: expected "
                f"{len(specs)}"
            )
        return [
            self._finish(number, result, spec)
            for number, (result, spec) in enumerate(zip(results, specs, strict=True))
        ]

    def _finish(self, number: int, result: Any, spec: Any) -> int:
        if spec is None:
            return -1
        if not isinstance(result, GraphValue):
            raise ExtensionError(
                f"{self._lowering} returned a {type(result).__name__} as result "
                f"{number}: expected what the context's op() returns"
            )
        dtype, sizes, strides = spec
        if (result.dtype, result.shape) != (dtype, tuple(sizes)):
            raise ExtensionError(
                f"{self._lowering} returned {result.dtype} of shape "
                f"{list(result.shape)} as result {number}: expected {dtype} of shape "
                f"{list(sizes)}"
            )
        if result.id in self._made and tuple(strides) == make_contiguous_strides_for(
            sizes
        ):
            return result.id
        # An argument itself would share its storage.
        name, operand = "aten.clone.default", [_C.ValueId(result.id)]
        return self._builder.op(name, operand, {}, [spec], self._location)[0]
