# SPDX-License-Identifier: Apache-2.0
"""torch.cdist, with its gradients."""

import pytest
import torch
import torch_spyre

NORMS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")]
SHAPES = [
    ((5, 3), (7, 3)),
    ((2, 1, 5, 3), (3, 7, 3)),
    ((1, 1), (1, 1)),
    ((0, 3), (2, 3)),
    ((3, 0), (2, 0)),
    ((3, 65), (63, 65)),
]


def results(function, device: str, *inputs: torch.Tensor) -> list[torch.Tensor]:
    """The distances, and the gradients of a weighted sum of them."""
    inputs = [x.clone().to(device).requires_grad_() for x in inputs]
    distances = function(*inputs)
    weights = torch.arange(distances.numel()).view(distances.shape).float() - 3
    (distances * weights.to(device)).sum().backward()
    return [distances.detach().cpu(), *(x.grad.cpu() for x in inputs)]


def check(function, *inputs: torch.Tensor) -> None:
    torch_spyre.reset_fallback_report()
    got = results(function, "spyre", *inputs)
    assert torch_spyre.fallback_report() == {}
    for own, wanted in zip(got, results(function, "cpu", *inputs), strict=True):
        size = wanted.abs().max().item() if wanted.numel() else 1
        torch.testing.assert_close(own, wanted, rtol=1e-4, atol=1e-6 * size)


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_cdist(first, second, p):
    torch.manual_seed(0)
    x, y = torch.randn(first), torch.randn(second)
    if first == (5, 3):
        # No slope: equal rows, and rows with an equal element.
        y[0], y[1, 0] = x[0], x[2, 0]
    mode = "donot_use_mm_for_euclid_dist"
    check(lambda x, y: torch.cdist(x, y, p=p, compute_mode=mode), x, y)


def test_compiled():
    torch.manual_seed(0)
    compiled = torch.compile(torch.cdist, backend="spyre", fullgraph=True)
    x, y = torch.randn(5, 3), torch.randn(7, 3)
    got = compiled(x.to("spyre"), y.to("spyre")).cpu()
    torch.testing.assert_close(got, torch.cdist(x, y))
