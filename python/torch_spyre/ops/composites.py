# SPDX-License-Identifier: Apache-2.0
"""Operators of ``torch.ops.spyre`` that consist of ATen operators.

Eager calls, compiled graphs, fake tensors and gradients follow from what they call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torch_spyre.errors import Unsupported


def _check_device(name: str, device: torch.device, *others: str) -> None:
    allowed = ("spyre", "meta", *others)
    if device.type not in allowed:
        raise NotImplementedError(
            f"spyre::{name} runs on spyre{''.join(f' and {o}' for o in others)}; found "
            f"an argument on {device}"
        )


def _softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    _check_device("softplus", x.device)
    return functional.softplus(x, beta, threshold)


def _gelu(x: Tensor, approximate: str = "none") -> Tensor:
    _check_device("gelu", x.device)
    return functional.gelu(x, approximate=approximate)


def _silu(x: Tensor) -> Tensor:
    _check_device("silu", x.device)
    return functional.silu(x)


def _clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    _check_device("clamp", x.device)
    return torch.clamp(x, min, max)


def _layer_norm(
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    if len(normalized_shape) != 1:
        raise Unsupported(
            f"layer_norm over {len(normalized_shape)} dimensions "
            f"({list(normalized_shape)}): expected one"
        )
    return torch.native_layer_norm(x, normalized_shape, weight, bias, eps)[0]


def _rms_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    _check_device("rms_norm", x.device)
    return functional.rms_norm(x, shape, weight, eps)


def _top(name: str, x: Tensor, k: int, dim: int) -> tuple[Tensor, Tensor]:
    _check_device(name, x.device)
    if x.dim() != 2:
        raise Unsupported(f"{name} of a tensor with {x.dim()} dimensions: expected 2")
    return torch.topk(x, k, dim)


def _topkvalue(x: Tensor, k: int, dim: int) -> Tensor:
    return _top("topkvalue", x, k, dim)[0]


def _topkindex(x: Tensor, k: int, dim: int) -> Tensor:
    return _top("topkindex", x, k, dim)[1]


def _logical_not(x: Tensor) -> Tensor:
    _check_device("logical_not", x.device)
    return torch.logical_not(x)


def _empty(
    size: Sequence[int], device: torch.device, dtype: torch.dtype | None = None
) -> Tensor:
    _check_device("empty", device)
    return torch.empty(size, device=device, dtype=dtype)


def _copy_from_d2d(src: Tensor, dst: Tensor) -> None:
    _check_device("copy_from_d2d", src.device)
    _check_device("copy_from_d2d", dst.device)
    dst.copy_(src)


def _selections(
    name: str,
    input: Tensor,
    output: Tensor,
    dims: Sequence[int],
    offsets: Sequence[int],
) -> list[Tensor]:
    """The output, and what of it is left after each dimension; the last fits input."""
    _check_device(name, output.device, "cpu")
    _check_device(name, input.device, "cpu")
    if len(dims) != len(offsets):
        raise ValueError(f"spyre::{name}: {len(dims)} dims, but {len(offsets)} offsets")
    selections = [output]
    for dim, offset in zip(dims, offsets, strict=True):
        selections.append(selections[-1].narrow(dim, offset, input.shape[dim]))
    if selections[-1].shape != input.shape:
        raise ValueError(
            f"spyre::{name}: input of shape {list(input.shape)} does not fill what is "
            f"selected of output, {list(selections[-1].shape)}"
        )
    return selections


def _overwrite(
    input: Tensor, output: Tensor, dims: Sequence[int], offsets: Sequence[int]
) -> None:
    _selections("overwrite", input, output, dims, offsets)[-1].copy_(input)


def _overwrite_f(
    input: Tensor, output: Tensor, dims: Sequence[int], offsets: Sequence[int]
) -> Tensor:
    selections = _selections("overwrite_f", input, output, dims, offsets)
    result = input.to(output.dtype)
    # Not a copy to overwrite: if the output is not needed again, a graph writes in it.
    updates = list(zip(selections, dims, offsets, strict=False))
    for base, dim, offset in reversed(updates):
        end = offset + input.shape[dim]
        result = torch.slice_scatter(base, result, dim, offset, end)
    return result if updates else result.clone()


def _batched_matmul(x: Tensor, y: Tensor) -> Tensor:
    _check_device("batched_matmul", x.device)
    result = torch.matmul(x, y) if x.dim() > 1 and y.dim() > 1 else None
    if result is None or result.shape[:-1] != x.shape[:-1]:
        raise Unsupported(
            f"batched_matmul of {list(x.shape)} and {list(y.shape)}: the second has to "
            "be matrices, as many as the first or one for all"
        )
    return result


def _unfold(
    x: Tensor,
    kernel_size: Sequence[int],
    dilation: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    _check_device("unfold", x.device)
    return functional.unfold(
        x, list(kernel_size), dilation or (1, 1), padding or (0, 0), stride or (1, 1)
    )


def _constant(
    value: Any, dtype: torch.dtype, device: torch.device
) -> float | int | bool:
    _check_device("constant", device)
    if dtype.is_floating_point:
        return float(value)
    return bool(value) if dtype == torch.bool else int(value)


#: Schema and function of what consists of ATen operators.
COMPOSITES: dict[str, Callable] = {
    "softplus(Tensor x, float beta=1.0, float threshold=20.0) -> Tensor": _softplus,
    'gelu(Tensor x, str approximate="none") -> Tensor': _gelu,
    "silu(Tensor x) -> Tensor": _silu,
    "clamp(Tensor x, Scalar? min=None, Scalar? max=None) -> Tensor": _clamp,
    "layer_norm(Tensor x, SymInt[] normalized_shape, Tensor? weight=None, "
    "Tensor? bias=None, float eps=1e-05) -> Tensor": _layer_norm,
    "rms_norm(Tensor x, SymInt[] shape, Tensor? weight=None, float eps=1e-05) "
    "-> Tensor": _rms_norm,
    "topkvalue(Tensor x, SymInt k, int dim) -> Tensor": _topkvalue,
    "topkindex(Tensor x, SymInt k, int dim) -> Tensor": _topkindex,
    "logical_not(Tensor x) -> Tensor": _logical_not,
    "empty(SymInt[] size, Device device, ScalarType? dtype=None) -> Tensor": _empty,
    "copy_from_d2d(Tensor src, Tensor(a!) dst) -> ()": _copy_from_d2d,
    "overwrite(Tensor input, Tensor(a!) output, int[] dims, SymInt[] offsets) "
    "-> ()": _overwrite,
    "overwrite_f(Tensor input, Tensor output, int[] dims, SymInt[] offsets) "
    "-> Tensor": _overwrite_f,
    "batched_matmul(Tensor x, Tensor y) -> Tensor": _batched_matmul,
    # PyTorch's schemas have no default for an optional list but None.
    "unfold(Tensor x, SymInt[] kernel_size, SymInt[]? dilation=None, "
    "SymInt[]? padding=None, SymInt[]? stride=None) -> Tensor": _unfold,
    "constant(Scalar value, ScalarType dtype, Device device) -> Scalar": _constant,
}
