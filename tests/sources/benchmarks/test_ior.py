"""IOR results in text, CSV and JSON: every iteration once, exact bytes, and what failed is named."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.models.transaction_time import GRACE_2012
from iolens.sources.reading.options import ReadOptions
from iolens.store.store import Store
from iolens.units import GIB, KIB, MIB, epoch_us
from tests.cli.command import iolens
from tests.sources.results import Results, read

COLUMNS = (
    "access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter"
)
OPTIONS = {
    "api": "POSIX", "test filename": "/lake/file", "access": "single-shared-file", "segments": "2",
    "ordering in a file": "random", "nodes": "3", "tasks": "6", "repetitions": "2", "xfersize": "65536 bytes",
    "blocksize": "8 MiB", "aggregate filesize": "96 MiB",
}  # fmt: skip


def header(command: str = "ior -w -r -z --posix.odirect -o /lake/file") -> str:
    return (
        "IOR-4.0.0: MPI Coordinated Test of Parallel I/O\nBegan               : Tue Mar  3 11:00:00 2026\n"
        f"Command line        : {command}\nMachine             : Linux node7\n"
    )


def block(results: list[tuple[str, float, float, int]], test: int = 0, **changed: str) -> str:
    options = {**OPTIONS, **{name.replace("_", " "): value for name, value in changed.items()}}
    said = "".join(f"{name:20}: {value}\n" for name, value in options.items())
    rows = "".join(
        f"{access:9} {rate:<10.2f} 1.0        0.001       8192       64.00      0.1        0.2        0.1        "
        f"{seconds:<10.6f} {iteration}   \n"
        for access, rate, seconds, iteration in results
    )
    return (
        f"TestID              : {test}\nStartTime           : Tue Mar  3 11:00:05 2026\n"
        "Path                : /lake/file\n"
        f"FS                  : 10.0 TiB   Used FS: 61.5%   Inodes: 1.0 Mi   Used Inodes: 3.1%\n\nOptions: \n{said}\n"
        f"Results: \n\n{COLUMNS}\n------    ---------  ----\n{rows}"
    )


def summary(*lines: tuple[str, float, int]) -> str:
    rows = "".join(f"{name} {mean} {mean} {mean} 0.0 {test} POSIX\n" for name, mean, test in lines)
    return f"\nSummary of all tests:\nOperation Max(MiB) Min(MiB) Mean(MiB) StdDev Test# API\n{rows}"


FINISHED = "Finished            : Tue Mar  3 11:01:00 2026\n"
TWICE = [("write", 96.0, 1.0, 0), ("read", 192.0, 0.5, 0), ("write", 48.0, 2.0, 1), ("read", 96.0, 1.0, 1)]


def test_every_iteration_is_a_row_with_exact_bytes(tmp_path: Path) -> None:
    result = read(tmp_path, "ior", header() + block(TWICE) + summary(("write", 72.0, 0), ("read", 144.0, 0)) + FINISHED)
    assert result.problems == []
    assert result.column("direction") == ["write", "read", "write", "read"]
    assert result.column("iteration") == [0, 0, 1, 1]
    assert set(result.column("bytes")) == {96 * MIB}
    assert result.column("duration_s") == pytest.approx([1.0, 0.5, 2.0, 1.0])
    assert set(result.column("operations")) == {96 * MIB // 65536}
    assert len(set(result.column("run_id"))) == 2
    first = result.rows[0]
    assert first["time"] == epoch_us(datetime(2026, 3, 3, 11, 0, 5, tzinfo=UTC))
    expected = {
        "tool": "ior", "api": "POSIX", "transfer_bytes": 65536, "block_bytes": 8 * MIB, "tasks": 6, "queue_depth": 6,
        "nodes": 3, "segments": 2, "repetitions": 2, "access": "random", "direct": True, "file_per_process": False,
        "aggregate_bytes": 96 * MIB, "fullness_pct": 61.5, "complete": True, "mixed": False,
    }  # fmt: skip
    assert {name: first[name] for name in expected} == expected
    assert first["reported_bytes_per_s"] == 96 * MIB


def test_a_named_zone_moves_the_time(tmp_path: Path) -> None:
    options = ReadOptions(filesystem="lake", timezone="America/Los_Angeles")
    result = read(tmp_path, "ior", header() + block(TWICE[:1]) + FINISHED, options)
    assert result.rows[0]["time"] == epoch_us(datetime(2026, 3, 3, 19, 0, 5, tzinfo=UTC))
    assert result.rows[0]["filesystem"] == "lake"


def test_a_script_with_two_tests(tmp_path: Path) -> None:
    second = block([("write", 96.0, 1.0, 0)], 1, access="file-per-process", ordering_in_a_file="sequential")
    text = header("ior -f two.ior") + block([("write", 96.0, 1.0, 0)]) + second + FINISHED
    result = read(tmp_path, "ior", text)
    assert result.column("file_per_process") == [False, True]
    assert result.column("access") == ["random", "sequential"]
    assert result.column("direct") == [None, None]  # the script is not in the file
    assert len(set(result.column("run_id"))) == 2


def test_several_runs_in_one_file(tmp_path: Path) -> None:
    item = header() + block(TWICE[:1]) + FINISHED
    result = read(tmp_path, "ior", "srun: job 17 queued\n" + item + item)
    assert len(result.rows) == 2
    assert len(set(result.column("run_id"))) == 2


def test_a_run_stopped_by_time_moved_what_it_moved(tmp_path: Path) -> None:
    result = read(tmp_path, "ior", header() + block([("write", 10.0, 3.0, 0)]) + FINISHED)
    assert result.column("bytes") == [30 * MIB]
    assert result.column("aggregate_bytes") == [96 * MIB]


def test_bytes_that_ior_counted_are_exact(tmp_path: Path) -> None:
    """A run that time stopped at 99 % looks like a whole one by its rounded bandwidth."""
    moved = 95 * MIB + 65536
    warnings = (
        f"WARNING: Stat() of aggregate file size      = {GIB}\nWARNING: Using actual aggregate bytes moved = {moved}\n"
    )
    warned = block([("write", 95.1, 1.0, 0), ("read", 96.0, 1.0, 0)]).replace("write  ", f"{warnings}write  ")
    result = read(tmp_path, "ior", header() + warned + FINISHED)
    assert result.column("bytes") == [moved, 96 * MIB]
    assert result.column("aggregate_bytes") == [GIB, 96 * MIB]
    other = warned.replace(str(moved), "12345")  # of something else: the bandwidth says so
    assert read(tmp_path, "ior", header() + other + FINISHED).column("bytes") == [96 * MIB, 96 * MIB]


@pytest.mark.parametrize(
    ("command", "fsync"),
    [
        ("ior -w -r -e", True),
        ("ior -wrek -o /lake/e", True),
        ("ior -w -Y", True),
        ("ior -w -O fsync=1", True),
        ("ior -w -E -o /lake/-x", False),
        ("ior -w -O fsync=0 -o file", False),
        ("ior -w -ofile", False),
        ("ior -f script", None),
    ],
)
def test_whether_writes_include_the_fsync_is_on_the_command_line(
    tmp_path: Path, command: str, fsync: bool | None
) -> None:
    result = read(tmp_path, "ior", header(command) + block(TWICE[:2], repetitions="1") + FINISHED)
    assert result.column("fsync") == [fsync, None]  # a read has none


@pytest.mark.parametrize(
    ("api", "kind", "collective"),
    [("MPIIO", "collective", True), ("MPIIO", "independent", False), ("POSIX", "collective", False)],
)
def test_collective_is_of_mpi_io(tmp_path: Path, api: str, kind: str, collective: bool) -> None:
    result = read(tmp_path, "ior", header() + block(TWICE[:1], repetitions="1", api=api, type=kind) + FINISHED)
    assert result.column("collective") == [collective]
    assert read(tmp_path, "ior", header() + block(TWICE[:1]) + FINISHED).column("collective") == [None]


def test_stripes_are_those_printed_or_asked_for(tmp_path: Path) -> None:
    def stripes(command: str, size: str = "", count: str = "") -> tuple[object, object]:
        options = block(TWICE[:1], Lustre_stripe_size=size, stripe_count=count)
        (row,) = read(tmp_path, "ior", header(command) + options + FINISHED).rows
        return row.get("stripe_count"), row.get("stripe_bytes")

    assert stripes("ior -w") == (None, None)
    assert stripes("ior -w", size="4 MiB", count="8 bytes") == (8, 4 * MIB)  # so IOR 3 prints a count
    assert stripes("ior -w", size="Use default", count="16") == (16, None)
    assert stripes("ior -w -O lustreStripeCount=4,lustreStripeSize=2m") == (4, 2 * MIB)
    assert stripes("ior -w --posix.lustre.stripecount=4 --posix.lustre.stripesize 1048576") == (4, MIB)
    assert stripes("ior -w --posix.lustre.stripecount=-1 --posix.lustre.stripesize=0") == (None, None)


def test_the_format_before_operations_were_printed(tmp_path: Path) -> None:
    """IOR 3.0: `=` between name and value, clients instead of tasks, no IOPS column, no segments."""
    text = (
        "IOR-3.0.1: MPI Coordinated Test of Parallel I/O\n\nBegan: Tue Mar  3 11:00:00 2026\n"
        "Command line used: ior -w -F -b 16m -t 1m\nSummary:\n"
        "\tapi                = POSIX\n\taccess             = file-per-process\n"
        "\tordering in a file = sequential offsets\n\tclients            = 4 (2 per node)\n"
        "\trepetitions        = 1\n\txfersize           = 1 MiB\n\tblocksize          = 16 MiB\n"
        "\taggregate filesize = 64 MiB\n\n"
        "access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter\n"
        "------    ---------  ---------- ---------  --------   --------   --------   --------   ----\n"
        "write     64.00      16384      1024.00    0.001      0.9        0.001      1.000000   0\n"
        "Finished: Tue Mar  3 11:00:02 2026\n"
    )
    result = read(tmp_path, "ior", text)
    assert result.problems == []
    row = result.rows[0]
    assert (row["tasks"], row["nodes"], row["bytes"]) == (4, 2, 64 * MIB)
    assert (row["access"], row["file_per_process"], row["direct"]) == ("sequential", True, False)


def test_a_killed_run_keeps_what_was_complete_and_says_so(tmp_path: Path) -> None:
    result = read(tmp_path, "ior", header() + block(TWICE[:3]))
    assert len(result.rows) == 3
    assert [problem.reason for problem in result.problems] == [
        "the run was cut off: 3 results of 2 repetitions, no summary"
    ]


def test_a_result_line_cut_in_the_middle_is_refused(tmp_path: Path) -> None:
    whole = header() + block(TWICE)
    result = read(tmp_path, "ior", whole[: whole.rindex("1.000000")])
    assert len(result.rows) == 3
    assert "result not understood" in result.problems[0].reason


def test_failures_are_reported_in_the_words_of_the_program(tmp_path: Path) -> None:
    error = "ERROR: block size must be a multiple of transfer size, (../src/ior.c:1520)\n"
    result = read(tmp_path, "ior", error * 3 + "Abort(-1) on node 0 (rank 0 in comm 0)\n")
    assert result.rows == []
    assert len(result.problems) == 1
    assert "multiple of transfer size" in result.problems[0].reason


def test_a_summary_that_contradicts_the_results_is_reported(tmp_path: Path) -> None:
    result = read(tmp_path, "ior", header() + block(TWICE) + summary(("write", 90.0, 0), ("read", 144.0, 0)) + FINISHED)
    assert [problem.reason for problem in result.problems] == ["the summary says 90 MiB/s for write, its results 72"]


def test_carriage_returns_do_not_matter(tmp_path: Path) -> None:
    text = header() + block(TWICE) + FINISHED
    unix, dos = read(tmp_path, "ior", text), read(tmp_path, "ior", text.replace("\n", "\r\n"))
    assert [{**row, "run_id": ""} for row in dos.rows] == [{**row, "run_id": ""} for row in unix.rows]
    assert len(dos.rows) == 4


def document(**changed: Any) -> dict[str, Any]:
    parameters = {"transferSize": 4096, "blockSize": GIB, "segmentCount": 1, "api": "POSIX"}
    options = {"access": "file-per-process", "ordering in a file": "random", "tasks": 2, "nodes": 1, "repetitions": 2}
    results = [
        {"access": access, "bwMiB": rate, "iops": 256 * rate, "totalTime": round(2048 / rate, 4)}
        for rate in (40.96, 20.48)
        for access in ("write", "read")
    ]
    return {
        "Version": "4.0.0",
        "Began": "Tue Mar  3 11:00:00 2026",
        "Command line": "ior -B -z -F",
        "tests": [
            {
                "TestID": 0, "StartTime": "Tue Mar  3 11:00:00 2026", "Used Capacity": "12.5%",
                "Parameters": parameters, "Options": options, "Results": results,
            }
        ],
        "summary": [{"operation": name, "TestID": 0, "bwMeanMIB": 30.72} for name in ("write", "read")],
        "Finished": "Tue Mar  3 11:05:00 2026",
        **changed,
    }  # fmt: skip


def as_text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2)


def test_json(tmp_path: Path) -> None:
    result = read(tmp_path, "ior", as_text(document()))
    assert (result.problems, result.notes) == ([], [])
    assert result.column("iteration") == [0, 0, 1, 1]
    assert result.column("duration_s") == pytest.approx([50.0, 50.0, 100.0, 100.0])
    assert set(result.column("bytes")) == {2 * GIB}
    row = result.rows[0]
    assert (row["direct"], row["access"], row["file_per_process"], row["fullness_pct"]) == (True, "random", True, 12.5)


def test_a_short_time_in_json_is_taken_from_the_bandwidth(tmp_path: Path) -> None:
    """`totalTime` has four decimals: 8 MiB at 1396.9372 MiB/s took 5.7268 ms, not 5.7."""
    content = document()
    content["tests"][0]["Parameters"]["blockSize"] = 4 * MIB
    content["tests"][0]["Results"] = [{"access": "read", "bwMiB": 1396.9372, "iops": 1.0, "totalTime": 0.0057}]
    content["summary"] = []
    result = read(tmp_path, "ior", as_text(content))
    assert result.column("duration_s") == pytest.approx([8 / 1396.9372])


def test_warnings_between_the_lines_of_json_are_noted(tmp_path: Path) -> None:
    text = as_text(document()).replace('"Results": [', '"Results": [\nWARNING: The file exists already')
    result = read(tmp_path, "ior", text)
    assert len(result.rows) == 4
    assert result.problems == []
    assert "exists already" in result.notes[0].reason


def test_json_cut_off_keeps_the_results_that_are_whole(tmp_path: Path) -> None:
    text = as_text(document())
    third = text.index('"totalTime": 100.0')
    result = read(tmp_path, "ior", text[: third + 5])
    assert result.column("direction") == ["write", "read"]
    assert "cut off: 2 results" in result.problems[0].reason
    for length in range(60, len(text) - 2, 37):  # wherever it is cut
        part = read(tmp_path, "ior", text[:length])
        assert len(part.rows) <= 4
        assert part.problems


def test_csv_tells_results_alone(tmp_path: Path) -> None:
    text = (
        "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter\n"
        "write,327.7516,327.8857,0.0093,16384.0000,1024.0000,0.0027,0.1952,0.1578,0.1953,4,0\n"
        "read,broken\n"
        "read,32.0000,32.0,0.0029,16384.0000,1024.0000,0.0074,0.0685,0.0378,4.0000,4,1\n"
    )
    time = datetime(2026, 1, 2, tzinfo=UTC)
    result = read(tmp_path, "ior", text, ReadOptions(at=time))
    assert result.column("bytes") == [64 * MIB, 128 * MIB]  # two segments in the second
    assert result.column("duration_s") == pytest.approx([64 / 327.7516, 4.0])
    assert result.column("time") == [epoch_us(time)] * 2
    assert result.column("access") == [None, None]
    assert [problem.line for problem in result.problems] == [3]


@pytest.mark.parametrize("first", ["time,runtime,tp", "access,rank,runtime-with-openclose,runtime,throughput"])
def test_details_are_named_and_left_out(tmp_path: Path, first: str) -> None:
    result = read(tmp_path, "ior", f"{first}\n1,2,3\n")
    assert (result.rows, result.problems) == ([], [])
    assert "left out" in result.notes[0].reason


def test_impossible_numbers_make_no_rows(tmp_path: Path) -> None:
    bad = block([("write", 0.0, 1.0, 0), ("read", 96.0, 0.0, 0)]).replace("96.00 ", "inf   ")
    result = read(tmp_path, "ior", header() + bad + FINISHED)
    assert result.rows == []
    assert len(result.problems) == 2


def test_real_captures_agree_with_their_own_summaries(shared_data: Path) -> None:
    """Bandwidth of every row is what IOR printed; nothing but the runs that failed is refused."""
    failed = {"error_blocksize_not_multiple.txt", "error_no_such_dir.txt", "truncated_killed.txt", "stonewall_n2.txt"}
    for path in sorted((shared_data / "ior").rglob("*")):
        if path.is_dir():
            continue
        result = Results(path, "ior")
        assert bool(result.problems) == (path.name in failed), path.name
        for row in result.rows:
            rate = row["bytes"] / row["duration_s"]
            assert rate == pytest.approx(row["reported_bytes_per_s"], rel=2e-4), path.name
            assert row["operations"] * row["transfer_bytes"] == row["bytes"]
        # Counted another way: result lines have eleven columns, results in JSON name their access.
        lines = [line.split() for line in path.read_text().splitlines()]
        in_text = sum(len(words) == 11 and words[0] in ("write", "read") for words in lines)
        in_json = sum(words[:1] == ['"access":'] and words[1].strip('",') in ("write", "read") for words in lines)
        in_csv = sum(words[0].startswith(("write,", "read,")) for words in lines if words) if "rand" in path.name else 0
        assert len(result.rows) == in_text + in_json + in_csv, path.name


def test_the_real_sweep_by_text(shared_data: Path) -> None:
    paths = sorted((shared_data / "ior" / "text").glob("rand_shared_n4_odirect_*.txt"))
    rows = [row for path in paths for row in Results(path, "ior").rows]
    assert len(rows) == 16
    assert {row["bytes"] for row in rows} == {64 * MIB}
    assert {row["transfer_bytes"] for row in rows} == {size * KIB for size in (4, 8, 32, 64, 256, 512, 1024, 4096)}
    assert all(row["access"] == "random" and row["direct"] for row in rows)


def test_real_captures_tell_collective_calls_and_fsync(shared_data: Path) -> None:
    folder = shared_data / "ior" / "text"
    (name,) = (path for path in folder.iterdir() if "collective" in path.name)
    assert set(Results(name, "ior").column("collective")) == {True}
    pairs = {path: Results(path, "ior") for path in sorted((shared_data / "darshan-ior-pairs").glob("*.json"))}
    assert len(pairs) == 4
    for path, result in pairs.items():
        asked = json.loads(path.read_text())["tests"][0]["Parameters"]
        assert (asked["fsync"], asked["collective"]) == (1, 0)
        assert {(row["direction"], row.get("fsync"), row["collective"]) for row in result.rows} <= {
            ("write", True, False), ("read", None, False),
        }  # fmt: skip
        assert result.column("stripe_count") == [None] * len(result.rows)
    for path in sorted(folder.iterdir()):
        command = next((line for line in path.read_text().splitlines() if line.startswith("Command line")), "")
        for row in Results(path, "ior").rows:
            assert row.get("fsync") is (("-e" in command.split()) if row["direction"] == "write" else None), path


SWEPT = (4 * KIB, 64 * KIB, MIB)
OLD, NEW = "IOR-3.3.1+dev", "IOR-4.1.0"


def script_of_two_versions(folder: Path) -> Path:
    """One output of a batch job: for each size the newer IOR writes, an older one, which stops by time, reads."""
    text = "Smallest file is 128m\n"
    for size in SWEPT:
        for version, direction in ((NEW, "write"), (OLD, "read")):
            moved = 96 * MIB if direction == "write" else 80 * MIB
            seconds = moved / size * GRACE_2012.of(direction).seconds(size)
            rate = moved / MIB / seconds
            counted = f"WARNING: Using actual aggregate bytes moved = {moved}.\n"
            run = block([(direction, rate, seconds, 0)], xfersize=f"{size} bytes")
            if direction == "read":
                run = run.replace("read  ", f"{counted}read  ", 1)
            ended = f"remove  - - - - - - - - 0.1 0\n{summary((direction, round(rate, 2), 0))}{FINISHED}"
            text += header().replace("IOR-4.0.0", version) + run + ended
    path = folder / "slurm-17.out.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_runs_of_two_versions_in_one_file_are_each_read_once(tmp_path: Path) -> None:
    result = Results(script_of_two_versions(tmp_path), "ior")
    assert (result.problems, len(result.rows), len(set(result.column("run_id")))) == ([], 6, 6)
    assert [(row["direction"], row["transfer_bytes"]) for row in result.rows] == [
        (direction, size) for size in SWEPT for direction in ("write", "read")
    ]
    assert {(row["direction"], row["bytes"]) for row in result.rows} == {("write", 96 * MIB), ("read", 80 * MIB)}


def test_a_sweep_in_one_file_is_stored_once_and_fitted(tmp_path: Path) -> None:
    place, store = script_of_two_versions(tmp_path), tmp_path / "store"
    for _ in range(2):
        assert iolens("ingest", place, "--store", store).code == 0
    assert len(Store(str(store)).benchmark_runs("ior")) == 6
    for what in ((place,), ("--tool", "ior")):  # the file, and the store
        fitted = iolens("calibrate", "fit", *what, "--store", store, "--format", "json")
        assert fitted.code == 0, fitted.err
        for direction in ("write", "read"):
            fit, truth = json.loads(fitted.out)["requested"][direction], GRACE_2012.of(direction)
            assert (fit["runs"], fit["latency_s"]) == (3, pytest.approx(truth.latency_s, rel=0.01))
            assert fit["s_per_byte"] == pytest.approx(truth.s_per_byte, rel=0.01)


@pytest.mark.parametrize(("mean_s", "seconds"), [("1.00537", 1.00537), ("1.0187", 1.01), ("-", 1.01)])
def test_the_summary_of_one_iteration_has_more_digits(tmp_path: Path, mean_s: str, seconds: float) -> None:
    """Where it is the same number: 1.0187 is not what was printed as 1.01."""
    run = block([("write", 95.5, 1.01, 0)]).replace("95.50", "95.5 ").replace("1.010000", "1.01")
    columns = "Operation Max(MiB) Min(MiB) Mean(MiB) StdDev Mean(s) Test# API"
    text = f"{header()}{run}\nSummary of all tests:\n{columns}\nwrite 95.5 95.5 95.5 0.0 {mean_s} 0 POSIX\n{FINISHED}"
    result = read(tmp_path, "ior", text)
    assert (result.problems, result.column("bytes")) == ([], [96 * MIB])
    assert result.column("duration_s") == [seconds]


def test_a_public_evaluation_agrees_with_its_own_summaries(shared_data: Path) -> None:
    """Sixteen pairs of runs by two versions of IOR: each row has the mean bandwidth and the seconds of its summary."""
    for path in sorted((shared_data / "ior-vast-eval").glob("*.gz")):
        lines = [line.split() for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
        summaries = [words for words in lines if words[:1] in (["read"], ["write"]) and words[-2:] == ["POSIX", "0"]]
        result = Results(path, "ior")
        assert (result.problems, len(result.rows), len(set(result.column("run_id")))) == ([], 32, 32)
        assert [row["direction"] for row in result.rows] == [words[0] for words in summaries]
        for row, words in zip(result.rows, summaries, strict=True):
            moved_mib, seconds, mean_mib_per_s = float(words[-3]), float(words[9]), float(words[3])
            assert row["transfer_bytes"] == int(words[-4])
            assert row["bytes"] == pytest.approx(moved_mib * MIB, rel=5e-6)
            assert row["duration_s"] == pytest.approx(seconds, rel=2e-4)
            assert row["bytes"] / row["duration_s"] == pytest.approx(mean_mib_per_s * MIB, rel=2e-4)
            assert row["reported_bytes_per_s"] == pytest.approx(mean_mib_per_s * MIB, rel=2e-4)
