# SPDX-License-Identifier: Apache-2.0
"""Rows of the ATen table for single operations: compiled and run, against fp64."""

import pytest
import torch
from aten_rows import BOOL, F16, F32, I64, aten, check, ints, randn, run
from numerics import assert_exact, assert_units, device_value
from torch_spyre import _C

UNARY = [
    "abs neg exp expm1 sin cos tan tanh erf sigmoid relu silu floor ceil round trunc",
    "sign square gelu softplus reciprocal isnan isinf isfinite logical_not hardtanh",
    "leaky_relu relu6",
]


@pytest.mark.parametrize("name", " ".join(UNARY).split())
@pytest.mark.parametrize("dtype", [F16, F32])
def test_unary(name, dtype):
    op = getattr(aten, name).default
    check(op, randn(3, 70, dtype=dtype), units=4)
    check(op, randn(5, dtype=dtype), units=4)


@pytest.mark.parametrize("name", ["log", "log2", "log1p", "sqrt", "rsqrt"])
@pytest.mark.parametrize("dtype", [F16, F32])
def test_unary_positive(name, dtype):
    check(getattr(aten, name).default, randn(3, 70, dtype=dtype).abs() + 0.1, units=8)


@pytest.mark.parametrize(
    "name", ["abs", "neg", "sign", "square", "relu", "exp", "sqrt", "bitwise_not"]
)
def test_unary_integers(name):
    x = ints(4, 33, low=0, high=9)
    check(getattr(aten, name).default, x, units=4)
    if name not in ("exp", "sqrt"):
        check(getattr(aten, name).default, ints(4, 33, dtype=torch.int32))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum"])
@pytest.mark.parametrize("dtype", [F16, F32])
def test_binary(name, dtype):
    op = getattr(aten, name)
    op = op.Tensor if "Tensor" in op.overloads() else op.default
    x, y = randn(5, 1, 70, dtype=dtype), randn(4, 70, dtype=dtype) + 3
    check(op, x, y)
    check(op, x, randn(dtype=dtype))
    check(op, x, torch.ones(5, 3, 1, dtype=dtype))
    check(op, randn(3, 0, dtype=dtype), randn(1, dtype=dtype))


def test_alpha_and_scalars():
    x, y = randn(5, 70), randn(70)
    check(aten.add.Tensor, x, y, alpha=2.5)
    check(aten.sub.Tensor, x, y, alpha=-3)
    check(aten.add.Tensor, x, 1.5)
    check(aten.rsub.Scalar, x, 2)
    check(aten.mul.Tensor, x, 0.3)
    check(aten.div.Tensor, x, 3.0)
    check(aten.add.Tensor, ints(5, 7), ints(7), alpha=3)
    check(aten.mul.Tensor, ints(5, 7), 2.5)
    check(aten.add.Tensor, ints(5, 7), randn(5, 7))
    check(aten.add.Tensor, x > 0, y > 0)
    check(aten.mul.Tensor, x > 0, y)
    check(aten.add.Tensor, x > 0, 2)
    check(aten.addcmul.default, x, y, x, value=0.5, units=3)
    check(aten.addcdiv.default, x, y, x.abs() + 1, value=0.5, units=3)
    check(aten.lerp.Scalar, x, y, 0.25, units=3)


@pytest.mark.parametrize("dtype", [F16, F32])
def test_lerp_from_both_ends(dtype):
    """From a weight of 0.5 on, PyTorch begins at the end: that is then exact."""
    inf = float("inf")
    start = torch.tensor([1e4, 1.0, -inf, 2.0, 3.0], dtype=dtype)
    end = torch.tensor([1.0, 2.0, 3.0, -inf, 0.1], dtype=dtype)
    for weight in (0.0, 0.25, 0.5, 1.0, 3.0):
        exact = torch.lerp(device_value(start), device_value(end), weight)
        factors = torch.full((5,), weight, dtype=dtype)
        for op, given in (
            (aten.lerp.Scalar, weight),
            (aten.lerp.Tensor, factors),
            (aten.lerp.Tensor, factors[0].clone()),
        ):
            (actual,) = run(op, (start, end, given), {}).values()
            assert_units(actual, exact, 3, f"{op} {weight}")
            if weight == 1.0:
                assert_exact(actual[:2], end[:2])


@pytest.mark.parametrize("mode", ["floor", "trunc", None])
def test_division(mode):
    x, y = ints(5, 33), ints(33, low=1, high=5)
    check(aten.div.Tensor_mode, x, y, rounding_mode=mode)
    check(aten.div.Tensor_mode, x, -y, rounding_mode=mode)
    check(aten.div.Tensor_mode, randn(5, 33, dtype=F32), 0.7, rounding_mode=mode)


def test_integer_arithmetic():
    x, y = ints(5, 33), ints(33, low=1, high=5)
    check(aten.remainder.Tensor, x, -y)
    check(aten.remainder.Scalar, x, 4)
    check(aten.floor_divide.default, x, y)
    check(aten.pow.Tensor_Scalar, x, 2)
    check(aten.pow.Tensor_Scalar, x, 3)
    bytes_ = ints(5, 33, low=0, high=256, dtype=torch.uint8)
    check(aten.add.Tensor, bytes_, bytes_)
    check(aten.mul.Tensor, bytes_, 3)
    check(aten.neg.default, bytes_)
    check(aten.add.Tensor, ints(5, 33, low=100, high=127, dtype=torch.int8), 60)
    for op in (aten.bitwise_and, aten.bitwise_or, aten.bitwise_xor):
        check(op.Tensor, x, y)
        check(op.Tensor, x > 0, y > 2)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 0.5, -0.5, -1, -2, 2.5])
def test_pow(exponent):
    check(aten.pow.Tensor_Scalar, randn(3, 70).abs() + 0.5, exponent, units=4)


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparison(name):
    op = getattr(aten, name)
    x, y = randn(5, 70), randn(5, 70)
    y[:, ::2] = x[:, ::2]
    check(op.Tensor, x, y)
    check(op.Scalar, ints(5, 33), 2)
    check(op.Scalar, ints(5, 33), 1.5)
    check(op.Scalar, x > 0, 2)
    check(op.Tensor, ints(5, 33), ints(33))


def test_logic_and_selection():
    x, y = randn(5, 70), randn(5, 70)
    for name in ("logical_and", "logical_or", "logical_xor"):
        check(getattr(aten, name).default, x > 0, y > 0)
        check(getattr(aten, name).default, x, ints(5, 70))
    check(aten.where.self, x > 0, x, y)
    check(aten.where.ScalarOther, x > 0, x, -1.0)
    check(aten.masked_fill.Scalar, x, y > 0, -float("inf"))
    check(aten.masked_fill.Scalar, ints(5, 70), y > 0, 3)
    check(aten.masked_fill.Tensor, x, y > 0, torch.tensor(2.0))
    check(aten.clamp.default, x, -0.5, 0.5)
    check(aten.clamp.default, x, None, 0.5)
    check(aten.clamp.default, ints(5, 7), -2, 3)
    check(aten.clamp.Tensor, x, y, y + 1)
    check(aten.clamp_min.default, x, 0.25)


@pytest.mark.parametrize(
    "source", [F16, F32, torch.bfloat16, BOOL, torch.uint8, torch.int32, I64]
)
@pytest.mark.parametrize(
    "target", [F16, F32, torch.bfloat16, BOOL, torch.uint8, torch.int32, I64]
)
def test_conversion(source, target):
    x = ints(4, 70, low=0, high=100).to(source)
    check(aten._to_copy.default, x, dtype=target)


REDUCTIONS = [
    ([0], False),
    ([1], True),
    ([-1], False),
    ([0, 2], True),
    ([0, 1, 2], False),
]


@pytest.mark.parametrize("dims,keep", REDUCTIONS)
@pytest.mark.parametrize("dtype", [F16, F32])
def test_reductions(dims, keep, dtype):
    x = randn(3, 5, 70, dtype=dtype)
    check(aten.sum.dim_IntList, x, dims, keep, terms=1050)
    check(aten.mean.dim, x, dims, keep, terms=1050)
    check(aten.amax.default, x, dims, keep, units=0)
    check(aten.amin.default, x, dims, keep, units=0)
    check(aten.var.correction, x, dims, keepdim=keep, terms=1050)
    check(aten.any.dims, x > 1, dims, keep)
    check(aten.all.dims, x > -1, dims, keep)
    check(aten.linalg_vector_norm.default, x, 2, dims, keep, terms=1050)
    check(aten.var_mean.correction, x, dims, correction=0, keepdim=keep, terms=1050)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_indices_of_extrema(dim):
    x = randn(3, 5, 70)
    check(aten.argmax.default, x, dim)
    check(aten.argmin.default, x, dim, True)
    check(aten.max.dim, x, dim)
    check(aten.min.dim, x, dim, True)
    check(aten.cumsum.default, x, dim, units=4, terms=100)


@pytest.mark.parametrize("dtype", [F16, F32, I64, torch.int32])
@pytest.mark.parametrize(
    ("shape", "dim", "k"),
    [((13, 200), -1, 3), ((7, 65), 0, 7), ((4, 1, 63), 1, 1), ((1,), 0, 1), ((), 0, 1)],
)
def test_topk(shape, dim, k, dtype):
    """Ties are many: values by PyTorch, places by their values and distinct."""
    x = ints(*shape, dtype=dtype)
    for largest in [True, False]:
        actual = run(aten.topk.default, (x, k, dim, largest), {})
        assert_exact(actual[0], x.topk(k, dim, largest)[0])
        if x.dim():
            assert_exact(x.gather(dim, actual[1]), actual[0])
            # The first of equal ones comes first.
            keys = -x if largest else x
            assert_exact(
                actual[1], keys.sort(dim=dim, stable=True)[1].narrow(dim, 0, k)
            )


def test_topk_of_nan():
    x = torch.tensor([1.0, torch.nan, torch.inf, -2.0, torch.nan], dtype=F32)
    actual = run(aten.topk.default, (x, 4), {})
    assert actual[0].isnan().tolist() == [True, True, False, False]
    assert actual[0][2:].tolist() == [torch.inf, 1.0]
    assert actual[1].tolist() == [1, 4, 2, 0]
    actual = run(aten.topk.default, (x, 4, 0, False), {})
    assert actual[0][:3].tolist() == [-2.0, 1.0, torch.inf]
    assert actual[0][3:].isnan().all()
    assert actual[1].tolist() == [3, 0, 2, 1]


def test_topk_of_many():
    actual = run(aten.topk.default, (torch.zeros(100, dtype=F32), 65), {})
    assert actual[0].tolist() == [0.0] * 65
    assert actual[1].tolist() == list(range(65))


def test_full_reductions():
    x = randn(4, 70, dtype=F32)
    check(aten.sum.default, x, terms=300)
    check(aten.mean.default, x, terms=300)
    check(aten.max.default, x)
    check(aten.min.default, x)
    check(aten.argmax.default, x)
    check(aten.any.default, x > 5)
    check(aten.prod.default, randn(9, dtype=F32), units=16)
    check(aten.sum.default, ints(4, 33))
    check(aten.sum.default, x > 0)
    check(aten.sum.default, ints(4, 33, dtype=torch.int32))
    check(aten.sum.dim_IntList, x > 0, [1])
    check(aten.mean.dim, ints(4, 33), [1], dtype=F32)
    check(aten.sum.default, randn(3, 0))
    check(aten.sum.default, randn())
    check(aten.max.default, x > 0)
    check(aten.any.default, ints(5, 33, low=0, dtype=torch.uint8))
    check(aten.all.dim, ints(5, 33, low=0, dtype=torch.uint8), 1)


def test_matmul():
    a, b, c = randn(7, 96), randn(96, 40), randn(40)
    check(aten.mm.default, a, b, terms=2000)
    check(aten.mm.default, a.t().contiguous().t(), b, terms=2000)
    check(aten.addmm.default, c, a, b, terms=2000)
    check(aten.addmm.default, c, a, b, beta=0.5, alpha=2, terms=2000)
    check(aten.bmm.default, randn(3, 7, 65), randn(3, 65, 33), terms=2000)
    check(
        aten.baddbmm.default,
        randn(3, 7, 33),
        randn(3, 7, 65),
        randn(3, 65, 33),
        terms=2000,
    )
    check(aten.linear.default, randn(2, 7, 96), randn(40, 96), c, terms=2000)
    check(aten.mv.default, a, randn(96), terms=2000)
    check(aten.dot.default, randn(96), randn(96), terms=2000)
    check(aten.addmv.default, randn(7), a, randn(96), terms=2000)
    check(aten.mm.default, randn(7, 1), randn(1, 5), terms=1)
    check(aten.mm.default, randn(7, 0), randn(0, 5), terms=1)
    check(aten.mm.default, randn(7, 33, dtype=F32), randn(33, 5, dtype=F32), terms=999)


def test_movement():
    x, y = randn(3, 70), randn(3, 5)
    check(aten.cat.default, [x, y, x], 1)
    check(aten.cat.default, [x, randn(2, 70), randn(0)], 0)
    check(aten.cat.default, [ints(3, 5), ints(3, 2)], -1)
    check(aten.stack.default, [x, x + 1], 1)
    check(aten.stack.default, [x, x + 1], -1)
    check(aten.constant_pad_nd.default, x, [1, 2, 0, 3], 1.5)
    check(aten.constant_pad_nd.default, x, [-1, 2])
    check(aten.constant_pad_nd.default, x, [-3, -4])
    check(aten.slice_scatter.default, x, y, 1, 3, 8)
    check(aten.slice_scatter.default, x, y, 1, 3, 13, 2)
    check(aten.select_scatter.default, x, randn(3), 1, 4)
    check(aten.select_scatter.default, x, randn(70), 0, -1)
    check(aten.repeat.default, y, [2, 1, 3])
    check(aten.clone.default, x.t())
    check(aten.copy.default, x, randn(70))


def test_creation():
    x = randn(3, 70)
    check(aten.tril.default, x)
    check(aten.triu.default, x, 2)
    check(aten.tril.default, randn(2, 5, 5), -1)
    check(aten.full_like.default, x, 2.5)
    check(aten.zeros_like.default, x)
    check(aten.full.default, [3, 5], 7)
    check(aten.full.default, [3, 5], True)
    check(aten.ones.default, [70], dtype=F16)
    check(aten.arange.start_step, 2, 20, 3)
    check(aten.arange.start_step, 0.5, 3, 0.25, dtype=F32)
    check(aten.scalar_tensor.default, 3.5)
    check(aten.new_zeros.default, x, [4, 4])


def test_indexing():
    table, index = randn(50, 70), ints(2, 6, low=0, high=50)
    check(aten.embedding.default, table, index, units=0)
    check(aten.index_select.default, table, 0, index[0], units=0)
    check(aten.index.Tensor, table, [index[0] - 50], units=0)
    check(aten.index.Tensor, table, [index], units=0)
    check(aten.index.Tensor, randn(4, 50, 70), [None, index[0]], units=0)
    check(aten.gather.default, table, 0, ints(4, 70, low=0, high=50), units=0)
    check(
        aten.index_copy.default, table, 0, torch.tensor([3, 9]), randn(2, 70), units=0
    )
    check(aten.index_put.default, table, [torch.tensor([3, -9])], randn(2, 70), units=0)
    check(aten.index_put.default, table, [torch.tensor([3, 9])], randn(1), units=0)
    check(aten.index.Tensor, table, [index[0], torch.tensor([2])], units=0)


def test_indices_into_scalars():
    x, zero, zeros = randn(), torch.tensor(0), torch.tensor([0, 0, 0])
    for index in (zero, zeros[:1], zeros, zeros[:0]):
        check(aten.gather.default, x, 0, index, units=0)
        check(aten.take.default, x, index, units=0)
    for index, source in ((zero, randn()), (zeros[:1], randn(1))):
        check(aten.scatter.src, x, 0, index, source, units=0)
        check(aten.scatter.value, x, 0, index, 2.0, units=0)


def test_gather_nothing():
    """The index may have any rank."""
    check(aten.gather.default, randn(5), 0, ints(2, 0), units=0)
    check(aten.gather.default, randn(2, 3), 1, ints(0), units=0)


def test_take():
    for x in (randn(65), randn(2, 63), randn(3, 1, 65).transpose(0, 2)):
        index = torch.tensor([[0, -1, 62], [5, -x.numel(), x.numel() - 1]])
        check(aten.take.default, x, index, units=0)
        check(aten.take.default, x, index[0, 1], units=0)


def test_gather_along_the_stick():
    check(aten.gather.default, randn(50, 70), 1, ints(50, 9, low=0, high=70), units=0)
    check(
        aten.index_select.default, randn(50, 70), 1, torch.tensor([5, 0, 69]), units=0
    )


@pytest.mark.parametrize("dtype", [F16, F32])
def test_softmax_and_norms(dtype):
    x, w, b = (
        randn(5, 100, dtype=dtype),
        randn(100, dtype=dtype),
        randn(100, dtype=dtype),
    )
    # Rounding of each exponential and of the quotient.
    check(aten._softmax.default, x, 1, False, units=4)
    check(aten._softmax.default, x, 0, False, units=4)
    check(aten._log_softmax.default, x, -1, False, units=4)
    check(aten.native_layer_norm.default, x, [100], w, b, 1e-5, units=4, terms=100)
    check(
        aten.native_layer_norm.default,
        x,
        [5, 100],
        None,
        None,
        1e-5,
        units=4,
        wanted=[0],
        terms=100,
    )
    check(aten._fused_rms_norm.default, x, [100], w, 1e-5, units=4, wanted=[0], terms=9)
    check(aten._softmax.default, randn(dtype=dtype), -1, False)


def test_backward():
    g, x = randn(5, 100), randn(5, 100) * 2
    check(aten.sigmoid_backward.default, g, torch.sigmoid(x), units=3)
    check(aten.tanh_backward.default, g, torch.tanh(x), units=3, terms=99)
    check(aten.silu_backward.default, g, x, units=3, terms=99)
    check(aten.gelu_backward.default, g, x, units=3, terms=99)
    check(aten.gelu_backward.default, g, x, approximate="tanh", units=3, terms=99)
    check(aten.threshold_backward.default, g, x, 0)
    check(aten.softplus_backward.default, g, x, 1, 20, units=3)
    check(aten.leaky_relu_backward.default, g, x, 0.1, False)
    y = torch.softmax(x, -1)
    check(
        aten._softmax_backward_data.default,
        g,
        y,
        -1,
        F16,
        units=3,
        terms=999,
        reference=lambda g, y, d, t: (g - (g * y).sum(-1, True)) * y,
    )
    y = torch.log_softmax(x, -1)
    check(
        aten._log_softmax_backward_data.default,
        g,
        y,
        -1,
        F16,
        terms=2**17,
        reference=lambda g, y, d, t: g - y.exp() * g.sum(-1, True),
    )
    check(aten.mse_loss.default, g, x, terms=99)
    check(aten.mse_loss_backward.default, randn(), g, x, 1, units=3)


def test_refuses():
    x = randn(4, 5)
    for op, args in [
        (aten.linalg_vector_norm.default, (x, 3)),
        (aten.index.Tensor, (x, [x > 0])),
    ]:
        with pytest.raises(_C.UnsupportedOp):
            run(op, args, {})
    with pytest.raises(_C.UnsupportedOp, match="no such operator"):
        run(aten.erfinv.default, (x,), {})
