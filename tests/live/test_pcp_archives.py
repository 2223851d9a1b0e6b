"""Our reading of PCP archives against PCP's own tools: pmlogger and pmi write them, pmdumplog and pmrep read them."""

from __future__ import annotations

import csv
import io
import lzma
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import pytest

from iolens.records import Item, Note, Problem, Samples
from iolens.sources import ReadOptions
from iolens.sources.pcp.pcp import SOURCE
from iolens.sources.pcp.pcp_readings import AGAIN_US
from iolens.store.store import Store

pytestmark = pytest.mark.live

PROGRAMS = Path("/usr/lib/pcp/bin")
NAMESPACES = Path("/var/lib/pcp/pmns")
PYTHON = "/usr/bin/python3"  # PCP's module is compiled for the system's
WORTHS = {
    "disk.dev.read": ("read_ops", 1), "disk.dev.write": ("write_ops", 1),
    "disk.dev.read_bytes": ("read_bytes", 1024), "disk.dev.write_bytes": ("write_bytes", 1024),
    "disk.dev.read_rawactive": ("read_wait_us", 1000), "disk.dev.write_rawactive": ("write_wait_us", 1000),
    "disk.dev.avactive": ("busy_us", 1000), "disk.dev.aveq": ("queue_us", 1000),
}  # fmt: skip
CONFIGURATION = "log mandatory on 100 msec { disk.dev disk.dm disk.md }\nlog mandatory on once { hinv.ncpu }\n"
IMPORT = """
import sys
from pcp import pmi
from cpmapi import PM_SEM_COUNTER, PM_SPACE_KBYTE, PM_TYPE_U32, PM_TYPE_U64
log = pmi.pmiLogImport(sys.argv[1])
log.pmiSetHostname("oss9")
log.pmiSetTimezone("UTC")
disks = log.pmiInDom(60, 1)
for item, name, type_, units in (
    (4, "disk.dev.read", PM_TYPE_U64, log.pmiUnits(0, 0, 1, 0, 0, 0)),
    (38, "disk.dev.read_bytes", PM_TYPE_U32, log.pmiUnits(1, 0, 0, PM_SPACE_KBYTE, 0, 0)),
):
    log.pmiAddMetric(name, log.pmiID(60, 0, item), type_, disks, PM_SEM_COUNTER, units)
def write(second, **counts):
    for disk, (reads, kbytes) in counts.items():
        log.pmiPutValue("disk.dev.read", disk, str(reads))
        log.pmiPutValue("disk.dev.read_bytes", disk, str(kbytes % 2**32))
    log.pmiWrite(1700000000 + second, 250000)
log.pmiAddInstance(disks, "sda", 0)
for n in range(4):
    write(10 * n, sda=(100 + n, 2**32 - 10 + 4 * n))
log.pmiPutMark()
log.pmiAddInstance(disks, "nvme0n1", 7)
for n in range(6, 9):
    write(10 * n, sda=(100 + n, 4 * n), nvme0n1=(n, 2**31 + n))
"""

# Two groups 12 ms apart that share a metric, one of whose others is not logged from sample 100 to 249.
GROUPS = """
import sys
from pcp import pmi
from cpmapi import PM_SEM_COUNTER, PM_SPACE_KBYTE, PM_TYPE_U64
log = pmi.pmiLogImport(sys.argv[1])
log.pmiSetHostname("oss9")
log.pmiSetTimezone("UTC")
disks = log.pmiInDom(60, 1)
operations, kbytes = log.pmiUnits(0, 0, 1, 0, 0, 0), log.pmiUnits(1, 0, 0, PM_SPACE_KBYTE, 0, 0)
for item, name, units in ((4, "read", operations), (5, "write", operations), (39, "write_bytes", kbytes)):
    log.pmiAddMetric("disk.dev." + name, log.pmiID(60, 0, item), PM_TYPE_U64, disks, PM_SEM_COUNTER, units)
log.pmiAddInstance(disks, "sda", 0)
for n in range(400):
    log.pmiPutValue("disk.dev.read", "sda", str(5 * n))
    log.pmiPutValue("disk.dev.write_bytes", "sda", str(64 * n))
    log.pmiWrite(1700000000 + 10 * n, 0)
    log.pmiPutValue("disk.dev.read", "sda", str(5 * n + 1))
    if not 100 <= n < 250:
        log.pmiPutValue("disk.dev.write", "sda", str(3 * n))
    log.pmiWrite(1700000000 + 10 * n, 12000)
"""


def run(*command: object, **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "TZ": "UTC", "PCP_PYTHON_PROG": PYTHON, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tools() -> None:
    for name in ("pmlogger", "pmdumplog", "pmlogextract", "pmrep"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} of PCP is not installed")
    if not (PROGRAMS / "pmnsmerge").exists() or not (NAMESPACES / "root_linux").exists():
        pytest.skip("PCP's Linux metrics are not installed")


@pytest.fixture(scope="module")
def recorded(tools: None, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """One and a half seconds of this machine while it writes, by a pmlogger without any daemon, in each version."""
    folder = tmp_path_factory.mktemp("recorded")
    run(PROGRAMS / "pmnsmerge", "-a", NAMESPACES / "root_linux", NAMESPACES / "root_pmcd", folder / "metrics.ns")
    (folder / "configuration").write_text(CONFIGURATION)
    bases = {}
    for version in (2, 3):
        base = bases[version] = folder / f"version{version}"
        command = ["pmlogger", "-o", "-n", folder / "metrics.ns", "-c", folder / "configuration", "-V", str(version)]
        command += ["-T", "1.5sec", "-v", "4", "-U", "root", "-l", folder / "log", base]
        logger = subprocess.Popen([str(word) for word in command], env={**os.environ, "TZ": "UTC"})
        try:
            with TemporaryFile(dir="/var/tmp", buffering=0) as load:  # on a disk: `folder` may be in memory
                while logger.poll() is None:
                    load.seek(0)
                    load.write(os.urandom(1 << 20))
                    os.fsync(load.fileno())
        finally:
            logger.kill()
            logger.wait()
        assert logger.returncode == 0, (folder / "log").read_text()[-2000:]
    return bases


@pytest.fixture(scope="module")
def imported(tools: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with a mark, a counter that wraps and a disk that comes later."""
    return _imported(IMPORT, tmp_path_factory.mktemp("imported") / "made")


def _imported(program: str, base: Path) -> Path:
    if subprocess.run([PYTHON, "-c", "from pcp import pmi"], capture_output=True, check=False).returncode:
        pytest.skip("PCP's Python module is not installed")
    run(PYTHON, "-c", program, base)
    return base


Read = dict[tuple[str, str], list[tuple[int, int]]]  # (measure, disk) → (microseconds of the day, value)


def ours(base: Path) -> tuple[Read, list[Item]]:
    read: Read = {}
    others: list[Item] = []
    (capture,) = SOURCE.captures([base], ReadOptions())
    for item in capture.items():
        if not isinstance(item, Samples):
            others.append(item)
            continue
        disk = item.target.partition(":")[2]
        for measure, column in item.counters.items():
            known = ~np.ma.getmaskarray(column)
            pairs = zip(item.snapshot_us[known], np.ma.getdata(column)[known], strict=True)
            read.setdefault((measure, disk), []).extend((int(at) % 86_400_000_000, int(value)) for at, value in pairs)
    return read, others


def theirs(base: Path) -> tuple[Read, int]:
    """What pmdumplog prints, and how many marks."""
    read: Read = {}
    marks, at, metric = 0, 0, ""
    for line in run("pmdumplog", "-Z", "UTC", base).splitlines():
        if stamp := re.match(r"(\d\d):(\d\d):(\d\d)\.(\d{6})\d*\s+(<mark>|\d+ metric)", line):
            hours, minutes, seconds, micro = (int(stamp[item]) for item in range(1, 5))
            at, marks = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micro, marks + (stamp[5] == "<mark>")
        if named := re.match(r"\s+[\d.]+ \(([\w.]+)", line):
            metric = named[1]
        if metric in WORTHS and (value := re.search(r'inst \[\d+ or "([^"]+)"\] value (\d+)', line)):
            measure, worth = WORTHS[metric]
            read.setdefault((measure, value[1]), []).append((at, int(value[2]) * worth))
    return read, marks


def same(base: Path) -> Iterator[str]:
    """Where the two readings differ. pmlogger that was late catches up: values that close are of one time."""
    mine, _ = ours(base)
    other = {key: _apart(series) for key, series in theirs(base)[0].items()}
    assert other, "pmdumplog found nothing: this test would prove nothing"
    for key in mine.keys() | other.keys():
        if mine.get(key) != other.get(key):
            yield f"{key}: {mine.get(key)} instead of {other.get(key)}"


def _apart(series: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for at, value in series:
        if not kept or at - kept[-1][0] >= AGAIN_US:
            kept.append((at, value))
    return kept


def test_the_captured_archives(tools: None, shared_data: Path) -> None:
    for meta in sorted((shared_data / "pcp").glob("*.meta")):
        assert list(same(meta.with_suffix(""))) == []


@pytest.mark.parametrize("version", [2, 3])
def test_what_pmlogger_writes_now(recorded: dict[int, Path], version: int) -> None:
    base = recorded[version]
    assert len(list(base.parent.glob(f"{base.name}.[0-9]"))) > 1, "one volume only"
    assert list(same(base)) == []
    read, others = ours(base)
    assert [str(other) for other in others if isinstance(other, Problem) and not isinstance(other, Note)] == []
    written = [series for (measure, _), series in read.items() if measure == "write_bytes"]
    assert max(series[-1][1] - series[0][1] for series in written) > 1 << 20, "the load did not show"


def test_packed_as_pmlogger_daily_does(recorded: dict[int, Path], tmp_path: Path) -> None:
    base = recorded[3]
    for path in base.parent.glob(f"{base.name}.*"):
        if path.suffix == ".index":
            shutil.copy(path, tmp_path)
        else:
            (tmp_path / f"{path.name}.xz").write_bytes(lzma.compress(path.read_bytes()))
    assert ours(tmp_path / base.name)[0] == ours(base)[0]
    assert list(same(tmp_path / base.name)) == []


def test_two_archives_merged(recorded: dict[int, Path], tmp_path: Path) -> None:
    run("pmlogextract", "-V", "3", recorded[2], recorded[3], tmp_path / "merged")
    assert list(same(tmp_path / "merged")) == []
    parts = [len(_apart(theirs(base)[0]["read_ops", _disk(base)])) for base in recorded.values()]
    assert len(ours(tmp_path / "merged")[0]["read_ops", _disk(recorded[2])]) == sum(parts)


def _disk(base: Path) -> str:
    return next(disk for measure, disk in theirs(base)[0] if measure == "read_ops")


def test_marks_wraps_and_a_disk_that_comes_later(imported: Path) -> None:
    assert list(same(imported)) == []
    read, others = ours(imported)
    assert theirs(imported)[1] == 1
    assert [str(other) for other in others if "1 marks" in str(other)]
    assert len(read["read_ops", "sda"]) == 7
    assert len(read["read_ops", "nvme0n1"]) == 3


def test_a_cut_archive_keeps_what_pmdumplog_still_reads(imported: Path, tmp_path: Path) -> None:
    for path in imported.parent.glob(f"{imported.name}.*"):
        shutil.copy(path, tmp_path)
    volume = tmp_path / f"{imported.name}.0"
    volume.write_bytes(volume.read_bytes()[:-20])
    read, others = ours(tmp_path / imported.name)
    assert len(read["read_ops", "sda"]) == 6
    assert any("the file ends within a record" in str(other) for other in others)


def test_pmrep_prints_the_same_totals(imported: Path) -> None:
    printed = run("pmrep", "-a", imported, "-Z", "UTC", "-t", "10", "-o", "csv", "--raw", "disk.dev.read_bytes")
    rows = list(csv.DictReader(io.StringIO(printed)))
    column = next(name for name in rows[0] if name.endswith("nvme0n1"))
    shown = [int(row[column]) * 1024 for row in rows if row[column]]
    values = [value for _, value in ours(imported)[0]["read_bytes", "nvme0n1"]]
    assert shown[-1] == values[-1]
    assert set(shown) <= set(values)
    last = datetime.strptime(rows[-1]["Time"], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    assert last.timestamp() == pytest.approx(1_700_000_080, abs=10)


def test_groups_12_ms_apart_and_a_metric_that_goes_and_comes_back(tools: None, tmp_path: Path) -> None:
    """Every value is one that pmdumplog prints, and over the hole is one wide interval; rates are those of pmrep."""
    base = _imported(GROUPS, tmp_path / "groups")
    read, others = ours(base)
    printed, _ = theirs(base)
    assert len(printed["read_ops", "sda"]) == 800
    outside = [n for n in range(400) if not 100 <= n < 250]
    assert read["read_ops", "sda"] == [printed["read_ops", "sda"][::2][n] for n in outside]
    assert read["write_bytes", "sda"] == [printed["write_bytes", "sda"][n] for n in outside]
    assert [value for _, value in read["write_ops", "sda"]] == [value for _, value in printed["write_ops", "sda"]]
    assert [other.reason for other in others if isinstance(other, Problem)] == [
        "400 values logged twice at one time: the first of each counts",
        "150 readings lack some of the metrics: skipped, the interval to the next whole one is longer",
    ]
    store = Store(tmp_path / "store")
    store.ingest(SOURCE.captures([base], ReadOptions()), "pcp")
    handle = store.tables.load("target_io")
    assert handle is not None
    rows = handle.to_pyarrow_table().sort_by("time").to_pylist()
    assert [row["duration_s"] for row in rows] == [10.0] * 99 + [1510.0] + [10.0] * 149
    for measure in ("read_ops", "write_ops", "write_bytes"):
        values = [value for _, value in printed[measure, "sda"]]
        counted = values[::2] if measure == "read_ops" else values
        assert sum(row[measure] for row in rows) == counted[-1] - counted[0]
    rates = run(
        "pmrep", "-a", base, "-Z", "UTC", "-S", "+10", "-t", "10", "-o", "csv", "disk.dev.write_bytes", "-b", "KB"
    )
    theirs_kib = {float(line.rpartition(",")[2]) for line in rates.splitlines()[2:] if line.rpartition(",")[2]}
    assert {row["write_bytes"] / row["duration_s"] / 1024 for row in rows} == theirs_kib == {6.4}
