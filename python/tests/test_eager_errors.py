# SPDX-License-Identifier: Apache-2.0
"""Errors of operators that run by themselves."""

import pytest
import torch
from torch.nn.functional import embedding

UPDATES = {
    "add_": lambda x, y: x.add_(y),
    "mul_": lambda x, y: x.mul_(y),
    "masked_fill_": lambda x, y: x.masked_fill_(y > 0, 1),
    "clamp_": lambda x, y: x.clamp_(min=y),
}


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("shape", [(), (1,), (3, 1)], ids=str)
def test_arguments_do_not_grow(name, shape):
    """What is updated in place keeps its sizes; only ``out=`` gets those of a result."""
    x, y = torch.zeros(shape, device="spyre"), torch.ones(3, 65, device="spyre")
    with pytest.raises(RuntimeError, match=r"shape|size"):
        UPDATES[name](x, y)
    assert x.shape == shape
    assert not x.cpu().any()


def test_the_operator_that_was_called_is_named():
    """Also where another one computes the same."""
    table = torch.randn(5, 7).half().to("spyre")
    index = torch.tensor([1, 9]).to("spyre")
    calls = {
        "embedding": lambda: embedding(index, table),
        "index_select": lambda: table.index_select(0, index),
    }
    for name, call in calls.items():
        with pytest.raises(RuntimeError, match=rf"<aten\.{name}\.default>"):
            call().cpu()


def test_lines_between_ends_that_integers_lack():
    for start, end in ((0, 300), (300, 0), (0, float("nan"))):
        with pytest.raises(RuntimeError, match="uint8_t without overflow"):
            torch.linspace(start, end, 5, dtype=torch.uint8, device="spyre")
    for start, end in ((-1, 200), (-2.7, 3.9)):
        line = torch.linspace(start, end, 5, dtype=torch.int32, device="spyre")
        expected = torch.linspace(start, end, 5, dtype=torch.int32)
        assert torch.equal(line.cpu(), expected)
