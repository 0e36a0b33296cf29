# SPDX-License-Identifier: Apache-2.0
"""How Dynamo and Inductor ask for the device's functions.

``SpyreInterface`` is made when it is asked for: its base is Dynamo's.
"""

from __future__ import annotations

from typing import Any

import torch

from torch_spyre import _C
from torch_spyre import device as spyre_device


def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
    spyre_device.set_stream(spyre_device._stream_of(stream_id, device_index))


def _exchange_device(index: int) -> int:
    previous = _C.current_device()
    if index >= 0:
        _C.set_device(spyre_device._index(index))
    return previous


class _Worker:
    """What the parent knew before it forked; the model's cards are all alike."""

    _current = 0

    @classmethod
    def set_device(cls, device: int) -> None:
        cls._current = device

    @classmethod
    def current_device(cls) -> int:
        return cls._current

    @staticmethod
    def get_device_properties(device: spyre_device.Device = None) -> Any:
        return spyre_device.get_device_properties(device)


def make_interface(base: type) -> type:
    """The subclass of ``torch._dynamo.device_interface.DeviceInterface`` for spyre."""
    functions = {
        "current_device": spyre_device.current_device,
        "set_device": spyre_device.set_device,
        "exchange_device": _exchange_device,
        "maybe_exchange_device": _exchange_device,
        "device_count": spyre_device.device_count,
        "is_available": spyre_device.is_available,
        "stream": spyre_device.stream,
        "current_stream": spyre_device.current_stream,
        "set_stream": spyre_device.set_stream,
        "_set_stream_by_id": _set_stream_by_id,
        "get_raw_stream": lambda index: spyre_device.current_stream(index).stream_id,
        "synchronize": spyre_device.synchronize,
        "get_compute_capability": lambda device=None: "",
        "is_bf16_supported": spyre_device.is_bf16_supported,
        "memory_allocated": spyre_device.memory_allocated,
    }
    members = {name: staticmethod(function) for name, function in functions.items()}
    members.update(
        device=torch.spyre.device,
        Stream=spyre_device.Stream,
        Event=spyre_device.Event,
        Worker=_Worker,
    )
    return type("SpyreInterface", (base,), members)


def __getattr__(name: str) -> Any:
    if name == "SpyreInterface":
        # Importing this registers it.
        from torch._dynamo import device_interface

        return device_interface.get_interface_for_device("spyre")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
