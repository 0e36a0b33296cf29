# SPDX-License-Identifier: Apache-2.0
"""Bundles for many sizes from torch.compile: sizes declared by mark_dynamic."""

import logging
import re

import numpy as np
import plan_bits  # noqa: F401  (sums do not depend on the plan)
import pytest
import torch
import torch.nn.functional as F
from commands import needs_tools
from commands import run as run_tool
from inputs import values
from numerics import (
    assert_exact,
    assert_like_oracle,
    assert_units,
    compiled,
    oracle,
    poison,
    poisoned,
)
from reference import round_dl16
from torch_spyre import _C
from torch_spyre.compile_backend import compiled_parts
from torch_spyre.frontend.declared_sizes import step_of

#: Least size, which is the step, and largest: about sticks (64 elements), one by one,
#: primes, and many cores' worth of rows.
RANGES = ((1, 7), (13, 65), (21, 63), (64, 128), (31, 31 * 8))


def run(f, *arguments, sizes, dims=((0, 0),)):
    """Runs on poisoned copies; ``sizes`` are declared of (argument, dimension)."""
    poison()
    arguments = [poisoned(a.to("spyre")) for a in arguments]
    for argument, dim in dims:
        torch._dynamo.mark_dynamic(arguments[argument], dim, min=sizes[0], max=sizes[1])
    results = f(*arguments)
    if isinstance(results, torch.Tensor):
        results = (results,)
    return tuple(r.cpu() for r in results), [a.cpu() for a in arguments]


def stored(shape, seed, low=-1.0, high=1.0):
    """Values that the device holds as they are."""
    return round_dl16(values(shape, torch.float16, seed, low, high)).half()


def weight(rows, columns):
    return stored((rows, columns), 5, -0.1, 0.1)


def update(x, y):
    x.add_(y)
    return x * 2


#: Of a size s: the function, its inputs, and which of their dimensions vary.
FUNCTIONS = {
    "pointwise": (
        lambda x, y: torch.exp(x) + y * 2,
        lambda s: [(s, 130), (s, 130)],
        ((0, 0), (1, 0)),
    ),
    "product": (
        lambda x, w, v: torch.relu(x @ w) @ v,
        lambda s: [(s, 96), (96, 130), (130, 70)],
        ((0, 0),),
    ),
    "softmax": (lambda x: x.softmax(-1), lambda s: [(s, 100)], ((0, 0),)),
    "norm": (
        lambda x, w: F.layer_norm(x, (100,), w),
        lambda s: [(s, 100), (100,)],
        ((0, 0),),
    ),
    "sum of what varies": (
        lambda x: (x * 2).sum(0),
        lambda s: [(s, 70)],
        ((0, 0),),
    ),
    "largest of what varies": (
        lambda x: (x * 2).amax(0),
        lambda s: [(s, 70)],
        ((0, 0),),
    ),
    "a dimension inside": (
        lambda x: (x + 1).amax(-1),
        lambda s: [(3, s, 70)],
        ((0, 1),),
    ),
    "written argument": (
        update,
        lambda s: [(s, 70), (s, 70)],
        ((0, 0), (1, 0)),
    ),
    "two results": (
        lambda x: (x + 1, x.sum(1)),
        lambda s: [(s, 70)],
        ((0, 0),),
    ),
}


def same_bits(name, first, second, least, most):
    """Runs two forms of a function at all sizes, and checks that each has one program
    for them and that their results and arguments are equal.

    Yields what a run is called, its inputs, and the results.
    """
    _, shapes, dims = FUNCTIONS[name]
    sizes = [s for s in range(least, most + 1, least) if s > 1]
    before = len(compiled_parts())
    # Not in order: what a run leaves in memory must not matter for another.
    for size in sizes[::-1] + sizes[:1]:
        inputs = [stored(shape, size + i) for i, shape in enumerate(shapes(size))]
        actual, after = run(first, *inputs, sizes=(least, most), dims=dims)
        wanted, kept = run(second, *inputs, sizes=(least, most), dims=dims)
        what = f"s = {size} of {least} to {most}"
        for a, b in zip((*actual, *after), (*wanted, *kept), strict=True):
            assert_exact(a, b, what)
        yield what, inputs, actual
    programs = compiled_parts()[before:]
    assert [p.graph.num_sizes for p in programs] == [1, 1]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_bundle_for_all_sizes(name):
    """The bits of the same plan in KTIR, which are right, at every size."""
    function, _, _ = FUNCTIONS[name]
    for least, most in RANGES:
        through = compiled(function, dynamic=None, options={"through_superdsc": True})
        planned = torch.compile(
            function, backend="spyre", options={"superdsc_compatible": True}
        )
        for what, inputs, actual in same_bits(name, through, planned, least, most):
            wide = function(*[x.double() for x in inputs])
            exact = oracle(function, *[x.double() for x in inputs])
            if not isinstance(wide, tuple):
                wide, exact = (wide,), (exact,)
            for a, b, c in zip(actual, wide, exact, strict=True):
                assert_like_oracle(a, b, c, what)


def test_two_sizes():
    """Independent ones: two symbols of one bundle."""

    def function(x, y):
        return x.unsqueeze(1) + y.unsqueeze(0)

    f = compiled(function, dynamic=None, options={"through_superdsc": True})
    before = len(compiled_parts())
    for rows, columns in ((13, 26), (65, 13), (39, 39), (26, 65)):
        x = values((rows, 70), torch.float16, rows).round()
        y = values((columns, 70), torch.float16, columns).round()
        (actual,), _ = run(f, x, y, sizes=(13, 65), dims=((0, 0), (1, 0)))
        assert_exact(actual, function(x, y), f"{rows}, {columns}")
    assert [p.graph.num_sizes for p in compiled_parts()[before:]] == [2]


def test_gradients():
    """The gradients' graph, which is compiled after Dynamo has forgotten the range."""

    def function(x, w):
        return torch.relu(x @ w)

    f = compiled(function, dynamic=None, options={"through_superdsc": True})
    before = len(compiled_parts())
    for size in (13, 65, 26):
        x, w = stored((size, 66), size), weight(66, 70)
        device = x.to("spyre").requires_grad_()
        torch._dynamo.mark_dynamic(device, 0, min=13, max=65)
        f(device, w.to("spyre")).sum().backward()
        wide = x.double().requires_grad_()
        function(wide, w.double()).sum().backward()
        assert_units(device.grad.cpu(), wide.grad, 1, f"s = {size}")
    parts = compiled_parts()[before:]
    assert [p.graph.num_sizes for p in parts] == [1] * len(parts)
    assert len(parts) >= 2


def test_other_sizes_are_numbers():
    """Sizes that vary, but are not declared, have a program each, as they had."""
    f = compiled(lambda x, y: x + y, dynamic=None, options={"through_superdsc": True})
    before = len(compiled_parts())
    for rows, columns in ((13, 5), (26, 5), (26, 67), (39, 67), (13, 67)):
        x = values((rows, columns, 70), torch.float16, rows).round()
        y = values((rows, columns, 70), torch.float16, columns).round()
        (actual,), _ = run(f, x, y, sizes=(13, 65), dims=((0, 0), (1, 0)))
        assert_exact(actual, x + y, f"{rows}, {columns}")
    # Of Dynamo's two graphs, the second one is for any number of columns.
    assert [p.graph.num_sizes for p in compiled_parts()[before:]] == [1, 1]
    f = compiled(lambda x: x + 1, dynamic=True, options={"through_superdsc": True})
    before = len(compiled_parts())
    for rows in (13, 26):
        f(values((rows, 70), torch.float16).to("spyre"))
    assert [p.graph.num_sizes for p in compiled_parts()[before:]] == [0, 0]


@needs_tools
@pytest.mark.parametrize("size", [13, 65, 39])
def test_files(size, tmp_path, monkeypatch):
    """What is written is valid, is written again with the same bytes, and gives the
    same bits at all sizes on arrays whose rest is infinite, which stays.
    """
    monkeypatch.setenv("SPYRE_EXECUTE", "superdsc")
    monkeypatch.setenv("SPYRE_DUMP_DIR", str(tmp_path))
    f = compiled(lambda x, w: (x @ w).softmax(-1), dynamic=None)
    x, w = values((size, 96), torch.float16, size, -1, 1), weight(96, 70)
    (actual,), _ = run(f, x, w, sizes=(13, 65))
    (dump,) = [p for p in tmp_path.iterdir() if p.is_dir()]
    bundle = dump / "superdsc"
    run_tool("spyre-translate", "--validate-superdsc", bundle)
    again = tmp_path / "again"
    run_tool("spyre-translate", "--rewrite-superdsc", bundle, "-o", again)
    files = [p.relative_to(bundle) for p in bundle.rglob("*") if p.is_file()]
    assert len(files) > 2
    for file in files:
        assert (again / file).read_bytes() == (bundle / file).read_bytes()
    assert "granularity=13, max_value=65" in (bundle / "bundle.mlir").read_text()
    roomy = np.full((65, 96), np.inf, np.float16)
    roomy[:size] = x.numpy()
    stale = np.full((65, 70), 7, np.float16)
    given = []
    for name, array in (("x", roomy), ("w", w.numpy()), ("stale", stale)):
        np.save(tmp_path / f"{name}.npy", array)
        given += ["--arg", tmp_path / f"{name}.npy"]
    out = tmp_path / "out"
    run_tool("spyre-run", bundle, *given, "--arg", size, "--out-dir", out)
    (result,) = [np.load(p) for p in out.glob("out*.npy")]
    assert_exact(torch.from_numpy(result[:size]), actual)
    np.testing.assert_array_equal(result[size:], stale[size:])


# --- what is refused ----------------------------------------------------------


def declare(size, least, most, columns=70):
    x = values((size, columns), torch.float16).to("spyre")
    torch._dynamo.mark_dynamic(x, 0, min=least, max=most)
    return x


def test_sizes_between_are_refused():
    f = compiled(lambda x: x + 1, dynamic=None, options={"through_superdsc": True})
    f(declare(26, 13, 65))
    before = len(compiled_parts())
    for size, near in ((27, "26, 39"), (14, "13, 26"), (64, "52, 65")):
        said = f"dimension 0 of L['x'] is {size}, but SuperDSC has a program for "
        said += (
            f"the multiples of 13 up to 65, as mark_dynamic says; the nearest: {near}"
        )
        with pytest.raises(_C.UnsupportedOp, match=re.escape(said)):
            f(declare(size, 13, 65))
    assert len(compiled_parts()) == before


#: What bundles for many sizes do not have: a function, which dimension of x[26, 26]
#: varies, and what is said.
REFUSED = {
    "along sticks": (lambda x: x + 1, 1, "a size along sticks"),
    "product over it": (lambda x: x.t() @ x, 0, "a size along sticks"),
    "mean": (lambda x: x.mean(0), 0, "constants that may depend on it"),
    "part": (lambda x: x[1:] * 2, 0, "a dimension is one symbol"),
    "every second": (
        lambda x: x[::2] * 2,
        0,
        r"test_declared_sizes\.py:\d+: error: aten\.slice\.Tensor has no program for many "
        r"sizes: a size of .*, where \w+ is dimension 0 of L\['x'\]: .* this one divides "
        r"such a size, as x\[::2\]",
    ),
    "flattened": (lambda x: x.flatten() * 2, 0, "a dimension is one symbol"),
    "number": (lambda x: x * x.shape[0], 0, "SuperDSC"),
    "grown": (lambda x: torch.cat((x, x[:1])) + 1, 0, "a dimension is one symbol"),
    "gather": (lambda x: x[torch.arange(26, device="spyre") % 3], 0, "SuperDSC"),
    "scan": (lambda x: x.cumsum(1), 0, "which is for one size"),
}


@pytest.mark.parametrize(("function", "dim", "why"), REFUSED.values(), ids=REFUSED)
def test_refused(function, dim, why):
    """The error says what, and at which line; nothing runs per size instead."""
    f = compiled(function, dynamic=None, options={"through_superdsc": True})
    before = len(compiled_parts())
    x = values((26, 26), torch.float16).to("spyre")
    torch._dynamo.mark_dynamic(x, dim, min=13, max=65)
    with pytest.raises(_C.SpyreError, match=why):
        f(x)
    assert len(compiled_parts()) == before


def test_ranges_that_contradict_each_other():
    f = compiled(lambda x, y: x + y, dynamic=None, options={"through_superdsc": True})
    said = (
        "dimension 0 of L['x'] and dimension 0 of L['y'] are one size, but declared as "
        "multiples of 13 up to 65 and of 26 up to 78"
    )
    with pytest.raises(Exception, match=re.escape(said)):
        f(declare(26, 13, 65), declare(26, 26, 78))


@pytest.mark.parametrize(
    ("least", "most", "step"),
    [
        # docs/spec/symbolic-shapes.md, "torch-spyre's bucket rules".
        (64, 1024, 64),
        (2, 1024, 32),
        (2, 512, 16),
        (2, 576, 18),
        (1, 32, 1),
        (7, 7, 7),
    ],
)
def test_steps(least, most, step):
    assert step_of("n", least, most) == step


@pytest.mark.parametrize(
    ("least", "most", "why"),
    [
        (64, 1000, "must divide max"),
        (1, 576, "576 buckets, exceeds max_buckets 32"),
        (3, 300, "100 buckets, exceeds max_buckets 32"),
        (2, 3, "a step of at least 4"),
    ],
)
def test_no_steps(least, most, why):
    with pytest.raises(_C.UnsupportedOp, match=f"n is .*{why}"):
        step_of("n", least, most)


def test_default_step_is_said(listen):
    with listen(logging.getLogger("spyre.inductor"), logging.WARNING) as records:
        step_of("n", 2, 576)
    assert [r.getMessage() for r in records] == ["n: defaulting granularity to 18"]


# --- loops up to sizes around files for one -------------------------------------

LOOPS = {"through_superdsc": True, "bundle_size_loops": True}
#: Those that do not reduce what varies.
BY_TILES = [name for name in FUNCTIONS if "of what varies" not in name]


@pytest.mark.parametrize("name", BY_TILES)
def test_loops_have_the_bits_of_symbols(name):
    """One bundle of tiles for all sizes, with the bits of the other form."""
    function, _, _ = FUNCTIONS[name]
    for least, most in RANGES:
        if name == "product" and least == 1:
            continue  # A product of tiles of one row is refused below.
        loops = compiled(function, dynamic=None, options=LOOPS)
        symbols = compiled(function, dynamic=None, options={"through_superdsc": True})
        for _ in same_bits(name, loops, symbols, least, most):
            pass


def test_loop_in_the_bundle(tmp_path, monkeypatch):
    monkeypatch.setenv("SPYRE_DUMP_DIR", str(tmp_path))
    f = compiled(lambda x, w: (x @ w).softmax(-1), dynamic=None, options=LOOPS)
    run(f, stored((26, 96), 1), weight(96, 70), sizes=(13, 65))
    (text,) = [p.read_text() for p in tmp_path.glob("*/superdsc/bundle.mlir")]
    (size,) = re.findall(r"scf.for %i_0 = %c0 to %(dim_\w+) step %step_0 {", text)
    assert (
        f"%{size}_base: !sdscbundle.input_arg<index, granularity=13, max_value=65>"
        in text
    )
    assert "%step_0 = arith.constant 13 : index" in text


def test_sums_over_the_size_are_refused():
    """At the line of the operation; nothing runs per size, or as the other form."""
    f = compiled(lambda x: (x * 2).amax(0), dynamic=None, options=LOOPS)
    before = len(compiled_parts())
    said = r"cannot run in a loop up to '\w+' from 13 to 65 by 13: it reduces"
    with pytest.raises(_C.SpyreError, match=said):
        f(declare(26, 13, 65))
    assert len(compiled_parts()) == before


def test_products_of_single_rows_are_refused():
    """Where an intermediate has the row in LX."""
    function, shapes, dims = FUNCTIONS["product"]
    f = compiled(function, dynamic=None, options=LOOPS)
    inputs = [stored(shape, i) for i, shape in enumerate(shapes(3))]
    with pytest.raises(_C.SpyreError, match="SDSC-MATMUL-C4"):
        run(f, *inputs, sizes=(1, 7), dims=dims)


def test_sizes_out_of_range():
    f = compiled(lambda x: x * 2 + 1, dynamic=None)
    before = len(compiled_parts())
    x = values((5, 70), torch.float16).to("spyre")
    torch._dynamo.mark_dynamic(x, 0)
    f(x)
    (part,) = compiled_parts()[before:]
    with pytest.raises(ValueError, match=r"is 513, but .* sizes from 2 to 512"):
        part.graph.run([x], [x], [], [513])
    with pytest.raises(ValueError, match=r"is 1, but .* sizes from 2 to 512"):
        part.graph.run([x], [x], [], [1])
    with pytest.raises(ValueError, match=r"takes 1 sizes, but was given 0; .* to 512"):
        part.graph.run([x], [x])
    (name,) = part.graph.argument_names
    said = (
        rf"'{name}' is of \[6, 70\] where '.*' is 6 \(sizes from 2 to 512\), .*\[5, 70"
    )
    with pytest.raises(ValueError, match=said):
        part.graph.run([x], [x], [], [6])
