"""`iolens job list`: orders, formats, and jobs that are not in it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from iolens.analyses.job_list import ORDERS, JobList
from iolens.questions.jobs.question import LIST_ORDERS
from iolens.records import Row
from iolens.store.store import Store
from iolens.views.job_list import ORDER_WORDS
from tests.analyses.like_jobs import five_applications, stored_like_jobs
from tests.cli.command import iolens
from tests.store.samples import capture
from tests.views.documented import undocumented


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    stored_like_jobs(Store(folder), five_applications())
    return folder


def listed(store: Path, *arguments: object) -> dict[str, list[dict[str, object]]]:
    done = iolens("job", "list", "--store", store, "--format", "json", *arguments)
    assert done.code == 0, done.err
    result: dict[str, list[dict[str, object]]] = json.loads(done.out)
    return result


def test_every_order_has_its_words_and_its_option() -> None:
    assert list(ORDERS) == list(LIST_ORDERS) == list(ORDER_WORDS)


def moved(job: dict[str, object]) -> int:
    return int(str(job["read_bytes"])) + int(str(job["write_bytes"]))


def test_most_bytes_come_first(store: Path) -> None:
    jobs = listed(store)["jobs"]
    assert (jobs[0]["name"], jobs[0]["read_bytes"], jobs[0]["write_bytes"]) == ("enzo", 54 * 10**9, 56 * 10**9)
    assert [moved(job) for job in jobs] == sorted(map(moved, jobs), reverse=True)


@pytest.mark.parametrize(
    ("order", "key"), [("opens", "opens"), ("operations", "metadata_operations"), ("rpcs", "rpcs")]
)
def test_other_orders(store: Path, order: str, key: str) -> None:
    values = [int(str(job[key])) for job in listed(store, "--sort", order)["jobs"]]
    assert values == sorted(values, reverse=True)
    assert values[0] > 0


def servers_count_too(store: Store) -> None:
    """job_stats of the first two jobs, one interval each, and no size of a disk I/O."""
    first, second = sorted(store.jobs(), key=lambda job: str(job["job_id"]))[:2]
    for job, ops in ((first, 1000), (second, 3000)):
        start = int(str(job["start"]))
        times = {"start": start, "time": start + 60_000_000, "duration_s": 60.0}
        moved = {"read_ops": 0, "read_bytes": 0, "write_ops": ops, "write_bytes": ops << 20}
        row = {"filesystem": "scratch", "target": "scratch-OST0000", "target_kind": "ost", "job_id": job["job_id"]}
        store.ingest([capture([Row("job_io", {**row, **times, **moved})], f"job_io-{ops}")], "servers")


def test_disk_time_needs_job_stats_and_a_calibration(tmp_path: Path) -> None:
    store = Store(tmp_path)
    stored_like_jobs(store, five_applications())
    servers_count_too(store)
    without = listed(tmp_path)
    assert ({job["disk_s"] for job in without["jobs"]}, without["disk_calibrations"]) == ({None}, [])
    coefficients = ("--write", "1.04e-3,1.73e-9", "--read", "8.02e-4,1.23e-9")
    done = iolens("calibrate", "add", "grace", "--store", tmp_path, "-f", "scratch", *coefficients)
    assert done.code == 0, done.err
    result = listed(tmp_path, "--sort", "disk")
    values = [job["disk_s"] for job in result["jobs"]]
    assert values[:2] == [pytest.approx(ops * (1.04e-3 + 1.73e-9 * 2**20)) for ops in (3000, 1000)]
    assert set(values[2:]) == {None}
    assert (result["disk_calibrations"], result["disk_assumed_pct"]) == (["grace"], pytest.approx(100))
    shown = " ".join(iolens("job", "list", "--store", tmp_path, "--sort", "disk").out.split())
    assert "most disk time first (calibration measured)" in shown
    assert (result["calibration_state"], result["calibration_evidence"]) == (
        "measured",
        "grace: given on the command line",
    )
    assert without["calibration_state"] is None  # no disk time, no calibration
    assert "for 100.0 % of the disk time one disk I/O per RPC is assumed" in shown


def test_what_is_cut_off_is_counted(store: Path) -> None:
    everything = listed(store)
    done = iolens("job", "list", "--store", store, "--top", 2)
    assert f"Not here: {len(everything['jobs']) - 2} jobs further down the list" in " ".join(done.out.split())


def test_a_spreadsheet_has_a_line_for_each_job(store: Path) -> None:
    done = iolens("job", "list", "--store", store, "--format", "csv", "--name", "enzo")
    (line,) = csv.DictReader(io.StringIO(done.out))
    assert (line["name"], line["read_bytes"]) == ("enzo", str(54 * 10**9))


def test_every_key_is_documented() -> None:
    assert undocumented(JobList, "job-report.md") == []
