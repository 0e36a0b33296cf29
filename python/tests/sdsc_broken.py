# SPDX-License-Identifier: Apache-2.0
"""One SuperDSC bundle per rule that breaks it, and may break others on the way."""

import copy
from pathlib import Path
from typing import NamedTuple

import pytest
import sdsc_bundles
import sdsc_manifests
from sdsc_bundles import add, looped_add, program, sdsc, sized_add, tensor
from sdsc_manifests import manifest

OUT = (["mb", "out"], {"out": 64})
TRANSPOSED = (["out", "mb"], {"mb": 64})
DSC = "/0_add/dscs_/0/add"


def edited(path, value=None, files=None, delete=False):
    """The bundle of add() with the value at a JSON pointer replaced."""
    files = copy.deepcopy(files or add())
    place = files["sdsc_0.json"]
    *parents, last = path.removeprefix("/").split("/")
    for key in parents:
        place = place[int(key) if isinstance(place, list) else key]
    last = int(last) if isinstance(place, list) else last
    if delete:
        del place[last]
    else:
        place[last] = value
    return files


def one(op, dims, labels, tensors, **more):
    file = sdsc(op, dims, labels, tensors, **more)
    return {"sdsc_0.json": file, "bundle.mlir": program("sdsc_0.json")}


def unary(op, dims, labels, **more):
    """An operation whose input has the first and whose output the last label."""
    orders = [labels[0][0], labels[-1][0]]
    tensors = [
        tensor(order, base=number << 34, label=(len(labels) - 1) * number)
        for number, order in enumerate(orders)
    ]
    return one(op, dims, labels, tensors, **more)


def gather():
    """As many rows of a table as there are."""
    index = {"fmt": "SENUINT32", "indirect": "index_tensor"}
    value = {"indirect": "value_tensor", "related": "allocate-Tensor0_hbm"}
    tensors = [
        tensor(["mb"], **index),
        tensor(["out", "mb"], base=1 << 34, label=1, **value),
        tensor(["out", "mb"], base=2 << 34, label=1),
    ]
    dims = {"mb": (32, 1), "out": (128, 1)}
    labels = [(["mb"], {"mb": 32}), (["out", "mb"], {"out": 64})]
    names = ["KERNEL_IDX", "OUTPUT"]
    return one("identity", dims, labels, tensors, names=names)


def matmul(op, sticks, dims=None, kernel=None):
    """An mb x in by in x out product with the given sticks."""
    dims = dims or {"mb": (8, 1), "out": (64, 1), "in": (128, 1)}
    orders = [["mb", "in"], kernel or ["in", "out"], ["mb", "out"]]
    labels = list(zip(orders, sticks, strict=True))
    fmt = "SEN169_FP16" if op == "batchmatmul" else "SENINT8"
    tensors = [
        tensor(order, base=n << 34, label=n, fmt=fmt if n < 2 else "SEN169_FP16")
        for n, order in enumerate(orders)
    ]
    return one(op, dims, labels, tensors, names=["INPUT", "KERNEL", "OUTPUT"])


def conv2d(dims, sticks=({"in": 64}, {"out": 64}, {"out": 64})):
    """Outputs i of windows ki, in an input without a gap."""
    orders = [["in", "i"], ["in", "out", "ki"], ["out", "i"]]
    labels = list(zip(orders, sticks, strict=True))
    tensors = [tensor(order, base=n << 34, label=n) for n, order in enumerate(orders)]
    return one("conv2d", dims, labels, tensors, names=["INPUT", "KERNEL", "OUTPUT"])


def symbolic(ids, bound, second=None):
    """add() with symbols for the output's addresses."""
    dims = {"mb": (8, 2), "out": (128, 1)}
    files = {}
    names = ["sdsc_0.json"] if second is None else ["sdsc_0.json", "sdsc_1.json"]
    for name, own in zip(names, [ids, second], strict=False):
        tensors = [tensor(["mb", "out"], base=n << 34) for n in range(2)]
        tensors.append(tensor(["mb", "out"], symbols=own))
        files[name] = sdsc("add", dims, [OUT], tensors, index=int(name[5]))
    operands = {name: ("%arg_2, %arg_2", bound) for name in names}
    files["bundle.mlir"] = program(*names, parameters=["arg_2"], operands=operands)
    return files


def addresses(place):
    return f"{DSC}/scheduleTree_/{place}/startAddressCoreCorelet_/data_"


def with_segments(numbers):
    attributes = f" attributes {{sdscbundle.segments = array<i64: {numbers}>}} {{"
    return add()["bundle.mlir"].replace(" {\n\t\tsdsc", attributes + "\n\t\tsdsc")


def cases():
    dims = {"mb": (128, 1), "out": (128, 1)}
    yield (
        "sdsc_0.json: /0_add/a: the key 'a' occurs twice in an object [SDSC-FILE-C2]",
        edited("/0_add") | {"sdsc_0.json": '{"0_add": {"a": 1, "a": 2}}'},
    )
    yield (
        "sdsc_0.json: expected an object with one key, <index>_<opfunc>, found 2 keys [SDSC-FORM-C1]",
        edited("/1_add", {}),
    )
    yield (
        "sdsc_0.json: /0_add/dscs_/0/add: the key 'N_' is missing [SDSC-FORM-C2]",
        edited(f"{DSC}/N_", delete=True),
    )
    yield (
        "sdsc_0.json: /0_add/surprise_: the key 'surprise_' does not belong here [SDSC-FORM-C3]",
        edited("/0_add/surprise_", 1),
    )
    yield (
        "sdsc_0.json: /0_add/coreFoldProp_/factor_: expected 2, found 3 [SDSC-FORM-C4]",
        edited("/0_add/coreFoldProp_/factor_", 3),
    )
    yield (
        "sdsc_0.json: /0_addd: 'addd' is not the name of a device operation [SDSC-OP-C1]",
        one("addd", dims, [OUT], [tensor(OUT[0])] * 3),
    )
    yield (
        "sdsc_0.json: /0_add/dscs_/0/add/computeOp_/0/inputLabeledDs: 'add' takes 2 inputs, found 1 [SDSC-OP-C2]",
        edited(f"{DSC}/computeOp_/0/inputLabeledDs", ["Tensor0-idx0"]),
    )
    yield (
        "sdsc_0.json: /0_add/dscs_/0/add/computeOp_/0/exUnit: 'add' runs on 'sfp', found 'pt' [SDSC-OP-C3]",
        edited(f"{DSC}/computeOp_/0/exUnit", "pt"),
    )
    yield (
        "sdsc_0.json: /0_clip/dscs_/0/clip/constantInfo_: the constant 'clipMax' of 'clip' is missing [SDSC-OP-C4]",
        unary("clip", dims, [OUT], constants=[("clipMin", "SEN169_FP16", 0)]),
    )
    yield (
        "sdsc_0.json: /0_add/dscs_/0/add/computeOp_/0/attributes_/dataFormat_: no operand has elements of the size of IEEE_FP32 [SDSC-OP-C5]",
        edited(f"{DSC}/computeOp_/0/attributes_/dataFormat_", "IEEE_FP32"),
    )
    yield (
        "sdsc_0.json: /0_add/dscs_/0/add/N_/width_: 'width_' is not a dimension's label with '_' appended [SDSC-DIM-C1]",
        edited(f"{DSC}/N_/width_", 4),
    )
    yield (
        "sdsc_0.json: /0_add/numWkSlicesPerDim_/mb: 3 slices do not divide 8 iterations of 'mb' [SDSC-DIM-C2]",
        edited("/0_add/numWkSlicesPerDim_/mb", 3),
    )
    yield (
        "sdsc_0.json: /0_add/coreIdToWkSlice_/1/mb: expected 1, found 0 [SDSC-DIM-C3]",
        edited("/0_add/coreIdToWkSlice_/1/mb", 0),
    )
    yield (
        "sdsc_0.json: /0_add/dscs_/0/add/coordinateMasking_/out: the mask of 100 valid and 20 padded iterations does not fit dimension 'out' of 128 iterations in 1 slices [SDSC-DIM-C4]",
        edited(f"{DSC}/coordinateMasking_", {"out": [[100, 20]]}),
    )
    yield (
        "sdsc_0.json: /0_abs/dscs_/0/abs/primaryDsInfo_/BANANA: 'BANANA' is not a label [SDSC-LABEL-C1]",
        one("abs", dims, [OUT], [tensor(OUT[0])] * 2, names=["BANANA"]),
    )
    yield (
        "sdsc_0.json: /0_add/dscs_/0/add/primaryDsInfo_/OUTPUT/layoutDimOrder_: expected distinct dimensions [SDSC-LABEL-C2]",
        edited(f"{DSC}/primaryDsInfo_/OUTPUT/layoutDimOrder_", ["mb", "mb"]),
    )
    yield (
        "sdsc_0.json: /0_add/dscs_/0/add/labeledDs_/0/scale_/0: the scale -2 of dimension 'mb' must be 1, -1, or -2 on a stick dimension [SDSC-TENSOR-C1]",
        edited(f"{DSC}/labeledDs_/0/scale_", [-2, 1]),
    )
    yield (
        "sdsc_0.json: /0_add/dscs_/0/add/labeledDs_/0/wordLength: expected 2 bytes for SEN169_FP16, found 4 [SDSC-TENSOR-C2]",
        edited(f"{DSC}/labeledDs_/0/wordLength", 4),
    )
    yield (
        "sdsc_0.json: /0_add/dscs_/0/add/computeOp_/0/inputLabeledDs/1: 'Tensor7-idx7' refers to no data structure [SDSC-TENSOR-C3]",
        edited(f"{DSC}/computeOp_/0/inputLabeledDs/1", "Tensor7-idx7"),
    )
    yield (
        "sdsc_0.json: /0_abs/dscs_/0/abs/scheduleTree_/0: sizes and gaps give no tensor that fits the address space [SDSC-TENSOR-C4]",
        one(
            "abs",
            dims,
            [OUT],
            [tensor(OUT[0], gap={"mb": -128}), tensor(OUT[0], base=1 << 34)],
        ),
    )
    yield (
        "sdsc_0.json: /0_identity/dscs_/0/identity/scheduleTree_/0: a value accessed indirectly names its index tensor in relatedIndirectAccessAlloc_ [SDSC-TENSOR-C5]",
        one(
            "identity",
            dims,
            [OUT],
            [tensor(OUT[0], indirect="value_tensor"), tensor(OUT[0], base=1 << 34)],
        ),
    )
    yield (
        "sdsc_0.json: /0_identity/dscs_/0/identity/scheduleTree_/1/maxDimSizes_: what indices select along the sticks is inside of no other dimension [SDSC-TENSOR-C5]",
        edited(
            "/0_identity/dscs_/0/identity/scheduleTree_/1/maxDimSizes_",
            [1, -1],
            files=gather(),
        ),
    )
    yield (
        "sdsc_0.json: /0_add/dscs_/0/add/scheduleTree_/0/startAddressCoreCorelet_/data_/[0, 0, 0]: the address 64 is not a multiple of 128 from which the core's part fits one of the segments [SDSC-ADDRESS-C1]",
        edited(addresses(0), {"[0, 0, 0]": "64", "[1, 0, 0]": "576"}),
    )
    yield (
        "sdsc_0.json: /0_add/dscs_/0/add/scheduleTree_/1/startAddressCoreCorelet_/data_/[1, 0, 0]: expected 17179869696 from the address of core 0 and the slices, found 17179869184 [SDSC-ADDRESS-C2]",
        edited(f"{addresses(1)}/[1, 0, 0]", "17179869184"),
    )
    yield (
        "sdsc_0.json: /0_abs/dscs_/0/abs/dataStageParam_/0/ss_/out_: 32 elements of 'out' per core are not whole sticks of 64 of Tensor0 [SDSC-ADDRESS-C3]",
        unary("abs", {"mb": (4, 1), "out": (64, 2)}, [OUT]),
    )
    yield (
        "sdsc_0.json: /0_abs/dscs_/0/abs/scheduleTree_/0/startAddressCoreCorelet_: a core's part spans 536870912 bytes, at most 268435456 can be reached [SDSC-ADDRESS-C4]",
        unary("abs", {"mb": (1 << 22, 1), "out": (64, 1)}, [OUT]),
    )
    yield (
        "sdsc_0.json: /0_identity/dscs_/0/identity/dataStageParam_/0/ss_/mb_: 40 elements of 'mb' per core are not whole sticks of 32 of Tensor1 [SDSC-ADDRESS-C5]",
        one(
            "identity",
            {"mb": (80, 2), "out": (64, 1)},
            [OUT, (["out", "mb"], {"mb": 32})],
            [
                tensor(OUT[0], indirect="value_tensor", related="allocate-Tensor1_hbm"),
                tensor(
                    ["out", "mb"],
                    base=1 << 34,
                    label=1,
                    fmt="IEEE_INT32",
                    indirect="index_tensor",
                    scale={"out": -1},
                ),
                tensor(OUT[0], base=2 << 34),
            ],
        ),
    )
    symbol = f"{DSC}/dimToSymbolMapping_/mb"
    yield (
        f"sdsc_0.json: {symbol}: expected one symbol, found 0 [SDSC-SYMBOL-C1]",
        edited(symbol, [], sized_add()),
    )
    yield (
        f"sdsc_0.json: {DSC}/dataStageParam_/0/ss_/symbolicDimInfo_/mb: 2 slices of multiples of 3 do not divide the 8 iterations of 'mb' [SDSC-SYMBOL-C2]",
        sized_add(sizes={"mb": (-1, "s0", 6)}),
    )
    yield (
        f"sdsc_0.json: {DSC}/dimToSymbolMapping_/out: the size 's0' of 'out', a multiple of 64 up to 128, is along the sticks of OUTPUT, which have one length [SDSC-SYMBOL-C3]",
        sized_add(sizes={"out": (-1, "s0", 64)}),
    )
    yield (
        "sdsc_0.json: /0_cumsum/dscs_/0/cumsum/dimToSymbolMapping_/mb: the size 's0' of 'mb', a multiple of 4 up to 8, is one of 'cumsum', which is for one size [SDSC-SYMBOL-C4]",
        sized_add(op="cumsum"),
    )
    yield (
        f"sdsc_0.json: {symbol}: the size 's0' of 'mb', a multiple of 4 up to 8, needs addresses in device memory that are symbols, and other ones [SDSC-SYMBOL-C5]",
        edited(f"{DSC}/scheduleTree_/0/isStartAddrSymbolic_", 0, sized_add()),
    )
    fp16 = [{"in": 64}, {"out": 64}, {"out": 64}]
    yield (
        "sdsc_0.json: /0_batchmatmul/dscs_/0/batchmatmul/primaryDsInfo_/KERNEL: the sticks of input 2 must be 64 of 'out' [SDSC-MATMUL-C1]",
        matmul("batchmatmul", [{"in": 64}, {"in": 64}, {"out": 64}]),
    )
    yield (
        "sdsc_0.json: /0_batchmatmulint8/dscs_/0/batchmatmulint8/primaryDsInfo_/KERNEL: the sticks of input 2 must be 2 of 'in' x 64 of 'out' [SDSC-MATMUL-C2]",
        matmul("batchmatmulint8", [{"in": 128}, {"out": 128}, fp16[2]]),
    )
    yield (
        "sdsc_0.json: /0_batchmatmulint4/dscs_/0/batchmatmulint4/primaryDsInfo_/KERNEL: the sticks of input 2 must be 4 of 'in' x 64 of 'out' [SDSC-MATMUL-C3]",
        matmul("batchmatmulint4", [{"in": 128}, {"out": 128}, fp16[2]]),
    )
    convolution = {"i": (4, 1), "out": (64, 1), "ki": (3, 1), "in": (64, 1)}
    yield (
        "sdsc_0.json: /0_conv2d/dscs_/0/conv2d/labeledDs_: expected mb, i, j of input and output, then out of kernel and output, ki, kj of the kernel, in of both inputs, which 'x' is not [SDSC-CONV-C1]",
        conv2d(convolution | {"x": (2, 1)}),
    )
    yield (
        "sdsc_0.json: /0_conv2d/dscs_/0/conv2d/primaryDsInfo_/KERNEL: the sticks of input 2 must be 64 of 'out' [SDSC-CONV-C2]",
        conv2d(convolution, [{"in": 64}, {"in": 64}, {"out": 64}]),
    )
    yield (
        "sdsc_0.json: /0_conv2d/dscs_/0/conv2d/scheduleTree_/0/backGapCore_: windows of 3 along 'i' reach over 6 elements, found 4 [SDSC-CONV-C3]",
        conv2d(convolution),
    )
    two = {"x": (2, 1), "mb": (8, 1), "out": (64, 1), "in": (128, 1)}
    yield (
        "sdsc_0.json: /0_batchmatmul/dscs_/0/batchmatmul/labeledDs_: expected one reduced and one generated dimension, at most two preserved, two in all tensors and no other, found [in], [out], [mb], [] and [x] [SDSC-MATMUL-C4]",
        matmul("batchmatmul", fp16, two, ["in", "x", "out"]),
    )
    yield (
        "sdsc_0.json: /0_sum/dscs_/0/sum/labeledDs_/1/scale_: 'sum' reduces the stick dimension, so that the output's scale there is -2 [SDSC-REDUCE-C1]",
        unary("sum", dims, [OUT]),
    )
    yield (
        "sdsc_0.json: /0_sumnonstick/dscs_/0/sumnonstick/labeledDs_/1/scale_: 'sumnonstick' does not reduce the stick dimension [SDSC-REDUCE-C2]",
        one(
            "sumnonstick",
            dims,
            [OUT],
            [tensor(OUT[0]), tensor(OUT[0], base=1 << 34, scale={"out": -2})],
        ),
    )
    yield (
        "sdsc_0.json: /0_abs/dscs_/0/abs/labeledDs_/1: the sticks of Tensor1 lie along [mb], others along [out] [SDSC-POINTWISE-C1]",
        unary("abs", dims, [OUT, TRANSPOSED]),
    )
    fp8 = (["mb", "out"], {"mb": 2, "out": 32})
    yield (
        "sdsc_0.json: /0_abs/dscs_/0/abs/labeledDs_/0/scale_: Tensor0 is broadcast along a part of its stick only [SDSC-POINTWISE-C2]",
        one(
            "abs",
            dims,
            [fp8],
            [tensor(OUT[0], scale={"out": -2}), tensor(OUT[0], base=1 << 34)],
        ),
    )
    yield (
        "sdsc_0.json: /0_topkvalue/dscs_/0/topkvalue/labeledDs_/0: the searched dimension 'out' is in a stick [SDSC-TOPK-C1]",
        one(
            "topkvalue",
            dims,
            [OUT],
            [tensor(OUT[0]), tensor(OUT[0], base=1 << 34, scale={"out": -2})],
        ),
    )
    yield (
        "sdsc_0.json: /0_maxpoolfwd/dscs_/0/maxpoolfwd/primaryDsInfo_/OUTPUT/stickDimOrder_: the window dimension 'ki' is in a stick [SDSC-POOL-C1]",
        unary(
            "maxpoolfwd",
            {"mb": (64, 1), "ki": (64, 1)},
            [(["mb", "ki"], {"ki": 64})],
        ),
    )
    yield (
        "sdsc_0.json: /0_dl16tofp32/dscs_/0/dl16tofp32/labeledDs_/1: a conversion keeps the stick dimension [SDSC-CAST-C1]",
        unary("dl16tofp32", dims, [OUT, TRANSPOSED]),
    )
    yield (
        "sdsc_0.json: /0_ReStickifyOpHBM/dscs_/0/ReStickifyOpHBM/primaryDsInfo_/KERNEL/stickDimOrder_: expected one stick dimension [SDSC-RESTICKIFY-C1]",
        unary("ReStickifyOpHBM", dims, [OUT, fp8]),
    )
    allowed = add()
    text = allowed["bundle.mlir"]
    yield (
        "bundle.mlir:5:6: 'arith.muli' is not part of a bundle [SDSC-BUNDLE-C1]",
        allowed
        | {
            "bundle.mlir": text.replace(
                "\t\treturn",
                "%z = arith.constant 1 : index\n%c = arith.muli %z, %z : index\n\t\treturn",
            )
        },
    )
    yield (
        "bundle.mlir:3: '../sdsc_0.json' is not the plain name of a file in the folder [SDSC-BUNDLE-C2]",
        allowed | {"bundle.mlir": program("../sdsc_0.json")},
    )
    yield (
        "bundle.mlir:4: the symbol -2 of sdsc_0.json, the address of tensor 2 on core 1, is not bound [SDSC-BUNDLE-C3]",
        symbolic([-1, -2], "-1, -3"),
    )
    yield (
        "sdsc_1.json: the symbol -2 belongs to sdsc_0.json [SDSC-BUNDLE-C4]",
        symbolic([-1, -2], "-1, -2", [-1, -2]),
    )
    yield (
        "sdsc_1.json: bundle.mlir does not execute this file [SDSC-BUNDLE-C5]",
        allowed
        | {
            "sdsc_1.json": sdsc(
                "add",
                {"mb": (8, 2), "out": (128, 1)},
                [OUT],
                [tensor(OUT[0], base=n << 34) for n in range(3)],
                index=1,
            )
        },
    )
    yield (
        "bundle.mlir:2:2: sdscbundle.segments is an array<i64> of at most 7 distinct arguments' numbers, before them -1 for a pool [SDSC-BUNDLE-C6]",
        allowed | {"bundle.mlir": with_segments("0, 1, 0")},
    )
    yield (
        "bundle_1: is not there, but the folder has 2 bundles bundle_<k> and no manifest.json [SDSC-BUNDLE-C7]",
        {f"bundle_{k}/{name}": file for k in (0, 2) for name, file in allowed.items()},
    )
    sized = sized_add()
    unbound = sized["bundle.mlir"]
    yield (
        "bundle.mlir:11: the symbol -1 of sdsc_0.json, of dimension 'mb', must be bound to a size 's0' with granularity 4 and max_value 8 [SDSC-BUNDLE-C8]",
        sized | {"bundle.mlir": unbound.replace("max_value=8", "max_value=16")},
    )
    looped = looped_add()["bundle.mlir"]
    whole = "a loop up to 's0', a multiple of 64 up to 512 (%dim_s0_base), must"
    yield (
        f"bundle.mlir:11:3: {whole} have a step that divides the granularity, but has 48, with which iterations would leave out the end of some sizes [SDSC-BUNDLE-C9]",
        looped_add(step=48),
    )
    yield (
        f"bundle.mlir:11:3: {whole} begin at the constant 0 [SDSC-BUNDLE-C9]",
        looped_add() | {"bundle.mlir": looped.replace("= %c0 to", "= %step_0 to")},
    )
    yield (
        f"bundle.mlir:11:3: {whole} have a constant step [SDSC-BUNDLE-C9]",
        looped_add()
        | {"bundle.mlir": looped.replace("step %step_0 {", "step %dim_s0 {")},
    )
    quotient = (
        "\t\t%half = affine.apply affine_map<()[s0] -> (s0 floordiv 2)>()[%dim_s0]\n"
        "\t\tscf.for"
    )
    ends = f"bundle.mlir:12:3: {whole} end at that size itself: not at a quotient, a sum or a multiple, and no other bound of it may depend on a size [SDSC-BUNDLE-C9]"
    halved = looped_add(bound="%half")
    halved["bundle.mlir"] = halved["bundle.mlir"].replace("\t\tscf.for", quotient)
    yield ends, halved
    summed = looped_add(bound="%half")
    summed["bundle.mlir"] = summed["bundle.mlir"].replace(
        "\t\tscf.for", "\t\t%half = arith.addi %dim_s0, %step_0 : index\n\t\tscf.for"
    )
    yield ends, summed
    # A file with a dimension of many sizes in such a loop.
    sized = sized_add()
    lines = sized["bundle.mlir"].split("\n")
    step = [
        "\t\t%c0 = arith.constant 0 : index",
        "\t\t%c4 = arith.constant 4 : index",
        "\t\tscf.for %i = %c0 to %dim_s0 step %c4 {",
    ]
    yield (
        "bundle.mlir:14:3: an operand depends on 's0', a multiple of 4 up to 8 (%dim_s0_base), but files in a loop up to 's0', a multiple of 4 up to 8 (%dim_s0_base), are for one size [SDSC-BUNDLE-C9]",
        sized
        | {
            "bundle.mlir": "\n".join(
                [*lines[:10], *step, lines[10], "\t\t}", *lines[11:]]
            )
        },
    )
    yield (
        "manifest.json: /version: expected an integer from 0 to 1048576 [SDSC-MANIFEST-C1]",
        manifest(version="one"),
    )
    yield (
        "manifest.json: /bundles/0/arguments: there is no argument 9 [SDSC-MANIFEST-C2]",
        manifest(
            bundles=[
                {
                    "folder": ".",
                    "pool": False,
                    "arguments": [0, 1, 9],
                    "files": [],
                }
            ]
        ),
    )
    small = manifest()["manifest.json"]["arguments"]
    small[1] = small[1] | {"shape": [4, 128]}
    yield (
        "sdsc_0.json:1:1: Tensor1 accesses coordinates 0 to 255 of dimension 1 of its buffer, whose extent is 128 [SDSC-MANIFEST-C3]",
        manifest(arguments=small),
    )


def others():
    """A link, even to a file of the same folder, and second ways to break a rule."""
    files = add()
    files["other.json"] = files.pop("sdsc_0.json")
    files["sdsc_0.json"] = Link("other.json")
    yield (
        "sdsc_0.json: is a link, and links are not followed [SDSC-FILE-C1]",
        files,
    )
    yield (
        "manifest.json: /bundles: expected at least one bundle [SDSC-MANIFEST-C2]",
        manifest(bundles=[]),
    )
    whole = manifest()["manifest.json"]
    (own,) = whole["bundles"]
    yield (
        "manifest.json: /bundles/0/pool: there is no pool: pool_bytes is 0 [SDSC-MANIFEST-C2]",
        manifest(bundles=[own | {"pool": True}]),
    )
    (first, *rest) = whole["arguments"]
    yield (
        "manifest.json: /arguments/0/name: expected a name [SDSC-MANIFEST-C1]",
        manifest(arguments=[first | {"name": ""}, *rest]),
    )
    yield (
        "manifest.json: 'func.func' op argument 0: layout with device size [2, 8, 64] and stride map [128, 128, 2] cannot hold a tensor of size [8, 128] and strides [128, 2]: steps 1 and 1 of dimension 0 do not nest [SDSC-MANIFEST-C3]",
        manifest(arguments=[first | {"strides": [128, 2]}, *rest]),
    )
    yield from sdsc_manifests.cases()
    yield (
        "bundle.mlir: the segments are not the arguments at /bundles/0/arguments of manifest.json [SDSC-BUNDLE-C6]",
        manifest() | {"bundle.mlir": with_segments("0, 2, 1")},
    )
    sized = sized_add()
    text = sized["bundle.mlir"]
    bound = "(%dim_s0, %arg_0, %addr_0, %arg_1, %addr_1, %arg_2, %addr_2)"
    yield (
        "bundle.mlir:11: the symbol -1 of sdsc_0.json, the size 's0' (multiples of 4 up to 8) of dimension 'mb' of tensors 0, 1 and 2, is not bound [SDSC-BUNDLE-C3]",
        sized | {"bundle.mlir": text.replace("(%dim_s0, ", "(").replace("[-1, ", "[")},
    )
    yield (
        "bundle.mlir:11: the symbol -1 of sdsc_0.json, of dimension 'mb', must be bound to a size 's0' with granularity 4 and max_value 8 [SDSC-BUNDLE-C8]",
        sized
        | {"bundle.mlir": text.replace(bound, bound.replace("%dim_s0", "%arg_0"))},
    )
    yield (
        "bundle.mlir: the size 's0' with granularity 4 and max_value 8 is not that of manifest.json [SDSC-BUNDLE-C8]",
        manifest() | sized,
    )
    yield (
        f"sdsc_0.json: {DSC}/dimToSymbolMapping_/mb: the size 's0' of 'mb', a multiple of 4 up to 8, is that of a part of a tensor, or a page of one [SDSC-SYMBOL-C3]",
        sized_add(gap={"mb": 4}),
    )
    dims = {"mb": (8, 1), "out": (128, 1)}
    tensors = [tensor(OUT[0]), tensor(OUT[0], base=1 << 34, scale={"out": -2})]
    constants = [("samv-maskvalue", "SEN169_FP16", 0)]
    more = {"constants": constants, "mask": {"out": [[100, 28]]}}
    yield (
        "sdsc_0.json: /0_max/dscs_/0/max/constantInfo_/0: padding must count as -inf in 'max', so that results are those of the rest [SDSC-DIM-C4]",
        one("max", dims, [OUT], tensors, **more),
    )
    constants = [("clipMin", "SEN169_FP16", 0), ("clipMax", "SEN169_FP16", 1 << 16)]
    yield (
        "sdsc_0.json: /0_clip/dscs_/0/clip/constantInfo_/1: the word 65536 is more than the 16 bits of its format [SDSC-OP-C4]",
        unary("clip", dims, [OUT], constants=constants),
    )


class Link(NamedTuple):
    """A file of a bundle that is a link to another one."""

    to: str


class Broken(NamedTuple):
    """What is said of a bundle, with the rule at its end, and its files."""

    said: str
    files: dict

    @property
    def rule(self) -> str:
        return self.said.rpartition("[")[2].removesuffix("]")

    def write(self, folder: Path) -> None:
        files = {k: v for k, v in self.files.items() if not isinstance(v, Link)}
        sdsc_bundles.write(folder, files)
        for name, file in self.files.items():
            if isinstance(file, Link):
                (folder / name).symlink_to(file.to)


#: In the order of TableGen: files, form, operations, dimensions, tensors, bundles.
BROKEN = [Broken(*case) for case in (*cases(), *others())]


def numbered(cases):
    """Parameters named after their rules, and by a number from the second on."""
    seen = []
    for case in cases:
        seen.append(case.rule)
        count = seen.count(case.rule)
        yield pytest.param(case, id=case.rule + (f"-{count}" if count > 1 else ""))
