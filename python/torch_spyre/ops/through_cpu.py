# SPDX-License-Identifier: Apache-2.0
"""Kernels of the device that run a Python function on the CPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves, tree_map

from torch_spyre import _C


class _Copies:
    """Tensors of the device on the CPU; what shared a storage shares one again."""

    def __init__(self, op: OpOverload) -> None:
        self._op = op
        self._storages: dict[int, torch.UntypedStorage] = {}
        self._tensors: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.device: torch.device | None = None

    def to_cpu(self, value: Any) -> Any:
        """A tensor's copy, devices as the CPU, anything else as it is."""
        if isinstance(value, torch.device) and value.type == "spyre":
            self.device = self.device or value
            return torch.device("cpu")
        if not isinstance(value, torch.Tensor) or value.device.type != "spyre":
            return value
        if self.device is not None and value.device.index != self.device.index:
            raise RuntimeError(
                f"{self._op}: expected all tensors to be on the same device, found "
                f"{self.device} and {value.device}"
            )
        self.device = value.device
        if id(value) not in self._tensors:
            storage = value.untyped_storage()
            key = storage._cdata
            if key not in self._storages:
                self._storages[key] = storage.cpu()
            place = (value.storage_offset(), value.shape, value.stride())
            copy = torch.empty(0, dtype=value.dtype).set_(self._storages[key], *place)
            self._tensors[id(value)] = (value, copy)
        return self._tensors[id(value)][1]

    def write_back(self, arguments: list[Any]) -> None:
        """Copies what is in the copies of these arguments to themselves."""
        for value in tree_leaves(arguments):
            if id(value) in self._tensors:
                value.copy_(self._tensors[id(value)][1])

    def to_device(self, value: Any) -> Any:
        """A result on the device; an argument that was written is that one."""
        for original, copy in self._tensors.values():
            if value is copy:
                return original
        if isinstance(value, torch.Tensor) and value.is_cpu and self.device is not None:
            return value.to(self.device)
        return value


def make_kernel(op: OpOverload, function: Callable) -> torch.library.Library:
    """Makes a function for CPU tensors the device's kernel, until it is destroyed."""
    schema = op._schema
    written = [
        a.alias_info is not None and a.alias_info.is_write for a in schema.arguments
    ]

    def kernel(*args: Any, **kwargs: Any) -> Any:
        copies = _Copies(op)
        given, named = tree_map(copies.to_cpu, (args, kwargs))
        results = function(*given, **named)
        positional = iter(args)
        values = [
            kwargs.get(a.name) if a.kwarg_only else next(positional, None)
            for a in schema.arguments
        ]
        copies.write_back([v for v, w in zip(values, written, strict=True) if w])
        _C.record_fallback(op.name())
        return tree_map(copies.to_device, results)

    library = torch.library.Library(op.namespace, "IMPL")
    with warnings.catch_warnings():
        # That it replaces the device's kernel is what it is for.
        warnings.filterwarnings("ignore", message="(?s).*verriding a previously")
        library.impl(op, kernel, "PrivateUse1")
    return library
