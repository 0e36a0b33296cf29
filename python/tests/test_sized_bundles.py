# SPDX-License-Identifier: Apache-2.0
"""SuperDSC bundles for many sizes: the bits of KTIR at every size, whatever lies beyond."""

import shutil

import numpy as np
import pytest
from commands import check_written_again, needs_tools, refused, run

pytestmark = needs_tools

LAYOUT = "#rows = #spyre_graph.layout<order = [0, 1], SEN169_FP16>\n"
#: What lies in an array beyond the size of a run: it would show in every result.
POISON = np.float16(np.inf)


#: Per program: what its symbol may be, arrays, result, text.
PROGRAMS = {
    # Rows follow each other, so that a core's slice begins at a multiple of the size.
    "mlp": (
        (64, 512),
        {"x": ("s", 256), "w": (256, 384), "v": (384, 128)},
        ("s", 128),
        """
  %0 = tensor.empty() : tensor<512x384xf16>
  %h = spyre_graph.matmul ins(%x, %w : tensor<512x256xf16, #rows>, tensor<256x384xf16, #rows>)
      outs(%0 : tensor<512x384xf16>) -> tensor<512x384xf16>
  %1 = tensor.empty() : tensor<512x384xf16>
  %r = spyre_graph.relu ins(%h : tensor<512x384xf16>) outs(%1 : tensor<512x384xf16>) -> tensor<512x384xf16>
  %2 = tensor.empty() : tensor<512x128xf16>
  %y = spyre_graph.matmul ins(%r, %v : tensor<512x384xf16>, tensor<384x128xf16, #rows>)
      outs(%2 : tensor<512x128xf16>) -> tensor<512x128xf16>
  return %y : tensor<512x128xf16>
""",
    ),
    # Slices of 9 cores: a ninth of the size is no multiple of 128 bytes of it.
    "pointwise": (
        (18, 576),
        {"x": ("s", 128), "y": ("s", 128)},
        ("s", 128),
        """
  %0 = tensor.empty() : tensor<576x128xf16>
  %a = spyre_graph.add ins(%x, %y : tensor<576x128xf16, #rows>, tensor<576x128xf16, #rows>)
      outs(%0 : tensor<576x128xf16>) -> tensor<576x128xf16>
  %1 = tensor.empty() : tensor<576x128xf16>
  %e = spyre_graph.exp ins(%a : tensor<576x128xf16>) outs(%1 : tensor<576x128xf16>) -> tensor<576x128xf16>
  return %e : tensor<576x128xf16>
""",
    ),
    "softmax": (
        (32, 96),
        {"x": ("s", 300)},
        ("s", 300),
        """
  %y = spyre_graph.softmax %x {dim = 1 : i64} : tensor<96x300xf16, #rows> -> tensor<96x300xf16>
  return %y : tensor<96x300xf16>
""",
    ),
    # All rows need one of them, so that there are two loops, and its negative between.
    "row of all": (
        (64, 256),
        {"x": ("s", 128)},
        ("s", 128),
        """
  %0 = tensor.empty() : tensor<256x128xf16>
  %e = spyre_graph.exp ins(%x : tensor<256x128xf16, #rows>) outs(%0 : tensor<256x128xf16>) -> tensor<256x128xf16>
  %v = spyre_graph.view %e, affine_map<(i) -> (63, i)> : tensor<256x128xf16> -> tensor<128xf16>
  %1 = tensor.empty() : tensor<128xf16>
  %n = spyre_graph.neg ins(%v : tensor<128xf16>) outs(%1 : tensor<128xf16>) -> tensor<128xf16>
  %2 = tensor.empty() : tensor<256x128xf16>
  %a = spyre_graph.add ins(%e, %n : tensor<256x128xf16>, tensor<128xf16>) outs(%2 : tensor<256x128xf16>)
      {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
       extents = array<i64: 256, 128>} -> tensor<256x128xf16>
  %3 = tensor.empty() : tensor<256x128xf16>
  %y = spyre_graph.mul ins(%a, %v : tensor<256x128xf16>, tensor<128xf16>) outs(%3 : tensor<256x128xf16>)
      {maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
       extents = array<i64: 256, 128>} -> tensor<256x128xf16>
  return %y : tensor<256x128xf16>
""",
    ),
    # What varies is reduced: infinities beyond the size would reach every result.
    "sum": (
        (20, 300),
        {"x": ("s", 100)},
        (100,),
        """
  %0 = tensor.empty() : tensor<100xf16>
  %y = spyre_graph.sum ins(%x : tensor<300x100xf16, #rows>) outs(%0 : tensor<100xf16>)
      {dims = array<i64: 0>} -> tensor<100xf16>
  return %y : tensor<100xf16>
""",
    ),
}


def source(name):
    """The text of a program."""
    (step, most), arrays, result, body = PROGRAMS[name]

    def typed(shape, encoding, label):
        sizes = ", ".join(map(str, shape))
        extents = "x".join(str(most if extent == "s" else extent) for extent in shape)
        attributes = f'spyre_graph.name = "{label}"'
        if "s" in shape:
            attributes += f", spyre_graph.size_map = affine_map<()[s] -> ({sizes})>"
        return f"tensor<{extents}xf16{encoding}> {{{attributes}}}"

    arguments = ", ".join(
        f"%{label}: {typed(shape, ', #rows', label)}" for label, shape in arrays.items()
    )
    symbol = f'#spyre_graph.symbol<"s", {step} to {most} by {step}>'
    return (
        f"{LAYOUT}func.func @main({arguments}) -> ({typed(result, '', 'out')})\n"
        f"    attributes {{spyre_graph.symbols = [{symbol}]}} {{{body}}}\n"
    )


def make(name, folder):
    """Paths of a program: as KTIR, and as a bundle."""
    text, ktir, planned = source(name), folder / "ktir.mlir", folder / "planned.mlir"
    for path, more in ((ktir, ""), (planned, " to-ktir=false")):
        pipeline = f"--spyre-pipeline=superdsc-compatible=true{more}"
        run("spyre-opt", "-", pipeline, "-o", path, input=text)
    run("spyre-translate", "--to-superdsc", planned, "-o", folder / "bundle")
    return ktir, folder / "bundle"


def save(folder, name, value):
    np.save(folder / f"{name}.npy", value)
    return ["--arg", folder / f"{name}.npy"]


def poisoned(value, shape, most):
    """An array in one that is as large as it can be."""
    whole = np.full([most if e == "s" else e for e in shape], POISON)
    whole[tuple(slice(n) for n in value.shape)] = value
    return whole


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_of_ktir_at_all_sizes(name, tmp_path):
    (step, most), arrays, result, _ = PROGRAMS[name]
    ktir, bundle = make(name, tmp_path)
    for size in range(step, most + 1, step):
        rng = np.random.default_rng(size)
        tight, roomy = [], []
        for label, shape in arrays.items():
            extents = [size if e == "s" else e for e in shape]
            value = rng.standard_normal(extents).astype(np.float16)
            tight += save(tmp_path, label, value)
            roomy += save(tmp_path, f"{label}-roomy", poisoned(value, shape, most))
        number = ["--arg", str(size)]
        out = tmp_path / "out"
        run("spyre-run", ktir, "--out-dir", out, *tight, "--arg", "zeros", *number)
        wanted = np.load(out / "out.npy")
        stale = np.full([most if e == "s" else e for e in result], 7, np.float16)
        roomy += save(tmp_path, "stale", stale)
        run("spyre-run", bundle, "--check=full", "--out-dir", out, *roomy, *number)
        found = np.load(out / "out.npy")
        assert np.isfinite(wanted).all() and np.abs(wanted).max() > 0
        inside = tuple(slice(n) for n in wanted.shape)
        np.testing.assert_array_equal(found[inside], wanted, err_msg=str(size))
        # Results beyond the size are what was there before.
        found[inside] = 7
        np.testing.assert_array_equal(found, stale, err_msg=str(size))


@pytest.mark.parametrize("name", PROGRAMS)
def test_written_again(name, tmp_path):
    """Read, and raised, bundles are written with the same bytes."""
    _, bundle = make(name, tmp_path)
    check_written_again(bundle, tmp_path)


def test_slices_of_a_ninth(tmp_path):
    """A start that is no whole number of bytes per element of the size."""
    _, bundle = make("pointwise", tmp_path)
    text = (bundle / "bundle.mlir").read_text()
    assert "floordiv 9" in text


def test_without_manifest(tmp_path):
    """Arguments are found with their sizes, and run with the same bits."""
    _, bundle = make("pointwise", tmp_path)
    given = []
    for label in ("x", "y"):
        value = np.random.default_rng(0).standard_normal((54, 128)).astype(np.float16)
        given += save(tmp_path, label, poisoned(value, ("s", 128), 576))
    given += ["--arg", "zeros", "--arg", "54"]
    run("spyre-run", bundle, "--out-dir", tmp_path / "with", *given)
    shutil.copytree(bundle, tmp_path / "bare")
    (tmp_path / "bare/manifest.json").unlink()
    run("spyre-run", tmp_path / "bare", "--out-dir", tmp_path / "without", *given)
    wanted = np.load(tmp_path / "with/out.npy")
    assert np.abs(wanted[:54]).min() > 0
    np.testing.assert_array_equal(np.load(tmp_path / "without/arg2.npy"), wanted)


OF_X = "; it is the size of dimension 0 of 'x'"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["zeros", "zeros", "128"],
            f"size 's' is 128, but the program is for multiples of 32 from 32 to 96{OF_X}",
        ),
        (
            ["zeros", "zeros", "48"],
            f"size 's' is 48, but the program is for multiples of 32 from 32 to 96{OF_X}",
        ),
        (
            ["zeros", "zeros", "0"],
            f"size 's' is 0, but the program is for multiples of 32 from 32 to 96{OF_X}",
        ),
        (
            ["zeros", "zeros", "-32"],
            f"size 's' is -32, but the program is for multiples of 32 from 32 to 96{OF_X}",
        ),
        (
            ["zeros", "zeros"],
            "takes 3 arguments (x, out, s (multiples of 32 from 32 to 96, of dimension "
            "0 of 'x')), found 2",
        ),
        (
            ["SHORT", "zeros", "64"],
            "argument 'x' is float16 [96, 300], room for the largest sizes, where 's' is "
            "64 (multiples of 32 from 32 to 96), the file has float16 [64, 300]",
        ),
    ],
    ids=["beyond", "between", "zero", "negative", "unbound", "short"],
)
def test_wrong_sizes(arguments, said, tmp_path):
    """The message names the symbol, its range and the argument."""
    _, bundle = make("softmax", tmp_path)
    np.save(tmp_path / "short.npy", np.zeros((64, 300), np.float16))
    given = []
    for argument in arguments:
        given += ["--arg", tmp_path / "short.npy" if argument == "SHORT" else argument]
    assert said in refused("spyre-run", bundle, *given)
