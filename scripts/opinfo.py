# SPDX-License-Identifier: Apache-2.0
"""Run PyTorch's OpInfo database on the device and say how every entry ran.

For each entry of op_db that takes fp16, all its fp16 samples run eagerly on
spyre tensors. An entry is

  native      every sample ran as compiled programs on the device model, with
              traffic on its memory (views and empty results need none), nothing
              ran on the CPU, all values within bounds
  kernel      right and nothing ran on the CPU, but some result comes from a kernel
              of the device that is no program (random numbers, some copies)
  fallback    the values are right, but something ran on the CPU
  format      wrong where the CPU computes with NaN, which DL16 does not have: the
              device has infinity in its place (spec/numerics.md)
  imprecise   ran natively; some value is out of bounds by rounding only: the
              error is below 2^-6 of the largest value
  unsupported a sample needs a dtype or sparse layout that the device lacks
  failing     an error that the CPU does not raise, or a crash
  wrong       another value, shape or dtype than the CPU's

Bounds: results in fp64 from inputs rounded as the device rounds them; integers
and booleans agree exactly, floats within 4 units in the last place, or their RMS
error is at most twice that of an oracle that rounds after every ATen operator
(spec/numerics.md). Samples are those of a fixed seed.

  scripts/opinfo.py [--only NAME ...] [--limit N] [--json FILE] [--doc FILE]

Prints numerator and denominator, and every entry that is not native. Exits with
1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
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
MEANINGS = {
    "kernel": "Right, on the device, but not as programs alone",
    "fallback": "Right, but partly on the CPU",
    "format": "Infinity in place of NaN",
    "imprecise": "Native, out of bounds by rounding",
    "unsupported": "A dtype or sparse layout that the device does not have",
    "failing": "An error",
    "wrong": "A wrong result",
}
#: Seconds for one entry.
TIMEOUT = 300


def entries() -> list[Any]:
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db if torch.float16 in op.supported_dtypes("cpu")]


def name_of(op: Any) -> str:
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


# --- one entry -----------------------------------------------------------------


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
    """Runs a sample off the device; its tensors converted, hence new."""
    import torch

    def within(value: Any) -> Any:
        return _in_storage(value, convert)

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


def _is_random(op: Any, sample: Any) -> bool:
    """Whether the CPU's result depends on the seed, also on one set inside."""
    import torch

    original = torch.manual_seed
    results = []
    try:
        for added in range(12):
            torch.manual_seed = lambda seed, added=added: original(seed + added)
            torch.manual_seed(0)
            results.append(_tensors(_call(op, sample, torch.clone)))
    finally:
        torch.manual_seed = original
    return any(
        not torch.equal(a.nan_to_num(), b.nan_to_num())
        for other in results[1:]
        for a, b in zip(results[0], other, strict=True)
        if a.layout == torch.strided and not a.is_complex()
    )


def _makes_nan(op: Any, sample: Any) -> bool:
    """Whether a NaN comes up on the way to the CPU's result."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):
        seen = False

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            self.seen |= any(
                t.is_floating_point() and bool(t.isnan().any())
                for t in _tensors(result)
            )
            return result

    with Watch() as watch:
        _call(op, sample, torch.clone)
    return watch.seen


def _run_sample(op: Any, sample: Any) -> tuple[str, dict[str, int]]:
    """How the sample ran if it is right; what ran on the CPU."""
    import torch
    import torch_spyre
    from numerics import oracle
    from torch_spyre import _C

    # What the CPU refuses, the device may refuse.
    expected = _call(op, sample, torch.clone)
    is_random = _is_random(op, sample)
    host = sample.args if op.name in HOST_ARGUMENTS else ()
    inputs = _map(
        lambda v: _in_storage(v, lambda t: t.to("spyre")),
        (sample.input, sample.args, sample.kwargs),
    )
    inputs = (inputs[0], host or inputs[1], inputs[2])
    on_device = type(sample)(inputs[0], args=inputs[1], kwargs=inputs[2])
    torch_spyre.reset_fallback_report()
    _C.reset_native_report()
    random_state = torch.spyre.get_rng_state()
    actual = _call_on_device(op, on_device)
    fallbacks = torch_spyre.fallback_report()
    runs = _C.native_report()
    traffic = sum(moved for _, moved in runs.values())
    results = [t for t in _tensors(actual) if t.device.type == "spyre"]
    pointers = {t.untyped_storage().data_ptr() for t in _tensors(inputs)}
    computed = [
        t
        for t in results
        if t.numel() and t.untyped_storage().data_ptr() not in pointers
    ]
    # `empty` and the like promise no values.
    promised = "empty" not in op.name
    if fallbacks:
        kind = "fallback"
    elif not torch.equal(random_state, torch.spyre.get_rng_state()):
        kind = "kernel"
    elif traffic > 0 or not computed or not promised:
        kind = "native"
    else:
        kind = "kernel"
    found, wanted = _tensors(actual), _tensors(expected)
    if len(found) != len(wanted):
        raise Wrong(f"{len(found)} results, not {len(wanted)}")
    found = [t.detach().cpu() for t in found]
    if is_random or not promised:
        for a, e in zip(found, wanted, strict=True):
            if a.dtype != e.dtype or a.shape != e.shape:
                raise Wrong(f"{a.dtype} {list(a.shape)}")
        return kind, fallbacks
    references, rounded = [], None
    try:
        references.append(_tensors(_call(op, sample, _widen)))
        rounded = _tensors(oracle(lambda: _call(op, sample, _widen)))
    except Exception:
        rounded = None
    # The CPU's own fp16 result from what the device holds.
    references.append(
        _tensors(
            _call(
                op,
                sample,
                lambda v: v.to("spyre").cpu(),
            )
        )
    )
    references = [r for r in references if len(r) == len(found)]
    # Statistics of fp16 are fp32 on devices and fp16 on the CPU.
    try:
        metas = _tensors(_call(op, sample, lambda v: v.to("meta")))
    except Exception:
        metas = []
    for i, (a, e) in enumerate(zip(found, wanted, strict=True)):
        kinds = {(e.dtype, e.shape)}
        if len(metas) == len(found):
            kinds.add((metas[i].dtype, metas[i].shape))
        if e.shape != a.shape:  # of a result that means nothing in this mode
            continue
        same = [r[i] for r in references if r[i].shape == a.shape]
        _compare(
            a,
            e.detach(),
            [r.detach() for r in same] or [e.detach()],
            rounded[i] if rounded and len(rounded) == len(found) else None,
            kinds,
        )
    return kind, fallbacks


def run_entry(op: Any, limit: int | None) -> dict[str, Any]:
    """How an entry ran, and why."""
    import torch
    from torch_spyre import _eager

    torch.manual_seed(1)
    try:
        samples = list(op.sample_inputs("cpu", torch.float16, requires_grad=False))
    except Exception as error:
        return {"kind": "failing", "why": f"no samples: {error}", "samples": 0}
    samples = samples[:limit]
    fallbacks: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    worst, why = "native", ""
    before = set(_eager.refusals())
    for number, sample in enumerate(samples):
        try:
            kind, ran = _run_sample(op, sample)
            fallbacks.update(ran)
            kinds[kind] += 1
            worst = max(worst, kind, key=KINDS.index)
            continue
        except Imprecise as error:
            kind, text = "imprecise", str(error)
        except Wrong as error:
            kind, text = "wrong", str(error)
            if _makes_nan(op, sample):
                kind = "format"
        except TypeError as error:
            kind, text = "failing", f"TypeError: {error}"
            if "spyre tensors cannot have dtype" in text:
                kind = "unsupported"
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
    refused = [f"{n}: {r}" for n, r in _eager.refusals() if (n, r) not in before]
    return {
        "kind": worst,
        "why": why or ", ".join(sorted(fallbacks)),
        "refused": sorted(refused)[:6],
        "samples": len(samples),
        "kinds": dict(kinds),
    }


def work(names: list[str], limit: int | None) -> None:
    """Runs entries one after the other; a JSON line each."""
    sys.path.insert(0, str(ROOT / "python" / "tests"))
    warnings.simplefilter("ignore")
    by_name = {name_of(op): op for op in entries()}
    for name in names:
        started = time.perf_counter()
        result = run_entry(by_name[name], limit)
        result["seconds"] = round(time.perf_counter() - started, 2)
        print(json.dumps({"name": name, **result}), flush=True)


# --- all of them ---------------------------------------------------------------


def run_all(names: list[str], limit: int | None) -> dict[str, Any]:
    """Runs entries in a process that is replaced when it dies or hangs."""
    results: dict[str, Any] = {}
    rest = list(names)
    while rest:
        with tempfile.TemporaryFile("w+") as lines:
            command = [sys.executable, __file__, "--work", *rest]
            if limit is not None:
                command += ["--limit", str(limit)]
            process = subprocess.Popen(command, stdout=lines, stderr=subprocess.DEVNULL)
            done, last = 0, time.monotonic()
            ended = "crash"
            while process.poll() is None:
                time.sleep(0.5)
                lines.seek(0)
                complete = [x for x in lines if x.endswith("\n")]
                for line in complete[done:]:
                    result = json.loads(line)
                    print(
                        f"{result['kind']:11} {result['name']}",
                        file=sys.stderr,
                        flush=True,
                    )
                if len(complete) > done:
                    done, last = len(complete), time.monotonic()
                elif time.monotonic() - last > TIMEOUT:
                    ended = f"no end after {TIMEOUT} seconds"
                    process.kill()
                    process.wait()
            lines.seek(0)
            for line in lines.read().splitlines():
                result = json.loads(line)
                name = result.pop("name")
                results[name] = result
        rest = [n for n in rest if n not in results]
        if rest and process.returncode != 0:
            results[rest[0]] = {"kind": "failing", "why": ended, "samples": 0}
            rest = rest[1:]
    return results


def report(results: dict[str, Any]) -> str:
    total = Counter(r["kind"] for r in results.values())
    lines = [f"native: {total['native']} of {len(results)} fp16 entries, forward"]
    lines += [f"{kind}: {total[kind]}" for kind in KINDS[1:]]
    for kind in reversed(KINDS[1:]):
        for name, result in sorted(results.items()):
            if result["kind"] == kind:
                lines.append(f"  {kind:11} {name}: {result['why']}")
    return "\n".join(lines)


def write_doc(results: dict[str, Any], path: Path, limit: int | None) -> None:
    total = Counter(r["kind"] for r in results.values())
    which = "all" if limit is None else f"the first {limit}"
    lines = [
        "# PyTorch's OpInfo database on the device",
        "",
        "Written by `scripts/opinfo.py`, which says what the words mean. Eager",
        f"forward, {which} fp16 samples of every entry of `op_db` that takes fp16.",
        "",
        "| | entries |",
        "|---|---|",
        *(f"| {kind} | {total[kind]} |" for kind in KINDS),
        f"| all | {len(results)} |",
        "",
    ]
    for kind in KINDS:
        names = sorted(n for n, r in results.items() if r["kind"] == kind)
        if not names:
            continue
        lines += [f"## {kind.capitalize()}", ""]
        if kind == "native":
            lines += [", ".join(f"`{n}`" for n in names) + ".", ""]
            continue
        lines += [f"{MEANINGS[kind]}.", "", "| entry | why |", "|---|---|"]
        for name in names:
            why = results[name]["why"].replace("|", "\\|").replace(str(ROOT), "")
            lines.append(f"| `{name}` | {why} |")
        lines.append("")
    path.write_text("\n".join(lines).rstrip() + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="entries to run")
    parser.add_argument("--limit", type=int, metavar="N", help="samples per entry")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all results")
    parser.add_argument("--doc", type=Path, metavar="FILE", help="Markdown table")
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.limit)
        return
    warnings.simplefilter("ignore")
    known = [name_of(op) for op in entries()]
    names = options.only or known
    if unknown := [n for n in names if n not in known]:
        parser.error(f"no fp16 entry is called {', '.join(unknown)}")
    results = run_all(names, options.limit)
    print(report(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    if options.doc:
        write_doc(results, options.doc, options.limit)
    sys.exit(any(r["kind"] == "wrong" for r in results.values()))


if __name__ == "__main__":
    main()
