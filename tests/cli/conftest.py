"""Stores that tests of several verbs read; each is made once in a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import iolens


@pytest.fixture(scope="session")
def published_store(shared_data: Path, made_once: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    """Two years of the published file system, for all processes of the run."""

    def load(place: Path) -> None:
        folder = shared_data / "nersc-fs-design"
        files = [folder / "cscratch_daily_iorates.csv", folder / "cscratch_fullness-2017-02-14_2018-04-26.csv"]
        options = ("-f", "cscratch", "--timezone", "America/Los_Angeles", "--store", place / "store")
        loaded = iolens("ingest", "tokio-csv", *files, *options)
        assert loaded.code == 0, loaded.err

    return made_once("published", load) / "store"
