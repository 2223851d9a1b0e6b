"""Draws a directed graph in layers as SVG: importers above, imported below. Same graph, same text.

Layers by the longest way down, places within a layer by the mean of the neighbours (Sugiyama's method), long arrows
by way of one waypoint per layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

LINE, PADDING, GAP_X, GAP_Y, CHARACTER, SWEEPS = 18, 10, 24, 56, 6.6, 12
HEAD_LENGTH = 8
Edge = tuple[str, str]


class Box(NamedTuple):
    """One box: its name, and lines of a bold and a plain text."""

    name: str
    lines: Sequence[tuple[str, str]]

    @property
    def width(self) -> float:
        """From the longest line, as wide as a common sans-serif font may draw it."""
        return max(len(bold) * 1.15 + len(plain) + 2 for bold, plain in self.lines) * CHARACTER + 2 * PADDING

    @property
    def height(self) -> float:
        """Of all lines."""
        return len(self.lines) * LINE + 2 * PADDING


class _Place(NamedTuple):
    x: float  # of the centre
    top: float
    bottom: float
    row_top: float
    row_bottom: float


def draw(title: str, boxes: Sequence[Box], edges: Iterable[Edge]) -> str:
    """The SVG text of a graph; arrows against the layers (part of a cycle) are red."""
    named = {box.name: box for box in boxes}
    forward, backward = _without_cycles(sorted(named), sorted(edges))
    kept = _reduced(forward)
    layer = _layers(sorted(named), kept)
    rows, directions = _with_waypoints(sorted(named), kept, layer)
    rows = _ordered(rows, directions)
    places, width, height = _places(rows, named)
    shapes = [_arrow([places[name] for name in direction]) for direction in directions]
    shapes += [_back_arrow(places[start], places[end]) for start, end in backward]
    shapes += [_box(box, places[box.name]) for box in boxes]
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return "\n".join([HEAD.format(size=size, title=escape(title)), *shapes, "</svg>", ""])


HEAD = """<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="DejaVu Sans, Verdana, Arial, sans-serif" \
font-size="12" role="img" aria-labelledby="title">
<title id="title">{title}</title>
<defs>
<marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0 L10 5 L0 10 z" fill="#555"/></marker>
</defs>
<rect width="100%" height="100%" fill="#fff"/>"""


def _without_cycles(names: Sequence[str], edges: Sequence[Edge]) -> tuple[list[Edge], list[Edge]]:
    """Edges that point down, and those that lead back to a node on the way to them."""
    below = {name: [end for start, end in edges if start == name] for name in names}
    done: set[str] = set()
    backward: list[Edge] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        for end in below[name]:
            if end in above or end == name:
                backward.append((name, end))
            elif end not in done:
                visit(end, (*above, name))
        done.add(name)

    reached = {end for _, end in edges}
    for name in [*(name for name in names if name not in reached), *names]:
        if name not in done:
            visit(name, ())
    return [edge for edge in edges if edge not in backward], backward


def _reduced(edges: Sequence[Edge]) -> list[Edge]:
    """Only edges that no longer way of edges replaces."""
    below: dict[str, set[str]] = {}
    for start, end in edges:
        below.setdefault(start, set()).add(end)

    def reaches(start: str, end: str) -> bool:
        return start == end or any(reaches(name, end) for name in below.get(start, ()))

    return [(a, b) for a, b in edges if not any(reaches(name, b) for name in below[a] - {b})]


def _layers(names: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """How many layers lie below each node; nodes without edges lie lowest."""
    layer = dict.fromkeys(names, 0)
    for _ in names:
        for start, end in edges:
            layer[start] = max(layer[start], layer[end] + 1)
    return layer


def _with_waypoints(
    names: Sequence[str], edges: Sequence[Edge], layer: dict[str, int]
) -> tuple[list[list[str]], list[list[str]]]:
    """Rows of names from top to bottom with a waypoint where an edge passes, and each edge as a way through them."""
    top = max(layer.values(), default=0)
    rows: list[list[str]] = [[name for name in names if layer[name] == level] for level in range(top, -1, -1)]
    directions = []
    for start, end in edges:
        points = [f"{start}>{end}@{level}" for level in range(layer[start] - 1, layer[end], -1)]
        for level, point in zip(range(layer[start] - 1, layer[end], -1), points, strict=True):
            rows[top - level].append(point)
        directions.append([start, *points, end])
    return rows, directions


def _ordered(rows: list[list[str]], directions: list[list[str]]) -> list[list[str]]:
    """Each row sorted by the mean place of its neighbours, downwards and upwards in turn."""
    pairs = [pair for direction in directions for pair in pairwise(direction)]
    for sweep in range(SWEEPS):
        place = {name: index / max(len(row) - 1, 1) for row in rows for index, name in enumerate(row)}
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            near = {
                name: [place[a] for a, b in pairs if b == name] if sweep % 2 == 0 else
                [place[b] for a, b in pairs if a == name]
                for name in row
            }  # fmt: skip
            row.sort(key=lambda name: (sum(near[name]) / len(near[name]) if near[name] else place[name], name))
            place |= {name: index / max(len(row) - 1, 1) for index, name in enumerate(row)}
    return rows


def _places(rows: list[list[str]], named: dict[str, Box]) -> tuple[dict[str, _Place], float, float]:
    """Where each box and waypoint lies; every row is spread over the whole width."""
    widths = [[named[name].width if name in named else 0.0 for name in row] for row in rows]
    width = max(sum(row) + GAP_X * (len(row) + 1) for row in widths)
    places: dict[str, _Place] = {}
    top = float(GAP_X)
    for row, taken in zip(rows, widths, strict=True):
        height = max((named[name].height for name in row if name in named), default=0.0)
        gap = (width - sum(taken)) / (len(row) + 1)
        x = gap
        for name, wide in zip(row, taken, strict=True):
            own = named[name].height if name in named else height
            inset = (height - own) / 2
            places[name] = _Place(x + wide / 2, top + inset, top + inset + own, top, top + height)
            x += wide + gap
        top += height + GAP_Y
    return places, width, top - GAP_Y + GAP_X


def _arrow(places: Sequence[_Place]) -> str:
    path = [f"M{places[0].x:.0f} {places[0].bottom:.0f}"]
    for upper, lower in pairwise(places):
        end = lower.row_top - HEAD_LENGTH  # the last piece is straight, so that the head points down
        middle = (upper.row_bottom + end) / 2
        path.append(f"V{upper.row_bottom:.0f}")
        path.append(f"C{upper.x:.0f} {middle:.0f} {lower.x:.0f} {middle:.0f} {lower.x:.0f} {end:.0f}")
    path.append(f"V{places[-1].top:.0f}")
    return f'<path d="{" ".join(path)}" fill="none" stroke="#555" marker-end="url(#arrow)"/>'


def _back_arrow(start: _Place, end: _Place) -> str:
    return (
        f'<path d="M{start.x + 12:.0f} {start.top:.0f} L{end.x + 12:.0f} {end.bottom:.0f}" fill="none"'
        ' stroke="#c00" stroke-width="2" marker-end="url(#arrow)"/>'
    )


def _box(box: Box, place: _Place) -> str:
    left = place.x - box.width / 2
    texts = [
        f'<text x="{left + PADDING:.0f}" y="{place.top + PADDING + LINE * (number + 0.72):.0f}">'
        f'<tspan font-weight="bold">{escape(bold)}</tspan> <tspan fill="#444">{escape(plain)}</tspan></text>'
        for number, (bold, plain) in enumerate(box.lines)
    ]
    frame = f'x="{left:.0f}" y="{place.top:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="6"'
    return "\n".join([f'<rect {frame} fill="#e8f1f8" stroke="#0077bb"/>', *texts])
