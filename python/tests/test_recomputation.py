# SPDX-License-Identifier: Apache-2.0
"""Activation checkpoints: what is computed again draws the same numbers."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

pytestmark = pytest.mark.usefixtures("no_fallback")


def dropped(x):
    return F.dropout(x * 2, 0.5)


@pytest.mark.parametrize("reentrant", [False, True])
def test_dropout_of_a_checkpoint(reentrant):
    x = torch.ones(64, 65, device="spyre", requires_grad=True)
    y = checkpoint(dropped, x, use_reentrant=reentrant)
    y.sum().backward()
    assert 0 < (y == 0).sum() < y.numel()
    assert torch.equal(x.grad.cpu(), y.detach().cpu())


def test_dropout_of_a_compiled_checkpoint():
    """PyTorch gives both graphs a generator of their own, with one seed."""
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda x: checkpoint(dropped, x, use_reentrant=False), backend="spyre"
    )
    x = torch.ones(64, 65, device="spyre", requires_grad=True)
    first, second = compiled(x), compiled(x)
    (first + second).sum().backward()
    assert not torch.equal(first.cpu(), second.cpu())
    assert torch.equal(x.grad.cpu(), (first + second).detach().cpu())


def test_generators_that_share_their_numbers():
    generator = torch.Generator("spyre").manual_seed(3)
    wanted = torch.rand(12, generator=generator, device="spyre").cpu()
    generator.manual_seed(3)
    other = generator.graphsafe_get_state()
    parts = [torch.rand(4, generator=g, device="spyre") for g in (generator, other)]
    fresh = torch.Generator("spyre")
    fresh.graphsafe_set_state(other)
    parts.append(torch.rand(4, generator=fresh, device="spyre"))
    assert torch.equal(torch.cat(parts).cpu(), wanted)
    assert not torch.equal(
        generator.clone_state().get_state(), generator.manual_seed(4).get_state()
    )
    with pytest.raises(RuntimeError, match="expected a generator of a spyre device"):
        generator.graphsafe_set_state(torch.Generator())
