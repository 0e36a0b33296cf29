# SPDX-License-Identifier: Apache-2.0
"""Constants, conversions and specifications by torch-spyre's names: drop-in.md, 2."""

import copy
import dataclasses
import itertools
import pickle

import pytest
import sympy
import torch
from torch_spyre import _C
from torch_spyre._inductor import constants, op_spec
from torch_spyre._inductor.dtype_ops import DtypeOpTable
from torch_spyre._inductor.op_spec import (
    IndirectAccess,
    LoopSpec,
    OpSpec,
    TensorArg,
    UnimplementedOp,
    find_unimplemented,
)

SHEET = {
    "BATCH_MATMUL_OP": "batchmatmul",
    "BATCH_MATMUL_FP8_OP": "batchmatmulfp8",
    "IDENTITY_OP": "identity",
    "RESTICKIFY_OP": "ReStickifyOpHBM",
    "DL16TOFP32_OP": "dl16tofp32",
    "FP32TODL16_OP": "fp32todl16",
    "FP8TODL16_OP": "fp8todl16",
    "DEVICE_NAME": "spyre",
    "FP8_E4M3_MAX": 448.0,
    "FP8_E4M3FN_MAX": torch.finfo(torch.float8_e4m3fn).max,
    "SEGMENT_SIZE": 0x400000000,
    "SEGMENT_OFFSETS": [n * 0x400000000 for n in range(7)],
    "TOPK_OPS": ["topkvalue", "topkindex"],
    "SPYRE_FP8_OPS": ["qfp8ch", "fp8todl16"],
}
FP32 = """
    add sub mul where realdiv relufwd reciprocal mean sum max min layernormscale abs neg
    exp sigmoid exx2 layernormnorm identity sqrt rsqrt topkvalue topkindex floor to_dtype
    maximum minimum
"""


def test_constants():
    for name, value in SHEET.items():
        assert getattr(constants, name) == value, name
    assert sorted(constants.SPYRE_FP32_OPS) == sorted(FP32.split())
    assert set(constants.__all__) == {*SHEET, "SPYRE_FP32_OPS"}


H, B, F, Q = torch.float16, torch.bfloat16, torch.float32, torch.float8_e4m3fn
CONVERSIONS = {
    (H, F): "dl16tofp32",
    (B, F): "dl16tofp32",
    (F, H): "fp32todl16",
    (F, B): "fp32todl16",
    (Q, H): "fp8todl16",
    (H, torch.bool): "identity",
    (torch.bool, H): "identity",
    (H, B): "identity",
    (B, H): "identity",
}


def test_conversions():
    dtypes = [H, B, F, Q, torch.bool, torch.int64, torch.int8, torch.float64]
    for pair in itertools.product(dtypes, dtypes):
        assert DtypeOpTable.get_operator(*pair) == CONVERSIONS.get(pair), pair
    assert DtypeOpTable.get_table() == CONVERSIONS
    assert sorted(map(str, DtypeOpTable.get_dtype_pairs())) == sorted(
        map(str, CONVERSIONS)
    )
    for op in set(CONVERSIONS.values()):
        assert DtypeOpTable.is_dtype_op(op)
    assert not DtypeOpTable.is_dtype_op("add")
    DtypeOpTable.get_table().clear()
    assert DtypeOpTable.get_table() == CONVERSIONS, (
        "the table is the caller's to change"
    )


FIELDS = {
    OpSpec: "op is_reduction iteration_space args op_info tiled_symbols=[]",
    TensorArg: "is_input arg_index device_dtype device_size device_coordinates "
    "allocation stride_map=None per_tile_fixed=False name=None",
    LoopSpec: "count body tiled_symbols=[]",
    UnimplementedOp: "op",
    IndirectAccess: "name",
}


@pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)
def test_fields(kind):
    """Names, order and defaults of the sheet; lists are not shared."""
    made = []
    for entry in dataclasses.fields(kind):
        default = ""
        if entry.default_factory is not dataclasses.MISSING:
            default = f"={entry.default_factory()}"
            assert entry.default_factory() is not entry.default_factory()
        elif entry.default is not dataclasses.MISSING:
            default = f"={entry.default}"
        made.append(entry.name + default)
    assert " ".join(made) == FIELDS[kind]
    assert kind.__name__ in op_spec.__all__


def example():
    """Y = x + x over 4 x 64 elements, as a user writes it down."""
    rows, lane = sympy.symbols("c0 c1", integer=True)
    tensors = [
        TensorArg(
            is_input=number == 0,
            arg_index=number,
            device_dtype=_C.DataFormats.SEN169_FP16,
            device_size=[1, 4, 64],
            device_coordinates=[lane // 64, rows, lane % 64],
            allocation={"hbm": number * constants.SEGMENT_SIZE},
        )
        for number in (0, 1)
    ]
    space = {rows: (sympy.Integer(4), 4), lane: (sympy.Integer(64), 1)}
    return OpSpec("add", False, space, [tensors[0], *tensors], {})


def test_specifications_are_values():
    first, second = example(), example()
    assert first == second
    second.args[0].allocation["hbm"] = 128
    assert first != second
    assert copy.deepcopy(first) == first
    nested = LoopSpec(3, [first, UnimplementedOp("welford")])
    assert pickle.loads(pickle.dumps(nested.body[1])) == nested.body[1]
    assert "UnimplementedOp(op='welford')" in repr(nested)


def test_find_unimplemented():
    done, missing, other = example(), UnimplementedOp("xor_sum"), UnimplementedOp("any")
    assert find_unimplemented([]) is None
    assert find_unimplemented([done, LoopSpec(2, [done])]) is None
    assert find_unimplemented([done, missing, other]) is missing
    nested = LoopSpec(2, [done, LoopSpec(3, [other])])
    assert find_unimplemented([nested, missing]) is other
    assert find_unimplemented(iter([nested])) is other
