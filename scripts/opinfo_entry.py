# SPDX-License-Identifier: Apache-2.0
"""How one entry of PyTorch's OpInfo database runs on the device.

``run_entry`` runs its samples forward or backward and classifies each; the
kinds are described in opinfo.py.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

KINDS = [
    "native",
    "kernel",
    "fallback",
    "format",
    "imprecise",
    "unsupported",
    "failing",
    "wrong",
]
#: Of samples that the rule of ``left_out`` leaves out, and of entries without others.
LEFT_OUT = "left out"


class Wrong(Exception):
    """A value, shape or dtype that is not the CPU's."""


class Imprecise(Exception):
    """Out of bounds by rounding only."""


def _map(function: Any, value: Any) -> Any:
    import torch
    from torch.utils._pytree import tree_map

    return tree_map(
        lambda v: function(v) if isinstance(v, (torch.Tensor, torch.dtype)) else v,
        value,
    )


def _widen(value: Any) -> Any:
    """fp16 tensors as the device holds them in fp64; fp16 becomes fp64."""
    import torch
    from numerics import device_value

    if isinstance(value, torch.dtype):
        return torch.float64 if value == torch.float16 else value
    if value.dtype in (torch.float16, torch.bfloat16):
        return device_value(value.detach())
    return value.detach().clone()


def _tensors(value: Any) -> list[Any]:
    import torch
    from torch.utils._pytree import tree_leaves

    return [v for v in tree_leaves(value) if isinstance(v, torch.Tensor)]


def _call(op: Any, sample: Any, convert: Any) -> Any:
    """Runs a sample off the device; its tensors converted, unless that is None."""
    import torch

    def within(value: Any) -> Any:
        return value if convert is None else _in_storage(value, convert)

    arguments, keywords = _map(within, (sample.args, sample.kwargs))
    if "device" in keywords:
        keywords["device"] = "cpu"
    arguments = ["cpu" if isinstance(a, torch.device) else a for a in arguments]
    return op(_map(within, sample.input), *arguments, **keywords)


def _call_on_device(op: Any, sample: Any) -> Any:
    import torch

    keywords = dict(sample.kwargs)
    if "device" in keywords:
        keywords["device"] = "spyre"
    arguments = ["spyre" if isinstance(a, torch.device) else a for a in sample.args]
    return op(sample.input, *arguments, **keywords)


def _compare(
    actual: Any, expected: Any, references: list[Any], oracle: Any, kinds: set[Any]
) -> None:
    """One tensor; ``references`` are acceptable results, exact ones first."""
    import torch
    from numerics import host_error, rms, unit

    if (actual.dtype, actual.shape) not in kinds:
        raise Wrong(
            f"{actual.dtype} {list(actual.shape)}, not {expected.dtype} "
            f"{list(expected.shape)}"
        )
    if not actual.is_floating_point() or actual.dtype == torch.float64:
        if not any(torch.equal(actual, r.to(actual.dtype)) for r in references):
            raise Wrong("values that are exact differ")
        return
    largest = {torch.float16: 65520.0, torch.bfloat16: 2.0**33}.get(
        actual.dtype, 3.4e38
    )
    worst = None
    for reference in references:
        wide, reference = actual.double(), reference.double()
        finite = reference.abs() < largest
        special = reference
        if actual.dtype != torch.float32:
            special = torch.where(reference.isnan(), torch.inf, special)
        special = torch.where(
            special.abs() >= largest, special.sign() * torch.inf, special
        )
        agree = (wide == special) | (wide.isnan() & special.isnan())
        error = torch.where(finite, (wide - reference).abs(), 0.0)
        bound = 4 * unit(reference, actual.dtype) + host_error(reference, actual.dtype)
        near = wide.isinf() & (reference.abs() * (1 + 2.0**-8) >= largest)
        good = torch.where(finite, (error <= bound) | near, agree)
        if good.all():
            return
        infinite = (~good & ~finite).any() or not torch.isfinite(error).all()
        scale = reference[finite].abs().max().item() if finite.any() else 0.0
        outside = float("inf") if infinite else error.max().item() / (scale or 1.0)
        if worst is None or outside < worst:
            worst = outside
        if oracle is not None and not infinite and finite.all():
            allowed = 2 * rms(oracle.double() - reference)
            if rms(wide - reference) <= allowed:
                return
    if worst <= 2.0**-6:
        raise Imprecise(f"largest error {worst:.2g} of the largest value")
    raise Wrong(f"largest error {worst:.2g} of the largest value")


def _in_storage(value: Any, convert: Any) -> Any:
    """Converts a tensor; a view keeps what lies around it in its storage."""
    import torch

    if isinstance(value, torch.dtype):
        return convert(value) if convert is _widen else value
    if value.layout != torch.strided:
        return convert(value)
    count = value.untyped_storage().nbytes() // value.element_size()
    if count == value.numel():
        return convert(value)
    whole = convert(value.as_strided((count,), (1,), 0))
    return whole.as_strided(value.shape, value.stride(), value.storage_offset())


#: Entries whose tensor arguments stay on the CPU on every device.
HOST_ARGUMENTS = {"tensor_split"}


def _watch(op: Any, sample: Any, backward: bool, look: Callable) -> None:
    """Calls ``look(operator, results)`` for all that the CPU runs for a sample."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            look(func, _tensors(result))
            return result

    with Watch():
        (_differentiate if backward else _forward)(op, sample, torch.clone)


def _differs(op: Any, sample: Any, seeds: range) -> bool:
    """Whether the CPU's result depends on the seed, also on one set inside."""
    import torch

    original = torch.manual_seed
    first: list[Any] | None = None
    try:
        for added in seeds:
            torch.manual_seed = lambda seed, added=added: original(seed + added)
            torch.manual_seed(0)
            results = _tensors(_call(op, sample, torch.clone))
            if first is None:
                first = results
            for a, b in zip(first, results, strict=True):
                if a.layout != torch.strided or a.is_complex():
                    continue
                if not torch.equal(a.nan_to_num(), b.nan_to_num()):
                    return True
    finally:
        torch.manual_seed = original
    return False


def _is_random(op: Any, sample: Any) -> bool:
    """Whether a sample has no single right result."""
    import torch

    if _differs(op, sample, range(4)):
        return True
    seeded = False

    def look(func: Any, results: list[Any]) -> None:
        nonlocal seeded
        seeded |= torch.Tag.nondeterministic_seeded in func.tags

    _watch(op, sample, False, look)
    # Where it draws numbers, they may rarely matter.
    return seeded and _differs(op, sample, range(500))


def _makes_nan(op: Any, sample: Any, backward: bool) -> bool:
    """Whether a NaN comes up on the way to the CPU's result."""
    seen = False

    def look(func: Any, results: list[Any]) -> None:
        nonlocal seen
        seen |= any(t.is_floating_point() and bool(t.isnan().any()) for t in results)

    _watch(op, sample, backward, look)
    return seen


def _whole(tensor: Any) -> Any:
    """The bytes of a tensor's whole storage on the host, also outside a view."""
    import torch

    tensor = tensor.detach()
    if tensor.layout != torch.strided:
        return torch.empty(0)  # no operator takes one of the device's
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    return tensor.as_strided((count,), (1,), 0).to("cpu", copy=True).view(torch.uint8)


def _given(sample: Any) -> list[Any]:
    return _tensors((sample.input, sample.args, sample.kwargs))


def _changed(before: list[Any], after: list[Any]) -> list[bool]:
    """Which tensors' storages a call changed; ``before`` as of ``_whole``."""
    import torch

    return [not torch.equal(b, _whole(a)) for b, a in zip(before, after, strict=True)]


def _host_changes(op: Any, sample: Any) -> list[bool]:
    """Which of the sample's tensors a call on the CPU changes."""
    import torch

    converted, _ = _with_gradients(sample, torch.clone)
    before = [_whole(t) for t in _given(converted)]
    _call(op, converted, None)
    return _changed(before, _given(converted))


def _with_stable_sorts(run: Callable[[], Any]) -> Any:
    """Calls ``run`` on the CPU, where equal elements keep their order in sorts.

    A sort that need not do that may; which other order it has, the CPU's kind decides.
    So does a mode, which is the last of the longest run of sorted elements.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    def last_mode(x: Any, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
        if x.dim() == 0:
            return torch.ops.aten.mode.default(x, dim, keepdim)
        values = torch.ops.aten.mode.default(x, dim, True)[0]
        # Of equal ones, argmax takes the first.
        from_end = (x == values).to(torch.int8).flip(dim).argmax(dim, keepdim=True)
        results = values, x.shape[dim] - 1 - from_end
        return results if keepdim else tuple(r.squeeze(dim) for r in results)

    class Stable(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = dict(kwargs or {})
            if func is torch.ops.aten.sort.default:
                func = torch.ops.aten.sort.stable
                kwargs |= zip(("dim", "descending"), args[1:], strict=False)
                args = args[:1]
            if func is torch.ops.aten.sort.stable:
                kwargs["stable"] = True
            if func is torch.ops.aten.mode.default:
                func = last_mode
            return func(*args, **kwargs)

    with Stable():
        return run()


Computation = Callable[[Any, Any, Any], list[Any]]
"""(entry, sample, what to do with its tensors) -> the tensors to compare."""


def _forward(op: Any, sample: Any, convert: Any) -> list[Any]:
    return _tensors(_call(op, sample, convert))


def _weights(results: list[Any]) -> list[Any]:
    """What the gradients of a backward pass start from: the same on every run."""
    import torch

    generator = torch.Generator().manual_seed(2)
    # Eighths are exact in every format.
    return [
        (torch.randint(-12, 13, r.shape, generator=generator) / 8).to(r.dtype)
        for r in results
    ]


def _differentiable(sample: Any, result: Any) -> list[Any]:
    outputs = _tensors(sample.output_process_fn_grad(result))
    return [t for t in outputs if t.requires_grad]


def _with_gradients(sample: Any, convert: Any) -> tuple[Any, list[Any]]:
    """The sample with converted tensors; the leaves that want gradients."""
    import torch

    leaves = []

    def within(value: Any) -> Any:
        converted = _in_storage(value, convert)
        if isinstance(value, torch.Tensor) and value.requires_grad:
            converted = converted.detach().requires_grad_()
            leaves.append(converted)
        return converted

    values = _map(within, (sample.input, sample.args, sample.kwargs))
    return type(sample)(values[0], args=values[1], kwargs=values[2]), leaves


def _differentiate(op: Any, sample: Any, convert: Any) -> list[Any]:
    """Gradients off the device, as the CPU has them."""
    import torch

    converted, leaves = _with_gradients(sample, convert)
    with torch.enable_grad():
        outputs = _differentiable(sample, _call(op, converted, None))
    if not outputs or not leaves:
        return []
    gradients = torch.autograd.grad(
        outputs, leaves, _weights(outputs), allow_unused=True
    )
    return [g for g in gradients if g is not None]


def _on_device(sample: Any, op: Any) -> tuple[Any, list[Any]]:
    converted, leaves = _with_gradients(
        sample, lambda v: v.to("spyre") if hasattr(v, "to") else v
    )
    if op.name in HOST_ARGUMENTS:
        converted.args = sample.args
    return converted, leaves


def _observe(
    op: Any, sample: Any, backward: bool, may_change: list[bool]
) -> tuple[list[Any], str, Any]:
    """Results on the host, how they came about, what ran on the CPU.

    Raises Wrong where a tensor of the sample changes that ``may_change`` does not
    allow to.
    """
    import torch
    import torch_spyre
    from torch_spyre import _C

    on_device, leaves = _on_device(sample, op)
    given = _given(on_device)
    before = [_whole(t) for t in given]
    starts = []
    if backward:
        with torch.enable_grad():
            outputs = _differentiable(sample, _call_on_device(op, on_device))
        starts = [w.to("spyre") for w in _weights([o.cpu() for o in outputs])]
    torch_spyre.reset_fallback_report()
    _C.reset_native_report()
    random_state = torch.spyre.get_rng_state()
    if not backward:
        found = _tensors(_call_on_device(op, on_device))
    elif outputs and leaves:
        gradients = torch.autograd.grad(outputs, leaves, starts, allow_unused=True)
        found = [g for g in gradients if g is not None]
    else:
        found = []
    fallbacks = torch_spyre.fallback_report()
    traffic = sum(moved for _, moved in _C.native_report().values())
    for i, changed in enumerate(_changed(before, given)):
        if changed and not may_change[i]:
            raise Wrong(f"tensor {i} of the arguments was overwritten")
    pointers = {t.untyped_storage().data_ptr() for t in [*given, *starts]}
    computed = [
        t
        for t in found
        if t.device.type == "spyre"
        and t.numel()
        and t.untyped_storage().data_ptr() not in pointers
    ]
    if fallbacks:
        kind = "fallback"
    elif not torch.equal(random_state, torch.spyre.get_rng_state()):
        kind = "kernel"
    elif traffic > 0 or not computed or "empty" in op.name:
        kind = "native"
    else:
        kind = "kernel"
    return [t.detach().cpu() for t in found], kind, fallbacks


def _run_sample(op: Any, sample: Any, backward: bool) -> tuple[str, dict[str, int]]:
    """How the sample ran if it is right; what ran on the CPU."""
    import torch
    from numerics import oracle

    run: Computation = _differentiate if backward else _forward
    # What the CPU refuses, the device may refuse.
    wanted = run(op, sample, torch.clone)
    is_random = _is_random(op, sample)
    found, kind, fallbacks = _observe(op, sample, backward, _host_changes(op, sample))
    if len(found) != len(wanted):
        raise Wrong(f"{len(found)} results, not {len(wanted)}")
    # `empty` and the like promise no values.
    if is_random or "empty" in op.name:
        for a, e in zip(found, wanted, strict=True):
            if a.dtype != e.dtype or a.shape != e.shape:
                raise Wrong(f"{a.dtype} {list(a.shape)}")
        return kind, fallbacks
    references, rounded = [], None
    try:
        references.append(run(op, sample, _widen))
        rounded = oracle(lambda: run(op, sample, _widen))
    except Exception:
        rounded = None
    # The CPU's own fp16 result from what the device holds.
    held = functools.partial(run, op, sample, lambda v: v.detach().to("spyre").cpu())
    references.append(held())
    # Gradients follow the order of equal elements, too.
    if backward or any(not t.is_floating_point() for t in found):
        references.append(_with_stable_sorts(held))
    references = [r for r in references if len(r) == len(found)]
    # Statistics of fp16 are fp32 on devices and fp16 on the CPU.
    metas: list[Any] = []
    if not backward:
        try:
            metas = run(op, sample, lambda v: v.to("meta"))
        except Exception:
            metas = []
    for i, (a, e) in enumerate(zip(found, wanted, strict=True)):
        kinds = {(e.dtype, e.shape)}
        if len(metas) == len(found):
            kinds.add((metas[i].dtype, metas[i].shape))
        if e.shape != a.shape:  # of a result that means nothing in this mode
            if not backward:
                continue
            raise Wrong(f"{list(a.shape)}, not {list(e.shape)}")
        same = [r[i] for r in references if r[i].shape == a.shape]
        _compare(
            a,
            e.detach(),
            [r.detach() for r in same] or [e.detach()],
            rounded[i].detach() if rounded and len(rounded) == len(found) else None,
            kinds,
        )
    return kind, fallbacks


def _is_beyond_formats(value: Any) -> bool:
    """Whether it is, or is of, float64 or a complex dtype, or a sparse layout.

    A float64 tensor without dimensions is a number.
    """
    import torch

    if isinstance(value, torch.dtype):
        return value == torch.float64 or value.is_complex
    if isinstance(value, torch.layout):
        return value != torch.strided
    if not isinstance(value, torch.Tensor):
        return False
    is_number = value.dim() == 0 and not value.is_complex()
    return value.layout != torch.strided or (
        not is_number and _is_beyond_formats(value.dtype)
    )


def left_out(sample: Any) -> bool:
    """Whether a sample asks for float64, complex numbers or sparse tensors: whether one
    of its arguments does.
    """
    from torch.utils._pytree import tree_leaves

    arguments = (sample.input, sample.args, sample.kwargs)
    return any(_is_beyond_formats(v) for v in tree_leaves(arguments))


def has_backward(op: Any) -> bool:
    """Whether PyTorch differentiates the entry in fp16 on the CPU."""
    import torch

    return torch.float16 in op.supported_backward_dtypes("cpu")


def run_entry(
    op: Any, limit: int | None, backward: bool, progress: Callable[[], None]
) -> dict[str, Any]:
    """How an entry ran, and why; ``progress`` is called after each sample."""
    import torch
    from torch_spyre import _C
    from torch_spyre.frontend import eager

    torch.manual_seed(1)
    try:
        samples = list(op.sample_inputs("cpu", torch.float16, requires_grad=backward))
    except Exception as error:
        return {"kind": "failing", "why": f"no samples: {error}", "samples": 0}
    samples = samples[:limit]
    fallbacks: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    worst, why = "native", ""
    before = set(eager.refusals())
    for number, sample in enumerate(samples):
        progress()
        if left_out(sample):
            kinds[LEFT_OUT] += 1
            if kinds[LEFT_OUT] == len(samples):
                worst, why = LEFT_OUT, "float64, complex or sparse arguments"
            continue
        try:
            kind, ran = _run_sample(op, sample, backward)
            fallbacks.update(ran)
            kinds[kind] += 1
            worst = max(worst, kind, key=KINDS.index)
            continue
        except Imprecise as error:
            kind, text = "imprecise", str(error)
        except Wrong as error:
            kind, text = "wrong", str(error)
            if _makes_nan(op, sample, backward):
                kind = "format"
        except _C.UnsupportedDtypeError as error:
            kind, text = "unsupported", f"UnsupportedDtypeError: {error}"
        except NotImplementedError as error:
            kind, text = "failing", f"NotImplementedError: {error}"
            if "Sparse" in text:
                kind = "unsupported"
        except Exception as error:
            kind, text = "failing", f"{type(error).__name__}: {error}"
        kinds[kind] += 1
        if KINDS.index(kind) > KINDS.index(worst):
            worst = kind
            why = f"sample {number}: {' '.join(text.split())[:220]}"
    refused = [f"{n}: {r}" for n, r in eager.refusals() if (n, r) not in before]
    return {
        "kind": worst,
        "why": why or ", ".join(sorted(fallbacks)),
        "refused": sorted(refused)[:6],
        "samples": len(samples),
        "kinds": dict(kinds),
    }
