# SPDX-License-Identifier: Apache-2.0
"""Every operator of the ATen table at extents of 1, alone and between others.

No pass may fail on a graph that the table imports: a refusal by a verifier or by a
pass is a defect of the compiler, and the operator would run on the CPU.
``SPYRE_EXTENTS=all`` takes all shapes and types for each operator, instead of some.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from extent_samples import BOOL, F16, F32, I64, SHAPES, make, samples
from numerics import compiled, device_value, unit
from torch.utils._pytree import tree_map
from torch_spyre import _C
from torch_spyre.frontend import cache

aten = torch.ops.aten
ALL = os.environ.get("SPYRE_EXTENTS") == "all"
#: How to compile: SuperDSC is one option.
OPTIONS: dict[str, Any] = {}
if os.environ.get("SPYRE_EXECUTE") == "superdsc":
    OPTIONS = {"through_superdsc": True}

#: Of dtypes that nothing else has: test_integer_products.py and test_scaled_matmul.py
#: have extents of 1 among their sizes.
NARROW = ("_int_mm", "_scaled_mm", "_weight_int4pack_mm", "_weight_int8pack_mm")
OPERATORS = [n for n in _C.list_supported_ops() if n.split(".")[1] not in NARROW]
#: What the CPU has no kernel of: the sizes of the results.
DESCRIBED = {
    "aten._scaled_dot_product_fused_attention_overrideable.default": (
        lambda q, k, v, *rest, **more: (
            torch.empty(*q.shape[:3], v.shape[-1], dtype=q.dtype),
            torch.empty(q.shape[:3]),
        )
    ),
    "aten._scaled_dot_product_fused_attention_overrideable_backward.default": (
        lambda g, q, k, v, *rest, **more: (q.clone(), k.clone(), v.clone(), None)
    ),
    "aten._fused_rms_norm_backward.default": (
        lambda g, x, sizes, rstd, weight, mask: (x.clone(), weight.clone())
    ),
}
#: Operator -> units in the last place, terms of sums; 4 and 5000 for others.
BOUNDS = {
    # Weights are rounded.
    "aten.scaled_dot_product_attention.default": (4, 2**16),
    "aten._scaled_dot_product_fused_attention_overrideable.default": (4, 2**16),
    # Rounds its factors, too.
    "aten._transformer_encoder_layer_fwd.default": (64, 2**18),
    "aten._log_softmax_backward_data.default": (4, 2**17),
    "aten._softmax_backward_data.default": (8, 2**14),
}


@dataclass(frozen=True)
class Value:
    """A tensor of a program, or on the device; the host's tensor is like it."""

    held: Any
    host: torch.Tensor


class Program:
    """Operators of the table in one graph."""

    def __init__(self, **options: Any) -> None:
        self.options = {**OPTIONS, **options}
        self.builder = _C.GraphBuilder()
        self.storages: list[torch.Tensor] = []

    def input(self, tensor: torch.Tensor, host: torch.Tensor) -> Value:
        _, _, sizes, strides, layout, dtype = _C.tensor_info(tensor)
        name = f"x{len(self.storages)}"
        home = self.builder.add_argument(name, dtype, sizes, strides, layout)
        self.storages.append(tensor)
        view = self.builder.view(home, list(tensor.shape), list(tensor.stride()), 0, [])
        return Value(_C.ValueId(view), host)

    def host(self, host: torch.Tensor) -> Value:
        return self.input(host.to("spyre"), host)

    def call(self, op: Any, args: Any, kwargs: Any) -> list[Value | None]:
        found = on_host(op, *tree_map(_host_of, (args, kwargs)))
        specs = [
            (e.dtype, list(e.shape), list(e.stride()))
            if isinstance(e, torch.Tensor)
            else None
            for e in found
        ]

        def convert(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return [convert(v) for v in value]
            if isinstance(value, Value):
                return value.held
            if isinstance(value, (torch.dtype, torch.layout)):
                return str(value).removeprefix("torch.")
            return value

        ids = self.builder.op(
            str(op),
            convert(args),
            {k: convert(v) for k, v in kwargs.items()},
            specs,
            [],
        )
        return [
            Value(_C.ValueId(i), e) if isinstance(e, torch.Tensor) else None
            for i, e in zip(ids, found, strict=True)
        ]

    def run(self, results: list[Value]) -> list[torch.Tensor]:
        infos = self.builder.set_outputs([v.held.id for v in results])
        graph = cache.load_or_compile(self.builder, self.options)
        outputs = [
            _C.empty_with_layout(sizes, strides, dtype, layout)
            for dtype, sizes, strides, layout in graph.outputs
        ]
        graph.run(self.storages, outputs)
        return [
            outputs[info.root].as_strided(info.sizes, info.strides, info.offset)
            if info.root >= 0
            else self.storages[-1 - info.root].as_strided(
                info.sizes, info.strides, info.offset
            )
            for info in infos
        ]


class OneByOne:
    """The same operators, each as a program of its own."""

    def host(self, host: torch.Tensor) -> Value:
        return Value(host.to("spyre"), host)

    def call(self, op: Any, args: Any, kwargs: Any) -> list[Value | None]:
        program = Program()
        args, kwargs = tree_map(
            lambda v: program.input(v.held, v.host) if isinstance(v, Value) else v,
            (args, kwargs),
        )
        results = program.call(op, args, kwargs)
        tensors = iter(program.run([r for r in results if r is not None]))
        return [None if r is None else Value(next(tensors), r.host) for r in results]

    def run(self, results: list[Value]) -> list[torch.Tensor]:
        return [value.held for value in results]


def _host_of(value: Any) -> Any:
    return value.host if isinstance(value, Value) else value


def on_host(op: Any, args: Any, kwargs: Any) -> list[Any]:
    found = DESCRIBED.get(str(op), op)(*args, **kwargs)
    return list(found) if isinstance(found, (list, tuple)) else [found]


# --- contexts ------------------------------------------------------------------


def before(machine: Any, kind: str, value: Value) -> list[Value]:
    """What an operator reads in place of an argument; more results follow it."""
    host = value.host
    if kind == "alone" or host.dtype == I64 or host.numel() == 0:
        return [value]
    if host.dtype == BOOL:
        other = machine.host(torch.zeros([1] * min(host.dim(), 1), dtype=BOOL))
        return machine.call(aten.logical_or.default, (value, other), {})
    if kind == "norm" and host.dim() > 0:
        args = (value, [host.shape[-1]], None, None, 1e-5)
        return machine.call(aten.native_layer_norm.default, args, {})
    if kind == "product" and host.dim() > 0:
        extent = host.shape[-1]
        factor = machine.host(make((extent, extent), host.dtype, "", 5) / extent)
        return machine.call(aten.matmul.default, (value, factor), {})
    other = machine.host(torch.zeros([1] * min(host.dim(), 1), dtype=host.dtype))
    return machine.call(aten.add.Tensor, (value, other), {})


def after(machine: Any, kind: str, value: Value) -> list[Value]:
    """The results of operators that read a result, which is one as well."""
    host = value.host
    if kind == "alone" or host.numel() == 0:
        return [value]
    if not host.is_floating_point():
        (read,) = machine.call(aten.mul.Tensor, (value, 1.5), {})
        value, host = read, read.host
    if kind == "norm":
        (read,) = machine.call(aten._softmax.default, (value, -1, False), {})
    elif kind == "product" and host.dim() > 0:
        factor = machine.host(make((host.shape[-1], 3), host.dtype, "", 6))
        (read,) = machine.call(aten.matmul.default, (value, factor), {})
    else:
        (total,) = machine.call(aten.sum.dim_IntList, (value, [-1], True), {})
        (read,) = machine.call(aten.sub.Tensor, (value, total), {})
    return [value, read]


def evaluate(
    machine: Any, op: Any, args: Any, kwargs: Any, kind: str
) -> list[torch.Tensor]:
    kept: list[Value] = []

    def argument(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        first, *more = before(machine, kind, machine.host(value))
        kept.extend(more)
        return first

    results = machine.call(op, *tree_map(argument, (args, kwargs)))
    for result in results:
        if result is not None:
            kept.extend(after(machine, kind, result))
    return [tensor.cpu() for tensor in machine.run(kept)]


# --- checks --------------------------------------------------------------------


def reference(op: Any, args: Any, kwargs: Any) -> list[Any]:
    """From what the device holds, in fp64."""

    def wide(value: Any) -> Any:
        if isinstance(value, torch.dtype) and value.is_floating_point:
            return torch.float64
        return device_value(value) if isinstance(value, torch.Tensor) else value

    return on_host(op, *tree_map(wide, (args, kwargs)))


def assert_near(actual: torch.Tensor, want: torch.Tensor, name: str) -> None:
    """Integers are equal, floats within the operator's bound."""
    assert actual.shape == want.shape
    if not actual.is_floating_point():
        assert torch.equal(actual, want.to(actual.dtype)), "exact values differ"
        return
    units, terms = BOUNDS.get(name, (4, 5000))
    want = want.double()
    finite = want.abs() < 65504
    largest = want[finite].abs().max().item() if finite.any() else 0.0
    bound = units * unit(want, actual.dtype)
    bound += terms * 2.0**-24 * max(1.0, largest) + 2.0**-25
    error = (actual.double() - want).abs()
    # There is no NaN in 16 bits.
    same = (actual.double() == want) | (want.isnan() & ~actual.isfinite())
    good = torch.where(finite, error <= bound, same)
    assert good.all(), f"{actual[~good][:3].tolist()}, not {want[~good][:3].tolist()}"


def check_values(op: Any, args: Any, kwargs: Any, found: list[torch.Tensor]) -> None:
    if str(op) in DESCRIBED or "empty" in str(op):
        return
    exact = [e for e in reference(op, args, kwargs) if isinstance(e, torch.Tensor)]
    for actual, want in zip(found, exact, strict=True):
        assert_near(actual, want, str(op))


def describe(args: Any) -> str:
    return str(
        tree_map(
            lambda v: (
                f"{v.dtype}{list(v.shape)}".removeprefix("torch.")
                if isinstance(v, torch.Tensor)
                else v
            ),
            args,
        )
    )


KINDS = ["alone", "sum", "norm", "product"]


def check_call(op: Any, args: Any, kwargs: Any, kinds: list[str]) -> list[str]:
    """What is wrong with one call, in each context."""
    wrong = []
    for kind in kinds:
        try:
            found = evaluate(Program(), op, args, kwargs, kind)
            if kind == "alone":
                check_values(op, args, kwargs, found)
            else:
                # The same bits, but for sums of tensors that a graph lays out
                # otherwise.
                single = evaluate(OneByOne(), op, args, kwargs, kind)
                for actual, want in zip(found, single, strict=True):
                    assert_near(actual, want, str(op))
        except _C.UnsupportedOp as error:
            # The table may refuse, but not because of a rule of the dialect.
            if "spyre_graph" in str(error):
                wrong.append(f"{kind}: refused by a verifier: {error}")
            elif kind == "alone":
                break
        except (_C.SpyreError, AssertionError, RuntimeError) as error:
            wrong.append(f"{kind}: {type(error).__name__}: {str(error)[:600]}")
        if wrong and kind == "alone":
            break
    what = f"{op}{describe(args)} {describe(kwargs) if kwargs else ''}"
    return [f"{what}: {text}" for text in wrong]


def is_valid(op: Any, args: Any, kwargs: Any) -> bool:
    """Whether PyTorch takes a call."""
    try:
        on_host(op, *tree_map(lambda v: v, (args, kwargs)))
        return True
    except (RuntimeError, IndexError, TypeError, NotImplementedError):
        return False


def choices(number: int) -> Iterator[tuple[tuple, torch.dtype, int, list[str]]]:
    """Shapes, types, numbers of calls and contexts for an operator."""
    if ALL:
        for shape in SHAPES:
            for dtype in [F16, F32, I64, BOOL]:
                yield shape, dtype, 1000, KINDS
        return
    others = SHAPES[1:]
    turn = number % 3
    yield SHAPES[0], F16, 2, ["alone", KINDS[1 + turn]]
    yield SHAPES[0], [F32, I64, BOOL][turn], 1, ["alone"]
    yield others[number % len(others)], [I64, F16, F32][turn], 1, KINDS[1 + turn :][:1]


@pytest.mark.parametrize("name", OPERATORS)
def test_operator(name: str) -> None:
    namespace, packet, overload = name.split(".")
    op = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    checked = 0
    wrong: list[str] = []
    # Some operators, as shifts, take integers alone.
    integers = (SHAPES[0], I64, 1, ["alone"])
    for shape, dtype, limit, kinds in [*choices(OPERATORS.index(name)), integers]:
        if checked and (shape, dtype, limit, kinds) == integers:
            continue
        calls = [c for c in samples(op, shape, dtype) if is_valid(op, *c)]
        # From the end to the beginning alike.
        for args, kwargs in calls[:: max(len(calls) // limit, 1)][:limit]:
            checked += 1
            wrong += check_call(op, args, kwargs, kinds)
    assert checked, f"no arguments for {name}"
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize("shape", [(130, 1, 1), (1, 2, 1, 63), (3, 1, 65), (5, 63)])
@pytest.mark.parametrize(
    "name", ["gather.default", "scatter.src", "scatter.value", "index_select.default"]
)
def test_indices_through_superdsc(name: str, shape: tuple[int, ...]) -> None:
    """Bundles that are written are read back, and say the same."""
    packet, overload = name.split(".")
    op = getattr(getattr(aten, packet), overload)
    for args, kwargs in samples(op, shape, F16):
        program = Program(through_superdsc=True)
        check_values(op, args, kwargs, evaluate(program, op, args, kwargs, "alone"))


class Block(torch.nn.Module):
    """A pre-norm block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = (torch.nn.LayerNorm(width) for _ in range(2))
        self.attention = torch.nn.MultiheadAttention(width, heads, batch_first=True)
        self.up = torch.nn.Linear(width, 2 * width)
        self.down = torch.nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))


@pytest.mark.parametrize("how", ["eager", "compiled"])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("width", [192, 63])
def test_block_of_one_row(
    how: str, training: bool, width: int, no_fallback: None
) -> None:
    torch.manual_seed(1)
    host = Block(width, 3).half().train(training)
    device = Block(width, 3).half().train(training)
    device.load_state_dict(host.state_dict())
    device = device.to("spyre")
    x = make((1, 1, width), F16)
    run = compiled(device) if how == "compiled" else device
    with torch.set_grad_enabled(training):
        actual = run(x.to("spyre"))
        if training:
            actual.sum().backward()
    wide = host.double()
    exact = wide(x.double())
    assert (actual.detach().cpu().double() - exact).abs().max() < 0.03
    if training:
        exact.sum().backward()
        for (name, own), other in zip(
            device.named_parameters(), wide.parameters(), strict=True
        ):
            error = (own.grad.cpu().double() - other.grad).abs().max()
            assert error <= 0.03 * max(1.0, other.grad.abs().max()), name
