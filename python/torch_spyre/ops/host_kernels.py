# SPDX-License-Identifier: Apache-2.0
"""Operators that the host runs as several programs.

Their results have as many elements as values say, they draw numbers, or they write
arguments besides having results. They stand behind programs: an operator comes here if
its call has no program of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._prims_common.wrappers import _maybe_resize_out

from torch_spyre import _C
from torch_spyre.decompositions import histogram, selection
from torch_spyre.ops import (
    masks,
    optimizers,
    padded_rows,
    random,
    running,
    sync_batch_norm,
)

aten = torch.ops.aten
#: The dispatch key of kernels that the fallback asks (lib/Torch/Operators/Fallback.h).
_KEY = "PrivateUse3"


def stored(function: Callable, converts: bool = False) -> Callable:
    """The ``out=`` variant of a kernel with one result.

    Its dtype is that of the result, unless the operator ``converts``, on the CPU, too.
    """

    def call(*args: Any, out: Tensor, **kwargs: Any) -> Tensor:
        result = function(*args, **kwargs)
        can_cast = converts and torch.can_cast(result.dtype, out.dtype)
        if result.dtype != out.dtype and not can_cast:
            raise RuntimeError(f"expected out= of {result.dtype}, found {out.dtype}")
        _maybe_resize_out(out, result.shape)
        return out.copy_(result)

    return call


def _zeros(
    size: Any,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Tensor:
    """``aten._efficientzerotensor``: zeros as any others."""
    return torch.zeros(size, dtype=dtype, device=device)


def _kaiser_window(
    *shape: Any,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> Tensor:
    """``aten.kaiser_window`` of all overloads: PyTorch's composition of it ends in a
    kernel that no other device gets.
    """
    return torch.kaiser_window(*shape, dtype=dtype, device="cpu").to(device)


_KERNELS: dict[str, Callable] = {
    "_amp_foreach_non_finite_check_and_unscale_": optimizers.check_and_unscale_,
    "_amp_update_scale_": optimizers.update_scale_,
    "_batch_norm_with_update": running.batch_norm_with_update,
    "_fused_adagrad_": optimizers.adagrad_,
    "_fused_adagrad_.tensor_lr": optimizers.adagrad_,
    "_fused_adam_": optimizers.adam_,
    "_fused_adam_.tensor_lr": optimizers.adam_,
    "_fused_adamw_": optimizers.adamw_,
    "_fused_adamw_.tensor_lr": optimizers.adamw_,
    "_fused_sgd_": optimizers.sgd_,
    "_fused_sgd_.tensor_lr": optimizers.sgd_,
    "_index_put_impl_": masks.index_put_impl_,
    "_native_batch_norm_legit": running.batch_norm,
    "_unique": selection.unique,
    "_unique2": selection.unique2,
    "_unsafe_index_put": masks.index_put,
    "batch_norm_backward_elemt": sync_batch_norm.backward_input,
    "batch_norm_backward_reduce": sync_batch_norm.backward_reduce,
    "batch_norm_elemt": sync_batch_norm.normalize,
    "batch_norm_gather_stats": sync_batch_norm.gather_stats,
    "batch_norm_gather_stats_with_counts": sync_batch_norm.gather_stats_with_counts,
    "batch_norm_stats": sync_batch_norm.stats,
    "batch_norm_update_stats": running.update_stats,
    "index.Tensor": masks.index,
    "index_put": masks.index_put,
    "index_put_": masks.index_put_,
    "masked_select": selection.masked_select,
    "masked_select.out": stored(selection.masked_select),
    "multinomial": random.multinomial,
    "multinomial.out": stored(random.multinomial),
    "nonzero": selection.nonzero,
    "nonzero.out": stored(selection.nonzero),
    "normal.Tensor_Tensor": random.normal_of_both,
    "normal.Tensor_Tensor_out": stored(random.normal_of_both, converts=True),
    "normal.Tensor_float": random.normal_of_means,
    "normal.Tensor_float_out": stored(random.normal_of_means, converts=True),
    "normal.float_Tensor": random.normal_of_stds,
    "normal.float_Tensor_out": stored(random.normal_of_stds, converts=True),
    "repeat_interleave.Tensor": selection.repeat_interleave,
    "unique_consecutive": selection.unique_consecutive,
    "unique_dim": selection.unique_dim,
    "unique_dim_consecutive": selection.unique_dim_consecutive,
}
#: Before any program: PyTorch composes them of others, they have no tensor from which
#: the fallback would know the device, or they write what their schemas do not name.
_ALWAYS: dict[str, Callable] = {
    "_efficientzerotensor": _zeros,
    "_nested_tensor_from_mask": padded_rows.from_mask,
    "_nested_tensor_from_mask_left_aligned": padded_rows.is_left_aligned,
    "_nested_tensor_from_tensor_list": padded_rows.refuse_strided,
    "_nested_view_from_buffer": padded_rows.refuse_strided,
    "bincount": histogram.bincount,
    "bincount.out": stored(histogram.bincount),
    "histc": histogram.histc,
    "histc.out": stored(histogram.histc),
    "kaiser_window": _kaiser_window,
    "kaiser_window.beta": _kaiser_window,
    "kaiser_window.periodic": _kaiser_window,
    "native_batch_norm": running.native_batch_norm,
}
#: Programs, where PyTorch would call the variant that writes arguments.
_PROGRAMS = (
    "aten::_batch_norm_with_update_functional",
    "aten::_native_batch_norm_legit_functional",
    "aten::_native_batch_norm_legit_no_training",
)
_libraries: list[torch.library.Library] = []


def register() -> None:
    """Registers the kernels. Idempotent."""
    if _libraries:
        return
    library = torch.library.Library("aten", "IMPL")
    for name, function in _KERNELS.items():
        library.impl(name, function, _KEY)
    for name, function in _ALWAYS.items():
        library.impl(name, function, "PrivateUse1")
    for name in _PROGRAMS:
        _C._give_boxed_kernel(name, "")
    every = torch.library.Library("_", "IMPL")
    every.fallback(padded_rows.refuse_strided, "NestedTensorPrivateUse1")
    _libraries.extend((library, every))
