# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's products of quantized tensors give on spyre, and their rules.

PyTorch's own functions for fake tensors hold the rules of other devices. These say the
shape and dtype of a result, and refuse what the card has no operation for
(docs/spec/drop-in.md, "Small dtypes").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from torch_spyre.errors import Unsupported

aten = torch.ops.aten

FP8 = torch.float8_e4m3fn
_WIDE = (torch.float16, torch.bfloat16, torch.float32)


def _names(dtypes: Sequence[torch.dtype]) -> str:
    return ", ".join(str(dtype) for dtype in dtypes)


def _check_wide(name: str, what: str, tensor: Tensor) -> None:
    if tensor.dtype not in _WIDE:
        raise Unsupported(
            f"{name} with {what} of {tensor.dtype}: expected {_names(_WIDE)}"
        )


def _check_matrices(name: str, x: Tensor, y: Tensor) -> None:
    if x.dim() != 2 or y.dim() != 2 or x.shape[1] != y.shape[0]:
        raise Unsupported(
            f"{name} of shapes {list(x.shape)} and {list(y.shape)}: expected matrices "
            "that match"
        )


def _check_scale(
    name: str, what: str, scale: Tensor, shapes: dict[str, list[Any]]
) -> None:
    """``shapes``: what a shape beside one number is called."""
    _check_wide(name, what, scale)
    if scale.numel() == 1 or list(scale.shape) in shapes.values():
        return
    others = "".join(f", or one per {per}: {shape}" for per, shape in shapes.items())
    raise Unsupported(
        f"{name} with {what} of shape {list(scale.shape)}: expected one number{others}"
    )


def scaled_mm(
    x: Tensor,
    y: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """The result of ``aten._scaled_mm``: [M, K] x [K, N] or [B, M, K] x [(B,) K, N].

    Scales are one number each, or one per row of ``x`` ([(B,) M, 1]) and one per column
    of ``y`` ([1, N]). ``use_fast_accum`` changes nothing: sums are fp32.
    """
    name = "_scaled_mm"
    if (x.dtype, y.dtype) != (FP8, FP8):
        raise Unsupported(
            f"{name} of {x.dtype} and {y.dtype}: both factors must be {FP8}; "
            "torch.matmul multiplies float16, bfloat16 and float32"
        )
    if (x.dim(), y.dim()) not in ((2, 2), (3, 2), (3, 3)):
        raise Unsupported(
            f"{name} of {x.dim()} and {y.dim()} dimensions: expected matrices, or "
            "a batch of them and one or as many"
        )
    fits = x.shape[-1] == y.shape[-2] and (y.dim() == 2 or x.shape[0] == y.shape[0])
    if not fits:
        raise Unsupported(
            f"{name} of shapes {list(x.shape)} and {list(y.shape)}, which do not match"
        )
    rows, columns = list(x.shape[:-1]), y.shape[-1]
    _check_scale(name, "scale_a", scale_a, {"row": [*rows, 1]})
    of_columns = {"column": [1, columns]}
    if y.dim() == 3:
        of_columns["column of each matrix"] = [x.shape[0], 1, columns]
    _check_scale(name, "scale_b", scale_b, of_columns)
    if bias is not None:
        _check_wide(name, "bias", bias)
        if list(bias.shape) != [columns]:
            raise Unsupported(
                f"{name} with bias of shape {list(bias.shape)}: expected {[columns]}"
            )
    if scale_result is not None:
        _check_scale(name, "scale_result", scale_result, {})
    dtype = x.dtype if out_dtype is None else out_dtype
    if dtype not in (*_WIDE, FP8):
        raise Unsupported(
            f"{name} with out_dtype={dtype}: expected {_names((*_WIDE, FP8))}"
        )
    return x.new_empty([*rows, columns], dtype=dtype)


def int_mm(x: Tensor, y: Tensor) -> Tensor:
    """The result of ``aten._int_mm``: int32 of [M, K] x [K, N], exact modulo 2^32."""
    if x.dtype not in (torch.int8, torch.uint8) or y.dtype != torch.int8:
        raise Unsupported(
            f"_int_mm of {x.dtype} and {y.dtype}: expected torch.int8, or torch.uint8 "
            "and torch.int8"
        )
    _check_matrices("_int_mm", x, y)
    return x.new_empty([x.shape[0], y.shape[1]], dtype=torch.int32)


def weight_int8pack_mm(x: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
    """The result of ``aten._weight_int8pack_mm``: [M, K] x [N, K]^T x scales [N]."""
    name = "_weight_int8pack_mm"
    _check_wide(name, "an input", x)
    if weight.dtype != torch.int8:
        raise Unsupported(
            f"{name} with a weight of {weight.dtype}: expected torch.int8"
        )
    _check_matrices(name, x, weight.t())
    _check_wide(name, "scales", scales)
    if list(scales.shape) != [weight.shape[0]]:
        raise Unsupported(
            f"{name} with scales of shape {list(scales.shape)}: expected one per row "
            f"of the weight: {[weight.shape[0]]}"
        )
    return x.new_empty([x.shape[0], weight.shape[0]])


def weight_int4pack_mm(
    x: Tensor, weight: Tensor, group_size: int, scales_and_zeros: Tensor
) -> Tensor:
    """The result of ``aten._weight_int4pack_mm``: [M, K] x [N, K]^T.

    ``weight`` is what ``aten._convert_weight_to_int4pack`` gives,
    ``scales_and_zeros`` [K / ``group_size``, N, 2].
    """
    name = "_weight_int4pack_mm"
    _check_wide(name, "an input", x)
    _check_wide(name, "scales and zeros", scales_and_zeros)
    if weight.dtype != torch.int32 or weight.dim() != 4 or weight.shape[2] != 32:
        raise Unsupported(
            f"{name} with a weight of {weight.dtype} {list(weight.shape)}: expected "
            "what _convert_weight_to_int4pack gives, torch.int32 [N / 8, tiles, 32, "
            "words]"
        )
    columns, depth = 8 * weight.shape[0], 32 * weight.shape[1] * weight.shape[3]
    if x.dim() != 2 or x.shape[1] != depth:
        raise Unsupported(
            f"{name} of shape {list(x.shape)} with a weight of {depth} columns: "
            f"expected [M, {depth}]"
        )
    if group_size <= 0 or group_size % 8 != 0 or depth % group_size != 0:
        raise Unsupported(
            f"{name} with groups of {group_size}: expected a multiple of 8 that "
            f"divides {depth}"
        )
    expected = [depth // group_size, columns, 2]
    if list(scales_and_zeros.shape) != expected:
        raise Unsupported(
            f"{name} with scales and zeros of shape {list(scales_and_zeros.shape)}: "
            f"expected {expected}"
        )
    return x.new_empty([x.shape[0], columns])


def _packed_shape(weight: Tensor, inner_k_tiles: int) -> list[int]:
    name = "_convert_weight_to_int4pack"
    if weight.dtype != torch.uint8 or weight.dim() != 2:
        raise Unsupported(
            f"{name} of {weight.dtype} {list(weight.shape)}: expected torch.uint8 "
            "[N, K / 2]"
        )
    rows, depth = weight.shape[0], 2 * weight.shape[1]
    if inner_k_tiles not in (2, 4, 8):
        raise Unsupported(
            f"{name} with innerKTiles={inner_k_tiles}: expected 2, 4 or 8"
        )
    if rows % 8 != 0 or depth % (16 * inner_k_tiles) != 0:
        raise Unsupported(
            f"{name} of {rows} x {depth} numbers: expected a multiple of 8 rows, and "
            f"of {16 * inner_k_tiles} columns"
        )
    return [rows // 8, depth // (16 * inner_k_tiles), 32, inner_k_tiles // 2]


def convert_weight_to_int4pack(weight: Tensor, inner_k_tiles: int) -> Tensor:
    """Words of eight 4-bit numbers, of bytes that hold two, the first in the high bits.

    Number i of a word, from the lowest bits, is that of column 8 x word + i. Where the
    words of a row lie is this device's own (docs/internals/quantization.md).
    """
    shape = _packed_shape(weight, inner_k_tiles)
    rows, (_, tiles, lanes, words) = weight.shape[0], shape
    pairs = weight.to(torch.int32).reshape(rows, -1, 4)
    pairs = (pairs >> 4) | ((pairs & 15) << 4)
    low, second, third, high = pairs.unbind(-1)
    packed = low | (second << 8) | (third << 16) | (high << 24)
    parts = lanes // 8
    if rows % lanes == 0:
        packed = packed.reshape(rows // lanes, lanes, tiles, parts, words)
        packed = packed.permute(0, 3, 2, 1, 4)
    else:
        packed = packed.reshape(rows // 8, 8, tiles, parts, words)
        packed = packed.permute(0, 2, 1, 3, 4)
    return packed.reshape(shape).contiguous()


#: ``torch.nn.functional.ScalingType``: one number, and one per row.
_TENSOR_WISE, _ROW_WISE = 0, 1


def _single_scales(
    y: Tensor,
    scales: Sequence[Sequence[Tensor]],
    recipes: Sequence[Sequence[int]],
    swizzles: Sequence[Sequence[int]],
) -> tuple[Tensor, Tensor]:
    """The scales of ``aten._scaled_mm``, of those of its second version."""
    for given in recipes:
        if list(given) not in ([_TENSOR_WISE], [_ROW_WISE]):
            raise Unsupported(
                f"_scaled_mm_v2 with scaling recipes {list(given)}: expected one, "
                f"TensorWise ({_TENSOR_WISE}) or RowWise ({_ROW_WISE})"
            )
    if any(any(swizzle) for swizzle in swizzles):
        raise Unsupported("_scaled_mm_v2 with swizzled scales: expected NO_SWIZZLE")
    (of_x,), (of_y,) = scales
    if list(recipes[1]) == [_ROW_WISE] and of_y.numel() == y.shape[-1]:
        of_y = of_y.reshape(1, -1)
    return of_x, of_y


def _scaled_mm_v2(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``aten._scaled_mm_v2`` by a function with the arguments of the first version."""

    def second(
        x: Tensor,
        y: Tensor,
        scale_a: Sequence[Tensor],
        recipe_a: Sequence[int],
        swizzle_a: Sequence[int],
        scale_b: Sequence[Tensor],
        recipe_b: Sequence[int],
        swizzle_b: Sequence[int],
        bias: Tensor | None = None,
        out_dtype: torch.dtype | None = None,
        contraction_dim: Sequence[int] = (),
        use_fast_accum: bool = False,
    ) -> Tensor:
        of_x, of_y = _single_scales(
            y, (scale_a, scale_b), (recipe_a, recipe_b), (swizzle_a, swizzle_b)
        )
        return function(x, y, of_x, of_y, bias, None, out_dtype, use_fast_accum)

    return second


#: Results of operators on tensors without values.
RESULTS: dict[OpOverload, Callable[..., Tensor]] = {
    aten._scaled_mm.default: scaled_mm,
    aten._scaled_mm_v2.default: _scaled_mm_v2(scaled_mm),
    aten._int_mm.default: int_mm,
    aten._weight_int8pack_mm.default: weight_int8pack_mm,
    aten._weight_int4pack_mm.default: weight_int4pack_mm,
    aten._convert_weight_to_int4pack.default: lambda weight, inner_k_tiles: (
        weight.new_empty(_packed_shape(weight, inner_k_tiles), dtype=torch.int32)
    ),
}

#: Operators that are others, on spyre.
DECOMPOSITIONS: dict[OpOverload, Callable] = {
    aten._convert_weight_to_int4pack.default: convert_weight_to_int4pack,
    aten._scaled_mm_v2.default: _scaled_mm_v2(aten._scaled_mm.default),
}
