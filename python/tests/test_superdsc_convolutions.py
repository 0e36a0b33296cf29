# SPDX-License-Identifier: Apache-2.0
"""conv2d in bundles: what it computes, which convolutions are written as one."""

import json

import numpy as np
import pytest
import sdsc_bundles
import torch
from commands import execute, needs_tools, refused
from numerics import assert_contraction, compiled, device_value, to_device
from torch.nn import functional

pytestmark = needs_tools

CHANNELS, COLUMNS = 192, 128


def bundle(sizes, windows, slices=1, **more):
    """A conv2d: sizes of mb, i and perhaps j, and of ki and perhaps kj.

    ``slices`` of i; ``more`` is of the tensor of the input.
    """
    outputs = dict(zip("ij", sizes[1:], strict=False))
    places = {f"k{name}": n for name, n in zip(outputs, windows, strict=True)}
    dims = {
        "mb": (sizes[0], 1),
        **{name: (n, slices if name == "i" else 1) for name, n in outputs.items()},
        "out": (COLUMNS, 1),
        **{name: (n, 1) for name, n in places.items()},
        "in": (CHANNELS, 1),
    }
    spatial = list(outputs)[::-1]
    orders = [
        ["mb", "in", *spatial],
        ["in", "out", *list(places)[::-1]],
        ["mb", "out", *spatial],
    ]
    first = {"gap": {d: n - 1 for d, n in zip(outputs, windows, strict=True)}} | more
    labels = list(zip(orders, [{"in": 64}, {"out": 64}, {"out": 64}], strict=True))
    tensors = [
        sdsc_bundles.tensor(order, base=n << 34, label=n, **({} if n else first))
        for n, order in enumerate(orders)
    ]
    names = ["INPUT", "KERNEL", "OUTPUT"]
    file = sdsc_bundles.sdsc("conv2d", dims, labels, tensors, names=names)
    return {"sdsc_0.json": file, "bundle.mlir": sdsc_bundles.program("sdsc_0.json")}


@pytest.mark.parametrize(
    ("sizes", "windows", "slices"),
    [
        ((1, 5, 7), (3, 2), 1),
        ((3, 6, 1), (2, 4), 2),
        ((2, 32, 3), (1, 5), 32),
        ((1, 4, 4), (7, 7), 4),
        ((2, 9), (4,), 3),
    ],
)
def test_values(sizes, windows, slices, tmp_path):
    sdsc_bundles.write(tmp_path / "bundle", bundle(sizes, windows, slices=slices))
    random = np.random.default_rng(0)
    spatial = [n + k - 1 for n, k in zip(sizes[1:], windows, strict=True)]
    image = random.integers(-1, 2, (sizes[0], *spatial, CHANNELS))
    kernel = random.integers(-1, 2, (*windows, CHANNELS, COLUMNS))
    shape = (*sizes, COLUMNS)
    # In default layouts the first dimension is the innermost beside the stick's.
    given = (image, np.moveaxis(kernel, -2, 0), np.zeros(shape))
    arrays = [array.astype(np.float16) for array in given]
    out = execute(tmp_path / "bundle", arrays, tmp_path / "run")
    expected = np.zeros(shape)
    for place in np.ndindex(*windows):
        part = tuple(slice(at, at + n) for at, n in zip(place, sizes[1:], strict=True))
        expected += image[(slice(None), *part)] @ kernel[place]
    assert np.array_equal(out["arg2"], expected.astype(np.float16))


def test_windows_beyond_the_input(tmp_path):
    sdsc_bundles.write(tmp_path, bundle((1, 5, 7), (3, 2), gap={"i": 1, "j": 1}))
    said = refused("spyre-translate", "--validate-superdsc", tmp_path)
    assert (
        "/backGapCore_: windows of 3 along 'i' reach over 7 elements, found 6 "
        "[SDSC-CONV-C3]" in said
    )


def test_windows_in_lx(tmp_path):
    file = bundle((1, 5, 7), (3, 2), lx=True)["sdsc_0.json"].pop("0_conv2d")
    # In LX, a gap is each core's.
    node = file["dscs_"][0]["conv2d"]["scheduleTree_"][0]
    node["backGapCore_"] = {"i": {"0": "2"}, "j": {"0": "1"}}
    dims = {"mb": (1, 1), "x": (7, 1), "y": (8, 1), "out": (CHANNELS, 1)}
    order = ["mb", "out", "y", "x"]
    tensors = [sdsc_bundles.tensor(order, lx=lx) for lx in (False, True)]
    load = sdsc_bundles.sdsc("identity", dims, [(order, {"out": 64})], tensors)
    program = sdsc_bundles.program("sdsc_0.json", "sdsc_1.json")
    files = {"sdsc_0.json": load, "sdsc_1.json": {"1_conv2d": file}}
    sdsc_bundles.write(tmp_path, files | {"bundle.mlir": program})
    said = refused("spyre-translate", "--from-superdsc", tmp_path)
    refusal = "is read by windows and in LX, which the toolchain cannot execute"
    assert f"error: Tensor0 {refusal}" in said


#: Input, weight, keywords, and how many operations are a conv2d.
WRITTEN = {
    "3 x 3": ((1, 64, 9, 11), (70, 64, 3, 3), {}, 1),
    "3 x 2, padded": ((2, 130, 5, 4), (3, 130, 3, 2), {"padding": 1}, 1),
    # The window's columns lie in the sticks, beside the channels.
    "few channels": ((1, 20, 9, 11), (5, 20, 3, 3), {}, 1),
    # A window as large as the input has one output.
    "one output": ((1, 64, 3, 3), (70, 64, 3, 3), {}, 0),
    "one row of outputs": ((1, 64, 3, 9), (70, 64, 3, 3), {}, 0),
    "one place": ((2, 65, 5, 7), (3, 65, 1, 1), {}, 0),
    # Files say neither of these.
    "stride": ((1, 64, 9, 11), (70, 64, 3, 3), {"stride": 2}, 0),
    "dilation": ((1, 64, 9, 11), (70, 64, 3, 3), {"dilation": 2}, 0),
    "groups": ((1, 128, 9, 11), (70, 64, 3, 3), {"groups": 2}, 0),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written(name, tmp_path, monkeypatch):
    size, kernel, keywords, wanted = WRITTEN[name]
    random = torch.Generator().manual_seed(0)
    x = torch.randn(size, generator=random).half()
    weight = torch.randn(kernel, generator=random).half()
    bias = torch.randn(kernel[0], generator=random).half()

    def function(x, weight, bias):
        return functional.conv2d(x, weight, bias, **keywords)

    monkeypatch.setenv("SPYRE_EXECUTE", "superdsc")
    monkeypatch.setenv("SPYRE_DUMP_DIR", str(tmp_path))
    actual = compiled(function)(*to_device((x, weight, bias))).cpu()
    operations = [
        next(iter(json.loads(path.read_text())))
        for path in tmp_path.glob("**/sdsc_*.json")
    ]
    assert sum(name.endswith("_conv2d") for name in operations) == wanted
    values = [device_value(t) for t in (x, weight, bias)]
    assert_contraction(
        actual, function(*values), weight[0].numel() + 1, function(*map(abs, values))
    )
