# SPDX-License-Identifier: Apache-2.0
"""The cells that ``nn.LSTM`` and ``nn.GRU`` run on accelerators, step by step.

Gates are computed in fp32 and rounded once, as PyTorch's own fused cells do. Sizes:
``N`` is the batch, ``H`` the hidden size.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _sum(*terms: Tensor | None) -> Tensor:
    """In fp32, of those that there are."""
    return functools.reduce(torch.add, [t.float() for t in terms if t is not None])


def _sum_of_rows(gradient: Tensor, wanted: bool) -> Tensor | None:
    return gradient.sum(0) if wanted else None


def lstm_cell(
    x: Tensor,
    hidden: Tensor,
    cx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """``aten._thnn_fused_lstm_cell``.

    ``x`` and ``hidden`` are ``[N, 4 H]``, ``cx`` is ``[N, H]``; gives the new hidden
    and cell states and the gates ``[N, 4 H]`` for the gradient.
    """
    i, f, g, o = _sum(x, hidden, input_bias, hidden_bias).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx.float() + i * g
    hy = o * cy.tanh()
    workspace = torch.cat([i, f, g, o], 1)
    return hy.to(cx.dtype), cy.to(cx.dtype), workspace.to(cx.dtype)


def lstm_cell_backward(
    grad_hy: Tensor | None,
    grad_cy: Tensor | None,
    cx: Tensor,
    cy: Tensor,
    workspace: Tensor,
    has_bias: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """``aten._thnn_fused_lstm_cell_backward_impl``: of gates, ``cx`` and the bias."""
    i, f, g, o = workspace.float().chunk(4, 1)
    squashed = cy.float().tanh()
    of_cell = torch.zeros_like(squashed) if grad_cy is None else grad_cy.float()
    of_output = torch.zeros_like(squashed)
    if grad_hy is not None:
        of_cell = of_cell + grad_hy.float() * o * (1 - squashed * squashed)
        of_output = grad_hy.float() * squashed
    gates = torch.cat(
        [
            of_cell * g * i * (1 - i),
            of_cell * cx.float() * f * (1 - f),
            of_cell * i * (1 - g * g),
            of_output * o * (1 - o),
        ],
        1,
    ).to(cx.dtype)
    return gates, (of_cell * f).to(cx.dtype), _sum_of_rows(gates, has_bias)


def gru_cell(
    x: Tensor,
    hidden: Tensor,
    hx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """``aten._thnn_fused_gru_cell``.

    ``x`` and ``hidden`` are ``[N, 3 H]``, ``hx`` is ``[N, H]``; gives the new hidden
    state and ``[N, 5 H]`` for the gradient: both gates, the new state, ``hx``, and
    the hidden part of the new state.
    """
    size = hx.shape[1]
    x, hidden = _sum(x, input_bias), _sum(hidden, hidden_bias)
    reset, update = (x + hidden)[:, : 2 * size].sigmoid().chunk(2, 1)
    of_hidden = hidden[:, 2 * size :]
    new = (x[:, 2 * size :] + reset * of_hidden).tanh()
    hy = new + update * (hx.float() - new)
    workspace = torch.cat([reset, update, new, hx.float(), of_hidden], 1)
    return hy.to(hx.dtype), workspace.to(hx.dtype)


def gru_cell_backward(
    grad_hy: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """``aten._thnn_fused_gru_cell_backward``.

    Gradients of ``x``, ``hidden``, ``hx`` and the two biases.
    """
    reset, update, new, hx, of_hidden = workspace.float().chunk(5, 1)
    gradient = grad_hy.float()
    of_update = gradient * (hx - new) * update * (1 - update)
    of_new = gradient * (1 - update) * (1 - new * new)
    of_reset = of_new * of_hidden * reset * (1 - reset)
    dtype = grad_hy.dtype
    of_x = torch.cat([of_reset, of_update, of_new], 1).to(dtype)
    of_hidden = torch.cat([of_reset, of_update, of_new * reset], 1).to(dtype)
    return (
        of_x,
        of_hidden,
        (gradient * update).to(dtype),
        _sum_of_rows(of_x, has_bias),
        _sum_of_rows(of_hidden, has_bias),
    )


DECOMPOSITIONS: dict[Any, Callable] = {
    aten._thnn_fused_lstm_cell.default: lstm_cell,
    aten._thnn_fused_lstm_cell_backward_impl.default: lstm_cell_backward,
    aten._thnn_fused_gru_cell.default: gru_cell,
    aten._thnn_fused_gru_cell_backward.default: gru_cell_backward,
}
