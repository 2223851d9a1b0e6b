"""mdtest results: one row per phase with its rates; failures and cuts are named."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from iolens.sources.reading.options import ReadOptions
from iolens.units import epoch_us
from tests.sources.results import Results, read

HEAD = """-- started at 03/03/2026 11:00:00 --

mdtest-4.0.0 was launched with 8 total task(s) on 2 node(s)
Command line used: mdtest '-n' '100' '-i' '3' '-w' '3901' '-d' '/lake/md'
Path                : /lake/md
FS                  : 9.0 TiB   Used FS: 41.5%   Inodes: 1.0 Mi   Used Inodes: 3.2%
8 tasks, 800 files/directories

"""
RATES = """SUMMARY rate (in ops/sec): (of 3 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   Directory creation           2000.000       1000.000       1600.000        500.000
   File creation                 400.000        200.000        320.000         80.000
   File rename                     0.000          0.000          0.000          0.000
   Tree creation                  90.000         50.000         70.000         20.000
"""
TIMES = """
SUMMARY time (in ms/op): (of 3 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation                   4.000          2.000          2.800          0.900
   Tree creation                   0.020          0.011          0.015          0.002
"""
TAIL = "-- finished at 03/03/2026 11:02:00 --\n"


def test_one_row_per_phase_that_ran(tmp_path: Path) -> None:
    result = read(tmp_path, "mdtest", HEAD + RATES + TAIL)
    assert result.problems == []
    assert result.column("direction") == ["directory_creation", "file_creation", "tree_creation"]
    row = result.rows[1]
    expected = {
        "tool": "mdtest", "tasks": 8, "nodes": 2, "operations": 800, "reported_ops_per_s": 320.0,
        "ops_per_s_max": 400.0, "ops_per_s_min": 200.0, "ops_per_s_stddev": 80.0, "repetitions": 3,
        "transfer_bytes": 3901, "bytes": 3901 * 800, "fullness_pct": 41.5,
        "time": epoch_us(datetime(2026, 3, 3, 11, 2, tzinfo=UTC)),
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    # 400, 200 and, for their mean is 320, 360 per second: 2, 4 and 2.22 s. At the mean rate it would be 2.5.
    assert row["duration_s"] == pytest.approx((800 / 400 + 800 / 200 + 800 / 360) / 3)
    assert result.rows[2].get("operations") is None  # how many directories a tree has is not printed


def test_times_of_a_tree_are_seconds_whatever_the_heading_says(tmp_path: Path) -> None:
    result = read(tmp_path, "mdtest", HEAD + RATES + TIMES + TAIL)
    assert result.column("duration_s") == pytest.approx([(0.4 + 0.8 + 800 / 1800) / 3, 2.7407, 0.015], abs=1e-4)


@pytest.mark.parametrize(
    ("iterations", "seconds"),
    [(1, 2.5), (2, 3.0), (3, (2 + 4 + 800 / 360) / 3), (4, 2.8), (10, 2.8)],
)
def test_a_time_is_the_mean_of_the_iterations(tmp_path: Path, iterations: int, seconds: float) -> None:
    """Of more than three iterations the rates do not tell each: then the printed mean time counts."""
    text = (HEAD + RATES + (TIMES if iterations > 2 else "") + TAIL).replace("(of 3", f"(of {iterations}")
    result = read(tmp_path, "mdtest", text)
    assert result.rows[1]["duration_s"] == pytest.approx(seconds)
    assert result.rows[1]["operations"] == 800


def test_real_times_are_those_mdtest_printed(shared_data: Path) -> None:
    """`-P` prints the mean time of each phase beside its rates, to a millisecond."""
    path = shared_data / "mdtest" / "rates_and_times_n4.txt"
    result = {row["direction"]: row["duration_s"] for row in Results(path, "mdtest").rows}
    printed = {
        "directory_creation": 0.437, "directory_stat": 0.022, "directory_rename": 0.034, "directory_removal": 1.058,
        "file_creation": 0.476, "file_stat": 0.018, "file_read": 0.022, "file_removal": 0.027,
        "tree_creation": 0.013, "tree_removal": 0.024,
    }  # fmt: skip
    assert result == pytest.approx(printed, abs=0.00051)


def test_a_named_zone_moves_the_time(tmp_path: Path) -> None:
    options = ReadOptions(filesystem="lake", timezone="Europe/Berlin")
    row = read(tmp_path, "mdtest", HEAD + RATES + TAIL, options).rows[0]
    assert (row["time"], row["filesystem"]) == (epoch_us(datetime(2026, 3, 3, 10, 2, tzinfo=UTC)), "lake")


def test_two_runs_in_one_file(tmp_path: Path) -> None:
    result = read(tmp_path, "mdtest", (HEAD + RATES + TAIL) * 2)
    assert len(result.rows) == 6
    assert len(set(result.column("run_id"))) == 2


@pytest.mark.parametrize("cut", ["SUMMARY", "   File creation", "-- finished"])
def test_a_run_cut_off_says_so(tmp_path: Path, cut: str) -> None:
    whole = HEAD + RATES + TAIL
    result = read(tmp_path, "mdtest", whole[: whole.index(cut)])
    assert "cut off" in result.problems[0].reason
    assert len(result.rows) == {"SUMMARY": 0, "   File creation": 1, "-- finished": 3}[cut]


def test_a_failure_is_reported_once(tmp_path: Path) -> None:
    warning = "WARNING: unable to create directory /lake/md/1\n" * 50
    error = 'ERROR: open64("/lake/md/f") failed. Error: No such file or directory, (../src/aiori-POSIX.c:6)\n'
    result = read(tmp_path, "mdtest", HEAD + warning + error * 2)
    assert result.rows == []
    assert len(result.problems) == 1
    assert "No such file" in result.problems[0].reason
    assert "(and 1 more)" in result.problems[0].reason


def test_numbers_that_are_none_are_refused(tmp_path: Path) -> None:
    result = read(tmp_path, "mdtest", HEAD + RATES.replace("1600.000", "    -inf") + TAIL)
    assert result.column("direction") == ["file_creation", "tree_creation"]
    assert result.problems[0].line == 12


def test_carriage_returns_do_not_matter(tmp_path: Path) -> None:
    assert len(read(tmp_path, "mdtest", (HEAD + RATES + TAIL).replace("\n", "\r\n")).rows) == 3


def test_the_real_captures(shared_data: Path) -> None:
    folder = shared_data / "mdtest"
    basic = Results(folder / "basic_n4_i3.txt", "mdtest")
    assert len(basic.rows) == 10
    rates = dict(zip(basic.column("direction"), basic.column("reported_ops_per_s"), strict=True))
    assert (rates["file_stat"], rates["tree_removal"]) == (53031.495, 32.957)
    assert set(basic.column("operations")) == {800, None}
    timed = Results(folder / "rates_and_times_n4.txt", "mdtest")
    times = dict(zip(timed.column("direction"), timed.column("duration_s"), strict=True))
    assert (times["tree_creation"], times["tree_removal"]) == (0.013, 0.024)
    with_data = Results(folder / "files_3901B_n2.txt", "mdtest")
    assert {row["direction"]: row.get("bytes") for row in with_data.rows}["file_read"] == 3901 * 1000
    assert Results(folder / "error_no_such_dir.txt", "mdtest").rows == []
    for name in ("basic_n4_i3.txt", "rates_and_times_n4.txt", "files_3901B_n2.txt", "files_unique_n4_i3.txt"):
        assert Results(folder / name, "mdtest").problems == []


STOPPED = """-- started at 03/03/2026 11:00:00 --

mdtest-4.0.0 was launched with 8 total task(s) on 2 node(s)
Command line used: mdtest '-n' '1000000' '-F' {options} '-d' '/lake/md'
8 tasks, 8000000 files
{hit}
SUMMARY rate (in ops/sec): (of {iterations} iterations)
   Operation                     Max            Min           Mean        Std Dev
   File creation               12345.678      12345.678      12345.678          0.000
{times}-- finished at 03/03/2026 11:02:00 --
"""
SECONDS = """
SUMMARY time (in ops/sec): (of 1 iterations)
   Operation                     Max            Min           Mean        Std Dev
   File creation                  10.024         10.024         10.024          0.000
"""
HIT = "Continue stonewall hit min: 10000 max: 15469 avg: 14000.0 \n"


@pytest.mark.parametrize(
    ("changed", "operations", "seconds"),
    [
        ({}, 8 * 15469, 8 * 15469 / 12345.678),  # all tasks did as many as the busiest had when time was up
        ({"hit": ""}, 123753, 123753 / 12345.678),  # 12,345.678 per second for 10.024 s
        ({"hit": "", "options": "'-x' '/lake/stonewall'"}, 123753, 123753 / 12345.678),  # as many as a run before
        ({"hit": HIT.replace("15469", "90000")}, 123753, 123753 / 12345.678),  # the rate says otherwise
        ({"times": ""}, None, None),
        ({"iterations": "2", "times": SECONDS.replace("of 1", "of 2")}, None, 10.024),  # each at another number
        ({"options": ""}, 8_000_000, 8_000_000 / 12345.678),
    ],
)
def test_a_run_stopped_by_time_did_not_all_that_it_was_asked_for(
    tmp_path: Path, changed: dict[str, str], operations: int | None, seconds: float | None
) -> None:
    parts = {"options": "'-W' '10' '-Y'", "hit": HIT, "iterations": "1", "times": SECONDS, **changed}
    result = read(tmp_path, "mdtest", STOPPED.format(**parts))
    assert result.problems == []
    assert result.column("operations") == [operations]
    assert result.column("duration_s") == [None if seconds is None else pytest.approx(seconds)]
