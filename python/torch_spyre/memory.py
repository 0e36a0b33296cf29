# SPDX-License-Identifier: Apache-2.0
"""``torch.spyre.memory``: what ``torch.accelerator.memory`` has, and a snapshot."""

from __future__ import annotations

from typing import Any

from torch.accelerator.memory import *  # noqa: F403

from torch_spyre import _C
from torch_spyre._device import (  # noqa: F401
    Device,
    _index,
    device_count,
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
