# SPDX-License-Identifier: Apache-2.0
"""Make one bundle per rule that breaks it, in folders named after the rules.

Usage: broken.py FOLDER
"""

import copy
import os
import sys
from pathlib import Path

import bundle
from bundle import add, program, sdsc, tensor

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


def manifest(**changed):
    shape = {"shape": [8, 128], "strides": [128, 1]}
    layout = {"order": [0, 1], "sparse": False}
    arguments = [
        {"name": f"arg{n}", "dtype": "float16", **shape, **layout} for n in range(3)
    ]
    file = {"file": "sdsc_0.json", "extents": {}, "tensors": [0, 1, 2]}
    file["offsets"] = [0, 0, 0]
    own = {"folder": ".", "pool": False, "arguments": [0, 1, 2], "files": [file]}
    whole = {"version": 1, "pool_bytes": 0, "arguments": arguments, "buffers": []}
    return add() | {"manifest.json": whole | {"bundles": [own]} | changed}


def with_segments(numbers):
    attributes = f" attributes {{sdscbundle.segments = array<i64: {numbers}>}} {{"
    return add()["bundle.mlir"].replace(" {\n\t\tsdsc", attributes + "\n\t\tsdsc")


def cases():
    dims = {"mb": (128, 1), "out": (128, 1)}
    yield "FILE-C2", edited("/0_add") | {"sdsc_0.json": '{"0_add": {"a": 1, "a": 2}}'}
    yield "FORM-C1", edited("/1_add", {})
    yield "FORM-C2", edited(f"{DSC}/N_", delete=True)
    yield "FORM-C3", edited("/0_add/surprise_", 1)
    yield "FORM-C4", edited("/0_add/coreFoldProp_/factor_", 3)
    yield "OP-C1", one("addd", dims, [OUT], [tensor(OUT[0])] * 3)
    yield "OP-C2", edited(f"{DSC}/computeOp_/0/inputLabeledDs", ["Tensor0-idx0"])
    yield "OP-C3", edited(f"{DSC}/computeOp_/0/exUnit", "pt")
    yield "OP-C4", unary("clip", dims, [OUT], constants=[("clipMin", "SEN169_FP16", 0)])
    yield "OP-C5", edited(f"{DSC}/computeOp_/0/attributes_/dataFormat_", "IEEE_FP32")
    yield "DIM-C1", edited(f"{DSC}/N_/width_", 4)
    yield "DIM-C2", edited("/0_add/numWkSlicesPerDim_/mb", 3)
    yield "DIM-C3", edited("/0_add/coreIdToWkSlice_/1/mb", 0)
    yield "DIM-C4", edited(f"{DSC}/coordinateMasking_", {"out": [[100, 20]]})
    yield (
        "LABEL-C1",
        one("abs", dims, [OUT], [tensor(OUT[0])] * 2, names=["BANANA"]),
    )
    yield (
        "LABEL-C2",
        edited(f"{DSC}/primaryDsInfo_/OUTPUT/layoutDimOrder_", ["mb", "mb"]),
    )
    yield "TENSOR-C1", edited(f"{DSC}/labeledDs_/0/scale_", [-2, 1])
    yield "TENSOR-C2", edited(f"{DSC}/labeledDs_/0/wordLength", 4)
    yield (
        "TENSOR-C3",
        edited(f"{DSC}/computeOp_/0/inputLabeledDs/1", "Tensor7-idx7"),
    )
    yield (
        "TENSOR-C4",
        one(
            "abs",
            dims,
            [OUT],
            [tensor(OUT[0], gap={"mb": -128}), tensor(OUT[0], base=1 << 34)],
        ),
    )
    yield (
        "TENSOR-C5",
        one(
            "identity",
            dims,
            [OUT],
            [tensor(OUT[0], indirect="value_tensor"), tensor(OUT[0], base=1 << 34)],
        ),
    )
    yield "ADDRESS-C1", edited(addresses(0), {"[0, 0, 0]": "64", "[1, 0, 0]": "576"})
    yield "ADDRESS-C2", edited(f"{addresses(1)}/[1, 0, 0]", "17179869184")
    yield "ADDRESS-C3", unary("abs", {"mb": (4, 1), "out": (64, 2)}, [OUT])
    yield "ADDRESS-C4", unary("abs", {"mb": (1 << 22, 1), "out": (64, 1)}, [OUT])
    yield (
        "ADDRESS-C5",
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
    fp16 = [{"in": 64}, {"out": 64}, {"out": 64}]
    yield "MATMUL-C1", matmul("batchmatmul", [{"in": 64}, {"in": 64}, {"out": 64}])
    yield "MATMUL-C2", matmul("batchmatmulint8", [{"in": 128}, {"out": 128}, fp16[2]])
    yield "MATMUL-C3", matmul("batchmatmulint4", [{"in": 128}, {"out": 128}, fp16[2]])
    two = {"x": (2, 1), "mb": (8, 1), "out": (64, 1), "in": (128, 1)}
    yield "MATMUL-C4", matmul("batchmatmul", fp16, two, ["in", "x", "out"])
    yield "REDUCE-C1", unary("sum", dims, [OUT])
    yield (
        "REDUCE-C2",
        one(
            "sumnonstick",
            dims,
            [OUT],
            [tensor(OUT[0]), tensor(OUT[0], base=1 << 34, scale={"out": -2})],
        ),
    )
    yield "POINTWISE-C1", unary("abs", dims, [OUT, TRANSPOSED])
    fp8 = (["mb", "out"], {"mb": 2, "out": 32})
    yield (
        "POINTWISE-C2",
        one(
            "abs",
            dims,
            [fp8],
            [tensor(OUT[0], scale={"out": -2}), tensor(OUT[0], base=1 << 34)],
        ),
    )
    yield (
        "TOPK-C1",
        one(
            "topkvalue",
            dims,
            [OUT],
            [tensor(OUT[0]), tensor(OUT[0], base=1 << 34, scale={"out": -2})],
        ),
    )
    yield (
        "POOL-C1",
        unary(
            "maxpoolfwd",
            {"mb": (64, 1), "ki": (64, 1)},
            [(["mb", "ki"], {"ki": 64})],
        ),
    )
    yield "CAST-C1", unary("dl16tofp32", dims, [OUT, TRANSPOSED])
    yield "RESTICKIFY-C1", unary("ReStickifyOpHBM", dims, [OUT, fp8])
    allowed = add()
    text = allowed["bundle.mlir"]
    yield (
        "BUNDLE-C1",
        allowed
        | {
            "bundle.mlir": text.replace(
                "\t\treturn",
                "%z = arith.constant 1 : index\n%c = arith.muli %z, %z : index\n\t\treturn",
            )
        },
    )
    yield "BUNDLE-C2", allowed | {"bundle.mlir": program("../sdsc_0.json")}
    yield "BUNDLE-C3", symbolic([-1, -2], "-1, -3")
    yield "BUNDLE-C4", symbolic([-1, -2], "-1, -2", [-1, -2])
    yield (
        "BUNDLE-C5",
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
    yield "BUNDLE-C6", allowed | {"bundle.mlir": with_segments("0, 1, 0")}
    yield (
        "BUNDLE-C7",
        {f"bundle_{k}/{name}": file for k in (0, 2) for name, file in allowed.items()},
    )
    yield "MANIFEST-C1", manifest(version="one")
    yield (
        "MANIFEST-C2",
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


def others():
    """Second ways to break a rule."""
    dims = {"mb": (8, 1), "out": (128, 1)}
    tensors = [tensor(OUT[0]), tensor(OUT[0], base=1 << 34, scale={"out": -2})]
    constants = [("samv-maskvalue", "SEN169_FP16", 0)]
    more = {"constants": constants, "mask": {"out": [[100, 28]]}}
    yield "mask of 0", one("max", dims, [OUT], tensors, **more)
    constants = [("clipMin", "SEN169_FP16", 0), ("clipMax", "SEN169_FP16", 1 << 16)]
    yield "wide word", unary("clip", dims, [OUT], constants=constants)


def main():
    root = Path(sys.argv[1])
    bundle.write(root / "good", add())
    bundle.write(root / "manifest", manifest())
    for name, numbers in ("segments", "0, 1, 2"), ("other segments", "0, 2, 1"):
        text = with_segments(numbers)
        bundle.write(root / name, manifest() | {"bundle.mlir": text})
    for name, files in others():
        bundle.write(root / name, files)
    for rule, files in cases():
        bundle.write(root / f"SDSC-{rule}", files)
    # A link is not followed, even to a file of the same folder.
    link = root / "SDSC-FILE-C1"
    bundle.write(link, add())
    os.rename(link / "sdsc_0.json", link / "other.json")
    os.symlink("other.json", link / "sdsc_0.json")


if __name__ == "__main__":
    main()
