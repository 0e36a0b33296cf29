# SPDX-License-Identifier: Apache-2.0
"""Which device is current, and what a device is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from torch_spyre import _C

Device: TypeAlias = int | str | torch.device | None

UNSUPPORTED_DTYPES = [
    torch.float64,
    torch.complex32,
    torch.complex64,
    torch.complex128,
]


def _index(device: Device = None) -> int:
    """Index of a spyre device; None is the current one.

    Raises ValueError for another device type, IndexError for an index that
    does not exist.
    """
    if device is None:
        return _C.current_device()
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if device.type != "spyre":
            raise ValueError(f"expected a spyre device, found {device}")
        index = _C.current_device() if device.index is None else device.index
    else:
        index = int(device)
    count = _C.device_count()
    if not 0 <= index < count:
        raise IndexError(
            f"spyre device index {index} is out of range: there "
            f"{'is 1 device' if count == 1 else f'are {count} devices'}"
        )
    return index


def is_available() -> bool:
    """Whether there is a device; never raises."""
    try:
        return _C.device_count() > 0
    except RuntimeError:
        return False


def is_initialized() -> bool:
    """Whether this process has used a device."""
    return _C.is_initialized()


def init() -> None:
    """Make the current device ready; the first use of one does so by itself.

    Raises RuntimeError naming a wrong environment variable, or in a process
    forked off one that has used a device.
    """
    _C.start_runtime()


def _lazy_init() -> None:
    """What PyTorch calls before it asks for a stream or makes a tensor.

    Nothing: a device that is used makes itself ready. Dynamo asks for the current
    stream when it compiles for the CPU, after which a process may still fork.
    """


def device_count() -> int:
    """Number of cards: AIU_WORLD_SIZE and SPYRE_DEVICES, by default 1."""
    return _C.device_count()


def current_device() -> int:
    """Index of this thread's current device."""
    return _C.current_device()


def set_device(device: Device) -> None:
    """Make a device this thread's current one."""
    _C.set_device(_index(device))


class device:
    """Context manager that changes the current device."""

    def __init__(self, device: Device) -> None:
        self._index = _index(device)
        self._previous = -1

    def __enter__(self) -> None:
        self._previous = _C.current_device()
        _C.set_device(self._index)

    def __exit__(self, *exception: object) -> None:
        _C.set_device(self._previous)


class device_of(device):
    """Context manager that makes a tensor's or storage's device current, if it has
    a spyre one.
    """

    def __init__(self, obj: torch.Tensor | torch.UntypedStorage) -> None:
        on_spyre = obj.device.type == "spyre"
        super().__init__(obj.device if on_spyre else None)


def get_device_capability(device: Device = None) -> dict[str, Any]:
    """What a device can do, as ``torch.accelerator.get_device_capability`` says."""
    return torch.accelerator.get_device_capability(
        torch.device("spyre", _index(device))
    )


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 tensors exist; the device holds them as DL16."""
    return True


def get_device_name(device: Device = None) -> str:
    """Name of a device."""
    _index(device)
    return "IBM Spyre (device model)"


@dataclass(frozen=True)
class DeviceProperties:
    """What a card is; sizes in bytes."""

    #: Torch-spyre's name of this kind of card.
    type: str
    index: int
    name: str
    total_memory: int
    multi_processor_count: int
    lx_memory_per_core: int


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Kind, name, memory and cores of a device."""
    index = _index(device)
    spec = _C.device_spec()
    return DeviceProperties(
        type="dd2",
        index=index,
        name=get_device_name(index),
        total_memory=_C.mem_get_info(index)[1],
        multi_processor_count=int(spec["numCores"]),
        lx_memory_per_core=int(spec["lxBytesPerCore"]),
    )


def synchronize(device: Device = None) -> None:
    """Wait for all work of a device, by default of all that were used.

    Raises the error of work that failed, the first one of several.
    """
    if device is not None:
        _C.synchronize(_index(device))
        return
    failure = None
    for index in range(device_count() if is_initialized() else 0):
        try:
            _C.synchronize(index)
        except RuntimeError as error:
            failure = failure or error
    if failure is not None:
        raise failure


def synchronize_all() -> None:
    """Wait for all work of all devices that were used."""
    if is_initialized():
        _C.free_runtime()


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Dtypes that autocast may choose."""
    return [torch.float16, torch.bfloat16]


def _is_in_bad_fork() -> bool:
    return _C.is_in_bad_fork()


def _is_compiled() -> bool:
    return True
