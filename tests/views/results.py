"""Made-up utilization results: a busy day on 24 OSTs, a long window, an empty one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import numpy as np

from iolens.analyses.intervals.buckets import BucketQuantiles, envelope_bucket_us
from iolens.analyses.results import Coverage, TargetCoverage
from iolens.analyses.utilization.analysis import (
    Category,
    DailySummary,
    DailyVolume,
    FsuHeatMap,
    HistogramBin,
    SizeCount,
    Utilization,
    UtilizationEnvelope,
    UtilizationSeries,
)
from iolens.analyses.utilization.saturation import Plateau
from iolens.analyses.utilization.targets import TargetUtilization, target_outliers
from iolens.models.transaction_time import GRACE_2012
from iolens.units import epoch_us, from_epoch_us

START = datetime(2012, 10, 22, tzinfo=UTC)
SIZES = [1 << power for power in range(12, 27)]


def busy_day(filesystem: str = "scratch", interval_s: int = 5, targets: int = 24, seed: int = 1) -> Utilization:
    """A day with a quiet night, read bursts, an afternoon saturated by small I/Os and half an hour missing."""
    rng = np.random.default_rng(seed)
    end = START + timedelta(days=1)
    time_us = np.arange(epoch_us(START) + interval_s * 10**6, epoch_us(end) + 1, interval_s * 10**6)
    hours = (time_us - epoch_us(START)) / 3.6e9
    time_us, hours = (array[(hours < 9.5) | (hours > 10)] for array in (time_us, hours))
    read, write = _bandwidth(hours, rng)
    fsu = 100 * (read + write) / 40e9 + rng.gamma(2, 1.5, len(hours))
    plateau = (hours > 14) & (hours < 17.5)
    fsu[plateau] = rng.normal(72, 4, plateau.sum())
    series = UtilizationSeries(float(interval_s), time_us, fsu, read, write)
    return _result(
        filesystem,
        START,
        end,
        series,
        targets,
        rng,
        [plateau_of(START + timedelta(hours=14), 3.5, 72.1, ceiling_pct=70.0, ceiling_origin="calibration ours")],
    )


def plateau_of(start: datetime, hours: float, median_fsu_pct: float, **more: object) -> Plateau:
    """A steady stretch; saturated where its level is at nine tenths of the ceiling."""
    known = {"ceiling_pct": 100.0, "ceiling_origin": "default", "median_fsu_bytes_pct": None, **more}
    return Plateau(
        start=start, end=start + timedelta(hours=hours), duration_s=3600 * hours, median_fsu_pct=median_fsu_pct,
        saturated=median_fsu_pct >= 0.9 * known["ceiling_pct"], **known,
    )  # fmt: skip


def long_window(filesystem: str = "scratch", days: int = 240, targets: int = 156, seed: int = 2) -> Utilization:
    """Many days in buckets of an hour."""
    rng = np.random.default_rng(seed)
    end = START + timedelta(days=days)
    time_us = np.arange(epoch_us(START) + 3600 * 10**6, epoch_us(end) + 1, 3600 * 10**6)
    day = np.arange(len(time_us)) // 24
    level = rng.lognormal(0, 0.9, days)[day]
    read = level * 8e8 * rng.lognormal(0, 0.8, len(day))
    write = level * 5e8 * rng.lognormal(0, 0.7, len(day))
    fsu = np.minimum(100 * (read + write) / 30e9 + rng.gamma(1.2, 5, len(day)) * level, 190)
    read[2000:2100] = np.nan
    series = UtilizationSeries(3600.0, time_us, fsu, read, write)
    plateaus = [plateau_of(START + timedelta(days=d), 5, 60 + d / 10) for d in (30, 90, 200)]
    return _result(filesystem, START, end, series, targets, rng, plateaus)


def empty() -> Utilization:
    """A window in which nothing reported."""
    coverage = Coverage(
        2, 0, ["OST0000", "OST0001"], 1.0, None, None, None, 0.0, 0, 0, 0, 0, [], [], 0, None, None, [],
        ["no samples in this window"],
    )  # fmt: skip
    none = np.zeros(0)
    return Utilization(
        "scratch", START, START + timedelta(hours=1), "histogram", 0, 0, 0, *[None] * 9,
        [replace(c, optimal_pct=None, suboptimal_pct=None) for c in categories([None] * 3)], histogram(np.zeros(0)),
        [], [], DailySummary(0, 0, None, None, None, None), [], [], GRACE_2012, coverage,
        series=UtilizationSeries(5.0, none.astype(np.int64), none, none, none),
        heat_map=FsuHeatMap(60.0, [], none.astype(np.int64), np.zeros((0, 0))), target_outliers=target_outliers([]),
    )  # fmt: skip


def compared() -> Utilization:
    """Two file systems side by side."""
    return replace(busy_day("scratch"), compare=busy_day("scratch2", seed=7))


def minutes(filesystem: str = "scratch") -> Utilization:
    """Ten minutes at 5 s, of which the first two are missing."""
    end = START + timedelta(minutes=10)
    time_us = epoch_us(START) + 5_000_000 * np.arange(25, 121)
    wave = 1 + np.sin(np.arange(96) / 8)
    rng = np.random.default_rng(3)
    series = UtilizationSeries(5.0, time_us, 30 * wave, 2e6 * wave, 1e6 * wave[::-1])
    return _result(filesystem, START, end, series, 4, rng, [])


def _bandwidth(hours: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    n = len(hours)
    busy = 0.25 + 0.75 * np.clip((hours - 6) / 3, 0, 1)
    read, write = rng.exponential(4e8, n) * busy, rng.exponential(3e8, n) * busy
    for centre in (2.2, 8.0, 12.4, 19.5, 21.7):
        burst = np.abs(hours - centre) < 0.35
        read[burst] += rng.normal(22e9, 3e9, burst.sum())
    for centre in np.arange(0.5, 24, 1.0):
        burst = np.abs(hours - centre) < 0.04
        write[burst] += rng.normal(11e9, 2e9, burst.sum())
    return np.clip(read, 0, None), np.clip(write, 0, None)


def _result(filesystem, start, end, series, targets, rng, plateaus) -> Utilization:
    fsu = series.fsu_pct
    names = [f"{filesystem}-OST{i:04x}" for i in range(targets)]
    shares = [100 * float(np.mean(part)) for part in (fsu < 2, (fsu >= 2) & (fsu <= 30), fsu > 30)]
    days = max(1, (end - start).days)
    daily = _daily(days, rng)
    peak = float(np.nanmax(series.read_bytes_per_s + series.write_bytes_per_s))
    per_target = _per_target(names, float(fsu.mean()), shares[2], rng)
    coverage = _coverage(filesystem, names, days, start, end)
    return Utilization(
        filesystem, start, end, "histogram", targets, len(fsu), len(fsu) * targets, float(fsu.mean()), None, None,
        shares[2], shares[2] / 4, 4.0, 4.31, peak, "largest tick", categories(shares), histogram(fsu), _io_sizes(rng),
        daily, _summary(daily), plateaus, per_target, GRACE_2012, coverage, series=series,
        heat_map=_heat_map(names, start, end, series, rng), envelope=envelope_of(series, start, end),
        target_outliers=target_outliers(per_target, coverage.per_target),
    )  # fmt: skip


def envelope_of(series: UtilizationSeries, start: datetime, end: datetime) -> UtilizationEnvelope | None:
    """As the analysis makes it of the ticks."""
    extent = epoch_us(start), epoch_us(end)
    width_us = envelope_bucket_us(extent, round(series.bucket_s * 1e6))
    if width_us is None:
        return None
    spreads = []
    for name in ("fsu_pct", "read_bytes_per_s", "write_bytes_per_s", "util_pct"):
        values = getattr(series, name)
        quantiles = BucketQuantiles.over(extent, width_us)
        if values is not None:
            known = np.isfinite(values)
            quantiles.add(series.time_us[known], values[known])
        spreads.append(quantiles.finish())
    starts = [from_epoch_us(extent[0] + place * width_us) for place in range(quantiles.levels.shape[1])]
    return UtilizationEnvelope(width_us / 1e6, starts, *spreads)


def categories(shares) -> list[Category]:
    optimal = (45.0, 70.0, 23.0)
    borders = (("idle", 0.0, 2.0), ("moderate", 2.0, 30.0), ("busy", 30.0, None))
    return [Category(n, a, b, s, o, 100 - o) for (n, a, b), s, o in zip(borders, shares, optimal, strict=True)]


def histogram(fsu) -> list[HistogramBin]:
    counts = np.histogram(fsu, np.append(np.arange(0, 201, 2), np.inf))[0]
    bins = [HistogramBin(2.0 * b, 2.0 * b + 2, int(counts[b])) for b in range(100)]
    return [*bins, HistogramBin(200.0, None, int(counts[100]))]


def _io_sizes(rng) -> list[SizeCount]:
    weights = [5, 2, 1.2, 1, 0.8, 0.9, 1, 1.4, 12, 0, 0, 0, 0, 0, 0]
    return [
        SizeCount(direction, size, int(weight * scale * 1e7 * rng.uniform(0.8, 1.2)))
        for direction, scale in (("read", 1.4), ("write", 1.0))
        for size, weight in zip(SIZES, weights, strict=True)
    ]


def _daily(days, rng) -> list[DailyVolume]:
    first = date(2012, 10, 22)
    reads, writes = rng.lognormal(31.6, 0.8, days), rng.lognormal(31.4, 0.6, days)
    return [DailyVolume(first + timedelta(days=d), int(reads[d]), int(writes[d]), 97.9, True) for d in range(days)]


def _summary(daily) -> DailySummary:
    reads, writes = [day.read_bytes for day in daily], [day.write_bytes for day in daily]
    means, medians = [float(np.mean(a)) for a in (reads, writes)], [float(np.median(a)) for a in (reads, writes)]
    return DailySummary(len(daily), 0, *means, *medians)


def _per_target(names, mean, busy, rng) -> list[TargetUtilization]:
    spread = rng.uniform(0.7, 1.3, len(names))
    volumes = rng.lognormal(29, 0.2, (2, len(names)))
    return [
        TargetUtilization(name, mean * spread[i], busy * spread[i], int(volumes[0, i]), int(volumes[1, i]))
        for i, name in enumerate(names)
    ]


def _coverage(filesystem, names, days, start, end) -> Coverage:
    missing = [f"{filesystem}-OST{len(names):04x}"]
    gaps = [TargetCoverage(n, 23.5 * days, 1800.0, 0.5, 1 if i < 3 else 0) for i, n in enumerate(names[:5])]
    return Coverage(
        len(names) + 1, len(names), missing, 24.0 * days, 23.4 * days, 23.5 * days, 23.5 * days, 97.9, 3, 360, 2, 17,
        [names[1]], ["lustre-lctl"], 0, start + timedelta(seconds=5), end, gaps, ["one source lacks sizes"],
    )  # fmt: skip


def _heat_map(names, start, end, series, rng) -> FsuHeatMap:
    buckets = 288
    step = (epoch_us(end) - epoch_us(start)) // buckets
    time_us = epoch_us(start) + step * np.arange(buckets)
    place = np.clip((series.time_us - 1 - epoch_us(start)) // step, 0, buckets - 1)
    hits = np.bincount(place, minlength=buckets)
    mean = np.bincount(place, series.fsu_pct, buckets) / np.where(hits, hits, np.nan)
    values = mean * rng.lognormal(0, 0.35, (len(names), buckets))
    values[3] *= 2.2
    values[7:8, 150:190] = np.nan
    return FsuHeatMap(step / 1e6, names, time_us, values)
