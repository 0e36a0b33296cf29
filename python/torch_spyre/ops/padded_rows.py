# SPDX-License-Identifier: Apache-2.0
"""What ``nn.TransformerEncoder`` gets in place of a nested tensor.

With a padding mask, its fast path packs the rows that the mask leaves into a nested
tensor, and unpacks the result with zeros for the padding. The device has no nested
tensors of layout torch.strided: the padding stays where it is, no row attends to it,
and it becomes zeros in the end.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves, tree_map

aten = torch.ops.aten

#: Operators that take a mask of keys, whose ``mask_type`` is 1.
_MASKED = (
    aten._native_multi_head_attention.default,
    aten._transformer_encoder_layer_fwd.default,
)
#: Attention that is taken apart, or without such a mask.
_ATTENTION = ("_scaled_dot_product", "_softmax", "_safe_softmax", "baddbmm", "bmm")


class PaddedRows(Tensor):
    """``[B, L, E]``, of which rows are padding where ``[B, L]`` is true.

    Operators work on all rows, but no row attends to the padding.
    """

    _rows: Tensor
    _padding: Tensor

    # A fast path is none for tensors with functions of their own.
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls: type[PaddedRows], rows: Tensor, padding: Tensor) -> PaddedRows:
        """A tensor of these rows, without a copy."""
        self = Tensor._make_wrapper_subclass(
            cls,
            rows.shape,
            strides=rows.stride(),
            storage_offset=rows.storage_offset(),
            dtype=rows.dtype,
            device=rows.device,
        )
        self._rows, self._padding = rows, padding
        return self

    def __repr__(self) -> str:
        return f"PaddedRows({self._rows!r}, padding={self._padding!r})"

    @classmethod
    def __torch_dispatch__(
        cls,
        func: OpOverload,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        given = [v for v in tree_leaves((args, kwargs)) if isinstance(v, PaddedRows)]
        padding = given[0]._padding
        args, kwargs = tree_map(_rows_of, (args, kwargs or {}))
        if func is aten.to_padded_tensor.default:
            return _fill_padding(args[0], padding, *args[1:], **kwargs)
        if func in _MASKED:
            args, kwargs = _with_mask(func, args, kwargs, padding)
        elif func._schema.name.split("::")[1].startswith(_ATTENTION):
            raise NotImplementedError(
                f"{func} of rows with padding: the spyre device has no nested tensors "
                "of layout torch.strided, which TransformerEncoder makes: pass "
                "enable_nested_tensor=False"
            )

        def wrap(value: Any) -> Any:
            if not isinstance(value, Tensor) or value.device.type != "spyre":
                return value
            same = [v for v in given if v._rows is value]
            return same[0] if same else cls(value, padding)

        return tree_map(wrap, func(*args, **kwargs))


def _rows_of(value: Any) -> Any:
    return value._rows if isinstance(value, PaddedRows) else value


def _with_mask(
    func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], padding: Tensor
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call without a mask, with one."""
    names = [parameter.name for parameter in func._schema.arguments]
    named = dict(zip(names, args, strict=False)) | kwargs
    if named.get("mask") is not None:
        raise NotImplementedError(f"{func} of rows with padding, and another mask")
    return (), named | {"mask": padding, "mask_type": 1}


def _fill_padding(
    rows: Tensor, padding: Tensor, value: float, output_size: Any = None
) -> Tensor:
    """``aten.to_padded_tensor``."""
    size = list(rows.shape if output_size is None else output_size)
    if size != list(rows.shape):
        raise NotImplementedError(
            f"rows of sizes {list(rows.shape)} padded to sizes {size}"
        )
    return rows.masked_fill(padding[:, :, None], value)


def refuse_strided(*args: Any, **kwargs: Any) -> Tensor:
    """Operators on nested tensors of layout torch.strided, and such that make them."""
    raise NotImplementedError(
        "the spyre device has no nested tensors of layout torch.strided: make them "
        "with layout=torch.jagged"
    )


def _check_mask(rows: Tensor, mask: Tensor) -> None:
    if mask.dtype != torch.bool:
        raise RuntimeError(
            f"Expected mask to be of ScalarType Bool, but got {mask.dtype}"
        )
    if mask.dim() != 2 or rows.dim() != 3 or mask.shape != rows.shape[:2]:
        raise RuntimeError(
            f"Expected a mask [N, L] of a tensor [N, L, D], but got {list(mask.shape)} "
            f"and {list(rows.shape)}"
        )


def is_left_aligned(rows: Tensor, mask: Tensor) -> bool:
    """``aten._nested_tensor_from_mask_left_aligned``: whether padding comes last."""
    _check_mask(rows, mask)
    return not bool((mask[:, 1:] & ~mask[:, :-1]).any())


def from_mask(rows: Tensor, mask: Tensor, mask_check: bool = True) -> Tensor:
    """``aten._nested_tensor_from_mask``: rows where the mask is true."""
    _check_mask(rows, mask)
    if mask_check and not is_left_aligned(rows, mask):
        raise RuntimeError("Mask must be left-aligned without gaps")
    return PaddedRows(rows, mask.logical_not())
