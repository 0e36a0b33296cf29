# SPDX-License-Identifier: Apache-2.0
"""Quantization to float8_e4m3fn by scales: docs/spec/drop-in.md, "Small dtypes".

Numbers are scaled in fp32, and rounded once, to the nearest, ties to even; what is
larger than 448 becomes 448. The sticks of results lie as the compiler decides.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from torch_spyre.errors import Unsupported

_FP8 = torch.float8_e4m3fn
_WIDE = (torch.float16, torch.bfloat16, torch.float32)


def _check(name: str, x: Tensor, *allowed: torch.dtype) -> None:
    if x.dtype not in allowed:
        expected = ", ".join(str(dtype) for dtype in allowed)
        raise Unsupported(f"spyre::{name} of {x.dtype}: expected {expected}")


def _check_scale(name: str, x: Tensor, scale: Tensor) -> None:
    _check(f"{name} with a scale", scale, *_WIDE)
    sizes = zip(reversed(scale.shape), reversed(x.shape), strict=False)
    if scale.dim() > x.dim() or any(s not in (1, n) for s, n in sizes):
        raise Unsupported(
            f"spyre::{name} of shape {list(x.shape)} with a scale of shape "
            f"{list(scale.shape)}: it does not broadcast to the tensor"
        )


def qfp8ch(x: Tensor) -> Tensor:
    """Each element rounded to float8_e4m3fn; too large ones become +-448."""
    _check("qfp8ch", x, *_WIDE)
    return x.to(_FP8)


def _quantize(name: str, x: Tensor, scale: Tensor) -> Tensor:
    _check(name, x, *_WIDE)
    _check_scale(name, x, scale)
    # The conversion clamps.
    return (x.float() * scale.float().reciprocal()).to(_FP8)


def quantize_fp8_with_scale(x: Tensor, scale: Tensor) -> Tensor:
    """``clamp(x / scale)`` as float8_e4m3fn; ``scale`` broadcasts to ``x``."""
    return _quantize("quantize_fp8_with_scale", x, scale)


def quantize_weight_fp8_with_scale(x: Tensor, scale: Tensor) -> Tensor:
    """The same for the second operand of a matrix product."""
    return _quantize("quantize_weight_fp8_with_scale", x, scale)


def dequantize_fp8_with_scale(x: Tensor, scale: Tensor) -> Tensor:
    """float8_e4m3fn times ``scale``, which broadcasts to it, as float16."""
    _check("dequantize_fp8_with_scale", x, _FP8)
    _check_scale("dequantize_fp8_with_scale", x, scale)
    return (x.float() * scale.float()).half()


#: By the operator's name, as layer_norm_steps.STEPS.
OPERATORS: dict[str, Callable[..., Tensor]] = {
    "qfp8ch": qfp8ch,
    "quantize_fp8_with_scale": quantize_fp8_with_scale,
    "dequantize_fp8_with_scale": dequantize_fp8_with_scale,
    "quantize_weight_fp8_with_scale": quantize_weight_fp8_with_scale,
}
