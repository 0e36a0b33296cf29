# SPDX-License-Identifier: Apache-2.0
"""Operators of booleans and integers that the CPU does not have are errors of its own."""

import pytest
import torch
import torch.nn.functional as F
from torch_spyre.frontend.refused_dtypes import OF_OPERANDS, OF_RESULTS

aten = torch.ops.aten


def zeros(x):
    """Indices, as many as there are elements."""
    return torch.zeros_like(x, dtype=torch.int64)


def twice(function):
    return lambda x: function(x, x)


def of_images(function):
    return lambda x: function(x[None])


def of_volumes(function):
    return lambda x: function(x[None, None])


CALLS = {
    "_adaptive_avg_pool2d": lambda x: aten._adaptive_avg_pool2d(x, [2, 3]),
    "_adaptive_avg_pool3d": of_images(
        lambda x: aten._adaptive_avg_pool3d(x, [1, 2, 3])
    ),
    "_log_softmax": lambda x: F.log_softmax(x, -1),
    "_fused_rms_norm": lambda x: F.rms_norm(x, (4,)),
    "_native_batch_norm_legit": lambda x: aten._native_batch_norm_legit(
        x, None, None, True, 0.1, 1e-5
    ),
    "_native_batch_norm_legit_no_training": lambda x: F.batch_norm(
        x, x[0, 0].float(), x[0, 0].float()
    ),
    "_prelu_kernel": twice(aten._prelu_kernel),
    "_softmax": lambda x: F.softmax(x, -1),
    "_softmax_backward_data": lambda x: aten._softmax_backward_data(x, x, -1, x.dtype),
    "_upsample_nearest_exact1d": lambda x: aten._upsample_nearest_exact1d(x, [7]),
    "_upsample_nearest_exact2d": of_images(
        lambda x: aten._upsample_nearest_exact2d(x, [7, 5])
    ),
    "abs": torch.abs,
    "adaptive_max_pool2d": lambda x: aten.adaptive_max_pool2d(x, [2, 3]),
    "adaptive_max_pool3d": of_images(lambda x: aten.adaptive_max_pool3d(x, [1, 2, 3])),
    "addbmm": lambda x: torch.addbmm(x[0], x, x),
    "addcmul": lambda x: torch.addcmul(x, x, x),
    "addmm": lambda x: torch.addmm(x[0], x[0], x[0]),
    "addmv": lambda x: torch.addmv(x[0, 0], x[0], x[0, 0]),
    "argmax": torch.argmax,
    "argmin": torch.argmin,
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "avg_pool3d": of_images(lambda x: F.avg_pool3d(x, (1, 2, 2))),
    "baddbmm": lambda x: torch.baddbmm(x, x, x),
    "binary_cross_entropy": twice(aten.binary_cross_entropy),
    "bitwise_left_shift": twice(torch.bitwise_left_shift),
    "bitwise_right_shift": twice(torch.bitwise_right_shift),
    "bmm": twice(torch.bmm),
    "bucketize": lambda x: torch.bucketize(x, x[0, 0]),
    "ceil": torch.ceil,
    "clamp": lambda x: torch.clamp(x, True, True),
    "cumprod": lambda x: torch.cumprod(x, 1, dtype=x.dtype),
    "cumsum": lambda x: torch.cumsum(x, 1, dtype=x.dtype),
    "div": lambda x: torch.div(x, x, rounding_mode="trunc"),
    "dot": lambda x: torch.dot(x[0, 0], x[0, 1]),
    "elu": aten.elu,
    "floor": torch.floor,
    "floor_divide": twice(torch.floor_divide),
    "fmod": twice(torch.fmod),
    "frac": torch.frac,
    "gelu": F.gelu,
    "glu": F.glu,
    "grid_sampler_2d": of_images(
        lambda x: aten.grid_sampler_2d(x, x.view(1, 2, 4, 2), 0, 0, False)
    ),
    "grid_sampler_3d": of_volumes(
        lambda x: aten.grid_sampler_3d(x, x.new_ones(1, 2, 2, 2, 3), 0, 0, False)
    ),
    "hardshrink": F.hardshrink,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "hardtanh": lambda x: F.hardtanh(x, False, True),
    "huber_loss": twice(F.huber_loss),
    "hypot": twice(torch.hypot),
    "im2col": of_images(lambda x: F.unfold(x, 2)),
    "kthvalue": lambda x: torch.kthvalue(x, 2),
    "leaky_relu": lambda x: F.leaky_relu(x, 1),
    "lerp": lambda x: torch.lerp(x, x, x),
    "linalg_cross": lambda x: torch.linalg.cross(x[..., :3], x[..., :3]),
    "linspace": lambda x: torch.linspace(0, 1, 3, dtype=x.dtype, device=x.device),
    "log_sigmoid_forward": F.logsigmoid,
    "logaddexp": twice(torch.logaddexp),
    "logaddexp2": twice(torch.logaddexp2),
    "_logcumsumexp": lambda x: torch.logcumsumexp(x, 1),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "max_pool2d_with_indices": lambda x: F.max_pool2d(x, 2, return_indices=True),
    "max_pool3d": of_images(lambda x: F.max_pool3d(x, 2)),
    "max_unpool2d": lambda x: F.max_unpool2d(x, zeros(x), 2),
    "max_unpool3d": of_images(lambda x: F.max_unpool3d(x, zeros(x), 2)),
    "median": torch.median,
    "mish": F.mish,
    "mm": lambda x: x[0] @ x[0],
    "mse_loss": twice(aten.mse_loss),
    "multi_margin_loss": lambda x: F.multi_margin_loss(x[0], zeros(x[0, 0])),
    "multilabel_margin_loss_forward": lambda x: F.multilabel_margin_loss(
        x[0], zeros(x[0])
    ),
    "mv": lambda x: x[0] @ x[0, 0],
    "nanmedian": torch.nanmedian,
    "native_batch_norm": lambda x: aten.native_batch_norm(
        x, None, None, None, None, True, 0.1, 1e-5
    ),
    "native_group_norm": lambda x: aten.native_group_norm(
        x, None, None, 1, 4, 4, 2, 1e-5
    ),
    "native_layer_norm": lambda x: F.layer_norm(x, (4,)),
    "nextafter": twice(torch.nextafter),
    "nll_loss_forward": lambda x: F.nll_loss(x[0], zeros(x[0, 0])),
    "reflection_pad1d": lambda x: F.pad(x, (1, 1), "reflect"),
    "reflection_pad2d": of_images(lambda x: F.pad(x, (1, 1, 1, 1), "reflect")),
    "relu": F.relu,
    "remainder": twice(torch.remainder),
    "replication_pad1d": lambda x: F.pad(x, (1, 1), "replicate"),
    "replication_pad2d": of_images(lambda x: F.pad(x, (1, 1, 1, 1), "replicate")),
    "round": torch.round,
    "round.decimals": lambda x: torch.round(x, decimals=1),
    "silu": F.silu,
    "smooth_l1_loss": twice(F.smooth_l1_loss),
    "softplus": F.softplus,
    "softshrink": F.softshrink,
    "threshold": lambda x: F.threshold(x, False, True),
    "topk": lambda x: torch.topk(x, 2),
    "trace": lambda x: torch.trace(x[0]),
    "trunc": torch.trunc,
    "upsample_bicubic2d": of_images(
        lambda x: aten.upsample_bicubic2d(x, [7, 5], False)
    ),
    "upsample_bilinear2d": of_images(
        lambda x: aten.upsample_bilinear2d(x, [7, 5], False)
    ),
    "upsample_linear1d": lambda x: aten.upsample_linear1d(x, [7], False),
    "upsample_nearest1d": lambda x: aten.upsample_nearest1d(x, [7]),
    "upsample_nearest2d": of_images(lambda x: aten.upsample_nearest2d(x, [7, 5])),
    "upsample_trilinear3d": of_images(
        lambda x: aten.upsample_trilinear3d(x[None], [7, 5, 3], False)
    ),
    "vdot": lambda x: torch.vdot(x[0, 0], x[0, 1]),
}


def refusal(function, x):
    try:
        function(x)
    except Exception as error:
        return type(error), str(error)
    return None


def test_every_operator_of_the_table_is_called():
    assert CALLS.keys() == OF_RESULTS.keys() | OF_OPERANDS.keys()


@pytest.mark.filterwarnings("error:.*falling back")
@pytest.mark.parametrize("name", CALLS)
def test_the_words_are_those_of_the_cpu(name):
    for dtype in {**OF_RESULTS, **OF_OPERANDS}[name]:
        host = torch.ones(1, 4, 4, dtype=dtype)
        wanted = refusal(CALLS[name], host)
        assert wanted is not None, dtype
        assert refusal(CALLS[name], host.to("spyre")) == wanted
