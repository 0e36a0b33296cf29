# SPDX-License-Identifier: Apache-2.0
"""Bundles whose loops run up to a size around files for one: "Route B"."""

import numpy as np
import plan_bits  # noqa: F401  (sums do not depend on the plan)
import pytest
import sdsc_bundles
from commands import check_written_again, execute, needs_tools, refused, run
from sdsc_bundles import looped_add
from test_sized_bundles import PROGRAMS, poisoned, save, source

pytestmark = needs_tools

#: Where nothing has been written, NaN shows in whatever is computed from it.
NAN = np.float16(np.nan)
#: The shape of an argument without a manifest: tiles that follow each other are a
#: dimension of their own, and sticks that do not lie one row apart have one inside.
SHAPES = {"sticks": (512, 1024), "tiles": (8, 64, 1024), "rows": (512, 1, 1024)}


def rows(value, size):
    """The first rows of an argument of looped_add, in whatever shape it has."""
    return value.reshape(512, 1024)[:size]


@pytest.mark.parametrize("slices", [1, 2])
@pytest.mark.parametrize("storage", SHAPES)
def test_example_of_the_specification(storage, slices, tmp_path):
    """One program at all sizes; rows beyond are neither read nor written."""
    sdsc_bundles.write(tmp_path / "bundle", looped_add(storage, slices))
    shape = SHAPES[storage]
    for size in range(64, 513, 64):
        rng = np.random.default_rng(size)
        x, y, old = (rng.integers(-9, 9, shape).astype(np.float16) for _ in range(3))
        for value in (x, y):
            rows(value, 512)[size:] = NAN
        wanted = old.copy()
        rows(wanted, size)[:] = rows(x, size) + rows(y, size)
        out = execute(
            tmp_path / "bundle", [x, y, old, str(size)], tmp_path, "--check=full"
        )
        np.testing.assert_array_equal(out["arg2"], wanted, err_msg=str(size))


@pytest.mark.parametrize("size", ["32", "96", "500", "576", "0", "-64"])
def test_sizes_that_the_loop_does_not_cover(size, tmp_path):
    """The device would leave out what is no whole tile, without a word."""
    sdsc_bundles.write(tmp_path, looped_add("sticks"))
    said = refused("spyre-run", tmp_path, *["--arg", "zeros"] * 3, "--arg", size)
    assert (
        f"size 's0' is {size}, but the program is for multiples of 64 from 64 to 512"
        in said
    )


def tile_add(rows, symbols, index=0, gap=None):
    """Sum of tiles of ``rows`` rows of 512 x 1024 arguments."""
    tensors = [
        sdsc_bundles.tensor(["mb", "out"], symbols=[own], gap={"mb": 512 - rows})
        for own in symbols
    ]
    dims = {"mb": (rows, 1), "out": (1024, 1)}
    labels = [(["mb", "out"], {"out": 64})]
    return sdsc_bundles.sdsc("add", dims, labels, tensors, index=index)


ADDRESS = "!sdscbundle.input_arg<index>"


def bundle_of(steps, sizes, arguments, maps):
    """The text of a bundle.mlir; sizes: {name: (granularity, most)}."""
    types = {f"arg_{n}": ADDRESS for n in range(arguments)} | {
        f"dim_{name}": f"!sdscbundle.input_arg<index, granularity={g}, max_value={m}>"
        for name, (g, m) in sizes.items()
    }
    ends = {name: "_base_addr" if name.startswith("arg") else "_base" for name in types}
    parameters = ", ".join(f"%{n}{ends[n]}: {t}" for n, t in types.items())
    lines = [
        *(f"#{name} = affine_map<{text}>" for name, text in maps.items()),
        f"func.func @sdsc_bundle({parameters}) {{",
        *(
            f"  %{n} = sdscbundle.input_arg_extract value from %{n}{ends[n]} : "
            f"{t} -> index"
            for n, t in types.items()
        ),
        "  %c0 = arith.constant 0 : index",
        *(f"  {step}" for step in steps),
        "  return",
        "}",
    ]
    return "\n".join(lines) + "\n"


def execute_step(operands, file, ids):
    return (
        f"sdscbundle.sdsc_execute ({', '.join(operands)}) "
        f'{{sdsc_filename="{file}", "symbol_ids"=[{", ".join(map(str, ids))}]}}'
    )


def by_rows(step, arguments, file, ids, size="s0", end=None):
    """The lines of a loop up to a size that executes one file."""
    return [
        f"%step_{file[5]} = arith.constant {step} : index",
        f"scf.for %i = %c0 to %{end or 'dim_' + size} step %step_{file[5]} {{",
        *(
            f"  %a{n} = affine.apply #row(%i)[%arg_{argument}]"
            for n, argument in enumerate(arguments)
        ),
        "  " + execute_step([f"%a{n}" for n in range(len(arguments))], file, ids),
        "}",
    ]


ROW = {"row": "(d0)[s0] -> (s0 + 128*d0)"}


def test_loops_of_different_steps(tmp_path):
    """One after the other; the tiles of the second are half as large, and its step is
    what the parameter says.
    """
    first = by_rows(64, (0, 1, 2), "sdsc_0.json", (-1, -2, -3))
    second = by_rows(32, (2, 0, 3), "sdsc_1.json", (-4, -5, -6))
    granularity = (
        "%step_0 = sdscbundle.input_arg_extract granularity from %dim_s0_base : "
        "!sdscbundle.input_arg<index, granularity=64, max_value=512> -> index"
    )
    text = bundle_of([granularity, *first[1:], *second], {"s0": (64, 512)}, 4, ROW)
    files = {
        "bundle.mlir": text,
        "sdsc_0.json": tile_add(64, (-1, -2, -3)),
        "sdsc_1.json": tile_add(32, (-4, -5, -6), index=1),
    }
    sdsc_bundles.write(tmp_path / "bundle", files)
    check_twice(tmp_path, [192, 512, 64])


def check_twice(folder, sizes):
    """Of arguments x, y, z and w: z = x + y, and w = z + x."""
    for size in sizes:
        rng = np.random.default_rng(size)
        x, y = (rng.integers(-9, 9, (512, 1024)).astype(np.float16) for _ in "xy")
        x[size:] = NAN
        out = execute(
            folder / "bundle",
            [x, y, "zeros", "zeros", str(size)],
            folder,
            "--check=full",
        )
        for name, wanted in (("arg2", x + y), ("arg3", x + y + x)):
            np.testing.assert_array_equal(out[name][:size], wanted[:size])
            assert not out[name][size:].any()


def test_beside_a_dimension_that_is_a_symbol(tmp_path):
    """A file of both forms in one bundle, of one size."""
    tensors = [sdsc_bundles.tensor(["mb", "out"], symbols=[-2 - n]) for n in range(3)]
    whole = sdsc_bundles.sdsc(
        "add",
        {"mb": (512, 1), "out": (1024, 1)},
        [(["mb", "out"], {"out": 64})],
        tensors,
        sizes={"mb": (-1, "s0", 64)},
    )
    steps = [
        execute_step(
            ["%dim_s0", "%arg_0", "%arg_1", "%arg_2"], "sdsc_0.json", (-1, -2, -3, -4)
        ),
        *by_rows(64, (2, 0, 3), "sdsc_1.json", (-5, -6, -7)),
    ]
    files = {
        "bundle.mlir": bundle_of(steps, {"s0": (64, 512)}, 4, ROW),
        "sdsc_0.json": whole,
        "sdsc_1.json": tile_add(64, (-5, -6, -7), index=1),
    }
    sdsc_bundles.write(tmp_path / "bundle", files)
    check_twice(tmp_path, [128, 448])


def test_loops_in_each_other(tmp_path):
    """Two sizes: rows 4 by 4 of up to 12, in planes 2 by 2 of up to 6."""
    order = ["mb", "out", "x"]
    tensors = [
        sdsc_bundles.tensor(order, symbols=[-1 - n], gap={"mb": 8}) for n in range(2)
    ]
    dims = {"mb": (4, 1), "x": (2, 1), "out": (128, 1)}
    file = sdsc_bundles.sdsc("abs", dims, [(order, {"out": 64})], tensors)
    plane = 12 * 2 * 128
    steps = [
        "%c2 = arith.constant 2 : index",
        "%c4 = arith.constant 4 : index",
        "scf.for %i = %c0 to %dim_planes step %c2 {",
        "  scf.for %j = %c0 to %dim_rows step %c4 {",
        *(f"    %a{n} = affine.apply #at(%i, %j)[%arg_{n}]" for n in range(2)),
        "    " + execute_step(["%a0", "%a1"], "sdsc_0.json", (-1, -2)),
        "  }",
        "}",
    ]
    sizes = {"planes": (2, 6), "rows": (4, 12)}
    maps = {"at": f"(d0, d1)[s0] -> (s0 + {plane}*d0 + 128*d1)"}
    files = {"sdsc_0.json": file, "bundle.mlir": bundle_of(steps, sizes, 2, maps)}
    sdsc_bundles.write(tmp_path / "bundle", files)
    for planes, rows_ in ((2, 12), (6, 4), (4, 8), (6, 12)):
        x = np.full((12, 6, 128), NAN)
        x[:rows_, :planes] = np.random.default_rng(0).integers(
            -9, 9, (rows_, planes, 128)
        )
        given = [x, "zeros", str(planes), str(rows_)]
        out = execute(tmp_path / "bundle", given, tmp_path, "--check=full")["arg1"]
        assert out.shape == (12, 6, 128)
        inside = out[:rows_, :planes].copy()
        np.testing.assert_array_equal(inside, np.abs(x[:rows_, :planes]))
        out[:rows_, :planes] = 0
        assert not out.any()


def test_loops_that_cannot_be_executed(tmp_path):
    """An error at the line of the loop, with its size."""
    size = "'s0', a multiple of 64 up to 512"
    files = looped_add("sticks", slices=1)
    text = files["bundle.mlir"]
    outside = text.replace(
        "\t\tscf.for", "\t\tscf.for %k = %c0 to %step_0 step %step_0 {\n\t\tscf.for", 1
    )
    outside = outside.replace("\t\t}\n", "\t\t}\n\t\t}\n", 1)
    for changed, said in (
        (
            text.replace("128*d0", "256*d0"),
            f"bundle.mlir:10: the loop up to {size}, must move each tensor that "
            "it moves by 64 elements of one dimension",
        ),
        (
            text.replace("128*d0", "0*d0"),
            f"bundle.mlir:10: the loop runs up to {size}, which is the size of "
            "no argument",
        ),
        (
            outside.replace("128*d0", "192*d0"),
            f"bundle.mlir:11: the loop up to {size}, stands in one that does not "
            "move tiles",
        ),
    ):
        sdsc_bundles.write(tmp_path, files | {"bundle.mlir": changed})
        given = [*["--arg", "zeros"] * 3, "--arg", "64"]
        found = refused("spyre-run", tmp_path, *given)
        assert said in found, found


# --- written from plans ---

#: Programs whose rows are the size, and that do not sum over it.
BY_ROWS = ("mlp", "pointwise", "softmax", "row of all")


def make(name, folder):
    """Paths of a program: KTIR and a bundle with symbols, and one with loops."""
    text, ktir = source(name), folder / "ktir.mlir"
    pipeline = "--spyre-pipeline=superdsc-compatible=true"
    run("spyre-opt", "-", pipeline, "-o", ktir, input=text)
    for form, more in (("symbols", ""), ("loops", " size-loops=true")):
        planned = folder / f"{form}.mlir"
        options = f"{pipeline}{more} to-ktir=false"
        run("spyre-opt", "-", options, "-o", planned, input=text)
        run("spyre-translate", "--to-superdsc", planned, "-o", folder / form)
    return ktir, folder / "symbols", folder / "loops"


@pytest.mark.parametrize("name", BY_ROWS)
def test_bits_of_ktir_at_all_sizes(name, tmp_path):
    (step, most), arrays, result, _ = PROGRAMS[name]
    ktir, symbols, loops = make(name, tmp_path)
    for size in range(step, most + 1, step):
        rng = np.random.default_rng(size)
        tight, roomy = [], []
        for label, shape in arrays.items():
            extents = [size if e == "s" else e for e in shape]
            value = rng.standard_normal(extents).astype(np.float16)
            tight += save(tmp_path, label, value)
            whole = poisoned(value, shape, most)
            whole[np.isinf(whole)] = NAN
            roomy += save(tmp_path, f"{label}-roomy", whole)
        number = ["--arg", str(size)]
        out = tmp_path / "out"
        run("spyre-run", ktir, "--out-dir", out, *tight, "--arg", "zeros", *number)
        wanted = np.load(out / "out.npy")
        assert np.isfinite(wanted).all() and np.abs(wanted).max() > 0
        stale = np.full([most if e == "s" else e for e in result], 7, np.float16)
        roomy += save(tmp_path, "stale", stale)
        inside = tuple(slice(n) for n in wanted.shape)
        stale[inside] = wanted
        for bundle in (symbols, loops):
            run("spyre-run", bundle, "--check=full", "--out-dir", out, *roomy, *number)
            found = np.load(out / "out.npy")
            np.testing.assert_array_equal(found, stale, err_msg=f"{bundle} {size}")


@pytest.mark.parametrize("name", BY_ROWS)
def test_written_again(name, tmp_path):
    """Read, and raised, bundles are written with the same bytes, and are plans."""
    _, _, bundle = make(name, tmp_path)
    raised = tmp_path / "raised.mlir"
    run("spyre-translate", "--from-superdsc", bundle, "-o", raised)
    run("spyre-opt", "--spyre-verify-plan", raised)
    text = (bundle / "bundle.mlir").read_text()
    assert "scf.for %i_0 = %c0 to %dim_s step %step_0" in text
    for path in bundle.glob("sdsc_*.json"):
        assert "dimToSymbolMapping_" not in path.read_text()
    check_written_again(bundle, tmp_path)


def test_as_spyrecode(tmp_path):
    """A launch of the job says how often the loop runs; nothing else changes."""
    bundle, raised = tmp_path / "bundle", tmp_path / "raised.mlir"
    sdsc_bundles.write(bundle, looped_add("sticks"))
    run("spyre-translate", "--from-superdsc", bundle, "-o", raised)
    run("spyre-translate", "--to-spyrecode", raised, "-o", tmp_path / "job")
    x = np.random.default_rng(0).integers(-9, 9, (512, 1024)).astype(np.float16)
    for size in (64, 448, 128):
        given = [x, x, "zeros", str(size)]
        out = execute(tmp_path / "job", given, tmp_path)["arg2"]
        np.testing.assert_array_equal(out[:size], 2 * x[:size])
        assert not out[size:].any()
    said = refused(
        "spyre-run", tmp_path / "job", *["--arg", "zeros"] * 3, "--arg", "96"
    )
    assert "size 's0' is 96" in said and "multiples of 64 from 64 to 512" in said


def test_quotients_of_sizes_are_whole(tmp_path):
    """KTIR whose arrays have as many tiles as a size divided says: by what divides it."""
    bundle, raised = tmp_path / "bundle", tmp_path / "raised.mlir"
    sdsc_bundles.write(bundle, looped_add("tiles"))
    run("spyre-translate", "--from-superdsc", bundle, "-o", raised)
    text = run("spyre-opt", "--convert-spyre-graph-to-ktir", raised)
    used = "ktdp.used_map = affine_map<()[s0] -> (s0 floordiv 64, 64, 1024)>"
    assert text.count(used) == 3
    for wrong, said in (
        ("s0 floordiv 48", "must divide by what divides the sizes"),
        ("s0 mod 9", "must be linear, or that divided by a number"),
    ):
        ktir = tmp_path / "wrong.mlir"
        ktir.write_text(text.replace(used, used.replace("s0 floordiv 64", wrong)))
        found = refused("spyre-run", ktir, *["--arg", "zeros"] * 3, "--arg", "64")
        assert f"argument 0: 'ktdp.used_map' {said}" in found, found
