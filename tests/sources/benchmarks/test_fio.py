"""fio results: JSON alone, in series, mixed with text; terse and normal output; failed jobs are never stored."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.sources.benchmarks.fio_text import size_in_fio
from iolens.sources.reading.options import ReadOptions
from iolens.units import GIB, KIB, MIB, epoch_us
from tests.sources.results import Results, read

T0 = 1_900_000_000_000  # milliseconds


def side(operations: int, size: int, milliseconds: int) -> dict[str, Any]:
    moved = operations * size
    return {
        "io_bytes": moved, "io_kbytes": moved // 1024, "bw_bytes": moved * 1000 // max(milliseconds, 1),
        "iops": operations * 1000 / max(milliseconds, 1), "runtime": milliseconds, "total_ios": operations,
    }  # fmt: skip


NOTHING = side(0, 0, 0)


def job(
    name: str = "j", read_: dict[str, Any] = NOTHING, write: dict[str, Any] = NOTHING, **more: Any
) -> dict[str, Any]:
    options = {"name": name, "filename": "/lake/f", "size": "1g", "rw": "randwrite", "bs": "64k", "direct": "1"}
    options |= {"ioengine": "libaio", "iodepth": "8", **more.pop("options", {})}
    runtime = max(read_["runtime"], write["runtime"])
    plain = {"jobname": name, "groupid": 0, "error": 0, "job_runtime": runtime, "job options": options}
    return {**plain, "read": read_, "write": write, **more}


def document(*jobs: dict[str, Any], at: int = T0, **more: Any) -> dict[str, Any]:
    return {"fio version": "fio-3.40", "timestamp_ms": at, "jobs": list(jobs), **more}


def disk(name: str = "sdx", **counts: int) -> dict[str, Any]:
    base = {"read_ios": 0, "write_ios": 0, "read_merges": 0, "write_merges": 0, "read_ticks": 0, "write_ticks": 0}
    return {"name": name, **base, **counts}


def test_one_job(tmp_path: Path) -> None:
    content = document(
        job(write=side(1600, 64 * KIB, 2000)),
        disk_util=[disk(write_ios=1700, write_sectors=204_800, read_ios=3, read_sectors=24)],
    )
    result = read(tmp_path, "fio", json.dumps(content, indent=2))
    assert (result.problems, result.notes) == ([], [])
    expected = {
        "tool": "fio", "direction": "write", "transfer_bytes": 64 * KIB, "operations": 1600, "bytes": 100 * MIB,
        "duration_s": 2.0, "queue_depth": 8, "tasks": 1, "access": "random", "direct": True, "mixed": False,
        "aggregate_bytes": GIB, "api": "libaio", "device": "sdx", "device_ops": 1700, "device_bytes": 100 * MIB,
        "device_other_ops": 3, "device_other_bytes": 24 * 512, "time": T0 * 1000, "complete": True,
        "reported_bytes_per_s": 50 * MIB, "reported_ops_per_s": 800.0,
    }  # fmt: skip
    assert {name: result.rows[0].get(name) for name in expected} == expected


def test_a_device_without_sectors_has_operations_and_no_bytes(tmp_path: Path) -> None:
    content = document(job(write=side(1600, 64 * KIB, 2000)), disk_util=[disk(write_ios=1500)])
    row = read(tmp_path, "fio", json.dumps(content)).rows[0]
    assert (row["device_ops"], row.get("device_bytes")) == (1500, None)


def test_of_a_stacked_device_the_disks_below_count(tmp_path: Path) -> None:
    stacked = {**disk("md0", write_ios=10), "aggr_read_ios": 0, "aggr_write_ios": 20}
    disks = [stacked, disk("sda", write_ios=11), disk("sdb", write_ios=9)]
    row = read(tmp_path, "fio", json.dumps(document(job(write=side(10, 4096, 1000)), disk_util=disks))).rows[0]
    assert (row["device"], row["device_ops"]) == ("sda+sdb", 20)


@pytest.mark.parametrize("group_reporting", [False, True])
def test_like_jobs_are_one_run(tmp_path: Path, group_reporting: bool) -> None:
    if group_reporting:
        grouped = {"numjobs": "2", "group_reporting": "1"}
        jobs = [job(write=side(300, 64 * KIB, 2000), options=grouped)]
    else:
        each = {"numjobs": "2"}
        jobs = [
            job(write=side(100, 64 * KIB, 1900), options=each),
            job(write=side(200, 64 * KIB, 2000), options=each),
        ]
    result = read(tmp_path, "fio", json.dumps(document(*jobs)))
    row = result.rows[0]
    assert len(result.rows) == 1
    assert (row["operations"], row["tasks"], row["queue_depth"], row["duration_s"]) == (300, 2, 16, 2.0)


def test_reads_and_writes_together_are_two_rows_that_say_so(tmp_path: Path) -> None:
    mixed = job(read_=side(70, 4096, 1000), write=side(30, 4096, 1000), options={"rw": "randrw", "bs": "4k"})
    result = read(tmp_path, "fio", json.dumps(document(mixed, disk_util=[disk(read_ios=70, write_ios=30)])))
    assert result.column("direction") == ["read", "write"]
    assert result.column("mixed") == [True, True]
    assert result.column("device_ops") == [70, 30]


def test_different_jobs_at_the_same_time_have_no_device_of_their_own(tmp_path: Path) -> None:
    jobs = [job("a", write=side(10, 4096, 1000)), job("b", read_=side(10, 4096, 1000))]
    result = read(tmp_path, "fio", json.dumps(document(*jobs, disk_util=[disk(write_ios=10)])))
    assert result.column("device") == [None, None]
    assert len(set(result.column("run_id"))) == 2


def test_mixed_block_sizes_have_no_transfer_size(tmp_path: Path) -> None:
    split = job(write=side(100, 50_000, 1000), options={"bssplit": "4k/50:64k/50"})
    row = read(tmp_path, "fio", json.dumps(document(split))).rows[0]
    assert (row.get("transfer_bytes"), row["operations"], row["bytes"]) == (None, 100, 5_000_000)


def test_synchronous_engines_have_one_transfer_in_flight(tmp_path: Path) -> None:
    row = read(tmp_path, "fio", json.dumps(document(job(write=side(9, 4096, 9), options={"ioengine": "psync"})))).rows[
        0
    ]
    assert row["queue_depth"] == 1


def test_options_common_to_all_jobs_are_theirs(tmp_path: Path) -> None:
    item = job(read_=side(9, 4096, 9))
    item["job options"] = {"name": "j"}
    common = {"rw": "randread", "bs": "4k", "direct": "1", "iodepth": "3", "ioengine": "libaio", "size": "50%"}
    content = {**document(item), "global options": common}
    row = read(tmp_path, "fio", json.dumps(content)).rows[0]
    assert (row["access"], row["direct"], row["queue_depth"], row.get("aggregate_bytes")) == ("random", True, 3, None)


def test_status_documents_are_replaced_by_the_last_of_their_run(tmp_path: Path) -> None:
    status = [document(job(write=side(100 * n, 4096, 1000 * n)), at=T0 + 1000 * n) for n in (1, 2, 3)]
    again = document(job(write=side(50, 4096, 1000)), at=T0 + 60_000)
    result = read(tmp_path, "fio", "\n".join(json.dumps(item, indent=1) for item in [*status, again]))
    assert result.column("operations") == [300, 50]
    assert "2 documents" in result.notes[0].reason


def test_a_failed_job_is_reported_and_not_stored(tmp_path: Path) -> None:
    message = "fio: pid=7, err=28/file:io_u.c:1, func=io_u error, error=No space left on device\n"
    bad = job("bad", write=side(1, 4096, 5), error=28)
    result = read(tmp_path, "fio", message + json.dumps(document(bad, job("good", write=side(9, 4096, 9))), indent=1))
    assert result.column("operations") == [9]
    reasons = " ".join(problem.reason for problem in result.problems)
    assert "'bad' failed with error 28 (No space left on device)" in reasons
    assert result.problems[0].line == 1


NORMAL = """txt: (g=0): rw=randwrite, bs=(R) {low}-{high}, (W) {low}-{high}, (T) 4096B-4096B, ioengine=libaio, iodepth=4
fio-3.40
Starting 2 processes

txt: (groupid=0, jobs=2): err= {error}: pid=32079: Tue Mar  3 11:00:00 2026
  write: IOPS=4819, BW=18.8MiB/s (19.7MB/s)(37.6MiB/2000msec); 0 zone resets
     issued rwts: total=0,9638,0,0 short=0,0,0,0 dropped=0,0,0,0

Run status group 0 (all jobs):
  WRITE: bw=18.8MiB/s (19.7MB/s), io=37.6MiB (39.5MB), run=2000-2000msec

Disk stats (read/write):
  sdx: ios=22/8234, sectors=176/65872, merge=11/2, ticks=26/535, in_queue=561, util=16.97%
"""


def test_normal_output_with_one_block_size_is_exact(tmp_path: Path) -> None:
    result = read(tmp_path, "fio", NORMAL.format(low="4096B", high="4096B", error=0))
    row = result.rows[0]
    assert result.problems == []
    assert (row["bytes"], row["operations"], row["duration_s"]) == (9638 * 4096, 9638, 2.0)
    assert (row["queue_depth"], row["tasks"], row["access"]) == (8, 2, "random")
    assert (row["device_ops"], row["device_bytes"]) == (8234, 65872 * 512)
    assert row["time"] == epoch_us(datetime(2026, 3, 3, 11, tzinfo=UTC))


def test_normal_output_of_mixed_sizes_is_named_not_guessed(tmp_path: Path) -> None:
    result = read(tmp_path, "fio", NORMAL.format(low="4096B", high="64.0KiB", error=0))
    assert result.rows == []
    assert "--output-format=json" in result.problems[0].reason


def test_normal_output_of_a_failed_job_or_one_cut_off(tmp_path: Path) -> None:
    failed = read(tmp_path, "fio", NORMAL.format(low="4096B", high="4096B", error=28))
    assert (failed.rows, "error 28" in failed.problems[0].reason) == ([], True)
    whole = NORMAL.format(low="4096B", high="4096B", error=0)
    cut = read(tmp_path, "fio", whole[: whole.index("     issued")])
    assert (cut.rows, "cut off" in cut.problems[0].reason) == ([], True)


def test_both_outputs_in_one_file_count_once(tmp_path: Path) -> None:
    normal = NORMAL.format(low="4096B", high="4096B", error=0)
    content = json.dumps(document(job(write=side(9638, 4096, 2000))), indent=2)
    result = read(tmp_path, "fio", normal[: normal.index("txt: (groupid")] + content + "\n" + normal)
    assert result.column("operations") == [9638]
    assert result.notes


def terse(volume_kib: int, iops: int, milliseconds: int) -> str:
    figures = [volume_kib, 1, iops, milliseconds, *[0] * 37]
    fields = ["3", "fio-3.40", "short", "0", "0", *figures, *[0] * 41, *["0.0%"] * 40]
    return ";".join(map(str, [*fields, "sdx", 500, 2, 0, 0, 1, 1, 2, "9.1%"]))


def test_terse(tmp_path: Path) -> None:
    result = read(tmp_path, "fio", terse(4000, 1001, 999) + "\n" + terse(3000, 999, 1000) + "\n")
    first, second = result.rows
    assert (first["direction"], first["transfer_bytes"], first["operations"]) == ("read", 4096, 1000)
    assert (first["bytes"], first["duration_s"], first["device_ops"]) == (4000 * KIB, 0.999, 500)
    assert (second.get("transfer_bytes"), second.get("operations")) == (None, None)  # 3 KiB on average: mixed


def terse_of(version: int, read_: tuple[int, ...], write: tuple[int, ...]) -> str:
    """A line of any version: volume, bandwidth, IOPS, milliseconds of each direction, and zeros for the rest."""
    width, directions = {3: (41, 2), 4: (41, 3), 5: (47, 3)}[version]
    figures = [[*item, *[0] * (width - len(item))] for item in (read_, write, ())[:directions]]
    fields = [version, "fio-3.40", "mix", 0, 0, *(figure for item in figures for figure in item), *["0.0%"] * 34]
    return ";".join(map(str, [*fields, "sdx", 500, 2, 0, 0, 1, 1, 2, "9.1%"]))


@pytest.mark.parametrize("version", [3, 4, 5])
def test_terse_of_every_version_with_its_own_fields(tmp_path: Path, version: int) -> None:
    """Version 4 adds trims, version 5 six fields to each direction: where the writes stand differs."""
    line = terse_of(version, (4000, 4000, 1000, 1000), (8000, 8000, 500, 1000))
    result = read(tmp_path, "fio", line + "\n")
    assert result.problems == []
    assert result.column("direction") == ["read", "write"]
    assert result.column("bytes") == [4000 * KIB, 8000 * KIB]
    assert result.column("transfer_bytes") == [4 * KIB, 16 * KIB]
    assert result.column("device_ops") == [500, 2]


@pytest.mark.parametrize("version", [3, 4, 5])
def test_terse_of_the_program_itself_says_what_its_json_says(tmp_path: Path, version: int) -> None:
    fio = shutil.which("fio")
    if fio is None:
        pytest.skip("fio is not installed")
    command = [
        fio, "--name=mix", f"--filename={tmp_path}/file", "--size=1m", "--rw=randrw", "--bs=16k", "--ioengine=psync",
        f"--terse-version={version}",
    ]  # fmt: skip
    text = subprocess.run([*command, "--output-format=json,terse"], capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in text.splitlines() if line.startswith(f"{version};fio-")]
    (tmp_path / "a.terse").write_text(line + "\n")
    (tmp_path / "a.json").write_text(text.replace(line, ""))
    by_json, by_terse = Results(tmp_path / "a.json", "fio"), Results(tmp_path / "a.terse", "fio")
    assert by_terse.problems == []
    for name in ("direction", "bytes", "duration_s"):
        assert by_terse.column(name) == by_json.column(name)
    (tmp_path / "both").write_text(text)
    both = Results(tmp_path / "both", "fio")
    assert both.column("operations") == by_json.column("operations")
    assert "terse output beside the JSON" in both.notes[0].reason


def test_terse_of_another_version_or_cut_is_named(tmp_path: Path) -> None:
    line = terse(4000, 1000, 1000)
    result = read(tmp_path, "fio", "6" + line[1:] + "\n" + line[:90] + "\n" + line + "\n")
    assert len(result.rows) == 1
    assert "terse version '6' is not supported; versions 3, 4, 5 are" in result.problems[0].reason
    assert "fields; terse version 3 has at least 121" in result.problems[1].reason
    (tmp_path / "old").write_text(";".join(["2", "card0", "0", "0", "7139336", "121836", *["0"] * 100]) + "\n")
    (problem,) = Results(tmp_path / "old", "fio").problems
    assert "terse version 2 is not supported" in problem.reason


def test_a_damaged_document_between_others_costs_itself(tmp_path: Path) -> None:
    first, second, third = (
        json.dumps(document(job(write=side(count, 4096, 9)), at=T0 + count * 90_000), indent=1) for count in (7, 8, 9)
    )
    result = read(tmp_path, "fio", first + "\n" + second[: len(second) // 2] + "\n" + third + "\n")
    assert result.column("operations") == [7, 9]
    assert [problem.reason for problem in result.problems] == [
        "a document that is cut or damaged: that run is left out"
    ]


def test_a_document_cut_off_loses_only_itself(tmp_path: Path) -> None:
    whole = json.dumps(document(job(write=side(9, 4096, 9))), indent=1)
    second = json.dumps(document(job(write=side(8, 4096, 9)), at=T0 + 90_000), indent=1)
    result = read(tmp_path, "fio", whole + "\n" + second[: len(second) // 2])
    assert result.column("operations") == [9]
    assert "ends within a document" in result.problems[0].reason


@pytest.mark.parametrize(
    "broken",
    [
        {"io_bytes": 1 << 70, "io_kbytes": 1},
        {"runtime": 0},
        {"io_bytes": -5},
        {"io_bytes": None},
        {"runtime": "soon"},
    ],
)
def test_impossible_numbers_make_no_rows(tmp_path: Path, broken: dict[str, Any]) -> None:
    content = document(job(write=side(9, 4096, 9)))
    content["jobs"][0]["write"] |= broken
    result = read(tmp_path, "fio", json.dumps(content))
    assert result.rows == []
    assert result.problems


def test_a_version_before_three_counted_kibibytes(tmp_path: Path) -> None:
    old = job(write={"io_bytes": 400, "bw": 400, "iops": 100.0, "runtime": 1000, "total_ios": 100})
    row = read(tmp_path, "fio", json.dumps(document(old))).rows[0]
    assert (row["bytes"], row["reported_bytes_per_s"]) == (400 * KIB, 400 * KIB)


@pytest.mark.parametrize(
    ("text", "size"),
    [("4k", 4096), ("1M", MIB), ("512", 512), ("4KiB", 4096), ("2g", 2 * GIB), ("50%", None), ("", None)],
)
def test_sizes_as_fio_writes_them(text: str, size: int | None) -> None:
    assert size_in_fio(text) == size


def test_supplied_facts_are_kept(tmp_path: Path) -> None:
    options = ReadOptions(filesystem="lake", at=datetime(2026, 1, 1, tzinfo=UTC))
    row = read(tmp_path, "fio", terse(4000, 1000, 1000), options).rows[0]
    assert (row["filesystem"], row["time"]) == ("lake", epoch_us(datetime(2026, 1, 1, tzinfo=UTC)))


def test_the_real_sweep(shared_data: Path) -> None:
    paths = sorted((shared_data / "fio" / "sweep-json").glob("*.json"))
    assert len(paths) == 36
    for path in paths:
        result = Results(path, "fio")
        assert result.problems == []
        row = result.rows[0]
        pattern, size, depth = path.stem.split("_")[:3]
        assert row["access"] == ("random" if pattern.startswith("rand") else "sequential")
        assert row["transfer_bytes"] == size_in_fio(size)
        assert row["queue_depth"] == int(depth.removeprefix("qd"))
        assert row["bytes"] / row["duration_s"] == pytest.approx(row["reported_bytes_per_s"], rel=1e-6)
        assert row["operations"] * row["transfer_bytes"] == row["bytes"]
        assert row["device"] == "vda"


def test_the_other_real_outputs(shared_data: Path) -> None:
    other = shared_data / "fio" / "other"
    assert Results(other / "error_enospc.json", "fio").rows == []
    assert Results(other / "status_interval_multi_json.json", "fio").column("operations") == [31062]
    assert Results(other / "randread_16k_normal_plus_json_mixed.txt", "fio").column("operations") == [6679]
    two = Results(other / "randrw70_1m_2jobs_nogroup.json", "fio")
    assert two.column("operations") == [726 + 714, 324 + 310]
    assert Results(other / "randwrite_4k_normal.txt", "fio").column("bytes") == [9638 * 4096]
    assert Results(other / "randrw_4k_terse_v3.txt", "fio").column("bytes") == [18236 * KIB, 18676 * KIB]
    assert Results(other / "randread_4k_jsonplus.json", "fio").column("operations") == [14665]
    assert Results(other / "tmpfs_randwrite_4k_buffered.json", "fio").column("direct") == [False]
