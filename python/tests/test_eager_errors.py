# SPDX-License-Identifier: Apache-2.0
"""Errors of operators that run by themselves."""

import pytest
import torch
from numerics import compiled
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


@pytest.mark.parametrize("is_compiled", [False, True])
def test_lines_between_ends_that_integers_lack(is_compiled):
    def line(start, end, steps, dtype, device):
        return torch.linspace(start, end, steps, dtype=dtype, device=device)

    run = compiled(line) if is_compiled else line
    for start, end in ((0, 300), (300, 0), (0, float("nan")), (-1.5, 2)):
        with pytest.raises(Exception, match="uint8_t without overflow"):
            run(start, end, 5, torch.uint8, "spyre")
    with pytest.raises(Exception, match="not implemented for 'Bool'"):
        run(0, 1, 3, torch.bool, "spyre")
    calls = ((-1, 200, 5), (-2.7, 3.9, 5), (-3, 7.5, 6), (2.5, 300, 1), (300, 9, 0))
    for call in calls:
        found = run(*call, torch.int32, "spyre").cpu()
        assert torch.equal(found, line(*call, torch.int32, "cpu"))
    found = run(-3, 7, 6, torch.uint8, "spyre").cpu()
    assert torch.equal(found, line(-3, 7, 6, torch.uint8, "cpu"))
