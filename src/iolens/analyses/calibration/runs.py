"""Which benchmark runs tell what a disk I/O or a metadata operation costs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from iolens.errors import UsageError
from iolens.models.metadata_time import (
    BenchmarkRate,
    MetadataCalibration,
    metadata_calibration,
    phase_name,
    unsaturated,
)
from iolens.models.transaction_fit import Run
from iolens.models.transaction_time import Calibration, fsu_bytes_pct

# Which benchmark runs tell what a disk I/O costs, and what they did ---------------------------------------------------
# By request, and at the disk (U3, U5).

DIRECTIONS: Final = ("write", "read")
TRANSFER_SIZE, AGGREGATE_SIZE, SATURATION = "transfer_size", "aggregate_size", "saturation"  # what a sweep varied
NEEDED: Final = ("duration_s", "bytes", "operations")
DISTURBED: Final = 0.05  # of the disk's bytes in the other direction: somebody else was at work
FIO_LOOKS_EVERY_S: Final = 0.25
OTHER_STUDIES: Final = "of the cache guard or the saturating test"

Row = Mapping[str, Any]
Repeats = Literal["all", "median", "best"]


@dataclass(frozen=True, slots=True)
class RunPoint:
    """One run as the two regressions see it."""

    direction: str
    size_bytes: int
    requested: Run
    observed: Run | None
    is_estimate: bool

    @classmethod
    def of(cls, row: Row) -> RunPoint:
        """The point of a row that `usable_runs` kept."""
        seconds, operations, moved = row["duration_s"], row["operations"], row["bytes"]
        size = row.get("transfer_bytes") or round(moved / operations)
        disk, is_estimate = _at_disk(row)
        seen = Run(seconds, *disk, moved) if disk is not None else None
        return cls(row["direction"], size, Run(seconds, operations, moved, moved), seen, is_estimate)


def _at_disk(row: Row) -> tuple[tuple[float, float] | None, bool]:
    """I/Os and bytes at the disk, and whether they are an estimate; None where nothing was observed."""
    if row.get("device_sizes"):
        counts = {int(size): int(count) for size, count in json.loads(row["device_sizes"]).items()}
        counted = sum(counts.values())
        return ((counted, sum(size * count for size, count in counts.items())) if counted else None), False
    operations, moved = row.get("device_ops"), row.get("device_bytes")
    if operations and moved:
        return (operations, moved), False
    # fio before 3.36 prints the device's I/Os without their bytes. Direct I/O moves exactly the bytes asked for; of the
    # I/Os up to the last quarter second is missing, half of that on average. Fewer than asked for: none was split.
    seen_s = row["duration_s"] - FIO_LOOKS_EVERY_S / 2
    if operations and row.get("direct") and row.get("tool") == "fio" and seen_s > FIO_LOOKS_EVERY_S:
        split = operations > row["operations"]
        return (operations * row["duration_s"] / seen_s if split else row["operations"], row["bytes"]), True
    return None, False


def usable_runs(rows: Sequence[Row], access: str, minimum: int | None, notes: list[str]) -> list[Row]:
    """Runs that can tell what an I/O costs; how many cannot, and why, goes to the notes."""
    reasons: tuple[tuple[str, Callable[[Row], bool]], ...] = (
        (OTHER_STUDIES, lambda row: row.get("study") in (AGGREGATE_SIZE, SATURATION)),
        ("neither read nor write", lambda row: row.get("direction") not in DIRECTIONS),
        ("incomplete", lambda row: row.get("complete") is False),
        ("without time, bytes or operations", lambda row: not all(row.get(name) for name in NEEDED)),
        ("of reads and writes at the same time", lambda row: bool(row.get("mixed"))),
        (f"not {access}", lambda row: access != "any" and (row.get("access") or access) != access),
        ("on smaller files than asked for", lambda row: minimum is not None and not _is_large(row, minimum)),
    )
    left = list(rows)
    for why, applies in reasons:
        dropped = [row for row in left if applies(row)]
        if dropped and why != OTHER_STUDIES:
            notes.append(f"{len(dropped)} runs left out: {why}")
        left = [row for row in left if not applies(row)]
    silent = sum(row.get("access") is None for row in left)
    if silent and access != "any":
        notes.append(f"{silent} runs do not say whether their offsets were {access}: taken as such")
    if not left:
        said = "; ".join(notes) or "there are no runs"
        raise UsageError(f"no run can be fitted: {said}")
    return left


def _is_large(row: Row, minimum: int) -> bool:
    return row.get("aggregate_bytes") is not None and row["aggregate_bytes"] >= minimum


def one_queue_depth(rows: Sequence[Row], asked: int | None) -> int | None:
    """The queue depth of all runs: what an I/O costs depends on how many are in flight."""
    depths = sorted({row["queue_depth"] for row in rows if row.get("queue_depth") is not None})
    if asked is not None:
        if asked not in depths:
            raise UsageError(f"no run has queue depth {asked}; there are: {', '.join(map(str, depths)) or 'none'}")
        return asked
    if len(depths) > 1:
        raise UsageError(
            f"runs of several queue depths ({', '.join(map(str, depths))}) are different experiments:"
            " choose one with --queue-depth"
        )
    return depths[0] if depths else None


def chosen_runs(rows: Sequence[Row], repeats: Repeats, notes: list[str]) -> list[Row]:
    """The runs that count, in the order of direction and size."""
    points: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        points.setdefault(_point_of(row), []).append(row)
    chosen: list[Row] = []
    for same in points.values():
        ordered = sorted(same, key=lambda row: float(row["bytes"] / row["duration_s"]))
        chosen += {"all": ordered, "median": [ordered[len(ordered) // 2]], "best": ordered[-1:]}[repeats]
    if len(chosen) < len(rows):
        every = "--repeats all: every run"
        notes.append(f"of {len(rows)} runs the {repeats} of each point's repeats: {len(chosen)} ({every})")
    return sorted(chosen, key=lambda row: (DIRECTIONS.index(row["direction"]), transfer_size(row), row["bytes"]))


def _point_of(row: Row) -> tuple[Any, ...]:
    names = ("tool", "sweep", "direction", "transfer_bytes", "tasks", "queue_depth", "direct", "aggregate_bytes")
    return (*(row.get(name) for name in names), None if row.get("transfer_bytes") else row.get("run_id"))


def transfer_size(row: Row) -> float:
    """Bytes of one transfer; the mean where sizes were mixed."""
    return float(row.get("transfer_bytes") or row["bytes"] / row["operations"])


def say_estimates(points: Sequence[RunPoint], notes: list[str]) -> None:
    """Note how many runs have sizes at the disk that are only estimated."""
    estimates = sum(point.is_estimate for point in points)
    if estimates:
        notes.append(
            f"{estimates} runs: fio printed the device's operations without their bytes; sizes at the disk are"
            " estimates, good to an eighth of a second of the run"
        )


def say_disturbance(rows: Sequence[Row], notes: list[str]) -> None:
    """Note how many runs had company."""
    disturbed = [
        row
        for row in rows
        if row.get("device_bytes") and (row.get("device_other_bytes") or 0) > DISTURBED * row["device_bytes"]
    ]
    if disturbed:
        notes.append(f"during {len(disturbed)} of {len(rows)} runs somebody else used the disk noticeably")


@dataclass(frozen=True, slots=True)
class SaturatingRun:
    """What a disk did while it was kept as busy as could be: I/Os and bytes by direction."""

    seconds: float
    at_disk: Mapping[str, tuple[float, float]]

    def fsu_pct(self, calibration: Calibration) -> float:
        """FSU of the run (Eq. 7, from counts: U9)."""
        reads, read_bytes = self.at_disk.get("read", (0.0, 0.0))
        writes, write_bytes = self.at_disk.get("write", (0.0, 0.0))
        return fsu_bytes_pct(reads, read_bytes, writes, write_bytes, self.seconds, calibration)


def saturating_runs(rows: Sequence[Row], chosen: Sequence[Row], depth: int | None) -> tuple[list[SaturatingRun], bool]:
    """The runs of the saturating test, at this queue depth; where there was none, the most demanding of the sweep.

    And whether it is the test. The most demanding are the smallest transfers of each direction, whose FSU paper U shows
    (Fig. 8): every run of a sweep goes as fast as the disk lets it. Runs not observed at the disk tell nothing.
    """
    tested = [row for row in rows if row.get("study") == SATURATION and row.get("complete") is not False]
    tested = [row for row in tested if depth is None or row.get("queue_depth") == depth]
    smallest = {
        direction: min((transfer_size(row) for row in chosen if row["direction"] == direction), default=0.0)
        for direction in DIRECTIONS
    }
    demanding = [row for row in chosen if transfer_size(row) == smallest[row["direction"]]]
    runs: dict[Any, list[Row]] = {}
    for number, row in enumerate(tested or demanding):
        runs.setdefault(row.get("run_id") if tested else number, []).append(row)
    observed = [_saturating(same_run) for same_run in runs.values()]
    return [run for run in observed if run is not None], bool(tested)


def _saturating(rows: Sequence[Row]) -> SaturatingRun | None:
    """One run from its rows, one per direction; what others did in the other direction counts where it is known."""
    at_disk: dict[str, tuple[float, float]] = {}
    for row in rows:
        seen, _ = _at_disk(row)
        if seen is None:
            return None
        at_disk[row["direction"]] = seen
    if len(rows) == 1 and rows[0].get("device_other_bytes") is not None:
        other = "read" if rows[0]["direction"] == "write" else "write"
        at_disk[other] = (rows[0].get("device_other_ops") or 0, rows[0]["device_other_bytes"])
    return SaturatingRun(max(row["duration_s"] for row in rows), at_disk)


# Which mdtest results say what metadata operations cost ---------------------------------------------------------------
# Those of the file system, or the ones asked for.

TOOL: Final = "mdtest"
NONE: Final = "none"
NOT_CALIBRATED: Final = (
    "no mdtest result is stored for {filesystem}, so there is no metadata utilization: ingest one"
    " (`iolens ingest mdtest FILE`), or name one with --calibration mdtest:NAME"
)


def find_metadata_calibration(
    stored: Sequence[Mapping[str, Any]], wanted: str | None, filesystem: str
) -> tuple[MetadataCalibration | None, tuple[str, ...]]:
    """The calibration from stored benchmark runs, and what the reader must know about it.

    `wanted`: `mdtest` (or nothing) for all results of the file system, `mdtest:NAME` for those of one run or of another
    file system, `none` for no calibration.
    """
    if wanted == NONE:
        return None, ()
    tool, _, name = (wanted or TOOL).partition(":")
    if tool != TOOL:
        raise UsageError(f"no metadata calibration is called {wanted!r}; write mdtest, mdtest:NAME or none")
    rows = [row for row in stored if row["tool"] == TOOL]
    mine = [
        row for row in rows if (name in (row["run_id"], row["filesystem"]) if name else row["filesystem"] == filesystem)
    ]
    if not mine:
        if wanted is None:
            return None, (NOT_CALIBRATED.format(filesystem=filesystem),)
        raise UsageError(f"no mdtest result is stored for {name or filesystem!r}; there are: {_names(rows)}")
    rates = [rate for row in mine if (rate := _rate(row)) is not None]
    try:
        calibration = metadata_calibration(f"{TOOL}:{name or filesystem}", rates)
    except ValueError as error:
        raise UsageError(f"{name or filesystem}: {error}") from None
    rising = unsaturated(rates)
    if not rising:
        return calibration, ()
    faster = f"with more tasks mdtest still became faster at {', '.join(rising)}"
    return calibration, (f"{faster}: the server was not saturated, and metadata utilization is overstated",)


def _rate(row: Mapping[str, Any]) -> BenchmarkRate | None:
    """Of a complete result; by the printed rate where operations are unknown (stopped by time, or a summary)."""
    if row.get("complete") is False or not row["direction"]:
        return None
    phase = phase_name(row["direction"])
    if row["operations"] and row["duration_s"]:
        return BenchmarkRate(phase, row["operations"], row["duration_s"], row["tasks"])
    printed = row.get("reported_ops_per_s")
    return BenchmarkRate(phase, printed, 1.0, row["tasks"]) if printed else None


def _names(rows: Sequence[Mapping[str, Any]]) -> str:
    names = {str(row[key]) for row in rows for key in ("filesystem", "run_id") if row[key] is not None}
    return ", ".join(sorted(names)) or "none"
