"""`iolens plan metadata`: published values from the published file, a scan in the store, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolens.records import Capture, Row
from iolens.store.store import Store
from iolens.units import from_epoch_us
from tests.analyses.telemetry import T0_US, made_up
from tests.cli.command import iolens
from tests.sources.contents.test_size_histogram import BY_END, BY_START

TIB = 1 << 40
DATE = "2026-01-05 12:00:00"


def plan(*arguments: object) -> dict[str, Any]:
    done = iolens("plan", "metadata", *arguments, "--format", "json")
    assert done.code == 0, done.err
    by_name: dict[str, Any] = json.loads(done.out)
    return by_name


@pytest.fixture
def histogram(tmp_path: Path) -> Path:
    path = tmp_path / "sizes.csv"
    path.write_text(BY_END)
    return path


def test_the_published_file_system(shared_data: Path) -> None:
    path = shared_data / "fsstats" / "cscratch_20190115_sizebytype_hist.csv"
    result = plan("--file-sizes", path, "--capacity", "30PB", "--dom", "64KiB,1MiB", "--method", "both")["thresholds"]
    assert [
        (
            item["method"],
            item["dom_bytes"],
            *(round(item[f"dom_{end}_bytes"] / TIB, 1) for end in ("min", "avg", "max")),
        )
        for item in result
    ] == [
        ("tight", 65536, 31.7, 45.6, 73.4),
        ("tight", 1 << 20, 201.8, 307.6, 517.9),
        ("paper", 65536, 18.4, 45.6, 126.6),
        ("paper", 1 << 20, 130.0, 307.6, 805.5),
    ]


def test_a_histogram_and_its_price(histogram: Path) -> None:
    result = plan(
        "--file-sizes", histogram, "--capacity", "1PB..2PB", "--dom", "2B", "--cost-mdt", "400", "--cost-ost", "100"
    )
    assert result["capacity_bytes"] == 1_500_000_000_000_000
    (item,) = result["thresholds"]
    assert item["method"] == "tight"
    assert item["cost_avg"] > 0
    assert result["inputs"][0]["kind"] == "range"
    assert {item["inode_type"] for item in result["inodes"]} == {"file", "dir", "symlink"}
    assert result["inputs"][2]["origin"] == f"file {histogram}"


def test_lines_that_are_left_out_are_said(histogram: Path) -> None:
    histogram.write_text(BY_END + "rubbish\n")
    done = iolens("plan", "metadata", "--file-sizes", histogram, "--capacity", "1PB")
    assert done.code == 0
    assert "left out: " in done.err
    assert ":6: 1 columns" in done.err


@pytest.mark.parametrize(
    "text",
    [
        "5000\n70000\n",
        "f 5000 16 1 1.0 1.0 /a\nf 70000 160 2 1.0 1.0 /b\n",
        "".join(f"{size} 1 0  {size}|8|1|-rw-r--r--|0|root|{DATE}|{DATE} -- /x\n" for size in (5000, 70_000)),
    ],
)
def test_listings_of_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "listing"
    path.write_text(text)
    (item,) = plan("--file-sizes", path, "--capacity", "75kB", "--dom", "64KiB")["thresholds"]
    assert item["dom_min_bytes"] == item["dom_max_bytes"] == 5000 + 65536


def test_bytes_of_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "archive.csv"
    path.write_text(BY_START)
    (item,) = plan("--file-sizes", path, "--capacity", "1PB", "--dom", "3B")["thresholds"]
    assert item["dom_min_bytes"] == item["dom_max_bytes"]  # the bytes of every bin are known


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--capacity", "1PB", "--dom", "big"], 2, "--dom: 'big'"),
        (["--capacity", "many"], 2, "--capacity: 'many'"),
        (["--capacity", "0"], 2, "capacity above 0"),
        (["--capacity", "1PB", "--cost-mdt", "4"], 2, "both --cost-mdt and --cost-ost"),
        (["--capacity", "1PB", "--cost-mdt", "4", "--cost-ost", "1", "--layout-ost", "8"], 2, "is not a stripe"),
        ([], 2, "--capacity"),
    ],
)
def test_what_is_wrong_is_said(histogram: Path, arguments: list[str], code: int, message: str) -> None:
    done = iolens("plan", "metadata", "--file-sizes", histogram, *arguments)
    assert (done.code, message in done.err) == (code, True), done.err
    assert "Traceback" not in done.err


def test_files_that_are_no_histogram(tmp_path: Path) -> None:
    assert iolens("plan", "metadata", "--file-sizes", tmp_path / "none", "--capacity", "1PB").code == 1
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    done = iolens("plan", "metadata", "--file-sizes", tmp_path / "other.csv", "--capacity", "1PB")
    assert (done.code, "format not recognised" in done.err) == (1, True)


def test_a_store_without_a_scan(tmp_path: Path) -> None:
    Store(tmp_path / "s").append("target_io", made_up(1, 3, 1).table("target_io"))
    done = iolens("plan", "metadata", "--store", tmp_path / "s", "--capacity", "1PB")
    assert (done.code, "holds no scan with sizes of files" in done.err) == (2, True)


def test_a_scan_after_the_window_is_said_to_be_later(tmp_path: Path) -> None:
    rows = [{"time": T0_US, "filesystem": "scratch", "scan": "first", "histogram": "size", "inode_type": "file",
             "bin": 4096, "bin_from": 2048, "count": 9}]  # fmt: skip
    capture = Capture("scan", "made-up/scan", lambda: (Row("contents", row) for row in rows))
    Store(tmp_path / "s").ingest([capture], "scan")
    base = ("plan", "metadata", "--store", tmp_path / "s", "-f", "scratch", "--capacity", "1PB")
    scanned = from_epoch_us(T0_US)
    done = iolens(*base, "--to", f"{scanned:%Y-%m-%d}")
    assert done.code == 2
    assert f"is of {scanned:%Y-%m-%d %H:%M} UTC, later than the window, which ends {scanned:%Y-%m-%d} 00:00" in done.err
    assert "holds no scan" not in done.err
    assert iolens(*base).code == 0


def test_figures(histogram: Path, tmp_path: Path) -> None:
    common = ("plan", "metadata", "--file-sizes", histogram, "--capacity", "1PB")
    assert iolens(*common, "--figure", "list").out.split() == ["mdt", "files", "inodes"]
    assert iolens(*common, "--figure", f"files={tmp_path}/files.svg").code == 0
    assert (tmp_path / "files.svg").exists()
