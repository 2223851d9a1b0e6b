"""Result folders of IO500: every phase once, exact where its output is there; what IO500 calls invalid is marked."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iolens.sources import get_source, recognise
from iolens.sources.reading.options import ReadOptions
from iolens.store.store import Store
from iolens.units import GIB, MIB, epoch_us
from tests.cli.command import iolens
from tests.sources.benchmarks import test_ior
from tests.sources.results import Results

SUMMARY = """IO500 version io500-made-up (standard)
[RESULT]       ior-easy-write        0.093750 GiB/s : time 1.200 seconds
[RESULT]    mdtest-easy-write        0.400000 kIOPS : time 20.300 seconds
[      ]            timestamp        0.000000 kIOPS : time 0.001 seconds
[RESULT]       ior-hard-write        0.250000 GiB/s : time 310.500 seconds
[RESULT]                 find       12.500000 kIOPS : time 4.100 seconds
[RESULT]     mdtest-hard-stat        1.500000 kIOPS : time 80.250 seconds
[SCORE ] Bandwidth 0.153093 GiB/s : IOPS 1.957434 kiops : TOTAL 0.547423
"""
RESULT = """[run]
procs           = 6
version         = io500-made-up
config-hash     = 1A2B3C4D
result-dir      = /lake/results/2026.03.03-11.00.00
mode            = standard
; START 2026-03-03 11:00:00


[ior-hard-write]
t_start         = 2026-03-03 11:00:40
exe             = ./ior -t 47008 -b 47008 -s 1000 -w -D 300 -a POSIX
score           = 0.250000
t_delta         = 310.5001
t_end           = 2026-03-03 11:05:50

[find]
t_start         = 2026-03-03 11:05:50
nproc           = 3
found           = 77
total-files     = 50000
score           = 12.500000
t_delta         = 4.1002
t_end           = 2026-03-03 11:05:54

[SCORE]
MD              = 1.957434
BW              = 0.153093
SCORE           = 0.547423
hash            = 5E6F7081
; END 2026-03-03 11:08:00
"""
WRITE = ("write", 96.0, 1.0, 0)  # 96 MiB in a second: the 0.09375 GiB/s of the summary
IOR = test_ior.header("ior -w -e -k -o /lake/file -D 300 -O stoneWallingWearOut=1") + test_ior.block(
    [WRITE], repetitions="1"
)
MDTEST = """-- started at 03/03/2026 11:00:10 --

mdtest-4.1.0 was launched with 8 total task(s) on 2 node(s)
Command line used: ./mdtest '-n' '1000000' '-u' '-F' '-P' '-x' '/lake/stonewall' '-C' '-Y' '-W' '300' '-a' 'POSIX'
8 tasks, 8000000 files
Continue stonewall hit min: 700 max: 1000 avg: 900.0 

SUMMARY rate (in ops/sec): (of 1 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation                 400.000        400.000        400.000          0.000
   File stat                       0.000          0.000          0.000          0.000
   Tree creation                   4.000          4.000          4.000          0.000

SUMMARY time (in ops/sec): (of 1 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation                  20.001         20.001         20.001          0.000
   File stat                       0.000          0.000          0.000          0.000
   Tree creation                   0.250          0.250          0.250          0.000
-- finished at 03/03/2026 11:00:30 --
"""  # noqa: W291 mdtest prints a space there
OUTPUTS = {"ior-easy-write.txt": IOR, "mdtest-easy-write.txt": MDTEST}
OTHERS = {"config.ini": "[global]\n", "config-orig.ini": "", "ior-easy-write.csv": "access,rank\n", "timestampfile": ""}


def folder_of(path: Path, files: dict[str, str | None] | None = None) -> Path:
    """A result folder with these files instead of its own; None leaves one out."""
    path.mkdir(parents=True)
    everything = {"result_summary.txt": SUMMARY, "result.txt": RESULT, **OUTPUTS, **OTHERS, **(files or {})}
    for name, text in everything.items():
        if text is not None:
            (path / name).write_text(text)
    return path


def read(path: Path, options: ReadOptions | None = None) -> Results:
    assert recognise(path).name == "io500"
    return Results(path, "io500", options)


def result_of(results: Results, phase: str, direction: str) -> dict[str, object]:
    """The row of a phase, whose name is in its identity."""
    (row,) = (row for row in results.rows if row["run_id"].split("/")[1] == phase and row["direction"] == direction)
    return dict(row)


def test_outputs_are_read_by_their_own_sources_and_no_phase_counts_twice(tmp_path: Path) -> None:
    result = read(folder_of(tmp_path / "run", {"ior-hard-write.txt": None}))
    assert [problem.reason for problem in result.problems] == []
    assert sorted((row["tool"], row["direction"]) for row in result.rows) == [
        ("io500", "find"), ("ior", "write"), ("ior", "write"), ("mdtest", "file_creation"), ("mdtest", "file_stat"),
        ("mdtest", "tree_creation"),
    ]  # fmt: skip
    (easy,) = (row for row in result.rows if row.get("transfer_bytes") == 65536)
    expected = {"bytes": 96 * MIB, "duration_s": 1.0, "tasks": 6, "nodes": 3, "fsync": True, "complete": True}
    assert {name: easy[name] for name in expected} == expected
    assert len({row["run_id"] for row in result.rows}) == 5  # the two of mdtest are of one run


def test_a_phase_without_output_has_what_the_summary_tells(tmp_path: Path) -> None:
    result = read(folder_of(tmp_path / "run"), ReadOptions(filesystem="lake"))
    stat = result_of(result, "mdtest-hard-stat", "file_stat")
    expected = {
        "tool": "mdtest", "reported_ops_per_s": 1500.0, "duration_s": 80.25, "operations": None, "tasks": 6,
        "time": None, "filesystem": "lake", "complete": True,
    }  # fmt: skip
    assert {name: stat.get(name) for name in expected} == expected


def test_a_rate_of_ior_in_the_summary_is_in_gib_per_s(tmp_path: Path) -> None:
    result = read(folder_of(tmp_path / "run"))
    hard = result_of(result, "ior-hard-write", "write")
    assert hard["reported_bytes_per_s"] == 0.25 * GIB
    assert {name: hard.get(name) for name in ("tool", "direction", "duration_s", "bytes", "time")} == {
        "tool": "ior", "direction": "write", "duration_s": 310.5, "bytes": None,
        "time": epoch_us(datetime(2026, 3, 3, 11, 5, 50, tzinfo=UTC)),
    }  # fmt: skip


def test_find_has_its_files_and_their_time(tmp_path: Path) -> None:
    result = read(folder_of(tmp_path / "run"), ReadOptions(timezone="America/Los_Angeles"))
    find = result_of(result, "find", "find")
    assert (find["operations"], find["tasks"], find["duration_s"]) == (50_000, 3, 4.0)  # at 12,500 per second
    assert find["reported_ops_per_s"] == 12_500.0
    assert find["time"] == epoch_us(datetime(2026, 3, 3, 19, 5, 54, tzinfo=UTC))


def test_mdtest_that_was_stopped_by_time_did_what_its_busiest_task_did(tmp_path: Path) -> None:
    """It was asked for 8,000,000 files; 1,000 of each task are 8,000, at 400 per second."""
    row = result_of(read(folder_of(tmp_path / "run")), "mdtest-easy-write", "file_creation")
    assert (row["operations"], row["duration_s"]) == (8000, 20.0)


def test_ior_within_io500_prints_no_summary_and_is_complete_without(tmp_path: Path) -> None:
    assert read(folder_of(tmp_path / "run")).problems == []
    cut = read(folder_of(tmp_path / "cut", {"ior-easy-write.txt": IOR[: IOR.index("write  ")]}))
    assert [problem.reason for problem in cut.problems] == [
        "the run was cut off: 0 results of 1 repetitions, no summary",
        "no write in it, which is what ior-easy-write measures",
    ]
    assert {problem.place for problem in cut.problems} == {str(tmp_path / "cut" / "ior-easy-write.txt")}
    assert sum(row.get("reported_bytes_per_s") == 0.09375 * GIB for row in cut.rows) == 1  # from the summary instead


def test_what_io500_calls_invalid_is_kept_and_marked(tmp_path: Path) -> None:
    whole = SUMMARY.replace("0.547423", "0.547423 [INVALID]").replace("4.100 seconds", "4.100 seconds [INVALID]")
    reasons = RESULT.replace("\n\n\n", "\n; ERROR INVALID stonewall-time < 300s\n\n", 1).replace(
        "found  ", "; ERROR INVALID (src/main.c:443) Runtime is too short\nfound  "
    )
    result = read(folder_of(tmp_path / "run", {"result_summary.txt": whole, "result.txt": reasons}))
    assert {row["complete"] for row in result.rows} == {False}
    assert len(result.rows) == 6
    assert [note.reason for note in result.notes] == [
        "IO500 calls the run invalid (find), kept as not complete: 'stonewall-time < 300s; find: Runtime is too short'"
    ]
    phase = SUMMARY.replace("4.100 seconds", "4.100 seconds [INVALID]")
    result = read(folder_of(tmp_path / "one", {"result_summary.txt": phase}))
    assert {row["direction"] for row in result.rows if not row["complete"]} == {"find"}
    assert [note.reason for note in result.notes] == ["IO500 calls find invalid, kept as not complete"]


def test_without_a_summary_the_sections_tell_the_same(tmp_path: Path) -> None:
    result = read(folder_of(tmp_path / "run", {"result_summary.txt": None}))
    assert result.problems == []
    assert {row["direction"] for row in result.rows} == {"write", "find", "file_creation", "tree_creation"}
    marked = read(
        folder_of(
            tmp_path / "bad", {"result_summary.txt": None, "result.txt": RESULT.replace("0.547423", "0.5 [INVALID]")}
        )
    )
    assert {row["complete"] for row in marked.rows} == {False}


def test_a_run_that_was_cut_off_keeps_what_it_has(tmp_path: Path) -> None:
    cut = SUMMARY[: SUMMARY.index("[RESULT]     mdtest-hard-stat") + 20]
    short = RESULT[: RESULT.index("t_end           = 2026-03-03 11:05:54")]
    result = read(folder_of(tmp_path / "run", {"result_summary.txt": cut, "result.txt": short}))
    assert [(problem.line, problem.reason) for problem in result.problems] == [
        (7, "line not understood: '[RESULT]     mdtest-'"),
        (None, "the run was cut off: 4 phases, no score"),
    ]
    assert {row["direction"] for row in result.rows} == {"write", "file_creation", "tree_creation", "find"}
    only_outputs = read(folder_of(tmp_path / "first", {"result_summary.txt": "IO500 version x\n", "result.txt": None}))
    assert [problem.reason for problem in only_outputs.problems] == ["no result of a phase of IO500"]
    assert {row["direction"] for row in only_outputs.rows} == {"write", "file_creation", "tree_creation"}


def test_a_phase_for_the_second_time_is_said_and_not_counted(tmp_path: Path) -> None:
    twice = SUMMARY + SUMMARY.replace("12.500000", "99.000000").split("\n")[5] + "\n"
    sections = RESULT + "\n[find]\ntotal-files = 1\nscore = 99.0\n"
    result = read(folder_of(tmp_path / "run", {"result_summary.txt": twice, "result.txt": sections}))
    assert [(Path(problem.place).name, problem.line, problem.reason) for problem in result.problems] == [
        ("result.txt", 33, "[find] for the second time: the first counts"),
        ("result_summary.txt", 9, "find for the second time: the first counts"),
    ]
    (find,) = (row for row in result.rows if row["direction"] == "find")
    assert (find["reported_ops_per_s"], find["operations"]) == (12_500.0, 50_000)


def test_outputs_of_another_run_are_found_out(tmp_path: Path) -> None:
    other = SUMMARY.replace("0.093750", "0.500000")
    result = read(folder_of(tmp_path / "run", {"result_summary.txt": other}))
    assert [problem.reason for problem in result.problems] == [
        "the summary says 0.5 GiB/s for ior-easy-write, its output 0.09375"
    ]
    (row,) = (row for row in result.rows if row.get("transfer_bytes") == 65536)
    assert row["bytes"] == 96 * MIB


def test_an_output_of_another_direction_is_not_taken_for_the_phase(tmp_path: Path) -> None:
    read_back = test_ior.header() + test_ior.block([("read", 96.0, 1.0, 0)], repetitions="1")
    result = read(folder_of(tmp_path / "run", {"ior-easy-write.txt": read_back}))
    assert [problem.reason for problem in result.problems] == ["no write in it, which is what ior-easy-write measures"]
    assert "read" not in {row["direction"] for row in result.rows}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[RESULT] ../../etc/passwd 1.0 GiB/s : time 1.0 seconds", "line not understood"),
        ("[RESULT] ior-rnd-read nan GiB/s : time 1.0 seconds", "line not understood"),
        ("[RESULT] ior-rnd-read -1.0 GiB/s : time 1.0 seconds", "line not understood"),
        ("[RESULT] ior-rnd-read 1e300 GiB/s : time 1.0 seconds", "line not understood"),
        ("[RESULT] BW   phase 1 ior_easy_write 8.581 GB/s : time 58.27 seconds", "line not understood"),
        ("[RESULT] ior-rnd-read 9000000000000 GiB/s : time 1.0 seconds", "more or less than can be"),
    ],
)
def test_lines_that_cannot_be_are_refused_with_their_place(tmp_path: Path, line: str, reason: str) -> None:
    result = read(folder_of(tmp_path / "run", {"result_summary.txt": f"{SUMMARY}{line}\n"}))
    (problem,) = result.problems
    assert (Path(problem.place).name, problem.line) == ("result_summary.txt", 9)
    assert reason in problem.reason


def test_files_that_cannot_be_read_cost_themselves(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", {"ior-easy-write.txt": None})
    os.mkfifo(folder / "ior-easy-write.txt")  # would be waited for without end
    (folder / "mdtest-hard-stat.txt").write_bytes(bytes(range(256)) * 40)
    (folder / "ior-hard-write.txt").mkdir()
    result = read(folder)
    said = {Path(problem.place).name: problem.reason for problem in result.problems[:2]}
    assert set(said) == {"ior-easy-write.txt", "ior-hard-write.txt"}
    assert all(reason.startswith("cannot be read") for reason in said.values())
    assert any("not a result of mdtest" in problem.reason for problem in result.problems)
    assert sorted(row["direction"] for row in result.rows) == [
        "file_creation", "file_stat", "find", "tree_creation", "write", "write",
    ]  # fmt: skip


def test_a_folder_of_nothing_but_results_is_all_of_them(tmp_path: Path) -> None:
    folder_of(tmp_path / "results" / "2026.03.03-11.00.00")
    folder_of(tmp_path / "results" / "2026.03.04-11.00.00", {"ior-easy-write.txt": None})
    assert len(list(get_source("io500").captures([tmp_path / "results"], ReadOptions()))) == 2
    assert recognise(tmp_path / "results").name == "io500"
    (tmp_path / "results" / "notes.txt").write_text("something else\n")
    assert not get_source("io500").recognises(tmp_path / "results", b"")


def test_a_summary_that_is_named_alone_leaves_phases_to_the_outputs_beside_it(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run")
    alone = read(folder / "result_summary.txt")
    assert sorted(row["direction"] for row in alone.rows) == ["file_stat", "find", "write"]
    assert [note.reason for note in alone.notes] == ["left to the outputs beside it: ior-easy-write, mdtest-easy-write"]
    sections = read(folder / "result.txt")
    assert (sections.rows, [note.reason for note in sections.notes]) == (
        [], ["the results of result_summary.txt beside it: read there"],
    )  # fmt: skip


def test_iolens_ingest_loads_a_folder_once(tmp_path: Path) -> None:
    folder, store = folder_of(tmp_path / "run"), tmp_path / "store"
    for rows in ("6 benchmark_runs", "no rows"):
        done = iolens("ingest", folder, "--filesystem", "lake", "--store", store)
        assert done.code == 0, done.err
        assert rows in done.out + done.err
    stored = Store(store).benchmark_runs()
    assert {(row["source"], row["filesystem"]) for row in stored} == {("io500", "lake")}
    assert sorted(str(row["tool"]) for row in stored) == ["io500", "ior", "ior", "mdtest", "mdtest", "mdtest"]


def test_real_outputs_have_the_numbers_of_their_own_sources(tmp_path: Path, shared_data: Path) -> None:
    ior = shared_data / "ior" / "text" / "seq_fpp_n4_buffered_i3_1m.txt"
    mdtest = shared_data / "mdtest" / "files_3901B_n2.txt"
    files = {"ior-easy-write.txt": ior.read_text(), "mdtest-hard-write.txt": mdtest.read_text()}
    summary = "IO500 version made-up (standard)\n[SCORE ] Bandwidth 1 GiB/s : IOPS 1 kiops : TOTAL 1\n"
    folder = folder_of(
        tmp_path / "run", {**files, "result_summary.txt": summary, "result.txt": None, "mdtest-easy-write.txt": None}
    )
    result = read(folder)
    own = [*Results(ior, "ior").rows, *Results(mdtest, "mdtest").rows]
    wanted = [row for row in own if row["direction"] in ("write", "file_creation", "tree_creation", "tree_removal")]
    assert len(wanted) == 6
    without = [{name: value for name, value in row.items() if name != "run_id"} for row in result.rows]
    assert without == [{name: value for name, value in row.items() if name != "run_id"} for row in wanted]
