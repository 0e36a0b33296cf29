# SPDX-License-Identifier: Apache-2.0
"""Regions that users mark to be traced once: they are compiled with what is around."""

import pytest
import torch
from torch import nn
from torch_spyre.compile_backend import compiled_parts

WIDTH = 64


@pytest.fixture(autouse=True)
def _fresh_start():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, is_marked, layers=4):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        mark = torch.compiler.nested_compile_region if is_marked else lambda f: f
        self.call = mark(lambda layer, x: layer(x))

    def forward(self, x):
        for layer in self.layers:
            x = self.call(layer, x)
        return x * 2


def model(is_marked):
    torch.manual_seed(0)
    return Model(is_marked).half().to("spyre")


def number(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(3)).half()


def run(function, *inputs, **how):
    """Results of a compiled call, and how many programs it has."""
    torch._dynamo.reset()
    before = len(compiled_parts())
    with torch.no_grad():
        result = torch.compile(function, backend="spyre", **how)(*inputs)
    return result.cpu(), len(compiled_parts()) - before


def test_regions_are_part_of_the_program(caplog):
    x = number(5, WIDTH).to("spyre")
    with caplog.at_level("INFO", "spyre.inductor"):
        expected, _ = run(model(False), x)
        found, _ = run(model(True), x)
    assert torch.equal(found, expected)
    assert caplog.text.count("1 programs, 0 steps outside them") == 2


def scaled(x):
    return inner(inner(x * 3)) + x


def test_sizes_may_vary():
    step = torch.compile(scaled, backend="spyre", dynamic=True)
    with torch.no_grad():
        before = len(compiled_parts())
        for rows in (5, 9, 70):
            x = number(rows, WIDTH)
            expected = torch.relu(torch.relu(x * 3) + 1) + 1 + x
            result = step(x.to("spyre")).cpu()
            torch.testing.assert_close(result, expected, atol=2e-2, rtol=2e-2)
        assert len(compiled_parts()) - before == 1


def test_gradients():
    gradients = []
    for is_marked in (False, True):
        torch._dynamo.reset()
        module = model(is_marked)
        x = number(5, WIDTH).to("spyre").requires_grad_()
        before = len(compiled_parts())
        torch.compile(module, backend="spyre")(x).square().mean().backward()
        assert len(compiled_parts()) - before == 2
        gradients.append([x.grad, *(p.grad for p in module.parameters())])
    for plain, marked in zip(*gradients, strict=True):
        assert torch.equal(plain.cpu(), marked.cpu())


@torch.compiler.nested_compile_region
def inner(x):
    return torch.relu(x) + 1


@torch.compiler.nested_compile_region
def outer(x):
    first, second = x.chunk(2)
    return inner(first) * inner(second), second.t() + 1


def nested(x):
    a, b = outer(x)
    c, _ = outer(x * 2)
    return a + c - b.t()


def parts_of_a_storage(x):
    return outer(x[:4])[0] + outer(x[4:])[0] + outer(x.t()[:4].t()[:4])[0].sum()


@pytest.mark.parametrize("function", [nested, parts_of_a_storage])
def test_regions_in_regions_and_of_parts(function):
    x = number(8, WIDTH)
    found, count = run(function, x.to("spyre"))
    torch.testing.assert_close(found, function(x), atol=2e-2, rtol=2e-2)
    assert count == 1
