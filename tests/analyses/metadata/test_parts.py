"""Parts of days of `metadata`, put together in any grouping, are what plain Python says of the whole window."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings

from iolens.analyses.metadata import FORM, Load, MetadataPart, metadata, metadata_part
from iolens.models.metadata_time import MetadataCalibration, OperationCost
from iolens.store.frames import FrameSelection
from tests.analyses.intervals.cut_windows import WINDOWS, CutSelection, Row, by_row, days_of, intervals, put_together
from tests.analyses.intervals.test_parts import same
from tests.analyses.telemetry import table_of
from tests.soak import IS_SOAK

S_PER_OP = {"open": 0.25, "getattr": 0.0625, "mkdir": 0.015625}  # exact sums: which of equal peaks is first is certain
COSTS = MetadataCalibration("by hand", 0.01, [OperationCost(name, cost, "measured") for name, cost in S_PER_OP.items()])
KEYS = ("target", "length_us", "bucket")


def said(part: MetadataPart) -> dict[str, Any]:
    loads = {name: said_of(load) for name, load in {"": part.whole, **part.by_target}.items()}
    rows = by_row(part.sums.rows(), KEYS)
    return {"rows": rows, "loads": loads, "ends": part.ends, "samples": (part.samples, part.target_samples)}


def said_of(load: Load) -> dict[str, Any]:
    percentiles = [load.rates.at(share) for share in (0.1, 0.5, 0.95, 1.0)]
    sums = [load.rate_seconds, load.seconds, load.busy_s, load.mdu_seconds, load.service_seconds, load.service_s]
    return {"percentiles": percentiles, "sums": sums, "peaks": (load.peak_ops, load.peak_mdu)}


def counted(row: Row) -> tuple[float, float, float | None]:
    """Operations per second, MDU, and MDU by service times where they are known."""
    seconds, counts = row["duration_s"], {name: row[name] or 0 for name in S_PER_OP}
    mdu = 100.0 * sum(count * S_PER_OP[name] for name, count in counts.items()) / seconds
    times = [row[f"{name}_us"] for name in S_PER_OP]
    is_known = not sum(counts.values()) or any(time is not None for time in times)
    service = sum(time or 0 for time in times) * 1e-4 / seconds if is_known else None
    return sum(counts.values()) / seconds, mdu, service


def load_of(ticks: dict[int, list[Row]]) -> dict[str, Any]:
    """From the definition: rates of a tick add up, MDU is the mean of its targets."""
    rates, sums = [], np.zeros(6)
    peak_ops = peak_mdu = None
    for time_us in sorted(ticks):
        values = [counted(row) for row in ticks[time_us]]
        seconds = float(np.mean([row["duration_s"] for row in ticks[time_us]]))
        rate, mdu = sum(value[0] for value in values), float(np.mean([value[1] for value in values]))
        known = [value[2] for value in values if value[2] is not None]
        sums += [rate * seconds, seconds, seconds * (mdu > 30), mdu * seconds, 0.0, 0.0]
        sums[4:] += [np.mean(known) * seconds, seconds] if known else [0.0, 0.0]
        rates.append(rate)
        peak_ops = max(peak_ops or (-1.0, 0), (rate, -time_us))
        peak_mdu = max(peak_mdu or (-1.0, 0), (mdu, -time_us))
    shares = [float(np.quantile(rates, share)) if rates else None for share in (0.1, 0.5, 0.95, 1.0)]
    peaks = tuple(None if peak is None else (peak[0], -peak[1]) for peak in (peak_ops, peak_mdu))
    return {"percentiles": shares, "sums": sums.tolist(), "peaks": peaks}


def ticks_of(rows: list[Row]) -> dict[int, list[Row]]:
    ticks = defaultdict(list)
    for row in rows:
        ticks[row["time"]].append(row)
    return ticks


@given(*WINDOWS)
@settings(max_examples=100 if IS_SOAK else 12, deadline=None)
def test_parts_are_the_whole(ticks: int, targets: int, cuts: list[int], random: Random) -> None:
    rows = [
        {
            **{key: value for key, value in row.items() if key != "target_kind"},
            **{name: random.choice([None, 0, 16 * random.randrange(60)]) for name in S_PER_OP},
            **{f"{name}_us": random.choice([None, 0, random.randrange(10_000)]) for name in S_PER_OP},
        }
        for row in intervals(random, ticks, targets)
    ]
    make = partial(metadata_part, bucket_s=3600, costs=COSTS)
    part = put_together(make, FORM, "metadata_ops", rows, cuts, random)
    same(said(part), said(make(days_of("metadata_ops", rows))))
    by_target = {name: [row for row in rows if row["target"] == name] for name in {row["target"] for row in rows}}
    expected = {name: load_of(ticks_of(mine)) for name, mine in {"": rows, **by_target}.items()}
    same(said(part)["loads"], expected)
    assert part.ends == {
        name: (min(row["start"] for row in mine), max(row["time"] for row in mine),
               max(row["duration_s"] for row in mine))
        for name, mine in by_target.items()
    }  # fmt: skip
    sums: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for row in rows:
        amounts = {name: row[name] for name in (*S_PER_OP, *(f"{name}_us" for name in S_PER_OP)) if row[name]}
        key = row["target"], row["time"] - row["start"], row["start"] // 3_600_000_000
        sums[key].update({"rows": 1, "duration_s": row["duration_s"], "reported_s": row["duration_s"], **amounts})
        sums[key].update({"resets": 1} if row["after_reset"] else {})
    assert by_row(part.sums.rows(), KEYS) == {key: dict(amounts) for key, amounts in sums.items()}
    frames = {"metadata_ops": table_of("metadata_ops", rows)}
    cuts_us = tuple(sorted({rows[cut]["time"] for cut in cuts if cut < len(rows)}))
    parts, whole = CutSelection(frames, "scratch", cuts_us=cuts_us), FrameSelection(frames, "scratch")
    same(metadata(parts, costs=COSTS), metadata(whole, costs=COSTS))
    by_target_and_hour = part.sums.without("length_us").rows()
    assert by_target_and_hour["open"].sum() == sum(row["open"] or 0 for row in rows)
