"""Figures of every log against PyDarshan's, and against what darshan-parser printed."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from iolens.errors import InputError
from iolens.run_tables import ACCESS_BINS, access_column, rate_of
from tests.sources.darshan.conftest import EVERY_LOG, SHARED, LogRows, label

COUNTERS = {"MPI-IO": "MPIIO"}  # what the names of a module's counters begin with, where it is not the module's name
FORGOTTEN = re.compile(
    r"ppc64-3\.(0\.0|1\.[0246])"
)  # whose metadata times libdarshan-util leaves in foreign byte order
REFUSED = {
    "SYNTHETIC_not_a_darshan_log.darshan": "not a Darshan log: its magic number is missing",
    "SYNTHETIC_truncated_400B.darshan": "cut off: its job record should end at byte 839",
    "SYNTHETIC_truncated_midmodule.darshan": "cut off or damaged: "
    "no records of POSIX, MPI-IO, LUSTRE, STDIO can be read",
    "SYNTHETIC_zero_length.darshan": "empty file",
}
NAMED = pytest.mark.parametrize("path", [path for path in EVERY_LOG if path.name not in REFUSED], ids=label)
needs_captures = pytest.mark.usefixtures("shared_data")


def rows_of(path: Path, logs: dict[Path, LogRows | InputError]) -> LogRows:
    rows = logs[path]
    assert isinstance(rows, LogRows), rows
    return rows


@needs_captures
@pytest.mark.parametrize("name", REFUSED)
def test_a_damaged_log_is_refused_by_name(logs: dict[Path, LogRows | InputError], name: str) -> None:
    refused = logs[SHARED / "darshan" / "edge" / name]
    assert isinstance(refused, InputError)
    assert refused.problem == REFUSED[name]


@NAMED
def test_the_run_is_as_pydarshan_has_it(
    path: Path, logs: dict[Path, LogRows | InputError], pydarshan: dict[str, Any]
) -> None:
    run, other = rows_of(path, logs).run, pydarshan[str(path)]
    job = other["job"]
    assert (run["processes"], run["uid"], run["job_id"]) == (job["nprocs"], job["uid"], str(job["jobid"]))
    assert run["duration_s"] == pytest.approx(job["run_time"], abs=2e-6)
    assert run["start"] // 1_000_000 == job["start_time_sec"]
    assert run["log_version"] == job["log_ver"]
    assert run["modules"] == ",".join(other["modules"])
    if other["command"]:  # PyDarshan has none where the log has no mounts
        assert run["command"] == other["command"].strip()
    assert run["incomplete_modules"] in (None, "POSIX", "STDIO")


@NAMED
def test_bytes_files_and_performance_by_module_are_pydarshans(
    path: Path, logs: dict[Path, LogRows | InputError], pydarshan: dict[str, Any]
) -> None:
    rows, other = rows_of(path, logs), pydarshan[str(path)]["totals"]
    assert {name for name in rows.totals if name in other} == {name for name in other if other[name]["records"]}
    for module, totals in other.items():
        ours, prefix = rows.totals[module], COUNTERS.get(module, module)
        for column, counter in (("read_bytes", "BYTES_READ"), ("write_bytes", "BYTES_WRITTEN")):
            if ours[column] is not None:
                assert ours[column] == totals["counters"][f"{prefix}_{counter}"]
        if "agg_perf_by_slowest" in totals:
            assert ours["read_bytes"] + ours["write_bytes"] == totals["total_bytes"]
            assert ours["files"] == totals["file_count"]
            speed = ours["agg_perf_by_slowest_mib_per_s"]
            if totals["agg_time_by_slowest"] == 0:
                assert speed is None
            else:
                assert speed == pytest.approx(totals["agg_perf_by_slowest"], rel=1e-9)
        assert len(rows.of_module(module)) == totals["records"]


@NAMED
def test_the_rate_is_darshans_of_the_files_of_each_layer(
    path: Path, logs: dict[Path, LogRows | InputError], pydarshan: dict[str, Any]
) -> None:
    """Darshan's accumulator, fed with the records of one layer, against MiB/s/CN; where files count at several layers,
    the slowest rank of all together is at least that of each alone and at most their sum.
    """
    run, other = rows_of(path, logs).run, pydarshan[str(path)]["rate"]
    layers = list(other["layers"].values())
    assert run["rate_bytes"] == other["bytes"]
    assert (run["rate_method"], run["rate_s"]) == ("slowest_rank", pytest.approx(other["seconds"], rel=1e-6, abs=1e-9))
    rate = rate_of(run).mib_per_s
    if not run["rate_s"]:
        assert (rate, sum(layer["seconds"] for layer in layers)) == (None, 0)
    elif len(layers) == 1:
        assert rate == pytest.approx(layers[0]["mib_per_s"], rel=0.03)
    else:
        slowest, total = (choose(layer["seconds"] for layer in layers) for choose in (max, sum))
        assert slowest * (1 - 1e-6) <= run["rate_s"] <= total * (1 + 1e-6)  # dxt.darshan has negative times
        assert rate == pytest.approx(other["bytes"] / 2**20 / other["seconds"], rel=0.03)


@needs_captures
def test_rates_of_most_logs_are_of_a_single_layer(pydarshan: dict[str, Any]) -> None:
    """So that the comparison above is with a figure that Darshan itself prints."""
    layers = [len(figures["rate"]["layers"]) for figures in pydarshan.values() if figures is not None]
    assert layers.count(1) > len(layers) / 2


@NAMED
def test_sums_of_a_run_are_pydarshans(
    path: Path, logs: dict[Path, LogRows | InputError], pydarshan: dict[str, Any]
) -> None:
    run, totals = rows_of(path, logs).run, pydarshan[str(path)]["totals"]
    posix, stdio = totals.get("POSIX", {}).get("counters", {}), totals.get("STDIO", {}).get("counters", {})
    for column, counter in (("read_bytes", "BYTES_READ"), ("write_bytes", "BYTES_WRITTEN"), ("opens", "OPENS"),
                            ("reads", "READS"), ("writes", "WRITES"), ("seeks", "SEEKS")):  # fmt: skip
        assert run[column] == posix.get(f"POSIX_{counter}", 0) + stdio.get(f"STDIO_{counter}", 0), column
    for column, counter in (("sequential_reads", "SEQ_READS"), ("consecutive_writes", "CONSEC_WRITES"),
                            ("misaligned_ops", "FILE_NOT_ALIGNED"), ("stats", "STATS")):  # fmt: skip
        assert run[column] == posix.get(f"POSIX_{counter}", 0), column
    for direction in ("read", "write"):
        bins = [name for name in posix if f"SIZE_{direction.upper()}_" in name]
        for name, upper in zip(bins, (*ACCESS_BINS, None), strict=bool(bins)):
            assert run[access_column(direction, upper)] == posix[name], name
    for column, time in (("read_s", "READ_TIME"), ("write_s", "WRITE_TIME"), ("metadata_s", "META_TIME")):
        times = [totals[module]["times"][f"{module}_F_{time}"] for module in ("POSIX", "STDIO") if module in totals]
        if column == "metadata_s" and FORGOTTEN.search(path.name):
            assert times[0] < 1e-300, "PyDarshan has swapped the bytes meanwhile"
            assert 0.01 < run[column] < 10
        else:
            assert run[column] == pytest.approx(sum(times), rel=1e-9)


@NAMED
def test_heat_maps_stripes_and_names_are_pydarshans(
    path: Path, logs: dict[Path, LogRows | InputError], pydarshan: dict[str, Any]
) -> None:
    rows, other = rows_of(path, logs), pydarshan[str(path)]
    moved: Counter[tuple[str, str]] = Counter()
    for record, _, _, read, written in other["heat"]:
        module = other["names"][record].removeprefix("heatmap:").replace("MPIIO", "MPI-IO")
        moved.update({(module, "read_bytes"): read, (module, "write_bytes"): written})
    ours: Counter[tuple[str, str]] = Counter()
    for row in rows.series:
        ours.update({(row["module"], name): row[name] for name in ("read_bytes", "write_bytes")})
    assert +ours == +moved
    stripes = [(row["record_id"] % (1 << 64), row["osts"]) for row in rows.of_module("LUSTRE")]
    assert stripes == [(int(key), ",".join(map(str, dict.fromkeys(osts))) or None) for key, osts in other["stripes"]]
    for row in rows.files:
        assert row["path"] == (other["names"].get(str(row["record_id"] % (1 << 64))) or None)


@needs_captures
@pytest.mark.parametrize(
    ("log", "text"),
    [("apps/sample-badost.darshan", "sample-badost.perf-total-file.txt"), ("apps/sample.darshan", "sample.base.txt"),
     ("apps/skew-app.darshan", "skew-app.all.txt"),
     ("edge/partial_data_stdio.darshan", "partial_data_stdio.all.txt.gz")],
)  # fmt: skip
def test_figures_are_those_that_darshan_parser_printed(
    logs: dict[Path, LogRows | InputError], log: str, text: str
) -> None:
    rows = rows_of(SHARED / "darshan" / log, logs)
    content = (SHARED / "darshan" / "parser-text" / text).read_bytes()
    lines = (gzip.decompress(content) if text.endswith(".gz") else content).decode().splitlines()
    checked = 0
    sums: Counter[str] = Counter()
    for line in lines:
        fields = line.split("\t")
        if len(fields) == 8 and fields[3].endswith(("_BYTES_READ", "_BYTES_WRITTEN")):
            sums[fields[3]] += int(fields[4])
        if match := re.fullmatch(r"total_(POSIX|STDIO|MPIIO)_BYTES_(READ|WRITTEN): (\d+)", line):
            module = "MPI-IO" if match[1] == "MPIIO" else match[1]
            assert rows.totals[module]["read_bytes" if match[2] == "READ" else "write_bytes"] == int(match[3]), line
            checked += 1
    for counter, total in sums.items():
        module, _, what = counter.partition("_BYTES_")
        name = "MPI-IO" if module == "MPIIO" else module
        assert rows.totals[name]["read_bytes" if what == "READ" else "write_bytes"] == total, counter
        checked += 1
    speeds = [float(match[1]) for line in lines if (match := re.match(r"# agg_perf_by_slowest: ([\d.]+)", line))]
    ours = {totals["agg_perf_by_slowest_mib_per_s"] or 0.0 for totals in rows.totals.values()}
    for speed in speeds:
        assert any(value == pytest.approx(speed, abs=1e-6) for value in ours), speed
    assert checked + len(speeds) >= 2


@needs_captures
def test_a_slow_target_shows_as_the_slowest_rank(logs: dict[Path, LogRows | InputError]) -> None:
    """darshan-parser: `unique files: slowest_rank_io_time: 778.494366`, `slowest_rank: 1507`."""
    run = rows_of(SHARED / "darshan" / "apps" / "sample-badost.darshan", logs).run
    assert run["slowest_rank"] == 1507
    assert run["slowest_rank_s"] == pytest.approx(778.494366 + 0.200828, abs=2e-6)
