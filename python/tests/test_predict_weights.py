# SPDX-License-Identifier: Apache-2.0
"""Weights of a predicted model lie as ``nn.Module.to("spyre")`` stores them."""

import pytest
import torch
from commands import needs_tools
from torch import nn
from torch_spyre import _C
from torch_spyre.device.patches import layout_of_linear_weight
from torch_spyre.predict import models, parts, predict
from torch_spyre.predict.trace import trace

pytestmark = needs_tools


class Product(nn.Module):
    """The product of ``nn.Linear``, whose weight is no such module's."""

    def __init__(self, inside, outside):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outside, inside))

    def forward(self, x):
        return nn.functional.linear(x, self.weight)


def model_of(module, rows, columns):
    model = models.from_module(module.half().to("meta"))
    x = torch.empty(rows, columns, dtype=torch.float16, device="meta")
    model.inputs = lambda *shape: (x,)
    return model


def kernels_of(module, rows, columns):
    phase = predict(model_of(module, rows, columns), phases=["prefill"])["phases"]
    return [k for part in phase["prefill"]["parts"] for k in part["kernels"]]


def restickified(kernels):
    return [k["name"] for k in kernels if "restickify" in k["name"]]


@pytest.mark.parametrize(
    ("rows", "columns", "outside"), [(1, 65, 63), (63, 65, 130), (65, 128, 64)]
)
def test_weights_of_linear_are_read_in_place(rows, columns, outside):
    linear = nn.Linear(columns, outside, bias=False)
    assert not restickified(kernels_of(linear, rows, columns))


def test_other_weights_are_charged():
    # Nothing tells .to("spyre") that this one is for a matmul.
    assert restickified(kernels_of(Product(128, 256), 65, 128))


def test_the_layout_is_the_one_of_a_moved_module():
    module = nn.Sequential(nn.Linear(65, 130), nn.LayerNorm(130)).half()
    traced = trace(model_of(module, 3, 65), 1, 1, 1)
    moved = nn.Sequential(nn.Linear(65, 130), nn.LayerNorm(130)).half().to("spyre")
    inputs = [n for n in traced.gm.graph.nodes if n.op == "placeholder"]
    parameters = list(moved.parameters())
    for node, parameter in zip(inputs, parameters, strict=False):
        value = node.meta["val"]
        assert value.shape == parameter.shape
        is_weight = node in traced.linear_weights
        bind = parts._Bound.of_linear_weight if is_weight else parts._Bound.of
        assert bind(value).home.layout == parameter.device_tensor_layout()
    assert [n in traced.linear_weights for n in inputs] == [True, *[False] * 4]


def test_a_weight_shared_with_an_embedding_keeps_its_rows():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(131, 65)
            self.head = nn.Linear(65, 131, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, ids):
            return self.head(self.embedding(ids))

    # Moved to meta, the two would be apart.
    with torch.device("meta"):
        model = models.from_module(Tied().half())
    assert not trace(model, 1, 3, 3).linear_weights
    moved = Tied().half().to("spyre")
    assert moved.head.weight is moved.embedding.weight
    rows = _C.SpyreTensorLayout([131, 65], torch.float16)
    assert moved.head.weight.device_tensor_layout() == rows
    # A weight that two products share is one for both.
    first, second = nn.Linear(65, 65), nn.Linear(65, 65)
    second.weight = first.weight
    moved = nn.Sequential(first, second).half().to("spyre")
    layout = layout_of_linear_weight([65, 65], torch.float16)
    assert moved[1].weight.device_tensor_layout() == layout
