# SPDX-License-Identifier: Apache-2.0
"""``torch.spyre.profiler``: which kernels ran and what they cost on the device.

``torch.profiler`` with ``ProfilerActivity.PrivateUse1`` shows the same beside the
work of the host, and exports it as a Chrome trace. Times are predictions of the
device model, unless a name says ``host``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch_spyre import _C


@dataclass(frozen=True)
class Kernel:
    """One run of a kernel; seconds of the device's clock, bytes of its memory.

    ``interval_seconds``: between which 8 of 10 measured times of such kernels lie.
    """

    name: str
    location: str
    device: int
    stream: int
    start_seconds: float
    predicted_seconds: float
    interval_seconds: tuple[float, float]
    device_bytes_read: int
    device_bytes_written: int
    lx_bytes: int
    flops: int
    num_cores: int
    bottleneck: str


@dataclass(frozen=True)
class Transfer:
    """A copy or fill that no kernel makes; bytes as the device holds them.

    ``kind`` is "host to device", "device to host", "device to device", "card to
    card" or "fill". It occupies the card's link for ``predicted_seconds``; the
    model took ``host_seconds``.
    """

    kind: str
    device: int
    stream: int
    bytes: int
    start_seconds: float
    predicted_seconds: float
    host_seconds: float


@dataclass(frozen=True)
class KernelSummary:
    """All runs of the kernels of one name with one bottleneck."""

    name: str
    bottleneck: str
    calls: int
    predicted_seconds: float
    interval_seconds: tuple[float, float]
    device_bytes_read: int
    device_bytes_written: int
    lx_bytes: int
    flops: int


#: What a table can be ordered by: numbers fall, names rise.
SORT_KEYS = (
    "predicted_seconds",
    "calls",
    "device_bytes_read",
    "device_bytes_written",
    "lx_bytes",
    "flops",
    "name",
    "bottleneck",
)


def is_available() -> bool:
    """Whether kernels can be recorded."""
    return True


def _kernel(record: dict[str, Any]) -> Kernel:
    lx_bytes = record["lx_bytes_read"] + record["lx_bytes_written"]
    same = {k: record[k] for k in Kernel.__dataclass_fields__ if k in record}
    return Kernel(**same, lx_bytes=lx_bytes)


class profile:
    """Context manager that records kernels and transfers of all devices.

    ``with torch.spyre.profiler.profile() as p: ...; print(p.table())``
    """

    def __init__(self) -> None:
        self._trace: Any = None
        #: What ran, by device, stream and start; filled at the end.
        self.kernels: list[Kernel] = []
        #: Transfers outside of kernels, by device and start; likewise.
        self.transfers: list[Transfer] = []

    def start(self) -> None:
        """Start recording. Raises RuntimeError if it was started before."""
        if self._trace is not None:
            raise RuntimeError("the profiler is running already: call stop() first")
        self._trace = _C.Trace()

    def stop(self) -> None:
        """Wait for all work and stop. Raises RuntimeError if it was not started."""
        if self._trace is None:
            raise RuntimeError("the profiler is not running: call start() first")
        self.kernels = [_kernel(r) for r in self._trace.stop()]
        self.transfers = [Transfer(**t) for t in self._trace.take_transfers()]
        self._trace = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def summary(self, sort_by: str = "predicted_seconds") -> list[KernelSummary]:
        """Sums per kernel name. Raises ValueError for what is not in SORT_KEYS."""
        return summarize(self.kernels, sort_by)

    def table(
        self, sort_by: str = "predicted_seconds", row_limit: int | None = None
    ) -> str:
        """``summary()`` as text, then totals of kernels and transfers."""
        rows = self.summary(sort_by)
        total = sum(r.predicted_seconds for r in rows)
        cells = [
            [
                r.name,
                f"{100 * r.predicted_seconds / total:.1f}%" if total else "-",
                f"{r.predicted_seconds * 1e6:.3f}",
                _microseconds(r.interval_seconds),
                str(r.calls),
                f"{r.predicted_seconds * 1e6 / r.calls:.3f}",
                _size(r.device_bytes_read),
                _size(r.device_bytes_written),
                _size(r.lx_bytes),
                r.bottleneck,
            ]
            for r in rows[:row_limit]
        ]
        heads = ["kernel", "time", "time us", "10 to 90 % us", "calls", "us each"]
        heads += ["read", "written", "LX", "bottleneck"]
        widths = [
            max(len(c) for c in column) for column in zip(heads, *cells, strict=True)
        ]
        lines = [
            "  ".join(
                c.ljust(w) if i in (0, len(heads) - 1) else c.rjust(w)
                for i, (c, w) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in [heads, ["-" * w for w in widths], *cells]
        ]
        calls = sum(r.calls for r in rows)
        read = _size(sum(r.device_bytes_read for r in rows))
        written = _size(sum(r.device_bytes_written for r in rows))
        lines.append(
            f"{calls} kernels, {total * 1e6:.3f} us predicted "
            f"({_microseconds(_sum_intervals(rows))} in 8 of 10 cases), "
            f"{read} read, {written} written"
        )
        for kind in sorted({t.kind for t in self.transfers}):
            same = [t for t in self.transfers if t.kind == kind]
            lines.append(
                f"{kind}: {len(same)} transfers, "
                f"{sum(t.predicted_seconds for t in same) * 1e6:.3f} us predicted, "
                f"{_size(sum(t.bytes for t in same))}"
            )
        return "\n".join(lines)


def _sum_intervals(parts: Iterable[Kernel | KernelSummary]) -> tuple[float, float]:
    """Low bounds and high ones: errors of one model do not cancel."""
    low = high = 0.0
    for part in parts:
        low += part.interval_seconds[0]
        high += part.interval_seconds[1]
    return low, high


def _microseconds(interval: tuple[float, float]) -> str:
    return f"{interval[0] * 1e6:.3f} to {interval[1] * 1e6:.3f}"


def summarize(
    kernels: Iterable[Kernel], sort_by: str = "predicted_seconds"
) -> list[KernelSummary]:
    """Sums of kernel runs per name and bottleneck."""
    if sort_by not in SORT_KEYS:
        raise ValueError(f"expected sort_by one of {SORT_KEYS}, found {sort_by!r}")
    groups: dict[tuple[str, str], list[Kernel]] = {}
    for kernel in kernels:
        groups.setdefault((kernel.name, kernel.bottleneck), []).append(kernel)
    rows = [
        KernelSummary(
            name,
            bottleneck,
            len(runs),
            sum(k.predicted_seconds for k in runs),
            _sum_intervals(runs),
            sum(k.device_bytes_read for k in runs),
            sum(k.device_bytes_written for k in runs),
            sum(k.lx_bytes for k in runs),
            sum(k.flops for k in runs),
        )
        for (name, bottleneck), runs in groups.items()
    ]
    rows.sort(key=lambda r: r.name)
    rows.sort(
        key=lambda r: getattr(r, sort_by), reverse=sort_by not in ("name", "bottleneck")
    )
    return rows


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    size = count / 1024
    for unit in ("KiB", "MiB"):
        if size < 1024:
            return f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
