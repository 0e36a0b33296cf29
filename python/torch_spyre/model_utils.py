# SPDX-License-Identifier: Apache-2.0
"""Moving models, by the names that users of torch-spyre import.

``module.to("spyre")`` does all of it: weights of ``nn.Linear`` are stored with sticks
along their outputs, everything else in the usual layout.
"""

from __future__ import annotations

import torch
from torch import nn

from torch_spyre import _C
from torch_spyre.device.patches import layout_of_linear_weight


def load_model_to_spyre(
    model: nn.Module, dtype: torch.dtype | None = None
) -> nn.Module:
    """The model on the current device, its floating-point tensors as ``dtype``.

    Raises ValueError for a dtype that is none, or that the device does not store.
    """
    if dtype is None:
        return model.to("spyre")
    known = isinstance(dtype, torch.dtype)
    if not known or _C.get_device_dtype(dtype) == _C.DataFormats.INVALID:
        raise ValueError(f"dtype: expected one that the device stores, found {dtype!r}")
    return model.to("spyre", dtype)


def patch_module_to_for_spyre() -> None:
    """Nothing: ``nn.Module.to`` does this since the device was loaded."""


def _dma_to_spyre_default(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to("spyre")


def _dma_to_spyre_dim_order_swapped(tensor: torch.Tensor) -> torch.Tensor:
    """A matrix with sticks along its first dimension."""
    if tensor.dim() != 2:
        raise ValueError(f"expected a matrix, found {tensor.dim()} dimensions")
    layout = layout_of_linear_weight(tensor.shape, tensor.dtype)
    return tensor.contiguous().to("spyre", device_layout=layout)


__all__ = ["load_model_to_spyre", "patch_module_to_for_spyre"]
