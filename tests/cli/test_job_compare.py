"""`iolens job compare`: dates, lists, filters, formats, figures and errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from iolens.store.store import Store
from iolens.units import from_epoch_us, iso
from tests.analyses.client_rows import T0_S
from tests.analyses.like_jobs import REGRESSION, like_job, stored_like_jobs
from tests.cli.command import iolens

KEYS = [
    "filesystem", "before", "after", "first", "second", "verdict", "sizes", "totals", "significance", "arrangements",
    "is_exhaustive", "smallest_p", "left_out", "jobs",
]  # fmt: skip
BEFORE = ",".join(str(1000 + number) for number in range(12))
AFTER = ",".join(str(1000 + number) for number in range(12, 22))


def at(job: int, minutes: float = 0) -> str:
    return iso(from_epoch_us(round((T0_S + 7200 * job + 60 * minutes) * 1e6)))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve jobs, an upgrade, and ten more whose reads of 1 MiB have become reads of 8 KiB."""
    folder = tmp_path_factory.mktemp("store")
    random = np.random.default_rng(1)
    jobs = [like_job(number, random, *([REGRESSION] if number >= 12 else [])) for number in range(22)]
    stored_like_jobs(Store(folder), jobs)
    return folder


def test_before_and_after_a_date(store: Path) -> None:
    done = iolens("job", "compare", "--store", store, "--name", "enz*", "--after", at(12), "--format", "json")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert list(result) == KEYS
    assert (result["first"]["jobs"], result["second"]["jobs"], result["verdict"]) == (12, 10, "moved")
    assert result["before"] == result["after"] == at(12)
    moved = [
        (line["direction"], line["size_bytes"]) for line in result["sizes"] if line["moved"] and line["share"] == "rpcs"
    ]
    assert moved == [("read", 8192), ("read", 1 << 20)]
    assert result["first"]["sampled_at_begin_and_end"] == 12
    assert [job["job_id"] for job in result["jobs"]] == [*BEFORE.split(","), *AFTER.split(",")]


def test_two_lists_say_the_same(store: Path) -> None:
    lists = json.loads(
        iolens("job", "compare", "--store", store, "--jobs", AFTER, "--against", BEFORE, "--format", "json").out
    )
    dates = json.loads(iolens("job", "compare", "--store", store, "--before", at(12), "--format", "json").out)
    assert lists["sizes"] == dates["sizes"]
    assert lists["totals"] == dates["totals"]
    assert lists["second"]["label"] == "jobs"
    assert lists["before"] is None


def test_jobs_across_the_date_are_left_out_and_counted(store: Path) -> None:
    done = iolens("job", "compare", "--store", store, "--before", at(8), "--after", at(13, 10), "--format", "json")
    result = json.loads(done.out)
    assert (result["first"]["jobs"], result["second"]["jobs"], result["left_out"]["in_between"]) == (8, 8, 6)


def test_the_table_begins_with_the_verdict_and_figures_are_drawn(store: Path, tmp_path: Path) -> None:
    base = ("job", "compare", "--store", store, "--after", at(12))
    done = iolens(*base, "--figure", tmp_path / "a.png", "--figure", f"totals={tmp_path / 'b.html'}")
    assert done.code == 0, done.err
    assert "The shift is real (12 jobs before, 10 after; family-wise p): " in done.out
    assert "reads of 8 KiB rose from" in done.out
    assert "20,000 random arrangements" in done.out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert iolens(*base, "--figure", "list").out.split() == ["sizes", "bytes", "totals"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a date (--before, --after, or both) or two lists of jobs"),
        (["--jobs", "1000"], "--jobs and --against go together"),
        (["--jobs", "1000,1001", "--against", "1001"], "in both lists: job 1001"),
        (["--jobs", "1000", "--against", "77"], "scratch has no counters of job 77"),
        (["--jobs", "1", "--against", "2", "--after", "2026-01-01"], "not both"),
        (["--after", "2001-01-01"], "no such job on scratch on the side 'before'"),
        (["--before", "2026-02-01", "--after", "2026-01-01"], "is later than --after"),
        (["--name", "other", "--after", "2026-02-01"], "no such job on scratch"),
        (["--after", "2023-11-16", "--cores", "many"], "--cores"),
        (["--after", "2023-11-16", "--target", "OST0000"], "--target does not go with jobs"),
    ],
)
def test_errors_are_one_clear_message(store: Path, arguments: list[str], message: str) -> None:
    done = iolens("job", "compare", "--store", store, *arguments)
    assert done.code == 2, done.err
    assert message in done.err
    assert "Traceback" not in done.err


def test_jobs_that_share_nodes_are_warned_about_and_can_be_left_out(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    jobs = [like_job(number, random, hours=3.0 if number < 5 else 0.5) for number in range(14)]  # the first overlap
    stored_like_jobs(Store(tmp_path), jobs)
    base = ("job", "compare", "--store", tmp_path, "--after", at(8))
    assert "Warning: 6 jobs shared nodes with others" in iolens(*base).out
    result = json.loads(iolens(*base, "--exclusive", "--format", "json").out)
    assert (result["first"]["jobs"], result["left_out"]["sharing_nodes"]) == (2, 6)
