# SPDX-License-Identifier: Apache-2.0
"""``torch.spyre.memory``: the names of ``torch.accelerator.memory``, and reports."""

from __future__ import annotations

import pickle
from typing import Any

from torch.accelerator.memory import *  # noqa: F403
from torch.accelerator.memory import memory_stats as accelerator_memory_stats

from torch_spyre import _C
from torch_spyre.device.devices import Device, _index, device_count
from torch_spyre.device.memory_use import (  # noqa: F401
    empty_cache,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
)


def _segment(index: int) -> dict[str, Any] | None:
    blocks = _C.memory_blocks(index)
    if not blocks:
        return None
    live = sum(size for _, size, used in blocks if used)
    return {
        "device": index,
        "address": blocks[0][0],
        "total_size": sum(size for _, size, _ in blocks),
        "allocated_size": live,
        "active_size": live,
        "requested_size": live,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": True,
        "frames": [],
        "blocks": [
            {
                "address": address,
                "size": size,
                "requested_size": size if used else 0,
                "state": "active_allocated" if used else "inactive",
                "frames": [],
            }
            for address, size, used in blocks
        ],
    }


def _snapshot(device: Device = None) -> dict[str, Any]:
    """Blocks of a device, or of all, in the form of ``torch.cuda.memory._snapshot``.

    A device is one expandable segment; there are no traces.
    """
    indices = range(device_count()) if device is None else [_index(device)]
    segments = [_segment(i) for i in indices]
    return {
        "segments": [s for s in segments if s is not None],
        "device_traces": [[] for _ in range(device_count())],
        "allocator_settings": {"expandable_segments": True},
        "external_annotations": [],
    }


def memory_snapshot(device: Device = None) -> list[dict[str, Any]]:
    """The segments of ``_snapshot()``."""
    return _snapshot(device)["segments"]


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    """Pickles ``_snapshot()``; ``torch.cuda._memory_viz`` reads it."""
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """``torch.accelerator.memory_stats()`` as dicts of dicts."""
    nested: dict[str, Any] = {}
    for name, value in accelerator_memory_stats(_index(device)).items():
        *path, last = name.split(".")
        inner = nested
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return nested


_SUMMARY = {
    "allocated_bytes": "Allocated memory",
    "active_bytes": "Active memory",
    "requested_bytes": "Requested memory",
    "reserved_bytes": "Reserved memory",
    "allocation": "Allocations",
    "active": "Active allocations",
}
_COLUMNS = ("current", "peak", "allocated", "freed")


def _amount(name: str, value: int) -> str:
    if not name.endswith("_bytes"):
        return str(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 10240 or unit == "GiB":
            break
        value //= 1024
    return f"{value} {unit}"


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """A table of ``torch.accelerator.memory_stats()``; ``abbreviated``: the bytes."""
    index = _index(device)
    stats = accelerator_memory_stats(index)
    free, total = mem_get_info(index)
    lines = [
        f"spyre:{index}, memory: {_amount('_bytes', free)} of "
        f"{_amount('_bytes', total)} free, {stats.get('num_ooms', 0)} times exhausted",
        f"{'':20}" + "".join(f"{column:>12}" for column in _COLUMNS),
    ]
    for name, title in _SUMMARY.items():
        if f"{name}.all.current" not in stats:
            continue
        if abbreviated and not name.endswith("_bytes"):
            continue
        values = [_amount(name, stats[f"{name}.all.{column}"]) for column in _COLUMNS]
        lines.append(f"{title:20}" + "".join(f"{value:>12}" for value in values))
    return "\n".join(lines)
