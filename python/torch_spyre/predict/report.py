# SPDX-License-Identifier: Apache-2.0
"""Sums of programs' timing reports, and tables of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

#: A prediction and how often it counts.
Counted = tuple[dict[str, Any], int]


def sum_intervals(reports: Iterable[Counted]) -> list[float] | None:
    """The interval of a sum, if every report has one.

    Errors of one model go the same way in all kernels, so ends are added.
    """
    low = high = 0.0
    for report, count in reports:
        interval = report.get("interval_seconds")
        if interval is None:
            return None
        low += count * interval[0]
        high += count * interval[1]
    return [low, high]


def interval_of(report: dict[str, Any]) -> list[float] | None:
    """A program's interval: its own, or that of its kernels after its launch."""
    if "interval_seconds" in report:
        return report["interval_seconds"]
    kernels = sum_intervals((k, 1) for k in report["kernels"])
    if kernels is None or not report["kernels"]:
        return None
    return [end + report["launch_seconds"] for end in kernels]


def add_up(reports: Iterable[Counted]) -> dict[str, Any]:
    """Totals of programs that run one after another."""
    reports = list(reports)
    seconds = sum(r["predicted_seconds"] * n for r, n in reports)
    bytes_: Counter[str] = Counter()
    busy: Counter[str] = Counter()
    bound: Counter[str] = Counter()
    for report, count in reports:
        for place in ("device_memory", "lx"):
            for way, value in report["bytes"][place].items():
                bytes_[f"{place}_{way}"] += value * count
        bytes_["ring"] += report["bytes"]["ring"] * count
        for unit, share in report["utilisation"].items():
            busy[unit] += share * report["predicted_seconds"] * count
        bound["launch"] += report["launch_seconds"] * count
        for kernel in report["kernels"]:
            bound[kernel["bottleneck"]] += kernel["predicted_seconds"] * count
    result: dict[str, Any] = {
        "predicted_seconds": seconds,
        "bytes": dict(bytes_),
        "pt_macs": sum(r["pt_macs"] * n for r, n in reports),
        "sfu_element_ops": sum(r["sfu_element_ops"] * n for r, n in reports),
        "utilisation": {u: b / seconds if seconds else 0.0 for u, b in busy.items()},
        "bottleneck": max(bound, key=lambda b: bound[b]) if bound else "none",
        "seconds_by_bottleneck": dict(bound.most_common()),
    }
    intervals = [({"interval_seconds": interval_of(r)}, n) for r, n in reports]
    interval = sum_intervals(intervals) if intervals else None
    if interval is not None:
        result["interval_seconds"] = interval
    return result


def format_seconds(seconds: float) -> str:
    """With three or four digits and a unit."""
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3f} {unit}"
    return f"{seconds * 1e6:.2f} us"


def time_of(total: dict[str, Any]) -> str:
    """A total's time, with its interval if it has one."""
    text = format_seconds(total["predicted_seconds"])
    if "interval_seconds" in total:
        low, high = (format_seconds(s) for s in total["interval_seconds"])
        text += f" [{low}, {high}]"
    return text


def _columns(total: dict[str, Any]) -> list[str]:
    traffic = total["bytes"]
    moved = traffic["device_memory_read"] + traffic["device_memory_written"]
    busy = total["utilisation"]
    return [
        time_of(total),
        f"{moved / 1e6:.2f}",
        *(f"{100 * busy[unit]:.1f}" for unit in busy),
        total["bottleneck"],
    ]


def table(rows: list[list[str]]) -> str:
    """Rows in columns; the first is the header, the first column stands left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def format_phase(name: str, phase: dict[str, Any], per_kernel: bool) -> str:
    """A phase by layer, and by kernel if asked."""
    units = list(phase["utilisation"])
    rows = [["", "count", "time", "MB moved", *(f"{u} %" for u in units), "bound by"]]
    for part in phase["parts"]:
        rows.append([part["name"], str(part["count"]), *_columns(part)])
    rows.append(["total", "", *_columns(phase)])
    text = f"{name}: {time_of(phase)}\n{table(rows)}\n"
    if phase["on_host"]:
        text += "not predicted, on the host: " + ", ".join(
            f"{n} x {op}" for op, n in phase["on_host"].items()
        )
        text += "\n"
    if phase["depends_on_data"]:
        text += "depends on data: " + ", ".join(phase["depends_on_data"]) + "\n"
    if per_kernel:
        rows = [["kernel", "count", "cores", "time", "MB moved", "bound by"]]
        for part in phase["parts"]:
            for kernel in part["kernels"]:
                memory = kernel["bytes"]["device_memory"]
                moved = memory["read"] + memory["written"]
                rows.append(
                    [
                        f"{part['name']} {kernel['name']}",
                        str(part["count"]),
                        str(kernel["cores"]),
                        time_of(kernel),
                        f"{moved / 1e6:.2f}",
                        kernel["bottleneck"],
                    ]
                )
        text += table(rows) + "\n"
    return text
