"""The two parts of the tests: `pytest --part quick` is `make test`, `--part rest` is what `make test-all` adds.

Quick tests need Python alone. The rest start real programs (marker `live`), read captures, or are in `long_tests.txt`,
which `scripts/choose_tests.py` writes. In quick ones no other program may start and no port be open to other machines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

LIST = Path(__file__).parent / "long_tests.txt"
REPOSITORY = Path(__file__).parent.parent
SHARED = Path(os.environ.get("IOLENS_SHARED", REPOSITORY.parent / "shared"))
CAPTURES = {"shared_data", "studies_with_data"}  # fixtures
STARTS = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system")
OPTIONAL = ("uname", "fc-list")  # `platform` and Matplotlib ask for them once, and do without
OWN_ADDRESSES = ("127.", "::1", "localhost")


@cache
def long_tests() -> frozenset[str]:
    """Functions, as `tests/cli/test_scan.py::test_interrupted_and_resumed`."""
    lines = (line.split() for line in LIST.read_text().splitlines() if not line.startswith("#"))
    return frozenset(words[1] for words in lines if words)


def is_quick(item: pytest.Item) -> bool:
    """Whether a test is in `make test`."""
    if item.get_closest_marker("live") or _reads_captures(item):
        return False
    return item.nodeid.partition("[")[0] not in long_tests()


def _reads_captures(item: pytest.Item) -> bool:
    """By a fixture, or because it is the case of one of them."""
    case = getattr(item, "callspec", None)
    files = [value for value in case.params.values() if isinstance(value, Path)] if case else []
    fixtures = CAPTURES.intersection(getattr(item, "fixturenames", ()))
    return bool(fixtures) or any(file.is_relative_to(SHARED) for file in files)


class OnlyPython:
    """Notes what a test does that `make test` must not need."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if event in STARTS and not _is_ours(str(args[0])):
            self.seen.append(f"starts {args[0]}")
        elif event == "socket.bind" and isinstance(args[1], tuple) and not str(args[1][0]).startswith(OWN_ADDRESSES):
            self.seen.append(f"opens {args[1]}")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """A test that needs more than Python is not quick, and fails."""
        outcome = yield
        report = outcome.get_result()  # type: ignore[attr-defined]
        seen, self.seen = self.seen, []
        if seen and report.passed:
            report.outcome = "failed"
            report.longrepr = f"a test of `make test` {'; '.join(seen)}: see tests/quick.py"


def _is_ours(program: str) -> bool:
    """Python, what pip brought, what a test made itself, or what no answer depends on."""
    path = Path(program)
    return (
        program in OPTIONAL or path.name.startswith("python") or path.is_relative_to(sys.prefix) or "pytest-" in program
    )


def add_option(parser: pytest.Parser) -> None:
    """`--part`."""
    parser.addoption("--part", choices=("quick", "rest"), help="tests that need Python alone, or all others")


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is in the other part."""
    part = config.getoption("part")
    if part is None:
        return
    others = [item for item in items if is_quick(item) != (part == "quick")]
    items[:] = [item for item in items if is_quick(item) == (part == "quick")]
    config.hook.pytest_deselected(items=others)


def configure(config: pytest.Config) -> None:
    """Quick tests are watched."""
    if config.getoption("part") == "quick":
        config.pluginmanager.register(OnlyPython(), "only Python")
