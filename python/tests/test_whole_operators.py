# SPDX-License-Identifier: Apache-2.0
"""Operators that PyTorch takes apart, and that run as one program each by themselves."""

import copy

import pytest
import torch
import torch.nn.functional as F
import torch_spyre
from native_calls import assert_same, check_compiled, held, native
from numerics import assert_within, poison, unit
from torch_spyre import _C

F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32
DTYPES = [F16, BF16, F32]
aten = torch.ops.aten


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(sum(shape) + seed)
    return torch.randn(shape, generator=generator)


def runs(function, *arguments):
    """How often each operator ran as a program, on arguments of the device."""
    function(*arguments)
    torch.spyre.synchronize()
    _C.reset_native_report()
    torch_spyre.reset_fallback_report()
    function(*arguments)
    assert torch_spyre.fallback_report() == {}
    return {name: count for name, (count, _) in _C.native_report().items()}


def assert_strides(actual, expected):
    """Of dimensions with more than one element."""
    for size, found, wanted in zip(
        actual.shape, actual.stride(), expected.stride(), strict=True
    ):
        assert found == wanted or size <= 1 or actual.numel() == 0


#
# Batch norms in evaluation
#

BATCHES = [
    (5, 3),
    (1, 1),
    (4, 63),
    (4, 65, 7),
    (3, 1, 70),
    (2, 5, 6, 7),
    (2, 64, 9, 33),
    (2, 3, 4, 5, 6),
]
PARTS = {"none": (False, False), "both": (True, True), "weight": (True, False)}


def norm_arguments(shape, dtype, parts="both"):
    has_weight, has_bias = PARTS[parts]
    channels = shape[1]
    weight, bias, mean = (draw(channels, seed=s) for s in (1, 2, 3))
    variance = draw(channels, seed=4).abs() + 0.25
    given = [draw(*shape), mean, variance, weight, bias]
    x, mean, variance, weight, bias = held([g.to(dtype) for g in given])
    return x, mean, variance, weight if has_weight else None, bias if has_bias else None


def norm_of(x, mean, variance, weight, bias, eps=1e-5):
    """The norm in fp64, and the sum of the magnitudes that it adds up."""
    shape = (1, -1, *[1] * (x.dim() - 2))
    x, mean, variance = (t.double() for t in (x, mean, variance))
    scale = (variance + eps).rsqrt()
    if weight is not None:
        scale = scale * weight.double()
    bias = torch.zeros_like(mean) if bias is None else bias.double()
    mean, scale, bias = (t.reshape(shape) for t in (mean, scale, bias))
    terms = ((x.abs() + mean.abs()) * scale.abs()) + bias.abs()
    return (x - mean) * scale + bias, terms


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", BATCHES)
def test_batch_norm_is_rounded_once(shape, dtype, parts):
    given = norm_arguments(shape, dtype, parts)
    exact, terms = norm_of(*given)
    poison()
    actual = native(F.batch_norm, *given)
    assert actual.dtype == dtype
    # Half a unit, and fp32 roundings of what a channel is multiplied by and of what is
    # added: a square root, a quotient, three products and sums.
    bound = unit(exact, dtype) / 2 + 2.0**-21 * terms
    assert_within(actual, exact, bound, str(shape))


@pytest.mark.parametrize("dtype", DTYPES)
def test_statistics_may_be_wider_than_the_elements(dtype):
    x, *others = norm_arguments((3, 70, 5), F32)
    (x,) = held([x.to(dtype)])
    exact, terms = norm_of(x, *others)
    actual = native(F.batch_norm, x, *others)
    assert_within(actual, exact, unit(exact, dtype) / 2 + 2.0**-21 * terms)


@pytest.mark.parametrize("dtype", DTYPES)
def test_batch_norm_gives_the_same_bits_compiled(dtype):
    for shape in BATCHES:
        check_compiled(F.batch_norm, *norm_arguments(shape, dtype))


def test_batch_norm_is_one_program():
    x, mean, variance, weight, bias = (
        t.to("spyre") for t in norm_arguments((2, 5, 6, 7), F16)
    )
    name = "aten::_native_batch_norm_legit_no_training"
    one = {name: 1}
    assert runs(F.batch_norm, x, mean, variance, weight, bias) == one
    assert runs(F.batch_norm, x, mean, variance) == one
    assert runs(torch.nn.BatchNorm2d(5).to("spyre").eval(), x.float()) == one
    with torch.inference_mode():
        assert runs(F.batch_norm, x, mean, variance, weight, bias) == one


@pytest.mark.parametrize("shape", [(2, 70, 5, 6), (2, 3, 4, 5, 6)])
def test_channels_stay_last_in_batch_norm(shape):
    x, *others = norm_arguments(shape, F16)
    form = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
    last = x.to(memory_format=form)
    expected = F.batch_norm(last, *others)
    actual = F.batch_norm(last.to("spyre"), *(t.to("spyre") for t in others))
    assert_strides(actual, expected)
    assert_same(actual.cpu(), native(F.batch_norm, x, *others))


@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 4), (2, 3, 0)])
def test_batch_norm_of_nothing(shape):
    x, *others = norm_arguments(shape, F32)
    assert_same(native(F.batch_norm, x, *others), F.batch_norm(x, *others))


def test_batch_norm_of_what_is_no_number_is_that_of_the_cpu():
    inf, nan = torch.inf, torch.nan
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, inf, -inf, nan]).reshape(7, 1).repeat(1, 6)
    mean = torch.tensor([0.0, -0.0, 1.0, inf, nan, 0.0])
    variance = torch.tensor([1.0, 1.0, inf, 1.0, 1.0, 0.0])
    for weight in (None, torch.ones(6), -torch.ones(6)):
        for bias in (None, torch.zeros(6), -torch.zeros(6)):
            expected = F.batch_norm(x, mean, variance, weight, bias, eps=0.0)
            actual = native(F.batch_norm, x, mean, variance, weight, bias, eps=0.0)
            assert_same(actual, expected)
            assert torch.equal(
                actual.signbit() | actual.isnan(), expected.signbit() | expected.isnan()
            )


@pytest.mark.parametrize("asks", ["all", "input", "weight"])
def test_gradients_of_batch_norm_in_evaluation(asks):
    torch.manual_seed(0)
    module = torch.nn.BatchNorm2d(5)
    module(torch.randn(4, 5, 6, 7) * 2 + 1)
    module.eval()
    with torch.no_grad():
        module.weight.copy_(draw(5))
        module.bias.copy_(draw(5, seed=1))
    if asks == "input":
        module.requires_grad_(False)
    x, factor = draw(3, 5, 6, 7), draw(3, 5, 6, 7, seed=1)

    def gradients(module, x, factor):
        x = x.detach().clone().requires_grad_(asks != "weight")
        y = module(x)
        (y * factor).sum().backward()
        parts = [x, *module.parameters()]
        state = [module.running_mean, module.running_var]
        return [y.detach(), *state, *(p.grad for p in parts if p.grad is not None)]

    exact = gradients(copy.deepcopy(module).double(), x.double(), factor.double())
    actual = gradients(module.to("spyre"), x.to("spyre"), factor.to("spyre"))
    assert len(actual) == len(exact)
    for a, e in zip(actual, exact, strict=True):
        # Sums of 126 products in fp32 at the most.
        assert_within(a.cpu(), e, 2.0**-18 * e.abs().max(), asks)
