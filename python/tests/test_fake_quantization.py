# SPDX-License-Identifier: Apache-2.0
"""Fake quantization, which the CPU computes in fp32."""

import pytest
import torch
from native_calls import assert_same, native
from numerics import compiled, round_dl16


def per_tensor(x):
    return torch.fake_quantize_per_tensor_affine(x, 0.25, 3, 0, 15)


def of_tensors(x):
    scale = torch.tensor([0.25], device=x.device)
    zero_point = torch.tensor([3], dtype=torch.int32, device=x.device)
    return torch.fake_quantize_per_tensor_affine(x, scale, zero_point, 0, 15)


def per_channel(x):
    scale = torch.tensor([0.5, 0.25, 0.125], device=x.device)
    zero_point = torch.tensor([0, 5, -3], dtype=torch.int32, device=x.device)
    return torch.fake_quantize_per_channel_affine(x, scale, zero_point, 1, -8, 7)


def with_gradient(function, x):
    x = x.detach().requires_grad_()
    result = function(x)
    result.square().sum().backward()
    return result.detach(), x.grad


@pytest.mark.parametrize("function", [per_tensor, of_tensors, per_channel])
def test_fake_quantization(function):
    # Halves of steps, which round to even numbers of them, and what is out of range.
    x = (torch.arange(-48, 48) / 16).reshape(4, 3, 8)
    for run in (function, compiled(function)):
        assert_same(native(with_gradient, run, x), with_gradient(function, x))


def test_scales_that_are_no_powers_of_two():
    x = torch.randn(500, generator=torch.Generator().manual_seed(0)).half() * 4
    x = round_dl16(x)

    def quantize(x):
        return torch.fake_quantize_per_tensor_affine(x, 0.037, 131, 0, 255)

    actual, expected = native(quantize, x), quantize(x.float())
    assert ((actual - expected).abs() <= expected.abs() * 2.0**-9).all()


def test_wrong_calls():
    x = torch.ones(3, 2, device="spyre")
    with pytest.raises(RuntimeError, match="zero_point"):
        torch.fake_quantize_per_tensor_affine(x, 0.1, 300, 0, 255)
    scale = torch.ones(3, device="spyre")
    zeros = torch.zeros(3, dtype=torch.int32, device="spyre")
    with pytest.raises(RuntimeError, match="dimensions of scale"):
        torch.fake_quantize_per_channel_affine(x, scale, zeros, 1, 0, 255)
