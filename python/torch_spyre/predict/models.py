# SPDX-License-Identifier: Apache-2.0
"""Where a model comes from: a preset, a file, or a Python function."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import nn
from torch.fx import GraphModule

from torch_spyre.json_files import read_json

#: Configurations of ``transformers`` by name, as their authors publish them.
PRESETS: dict[str, dict[str, Any]] = {
    "granite-3.3-8b": {
        "model_type": "granite",
        "num_hidden_layers": 40,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 12800,
        "vocab_size": 49159,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
        "embedding_multiplier": 12.0,
        "attention_multiplier": 0.0078125,
        "residual_multiplier": 0.22,
        "logits_scaling": 16.0,
    },
}


class ModelError(ValueError):
    """A model cannot be made, or not be called as asked."""


@dataclass
class Model:
    """A model on the meta device and how one step of it is called."""

    name: str
    module: nn.Module
    #: Of ``transformers``: called with token numbers, positions and a cache.
    config: Any = None
    #: ``(batch, query, context)`` to inputs on meta, if the model has its own.
    inputs: Callable[[int, int, int], tuple[torch.Tensor, ...]] | None = None
    #: Whether ``inputs`` are the same for all.
    is_fixed: bool = False

    @property
    def can_decode(self) -> bool:
        """Whether a step may continue a context."""
        return self.config is not None or self.inputs is not None


def read_object(path: str, of: str) -> dict[str, Any]:
    """The object in a JSON file. Raises ModelError, which says what it should hold."""
    try:
        values = read_json(path)
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: {error}") from error
    if not isinstance(values, dict):
        raise ModelError(f"{path}: expected an object of {of}")
    return values


#: What ``transformers`` writes as {"__float__": name}, since JSON cannot say it.
_SPECIAL_FLOATS = ("Infinity", "-Infinity", "NaN")


def _with_floats(value: Any) -> Any:
    """Values of a configuration, infinity and the like in place of their names."""
    if isinstance(value, list):
        return [_with_floats(element) for element in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"__float__"} and value["__float__"] in _SPECIAL_FLOATS:
        return float(value["__float__"])
    return {key: _with_floats(member) for key, member in value.items()}


def load(source: str, dtype: torch.dtype = torch.float16) -> Model:
    """A model by preset, path of a configuration or an exported program, or
    ``module:function``.
    """
    if source in PRESETS:
        return _from_config(source, PRESETS[source], dtype)
    if source.endswith(".json"):
        values = _with_floats(read_object(source, "configuration values"))
        return _from_config(source, values, dtype)
    if source.endswith(".pt2"):
        return _from_exported(source)
    if ":" in source:
        return _from_function(source, dtype)
    raise ModelError(
        f"{source}: no preset ({', '.join(PRESETS)}), .json, .pt2 or .mlir file, or "
        "module:function"
    )


def from_module(module: nn.Module, name: str = "") -> Model:
    """A module as it is; with a cache, if it is a model of ``transformers``."""
    config = getattr(module, "config", None)
    is_causal = config is not None and hasattr(config, "num_hidden_layers")
    return Model(name or type(module).__name__, module, config if is_causal else None)


def _from_config(name: str, values: dict[str, Any], dtype: torch.dtype) -> Model:
    try:
        from transformers import AutoConfig, AutoModelForCausalLM
    except ImportError as error:
        raise ModelError(
            f"{name}: configurations are read by transformers, which cannot be "
            f"imported ({error}): run {sys.executable} -m pip install transformers"
        ) from error
    values = dict(values)
    kind = values.pop("model_type", None)
    if kind is None:
        raise ModelError(f"{name}: the configuration has no model_type")
    try:
        config = AutoConfig.for_model(kind, **values)
        with torch.device("meta"):
            module = AutoModelForCausalLM.from_config(
                config, dtype=dtype, attn_implementation="sdpa"
            )
    # Whatever a configuration's code raises is said of the configuration.
    except Exception as error:
        raise ModelError(f"{name}: {error}") from error
    return Model(name, module, config)


def _from_function(source: str, dtype: torch.dtype) -> Model:
    module_name, _, function_name = source.partition(":")
    # A console script does not search the folder that it is called in.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        raise ModelError(f"{source}: {error}") from error
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise ModelError(f"{source}: is called without arguments, {error}") from error
    with torch.device("meta"):
        made = function()
    inputs = None
    if isinstance(made, tuple):
        made, inputs = made
    if not isinstance(made, nn.Module):
        raise ModelError(f"{source}: returned {type(made).__name__}, no nn.Module")
    if any(p.device.type != "meta" for p in made.parameters()):
        made = made.to("meta")
    model = from_module(made.to(dtype), source)
    model.inputs = inputs
    return model


def _from_exported(path: str) -> Model:
    """What ``torch.export.save`` wrote, with the inputs that it was exported with."""
    if not Path(path).is_file():
        raise ModelError(f"{path}: no such file")
    try:
        program = torch.export.load(path)
    # What the archive's reader raises for a file of another kind varies.
    except Exception as error:
        raise ModelError(f"{path}: no exported program: {error}") from error
    if program.example_inputs is None:
        raise ModelError(f"{path}: was saved without its example inputs")
    args, kwargs = program.example_inputs
    # Guards compare inputs with those of the export, also their device.
    module = program.module(check_guards=False)
    # What the graph makes itself is made where it is predicted.
    for graph in module.modules():
        for node in graph.graph.nodes if isinstance(graph, GraphModule) else ():
            if isinstance(node.kwargs.get("device"), torch.device):
                node.update_kwarg("device", torch.device("spyre"))
        if isinstance(graph, GraphModule):
            graph.recompile()
    leaves, tree = pytree.tree_flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    inputs = tuple(torch.empty_like(leaves[i], device="meta") for i in places)

    class Exported(nn.Module):
        """The program as a function of its tensors."""

        def __init__(self) -> None:
            super().__init__()
            self.program = module

        def train(self, mode: bool = True) -> nn.Module:
            """Exported programs are in the mode that they were exported in."""
            return self

        def forward(self, *tensors: torch.Tensor) -> Any:
            given = list(leaves)
            for i, tensor in zip(places, tensors, strict=True):
                given[i] = tensor
            args, kwargs = pytree.tree_unflatten(given, tree)
            return self.program(*args, **kwargs)

    return Model(path, Exported(), inputs=lambda *_: inputs, is_fixed=True)
