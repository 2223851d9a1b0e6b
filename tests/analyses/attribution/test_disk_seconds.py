"""Disk-seconds of jobs (B1): engine expressions against loops over the same rows, which follow the definition."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from iolens.analyses.attribution.job_sums import disk_seconds_of
from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.job_totals import KnownJob
from iolens.models.transaction_time import GRACE_2012, Calibration, Coefficients
from iolens.records import Row
from iolens.schema import DIRECTIONS, size_column
from iolens.store.store import Store
from iolens.units import from_epoch_us
from tests.store.samples import capture

S = 1_000_000
MIDNIGHT = 1_699_920_000  # of a UTC day
T0 = MIDNIGHT - 600
SIZES = (4096, 1 << 20)
OSTS = ("scratch-OST0000", "scratch-OST0001", "scratch-OST0002")
SLOW = Calibration("slow", Coefficients(5e-3, 4e-9), Coefficients(3e-3, 2e-9))
GENERAL = [AppliedCalibration(None, None, None, None, GRACE_2012)]
BY_CLASS = [AppliedCalibration("slow", [OSTS[1]], None, None, SLOW), *GENERAL]
BY_DATE = [AppliedCalibration(None, None, from_epoch_us(MIDNIGHT * S), None, SLOW), *GENERAL]


@dataclass
class Rows:
    """Rows of four tables; times in seconds."""

    job_io: list[dict[str, object]] = field(default_factory=list)
    target_sizes: list[dict[str, object]] = field(default_factory=list)
    target_io: list[dict[str, object]] = field(default_factory=list)

    def items(self, filesystem: str = "scratch") -> Iterator[Row]:
        for table, rows in vars(self).items():
            for row in rows:
                start, end = (round(float(str(row[name])) * S) for name in ("start", "time"))
                times = {"start": start, "time": end, "duration_s": (end - start) / S}
                yield Row(table, {"filesystem": filesystem, **row, **times})


def made_up(seed: int) -> Rows:
    """Twenty minutes over midnight: disk I/Os every 5 s with gaps, job_stats every minute, once after three."""
    chance = random.Random(seed)
    rows = Rows()
    ends = [T0 + 60 * minute for minute in range(21) if minute not in (7, 8)]
    for target in (*OSTS, "scratch-MDT0000"):
        common = {"target": target, "target_kind": "mdt" if "MDT" in target else "ost"}
        for start in range(T0, T0 + 1200, 5):
            times = {"start": start, "time": start + 5, **common}
            if target != OSTS[2] or start < T0 + 300:  # of the third OST disk sizes are known for five minutes only
                counts = {size_column(d, size): chance.choice([0, 3, 400]) for d in DIRECTIONS for size in SIZES}
                rows.target_sizes.append({**times, **counts})
            if not T0 + 120 <= start < T0 + 180 and chance.random() < 0.95:
                rows.target_io.append({**times, **{f"{d}_ops": chance.choice([0, 50, 300]) for d in DIRECTIONS}})
        for start, end in itertools.pairwise(ends):
            for job in chance.sample(["1", "2", "3", "cron.0"], chance.randrange(1, 4)):
                ops = {f"{d}_ops": chance.choice([0, 100, 2000]) for d in DIRECTIONS}
                moved = {f"{d}_bytes": ops[f"{d}_ops"] * chance.choice(SIZES) for d in DIRECTIONS}
                rows.job_io.append({"start": start, "time": end, **common, "job_id": job, **ops, **moved})
    return rows


def calibration_of(applied: list[AppliedCalibration], target: str, start: float) -> Calibration:
    return next(
        item.calibration
        for item in applied
        if (item.targets is None or target in item.targets)
        and (item.valid_from is None or start * S >= item.valid_from.timestamp() * S)
    )


def by_hand(rows: Rows, applied: list[AppliedCalibration]) -> tuple[dict[str, float], float]:
    """Disk-seconds by job, and those with k = 1 because it is not known."""
    seconds: defaultdict[str, float] = defaultdict(float)
    assumed_s = 0.0
    places = {(row["target"], row["start"], row["time"]) for row in rows.job_io if row["target_kind"] != "mdt"}
    for target, start, end in places:
        within = [
            [row for row in table if row["target"] == target and start <= row["start"] and row["time"] <= end]  # type: ignore[operator]
            for table in (rows.target_sizes, rows.target_io)
        ]
        jobs = [row for row in rows.job_io if (row["target"], row["start"], row["time"]) == (target, start, end)]
        for direction in DIRECTIONS:
            sizes, requests = within
            ios = sum(int(str(row[size_column(direction, size)])) for row in sizes for size in SIZES)
            rpcs = sum(int(str(row[f"{direction}_ops"])) for row in requests)
            took_s = sum(
                int(str(row[size_column(direction, size)]))
                * calibration_of(applied, str(target), float(str(row["start"]))).of(direction).seconds(size)
                for row in sizes
                for size in SIZES
            )
            cost = calibration_of(applied, str(target), float(str(start))).of(direction)
            ratio = ios / rpcs if sizes and requests and rpcs else None
            wanted = {
                str(row["job_id"]): cost.counted_seconds(
                    int(str(row[f"{direction}_ops"])) * (1 if ratio is None else ratio),
                    int(str(row[f"{direction}_bytes"])),
                )
                for row in jobs
            }
            factor = took_s / sum(wanted.values()) if sizes and sum(wanted.values()) > took_s else 1.0
            for job, wanted_s in wanted.items():
                seconds[job] += factor * wanted_s
                assumed_s += factor * wanted_s if ratio is None and job != "cron.0" else 0.0
    return dict(seconds), assumed_s


JOBS = [KnownJob(name, T0 * S, (T0 + 1200) * S) for name in ("1", "2", "3")]


def stored(tmp_path: Path, rows: Rows) -> Store:
    store = Store(tmp_path / "store")
    assert store.ingest([capture(list(rows.items()), "made up")], "test").refused == 0
    return store


@pytest.mark.parametrize("applied", [GENERAL, BY_CLASS, BY_DATE], ids=["one", "by class", "by date"])
@pytest.mark.parametrize("seed", [1, 2])
def test_disk_seconds_are_those_of_the_definition(tmp_path: Path, seed: int, applied: list[AppliedCalibration]) -> None:
    rows = made_up(seed)
    expected, assumed_s = by_hand(rows, applied)
    result = disk_seconds_of(stored(tmp_path, rows).select("scratch"), JOBS, applied)
    assert result.by_job == {place: pytest.approx(expected[job.job_id]) for place, job in enumerate(JOBS)}
    whole_s = sum(expected[job.job_id] for job in JOBS)
    assert result.assumed_pct == pytest.approx(100 * assumed_s / whole_s)
    assert 0 < assumed_s < whole_s
    assert result.calibrations == sorted({item.calibration.name for item in applied})


def one_interval(**sizes: int) -> Rows:
    times = {"start": T0, "time": T0 + 60, "target": OSTS[0], "target_kind": "ost"}
    job = {"read_ops": 100, "read_bytes": 100 << 20, "write_ops": 0, "write_bytes": 0}
    return Rows(
        [{**times, "job_id": "1", **job}, {**times, "job_id": "2", **job, "read_ops": 300, "read_bytes": 300 << 20}],
        [{**times, **sizes}] if sizes else [],
        [{**times, "read_ops": 400, "write_ops": 0}],
    )


def seconds(tmp_path: Path, rows: Rows, jobs: list[KnownJob]) -> dict[int, float | None]:
    return dict(disk_seconds_of(stored(tmp_path, rows).select("scratch"), jobs, GENERAL).by_job)


def test_what_the_cache_answers_costs_no_disk_time(tmp_path: Path) -> None:
    """400 RPCs of 1 MiB, of which 40 reached the disk: both jobs are scaled to what the disk took."""
    took_s = 40 * GRACE_2012.read.seconds(1 << 20)
    both = seconds(tmp_path, one_interval(**{size_column("read", 1 << 20): 40}), JOBS[:2])
    assert both == {0: pytest.approx(took_s / 4), 1: pytest.approx(took_s * 3 / 4)}


def test_an_rpc_that_became_several_ios_costs_their_latency(tmp_path: Path) -> None:
    """400 RPCs of 1 MiB became 1,600 I/Os of 256 KiB: k = 4, and all of it is the jobs' own."""
    both = seconds(tmp_path, one_interval(**{size_column("read", 1 << 18): 1600}), JOBS[:2])
    assert both[0] == pytest.approx(GRACE_2012.read.counted_seconds(400, 100 << 20))
    assert both[1] == pytest.approx(GRACE_2012.read.counted_seconds(1200, 300 << 20))


def test_without_disk_sizes_an_rpc_is_one_io(tmp_path: Path) -> None:
    rows = one_interval()
    result = disk_seconds_of(stored(tmp_path, rows).select("scratch"), JOBS[:1], GENERAL)
    assert result.by_job == {0: pytest.approx(GRACE_2012.read.counted_seconds(100, 100 << 20))}
    assert result.assumed_pct == pytest.approx(100)


@pytest.mark.parametrize(("ticks", "is_refuted"), [(10, True), (8, False)])
def test_ten_minutes_that_no_disk_can_do_refute_the_calibration(tmp_path: Path, ticks: int, is_refuted: bool) -> None:
    """1.5 s of disk time in each second, on the only OST that reports."""
    begin = T0 - T0 % 600
    times = [{"start": begin + 60 * n, "time": begin + 60 * n + 60, "target": OSTS[0], "target_kind": "ost"}
             for n in range(ticks)]  # fmt: skip
    ios = round(90 / GRACE_2012.read.seconds(1 << 20))
    requests = {"read_ops": ios, "read_bytes": ios << 20, "write_ops": 0, "write_bytes": 0}
    rows = Rows(
        [{**row, "job_id": "1", **requests} for row in times],
        [{**row, size_column("read", 1 << 20): ios} for row in times],
        [{**row, "read_ops": ios, "write_ops": 0} for row in times],
    )
    result = disk_seconds_of(stored(tmp_path, rows).select("scratch"), JOBS[:1], GENERAL)
    refuted = result.calibrated["calibration_refuted"]
    assert (refuted is not None) is is_refuted
    if refuted is not None:
        assert refuted.mean_fsu_pct == pytest.approx(150, rel=1e-3)
        assert refuted.until == from_epoch_us((begin + 600) * S)
    without_sizes = Rows(rows.job_io, [], rows.target_io)  # what jobs asked for is not what disks did
    asked = disk_seconds_of(stored(tmp_path / "asked", without_sizes).select("scratch"), JOBS[:1], GENERAL)
    assert asked.calibrated["calibration_refuted"] is None


def test_only_what_is_known_is_given(tmp_path: Path) -> None:
    """A job that ran at another time under the same id, one that no job_stats name, one without RPC counts."""
    rows = one_interval()
    rows.job_io[1] = {name: value for name, value in rows.job_io[1].items() if name != "read_ops"}
    later = KnownJob("1", (T0 + 600) * S, (T0 + 700) * S)
    assert seconds(tmp_path, rows, [later, JOBS[2], JOBS[1]]) == {2: None}
    assert disk_seconds_of(stored(tmp_path / "b", rows).select("scratch"), JOBS, []).by_job == {}
