# SPDX-License-Identifier: Apache-2.0
"""Indexing by masks, and by tensors of the CPU: ``x[mask]`` and ``x[mask] = values``.

The ATen table knows indices that are numbers on the device. A mask that selects what is
replaced by one number, or element by element, needs none; any other one becomes the
coordinates where it is set, which are counted on the device and read by the host.
Indices on the CPU are copied to the device, as on other accelerators.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_spyre import _C

aten = torch.ops.aten

Indices = Sequence["Tensor | None"]


def _is_mask(index: Tensor | None) -> bool:
    return index is not None and index.dtype in (torch.bool, torch.uint8)


def _has_mask(indices: Indices) -> bool:
    return any(_is_mask(index) for index in indices)


def _has_host_numbers(x: Tensor, indices: Indices) -> bool:
    """Whether an index that is no mask is on the CPU, but ``x`` is not."""
    others = [i for i in indices if i is not None and not _is_mask(i)]
    return not x.is_cpu and any(i.is_cpu for i in others)


def _on_device(x: Tensor, indices: Indices) -> list[Tensor | None]:
    return [None if i is None else i.to(x.device) for i in indices]


def _as_numbers(x: Tensor, indices: Indices) -> list[Tensor | None]:
    """The indices with the coordinates where masks are set in place of these."""
    numbers: list[Tensor | None] = []
    for index in indices:
        if index is None or not _is_mask(index):
            numbers.append(index)
            continue
        first = len(numbers)
        size = x.shape[first : first + index.dim()]
        if index.shape != size:
            raise IndexError(
                f"The shape of the mask {list(index.shape)} at index {first} does not "
                f"match the shape of the indexed tensor {list(x.shape)} there"
            )
        coordinates = index.to(x.device).nonzero()
        if index.dim() == 0:
            raise _C.UnsupportedOp(
                "a mask without dimensions: programs take elements by masks that have "
                "dimensions"
            )
        numbers.extend(coordinates.unbind(1))
    return numbers


def _to_cpu(value: Tensor | None) -> Tensor | None:
    return None if value is None else value.cpu()


def index(x: Tensor, indices: Indices) -> Tensor:
    """``aten.index.Tensor`` of a call that the ATen table refuses."""
    if _has_host_numbers(x, indices):
        return aten.index.Tensor(x, _on_device(x, indices))
    if _has_mask(indices):
        first = indices[0]
        if len(indices) == 1 and first is not None and first.shape == x.shape:
            return x.masked_select(first.to(device=x.device, dtype=torch.bool))
        if all(i is None or i.dim() > 0 for i in indices):
            return aten.index.Tensor(x, _as_numbers(x, indices))
    _C.record_fallback("aten::index.Tensor")
    return aten.index.Tensor(x.cpu(), [_to_cpu(i) for i in indices]).to(x.device)


def _replace(x: Tensor, mask: Tensor, values: Tensor) -> Tensor | None:
    """``x`` with one number, or an element each, where a mask is set; else None."""
    if values.numel() == 1:
        mask = mask.reshape(*mask.shape, *[1] * (x.dim() - mask.dim()))
        return torch.where(mask, values.reshape(()).to(x.device, x.dtype), x)
    if mask.shape != x.shape or values.dim() != 1:
        return None
    count = int(mask.sum().item())
    if values.shape[0] != count:
        raise IndexError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be "
            f"broadcast to indexing result of shape [{count}]"
        )
    return x.masked_scatter(mask, values.to(x.dtype))


def index_put(
    x: Tensor, indices: Indices, values: Tensor, accumulate: bool = False
) -> Tensor:
    """``aten.index_put`` of a call that the ATen table refuses."""
    if _has_host_numbers(x, indices):
        return aten.index_put.default(x, _on_device(x, indices), values, accumulate)
    if _has_mask(indices):
        mask = indices[0] if len(indices) == 1 and not accumulate else None
        if mask is not None and mask.shape == x.shape[: mask.dim()]:
            replaced = _replace(x, mask.to(device=x.device, dtype=torch.bool), values)
            if replaced is not None:
                return replaced
        if all(i is None or i.dim() > 0 for i in indices):
            numbers = _as_numbers(x, indices)
            return aten.index_put.default(x, numbers, values, accumulate)
    _C.record_fallback("aten::index_put")
    host = [_to_cpu(i) for i in indices]
    return aten.index_put.default(x.cpu(), host, values.cpu(), accumulate).to(x.device)


def index_put_(
    x: Tensor, indices: Indices, values: Tensor, accumulate: bool = False
) -> Tensor:
    """``aten.index_put_``, the same."""
    return x.copy_(index_put(x, indices, values, accumulate))


def index_put_impl_(
    x: Tensor,
    indices: Indices,
    values: Tensor,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Tensor:
    """``aten._index_put_impl_``, the same."""
    return index_put_(x, indices, values, accumulate)
