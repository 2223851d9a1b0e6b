"""Servers that live tests share; each is started once per worker process, and skipped by name where it is missing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.live.browser import chromium
from tests.live.mariadb import MariaDb
from tests.live.s3_emulator import S3Emulator
from tests.live.served_pages import RunningServer, served
from tests.live.slurm_cluster import SlurmCluster
from tests.live.spark_cluster import ComponentMissing, SparkCluster
from tests.web.small_centre import make_centre

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def cluster() -> Iterator[SparkCluster]:
    """A standalone cluster with two workers, and a Spark Connect server. Nothing of it is left behind."""
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(SparkCluster(connect=True))
        except ComponentMissing as missing:
            pytest.skip(str(missing))
        daemons = list(running.daemons)
        yield running
    assert not any(daemon.alive() for daemon in daemons)
    assert not running.directory.exists()


@pytest.fixture(scope="session")
def slurm() -> Iterator[SlurmCluster]:
    """A Slurm of three nodes with accounting, and with our prolog and epilog."""
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(SlurmCluster(3))
        except ComponentMissing as missing:
            pytest.skip(str(missing))
        yield running


@pytest.fixture(scope="session")
def emulator() -> Iterator[S3Emulator]:
    """An S3 protocol peer on this machine."""
    with S3Emulator() as running:
        yield running


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    """A database server with an empty data directory."""
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(MariaDb())
        except ComponentMissing as missing:
            pytest.skip(str(missing))
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium."""
    try:
        with chromium() as running:
            yield running
    except ComponentMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def small_store(made_once: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    """The small centre that tests of pages and of the API share; only read."""
    return made_once("hidden-place", lambda folder: make_centre(folder / "store")) / "store"


@pytest.fixture(scope="session")
def server(small_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """`iolens serve` in front of it."""
    with served(small_store, tmp_path_factory.mktemp("serve") / "state") as running:
        yield running
