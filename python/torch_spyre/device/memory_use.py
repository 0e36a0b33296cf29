# SPDX-License-Identifier: Apache-2.0
"""How much device memory is in use."""

from __future__ import annotations

from torch_spyre import _C
from torch_spyre.device.devices import Device, _index, synchronize_all


def memory_stats(device: Device = None) -> dict[str, int]:
    """Counters of device memory, in bytes and blocks."""
    return _C.memory_stats(_index(device))


def memory_allocated(device: Device = None) -> int:
    """Bytes of device memory in live tensors."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Device = None) -> int:
    """Largest memory_allocated() since the last reset."""
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Device = None) -> int:
    """Bytes up to the highest address in use since empty_cache()."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: Device = None) -> int:
    """Largest memory_reserved() since the last reset."""
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Device = None) -> None:
    """Start new maxima."""
    _C._spyre_reset_peak_stats(_index(device))


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Start counting allocations anew."""
    _C._spyre_reset_accumulated_stats(_index(device))


def empty_cache() -> None:
    """Give back the host memory behind free device memory."""
    synchronize_all()
    _C.empty_cache()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """(free, total) bytes of device memory."""
    return _C.mem_get_info(_index(device))
