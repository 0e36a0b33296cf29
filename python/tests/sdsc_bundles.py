# SPDX-License-Identifier: Apache-2.0
"""Small SuperDSC bundles, built from the description of the format.

Shares nothing with the writer in lib/Target/SuperDSC, so that each checks the
other. A bundle is a dict of file name to JSON value or text.
"""

import json
from pathlib import Path

LABELS = ["OUTPUT", "KERNEL", "INPUT", "KERNEL_IDX"]
WORD = {
    "SEN169_FP16": 2,
    "IEEE_FP32": 4,
    "IEEE_INT32": 4,
    "SENINT8": 1,
    "SENINT4": 1,
    "SEN143_FP8": 1,
    "SENUINT32": 4,
}


def affine(alpha):
    return {"Affine": {"alpha_": alpha, "beta_": 0}}


def factor(number, label):
    return {"factor_": number, "label_": label}


def tensor(order, base=0, scale=None, label=0, fmt="SEN169_FP16", **more):
    """One operand: its dimensions inner to outer and where it starts."""
    return {
        "order": order,
        "base": base,
        "scale": scale or {},
        "label": label,
        "fmt": fmt,
        "lx": False,
        "gap": {},
        **more,
    }


def sdsc(op, dims, labels, tensors, *, index=0, constants=(), mask=None, **more):
    """One file. dims: {name: (size, slices)}; labels: [(order, sticks)].

    sizes: {name: (symbol, size's name, step)} of dimensions that are symbolic.
    """
    unit = more.get("unit", "pt" if op.startswith("batchmatmul") else "sfp")
    cores = 1
    for _, slices in dims.values():
        cores *= slices

    def slice_of(core, name):
        for dim, (_, slices) in dims.items():
            if dim == name:
                return core % slices
            core //= slices
        raise KeyError(name)

    def per_core(function):
        return {str(core): function(core) for core in range(cores)}

    def own_size(name):
        return dims[name][0] // dims[name][1]

    names = more.get("names", LABELS)
    reduction = more.get(
        "reduction", op.removesuffix("nonstick") in ("sum", "max", "min", "mean")
    )
    folds = [factor(cores, "core"), factor(1, "corelet"), factor(1, "time")]
    nodes, structures = [], []
    for number, t in enumerate(tensors):
        order, sticks = labels[t["label"]]

        def scale(name, t=t):
            return t["scale"].get(name, 1)

        def sticks_of(name, size, sticks=sticks, scale=scale):
            return 1 if scale(name) != 1 else -(-size // sticks.get(name, 1))

        addresses = {}
        for core in range(cores):
            offset, stride = 0, 1
            for name in t["order"]:
                size = dims[name][0] + t["gap"].get(name, 0)
                if scale(name) == 1:
                    step = own_size(name) // sticks.get(name, 1)
                    offset += slice_of(core, name) * step * stride
                stride *= sticks_of(name, size)
            address = t["base"] + (0 if t["lx"] else 128 * offset)
            if "symbols" in t:
                address = t["symbols"][core]
            addresses[f"[{core}, 0, 0]"] = str(address)
        place = "lx" if t["lx"] else "hbm"
        node = {
            "nodeType_": "allocate",
            "name_": f"allocate-Tensor{number}_{place}",
            "prev_": "",
            "ldsIdx_": number,
            "component_": place,
        }
        if "symbols" in t:
            node["isStartAddrSymbolic_"] = 1
        node["layoutDimOrder_"] = t["order"]
        node["maxDimSizes_"] = [-1] * len(t["order"])
        node["indirectAllocType_"] = t.get("indirect", "no_indirection")
        if "related" in t:
            node["relatedIndirectAccessAlloc_"] = t["related"]
        if t.get("indirect") == "index_tensor":
            node["indexTensorType_"] = "index"
        node["startAddressCoreCorelet_"] = {
            "dim_prop_func": [{"Map": {}}, {"Const": {}}, {"Const": {}}],
            "dim_prop_attr": folds,
            "data_": addresses,
        }
        gaps = {d: {"-1": str(t["gap"][d])} for d in dims if t["gap"].get(d)}
        if gaps:
            node["backGapCore_"] = gaps
        coordinates = {}
        for name in order:
            slices, size = dims[name][1], own_size(name)
            if scale(name) != 1:
                slices = size = 1
            if name in sticks and scale(name) != -1:
                e = sticks[name]
                a = [size, 0, 0, e, 1] if scale(name) == 1 else [e, 0, 0, e, 0]
                f = [slices, 1, 1, size // e, e]
                f = f if scale(name) == 1 else [1, 1, 1, 1, e]
                inner = ["elem_arr_1", "elem_arr_0"]
            else:
                a, f, inner = [size, 0, 0, 1], [slices, 1, 1, size], ["elem_arr_0"]
            kinds = ["core_fold", "corelet_fold", "row_fold", *inner]
            coordinates[name] = {
                "spatial": 3,
                "temporal": 0,
                "elemArr": len(inner),
                "padding": "nopad",
                "folds": {
                    "dim_prop_func": [affine(x) for x in a],
                    "dim_prop_attr": [
                        factor(x, kind) for x, kind in zip(f, kinds, strict=True)
                    ],
                },
            }
        node["coordinates_"] = {"coordInfo": coordinates, "coreIdToWkSlice_": {}}
        nodes.append(node)
        memory = {} if t["lx"] else {"hbm": {"isPresent": 1}}
        if t.get("indirect") != "index_tensor":
            memory["lx"] = {"isPresent": 1}
        structures.append(
            {
                "ldsIdx_": number,
                "dsName_": f"Tensor{number}",
                "dsType_": names[t["label"]],
                "scale_": [scale(name) for name in order],
                "wordLength": WORD[t["fmt"]],
                "dataFormat_": t["fmt"],
                "memOrg_": memory,
            }
        )
    stage = {"name_": "core"} | {f"{d}_": own_size(d) for d in dims}
    sizes = more.get("sizes", {})
    mapping = {d: [symbol] for d, (symbol, _, _) in sizes.items()}
    if sizes:
        stage["symbolicDimInfo_"] = {
            d: {"maxSize_": own_size(d), "granularity_": step // dims[d][1]}
            for d, (_, _, step) in sizes.items()
        }
    info = {}
    for number, (name, fmt, bits) in enumerate(constants):
        info[str(number)] = {
            "dataFormat_": fmt,
            "name_": name,
            "data_": {
                "dim_prop_func": [{"Const": {}}, {"Const": {}}, {"Map": {}}],
                "dim_prop_attr": folds,
                "data_": {"[0, 0, 0]": [bits]},
            },
        }
    refs = [f"Tensor{number}-idx{number}" for number in range(len(tensors))]
    index_refs = [
        ref
        for ref, t in zip(refs, tensors, strict=True)
        if t.get("indirect") == "index_tensor"
    ]
    data_refs = [ref for ref in refs[:-1] if ref not in index_refs]
    compute = {
        "exUnit": unit,
        "opFuncName": op,
        "attributes_": {
            "dataFormat_": tensors[0]["fmt"],
            "fidelity_": "regular",
        },
        "location": "Inner",
        "inputLabeledDs": data_refs + (refs[-1:] if reduction else []),
        "outputLabeledDs": refs[-1:],
    }
    if index_refs:
        compute["indirectAccessIndexLabeledDs"] = index_refs
    dsc = {
        "numCoresUsed_": cores,
        "numCoreletsUsed_": 1,
        "coreIdsUsed_": list(range(cores)),
        "N_": {"name_": "n"} | {f"{d}_": size for d, (size, _) in dims.items()},
        **({"dimToSymbolMapping_": mapping} if sizes else {}),
        "coordinateMasking_": mask or {},
        "maskingConstId_": 0 if mask else -1,
        "dataStageParam_": {"0": {"ss_": stage, "el_": stage}},
        "primaryDsInfo_": {
            names[i]: {
                "layoutDimOrder_": order,
                "stickDimOrder_": list(sticks),
                "stickSize_": list(sticks.values()),
            }
            for i, (order, sticks) in enumerate(labels)
        },
        "scheduleTree_": nodes,
        "labeledDs_": structures,
        "constantInfo_": info or "{}",
        "computeOp_": [compute],
    }
    time = factor(1, "time")
    body = {
        "sdscFoldProps_": [time],
        "sdscFolds_": {
            "dim_prop_func": [affine(1)],
            "dim_prop_attr": [time],
            "data_": {"[0]": "0"},
        },
        "coreFoldProp_": factor(cores, "core"),
        "coreletFoldProp_": factor(1, "corelet"),
        "numCoresUsed_": cores,
        "coreIdToDsc_": per_core(lambda core: 0),
        "numWkSlicesPerDim_": {d: slices for d, (_, slices) in dims.items()},
        "coreIdToWkSlice_": per_core(lambda core: {d: slice_of(core, d) for d in dims}),
        "coreIdToDscSchedule": per_core(lambda core: [[-1, 0, 0, 0]]),
        "dscs_": [{op: dsc}],
    }
    if sizes:
        names = {str(symbol): name for symbol, name, _ in sizes.values()}
        body["inputSymbolsAndTags_"] = names
        body["dscs_"] = body.pop("dscs_")
        body["datadscs_"] = []
    return {f"{index}_{op}": body}


def program(*files, parameters=(), operands=None):
    """The text of a bundle.mlir that executes the files in order."""
    lines = ["module {", "\tfunc.func @sdsc_bundle("]
    lines[-1] += ", ".join(
        f"%{p}_base_addr: !sdscbundle.input_arg<index>" for p in parameters
    )
    lines[-1] += ") {"
    lines += [
        f"\t\t%{p} = sdscbundle.input_arg_extract value from %{p}_base_addr : "
        "!sdscbundle.input_arg<index> -> index"
        for p in parameters
    ]
    for file in files:
        bound, ids = (operands or {}).get(file, ("", ""))
        ids = f', "symbol_ids"=[{ids}]' if ids else ""
        lines.append(
            f'\t\tsdscbundle.sdsc_execute ({bound}) {{sdsc_filename="{file}"{ids}}}'
        )
    return "\n".join([*lines, "\t\treturn", "\t}", "}", ""])


def add():
    """Sum of two 8 x 128 fp16 tensors on two cores."""
    dims = {"mb": (8, 2), "out": (128, 1)}
    tensors = [tensor(["mb", "out"], base=segment << 34) for segment in range(3)]
    file = sdsc("add", dims, [(["mb", "out"], {"out": 64})], tensors)
    return {"sdsc_0.json": file, "bundle.mlir": program("sdsc_0.json")}


def sized_add(op="add", sizes=None, **more):
    """The same for 4 or 8 rows: half of them on each core."""
    dims = {"mb": (8, 2), "out": (128, 1)}
    tensors = [
        tensor(["mb", "out"], symbols=[-2 - 2 * n, -3 - 2 * n], **more)
        for n in range(3)
    ]
    sizes = {"mb": (-1, "s0", 4)} if sizes is None else sizes
    file = sdsc(op, dims, [(["mb", "out"], {"out": 64})], tensors, sizes=sizes)
    size = "!sdscbundle.input_arg<index, granularity=4, max_value=8>"
    address = "!sdscbundle.input_arg<index>"
    parameters = [f"%arg_{n}_base_addr: {address}" for n in range(3)]
    parameters.append(f"%dim_s0_base: {size}")
    read = "sdscbundle.input_arg_extract value from"
    lines = [
        "#map_0 = affine_map<()[s0, s1] -> (s0 + 64*s1)>",
        "module {",
        f"\tfunc.func @sdsc_bundle({', '.join(parameters)}) {{",
        *(
            f"\t\t%arg_{n} = {read} %arg_{n}_base_addr : {address} -> index"
            for n in range(3)
        ),
        f"\t\t%dim_s0 = {read} %dim_s0_base : {size} -> index",
        *(
            f"\t\t%addr_{n} = affine.apply #map_0()[%arg_{n}, %dim_s0]"
            for n in range(3)
        ),
        "\t\tsdscbundle.sdsc_execute (%dim_s0, %arg_0, %addr_0, %arg_1, %addr_1, "
        '%arg_2, %addr_2) {sdsc_filename="sdsc_0.json", '
        '"symbol_ids"=[-1, -2, -3, -4, -5, -6, -7]}',
        "\t\treturn",
        "\t}",
        "}",
        "",
    ]
    return {"sdsc_0.json": file, "bundle.mlir": "\n".join(lines)}


#: How the rows of an argument lie in a looped_add: the file's dimensions from inner to
#: outer, its gap, and the bytes from row to row, or from tile to tile by its rows.
STORAGE = {
    "sticks": (["mb", "out"], {"mb": 448}, 128),
    "tiles": (["mb", "out"], {}, 2048),
    "rows": (["out", "mb"], {}, 2048),
}


def looped_add(storage="tiles", slices=2, step=64, bound="%dim_s0"):
    """Sum of two S x 1024 fp16 tensors, S from 64 to 512, in tiles of 64 rows.

    The example of spec/symbolic-shapes.md, "Route B": the file is of one size.
    """
    order, gap, bytes_per_row = STORAGE[storage]
    dims = {"mb": (64, slices), "out": (1024, 1)}
    tensors = [
        tensor(order, symbols=[-1 - slices * n - core for core in range(slices)])
        | {"gap": gap}
        for n in range(3)
    ]
    file = sdsc("add", dims, [(order, {"out": 64})], tensors)
    size = "!sdscbundle.input_arg<index, granularity=64, max_value=512>"
    address = "!sdscbundle.input_arg<index>"
    parameters = [f"%arg_{n}_base_addr: {address}" for n in range(3)]
    parameters.append(f"%dim_s0_base: {size}")
    read = "sdscbundle.input_arg_extract value from"
    # The second core begins at the second half of a tile's rows.
    half = 32 * (2048 if storage == "rows" else 128)
    names = [f"%addr_{n}_{core}" for n in range(3) for core in range(slices)]
    ids = ", ".join(str(-1 - number) for number in range(3 * slices))
    lines = [
        *(
            f"#map_{core} = affine_map<(d0)[s0] -> (s0 + {bytes_per_row}*d0 + {core * half})>"
            for core in range(slices)
        ),
        "module {",
        f"\tfunc.func @sdsc_bundle({', '.join(parameters)}) {{",
        *(
            f"\t\t%arg_{n} = {read} %arg_{n}_base_addr : {address} -> index"
            for n in range(3)
        ),
        f"\t\t%dim_s0 = {read} %dim_s0_base : {size} -> index",
        "\t\t%c0 = arith.constant 0 : index",
        f"\t\t%step_0 = arith.constant {step} : index",
        f"\t\tscf.for %i = %c0 to {bound} step %step_0 {{",
        *(
            f"\t\t\t%addr_{n}_{core} = affine.apply #map_{core}(%i)[%arg_{n}]"
            for n in range(3)
            for core in range(slices)
        ),
        f"\t\t\tsdscbundle.sdsc_execute ({', '.join(names)}) "
        f'{{sdsc_filename="sdsc_0.json", "symbol_ids"=[{ids}]}}',
        "\t\t}",
        "\t\treturn",
        "\t}",
        "}",
        "",
    ]
    return {"sdsc_0.json": file, "bundle.mlir": "\n".join(lines)}


def write(folder, files):
    """Write the files of a bundle."""
    folder = Path(folder)
    for name, content in files.items():
        if not isinstance(content, str | bytes):
            content = json.dumps(content, indent=2)
        if isinstance(content, str):
            content = content.encode()
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
