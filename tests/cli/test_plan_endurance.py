"""`iolens plan endurance`: published values, the store, statistics by name, errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from iolens.records import Capture, Row
from iolens.store.store import Store
from tests.analyses.demand.test_daily_writes import hours
from tests.analyses.telemetry import T0_US, made_up, table_of
from tests.cli.command import iolens

DAY_US = 86_400_000_000


def plan(*arguments: object) -> dict[str, Any]:
    done = iolens("plan", "endurance", *arguments, "--format", "json")
    assert done.code == 0, done.err
    by_name: dict[str, Any] = json.loads(done.out)
    return by_name


def drive_rows(filesystem: str) -> Iterator[Row]:
    for number in range(11):
        counters = {
            "host_write_bytes": 1000,
            "nand_write_bytes": 1000 + 200 * number,
            "capacity_bytes": 1_600_000_000_000,
        }
        yield Row("drives", {"time": T0_US, "filesystem": filesystem, "serial": f"drive{number}", **counters})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty days of writes into 1,000 bytes, the last of them half reported, and drives of a burst buffer."""
    folder = tmp_path_factory.mktemp("store")
    opened = Store(folder)
    rows = [row for day in range(20) for row in hours(day, 12 if day == 19 else 24, day % 5)]
    opened.append("target_io", table_of("target_io", rows))
    capacity = {"filesystem": "scratch", "source": "lfs-df", "target": "OST0", "target_kind": "ost", "used_bytes": 1}
    readings = [
        {**capacity, "time": T0_US + day * DAY_US, "date": (T0_US + day * DAY_US) // DAY_US, "total_bytes": 1000}
        for day in range(20)
    ]
    opened.append("target_capacity", table_of("target_capacity", readings))
    opened.append("target_sizes", made_up(1, 50, 1).table("target_sizes"))
    opened.ingest([Capture("drives", "made-up/drives", partial(drive_rows, "burst"))], "isdct")
    return folder


def test_published_endurance() -> None:
    cases = plan(
        "--case", "ssi=3,data=10,parity=2,waf=2.68,fswpd=0.024", "--case", "ssi=4,data=8,parity=2,waf=3.17,fswpd=0.024"
    )["cases"]  # fmt: skip
    assert [round(case["dwpd"], 2) for case in cases] == [0.23, 0.38]
    assert [case["ci95"] for case in cases] == [None, None]


def test_writes_come_from_the_store_and_half_a_day_does_not_count(store: Path) -> None:
    result = plan("--store", store, "-f", "scratch", "--waf", "2", "--ssi", "3", "--layout", "10+2")
    daily = [24 * (day % 5) / 1000 for day in range(19)]
    assert result["fswpd"]["days"] == 19
    assert result["fswpd"]["days_left_out"] == 1
    assert result["fswpd"]["mean"] == pytest.approx(sum(daily) / 19)
    (case,) = result["cases"]
    assert case["dwpd"] == pytest.approx(3 * sum(daily) / 19 * 1.2 * 2)
    low, high = case["ci95"]
    assert low < case["dwpd"] < high
    origins = {item["name"]: item["origin"] for item in result["inputs"]}
    assert origins["ssi"] == "option --ssi"
    assert origins["fswpd"].startswith("mean of scratch: 19 days with reports, 2020-09-14 to 2020-10-02")
    assert "reading of 2020-10-03 (lfs-df)" in origins["fswpd"]
    assert plan("--store", store, "-f", "scratch", "--waf", "2", "--min-coverage", "0")["fswpd"]["days"] == 20


def test_amplification_comes_from_the_only_drives_there_are(store: Path) -> None:
    result = plan("--store", store, "-f", "scratch", "--case", "ssi=1,fswpd=0.1", "--case", "ssi=1,fswpd=0.1,waf=p95")
    assert [case["waf"] for case in result["cases"]] == [pytest.approx(2.0), pytest.approx(2.9)]
    assert result["waf"]["drives"] == 11
    assert result["waf"]["min"] == 1
    assert result["waf"]["fleet"] == pytest.approx(2.0)
    assert result["fswpd"]["days"] == 0  # not asked for


def test_a_window_that_ends_before_the_drives_were_read_does_not_cut_them_away(store: Path, tmp_path: Path) -> None:
    """Counters of a life: the last reading before --to counts, else the first after it, and that is said."""
    earlier = plan("--store", store, "-f", "scratch", "--to", "2020-09-10", "--fswpd", "0.1")
    assert earlier["waf"]["drives"] == earlier["waf"]["drives_read_later"] == 11
    assert earlier["waf"]["median"] == pytest.approx(2.0)
    assert "drives_read_later" in [item["code"] for item in earlier["warnings"]]
    later = plan("--store", store, "-f", "scratch", "--to", "2020-09-20", "--fswpd", "0.1")
    assert (later["waf"]["drives"], later["waf"]["drives_read_later"]) == (11, 0)
    assert "drives_read_later" not in [item["code"] for item in later["warnings"]]


def test_warnings_come_first_in_a_table_and_beside_csv(store: Path) -> None:
    where = ("--store", store, "-f", "scratch", "--case", "ssi=1,fswpd=0.1", "--new-capacity", "100B")
    table, csv = (iolens("plan", "endurance", *where, "--format", item) for item in ("table", "csv"))
    assert table.out.splitlines()[1].startswith("Warning: ")
    assert table.out.index("Warning: ") < table.out.index("FSWPD   Data")
    assert "not on the safe side" in table.out
    assert csv.out.startswith("ssi,fswpd,")
    assert "iolens: warning: The published equation is not on the safe side" in csv.err


def test_larger_drives_and_capacities_from_the_store(store: Path) -> None:
    result = plan(
        "--store", store, "-f", "scratch", "--fswpd", "0.1..0.2", "--drive-sizes", "3.2TB", "--new-capacity", "2000B",
        "--raid-block", "128KiB", "--classes", "1,2", "--warranty", "7", "--drives-of", "burst",
    )  # fmt: skip
    (case,) = result["cases"]
    assert case["larger_drives"][0]["dwpd"] == pytest.approx(case["dwpd"] / 2)
    assert case["capacity_ratio"] == 0.5
    assert case["rmw"] > 1
    assert [item["class_dwpd"] for item in case["classes"]] == [1, 2]
    assert result["warranty_years"] == 7
    assert case["low_dwpd"] == pytest.approx(0.1 * 1.25 * result["inputs"][2]["low"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--case", "ssi=3,bytes=4"], "write KEY=VALUE, each key once, with keys ssi, data, parity, waf, fswpd, rmw"),
        (["--case", "ssi=3,ssi=4"], "each key once"),
        (["--case", "ssi=x,waf=1,fswpd=1"], "'x' is not a number"),
        (["--case", "ssi=3,data=8,waf=1,fswpd=1"], "data and parity belong together"),
        (["--case", "ssi=3,data=0,parity=2,waf=1,fswpd=1"], "needs data"),
        (["--case", "ssi=3,waf=1,fswpd=0.2..0.1"], "ends below it"),
        (["--case", "waf=1,fswpd=1", "--ssi", "3,4"], "a single value"),
        (["--layout", "8x2", "--waf", "1", "--fswpd", "1"], "is not a stripe"),
        (["--waf", "1", "--fswpd", "1", "--usable", "10:3TB"], "DWPD=SIZE"),
        (["--waf", "1", "--fswpd", "1", "--drive-sizes", "lots", "--reference-drive", "1TB"], "--drive-sizes"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments: list[str], message: str) -> None:
    done = iolens("plan", "endurance", *arguments)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.splitlines()) == 1


def test_what_the_store_does_not_know_is_asked_for(tmp_path: Path, store: Path) -> None:
    nothing = iolens("plan", "endurance", "--store", tmp_path / "none", "--waf", "1")
    assert nothing.code != 0
    assert "Traceback" not in nothing.err
    Store(tmp_path / "io").append("target_io", table_of("target_io", hours(0, 24, 1)))
    capacity = iolens("plan", "endurance", "--store", tmp_path / "io", "--waf", "1")
    assert (capacity.code, "give it with --capacity" in capacity.err) == (2, True)
    drives = iolens("plan", "endurance", "--store", tmp_path / "io", "--capacity", "1TB")
    assert (drives.code, "give --waf" in drives.err) == (2, True)
    unknown = iolens("plan", "endurance", "--store", store, "-f", "scratch", "--waf", "mode", "--fswpd", "1")
    assert "one of mean, median, p95, max, fleet" in unknown.err


def test_figures_and_formats(store: Path, tmp_path: Path) -> None:
    common = ("plan", "endurance", "--store", store, "-f", "scratch", "--waf", "2")
    assert iolens(*common, "--figure", "list").out.split() == ["fswpd", "dwpd"]
    done = iolens(*common, "--format", "markdown", "--figure", tmp_path / "days.png")
    assert done.code == 0
    assert "| SSI" in done.out
    assert (tmp_path / "days.png").read_bytes().startswith(b"\x89PNG")


def test_two_years_of_the_published_file_system(published_store: Path) -> None:
    """0.024 file-system writes per day over the two years to 2019-04-02."""
    window = ("--from", "2017-04-03", "--to", "2019-04-03", "--timezone", "America/Los_Angeles")
    result = plan("--store", published_store, *window, "--case", "ssi=3,data=10,parity=2,waf=2.68")
    assert round(result["fswpd"]["mean"], 3) == 0.024
    assert result["fswpd"]["days"] == 713
    assert round(result["cases"][0]["dwpd"], 2) == 0.23
