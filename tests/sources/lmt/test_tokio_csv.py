"""Daily CSV files of TOKIO: sums stay sums, with how many targets they are of; the design paper's numbers come out."""

from __future__ import annotations

import gzip
import statistics
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from iolens.errors import InputError
from iolens.sources import recognise
from iolens.sources.lmt.tokio_csv import shape_of
from iolens.sources.reading.options import ReadOptions
from tests.sources.stored import ingest, items_of, problems_of, rows_of, stored

LAKE = ReadOptions(filesystem="lake", timezone="America/Los_Angeles")
RATES = "date,read_bytes,write_bytes\n2026-03-07,1000.0,2000.0\n2026-03-08,2.84e+15,\n"
FULLNESS = (
    ",ost_count,ost_avg_full_kib,ost_avg_full_pct,ost_actual_timestamp,ost_most_full_name\n"
    "2026-01-05 00:00:00,4,250,25.0,1767614400,OST0001\n"
    "2026-01-06 00:00:00,3,300,30.0,1767700800,OST0001\n"
)
MMDF = (
    "data?,disk_name,disk_size,failure_group,free_kib_blocks,free_kib_frags,metadata?,file_system,date\n"
    "1.0,nsd1,1000.0,1,300.0,50.0,0,pond,2026-01-05\n"
)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(text)
    return path


def test_bytes_of_a_local_day(tmp_path: Path) -> None:
    items = items_of("tokio-csv", write(tmp_path, RATES), LAKE)
    assert problems_of(items) == []
    first, spring = rows_of(items, "target_io")
    assert first["start"] == 1_772_870_400_000_000  # 2026-03-07T08:00Z, midnight in California
    assert (first["duration_s"], spring["duration_s"]) == (86400.0, 82800.0)  # clocks go forward on the second day
    assert (first["target"], first["target_kind"]) == ("lake", "filesystem")  # no OST
    assert (first["read_bytes"], spring["read_bytes"], spring["write_bytes"]) == (1000, 2_840_000_000_000_000, None)


def test_fullness_is_the_sum_of_the_targets_that_answered(tmp_path: Path) -> None:
    items = items_of("tokio-csv", write(tmp_path, FULLNESS), ReadOptions(filesystem="lake"))
    whole, partial = rows_of(items, "target_capacity")
    assert (whole["time"], whole["targets"], whole["used_bytes"], whole["total_bytes"]) == (
        1_767_614_400_000_000, 4, 1000 * 1024, 4000 * 1024,
    )  # fmt: skip
    assert (partial["targets"], partial["used_bytes"], partial["free_bytes"]) == (3, 900 * 1024, 2100 * 1024)


def test_mmdf_tells_each_disk(tmp_path: Path) -> None:
    (row,) = rows_of(items_of("tokio-csv", write(tmp_path, MMDF), ReadOptions(timezone="UTC")), "target_capacity")
    assert (row["filesystem"], row["target"], row["target_kind"]) == ("pond", "nsd1", "lun")
    assert [row[f"{what}_bytes"] / 1024 for what in ("total", "used", "free")] == [1000, 650, 350]


def test_what_the_file_lacks_must_be_supplied(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--filesystem"):
        items_of("tokio-csv", write(tmp_path, RATES), ReadOptions(timezone="UTC"))
    with pytest.raises(InputError, match="--timezone"):
        items_of("tokio-csv", write(tmp_path, RATES), ReadOptions(filesystem="lake"))
    zones = ReadOptions(filesystem="lake", zones={"lake": "America/Los_Angeles"})
    assert len(rows_of(items_of("tokio-csv", write(tmp_path, RATES), zones), "target_io")) == 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("2026-03-09,12", "2 columns, the heading has 3"),
        ("2026-03-09,twelve,1", "'twelve' is not a number"),
        ("2026-03-09,-1,1", "out of range"),
        ("2026-03-09,1e30,1", "out of range"),
        ("2026-02-30,1,1", "is not a day"),
        ("9999-12-31,1,1", "is not a day"),
    ],
)
def test_a_bad_line_is_reported_and_the_others_count(tmp_path: Path, line: str, reason: str) -> None:
    items = items_of("tokio-csv", write(tmp_path, RATES + line + "\n"), LAKE)
    assert len(rows_of(items, "target_io")) == 2
    (problem,) = [item for item in items if problems_of([item])]
    assert problem.line == 4
    assert reason in problem.reason


def test_a_day_without_a_count_of_targets_is_refused(tmp_path: Path) -> None:
    items = items_of("tokio-csv", write(tmp_path, FULLNESS.replace(",4,250", ",,250")), LAKE)
    assert (len(rows_of(items, "target_capacity")), len(problems_of(items))) == (1, 1)


def test_only_these_headings_are_taken() -> None:
    assert shape_of(["date", "read_bytes", "write_bytes"]) is not None
    assert shape_of(["date", "read_bytes", "write_bytes", "host"]) is None
    assert shape_of(["bin_size", "num_child_counts"]) is None
    assert shape_of(["serial_number", "data_units_written_bytes", "physical_size", "power_on_hours", "dwpd"]) is None


def test_gzip_crlf_and_nothing_twice(tmp_path: Path) -> None:
    path, store = tmp_path / "rates.csv.gz", tmp_path / "store"
    path.write_bytes(gzip.compress(RATES.replace("\n", "\r\n").encode()))
    assert recognise(path).name == "tokio-csv"
    assert ingest(store, "tokio-csv", [path], LAKE).rows["target_io"] == 2
    again = ingest(store, "tokio-csv", [path], LAKE)
    assert (again.already_present, dict(again.rows)) == (1, {})
    assert [row[0] for row in stored(store, "lake", "target_io", "read_bytes")] == [1000, 2_840_000_000_000_000]


def test_empty_strange_and_cut_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="empty file"):
        items_of("tokio-csv", write(tmp_path, ""), LAKE)
    with pytest.raises(InputError, match="heading 'colour,shape'"):
        items_of("tokio-csv", write(tmp_path, "colour,shape\nred,round\n"), LAKE)
    assert problems_of(items_of("tokio-csv", write(tmp_path, RATES[:27]), LAKE)) == [
        "no row that could be read below the heading"
    ]
    damaged = tmp_path / "damaged.gz"
    damaged.write_bytes(gzip.compress(RATES.encode() * 2000)[:-40])
    assert any("cannot be read to its end" in problem for problem in problems_of(items_of("tokio-csv", damaged, LAKE)))


# --- the data sets behind the all-flash design paper ---

CSCRATCH = ReadOptions(filesystem="cscratch", timezone="America/Los_Angeles")
CAPACITY_BYTES = 29_763_608_416_864 * 1024
FULLNESS_FILE = "cscratch_fullness-2017-02-14_2018-04-26.csv"


def growth_tb(shared_data: Path, *, by_fullness: bool) -> list[float]:
    """Growth from row to row where it is not negative: of the mean fullness, or of the sums at face value."""
    rows = rows_of(items_of("tokio-csv", shared_data / "nersc-fs-design" / FULLNESS_FILE, CSCRATCH), "target_capacity")
    scale = [CAPACITY_BYTES / row["total_bytes"] if by_fullness else 1 for row in rows]
    used = [row["used_bytes"] * item for row, item in zip(rows, scale, strict=True)]
    steps = [(later - earlier) / 1e12 for earlier, later in pairwise(used)]
    return [step for step in steps if step >= 0]


def test_growth_by_the_method_of_the_paper(shared_data: Path) -> None:
    grown = growth_tb(shared_data, by_fullness=True)
    assert statistics.mean(grown) == pytest.approx(153.8, abs=0.05)
    assert statistics.median(grown) == pytest.approx(118.2, abs=0.05)


def test_growth_if_the_day_with_138_osts_is_taken_at_face_value(shared_data: Path) -> None:
    assert statistics.mean(growth_tb(shared_data, by_fullness=False)) == pytest.approx(178.8, abs=0.05)


def test_the_day_with_138_osts_can_be_reported(shared_data: Path) -> None:
    rows = rows_of(items_of("tokio-csv", shared_data / "nersc-fs-design" / FULLNESS_FILE, CSCRATCH), "target_capacity")
    assert len(rows) == 431
    few = [row for row in rows if row["targets"] != 248]
    assert [(datetime.fromtimestamp(row["time"] / 1e6, UTC).date(), row["targets"]) for row in few] == [
        (date(2017, 8, 6), 138)
    ]
    assert {row["total_bytes"] for row in rows if row["targets"] == 248} == {CAPACITY_BYTES}  # exact, every day


def test_file_system_writes_per_day_over_two_years(shared_data: Path) -> None:
    items = items_of("tokio-csv", shared_data / "nersc-fs-design" / "cscratch_daily_iorates.csv", CSCRATCH)
    rows = rows_of(items, "target_io")
    assert (len(rows), problems_of(items)) == (1120, [])
    begin, end = (datetime(year, 4, 2, 12, tzinfo=UTC).timestamp() * 1e6 for year in (2017, 2019))
    written = [row["write_bytes"] for row in rows if begin < row["start"] + 43_200_000_000 <= end + 86_400_000_000]
    assert statistics.mean(written) / CAPACITY_BYTES == pytest.approx(0.024, abs=0.0005)


def test_mira_disk_by_disk(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "gpfs-mmdf" / "mira_mmdf_2017-01-25_2017-03-27.csv.gz"
    tally = ingest(tmp_path / "store", "tokio-csv", [path], ReadOptions(timezone="America/Chicago"))
    assert (tally.rows["target_capacity"], tally.refused) == (18810, 0)


def test_the_other_files_of_that_folder_are_not_taken(shared_data: Path) -> None:
    for name in ("coribb_dwpd_2018-04-25.csv", "cscratch_20190115_dirdist_hist.csv"):
        with pytest.raises(InputError, match="heading"):
            items_of("tokio-csv", shared_data / "nersc-fs-design" / name, CSCRATCH)
