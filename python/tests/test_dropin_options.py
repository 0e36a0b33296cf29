# SPDX-License-Identifier: Apache-2.0
"""Options of ``torch_spyre._inductor.config`` that change programs: spec/drop-in.md."""

import re
import warnings

import pytest
import torch
import torch_spyre
from interpreters import run_python
from numerics import assert_exact
from torch._inductor.utils import run_and_get_code
from torch_spyre._inductor import config, errors
from torch_spyre.compile_backend import compile_options, compiled_parts
from torch_spyre.frontend import options


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SPYRE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(options, "_named", set())
    yield
    torch._dynamo.reset()
    torch_spyre.clear_cache()


def half(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).half()


def program(function, *args, given=None, **changes):
    """The sequence and kernels of a program, without the device's numbers."""
    torch_spyre.clear_cache()
    torch._dynamo.reset()
    before = len(compiled_parts())
    with config.patch(changes):
        torch.compile(function, backend="spyre", options=given or {})(*args)
    (part,) = compiled_parts()[before:]
    lines = part.graph.print_ktir().splitlines()
    return "\n".join(line for line in lines if "spyre_graph.device" not in line)


def many_buffers(x, w):
    """More intermediate buffers than LX holds."""
    for _ in range(3):
        hidden = x @ w
        x = x + (torch.nn.functional.silu(hidden) * hidden).softmax(-1)
    return x


SQUARE = (1024, 1024)


@pytest.mark.parametrize(
    ("change", "given"),
    [
        ({"layout_solver": "greedy"}, {"lx_solver": "greedy"}),
        ({"layout_solver": "firstfit"}, {"lx_solver": "firstfit"}),
        ({"dxp_lx_frac_avail": 0.95}, {"device": {"lxReservedFraction": 0.95}}),
        ({"sencores": 7}, {"cores": 7}),
        ({"lx_planning": False}, {"lx_planning": False}),
        (None, {"mode": "reference"}),
    ],
    ids=str,
)
def test_names_and_options_change_the_plan(change, given):
    args = half(*SQUARE).to("spyre"), half(*SQUARE, seed=1).to("spyre")
    plain = program(many_buffers, *args)
    assert program(many_buffers, *args, given=given) != plain
    if change is not None:
        changed = program(many_buffers, *args, **change)
        assert changed == program(many_buffers, *args, given=given)


def test_options_given_come_before_those_of_the_configuration():
    with config.patch(dxp_lx_frac_avail=0.5, layout_solver="greedy"):
        given = {"device": {"lxReservedFraction": 0.25, "numCores": 8}}
        made = compile_options({**given, "lx_solver": "bestfit"})
    assert made == {
        "device": '{"lxReservedFraction": 0.25, "numCores": 8}',
        "lx_solver": "bestfit",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"sencores": 0},
        {"sencores": 33},
        {"sencores": -1},
        {"dxp_lx_frac_avail": 1.5},
        {"dxp_lx_frac_avail": -0.1},
        {"layout_solver": "best"},
    ],
    ids=str,
)
def test_values_out_of_range_are_unsupported(change):
    with config.patch(change):
        with pytest.raises(errors.Unsupported, match=r"does not support: .*expected"):
            compile_options({})
        with pytest.raises(Exception, match="Spyre backend does not support"):
            torch.compile(torch.exp)(half(1, 65).to("spyre"))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("sencores", "4", "a whole number"),
        ("sencores", True, "a whole number"),
        ("sencores", 2.0, "a whole number"),
        ("dxp_lx_frac_avail", None, "a number"),
        ("dxp_lx_frac_avail", "0.5", "a number"),
        ("layout_solver", [], "a text"),
        ("lx_planning", None, "True or False"),
        ("ignore_wsr_hints", 7, "True or False"),
        ("unroll_loops", "no", "True or False"),
        # Also those without effect here.
        ("max_buckets", "many", "a whole number"),
    ],
    ids=str,
)
def test_values_of_another_type_are_unsupported(name, value, expected):
    with config.patch({name: value}), pytest.raises(errors.Unsupported) as error:
        compile_options({})
    end = f"torch_spyre._inductor.config.{name} {value!r}: expected {expected}"
    assert str(error.value) == f"Spyre backend does not support: {end}"


def test_switches_may_be_numbers():
    with config.patch({"lx_planning": 0, "ignore_wsr_hints": 1, "sencores": 4}):
        options = compile_options({})
    assert options == {"lx_planning": False, "ignore_tile_hints": True, "cores": 4}
    assert [type(value) for value in options.values()].count(bool) == 2
    with config.patch({"dxp_lx_frac_avail": 1}):
        assert compile_options({})["device"] == '{"lxReservedFraction": 1.0}'


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("SENCORES", "5", "{'cores': 5}"),
        ("SENCORES", "33", "SENCORES (torch_spyre._inductor.config.sencores) 33"),
        ("LX_PLANNING", "0", "{'lx_planning': False}"),
        ("LAYOUT_SOLVER", "bestfit", "{'lx_solver': 'bestfit'}"),
        ("DXP_LX_FRAC_AVAIL", "0.5", "{'device': '{\"lxReservedFraction\": 0.5}'}"),
        (
            "SPYRE_INDUCTOR_IGNORE_HINTS",
            "1",
            "{'ignore_work_division_hints': True, 'ignore_tile_hints': True}",
        ),
    ],
)
def test_variables_set_options(variable, value, expected):
    code = (
        "from torch_spyre.compile_backend import compile_options\n"
        "try: print(compile_options({}))\nexcept RuntimeError as e: print(e)"
    )
    done = run_python(code, ends_at_once=True, **{variable: value})
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


def test_fusion_has_no_switch(monkeypatch):
    monkeypatch.setenv("SPYRE_INDUCTOR_ENABLE_FUSION", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_options({})
    monkeypatch.setenv("SPYRE_INDUCTOR_ENABLE_FUSION", "0")
    with pytest.warns(UserWarning, match="ENABLE_FUSION has no effect: a graph is one"):
        compile_options({})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_options({})


def test_solvers_without_counterpart_say_so_once():
    with config.patch(layout_solver="simulated_annealing"):
        with pytest.warns(UserWarning, match="is the solver 'optimal' here"):
            assert compile_options({}) == {"lx_solver": "optimal"}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compile_options({})


@pytest.mark.parametrize("given", [{"lx_solver": "best"}, {"mode": "fast"}])
def test_wrong_texts_are_errors(given):
    with pytest.raises(Exception, match=f"option {next(iter(given))}: expected "):
        program(torch.exp, half(1, 65).to("spyre"), given=given)


def sequence():
    text = compiled_parts()[-1].graph.print_ktir()
    return text.split("func.func private")[0]


def test_hints_can_be_ignored():
    x = half(256, 65).to("spyre")
    torch_spyre.name_tensor_dims(x, ["M", "N"])

    def tiled(x):
        with torch_spyre.spyre_hint(tiles={"M": 4}):
            return torch.exp(x)

    def divided(x):
        with torch_spyre.spyre_hint(work_div={"M": 4}):
            return torch.exp(x)

    plain = program(torch.exp, x)
    tiles, ignored = program(tiled, x), program(tiled, x, ignore_wsr_hints=True)
    assert tiles != ignored and "scf.for" not in sequence()
    slices = program(divided, x)
    assert "grid = [4]" in slices and "grid = [4]" not in plain
    ignored = program(divided, x, ignore_work_division_hints=True)
    assert "grid = [4]" not in ignored
    # Each ignores its own kind only.
    assert program(divided, x, ignore_wsr_hints=True) == slices
    assert program(tiled, x, ignore_work_division_hints=True) == tiles


@pytest.mark.parametrize("name", ["unroll_loops", "bundle_symbolic_args"])
@pytest.mark.parametrize("how", ["option", "variable", "patch"])
def test_options_change_bundles(name, how, tmp_path, monkeypatch):
    x = half(256, 64).to("spyre")
    torch_spyre.name_tensor_dims(x, ["M", "N"])

    def tiled(x):
        with torch_spyre.spyre_hint(tiles={"M": 4}):
            return -torch.exp(x)

    def bundle(value):
        folder = tmp_path / str(value)
        monkeypatch.setenv("SPYRE_DUMP_DIR", str(folder))
        torch._dynamo.reset()
        given = {"through_superdsc": True}
        if how == "option" and value is not None:
            given[name] = value
        changes = {}
        if how == "patch" and value is not None:
            changes[name] = value
        if how == "variable" and value is not None:
            # As the variable does for a new process.
            entry = config._config[name]
            monkeypatch.setattr(entry, "env_value_default", value)
            config._mark_get_dict_dirty(name)
        with config.patch(changes):
            function = torch.compile(tiled, backend="spyre", options=given)
            assert_exact(function(x).cpu(), (-torch.exp(x)).cpu())
        files = sorted(folder.rglob("bundle.mlir"))
        assert files
        return "".join(file.read_text() for file in files)

    default, on, off = bundle(None), bundle(True), bundle(False)
    assert default == off != on
    if name == "unroll_loops":
        assert "scf.for" in off and "scf.for" not in on


@pytest.mark.parametrize("backend", ["spyre", "inductor"])
def test_the_code_of_programs_can_be_looked_at(backend):
    x, y = half(256, 64).to("spyre"), half(64, 64, seed=1).to("spyre")
    torch_spyre.name_tensor_dims(x, ["M", "K"])

    def tiled(x, y):
        with torch_spyre.spyre_hint(tiles={"M": 4}):
            return torch.exp(x @ y).sum(-1)

    def plain(x, y):
        return torch.exp(x @ y)

    result, codes = run_and_get_code(torch.compile(tiled, backend=backend), x, y)
    assert result.shape == (256,)
    (code,) = codes
    loop = code.partition("LoopSpec(4, [\n")[2].partition("]),")[0]
    found = re.findall(r"OpSpec\('(\w+)', cores=\d+\)", loop)
    assert found == ["matmul", "exp", "sum"]
    assert 'KTIR = """' in code and "func.func @main" in code
    for _ in range(2):  # The second time, the program comes from the cache.
        _, codes = run_and_get_code(torch.compile(plain, backend=backend), x, y)
        (code,) = codes
        assert "LoopSpec(" not in code and "OpSpec('exp'" in code
