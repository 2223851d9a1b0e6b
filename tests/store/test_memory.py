"""A stream of any length is loaded in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from iolens.store.store import Store
from iolens.store.tables import data_files
from tests.store.writers import make_table_of_0_1

SAMPLES = 300_000
MOST_MIB = 600

LOAD = """
import json, re, sys
from pathlib import Path
from iolens.records import Capture, CounterSet, Sample
from iolens.store.store import Store

peaks_mib = []

def note_peak():  # of this program alone: getrusage would count what the process that started it had
    peaks_mib.append(int(re.search(r"VmHWM:\\s+([0-9]+)", Path("/proc/self/status").read_text())[1]) / 1024)

def items():
    for number in range(int(sys.argv[2])):
        if number == int(sys.argv[2]) // 3:
            note_peak()
        time_us = 1_600_000_000_000_000 + number // 100 * 5_000_000
        counters = CounterSet({"read_bytes": 4096 * number, "write_bytes": number})
        yield Sample("target_io", "scratch", f"scratch-OST{number % 100:04x}", time_us, time_us, {"": counters})

tally = Store(sys.argv[1]).ingest([Capture("stream", "file/stream", items)], "test")
note_peak()
print(json.dumps([tally.rows["target_io"], *peaks_mib]))
"""


def test_memory_does_not_grow_with_the_length_of_a_stream(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(tmp_path / "store"), str(SAMPLES)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    rows, after_a_third_mib, at_the_end_mib = json.loads(done.stdout)
    assert rows == SAMPLES - 100  # the first sample of each target is a baseline
    assert at_the_end_mib < MOST_MIB
    assert at_the_end_mib < 1.2 * after_a_third_mib


DAYS = """
import json, re, sys
from pathlib import Path
from iolens.records import Capture, Row
from iolens.store.store import Store

def items():
    for day in range(int(sys.argv[2])):
        row = {"time": 600_000_000_000_000 + day * 86_400_000_000, "filesystem": "scratch", "used_bytes": day}
        yield Row("target_capacity", {**row, "target": "scratch-OST0000", "target_kind": "ost"})

tally = Store(sys.argv[1]).ingest([Capture("days", "file/days", items)], "test")
peak = int(re.search(r"VmHWM:\\s+([0-9]+)", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps([tally.rows["target_capacity"], peak]))
"""


def test_memory_does_not_grow_with_the_number_of_days(tmp_path: Path) -> None:
    """A file for every day, each written and closed before the next: four megabytes for each of them before."""
    command = [sys.executable, "-c", DAYS, str(tmp_path / "store"), "700"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    rows, peak_mib = json.loads(done.stdout)
    assert rows == 700
    assert peak_mib < MOST_MIB


CUT = """
import json, re, sys
from pathlib import Path
from iolens.store.store import Store

Store(sys.argv[1]).tables.load_or_create("jobs", __import__("iolens.schema").schema.JOBS)
print(int(re.search(r"VmHWM:\\s+([0-9]+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def peak_of_cutting(folder: Path, days: int) -> float:
    """MiB that it takes to cut a table of 0.1 with a job on each of so many days."""
    rows = [
        {"job_id": str(day), "start": day * 86_400_000_000, "time": day * 86_400_000_000 + 9, "source": "slurm"}
        for day in range(days)
    ]
    store = Store(folder)
    make_table_of_0_1(store, "jobs", rows, rows_per_file=days)
    done = subprocess.run([sys.executable, "-c", CUT, str(folder)], capture_output=True, text=True, check=True)
    handle = Store(folder).tables.load("jobs")
    assert handle is not None
    assert (handle.metadata().partition_columns, len(data_files(handle))) == (["date"], days)
    return float(done.stdout)


def test_memory_does_not_grow_with_the_days_a_table_is_cut_into(tmp_path: Path) -> None:
    """A writer that stays open for each day takes 0.2 MiB of each: 300 MiB more for 1,500."""
    few, many = (peak_of_cutting(tmp_path / str(days), days) for days in (2, 1500))
    assert many - few < 60
