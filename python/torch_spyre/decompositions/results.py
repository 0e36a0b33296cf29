# SPDX-License-Identifier: Apache-2.0
"""Results on tensors without values, where PyTorch has none or wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from torch_spyre.decompositions import quantized, recurrent

aten = torch.ops.aten


def _nansum(
    x: Tensor,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """No dimensions are all of them, as for the sum; PyTorch's takes them for none."""
    return aten.sum.dim_IntList(x, dim, keepdim, dtype=dtype)


#: Of operators: of fake tensors, and of eager calls.
RESULTS: dict[OpOverload, Callable[..., Any]] = {
    **quantized.RESULTS,
    aten.nansum.default: _nansum,
    # PyTorch's trips over absent biases.
    aten._thnn_fused_lstm_cell.default: recurrent.lstm_cell,
}


def register() -> None:
    """Fake tensors on spyre have these results; others have PyTorch's."""
    from torch._subclasses import fake_impls

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        def implementation(mode: Any, op: OpOverload, *args: Any, **kwargs: Any) -> Any:
            if args[0].device.type != "spyre":
                return NotImplemented
            return function(*args, **kwargs)

        return implementation

    for op, function in RESULTS.items():
        if op not in fake_impls.op_implementations_dict:
            fake_impls.register_op_impl(op)(make(function))
