"""Fixtures that all tests share."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(  # a busy machine is no failure, and luck none either: `make soak` tries other examples
    "iolens",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("IOLENS_RANDOM") != "1",
)
settings.load_profile("iolens")

REPOSITORY = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real captures kept beside the repository; tests that need them are skipped where they are absent."""
    folder = Path(os.environ.get("IOLENS_SHARED", REPOSITORY.parent / "shared")) / "data"
    if not folder.is_dir():
        pytest.skip("real captures are not here; set IOLENS_SHARED")
    return folder


@pytest.fixture(autouse=True)
def quiet_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test sees the user's own store or configuration."""
    for name in ("IOLENS_STORE", "IOLENS_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """With IOLENS_REQUIRE_LIVE=1 a skipped live test is a failure."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.skipped and item.get_closest_marker("live") and os.environ.get("IOLENS_REQUIRE_LIVE") == "1":
        report.outcome = "failed"
        report.longrepr = f"live test skipped though IOLENS_REQUIRE_LIVE=1: {report.longrepr}"


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
