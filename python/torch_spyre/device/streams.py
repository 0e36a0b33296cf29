# SPDX-License-Identifier: Apache-2.0
"""Streams and events."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from torch_spyre import _C
from torch_spyre.device.devices import Device, _index


class Stream(torch.Stream):
    """A queue of work on one device: 32 of low and 32 of high priority, round robin.

    ``priority`` 0 is low, any other high. ``synchronize()`` raises the error of work
    that failed; until then the stream drops what it is given.
    """

    def __new__(cls, device: Device = None, priority: int = 0, **kwargs: Any) -> Stream:
        """A stream of a device's pool, or the one that keywords name."""
        if "stream_id" in kwargs:
            return super().__new__(cls, priority=priority, **kwargs)
        return super().__new__(
            cls, torch.device("spyre", _index(device)), priority=priority, **kwargs
        )

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The least and the greatest priority."""
        return 0, -1

    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Record an event, by default a new one, behind the stream's work."""
        if event is None:
            event = Event(device=self.device())
        event.record(self)
        return event

    def device(self) -> torch.device:  # type: ignore[override]
        """The device; a method, as users of torch-spyre call it."""
        return torch.Stream.device.__get__(self)

    def __repr__(self) -> str:
        return f"<torch_spyre.Stream device={self.device().index} id={self.id}>"

    @property
    def id(self) -> int:
        """0 for the default stream, 1 to 32 of low, 33 to 64 of high priority."""
        return self.stream_id

    @property
    def priority(self) -> int:
        """0 or -1, as for CUDA."""
        return -1 if self.stream_id > 32 else 0


class Event(torch.Event):
    """A point in a stream; elapsed_time() is in milliseconds of the device's clock."""

    def __new__(cls, enable_timing: bool = True, **kwargs: Any) -> Event:
        """An event of a device, by default the current one."""
        index = _index(kwargs.pop("device", None))
        return super().__new__(
            cls, torch.device("spyre", index), enable_timing=enable_timing, **kwargs
        )

    def elapsed_time(self, end: torch.Event) -> float:
        """Milliseconds of the device's clock until another event was reached."""
        return self._elapsed(end, 0)

    def host_elapsed_time(self, end: torch.Event) -> float:
        """Milliseconds of the host's clock until another event was reached."""
        return self._elapsed(end, 1)

    def _elapsed(self, end: torch.Event, clock: int) -> float:
        if not isinstance(end, torch.Event) or end.device != self.device:
            raise ValueError(f"expected an event of {self.device}, found {end}")
        start, stop = (_C.event_seconds(e.event_id)[clock] for e in (self, end))
        return 1e3 * (stop - start)


def stream(stream: torch.Stream | None) -> AbstractContextManager[Any]:
    """Context manager that makes a stream current; None changes nothing."""
    return nullcontext() if stream is None else stream


def _stream_of(stream_id: int, index: int) -> Stream:
    return Stream(
        stream_id=stream_id,
        device_index=index,
        device_type=torch._C._autograd.DeviceType.PrivateUse1.value,
    )


def current_stream(device: Device = None) -> Stream:
    """The current stream of a device in the calling thread."""
    index = _index(device)
    found = torch.accelerator.current_stream(torch.device("spyre", index))
    return _stream_of(found.stream_id, index)


def default_stream(device: Device = None) -> Stream:
    """The stream that is current unless another was set."""
    return _stream_of(0, _index(device))


def set_stream(stream: torch.Stream) -> None:
    """Make a stream this thread's current one."""
    torch.accelerator.set_stream(stream)
