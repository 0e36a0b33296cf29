# SPDX-License-Identifier: Apache-2.0
"""What each --check mode finds, with the places it names; same bits otherwise."""

import benchmark_modules
import numpy as np
import pytest
from commands import needs_tools
from contract_programs import matmul_program, softmax_program
from f16_values import half
from ktir_runs import FULL, fails, however_run, results
from ktir_text import function, line_of, load, store

pytestmark = needs_tools

ORDER = "affine_map<(i) -> (i)>"
LOAD = "ktdp.load %{0} : !ktdp.access_tile<64xindex> -> tensor<64xf32>"
STORE = "ktdp.store %{0}, %{1} : tensor<64xf32>, !ktdp.access_tile<64xindex>"


def view(name, pointer, space, size=64):
    return (
        f"%{name} = ktdp.construct_memory_view %{pointer}, sizes: [{size}], strides: "
        f"[1] {{coordinate_set = affine_set<(i) : (i >= 0, -i + {size - 1} >= 0)>, "
        f"memory_space = #ktdp.memory_space<{space}>}} : memref<{size}xf32>"
    )


def tile(name, base, at, size=64):
    return (
        f"%{name} = ktdp.construct_access_tile %{base}[%{at}] {{access_tile_set = "
        f"affine_set<(i) : (i >= 0, -i + 63 >= 0)>, access_tile_order = {ORDER}}} : "
        f"memref<{size}xf32> -> !ktdp.access_tile<64xindex>"
    )


def kernel(name, arguments, grid, *lines):
    text = ", ".join(f"%{a}: index" for a in arguments.split())
    body = "\n  ".join(lines)
    return f"""
func.func private @{name}({text}) attributes {{grid = [{grid}]}} {{
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %core = ktdp.get_compute_tile_id : index
  {body}
  return
}}"""


def entry(grid, *lines):
    """A kernel that is launched by itself, on x."""
    text = kernel("f", "x", grid, *lines).replace("func.func private", "func.func")
    return text.replace("@f(%x: index)", '@f(%x: index {ktdp.name = "x"})')


def ramp(size=64):
    return np.arange(size, dtype=np.float32)


# --- reads of a pool and of LX that nothing has written ---


def undefined(space, pointer):
    body = [
        view("vp", pointer, space),
        tile("tp", "vp", "c0"),
        view("vx", "x", "global"),
        tile("tx", "vx", "c0"),
        "%d = " + LOAD.format("tp"),
        STORE.format("d", "tx"),
    ]
    return f"""func.func @main(%x: index {{ktdp.name = "x"}}, %pool: index {{ktdp.pool_size = 256 : i64}}) {{
  %c4 = arith.constant 4 : index
  %p = arith.divui %pool, %c4 : index
  call @copy(%x, %p) : (index, index) -> ()
  return
}}
{kernel("copy", "x p", 1, *body)}
"""


@pytest.mark.parametrize(
    ("space", "pointer", "place", "note"),
    [
        (
            "global",
            "p",
            "device memory byte",
            "program.mlir:1:46: note: it is part of pool 'pool' of 256 bytes, allocated here",
        ),
        (
            "ct_local",
            "c16",
            "LX of core 0 byte 64",
            "program.mlir:{view}:9: note: a view gives these bytes a type here, LX bytes 64 to 319",
        ),
    ],
    ids=["pool", "lx"],
)
def test_undefined(space, pointer, place, note, tmp_path):
    text, x = undefined(space, pointer), np.ones(64, np.float32)
    results(text, [x], tmp_path)
    messages = [
        f"program.mlir:{line_of(text, '%d = ktdp.load')}:",
        f"error: core 0: reads {place}",
        "which no operation has written",
        note.format(view=line_of(text, "%vp = ")),
    ]
    fails(text, [x], tmp_path, messages, *FULL)


# --- two buffers in LX that share bytes while both are live ---


def overlapping(second, again=""):
    body = [
        view("vx", "x", "global"),
        tile("tx", "vx", "c0"),
        view("va", "c0", "ct_local"),
        tile("ta", "va", "c0"),
        view("vb", second, "ct_local"),
        tile("tb", "vb", "c0"),
        "%d = " + LOAD.format("tx"),
        STORE.format("d", "ta"),
        STORE.format("d", "tb"),
        again,
        "%e = " + LOAD.format("ta"),
        STORE.format("e", "tx"),
    ]
    return f"""func.func @main(%x: index {{ktdp.name = "x"}}) {{
  call @a(%x) : (index) -> ()
  return
}}
{kernel("a", "x", 1, *body)}
"""


#: A buffer of several cores: what one of them has of it may be less than its view.
LARGER = "\n  ".join(
    [
        view("vl", "c0", "ct_local", 128),
        tile("tl", "vl", "c0", 128),
        STORE.format("d", "tl"),
    ]
)


@pytest.mark.parametrize(
    "program",
    [
        overlapping("c64"),
        overlapping("c0"),
        overlapping("c32", STORE.format("d", "ta")),
        overlapping("c32", LARGER),
    ],
    ids=["apart", "same place", "written again", "written again in a larger view"],
)
def test_no_overlap(program, tmp_path):
    x = ramp()
    assert (results(program, [x], tmp_path, *FULL)["x"] == x).all()


def test_overlap(tmp_path):
    text = overlapping("c32")
    messages = [
        f"program.mlir:{line_of(text, '%e = ktdp.load')}:",
        "error: core 0: reads LX of core 0 byte 128, which was overwritten",
        f"program.mlir:{line_of(text, 'ktdp.store')}:3: note: core 0 wrote the live value here",
        f"program.mlir:{line_of(text, 'ktdp.store', 1)}:3: note: core 0 overwrote it here",
    ]
    fails(text, [ramp()], tmp_path, messages, *FULL)


# --- cores that touch the same bytes in one kernel ---

ZERO = "%zero = arith.constant 0.0 : f32\n  %d = tensor.splat %zero : tensor<64xf32>"
BARRIER = """%future = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<(i)[g] : (i >= 0, -i + 1 >= 0)>
      : tensor<1xf32> -> <(tensor<1xf32>), groups = affine_set<(g) : (g == 0)>> {
  ^bb0(%group: index):
    %s = tensor.splat %zero : tensor<1xf32>
    ktdp.yield_partial %s : tensor<1xf32>
  }
  %all = ktdp.inter_tile_gather(%future) consumer_tiles_per_group = affine_set<(i)[g] : (i >= 0, -i + 1 >= 0)>,
      gather_dimension = 0 : <(tensor<1xf32>), groups = affine_set<(g) : (g == 0)>> -> tensor<2xf32>"""


def read_tile(name):
    return "%e = " + LOAD.format(name)


def write_tile(name):
    return STORE.format("d", name)


def racing(*steps):
    """Two cores, their own halves of x, each other's, the low and the high one."""
    return entry(
        2,
        view("vx", "x", "global", 128),
        "%own = arith.muli %core, %c64 : index",
        "%one = arith.constant 1 : index",
        "%rest = arith.subi %one, %core : index",
        "%other = arith.muli %rest, %c64 : index",
        tile("town", "vx", "own", 128),
        tile("tother", "vx", "other", 128),
        tile("tlow", "vx", "c0", 128),
        tile("thigh", "vx", "c64", 128),
        *steps,
    )


@pytest.mark.parametrize(
    "steps",
    [
        (ZERO, write_tile("town"), read_tile("town")),
        (ZERO, write_tile("town"), BARRIER, read_tile("tother")),
    ],
    ids=["own halves", "exchange between"],
)
def test_no_race(steps, tmp_path):
    results(racing(*steps), [ramp(128)], tmp_path, *FULL)


def test_write_after_read(tmp_path):
    text, x = (
        racing(
            read_tile("thigh"),
            ZERO,
            "%second = arith.cmpi eq, %core, %one : index",
            f"scf.if %second {{\n  {write_tile('thigh')}\n  }}",
        ),
        ramp(128),
    )
    results(text, [x], tmp_path)
    messages = [
        f"program.mlir:{line_of(text, 'ktdp.store')}:3: error: core 1: writes device memory byte",
        "which core 0 reads, and nothing orders the two",
        f"program.mlir:{line_of(text, '%e = ktdp.load')}:8: note: core 0 reads here",
    ]
    fails(text, [x], tmp_path, messages, *FULL)


def test_read_after_write(tmp_path):
    text = racing(ZERO, write_tile("town"), read_tile("tlow"))
    messages = [
        "error: core 1: reads device memory byte",
        "which core 0 writes, and nothing orders the two",
        f"program.mlir:{line_of(text, 'ktdp.store')}:3: note: core 0 writes here",
    ]
    fails(text, [ramp(128)], tmp_path, messages, *FULL)


def test_write_after_write(tmp_path):
    messages = [
        "error: core 1: writes device memory byte",
        "note: core 0 writes here",
    ]
    text = racing(ZERO, write_tile("tlow"))
    fails(text, [ramp(128)], tmp_path, messages, *FULL)


# --- messages order what is before with what is after, not the other way round ---


def send(name, source, target):
    """A message from one core to another; the third one has no part in it."""
    only = "affine_set<(i)[g] : (i - {} == 0)>"
    groups = "groups = affine_set<(g) : (g == 0)>"
    return f"""%{name}_f = ktdp.inter_tile_produce producer_tiles_per_group = {only.format(source)}
      : tensor<1xf32> -> <(tensor<1xf32>), {groups}> {{
  ^bb0(%group: index):
    %s = tensor.splat %zero : tensor<1xf32>
    ktdp.yield_partial %s : tensor<1xf32>
  }}
  %{name} = ktdp.inter_tile_consume(%{name}_f) consumer_tiles_per_group = {only.format(target)}
      : <(tensor<1xf32>), {groups}> -> tensor<1xf32>"""


def write(core):
    return f"scf.if %is{core} {{\n  {STORE.format('d', 't')}\n  }}"


def read(core):
    return f"scf.if %is{core} {{\n  %e = {LOAD.format('t')}\n  }}"


def talking(*steps):
    return entry(
        3,
        view("vx", "x", "global"),
        tile("t", "vx", "c0"),
        ZERO,
        *(f"%n{i} = arith.constant {i} : index" for i in range(3)),
        *(f"%is{i} = arith.cmpi eq, %core, %n{i} : index" for i in range(3)),
        *steps,
    )


@pytest.mark.parametrize(
    "steps",
    [
        (write(0), send("a", 0, 1), read(1)),
        (read(0), send("a", 0, 1), write(1)),
        (write(0), send("a", 0, 1), send("b", 1, 2), write(2)),
        (write(0), send("a", 0, 1), write(1), send("b", 1, 0), read(0)),
    ],
    ids=[
        "read after write",
        "write after read",
        "write after write by way of another core",
        "there and back",
    ],
)
def test_ordered_by_messages(steps, tmp_path):
    results(talking(*steps), [ramp()], tmp_path, *FULL)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((send("a", 0, 1), write(0), read(1)), "core 1: reads device memory byte"),
        (
            (write(1), send("a", 0, 1), read(0)),
            "which core 0 reads, and nothing orders the two",
        ),
        ((write(0), send("a", 1, 0), write(1)), "core 1: writes device memory byte"),
        (
            (write(0), send("b", 1, 2), send("a", 0, 1), write(2)),
            "core 2: writes device memory byte",
        ),
    ],
    ids=[
        "sent before the write",
        "written by the receiver before",
        "sent the other way",
        "passed on before it arrives",
    ],
)
def test_not_ordered_by_messages(steps, message, tmp_path):
    text, x = talking(*steps), ramp()
    results(text, [x], tmp_path)
    fails(text, [x], tmp_path, [message], *FULL)


# --- the operation that first makes a NaN, before DL16 hides it ---

SHAPE = (4, 8)
TENSOR = "tensor<4x8xf16>"


def ones(**infinities):
    """Ones, and infinities in columns of row 2."""
    x = np.ones(SHAPE, np.float16)
    for column, value in infinities.items():
        x[2, int(column[1:])] = value
    return x


def unary(body, out=SHAPE):
    return function(
        "x z",
        f"{load('x', SHAPE, 'f16')}\n    {body}\n    {store('z', out, 'f16', 'r')}",
    )


DIFFERENCE = unary(
    f"%y = arith.addf %x_d, %x_d : {TENSOR}\n    %r = arith.subf %y, %x_d : {TENSOR}"
)
SUM = unary(
    """%init = arith.constant dense<0.0> : tensor<4xf16>
    %r = linalg.reduce { arith.addf } ins(%x_d : tensor<4x8xf16>) outs(%init : tensor<4xf16>) dimensions = [1]""",
    (4,),
)
LOOP = unary(
    f"""%c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%v = %x_d) -> ({TENSOR}) {{
      %e = tensor.empty() : {TENSOR}
      %n = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]}} ins(%v : {TENSOR}) outs(%e : {TENSOR}) {{
      ^bb0(%p: f16, %unused: f16):
        %q = arith.subf %p, %p : f16
        linalg.yield %q : f16
      }} -> {TENSOR}
      scf.yield %n : {TENSOR}
    }}"""
)


def operand(text, what, column):
    return f"program.mlir:{line_of(text, what)}:{column}: note: an operand is computed here"


def test_nan_is_hidden(tmp_path):
    """DL16 has none."""
    x = ones(c3=np.inf)
    found = results(DIFFERENCE, [x, np.zeros_like(x)], tmp_path)["z"]
    assert not np.isnan(found).any()


@pytest.mark.parametrize(
    ("text", "x", "messages"),
    [
        (
            DIFFERENCE,
            ones(c3=np.inf),
            [
                f"program.mlir:{line_of(DIFFERENCE, 'arith.subf')}:",
                "error: arith.subf computes NaN from inf and inf",
                operand(DIFFERENCE, "arith.addf", 10),
                operand(DIFFERENCE, "ktdp.load", 12),
            ],
        ),
        (
            SUM,
            ones(c3=np.inf, c5=-np.inf),
            [
                "linalg.reduce computes NaN from numbers and infinities",
                operand(SUM, "ktdp.load", 12),
            ],
        ),
        # What the loop reads, and what carries it there.
        (
            LOOP,
            ones(c3=np.inf),
            [
                f"program.mlir:{line_of(LOOP, 'arith.subf')}:",
                "error: arith.subf computes NaN from inf and inf",
                operand(LOOP, "ktdp.load", 12),
                operand(LOOP, "linalg.generic", 12),
            ],
        ),
    ],
    ids=["difference", "sum of both infinities", "body of a loop"],
)
def test_nan(text, x, messages, tmp_path):
    z = np.zeros((4,) if text is SUM else SHAPE, np.float16)
    fails(text, [x, z], tmp_path, messages, *FULL)


@pytest.mark.parametrize(
    ("text", "x"),
    [(DIFFERENCE, ones()), (SUM, ones(c3=np.inf))],
    ids=["difference", "sum of one infinity"],
)
def test_no_nan(text, x, tmp_path):
    z = np.zeros((4,) if text is SUM else SHAPE, np.float16)
    results(text, [x, z], tmp_path, *FULL)


def test_nan_of_the_input(tmp_path):
    """It is not made here."""
    x = np.full(SHAPE, np.nan, np.float32)
    text = function(
        "x z",
        f"{load('x', SHAPE, 'f32')}\n    %r = arith.addf %x_d, %x_d : tensor<4x8xf32>\n"
        f"    {store('z', SHAPE, 'f32', 'r')}",
    )
    results(text, [x, np.zeros_like(x)], tmp_path, *FULL)


# --- the same bits in every mode, with any number of threads, per numerics ---


def check_bits(program, values, name, scale, folder):
    """Between the numerics, at most a rounding to nine bits instead of ten."""
    arrays = {
        (check, threads): results(
            program,
            values,
            folder / f"{check}{threads}",
            *("--check", check, "--threads", threads),
        )[name]
        for check in ["none", "bounds", "full"]
        for threads in [1, 3]
    }
    first = arrays["none", 1]
    for way, found in arrays.items():
        assert (found == first).all(), way
    ieee = results(program, values, folder / "ieee", "--numerics", "ieee")[name]
    error = np.abs(ieee.astype(np.float32) - first.astype(np.float32))
    assert (error <= 2.0**-8 * scale).all()
    assert (ieee != first).any()


def test_softmax_in_every_mode(tmp_path):
    x = half(np.random.default_rng(31), 100, 200)
    check_bits(softmax_program(100, 200, 25), [x, "zeros"], "out", 1, tmp_path)


def test_results_past_the_caches(tmp_path):
    """Views of 16 MiB are written past the caches; without checks sizes are unknown."""
    rows, columns = 1024, 8192
    program = benchmark_modules.load("ktir.kernels").layernorm(rows, columns)
    for name in ("x", "weight", "bias", "y"):
        program = program.replace(
            f"%{name}: index", f'%{name}: index {{ktdp.name = "{name}"}}', 1
        )
    rng = np.random.default_rng(33)
    x = half(rng, rows, columns)
    x[3, 100:200] = 0
    x[5] *= 2.0**-12
    x[7, ::2] *= 256
    values = [x, half(rng, columns), half(rng, columns), np.zeros_like(x)]
    found = [
        results(program, values, tmp_path / check, "--check", check)["y"]
        for check in ("bounds", "none")
    ]
    assert found[0].tobytes() == found[1].tobytes()
    assert abs(found[0].astype(np.float32)).max() > 1


#: Rows, columns, depth and grid. Of few rows, the right factor is read piece by piece,
#: unless a check is full or cores share it.
PRODUCTS = {
    "many rows": (70, 200, 130, (3, 2)),
    "one row": (1, 200, 1100, (1, 2)),
    "two rows": (2, 200, 1100, (1, 2)),
    "three rows": (3, 96, 1100, (1, 1)),
    "four rows": (4, 200, 1100, (1, 1)),
    "last column alone": (1, 65, 1100, (1, 1)),
    "eight rows": (8, 200, 1100, (1, 2)),
    "nine rows": (9, 200, 1100, (1, 2)),
    "shared": (8, 200, 1100, (4, 2)),
    "shared by some": (3, 600, 300, (3, 5)),
}


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
def test_matmul_in_every_mode(product, tmp_path):
    """Inputs and the result are rounded."""
    rows, columns, depth, _ = product
    rng = np.random.default_rng(31)
    a, b = half(rng, rows, depth), half(rng, depth, columns)
    scale = np.abs(a).astype(np.float32) @ np.abs(b).astype(np.float32)
    program = matmul_program(*product)
    check_bits(program, [a, b, "zeros"], "c", scale, tmp_path)


@pytest.mark.parametrize("rows", [1, 20])
def test_an_infinite_factor(rows, tmp_path):
    """One column is infinite; codes of infinities take another way."""
    program = matmul_program(rows, 200, 1100, (1, 2))
    rng = np.random.default_rng(32)
    a, b = half(rng, rows, 1100), half(rng, 1100, 200)
    a[:, 700], b[700, 150] = 1, -np.inf
    found = however_run(program, [a, b, "zeros"], "c", tmp_path, "dl16")
    assert np.array_equal(np.isinf(found), np.tile(np.arange(200) == 150, (rows, 1)))
    b[700, 150] = 0
    finite = however_run(program, [a, b, "zeros"], "c", tmp_path, "dl16")
    assert np.array_equal(np.delete(found, 150, 1), np.delete(finite, 150, 1))


# --- who waits for whom ---


def test_deadlock(tmp_path):
    pair = "affine_set<(i)[g] : (i >= 0, -i + 1 >= 0)>"
    group = "affine_set<(g) : (g == 0)>"
    exchange = f"""%future = ktdp.inter_tile_produce producer_tiles_per_group = {pair} : tensor<1xf32> -> <(tensor<1xf32>), groups = {group}> {{
    ^bb0(%group: index):
      ktdp.yield_partial %zero : tensor<1xf32>
    }}
    %all = ktdp.inter_tile_gather(%future) consumer_tiles_per_group = {pair}, gather_dimension = 0
      : <(tensor<1xf32>), groups = {group}> -> tensor<2xf32>"""
    text = f"""func.func @f(%n: index) attributes {{grid = [3]}} {{
  %c0 = arith.constant 0 : index
  %core = ktdp.get_compute_tile_id : index
  %zero = arith.constant dense<0.0> : tensor<1xf32>
  %first = arith.cmpi eq, %core, %c0 : index
  scf.if %first {{
    {exchange}
  }} else {{
    {exchange}
  }}
  return
}}
"""
    messages = [
        f"program.mlir:{line_of(text, 'inter_tile_gather')}:",
        "error: core 0: ktdp.inter_tile_gather: deadlock: core 0 waits for core 1, core 1 waits for core 0",
    ]
    fails(text, [1], tmp_path, messages)
