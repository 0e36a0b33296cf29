# SPDX-License-Identifier: Apache-2.0
"""One step of a model as an FX graph of fake tensors, its nodes labelled by layer."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from torch_spyre import _C
from torch_spyre.decompositions.table import decompositions
from torch_spyre.device.patches import linear_weights
from torch_spyre.frontend.host_dtypes import check_results
from torch_spyre.frontend.importer import is_view
from torch_spyre.predict.cards import shard, summing
from torch_spyre.predict.models import Model, ModelError

#: Where PyTorch and this package are.
_LIBRARIES = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))


@dataclass
class TracedStep:
    """A graph whose nodes have fake values in ``meta["val"]``."""

    gm: GraphModule
    #: Path of the layer that a node was traced in; other nodes are in none.
    layer_of: dict[Node, str]
    #: Inputs that are weights of ``nn.Linear``.
    linear_weights: set[Node] = field(default_factory=set)


class _LayerLabels:
    """Labels nodes with the outermost element of a list of modules they come from."""

    def __init__(self, module: nn.Module) -> None:
        self.names: dict[str, str] = {}
        self._started = 0
        self._handles = []
        for path in _layers(module):
            layer = module.get_submodule(path)
            self._handles.append(layer.register_forward_pre_hook(self._start))
            self._handles.append(layer.register_forward_hook(self._end(path)))

    @staticmethod
    def _nodes() -> list[Node]:
        mode = get_proxy_mode()
        assert mode is not None
        return list(mode.tracer.graph.nodes)

    def _start(self, *_: Any) -> None:
        self._started = len(self._nodes())

    def _end(self, path: str) -> Callable[..., None]:
        def end(*_: Any) -> None:
            for node in self._nodes()[self._started :]:
                self.names[node.name] = path

        return end

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


def _without_updates(gm: GraphModule) -> None:
    """In-place operators on values that a decomposition made, as functional ones.

    Some of PyTorch's decompositions have them, and these are traced below the
    functionalisation of the model. Updates of inputs stay, which `copy_` makes, and of
    views.
    """
    nodes = list(gm.graph.nodes)
    place = {node: i for i, node in enumerate(nodes)}
    for node in nodes:
        functional = _functional_overload(node)
        value = node.args[0] if node.args else None
        if functional is None or not isinstance(value, Node):
            continue
        if value.op != "call_function" or any(
            is_view(n.target) for n in [value, *value.users]
        ):
            continue
        node.target = functional
        later = [user for user in value.users if place[user] > place[node]]
        for user in later:
            user.replace_input_with(value, node)
    gm.recompile()


def _functional_overload(node: Node) -> Any:
    """What computes the same as an in-place operator, if there is one."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return None
    space, _, name = node.target._schema.name.partition("::")
    if not node.target._schema.is_mutable or not name.endswith("_"):
        return None
    if name == "copy_":
        return None
    packet = getattr(getattr(torch.ops, space), name[:-1], None)
    return getattr(packet, node.target._overloadname, None)


def _layers(module: nn.Module) -> list[str]:
    """The paths of the elements of lists that are in no other list."""
    found: list[str] = []
    lists: list[str] = []
    for path, child in module.named_modules():
        if any(path.startswith(f"{outer}.") for outer in lists):
            continue
        if isinstance(child, nn.ModuleList):
            lists.append(path)
            found += [f"{path}.{name}" if path else name for name in child._modules]
    return found


def trace(
    model: Model, batch: int, query: int, context: int, num_cards: int = 1
) -> TracedStep:
    """The step that takes ``query`` tokens per sequence and ends at ``context``.

    Of several cards that share the model, it is the step of each.
    """
    own = shard(model, num_cards)
    # Loops of `while_loop` ask for an environment of sizes; all of ours are numbers.
    mode = FakeTensorMode(
        allow_non_fake_inputs=True,
        shape_env=ShapeEnv(
            allow_scalar_outputs=False, allow_dynamic_output_shape_ops=False
        ),
        static_shapes=True,
    )
    named = [*model.module.named_parameters(), *model.module.named_buffers()]
    with mode:
        # Stand for the module's, each once: tied ones stay tied.
        state = {
            name: torch.empty_like(value, device="spyre")
            if name not in own.sizes
            else torch.empty(own.sizes[name], dtype=value.dtype, device="spyre")
            for name, value in named
        }
        inputs, call = _call(model, batch, query, context, num_cards)

    def step(state: dict[str, torch.Tensor], inputs: list[torch.Tensor]) -> Any:
        from torch.nn.utils.stateless import _reparametrize_module

        with _reparametrize_module(model.module, state, tie_weights=True):
            return call(*inputs)

    labels = _LayerLabels(model.module)
    training = [m for m in model.module.modules() if m.training]
    model.module.eval()
    # What a model compiles of itself is traced as what it wraps.
    nested = torch._dynamo.config.patch(error_on_nested_fx_trace=False)
    try:
        with mode, nested, torch.no_grad(), summing(model.module, own.summed):
            gm = make_fx(
                torch.func.functionalize(step, remove="mutations"),
                decomposition_table=decompositions(),
                _allow_non_fake_inputs=True,
            )(state, inputs)
    # Whatever a model's code raises is said of the model.
    except Exception as error:
        raise ModelError(_why_not_traced(model, num_cards, error)) from error
    finally:
        labels.remove()
        for module in training:
            module.training = True
    _without_updates(gm)
    try:
        check_results(gm, "inference")
    except _C.UnsupportedDtypeError as error:
        raise ModelError(f"{model.name}: a result of it: {error}") from error
    # Constants of the model's code stay what they are; their values have no part.
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            node.meta["val"] = getattr(gm, node.target)
    layer_of = {
        n: labels.names[n.name] for n in gm.graph.nodes if n.name in labels.names
    }
    return TracedStep(gm, layer_of, _find_linear_weights(gm, model.module, named))


def _why_not_traced(model: Model, num_cards: int, error: Exception) -> str:
    """What the user is told where the code of a model raises while it is traced."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, (DataDependentOutputException, DynamicOutputShapeException)):
        text = f"{error.func} needs the values of a tensor, which no prediction has"
    elif isinstance(error, ModelError):
        text = str(error)
    # Of the lines that were running, the last one that is not PyTorch's or ours.
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith(_LIBRARIES)]
    at = f" (in {own[-1].filename}:{own[-1].lineno})" if own else ""
    if num_cards == 1:
        return f"{model.name}: cannot be traced: {text}{at}"
    return (
        f"{model.name}: what one of {num_cards} cards computes of it cannot be "
        f"traced: {text}{at}"
    )


def _find_linear_weights(
    gm: GraphModule, module: nn.Module, named: list[tuple[str, torch.Tensor]]
) -> set[Node]:
    """The inputs for weights of ``nn.Linear``; those of the state come first.

    A weight that is stored transposed has its sticks along the rows as it is.
    """
    placeholders = (node for node in gm.graph.nodes if node.op == "placeholder")
    weights = linear_weights(module)
    # There may be more inputs than state.
    pairs = zip(placeholders, named, strict=False)
    return {
        node
        for node, (_, value) in pairs
        if id(value) in weights and value.is_contiguous()
    }


def _call(
    model: Model, batch: int, query: int, context: int, num_cards: int
) -> tuple[list[torch.Tensor], Callable[..., Any]]:
    """Inputs of a step and the function of them."""
    if model.inputs is not None:
        inputs = [
            torch.empty_like(t, device="spyre")
            for t in model.inputs(batch, query, context)
        ]
        return inputs, model.module
    ids = torch.empty(batch, query, dtype=torch.int64, device="spyre")
    if model.config is None:
        if query != context:
            raise ModelError(
                f"{model.name}: a step that continues a context needs a model of "
                "transformers or a function of its inputs"
            )
        return [ids], model.module
    return _call_with_cache(model, ids, context, num_cards)


def _call_with_cache(
    model: Model, ids: torch.Tensor, context: int, num_cards: int
) -> tuple[list[torch.Tensor], Callable[..., Any]]:
    from transformers import StaticCache

    config = model.config
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    heads //= num_cards
    size = getattr(config, "head_dim", None)
    size = size or config.hidden_size // config.num_attention_heads
    dtype = next(model.module.parameters()).dtype
    batch = ids.shape[0]

    def new_cache() -> Any:
        return StaticCache(config=config, max_cache_len=context)

    cache = new_cache()
    cache.early_initialization(batch, heads, size, dtype, torch.device("spyre"))
    names = ("keys", "values", "cumulative_length")
    # What of a layer's cache is a tensor is an input, and updated in place.
    fields = [
        (i, name)
        for i, layer in enumerate(cache.layers)
        for name in names
        if isinstance(getattr(layer, name, None), torch.Tensor)
    ]
    tensors = [
        torch.empty_like(getattr(cache.layers[i], name), device="spyre")
        for i, name in fields
    ]
    positions = torch.empty(ids.shape, dtype=torch.int64, device="spyre")

    def call(ids: torch.Tensor, positions: torch.Tensor, *tensors: Any) -> Any:
        cache = new_cache()
        for layer in cache.layers:
            layer.is_initialized = True
            layer.dtype, layer.device = dtype, ids.device
            layer.max_batch_size, layer.num_heads = batch, heads
            layer.k_head_dim = layer.v_head_dim = layer.head_dim = size
        for (i, name), tensor in zip(fields, tensors, strict=True):
            setattr(cache.layers[i], name, tensor)
        logits = model.module(
            input_ids=ids,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits
        # Greedy sampling: the next token of each sequence.
        return torch.argmax(logits[:, -1], -1)

    return [ids, positions, *tensors], call
