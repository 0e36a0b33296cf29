# SPDX-License-Identifier: Apache-2.0
"""What PyTorch computes with float64 numbers in between, and of nothing."""

import warnings

import pytest
import torch
import torch_spyre
from numerics import compiled
from torch.nn import functional


def of_rank_two(*shape):
    torch.manual_seed(0)
    return torch.randn(*shape[:-1], 2) @ torch.randn(*shape[:-2], 2, shape[-1])


def symmetric(size):
    return (lambda x: x + x.mT)(of_rank_two(size, size))


FUNCTIONS = {
    "pinv": (torch.linalg.pinv, (5, 3)),
    "pinv of many": (torch.linalg.pinv, (2, 3, 4, 7)),
    "pinv of no matrices": (torch.linalg.pinv, (0, 3, 4)),
    "pinv of no rows": (torch.linalg.pinv, (0, 3)),
    "pinv of no columns": (torch.linalg.pinv, (3, 0)),
    "pinverse": (torch.pinverse, (5, 65)),
    "rcond": (lambda x: torch.linalg.pinv(x, 0.5), (5, 3)),
    "rcond of each": (
        lambda x: torch.linalg.pinv(x, torch.tensor([0.0001, 0.5]).to(x.device)),
        (2, 5, 3),
    ),
    "tolerance": (lambda x: torch.linalg.pinv(x, atol=2.0), (5, 3)),
    "both": (lambda x: torch.linalg.pinv(x, atol=0.1, rtol=0.3), (5, 3)),
    "tolerance of each": (
        lambda x: torch.linalg.pinv(x, atol=torch.tensor([2.0, 1e-4]).to(x.device)),
        (2, 5, 3),
    ),
    "rank": (torch.linalg.matrix_rank, (5, 3)),
    "rank of many": (torch.linalg.matrix_rank, (2, 3, 4, 7)),
    "rank of no matrices": (torch.linalg.matrix_rank, (0, 3, 4)),
    "rank of nothing": (torch.linalg.matrix_rank, (2, 0, 4)),
    "rank below": (lambda x: torch.linalg.matrix_rank(x, 2.0), (5, 3)),
    "rank below each": (
        lambda x: torch.linalg.matrix_rank(x, torch.tensor([2.0, 0.0]).to(x.device)),
        (2, 5, 3),
    ),
    "rank by both": (lambda x: torch.linalg.matrix_rank(x, atol=0.1, rtol=0.3), (5, 3)),
    "rank by one": (
        lambda x: torch.linalg.matrix_rank(
            x, atol=torch.tensor([2.0, 0.0]).to(x.device)
        ),
        (2, 5, 3),
    ),
}


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_inverses_and_ranks_of_matrices_that_have_none(name, is_compiled):
    function, shape = FUNCTIONS[name]
    x = of_rank_two(*shape)
    run = compiled(function) if is_compiled else function
    torch_spyre.reset_fallback_report()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actual = run(x.to("spyre"))
    if x.numel():
        assert "aten::linalg_svd" in str(torch_spyre.fallback_report()).replace(
            "_l", "l"
        )
    torch.testing.assert_close(actual.cpu(), function(x), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::torch_spyre.ops.fallbacks.FallbackWarning")
def test_of_symmetric_matrices_and_gradients():
    x = symmetric(5)
    for function in (torch.linalg.pinv, torch.linalg.matrix_rank):
        actual = function(x.to("spyre"), hermitian=True).cpu()
        expected = function(x, hermitian=True)
        torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-4)
    with torch.inference_mode():
        assert torch.linalg.matrix_rank(x.to("spyre")).item() == 4
    gradients = []
    for device in ("cpu", "spyre"):
        leaf = of_rank_two(4, 2).to(device).requires_grad_()
        torch.linalg.pinv(leaf).square().sum().backward()
        gradients.append(leaf.grad.cpu())
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-4)


def test_what_the_cpu_refuses_is_said():
    x = torch.ones(3, 3, dtype=torch.float16, device="spyre")
    for function in (torch.linalg.pinv, torch.linalg.matrix_rank):
        with pytest.raises(RuntimeError, match=r"float32.*found Half"):
            function(x)
        with pytest.raises(RuntimeError, match=r"expected matrices.*1 dim"):
            function(x[0].float())


NORMS = {
    "batch": (lambda x, w, b: functional.batch_norm(x, None, None, w, b, True), 3),
    "batch, running": (
        lambda x, w, b: functional.batch_norm(x, w.detach(), b.detach(), w, b, True),
        3,
    ),
    "batch, fixed": (
        lambda x, w, b: functional.batch_norm(x, w.detach(), b.detach(), w, b),
        3,
    ),
    "instance": (lambda x, w, b: functional.instance_norm(x, None, None, w, b), 3),
    "group": (lambda x, w, b: functional.group_norm(x, 3, w, b), 3),
    "layer": (lambda x, w, b: functional.layer_norm(x, [4], w, b), 4),
}
SHAPES = [(0, 3, 5, 4), (2, 3, 0, 4)]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NORMS)
def test_norms_of_nothing(name, shape, is_compiled, dtype):
    function, size = NORMS[name]
    if name == "instance" and 0 in shape[:2]:
        pytest.skip("the CPU refuses it")

    def run(device, function=function):
        given = [
            torch.ones(s, dtype=dtype, device=device, requires_grad=True)
            for s in (shape, size, size)
        ]
        result = function(*given)
        result.sum().backward()
        return [result.detach().cpu(), *(t.grad.cpu() for t in given)]

    actual = run("spyre", compiled(function) if is_compiled else function)
    for a, e in zip(actual, run("cpu"), strict=True):
        if dtype == torch.float16:
            e = torch.where(e.isnan(), torch.inf, e)
        torch.testing.assert_close(a, e, equal_nan=True)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_groups_without_channels(is_compiled):
    def run(device):
        x = torch.ones(2, 0, 4, device=device, requires_grad=True)
        weight = torch.ones(0, device=device, requires_grad=True)
        norm = compiled(functional.group_norm) if is_compiled else functional.group_norm
        norm(x, 1, weight).sum().backward()
        return x.grad.cpu(), weight.grad.cpu()

    for a, e in zip(run("spyre"), run("cpu"), strict=True):
        assert torch.equal(a, e)
