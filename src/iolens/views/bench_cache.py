"""The cache study for people: a line for each file, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.units import MIB, format_bytes
from iolens.views.render import tables as t
from iolens.views.render.figures import READ_SHADES, WRITE_SHADES, Axis, Figure, Panel, side_by_side

if TYPE_CHECKING:
    from iolens.analyses.bench_cache import CacheStudy
    from iolens.views.render.tables import Row, TableView


def headline(result: CacheStudy) -> str:
    """What the files say of the policies."""
    return _words(result, " ")


def _words(result: CacheStudy, between: str) -> str:
    return between.join(
        f"{policy.place}: {sentence}" if len(result.policies) > 1 else sentence
        for policy in result.policies
        for sentence in policy.words
    )


def tables(result: CacheStudy) -> list[TableView]:
    """Files with their rates; the policies below them."""
    columns = (
        t.text("place", "Place"), t.size("file_bytes", "File"), t.size("memory_bytes", "Memory"),
        t.text("fits", "Fits"), t.number("write_mib_per_s", "Write", "MiB/s", ",.0f"),
        t.number("synced_write_mib_per_s", "With fsync", "MiB/s", ",.0f"),
        t.number("read_again_mib_per_s", "Read again", "MiB/s", ",.0f"),
        t.number("read_dropped_mib_per_s", "Read from disk", "MiB/s", ",.0f"),
        t.number("read_factor", "Again ÷ disk", "", ".1f"), t.count("runs", "Runs"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            file.place, file.file_bytes, file.memory_bytes, {True: "yes", False: "no", None: None}[file.fits],
            *(
                None if rate is None else rate / MIB
                for rate in (
                    file.write_bytes_per_s, file.synced_write_bytes_per_s, file.read_again_bytes_per_s,
                    file.read_dropped_bytes_per_s,
                )
            ),
            file.read_factor, file.runs,
        )
        for file in result.files
    ]  # fmt: skip
    return [
        t.TableView(
            "Memory and disk", columns, rows, _words(result, "\n"), warnings=tuple(result.warnings), name="files"
        )
    ]


# Bandwidth of a file that fits into memory and one that does not (paper N, Fig. 12) -----------------------------------

FIGURES: Final = ("files",)
_KINDS: Final = (
    ("write", WRITE_SHADES[1], "write_bytes_per_s"),
    ("write with fsync", WRITE_SHADES[2], "synced_write_bytes_per_s"),
    ("read again", READ_SHADES[1], "read_again_bytes_per_s"),
    ("read from disk", READ_SHADES[2], "read_dropped_bytes_per_s"),
)


def figures(result: CacheStudy) -> dict[str, Callable[[], Figure]]:
    """The only one."""
    return {"files": lambda: files(result)}


def files(result: CacheStudy) -> Figure:
    """A group of bars for each file."""
    names = tuple(
        f"{f'{file.place}, ' if len(result.policies) > 1 else ''}{format_bytes(file.file_bytes)}"
        f"{'' if file.fits is None else ', fits' if file.fits else ', does not fit'}"
        for file in result.files
    )
    groups = [
        (label, colour, np.array([(getattr(file, column) or np.nan) / MIB for file in result.files]))
        for label, colour, column in _KINDS
    ]
    y = Axis("bandwidth (MiB/s)", low=0)
    ticks = tuple((float(place), name) for place, name in enumerate(names))
    x = Axis("file", low=-0.6, high=len(names) - 0.4, ticks=ticks)
    return Figure("files", "Memory and disk", (Panel("medians of the repeats", x, y, side_by_side(groups, names)),))
