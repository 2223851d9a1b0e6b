"""MiB/s/CN of a log (DEFINITIONS): each file once, at the highest of MPI-IO, POSIX with STDIO, and DFS."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path
from typing import Any

import pytest

from iolens.analyses.runs.summary import run_summary
from iolens.analyses.runs.used_files import RunRecord, strategy_of
from iolens.errors import InputError
from iolens.run_tables import rate_of
from iolens.sources import recognise
from iolens.sources.darshan.log import MAGIC, LogBatch
from iolens.sources.darshan.messages import RowOptions
from iolens.sources.darshan.rows import rows_of_batch
from iolens.views.runs_summary.text import run_summary_text
from tests.sources.darshan.made_logs import Record, made_log, moved

MIB = 1 << 20


def record_of(path: Path) -> RunRecord:
    """Read here: made-up logs do no harm."""
    batch = LogBatch()
    batch.read(path, str(path))
    return RunRecord.of(rows_of_batch(batch, RowOptions()))


def run_of(path: Path) -> dict[str, Any]:
    return dict(record_of(path).run)


def test_two_phase_io_spends_its_time_in_mpi_io(tmp_path: Path) -> None:
    """1,000 MiB in 10 s of collective calls, of which the aggregators' writes are 0.5 s: 100 MiB/s, not 2,000."""
    shared = {"MPI-IO": [moved("/s/a", written=1000 * MIB, seconds=10.0, COLL_OPENS=4, COLL_WRITES=1000)],
              "POSIX": [moved("/s/a", written=1000 * MIB, seconds=0.5, WRITES=100)]}  # fmt: skip
    run = run_of(made_log(tmp_path / "a.darshan", shared))
    assert (run["rate_bytes"], run["rate_s"], run["rate_method"]) == (1000 * MIB, 10.0, "slowest_rank")
    assert rate_of(run).mib_per_s == pytest.approx(100.0)
    assert rate_of(run, "paper").mib_per_s == pytest.approx(2000.0)
    assert (run["slowest_rank_s"], run["write_bytes"]) == (0.5, 1000 * MIB)
    page = run_summary(RunRecord(run))
    assert (page.mib_per_s, page.mib_per_s_posix, page.rate_is_short) == (100.0, 2000.0, False)
    assert "100.0 MiB/s (in the 10 s of the slowest rank)" in run_summary_text(page)
    assert "2,000.0 MiB/s: without the time that MPI-IO spends above it" in run_summary_text(page)
    assert "%, below MPI-IO" in run_summary_text(page)


def test_each_file_counts_at_a_layer_of_its_own_and_streams_at_none(tmp_path: Path) -> None:
    """Rank 1 spends 3 s in its POSIX file and 2 s in STDIO, rank 2 spends 4 s: 5 s, and 10 s of the shared file."""
    run = run_of(made_log(tmp_path / "a.darshan", {
        "MPI-IO": [moved("/s/shared", written=8 * MIB, seconds=10.0)],
        "POSIX": [moved("/s/shared", written=9 * MIB, seconds=1.0), moved("/s/one", 1, read=2 * MIB, seconds=3.0),
                  moved("/s/two", 2, written=MIB, seconds=4.0)],
        "STDIO": [moved("/s/log", 1, written=MIB, seconds=2.0), moved("<STDOUT>", 3, written=MIB, seconds=90.0)],
    }))  # fmt: skip
    assert (run["rate_bytes"], run["rate_s"]) == (12 * MIB, 15.0)
    assert (run["slowest_rank_s"], run["slowest_rank"]) == (91.0, 3)  # as the study has it: streams and all


def test_a_file_that_mpi_io_only_opened_counts_where_its_bytes_are(tmp_path: Path) -> None:
    run = run_of(made_log(tmp_path / "a.darshan", {
        "MPI-IO": [moved("/s/a", seconds=0.25)], "POSIX": [moved("/s/a", written=6 * MIB, seconds=2.0)],
    }))  # fmt: skip
    assert (run["rate_bytes"], run["rate_s"]) == (6 * MIB, 2.0)


def test_posix_and_stdio_of_one_file_count_both(tmp_path: Path) -> None:
    """Neither goes through the other; the bytes of each stand under its interface, though the file counts once."""
    run = run_of(made_log(tmp_path / "a.darshan", {
        "POSIX": [moved("/s/a", 0, written=6 * MIB, seconds=2.0)],
        "STDIO": [moved("/s/a", 0, written=2 * MIB, seconds=1.0)],
    }))  # fmt: skip
    assert (run["rate_bytes"], run["rate_s"]) == (8 * MIB, 3.0)
    page = run_summary(RunRecord(run))
    assert {name: (totals.files, totals.write_bytes) for name, totals in page.interfaces.items()} == {
        "posix": (1, 6 * MIB), "stdio": (0, 2 * MIB)
    }  # fmt: skip


def test_a_run_over_dfs_has_files_bytes_strategy_and_rate(tmp_path: Path) -> None:
    """Four ranks write a file of their own each; the log of standard output is no file."""
    own = [moved(f"pool/container/{rank}", rank, written=8 * MIB, seconds=1.0 + rank, WRITES=8) for rank in range(4)]
    out = moved("<STDOUT>", 0, written=100, seconds=0.5)
    run = run_of(made_log(tmp_path / "a.darshan", {"DFS": own, "STDIO": [out]}))
    assert (run["files"], run["dfs_files"], run["unique_files"]) == (4, 4, 4)
    assert (run["write_bytes"], run["dfs_write_bytes"], run["writes"], run["opens"]) == (
        32 * MIB + 100, 32 * MIB, 32, 5,
    )  # fmt: skip
    assert (run["io_ranks"], strategy_of(run)[0]) == (4, "file_per_process")
    assert (run["rate_bytes"], run["rate_s"]) == (32 * MIB, 4.0)
    assert run["appended_write_bytes"] is None  # DFS tells nothing of offsets
    shared = {"DFS": [moved("pool/container/a", written=32 * MIB, seconds=4.0)]}
    run = run_of(made_log(tmp_path / "b.darshan", shared))
    assert (run["shared_files"], strategy_of(run)[0], rate_of(run).mib_per_s) == (1, "shared", 8.0)
    above = {**shared, "MPI-IO": [moved("pool/container/a", written=32 * MIB, seconds=8.0)]}
    run = run_of(made_log(tmp_path / "c.darshan", above))
    assert (run["files"], run["mpiio_files"], run["write_bytes"], rate_of(run).mib_per_s) == (1, 1, 32 * MIB, 4.0)


def test_old_shared_records_take_the_time_from_their_first_open_to_their_last_access(tmp_path: Path) -> None:
    old = moved("/s/a", written=80 * MIB, seconds=4.0, begin_s=3.0)
    old = Record(old.name, old.rank, old.counters, {**old.times, "SLOWEST_RANK_TIME": 0.0, "WRITE_TIME": 16.0})
    run = run_of(made_log(tmp_path / "a.darshan", {"MPI-IO": [old]}))
    assert (run["rate_s"], run["rate_method"], rate_of(run).mib_per_s) == (4.0, "open_lastio", 20.0)
    assert "Warning: an old log" in run_summary_text(run_summary(RunRecord(run)))


@pytest.mark.parametrize(("begin_s", "overlap"), [(5.0, False), (2.0, True)])
def test_shared_files_in_use_at_the_same_time_are_flagged(tmp_path: Path, begin_s: float, overlap: bool) -> None:
    files = [moved("/s/a", written=MIB, seconds=3.0), moved("/s/b", written=MIB, seconds=3.0, begin_s=begin_s)]
    run = run_of(made_log(tmp_path / "a.darshan", {"MPI-IO": files}))
    assert (run["rate_s"], run["rate_files_overlap"], run["shared_files_overlap"]) == (6.0, overlap, False)


def test_what_no_layer_tells_has_no_rate(tmp_path: Path) -> None:
    """Bytes of datasets alone: through which layer they went, and how fast, is not known."""
    dataset = Record("/s/a.h5:/d", -1, {"BYTES_WRITTEN": MIB}, {"WRITE_TIME": 1.0}, "/s/a.h5")
    run = run_of(made_log(tmp_path / "a.darshan", {"H5D": [dataset]}))
    assert (run["rate_bytes"], run["rate_s"], run["write_bytes"]) == (None, None, None)
    page = run_summary(RunRecord(run))
    assert (page.mib_per_s, page.rate_is_lost) == (None, False)


def test_a_short_time_in_io_is_said(tmp_path: Path) -> None:
    log = made_log(tmp_path / "a.darshan", {"POSIX": [moved("/s/a", written=MIB, seconds=0.05)]})
    page = run_summary(record_of(log))
    assert (page.mib_per_s, page.rate_is_short) == (20.0, True)
    assert "the slowest rank spent 50 ms in I/O: a rate of so short a time says little" in run_summary_text(page)


def test_datasets_of_old_logs_do_not_name_their_files(tmp_path: Path) -> None:
    """libdarshan-util gives 0 as the file of a dataset of version 1: three datasets of two files are not one file."""
    datasets = [
        Record(f"{file}:/{name}", -1, {"BYTES_WRITTEN": MIB}, file=file)
        for file, name in (("/s/a.h5", "x"), ("/s/a.h5", "y"), ("/s/b.h5", "z"))
    ]
    files = [moved(name, written=2 * MIB, seconds=1.0) for name in ("/s/a.h5", "/s/b.h5")]
    modules = {"POSIX": files, "H5F": [Record(name) for name in ("/s/a.h5", "/s/b.h5")], "H5D": datasets}
    totals = {}
    for version in (1, 2):
        page = run_summary(record_of(made_log(tmp_path / f"{version}.darshan", modules, H5D=version)))
        totals[version] = page.modules["H5D"]
        assert (page.interfaces["hdf5"].files, page.interfaces["hdf5"].write_bytes) == (2, 4 * MIB)
    assert (totals[2].files, totals[2].write_bytes) == (2, 3 * MIB)
    assert (totals[1].files, totals[1].write_bytes) == (None, 3 * MIB)


@pytest.mark.parametrize(
    ("modules", "expected"),
    [
        ({"POSIX": [moved("/s/a", 0, written=4 * MIB, WRITES=4, CONSEC_WRITES=3)]}, 4 * MIB),
        ({"POSIX": [moved("/s/a", 0, written=4 * MIB, WRITES=4, CONSEC_WRITES=2)]}, 0),
        ({"POSIX": [moved("/s/a", written=4 * MIB, WRITES=4, CONSEC_WRITES=4)]}, 0),  # by all ranks
        ({"POSIX": [moved("/s/a", rank, written=MIB, WRITES=1) for rank in range(2)]}, 0),
        ({"STDIO": [moved("/s/a", 0, written=MIB, WRITES=9)]}, MIB),
        ({"STDIO": [moved("/s/a", 0, written=MIB, WRITES=9, SEEKS=1)]}, 0),
    ],
    ids=["one after the other", "with a gap", "shared", "of two ranks", "stream of a file", "stream with a seek"],
)
def test_append_only_files(tmp_path: Path, modules: dict[str, list[Record]], expected: int) -> None:
    assert run_of(made_log(tmp_path / "a.darshan", modules))["appended_write_bytes"] == expected


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, bytes], ids=["gzip", "bzip2", "plain"])
def test_logs_of_darshan_2_are_named_as_such(tmp_path: Path, packed: Any) -> None:
    path = tmp_path / "ann_ior_id1_1-2-3-4_1.darshan.gz"
    path.write_bytes(packed(b"2.06".ljust(8, b"\0") + MAGIC.to_bytes(8, "little") + bytes(2000)))
    with pytest.raises(InputError) as refused:
        record_of(path)
    assert refused.value.problem == "a log of Darshan 2 (format 2.06): only the tools of Darshan 2 read it"
    assert recognise(path).name == "darshan"
