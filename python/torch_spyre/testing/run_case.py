# SPDX-License-Identifier: Apache-2.0
"""One case on the device and on the CPU, or its time without data."""

from __future__ import annotations

import contextlib
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import nn

from torch_spyre.testing import operators
from torch_spyre.testing.descriptors import Case, TensorInput

#: From best to worst; an ``invalid`` case fails on the CPU, too.
KINDS = ("right", "predicted", "fallback", "wrong", "error", "invalid", "skipped")
FAILING = ("wrong", "error", "invalid")


@dataclass
class Result:
    """How a case ran."""

    model: str
    name: str
    op: str
    place: str
    kind: str
    #: The reason, if the kind is not ``right``.
    why: str = ""
    #: Operators that ran on the CPU, and how often.
    fallbacks: dict[str, int] = field(default_factory=dict)
    #: Of the second call on this host, compilation excluded.
    host_seconds: float = 0.0
    #: Of the first call, compilation included.
    compile_seconds: float = 0.0
    #: By the device model, kernels alone.
    predicted_seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """As an object of the report."""
        return asdict(self)


class _Call(nn.Module):
    """An operator as a module, as the reference compiles it."""

    def __init__(self, case: Case, keywords: dict[str, Any]) -> None:
        super().__init__()
        op = operators.find(case.op, keywords)
        assert op is not None, case.op
        self.op = op
        self.keywords = operators.prepare(op, keywords)

    def forward(self, *args: Any) -> Any:
        """The call."""
        return self.op.function(*args, **self.keywords)


def _values(spec: TensorInput, seed: int | None) -> torch.Tensor:
    args, shape, dtype = dict(spec.init_args), spec.shape, spec.dtype
    low, high = int(args.get("low", 0)), int(args.get("high", 1))
    with torch.random.fork_rng(devices=[]):
        if seed is not None:
            torch.manual_seed((seed + spec.shift) % 2**63)
        if spec.init in ("rand", "randint"):
            # Nothing lies in [n, n); the tensor is full of n then.
            if low == high or (not dtype.is_floating_point and high - low == 1):
                return torch.full(shape, low, dtype=dtype)
            return torch.testing.make_tensor(
                shape, dtype=dtype, device="cpu", low=low, high=high
            )
        if spec.init == "xavier":
            made = torch.empty(shape, dtype=torch.float32)
            return nn.init.xavier_uniform_(made).to(dtype)
        if spec.init == "randn":
            return torch.randn(shape).to(dtype)
    if spec.init == "arange":
        return torch.arange(shape[0]).to(dtype)
    if spec.init == "eye":
        return torch.eye(*shape, dtype=torch.float32).to(dtype)
    number = args["fill_value"] if spec.init == "full" else float(spec.init == "ones")
    return torch.full(shape, number, dtype=torch.float64).to(dtype)


def _is_dense(spec: TensorInput) -> bool:
    """Whether a tensor fills its storage, each element once."""
    if spec.storage_offset:
        return False
    if spec.stride is None:
        return True
    expected = 1
    for stride, size in sorted(zip(spec.stride, spec.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _make(spec: TensorInput, seed: int | None, device: str) -> list[torch.Tensor]:
    """A tensor on the CPU and its copy on the device, with the strides of the case.

    Inputs are rounded as the device stores them, so that the CPU computes with what
    the device has: otherwise a sum that cancels or a tie in a sort would be wrong.
    """
    values = _values(spec, seed)
    if _is_dense(spec):
        if spec.stride is not None:
            dense = torch.empty_strided(spec.shape, spec.stride, dtype=spec.dtype)
            values = dense.copy_(values)
        there = values.to(device)
        return [values.copy_(there.cpu()), there]
    stride = spec.stride if spec.stride is not None else values.stride()
    last = sum((n - 1) * s for n, s in zip(spec.shape, stride, strict=True) if n > 1)
    size = spec.storage_offset + (last + 1 if values.numel() else 0)
    base = torch.zeros(size, dtype=spec.dtype)
    if values.numel():
        # Where several elements share a place, any of them is a value for it.
        places = torch.arange(size).as_strided(spec.shape, stride, spec.storage_offset)
        base[places.reshape(-1)] = values.reshape(-1)
    moved = base.to(device)
    return [
        storage.as_strided(spec.shape, stride, spec.storage_offset)
        for storage in (moved.cpu(), moved)
    ]


def make_arguments(
    inputs: Sequence[Any], seed: int | None, device: str
) -> tuple[list[Any], list[Any]]:
    """Arguments for the CPU and for the device, equal in value and strides."""
    host: list[Any] = []
    there: list[Any] = []
    for value in inputs:
        if isinstance(value, TensorInput):
            a, b = _make(value, seed, device)
        elif isinstance(value, tuple) and any(
            isinstance(v, TensorInput) for v in value
        ):
            pairs = [_make(v, seed, device) for v in value]
            a, b = [p[0] for p in pairs], [p[1] for p in pairs]  # type: ignore
        else:
            a = b = value
        host.append(a)
        there.append(b)
    return host, there


def _keywords(case: Case, device: str, replace: bool) -> dict[str, Any]:
    given = case.keywords
    named = given.get("device")
    if isinstance(named, str) and (replace or not named.startswith("cuda")):
        kind = named.split(":")[0]
        given["device"] = device if kind in ("cuda", "spyre") else named
    return given


def compare(
    expected: Any,
    actual: Any,
    rtol: float,
    atol: float,
    on: str,
    has_values: bool = True,
) -> None:
    """Raises AssertionError unless results agree, and tensors lie on a device.

    Without ``has_values``, sizes and dtypes alone have to agree.
    """
    if isinstance(expected, torch.Tensor):
        assert isinstance(actual, torch.Tensor), f"no tensor but {type(actual)}"
        assert actual.device.type == on, f"the result is on {actual.device}, not {on}"
        found = actual.cpu()
        if not has_values:
            same = found.shape == expected.shape and found.dtype == expected.dtype
            assert same, f"expected {expected.shape}, {expected.dtype}, found {found}"
            return
        torch.testing.assert_close(
            found, expected, rtol=rtol, atol=atol, equal_nan=True
        )
    elif isinstance(expected, (tuple, list)):
        assert len(expected) == len(actual), f"{len(actual)} results"
        for e, a in zip(expected, actual, strict=True):
            compare(e, a, rtol, atol, on, has_values)
    else:
        same = expected == actual or (expected != expected and actual != actual)
        assert same, f"expected {expected!r}, found {actual!r}"


#: Operators whose last result is positions in their first argument -> where their
#: dimension is among their arguments.
_DIMENSION_AT = {
    **dict.fromkeys(("topk", "kthvalue"), 2),
    **dict.fromkeys(("sort", "argsort", "max", "min", "median", "mode"), 1),
    **dict.fromkeys(("argmax", "argmin"), 1),
}


def _gives_positions(case: Case, result: Any) -> bool:
    """Whether the (last) result is positions, of which equal elements can have others.

    Which of equal elements comes first, PyTorch leaves open unless it is asked for
    ``stable``.
    """
    name = case.op.rpartition(".")[2]
    is_alone = isinstance(result, torch.Tensor)
    is_open = name in _DIMENSION_AT and not case.keywords.get("stable")
    return is_open and is_alone == name.startswith("arg")


def _as_elements(case: Case, source: torch.Tensor, result: Any) -> tuple[Any, ...]:
    """The result on the CPU, with the elements that its positions name.

    Last is how many positions are there twice.
    """
    name = case.op.rpartition(".")[2]
    place = _DIMENSION_AT[name]
    given = case.inputs[place] if len(case.inputs) > place else None
    dim = case.keywords.get("dim", given)
    if dim is None and name not in ("argmax", "argmin"):
        dim = -1
    *values, positions = [result] if isinstance(result, torch.Tensor) else result
    positions = positions.cpu()
    if dim is None:
        return (source.reshape(-1)[positions],)
    if positions.dim() < source.dim():
        positions = positions.unsqueeze(dim)
    elements = torch.take_along_dim(source, positions, dim)
    repeats = positions.sort(dim).values.diff(dim=dim).eq(0).sum()
    return *(v.cpu() for v in values), elements, repeats


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    # The report counts fallbacks and names what is refused.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:6])}"[:600]


def _result(case: Case, kind: str, why: str = "", **more: Any) -> Result:
    place = f"{case.file}:{case.line}"
    return Result(case.model, case.name, case.op, place, kind, why, **more)


def run(
    case: Case, backend: str = "inductor", device: str = "spyre", replace: bool = True
) -> Result:
    """Runs a case compiled on the device and eagerly on the CPU, and compares."""
    from torch_spyre import _C

    with _quiet(), torch.no_grad():
        try:
            host, there = make_arguments(case.inputs, case.seed, device)
            call = _Call(case, _keywords(case, "cpu", True))
            expected = call(*host)
        except Exception as error:
            return _result(case, "invalid", f"on the CPU: {_first_line(error)}")
        try:
            again = _again(case, there)
            _C.reset_fallback_report()
            torch._dynamo.reset()
            module = _Call(case, _keywords(case, device, replace)).to(device)
            function = torch.compile(module, backend=backend, dynamic=False)
            started = time.perf_counter()
            actual = function(*there)
            torch.spyre.synchronize()
            first = time.perf_counter() - started
            fallbacks = {str(k): int(v) for k, v in _C.fallback_report().items()}
            on = device if _lands_on_device(case, host) else "cpu"
            is_known = not call.op.is_random
            is_open = is_known and _gives_positions(case, expected)
            compare(
                expected, actual, case.rtol, case.atol, on, is_known and not is_open
            )
            if is_open:
                pair = [_as_elements(case, host[0], r) for r in (expected, actual)]
                compare(*pair, case.rtol, case.atol, "cpu")
            if call.op.is_inplace and host and is_known:
                compare(host[0], there[0], case.rtol, case.atol, device)
            with torch.spyre.profiler.profile() as profile:
                started = time.perf_counter()
                function(*again)
                torch.spyre.synchronize()
                second = time.perf_counter() - started
        except AssertionError as error:
            return _result(case, "wrong", _first_line(error))
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f" ({frame.name} in {frame.filename.rpartition('/')[2]})"
            return _result(case, "error", _first_line(error) + where)
        finally:
            torch._dynamo.reset()
    kind = "fallback" if fallbacks else "right"
    predicted = sum(k.predicted_seconds for k in profile.kernels)
    why = ", ".join(f"{n} of {op}" for op, n in fallbacks.items())
    return _result(
        case,
        kind,
        f"on the CPU: {why}" if why else "",
        fallbacks=fallbacks,
        host_seconds=second,
        compile_seconds=first,
        predicted_seconds=predicted,
    )


def _again(case: Case, there: list[Any]) -> list[Any]:
    """Arguments of a second call: an operator in place has changed its first."""
    op = operators.find(case.op, case.keywords)
    assert op is not None
    if not op.is_inplace or not there or not isinstance(there[0], torch.Tensor):
        return there
    device = make_arguments(case.inputs, case.seed, "spyre")[1]
    return [device[0], *there[1:]]


def _lands_on_device(case: Case, host: list[Any]) -> bool:
    """Whether results have to be on the device: by its inputs, or by ``device``."""
    named = case.keywords.get("device")
    if case.op.endswith(".cpu") or named == "cpu":
        return False
    if case.op == "torch.Tensor.to" and len(host) > 1 and host[1] == "cpu":
        return False
    if named is not None:
        return True
    flat = [t for v in host for t in (v if isinstance(v, list) else [v])]
    return any(isinstance(t, torch.Tensor) for t in flat)


# --- without data --------------------------------------------------------------


def predict(case: Case) -> Result:
    """The device model's time of a case, of any size: no tensor is allocated."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    from torch_spyre.decompositions.table import decompositions
    from torch_spyre.predict import parts, simulate
    from torch_spyre.predict.trace import TracedStep

    def fake(spec: TensorInput) -> torch.Tensor:
        if spec.stride is None:
            return torch.empty(spec.shape, dtype=spec.dtype, device="spyre")
        return torch.empty_strided(
            spec.shape, spec.stride, dtype=spec.dtype, device="spyre"
        )

    started = time.perf_counter()
    call = _Call(case, _keywords(case, "spyre", True))
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with _quiet():
        try:
            with mode, torch.no_grad():
                args = [
                    fake(v)
                    if isinstance(v, TensorInput)
                    else [fake(t) for t in v]
                    if isinstance(v, tuple) and v and isinstance(v[0], TensorInput)
                    else v
                    for v in case.inputs
                ]
                tensors, rebuild = torch.utils._pytree.tree_flatten(args)
                gm = make_fx(
                    torch.func.functionalize(
                        lambda *flat: call(*rebuild.unflatten(flat)),
                        remove="mutations",
                    ),
                    decomposition_table=decompositions(),
                    _allow_non_fake_inputs=True,
                )(*tensors)
            for node in gm.graph.nodes:
                if node.op == "get_attr":
                    node.meta["val"] = getattr(gm, node.target)
            program = parts.compile_step(TracedStep(gm, {}), {})
            seconds = 0.0
            for step in program.calls:
                report = simulate.simulate(step.graph.print_ktir())
                seconds += sum(k["predicted_seconds"] for k in report["kernels"])
        except Exception as error:
            return _result(case, "error", _first_line(error))
    on_host: dict[str, int] = {}
    for _, name in program.on_host:
        on_host[name] = on_host.get(name, 0) + 1
    return _result(
        case,
        "fallback" if on_host else "predicted",
        f"no program computes {', '.join(on_host)}" if on_host else "",
        fallbacks=on_host,
        compile_seconds=time.perf_counter() - started,
        predicted_seconds=seconds,
    )
