"""What a disk I/O costs, from benchmark runs: the regression of paper U on requested and on observed sizes (U4–U6).

Rows of `benchmark_runs` in, both fits out, with the bandwidth they predict for every run, how much the disk read beyond
what was asked for, and where bandwidth stops falling with the size of the file (Figs. 2, 4, 6, 7).
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from iolens.analyses.calibration.runs import (
    AGGREGATE_SIZE,
    DIRECTIONS,
    NEEDED,
    SATURATION,
    Repeats,
    Row,
    RunPoint,
    SaturatingRun,
    chosen_runs,
    one_queue_depth,
    saturating_runs,
    say_disturbance,
    say_estimates,
    transfer_size,
    usable_runs,
)
from iolens.analyses.results import not_in_json
from iolens.errors import UsageError
from iolens.models.transaction_fit import (
    Asymptote,
    FitError,
    ResampledInterval,
    Run,
    TransactionFit,
    find_asymptote,
    fit_transactions,
    predicted_bytes_per_s,
)
from iolens.models.transaction_time import Calibration, CalibrationState, Coefficients
from iolens.units import MIB, format_bytes

Sizes = Literal["requested", "observed"]


@dataclass(frozen=True, slots=True)
class ConfidenceIntervals:
    """Where 95 % of the resamples lie, lowest and highest; null where a limit is infinite or there is no spread."""

    latency_s: list[float | None]
    s_per_byte: list[float | None]
    rate_mib_per_s: list[float | None]
    iops_limit: list[float | None]


@dataclass(frozen=True, slots=True)
class DirectionFit:
    """Coefficients of one direction. `negative`: the plain regression had a coefficient below zero, shown beside."""

    latency_s: float
    s_per_byte: float
    rate_mib_per_s: float | None
    iops_limit: float | None
    r2: float | None
    mape_pct: float
    ci95: ConfidenceIntervals
    runs: int
    negative: bool
    unconstrained_latency_s: float | None
    unconstrained_s_per_byte: float | None


@dataclass(frozen=True, slots=True)
class Fits:
    """Both directions; null where the runs cannot tell."""

    write: DirectionFit | None
    read: DirectionFit | None

    def of(self, direction: str) -> DirectionFit | None:
        """The fit of `read` or `write`."""
        return self.write if direction == "write" else self.read


@dataclass(frozen=True, slots=True)
class FittedRun:
    """One run of the fit (U6): predicted by the fit on observed sizes where there is one, else on requested ones."""

    direction: str
    size_bytes: int
    observed_size_bytes: float | None
    measured_bytes_per_s: float
    predicted_bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class SmallestTransferSizes:
    """Disk I/Os by size during the run with the smallest transfers (Fig. 6): for figures."""

    direction: str
    transfer_bytes: int
    requested_bytes: int
    disk_bytes: int
    counts: dict[int, int]


@dataclass(frozen=True, slots=True)
class CacheGuard:
    """Bandwidth against the size of all files (Fig. 2), with the level it settles at."""

    direction: str
    aggregate_bytes: list[int]
    bytes_per_s: list[float]
    asymptote: Asymptote | None


@dataclass(frozen=True, slots=True)
class CalibrationFit:
    """Both fits of U5 and what they rest on."""

    requested: Fits
    observed: Fits
    queue_depth: int | None
    read_amplification: float | None
    discarded_pct: float | None
    runs: list[FittedRun]
    tools: list[str]
    devices: list[str]
    runs_left_out: int
    asymptotes: list[CacheGuard]
    notes: list[str]
    fullness_pct: float | None
    memory_bytes: int | None
    ceiling_fsu_pct: float | None
    saturating_fsu_pct: list[float]
    last_run_us: int | None = not_in_json()
    predicted_by_request: list[float | None] | None = not_in_json()
    sizes_at_disk: list[SmallestTransferSizes] | None = not_in_json()
    saturating: list[SaturatingRun] | None = not_in_json()

    def record(self, name: str, sizes: Sizes | None = None) -> dict[str, object]:
        """What a stored calibration keeps of it: on observed sizes where both directions have them, unless set."""
        both = self.observed.write is not None and self.observed.read is not None
        which = sizes or ("observed" if both else "requested")
        fits = self.observed if which == "observed" else self.requested
        write, read = fits.write, fits.read
        if write is None or read is None:
            lacking = "write" if write is None else "read"
            raise UsageError(f"no {lacking} fit on {which} sizes: a calibration needs writes and reads")
        quality = ", ".join(
            f"{name} R² {fit.r2:.3f}" for name, fit in (("write", write), ("read", read)) if fit.r2 is not None
        )
        return {
            "name": name,
            "state": CalibrationState.MEASURED.value,
            "write_latency_s": write.latency_s,
            "write_s_per_byte": write.s_per_byte,
            "read_latency_s": read.latency_s,
            "read_s_per_byte": read.s_per_byte,
            **_interval_ends("write", write.ci95),
            **_interval_ends("read", read.ci95),
            "queue_depth": self.queue_depth,
            "evidence": f"{len(self.runs)} runs of {', '.join(self.tools)} on {which} sizes: {quality}",
            "sizes": which,
            "write_r2": write.r2,
            "read_r2": read.r2,
            "fullness_pct": self.fullness_pct,
            "ceiling_fsu_pct": _ceiling_pct(_saturating_fsu(self.saturating or (), fits)),
        }


def _interval_ends(direction: str, ci95: ConfidenceIntervals) -> dict[str, float | None]:
    """The ends of the 95 % intervals of a direction, by the columns of a stored calibration."""
    (latency_low, latency_high), (rate_low, rate_high) = ci95.latency_s, ci95.s_per_byte
    return {
        f"{direction}_latency_low_s": latency_low,
        f"{direction}_latency_high_s": latency_high,
        f"{direction}_s_per_byte_low": rate_low,
        f"{direction}_s_per_byte_high": rate_high,
    }


def calibration_fit(
    rows: Iterable[Row],
    *,
    queue_depth: int | None = None,
    access: str = "random",
    repeats: Repeats = "all",
    minimum_aggregate_bytes: int | None = None,
) -> CalibrationFit:
    """Fit the runs among `rows` that can tell what an I/O costs.

    `access`: `random`, `sequential` or `any`. `repeats`: which of the runs of one point count: all, as the
    definition has it, or the median or best of each point, where others disturbed the machine.
    """
    records = [row for row in rows if row.get("tool") != "mdtest"]
    notes: list[str] = []
    guard = [row for row in records if row.get("study") == AGGREGATE_SIZE]
    usable = usable_runs(records, access, minimum_aggregate_bytes, notes)
    depth = one_queue_depth(usable, queue_depth)
    at_depth = [row for row in usable if depth is None or row.get("queue_depth") == depth]
    chosen = chosen_runs(at_depth, repeats, notes)
    points = [RunPoint.of(row) for row in chosen]
    say_estimates(points, notes)
    say_disturbance(chosen, notes)
    requested, observed = _both_fits(points, notes)
    amplification = _read_amplification(points)
    by_request, by_disk = (
        Fits(*(_shown(fits.get(direction)) for direction in DIRECTIONS)) for fits in (requested, observed)
    )
    saturating, is_test = saturating_runs(records, chosen, depth)
    fsu = _saturating_fsu(saturating, by_disk if by_disk.write and by_disk.read else by_request)
    _say_ceiling(fsu, is_test, notes)
    return CalibrationFit(
        requested=by_request,
        observed=by_disk,
        queue_depth=depth,
        read_amplification=amplification,
        discarded_pct=100 * (1 - 1 / amplification) if amplification is not None and amplification > 1 else None,
        runs=[_fitted_run(point, requested, observed) for point in points],
        tools=_distinct(chosen, "tool"),
        devices=_distinct(chosen, "device"),
        runs_left_out=sum(row.get("study") not in (AGGREGATE_SIZE, SATURATION) for row in records) - len(chosen),
        asymptotes=_guards(guard or at_depth, notes),
        notes=notes,
        fullness_pct=max((row["fullness_pct"] for row in chosen if row.get("fullness_pct") is not None), default=None),
        memory_bytes=max((row["memory_bytes"] for row in chosen if row.get("memory_bytes")), default=None),
        ceiling_fsu_pct=_ceiling_pct(fsu),
        saturating_fsu_pct=fsu,
        last_run_us=max((row["time"] for row in chosen if row.get("time") is not None), default=None),
        predicted_by_request=[_predicted(point.requested, requested.get(point.direction)) for point in points],
        sizes_at_disk=_histograms(chosen),
        saturating=saturating,
    )


def _saturating_fsu(runs: Sequence[SaturatingRun], fits: Fits) -> list[float]:
    """FSU of each run by these coefficients; none where a direction lacks them."""
    if fits.write is None or fits.read is None:
        return []
    costs = (Coefficients(fit.latency_s, fit.s_per_byte) for fit in (fits.write, fits.read))
    calibration = Calibration("fitted", *costs)
    return [run.fsu_pct(calibration) for run in runs]


def _ceiling_pct(fsu: Sequence[float]) -> float | None:
    """The median over the runs."""
    return statistics.median(fsu) if fsu else None


def _say_ceiling(fsu: Sequence[float], is_test: bool, notes: list[str]) -> None:
    if not fsu:
        notes.append("no saturating run was observed at the disk: the FSU of a full disk is not measured")
        return
    what = "runs that read and wrote all sizes at once" if is_test else "runs with the smallest transfers"
    notes.append(f"{len(fsu)} {what} showed an FSU of {min(fsu):.0f} to {max(fsu):.0f} %: their median is the ceiling")


def _both_fits(
    points: Sequence[RunPoint], notes: list[str]
) -> tuple[dict[str, TransactionFit], dict[str, TransactionFit]]:
    requested: dict[str, TransactionFit] = {}
    observed: dict[str, TransactionFit] = {}
    for direction in DIRECTIONS:
        mine = [point for point in points if point.direction == direction]
        if not mine:
            notes.append(f"no {direction} runs: no {direction} coefficients")
            continue
        seen = [point.observed for point in mine if point.observed is not None]
        _fit(requested, direction, "requested", [point.requested for point in mine], notes)
        if not seen:
            notes.append(f"nothing was observed at the disk during the {direction} runs: no fit on observed sizes")
            continue
        if len(seen) < len(mine):
            notes.append(f"{len(mine) - len(seen)} of {len(mine)} {direction} runs were not observed at the disk")
        _fit(observed, direction, "observed", seen, notes)
    if not requested and not observed:
        raise UsageError(f"nothing can be fitted: {'; '.join(notes)}")
    return requested, observed


def _fit(into: dict[str, TransactionFit], direction: str, sizes: str, runs: list[Run], notes: list[str]) -> None:
    try:
        fit = fit_transactions(runs)
    except FitError as error:
        notes.append(f"{direction} on {sizes} sizes: {error}")
        return
    into[direction] = fit
    if fit.unconstrained is not None:
        plain = fit.unconstrained
        notes.append(
            f"{direction} on {sizes} sizes: it gave {plain.latency_s:.3g} s and {plain.s_per_byte:.3g} s/byte."
            " A negative cost means nothing, so the regression was repeated without it: do not rely on this coefficient"
        )


def _shown(fit: TransactionFit | None) -> DirectionFit | None:
    if fit is None:
        return None
    latency, s_per_byte = fit.coefficients.latency_s, fit.coefficients.s_per_byte
    plain = fit.unconstrained
    return DirectionFit(
        latency_s=latency,
        s_per_byte=s_per_byte,
        rate_mib_per_s=1 / s_per_byte / MIB if s_per_byte else None,
        iops_limit=1 / latency if latency else None,
        r2=fit.r2,
        mape_pct=fit.mape_pct,
        ci95=ConfidenceIntervals(
            latency_s=_ends(fit.latency_s_ci95),
            s_per_byte=_ends(fit.s_per_byte_ci95),
            rate_mib_per_s=_limits(fit.s_per_byte_ci95, MIB),
            iops_limit=_limits(fit.latency_s_ci95, 1),
        ),
        runs=len(fit.predicted_bytes_per_s),
        negative=plain is not None,
        unconstrained_latency_s=None if plain is None else plain.latency_s,
        unconstrained_s_per_byte=None if plain is None else plain.s_per_byte,
    )


def _ends(interval: ResampledInterval | None) -> list[float | None]:
    return [None, None] if interval is None else [interval.low, interval.high]


def _limits(interval: ResampledInterval | None, unit: float) -> list[float | None]:
    """The interval of 1/a: its ends change places."""
    if interval is None:
        return [None, None]
    return [1 / end / unit if end else None for end in (interval.high, interval.low)]


def _fitted_run(
    point: RunPoint, requested: Mapping[str, TransactionFit], observed: Mapping[str, TransactionFit]
) -> FittedRun:
    if point.observed is not None and point.direction in observed:
        predicted = _predicted(point.observed, observed[point.direction])
    else:
        predicted = _predicted(point.requested, requested.get(point.direction))
    size = None if point.observed is None else point.observed.io_bytes / point.observed.operations
    return FittedRun(point.direction, point.size_bytes, size, point.requested.bytes_per_s, predicted)


def _predicted(run: Run, fit: TransactionFit | None) -> float | None:
    return None if fit is None else predicted_bytes_per_s(run, fit.coefficients)


def _read_amplification(points: Sequence[RunPoint]) -> float | None:
    """Disk bytes over requested bytes of the reads; None where the disk's bytes were not counted."""
    reads = [point for point in points if point.direction == "read" and point.observed and not point.is_estimate]
    asked = sum(point.requested.moved_bytes for point in reads)
    return sum(point.observed.io_bytes for point in reads if point.observed) / asked if asked else None


def _histograms(rows: Sequence[Row]) -> list[SmallestTransferSizes]:
    """Of each direction the run with the smallest transfers, where the disk counts sizes."""
    result = []
    for direction in reversed(DIRECTIONS):
        counted = [row for row in rows if row["direction"] == direction and row.get("device_sizes")]
        if counted:
            row = min(counted, key=transfer_size)
            counts = {int(size): int(count) for size, count in json.loads(row["device_sizes"]).items()}
            disk = sum(size * count for size, count in counts.items())
            result.append(SmallestTransferSizes(direction, round(transfer_size(row)), row["bytes"], disk, counts))
    return result


def _guards(rows: Sequence[Row], notes: list[str]) -> list[CacheGuard]:
    """Bandwidth against aggregate size, at the one transfer size that was tried on most of them."""
    guards = []
    for direction in reversed(DIRECTIONS):
        series: dict[Any, list[Row]] = {}
        for row in rows:
            if row.get("direction") == direction and row.get("aggregate_bytes") and all(row.get(n) for n in NEEDED):
                series.setdefault(row.get("transfer_bytes"), []).append(row)
        widest = max(series.values(), key=lambda same: len({row["aggregate_bytes"] for row in same}), default=[])
        sizes = [row["aggregate_bytes"] for row in widest]
        if len(set(sizes)) < 2:
            continue
        ordered = sorted(widest, key=lambda row: (row["aggregate_bytes"], row.get("time") or 0))
        sizes = [row["aggregate_bytes"] for row in ordered]
        rates = [row["bytes"] / row["duration_s"] for row in ordered]
        asymptote = find_asymptote(sizes, rates)
        guards.append(CacheGuard(direction, sizes, rates, asymptote))
        notes.append(_asymptote_note(direction, asymptote, max(sizes)))
    return guards


def _asymptote_note(direction: str, asymptote: Asymptote | None, largest: int) -> str:
    if asymptote is None:
        still = f"{direction} bandwidth still changes at {format_bytes(largest)}"
        return f"{still}: a cache may be answering; use larger files"
    level = f"{asymptote.bytes_per_s / MIB:,.0f} MiB/s"
    return f"{direction} bandwidth settles at {level} from an aggregate size of {format_bytes(asymptote.from_bytes)} on"


def _distinct(rows: Sequence[Row], name: str) -> list[str]:
    return sorted({str(row[name]) for row in rows if row.get(name) is not None})
