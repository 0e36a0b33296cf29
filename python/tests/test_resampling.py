# SPDX-License-Identifier: Apache-2.0
"""Grid samplers, gradients of upsampling and padding, windows, bags and segments."""

import logging
import math

import pytest
import torch
from native_calls import check_exact, native
from numerics import compiled
from torch.nn import functional as F


def near(actual, expected, bits=18):
    """Within 2^-bits of the largest value."""
    scale = expected.double().abs().max().item()
    error = (actual.double() - expected.double()).abs().max().item()
    assert error <= 2.0**-bits * scale, (error, scale)


def gradients(function, *tensors):
    """The gradients of the weighted sum of what a function gives."""
    leaves = [t.detach().requires_grad_() for t in tensors]
    result = function(*leaves)
    weights = torch.arange(result.numel(), device=result.device) % 7 - 3.0
    (result * weights.reshape(result.shape)).sum().backward()
    return [t.grad for t in leaves]


def check_gradients(function, *tensors, bits=18):
    expected = gradients(function, *tensors)
    for a, e in zip(native(gradients, function, *tensors), expected, strict=True):
        near(a, e, bits)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    ("mode", "count"),
    [("bilinear", 2), ("nearest", 2), ("bicubic", 2), ("bilinear", 3), ("nearest", 3)],
)
def test_grid_sample(mode, count, padding, align_corners):
    x = torch.randn(2, 3, *[5, 6, 4][:count])
    grid = torch.randn(2, *[4, 3, 5][:count], count) * 1.2

    def sample(x, grid):
        return F.grid_sample(x, grid, mode, padding, align_corners)

    near(native(sample, x, grid), sample(x, grid))
    check_gradients(sample, x, grid, bits=16)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(
    "size", [(2, 3, 5, 4), (2, 3, 1, 7), (1, 1, 1, 1), (2, 1, 3, 1, 4)]
)
def test_affine_grid(size, align_corners):
    def make(theta):
        return F.affine_grid(theta, list(size), align_corners)

    theta = torch.randn(size[0], len(size) - 2, len(size) - 1)
    expected = make(theta)
    for run in (make, compiled(make)):
        actual = run(theta.to("spyre")).cpu()
        assert actual.shape == expected.shape
        near(actual, expected)
    check_gradients(make, theta)


@pytest.mark.parametrize(
    ("mode", "size", "out"),
    [
        ("nearest", (7,), 12),
        ("nearest-exact", (7, 5), (4, 9)),
        ("linear", (7,), 12),
        ("bilinear", (5, 6), (9, 4)),
        ("bicubic", (5, 6), (9, 4)),
        ("trilinear", (3, 4, 5), (5, 4, 2)),
        ("nearest", (3, 4, 5), (5, 4, 2)),
    ],
)
def test_gradients_of_upsampling(mode, size, out):
    x = torch.randn(2, 3, *size)
    check_gradients(lambda t: F.interpolate(t, out, mode=mode), x)
    check_gradients(lambda t: F.interpolate(t, scale_factor=1.7, mode=mode), x)
    if "linear" in mode or mode == "bicubic":
        check_gradients(
            lambda t: F.interpolate(t, out, mode=mode, align_corners=True), x
        )


@pytest.mark.parametrize(
    ("mode", "size", "factor"),
    [
        ("linear", (8,), 1.1),
        ("bilinear", (8, 5), (1.1, 2.0)),
        ("trilinear", (3, 4, 5), 1.2),
    ],
)
def test_upsampling_that_keeps_a_size(mode, size, factor):
    """Elements stay as they are where as many are asked for as there are."""

    def resize(x):
        return F.interpolate(x, scale_factor=factor, mode=mode)

    x = torch.randn(2, 3, *size)
    near(native(resize, x), resize(x))
    check_gradients(resize, x)
    for dynamic in (False, True):
        f = compiled(resize, dynamic=dynamic)
        near(native(f, x), resize(x))
        near(native(gradients, f, x)[0], gradients(resize, x)[0])


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(
    ("mode", "dtype", "size"),
    [
        ("linear", torch.float32, (2,)),
        ("linear", torch.float16, (7,)),
        ("bilinear", torch.float32, (4, 7)),
        ("bilinear", torch.float16, (8, 5)),
        ("trilinear", torch.float32, (5, 4, 7)),
    ],
)
def test_infinities_between_numbers(mode, dtype, size, align_corners):
    """They spread over what they are a part of, and make nothing that is no number."""
    count = len(size)
    x = torch.linspace(-2, 2, 4**count).reshape(1, 1, *[4] * count).to(dtype)
    x.view(-1)[0], x.view(-1)[-2] = torch.inf, -torch.inf

    def resize(x):
        return F.interpolate(x, size, mode=mode, align_corners=align_corners)

    expected = resize(x)
    for run in (resize, compiled(resize)):
        actual = native(run, x)
        # The CPU multiplies infinities by zero where it samples at an element.
        wanted = torch.where(expected.isnan(), actual, expected)
        torch.testing.assert_close(actual, wanted, rtol=2.0**-8, atol=2.0**-8)
        assert not actual.isnan().any()


def test_infinities_stay_where_they_are():
    """Sampling as many elements as there are makes none of two."""
    x = torch.linspace(-2, 2, 16).reshape(1, 1, 4, 4)
    x[0, 0, 1, 2], x[0, 0, 3, 0] = torch.inf, torch.nan

    def resize(x):
        return F.interpolate(x, (4, 4), mode="bilinear")

    for run in (resize, compiled(resize), compiled(resize, dynamic=True)):
        torch.testing.assert_close(native(run, x), x, rtol=0, atol=0, equal_nan=True)
    between = F.interpolate(x[:, :, 1:2].to("spyre"), (1, 7), mode="bilinear")
    assert between.cpu().isfinite().tolist() == [[[[1, 1, 1, 0, 0, 0, 1]]]]


@pytest.mark.parametrize(
    "padding", [(2, 3), (1, 2, -1, 3), (1, 0, 2, -1, 0, 3), (0, 0)]
)
def test_gradients_of_replicated_edges(padding):
    x = torch.randn(2, 3, *[6] * (len(padding) // 2))
    check_gradients(lambda t: F.pad(t, padding, mode="replicate"), x)


@pytest.mark.parametrize(
    ("kernel", "dilation", "padding", "stride"),
    [((2, 3), (1, 2), (1, 0), (2, 1)), (3, 1, 1, 1)],
)
def test_fold(kernel, dilation, padding, stride):
    rest = (kernel, dilation, padding, stride)
    columns = F.unfold(torch.randn(2, 4, 6, 7), *rest)
    near(native(F.fold, columns, (6, 7), *rest), F.fold(columns, (6, 7), *rest), 20)
    check_gradients(lambda t: F.unfold(t, *rest), torch.randn(2, 4, 6, 7))
    assert native(F.fold, columns[:0], (6, 7), *rest).shape == (0, 4, 6, 7)


def test_max_pools():
    x = torch.randn(2, 3, 7, 8, 6)
    check_exact(F.max_pool3d, x, 3, 2, 1, return_indices=True)
    check_exact(F.max_pool3d, x, 2, ceil_mode=True, return_indices=True)
    for out in ((3, 4, 5), (1, 1, 1)):
        check_exact(F.adaptive_max_pool3d, x, out, return_indices=True)
        check_exact(F.adaptive_max_pool2d, x[:, 0], out[1:], return_indices=True)
    check_exact(F.adaptive_max_pool1d, x[0, 0], 3, return_indices=True)
    for count, samples in ((2, torch.rand(2, 3, 2)), (3, torch.rand(2, 3, 3))):
        y = x if count == 3 else x[..., 0]
        pool = getattr(F, f"fractional_max_pool{count}d")
        check_exact(
            lambda t, s, p=pool: p(t, 2, 3, _random_samples=s, return_indices=True),
            y,
            samples,
        )
        check_gradients(
            lambda t, p=pool, s=samples: p(t, 2, 3, _random_samples=s.to(t)), y
        )
    check_gradients(lambda t: F.adaptive_max_pool3d(t, 3), x)
    check_gradients(lambda t: F.adaptive_max_pool2d(t, (2, 5)), x[:, 0])


def test_max_pools_of_no_batch():
    x, samples = torch.randn(0, 3, 7, 8, 6), torch.rand(0, 3, 3)
    check_exact(F.adaptive_max_pool3d, x, 3, return_indices=True)
    check_exact(
        lambda t, s: F.fractional_max_pool3d(
            t, 2, 3, _random_samples=s, return_indices=True
        ),
        x,
        samples,
    )
    gradient = native(
        gradients,
        lambda t: F.fractional_max_pool3d(t, 2, 3, _random_samples=samples.to(t)),
        x,
    )
    assert gradient[0].shape == x.shape


@pytest.mark.parametrize("padding", [None, 4])
@pytest.mark.parametrize("includes_last", [False, True])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode, includes_last, padding):
    weight, indices = torch.randn(10, 70), torch.tensor([1, 2, 4, 5, 4, 3, 2, 9, 1])
    offsets = torch.tensor([0, 3, 3, 5, 9] if includes_last else [0, 3, 3, 5])

    def bags(w, i, o):
        return F.embedding_bag(
            i, w, o, mode=mode, include_last_offset=includes_last, padding_idx=padding
        )

    def slopes(w, i, o):
        return gradients(lambda w: bags(w, i, o), w)[0]

    near(native(bags, weight, indices, offsets), bags(weight, indices, offsets), 20)
    near(native(slopes, weight, indices, offsets), slopes(weight, indices, offsets), 20)


@pytest.mark.parametrize(
    ("offsets", "includes_last"),
    [
        ([0, 7], False),
        ([0, 4, 2], False),
        ([0, -1], False),
        ([1, 3], False),
        ([0, 7], True),
        ([0, 3], True),
        ([0, 4, 2, 6], True),
    ],
)
@pytest.mark.parametrize("mode", ["sum", "max"])
def test_offsets_of_bags_that_are_wrong(mode, offsets, includes_last):
    weight, indices = torch.randn(10, 4), torch.arange(6)

    def bags(w, i, o):
        return F.embedding_bag(
            i, w, o, mode=mode, include_last_offset=includes_last
        ).cpu()

    for run in (bags, compiled(bags)):
        with pytest.raises(RuntimeError, match=r"index value -1 .* outside its range"):
            native(run, weight, indices, torch.tensor(offsets))


def test_one_bag():
    weight, indices = torch.randn(10, 4), torch.arange(6)
    for offsets in ([0], [0, 6]):
        more = {"mode": "sum", "include_last_offset": len(offsets) > 1}
        near(
            native(
                lambda w, i, o, more=more: F.embedding_bag(i, w, o, **more),
                weight,
                indices,
                torch.tensor(offsets),
            ),
            weight[:6].sum(0, keepdim=True),
            20,
        )


def test_weighted_bags():
    weight, indices = torch.randn(10, 4), torch.tensor([[1, 2, 4], [5, 4, 3]])

    def bags(w, i, p):
        return F.embedding_bag(i, w, per_sample_weights=p, mode="sum")

    def slopes(w, i, p):
        return gradients(lambda w, p: bags(w, i, p), w, p)

    p = torch.randn(2, 3)
    near(native(bags, weight, indices, p), bags(weight, indices, p), 20)
    for a, e in zip(
        native(slopes, weight, indices, p), slopes(weight, indices, p), strict=True
    ):
        near(a, e, 20)


def test_embeddings_with_a_longest_norm():
    weight, indices = torch.randn(10, 4), torch.tensor([1, 2, 2])
    actual = native(lambda i, w: F.embedding(i, w, max_norm=0.5), indices, weight)
    near(actual, F.embedding(indices, weight.clone(), max_norm=0.5), 20)


@pytest.mark.parametrize("initial", [None, 1.5])
@pytest.mark.parametrize("reduction", ["sum", "mean", "max", "min", "prod"])
def test_segment_reduce(reduction, initial):
    for axis, lengths in (
        (0, torch.tensor([2, 0, 3, 1])),
        (1, torch.tensor([[1, 2, 3], [0, 4, 2]])),
    ):
        x = torch.randn(6, 3, 2) if axis == 0 else torch.randn(2, 6, 3)
        x[0, 0] = 0

        def reduce(x, lengths, axis=axis):
            return torch.segment_reduce(
                x, reduction, lengths=lengths, axis=axis, initial=initial
            )

        def slopes(x, lengths, reduce=reduce):
            return gradients(
                lambda t: reduce(t, lengths).nan_to_num(posinf=0, neginf=0), x
            )

        expected, actual = reduce(x, lengths), native(reduce, x, lengths)
        special = ~expected.isfinite()
        same = (actual == expected) | (actual.isnan() & expected.isnan())
        assert bool(same[special].all())
        near(actual[~special], expected[~special], 20)
        near(native(slopes, x, lengths)[0], slopes(x, lengths)[0], 18)


def test_largest_along_an_axis_from_the_end():
    x, lengths = torch.randn(2, 6), torch.tensor([[1, 2, 3], [0, 4, 2]])

    def reduce(x, lengths):
        return torch.segment_reduce(x, "amax", lengths=lengths, axis=-1, initial=1)

    for run in (reduce, compiled(reduce)):
        near(native(run, x, lengths), reduce(x, lengths), 20)
        slopes = native(
            lambda x, n, run=run: gradients(lambda t: run(t, n), x), x, lengths
        )
        near(slopes[0], gradients(lambda t: reduce(t, lengths), x)[0])


@pytest.mark.parametrize("reduction", ["sum", "mean", "max", "min", "prod"])
def test_segments_of_a_part(reduction):
    """What is before the first offset, and behind the last one, is in none."""
    x = torch.arange(24.0).view(2, 12) % 5 + 1
    offsets = torch.tensor([[1, 3, 6, 12], [2, 4, 6, 9]])

    def reduce(x, offsets):
        return torch.segment_reduce(x, reduction, offsets=offsets, axis=1)

    def slopes(x, offsets):
        return gradients(lambda t: reduce(t, offsets), x)

    near(native(reduce, x, offsets), reduce(x, offsets), 20)
    near(native(slopes, x, offsets)[0], slopes(x, offsets)[0], 18)


def test_random_operators():
    torch.manual_seed(3)
    weights = torch.tensor([0.0, 1.0, 2.0, 0.0, 5.0])
    drawn = native(torch.multinomial, weights.expand(2, 5), 4000, replacement=True)
    shares = torch.stack([row.bincount(minlength=5) for row in drawn]) / 4000
    assert torch.allclose(shares, weights / 8, atol=0.04)
    assert sorted(native(torch.multinomial, weights, 3).tolist()) == [1, 2, 4]
    for wrong, count in ((-weights, 1), (weights * math.nan, 1), (weights, 6)):
        with pytest.raises(RuntimeError):
            native(torch.multinomial, wrong, count)
    mean, std = torch.arange(2000.0) % 2 * 100, torch.full((2000,), 3.0)
    for arguments in ((mean, std), (mean, 3.0)):
        numbers = native(torch.normal, *arguments) - mean
        assert abs(numbers.mean().item()) < 0.4
        assert abs(numbers.std().item() - 3) < 0.3
    assert native(torch.normal, 0.0, std).shape == std.shape


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialias(mode, align_corners):
    x = torch.randn(2, 3, 9, 13)
    for size in ((5, 4), (20, 7)):

        def resize(x, size=size):
            return F.interpolate(
                x, size, mode=mode, antialias=True, align_corners=align_corners
            )

        near(native(resize, x), resize(x))
        check_gradients(resize, x)
    if not align_corners:
        x = x.half().to(memory_format=torch.channels_last)
        f = compiled(
            lambda x: F.interpolate(x, scale_factor=0.4, mode=mode, antialias=True)
        )
        expected = F.interpolate(x.float(), scale_factor=0.4, mode=mode, antialias=True)
        actual = native(f, x)
        assert actual.stride() == expected.stride()
        near(actual, expected, bits=9)


def test_gradients_at_many_sizes_log_nothing(caplog):
    """PyTorch's meta function takes no symbols, and logs that with a traceback."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    log.addHandler(caplog.handler)
    try:
        for n in (4, 5, 6, 65):
            x = torch.ones(2, 3, n, n, device="spyre", requires_grad=True)
            wide = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
            wide.sum().backward()
            torch.testing.assert_close(
                x.grad.sum().cpu(), torch.tensor(24.0 * n * n), rtol=1e-5, atol=0
            )
    finally:
        log.removeHandler(caplog.handler)
    assert not caplog.records
