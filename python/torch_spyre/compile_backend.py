# SPDX-License-Identifier: Apache-2.0
"""The ``torch.compile`` backend ``spyre``.

Dynamo and AOTAutograd give an FX graph of ATen operators. It is cut into parts
whose operators have rows in the compiler's ATen table, and operators between them
that run eagerly (on the device's counted CPU fallback).
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule

from torch_spyre import _C
from torch_spyre._inductor import config
from torch_spyre.decompositions.table import decompositions
from torch_spyre.frontend.graph import CompiledFunction
from torch_spyre.frontend.parts import (
    CompiledPart,
    compiled_parts,
    compiling,
    refusals,
)
from torch_spyre.frontend.updated_arguments import view_updated_arguments

_counter = 0
#: Names of torch_spyre._inductor.config, and the options that they set.
_CONFIG_OPTIONS = {"sencores": "cores", "lx_planning": "lx_planning"}
_named: set[str] = set()


def compile_options(given: dict[str, Any]) -> dict[str, Any]:
    """The options of a compilation: the given ones, before those of the config module.

    Warns once per name of a configuration without effect here that is changed.
    """
    # Not skip_default: what was patched and restored counts as set there.
    changed = {
        name: value
        for name, value in config._get_dict().items()
        if value != config._config[name].default
    }
    for name in sorted(changed.keys() - _CONFIG_OPTIONS.keys() - _named):
        _named.add(name)
        warnings.warn(
            f"torch_spyre._inductor.config.{name} has no effect on compiled programs",
            stacklevel=2,
        )
    set_here = {o: changed[n] for n, o in _CONFIG_OPTIONS.items() if n in changed}
    options = {**set_here, **given}
    if "device" in options:
        options["device"] = _device_text(options["device"])
    return options


def _device_text(device: Any) -> Any:
    """The numbers of a dict or a JSON file, as text that is equal for equal numbers.

    What is neither stays what it is, for the compiler to refuse. Raises ValueError for
    a file that cannot be read or is no JSON.
    """
    if isinstance(device, str | os.PathLike):
        try:
            device = json.loads(Path(device).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError(f"option device: {device}: {error}") from None
    return json.dumps(device, sort_keys=True) if isinstance(device, dict) else device


def _compiler(kind: str, options: dict[str, Any]) -> Callable:
    def compile_fx(gm: GraphModule, example_inputs: Sequence[Any]) -> Callable:
        global _counter
        with compiling:
            number = _counter
            _counter += 1
        if kind != "backward":
            view_updated_arguments(gm)
        compiled = CompiledFunction(gm, options, f"{kind}{number}")

        # A plain function keeps the mark through Dynamo's wrapper around
        # backward compilers.
        def call(args: list[Any]) -> list[Any]:
            return compiled(args)

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    return compile_fx


def spyre(gm: GraphModule, example_inputs: Sequence[Any], **options: Any) -> Callable:
    """``torch.compile(f, backend="spyre", options={...})``.

    ``_C.compile_options()`` lists the options, docs/reference/options.md explains
    them; what is left out is as ``torch_spyre._inductor.config`` says. Raises
    ValueError for one that does not exist or is out of range.
    """
    if "options" in options:
        options = options.pop("options") or {}
    options = compile_options(options)
    _C.check_compile_options(options)
    if _C.read_environment("SPYRE_EXECUTE") == "superdsc":
        options = {**options, "through_superdsc": True}
    return aot_autograd(
        fw_compiler=_compiler("forward", options),
        bw_compiler=_compiler("backward", options),
        inference_compiler=_compiler("graph", options),
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )(gm, example_inputs)


__all__ = [
    "CompiledFunction",
    "CompiledPart",
    "compiled_parts",
    "refusals",
    "spyre",
]
