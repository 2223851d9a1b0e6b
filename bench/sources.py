"""How fast each source reads: rows and megabytes per second of processor time, and pytokio on the same files.

`python -m bench.sources` reads the captures beside the repository (IOLENS_SHARED) again and again, each source for
about a second, without the store; then made-up files of the size sites have, also into a store and against pytokio,
which runs in `.venv-pytokio`; its live test makes that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
from tests.sources.lmt_copy import small_copy

from iolens.errors import InputError
from iolens.records import Problem, Rows, Samples
from iolens.sources import ReadOptions, all_sources
from iolens.store.readers import guarded
from iolens.store.store import Store

REPOSITORY = Path(__file__).parent.parent
DATA = Path(os.environ.get("IOLENS_SHARED", REPOSITORY.parent / "shared")) / "data"
FOLDERS = (
    "lustre-lctl", "lustre-server-proc", "lmt-db", "h5lmt", "ltop-record", "iostat", "pcp", "mmperfmon", "collectd",
    "lfs-df", "nersc-fs-design", "ior", "fio", "mdtest",
)  # fmt: skip
SUPPLIED = ReadOptions(filesystem="scratch", timezone="America/Los_Angeles", interval_s=5.0)
LEAST_S = 1.0
LMT_TIMES, LMT_OSTS = 1440, 24  # two hours
DAY_STEPS, DAY_OSTS = 17280, 96


@dataclass(frozen=True, slots=True)
class Speed:
    """One source over its captures."""

    rows: int
    size_bytes: int
    cpu_s: float

    @property
    def rows_per_s(self) -> float:
        """Rows per second of processor time."""
        return self.rows / self.cpu_s


def main() -> None:
    """A line per source, then the ratios to pytokio."""
    if not DATA.is_dir():
        sys.exit("no captures beside the repository; set IOLENS_SHARED")
    result = by_source()
    print(f"{'source':12} {'files':>5} {'MB':>7} {'rows':>8} {'rows per CPU s':>15} {'MB per CPU s':>13}")
    for name, paths in result.items():
        show(name, paths)
    with tempfile.TemporaryDirectory(prefix="iolens-bench-") as folder:
        made = {"lmt-db": lmt_copy(Path(folder)), "tokio-hdf5": tokio_day(Path(folder))}
        print("\nmade up, of the size sites have")
        for name, path in made.items():
            show(name, [path])
            print(f"  into a store: {into_store(name, path):,.0f} rows per CPU s, start-up included", flush=True)
        for name, path in made.items():
            against_pytokio(name, path)


def show(name: str, paths: list[Path]) -> None:
    """One line."""
    item = measure(name, paths)
    mb = item.size_bytes / 1e6
    print(
        f"{name:12} {len(paths):>5} {mb:>7.2f} {item.rows:>8} {item.rows_per_s:>15,.0f} {mb / item.cpu_s:>13.1f}",
        flush=True,
    )


def lmt_copy(folder: Path) -> Path:
    """A SQLite copy of an LMT database."""
    path = folder / "scratch_2018-01-28.sqlite3"
    small_copy(path, LMT_TIMES, LMT_OSTS)
    return path


def tokio_day(folder: Path) -> Path:
    """A day of a TOKIO time series."""
    path = folder / "day.hdf5"
    columns = np.array([f"scratch-OST{number:04x}" for number in range(DAY_OSTS)], "S")
    random = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        file.attrs["version"] = "1"
        group = file.create_group("datatargets")
        group.attrs["source"] = "lmt"
        group["timestamps"] = 1_513_152_000 + 5 * np.arange(DAY_STEPS)
        for name in ("readbytes", "writebytes"):
            values = random.integers(0, 1 << 30, (DAY_STEPS, DAY_OSTS)).astype(float)
            dataset = group.create_dataset(name, data=values, compression="gzip", compression_opts=1)
            dataset.attrs["columns"], dataset.attrs["units"] = columns, "bytes"
    return path


def by_source() -> dict[str, list[Path]]:
    """Captures by the source that recognises them."""
    paths: dict[str, list[Path]] = {}
    files = sorted(file for folder in FOLDERS for file in (DATA / folder).rglob("*") if file.is_file())
    for file in files:
        with file.open("rb") as stream:
            head = stream.read(65536)
        for source in all_sources():
            if source.recognises(file, head):
                paths.setdefault(source.name, []).append(file)
                break
    return paths


def measure(name: str, paths: list[Path]) -> Speed:
    """Read all captures until a second has passed; the mean of the rounds."""
    rows, rounds = 0, 0
    began = time.process_time()
    while not rounds or time.process_time() - began < LEAST_S:
        rows = read(name, paths)
        rounds += 1
    return Speed(rows, sum(path.stat().st_size for path in paths), (time.process_time() - began) / rounds)


def read(name: str, paths: list[Path]) -> int:
    """Rows or samples in the captures."""
    source = next(all_source for all_source in all_sources() if all_source.name == name)
    total = 0
    try:
        for capture in source.captures(paths, SUPPLIED):
            for item in guarded(capture):
                total += 0 if isinstance(item, Problem) else len(item) if isinstance(item, Rows | Samples) else 1
    except InputError as error:
        print(f"{name}: {error}", file=sys.stderr)
    return total


def into_store(name: str, path: Path) -> float:
    """Rows stored per second of processor time, start of the engine included."""
    source = next(all_source for all_source in all_sources() if all_source.name == name)
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        tally = Store(f"{folder}/store").ingest(source.captures([path], SUPPLIED), name)
        return sum(tally.rows.values()) / (time.process_time() - began)


PYTOKIO = """
import datetime, json, sys, time
kind, path = sys.argv[1:3]
def hdf5():
    from tokio.connectors.hdf5 import Hdf5
    with Hdf5(path, "r") as file:
        return sum(file.to_dataframe("datatargets/" + name).size for name in ("readbytes", "writebytes"))
def lmt():
    from tokio.cli.archive_lmtdb import DatasetDict
    from tokio.connectors.lmtdb import LmtDb
    span = [datetime.datetime(2018, 1, 28), datetime.datetime(2018, 1, 28, 2)]
    database, series = LmtDb(cache_file=path), DatasetDict(*span, 5)
    series.archive_ost_data(database); series.archive_oss_data(database)
    series.archive_mds_data(database); series.archive_mds_ops_data(database)
    series.finalize()
read = lmt if kind == "lmt-db" else hdf5
read()
began, rounds = time.process_time(), 0
while time.process_time() - began < 1.0 or not rounds:
    read(); rounds += 1
print(json.dumps((time.process_time() - began) / rounds))
"""


def against_pytokio(name: str, path: Path) -> None:
    """The same file read by both, in one run."""
    python = REPOSITORY / ".venv-pytokio" / "bin" / "python"
    if not python.exists():
        print("pytokio: not compared; `.venv-pytokio` is made by tests/live/test_pytokio.py")
        return
    ours = measure(name, [path]).cpu_s
    environment = {**os.environ, "TZ": "UTC", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [str(python), "-c", PYTOKIO, name, str(path)], capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode:
        print(f"{name}: pytokio failed: {done.stderr.strip().splitlines()[-1]}")
        return
    theirs = json.loads(done.stdout)
    print(f"{name}: {theirs / ours:.1f}× pytokio's speed ({theirs:.2f} against {ours:.2f} CPU s)")


if __name__ == "__main__":
    main()
