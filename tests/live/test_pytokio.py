"""Our reading of LMT databases, h5lmt and TOKIO series against pytokio's, which runs in an environment of its own.

pytokio 0.13 asks for libraries it does not need here; without them, and with the h5py and pandas of this environment,
it reads all of these files as it is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from iolens.sources import ReadOptions, get_source
from iolens.store.store import Store

pytestmark = pytest.mark.live

REPOSITORY = Path(__file__).parent.parent.parent
ENVIRONMENT = REPOSITORY / ".venv-pytokio"
READER = Path(__file__).parent / "pytokio_reading.py"
STEP_US = 5_000_000
PACIFIC_AHEAD_S = -8 * 3600
OPERATIONS = {
    f"mdtargets/{name}s": name
    for name in (
        "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename",
        "getxattr", "statfs", "setattr", "getattr",
    )
}  # fmt: skip


@pytest.fixture(scope="session")
def pytokio() -> Path:
    """The Python of an environment with pytokio; made once and kept."""
    python = ENVIRONMENT / "bin" / "python"
    done = ENVIRONMENT / ".installed"
    if not done.exists():
        pip = [sys.executable, "-m", "pip", "--python", str(python)]
        for command in (
            [sys.executable, "-m", "venv", "--clear", "--without-pip", str(ENVIRONMENT)],
            [*pip, "install", "--quiet", "--no-deps", "pytokio==0.13.0"],
        ):
            made = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
            if made.returncode:
                pytest.skip(f"pytokio cannot be installed: {made.stderr[-300:]}")
        (packages,) = ENVIRONMENT.glob("lib/python*/site-packages")
        (packages / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n", "utf-8")
        done.touch()
    return python


def read(python: Path, *arguments: str) -> dict[str, Any]:
    environment = {**os.environ, "TZ": "UTC", "PYTHONWARNINGS": "ignore"}
    answer = subprocess.run(
        [str(python), str(READER), *arguments], capture_output=True, text=True, timeout=300, check=True, env=environment
    )
    by_name: dict[str, Any] = json.loads(answer.stdout)
    return by_name


def stored(store: Store, filesystem: str, table: str, column: str, name: str = "target") -> dict[tuple[str, int], Any]:
    frame = store.select(filesystem).frame(table).select(name, "epoch_us", column).collect("pyarrow").to_native()
    return {(row[name], row["epoch_us"]): row[column] for row in frame.to_pylist()}


def cells(series: dict[str, Any], *, ahead_s: int = 0) -> dict[tuple[str, int], float]:
    """pytokio's values by column and time, without those it calls missing."""
    return {
        (name, (time - ahead_s) * 1_000_000): value
        for time, row in zip(series["times"], series["values"], strict=True)
        for name, value in zip(series["columns"], row, strict=True)
        if value is not None
    }


def ended(values: dict[tuple[str, int], float], step_us: int = STEP_US) -> dict[tuple[str, int], float]:
    """Times of TOKIO series are beginnings of steps, ours are ends."""
    return {(name, time + step_us): value for (name, time), value in values.items()}


def load(store: Store, source: str, path: Path, options: ReadOptions) -> Store:
    assert store.ingest(get_source(source).captures([path], options), source).refused == 0
    return store


def test_a_tokio_series(pytokio: Path, shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "h5lmt" / "snx11025_2018-01-28.hdf5"
    store = load(Store(tmp_path / "store"), "tokio-hdf5", path, ReadOptions())
    names = [
        "datatargets/readbytes",
        "datatargets/writebytes",
        "fullness/bytes",
        "dataservers/cpuload",
        "dataservers/memused",
    ]
    theirs = read(pytokio, "hdf5", str(path), *names, *OPERATIONS)
    for dataset, column in (("datatargets/readbytes", "read_bytes"), ("datatargets/writebytes", "write_bytes")):
        assert stored(store, "snx11025", "target_io", column) == ended(cells(theirs[dataset]))
    used = {key: value * 1024 for key, value in cells(theirs["fullness/bytes"]).items()}
    assert stored(store, "snx11025", "target_capacity", "used_bytes") == used
    load_of = stored(store, "snx11025", "host_load", "memory_pct", "host")
    assert {key: value for key, value in load_of.items() if value is not None} == cells(theirs["dataservers/memused"])
    for dataset, column in OPERATIONS.items():
        ours = stored(store, "snx11025", "metadata_ops", column)
        expected = {("snx11025-MDT0000", time): value for (_, time), value in ended(cells(theirs[dataset])).items()}
        assert ours == expected


def test_a_series_of_rates_with_missing_samples(pytokio: Path, shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "h5lmt" / "sample_tokiots.hdf5"
    store = load(Store(tmp_path / "store"), "tokio-hdf5", path, ReadOptions(filesystem="bb"))
    theirs = read(pytokio, "hdf5", str(path), "datatargets/readbytes", "datatargets/writebytes")
    for dataset, column in (("datatargets/readbytes", "read_bytes"), ("datatargets/writebytes", "write_bytes")):
        expected = ended(cells(theirs[dataset]), 10_000_000)
        ours = stored(store, "bb", "target_io", column)
        assert ours.keys() == expected.keys()
        assert all(abs(ours[key] - expected[key]) <= 0.5 for key in expected)  # ours are whole bytes


def test_an_h5lmt_file(pytokio: Path, shared_data: Path, tmp_path: Path) -> None:
    """pytokio keeps the first column, of which the file says nothing but zero; ours are the 60 intervals after it."""
    path = shared_data / "h5lmt" / "snx11025_2018-01-28.h5lmt"
    store = load(Store(tmp_path / "store"), "h5lmt", path, ReadOptions())
    theirs = read(pytokio, "hdf5", str(path), "datatargets/readbytes", "datatargets/writebytes", *OPERATIONS)
    for dataset, column in (("datatargets/readbytes", "read_bytes"), ("datatargets/writebytes", "write_bytes")):
        ours, expected = stored(store, "snx11025", "target_io", column), cells(theirs[dataset])
        assert len(expected) - len(ours) == 24
        assert all(expected.pop(key) == pytest.approx(ours[key], abs=0.5) for key in ours)
        assert set(expected.values()) == {0.0}
    for dataset, column in OPERATIONS.items():
        ours = stored(store, "snx11025", "metadata_ops", column)
        assert sum(ours.values()) == pytest.approx(sum(cells(theirs[dataset]).values()), abs=0.5)


@pytest.mark.parametrize("name", ["snx11025_2018-01-28", "SYNTHETIC_counter_reset_and_gap"])
def test_an_lmt_database(pytokio: Path, shared_data: Path, tmp_path: Path, name: str) -> None:
    """The same differences; where pytokio gives none (after a reset, in a hole) ours say why."""
    path = shared_data / "lmt-db" / f"{name}.sqlite3"
    store = load(Store(tmp_path / "store"), "lmt-db", path, ReadOptions(timezone="America/Los_Angeles"))
    theirs = read(pytokio, "lmt-db", str(path), "2018-01-28T00:00:00", "2018-01-28T00:05:00")
    resets = stored(store, "snx11025", "target_io", "after_reset")
    for dataset, column in (("datatargets/readbytes", "read_bytes"), ("datatargets/writebytes", "write_bytes")):
        ours, expected = (
            stored(store, "snx11025", "target_io", column),
            ended(cells(theirs[dataset], ahead_s=PACIFIC_AHEAD_S)),
        )
        assert expected.keys() <= ours.keys()
        assert {key: ours[key] for key in expected} == expected
        beyond = {key: value for key, value in ours.items() if key not in expected}
        assert all(resets[key] or value == 0 or _after_a_reset(resets, key) for key, value in beyond.items())
    capacity = stored(store, "snx11025", "target_capacity", "used_bytes")
    used = {key: value * 1024 for key, value in cells(theirs["fullness/bytes"], ahead_s=PACIFIC_AHEAD_S).items()}
    assert used.items() <= capacity.items()
    for dataset, column in OPERATIONS.items():
        moved = sum(stored(store, "snx11025", "metadata_ops", column).values())
        assert moved == sum(cells(theirs[dataset]).values())


def _after_a_reset(resets: dict[tuple[str, int], bool], key: tuple[str, int]) -> bool:
    """pytokio gives nothing until a counter that was reset has moved twice."""
    return any(was_reset and target == key[0] and time < key[1] for (target, time), was_reset in resets.items())
