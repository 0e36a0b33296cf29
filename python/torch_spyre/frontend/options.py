# SPDX-License-Identifier: Apache-2.0
"""The options of a compilation: those given, and those of the config module.

``torch_spyre._inductor.config`` has the names of torch-spyre. What a name sets here is
in :data:`_SETTERS`; docs/reference/options.md has the table for users.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from typing import Any

from torch_spyre import _C
from torch_spyre._inductor import config
from torch_spyre.errors import Unsupported
from torch_spyre.json_files import read_json

#: Names of solvers of torch-spyre that search for the best placement, as ours does.
_SEARCHING = {"cpsat", "simulated_annealing"}
_HEURISTICS = {"greedy", "firstfit", "bestfit"}

_named: set[str] = set()


def _warn_once(
    name: str, text: str, what: str = "torch_spyre._inductor.config."
) -> None:
    if name not in _named:
        _named.add(name)
        warnings.warn(f"{what}{name} {text}", stacklevel=5)


_KINDS = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
}


def _checked(name: str, value: Any) -> bool | int | float | str:
    """A value of the configuration, with the type of the name's default.

    A switch may be 0 or 1, too. Raises Unsupported for a value of another kind.
    """
    kind = type(config._config[name].default)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    fits = {
        bool: isinstance(value, bool) or (is_whole and value in (0, 1)),
        int: is_whole,
        float: is_whole or isinstance(value, float),
        str: isinstance(value, str),
    }[kind]
    if not fits:
        raise Unsupported(
            f"torch_spyre._inductor.config.{name} {value!r}: expected {_KINDS[kind]}"
        )
    return kind(value)


def _cores(value: Any) -> dict[str, Any]:
    (row,) = (row for row in _C.compile_options() if row["name"] == "cores")
    lowest, highest = row["lowest"], row["highest"]
    if value not in range(lowest, highest + 1):
        raise Unsupported(
            f"SENCORES (torch_spyre._inductor.config.sencores) {value!r}: expected a "
            f"number from {lowest} to {highest}"
        )
    return {"cores": value}


def _solver(value: Any) -> dict[str, Any]:
    if value in _HEURISTICS or value == "optimal":
        return {"lx_solver": value}
    if value in _SEARCHING:
        _warn_once(
            "layout_solver",
            f"{value!r} is the solver 'optimal' here, which needs no other",
        )
        return {"lx_solver": "optimal"}
    known = ", ".join(sorted({*_HEURISTICS, "optimal", *_SEARCHING}))
    raise Unsupported(
        f"LAYOUT_SOLVER (torch_spyre._inductor.config.layout_solver) {value!r}: "
        f"expected one of {known}"
    )


def _lx_fraction(value: Any) -> dict[str, Any]:
    if not 0 <= value <= 1:
        raise Unsupported(
            "DXP_LX_FRAC_AVAIL (torch_spyre._inductor.config.dxp_lx_frac_avail) "
            f"{value!r}: expected a number from 0 to 1"
        )
    return {"device": {"lxReservedFraction": value}}


#: Names of the config module -> the options that a value other than the default sets.
_SETTERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "sencores": _cores,
    "lx_planning": lambda value: {"lx_planning": value},
    "layout_solver": _solver,
    "dxp_lx_frac_avail": _lx_fraction,
    "ignore_work_division_hints": lambda v: {"ignore_work_division_hints": v},
    "ignore_wsr_hints": lambda value: {"ignore_tile_hints": value},
}
#: Names that change what is written into bundles. They are on by default, but bundles
#: here keep loops and addresses, unless a variable or a program says otherwise.
_OF_BUNDLES = {"unroll_loops", "bundle_symbolic_args"}
#: Names that take effect, here or where the text says -> what a user reads of it
#: (docs/reference/options.md).
EFFECTS: dict[str, str] = {
    "sencores": "option `cores`; outside of 1 to 32 it is `errors.Unsupported`",
    "lx_planning": "option `lx_planning`",
    "layout_solver": "option `lx_solver`: `greedy`, `firstfit`, `bestfit` and "
    "`optimal` by their names; `cpsat` and `simulated_annealing` are `optimal`",
    "dxp_lx_frac_avail": "`lxReservedFraction` of option `device`: the share of LX "
    "that is kept for the kernels' own tiles",
    "ignore_work_division_hints": "option `ignore_work_division_hints`",
    "ignore_wsr_hints": "option `ignore_tile_hints`",
    "unroll_loops": "option `unroll_loops`, where the name is set; `generate_bundle()`",
    "bundle_symbolic_args": "option `bundle_symbolic_args`, where the name is set; "
    "`generate_bundle()`",
    "core_id_k_fast_emission": "`generate_bundle()`: cores that share a sum are "
    "neighbours",
    "sdsc_cache": "programs are kept on disk, unless `spyre_kernel_cache` is False too",
    "spyre_kernel_cache": "programs are kept on disk, unless `sdsc_cache` is False too",
    "log_passes": "logs the IR after the passes named, or after `all`, by the logger "
    "`spyre.inductor.passes`",
}


def compile_options(given: dict[str, Any]) -> dict[str, Any]:
    """The options of a compilation: the given ones, before those of the config module.

    Warns once per name of a configuration without effect here that is changed. Raises
    Unsupported for a value of the configuration of a wrong type or out of range,
    ValueError for a file of device numbers that cannot be read.
    """
    # Not skip_default: what was patched and restored counts as set there.
    changed = {
        name: _checked(name, value)
        for name, value in config._get_dict().items()
        if value != config._config[name].default
    }
    for name in sorted(changed.keys() - EFFECTS.keys()):
        _warn_once(name, "has no effect on compiled programs")
    if config.is_fusion_off():
        _warn_once(
            "SPYRE_INDUCTOR_ENABLE_FUSION",
            "has no effect: a graph is one program, whose kernels its plan decides",
            "environment variable ",
        )
    options: dict[str, Any] = {}
    for name in sorted(changed.keys() & _SETTERS.keys()):
        options |= _SETTERS[name](changed[name])
    reserved = options.pop("device", None)
    options |= given
    if _C.read_environment("SPYRE_EXECUTE") == "superdsc":
        options["through_superdsc"] = True
    if options.get("through_superdsc"):
        for name in filter(config.is_set, _OF_BUNDLES):
            options.setdefault(name, getattr(config, name))
    if "device" in options or reserved:
        device = _device_numbers(options.get("device", {}))
        if isinstance(device, dict):
            # Numbers given for this compilation come before the configuration's.
            device = json.dumps({**(reserved or {}), **device}, sort_keys=True)
        options["device"] = device
    return options


def _device_numbers(device: Any) -> Any:
    """The numbers of a dict or a JSON file.

    What is neither stays what it is, for the compiler to refuse. Raises ValueError for
    a file that cannot be read or is no JSON.
    """
    if isinstance(device, str | os.PathLike):
        try:
            return read_json(device)
        except (OSError, ValueError) as error:
            raise ValueError(f"option device: {device}: {error}") from None
    return device
