# SPDX-License-Identifier: Apache-2.0
"""The command ``spyre-enablement``: what a model needs of the device, and has.

Three levels, each against the CPU: every operator call alone, every kind of module with
the inputs that it gets, and the whole model. After the summaries of RFC 1632 in
spec/test-frameworks.md, "Reports".
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import html
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from torch_spyre import _C
from torch_spyre.testing import descriptors, model_ops, recorder, run_case, selection
from torch_spyre.testing.located import InputError
from torch_spyre.testing.run_case import FAILING

_EPILOG = """\
models:
  module:function    a Python function that returns (module, inputs)
  FILE.yaml          descriptors: operators alone

examples:
  spyre-enablement my_models:make --html report.html
  spyre-enablement my_models:small my_models:large models/llama.yaml --json -
"""


@dataclass
class Level:
    """How a module, or the whole model, compares with the CPU."""

    name: str
    kind: str
    why: str = ""
    #: The RMS of the error over that of the values; of the worst result.
    error: float = 0.0
    fallbacks: dict[str, int] = field(default_factory=dict)
    compile_seconds: float = 0.0
    host_seconds: float = 0.0
    predicted_seconds: float = 0.0


@dataclass
class Report:
    """What is known of a model."""

    model: str
    operators: list[dict[str, Any]] = field(default_factory=list)
    modules: list[Level] = field(default_factory=list)
    end_to_end: Level | None = None
    left_out: dict[str, int] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """Counts, and the labels that hold."""
        cases = self.operators
        ops: dict[str, list[str]] = {}
        for case in cases:
            ops.setdefault(case["op"], []).append(case["kind"])
        good = ("right", "fallback")
        rates = [sum(k in good for k in ks) / len(ks) for ks in ops.values()]
        kinds = {op: _worst(ks) for op, ks in ops.items()}
        whole = self.end_to_end
        return {
            "ops": {
                "total": len(ops),
                "native": sum(k == "right" for k in kinds.values()),
                "fallback": sum(k == "fallback" for k in kinds.values()),
                "wrong": sum(k in FAILING for k in kinds.values()),
                "tests": len(cases),
                "passed": sum(c["kind"] in good for c in cases),
                "mean_pass_rate": sum(rates) / len(rates) if rates else None,
                "predicted_seconds": sum(c["predicted_seconds"] for c in cases),
                "not_recorded": sum(self.left_out.values()),
            },
            "modules": {
                "total": len(self.modules),
                "native": sum(m.kind == "right" for m in self.modules),
                "passed": sum(m.kind in good for m in self.modules),
            },
            "labels": {
                "runnable": None if whole is None else whole.kind != "error",
                "verified_spyre": None if whole is None else whole.kind in good,
            },
        }

    def is_good(self) -> bool:
        """Whether everything that ran is right."""
        levels = [*self.modules, *([self.end_to_end] if self.end_to_end else [])]
        kinds = [c["kind"] for c in self.operators] + [x.kind for x in levels]
        return not any(k in FAILING for k in kinds)

    def as_json(self) -> dict[str, Any]:
        """As an object."""
        return {"model": self.model, **self.summary(), **_parts(self)}


def _parts(report: Report) -> dict[str, Any]:
    whole = report.end_to_end
    return {
        "operators": report.operators,
        "modules_detail": [dataclasses.asdict(m) for m in report.modules],
        "end_to_end": dataclasses.asdict(whole) if whole else None,
        "not_recorded": report.left_out,
    }


def _worst(kinds: Sequence[str]) -> str:
    return max(kinds, key=run_case.KINDS.index)


# --- levels ---------------------------------------------------------------------


def _tensors(value: Any) -> list[torch.Tensor]:
    """The tensors of a result, those of transformers' outputs included."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in _tensors(v)]
    return []


def relative_error(expected: Sequence[Any], actual: Sequence[Any]) -> float:
    """The worst RMS error over the RMS of the values. Raises AssertionError."""
    assert len(expected) == len(actual), f"{len(actual)} results, not {len(expected)}"
    worst = 0.0
    for e, a in zip(expected, actual, strict=True):
        assert a.shape == e.shape, f"a result of shape {list(a.shape)}"
        assert a.device.type == "spyre", f"a result on {a.device}"
        host, a = e.detach().cpu().double(), a.detach().cpu().double()
        if not host.numel():
            continue
        known = torch.isfinite(host)
        assert torch.equal(known, torch.isfinite(a)), "infinities or NaN elsewhere"
        size = host[known].square().mean().sqrt() if known.any() else torch.ones(())
        error = (host[known] - a[known]).square().mean().sqrt()
        worst = max(worst, float(torch.nan_to_num(error) / max(float(size), 1e-6)))
    return worst


def measure(name: str, module: nn.Module, inputs: Any, bound: float) -> Level:
    """A module compiled on the device against itself in fp32 on the CPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reference = copy.deepcopy(module).float()
            expected = _tensors(recorder.call(reference, _floats(inputs)))
        except Exception as error:
            return Level(name, "invalid", f"on the CPU: {error}"[:300])
        try:
            there = copy.deepcopy(module).to("spyre")
            moved = recorder.move(inputs, "spyre")
            torch._dynamo.reset()
            _C.reset_fallback_report()
            compiled = torch.compile(there, dynamic=False)
            started = time.perf_counter()
            actual = _tensors(recorder.call(compiled, moved))
            torch.spyre.synchronize()
            first = time.perf_counter() - started
            fallbacks = {str(k): int(v) for k, v in _C.fallback_report().items()}
            error_ = relative_error(expected, actual)
            with torch.spyre.profiler.profile() as profile:
                started = time.perf_counter()
                recorder.call(compiled, moved)
                torch.spyre.synchronize()
                second = time.perf_counter() - started
        except AssertionError as error:
            return Level(name, "wrong", str(error)[:300])
        except Exception as error:
            return Level(name, "error", f"{type(error).__name__}: {error}"[:300])
        finally:
            torch._dynamo.reset()
    kind = "fallback" if fallbacks else "right"
    why = ", ".join(f"{n} of {op}" for op, n in fallbacks.items())
    if error_ > bound:
        kind, why = "wrong", f"relative error {error_:.3g}, above {bound:g}"
    predicted = sum(k.predicted_seconds for k in profile.kernels)
    return Level(name, kind, why, error_, fallbacks, first, second, predicted)


def _floats(inputs: Any) -> Any:
    def widen(value: Any) -> Any:
        is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.float() if is_float else value

    return torch.utils._pytree.tree_map(widen, inputs)


def _inputs_of_modules(module: nn.Module, inputs: Any) -> dict[str, Any]:
    """Per kind of module and shapes of its inputs: path, module, inputs."""
    found: dict[str, Any] = {}
    handles = []

    def note(path: str) -> Callable[..., None]:
        def hook(own: nn.Module, args: Any, kwargs: Any) -> None:
            leaves = torch.utils._pytree.tree_leaves((args, kwargs))
            shapes = [tuple(v.shape) for v in leaves if isinstance(v, torch.Tensor)]
            weights = [tuple(p.shape) for p in own.parameters()]
            key = f"{type(own).__name__} {shapes} {weights}"
            if shapes and key not in found:
                given = recorder.move((args, kwargs), "cpu")
                found[key] = (path, own, copy.deepcopy(given))

        return hook

    for path, child in module.named_modules():
        if path:
            handles.append(
                child.register_forward_pre_hook(note(path), with_kwargs=True)
            )
    try:
        recorder.call(module, inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found


class _WithKeywords(nn.Module):
    """A module whose keyword arguments are among the inputs of a call."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, args: Any, kwargs: Any) -> Any:
        """The call."""
        return self.module(*args, **kwargs)


def examine(
    source: str,
    *,
    bound: float = 0.02,
    dtype: str = "float16",
    progress: Callable[[str], None] = lambda text: None,
) -> Report:
    """Everything about a model, or the operators of a file of descriptors.

    ``bound``: the largest relative error of modules and the model that is right.
    Raises ValueError for what is no model, InputError for descriptors.
    """
    if source.endswith((".yaml", ".yml")):
        report = Report(source)
        cases = descriptors.load(source)
    else:
        module, inputs = recorder.load_program(source, "cpu", dtype)
        inputs = _narrowed(inputs, next(module.parameters(), torch.zeros(())).dtype)
        report = Report(source)
        with recorder.record(source) as recording:
            recorder.call(module, inputs)
        report.left_out = dict(recording.left_out)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.yaml"
            recording.write(path)
            cases = descriptors.load(path)
        for path, own, given in _inputs_of_modules(module, inputs).values():
            progress(f"module {path}")
            name = f"{path} ({type(own).__name__})"
            report.modules.append(measure(name, _WithKeywords(own), given, bound))
        progress("the whole model")
        report.end_to_end = measure(source, module, inputs, bound)
    chosen, _ = selection.select(cases, [], [], "", True)
    results = model_ops.run_cases(
        chosen, done=lambda r: progress(f"{r.kind:9} {r.name}")
    )
    report.operators = [r.as_json() for r in results]
    return report


def _narrowed(inputs: Any, dtype: torch.dtype) -> Any:
    """Inputs whose floating-point tensors have the parameters' dtype."""
    return torch.utils._pytree.tree_map(
        lambda v: (
            v.to(dtype) if isinstance(v, torch.Tensor) and v.is_floating_point() else v
        ),
        inputs,
    )


# --- text and page ----------------------------------------------------------------


def format_text(reports: Sequence[Report]) -> str:
    """A row per model, then what is not right."""
    heads = ["model", "operators", "native", "fallback", "wrong", "modules", "passed"]
    heads += ["end to end", "error", "device us", "host ms"]
    rows = [heads]
    lines: list[str] = []
    for report in reports:
        summary, whole = report.summary(), report.end_to_end
        ops, modules = summary["ops"], summary["modules"]
        rows.append(
            [
                report.model,
                *(str(ops[k]) for k in ("total", "native", "fallback", "wrong")),
                *(str(modules[k]) for k in ("total", "passed")),
                whole.kind if whole else "-",
                f"{whole.error:.2g}" if whole else "-",
                f"{whole.predicted_seconds * 1e6:.1f}" if whole else "-",
                f"{whole.host_seconds * 1e3:.1f}" if whole else "-",
            ]
        )
        for level, name, kind, why in _details(report):
            if kind != "right":
                lines.append(f"  {kind:9} {level} {name}: {why}")
        for what, count in report.left_out.items():
            lines.append(f"  not recorded: {count} x {what}")
    return "\n".join([model_ops.table(rows), *lines])


def _details(report: Report) -> list[tuple[str, str, str, str]]:
    found = [("operator", c["name"], c["kind"], c["why"]) for c in report.operators]
    found += [("module", m.name, m.kind, m.why) for m in report.modules]
    if report.end_to_end:
        whole = report.end_to_end
        found.append(("model", whole.name, whole.kind, whole.why))
    return found


_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em}
table{border-collapse:collapse;margin:1em 0}
td,th{border-bottom:1px solid #ccc;padding:.25em .7em;text-align:left}
.right{color:#176b2c}.fallback{color:#8a5a00}.wrong,.error,.invalid{color:#a11212}
.bar{display:inline-block;height:.8em;vertical-align:middle}
summary{cursor:pointer}
"""
_COLOURS = {"native": "#2e9e4f", "fallback": "#e0a030", "wrong": "#c93636"}


def _row(cells: Sequence[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{c}</{tag}>" for c in cells) + "</tr>"


def format_page(reports: Sequence[Report]) -> str:
    """A page of HTML that needs nothing else."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<title>Models on spyre</title>",
        f"<style>{_STYLE}</style><h1>Models on spyre</h1><table>",
        _row(["model", "operators", "", "modules", "end to end", "device"], "th"),
    ]
    for number, report in enumerate(reports):
        summary, whole = report.summary(), report.end_to_end
        ops, modules = summary["ops"], summary["modules"]
        bars = "".join(
            f'<span class=bar title="{ops[k]} {k}" style="background:{colour};'
            f'width:{150 * ops[k] / max(ops["total"], 1):.0f}px"></span>'
            for k, colour in _COLOURS.items()
        )
        kind = whole.kind if whole else "-"
        time_ = f"{whole.predicted_seconds * 1e6:.1f} us" if whole else "-"
        parts.append(
            _row(
                [
                    f'<a href="#m{number}">{html.escape(report.model)}</a>',
                    f"{ops['native']} of {ops['total']} native",
                    bars,
                    f"{modules['passed']} of {modules['total']} right",
                    f"<span class={kind}>{kind}</span>",
                    time_,
                ]
            )
        )
    parts.append("</table>")
    for number, report in enumerate(reports):
        parts.append(f"<h2 id=m{number}>{html.escape(report.model)}</h2><table>")
        parts.append(_row(["", "name", "how", "why"], "th"))
        for level, name, kind, why in _details(report):
            shown = [level, html.escape(name), f"<span class={kind}>{kind}</span>"]
            parts.append(_row([*shown, html.escape(why)]))
        parts.append("</table>")
    return "\n".join(parts) + "\n"


# --- the command ------------------------------------------------------------------


def _bound(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a number in (0, 1]")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="spyre-enablement",
        description="Says of models which operators and modules the device runs, and "
        "whether the whole is right.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("models", nargs="+", metavar="MODEL", help="see below")
    add("--dtype", default="float16", help="of parameters (default: float16)")
    add(
        "--bound",
        type=_bound,
        default=0.02,
        metavar="X",
        help="relative error of modules and models that is right (default: 0.02)",
    )
    add("--json", metavar="FILE", help="write all as JSON; - is standard output")
    add("--html", metavar="FILE", help="write a page")
    add("--quiet", action="store_true", help="no progress on standard error")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Runs the command: status 1 if anything is wrong, 2 for what cannot be read."""
    options = _parser().parse_args(arguments)

    def progress(text: str) -> None:
        if not options.quiet:
            print(text, file=sys.stderr)

    try:
        reports = [
            examine(m, bound=options.bound, dtype=options.dtype, progress=progress)
            for m in options.models
        ]
        if options.json != "-":
            print(format_text(reports))
        if options.json:
            text = json.dumps({"models": [r.as_json() for r in reports]}, indent=1)
            if options.json == "-":
                print(text)
            else:
                Path(options.json).write_text(text + "\n", encoding="utf-8")
        if options.html:
            Path(options.html).write_text(format_page(reports), encoding="utf-8")
    except (InputError, ValueError, OSError) as error:
        print(f"spyre-enablement: error: {error}", file=sys.stderr)
        return 2
    return int(not all(r.is_good() for r in reports))


if __name__ == "__main__":
    sys.exit(main())
