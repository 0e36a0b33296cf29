# SPDX-License-Identifier: Apache-2.0
"""Numbers that are none, and results without elements, as on the CPU."""

import math

import pytest
import torch
import torch.nn.functional as F
from numerics import compiled

NAN, INFINITY = math.nan, math.inf
#: Of a tensor without dimensions.
OF_ONE = {
    "softmax": lambda x: torch.softmax(x, 0),
    "log_softmax": lambda x: torch.log_softmax(x, 0),
    "var": torch.var,
    "var without correction": lambda x: torch.var(x, correction=0),
    "std": lambda x: torch.std(x, correction=0),
    "var_mean": lambda x: torch.var_mean(x, correction=0)[0],
}


def assert_same(actual, expected):
    torch.testing.assert_close(actual.cpu(), expected, equal_nan=True)


@pytest.mark.parametrize("name", OF_ONE)
def test_one_number(name):
    function = OF_ONE[name]
    for value in (NAN, INFINITY, -INFINITY, 2.5, 0.0):
        x = torch.tensor(value)
        for run in function, compiled(function):
            assert_same(run(x.to("spyre")), function(x))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_gradients_of_one_number(name):
    for value in (1.0, NAN):
        for scale in (1.0, NAN, INFINITY):
            gradients = []
            for device in ("cpu", "spyre"):
                x = torch.tensor(value).to(device).requires_grad_()
                gradients += torch.autograd.grad(OF_ONE[name](x) * scale, x)
            assert_same(gradients[1], gradients[0])


def test_acosh_below_one():
    x = torch.tensor([-3.4e38, -1e20, -1e10, -1e8, -3e5, -1e4, -1, 0, 0.99, 1, 2, NAN])
    for run in torch.acosh, compiled(torch.acosh):
        assert_same(run(x.to("spyre")), torch.acosh(x))


#: Of what is multiplied after a zero, or what is none in fp32, some parts are infinite.
PRODUCTS = {
    "behind a zero": [2.0, 0.0] + [1000.0] * 90,
    "too small, then large": [1e-30] * 4 + [1e30] * 5 + [2.0],
    "all small": [0.5] * 200,
    "infinite": [1e30, -1e30, 2.0, 0.5, 0.0, 3.0],
    "special": [2.0, INFINITY, -1.0, 3.0, NAN, 0.0],
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_cumulative_products(name):
    x = torch.tensor(PRODUCTS[name])
    for run in torch.cumprod, compiled(torch.cumprod):
        assert_same(run(x.to("spyre"), 0), x.cumprod(0))


IMAGES = (2, 3, 5, 5)
EMPTY = {
    "average": (lambda x: F.adaptive_avg_pool2d(x, (0, 3)), [IMAGES]),
    "average of volumes": (lambda x: F.adaptive_avg_pool3d(x, (3, 0, 1)), [IMAGES]),
    "maximum": (lambda x: F.adaptive_max_pool2d(x, (0, 3)), [IMAGES]),
    "no rows": (torch.addbmm, [(0, 3), (4, 0, 2), (4, 2, 3)]),
    "no columns": (torch.addbmm, [(3, 0), (4, 3, 2), (4, 2, 0)]),
}


@pytest.mark.parametrize("name", EMPTY)
def test_results_without_elements(name):
    function, shapes = EMPTY[name]
    tensors = [torch.randn(shape) for shape in shapes]
    expected = function(*tensors)
    assert expected.numel() == 0
    for run in function, compiled(function):
        assert_same(run(*(t.to("spyre") for t in tensors)), expected)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_points_of_a_grid_that_are_nowhere(mode, padding):
    x = torch.arange(1.0, 17).view(1, 1, 4, 4)
    points = [
        [NAN, 0],
        [0, NAN],
        [NAN, NAN],
        [INFINITY, 0],
        [-INFINITY, 0.3],
        [1e30, 0],
    ]
    grid = torch.tensor(points).view(1, 1, -1, 2)

    def sample(x, grid):
        return F.grid_sample(x, grid, mode, padding, align_corners=False)

    for run in sample, compiled(sample):
        assert_same(run(x.to("spyre"), grid.to("spyre")), sample(x, grid))


def test_points_in_a_volume_that_are_nowhere():
    x = torch.arange(1.0, 65).view(1, 1, 4, 4, 4)
    points = [[NAN, 0, 0], [0, NAN, 0], [0, 0, NAN], [INFINITY, 0, 0.1], [0.2, 0, 0.1]]
    grid = torch.tensor(points).view(1, 1, 1, -1, 3)

    def sample(x, grid):
        return F.grid_sample(x, grid, padding_mode="zeros", align_corners=False)

    assert_same(sample(x.to("spyre"), grid.to("spyre")), sample(x, grid))


POOLS = {
    "1d": ((2, 12), lambda x: F.max_pool1d(x, 3, 2, 1, return_indices=True)),
    "2d": ((2, 8, 8), lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)),
    "2d of far elements": (
        (2, 8, 8),
        lambda x: F.max_pool2d(x, 2, dilation=3, return_indices=True),
    ),
    "3d": ((2, 5, 6, 7), lambda x: F.max_pool3d(x, 2, return_indices=True)),
    "adaptive 2d": (
        (2, 8, 8),
        lambda x: F.adaptive_max_pool2d(x, (3, 2), return_indices=True),
    ),
    "adaptive 3d": (
        (2, 5, 6, 7),
        lambda x: F.adaptive_max_pool3d(x, (2, 3, 2), return_indices=True),
    ),
}


@pytest.mark.parametrize("name", POOLS)
def test_places_of_what_is_no_number(name):
    """Of several in a window the last one counts, of equal numbers the first."""
    shape, pool = POOLS[name]
    x = torch.randint(5, shape, generator=torch.Generator().manual_seed(1)).float()
    x.view(-1)[::3] = x.view(-1)[1::3] = NAN
    x[1] = torch.where(x[1].isnan(), INFINITY, x[1])
    for run in pool, compiled(pool):
        for actual, expected in zip(run(x.to("spyre")), pool(x), strict=True):
            assert_same(actual, expected)


@pytest.mark.parametrize("name", ["median", "nanmedian", "mode", "kthvalue"])
def test_no_elements_have_no_median(name):
    """Also where there would be no results either."""
    more = [1] if name == "kthvalue" else []
    for shape, dim in (((0, 3), 0), ((0, 0), 0), ((2, 0, 0), 1)):
        x = torch.zeros(shape, device="spyre")
        with pytest.raises(IndexError, match="non-zero size"):
            getattr(torch, name)(x, *more, dim)


@pytest.mark.parametrize("name", ["asin", "asinh", "atan", "atanh", "sinh", "tan"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_odd_functions_of_zeros(name, dtype):
    function = getattr(torch, name)
    x = torch.tensor([-0.0, 0.0, 0.5, -0.5], dtype=dtype)
    for run in function, compiled(function):
        actual = run(x.to("spyre")).cpu()
        expected = function(x)
        assert torch.equal(actual.signbit()[:2], expected.signbit()[:2])
        torch.testing.assert_close(actual, expected, rtol=2.0**-8, atol=0)
    assert function(torch.tensor(NAN, device="spyre")).isnan()


def test_products_that_are_added_begin_with_their_number():
    """As on the CPU: two large factors times a small number are finite."""
    x = torch.tensor([1.0, -2.0, 0.5])
    y, z = torch.tensor([3e38, -3e38, 1e30]), torch.tensor([10.0, 3e38, 1e20])
    for value in (0, 1e-39, -1e-30):

        def add(x, y, z, value=value):
            return torch.addcmul(x, y, z, value=value)

        for run in add, compiled(add):
            assert_same(run(*(t.to("spyre") for t in (x, y, z))), add(x, y, z))


def test_gamma_function_of_subnormal_numbers():
    x = torch.tensor([1e-45, 1e-40, -1e-40, 5e-39, 1.2e-38])
    for run in torch.lgamma, compiled(torch.lgamma):
        assert_same(run(x.to("spyre")), x.lgamma())
