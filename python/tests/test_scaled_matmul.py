# SPDX-License-Identifier: Apache-2.0
"""Products of float8_e4m3fn with scales: docs/spec/drop-in.md, section 6.

Products of codes are exact, sums fp32, and the result is rounded once. The reference
is fp64; what PyTorch's own kernels on the CPU take is also compared with them.
"""

import re

import pytest
import torch
import torch.nn.functional as F
from inputs import values
from numerics import (
    assert_contraction,
    compiled,
    contraction_bound,
    device_value,
    poisoned,
)
from torch_spyre._inductor.errors import Unsupported
from torch_spyre.predict import predict_mlir

spyre = torch.ops.spyre
HALF, FLOAT, E4M3 = torch.float16, torch.float32, torch.float8_e4m3fn
ONE = torch.ones(())
pytestmark = pytest.mark.usefixtures("no_fallback")

SIZES = [(1, 16, 16), (63, 48, 17), (65, 130, 16), (3, 1, 5), (2, 200, 300), (7, 64, 1)]


def bits(tensor):
    return tensor.cpu().contiguous().view(torch.uint8)


def factors(m, k, n, seed=0):
    """Factors [m, k] by rows and [k, n] by columns, as PyTorch's users have them."""
    x = values((m, k), FLOAT, seed).to(E4M3)
    y = values((n, k), FLOAT, seed + 1).to(E4M3).t()
    return x, y


def both(function, *arguments):
    """Eager and compiled results, which have the same bits."""
    arguments = [a if a.dim() == 0 else poisoned(a) for a in arguments]
    eager = function(*arguments)
    graph = compiled(function, fullgraph=True)(*arguments)
    assert eager.dtype == graph.dtype
    assert torch.equal(bits(eager), bits(graph))
    return eager


def through_superdsc(function, *arguments):
    options = {"through_superdsc": True}
    return compiled(function, fullgraph=True, options=options)(*arguments)


def check(x, y, scale_a, scale_b, bias=None, out_dtype=HALF, way=both):
    """The product on the device, with all in fp64 as the reference."""
    hosts = [x, y, scale_a, scale_b, *([] if bias is None else [bias])]

    def multiply(x, y, scale_a, scale_b, bias=None):
        return torch._scaled_mm(x, y, scale_a, scale_b, bias, out_dtype=out_dtype)

    # The device sees the left and the right factor as they lie on the host.
    result = way(multiply, *[h.to("spyre") for h in hosts])
    assert result.dtype == out_dtype
    a, b = x.double(), y.double()
    scale = device_value(scale_a) * device_value(scale_b)
    magnitude = (a.abs() @ b.abs()) * scale
    reference = (a @ b) * scale
    if bias is not None:
        reference = reference + device_value(bias)
        magnitude = magnitude + device_value(bias).abs()
    # Two scales and a bias are rounded to fp32 beside the sum.
    assert_contraction(result.cpu(), reference, x.shape[-1] + 4, magnitude)
    return result


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("out_dtype", [HALF, torch.bfloat16, FLOAT], ids=str)
def test_one_scale_each(sizes, out_dtype):
    x, y = factors(*sizes)
    check(x, y, torch.tensor(0.3), torch.tensor([[2.0]]), out_dtype=out_dtype)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [HALF, FLOAT], ids=str)
def test_scales_by_row_and_column(sizes, dtype):
    m, k, n = sizes
    x, y = factors(m, k, n)
    rows = values((m, 1), dtype, 3, 0.01, 2.0)
    columns = values((1, n), dtype, 4, 0.01, 2.0)
    check(x, y, rows, columns)
    check(x, y, rows, ONE.to(dtype), values((n,), dtype, 5))
    check(x, y, ONE, columns, out_dtype=FLOAT)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [HALF, FLOAT], ids=str)
def test_through_superdsc(sizes, dtype):
    """The right factor goes through packed sticks; vectors through fp16."""
    m, k, n = sizes
    x, y = factors(m, k, n)
    rows = values((m, 1), dtype, 3, 0.01, 2.0)
    columns = values((1, n), dtype, 4, 0.01, 2.0)
    bias = values((n,), dtype, 5)
    check(x, y, rows, columns, bias, dtype, through_superdsc)


@pytest.mark.parametrize("rows", [False, True])
def test_against_pytorch(rows):
    """The CPU's kernel, from the same codes and scales, within fp32's rounding."""
    m, k, n = 33, 80, 48
    x, y = factors(m, k, n)
    scales = (
        (values((m, 1), FLOAT, 3, 0.1, 2.0), values((1, n), FLOAT, 4, 0.1, 2.0))
        if rows
        else (torch.tensor(0.25), torch.tensor(1.5))
    )
    bias = values((n,), FLOAT, 5)
    arguments = [x, y, *scales, bias]
    expected = torch._scaled_mm(*arguments, out_dtype=FLOAT)
    result = torch._scaled_mm(*[a.to("spyre") for a in arguments], out_dtype=FLOAT)
    magnitude = x.double().abs() @ y.double().abs() * (scales[0] * scales[1]).double()
    bound = contraction_bound(expected.double(), k + 4, magnitude + bias.abs(), FLOAT)
    assert ((result.cpu().double() - expected.double()).abs() <= 2 * bound).all()


@pytest.mark.parametrize("transposed", ["nn", "nt", "tn", "tt"])
def test_every_transposition(transposed):
    """The values do not depend on how the factors lie."""
    x, y = factors(65, 130, 67)
    expected = check(x, y, ONE, ONE, out_dtype=FLOAT)
    left = x if transposed[0] == "n" else x.t().contiguous().t()
    right = y.contiguous() if transposed[1] == "n" else y
    result = both(
        lambda a, b: torch._scaled_mm(
            a, b, ONE.to(a.device), ONE.to(a.device), out_dtype=FLOAT
        ),
        left.to("spyre"),
        right.to("spyre"),
    )
    assert torch.equal(result.cpu(), expected.cpu())


def test_slices():
    x, y = factors(70, 200, 90)
    device_x, device_y, one = x.to("spyre"), y.to("spyre"), ONE.to("spyre")
    result = both(
        lambda a, b, s: torch._scaled_mm(
            a[3:68, 5:150], b[5:150, 1:80], s, s, out_dtype=HALF
        ),
        device_x,
        device_y,
        one,
    )
    left, right = x[3:68, 5:150].double(), y[5:150, 1:80].double()
    assert_contraction(result.cpu(), left @ right, 145, left.abs() @ right.abs())


@pytest.mark.parametrize("sizes", [(2, 33, 130, 48), (1, 1, 16, 16), (3, 64, 512, 20)])
@pytest.mark.parametrize("batched", [False, True])
def test_batches_have_the_bits_of_matrices(sizes, batched):
    b, m, k, n = sizes
    x = values((b, m, k), FLOAT).to(E4M3).to("spyre")
    shape = (b, n, k) if batched else (n, k)
    y = values(shape, FLOAT, 1).to(E4M3).to("spyre").transpose(-1, -2)
    rows = values((b, m, 1), HALF, 2, 0.1, 2.0).to("spyre")
    columns = values((1, n), HALF, 3, 0.1, 2.0).to("spyre")
    bias = values((n,), HALF, 4).to("spyre")

    def multiply(x, y, rows):
        return torch._scaled_mm(x, y, rows, columns, bias, out_dtype=HALF)

    result = both(multiply, x, y, rows)
    assert result.shape == (b, m, n)
    for index in range(b):
        matrix = y[index] if batched else y
        single = multiply(x[index], matrix, rows[index])
        assert torch.equal(bits(result[index]), bits(single))
    if not batched:
        flat = multiply(x.reshape(b * m, k), y, rows.reshape(b * m, 1))
        assert torch.equal(bits(result), bits(flat.reshape(b, m, n)))


@pytest.mark.parametrize("with_scale", [False, True])
def test_float8_results(with_scale):
    """Rounded once from fp32, clamped, and divided by their own scale as on the CPU."""
    x, y = factors(9, 70, 33)
    scale = torch.tensor(3.0) if with_scale else None
    arguments = [x, y, torch.tensor(8.0), torch.tensor(0.5)]
    device = [a.to("spyre") for a in arguments]
    own = None if scale is None else scale.to("spyre")
    result = torch._scaled_mm(*device, scale_result=own, out_dtype=E4M3)
    exact = torch._scaled_mm(*device, out_dtype=FLOAT).cpu()
    expected = (exact / scale if with_scale else exact).clamp(-448, 448).to(E4M3)
    assert (exact.abs() > 448).any()
    assert torch.equal(bits(result), bits(expected))
    assert torch._scaled_mm(*device).dtype == E4M3


def test_every_product_of_codes():
    """All finite codes with each other: exact in fp32."""
    codes = torch.arange(256).to(torch.uint8).view(E4M3)
    codes = codes[~codes.float().isnan()]
    x, y = codes[:, None], codes[None, :]
    one = ONE.to("spyre")
    result = torch._scaled_mm(x.to("spyre"), y.to("spyre"), one, one, out_dtype=FLOAT)
    assert torch.equal(result.cpu(), x.float() @ y.float())


def test_nothing_to_add():
    x, y = factors(5, 0, 7)
    check(x, y, torch.tensor(2.0), ONE, values((7,), FLOAT))
    x, y = factors(0, 16, 7)
    assert check(x, y, ONE, ONE).shape == (0, 7)


def test_clients_linear():
    """Activations by token, weights by output channel, scales of fp16, in one graph."""
    tokens, width, columns = (2, 65), 256, 130
    x, weight = values((*tokens, width), HALF), values((columns, width), HALF, 1)
    bias = values((columns,), HALF, 2)

    def linear(x, weight, bias):
        row = x.abs().amax(-1, keepdim=True) / 448
        column = weight.abs().amax(-1, keepdim=True) / 448
        small = spyre.quantize_fp8_with_scale(x, row)
        packed = spyre.quantize_weight_fp8_with_scale(weight, column)
        return torch._scaled_mm(
            small, packed.t(), row, column.t(), bias, out_dtype=HALF
        )

    device = [t.to("spyre") for t in (x, weight, bias)]
    result = both(linear, *device)
    flat = linear(device[0].reshape(-1, width), *device[1:])
    assert torch.equal(bits(result), bits(flat.reshape(*tokens, columns)))
    exact = F.linear(device_value(x), device_value(weight), device_value(bias))
    # Each factor keeps four significant bits.
    magnitude = F.linear(device_value(x).abs(), device_value(weight).abs())
    assert ((result.cpu().double() - exact).abs() <= 2.0**-3.5 * magnitude).all()


def test_second_version():
    """torch.nn.functional.scaled_mm, by tensor and by row."""
    if not hasattr(F, "scaled_mm"):
        pytest.skip("this PyTorch has no torch.nn.functional.scaled_mm")
    x, y = (f.to("spyre") for f in factors(33, 64, 48))
    rows = values((33, 1), FLOAT, 1, 0.1, 2.0).to("spyre")
    columns = values((1, 48), FLOAT, 2, 0.1, 2.0).to("spyre")
    one = ONE.reshape(1).to("spyre")
    kinds = F.ScalingType
    by_row = both(
        lambda *a: F.scaled_mm(
            a[0], a[1], a[2], kinds.RowWise, a[3], kinds.RowWise, output_dtype=HALF
        ),
        x,
        y,
        rows,
        columns,
    )
    assert torch.equal(
        by_row.cpu(), torch._scaled_mm(x, y, rows, columns, out_dtype=HALF).cpu()
    )
    whole = F.scaled_mm(x, y, one, kinds.TensorWise, one, kinds.TensorWise)
    assert whole.dtype == torch.bfloat16
    with pytest.raises(Unsupported, match=r"scaling recipes .*TensorWise"):
        F.scaled_mm(x, y, one, kinds.BlockWise1x128, one, kinds.BlockWise128x128)


def test_fast_accumulation_changes_nothing():
    x, y = (f.to("spyre") for f in factors(5, 130, 17))
    one = ONE.to("spyre")
    plain = torch._scaled_mm(x, y, one, one, out_dtype=HALF)
    fast = torch._scaled_mm(x, y, one, one, out_dtype=HALF, use_fast_accum=True)
    assert torch.equal(plain.cpu(), fast.cpu())


X, Y = factors(5, 48, 17)
S = torch.ones
REFUSED = {
    "dtype": ((X.half(), Y, ONE, ONE), "both factors must be torch.float8_e4m3fn"),
    "e5m2": (
        (X.float().to(torch.float8_e5m2fnuz), Y, ONE, ONE),
        "_scaled_mm of torch.float8_e5m2fnuz",
    ),
    "sizes": ((X, Y[:40], ONE, ONE), "shapes [5, 48] and [40, 17], which do not match"),
    "dimensions": ((X[0], Y, ONE, ONE), "of 1 and 2 dimensions"),
    "rows": ((X, Y, S(4, 1), ONE), "scale_a of shape [4, 1]: expected one number, or"),
    "flat rows": ((X, Y, S(5), ONE), "one per row: [5, 1]"),
    "columns": ((X, Y, ONE, S(17, 1)), "scale_b of shape [17, 1]"),
    "scale dtype": ((X, Y, ONE.int(), ONE), "scale_a of torch.int32: expected"),
    "bias": ((X, Y, ONE, ONE, S(5)), "bias of shape [5]: expected [17]"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("compile_it", [False, True])
def test_refusals(case, compile_it):
    arguments, message = REFUSED[case]
    function = compiled(torch._scaled_mm) if compile_it else torch._scaled_mm
    with pytest.raises(RuntimeError, match=re.escape(message)):
        function(*[a.to("spyre") for a in arguments])


def test_refused_result_dtype():
    with pytest.raises(Unsupported, match=r"out_dtype=torch\.int32: expected"):
        torch._scaled_mm(
            X.to("spyre"),
            Y.to("spyre"),
            ONE.to("spyre"),
            ONE.to("spyre"),
            out_dtype=torch.int32,
        )


def predicted(element, result, tmp_path):
    """The kernel of a product of 2048 x 2048 matrices, whose factors lie as it wants."""
    file = tmp_path / f"{element}.mlir"
    formats = {"f16": "SEN169_FP16", "f8E4M3FN": "SEN143_FP8", "i8": "SENINT8"}
    factor = f"tensor<2048x2048x{element}, #l>"
    product = f"tensor<2048x2048x{result}>"
    file.write_text(
        f"""#l = #spyre_graph.layout<order = [0, 1], {formats[element]}>
        func.func @main(%x: {factor} {{spyre_graph.name = "x"}},
                        %y: {factor} {{spyre_graph.name = "y"}})
            -> ({product} {{spyre_graph.name = "out0"}}) {{
          %0 = tensor.empty() : {product}
          %r = spyre_graph.matmul ins(%x, %y : {factor}, {factor})
              outs(%0 : {product}) -> {product}
          return %r : {product}
        }}"""
    )
    phase = predict_mlir(str(file))["phases"]["program"]
    (kernel,) = phase["parts"][0]["kernels"]
    assert kernel["pt_macs"] == 2048**3
    return kernel


@pytest.mark.parametrize("narrow, result", [("f8E4M3FN", "f16"), ("i8", "i32")])
def test_half_the_work_of_fp16(narrow, result, tmp_path):
    """The matrix unit is busy for half as long (ptFP8Rate, ptInt8Rate)."""
    wide = predicted("f16", "f16", tmp_path)
    small = predicted(narrow, result, tmp_path)
    busy = [k["utilisation"]["pt"] * k["predicted_seconds"] for k in (small, wide)]
    assert busy[1] == pytest.approx(2048**3 / 32 / 1.1264e12, rel=1e-3)
    assert busy[0] == pytest.approx(busy[1] / 2, rel=1e-3)
    read = [k["bytes"]["device_memory"]["read"] for k in (small, wide)]
    assert read[0] == read[1] / 2
    assert small["predicted_seconds"] < 0.8 * wide["predicted_seconds"]
