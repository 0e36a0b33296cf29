# SPDX-License-Identifier: Apache-2.0
"""The options that users of torch-spyre set: spec/drop-in.md, "Options of config"."""

import warnings

import pytest
import torch
import torch_spyre
from inputs import values
from interpreters import run_python
from numerics import compiled
from torch.utils._config_module import _UNSET_SENTINEL
from torch_spyre import _C, compile_backend
from torch_spyre._inductor import config
from torch_spyre.frontend import options

#: Every name of the sheet, its variables and its default; the newer default if two.
SHEET = {
    "lx_planning": ("LX_PLANNING", True),
    "co_optimizing_lx_planning": ("CO_OPTIMIZING_LX_PLANNING", True),
    "hbm_planning": ("SPYRE_INDUCTOR_MEMORY_PLAN", True),
    "chunk_large_tensors": ("CHUNK_LARGE_TENSORS", False),
    "global_stick_optimizer": ("GLOBAL_STICK_OPTIMIZER", True),
    "allow_all_ops_in_lx_planning": (None, False),
    "lx_boundary_clones": ("LX_BOUNDARY_CLONES", False),
    "dxp_lx_frac_avail": ("DXP_LX_FRAC_AVAIL", 0.2),
    "sencores": ("SENCORES", 32),
    "max_buckets": ("MAX_BUCKETS", 32),
    "min_default_granularity": ("MIN_DEFAULT_GRANULARITY", 4),
    "ignore_work_division_hints": ("SPYRE_INDUCTOR_IGNORE_HINTS", False),
    "core_id_k_fast_emission": ("SPYRE_CORE_ID_K_FAST_EMISSION", True),
    "bundle_symbolic_args": ("BUNDLE_SYMBOLIC_ARGS", True),
    "unroll_loops": ("UNROLL_LOOPS", True),
    "layout_solver": ("LAYOUT_SOLVER", "cpsat"),
    "hbm_pool_planning": ("HBM_POOL_PLANNING", True),
    "enable_lx_context_switching": ("ENABLE_LX_CONTEXT_SWITCHING", True),
    "disable_conv2d_spatial_split": (None, True),
    "lx_planner_relayout": ("SPYRE_LX_PLANNER_RELAYOUT", True),
    "ignore_span_overflow_hints": ("SPYRE_INDUCTOR_IGNORE_SPAN_OVERFLOW_HINTS", True),
    "enable_reduction_tiling": ("SPYRE_INDUCTOR_ENABLE_REDUCTION_TILING", True),
    "read_copy_elision": ("SPYRE_READ_COPY_ELISION", True),
    "sdsc_cache": ("SPYRE_INDUCTOR_SDSC_CACHE", True),
    "validate_op_specs": ("SPYRE_VALIDATE_OP_SPECS", True),
    "native_layout_packer": ("TORCH_SPYRE_NATIVE_PACKER", True),
    "frontend_pool_allocation": ("FRONTEND_POOL_ALLOCATION", False),
    "conv2d_direct_lowering": ("SPYRE_CONV2D_DIRECT", False),
    "ktir_emitter": ("TORCH_SPYRE_KTIR", False),
    "ignore_wsr_hints": ("SPYRE_INDUCTOR_IGNORE_HINTS", False),
    "timing": ("TORCH_SPYRE_TIMING", False),
    "frontend_only": ("TORCH_SPYRE_FRONTEND_ONLY", False),
    "allow_exhaustive_search": ("ALLOW_EXHAUSTIVE_SEARCH", False),
    "auto_coarse_tiling": ("AUTO_COARSE_TILING", False),
    "spyre_kernel_cache": ("SPYRE_KERNEL_CACHE", False),
    "ktir_device_mlir": ("KTIR_DEVICE_MLIR", ""),
    "log_passes": ("SPYRE_LOG_PASSES", ""),
    "timing_out": ("TORCH_SPYRE_TIMING_OUT", ""),
    "cost_model": ("SPYRE_DUMP_COST", ""),
    "dump_cost_expr_file": (None, ""),
    "lx_solver_relayout_groups_per_edge": (None, 4),
    "lx_solver_relayout_presolve_max_copies": (None, 0),
    "cpsat_time_limit_seconds": ("CPSAT_TIME_LIMIT_SECONDS", 30),
}


IMPORT = "from torch_spyre._inductor import config; "


def test_defaults_and_variables():
    variables = {variable for variable, _ in SHEET.values() if variable}
    unset = dict.fromkeys(variables, "")
    names = sorted(SHEET)
    show = IMPORT + f"print([getattr(config, n) for n in {names}])"
    assert eval(run_python(show, ends_at_once=True, **unset).stdout) == [
        SHEET[name][1] for name in names
    ]
    other = {bool: lambda v: not v, int: lambda v: v + 1, float: lambda v: v / 2}
    expected, given = [], {}
    for name in names:
        variable, value = SHEET[name]
        if variable:
            value = other.get(type(value), lambda _: "other")(value)
            given[variable] = str(int(value) if isinstance(value, bool) else value)
        expected.append(value)
    assert eval(run_python(show, ends_at_once=True, **given).stdout) == expected
    assert set(config._config) == set(SHEET)


@pytest.mark.parametrize("text", ["x", "1.5"])
def test_a_wrong_variable_is_named(text):
    result = run_python(IMPORT, SENCORES=text)
    assert result.returncode == 1
    assert f"SENCORES: expected a whole number, found '{text}'" in result.stderr


def test_a_former_variable_yields_to_the_newer():
    show = IMPORT + "print(config.hbm_pool_planning, config.hbm_planning)"
    former = {"SPYRE_INDUCTOR_MEMORY_PLAN": "0"}
    assert run_python(show, HBM_POOL_PLANNING="", **former).stdout == "False False\n"
    assert run_python(show, HBM_POOL_PLANNING="1", **former).stdout == "True True\n"


def test_patch_and_unknown_names():
    with config.patch({"sencores": 4, "hbm_planning": False}):
        assert config.sencores == 4 and not config.hbm_pool_planning
    assert config.sencores == 32 and config.hbm_pool_planning

    @config.patch(sencores=2)
    def inner():
        return config.sencores

    assert inner() == 2 and config.sencores == 32
    for use in (
        lambda: config.no_such_option,
        lambda: setattr(config, "no_such_option", 1),
    ):
        with pytest.raises(AttributeError, match="no_such_option does not exist"):
            use()


def test_patches_leave_nothing_behind():
    """What was not set before is not set again, as Inductor's own patch leaves it."""
    assert not config.is_set("unroll_loops")
    for value in (True, False):
        with config.patch(unroll_loops=value, hbm_planning=False):
            assert config.is_set("unroll_loops") and config.unroll_loops is value
            with config.patch("unroll_loops", not value):
                assert config.unroll_loops is not value
            assert config.is_set("unroll_loops") and config.unroll_loops is value
        assert not config.is_set("unroll_loops") and config.unroll_loops
        assert config.hbm_planning
    before = config.get_hash()
    config.unroll_loops = False
    try:
        assert config.get_hash() != before
        with config.patch({"unroll_loops": True}):
            pass
        assert config.is_set("unroll_loops") and not config.unroll_loops
    finally:
        config._config["unroll_loops"].user_override.set(_UNSET_SENTINEL)
        config._mark_get_dict_dirty("unroll_loops")
    with pytest.raises(AttributeError), config.patch(no_such_option=1):
        pass


def artefact(monkeypatch, **changes):
    """The program, as KTIR text, that a changed configuration gives, and its key."""
    torch_spyre.clear_cache()
    made = []
    original = _C.compile_graph

    def kept(*args):
        made.append(original(*args))
        return made[-1]

    x = values((130, 129), torch.float16).to("spyre")
    w = values((129, 65), torch.float16, seed=1).to("spyre")
    with monkeypatch.context() as patch, config.patch(changes):
        patch.setattr(_C, "compile_graph", kept)
        compiled(lambda x, w: (x @ w).softmax(-1))(x, w)
    (graph,) = made
    return graph.print_ktir(), graph.cache_key


@pytest.mark.parametrize("change", [{"sencores": 3}, {"lx_planning": False}], ids=str)
def test_options_change_the_program_and_its_key(change, tmp_path, monkeypatch):
    monkeypatch.setenv("SPYRE_CACHE_DIR", str(tmp_path))
    plain, changed = artefact(monkeypatch), artefact(monkeypatch, **change)
    assert plain[0] != changed[0] and plain[1] != changed[1]


def test_given_options_come_before_the_configuration():
    with config.patch(sencores=3, lx_planning=False):
        options = compile_backend.compile_options({"cores": 5})
    assert options == {"cores": 5, "lx_planning": False}
    assert compile_backend.compile_options({}) == {}


def test_options_without_effect_say_so_once(monkeypatch):
    monkeypatch.setattr(options, "_named", set())
    text = r"config\.hbm_pool_planning has no effect"
    with config.patch(hbm_pool_planning=False):
        with pytest.warns(UserWarning, match=text):
            compile_backend.compile_options({})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compile_backend.compile_options({})
