# SPDX-License-Identifier: Apache-2.0
"""The ``torch.compile`` backend ``spyre``.

Dynamo and AOTAutograd give an FX graph of ATen operators. It is cut into parts
whose operators have rows in the compiler's ATen table, and operators between them
that run eagerly (on the device's counted CPU fallback).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import SerializableAOTDispatchCompiler
from torch.fx import GraphModule

from torch_spyre import _C
from torch_spyre.decompositions.table import decompositions
from torch_spyre.frontend.graph import CompiledFunction
from torch_spyre.frontend.host_dtypes import check_results
from torch_spyre.frontend.leftovers import drop_from_graph, drop_traced_module
from torch_spyre.frontend.narrowed import narrow_numbers
from torch_spyre.frontend.options import compile_options
from torch_spyre.frontend.parts import CompiledPart, compiled_parts, is_for_superdsc
from torch_spyre.frontend.redrawn import add_fake_values
from torch_spyre.frontend.refusals import refusals
from torch_spyre.frontend.regions import inline_regions
from torch_spyre.frontend.traced import TracedGraph, kept_by_pytorch
from torch_spyre.frontend.updated_arguments import view_updated_arguments

_MODES_OF_INDUCTOR = frozenset(
    ["lite", "max-autotune", "max-autotune-no-cudagraphs", "reduce-overhead"]
)


class _Decompositions(Mapping[Any, Callable]):
    """The table of decompositions, made when it is read.

    AOTAutograd does not read it for a graph that it has traced before.
    """

    def __init__(self, for_superdsc: bool) -> None:
        self._for_superdsc = for_superdsc

    @functools.cached_property
    def _table(self) -> dict[Any, Callable]:
        return decompositions(self._for_superdsc)

    def __getitem__(self, op: Any) -> Callable:
        return self._table[op]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def _compiler(kind: str, options: dict[str, Any], is_kept: bool) -> Callable:
    def compile_fx(gm: GraphModule, example_inputs: Sequence[Any]) -> TracedGraph:
        inline_regions(gm)
        add_fake_values(gm)
        narrow_numbers(gm, kind)
        check_results(gm, kind)
        if kind != "backward":
            view_updated_arguments(gm)
        drop_from_graph(gm)
        return TracedGraph(gm, options, kind)

    if is_kept:
        return SerializableAOTDispatchCompiler(TracedGraph, compile_fx)
    return compile_fx


def spyre(gm: GraphModule, example_inputs: Sequence[Any], **options: Any) -> Callable:
    """``torch.compile(f, backend="spyre", options={...})``.

    ``_C.compile_options()`` lists the options, docs/reference/options.md explains
    them; what is left out is as ``torch_spyre._inductor.config`` says. Raises
    ValueError for one that does not exist or is out of range. The modes of
    ``torch.compile(f, mode=...)`` ask for what Inductor does on GPUs: they change
    nothing.
    """
    if "options" in options:
        options = options.pop("options") or {}
    elif options.get("mode") in _MODES_OF_INDUCTOR:
        del options["mode"]
    options = compile_options(options)
    _C.check_compile_options(options)
    with kept_by_pytorch(gm, options) as is_kept:
        function = aot_autograd(
            fw_compiler=_compiler("forward", options, is_kept),
            bw_compiler=_compiler("backward", options, is_kept),
            inference_compiler=_compiler("graph", options, is_kept),
            decompositions=_Decompositions(is_for_superdsc(options)),
            keep_inference_input_mutations=True,
        )(gm, example_inputs)
    return drop_traced_module(function)


__all__ = [
    "CompiledFunction",
    "CompiledPart",
    "compile_options",
    "compiled_parts",
    "refusals",
    "spyre",
]
