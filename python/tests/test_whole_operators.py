# SPDX-License-Identifier: Apache-2.0
"""Operators that PyTorch takes apart, and that run as one program each by themselves."""

import copy

import pytest
import torch
import torch.nn.functional as F
import torch_spyre
from native_calls import assert_same, check_compiled, held, native
from numerics import assert_units, assert_within, poison, unit
from torch_spyre import _C
from torch_spyre.frontend import eager

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


#
# RMS norms
#

ROWS = [
    ((4, 100), 1),
    ((1, 1), 1),
    ((3, 63), 1),
    ((65,), 1),
    ((2, 5, 65), 1),
    ((2, 5, 65), 2),
    ((2, 3, 4, 6), 3),
    ((2, 3, 4, 6), 4),
]


def rms_norm_of(x, count, weight, eps):
    """The norm over the last dimensions, in fp64."""
    dims = list(range(x.dim() - count, x.dim()))
    eps = torch.finfo(F32).eps if eps is None else eps
    x = x.double()
    result = x * (x.square().mean(dims, keepdim=True) + eps).rsqrt()
    return result if weight is None else result * weight.double()


@pytest.mark.parametrize("eps", [None, 1e-3])
@pytest.mark.parametrize("has_weight", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rms_norm_is_rounded_once(dtype, has_weight, eps):
    for shape, count in ROWS:
        size = shape[len(shape) - count :]
        x, weight = held([draw(*shape).to(dtype), draw(*size, seed=1).to(dtype)])
        weight = weight if has_weight else None
        exact = rms_norm_of(x, count, weight, eps)
        poison()
        actual = native(F.rms_norm, x, size, weight, eps)
        assert actual.dtype == dtype
        # Half a unit, and fp32 roundings: of the sum, relative to a sum of squares, half
        # of what its terms give; of a square root, two quotients and two products.
        terms = (x[0].numel() / 2 + 8) * 2.0**-24
        bound = unit(exact, dtype) / 2 + terms * exact.abs()
        assert_within(actual, exact, bound, f"{shape} {count}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_rms_norm_gives_the_same_bits_compiled(dtype):
    for shape, count in ROWS:
        size = shape[len(shape) - count :]
        x, weight = draw(*shape).to(dtype), draw(*size, seed=1).to(dtype)
        check_compiled(lambda x, w, size=size: F.rms_norm(x, size, w), x, weight)


def test_rms_norm_is_one_program():
    x, weight = draw(4, 100).half().to("spyre"), draw(100).half().to("spyre")
    one = {"aten::_fused_rms_norm": 1}
    assert runs(F.rms_norm, x, (100,), weight, 1e-5) == one
    assert runs(F.rms_norm, x, (100,)) == one
    assert runs(F.rms_norm, x.view(2, 2, 100), (2, 100)) == one
    with torch.no_grad():
        assert runs(torch.nn.RMSNorm(100).to("spyre").half(), x) == one
    with torch.inference_mode():
        assert runs(F.rms_norm, x, (100,), weight) == one


def test_rms_norm_keeps_strides_and_signs_of_zeros():
    x = draw(2, 3, 5, 4)
    x[0, 0] = 0.0
    x[0, 1] = -0.0
    x[0, 2, 0] = -0.0
    for given in (
        x.to(memory_format=torch.channels_last),
        x.permute(1, 0, 3, 2),
        x[:, :, ::2],
    ):
        size = given.shape[-1:]
        for weight in (None, torch.ones(size), -torch.ones(size)):
            moved = None if weight is None else weight.to("spyre")
            expected = F.rms_norm(given, size, weight)
            actual = F.rms_norm(given.to("spyre"), size, moved)
            assert_strides(actual, expected)
            actual = actual.cpu()
            assert_units(actual, expected.double(), 4)
            assert torch.equal(actual.signbit(), expected.signbit())


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_rms_norm_of_nothing(shape):
    x, weight = draw(*shape), draw(shape[1])
    for given in (None, weight):
        actual = native(F.rms_norm, x, shape[1:], given)
        assert_same(actual, F.rms_norm(x, shape[1:], given))

    def gradient(x, weight):
        x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
        F.rms_norm(x, shape[1:], weight).sum().backward()
        return [x.grad, weight.grad]

    assert_same(native(gradient, x, weight), gradient(x, weight))


def test_rms_norm_of_another_shape_is_refused():
    x = torch.zeros(3, 4, device="spyre")
    with pytest.raises(RuntimeError, match="normalized_shape"):
        F.rms_norm(x, (3,))
    with pytest.raises(RuntimeError, match="normalized_shape"):
        F.rms_norm(x, ())
    with pytest.raises(RuntimeError, match="weight"):
        F.rms_norm(x, (4,), torch.ones(3, device="spyre"))


@pytest.mark.parametrize("asks", ["both", "input", "weight"])
@pytest.mark.parametrize(("shape", "count"), [((4, 100), 1), ((2, 5, 65), 2)])
def test_gradients_of_rms_norm(shape, count, asks):
    size = shape[len(shape) - count :]

    def gradients(x, weight, factor):
        x = x.detach().clone().requires_grad_(asks != "weight")
        weight = weight.detach().clone().requires_grad_(asks != "input")
        (F.rms_norm(x, size, weight, 1e-5) * factor).sum().backward()
        return [t.grad for t in (x, weight) if t.requires_grad]

    given = draw(*shape), draw(*size, seed=1), draw(*shape, seed=2)
    exact = gradients(*(t.double() for t in given))
    for a, e in zip(native(gradients, *given), exact, strict=True):
        # Sums of up to 325 products in fp32.
        assert_within(a, e, 2.0**-17 * e.abs().max(), asks)


def test_rms_norm_under_transforms():
    x, weight = draw(4, 10), draw(10, seed=1)
    directions = draw(4, 10, seed=2)

    def norm(x, weight):
        return F.rms_norm(x, (10,), weight, 1e-5)

    def derivatives(x, weight, directions):
        forward = torch.func.jvp(norm, (x, weight), (directions, weight))[1]
        each = torch.func.vmap(norm, (0, None))(x, weight)
        first = torch.func.grad(lambda x: norm(x, weight).pow(3).sum())
        second = torch.func.grad(lambda x: first(x).square().sum())(x)
        return [forward, each, first(x), second]

    exact = derivatives(*(t.double() for t in (x, weight, directions)))
    actual = derivatives(*(t.to("spyre") for t in (x, weight, directions)))
    for a, e in zip(actual, exact, strict=True):
        assert_within(a.cpu(), e, 2.0**-17 * e.abs().max())


#
# Maxima of windows
#

#: Dimensions, shapes, and kernel, stride, padding, dilation, whether sizes go up.
POOLS = [
    (1, (2, 3, 17), (2,)),
    (1, (3, 70), (3, 2, 1)),
    (1, (2, 65, 19), (3, 1, 1, 2, True)),
    (2, (2, 3, 8, 10), (2,)),
    (2, (1, 1, 5, 5), (3, 1)),
    (2, (2, 65, 9, 11), (3, 2, 1, 1, True)),
    (2, (4, 12, 13), ((2, 3), (1, 2), (1, 0), (2, 1))),
    (3, (2, 3, 6, 7, 8), (2,)),
    (3, (2, 6, 7, 8), ((3, 2, 1), 2, (1, 0, 0))),
]
POOL = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("count", "shape", "window"), POOLS)
def test_maxima_are_the_same_without_their_places(count, shape, window, dtype):
    def pool(x):
        return POOL[count](x, *window)

    x = held(draw(*shape).to(dtype))
    x.flatten()[3] = torch.inf
    expected = pool(x)
    assert_same(native(pool, x), expected)
    with_places = native(lambda x: POOL[count](x, *window, return_indices=True), x)
    assert_same(with_places[0], expected)
    device = x.to("spyre")
    assert_strides(pool(device), expected)
    name = f"aten::max_pool{max(count, 2)}d"
    assert runs(pool, device) == {name: 1}
    with torch.inference_mode():
        assert runs(pool, device) == {name: 1}
    check_compiled(pool, x)


@pytest.mark.parametrize("form", [torch.channels_last, torch.channels_last_3d])
def test_channels_stay_last_in_maxima(form):
    count = 2 if form == torch.channels_last else 3
    shape = (2, 5, 8, 6, 4)[: count + 2]
    x = draw(*shape).to(memory_format=form)
    wide = draw(*(2 * n for n in shape)).to(memory_format=form)
    for given in (x, wide[:, ::2, 1:], x.transpose(2, 3)):
        for window in ((2,), (3, 2, 1)):
            expected = POOL[count](given, *window)
            actual = POOL[count](given.to("spyre"), *window)
            assert_strides(actual, expected)
            assert_same(actual.cpu(), expected)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_maxima_of_integers(dtype):
    x = (draw(2, 3, 9, 8) * 20).to(dtype)
    assert_same(native(F.max_pool2d, x, 3, 2, 1), F.max_pool2d(x, 3, 2, 1))


def test_maxima_of_none_and_of_no_number():
    for shape in ((0, 3, 8, 8), (3, 0, 8, 8)):
        x = draw(*shape)
        if shape[1]:
            assert_same(native(F.max_pool2d, x, 2), F.max_pool2d(x, 2))
    x = draw(2, 3, 8, 8)
    x[0, 0, 1, 1] = torch.nan
    x[1, 2] = -torch.inf
    assert_same(native(F.max_pool2d, x, 3, 2, 1), F.max_pool2d(x, 3, 2, 1))


def test_wrong_windows_are_refused_as_on_the_cpu():
    for count, shape in ((1, (2, 3, 8)), (2, (2, 3, 8, 8)), (3, (2, 3, 8, 8, 8))):
        x = draw(*shape)
        for given, window in (
            (x, (2, 2, 2)),
            (x, (9,)),
            (x[0, 0, ..., :0], (2,)),
            (x > 0, (2,)),
        ):
            with pytest.raises(RuntimeError) as expected:
                POOL[count](given, *window)
            with pytest.raises(RuntimeError) as found:
                POOL[count](given.to("spyre"), *window)
            # Of one dimension, some words are those for two, or for other devices.
            if count > 1 or given is x:
                assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_gradients_find_the_places_of_maxima(count):
    x, factor = draw(2, 3, *[8] * count), draw(2, 3, *[4] * count, seed=1)

    def gradient(x, factor):
        x = x.detach().clone().requires_grad_()
        (POOL[count](x, 2) * factor).sum().backward()
        return x.grad

    assert_same(native(gradient, x, factor), gradient(x, factor))
    x = x.to("spyre").requires_grad_()
    name = f"aten::max_pool{max(count, 2)}d"
    assert name not in runs(POOL[count], x, 2)
    with torch.no_grad():
        assert runs(POOL[count], x, 2) == {name: 1}
    y = POOL[count](x.detach(), 2)
    assert not y.requires_grad and y.grad_fn is None


def test_maxima_under_transforms():
    x, direction = draw(4, 3, 6, 6), draw(4, 3, 6, 6, seed=1)

    def derivatives(x, direction):
        def pool(x):
            return F.max_pool2d(x, 2)

        forward = torch.func.jvp(pool, (x,), (direction,))[1]
        each = torch.func.vmap(pool)(x)
        return [forward, each, torch.func.grad(lambda x: pool(x).sum())(x)]

    assert_same(native(derivatives, x, direction), derivatives(x, direction))


class _Counted(torch.utils._python_dispatch.TorchDispatchMode):
    """Notes the names of operators."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


def test_modes_see_the_parts_that_they_see_on_other_devices():
    x = draw(2, 3, 8, 8)

    def names(x):
        with _Counted() as mode:
            F.max_pool2d(x, 2)
        return mode.names

    assert names(x.to("spyre")) == names(x) == ["max_pool2d_with_indices"]


#
# One program for many sizes
#


def channels(x):
    """Statistics, weights and biases, one number per channel."""
    numbers = torch.arange(1.0, x.shape[1] + 1).to(x.dtype)
    return [(numbers / 8).to(x.device) for _ in range(4)]


#: Of sizes [n, 5, n, n], or fewer of these: strides are products of sizes.
OF_MANY_SIZES = {
    "batch norm": ("n5nn", lambda x: F.batch_norm(x, *channels(x))),
    "batch norm of a batch": (
        "nnn",
        lambda x: aten.native_batch_norm(x, *[None] * 4, True, 0.1, 1e-5)[0],
    ),
    "renorm": ("nnn", lambda x: torch.renorm(x, 2, 0, 1.0)),
    "rms norm": ("n5", lambda x: F.rms_norm(x, (5,))),
    "max_pool1d": ("n55", lambda x: F.max_pool1d(x, 2)),
    "max_pool2d": ("n555", lambda x: F.max_pool2d(x, 2)),
    "max_pool3d": ("n5555", lambda x: F.max_pool3d(x, 2)),
    "mantissas": ("n5nn", lambda x: torch.frexp(x)[0]),
    "exponents": ("n5nn", lambda x: torch.frexp(x)[1]),
    "neighbours": ("n5nn", lambda x: torch.nextafter(x, -x)),
}


@pytest.mark.parametrize("name", OF_MANY_SIZES)
def test_one_program_for_many_sizes(name):
    sizes, function = OF_MANY_SIZES[name]
    _C._forget_eager_programs()
    before = eager.programs()
    for size in (6, 10, 12, 16, 8, 14, 22):
        x = draw(*(size if letter == "n" else 5 for letter in sizes))
        poison()
        actual, expected = native(function, x), function(x)
        if "norm" in name:
            exact = function(x.double())
            # Sums of up to 484 squares, in fp32.
            assert_within(actual, exact, 2.0**-17 * exact.abs().max(), f"{size}")
        else:
            assert_same(actual, expected, f"{size}")
    none = eager.Programs()
    for operator, found in eager.programs().items():
        known = before.get(operator, none)
        one_size = found.one_size - known.one_size
        refusals = operator, eager.size_refusals()
        assert one_size <= 2, refusals
        assert found.many_sizes - known.many_sizes == (one_size > 0), refusals
