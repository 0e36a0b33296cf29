# SPDX-License-Identifier: Apache-2.0
"""One model of model_zoo.py on the device, eagerly and compiled.

What is compared are all floating-point tensors of the result. The reference is the
CPU in fp32, with weights and inputs that fp16 and the device hold exactly. A tensor is
right if its worst error is at most four times that of the CPU in fp16, or 2^-9 of the
largest value (spec/numerics.md compares operators more closely).
"""

from __future__ import annotations

import copy
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import model_zoo

TESTS = Path(__file__).resolve().parent.parent / "python" / "tests"
#: What is done with a model, in this order.
STEPS = ("eager", "compiled", "superdsc", "training")

#: The largest error that is right is the larger of these.
TIMES_FP16 = 4
OF_LARGEST = 2.0**-9
#: An error above that is due to rounding if it is below this share of the largest
#: value, or at most twice as large (the device's 16-bit floats have a bit less), or at
#: most twice that of the CPU, if it rounds every operator's result as the device does.
ROUNDING = 2.0**-6


def run_entry(item: tuple[str, tuple[str, ...]]) -> dict[str, Any]:
    """The result of each step that is asked for: ``kind``, ``why`` and numbers."""
    name, steps = item
    os.environ.setdefault("SPYRE_CACHE_DIR", tempfile.mkdtemp(prefix="spyre-models-"))
    warnings.simplefilter("ignore")
    model_zoo.prepare()
    entry = next(e for e in model_zoo.entries() if e.name == name)
    started = time.perf_counter()
    result: dict[str, Any] = {"name": name, "steps": {}}
    try:
        trial = _Trial(entry)
    except Exception as error:
        result["steps"] = {s: _failed("invalid", error) for s in steps}
        return result
    result["class"] = type(trial.model).__name__
    for step in steps:
        begun = time.perf_counter()
        try:
            outcome = getattr(trial, step)()
        except Exception as error:
            outcome = _failed("error", error)
        outcome["seconds"] = round(time.perf_counter() - begun, 1)
        result["steps"][step] = outcome
    result["seconds"] = round(time.perf_counter() - started, 1)
    return result


def _failed(kind: str, error: Exception) -> dict[str, Any]:
    lines = [line for line in str(error).splitlines() if line.strip()]
    first = next(
        (line for line in lines if "error:" in line), lines[0] if lines else ""
    )
    return {"kind": kind, "why": f"{type(error).__name__}: {first.strip()}"[:300]}


def tensors(value: Any) -> list[Any]:
    """The floating-point tensors of a result, those of caches left out."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in tensors(v)]
    return []


def _held(tensor: Any) -> Any:
    """A tensor as the device holds it: half of what fp16 holds is rounded."""
    return tensor.to("spyre").cpu() if tensor.is_floating_point() else tensor


class _Trial:
    """A model and what the CPU makes of it."""

    def __init__(self, entry: model_zoo.Entry) -> None:
        import torch

        model, inputs = entry.make()
        self.model = model.half()
        for tensor in (*model.parameters(), *model.buffers()):
            tensor.data = _held(tensor.data)
        self.inputs = {
            k: _held(v.half()) if v.is_floating_point() else v
            for k, v in inputs.items()
        }
        self.wide = copy.deepcopy(self.model).float()
        self.wide_inputs = {
            k: v.float() if v.is_floating_point() else v for k, v in self.inputs.items()
        }
        # In the device's dtype: models look for infinities in fp16 alone.
        self.graphs = _count_graphs(self.model, self.inputs, "eager")
        with torch.no_grad():
            self.expected = tensors(_call(copy.deepcopy(self.wide), self.wide_inputs))
            self.half = tensors(_call(copy.deepcopy(self.model), self.inputs))
        if not self.expected:
            raise ValueError("the result has no floating-point tensor")
        if not all(t.isfinite().all() for t in self.expected):
            raise ValueError("the CPU's result is not finite")

    def _there(self) -> tuple[Any, dict[str, Any]]:
        moved = {k: v.to("spyre") for k, v in self.inputs.items()}
        return copy.deepcopy(self.model).to("spyre"), moved

    def _rounded(self, run: Callable[..., list[Any]]) -> list[Any]:
        """A model and inputs in fp64, every result of which the CPU rounds to DL16."""
        sys.path.insert(0, str(TESTS))
        from numerics import oracle

        given = self.inputs.items()
        inputs = {k: v.double() if v.is_floating_point() else v for k, v in given}
        return oracle(run, copy.deepcopy(self.wide).double(), inputs)

    def _judged(self, actual: list[Any], fallbacks: _Fallbacks) -> dict[str, Any]:
        def rounded() -> list[Any]:
            return self._rounded(lambda model, inputs: tensors(_call(model, inputs)))

        return _judge(self.expected, self.half, actual, fallbacks, rounded)

    def eager(self) -> dict[str, Any]:
        import torch

        model, inputs = self._there()
        with torch.no_grad(), _Fallbacks() as fallbacks:
            actual = tensors(_call(model, inputs))
        return self._judged(actual, fallbacks)

    def compiled(self) -> dict[str, Any]:
        import torch

        model, inputs = self._there()
        with torch.no_grad(), _Fallbacks() as fallbacks:
            graphs, actual = _compiled_call(model, inputs, {})
        outcome = self._judged(tensors(actual), fallbacks)
        outcome["graphs"] = graphs
        if graphs > self.graphs and outcome["kind"] == "right":
            outcome["kind"] = "break"
            outcome["why"] = f"{graphs} graphs, where the CPU has {self.graphs}"
        return outcome

    def superdsc(self) -> dict[str, Any]:
        """The same plan run from KTIR and from SuperDSC must give the same bits."""
        import torch

        results = []
        with torch.no_grad(), _Fallbacks() as fallbacks:
            for option in ("superdsc_compatible", "through_superdsc"):
                model, inputs = self._there()
                _, result = _compiled_call(model, inputs, {option: True})
                results.append([t.cpu() for t in tensors(result)])
        if fallbacks.why():
            return {"kind": "fallback", "why": fallbacks.why()}
        same = all(_same_bits(a, b) for a, b in zip(*results, strict=True))
        return {"kind": "right" if same else "wrong", "why": "" if same else "bits"}

    def training(self) -> dict[str, Any]:
        """The gradients of a loss, and what a step of SGD makes of the weights."""
        wide = _step(copy.deepcopy(self.wide), self.wide_inputs, None)
        half = _step(copy.deepcopy(self.model), self.inputs, None)

        def rounded() -> list[Any]:
            return self._rounded(lambda model, inputs: _step(model, inputs, None))

        worst: dict[str, Any] = {"kind": "right", "why": ""}
        for how in (None, "spyre"):
            model, inputs = self._there()
            with _Fallbacks() as fallbacks:
                actual = _step(model, inputs, how)
            outcome = _judge(wide, half, actual, fallbacks, rounded)
            if outcome["kind"] != "right":
                outcome["why"] = f"{how or 'eager'}: {outcome['why']}"
                return outcome
            worst = max(worst, outcome, key=lambda o: o.get("error", 0.0))
        return worst


def _call(run: Callable[..., Any], inputs: dict[str, Any]) -> Any:
    """A call that draws the same random numbers as every other one.

    Some models draw on the CPU, in inference too: vilt the order of its patches.
    """
    import torch

    torch.manual_seed(0)
    return run(**inputs)


def _compiled_call(
    model: Any, inputs: dict[str, Any], options: dict[str, Any]
) -> tuple[int, Any]:
    """How many graphs Dynamo made, and the result of a second call."""
    import torch

    graphs, compiled = _compile(model, inputs, backend="spyre", options=options)
    result = _call(compiled, inputs)
    torch._dynamo.reset()
    return graphs, result


def _count_graphs(model: Any, inputs: dict[str, Any], backend: str) -> int:
    import torch

    with torch.no_grad():
        graphs, _ = _compile(copy.deepcopy(model), inputs, backend=backend)
    torch._dynamo.reset()
    return graphs


def _compile(model: Any, inputs: dict[str, Any], **how: Any) -> tuple[int, Any]:
    """How many graphs Dynamo made in the first call, and what was called."""
    import torch

    # What a model keeps for a device is there after its first call.
    model(**inputs)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(model, dynamic=False, **how)
    compiled(**inputs)
    return torch._dynamo.utils.counters["stats"]["unique_graphs"], compiled


def _step(model: Any, inputs: dict[str, Any], backend: str | None) -> list[Any]:
    """Every gradient, then every weight after a step."""
    import torch

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run: Callable[..., Any] = model
    if backend is not None:
        torch._dynamo.reset()
        run = torch.compile(model, backend=backend, dynamic=False)
    output = tensors(_call(run, inputs))[0].float()
    # Without a target, of a normalized output, gradients would be nothing but rounding.
    target = torch.randn(output.shape, generator=torch.Generator().manual_seed(1))
    loss = (output - target.to(output.device)).square().mean()
    loss.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    optimizer.step()
    return [g.detach() for g in gradients] + [p.detach() for p in model.parameters()]


class _Fallbacks:
    """Counts what runs on the CPU."""

    def __enter__(self) -> _Fallbacks:
        import torch_spyre

        torch_spyre.reset_fallback_report()
        self.found: dict[str, int] = {}
        return self

    def __exit__(self, *_: object) -> None:
        import torch
        import torch_spyre

        torch.spyre.synchronize()
        report = torch_spyre.fallback_report()
        self.found = {str(k): int(v) for k, v in report.items()}

    def why(self) -> str:
        return ", ".join(f"{n} of {op}" for op, n in self.found.items())


def _same_bits(a: Any, b: Any) -> bool:
    import torch

    words = {2: torch.int16, 4: torch.int32}[a.element_size()]
    return a.shape == b.shape and torch.equal(
        a.contiguous().view(words), b.contiguous().view(words)
    )


def _judge(
    expected: list[Any],
    half: list[Any],
    actual: list[Any],
    fallbacks: _Fallbacks,
    rounded: Callable[[], list[Any]],
) -> dict[str, Any]:
    """``right``, ``fallback`` or ``wrong``; the worst error over what is right."""
    if len(actual) != len(expected):
        return {"kind": "wrong", "why": f"{len(actual)} tensors, not {len(expected)}"}
    for e, a in zip(expected, actual, strict=True):
        if a.shape != e.shape:
            return {"kind": "wrong", "why": f"shape {list(a.shape)}"}
        if not a.isfinite().all():
            return {"kind": "wrong", "why": "values that are not finite"}
    worst, share = _worst(expected, half, actual)
    outcome: dict[str, Any] = {"kind": "right", "why": "", "error": round(worst, 3)}
    if fallbacks.found:
        outcome["kind"], outcome["why"] = "fallback", fallbacks.why()
    if worst > 1:
        outcome["why"] = (
            f"error {worst:.3g} times what is right, {share:.2g} of the largest value"
        )
        rounding = 1.0
        try:
            rounding, _ = _worst(expected, half, rounded())
            outcome["why"] += f"; {rounding:.3g} times if the CPU rounds as the device"
        except Exception as error:  # not every model computes in fp64
            outcome["why"] += f"; unknown why: {type(error).__name__}"
        is_rounding = share <= ROUNDING or worst <= 2 * max(rounding, 1.0)
        outcome["kind"] = "imprecise" if is_rounding else "wrong"
    return outcome


def _worst(
    expected: list[Any], half: list[Any], actual: list[Any]
) -> tuple[float, float]:
    """The largest error over what is right, and over the largest value."""
    worst = share = 0.0
    for e, h, a in zip(expected, half, actual, strict=True):
        if not e.numel():
            continue
        e, h, a = e.cpu().double(), h.double(), a.cpu().double()
        largest = float(e.abs().max())
        limit = max(TIMES_FP16 * float((h - e).abs().max()), OF_LARGEST * largest)
        if error := float((a - e).abs().max()):
            worst = max(worst, error / limit if limit else float("inf"))
            share = max(share, error / largest if largest else float("inf"))
    return worst, share
