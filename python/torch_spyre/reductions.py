# SPDX-License-Identifier: Apache-2.0
"""The values of tensors that ranks exchange, and their reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from torch_spyre import _C

#: Elements that are reduced at once: what they take stays in the processor's cache.
BLOCK = 1 << 16
#: Types whose elements travel as the device stores them.
_STORED = (torch.float16, torch.bfloat16, torch.float32)


def staged(dtype: torch.dtype) -> torch.dtype:
    """What values of a dtype travel as: fp16 and bf16 hold less than DL16."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def buffer(tensor: Tensor) -> Tensor:
    """Room on the host for the values of a tensor as they travel."""
    return torch.empty(tensor.shape, dtype=staged(tensor.dtype))


def on_host(tensor: Tensor) -> Tensor:
    """The values of a tensor as they travel."""
    return buffer(tensor).copy_(tensor.detach())


_INTEGER: dict[Any, Callable[[Tensor, Tensor], Tensor]] = {
    dist.ReduceOp.BAND: torch.bitwise_and,
    dist.ReduceOp.BOR: torch.bitwise_or,
    dist.ReduceOp.BXOR: torch.bitwise_xor,
}
_ANY: dict[Any, Callable[[Tensor, Tensor], Tensor]] = {
    dist.ReduceOp.SUM: torch.add,
    dist.ReduceOp.AVG: torch.add,
    dist.ReduceOp.PREMUL_SUM: torch.add,
    dist.ReduceOp.PRODUCT: torch.mul,
    dist.ReduceOp.MIN: torch.minimum,
    dist.ReduceOp.MAX: torch.maximum,
}


def _kind(op: Any) -> Any:
    return getattr(op, "op", op)


def _factor(op: Any) -> Any:
    """What PREMUL_SUM multiplies by; read from the operator's pickled state."""
    _, factor = op.__getstate__()
    return factor.cpu() if isinstance(factor, Tensor) else factor


def reduce(parts: list[Tensor], op: Any, out: Tensor | None = None) -> Tensor:
    """Reduces the ranks' values in their order; floating ones in fp32.

    The result of several values may be in ``out``, if that has its type.
    """
    kind = _kind(op)
    dtype = parts[0].dtype
    function = _ANY.get(kind) or _INTEGER.get(kind)
    if function is None or (kind in _INTEGER and dtype.is_floating_point):
        raise ValueError(f"spyreccl cannot reduce {dtype} by {op}")
    if dtype == torch.bool and kind in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT):
        function = torch.logical_or if kind == dist.ReduceOp.SUM else torch.logical_and
    wide = [p.float() if dtype.is_floating_point else p for p in parts]
    if kind == dist.ReduceOp.PREMUL_SUM:
        factor = _factor(op)
        wide = [p * factor for p in wide]
    result = wide[0]
    for part in wide[1:-1]:
        result = function(result, part)
    if len(wide) > 1:
        is_same = out is not None and out.dtype == result.dtype
        result = function(result, wide[-1], out=out if is_same else None)
    if kind == dist.ReduceOp.AVG:
        if not dtype.is_floating_point:
            return result.div(len(parts), rounding_mode="trunc").to(dtype)
        result = result / len(parts)
    return result


def kind_of(tensor: Tensor) -> tuple[int, str] | None:
    """What other ranks must have, too, for stored elements to be exchanged.

    None for a tensor whose elements do not follow each other on the device, which are
    no floats, or which is on the host.
    """
    is_stored = tensor.dtype in _STORED and tensor.device.type == "spyre"
    return _C.element_run(tensor) if is_stored else None


class Elements:
    """A tensor as a row of elements: those that the device stores, or a host copy's.

    ``values`` are the elements, on the host, and ``device`` is the tensor's card.
    """

    def __init__(
        self,
        tensor: Tensor,
        *,
        is_stored: bool,
        is_read: bool = False,
        is_written: bool = False,
    ) -> None:
        """Elements that are not read first are all written before ``finish()``."""
        self._tensor = tensor
        self._is_stored = is_stored
        self.device = tensor.device.index or 0
        if is_stored:
            self.values = _C.stored_elements(tensor, is_written)
        else:
            copy = on_host(tensor) if is_read else buffer(tensor)
            self.values = copy.view(-1)
        #: Whether the elements are codes of the device's 16-bit floats.
        self._is_coded = is_stored and self.values.dtype == torch.int16

    def finish(self) -> None:
        """Puts what was written into the tensor."""
        if not self._is_stored:
            self._tensor.copy_(self.values.view(self._tensor.shape))

    def reduce(self, parts: Sequence[Tensor], op: Any, result: Tensor) -> None:
        """Reduces the ranks' elements, in their order, into ``result``.

        ``result`` may be one of the parts.
        """
        if self._is_coded and _kind(op) == dist.ReduceOp.SUM:
            _C.sum_elements(list(parts), result)
            return
        for first in range(0, result.numel(), BLOCK):
            pieces = [part[first : first + BLOCK] for part in parts]
            into = result[first : first + BLOCK]
            if not self._is_coded:
                into.copy_(reduce(pieces, op, into))
                continue
            values = []
            for piece in pieces:
                values.append(torch.empty(piece.shape))
                _C.decode_elements(piece, values[-1])
            _C.encode_elements(reduce(values, op), into)
