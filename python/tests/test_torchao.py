# SPDX-License-Identifier: Apache-2.0
"""torchao's quantized linears, where torchao is installed (0.18 fits torch 2.13)."""

import pytest
import torch
from inputs import values
from numerics import assert_within, compiled, device_value

try:
    import torchao
    from torchao import quantization
except ImportError:
    torchao = None

HALF, BFLOAT = torch.float16, torch.bfloat16
aten = torch.ops.aten
pytestmark = [
    pytest.mark.usefixtures("no_fallback"),
    pytest.mark.skipif(torchao is None, reason="torchao is not installed"),
]


def linear(columns, width, dtype, bias=True):
    layer = torch.nn.Linear(width, columns, bias=bias, dtype=dtype)
    with torch.no_grad():
        layer.weight.copy_(values((columns, width), dtype, 1, -0.5, 0.5))
        if bias:
            layer.bias.copy_(values((columns,), dtype, 2))
    return layer.requires_grad_(False)


def both(layer, x):
    """Eager and compiled results of a layer on the device."""
    eager = layer(x)
    graph = compiled(layer, fullgraph=True)(x)
    return eager.cpu(), graph.cpu()


@pytest.mark.parametrize("granularity", ["PerRow", "PerTensor", "PerGroup"])
@pytest.mark.parametrize("on_device", [False, True])
def test_int8_weights(granularity, on_device):
    """The weight as it is dequantized, whether torchao quantized it here or there."""
    kind = getattr(quantization, granularity)
    config = quantization.Int8WeightOnlyConfig(
        granularity=kind(64) if granularity == "PerGroup" else kind()
    )
    layer = linear(130, 192, HALF)
    x = values((2, 33, 192), HALF)
    if on_device:
        layer = layer.to("spyre")
    quantization.quantize_(layer, config)
    weight = layer.weight.dequantize(torch.float32).cpu().double()
    bias = device_value(layer.bias.cpu())
    layer = layer.to("spyre")
    reference = device_value(x) @ weight.t() + bias
    magnitude = device_value(x).abs() @ weight.abs().t() + bias.abs()
    for result in both(layer, x.to("spyre")):
        # The product, its scale and the bias are operators of their own, which round.
        assert_within(result, reference, 4 * 2.0**-10 * magnitude)


def test_int8_activations():
    """Products of int8 with int32 sums, as on the CPU."""
    layer = linear(96, 256, HALF)
    x = values((65, 256), HALF)
    quantization.quantize_(layer, quantization.Int8DynamicActivationInt8WeightConfig())
    expected = layer(x).double()
    magnitude = device_value(x).abs() @ layer.weight.dequantize().double().abs().t()
    layer = layer.to("spyre")
    for result in both(layer, x.to("spyre")):
        # A value between two steps of the activation's scale may go either way.
        assert_within(result, expected, 2.0**-7 * magnitude)


@pytest.mark.parametrize("group", [32, 128])
def test_int4_weights(group):
    """A tile-packed weight, whose words the device packs."""
    workflows = pytest.importorskip("torchao.quantization.quantize_.workflows")
    columns, width = 96, 1024
    numbers = torch.randint(
        0, 16, (columns, width), generator=torch.Generator().manual_seed(0)
    ).to(torch.int32)
    pairs = (numbers[:, ::2] << 4 | numbers[:, 1::2]).to(torch.uint8)
    scales = values((width // group, columns, 2), BFLOAT, 3, 0.01, 0.1)
    layer = linear(columns, width, BFLOAT).to("spyre")
    packed = workflows.Int4TilePackedTo4dTensor(
        aten._convert_weight_to_int4pack(pairs.to("spyre"), 8),
        scales.to("spyre"),
        [1, group],
        torch.Size([columns, width]),
    )
    layer.weight = torch.nn.Parameter(packed, requires_grad=False)
    stored = device_value(scales)
    scale, zero = (stored[..., i].t().repeat_interleave(group, 1) for i in range(2))
    weight = (numbers.double() - 8) * scale + zero
    x = values((2, 5, width), BFLOAT)
    bias = device_value(layer.bias.cpu())
    reference = device_value(x) @ weight.t() + bias
    magnitude = device_value(x).abs() @ weight.abs().t() + bias.abs()
    for result in both(layer, x.to("spyre")):
        # The weight, the product and the sum with the bias are rounded.
        assert_within(result, reference, 3 * 2.0**-10 * magnitude)


def test_int4_numbers_in_int8():
    """IntxWeightOnlyConfig keeps 4-bit numbers in int8 and dequantizes them."""
    config = quantization.IntxWeightOnlyConfig(
        weight_dtype=torch.int4, granularity=quantization.PerGroup(32)
    )
    layer = linear(64, 128, HALF)
    x = values((17, 128), HALF)
    quantization.quantize_(layer, config)
    weight = layer.weight.dequantize().double()
    bias = device_value(layer.bias)
    layer = layer.to("spyre")
    reference = device_value(x) @ weight.t() + bias
    magnitude = device_value(x).abs() @ weight.abs().t() + bias.abs()
    for result in both(layer, x.to("spyre")):
        assert_within(result, reference, 3 * 2.0**-10 * magnitude)
