# SPDX-License-Identifier: Apache-2.0
"""Operators that the CPU does not have for booleans or integers.

The device could compute them. Eager calls have no program for them all the same: the
CPU is asked, and says in its own words what is wrong.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload

from torch_spyre import _C, extensions
from torch_spyre.frontend.host_numbers import is_spyre

_BOOL = frozenset([torch.bool])
_INTEGERS = frozenset([torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])

#: What is no dtype of the first result.
_NO_BOOL = (
    "abs addbmm addcmul addmm addmv baddbmm bitwise_left_shift bitwise_right_shift bmm "
    "ceil clamp cumprod cumsum div dot floor floor_divide fmod hardtanh kthvalue "
    "linalg_cross linspace max_pool2d max_pool2d_with_indices max_pool3d "
    "median mm mv nanmedian reflection_pad1d reflection_pad2d relu remainder "
    "replication_pad1d replication_pad2d round threshold topk trunc vdot"
)
_NEITHER = (
    "_adaptive_avg_pool2d _adaptive_avg_pool3d _fused_rms_norm _log_softmax "
    "_native_batch_norm_legit _native_batch_norm_legit_no_training _prelu_kernel "
    "_softmax _softmax_backward_data adaptive_max_pool2d adaptive_max_pool3d "
    "binary_cross_entropy elu frac gelu glu grid_sampler_2d grid_sampler_3d hardshrink "
    "hardsigmoid hardswish huber_loss hypot leaky_relu lerp log_sigmoid_forward "
    "logaddexp logaddexp2 max_unpool2d max_unpool3d mish mse_loss native_batch_norm "
    "native_group_norm native_layer_norm nextafter nll_loss_forward round.decimals "
    "silu smooth_l1_loss softplus softshrink upsample_linear1d upsample_trilinear3d"
)
_ONE_OF_THEM = {
    "avg_pool2d avg_pool3d": torch.int64,
    "im2col": torch.bool,
    "_upsample_nearest_exact1d _upsample_nearest_exact2d upsample_bicubic2d "
    "upsample_bilinear2d upsample_nearest1d upsample_nearest2d": torch.uint8,
}
#: What is no dtype of the first operand.
_NO_BOOL_GIVEN = "argmax argmin bucketize trace"
_NEITHER_GIVEN = "_logcumsumexp multi_margin_loss multilabel_margin_loss_forward"


def _of(names: str, dtypes: frozenset[torch.dtype]) -> dict[str, frozenset]:
    return dict.fromkeys(names.split(), dtypes)


_ALL = _BOOL | _INTEGERS
#: ATen operator, or overload where these differ -> dtypes of its first result.
OF_RESULTS = {**_of(_NO_BOOL, _BOOL), **_of(_NEITHER, _ALL)}
for _names, _taken in _ONE_OF_THEM.items():
    OF_RESULTS.update(_of(_names, _ALL - {_taken}))
#: ATen operator -> dtypes of its first operand.
OF_OPERANDS = {**_of(_NO_BOOL_GIVEN, _BOOL), **_of(_NEITHER_GIVEN, _ALL)}


def _is_bool(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.dtype == torch.bool
    return isinstance(value, bool)


def check_dtypes(op: OpOverload, arguments: list[Any], metas: list[Any]) -> None:
    """Raises UnsupportedOp for a call that the CPU refuses for its dtype.

    ``metas`` are results without values. Users may say what an operator is.
    """
    is_own = op in extensions.decompositions() or extensions.lowering_of(str(op))
    if op.namespace != "aten" or is_own:
        return
    if op.overloadpacket is torch.ops.aten.pow and all(map(_is_bool, arguments[:2])):
        raise _C.UnsupportedOp("PyTorch infers integers where the CPU has booleans")
    name = str(op).removeprefix("aten.").removesuffix(".default")
    packet = name.split(".")[0]
    if packet in OF_OPERANDS:
        refused, values = OF_OPERANDS[packet], filter(is_spyre, arguments)
    else:
        refused = OF_RESULTS.get(name) or OF_RESULTS.get(packet, frozenset())
        values = (m for m in metas if isinstance(m, torch.Tensor))
    first = next(values, None)
    if first is not None and first.dtype in refused:
        raise _C.UnsupportedOp(f"the CPU does not have it for {first.dtype}")
