# SPDX-License-Identifier: Apache-2.0
"""Names of device operations and numbers that users of torch-spyre import.

docs/spec/drop-in.md, "`torch_spyre._inductor`: all lack", lists them;
docs/spec/ops.md, "Coverage of the compiler", which operations take which formats.
"""

from __future__ import annotations

from torch_spyre.constants import DEVICE_NAME

BATCH_MATMUL_OP = "batchmatmul"
BATCH_MATMUL_FP8_OP = "batchmatmulfp8"
IDENTITY_OP = "identity"
RESTICKIFY_OP = "ReStickifyOpHBM"
DL16TOFP32_OP = "dl16tofp32"
FP32TODL16_OP = "fp32todl16"
FP8TODL16_OP = "fp8todl16"

#: The largest finite float8_e4m3fn.
FP8_E4M3_MAX = 448.0
FP8_E4M3FN_MAX = FP8_E4M3_MAX

#: Bytes of a segment of a job's address space (docs/spec/hardware.md).
SEGMENT_SIZE = 16 << 30
#: Where the segments of tensors begin, in bytes; the eighth one is for programs.
SEGMENT_OFFSETS = [number * SEGMENT_SIZE for number in range(7)]

#: Operations that torch-spyre lets have fp32 operands.
SPYRE_FP32_OPS = [
    *("add", "sub", "mul", "where", "realdiv", "relufwd", "reciprocal", "mean", "sum"),
    *("max", "min", "layernormscale", "abs", "neg", "exp", "sigmoid", "exx2"),
    *("layernormnorm", "identity", "sqrt", "rsqrt", "topkvalue", "topkindex", "floor"),
    *("to_dtype", "maximum", "minimum"),
]
#: And fp8 operands, beside those that copy or convert.
SPYRE_FP8_OPS = ["qfp8ch", FP8TODL16_OP]
TOPK_OPS = ["topkvalue", "topkindex"]

__all__ = [
    "BATCH_MATMUL_FP8_OP",
    "BATCH_MATMUL_OP",
    "DEVICE_NAME",
    "DL16TOFP32_OP",
    "FP8TODL16_OP",
    "FP8_E4M3FN_MAX",
    "FP8_E4M3_MAX",
    "FP32TODL16_OP",
    "IDENTITY_OP",
    "RESTICKIFY_OP",
    "SEGMENT_OFFSETS",
    "SEGMENT_SIZE",
    "SPYRE_FP8_OPS",
    "SPYRE_FP32_OPS",
    "TOPK_OPS",
]
