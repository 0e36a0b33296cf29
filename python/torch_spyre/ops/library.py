# SPDX-License-Identifier: Apache-2.0
"""``torch.ops.spyre.*``: the operators that torch-spyre defines.

docs/spec/drop-in.md, "torch.ops.spyre.*", lists them. Most are ATen operators by
another name: composite functions, from which eager calls, compiled graphs, fake tensors
and gradients all follow. The steps of a layer norm and the operators on float8 are
decomposed by the table for compiled graphs, from which eager programs come, too. What
is to go through the CPU by its name has a kernel there, and PyTorch's fallback does the
rest. docs/reference/operators.md is for users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_spyre import _C
from torch_spyre.decompositions import float8, ordering, windows
from torch_spyre.decompositions.layer_norm_steps import STEPS
from torch_spyre.decompositions.table import NAMED
from torch_spyre.errors import Unsupported
from torch_spyre.ops.composites import COMPOSITES

_library: torch.library.Library | None = None

#: Of operators that the table of decompositions has by their names.
_DECOMPOSED_SCHEMAS = (
    "exx2(Tensor x, float exx2Scale, bool useZeroMean) -> Tensor",
    "layernormscale(Tensor x, float eps) -> Tensor",
    "layernormnorm(Tensor x, Tensor mean, Tensor norm_mean, Tensor? weight=None, "
    "Tensor? bias=None) -> Tensor",
    "qfp8ch(Tensor x) -> Tensor",
    "quantize_fp8_with_scale(Tensor x, Tensor scale) -> Tensor",
    "dequantize_fp8_with_scale(Tensor x, Tensor scale) -> Tensor",
    "quantize_weight_fp8_with_scale(Tensor x, Tensor scale) -> Tensor",
    "restickify(Tensor x) -> Tensor",
)


def _fill_range(self: Tensor, value: float, step: float) -> Tensor:
    """value, value + step and so on, as many as there are elements in ``self``."""
    return torch.arange(len(self), dtype=self.dtype) * step + value


#: What only decompositions and kernels call: the ATen table has rows for them.
ROWS: dict[str, Callable] = {
    "sum_products(Tensor x, Tensor y, int[] dims, Tensor? bias=None, "
    "bool elementwise=False) -> Tensor": windows.sum_products,
    "merge_last(Tensor x, int count) -> Tensor": windows.merge_last,
    "windows(Tensor x, int[] kernel, int[] stride, int[] dilation, SymInt[] out) "
    "-> Tensor": windows.windows,
    "grouped_windows(Tensor x, int[] kernel, int[] stride, int[] dilation, "
    "SymInt[] out, int groups, int merged) -> Tensor": windows.grouped_windows,
    "fill_range(Tensor self, Scalar value, Scalar step) -> Tensor": _fill_range,
    "sort_pairs(Tensor keys, Tensor places, bool descending, int run) "
    "-> (Tensor, Tensor)": ordering.sort_pairs,
}

#: What says sizes and strides of a result, where it is not the operator's function.
_META: dict[str, Callable] = {
    "sum_products": windows.shape_of_products,
    "windows": windows.shape_of_windows,
    "grouped_windows": windows.shape_of_grouped_windows,
}

#: What only kernels of ours call: each runs the operator above without the underscore.
_IN_PLACE = ("fill_range_(Tensor(a!) self, Scalar value, Scalar step) -> Tensor(a!)",)


def _max_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return tuple(torch.max(x, dim, keepdim))


def _min_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return tuple(torch.min(x, dim, keepdim))


def _reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    # A result of an operator without aliases has a storage of its own.
    return x.reshape(shape).clone(memory_format=torch.contiguous_format)


def _to_dtype(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.to(dtype, copy=True)


#: Schema and function of what goes through the CPU.
THROUGH_CPU: dict[str, Callable] = {
    "max_dim_int64_fallback(Tensor x, int dim, bool keepdim=False) "
    "-> (Tensor, Tensor)": _max_dim,
    "min_dim_int64_fallback(Tensor x, int dim, bool keepdim=False) "
    "-> (Tensor, Tensor)": _min_dim,
    "reshape_via_cpu(Tensor x, SymInt[] shape) -> Tensor": _reshape,
    "to_dtype_cpu(Tensor x, ScalarType dtype) -> Tensor": _to_dtype,
}


def _is_along_sticks(x: Tensor, dim: int) -> bool:
    """Whether steps along a dimension of a view stay in rows of sticks."""
    _, _, sizes, strides, layout, _ = _C.tensor_info(x)
    step = layout.stride_map[-1]
    ends = [n * t for n, t in zip(sizes, strides, strict=True) if t == step and n > 1]
    return any(step <= x.stride(dim) < end for end in ends)


def _restickify(x: Tensor) -> Tensor:
    """A copy with sticks along the last dimension or, if they are, the one before."""
    result = torch.empty_like(x, memory_format=torch.contiguous_format)
    is_last = x.dim() >= 2 and _is_along_sticks(x, -1)
    if is_last:
        order = [*range(x.dim() - 2), x.dim() - 1, x.dim() - 2]
        shape, strides = list(x.shape), list(result.stride())
        layout = _C.SpyreTensorLayout(shape, strides, x.dtype, order)
        result = _C.empty_with_layout(shape, strides, x.dtype, layout, device=x.device)
    return result.copy_(x)


def _gradient_of_reshape(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
    return gradient.reshape(context.shape), None


def _keep_shape(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.shape = inputs[0].shape


def _gradient_of_cast(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
    return gradient.to(context.dtype), None


def _keep_dtype(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.dtype = inputs[0].dtype


def _gradient_of_extremum(
    context: Any, gradient: Tensor, _: Any
) -> tuple[Tensor, None, None]:
    (indices,) = context.saved_tensors
    dim = context.dim
    if not context.keepdim:
        gradient, indices = gradient.unsqueeze(dim), indices.unsqueeze(dim)
    zeros = gradient.new_zeros(context.shape)
    return zeros.scatter(dim, indices, gradient), None, None


def _keep_indices(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, ctx.dim, *rest = inputs
    ctx.keepdim = bool(rest and rest[0])
    ctx.shape = x.shape
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(output[1])


def _no_gradient(name: str) -> Callable[..., Any]:
    instead = "; torch.nn.functional.layer_norm has one" if name in STEPS else ""

    def backward(context: Any, *gradients: Any) -> Any:
        raise Unsupported(f"the gradient of spyre::{name}{instead}")

    return backward


#: Name -> (backward, what to keep for it).
_GRADIENTS: dict[str, tuple[Callable, Callable | None]] = {
    "max_dim_int64_fallback": (_gradient_of_extremum, _keep_indices),
    "min_dim_int64_fallback": (_gradient_of_extremum, _keep_indices),
    "reshape_via_cpu": (_gradient_of_reshape, _keep_shape),
    "to_dtype_cpu": (_gradient_of_cast, _keep_dtype),
    "restickify": (lambda context, gradient: gradient, None),
    **{
        name: (_no_gradient(name), None)
        for name in (*STEPS, *float8.OPERATORS, *(s.split("(")[0] for s in ROWS))
    },
}


def _define(library: torch.library.Library, schema: str) -> str:
    library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    return schema[: schema.index("(")]


def register() -> None:
    """Defines the operators and their kernels. Idempotent."""
    global _library
    if _library is not None:
        return
    _library = library = torch.library.Library("spyre", "FRAGMENT")
    for schema, function in COMPOSITES.items():
        library.impl(_define(library, schema), function, "CompositeImplicitAutograd")
    for schema in _DECOMPOSED_SCHEMAS:
        # Eagerly a program of its decomposition runs, as of other such operators.
        name = _define(library, schema)
        library.impl(name, NAMED[name], "Meta")
    for schema, function in {**ROWS, **THROUGH_CPU}.items():
        name = _define(library, schema)
        library.impl(name, function, "CPU")
        library.impl(name, _META.get(name, function), "Meta")
    for schema in _IN_PLACE:
        _define(library, schema)
    library.impl("restickify", _restickify, "PrivateUse1")
    for name, (backward, setup) in _GRADIENTS.items():
        torch.library.register_autograd(
            f"spyre::{name}", backward, setup_context=setup, lib=library
        )
