# SPDX-License-Identifier: Apache-2.0
"""Files of the library ``safetensors``, whose tensors go to the device.

The library has a list of the names of devices. By a number it knows any accelerator,
but moves the bytes of a whole tensor first, and then views them as its type: such a
tensor has the layout of bytes, which no program reads.
"""

from __future__ import annotations

from functools import wraps
from types import ModuleType
from typing import Any

import torch


class _Slices:
    """What ``get_slice`` returns: slices of it are tensors."""

    def __init__(self, slices: Any, device: torch.device) -> None:
        self._slices, self._device = slices, device

    def __getattr__(self, name: str) -> Any:
        return getattr(self._slices, name)

    def __getitem__(self, index: Any) -> torch.Tensor:
        return self._slices[index].to(self._device)


class _File:
    """An open file, whose tensors are read on the CPU and moved."""

    def __init__(self, file: Any, device: torch.device) -> None:
        self._file, self._device = file, device

    def __enter__(self) -> _File:
        self._file.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._file.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def get_tensor(self, name: str) -> torch.Tensor:
        """A tensor on the device."""
        return self._file.get_tensor(name).to(self._device)

    def get_tensors(self) -> dict[str, torch.Tensor]:
        """All tensors on the device, by their names."""
        return {k: v.to(self._device) for k, v in self._file.get_tensors().items()}

    def get_slice(self, name: str) -> _Slices:
        """A tensor that is not read yet; slices of it are on the device."""
        return _Slices(self._file.get_slice(name), self._device)


def _spyre_device(device: Any) -> torch.device | None:
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):  # For the library to refuse.
        return None
    return found if found.type == "spyre" else None


def install(safetensors: ModuleType) -> None:
    """Lets ``safetensors.safe_open``, and what is built on it, take spyre devices."""
    original = safetensors.safe_open

    @wraps(original, updated=())
    def safe_open(
        filename: Any, framework: str, device: Any = "cpu", **kwargs: Any
    ) -> Any:
        spyre = _spyre_device(device)
        if spyre is None or framework not in ("pt", "torch", "pytorch"):
            return original(filename, framework, device, **kwargs)
        return _File(original(filename, framework, "cpu", **kwargs), spyre)

    safetensors.safe_open = safe_open
