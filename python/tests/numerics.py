# SPDX-License-Identifier: Apache-2.0
"""Rounding and tolerances of spec/numerics.md, without the project's code."""

import functools
import math

import numpy as np
import torch
import torch_spyre
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch_spyre import _C

#: Whole numbers up to here are exact on the host and on the device: fp16 is
#: DL16 there, with nine fraction bits; bf16 has seven here. Integers beyond
#: 2^24 would not pass through fp32.
LARGEST_EXACT = {
    torch.float16: 1 << 10,
    torch.bfloat16: 1 << 8,
    torch.float32: 1 << 20,
    torch.int32: 1 << 20,
    torch.int64: 1 << 20,
    torch.bool: 1,
}
#: Fraction bits of what the device stores for a torch dtype.
FRACTION_BITS = {torch.float16: 9, torch.bfloat16: 9, torch.float32: 23}


def round_dl16(values):
    """Any floating tensor rounded to DL16 through fp32, in its own dtype."""
    wide = values.detach().to(torch.float32).contiguous()
    # In place, as references round much.
    rounded = wide.view(torch.int32) & 0x7FFFFFFF
    # Half away from zero at the ninth fraction bit.
    rounded.add_(1 << 13).bitwise_and_(~((1 << 14) - 1))
    result = rounded.view(torch.float32)
    # 0x0001 is the smallest code, (1 + 1/512) 2^-31; 0x7FFE the largest.
    result.masked_fill_(result < (1 + 2.0**-9) * 2.0**-31, 0.0)
    result.masked_fill_(result > (2 - 2.0**-8) * 2.0**32, torch.inf)
    result.copysign_(wide).masked_fill_(wide.isnan(), torch.inf)
    return result.to(values.dtype)


def round_format(values, dtype):
    """Values as the device stores a tensor of a torch dtype."""
    if dtype in (torch.float16, torch.bfloat16):
        return round_dl16(values)
    if dtype == torch.float32:
        return values.to(torch.float32).to(values.dtype)
    return values


def device_value(tensor):
    """What the device holds for a host tensor, floating values as fp64."""
    if tensor.is_floating_point():
        return round_format(tensor.double(), tensor.dtype)
    return tensor


def on_host(values, dtype):
    """Stored values (fp64) as they come back to the host."""
    if dtype == torch.float16:
        # 65536 returns as the largest fp16.
        values = torch.where(values.abs() == 65536, values.sign() * 65504, values)
    return values.to(dtype)


def unit(reference, dtype):
    """The unit in the last place of the device format at fp64 values."""
    magnitude = reference.abs().clamp(
        min=2.0**-31 if dtype != torch.float32 else 2**-126
    )
    magnitude = torch.where(magnitude.isfinite(), magnitude, 1.0)
    exponent = torch.floor(torch.log2(magnitude))
    return torch.exp2(exponent - FRACTION_BITS[dtype])


def host_error(reference, dtype):
    """What the way to the host rounds off: bf16's two bits, fp16 subnormals."""
    if dtype == torch.bfloat16:
        return 2.0**-8 * (1 + 2.0**-8) * reference.abs()
    return 2.0**-25 if dtype == torch.float16 else 0.0


def assert_exact(actual, expected, what=""):
    """Equal values and metadata; zeros may differ in sign."""
    assert actual.dtype == expected.dtype, what
    assert actual.shape == expected.shape, what
    same = actual == expected
    if actual.is_floating_point() and not same.all():
        same |= actual.isnan() & expected.isnan()
    if not same.all():
        bad = (~same).nonzero()
        at = tuple(bad[0].tolist())
        raise AssertionError(
            f"{what}: {len(bad)} of {actual.numel()} values differ, first at "
            f"{list(at)}: {actual[at].item()!r}, not {expected[at].item()!r}"
        )


def assert_rounded(actual, exact, what=""):
    """Bit-equal to the fp32 (or fp64) result rounded once to the format."""
    assert_exact(actual, on_host(round_format(exact, actual.dtype), actual.dtype), what)


def assert_within(actual, reference, bound, what=""):
    """Each value within its bound of the fp64 reference; infinities agree."""
    assert actual.shape == reference.shape, (
        f"{what}: {tuple(actual.shape)}, not {tuple(reference.shape)}"
    )
    largest = {torch.float16: 65520.0, torch.bfloat16: 2.0**33, torch.float32: 3.4e38}
    limit = largest[actual.dtype]
    wide = actual.double()
    finite = reference.abs() < limit
    # A NaN is stored as the non-number: it returns as +inf from 16-bit formats.
    special = reference
    if actual.dtype != torch.float32:
        special = torch.where(reference.isnan(), torch.inf, special)
    special = torch.where(special.abs() >= limit, special.sign() * torch.inf, special)
    error = (wide - reference).abs()
    good = torch.where(
        finite,
        error <= bound + host_error(reference, actual.dtype),
        (wide == special) | (wide.isnan() & special.isnan()),
    )
    # A bound that reaches over the largest value allows infinity.
    good |= finite & (reference.abs() + bound >= limit) & wide.isinf()
    if not good.all():
        bad = (~good).nonzero()
        at = tuple(bad[0].tolist())
        allowed = torch.as_tensor(bound).expand(reference.shape)[at].item()
        raise AssertionError(
            f"{what}: {len(bad)} of {actual.numel()} values out of bounds, first at "
            f"{list(at)}: {wide[at].item()!r}, reference {reference[at].item()!r}, "
            f"error {error[at].item():.3g} > {allowed:.3g}"
        )


def assert_units(actual, reference, units, what=""):
    """Within ``units`` in the last place of the device format."""
    assert_within(actual, reference, units * unit(reference, actual.dtype), what)


def contraction_bound(reference, terms, sum_of_abs, dtype):
    """Of a sum of ``terms`` products or values accumulated in fp32."""
    relative = 2.0 ** -(FRACTION_BITS[dtype] + 1)
    return relative * reference.abs() + terms * 2.0**-24 * sum_of_abs


def assert_contraction(actual, reference, terms, sum_of_abs, what=""):
    bound = contraction_bound(reference, terms, sum_of_abs, actual.dtype)
    assert_within(actual, reference, bound, what)


class RoundEveryOp(TorchDispatchMode):
    """Runs CPU operators in fp64 and rounds every floating result to DL16."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace != "aten":
            # A custom operator: what its kernel calls comes here too.
            keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
            with self:
                return func.redispatch(keys, *args, **(kwargs or {}))
        results = func(*args, **(kwargs or {}))

        def round_result(value):
            if (
                isinstance(value, torch.Tensor)
                and value.is_floating_point()
                and not value._is_zerotensor()  # has no memory
            ):
                stored = round_dl16(value)
                if not torch.equal(stored, value):
                    value.copy_(stored)
            return value

        return tree_map(round_result, results)


def oracle(function, *arguments):
    """``function`` with fp64 CPU arguments, rounded after every operator."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH), RoundEveryOp():
            return function(*arguments)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def rms(values):
    values = values.detach().double()
    return math.sqrt(values.square().mean().item()) if values.numel() else 0.0


def assert_like_oracle(actual, reference, oracle_result, what=""):
    """RMS error against fp64 at most twice the oracle's."""
    assert actual.shape == reference.shape, what
    own = rms(actual.double() - reference)
    allowed = 2 * rms(oracle_result.double() - reference)
    assert np.isfinite(own) and own <= allowed, (
        f"{what}: RMS error {own:.4g}, twice the oracle's is {allowed:.4g}, "
        f"values have RMS {rms(reference):.4g}"
    )


def to_device(value):
    return tree_map(
        lambda v: v.to("spyre") if isinstance(v, torch.Tensor) else v, value
    )


def to_host(value):
    return tree_map(
        lambda v: v.detach().cpu() if isinstance(v, torch.Tensor) else v, value
    )


def compiled(function, **options):
    """``function`` compiled for spyre from an empty Dynamo cache."""
    torch._dynamo.reset()
    options.setdefault("dynamic", False)
    return torch.compile(function, backend="spyre", **options)


def poison():
    """Makes sure that the memory that comes next was freed: conftest poisons it."""
    blocks = [torch.empty(1 << 15, device="spyre") for _ in range(16)]
    torch.spyre.synchronize()
    del blocks
    torch.spyre.synchronize()


@functools.cache
def _copying(dtype, sizes, strides, layout):
    """A program that copies the elements of a storage, and no padding."""
    builder = _C.GraphBuilder()
    value, target = (
        builder.add_argument(n, dtype, sizes, strides, layout) for n in ("x", "y")
    )
    copied = builder.op(
        "aten.clone.default", [_C.ValueId(value)], {}, [(dtype, sizes, strides)], []
    )
    builder.mutate(target, copied[0], [])
    builder.set_outputs([])
    return _C.compile_graph(builder, {})


def poisoned(tensor):
    """A device tensor like another one, on a storage with poisoned padding."""
    _, _, sizes, strides, layout, dtype = _C.tensor_info(tensor)
    copy = _C.empty_with_layout(sizes, strides, dtype, layout, device=tensor.device)
    _copying(dtype, tuple(sizes), tuple(strides), layout).run([tensor, copy], [])
    return copy.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def run_all(operations, arguments):
    """Name -> result on the host, of functions compiled together.

    ``arguments`` are on the device; what is computed from them sees poisoned
    padding and lands in poisoned memory. If the whole does not compile or run,
    the error names the functions that fail alone.
    """
    poison()
    arguments = [poisoned(a) for a in arguments]

    def together(*args):
        return tuple(f(*args) for f in operations.values())

    try:
        results = to_host(compiled(together)(*arguments))
    except Exception as error:
        failing = {}
        for name, function in operations.items():
            try:
                to_host(compiled(function)(*arguments))
            except Exception as single:
                failing[name] = f"{type(single).__name__}: {str(single)[:400]}"
        raise AssertionError(f"failing alone: {failing}") from error
    report = torch_spyre.fallback_report()
    assert report == {}, f"ran on the CPU: {report}"
    return dict(zip(operations, results, strict=True))


def check_all(operations, arguments):
    """Runs name -> (function, check) together; reports every failing one.

    A check is called with the result on the host and the name.
    """
    results = run_all({n: f for n, (f, _) in operations.items()}, arguments)
    failures = []
    for name, (_, check) in operations.items():
        try:
            check(results[name], name)
        except AssertionError as error:
            failures.append(str(error))
    assert not failures, "\n".join(failures)
