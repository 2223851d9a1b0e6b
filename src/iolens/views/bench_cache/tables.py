"""The cache study for people: a line for each file, and what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolens.units import MIB
from iolens.views.render import tables as t

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
