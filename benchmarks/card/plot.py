# SPDX-License-Identifier: Apache-2.0
"""Residuals as an SVG: predicted over measured against measured time, a panel each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

COLUMNS = 2
#: A panel's plot area and the margins around it, in pixels.
WIDTH, HEIGHT = 380, 220
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 32, 48
STYLE = (
    "text{font:12px sans-serif;fill:#222}.title{font-weight:bold}"
    ".grid{stroke:#ddd}.one{stroke:#222}.frame{fill:none;stroke:#888}"
    ".counts{fill:#0550ae;fill-opacity:.6}"
    ".outside{fill:none;stroke:#b35900;stroke-opacity:.8}"
)


@dataclass(frozen=True)
class Point:
    microseconds: float
    ratio: float
    #: Whether the row counts for goals.
    counts: bool
    name: str


@dataclass(frozen=True)
class Panel:
    title: str
    points: list[Point]


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis of whole decades."""

    low: int
    high: int

    @staticmethod
    def over(values: list[float]) -> Axis:
        logs = [math.log10(value) for value in values] or [0.0]
        low, high = math.floor(min(logs)), math.ceil(max(logs))
        return Axis(low, max(high, low + 1))

    def share(self, value: float) -> float:
        return (math.log10(value) - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Decades, and 2 and 5 of them if there are few."""
        steps = (1, 2, 5) if self.high - self.low <= 2 else (1,)
        found = [
            step * 10.0**decade
            for decade in range(self.low, self.high)
            for step in steps
        ]
        return [*found, 10.0**self.high]


def draw(panel: Panel, x: Axis, y: Axis, left: int, top: int) -> list[str]:
    """A panel whose plot area has its upper left corner there."""

    def across(value: float) -> float:
        return left + WIDTH * x.share(value)

    def down(value: float) -> float:
        return top + HEIGHT * (1 - y.share(value))

    title = f"{escape(panel.title)}: {len(panel.points)} rows"
    out = [f'<text class="title" x="{left}" y="{top - 10}">{title}</text>']
    for value in x.ticks():
        at = across(value)
        out.append(
            f'<path class="grid" d="M{at:.1f} {top}v{HEIGHT}"/>'
            f'<text x="{at:.1f}" y="{top + HEIGHT + 16}" text-anchor="middle">'
            f"{value:g}</text>"
        )
    for value in y.ticks():
        at, kind = down(value), "one" if value == 1 else "grid"
        out.append(
            f'<path class="{kind}" d="M{left} {at:.1f}h{WIDTH}"/>'
            f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{value:g}</text>'
        )
    for point in panel.points:
        kind = "counts" if point.counts else "outside"
        label = f"{point.name}: {point.microseconds:g} us, x {point.ratio:.3f}"
        out.append(
            f'<circle class="{kind}" cx="{across(point.microseconds):.1f}" '
            f'cy="{down(point.ratio):.1f}" r="3"><title>{escape(label)}</title>'
            "</circle>"
        )
    out.append(
        f'<rect class="frame" x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}"/>'
        f'<text x="{left + WIDTH / 2}" y="{top + HEIGHT + 36}" text-anchor="middle">'
        "measured, us</text>"
        f'<text transform="translate({left - 44} {top + HEIGHT / 2}) rotate(-90)" '
        'text-anchor="middle">predicted / measured</text>'
    )
    return out


def svg(panels: list[Panel]) -> str:
    """All panels have the same axes, so that they can be compared."""
    points = [point for panel in panels for point in panel.points]
    x = Axis.over([point.microseconds for point in points])
    # The line of perfect predictions is always there.
    y = Axis.over([*(point.ratio for point in points), 1.0])
    if y.low == 0:
        y = Axis(-1, y.high)
    wide, high = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM
    rows = -(-len(panels) // COLUMNS)
    width, height = COLUMNS * wide, rows * high + 24
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for i, panel in enumerate(panels):
        row, column = divmod(i, COLUMNS)
        body += draw(panel, x, y, column * wide + LEFT, row * high + TOP)
    at = rows * high + 10
    body.append(
        f'<circle class="counts" cx="{LEFT}" cy="{at - 4}" r="3"/>'
        f'<text x="{LEFT + 10}" y="{at}">counts for goals</text>'
        f'<circle class="outside" cx="{LEFT + 140}" cy="{at - 4}" r="3"/>'
        f'<text x="{LEFT + 150}" y="{at}">does not</text></svg>'
    )
    return "\n".join(body) + "\n"
