# SPDX-License-Identifier: Apache-2.0
"""The compiler's options under the names that users of torch-spyre set.

A configuration module as Inductor's: ``config.patch`` is a context manager and a
decorator, and a name that does not exist raises AttributeError. Names, variables and
defaults: spec/drop-in.md, "Options of config"; where its newer names have other
defaults, the newer ones hold. Variables are read when the module is imported.

``torch_spyre.compile_backend.compile_options()`` says which take effect. Another that
is changed in Python or by its variable is named once in a warning.
"""

import os
import sys

from torch.utils import _config_module
from torch.utils._config_module import Config, install_config_module

# Work division.
sencores: int = 32
ignore_work_division_hints: bool = False
ignore_wsr_hints: bool = False
ignore_span_overflow_hints: bool = True
core_id_k_fast_emission: bool = True
auto_coarse_tiling: bool = False
enable_reduction_tiling: bool = True
disable_conv2d_spatial_split: bool = True
conv2d_direct_lowering: bool = False

# Layouts.
layout_solver: str = "cpsat"
global_stick_optimizer: bool = True
cpsat_time_limit_seconds: float = 30.0
allow_exhaustive_search: bool = False
native_layout_packer: bool = True
chunk_large_tensors: bool = False

# Memory.
lx_planning: bool = True
co_optimizing_lx_planning: bool = True
allow_all_ops_in_lx_planning: bool = False
lx_boundary_clones: bool = False
dxp_lx_frac_avail: float = 0.2
enable_lx_context_switching: bool = True
lx_planner_relayout: bool = True
lx_solver_relayout_groups_per_edge: int = 4
lx_solver_relayout_presolve_max_copies: int = 0
read_copy_elision: bool = True
frontend_pool_allocation: bool = False
hbm_pool_planning: bool = True
hbm_planning: bool = Config(alias="torch_spyre._inductor.config.hbm_pool_planning")

# Sizes that are symbols, and bundles.
max_buckets: int = 32
min_default_granularity: int = 4
bundle_symbolic_args: bool = True
unroll_loops: bool = True
validate_op_specs: bool = True
ktir_emitter: bool = False
ktir_device_mlir: str = ""

# Caches and logs.
sdsc_cache: bool = True
spyre_kernel_cache: bool = False
frontend_only: bool = False
timing: bool = False
timing_out: str = ""
log_passes: str = ""
cost_model: str = ""
dump_cost_expr_file: str = ""


def _variables() -> "dict[str, tuple[str, ...]]":
    """The variables of each option; the first that is set holds."""
    return {
        "sencores": ("SENCORES",),
        "ignore_work_division_hints": ("SPYRE_INDUCTOR_IGNORE_HINTS",),
        "ignore_wsr_hints": ("SPYRE_INDUCTOR_IGNORE_HINTS",),
        "ignore_span_overflow_hints": ("SPYRE_INDUCTOR_IGNORE_SPAN_OVERFLOW_HINTS",),
        "core_id_k_fast_emission": ("SPYRE_CORE_ID_K_FAST_EMISSION",),
        "auto_coarse_tiling": ("AUTO_COARSE_TILING",),
        "enable_reduction_tiling": ("SPYRE_INDUCTOR_ENABLE_REDUCTION_TILING",),
        "conv2d_direct_lowering": ("SPYRE_CONV2D_DIRECT",),
        "layout_solver": ("LAYOUT_SOLVER",),
        "global_stick_optimizer": ("GLOBAL_STICK_OPTIMIZER",),
        "cpsat_time_limit_seconds": ("CPSAT_TIME_LIMIT_SECONDS",),
        "allow_exhaustive_search": ("ALLOW_EXHAUSTIVE_SEARCH",),
        "native_layout_packer": ("TORCH_SPYRE_NATIVE_PACKER",),
        "chunk_large_tensors": ("CHUNK_LARGE_TENSORS",),
        "lx_planning": ("LX_PLANNING",),
        "co_optimizing_lx_planning": ("CO_OPTIMIZING_LX_PLANNING",),
        "lx_boundary_clones": ("LX_BOUNDARY_CLONES",),
        "dxp_lx_frac_avail": ("DXP_LX_FRAC_AVAIL",),
        "enable_lx_context_switching": ("ENABLE_LX_CONTEXT_SWITCHING",),
        "lx_planner_relayout": ("SPYRE_LX_PLANNER_RELAYOUT",),
        "read_copy_elision": ("SPYRE_READ_COPY_ELISION",),
        "frontend_pool_allocation": ("FRONTEND_POOL_ALLOCATION",),
        # The former variable holds where the newer one is not set.
        "hbm_pool_planning": ("HBM_POOL_PLANNING", "SPYRE_INDUCTOR_MEMORY_PLAN"),
        "max_buckets": ("MAX_BUCKETS",),
        "min_default_granularity": ("MIN_DEFAULT_GRANULARITY",),
        "bundle_symbolic_args": ("BUNDLE_SYMBOLIC_ARGS",),
        "unroll_loops": ("UNROLL_LOOPS",),
        "validate_op_specs": ("SPYRE_VALIDATE_OP_SPECS",),
        "ktir_emitter": ("TORCH_SPYRE_KTIR",),
        "ktir_device_mlir": ("KTIR_DEVICE_MLIR",),
        "sdsc_cache": ("SPYRE_INDUCTOR_SDSC_CACHE",),
        "spyre_kernel_cache": ("SPYRE_KERNEL_CACHE",),
        "frontend_only": ("TORCH_SPYRE_FRONTEND_ONLY",),
        "timing": ("TORCH_SPYRE_TIMING",),
        "timing_out": ("TORCH_SPYRE_TIMING_OUT",),
        "log_passes": ("SPYRE_LOG_PASSES",),
        "cost_model": ("SPYRE_DUMP_COST",),
    }


def _parse(variable: str, text: str, default: "bool | int | float | str") -> object:
    if isinstance(default, bool):
        switches = {"1": True, "true": True, "on": True}
        switches |= {"0": False, "false": False, "off": False}
        if text.lower() in switches:
            return switches[text.lower()]
        raise ValueError(
            f"{variable}: expected 1, true, on, 0, false or off, found {text!r}"
        )
    try:
        return type(default)(text)
    except ValueError:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise ValueError(f"{variable}: expected {kind}, found {text!r}") from None


def _read_environment() -> None:
    for name, variables in _variables().items():
        entry = sys.modules[__name__]._config[name]
        for variable in variables:
            if text := os.environ.get(variable, ""):
                # Config(env_name_default=...) reads neither numbers nor "false".
                entry.env_value_default = _parse(variable, text, entry.default)
                break


def is_set(name: str) -> bool:
    """Whether a variable, or Python now, says what an option is."""
    entry = sys.modules[__name__]._config[name]
    values = (entry.user_override.get(), entry.env_value_default)
    return any(value is not _config_module._UNSET_SENTINEL for value in values)


def is_fusion_off() -> bool:
    """Whether the variable that no option here has asks for kernels of one operator."""
    variable = "SPYRE_INDUCTOR_ENABLE_FUSION"
    text = os.environ.get(variable, "")
    return bool(text) and _parse(variable, text, True) is False


def is_debugging_torch() -> bool:
    """Whether PyTorch's own variable asks its compilers for dumps."""
    return os.environ.get("TORCH_COMPILE_DEBUG") == "1"


install_config_module(sys.modules[__name__])


class _Config(type(sys.modules[__name__])):  # type: ignore[misc]
    """The module, whose patches leave nothing behind."""

    def patch(self, *args: object, **kwargs: object) -> "_Patch":
        """Inductor's ``patch``; what was not set before is not set afterwards."""
        return _Patch(self, super().patch(*args, **kwargs))


#: What an option holds that nobody has set.
_UNSET = _config_module._UNSET_SENTINEL


class _Patch(_config_module.ContextDecorator):
    def __init__(self, module: _Config, inner: _config_module.ContextDecorator) -> None:
        self._module, self._inner = module, inner
        self._unset: list[list[str]] = []

    def __enter__(self) -> None:
        entries = self._module._config
        self._unset.append(
            [
                name
                for name in self._inner.changes
                if name in entries
                and entries[name].alias is None
                and entries[name].user_override.get() is _UNSET
            ]
        )
        try:
            self._inner.__enter__()
        except BaseException:
            self._unset.pop()
            raise

    def __exit__(self, *exception: object) -> None:
        self._inner.__exit__(*exception)
        for name in self._unset.pop():
            self._module._config[name].user_override.set(_UNSET)
            self._module._mark_get_dict_dirty(name)
        self._module._hash_dirty_var.set(True)


# Its own __setattr__ takes options only.
object.__setattr__(sys.modules[__name__], "__class__", _Config)
_read_environment()
