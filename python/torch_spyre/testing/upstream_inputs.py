# SPDX-License-Identifier: Apache-2.0
"""Inputs of operators and modules that a configuration of suites states.

spec/test-frameworks.md, "Running upstream PyTorch tests (RFC 1287)": what a descriptor
of a single call may state, in place of what PyTorch's tests make.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torch_spyre.testing.descriptors import (
    SUITE_LIST_STEP,
    TensorInput,
    parse_input,
    parse_keywords,
)
from torch_spyre.testing.located import Located
from torch_spyre.testing.run_case import make_arguments


class Arguments:
    """The arguments of one call. Raises InputError for what is none."""

    def __init__(self, value: Located) -> None:
        self._args: list[Located] = []
        self._keywords: dict[str, Any] = {}
        keys = value.mapping(("args", "kwargs"))
        if not keys:
            raise value.error("expected args, kwargs or both")
        if "args" in keys:
            self._args = keys["args"].items()
        if "kwargs" in keys:
            self._keywords = parse_keywords(keys["kwargs"])
        # What is wrong is said when the file is read.
        self._parse(torch.float16)

    def _parse(self, dtype: torch.dtype) -> list[Any]:
        return [
            parse_input(value, number, dtype, SUITE_LIST_STEP)
            for number, value in enumerate(self._args)
        ]

    def make(
        self, device: str, dtype: torch.dtype, requires_grad: bool, seed: int | None
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments on a device; tensors without a dtype have ``dtype``."""
        parsed = self._parse(dtype)
        _, made = make_arguments(parsed, seed, device)
        for spec, value in zip(parsed, made, strict=True):
            specs = spec if isinstance(spec, tuple) else (spec,)
            values = value if isinstance(value, list) else [value]
            for own, tensor in zip(specs, values, strict=False):
                if isinstance(own, TensorInput) and own.dtype.is_floating_point:
                    tensor.requires_grad_(requires_grad)
        return made, dict(self._keywords)


def with_samples(op: Any, samples: Sequence[Arguments], seed: int | None) -> Any:
    """PyTorch's description of an operator, with these inputs alone."""
    from torch.testing._internal.opinfo.core import SampleInput

    def make(op: Any, device: Any, dtype: Any, requires_grad: bool, **_: Any) -> Any:
        for sample in samples:
            args, kwargs = sample.make(str(device), dtype, requires_grad, seed)
            first, *rest = args or [None]
            yield SampleInput(first, args=tuple(rest), kwargs=kwargs)

    changed = copy.copy(op)
    changed.sample_inputs_func = changed.reference_inputs_func = make
    return changed


@dataclass
class Module:
    """A module that tests of ``@modules`` get beside PyTorch's own."""

    name: str
    kind: type[torch.nn.Module]
    constructor: Arguments | None
    forward: list[Arguments]

    @staticmethod
    def read(value: Located) -> Module:
        """An item of ``edits.modules.include``. Raises InputError."""
        known = ("name", "module_path", "constructor_inputs", "forward_inputs")
        keys = value.mapping((*known, "description"))
        for name in ("name", "forward_inputs"):
            if name not in keys:
                raise value.error(f"a module of your own needs {name}")
        name = keys["name"].text()
        path = keys.get("module_path", keys["name"])
        constructor = keys.get("constructor_inputs")
        forward = keys["forward_inputs"]
        calls = forward.items() if forward.is_list else [forward]
        return Module(
            name,
            _find_module(path, name),
            Arguments(constructor) if constructor else None,
            [Arguments(call) for call in calls],
        )

    def as_info(self, seed: int | None) -> Any:
        """As PyTorch's tests describe modules."""
        from torch.testing._internal.common_modules import (
            FunctionInput,
            ModuleInfo,
            ModuleInput,
        )

        def make(
            info: Any,
            device: Any,
            dtype: Any,
            requires_grad: bool,
            training: bool,
            **_: Any,
        ) -> Any:
            made = []
            for call in self.forward:
                args, kwargs = call.make(str(device), dtype, requires_grad, seed)
                own, named = [], {}
                if self.constructor is not None:
                    own, named = self.constructor.make("cpu", dtype, False, seed)
                made.append(
                    ModuleInput(
                        constructor_input=FunctionInput(*own, **named),
                        forward_input=FunctionInput(*args, **kwargs),
                    )
                )
            return made

        return ModuleInfo(
            self.kind,
            module_inputs_func=make,
            dtypes=(torch.float16, torch.bfloat16, torch.float32),
        )


def _find_module(path: Located, name: str) -> type[torch.nn.Module]:
    """The class that a path names, by itself or with the name behind it."""
    text = path.text()
    for full in (text, f"{text}.{name}"):
        package, _, attribute = full.rpartition(".")
        try:
            found = getattr(importlib.import_module(package), attribute)
        except (ImportError, AttributeError, ValueError):
            continue
        if isinstance(found, type) and issubclass(found, torch.nn.Module):
            return found
    raise path.error(f"{text!r} is no module; expected a path such as torch.nn.Linear")
