# SPDX-License-Identifier: Apache-2.0
"""What users add to the compiler from Python: torch_spyre.extend."""

import warnings

import pytest
import torch
import torch_spyre
from inputs import values
from interpreters import run_python
from numerics import assert_exact, assert_units, compiled, device_value
from torch.nn import functional
from torch_spyre import _C, extend
from torch_spyre.compile_backend import compiled_parts
from torch_spyre.errors import ExtensionError
from torch_spyre.frontend.eager_steps import EagerStep
from torch_spyre.ops import fallbacks
from torch_spyre.ops.fallbacks import FallbackWarning

aten = torch.ops.aten
HALF = torch.float16

library = torch.library.Library("extended", "DEF")
library.define("cube(Tensor x, float scale=1.0) -> Tensor")
library.define("divided(Tensor x, *, float by, Tensor? plus=None) -> Tensor")
library.define("row_norms(Tensor x) -> (Tensor, Tensor)")
library.define("fill_up(Tensor(a!) x, Tensor y) -> Tensor")
library.impl("cube", lambda x, scale=1.0: torch.empty_like(x), "Meta")
library.impl("divided", lambda x, *, by, plus=None: torch.empty_like(x), "Meta")
library.impl("row_norms", lambda x: (x.sum(-1), x.amax(-1)), "Meta")
library.impl("fill_up", lambda x, y: torch.empty_like(y), "Meta")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
ops = torch.ops.extended


@pytest.fixture(autouse=True)
def nothing_stays():
    yield
    from torch_spyre import extensions

    for op in list(extensions._extensions):
        extend.remove(op)
    fallbacks.fallback_ops.clear()
    torch_spyre.reset_fallback_report()


def both(function, *arguments):
    """Eager and compiled results, without a reset of Dynamo in between."""
    return function(*arguments).cpu(), torch.compile(function)(*arguments).cpu()


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("shape", [(1,), (65,), (3, 0), (7, 13)])
def test_decomposition_of_a_custom_operator(shape):
    @extend.decomposition(ops.cube.default)
    def cube(x, scale=1.0):
        return x * x * x * scale

    host = values(shape, torch.float32)
    expected = (host.double() ** 3) * 0.5
    for result in both(lambda x: ops.cube(x, 0.5), host.to("spyre")):
        assert_units(result, expected, 4)


@pytest.mark.usefixtures("no_fallback")
def test_decomposition_with_keywords():
    @extend.decomposition(ops.divided.default)
    def divided(x, *, by, plus=None):
        return x / by if plus is None else x / by + plus

    x = torch.tensor([2.0, 6.0]).to("spyre")
    for result in both(lambda x: ops.divided(x, by=2.0), x):
        assert result.tolist() == [1.0, 3.0]
    for result in both(lambda x: ops.divided(x, plus=x, by=2.0), x):
        assert result.tolist() == [3.0, 9.0]


@pytest.mark.usefixtures("no_fallback")
def test_decomposition_goes_before_what_there_is():
    """And what was compiled before it is compiled anew, then and after remove()."""
    x = values((65,), torch.float32).to("spyre")
    function = torch.compile(functional.gelu)
    before = [functional.gelu(x).cpu(), function(x).cpu()]

    @extend.decomposition(aten.gelu.default)
    def quick(x, approximate="none"):
        return x * torch.sigmoid(1.702 * x)

    expected = x.cpu().double() * torch.sigmoid(1.702 * x.cpu().double())
    for result in (functional.gelu(x).cpu(), function(x).cpu()):
        assert_units(result, expected, 8)
    assert not torch.equal(before[0], functional.gelu(x).cpu())
    extend.remove(aten.gelu.default)
    assert_exact(functional.gelu(x).cpu(), before[0])
    assert_exact(function(x).cpu(), before[1])


@pytest.mark.usefixtures("no_fallback")
def test_decomposition_may_decline():
    """Then the compiler's own operation runs."""
    seen = []

    @extend.decomposition(aten.gelu.default)
    def only_exact(x, approximate="none"):
        seen.append(approximate)
        return NotImplemented if approximate == "tanh" else x * 0

    x = values((5, 70), torch.float32).to("spyre")
    for result in both(lambda x: functional.gelu(x, approximate="tanh"), x):
        expected = functional.gelu(x.cpu().double(), approximate="tanh")
        torch.testing.assert_close(result.double(), expected, atol=1e-5, rtol=1e-5)
    for result in both(functional.gelu, x):
        assert result.eq(0).all()
    assert set(seen) == {"tanh", "none"}


def lower_cube(graph, x, scale=1.0):
    square = graph.op("spyre_graph.square", x)
    return graph.op("spyre_graph.mul", graph.op("spyre_graph.mul", square, x), scale)


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("shape", [(), (1,), (65,), (3, 0), (7, 13)])
@pytest.mark.parametrize("dtype", [HALF, torch.float32], ids=str)
def test_lowering_of_a_custom_operator(shape, dtype):
    extend.lowering(ops.cube.default)(lower_cube)
    host = values(shape, dtype, low=-2.0, high=2.0)
    expected = device_value(host).double() ** 3 * 0.5
    device = host.to("spyre")
    torch._dynamo.reset()
    eager, graph = both(lambda x: ops.cube(x, 0.5), device)
    assert_units(eager, expected, 3)
    assert_exact(graph, eager)
    # Numbers that change are seen as they are.
    for scale in (0.25, 2.0, -1.0):
        result = ops.cube(device, scale).cpu()
        assert_units(result, expected / 0.5 * scale, 3)


@pytest.mark.usefixtures("no_fallback")
def test_lowering_becomes_operations_of_the_program():
    extend.lowering(ops.cube.default)(lower_cube)
    x = values((5, 70), HALF).to("spyre")
    compiled(lambda x: ops.cube(x) + 1, fullgraph=True)(x)
    (part,) = compiled_parts()[-1:]
    names = " ".join(k["name"] for k in part.report())
    assert "square" in names and "mul" in names


@pytest.mark.usefixtures("no_fallback")
def test_lowering_to_reductions_and_rows_of_the_table():
    """Two results; a device operation with attributes, and an ATen operator."""

    @extend.lowering(ops.row_norms.default)
    def lower(graph, x):
        rows = x.shape[:-1]
        total = graph.op(
            "spyre_graph.sum", x, shape=(*rows, 1), attributes="{dims = array<i64: 1>}"
        )
        total = graph.op("aten.sum.dim_IntList", total, [-1], shape=rows)
        return total, graph.op("aten.amax.default", x, [-1], shape=rows)

    host = values((7, 130), torch.float32)
    device = host.to("spyre")
    for call in (ops.row_norms, compiled(lambda x: ops.row_norms(x))):
        total, largest = call(device)
        torch.testing.assert_close(total.cpu(), host.sum(-1), atol=1e-4, rtol=1e-5)
        assert_exact(largest.cpu(), host.amax(-1))


@pytest.mark.usefixtures("no_fallback")
def test_lowering_of_an_aten_operator():
    @extend.lowering(aten.gelu.default)
    def quick(graph, x, approximate="none"):
        gate = graph.op("spyre_graph.sigmoid", graph.op("spyre_graph.mul", x, 1.702))
        return graph.op("spyre_graph.mul", x, gate)

    host = values((65,), torch.float32)
    expected = host.double() * torch.sigmoid(1.702 * host.double())
    for result in both(functional.gelu, host.to("spyre")):
        assert_units(result, expected, 8)


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("kind", ["decomposition", "lowering"])
def test_in_place_operators_follow(kind):
    """And out= ones: they store what the operator returns."""
    if kind == "decomposition":
        extend.decomposition(aten.neg.default)(lambda x: x * 3)
    else:
        extend.lowering(aten.neg.default)(lambda g, x: g.op("spyre_graph.mul", x, 3.0))
    x = torch.ones(5, device="spyre")
    assert x.neg_().cpu().eq(3).all()
    out = torch.zeros_like(x)
    assert torch.neg(x, out=out).cpu().eq(9).all()
    assert compiled(lambda x: x.neg_() + 0)(x).cpu().eq(9).all()


LOWERINGS = {
    "no such operation": (
        lambda graph, x, scale=1.0: graph.op("spyre_graph.cubed", x),
        r"spyre_graph\.cubed: .*no device operation of this name",
    ),
    "attributes": (
        lambda graph, x, scale=1.0: graph.op("spyre_graph.exp", x, attributes="{dims"),
        r"its attributes are no dictionary such as .*'\{dims'",
    ),
    "immediates": (
        lambda graph, x, scale=1.0: graph.op(
            "spyre_graph.mul", x, 2.0, attributes="{immediates = [unit, 2.0 : f32]}"
        ),
        "numbers are operands",
    ),
    "operands": (
        lambda graph, x, scale=1.0: graph.op("spyre_graph.exp", x, x, x),
        r"spyre_graph\.exp: ",
    ),
    "no values": (
        lambda graph, x, scale=1.0: graph.op("spyre_graph.fill", 1.0),
        "needs dtype= and shape=",
    ),
    "shape": (
        lambda graph, x, scale=1.0: graph.op("aten.sum.default", x, shape=()),
        r"returned torch.float32 of shape \[\] as result 0: expected torch.float32 of "
        r"shape \[3, 5\]",
    ),
    "dtype": (
        lambda graph, x, scale=1.0: graph.op("spyre_graph.exp", x, dtype=HALF),
        "returned torch.float16 of shape",
    ),
    "count": (lambda graph, x, scale=1.0: (x, x), "returned 2 values: expected 1"),
    "no value": (lambda graph, x, scale=1.0: 3, "returned a int as result 0"),
    "exception": (lambda graph, x, scale=1.0: x.size, "raised AttributeError"),
}


@pytest.mark.parametrize("case", LOWERINGS)
@pytest.mark.parametrize("is_compiled", [False, True])
def test_wrong_lowerings(case, is_compiled):
    """An error that names the function, its line and the operator; never a fallback."""
    function, message = LOWERINGS[case]
    extend.lowering(ops.cube.default)(function)
    call = compiled(lambda x: ops.cube(x) + 1) if is_compiled else ops.cube
    with pytest.raises(Exception, match=message) as caught:
        call(torch.ones(3, 5, device="spyre"))
    assert "test_extend.py:" in str(caught.value)
    assert "extended.cube.default" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "count", "message"),
    [
        ("sum", 1, "requires attribute 'dims'"),
        ("gather", 2, "requires attribute 'axis'"),
        ("topk", 1, "must have maps and extents"),
    ],
)
def test_incomplete_operations_where_sizes_vary(name, count, message):
    """Sizes are inferred only of operations that have what these follow from."""
    builder = _C.GraphBuilder()
    builder.add_symbol("s", 2, 64, 8)
    x = torch.ones(8, 64, dtype=HALF, device="spyre")
    _, _, sizes, strides, layout, dtype = _C.tensor_info(x)
    operand = _C.ValueId(builder.add_argument("x", dtype, sizes, strides, layout))
    with pytest.raises(Exception, match=message):
        builder.op(
            f"spyre_graph.{name}", [operand] * count, {}, [(dtype, sizes, strides)], []
        )


@pytest.mark.filterwarnings("ignore::torch_spyre._C.FallbackWarning")
@pytest.mark.parametrize("kind", ["lowering", "decomposition", "fallback"])
def test_an_argument_as_result_is_copied(kind):
    def same(*given, scale=1.0):
        return next(x for x in reversed(given) if not isinstance(x, float))

    getattr(extend, kind)(ops.cube.default)(same)
    x = torch.ones(5, 7, device="spyre")
    for call in (ops.cube, compiled(lambda x: ops.cube(x))):
        result = call(x.t())
        result.zero_()
        assert result.shape == (7, 5) and x.cpu().eq(1).all()


WRONG = {
    "count": (lambda x, scale=1.0: (x * 1, x * 2), "returned 2 values: expected 1"),
    "nothing": (lambda x, scale=1.0: None, "returned a NoneType as result 0"),
    "shape": (lambda x, scale=1.0: x.sum(), r"of shape \[\] .*expected .*\[3\]"),
    "dtype": (
        lambda x, scale=1.0: x.int(),
        "returned torch.int32 .*expected .*float32",
    ),
    "device": (
        lambda x, scale=1.0: torch.ones(3, device="meta"),
        "returned a tensor on meta",
    ),
}


@pytest.mark.filterwarnings("ignore::torch_spyre._C.FallbackWarning")
@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("kind", ["decomposition", "fallback"])
@pytest.mark.parametrize("case", WRONG)
def test_wrong_results(case, kind, is_compiled):
    function, message = WRONG[case]
    getattr(extend, kind)(ops.cube.default)(function)
    call = compiled(lambda x: ops.cube(x) + 1) if is_compiled else ops.cube
    with pytest.raises(Exception, match=message) as caught:
        call(torch.ones(3, device="spyre"))
    assert "test_extend.py:" in str(caught.value)
    assert "extended.cube.default" in str(caught.value)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_decompositions_that_fail(is_compiled):
    def fails(x, scale=1.0):
        raise KeyError("nothing")

    extend.decomposition(ops.cube.default)(fails)
    call = compiled(lambda x: ops.cube(x) + 1) if is_compiled else ops.cube
    x = torch.ones(3, device="spyre")
    with pytest.raises(Exception, match="raised KeyError: 'nothing'") as caught:
        call(x)
    assert "test_extend.py:" in str(caught.value)
    if not is_compiled:
        with pytest.raises(ExtensionError):
            call(x)


def test_fallback():
    devices = []

    @extend.fallback([aten.gelu.default, ops.cube.default])
    def on_cpu(x, *rest, **named):
        devices.append(x.device.type)
        return x + 100

    x = values((5, 70), torch.float32).to("spyre")
    for op, name in [(functional.gelu, "aten::gelu"), (ops.cube, "extended::cube")]:
        for call in (op, compiled(lambda x, op=op: op(x * 2) + 1)):
            torch_spyre.reset_fallback_report()
            with pytest.warns(FallbackWarning, match=f"{name} is falling") as seen:
                result = call(x)
            assert result.device == x.device
            assert seen[0].filename == __file__
            assert torch_spyre.fallback_report() == {name: 1}
        assert_exact(result.cpu(), x.cpu() * 2 + 101)
    assert set(devices) == {"cpu"} and len(devices) == 4


def test_fallback_of_what_writes():
    """Arguments that share a storage share one on the CPU; what is written comes back."""

    @extend.fallback(ops.fill_up.default)
    def fill_up(x, y):
        x.add_(10)
        return y.clone()

    base = torch.arange(12.0).to("spyre")
    x, y = base[2:8].view(2, 3).t(), base[4:10]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        result = ops.fill_up(x, y)
    expected = torch.arange(12.0)
    expected[2:8] += 10
    assert_exact(base.cpu(), expected)
    assert_exact(result.cpu(), expected[4:10])


@pytest.mark.parametrize("other", [torch.int16, torch.int8, torch.int32])
@pytest.mark.filterwarnings("ignore::torch_spyre.ops.fallbacks.FallbackWarning")
def test_fallback_of_one_storage_as_two_dtypes(other):
    seen = []

    @extend.fallback(ops.fill_up.default)
    def fill_up(x, y):
        seen.append(y.clone())
        x.add_(1)
        return y.clone()

    host = torch.arange(1, 8, dtype=HALF)
    x = host.to("spyre")
    result = ops.fill_up(x, x[:6].view(other))
    assert_exact(seen[0], host[:6].view(other))
    assert_exact(x.cpu(), host + 1)
    assert_exact(result.cpu(), (host + 1)[:6].view(other))


def test_errors_outside_programs_name_the_line_of_the_call():
    @extend.fallback(ops.cube.default)
    def fails(x, scale=1.0):
        raise IndexError("nothing there")

    x = torch.ones(3, device="spyre")
    with pytest.raises(IndexError, match="nothing there") as caught:
        compiled(lambda x: ops.cube(x * 2))(x)
    (note,) = caught.value.__notes__
    assert note.startswith(f"extended.cube.default was called at {__file__}, line ")


def test_errors_outside_programs_without_notes():
    """As in Python 3.10, whose exceptions have no ``add_note``."""

    class NoNotes(Exception):
        @property
        def add_note(self):
            raise AttributeError("add_note")

    def fails():
        raise NoNotes("nothing there")

    step = EagerStep(torch.fx.Graph().call_function(fails))
    with pytest.raises(NoNotes, match="nothing there"):
        step.run({})


def test_run_on_cpu():
    x = values((5, 70), torch.float32).to("spyre")
    extend.run_on_cpu(aten.gelu.default)
    for call in (functional.gelu, compiled(lambda x: functional.gelu(x) + 0)):
        torch_spyre.reset_fallback_report()
        with pytest.warns(FallbackWarning, match="aten::gelu"):
            result = call(x)
        assert_exact(result.cpu(), functional.gelu(x.cpu()))


def test_names_of_torch_spyre():
    @fallbacks.register_fallback([aten.gelu.default])
    def gelu(x, approximate="none"):
        return x

    fallbacks.register_fallback_default([aten.silu.default])
    assert fallbacks.fallback_ops == [aten.gelu.default, aten.silu.default]
    x = torch.ones(3, device="spyre")
    with pytest.warns(FallbackWarning):
        assert functional.gelu(x).cpu().eq(1).all()
        functional.silu(x)
    assert set(torch_spyre.fallback_report()) == {"aten::gelu", "aten::silu"}
    with pytest.raises(ValueError, match="not on 'cuda'"):
        fallbacks.register_fallback([aten.exp.default], device="cuda")


@pytest.mark.parametrize(
    "add", [extend.decomposition, extend.lowering, extend.fallback]
)
def test_wrong_use(add):
    def takes_nothing():
        return None

    def any_arguments(*args, **kwargs):
        return None

    for op, kind, message in [
        (aten.gelu, TypeError, r"several overloads: name one of aten.gelu.default"),
        ("aten::gelu", TypeError, "expected an operator's overload"),
        (functional.gelu, TypeError, "expected an operator's overload"),
        (ops.twice.default, ValueError, "composite: the device sees only"),
        (aten.view.default, ValueError, "is a view"),
    ]:
        with pytest.raises(kind, match=message):
            add(op)(any_arguments)
    with pytest.raises(TypeError, match=r"takes_nothing \(.*test_extend.py:\d+\) does"):
        add(ops.cube.default)(takes_nothing)
    if add is not extend.fallback:
        with pytest.raises(ValueError, match="writes its arguments"):
            add(ops.fill_up.default)(any_arguments)
    add(ops.cube.default)(any_arguments)
    with pytest.raises(ValueError, match=r"has the \w+ any_arguments .* already"):
        extend.decomposition(ops.cube.default)(any_arguments)
    extend.remove(ops.cube.default)
    with pytest.raises(ValueError, match="has no extension"):
        extend.remove(ops.cube.default)


PROGRAM = """
import sys, torch
from torch_spyre import extend, _C
factor = float(sys.argv[1])
@extend.lowering(torch.ops.aten.gelu.default)
def gelu(graph, x, approximate="none"):
    return graph.op("spyre_graph.mul", x, factor)
x = torch.full((3,), 2.0, device="spyre")
print(torch.compile(torch.nn.functional.gelu)(x).cpu().tolist()[0])
"""


def test_programs_are_cached_by_what_extensions_make(tmp_path):
    """Another process with another lowering gets no program of this one."""
    files = []
    for factor in ("3", "5", "3"):
        run = run_python(PROGRAM, factor, SPYRE_CACHE_DIR=str(tmp_path))
        assert run.returncode == 0, run.stderr
        assert float(run.stdout) == 2 * float(factor)
        files.append(len(list(tmp_path.rglob("*.spyre"))))
    assert files[0] < files[1] == files[2]
