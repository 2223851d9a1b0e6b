"""Parts of days of `latency`, put together in any grouping, are what plain Python says of the whole window."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from random import Random

import numpy as np
from hypothesis import given, settings

from iolens.analyses.intervals.buckets import rows_by_width
from iolens.analyses.latency.analysis import latency
from iolens.analyses.latency.part import IO_TIMES_FORM, WAITS_FORM, LatencyPart, io_times_part, waits_part
from iolens.schema import DIRECTIONS
from iolens.store.frames import FrameSelection
from tests.analyses.intervals.cut_windows import WINDOWS, CutSelection, Row, by_row, days_of, intervals, put_together
from tests.analyses.intervals.test_parts import same
from tests.analyses.telemetry import table_of
from tests.soak import IS_SOAK

TIMED = ("target", "direction", "bin", "bucket")


def said(part: LatencyPart, keys: tuple[str, ...]) -> dict[str, object]:
    """Wider buckets are made before and after parts meet."""
    return {
        "hours": by_row(part.sums.rows(), keys), "days": by_row(part.sums.wider(86400).rows(), keys),
        "kinds": part.kinds, "lengths": part.lengths, "extent": part.extent_us,
    }  # fmt: skip


def around(part: LatencyPart, rows: list[Row]) -> None:
    """Kinds, lengths and extent of the rows."""
    assert part.kinds == {row["target"]: row["target_kind"] for row in rows}
    lengths = np.array([row["time"] - row["start"] for row in rows], np.int64)
    np.testing.assert_array_equal(part.lengths, rows_by_width(lengths, np.ones(len(rows))))
    ends = (min(row["start"] for row in rows), max(row["time"] for row in rows)) if rows else None
    assert part.extent_us == ends


@given(*WINDOWS)
@settings(max_examples=100 if IS_SOAK else 25, deadline=None)
def test_io_times(ticks: int, targets: int, cuts: list[int], random: Random) -> None:
    rows = [
        {**row, "direction": direction, "histogram": histogram, "bin": 1 << random.randrange(4), "count": number}
        for row in intervals(random, ticks, targets)
        for number, (direction, histogram) in enumerate(
            (direction, histogram) for direction in DIRECTIONS for histogram in ("io_time_ms", "pages_per_bulk")
        )
    ]
    make = partial(io_times_part, bucket_s=3600)
    whole = make(days_of("target_histograms", rows))
    part = put_together(make, IO_TIMES_FORM, "target_histograms", rows, cuts, random)
    same(said(part, TIMED), said(whole, TIMED))
    timed = [row for row in rows if row["histogram"] == "io_time_ms"]
    counts: Counter[tuple[object, ...]] = Counter()
    for row in timed:
        counts[row["target"], row["direction"], row["bin"], row["start"] // 3_600_000_000] += row["count"]
    assert by_row(part.sums.rows(), TIMED) == {key: {"ios": count} if count else {} for key, count in counts.items()}
    around(part, timed)
    frames = {"target_histograms": table_of("target_histograms", rows)}
    cuts_us = tuple(sorted({rows[cut]["time"] for cut in cuts if cut < len(rows)}))
    same(latency(CutSelection(frames, "scratch", cuts_us=cuts_us)), latency(FrameSelection(frames, "scratch")))


@given(*WINDOWS)
@settings(max_examples=100 if IS_SOAK else 25, deadline=None)
def test_waits(ticks: int, targets: int, cuts: list[int], random: Random) -> None:
    names = [f"{direction}_{name}" for direction in DIRECTIONS for name in ("wait_us", "ops")]
    rows = [
        {**row, **{name: random.choice([None, 0, random.randrange(1000), 7]) for name in names}}
        for row in intervals(random, ticks, targets)
    ]
    make = partial(waits_part, bucket_s=900)
    whole = make(days_of("target_io", rows))
    part = put_together(make, WAITS_FORM, "target_io", rows, cuts, random)
    same(said(part, ("target", "bucket")), said(whole, ("target", "bucket")))
    sums: dict[tuple[object, ...], Counter[str]] = defaultdict(Counter)
    known = []
    for row in rows:
        waited = [side for side in DIRECTIONS if None not in (row[f"{side}_wait_us"], row[f"{side}_ops"])]
        known += [row] if waited else []
        for side in waited:
            amounts = {"wait_us": row[f"{side}_wait_us"], "ops": row[f"{side}_ops"], "rows": 1}
            sums[row["target"], row["start"] // 900_000_000].update(
                {f"{side}_{name}": amount for name, amount in amounts.items() if amount}
            )
    assert by_row(part.sums.rows(), ("target", "bucket")) == sums
    around(part, known)
