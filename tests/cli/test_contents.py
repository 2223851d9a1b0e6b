"""`iolens contents`: formats, figures, projects, comparisons and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolens.records import Capture, Row
from iolens.store.store import Store
from tests.analyses.contents_rows import DAY_US, JANUARY_US, MARCH_US, scanned
from tests.cli.command import Finished, iolens

EARLY: dict[tuple[str | None, str | None], int] = {("ada", "earth"): 12, ("bob", "climate"): 80, ("eve", None): 5}
LATE = EARLY | {("ada", "earth"): 96}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    opened = Store(folder)
    for place, (time, holders) in enumerate(((JANUARY_US, EARLY), (MARCH_US - 30 * DAY_US, EARLY), (MARCH_US, LATE))):
        rows = [Row("contents", item) for item in scanned(time, holders, seed=place)]
        opened.ingest([Capture("made up", f"scan {place}", lambda rows=rows: iter(rows))], "scan")  # type: ignore[misc]
    return folder


def asked(store: Path, *arguments: object) -> dict[str, Any]:
    done: Finished = iolens("contents", "--store", store, "--format", "json", *arguments)
    assert done.code == 0, done.err
    by_name: dict[str, Any] = json.loads(done.out)
    return by_name


def test_json_has_the_keys_of_the_interface(store: Path) -> None:
    result = asked(store, "--without-project", "earth", "--threshold-files", "1e3")
    assert result["files"] == sum(LATE.values())
    assert result["bytes"] > 0
    for cdf, end in (("size_cdf", "size_bytes"), ("atime_cdf", "age_s"), ("mtime_cdf", "age_s")):
        assert set(result[cdf][0]) == {end, "files", "bytes", "files_pct", "bytes_pct"}
        assert result[cdf][-1]["files_pct"] == 100
        assert len(result["without"][cdf]) == len(result[cdf])
    assert {item["project"]: item["files"] for item in result["by_project"]} == {"earth": 96, "climate": 80, None: 5}
    assert result["comparison"]["earlier"]["time"] == "2010-01-25T00:00:00Z"
    assert result["comparison"]["total"]["files"]["change"] == 84
    assert result["samples"] == len(result["history"]) == 3
    assert result["projections"][0]["limit"] == 1000


def test_the_scan_to_compare_with_may_be_chosen(store: Path) -> None:
    def earlier(text: str, *more: str) -> str | None:
        result = asked(store, "--compare", text, *more)["comparison"]
        return result["earlier"]["time"] if result is not None else None

    assert earlier("previous") == "2010-02-26T00:00:00Z"
    assert earlier("2010-02-25", "--timezone", "America/Chicago") == "2010-02-26T00:00:00Z"  # its evening
    assert earlier("none") is None


def test_projects_owners_and_windows(store: Path) -> None:
    result = asked(store, "--project", "earth", "--at-most", "1KiB,2MB", "--within", "64d", "--scan", "whole")
    assert result["files"] == 96
    assert [item["size_bytes"] for item in result["at_most"]] == [1024, 2_000_000]
    assert [(item["clock"], item["age_s"]) for item in result["within"]] == [
        ("atime", 64 * 86_400),
        ("mtime", 64 * 86_400),
    ]
    assert asked(store, "--owner", "bob,eve", "--to", "2010-03-01")["samples"] == 2


def test_tables_and_figures(store: Path, tmp_path: Path) -> None:
    figures = ("--figure", tmp_path / "sizes.svg", "--figure", f"ages={tmp_path}/ages.png")
    done = iolens("contents", "--store", store, "--top", "1", *figures)
    assert done.code == 0, done.err
    assert "From 2010-01-25 00:00:00 to 2010-03-28 00:00:00 UTC" in done.out
    assert "1 of 3; JSON has all." in done.out
    assert (tmp_path / "sizes.svg").stat().st_size > 1000
    assert (tmp_path / "ages.png").stat().st_size > 1000
    names = iolens("contents", "--store", store, "--figure", "list").out.split()
    assert names == ["sizes", "ages", "projects", "widths", "history"]
    assert iolens("contents", "--store", store, "--format", "csv").out.startswith("filesystem,time,source,")


def test_errors_are_one_message(store: Path, tmp_path: Path) -> None:
    nothing = iolens("contents", "--store", tmp_path / "none")
    assert (nothing.code, nothing.out) == (1, "")
    for arguments, words in (
        (("--without-project", "erth"), "no scan here names the project 'erth'; there are: climate, earth"),
        (("--compare", "2009-01-01"), "there is no scan up to"),
        (("--compare", "soon"), "not a time"),
        (("--at-most", "small"), "not a quantity"),
        (("--top", "0"), "--top"),
        (("--threshold-files", "0"), "--threshold-files"),
    ):
        done = iolens("contents", "--store", store, *arguments)
        assert done.code == 2
        assert words in done.err
