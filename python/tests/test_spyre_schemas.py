# SPDX-License-Identifier: Apache-2.0
"""``torch.ops.spyre.*`` as PyTorch sees them: schemas, fake tensors, gradients."""

import pytest
import torch
from inputs import values
from numerics import compiled
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

spyre = torch.ops.spyre
HALF = torch.float16

#: As the sheet lists them: the parameters after the first tensors, with defaults.
SCHEMAS = {
    "softplus": "(Tensor x, float beta=1., float threshold=20.) -> Tensor",
    "gelu": '(Tensor x, str approximate="none") -> Tensor',
    "silu": "(Tensor x) -> Tensor",
    "clamp": "(Tensor x, Scalar? min=None, Scalar? max=None) -> Tensor",
    "layer_norm": "(Tensor x, SymInt[] normalized_shape, Tensor? weight=None, "
    "Tensor? bias=None, float eps=1.0000000000000001e-05) -> Tensor",
    "rms_norm": "(Tensor x, SymInt[] shape, Tensor? weight=None, "
    "float eps=1.0000000000000001e-05) -> Tensor",
    "exx2": "(Tensor x, float exx2Scale, bool useZeroMean) -> Tensor",
    "layernormscale": "(Tensor x, float eps) -> Tensor",
    "layernormnorm": "(Tensor x, Tensor mean, Tensor norm_mean, Tensor? weight=None, "
    "Tensor? bias=None) -> Tensor",
    "topkvalue": "(Tensor x, SymInt k, int dim) -> Tensor",
    "topkindex": "(Tensor x, SymInt k, int dim) -> Tensor",
    "logical_not": "(Tensor x) -> Tensor",
    "empty": "(SymInt[] size, Device device, ScalarType? dtype=None) -> Tensor",
    "copy_from_d2d": "(Tensor src, Tensor(a!) dst) -> ()",
    "overwrite": "(Tensor input, Tensor(a!) output, int[] dims, SymInt[] offsets) "
    "-> ()",
    "overwrite_f": "(Tensor input, Tensor output, int[] dims, SymInt[] offsets) "
    "-> Tensor",
    "restickify": "(Tensor x) -> Tensor",
    "batched_matmul": "(Tensor x, Tensor y) -> Tensor",
    "constant": "(Scalar value, ScalarType dtype, Device device) -> Scalar",
    "max_dim_int64_fallback": "(Tensor x, int dim, bool keepdim=False) "
    "-> (Tensor, Tensor)",
    "min_dim_int64_fallback": "(Tensor x, int dim, bool keepdim=False) "
    "-> (Tensor, Tensor)",
    "unfold": "(Tensor x, SymInt[] kernel_size, SymInt[]? dilation=None, "
    "SymInt[]? padding=None, SymInt[]? stride=None) -> Tensor",
    "reshape_via_cpu": "(Tensor x, SymInt[] shape) -> Tensor",
    "to_dtype_cpu": "(Tensor x, ScalarType dtype) -> Tensor",
    "qfp8ch": "(Tensor x) -> Tensor",
    "quantize_fp8_with_scale": "(Tensor x, Tensor scale) -> Tensor",
    "dequantize_fp8_with_scale": "(Tensor x, Tensor scale) -> Tensor",
    "quantize_weight_fp8_with_scale": "(Tensor x, Tensor scale) -> Tensor",
}


def test_schemas():
    for name, schema in SCHEMAS.items():
        assert str(getattr(spyre, name).default._schema) == f"spyre::{name}{schema}"


def as_list(results):
    return [results] if isinstance(results, torch.Tensor) else list(results)


def calls():
    """Each operator with a call of it: name -> (operator, arguments)."""
    x = values((5, 70), HALF).to("spyre").float()
    cube = values((2, 3, 6, 7), torch.float32).to("spyre")
    whole = values((4, 9), torch.int64).to("spyre")
    mean = spyre.exx2(x, 1 / 70, False)
    norm_mean = spyre.layernormscale(mean, 1e-5)
    scale = torch.full((1, 1), 0.5, dtype=HALF, device="spyre")
    arguments = {
        "softplus": (x,),
        "gelu": (x,),
        "silu": (x,),
        "clamp": (x, -1, 1),
        "layer_norm": (x, [70]),
        "rms_norm": (x, [70]),
        "exx2": (x, 1 / 70, False),
        "layernormscale": (mean, 1e-5),
        "layernormnorm": (x, mean, norm_mean),
        "topkvalue": (x, 2, 1),
        "topkindex": (x, 2, 1),
        "logical_not": (x,),
        "copy_from_d2d": (x, torch.zeros_like(x)),
        "overwrite": (x[:2], torch.zeros_like(x), [0], [1]),
        "overwrite_f": (x[:2], torch.zeros_like(x), [0], [1]),
        "restickify": (x,),
        "qfp8ch": (x,),
        "quantize_fp8_with_scale": (x, scale),
        "quantize_weight_fp8_with_scale": (x, scale),
        "dequantize_fp8_with_scale": (spyre.qfp8ch(x), scale),
        "batched_matmul": (x, x.t()),
        "unfold": (cube, [2, 3]),
        "max_dim_int64_fallback": (whole, 1),
        "min_dim_int64_fallback": (whole, 1),
        "reshape_via_cpu": (x, [70, 5]),
        "to_dtype_cpu": (whole, torch.int32),
    }
    return {name: (getattr(spyre, name).default, a) for name, a in arguments.items()}


#: Not there: they make no tensor, or one whose values nobody gave.
CHECKED = sorted(SCHEMAS.keys() - {"empty", "constant"})


@pytest.mark.filterwarnings("ignore::torch_spyre.ops.fallbacks.FallbackWarning")
@pytest.mark.parametrize("name", CHECKED)
def test_opcheck(name):
    op, arguments = calls()[name]
    torch._dynamo.reset()
    if name in ("layernormscale", "layernormnorm"):
        # The other checks give it copies of statistics, which it refuses.
        checks = ["test_schema", "test_autograd_registration"]
        torch.library.opcheck(op, arguments, test_utils=checks)
    elif name == "dequantize_fp8_with_scale":
        # The check of schemas compares float8 numbers, which PyTorch does not.
        checks = ["test_autograd_registration", "test_faketensor"]
        torch.library.opcheck(op, arguments, test_utils=checks)
    else:
        torch.library.opcheck(op, arguments)


@pytest.mark.filterwarnings("ignore::torch_spyre.ops.fallbacks.FallbackWarning")
@pytest.mark.parametrize("name", CHECKED)
def test_fake_tensors(name):
    """Shape, strides, dtype and device, without a kernel."""
    op, arguments = calls()[name]
    real = op(*arguments)
    with FakeTensorMode() as mode:
        fakes = torch.utils._pytree.tree_map_only(
            torch.Tensor, mode.from_tensor, arguments
        )
        made = op(*fakes)
    for fake, tensor in zip(
        as_list(made if made is not None else []),
        as_list(real if real is not None else []),
        strict=True,
    ):
        assert (fake.shape, fake.stride()) == (tensor.shape, tensor.stride())
        assert (fake.dtype, fake.device) == (tensor.dtype, tensor.device)


GRADIENTS = {
    "softplus": (lambda x: spyre.softplus(x, 2.0), lambda x: functional.softplus(x, 2)),
    "gelu": (spyre.gelu, functional.gelu),
    "silu": (spyre.silu, functional.silu),
    "clamp": (lambda x: spyre.clamp(x, -1, 2), lambda x: x.clamp(-1, 2)),
    "layer_norm": (
        lambda x: spyre.layer_norm(x, [13]),
        lambda x: functional.layer_norm(x, [13]),
    ),
    "rms_norm": (
        lambda x: spyre.rms_norm(x, [13]),
        lambda x: functional.rms_norm(x, [13], eps=1e-5),
    ),
    "topkvalue": (lambda x: spyre.topkvalue(x, 3, 1), lambda x: x.topk(3, 1)[0]),
    "batched_matmul": (lambda x: spyre.batched_matmul(x, x.t()), lambda x: x @ x.t()),
    "overwrite_f": (
        lambda x: spyre.overwrite_f(x[:2] * 3, x, [0], [4]),
        lambda x: torch.cat([x[:4], x[:2] * 3, x[6:]]),
    ),
    "copy_from_d2d": (
        lambda x: copied(spyre.copy_from_d2d, x * 2),
        lambda x: x * 2,
    ),
    "restickify": (spyre.restickify, lambda x: x),
    "unfold": (
        lambda x: spyre.unfold(x[None, None], [2, 3]),
        lambda x: functional.unfold(x[None, None], [2, 3]),
    ),
    "reshape_via_cpu": (lambda x: spyre.reshape_via_cpu(x, [13, 7]), None),
    "to_dtype_cpu": (lambda x: spyre.to_dtype_cpu(x, torch.bfloat16), lambda x: x),
    "max_dim_int64_fallback": (
        lambda x: spyre.max_dim_int64_fallback(x, 1)[0],
        lambda x: x.max(1)[0],
    ),
    "min_dim_int64_fallback": (
        lambda x: spyre.min_dim_int64_fallback(x, 0, True)[0],
        lambda x: x.min(0, True)[0],
    ),
}


def copied(copy, x):
    target = torch.zeros_like(x)
    copy(x, target)
    return target


@pytest.mark.filterwarnings("ignore::torch_spyre.ops.fallbacks.FallbackWarning")
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    on_spyre, on_cpu = GRADIENTS[name]
    on_cpu = on_cpu or (lambda x: x.reshape(13, 7))
    host = values((7, 13), torch.float32, 9)
    reference = host.double().requires_grad_()
    expected = on_cpu(reference)
    weight = values(expected.shape, torch.float32, 10)
    (expected * weight.double()).sum().backward()
    for function in (on_spyre, compiled(on_spyre)):
        device = host.to("spyre").requires_grad_()
        result = function(device)
        (result * weight.to("spyre")).sum().backward()
        error = (device.grad.cpu().double() - reference.grad).abs().max()
        # The gradient of a bf16 tensor is one, too: ten bits on the device.
        unit = 1e-5 if result.dtype == torch.float32 else 2.0**-10
        assert error < 2 * unit * (1 + reference.grad.abs().max()), error


@pytest.mark.parametrize("name", ["gelu", "exx2", "qfp8ch", "copy_from_d2d"])
def test_cpu_tensors(name):
    """What is for the device says so of others."""
    x = torch.ones(3, 5)
    arguments = {"exx2": (x, 0.2, False), "copy_from_d2d": (x, x.clone())}
    with pytest.raises(NotImplementedError, match=f"spyre::{name}.*(cpu|CPU)"):
        getattr(spyre, name)(*arguments.get(name, (x,)))


def test_unknown_approximation():
    with pytest.raises(RuntimeError, match="approximate"):
        spyre.gelu(torch.ones(3, device="spyre"), "fast")
