# SPDX-License-Identifier: Apache-2.0
"""Predictions of models whose code branches, loops, asks for values, or raises."""

import pytest
import torch
from commands import needs_tools
from torch import nn
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.while_loop import while_loop
from torch.nn.attention.flex_attention import flex_attention
from torch_spyre.predict import cli, models, predict
from torch_spyre.predict.models import ModelError

pytestmark = needs_tools


def branch(x):
    return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))


def loop(x):
    start = torch.zeros((), dtype=torch.int64, device=x.device)
    return while_loop(lambda i, _: i < 9, lambda i, v: (i + 1, v.tanh()), (start, x))


def rows(x):
    return torch_map(torch.tanh, x.exp())


def attention(x):
    return flex_attention(x[None, None], x[None, None], x[None, None])


def of_values(x):
    return x.relu()[: int((x > 0).sum())]


def of_places(x):
    return x.relu().nonzero()


def complex_inside(x):
    return torch.fft.rfft(x.float()).abs() + 1


def complex_result(x):
    return torch.fft.rfft(x.float() + 1)


def float64_result(x):
    return x.exp().double()


def refusal(x):
    raise KeyError("my own")


def model_of(function):
    """A module that calls a function with one tensor, whatever the phase."""
    module = nn.Module()
    module.forward = function
    model = models.from_module(module, function.__name__)
    x = torch.empty((70, 64), dtype=torch.float16, device="meta")
    model.inputs = lambda *_: (x,)
    return model


def prefill_of(function):
    return predict(model_of(function), phases=["prefill"])["phases"]["prefill"]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (branch, "cond"),
        (loop, "while_loop"),
        (rows, "map_impl"),
        (attention, "flex_attention"),
    ],
)
def test_higher_order_operators_are_named(function, name):
    """Nothing predicts what they call: a prediction says that it leaves them out."""
    whole = lambda x: function(x.exp())  # noqa: E731
    assert prefill_of(whole)["on_host"][name] == 1


def test_values_that_the_device_lacks_stay_on_the_host():
    on_host = prefill_of(complex_inside)["on_host"]
    assert on_host == {"aten._fft_r2c.default": 1, "aten.abs.default": 1}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (of_values, "aten._local_scalar_dense.default needs the values of a tensor"),
        (of_places, "aten.nonzero.default needs the values of a tensor"),
        (complex_result, "Spyre backend does not support dtype torch.complex64"),
        (float64_result, "Spyre backend does not support dtype torch.float64"),
        (refusal, "cannot be traced: KeyError: 'my own'"),
    ],
)
def test_errors_are_said_of_the_model(function, message, monkeypatch, capsys):
    """The command prints one line, without a traceback, and names the model's line."""
    with pytest.raises(ModelError, match=message):
        prefill_of(function)
    monkeypatch.setattr(models, "load", lambda *_: model_of(function))
    assert cli.main(["--model=own:model", "--phase=prefill", "--quiet"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"spyre-predict: error: {function.__name__}: ")
    assert message in error
    if "cannot be traced" in error:
        assert f"{__file__}:{function.__code__.co_firstlineno + 1}" in error


def test_what_a_model_compiles_is_traced():
    compiled = torch.compile(torch.tanh, backend="spyre")
    inside = prefill_of(lambda x: compiled(x.exp()))
    assert inside == prefill_of(lambda x: torch.tanh(x.exp()))
