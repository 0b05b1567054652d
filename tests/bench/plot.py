"""Cost against table size, on two logarithmic scales: as SVG for a page, as text for a terminal."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from statistics import median

from tests.bench.table import Row, shown

Points = list[tuple[int, float]]

_COLOURS = ("#1b6ca8", "#2a9d8f", "#8a5a9e", "#e09f3e", "#4f772d", "#c1666b", "#577590", "#9a031e")
_LETTERS = "abcdefghijklmnop"
_TITLE = "microseconds a claim, against rows in the table"


def series(rows: Iterable[Row]) -> Mapping[str, Points]:
    """Return the lines of a plot: rows that have a size, by the name behind their colon."""
    lines: dict[str, Points] = defaultdict(list)
    for row in rows:
        if row.size is not None:
            lines[row.what.partition(": ")[2]].append((row.size, median(row.samples)))
    return lines


class _Scales:
    """Where a point lies, from 0 to 1 in both directions, between full decades."""

    def __init__(self, lines: Mapping[str, Points]) -> None:
        points = [point for line in lines.values() for point in line]
        self.sizes = _decades([size for size, _ in points])
        self.costs = _decades([cost for _, cost in points])

    def place(self, size: float, cost: float) -> tuple[float, float]:
        return _share(size, self.sizes), _share(cost, self.costs)


def svg(lines: Mapping[str, Points], note: str) -> str:
    """Return a picture with its own legend."""
    left, top, width, height = 70, 40, 520, 340
    scales = _Scales(lines)

    def at(size: float, cost: float) -> tuple[float, float]:
        across, up = scales.place(size, cost)
        return round(left + across * width, 1), round(top + (1 - up) * height, 1)

    parts = [
        f'<text x="{left}" y="24" font-size="15">{_TITLE}</text>',
        f'<text x="{left}" y="{top + height + 44}" fill="#666">{escape(note)}</text>',
    ]
    for size in scales.sizes:
        x, y = at(size, scales.costs[0])
        parts.append(_line(x, y, x, top))
        parts.append(f'<text x="{x}" y="{y + 18}" text-anchor="middle">{shown(size)}</text>')
    for cost in scales.costs:
        x, y = at(scales.sizes[0], cost)
        parts.append(_line(x, y, left + width, y))
        parts.append(f'<text x="{x - 8}" y="{y + 4}" text-anchor="end">{shown(cost)}</text>')
    for number, (name, points) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(f"{x},{y}" for x, y in (at(*point) for point in points))
        dots = "".join(f'<circle cx="{x}" cy="{y}" r="3"/>' for x, y in (at(*p) for p in points))
        parts.append(
            f'<g fill="{colour}" stroke="{colour}"><polyline points="{path}" fill="none"'
            f' stroke-width="2"/>{dots}</g>'
        )
        y = top + 16 + 22 * number
        parts.append(_line(left + width + 18, y, left + width + 40, y, colour, 3))
        parts.append(f'<text x="{left + width + 48}" y="{y + 4}">{escape(name)}</text>')
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 250}"'
        f' height="{top + height + 60}" font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def text(lines: Mapping[str, Points]) -> str:
    """Return the same as characters; where lines meet, the letter of the last one stands."""
    width, height = 61, 17
    scales = _Scales(lines)
    grid = [[" "] * width for _ in range(height)]

    def cell(size: float, cost: float) -> tuple[int, int]:
        across, up = scales.place(size, cost)
        return round((1 - up) * (height - 1)), round(across * (width - 1))

    for letter, points in zip(_LETTERS, lines.values(), strict=False):
        for point in points:
            row, column = cell(*point)
            grid[row][column] = letter
    labels = {cell(scales.sizes[0], cost)[0]: shown(cost) for cost in scales.costs}
    drawn = [f"{labels.get(row, ''):>10} |{''.join(cells)}" for row, cells in enumerate(grid)]
    axis = [" "] * (width + 12)
    for size in scales.sizes:
        label = shown(size)
        start = min(12 + cell(size, scales.costs[0])[1], len(axis) - len(label))
        axis[start : start + len(label)] = label
    legend = [f"{letter}  {name}" for letter, name in zip(_LETTERS, lines, strict=False)]
    rule = f"{'':>10} +{'-' * width}"
    return "\n".join([_TITLE, "", *drawn, rule, "".join(axis), "", *legend]) + "\n"


def _decades(values: Sequence[float]) -> list[float]:
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return [10.0**power for power in range(low, max(high, low + 1) + 1)]


def _share(value: float, decades: Sequence[float]) -> float:
    low, high = log10(decades[0]), log10(decades[-1])
    return (log10(value) - low) / (high - low)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = "#ddd", width: int = 1) -> str:
    return (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="{width}"/>'
    )
