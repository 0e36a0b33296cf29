# SPDX-License-Identifier: Apache-2.0
"""``nn.LSTM``, ``nn.GRU`` and ``nn.RNN`` whose steps share what they can, and cells.

Where it does not know the device, PyTorch multiplies the input of each step by itself.
Autograd then adds the gradients of weights and biases up one by one, and each of these
sums rounds to DL16: after forty steps they are two to four times as far off as on the
CPU, which takes the products of all steps at once. So do these functions. Biases go to
the steps as rows of one tensor, whose gradients are summed at once, too.

Sizes: ``T`` steps, ``N`` sequences, ``I`` features, ``H`` the hidden size. A packed
sequence has as many sequences at each step as ``batch_sizes`` says, longest first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import functional

from torch_spyre.decompositions import recurrent

aten = torch.ops.aten
_library: torch.library.Library | None = None

#: Of a layer and direction: the hidden state ``[N, H]`` and, of an LSTM, the cell's.
State = tuple[Tensor, ...]


class _Weights(NamedTuple):
    """Of one layer and direction."""

    of_input: Tensor
    of_hidden: Tensor
    input_bias: Tensor | None = None
    hidden_bias: Tensor | None = None
    projection: Tensor | None = None


#: (products of the input, state, weights with the biases of this step) -> state.
Step = Callable[[Tensor, State, _Weights], State]


def _is_dual(*tensors: Tensor | None) -> bool:
    """Whether derivatives are taken forward, for which PyTorch's fused cells have no
    rule.
    """
    transforms = torch._C._functorch.get_interpreter_stack() or ()
    if any(t.key() == torch._C._functorch.TransformType.Jvp for t in transforms):
        return True
    if forward_ad._current_level < 0:
        return False
    return any(
        t is not None and forward_ad.unpack_dual(t).tangent is not None for t in tensors
    )


def _lstm(x: Tensor, state: State, weights: _Weights) -> State:
    hidden, cell = state
    is_dual = _is_dual(x, *state, weights.of_hidden, *weights[2:4])
    fused = recurrent.lstm_cell if is_dual else aten._thnn_fused_lstm_cell
    hidden, cell, _ = fused(
        x,
        hidden @ weights.of_hidden.t(),
        cell,
        weights.input_bias,
        weights.hidden_bias,
    )
    if weights.projection is not None:
        hidden = hidden @ weights.projection.t()
    return hidden, cell


def _gru(x: Tensor, state: State, weights: _Weights) -> State:
    (hidden,) = state
    product = hidden @ weights.of_hidden.t()
    is_dual = _is_dual(x, product, hidden, *weights[2:4])
    fused = recurrent.gru_cell if is_dual else aten._thnn_fused_gru_cell
    return fused(x, product, hidden, weights.input_bias, weights.hidden_bias)[:1]


def _simple(function: Callable[[Tensor], Tensor]) -> Step:
    def step(x: Tensor, state: State, weights: _Weights) -> State:
        (hidden,) = state
        sums = functional.linear(hidden, weights.of_hidden, weights.hidden_bias)
        return (function(sums + x),)

    return step


def _rows(bias: Tensor | None, steps: int) -> Sequence[Tensor | None]:
    return [None] * steps if bias is None else bias.expand(steps, -1).unbind()


def _layer(
    step: Step,
    x: Tensor,
    batch_sizes: Sequence[int],
    initial: State,
    weights: _Weights,
    is_reversed: bool,
) -> tuple[Tensor, State]:
    """One direction: what it gives at each step, as rows like those of x, and at last.

    ``x`` is ``[sum of batch_sizes, I]``.
    """
    steps = len(batch_sizes)
    if step in (_lstm, _gru):
        # Their fused cells add both biases.
        products = (x @ weights.of_input.t()).split(batch_sizes)
        input_biases = _rows(weights.input_bias, steps)
    else:
        sums = functional.linear(x, weights.of_input, weights.input_bias)
        products = sums.split(batch_sizes)
        input_biases = [None] * steps
    hidden_biases = _rows(weights.hidden_bias, steps)
    order = range(steps)[::-1] if is_reversed else range(steps)
    count = batch_sizes[order[0]]
    state = tuple(s[:count] for s in initial)
    results: list[Tensor] = [x] * steps
    ended: list[State] = []
    for i in order:
        size = batch_sizes[i]
        if size < count:
            ended.append(tuple(s[size:] for s in state))
            state = tuple(s[:size] for s in state)
        elif size > count:
            begun = (s[count:size] for s in initial)
            state = tuple(map(torch.cat, zip(state, begun, strict=True)))
        count = size
        of_step = weights._replace(
            input_bias=input_biases[i], hidden_bias=hidden_biases[i]
        )
        state = step(products[i], state, of_step)
        results[i] = state[0]
    if ended:
        state = tuple(map(torch.cat, zip(state, *ended[::-1], strict=True)))
    return torch.cat(results), state


def _take_weights(
    params: Sequence[Tensor], has_biases: bool, has_projections: bool
) -> list[_Weights]:
    count = 2 + 2 * has_biases + has_projections
    if len(params) % count:
        raise RuntimeError(
            f"expected {count} parameters for each layer and direction; found "
            f"{len(params)} in all"
        )
    taken = []
    for i in range(0, len(params), count):
        of_layer = list(params[i : i + count])
        projection = of_layer.pop() if has_projections else None
        taken.append(_Weights(*of_layer)._replace(projection=projection))
    return taken


def _check(x: Tensor, initial: State, params: Sequence[Tensor]) -> None:
    for what, tensors in (("hidden", initial), ("parameter", params)):
        for tensor in tensors:
            if tensor.device != x.device:
                raise RuntimeError(
                    f"Input and {what} tensors are not at the same device, found input "
                    f"tensor at {x.device} and {what} tensor at {tensor.device}"
                )


def _layers(
    step: Step,
    x: Tensor,
    batch_sizes: Sequence[int],
    initial: State,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, ...]:
    """All layers: rows as of ``_layer``, states ``[layers and directions, N, H]``."""
    _check(x, initial, params)
    has_projections = len(initial) == 2 and initial[0].shape[2] != initial[1].shape[2]
    weights = _take_weights(params, has_biases, has_projections)
    directions = 2 if bidirectional else 1
    if len(weights) != num_layers * directions:
        raise RuntimeError(
            f"expected parameters of {num_layers * directions} layers and directions; "
            f"found those of {len(weights)}"
        )
    states: list[State] = []
    for i in range(num_layers):
        if i and train and dropout:
            x = torch.dropout(x, dropout, train)
        results = []
        for direction in range(directions):
            k = i * directions + direction
            result, state = _layer(
                step,
                x,
                batch_sizes,
                tuple(s[k] for s in initial),
                weights[k],
                direction == 1,
            )
            results.append(result)
            states.append(state)
        x = torch.cat(results, -1) if bidirectional else results[0]
    return x, *(torch.stack(s) for s in zip(*states, strict=True))


def _of_sequences(step: Step) -> Callable[..., tuple[Tensor, ...]]:
    """``aten.lstm.input`` and the like: of ``[T, N, I]``, or ``[N, T, I]``."""

    def run(x: Tensor, hx: Any, params: Sequence[Tensor], *rest: Any) -> Any:
        *rest, batch_first = rest
        x = x.transpose(0, 1) if batch_first else x
        steps, count = x.shape[:2]
        if not steps:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        initial = (hx,) if isinstance(hx, Tensor) else tuple(hx)
        rows, *states = _layers(
            step, x.flatten(0, 1), [count] * steps, initial, params, *rest
        )
        result = rows.unflatten(0, (steps, count))
        return result.transpose(0, 1) if batch_first else result, *states

    return run


def _of_packed(step: Step) -> Callable[..., tuple[Tensor, ...]]:
    """``aten.lstm.data`` and the like: of a packed sequence's rows."""

    def run(data: Tensor, batch_sizes: Tensor, hx: Any, *rest: Any) -> Any:
        initial = (hx,) if isinstance(hx, Tensor) else tuple(hx)
        return _layers(step, data, batch_sizes.tolist(), initial, *rest)

    return run


def _of_cell(name: str, step: Step) -> Callable[..., Any]:
    """``aten.lstm_cell`` and the like: PyTorch's, but for derivatives taken forward."""
    op = getattr(aten, name).default

    def run(x: Tensor, hx: Any, *params: Tensor | None) -> Any:
        initial = (hx,) if isinstance(hx, Tensor) else tuple(hx)
        if not _is_dual(x, *initial, *params):
            return op.decompose(x, hx, *params)
        for state in initial:
            if state.shape[0] != x.shape[0]:
                raise RuntimeError(
                    f"Input batch size {x.shape[0]} doesn't match hidden batch size "
                    f"{state.shape[0]}"
                )
        weights = _Weights(*params)
        state = step(x @ weights.of_input.t(), initial, weights)
        return state[0] if isinstance(hx, Tensor) else state

    return run


_STEPS: dict[str, Step] = {
    "lstm": _lstm,
    "gru": _gru,
    "rnn_tanh": _simple(torch.tanh),
    "rnn_relu": _simple(torch.relu),
}
_KERNELS: dict[str, Callable] = {
    **{f"{name}.input": _of_sequences(step) for name, step in _STEPS.items()},
    **{f"{name}.data": _of_packed(step) for name, step in _STEPS.items()},
    # Those of nn.RNNCell have no fused cell.
    "lstm_cell": _of_cell("lstm_cell", _lstm),
    "gru_cell": _of_cell("gru_cell", _gru),
}
#: Gradients go through what the kernels call.
_KEY = "AutogradPrivateUse1"
#: By what names torch.library has them.
REGISTERED = frozenset(f"aten/{name}/{_KEY}" for name in _KERNELS)


def register() -> None:
    """Defines the kernels. Idempotent."""
    global _library
    if _library is not None:
        return
    _library = torch.library.Library("aten", "IMPL")
    for name, kernel in _KERNELS.items():
        _library.impl(name, kernel, _KEY)
