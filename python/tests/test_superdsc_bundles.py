# SPDX-License-Identifier: Apache-2.0
"""What bundles of the description of the format give, and what plans give as bundles."""

import json

import numpy as np
import pytest
from commands import MORE, PLANNED, call, execute, needs_tools, refused, run
from sdsc_bundles import affine, factor, program, sdsc, tensor, write

pytestmark = needs_tools

SEGMENT = 1 << 34


def integers(*shape, seed=6):
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float16)


def operand(number, order=("mb", "out"), scale=None, **more):
    return tensor(list(order), number * SEGMENT, scale, **more)


def last_argument(file, inputs, folder):
    """The result of a bundle of one file."""
    write(
        folder / "bundle", {"sdsc_0.json": file, "bundle.mlir": program("sdsc_0.json")}
    )
    out = execute(folder / "bundle", [*inputs, "zeros"], folder / "run")
    return out[f"arg{len(inputs)}"]


# --- the shapes that arguments have without a manifest ---
#
# A result has the shape of its iterations; an input lies in memory as a tensor of
# default layout does. Square factors would not show in shapes that they are
# transposed, so the values are compared.


def product(dims, orders):
    labels = [(o, {s: 64}) for o, s in zip(orders, ["in", "out", "out"], strict=True)]
    tensors = [operand(n, order, label=n) for n, order in enumerate(orders)]
    names = ["INPUT", "KERNEL", "OUTPUT", "KERNEL_IDX"]
    return sdsc("batchmatmul", dims, labels, tensors, names=names)


def reduction(op, dims, order, result, scale):
    stick = {order[1]: 64}
    own = {"mb": -1} if op == "topkvalue" else {}
    tensors = [operand(0, order, own), operand(1, result, scale)]
    return sdsc(op, dims, [(order, stick)], tensors, reduction=op != "topkvalue")


def turned(orders, sticks):
    labels = [(o, {s: 64}) for o, s in zip(orders, sticks, strict=True)]
    tensors = [operand(n, order, label=n) for n, order in enumerate(orders)]
    return sdsc("ReStickifyOpHBM", {"mb": (64, 1), "out": (128, 1)}, labels, tensors)


MATRIX = {"mb": (64, 2), "out": (64, 1), "in": (64, 1)}
BATCH = {"x": (3, 1), "mb": (64, 2), "out": (64, 1), "in": (64, 1)}
#: File, shapes of its inputs, what it computes.
SHAPES = {
    "square factors": (
        product(MATRIX, [["mb", "in"], ["in", "out"], ["mb", "out"]]),
        [(64, 64), (64, 64)],
        lambda x, y: x @ y,
    ),
    "batches of square factors": (
        product(BATCH, [["x", "in", "mb"], ["x", "out", "in"], ["x", "out", "mb"]]),
        [(3, 64, 64), (3, 64, 64)],
        lambda x, y: x @ y,
    ),
    "sum of columns": (
        reduction(
            "sumnonstick",
            {"mb": (64, 1), "out": (64, 1)},
            ["out", "mb"],
            ["mb", "out"],
            {"out": -1},
        ),
        [(64, 64)],
        lambda x: x.sum(0),
    ),
    "sum of the first of three": (
        reduction(
            "sumnonstick",
            {"mb": (8, 1), "x": (64, 1), "out": (4, 1)},
            ["out", "x", "mb"],
            ["mb", "x", "out"],
            {"out": -1},
        ),
        [(4, 8, 64)],
        lambda x: x.sum(0),
    ),
    "largest of columns": (
        reduction(
            "topkvalue",
            {"mb": (4, 1), "x": (64, 1), "out": (64, 1)},
            ["out", "x", "mb"],
            ["mb", "x", "out"],
            {"out": -1},
        ),
        [(64, 64)],
        lambda x: np.sort(x, 0)[::-1][:4],
    ),
    "another stick, the same tensor": (
        turned([["mb", "out"], ["out", "mb"]], ["out", "mb"]),
        [(64, 128)],
        lambda x: x,
    ),
    "another stick, transposed": (
        turned([["out", "mb"], ["mb", "out"]], ["mb", "out"]),
        [(128, 64)],
        lambda x: x.T,
    ),
}


@pytest.mark.parametrize(
    ("file", "shapes", "function"), SHAPES.values(), ids=SHAPES.keys()
)
def test_shapes_without_manifest(file, shapes, function, tmp_path):
    inputs = [integers(*shape, seed=n) for n, shape in enumerate(shapes)]
    actual = last_argument(file, inputs, tmp_path)
    exact = function(*(array.astype(np.float64) for array in inputs))
    assert actual.shape == exact.shape
    assert (actual == exact).all()


# --- operations as the reference's source would write them ---
#
# Made from spec/superdsc.md with nothing of the writer; the reference has no example.

TWO, ONE = {"mb": (8, 2), "out": (128, 1)}, {"mb": (8, 1), "out": (64, 1)}
ROWS, TURNED = ["mb", "out"], ["out", "mb"]
HALF, FLOAT, BYTE = ((ROWS, {"out": stick}) for stick in (64, 32, 128))
STATISTIC, WEIGHT = {"out": -2}, {"mb": -1}


def half(name, bits):
    return (name, "SEN169_FP16", bits)


def normalised(inputs):
    """layernormnorm, with the statistics that scale and shift were made of or not."""
    operands = [operand(0)]
    for _ in range(inputs - 3):
        operands.append(operand(len(operands), scale=STATISTIC))
    for _ in range(2):
        operands.append(operand(len(operands), TURNED, WEIGHT))
    return sdsc("layernormnorm", TWO, [HALF], [*operands, operand(inputs)])


def batched(y):
    """A batch of matrices by a batch of them, or by one."""
    dims = {"x": (3, 1), "mb": (8, 2), "out": (64, 1), "in": (128, 1)}
    return product(dims, [["mb", "x", "in"], y, ["mb", "x", "out"]])


def gather():
    """As many rows as indices: the table has no page size."""
    tensors = [
        operand(0, ["mb"], fmt="SENUINT32", indirect="index_tensor"),
        operand(1, label=1, indirect="value_tensor", related="allocate-Tensor0_hbm"),
        operand(2, label=1),
    ]
    return sdsc(
        "identity",
        {"mb": (32, 1), "out": (128, 1)},
        [(["mb"], {"mb": 32}), HALF],
        tensors,
        names=["KERNEL_IDX", "OUTPUT"],
    )


def centred(folds):
    """A row less its mean; the mean's folds along the stick are a stick's or not."""
    tensors = [operand(0), operand(1, scale={"out": -1}), operand(2)]
    file = sdsc("sub", TWO, [HALF], tensors)
    if folds:
        node = file["0_sub"]["dscs_"][0]["sub"]["scheduleTree_"][1]
        own = node["coordinates_"]["coordInfo"]["out"]
        own["elemArr"] = 2
        own["folds"] = {
            "dim_prop_func": [affine(alpha) for alpha in (1, 0, 0, 64, 1)],
            "dim_prop_attr": [
                factor(1, "core_fold"),
                factor(1, "corelet_fold"),
                factor(1, "row_fold"),
                factor(0, "elem_arr_1"),
                factor(64, "elem_arr_0"),
            ],
        }
    return file


MASK = {"out": [[100, 28]]}
SCALE = half("scaling_factor", 0x3047)
UNLIKE_ANY_EXAMPLE = {
    "normalised": normalised(4),
    "normalised by mean": normalised(5),
    "scale": sdsc(
        "layernormscale",
        {"mb": (8, 2), "out": (64, 1)},
        [HALF],
        [operand(0, scale=STATISTIC), operand(1)],
        constants=[half("eps", 100)],
    ),
    "statistics": sdsc(
        "exx2",
        TWO,
        [HALF],
        [operand(0), operand(1, scale=STATISTIC)],
        constants=[half("exx2scale", 0x3000), half("useZeroMean", 0)],
        reduction=True,
    ),
    "up": sdsc(
        "dl16tofp32",
        TWO,
        [HALF, FLOAT],
        [operand(0), operand(1, label=1, fmt="IEEE_FP32")],
    ),
    "down": sdsc(
        "fp32todl16",
        TWO,
        [FLOAT, HALF],
        [operand(0, fmt="IEEE_FP32"), operand(1, label=1)],
    ),
    "mean": sdsc(
        "mean",
        TWO,
        [HALF],
        [operand(0), operand(1, scale=STATISTIC)],
        constants=[half("samv-maskvalue", 0), SCALE],
        mask=MASK,
    ),
    "mean of columns": sdsc(
        "meannonstick",
        {"mb": (8, 1), "out": (128, 2)},
        [HALF],
        [operand(0), operand(1, TURNED, WEIGHT)],
        constants=[SCALE],
        reduction=True,
    ),
    "batches": batched(["in", "x", "out"]),
    "batch by matrix": batched(["in", "out"]),
    "part of result": sdsc(
        "identity",
        ONE,
        [HALF],
        [operand(0), tensor(ROWS, SEGMENT + 1024, gap={"out": 64})],
    ),
    "part of input": sdsc(
        "identity",
        {"mb": (4, 2), "out": (128, 1)},
        [HALF],
        [tensor(ROWS, 256, gap={"mb": 4}), operand(1)],
    ),
    "where": sdsc(
        "where3",
        TWO,
        [HALF],
        [
            operand(0),
            operand(1, TURNED, WEIGHT),
            operand(2, scale=STATISTIC),
            operand(3),
        ],
    ),
    "largest": sdsc(
        "topkvalue",
        {"mb": (8, 1), "x": (4, 1), "out": (64, 1)},
        [(["mb", "out", "x"], {"out": 64})],
        [
            operand(0, ["mb", "out", "x"], {"x": -1}),
            operand(1, ["x", "out", "mb"], WEIGHT),
        ],
    ),
    "float maximum": sdsc(
        "max",
        TWO,
        [FLOAT],
        [operand(0, fmt="IEEE_FP32"), operand(1, scale=STATISTIC, fmt="IEEE_FP32")],
        constants=[("samv-maskvalue", "IEEE_FP32", 0xFF800000)],
        mask=MASK,
    ),
    "gather": gather(),
    "centred": centred(False),
    "centred by folds": centred(True),
    "quantised": sdsc(
        "qfp8ch",
        TWO,
        [HALF, BYTE],
        [operand(0), operand(1, label=1, fmt="SEN143_FP8")],
    ),
    "from quantised": sdsc(
        "fp8todl16",
        TWO,
        [BYTE, HALF],
        [operand(0, fmt="SEN143_FP8"), operand(1, label=1)],
    ),
}


@pytest.mark.parametrize("name", UNLIKE_ANY_EXAMPLE)
def test_other_source(name, tmp_path):
    """It is valid, has the same bytes when written again, and a meaning."""
    bundle, again = tmp_path / "bundle", tmp_path / "again"
    files = {
        "sdsc_0.json": UNLIKE_ANY_EXAMPLE[name],
        "bundle.mlir": program("sdsc_0.json"),
    }
    write(bundle, files)
    run("spyre-translate", "--validate-superdsc", bundle)
    run("spyre-translate", "--rewrite-superdsc", bundle, "-o", again)
    for part in files:
        assert (bundle / part).read_bytes() == (again / part).read_bytes()
    run("spyre-translate", "--from-superdsc", bundle, "-o", "-")


def test_other_source_gathers(tmp_path):
    random = np.random.default_rng(0)
    index = random.integers(0, 32, 32).astype(np.int32)
    table = random.integers(-64, 64, (32, 128)).astype(np.float16)
    actual = last_argument(UNLIKE_ANY_EXAMPLE["gather"], [index, table], tmp_path)
    assert (actual == table[index]).all()


def test_other_source_normalises_by_mean(tmp_path):
    random = np.random.default_rng(0)
    x, mean, scale = (
        random.integers(-8, 8, shape).astype(np.float16)
        for shape in ((8, 128), (8, 2), (8, 2))
    )
    weight, bias = random.integers(-8, 8, (2, 128)).astype(np.float16)
    inputs = [x, mean, scale, weight, bias]
    actual = last_argument(UNLIKE_ANY_EXAMPLE["normalised by mean"], inputs, tmp_path)
    exact = (x.astype(float) * scale[:, :1] + scale[:, 1:]) * weight + bias
    assert (actual == exact).all()


@pytest.mark.parametrize("name", ["centred", "centred by folds"])
def test_other_source_centres(name, tmp_path):
    random = np.random.default_rng(0)
    x = random.integers(-8, 8, (8, 128)).astype(np.float16)
    mean = random.integers(-8, 8, 8).astype(np.float16)
    actual = last_argument(UNLIKE_ANY_EXAMPLE[name], [x, mean], tmp_path)
    assert (actual == x - mean[:, None]).all()


# --- one decision edited in a plan changes exactly the values that say it ---


def leaves(value, path=()):
    """Every value of a JSON document by its path."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from leaves(inner, (*path, number))
    else:
        yield path, value


def values_of(text, folder):
    """The values of the bundle of a plan, by file and path."""
    folder.mkdir()
    (folder / "planned.mlir").write_text(text)
    bundle = folder / "bundle"
    run("spyre-translate", "--to-superdsc", folder / "planned.mlir", "-o", bundle)
    return {
        file.name: dict(leaves(json.loads(file.read_text())))
        for file in bundle.glob("sdsc_*.json")
    }


def changes(before, after):
    """Paths, with the file's name first, at which two writings differ."""
    assert before.keys() == after.keys()
    missing = object()
    return {
        (name, *path)
        for name in before
        for path in before[name].keys() | after[name].keys()
        if before[name].get(path, missing) != after[name].get(path, missing)
    }


#: What depends on the number of cores, by the last key that names it.
PER_CORE = {
    "coreFoldProp_",
    "numCoresUsed_",
    "coreIdToDsc_",
    "coreIdToWkSlice_",
    "coreIdToDscSchedule",
    "coreIdsUsed_",
    "startAddressCoreCorelet_",
}
TWO_OPS = PLANNED / "two_ops_symbolic.mlir"


def says_split(path, dim):
    """Whether a value says how `dim` is split."""
    if PER_CORE & set(path):
        return True
    if "numWkSlicesPerDim_" in path or "coordInfo" in path:
        return dim in path
    return "dataStageParam_" in path and path[-1] == f"{dim}_"


def test_edited_split(tmp_path):
    """4 x 2 cores become 2 x 2: rows per core are 32 in place of 16."""
    text = TWO_OPS.read_text()
    edited = text.replace("splits = [4, 2]", "splits = [2, 2]")
    edited = edited.replace("[16, 64]", "[32, 64]")
    before = values_of(text, tmp_path / "before")
    after = values_of(edited, tmp_path / "after")
    found = changes(before, after)
    assert found
    assert {path for path in found if not says_split(path, "mb")} == set()
    for values in after.values():
        for path, value in values.items():
            if path[1:] == ("numWkSlicesPerDim_", "mb"):
                assert value == 2
            if path[-1] == "mb_":
                assert value == (64 if "N_" in path else 32), path
            if path[1:] == ("numWkSlicesPerDim_", "out"):
                assert value == 2


def test_edited_address(tmp_path):
    """The intermediate moves by 4096 bytes on every core, and nothing else."""
    text = TWO_OPS.read_text()
    before = values_of(text, tmp_path / "before")
    after = values_of(text.replace("offset = 0,", "offset = 4096,"), tmp_path / "after")

    def is_lx(values, path):
        node = path[: path.index("scheduleTree_") + 2]
        return values[(*node, "component_")] == "lx"

    expected = {
        (name, *path)
        for name, values in before.items()
        for path, value in values.items()
        if "startAddressCoreCorelet_" in path
        and "data_" in path
        and value == "0"
        and is_lx(values, path)
    }
    assert expected and changes(before, after) == expected
    assert {after[name][tuple(path)] for name, *path in expected} == {"4096"}


# --- a program in place of another one ---


def contents(folder):
    """What is below a folder, by names."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


ABS = PLANNED / "abs_4x64.mlir"
SEVERAL = MORE / "several.mlir"


@pytest.mark.parametrize(
    ("before", "after"),
    [(TWO_OPS, ABS), (SEVERAL, ABS), (ABS, SEVERAL)],
    ids=["fewer files", "one bundle", "several bundles"],
)
def test_written_over_another(before, after, tmp_path):
    """The result is what is written to an empty folder, beside what is no program."""
    for source, folder in [(before, "used"), (after, "used"), (after, "new")]:
        run("spyre-translate", "--to-superdsc", source, "-o", tmp_path / folder)
        (tmp_path / folder / "notes.txt").write_text("mine")
    assert contents(tmp_path / "used") == contents(tmp_path / "new")
    done = call("spyre-translate", "--validate-superdsc", tmp_path / "used")
    assert done.returncode == 0, done.stdout
    left = {path.name for path in (tmp_path / "used").iterdir() if path.is_dir()}
    assert left == {path.name for path in (tmp_path / "new").iterdir() if path.is_dir()}


def test_rewritten_over_a_manifest(tmp_path):
    """What another program's manifest says is not said of a bundle without one."""
    run("spyre-translate", "--to-superdsc", ABS, "-o", tmp_path / "bare")
    (tmp_path / "bare" / "manifest.json").unlink()
    run("spyre-translate", "--to-superdsc", TWO_OPS, "-o", tmp_path / "used")
    run(
        "spyre-translate",
        "--rewrite-superdsc",
        tmp_path / "bare",
        "-o",
        tmp_path / "used",
    )
    assert contents(tmp_path / "used") == contents(tmp_path / "bare")


def test_rewritten_in_place(tmp_path):
    run("spyre-translate", "--to-superdsc", SEVERAL, "-o", tmp_path)
    before = contents(tmp_path)
    run("spyre-translate", "--rewrite-superdsc", tmp_path, "-o", tmp_path)
    assert contents(tmp_path) == before


def test_links_stay_what_they_are(tmp_path):
    """A link to a file is replaced, one to a folder is not followed."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sdsc_0.json").write_text("mine")
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "sdsc_0.json").symlink_to("../mine/sdsc_0.json")
    (tmp_path / "used" / "bundle_0").symlink_to("../mine")
    run("spyre-translate", "--to-superdsc", ABS, "-o", tmp_path / "used")
    assert contents(tmp_path / "mine") == {"sdsc_0.json": b"mine"}
    assert not (tmp_path / "used" / "sdsc_0.json").is_symlink()


def test_other_files_are_not_removed(tmp_path):
    """A name that no writer makes, but that readers take for a file's."""
    run("spyre-translate", "--to-superdsc", TWO_OPS, "-o", tmp_path)
    (tmp_path / "sdsc.schema.json").write_text("{}")
    before = contents(tmp_path)
    said = refused("spyre-translate", "--to-superdsc", ABS, "-o", tmp_path)
    assert "sdsc.schema.json' would be read as a file of the program" in said
    assert contents(tmp_path) == before
