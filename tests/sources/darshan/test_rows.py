"""What the rows of a log say: runs of IOR whose figures are known, and logs of other applications."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iolens.analyses.runs.used_files import strategy_of
from iolens.errors import InputError
from iolens.run_tables import INTERFACES, PATTERNS, rate_of
from iolens.schema import TABLES
from iolens.sources import ReadOptions, get_source, recognise
from iolens.sources.darshan.head import PlaceFinder
from iolens.sources.darshan.isolated import rows_of_log
from iolens.sources.darshan.log import LogBatch, layout_of
from iolens.sources.darshan.messages import RowOptions
from iolens.sources.darshan.runs import identity_columns
from tests.sources.darshan import LOGS
from tests.sources.darshan.conftest import CAPTURED, EVERY_LOG, SHARED, LogRows, label, read_logs
from tests.sources.darshan.log_copies import SplitLog
from tests.sources.darshan.test_damage import HEATMAP, POSIX
from tests.sources.darshan.test_pydarshan import REFUSED, needs_captures, rows_of

MIB = 1 << 20
Logs = dict[Path, LogRows | InputError]


def ior_results(name: str) -> list[dict[str, float]]:
    """What IOR printed of the same run."""
    results: list[dict[str, float]] = json.loads((LOGS / f"{name}.ior.json").read_text())["tests"][0]["Results"]
    return results


@pytest.mark.parametrize("name", ["n1-write", "nn-write"])
def test_bandwidth_is_iors_within_3_percent(logs: Logs, name: str) -> None:
    """Table I of the study: MiB/s from the log against IOR's own."""
    run = rows_of(LOGS / f"{name}.darshan", logs).run
    (result,) = ior_results(name)
    assert run["rate_s"] > 1
    assert rate_of(run).mib_per_s == pytest.approx(result["bwMiB"], rel=0.03)


@needs_captures
def test_collective_runs_are_as_slow_as_mpi_io_says(logs: Logs) -> None:
    """8 ranks that write and read 32 MiB collectively: 2.2 s in MPI-IO, of which 7 ms are POSIX of the aggregators."""
    (path,) = (path for path in CAPTURED if path.name.startswith("0_ior_id4400006-"))
    run = rows_of(path, logs).run
    totals = rows_of(path, logs).totals
    assert rate_of(run).mib_per_s == pytest.approx(28.8, rel=0.03)
    assert rate_of(run).mib_per_s == pytest.approx(totals["MPI-IO"]["agg_perf_by_slowest_mib_per_s"], rel=0.03)
    assert rate_of(run, "paper").mib_per_s == pytest.approx(8801.2, rel=0.01)


def test_writes_through_mpi_io_are_as_fast_as_ior_says_within_10_percent(logs: Logs) -> None:
    """Of its write phase. The read phase of IOR, 13 ms, is mostly ranks waiting for each other: 3 ms of it are I/O."""
    rows = rows_of(LOGS / "nn-mpiio.darshan", logs)
    slowest_s = max(row["write_s"] + row["metadata_s"] for row in rows.of_module("MPI-IO"))
    written, read = ior_results("nn-mpiio")
    assert 64 / slowest_s == pytest.approx(written["bwMiB"], rel=0.10)
    assert max(row["read_s"] for row in rows.of_module("MPI-IO")) < read["wrRdTime"] / 4


def test_both_phases_through_mpi_io_take_as_long_as_ior_says_within_10_percent(logs: Logs) -> None:
    """All bytes over the time of both phases, from the first rank that begins to the last that ends, as IOR has it.

    MiB/s/CN counts the time inside of calls alone, so it is a third above IOR's combined figure here.
    """
    files = rows_of(LOGS / "nn-mpiio.darshan", logs).of_module("MPI-IO")
    write_s = max(row["close_start_s"] for row in files) - min(row["open_start_s"] for row in files)
    read_s = max(row["read_end_s"] for row in files) - min(row["read_start_s"] for row in files)
    combined = sum(row["read_bytes"] + row["write_bytes"] for row in files) / MIB / (write_s + read_s)
    assert combined == pytest.approx(128 / sum(result["totalTime"] for result in ior_results("nn-mpiio")), rel=0.10)


def test_one_shared_file_of_four_ranks(logs: Logs) -> None:
    rows = rows_of(LOGS / "n1-write.darshan", logs)
    run = rows.run
    assert (run["processes"], run["executable"], run["modules"]) == (4, "ior", "POSIX,STDIO,HEATMAP")
    assert run["command"].startswith("/opt/ior/bin/ior -o /scratch/n1 -e")
    assert (run["shared_files"], run["shared_write_bytes"], run["unique_files"]) == (1, 1024 * MIB, 1)
    assert (run["files"], run["posix_files"], run["stdio_files"]) == (2, 1, 1)  # the summary of IOR is the other one
    assert (run["key_access_bytes"], run["key_access_count"], run["key_access_direction"]) == (MIB, 1024, "w")
    assert (run["written_files"], run["new_files"]) == (2, 2)
    assert (run["io_ranks"], run["write_ranks"]) == (4, 4)  # by the heat map
    assert {row["bytes_from"] for row in rows.ranks} == {"heatmap"}
    assert [row["rank"] for row in rows.ranks] == [0, 1, 2, 3]
    (shared,) = rows.of_module("POSIX")
    assert (shared["rank"], shared["ranks"], shared["path"]) == (-1, 4, "/scratch/n1")
    assert shared["extent_bytes"] == shared["written_extent_bytes"] == shared["write_bytes"] == 1024 * MIB
    assert shared["read_start_s"] is shared["read_end_s"] is shared["longest_read_s"] is None  # there was no read
    assert 0 < shared["open_start_s"] < shared["write_start_s"] < shared["write_end_s"] <= run["duration_s"]
    assert 0 <= shared["slowest_rank"] < 4
    assert shared["slowest_rank_s"] >= shared["fastest_rank_s"] > 0
    assert sum(row["write_bytes"] for row in rows.series if row["module"] == "POSIX") == 1024 * MIB


@pytest.mark.parametrize(
    ("missing_bytes", "expected"), [(0, (1, 0, 1)), (1, (None, None, None))], ids=["all bytes", "all but one"]
)
def test_the_slowest_rank_of_a_shared_record_may_have_moved_all_its_bytes(
    tmp_path: Path, missing_bytes: int, expected: tuple[int | None, ...]
) -> None:
    """Without a heat map that is the only evidence of single ranks."""
    log = SplitLog.of((LOGS / "n1-write.darshan").read_bytes())
    regions, layout = log.regions(), layout_of("POSIX")
    records = np.frombuffer(regions[POSIX], layout.dtype).copy()
    moved = layout.counter(records, "BYTES_WRITTEN")
    assert records["rank"].tolist() == [-1]
    records["counters"][:, layout.counters["SLOWEST_RANK"]] = 0
    records["counters"][:, layout.counters["SLOWEST_RANK_BYTES"]] = moved - missing_bytes
    del regions[HEATMAP]
    path = tmp_path / "rank0.darshan"
    path.write_bytes(log.rewritten({**regions, POSIX: records.tobytes()}))
    run = rows_of(path, read_logs([path])).run
    assert (run["io_ranks"], run["busiest_rank"], run["write_ranks"]) == expected
    assert run["busiest_rank_bytes"] == (
        None if missing_bytes else run["shared_write_bytes"] + run["unique_write_bytes"]
    )
    assert strategy_of(run)[0] == ("shared" if missing_bytes else "rank0")


@needs_captures
def test_the_variance_between_ranks_agrees_that_one_rank_moved_all_bytes() -> None:
    """All bytes B of n ranks by one of them have the variance B² · (n − 1) ÷ n²."""
    batch = LogBatch()
    batch.read(SHARED / "darshan" / "apps" / "skew-app.darshan", "skew-app")
    layout, records = batch.buffers["POSIX"].layout, batch.buffers["POSIX"].records
    (moved,), (own,), (variance,) = (
        layout.counter(records, "BYTES_WRITTEN"),
        layout.counter(records, "SLOWEST_RANK_BYTES"),
        layout.time(records, "VARIANCE_RANK_BYTES"),
    )
    ranks = batch.heads[0].processes
    assert own == moved
    assert variance == pytest.approx(float(moved) ** 2 * (ranks - 1) / ranks**2)


def test_a_file_per_rank_through_mpi_io(logs: Logs) -> None:
    rows = rows_of(LOGS / "nn-mpiio.darshan", logs)
    run = rows.run
    assert (run["mpiio_files"], run["mpiio_read_bytes"], run["mpiio_write_bytes"]) == (4, 64 * MIB, 64 * MIB)
    assert (run["posix_files"], run["posix_read_bytes"], run["posix_write_bytes"]) == (0, 0, 0)
    assert (run["independent_ops"], run["collective_ops"]) == (512, 0)
    assert (run["unique_files"], run["shared_files"], run["files"]) == (5, 0, 5)
    assert (run["io_ranks"], run["busiest_rank"]) == (4, 0)
    assert {row["bytes_from"] for row in rows.ranks} == {"records"}
    assert {row["fastest_rank"] for row in rows.files} == {None}  # only shared records have one
    assert [row["independent_writes"] for row in rows.of_module("MPI-IO")] == [64] * 4
    assert (run["new_files"], run["written_files"]) == (1, 5)  # four were read as well: an estimate


def test_streams_are_no_files_but_their_bytes_count(logs: Logs) -> None:
    rows = rows_of(LOGS / "n1-write.darshan", logs)
    paths = [row["path"] for row in rows.of_module("STDIO")]
    assert "<STDOUT>" in paths
    assert rows.run["files"] == len({row["record_id"] for row in rows.files if not row["path"].startswith("<")})
    assert rows.run["write_bytes"] == 1024 * MIB + rows.totals["STDIO"]["write_bytes"]
    assert rows.totals["STDIO"]["files"] == len(paths)


@pytest.mark.parametrize("path", [path for path in EVERY_LOG if path.name not in REFUSED], ids=label)
def test_parts_add_up(logs: Logs, path: Path) -> None:
    rows = rows_of(path, logs)
    run = rows.run
    assert sum(run[f"{pattern}_files"] for pattern in PATTERNS) == run["files"]
    if run["dfs_files"] == 0:
        assert sum(run[f"{interface}_files"] for interface in INTERFACES) >= run["files"]
    streams = {row["record_id"] for row in rows.files if row["path"] in ("<STDIN>", "<STDOUT>", "<STDERR>")}
    of_streams = sum(row["write_bytes"] or 0 for row in rows.files if row["record_id"] in streams)
    assert sum(run[f"{pattern}_write_bytes"] for pattern in PATTERNS) + of_streams == run["write_bytes"]
    assert run["new_files"] <= run["written_files"] <= run["files"]
    if run["io_ranks"] is not None:
        assert run["write_ranks"] <= run["io_ranks"] <= run["processes"]
        assert run["io_ranks"] == sum(row["read_bytes"] + row["write_bytes"] > 0 for row in rows.ranks)
    assert {*run} <= {column.name for column in TABLES["runs"].columns}
    for table, values in (("run_files", rows.files), ("run_ranks", rows.ranks), ("run_series", rows.series)):
        key = [name for name in TABLES[table].key if name != "run_id"]
        assert len({tuple(row[name] for name in key) for row in values}) == len(values), table


@needs_captures
@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("apps/imbalanced-io.darshan", {"partial": True, "incomplete_modules": "POSIX", "processes": 496}),
        ("edge/partial_data_stdio.darshan", {"partial": True, "incomplete_modules": "STDIO"}),
        ("edge/empty_log.darshan", {"files": 0, "modules": "", "write_bytes": 0, "io_ranks": 0, "osts": None}),
        ("edge/noposix.darshan", {"posix_files": 0, "partial": False}),
        ("apps/skew-app.darshan", {"processes": 65536, "mpiio_files": 1, "shared_files": 1, "io_ranks": 1}),
        ("apps/shane_ior-HDF5_id438090-438090_11-9-41522-17417065676046418211_1.darshan",
         {"user": "shane", "hdf5_files": 1, "mpiio_files": 0, "executable": "ior"}),
        ("apps/e3sm_io_heatmap_only.darshan", {"pnetcdf_files": 3, "processes": 512}),
        ("release/mpi-io-test-ppc64-3.0.0.darshan", {"log_version": "3.00", "mpiio_files": 1, "shared_files": 1}),
        ("dxt/dxt.darshan", {"nodes": 1, "executable": "java"}),
    ],
)  # fmt: skip
def test_logs_of_other_applications(logs: Logs, log: str, expected: dict[str, object]) -> None:
    run = rows_of(SHARED / "darshan" / log, logs).run
    assert {name: run[name] for name in expected} == expected


@needs_captures
def test_a_heat_map_of_many_ranks_is_in_groups(logs: Logs) -> None:
    rows = rows_of(SHARED / "darshan" / "apps" / "e3sm_io_heatmap_only.darshan", logs)
    assert {row["ranks"] for row in rows.series} == {2}
    assert all(row["rank"] % 2 == 0 for row in rows.series)


@pytest.mark.parametrize(
    ("name", "command", "user"),
    [
        ("ann_ior_id7-1_11-15-74188-766_2.darshan", "/opt/ior -w", "ann"),
        ("ann_lee_my_app_id7_11-15-74188-766_2.darshan", "./my_app", "ann_lee"),
        ("ann_my_app_id7_11-15-74188-766.darshan", "./other", "ann"),
        ("0_ior_id4400002-2667_11-15-74188-7663188193858716383_2.darshan", "ior", "0"),
        ("sample.darshan", "ior", None),
        ("ior_id7.darshan", "ior", None),
    ],
)
def test_the_user_is_known_by_the_name_of_the_log(logs: Logs, name: str, command: str, user: str | None) -> None:
    from iolens.sources.darshan.head import LogHead

    head = LogHead(f"/logs/{name}", "", "3.41", False, 0, 7, 1, 2, 1.0, 1, command, {}, {}, [])
    assert identity_columns([head])["user"] == [user]


MOUNTS = {"/": "overlay", "/home": "nfs", "/scratch": "lustre", "/scratch/fast": "tmpfs"}


@pytest.mark.parametrize(
    ("path", "mount", "filesystem"),
    [
        ("/scratch/n1", "/scratch", "lake"),
        ("/scratch/fast/a/b", "/scratch/fast", "lake"),
        ("/scratch2/x", "/", None),
        ("/home/ann/x", "/home", "homes"),
        ("/etc/passwd", "/", None),
        ("relative", None, None),
        ("<STDOUT>", None, None),
        (None, None, None),
    ],
)
def test_a_file_lies_below_the_longest_mount(path: str | None, mount: str | None, filesystem: str | None) -> None:
    finder = PlaceFinder(MOUNTS, {"/scratch/": "lake", "/home": "homes"}, None)
    kind = None if mount is None else MOUNTS[mount]
    assert finder.place(path) == (mount, kind, filesystem)


def test_configured_mounts_name_the_file_system_of_a_run() -> None:
    path = LOGS / "n1-write.darshan"
    options = RowOptions({"/scratch": "lake"}, "elsewhere")
    rows = read_logs([path], options)[path]
    assert isinstance(rows, LogRows)
    assert rows.run["filesystem"] == "lake"
    assert {row["path"]: row["filesystem"] for row in rows.of_module("POSIX")} == {"/scratch/n1": "lake"}
    assert {row["filesystem"] for row in rows.ranks} == {"lake"}


def test_paths_can_be_left_out() -> None:
    path = LOGS / "n1-write.darshan"
    rows = read_logs([path], replace(RowOptions(), paths=False))[path]
    assert isinstance(rows, LogRows)
    assert {row["path"] for row in rows.files} <= {None, "<STDIN>", "<STDOUT>", "<STDERR>"}
    assert rows.of_module("POSIX")[0]["mount"] == "/"


def test_settings_are_checked() -> None:
    source = get_source("darshan")
    for settings, problem in (
        ({"path": False}, "unknown key sources.darshan.path"),
        ({"paths": "no"}, "sources.darshan.paths = 'no'"),
    ):
        with pytest.raises(InputError) as refused:
            list(source.captures([LOGS / "n1-write.darshan"], ReadOptions(settings=settings)))
        assert refused.value.problem == problem


def test_a_log_is_recognised_by_its_magic_number_or_its_name(tmp_path: Path) -> None:
    log = tmp_path / "a-log"
    log.write_bytes((LOGS / "n1-write.darshan").read_bytes())
    cut = tmp_path / "cut.darshan"
    cut.write_bytes(b"3.4")
    assert recognise(log).name == recognise(cut).name == "darshan"


def test_one_log_as_the_python_interface_gives_it() -> None:
    rows = rows_of_log(LOGS / "n1-write.darshan", ReadOptions(filesystem="lake"))
    assert {name: len(table) for name, table in rows.items()} == {
        "runs": 1, "run_files": 3, "run_ranks": 4, "run_series": len(rows["run_series"])}  # fmt: skip
    assert rows["runs"].columns["filesystem"] == ["lake"]


def test_captures_are_here_where_they_are_named() -> None:
    assert all(path.exists() for path in CAPTURED)
