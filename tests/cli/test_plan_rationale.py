"""`iolens plan rationale`: the published design, a store with everything, what is missing, formats, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from iolens.api.plans.rationale import masked
from iolens.records import Capture, Row
from iolens.store.store import Store
from tests.analyses.capacity_rows import readings
from tests.analyses.capacity_rows import table_of as capacity_table
from tests.analyses.demand.test_daily_writes import hours
from tests.analyses.telemetry import T0_US, table_of
from tests.cli.command import Finished, iolens
from tests.cli.test_plan_endurance import drive_rows
from tests.sources.contents.test_size_histogram import BY_END

PUBLISHED = (
    "--daily-growth", "133TB", "--case", "ssi=3,data=10,parity=2,waf=2.68,fswpd=0.024",
    "--case", "ssi=4,data=8,parity=2,waf=3.17,fswpd=0.024",
)  # fmt: skip
DATE = {"SOURCE_DATE_EPOCH": "1554163200"}


def rationale(*arguments: object, cwd: Path | None = None, **environment: str) -> Finished:
    return iolens("plan", "rationale", *arguments, cwd=cwd, **environment)


def plan(folder: Path, *arguments: object, code: int = 0) -> dict[str, Any]:
    path = folder / "plan.json"
    done = rationale(*arguments, "-o", path, cwd=folder)
    assert done.code == code, done.err
    by_name: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return by_name


def expected(by_name: dict[str, Any], name: str) -> list[float]:
    return [item["expected"] for item in by_name["requirements"] if item["name"] == name]


def scan_rows(filesystem: str) -> Iterator[Row]:
    for end, count in {0: 5, 4096: 900, 1 << 20: 200, 1 << 26: 60}.items():
        bins = {"histogram": "size", "inode_type": "file", "bin": end, "bin_from": end // 2 if end else None}
        yield Row("contents", {"time": T0_US, "filesystem": filesystem, "scan": "first", "count": count, **bins})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty days of growth and of writes, drives and a scan."""
    folder = tmp_path_factory.mktemp("store")
    opened = Store(folder)
    opened.append(
        "target_io", table_of("target_io", [row for day in range(20) for row in hours(day, 24, 10 + day % 5)])
    )
    used = [1000 + 37 * day + 11 * (day % 3) for day in range(20)]
    opened.append("target_capacity", capacity_table(readings(range(20), used, total=10**6)))
    opened.ingest([Capture("drives", "made-up/drives", partial(drive_rows, "scratch"))], "isdct")
    opened.ingest([Capture("scan", "made-up/scan", partial(scan_rows, "scratch"))], "scan")
    return folder


@pytest.fixture
def histogram(tmp_path: Path) -> Path:
    path = tmp_path / "sizes.csv"
    path.write_text(BY_END)
    return path


def test_the_published_design_needs_no_store(tmp_path: Path, histogram: Path) -> None:
    """22.3 and 29.8 PB; 0.23 and 0.38 DWPD; without demand the performance is missing, and the exit code says so."""
    result = plan(tmp_path, *PUBLISHED, "--file-sizes", histogram, "--dom", "1KiB", code=3)
    assert [round(item / 1e15, 1) for item in expected(result, "usable capacity")] == [22.3, 29.8]
    assert [round(item / 1e15, 1) for item in expected(result, "raw capacity with parity")] == [26.8, 37.2]
    assert [round(item, 2) for item in expected(result, "drive writes per day, published")] == [0.23, 0.38]
    assert result["metadata"]["capacity_bytes"] == 29_792 * 10**12
    assert [item["part"] for item in result["missing"]] == ["performance"]
    assert result["performance"] is None
    assert result["about"]["store"] is None
    speeds = [item for item in result["capacity"]["inputs"] if item["name"] == "ssi"]
    assert [(speed["expected"], speed["origin"]) for speed in speeds] == [(3, "option --case"), (4, "option --case")]
    assert [item["purge_days"] for item in result["what_if"]] == [14, 28, 56, 14, 28, 56]
    assert result["endurance"]["over_provisioning"] == []  # nobody said what drives offer


def test_everything_from_the_store_as_the_four_verbs_read_it(store: Path, tmp_path: Path) -> None:
    result = plan(
        tmp_path, "--store", store, "--ssi", "3", "--layout", "10+2", "--title", "Next", "--author", "Us", "--smaller"
    )
    assert result["missing"] == []
    assert (result["about"]["title"], result["about"]["author"]) == ("Next", "Us")
    assert result["filesystem"] == "scratch"
    assert {item["input"] for item in result["evidence"]} == {
        "daily growth", "file-system writes per day", "write amplification", "sizes of inodes", "demand",
    }  # fmt: skip
    common = ("--store", store, "--ssi", "3", "--format", "json")
    capacity = json.loads(iolens("plan", "capacity", *common).out)
    assert result["capacity"]["cases"] == capacity["cases"]
    assert result["capacity"]["growth"] == capacity["growth"]
    endurance = json.loads(iolens("plan", "endurance", *common, "--layout", "10+2").out)
    assert result["endurance"]["fswpd"] == endurance["fswpd"]
    assert result["endurance"]["waf"] == endurance["waf"]
    (mine,), (theirs,) = result["endurance"]["cases"], endurance["cases"]
    assert mine["dwpd"] == theirs["dwpd"]
    assert mine["capacity_ratio"] == pytest.approx(10**6 * 2 / result["metadata"]["capacity_bytes"], rel=0.01)
    size = f"{result['metadata']['capacity_bytes']}B"
    alone = ("--store", store, "--capacity", size, "--format", "json", "--smaller")
    metadata = json.loads(iolens("plan", "metadata", *alone).out)
    averages = [[item["total_avg_bytes"] for item in part["thresholds"]] for part in (result["metadata"], metadata)]
    assert averages[0] == averages[1]
    performance = json.loads(iolens("plan", "performance", *common).out)
    assert result["performance"]["demand"] == performance["demand"]


def test_parts_left_out_on_purpose_are_not_missing(tmp_path: Path) -> None:
    done = rationale("--daily-growth", "133TB", "--ssi", "3", "--parts", "capacity", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "| Usable capacity | SSI 3, 28 days, fraction 0.5 | 22.3 PB |" in done.out
    assert "not answered" not in done.out


@pytest.mark.parametrize("suffix", ["md", "html", "pdf"])
def test_the_suffix_says_how_and_a_set_date_makes_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"plan.{suffix}"
    arguments = (*PUBLISHED, "--parts", "capacity,endurance", "-o", path.name)
    contents = []
    for _ in range(2):
        done = rationale(*arguments, cwd=tmp_path, **DATE)
        assert done.code == 0, done.err
        assert f"written: {path.name}" in done.err
        contents.append(path.read_bytes())
        path.unlink()
    assert contents[0] == contents[1]
    begins = {"md": b"# Design rationale", "html": b"<!DOCTYPE html>", "pdf": b"%PDF"}
    assert contents[0].startswith(begins[suffix])
    if suffix == "md":
        assert b"2019-04-02 00:00:00 UTC" in contents[0]
        assert (tmp_path / "plan-figures" / "endurance-dwpd.svg").exists()


def test_what_is_missing_is_said_in_the_document_and_beside_it(tmp_path: Path) -> None:
    Store(tmp_path / "s").append("target_io", table_of("target_io", hours(0, 24, 1)))
    done = rationale("--store", tmp_path / "s", "--ssi", "2", cwd=tmp_path)
    assert done.code == 3
    assert "iolens: capacity is not answered: scratch: no day of growth among 0 readings" in done.err
    assert "give it with --reference-capacity" in done.err
    assert "> **Metadata is not answered: " in done.out
    assert "Required" in done.out  # performance is known


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--daily-growth", "1TB", "-o", "plan.docx"], 2, "ends in .md, .html, .pdf, .json"),
        (["--daily-growth", "1TB", "--parts", "capacity,colour"], 2, "'colour' is no plan"),
        (["--daily-growth", "1TB", "--parts", ","], 2, "is no plan"),
        (["--daily-growth", "1TB", "--ssi", "fast"], 2, "'fast' is not a number"),
        (["--daily-growth", "1TB", "--dom", "big"], 2, "--dom: 'big'"),
        (["--daily-growth", "1TB", "--case", "colour=red"], 2, "write KEY=VALUE"),
        (["--daily-growth", "1TB", "--what-if", "colour=red"], 2, "--what-if"),
        (["--daily-growth", "1TB", "--cost-mdt", "4"], 2, "both --cost-mdt and --cost-ost"),
        (["--daily-growth", "1TB", "--demand", "fast"], 2, "write MEASURE=VALUE"),
        (["--daily-growth", "1TB", "--capacity", "many"], 2, "--capacity: 'many'"),
        (["--daily-growth", "1TB", "--store", "nowhere"], 1, "nowhere holds no data yet"),
        ([], 1, "holds no data yet"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_and_nothing_is_written(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    done = rationale(*arguments, cwd=tmp_path)
    assert (done.code, done.out, len(done.err.splitlines())) == (code, "", 1), done.err
    assert message in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_date_that_is_none_is_refused(tmp_path: Path) -> None:
    done = rationale("--daily-growth", "1TB", "--parts", "capacity", cwd=tmp_path, SOURCE_DATE_EPOCH="yesterday")
    assert (done.code, "seconds since 1970" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("iolens --store mysql://me:secret@host/db -o x", "iolens --store mysql://me:***@host/db -o x"),
        ("s3://bucket/store", "s3://bucket/store"),
        ("a://:secret@h and b://u:p@h", "a://:***@h and b://u:***@h"),
    ],
)
def test_passwords_are_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_two_years_of_the_published_file_system(shared_data: Path, published_store: Path, tmp_path: Path) -> None:
    """The study from its own data: 0.023 to 0.024 FSWPD, 22.3/29.8 PB, 0.23/0.38 DWPD, 1 MiB of every file on MDTs."""
    zone = ("--timezone", "America/Los_Angeles")
    result = plan(
        tmp_path, "--store", published_store, "--from", "2017-04-03", "--to", "2019-04-03", *zone, "--daily-growth",
        "133TB", "--case", "ssi=3,data=10,parity=2,waf=2.68", "--case", "ssi=4,data=8,parity=2,waf=3.17", "--capacity",
        "30PB", "--file-sizes", shared_data / "fsstats" / "cscratch_20190115_sizebytype_hist.csv",
    )  # fmt: skip
    assert result["missing"] == []
    assert [round(item / 1e15, 1) for item in expected(result, "usable capacity")] == [22.3, 29.8]
    assert [round(item, 2) for item in expected(result, "drive writes per day, published")] == [0.23, 0.38]
    dom = {item["dom_bytes"]: item["dom_avg_bytes"] for item in result["metadata"]["thresholds"]}
    assert round(dom[1 << 20] / (1 << 40), 1) == 307.6
    evidence = {item["input"]: item for item in result["evidence"]}
    assert evidence["file-system writes per day"]["samples"] == 713
    assert evidence["daily growth"]["left_out"][-1] == "no complete reading: 1 day"
