# SPDX-License-Identifier: Apache-2.0
"""Losses that PyTorch takes apart wrongly, or not at all."""

import pytest
import torch
import torch.nn.functional as F
from numerics import assert_units, compiled, device_value

pytestmark = pytest.mark.usefixtures("no_fallback")

#: Labels end at the first -1; what follows it does not count.
TARGETS = [[3, 0, -1, 1, 2], [1, -1, 0, 0, 0], [-1, 2, 3, 1, 0], [4, 4, 0, 1, 2]]


def run(function, x, target):
    """The loss, and its gradient."""
    x = x.detach().requires_grad_()
    loss = function(x, target)
    (gradient,) = torch.autograd.grad(loss.sum(), x)
    return loss.detach(), gradient


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_multilabel_margin_loss(reduction, dtype):
    def loss_of(x, target):
        return F.multilabel_margin_loss(x, target, reduction=reduction)

    rows = torch.randn(4, 5, generator=torch.Generator().manual_seed(0)).to(dtype)
    for x, target in (
        (rows, torch.tensor(TARGETS)),
        (rows[0], torch.tensor(TARGETS[0])),
    ):
        wanted = run(loss_of, device_value(x), target)
        functions = [loss_of]
        if x.dim() == 2:
            functions.append(compiled(loss_of, fullgraph=True))
        for function in functions:
            actual = run(function, x.to("spyre"), target.to("spyre"))
            for a, e in zip(actual, wanted, strict=True):
                # In fp32 four terms per pair are added in another order.
                assert_units(a.cpu(), e, 2 if dtype == torch.float16 else 16)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_multi_margin_loss(is_weighted, p, reduction, dtype):
    weight = torch.tensor([0.5, 1.0, 2.0, 1.5, 0.25], dtype=dtype)

    def loss_of(x, target):
        given = weight.to(x.device, x.dtype) if is_weighted else None
        return F.multi_margin_loss(
            x, target, p=p, margin=0.5, weight=given, reduction=reduction
        )

    rows = torch.randn(4, 5, generator=torch.Generator().manual_seed(0)).to(dtype)
    targets = torch.tensor([3, 0, 4, 2])
    for x, target in ((rows, targets), (rows[:1], targets[:1]), (rows[0], targets[0])):
        wanted = run(loss_of, device_value(x), target)
        found = [run(loss_of, x.to("spyre"), target.to("spyre"))]
        if x.dim() == 2:
            function = compiled(loss_of, fullgraph=True)
            found.append(run(function, x.to("spyre"), target.to("spyre")))
        for actual in found:
            for a, e in zip(actual, wanted, strict=True):
                assert a.shape == e.shape
                assert_units(a.cpu(), e, 1 if dtype == torch.float16 else 16)
