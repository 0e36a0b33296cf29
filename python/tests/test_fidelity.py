# SPDX-License-Identifier: Apache-2.0
"""benchmarks/fidelity.py: measurements of the card as programs, and their predictions."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree

import pytest
from benchmark_modules import BENCHMARKS, load

measurements, programs = load("card.measurements"), load("card.programs")
kernels, plot, tools = load("card.kernels"), load("card.plot"), load("card.tools")

GOOD = {
    "id": "x1",
    "op": "add",
    "shapes": "[64,128]+same",
    "dtype": "fp16",
    "cores": 4,
    "state": "untiled",
    "metric": "",
    "value_us": 25.0,
    "source": "",
    "note": "",
}

MATMUL = {"op": "matmul", "shapes": "M4096 K64 N4096"}


def fidelity(*arguments, path=None):
    """Runs the benchmark, with a folder of other tools before the others."""
    command = [sys.executable, str(BENCHMARKS / "fidelity.py"), *map(str, arguments)]
    env = dict(os.environ)
    if path:
        env["PATH"] = f"{path}:{env['PATH']}"
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def read_one(tmp_path, **change):
    """The measurement of GOOD with some fields changed."""
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([{**GOOD, **change}]))
    return measurements.read(file)[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value_us": 0}, "value_us must be a positive number, but is 0"),
        ({"value_us": -1.5}, "value_us must be a positive number, but is -1.5"),
        ({"value_us": float("nan")}, "value_us must be a positive number, but is nan"),
        ({"value_us": True}, "value_us must be a positive number, but is True"),
        ({"value_us": "25"}, "value_us must be a positive number, but is 25"),
        ({"value_us": 10**400}, "value_us must be a positive number, but is 1000"),
        ({"cores": 33}, "cores must be 1 to 32, but is 33"),
        ({"cores": 0}, "cores must be 1 to 32, but is 0"),
        ({"cores": True}, "cores must be 1 to 32, but is True"),
        ({"cores": "4"}, "cores must be 1 to 32, but is '4'"),
        ({"cores": 4.0}, "cores must be 1 to 32, but is 4.0"),
        ({"dtype": "fp8"}, "expected fp16, found fp8"),
        ({"op": 3}, "op must be a string, found int"),
        ({"shapes": [64, 128]}, "shapes must be a string, found list"),
        ({"shapes": None}, "shapes must be a string, found NoneType"),
        ({"state": 7}, "state must be a string, found int"),
        ({"shapes": "[0,128]+same"}, "shapes has the size 0"),
        ({"shapes": "[64,-128]+same"}, "shapes has the size -128"),
        ({"op": "matmul", "shapes": "M64 K-64 N64"}, "shapes has the size -64"),
        ({"op": "bmm", "shapes": "BxMxNxK 4x0x64x64"}, "shapes has the size 0"),
        ({"op": "matmul", "shapes": "1,0 @ 0,4"}, "shapes has the size 0"),
        ({"state": "row-tiled tiles=0"}, "the number of tiles is 0"),
        (
            {**MATMUL, "cores": 32, "state": "split 8x8x1"},
            "the split takes 64 cores of 32",
        ),
        ({**MATMUL, "state": "split 4x2x1"}, "the split takes 8 cores of 4"),
        ({**MATMUL, "state": "split 1x2x1"}, "the split takes 2 cores of 4"),
        ({**MATMUL, "cores": 1, "state": "split 2x1"}, "the split takes 2 cores of 1"),
        ({**MATMUL, "state": "split 0x4x1"}, "the split has a zero"),
        (
            {**MATMUL, "cores": 32, "state": "25 cores out=24"},
            "the split takes 24 cores, not 25",
        ),
        (
            {**MATMUL, "state": "split 2x2x1; DXP_LX_FRAC_AVAIL=1.5"},
            "the share of LX is 1.5",
        ),
    ],
)
def test_a_row_that_contradicts_itself_is_an_error(tmp_path, change, message):
    where = r"rows.json: row 0 \(x1\): "
    with pytest.raises(measurements.BadData, match=where + re.escape(message)):
        read_one(tmp_path, **change)


def test_bad_data_ends_the_benchmark(tmp_path):
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([GOOD, {**GOOD, "id": 2}]))
    done = fidelity("--data", file)
    message = f"error: {file}: row 1 (2): id must be a string, found int\n"
    assert (done.returncode, done.stderr) == (2, message)
    file.write_bytes(b'[{"id": "\xff"}]')
    done = fidelity("--data", file)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {file}: 'utf-8' codec can't decode")


def test_state_and_cores_may_be_missing(tmp_path):
    assert read_one(tmp_path, state=None).state == ""
    assert read_one(tmp_path, cores=None).cores == 32
    split = read_one(tmp_path, **MATMUL, cores=None, state="split 3x4x1")
    assert (split.cores, split.kernel.splits) == (12, (1, 3, 4, 1))


def test_a_missing_field_and_an_id_twice_are_errors(tmp_path):
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([{k: v for k, v in GOOD.items() if k != "op"}]))
    with pytest.raises(measurements.BadData, match=r"row 0 \(x1\): no field op"):
        measurements.read(file)
    file.write_text(json.dumps([GOOD, GOOD]))
    with pytest.raises(
        measurements.BadData, match=r"row 1 \(x1\): the id occurs twice"
    ):
        measurements.read(file)
    file.write_text("{}")
    with pytest.raises(measurements.BadData, match="expected a list of rows"):
        measurements.read(file)
    file.write_text("[")
    with pytest.raises(measurements.BadData, match="line 1"):
        measurements.read(file)


def test_products_keep_their_extents_and_splits():
    """Shapes and splits are written in six ways; each is read once by hand here."""
    rows = {row.id: row.kernel for row in measurements.read()}
    for row, extents, splits in (
        ("m00192", (1, 2048, 1024, 2048), (1, 4, 8, 1)),
        ("m00442", (1, 512, 4096, 12800), (1, 2, 16, 1)),
        ("m00577", (32, 512, 128, 512), (4, 4, 2, 1)),
        ("m01110", (1, 512, 4096, 12800), (1, 4, 8, 1)),
        ("m01951", (32, 64, 128, 576), (1, 32, 1, 1)),
        ("m00397", (1, 4096, 4096, 2048), (1, 8, 4, 1)),
        ("m00213", (1, 128, 128, 2048), (1, 1, 1, 1)),
        ("m03666", (1, 512, 1024, 4096), None),
        # One core is a split, whatever the text says of it.
        ("m00134", (1, 2048, 2048, 1024), (1, 1, 1, 1)),
        ("m00144", (1, 1024, 1024, 2048), (1, 1, 1, 1)),
        ("m00156", (1, 2048, 2048, 4096), (1, 1, 1, 1)),
        ("m00135", (1, 2048, 2048, 1024), None),
        ("m00329", (8, 1024, 1024, 2048), (8, 2, 2, 1)),
        ("m03627", (1, 1, 25600, 4096), (1, 1, 25, 1)),
        ("m03628", (1, 2, 25600, 4096), (1, 1, 8, 4)),
        ("m03632", (1, 1, 26624, 4096), (1, 1, 32, 1)),
        ("m01963", (1, 1, 12800, 4096), (1, 1, 25, 1)),
        ("m01965", (64, 32, 512, 128), (1, 32, 1, 1)),
        ("m01966", (64, 32, 576, 128), (1, 32, 1, 1)),
    ):
        assert (rows[row].extents, rows[row].splits) == (extents, splits), row


def test_extents_of_named_products_make_the_utilisation_that_rows_state():
    """1,024 multiply-accumulates per cycle and core at 1.1 GHz are the whole."""
    found = []
    for row in measurements.read():
        if row.kernel and kernels.named_product(row.op):
            share = float(row.fields["note"].removeprefix("PT util ")) / 100
            peak = 32 * 1024 * 1100.0
            macs = math.prod(row.kernel.extents)
            assert macs / row.microseconds / peak == pytest.approx(share, rel=1e-3)
            found.append(row.id)
    assert len(found) == 13
    # Names of the same kinds that the file does not have.
    name = "golden_prefill_attn_v_32x512x512_x_128"
    assert kernels.named_product(name) == (32, 512, 128, 512)
    name = "neighborhood_prefill_mlp_gate_m513"
    assert kernels.named_product(name) == (1, 513, 12800, 4096)
    assert kernels.named_product("fused_prefill_full_glu_chain") is None


def test_rows_without_a_program_say_why():
    rows = measurements.read()
    assert all(row.kernel or row.reason for row in rows)
    assert all(row.family for row in rows)
    products = [
        row
        for row in rows
        if row.kernel and row.kernel.is_product and row.kernel.splits
    ]
    assert len(products) == 225
    for row in rows:
        if row.kernel:
            programs.write(row.kernel)
    # What is not expressed is also not known: how it was divided over the cores.
    assert {row.reason for row in rows if not row.kernel} == {
        "a block or model, not a kernel",
        "how its kernels are divided over the cores is not known",
        "how the stack cuts it into kernels is not known",
        "the width of a head is not stated",
    }
    assert not any(row.plan_known for row in rows if not row.kernel)


def test_only_named_kinds_of_rows_count_for_no_goal():
    reasons = {row.outside for row in measurements.read()}
    assert reasons == {
        "",
        "2880 columns",
        "a stack plans, not the row",
        "a whole block or model",
        "contradicts all other rows",
        "contradicts the other splits of its matmul",
        "excluded: hundreds of times the other splits of its matmul",
        "outer product",
        "shorter than 20 us",
        "the split is not known",
    }


def test_figures_are_shown_with_and_without_the_excluded_rows(tmp_path):
    done = fidelity("--rows", "m00464", "m00469", "--keep", tmp_path)
    assert done.returncode == 0, done.stderr
    tables = dict(
        re.findall(r"^(\w.*)\nkind .*\n(?:.*\n){6}all +(\d+)", done.stdout, re.M)
    )
    assert tables == {
        "rows that count for goals": "1",
        "rows that count for goals, and the excluded ones": "2",
        "all rows with a prediction but the excluded ones": "1",
        "all rows with a prediction": "2",
    }
    assert "(excluded: hundreds of times" in done.stdout
    assert re.search(r"^matmul +2 of +2 +100% +2 of +2$", done.stdout, re.M)


def test_tiles_and_lx_are_read_from_the_row(tmp_path):
    tiled = read_one(tmp_path, state="row-tiled tiles=4").kernel
    assert (tiled.tiles, tiled.lx) == (4, True)
    assert "tile_hints = [array<i64: 0, 0, 4>]" in programs.write(tiled)
    off = read_one(tmp_path, state="untiled, LX planning off").kernel
    assert (off.tiles, off.lx) == (1, False)
    shapes = "[[3, 65, 192], [3, 65, 192]]"
    added = read_one(tmp_path, op="pointwise_add", shapes=shapes, state="LX off")
    assert (added.kernel.extents, added.kernel.lx) == ((195, 192), False)
    added = read_one(tmp_path, op="pointwise_add", shapes="1,63,64 @ 1,63,64")
    assert added.kernel.extents == (63, 64)
    softmax = read_one(
        tmp_path, op="softmax(dim=-1)", shapes="[64,128]", state="LX off"
    )
    assert not softmax.kernel.lx
    for change, reason in (
        ({"state": "row-tiled"}, "how it is tiled is not known"),
        (
            {"state": "row-tiled tiles=4, LX off"},
            "tiles are planned together with LX, which was off",
        ),
        (
            {"op": "cat dim0 [x,x]", "shapes": "[64,64]", "state": "tiles=2"},
            "no hint tiles a kernel that moves data",
        ),
        (
            {"op": "pointwise_add", "shapes": "1,64,64 @ 64"},
            "not two operands of one shape with rows and columns",
        ),
        (
            {"op": "bmm layout swap/default", "shapes": "B4 M64 K64 N64"},
            "which layout the operands had is not said in our terms",
        ),
    ):
        found = read_one(tmp_path, **change)
        assert (found.kernel, found.reason) == (None, reason)


def test_stages_of_a_softmax():
    rows = {row.id: row.kernel for row in measurements.read()}
    assert rows["m00313"].stages == ("amax", "sub", "sum", "div")
    assert rows["m04198"].stages.count("sigmoid") == 2
    assert rows["m04197"].stages == ("amax", "sub", "exp", "sum", "div")
    with pytest.raises(programs.NotExpressible, match="no stage div of a softmax"):
        programs.write(kernels.Kernel("softmax", (64, 64), stages=("div",)))


def test_a_product_with_a_shared_weight_has_the_shape_of_one_without_batch():
    shared = kernels.Kernel("shared matmul", (4, 1024, 1024, 2048))
    assert shared.shape_key == kernels.Kernel("matmul", (1, 4096, 1024, 2048)).shape_key
    whole = kernels.Kernel("matmul", (4, 1024, 1024, 2048))
    assert whole.shape_key != shared.shape_key


def plan(row, folder):
    """What spyre-opt plans for a row, as text before it is lowered to KTIR."""
    source = folder / f"{row.id}.mlir"
    source.write_text(programs.write(row.kernel))
    options = tools.pipeline(row, folder) + " to-ktir=false"
    return tools.run(
        [tools.tool("spyre-opt"), f"--spyre-pipeline={options}", str(source)]
    )


def divided(text, op):
    """The slices per loop of every operation `op` of a plan."""
    pattern = rf"spyre_graph\.{op} .*division<splits = \[([\d, ]+)\]"
    return [tuple(kernels.numbers(found)) for found in re.findall(pattern, text)]


@pytest.mark.parametrize(
    ("row", "splits"),
    [
        ("m00192", (4, 8, 1)),
        ("m00134", (1, 1, 1)),  # one core
        ("m00211", (2, 2, 2)),  # M, N and K
        ("m00457", (1, 1, 32)),  # K alone
        ("m01123", (4, 4, 1)),  # half of the cores
        ("m01135", (2, 15, 1)),
        ("m03627", (1, 25, 1)),
        ("m00571", (32, 1, 1, 1)),  # the batch alone
        ("m00564", (2, 1, 2, 8)),  # batch, N and K
        ("m00577", (4, 4, 2, 1)),
        ("m00336", (1, 16, 2, 1)),  # the batch as a whole
        ("m00328", (4, 2, 2, 1)),
        ("m00342", (1, 8, 4, 1)),  # a shared weight
        ("m00330", (4, 2, 2, 1)),
        ("m01965", (1, 32, 1, 1)),
    ],
)
def test_work_is_divided_as_the_row_says(tmp_path, row, splits):
    found = {r.id: r for r in measurements.read()}[row]
    # The splits written here are those of the row, and those of the plan.
    assert found.kernel.splits[4 - len(splits) :] == splits
    assert divided(plan(found, tmp_path), "matmul") == [splits]


@pytest.mark.parametrize(
    ("row", "op", "loops"),
    [
        ("m00013", "add", 1),
        ("m00055", "max", 4),
        ("m00275", "sum", 32),
        ("m00317", "exp_sub", 1),
        ("m02099", "restickify", 32),
        ("m00366", "identity", 32),
        ("m00354", "identity", 32),
        ("m00047", "add", 32),
        ("m04200", "sigmoid", 32),
    ],
)
def test_other_kernels_use_the_cores_of_the_row(tmp_path, row, op, loops):
    found = {r.id: r for r in measurements.read()}[row]
    divisions = divided(plan(found, tmp_path), op)
    assert divisions
    assert all(math.prod(division) == loops for division in divisions)


@pytest.mark.parametrize(
    ("name", "batch", "extents"),
    [
        ("matmul", 1, (128, 192, 320)),
        ("matmul", 3, (3, 128, 192, 320)),
        ("shared matmul", 3, (3, 128, 192, 320)),
    ],
)
@pytest.mark.parametrize("of_k", [False, True])
def test_tiles_cut_rows_or_k(tmp_path, name, batch, extents, of_k):
    """M is cut in two, or K in five."""
    tiles = {"tiles_of_k": 5} if of_k else {"tiles": 2}
    kernel = kernels.Kernel(name, (batch, *extents[-3:]), **tiles)
    row = measurements.Measurement("x", "", "", "", "", 4, 1.0, kernel)
    text = plan(row, tmp_path)
    assert text.count("scf.for") == 1
    cut = [*extents]
    cut[-1 if of_k else -3] //= 5 if of_k else 2
    found = re.findall(r"spyre_graph\.matmul .*extents = array<i64: ([\d, ]+)>", text)
    assert [kernels.numbers(sizes) for sizes in found] == [cut]


def test_flagged_intermediates_go_through_memory(tmp_path):
    """Two results of sigmoids, each written and read in eight tiles."""
    rows = {row.id: row for row in measurements.read()}
    moved = []
    tmp_path = tmp_path / "with a space"
    tmp_path.mkdir()
    for row in ("m04197", "m04198"):
        program = tools.compile_row(rows[row], tmp_path)
        traffic = tools.predict_program(program, None)["bytes"]["device_memory"]
        moved.append(traffic["read"] + traffic["written"])
    assert moved[1] - moved[0] == 2 * 2 * 2048 * 512 * 2


def test_what_the_compiler_rejects_is_not_expressed(tmp_path):
    file = tmp_path / "rows.json"
    row = {**GOOD, "op": "matmul", "shapes": "M64 K64 N64", "cores": 32}
    file.write_text(json.dumps([{**row, "state": "split 1x32x1"}]))
    done = fidelity("--data", file)
    assert done.returncode == 0, done.stderr
    assert "not expressed: 'spyre_graph.matmul' op" in done.stdout.splitlines()[0]
    assert re.search(r"^matmul +0 of +1 +0% +0 of +1$", done.stdout, re.M)


@pytest.mark.parametrize("name", ["spyre-opt", "spyre-run"])
@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'error: out of paper' >&2; exit 3", "error: out of paper (exit status"),
        ("echo 'file.mlir:1:1: error: no' >&2; exit 1", "file.mlir:1:1: error: no ("),
        ("kill -SEGV $$", f"no message (ended by signal {signal.SIGSEGV.value})"),
        # Also if it has found fault with the program before.
        (
            'for a; do case $a in *.mlir) echo "$a:1:1: error: bad" >&2;; esac; done\n'
            "kill -ABRT $$",
            f"(ended by signal {signal.SIGABRT.value})",
        ),
    ],
)
def test_a_failing_tool_ends_the_benchmark(tmp_path, name, script, message):
    fake = tmp_path / name
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    done = fidelity("--rows", "m00252", path=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: m00252: {name}: ")
    assert message in done.stderr
    assert done.stdout == ""


def test_a_missing_tool_is_an_error():
    with pytest.raises(tools.ToolError, match="spyre-opt: No such file or directory"):
        tools.run(["/nonexistent/spyre-opt"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file or directory"),
        (b"{", "Expecting property name"),
        (b"\xff", "'utf-8' codec can't decode"),
        (b"[1]", "expected an object, found list"),
        (b'{"noSuchNumber": 1}', 'there is no parameter "noSuchNumber"'),
        (b'{"lxReservedFraction": 2}', "lxReservedFraction must be below 1"),
    ],
)
def test_a_bad_device_file_is_an_error(tmp_path, text, message):
    file = tmp_path / "device.json"
    if text is not None:
        file.write_bytes(text)
    done = fidelity("--rows", "m00252", "--device", file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert message in done.stderr


def test_the_share_of_lx_of_a_row_joins_the_numbers_of_the_device(tmp_path):
    given = tmp_path / "given.json"
    given.write_text('{"clockHertz": {"value": 7e8}, "lxReservedFraction": 0.5}')
    devices = tools.Devices(given, tmp_path)
    rows = {row.id: row.kernel for row in measurements.read()}
    assert devices.file(rows["m00001"]) == given
    numbers = {"clockHertz": {"value": 7e8}}
    for row, share in (("m01099", 0.8), ("m00554", 0.2), ("m01125", 0.8)):
        merged = {**numbers, "lxReservedFraction": share}
        assert json.loads(devices.file(rows[row]).read_text()) == merged
    assert tools.Devices(None, tmp_path).file(rows["m00001"]) is None
    shares = [kernel.lx_fraction for kernel in rows.values() if kernel]
    assert (shares.count(0.2), shares.count(0.8)) == (120, 15)
    keep = tmp_path / "with a space"
    arguments = ("--rows", "m00001", "m01107", "--device", given, "--keep", keep)
    done = fidelity(*arguments)
    assert done.returncode == 0, done.stderr
    # Of the numbers of the device, plans see the share that the row tells.
    said = [
        re.findall(r"spyre_graph.device = {(.*?)}", (keep / f"{row}.ktir").read_text())
        for row in ("m00001", "m01107")
    ]
    assert said == [[], ["lxReservedFraction = 8.000000e-01 : f64"]]


def test_kept_programs_are_made_anew_when_they_have_to_be(tmp_path):
    tmp_path = tmp_path / "with a space"
    tmp_path.mkdir()
    row = {r.id: r for r in measurements.read()}["m00252"]
    program = tools.compile_row(row, tmp_path)
    made, text = program.stat().st_mtime_ns, program.read_text()

    program.write_text("kept")
    tools.compile_row(row, tmp_path)
    assert program.read_text() == "kept"
    # Older than the compiler.
    os.utime(program, (1, 1))
    tools.compile_row(row, tmp_path)
    assert (program.read_text(), program.stat().st_mtime_ns > made) == (text, True)
    # The same operation on other cores, then another operation.
    row.cores = 3
    tools.compile_row(row, tmp_path)
    assert (on_three := program.read_text()) != text
    row.kernel = kernels.Kernel("exp", (64, 64))
    tools.compile_row(row, tmp_path)
    assert program.read_text() != on_three
    # What cannot be compiled leaves no program of another text behind.
    row.kernel = kernels.Kernel("matmul", (1, 64, 64, 64), splits=(1, 1, 3, 1))
    with pytest.raises(programs.NotExpressible):
        tools.compile_row(row, tmp_path)
    assert not program.exists()


def test_the_plot_has_a_panel_per_family_and_a_mark_per_row(tmp_path):
    file = tmp_path / "residuals.svg"
    done = fidelity("--rows", "m00252", "m00192", "m00464", "--plot", file)
    assert done.returncode == 0, done.stderr
    root = xml.etree.ElementTree.parse(file).getroot()
    space = "{http://www.w3.org/2000/svg}"
    texts = [text.text for text in root.iter(f"{space}text")]
    assert [t for t in texts if t.endswith(" rows")] == [
        "pointwise: 1 rows",
        "reduction: 0 rows",
        "matmul: 2 rows",
        "bmm: 0 rows",
        "softmax: 0 rows",
        "transpose: 0 rows",
    ]
    marks = [
        c for c in root.iter(f"{space}circle") if c.find(f"{space}title") is not None
    ]
    assert [mark.get("class") for mark in marks] == ["counts", "counts", "outside"]
    done = fidelity("--rows", "m00252", "--plot", tmp_path / "no" / "folder.svg")
    assert done.returncode == 2


def test_axes_of_the_plot_are_logarithmic_and_hold_all_points():
    points = [plot.Point(20.0, 0.5, True, "a<b"), plot.Point(2000.0, 2.0, True, "b")]
    text = plot.svg([plot.Panel("p & q", points)])
    assert "a&lt;b" in text
    assert "p &amp; q" in text
    circles = re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="3"><title', text)
    (x0, y0), (x1, y1) = ((float(x), float(y)) for x, y in circles)
    decade = plot.WIDTH / 3  # 10 to 10,000
    assert x1 - x0 == pytest.approx(2 * decade, abs=0.2)
    # 0.5 and 2 are as far from 1, the middle of 0.1 to 10.
    assert (y0 + y1) / 2 == pytest.approx(plot.TOP + plot.HEIGHT / 2, abs=0.2)
    assert plot.svg([plot.Panel("none", [])]).endswith("</svg>\n")


@pytest.mark.parametrize(
    ("row", "moved"),
    [
        # Bytes that the kernel has to read and write at least, from its shapes.
        ("m00001", 3 * 2048 * 1024 * 2),  # add
        ("m00081", (2 * 128 * 2048 + 2048) * 2),  # add a row
        ("m00273", 2048 * 2048 * 2 + 2048 * 128),  # sum of rows: a stick each
        ("m00281", (16384 * 2048 + 2048) * 2),  # sum of columns
        ("m02096", 2 * 512 * 512 * 2),  # restickify
        ("m00366", 2 * 1024 * 8 * 1024 * 2),  # outer transpose
        ("m00192", (2048 * 2048 + 2048 * 1024 + 2048 * 1024) * 2),  # matmul
        ("m00294", 2 * 2048 * 2048 * 2),  # softmax in 32 tiles
    ],
)
def test_a_row_becomes_the_kernel_that_was_measured(tmp_path, row, moved):
    done = fidelity("--rows", row, "--keep", tmp_path)
    assert done.returncode == 0, done.stderr
    line = done.stdout.splitlines()[0]
    assert line.startswith(row) and "not expressed" not in line
    measured, predicted, ratio = map(float, re.findall(r" (\d+\.\d+)", line)[-3:])
    assert ratio == pytest.approx(predicted / measured, rel=0.01)
    program = tmp_path / f"{row}.ktir"
    report = subprocess.run(
        [
            tools.tool("spyre-run"),
            program,
            "--entry=main",
            "--predict-only",
            "--json=-",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(report.stdout)
    traffic = found["bytes"]["device_memory"]
    # More than that: what cores read again, and what does not stay in LX.
    assert moved <= traffic["read"] + traffic["written"] <= 2.1 * moved
    cores = {r.id: r.cores for r in measurements.read()}[row]
    assert cores / 2 < max(kernel["cores"] for kernel in found["kernels"]) <= cores


def test_unknown_rows_are_an_error():
    done = fidelity("--rows", "m99999")
    assert (done.returncode, done.stderr) == (2, "error: no row m99999\n")
