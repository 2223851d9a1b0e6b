"""Stores that tests of several verbs read; each is made once in a run."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from tests.cli.command import iolens


@pytest.fixture(scope="session")
def published_store(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two years of the published file system, for all processes of the run; only read afterwards."""
    own = tmp_path_factory.getbasetemp()
    place = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "published"
    place.mkdir(exist_ok=True)
    done = place / "done"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder = shared_data / "nersc-fs-design"
            files = [folder / "cscratch_daily_iorates.csv", folder / "cscratch_fullness-2017-02-14_2018-04-26.csv"]
            options = ("-f", "cscratch", "--timezone", "America/Los_Angeles", "--store", place / "store")
            loaded = iolens("ingest", "tokio-csv", *files, *options)
            assert loaded.code == 0, loaded.err
            done.touch()
    return place / "store"
