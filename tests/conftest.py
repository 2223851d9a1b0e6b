"""Fixtures that all tests share."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from _pytest import runner
from hypothesis import HealthCheck, settings

from tests import quick
from tests.soak import IS_SOAK

settings.register_profile(  # a busy machine is no failure, and luck none either: `make soak` tries other examples
    "iolens",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not IS_SOAK,
)
settings.load_profile("iolens")

REPOSITORY = Path(__file__).parent.parent
MEMORY = Path("/dev/shm")
SPACE_BYTES = 4 << 30  # a run has a few hundred megabytes at a time
SPARK_FILES = ("tests/live/test_engines.py", "tests/live/test_spark_cluster.py")
LONG_FILES = (  # of those whose names come last
    "tests/test_docs.py",
    "tests/views/test_report.py",
    "tests/validation/test_paper_p.py",
    "tests/store/test_power_cut.py",
    "tests/simulator/test_speeds.py",
    "tests/test_adding_a_source.py",
    "tests/views/test_figures.py",
    "tests/test_notebook_page.py",
    "tests/test_resolution.py",
    "tests/live/test_serve_pages.py",
    "tests/live/test_serve_actions.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which part of the tests is run."""
    quick.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Temporary folders lie in memory where it has space: a store waits for its disk several times in each commit.

    `--basetemp` and PYTEST_DEBUG_TEMPROOT put them elsewhere. Tests that need a disk look for one themselves.
    """
    if config.getoption("basetemp") is None and _free_bytes(MEMORY) >= SPACE_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    quick.configure(config)
    # pytest writes the name of each test into the environment. Nobody needs it here, and while a server of a test opens
    # tables in its threads, that library reads the environment: a write at the same time ended a process.
    runner._update_current_test_var = lambda item, when: None  # type: ignore[assignment]


def _free_bytes(folder: Path) -> int:
    """Space in a folder that is in memory, of which half stays free for programs."""
    if not os.access(folder, os.W_OK):
        return 0
    return min(shutil.disk_usage(folder).free, psutil.virtual_memory().available // 2)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real captures kept beside the repository; tests that need them are skipped where they are absent."""
    folder = quick.SHARED / "data"
    if not folder.is_dir():
        pytest.skip("real captures are not here; set IOLENS_SHARED")
    return folder


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], None]], Path]:
    """A folder of that name, filled by whichever process of the run asks first, and only read afterwards."""
    own = tmp_path_factory.getbasetemp()
    root = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def folder(name: str, fill: Callable[[Path], None]) -> Path:
        place = root / name
        place.mkdir(exist_ok=True)
        with (root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (root / f"{name}.done").exists():
                fill(place)
                (root / f"{name}.done").touch()
        return place

    return folder


@pytest.fixture(scope="session")
def studies_with_data(shared_data: Path, made_once: Any) -> Any:
    """Every study recomputed from the public data."""
    from tests.validation.all_studies import recompute, recomputed

    options = ("--data", shared_data.resolve(), "--format", "json")
    return recomputed(made_once("studies-with-data", lambda folder: recompute(folder, *options)))


@pytest.fixture(scope="session")
def studies_without_data(made_once: Any) -> Any:
    """Every study recomputed where no data are."""
    from tests.validation.all_studies import recompute, recomputed

    return recomputed(made_once("studies-without-data", lambda folder: recompute(folder, IOLENS_SHARED="nowhere")))


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test sees the user's own store, configuration or scans that were interrupted, nor leaves any there."""
    for name in ("IOLENS_STORE", "IOLENS_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """With IOLENS_REQUIRE_LIVE=1 a skipped live test is a failure."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.skipped and item.get_closest_marker("live") and os.environ.get("IOLENS_REQUIRE_LIVE") == "1":
        report.outcome = "failed"
        report.longrepr = f"live test skipped though IOLENS_REQUIRE_LIVE=1: {report.longrepr}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest work comes first; with `--no-loadscope-reorder` nothing waits for it when all else is done."""
    quick.choose(config, items)
    items.sort(key=lambda item: (not item.nodeid.startswith(SPARK_FILES), not item.nodeid.startswith(LONG_FILES)))


IOR_FILES = tuple(
    f"tests/live/test_{name}.py" for name in ("darshan_ior", "ior", "bench_ior", "ior_command", "imitation")
)
SLURM_FILES = (*IOR_FILES, "tests/live/test_slurm_jobs.py")
FIO_FILES = tuple(f"tests/live/test_{name}.py" for name in ("fio", "synthetic_fio", "real_disk"))
DISK_FILES = (*SLURM_FILES, *FIO_FILES)  # IOR would disturb fio
PAGE_FILES = tuple(f"tests/live/test_serve_{name}.py" for name in ("pages", "actions", "docs"))
GROUPS = {
    **dict.fromkeys(SPARK_FILES, "Spark"),
    **dict.fromkeys(DISK_FILES, "Slurm and disk"),
    **dict.fromkeys(PAGE_FILES, "pages"),
}


def pytest_collection_finish(session: pytest.Session) -> None:
    """What the tests of IOR and Darshan need takes minutes to build, once: begin, if they will run.

    Thousands of tests and their modules stay until the end: the garbage collector need not look at them.
    """
    if any(item.nodeid.startswith(IOR_FILES) for item in session.items) and not session.config.option.collectonly:
        from tests.live.hpc_tools import BackgroundBuild

        build = BackgroundBuild()
        build.begin()
        session.config.add_cleanup(build.end)
    gc.freeze()


def pytest_unconfigure() -> None:
    """At the end all of it goes; libraries complain of what does not."""
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each file is run by one process, and files that share a cluster by the same one: it takes long to start."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            scope: str = super()._split_scope(nodeid)
            return GROUPS.get(scope, scope)

    return Scheduling(config, log)


@pytest.fixture
def endless_path() -> Iterator[Path]:
    """A folder in which files may be as large as a number can say: in memory, and sparse."""
    try:
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="iolens-") as folder:
            with (Path(folder) / "large").open("wb") as stream:
                stream.truncate(2**63 - 1)
            (Path(folder) / "large").unlink()
            yield Path(folder)
    except OSError as error:
        pytest.skip(f"no file of 8 EiB can be made in /dev/shm: {error}")
