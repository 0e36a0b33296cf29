# SPDX-License-Identifier: Apache-2.0
"""Predictions of whole models."""

from __future__ import annotations

import itertools
import json
import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from torch_spyre import _C
from torch_spyre.frontend import refusals
from torch_spyre.frontend.options import compile_options
from torch_spyre.predict import models, parts, report, simulate
from torch_spyre.predict.cards import CARD_LINKS, AllReduce, Cards
from torch_spyre.predict.trace import trace

Progress = Callable[[str], None]

#: Short names of what is asked for most.
ALIASES = {
    "cores": "numCores",
    "bandwidth": "effectiveMemoryBytesPerSecond",
    "lx": "lxBytesPerCore",
}

#: What can be predicted of a model.
PHASES = ("prefill", "decode")


def _silent(text: str) -> None:
    pass


def device_numbers(values: dict[str, Any]) -> dict[str, Any]:
    """Device numbers by their names, short ones resolved.

    Raises ValueError for another name, for two names of one number, and for a value
    that is no number, or no whole one where the device has one.
    """
    known = _C.device_spec()
    numbers: dict[str, Any] = {}
    for name, value in values.items():
        full = ALIASES.get(name, name)
        if full not in known:
            raise ValueError(
                f"{name}: the device has no such number; spyre-run --print-device-spec "
                "lists those that there are"
            )
        if full in numbers:
            raise ValueError(f"{name}: {full} is given twice")
        numbers[full] = _number(name, value, type(known[full]))
    return numbers


def _number(name: str, value: Any, kind: type) -> Any:
    """A device number of its kind: 2e6, and 2M of the command line, are whole."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int and (not is_number or value % 1 != 0):
        raise ValueError(f"{name}: expected a whole number, found {value!r}")
    if kind is float and not is_number:
        raise ValueError(f"{name}: expected a number, found {value!r}")
    if kind is float and not math.isfinite(value):
        raise ValueError(f"{name}: expected a finite number, found {value!r}")
    if kind is str and not isinstance(value, str):
        raise ValueError(f"{name}: expected a text, found {value!r}")
    return kind(value)


def _options(device: dict[str, Any]) -> dict[str, Any]:
    """The options of ``torch.compile`` for these device numbers.

    Also what the config module says counts, or a variable of it: a share of LX is in
    the option ``device`` then.
    """
    return compile_options({"device": device} if device else {})


class _Programs:
    """Compiled steps of a model, predicted once per program and device."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._traced: dict[tuple[int, int, int, int], Any] = {}

    def step(
        self,
        model: models.Model,
        shape: tuple[int, int, int],
        device: dict[str, Any],
        cards: Cards,
    ) -> dict[str, Any]:
        batch, query, context = shape
        key = (*shape, cards.num_per_copy)
        if key not in self._traced:
            self.progress(f"tracing {query} of {context} tokens, batch {batch}")
            self._traced[key] = trace(model, *key)
        options = _options(device)
        planned_for = json.loads(options.get("device", "{}"))
        compiled = parts.compile_step(
            self._traced[key],
            options,
            lambda layer: self.progress(f"compiling {layer}"),
        )
        graphs = {id(call.graph): call.graph for call in compiled.calls}
        self.progress(f"predicting {_num_programs(graphs.values())} programs")

        def predict_one(graph: Any) -> dict[str, Any]:
            if isinstance(graph, AllReduce):
                return graph.predict(cards, {**_C.device_spec(), **planned_for})
            return simulate.simulate(graph.print_ktir(), planned_for)

        with ThreadPoolExecutor(2) as pool:
            reports = dict(
                zip(graphs, pool.map(predict_one, graphs.values()), strict=True)
            )
        return _phase(compiled, reports)


def _phase(
    compiled: parts.StepPrograms, reports: dict[int, dict[str, Any]]
) -> dict[str, Any]:
    layers: dict[str, list[int]] = {}
    graphs = {id(call.graph): call.graph for call in compiled.calls}
    for call in compiled.calls:
        layers.setdefault(call.layer, []).append(id(call.graph))
    equal: dict[tuple[int, ...], list[str]] = {}
    for layer, keys in layers.items():
        equal.setdefault(tuple(keys), []).append(layer)
    rows = []
    for own, names in equal.items():
        total = report.add_up((reports[k], 1) for k in own)
        kernels = [
            {**kernel, "program": number}
            for number, k in enumerate(own)
            for kernel in reports[k]["kernels"]
        ]
        rows.append(
            {
                "name": _range_of(names),
                "layers": names,
                "count": len(names),
                "programs": _num_programs(graphs[k] for k in own),
                **total,
                "kernels": kernels,
            }
        )
    total = report.add_up(
        (reports[k], n) for k, n in Counter(_keys(compiled.calls)).items()
    )
    return {
        **total,
        "communication_seconds": total["seconds_by_bottleneck"].get(CARD_LINKS, 0.0),
        "num_programs": _num_programs(call.graph for call in compiled.calls),
        "num_distinct_programs": _num_programs(graphs.values()),
        "depends_on_data": sorted(
            {place for r in reports.values() for place in r["depends_on_data"]}
        ),
        "on_host": dict(Counter(op for _, op in compiled.on_host)),
        "parts": rows,
    }


def _num_programs(graphs: Iterable[Any]) -> int:
    """How many are no sums over cards."""
    return sum(not isinstance(graph, AllReduce) for graph in graphs)


def _keys(calls: Sequence[parts.Call]) -> list[int]:
    return [id(call.graph) for call in calls]


def _range_of(names: list[str]) -> str:
    """``layers.0-39`` for elements of a list, ``layers.0,2-4`` with gaps."""
    if len(names) == 1:
        return names[0]
    groups: dict[str, list[list[str]]] = {}
    for name in names:
        path, _, last = name.rpartition(".")
        runs = groups.setdefault(path, [])
        is_next = last.isdigit() and runs and runs[-1][-1] == str(int(last) - 1)
        if is_next:
            runs[-1].append(last)
        else:
            runs.append([last])
    texts = []
    for path, runs in groups.items():
        parts_ = [r[0] if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs]
        texts.append((f"{path}." if path else "") + ",".join(parts_))
    return " ".join(texts)


def predict(
    model: str | nn.Module | models.Model,
    *,
    batch: int = 1,
    prompt: int = 512,
    context: int = 0,
    phases: Sequence[str] = PHASES,
    cards: int = 1,
    machines: int = 1,
    tensor_parallel: int | None = None,
    device: dict[str, Any] | None = None,
    progress: Progress = _silent,
) -> dict[str, Any]:
    """Predicts the first token of a prompt, and a later one at a length of context.

    ``model`` is what ``spyre-predict --model`` takes, or a module. ``context`` counts
    the new token; by default it is the prompt and one more. ``device`` has device
    numbers that differ.

    There are ``cards`` in each of ``machines``. ``tensor_parallel`` of them share a
    copy of the model, by default those of a machine; the copies share the batch.
    docs/guide/predict.md lists the keys of the result, which are those of ``--json``.
    Raises ValueError for what cannot be asked.
    """
    asked = _Asked(batch, prompt, context, phases, cards, machines, tensor_parallel)
    return _predict(_Programs(progress), _as_model(model), asked, device or {})


def _as_model(model: str | nn.Module | models.Model) -> models.Model:
    if isinstance(model, str):
        return models.load(model)
    return models.from_module(model) if isinstance(model, nn.Module) else model


@dataclass(frozen=True)
class _Asked:
    """What :func:`predict` is asked."""

    batch: int
    prompt: int
    context: int
    phases: Sequence[str]
    cards: int
    machines: int
    tensor_parallel: int | None


def _predict(
    programs: _Programs, model: models.Model, asked: _Asked, device: dict[str, Any]
) -> dict[str, Any]:
    batch, prompt = asked.batch, asked.prompt
    context = asked.context or prompt + 1
    unknown = [phase for phase in asked.phases if phase not in PHASES]
    if unknown or not asked.phases:
        raise ValueError(f"phases: expected some of {PHASES}, found {asked.phases}")
    for name, value in (("batch", batch), ("prompt", prompt), ("context", context)):
        if value < 1:
            raise ValueError(f"{name}: {value} is not positive")
    device = device_numbers(device)
    cards = Cards.of(
        asked.cards,
        asked.machines,
        asked.tensor_parallel,
        {**_C.device_spec(), **device},
    )
    result: dict[str, Any] = {
        "model": model.name,
        "batch": batch,
        "prompt": prompt,
        "context": context,
        "cards": cards.num_per_machine,
        "machines": cards.num_machines,
        "tensor_parallel": cards.num_per_copy,
        "copies": cards.num_copies,
        "device": device,
        "phases": {},
    }
    if model.is_fixed:
        if cards != Cards():
            raise ValueError(f"{model.name}: its inputs are fixed, for one card")
        result["phases"]["program"] = programs.step(model, (1, 1, 1), device, cards)
        return result
    if "prefill" not in asked.phases and not model.can_decode:
        raise models.ModelError(
            f"{model.name}: there is no phase decode, because nothing says what a step "
            "with a context takes; let the function return the module and a function "
            "(batch, query, context) -> inputs, or predict the phase prefill"
        )
    own_batch = cards.batch_of_copy(batch)

    def seconds_of(name: str, new: int, all_: int) -> float:
        before = Counter(refusals.refusals())
        phase = programs.step(model, (own_batch, new, all_), device, cards)
        if not phase["predicted_seconds"]:
            refused = Counter(refusals.refusals()) - before
            why = "".join(f"; {op}: {reason}" for op, reason in list(refused)[:1])
            raise models.ModelError(
                f"{model.name}: nothing of it runs on the card in {name}{why}"
            )
        result["phases"][name] = phase
        return phase["predicted_seconds"]

    if "prefill" in asked.phases:
        result["time_to_first_token_seconds"] = seconds_of("prefill", prompt, prompt)
    if "decode" in asked.phases and model.can_decode:
        seconds = seconds_of("decode", 1, context)
        result["time_per_token_seconds"] = seconds
        result["tokens_per_second"] = batch / seconds
    return result


def what_if(
    model: str | nn.Module | models.Model,
    changes: dict[str, Sequence[Any]],
    *,
    batch: int = 1,
    prompt: int = 512,
    context: int = 0,
    phases: Sequence[str] = PHASES,
    cards: int = 1,
    machines: int = 1,
    tensor_parallel: int | None = None,
    device: dict[str, Any] | None = None,
    progress: Progress = _silent,
) -> list[dict[str, Any]]:
    """A prediction as is, and one for each combination of changed device numbers.

    Other arguments are those of :func:`predict`. One that the device cannot run has
    ``error`` in place of phases.
    """
    _check(changes)
    loaded = _as_model(model)
    programs = _Programs(progress)
    asked = _Asked(batch, prompt, context, phases, cards, machines, tensor_parallel)

    def run(numbers: dict[str, Any]) -> dict[str, Any]:
        return _predict(programs, loaded, asked, numbers)

    return _combinations(run, changes, device or {}, progress)


def what_if_mlir(
    path: str, changes: dict[str, Sequence[Any]], *, device: dict[str, Any]
) -> list[dict[str, Any]]:
    """As :func:`what_if`, of :func:`predict_mlir`."""
    _check(changes)

    def run(numbers: dict[str, Any]) -> dict[str, Any]:
        return predict_mlir(path, device=numbers)

    return _combinations(run, changes, device, _silent)


def _check(changes: dict[str, Sequence[Any]]) -> None:
    """Raises ValueError for what is no device number."""
    for name, values in changes.items():
        for value in values:
            device_numbers({name: value})
    device_numbers({name: values[0] for name, values in changes.items() if values})


def _combinations(
    run: Callable[[dict[str, Any]], dict[str, Any]],
    changes: dict[str, Sequence[Any]],
    device: dict[str, Any],
    progress: Progress,
) -> list[dict[str, Any]]:
    base = device_numbers(device)
    results = [{**run(base), "changed": {}}]
    for values in itertools.product(*changes.values()) if changes else ():
        changed = dict(zip(changes, values, strict=True))
        progress("device: " + ", ".join(f"{n} {v:g}" for n, v in changed.items()))
        numbers = {**base, **device_numbers(changed)}
        try:
            result = run(numbers)
        except (simulate.ToolError, _C.SpyreError, ValueError) as error:
            result = {"device": numbers, "phases": {}, "error": str(error)}
        results.append({**result, "changed": changed})
    return results


def predict_mlir(path: str, *, device: dict[str, Any] | None = None) -> dict[str, Any]:
    """Predicts the program of a file of ``spyre_graph``.

    It is planned for the device that it is predicted on.
    """
    numbers = device_numbers(device or {})
    pipeline = "to-ktir"
    if "numCores" in numbers:
        pipeline += f" cores={numbers['numCores']}"
    if not Path(path).is_file():
        raise models.ModelError(f"{path}: no such file")
    with tempfile.TemporaryDirectory() as folder:
        if numbers:
            file = Path(folder) / "device.json"
            file.write_text(json.dumps(numbers))
            pipeline += f" device={file}"
        ktir = simulate.run_tool(
            [simulate.find_tool("spyre-opt"), path, f"--spyre-pipeline={pipeline}"]
        )
    single = simulate.simulate(ktir, numbers)
    total = report.add_up([(single, 1)])
    part = {"name": "program", "layers": [], "count": 1, "programs": 1, **total}
    phase = {
        **total,
        "num_programs": 1,
        "num_distinct_programs": 1,
        "depends_on_data": single["depends_on_data"],
        "on_host": {},
        "parts": [{**part, "kernels": single["kernels"]}],
    }
    return {"model": path, "device": numbers, "phases": {"program": phase}}


def load_device(path: str) -> dict[str, Any]:
    """The numbers of a device file, by name or as ``--print-device-spec`` has them."""
    values = models.read_object(path, "device numbers")
    for name, value in values.items():
        if isinstance(value, dict) and "value" not in value:
            raise ValueError(f"{path}: {name} has no value")
    try:
        return device_numbers(
            {n: v["value"] if isinstance(v, dict) else v for n, v in values.items()}
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
