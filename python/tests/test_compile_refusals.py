# SPDX-License-Identifier: Apache-2.0
"""Operators of a compiled graph for which the compiler makes no program."""

import inspect
import json
import shutil
import warnings
from collections import Counter
from pathlib import Path

import pytest
import torch
import torch_spyre
from inputs import values
from numerics import assert_exact, compiled
from torch_spyre import _C, compile_backend
from torch_spyre.frontend import cache, parts, refusals
from torch_spyre.frontend.importer import Importer
from torch_spyre.ops.fallbacks import FallbackWarning


def whole(shape, dtype=torch.float16, seed=0):
    return values(shape, torch.int8, seed).to(dtype)


@pytest.fixture
def refuse(monkeypatch):
    """Makes the compiler refuse whatever has an operation of the given name."""
    names = []
    original = cache.load_or_compile

    def load_or_compile(builder, options):
        for name in names:
            if f"spyre_graph.{name} " in builder.print():
                raise _C.SpyreError(f"compiling the graph failed:\nno {name} here")
        return original(builder, options)

    monkeypatch.setattr(cache, "load_or_compile", load_or_compile)
    monkeypatch.setattr(refusals, "_refusals", Counter())
    return names.append


def check(function, *inputs):
    """Runs a compiled function; compares it with the CPU; the warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        results = compiled(function)(*[x.to("spyre") for x in inputs])
    for actual, wanted in zip(results, function(*inputs), strict=True):
        assert_exact(actual.cpu(), wanted)
        assert actual.stride() == wanted.stride()
    return [w for w in seen if w.category in (UserWarning, FallbackWarning)]


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_the_refused_operator_runs_by_itself(refuse):
    """The rest is compiled; warnings name the user's line."""

    def function(x):
        y = (x + 1) * 2
        z = y.abs().t()
        return z - 3, y[1:]

    refuse("abs")
    before = len(compile_backend.compiled_parts())
    seen = check(function, whole((6, 70)))
    assert len(compile_backend.compiled_parts()) > before
    assert compile_backend.refusals() == {("aten.abs.default", "no abs here"): 1}
    # Eagerly there is no program either.
    assert torch_spyre.fallback_report() == {"aten::abs.out": 1} or (
        torch_spyre.fallback_report() == {"aten::abs": 1}
    )
    messages = [str(w.message) for w in seen]
    assert any("aten.abs.default runs by itself" in m for m in messages)
    assert any("runs on the CPU" in m for m in messages)
    for warning in seen:
        if "abs" in str(warning.message):
            assert warning.filename == __file__
            assert warning.lineno == line_of(function, "abs()")


def test_what_its_row_refuses_is_only_logged(monkeypatch, caplog):
    """The operator is taken apart, and runs on the device."""
    monkeypatch.setattr(refusals, "_refusals", Counter())
    torch_spyre.reset_fallback_report()
    x = whole((2, 20000))
    with caplog.at_level("INFO", "spyre.inductor"), warnings.catch_warnings():
        warnings.simplefilter("error")
        actual = compiled(lambda x: torch.sort(x * 2, -1)[0] + 1)(x.to("spyre"))
    assert_exact(actual.cpu(), torch.sort(x * 2, -1)[0] + 1)
    assert "more than 16384 elements are sorted in parts" in caplog.text
    assert (refusals.refusals(), torch_spyre.fallback_report()) == ({}, {})


def test_several_results(refuse):
    def function(x):
        value, index = (x * 2).max(-1)
        a, b = torch.split(x - 1, 3)
        return value + 1, index, a.abs(), b * 2

    x = whole((6, 70))
    x[:, 5] = 100
    refuse("abs")
    check(function, x)
    assert list(compile_backend.refusals()) == [("aten.abs.default", "no abs here")]


def test_arguments_are_updated(refuse):
    def function(x):
        x[1:3].mul_(2)
        y = x.abs()
        x[2:4].add_(1)
        return (x + y,)

    x = whole((5, 33))
    refuse("abs")
    device, host = x.to("spyre"), x.clone()
    (actual,) = compiled(function)(device)
    (wanted,) = function(host)
    assert_exact(actual.cpu(), wanted)
    assert_exact(device.cpu(), host)


def test_gradients(refuse):
    def function(x):
        return (x.abs() * 3).sum()

    refuse("abs")
    x = whole((5, 33), torch.float32)
    device, host = x.to("spyre").requires_grad_(), x.clone().requires_grad_()
    compiled(function)(device).backward()
    function(host).backward()
    assert_exact(device.grad.cpu(), host.grad)


def test_other_sizes_are_tried_again(refuse):
    f = compiled(lambda x: (x.abs() + 1,), dynamic=True)
    refuse("abs")
    for rows in (3, 5):
        x = whole((rows, 7))
        assert_exact(f(x.to("spyre"))[0].cpu(), x.abs() + 1)
    assert compile_backend.refusals() == {("aten.abs.default", "no abs here"): 2}


def test_what_the_user_asked_for_is_an_error(refuse):
    """A hint, or SuperDSC, is not left out silently."""
    refuse("abs")
    x = whole((64, 64)).to("spyre")
    torch_spyre.declare_tensor_dim("M", 64)

    def hinted(x):
        with torch_spyre.spyre_hint(num_tiles_per_dim={"M": 2}):
            return x.abs()

    with pytest.raises(Exception, match="no abs here"):
        compiled(hinted)(x)
    torch._dynamo.reset()
    options = {"superdsc_compatible": True}
    with pytest.raises(Exception, match="no abs here"):
        torch.compile(lambda x: x.abs(), backend="spyre", options=options)(x)


WITHIN_STICKS = {"splits": [3, 4], "chunks": [22, 65]}


@pytest.fixture
def misplan(refuse, monkeypatch, tmp_path):
    """Lets plans divide an exp so, in what has so many operations."""
    compile_graph = _C.compile_graph
    least, divisions = [], []

    def misplan(number, division=WITHIN_STICKS):
        least.append(number)
        divisions.append(division)

    def compile_wrong(builder, options, key):
        text = builder.print()
        numbers = text.count("outs("), "spyre_graph.exp " in text
        if not least or numbers < (least[0], True):
            return compile_graph(builder, options, key)
        folder = tmp_path / key
        asked = Path(options.get("dump_dir", folder))
        if not folder.exists():
            compile_graph(builder, {**options, "dump_dir": str(folder)}, key)
            decisions = json.loads((folder / "decisions.json").read_text())
            (op,) = (
                op
                for function in decisions["functions"]
                for op in function["ops"]
                if op["op"] == "spyre_graph.exp"
            )
            op["division"] = divisions[0]
            (folder / "decisions-in.json").write_text(json.dumps(decisions))
        if asked != folder:
            shutil.copy(folder / "decisions-in.json", asked)
        return compile_graph(builder, {**options, "dump_dir": str(asked)}, key)

    monkeypatch.setattr(_C, "compile_graph", compile_wrong)
    monkeypatch.setattr(refusals, "_logged", set())
    # No program of another test is taken, and none of this one's refusals later.
    cache.forget_loaded()
    with torch.compiler.config.patch(force_disable_caches=True):
        yield misplan
    cache.forget_loaded()


def plan_warnings(caplog):
    return [r.getMessage() for r in caplog.records if "plan" in r.getMessage()]


def test_a_wrong_plan_is_no_secret(misplan, caplog):
    """Its operators have programs of their own; a warning says what to do, once."""

    def function(x):
        y = x * 2
        y = torch.exp(y - y)
        return (y * 3,)

    misplan(3)
    x = whole((64, 256))
    for _ in range(2):
        check(function, x)
        torch._dynamo.reset()
    (message,) = plan_warnings(caplog)
    line = line_of(function, "torch.exp")
    assert f"{Path(__file__).name}:{line}: error: 'spyre_graph.exp' op" in message
    assert "same stick" in message and "please report" in message
    ((operator, reason),) = compile_backend.refusals()
    assert operator == refusals.PLAN and reason in message
    assert compile_backend.refusals() == {(operator, reason): 2}
    assert torch_spyre.fallback_report() == {}


def test_a_wrong_plan_of_an_eager_operator(misplan, caplog, monkeypatch, tmp_path):
    misplan(1)
    x = torch.zeros(64, 256, dtype=torch.float16)
    monkeypatch.setenv("SPYRE_DUMP_DIR", str(tmp_path / "dump"))
    assert_exact(torch.exp(x.to("spyre")).cpu(), torch.exp(x))
    # The warning asks for it.
    (folder,) = (tmp_path / "dump").iterdir()
    passes = sorted(file.name for file in folder.glob("[0-9]*.mlir"))
    assert passes[0] == "00-import.mlir" and "coarse-tiling" in " ".join(passes)
    (message,) = plan_warnings(caplog)
    assert "same stick" in message
    assert [operator for operator, _ in compile_backend.refusals()] == [refusals.PLAN]
    assert list(torch_spyre.fallback_report()) == ["aten::exp"]


def test_spans_that_are_too_large_are_no_defect(misplan, caplog):
    """Of some graphs no plan is better, so nobody is told to report it."""
    misplan(1, {"splits": [1, 1], "chunks": [64, 2048]})
    x = whole((64, 2048)) * 0
    device = {"maxSpanBytes": 1 << 16}
    f = torch.compile(torch.exp, backend="spyre", options={"device": device})
    with pytest.warns(UserWarning, match="runs by itself"):
        assert_exact(f(x.to("spyre")).cpu(), torch.exp(x))
    assert plan_warnings(caplog) == []
    refused = compile_backend.refusals()
    assert not [1 for operator, _ in refused if operator == refusals.PLAN]
    assert any("which 65536 can be addressed" in reason for _, reason in refused)


@pytest.fixture
def imports(monkeypatch):
    """The graphs that are imported, each as the nodes that it was given."""
    made = []

    class Counted(Importer):
        def __init__(self):
            super().__init__()
            self.nodes = []
            made.append(self.nodes)

        def add_node(self, node, meta):
            self.nodes.append(node.name)
            super().add_node(node, meta)

    monkeypatch.setattr(parts, "Importer", Counted)
    return made


def test_a_graph_is_imported_once_for_each_kind_of_inputs(imports):
    f = compiled(lambda x, y: ((x + 1) * y, x.t().sum(0)))
    x, y = whole((5, 7)).to("spyre"), whole((7,)).to("spyre")
    for arguments in ((x, y), (x, y), (x * 1, y + 0)):
        f(*arguments)
    assert len(imports) == 1
    f(x, x[0])  # on one storage
    assert len(imports) == 2


def test_a_row_that_refuses_its_operands_cuts_the_part_once(imports):
    """More elements than the row sorts are sorted by several programs."""

    def function(x):
        y = x * 2
        values, indices = torch.sort(y)
        return values + 1, indices, y.t() - 3

    x = torch.arange(5 * 16400.0).roll(29).reshape(5, 16400)
    rows = x[2:].clone()
    f = compiled(function)
    torch_spyre.reset_fallback_report()
    counts = []
    # The last one lies on a larger storage.
    for argument in (rows.to("spyre"), rows.to("spyre"), x.to("spyre")[2:]):
        for actual, wanted in zip(f(argument), function(x[2:]), strict=True):
            assert_exact(actual.cpu(), wanted)
        counts.append(len(imports))
    assert torch_spyre.fallback_report() == {}
    # All of it up to the sort, then what is after; of the other kind what is before.
    assert counts == [2, 2, 3]


def test_no_node_is_imported_twice_for_inputs_of_a_kind(imports):
    """Two rows refuse: three parts, of which each has inputs of its own."""

    def function(x, y, z, n):
        values, _ = torch.sort(x * 2 + x[0])
        other, _ = torch.sort(values * y.t() - n)
        return other + z, y * 3

    x = whole((2, 16400)) % 8
    y = whole((16400, 2)) % 8
    z = whole((2, 16400)) % 8
    f = compiled(function)
    n = torch.tensor(2.0)
    torch_spyre.reset_fallback_report()
    for _ in range(2):
        actual = f(x.to("spyre"), y.to("spyre"), z.to("spyre"), n)
        for found, wanted in zip(actual, function(x, y, z, n), strict=True):
            assert_exact(found.cpu(), wanted)
    assert torch_spyre.fallback_report() == {}
    names = [name for nodes in imports for name in nodes]
    assert len(set(names)) == len(names)
    arguments = [part.graph.argument_names for part in parts.compiled_parts()[-3:]]
    assert [len(part) for part in arguments] == [1, 3, 3]


# --- dtypes that the device lacks ------------------------------------------------


def positions(x):
    """As detectors of ``transformers`` do: angles in float64, of sizes alone."""
    rates = 1e4 ** -(torch.arange(4, dtype=torch.float64, device=x.device) / 4)
    rows = torch.arange(x.shape[0], dtype=torch.float64, device=x.device)
    angles = torch.outer(rows, rates)
    return x * 2 + torch.cat([angles.sin(), angles.cos()], 1).to(x.dtype)


def rotated(x):
    """As Llama 4 does: rotations as complex numbers."""
    angles = torch.arange(x.shape[0], device=x.device)[:, None] * x.detach()[0, :4]
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex((x * 2).reshape(-1, 4, 2))
    return torch.view_as_real(pairs * turns).flatten(1) + 1


def filtered(x):
    """A Fourier layer."""
    kept = torch.fft.rfft(x * 2)[:, :3]
    return torch.fft.irfft(kept, n=8) + kept.abs().sum()


def ordered(x):
    """An operator of several results, one of which the device can hold."""
    found, places = x.double().sort(1)
    return found.float() + places, places + 1


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", [positions, rotated, filtered, ordered])
def test_dtypes_that_the_device_lacks_inside_of_a_graph(function, dynamic):
    f = compiled(function, dynamic=dynamic)
    for rows in (5, 6):
        x = values((rows, 8), torch.float32).requires_grad_()
        given = x.detach().to("spyre").requires_grad_()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            actual, wanted = f(given), function(x)
        assert any("lacks float64 and complex" in str(w.message) for w in seen)
        if isinstance(wanted, torch.Tensor):
            actual, wanted = [actual], [wanted]
        for a, w in zip(actual, wanted, strict=True):
            assert a.device.type == "spyre" and a.stride() == w.stride()
            torch.testing.assert_close(
                a.detach().cpu(), w.detach(), rtol=1e-6, atol=1e-6
            )
        weight = values(wanted[0].shape, torch.float32, seed=1)
        (actual[0] * weight.to("spyre")).sum().backward()
        (wanted[0] * weight).sum().backward()
        torch.testing.assert_close(given.grad.cpu(), x.grad, rtol=1e-6, atol=1e-6)


def test_a_result_has_a_dtype_of_the_device():
    """It would be on the CPU."""
    x = whole((3,), torch.float32).to("spyre")
    for function in (lambda x: (x.double() + 1, x), lambda x: x * 1j):
        for given in (x, x.clone().requires_grad_()):
            with pytest.raises(
                Exception, match=r"does not support dtype torch\.(fl|com)"
            ):
                compiled(function)(given)


def test_random_numbers_are_none_of_the_cpu():
    x = whole((3,), torch.float32).to("spyre")
    with pytest.raises(Exception, match=r"does not support dtype torch\.float64"):
        compiled(lambda x: x + torch.rand_like(x, dtype=torch.float64).float())(x)


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("value", [torch.bool, torch.uint8, torch.int8, torch.int16])
def test_values_that_always_fit_fill_integers(value):
    """Of other types the CPU says whether the value fits, so that it runs by itself."""
    x, mask = torch.arange(70), torch.arange(70) % 3 == 0
    number = torch.tensor(-5 if value.is_signed else 1).to(value)
    fill = compiled(lambda x, mask, number: x.masked_fill(mask, number))
    for dtype in (torch.int32, torch.int64):
        own = x.to(dtype)
        result = fill(own.to("spyre"), mask.to("spyre"), number.to("spyre"))
        assert_exact(result.cpu(), own.masked_fill(mask, number))
    assert compile_backend.refusals() == {}
