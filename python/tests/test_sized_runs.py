# SPDX-License-Identifier: Apache-2.0
"""Programs for many sizes from spyre-opt, run by spyre-run with all checks."""

import numpy as np
import pytest
from commands import needs_tools, refused, run

pytestmark = needs_tools

LAYOUT = "#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>\n"

#: A reduction over the dimension that varies.
REDUCTION = """
func.func @main(%x: tensor<300x100xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 100)>})
    -> (tensor<100xf16> {spyre_graph.name = "out0"})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 300>]} {
  %0 = tensor.empty() : tensor<100xf16>
  %y = spyre_graph.OP ins(%x : tensor<300x100xf16, #rows>) outs(%0 : tensor<100xf16>)
      {dims = array<i64: 0>} -> tensor<100xf16>
  return %y : tensor<100xf16>
}
"""


def softmax(x):
    return np.exp(x) / np.exp(x).sum(1, keepdims=True)


#: One of as many rows as pay for a share of every core.
OVER_CORES = REDUCTION.replace("300", "512").replace("100", "256")

#: Per program: its text, its arrays with s as the size that varies, what it computes,
#: and some of the sizes that it is for.
PROGRAMS = {
    "mlp": (
        """
func.func @main(%x: tensor<512x256xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 256)>},
    %w: tensor<256x384xf16, #rows> {spyre_graph.name = "w"},
    %v: tensor<384x128xf16, #rows> {spyre_graph.name = "v"})
    -> (tensor<512x128xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (s, 128)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 512>]} {
  %0 = tensor.empty() : tensor<512x384xf16>
  %h = spyre_graph.matmul ins(%x, %w : tensor<512x256xf16, #rows>, tensor<256x384xf16, #rows>)
      outs(%0 : tensor<512x384xf16>) -> tensor<512x384xf16>
  %1 = tensor.empty() : tensor<512x384xf16>
  %r = spyre_graph.relu ins(%h : tensor<512x384xf16>) outs(%1 : tensor<512x384xf16>) -> tensor<512x384xf16>
  %2 = tensor.empty() : tensor<512x128xf16>
  %y = spyre_graph.matmul ins(%r, %v : tensor<512x384xf16>, tensor<384x128xf16, #rows>)
      outs(%2 : tensor<512x128xf16>) -> tensor<512x128xf16>
  return %y : tensor<512x128xf16>
}
""",
        {"x": ("s", 256), "w": (256, 384), "v": (384, 128)},
        lambda x, w, v: np.maximum(x @ w, 0) @ v,
        (1, 2, 31, 32, 33, 63, 64, 65, 100, 511, 512),
    ),
    "softmax": (
        """
func.func @main(%x: tensor<48x300xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (48, s)>})
    -> (tensor<48x300xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (48, s)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 300>]} {
  %y = spyre_graph.softmax %x {dim = 1 : i64} : tensor<48x300xf16, #rows> -> tensor<48x300xf16>
  return %y : tensor<48x300xf16>
}
""",
        {"x": (48, "s")},
        softmax,
        (1, 2, 63, 64, 65, 127, 128, 129, 300),
    ),
    "sum": (
        REDUCTION.replace("OP", "sum"),
        {"x": ("s", 100)},
        lambda x: x.sum(0),
        (1, 2, 63, 64, 65, 300),
    ),
    "mean": (
        REDUCTION.replace("OP", "mean"),
        {"x": ("s", 100)},
        lambda x: x.mean(0),
        (1, 2, 3, 63, 64, 65, 127, 299, 300),
    ),
    "sum over cores": (
        OVER_CORES.replace("OP", "sum"),
        {"x": ("s", 256)},
        lambda x: x.sum(0),
        (1, 2, 7, 8, 9, 63, 64, 65, 67, 127, 251, 449, 511, 512),
    ),
    "mean over cores": (
        OVER_CORES.replace("OP", "mean"),
        {"x": ("s", 256)},
        lambda x: x.mean(0),
        (1, 2, 63, 64, 65, 251, 512),
    ),
    # Of one row: what cores without rows have must not be larger than it.
    "maximum over cores": (
        OVER_CORES.replace("OP", "max"),
        {"x": ("s", 256)},
        lambda x: x.max(0),
        (1, 2, 7, 63, 64, 65, 251, 512),
    ),
    "minimum over cores": (
        OVER_CORES.replace("OP", "min"),
        {"x": ("s", 256)},
        lambda x: x.min(0),
        (1, 2, 7, 63, 64, 65, 251, 512),
    ),
    "product over cores": (
        """
func.func @main(%x: tensor<4096x64xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 64)>},
    %w: tensor<4096x64xf16, #rows> {spyre_graph.name = "w",
      spyre_graph.size_map = affine_map<()[s] -> (s, 64)>})
    -> (tensor<64x64xf16> {spyre_graph.name = "out0"})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 4096>]} {
  %t = spyre_graph.view %x, affine_map<(i, j) -> (j, i)> : tensor<4096x64xf16, #rows> -> tensor<64x4096xf16>
  %0 = tensor.empty() : tensor<64x64xf16>
  %y = spyre_graph.matmul ins(%t, %w : tensor<64x4096xf16>, tensor<4096x64xf16, #rows>)
      outs(%0 : tensor<64x64xf16>) -> tensor<64x64xf16>
  return %y : tensor<64x64xf16>
}
""",
        {"x": ("s", 64), "w": ("s", 64)},
        lambda x, w: x.T @ w,
        (1, 2, 63, 64, 65, 127, 251, 511, 512, 4095, 4096),
    ),
    "sum of squares by a count": (
        """
func.func @main(%x: tensor<300x100xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 100)>})
    -> (tensor<100xf32> {spyre_graph.name = "out0"})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 2 to 300>]} {
  %0 = tensor.empty() : tensor<100xf32>
  %y = spyre_graph.sum_squares ins(%x : tensor<300x100xf16, #rows>) outs(%0 : tensor<100xf32>)
      {dims = array<i64: 0>, scale = 3.0, correction = 1.5} -> tensor<100xf32>
  return %y : tensor<100xf32>
}
""",
        {"x": ("s", 100)},
        lambda x: 3 * (x * x).sum(0) / (len(x) - 1.5),
        (2, 3, 63, 64, 65, 127, 299, 300),
    ),
    "rms norm along it": (
        """
func.func @main(%x: tensor<48x300xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (48, s)>})
    -> (tensor<48x300xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (48, s)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 300>]} {
  %y, %rstd = spyre_graph.rms_norm %x {num_dims = 1 : i64, eps = 1.0e-5 : f64}
      : tensor<48x300xf16, #rows> -> tensor<48x300xf16>, tensor<48x1xf32>
  return %y : tensor<48x300xf16>
}
""",
        {"x": (48, "s")},
        lambda x: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5),
        (1, 2, 63, 64, 65, 127, 299, 300),
    ),
    "scores": (
        """
func.func @main(%q: tensor<32x64xf16, #rows> {spyre_graph.name = "q"},
    %k: tensor<512x64xf16, #rows> {spyre_graph.name = "k",
      spyre_graph.size_map = affine_map<()[s] -> (s, 64)>})
    -> (tensor<32x512xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (32, s)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 512>]} {
  %t = spyre_graph.view %k, affine_map<(i, j) -> (j, i)> : tensor<512x64xf16, #rows> -> tensor<64x512xf16>
  %0 = tensor.empty() : tensor<32x512xf16>
  %y = spyre_graph.matmul ins(%q, %t : tensor<32x64xf16, #rows>, tensor<64x512xf16>)
      outs(%0 : tensor<32x512xf16>) {alpha = 0.0625 : f64} -> tensor<32x512xf16>
  %z = spyre_graph.softmax %y {dim = 1 : i64} : tensor<32x512xf16> -> tensor<32x512xf16>
  return %z : tensor<32x512xf16>
}
""",
        {"q": (32, 64), "k": ("s", 64)},
        lambda q, k: softmax(q @ k.T / 16),
        (1, 2, 63, 64, 65, 127, 128, 129, 251, 511, 512),
    ),
    "transpose": (
        """
func.func @main(%x: tensor<100x300xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (100, s)>},
    %y: tensor<300x100xf16, #rows> {spyre_graph.name = "y",
      spyre_graph.size_map = affine_map<()[s] -> (s, 100)>})
    -> (tensor<300x100xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (s, 100)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 300>]} {
  %t = spyre_graph.view %x, affine_map<(i, j) -> (j, i)> : tensor<100x300xf16, #rows> -> tensor<300x100xf16>
  %0 = tensor.empty() : tensor<300x100xf16>
  %z = spyre_graph.add ins(%t, %y : tensor<300x100xf16>, tensor<300x100xf16, #rows>)
      outs(%0 : tensor<300x100xf16>) -> tensor<300x100xf16>
  return %z : tensor<300x100xf16>
}
""",
        {"x": (100, "s"), "y": ("s", 100)},
        lambda x, y: x.T + y,
        (1, 2, 63, 64, 65, 300),
    ),
}


#: A plan in which rows move to cores that have some of the sticks, and back: what varies
#: is along the stick.
MOVES = """
#id = affine_map<(i, j) -> (i, j)>
#columns = affine_map<()[s] -> (4, s)>
#by_row = #spyre_graph.division<splits = [4, 1], chunks = [1, 520], chunk_map = affine_map<()[s] -> (1, s)>>
#by_stick = #spyre_graph.division<splits = [1, 3], chunks = [4, 192], chunk_map = affine_map<()[s] -> (4, (s ceildiv 192) * 64)>>
func.func @main(%x: memref<4x520xf16, #rows> {spyre_graph.name = "x", spyre_graph.size_map = #columns},
                %y: memref<4x520xf16, #rows> {spyre_graph.name = "out0", spyre_graph.size_map = #columns})
    attributes {spyre_graph.pool_size = 0 : i64,
                spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 520>]} {
  %a = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 0, local = [1, 520]>} : memref<4x520xf16, #rows>
  %b = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 4096, local = [4, 192]>} : memref<4x520xf16, #rows>
  %c = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 8192, local = [4, 192]>} : memref<4x520xf16, #rows>
  %d = memref.alloc() {spyre_graph.placement = #spyre_graph.placement<lx, offset = 12288, local = [1, 520]>} : memref<4x520xf16, #rows>
  spyre_graph.neg ins(%x : memref<4x520xf16, #rows>) outs(%a : memref<4x520xf16, #rows>) {maps = [#id, #id], extents = array<i64: 4, 520>, extent_map = #columns, division = #by_row}
  spyre_graph.reshard ins(%a : memref<4x520xf16, #rows>) outs(%b : memref<4x520xf16, #rows>) {source_division = #by_row, maps = [#id, #id], extents = array<i64: 4, 520>, extent_map = #columns, division = #by_stick}
  spyre_graph.relu ins(%b : memref<4x520xf16, #rows>) outs(%c : memref<4x520xf16, #rows>) {maps = [#id, #id], extents = array<i64: 4, 520>, extent_map = #columns, division = #by_stick}
  spyre_graph.reshard ins(%c : memref<4x520xf16, #rows>) outs(%d : memref<4x520xf16, #rows>) {source_division = #by_stick, maps = [#id, #id], extents = array<i64: 4, 520>, extent_map = #columns, division = #by_row}
  spyre_graph.neg ins(%d : memref<4x520xf16, #rows>) outs(%y : memref<4x520xf16, #rows>) {maps = [#id, #id], extents = array<i64: 4, 520>, extent_map = #columns, division = #by_row}
  return
}
"""


def test_moves(tmp_path):
    """Whole sticks, and the elements of the last one, for every core or some."""
    program = tmp_path / "program.mlir"
    run(
        "spyre-opt",
        "-",
        "--spyre-verify-plan",
        "--convert-spyre-graph-to-ktir",
        "-o",
        program,
        input=LAYOUT + MOVES,
    )
    for size in (1, 2, 63, 64, 65, 127, 128, 129, 191, 193, 251, 256, 257, 449, 520):
        x = np.arange(4 * size).reshape(4, size).astype(np.float16) % 512 - 256
        np.save(tmp_path / "x.npy", x)
        given = ["--arg", tmp_path / "x.npy", "--arg", "zeros", "--arg", str(size)]
        run("spyre-run", program, "--check=full", "--out-dir", tmp_path, *given)
        assert np.array_equal(np.load(tmp_path / "out0.npy"), np.minimum(x, 0)), size


#: Programs whose cores each sum a part of what varies.
IN_PARTS = [PROGRAMS[name][0] for name in PROGRAMS if name.endswith("over cores")]


@pytest.mark.parametrize(
    ("text", "arrays", "function", "sizes"), PROGRAMS.values(), ids=PROGRAMS
)
def test_runs(text, arrays, function, sizes, tmp_path):
    program = tmp_path / "program.mlir"
    run("spyre-opt", "-", "--spyre-pipeline", "-o", program, input=LAYOUT + text)
    if text in IN_PARTS:
        assert "ktdp.inter_tile_reduce" in program.read_text()
    for size in sizes:
        rng = np.random.default_rng(size)
        given, values = [], []
        for name, shape in arrays.items():
            shape = [size if extent == "s" else extent for extent in shape]
            value = rng.standard_normal(shape).astype(np.float16)
            np.save(tmp_path / f"{name}.npy", value)
            given += ["--arg", tmp_path / f"{name}.npy"]
            values.append(value.astype(np.float32))
        given += ["--arg", "zeros", "--arg", str(size)]
        run("spyre-run", program, "--check=full", "--out-dir", tmp_path, *given)
        found = np.load(tmp_path / "out0.npy").astype(np.float32)
        wanted = function(*values)
        assert found.shape == wanted.shape
        # Rounded a few times to 10 bits.
        scale = np.abs(wanted).max()
        assert np.abs(found - wanted).max() <= 2.0**-8 * scale, size


RANGE = (
    "but the program is for sizes from 1 to 512; it is the size of dimension 0 of 'x'"
)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["zeros", "zeros", "513"], f"size 's' is 513, {RANGE}"),
        (["zeros", "zeros", "0"], f"size 's' is 0, {RANGE}"),
        (["zeros", "zeros", "-5"], f"size 's' is -5, {RANGE}"),
        (["zeros", "zeros", "zeros"], f"size 's' is 0, {RANGE}"),
        (
            ["ROWS", "zeros", "8"],
            "argument 'x' is float16 [8, 64] where 's' is 8 (sizes from 1 to 512), the "
            "file has float16 [9, 64]",
        ),
        (
            ["ROWS", "EIGHT", "9"],
            "argument 'out0' is float16 [9, 64] where 's' is 9 (sizes from 1 to 512), "
            "the file has float16 [8, 64]",
        ),
        (
            ["ROWS", "zeros"],
            "takes 3 arguments (x, out0, s (sizes from 1 to 512, of dimension 0 of "
            "'x')), found 2",
        ),
    ],
)
def test_wrong_sizes(arguments, error, tmp_path):
    """The message names the symbol, its range and the argument."""
    text = """
func.func @main(%x: tensor<512x64xf16, #rows> {spyre_graph.name = "x",
      spyre_graph.size_map = affine_map<()[s] -> (s, 64)>})
    -> (tensor<512x64xf16> {spyre_graph.name = "out0",
      spyre_graph.size_map = affine_map<()[s] -> (s, 64)>})
    attributes {spyre_graph.symbols = [#spyre_graph.symbol<"s", 1 to 512>]} {
  %0 = tensor.empty() : tensor<512x64xf16>
  %y = spyre_graph.exp ins(%x : tensor<512x64xf16, #rows>)
      outs(%0 : tensor<512x64xf16>) -> tensor<512x64xf16>
  return %y : tensor<512x64xf16>
}
"""
    program = tmp_path / "program.mlir"
    run("spyre-opt", "-", "--spyre-pipeline", "-o", program, input=LAYOUT + text)
    files = {"ROWS": tmp_path / "rows.npy", "EIGHT": tmp_path / "eight.npy"}
    np.save(files["ROWS"], np.zeros((9, 64), np.float16))
    np.save(files["EIGHT"], np.zeros((8, 64), np.float16))
    given = []
    for argument in arguments:
        given += ["--arg", files.get(argument, argument)]
    assert error in refused("spyre-run", program, *given)
