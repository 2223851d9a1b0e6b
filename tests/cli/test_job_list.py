"""`iolens job list`: orders, formats, and jobs that are not in it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from iolens.analyses.job_list.analysis import ORDERS, JobList
from iolens.cli import job_list
from iolens.store.store import Store
from iolens.views.job_list.tables import ORDER_WORDS
from tests.analyses.like_jobs import five_applications, stored_like_jobs
from tests.cli.command import iolens
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
    assert list(ORDERS) == list(job_list.ORDERS) == list(ORDER_WORDS)


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
